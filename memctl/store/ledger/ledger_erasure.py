"""Striking from the ledger what it knows of documents and memories that are to be forgotten."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from memctl.ids import storable
from memctl.schema.table_names import FORGET
from memctl.store.ledger.audit_repositories import strike_audited
from memctl.store.ledger.content_tables import (
    NO_CONTENT,
    ContentErasure,
    ContentSelection,
    ErasedContent,
    erase_content,
    preview_content,
)
from memctl.store.ledger.repository import Connections, to_text

Says = Callable[[str], bool]
_TEXTS_OF_RECEIPTS = ("path", "place", "reason", "hint", "error")
_OLDER = {
    "receipts": "decided_at < ?1 AND (document_id IS NULL"
    " OR document_id IN (SELECT id FROM deleted_rows))",
    "events": "at < ?1",
    "query_log": "at < ?1 AND question != ''",
}
"""What each table has that was noted before an instant, and can go without what stays."""


class Erasure(Struct, frozen=True):
    """What the ledger is to forget."""

    ids: frozenset[str]
    """Of whole documents, and of memories."""
    answers: frozenset[str]
    """Memories that questions may have been answered by which are not kept."""
    blocked: Sequence[str]
    """Documents that stay without some of their words."""
    names: frozenset[str]
    """Names that nothing names any more, as names are compared."""
    sources: frozenset[str]
    """What the documents go by."""
    says: Says
    """Whether a text holds any of what is to be forgotten."""
    says_own: Says
    """The same of what users and agents have said or stored, within what ``content`` is limited
    to; elsewhere only ``says`` counts, which leaves out what stays theirs."""
    without: Callable[[str], str] | None = None
    """Gives a text without it; None where a row that has it goes whole."""
    before: datetime | None = None
    """What was noted before that goes too, but for readings of documents that stay."""
    content: ContentSelection = NO_CONTENT
    """What users and agents have said or stored, and goes whatever it says."""

    @property
    def of_content(self) -> ContentErasure:
        """What of it users and agents have said or stored."""
        blocked = frozenset(self.blocked)
        return ContentErasure(self.content, self.says_own, self.without, self.ids, blocked)


def erase_from_ledger(connection: sqlite3.Connection, erasure: Erasure) -> ErasedContent:
    """Strike it, within a transaction of the ledger's.

    All replies of models go, because their keys do not say which texts they rest on.
    Questions that hold some of it, or were answered by it, lose their text.

    Returns:
        What goes of what users and agents have said or stored.
    """
    ids = [(id_,) for id_ in erasure.ids]
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("DELETE FROM model_replies")
    places = _erase_receipts(connection, erasure)
    connection.executemany("DELETE FROM document_usage WHERE document_id = ?", ids)
    connection.executemany("UPDATE files SET document_id = NULL WHERE document_id = ?", ids)
    connection.executemany("DELETE FROM blocked_documents WHERE document_id = ?", ids)
    blocked = [(id_,) for id_ in erasure.blocked]
    connection.executemany("INSERT OR IGNORE INTO blocked_documents VALUES (?)", blocked)
    _note_for_snapshots(connection, erasure)
    _erase_files(connection, erasure)
    for table in ("access_log", "accesses", "confirmations"):
        connection.executemany(f"DELETE FROM {table} WHERE memory_id = ?", ids)
    strike_audited(connection, erasure.ids, erasure.says)
    for table in ("comparisons", "snapshot_comparisons"):
        connection.executemany(f"DELETE FROM {table} WHERE memory_id = ?", ids)
    connection.executemany("DELETE FROM snapshot_files WHERE document_id = ?", ids)
    connection.executemany("DELETE FROM job_changes WHERE row_id = ?", ids)
    connection.executemany("DELETE FROM feedback_effects WHERE memory_id = ?", ids)
    _erase_decisions(connection, erasure)
    _erase_questions(connection, erasure)
    _erase_events(connection, erasure, places | erasure.sources)
    _erase_details(connection, erasure)
    content = erase_content(connection, erasure.of_content)
    if erasure.before is not None:
        _erase_older(connection, erasure.before)
    return content


def preview_erasure(ledger: Connections, erasure: Erasure) -> ErasedContent:
    """Return what of it users and agents have said or stored, without striking anything."""
    with ledger.reading() as connection:
        return preview_content(connection, erasure.of_content)


def _note_for_snapshots(connection: sqlite3.Connection, erasure: Erasure) -> None:
    """Record what must not come back with a snapshot, where there is any."""
    where = "WHERE EXISTS (SELECT 1 FROM snapshots)"
    connection.executemany(
        f"INSERT OR REPLACE INTO forgotten SELECT ?, FALSE {where}", [(i,) for i in erasure.ids]
    )
    connection.executemany(  # but for what has gone whole before
        f"INSERT OR IGNORE INTO forgotten SELECT ?, TRUE {where}", [(i,) for i in erasure.blocked]
    )


def has_older_entries(ledger: Connections, before: datetime) -> bool:
    """Return whether something was noted before an instant that goes with what is older."""
    rows = (f"EXISTS (SELECT 1 FROM {table} WHERE {noted})" for table, noted in _OLDER.items())
    with ledger.reading() as connection:
        (found,) = connection.execute(f"SELECT {' OR '.join(rows)}", (to_text(before),)).fetchone()
    return bool(found)


def _erase_older(connection: sqlite3.Connection, before: datetime) -> None:
    """Strike what was noted before an instant; of questions, the text."""
    then = (to_text(before),)
    for table in ("receipts", "events"):
        connection.execute(f"DELETE FROM {table} WHERE {_OLDER[table]}", then)
    connection.execute(
        "UPDATE query_log SET question = '', filters = '{}', hit_ids = '[]'"
        f" WHERE {_OLDER['query_log']}",
        then,
    )


def _erase_receipts(connection: sqlite3.Connection, erasure: Erasure) -> frozenset[str]:
    """Strike every reading of the documents' files, and what others say of it.

    Returns:
        Where those files were found and put.
    """
    columns = ", ".join(_TEXTS_OF_RECEIPTS)
    rows = connection.execute(
        f"SELECT id, document_id, {columns} FROM receipts ORDER BY id"
    ).fetchall()
    owners = _owners(rows)
    gone = {number for number, *_ in rows if owners[number] in erasure.ids}
    places = frozenset(
        place for number, _, *texts in rows if number in gone for place in texts[:2] if place
    )
    spoken = {
        number: texts
        for number, _, *texts in rows
        if number not in gone and any(map(erasure.says, texts))
    }
    if erasure.without is None:
        gone |= spoken.keys()
    else:
        redacted = [(*map(erasure.without, texts), number) for number, texts in spoken.items()]
        settings = ", ".join(f"{column} = ?" for column in _TEXTS_OF_RECEIPTS)
        connection.executemany(f"UPDATE receipts SET {settings} WHERE id = ?", redacted)
    connection.executemany("DELETE FROM receipts WHERE id = ?", [(number,) for number in gone])
    return places


def _owners(rows: Sequence[tuple[Any, ...]]) -> dict[int, str | None]:
    """Return the document of each reading; files of one name may belong to several.

    One that came to nothing is of the next one there that came to something, else of the last.
    """
    owners: dict[int, str | None] = {}
    for ordered in (reversed(rows), rows):
        near: dict[str, str] = {}
        for number, document, path, place, *_ in ordered:
            owners[number] = owners.get(number) or document or near.get(path) or near.get(place)
            if document:
                near |= dict.fromkeys(filter(None, (path, place)), document)
    return owners


def _erase_files(connection: sqlite3.Connection, erasure: Erasure) -> None:
    """Strike why files failed; that they are known has to stay, or they would be taken in anew."""
    for table in ("files", "snapshot_files"):
        rows = connection.execute(f"SELECT path, reason, hint FROM {table}").fetchall()
        spoken = [(path,) for path, *texts in rows if any(map(erasure.says, texts))]
        connection.executemany(f"UPDATE {table} SET reason = '', hint = '' WHERE path = ?", spoken)


def _erase_decisions(connection: sqlite3.Connection, erasure: Erasure) -> None:
    for table in ("name_decisions", "snapshot_names"):
        rows = connection.execute(f"SELECT one, other FROM {table}").fetchall()
        gone = [
            pair
            for pair in rows
            if not erasure.names.isdisjoint(pair) or any(map(erasure.says, pair))
        ]
        connection.executemany(f"DELETE FROM {table} WHERE one = ? AND other = ?", gone)


def _erase_questions(connection: sqlite3.Connection, erasure: Erasure) -> None:
    rows = connection.execute("SELECT id, question, filters, hit_ids FROM query_log").fetchall()
    emptied, scope = [], erasure.content.scope
    for number, question, filters, hits in rows:
        ids = json.loads(hits)
        left = [id_ for id_ in ids if id_ not in erasure.ids]
        says = erasure.says if scope is None else erasure.says_own
        if scope is not None and not scope.limits_question(filters):
            continue
        if not erasure.answers.isdisjoint(ids) or says(question) or says(filters):
            emptied.append((json.dumps(left), number))
    connection.executemany(
        "UPDATE query_log SET question = '', filters = '{}', hit_ids = ? WHERE id = ?", emptied
    )
    if erasure.content.session is not None:
        questions = connection.execute(
            "SELECT id, filters FROM query_log WHERE query_id IN"
            " (SELECT query_id FROM query_details WHERE session_id = ?)",
            (storable(erasure.content.session),),
        ).fetchall()
        gone = [
            (number,)
            for number, filters in questions
            if scope is None or scope.limits_question(filters)
        ]
        connection.executemany("DELETE FROM query_log WHERE id = ?", gone)
    for query, cited in connection.execute("SELECT query_id, cited FROM query_details").fetchall():
        relied = json.loads(cited)
        if not erasure.ids.isdisjoint(relied):
            stays = json.dumps([id_ for id_ in relied if id_ not in erasure.ids])
            connection.execute(
                "UPDATE query_details SET cited = ? WHERE query_id = ?", (stays, query)
            )


def _erase_events(
    connection: sqlite3.Connection, erasure: Erasure, subjects: frozenset[str]
) -> None:
    events = connection.execute("SELECT id, message, hint, subject FROM events").fetchall()
    gone = [
        (number,)
        for number, message, hint, subject in events
        if subject in subjects or any(map(erasure.says, (message, hint, subject)))
    ]
    connection.executemany("DELETE FROM events WHERE id = ?", gone)


def _erase_details(connection: sqlite3.Connection, erasure: Erasure) -> None:
    """Strike what jobs say of it, but for forgets that are unfinished: they need it still."""
    others = "SELECT id, detail FROM jobs WHERE kind != ? OR state = 'done'"
    jobs = connection.execute(others, (FORGET,)).fetchall()
    spoken = [(number,) for number, detail in jobs if erasure.says(detail)]
    connection.executemany("UPDATE jobs SET detail = '{}' WHERE id = ?", spoken)
