"""Striking from the ledger what it knows of documents and memories that are to be forgotten."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memctl.store.names import FORGET

Says = Callable[[str], bool]
_TEXTS_OF_RECEIPTS = ("path", "place", "reason", "hint", "error")


@dataclass(frozen=True, slots=True)
class Erased:
    """What the ledger is to forget."""

    documents: Sequence[str]
    """Ids of whole documents."""
    memories: frozenset[str]
    names: frozenset[str]
    """Names that nothing names any more, as names are compared."""
    sources: frozenset[str]
    """What the documents go by."""
    says: Says
    """Whether a text holds any of what is to be forgotten."""
    without: Callable[[str], str] | None = None
    """Gives a text without it; None where a row that has it goes whole."""


def erase(connection: sqlite3.Connection, erased: Erased) -> None:
    """Strike it, within a transaction of the ledger's.

    All replies of models go, for which of them rest on a text cannot be told from their keys.
    Questions that hold some of it, or were answered by it, lose their text.
    """
    documents = [(id_,) for id_ in erased.documents]
    memories = [(id_,) for id_ in erased.memories]
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("DELETE FROM model_replies")
    places = _erase_receipts(connection, erased)
    connection.executemany("DELETE FROM document_usage WHERE document_id = ?", documents)
    connection.executemany("UPDATE files SET document_id = NULL WHERE document_id = ?", documents)
    _erase_files(connection, erased)
    connection.executemany("DELETE FROM access_log WHERE memory_id = ?", memories)
    connection.executemany("DELETE FROM comparisons WHERE memory_id = ?", memories)
    _erase_decisions(connection, erased)
    _erase_questions(connection, erased)
    _erase_events(connection, erased, places | erased.sources)
    _erase_details(connection, erased)


def _erase_receipts(connection: sqlite3.Connection, erased: Erased) -> frozenset[str]:
    """Strike every reading of the documents' files, and what others say of it.

    Returns:
        Where those files were found and put.
    """
    columns = ", ".join(_TEXTS_OF_RECEIPTS)
    rows = connection.execute(f"SELECT id, document_id, {columns} FROM receipts").fetchall()
    documents = set(erased.documents)
    own = [texts[:2] for _, document, *texts in rows if document in documents]
    places = frozenset(place for pair in own for place in pair if place)
    gone = {number for number, _, *texts in rows if not places.isdisjoint(texts[:2])}
    spoken = {
        number: texts
        for number, _, *texts in rows
        if number not in gone and any(map(erased.says, texts))
    }
    if erased.without is None:
        gone |= spoken.keys()
    else:
        told = [(*map(erased.without, texts), number) for number, texts in spoken.items()]
        settings = ", ".join(f"{column} = ?" for column in _TEXTS_OF_RECEIPTS)
        connection.executemany(f"UPDATE receipts SET {settings} WHERE id = ?", told)
    connection.executemany("DELETE FROM receipts WHERE id = ?", [(number,) for number in gone])
    return places


def _erase_files(connection: sqlite3.Connection, erased: Erased) -> None:
    """Strike why files failed; that they are known has to stay, or they would be taken in anew."""
    rows = connection.execute("SELECT path, reason, hint FROM files").fetchall()
    spoken = [(path,) for path, *texts in rows if any(map(erased.says, texts))]
    connection.executemany("UPDATE files SET reason = '', hint = '' WHERE path = ?", spoken)


def _erase_decisions(connection: sqlite3.Connection, erased: Erased) -> None:
    rows = connection.execute("SELECT one, other FROM name_decisions").fetchall()
    gone = [
        pair for pair in rows if not erased.names.isdisjoint(pair) or any(map(erased.says, pair))
    ]
    connection.executemany("DELETE FROM name_decisions WHERE one = ? AND other = ?", gone)


def _erase_questions(connection: sqlite3.Connection, erased: Erased) -> None:
    rows = connection.execute("SELECT id, question, filters, hit_ids FROM query_log").fetchall()
    told = []
    for number, question, filters, hits in rows:
        ids = json.loads(hits)
        left = [id_ for id_ in ids if id_ not in erased.memories]
        if len(left) < len(ids) or erased.says(question) or erased.says(filters):
            told.append((json.dumps(left), number))
    connection.executemany(
        "UPDATE query_log SET question = '', filters = '{}', hit_ids = ? WHERE id = ?", told
    )


def _erase_events(connection: sqlite3.Connection, erased: Erased, subjects: frozenset[str]) -> None:
    events = connection.execute("SELECT id, message, hint, subject FROM events").fetchall()
    gone = [
        (number,)
        for number, message, hint, subject in events
        if subject in subjects or any(map(erased.says, (message, hint, subject)))
    ]
    connection.executemany("DELETE FROM events WHERE id = ?", gone)


def _erase_details(connection: sqlite3.Connection, erased: Erased) -> None:
    """Strike what jobs say of it, but for forgets that are unfinished: they need it still."""
    others = "SELECT id, detail FROM jobs WHERE kind != ? OR state = 'done'"
    jobs = connection.execute(others, (FORGET,)).fetchall()
    spoken = [(number,) for number, detail in jobs if erased.says(detail)]
    connection.executemany("UPDATE jobs SET detail = '{}' WHERE id = ?", spoken)
