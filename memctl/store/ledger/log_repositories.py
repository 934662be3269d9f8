"""The book of the ledger on files: one row each time that a file was read, with when and how.

Rows are only added, and completed once; the oldest fall off the end.  Records of JSON lines have no
row here: the document is their receipt.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from memctl.files import exclusive
from memctl.literals import QueryKind, Verdict
from memctl.records import FileOutcome, OutcomeKind, Usage
from memctl.schema.storable_text import storable
from memctl.store.ledger.work_repositories import Connections, from_text, prune_oldest, to_text

MAX_PROVENANCE_ENTRIES = 50_000
_PROVENANCE_COLUMNS = (
    "path, outcome, decided_at, seen_at, claimed_at, moved_at, place, read_seconds, reader,"
    " pipeline_version, document_id, memories, reason, hint, error, understand_seconds, redacted"
)
_TRIES = (
    "(SELECT json_group_array(json_array(reason, times, first_at, last_at)) FROM tries"
    " WHERE path = ?1)"
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """Why a file that was taken out of its inbox was not dealt with, and how often."""

    reason: str
    times: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class ProvenanceEntry:
    """What became of a file at one reading of it."""

    path: str
    """Where it was found; bytes that are not UTF-8 are escaped."""
    outcome: OutcomeKind
    decided_at: datetime
    """When it was remembered, recognised or given up."""
    seen_at: datetime | None = None
    """When the watcher first saw it; None for one that was not taken from an inbox."""
    claimed_at: datetime | None = None
    """When it was taken out of its inbox."""
    moved_at: datetime | None = None
    """When it was sent where it belongs."""
    place: str = ""
    """Where it was put; empty where it was left, or deleted."""
    read_seconds: float | None = None
    """How long it took to turn it into text; None where that was not measured."""
    reader: str = ""
    pipeline_version: int = 0
    document_id: str | None = None
    memories: int = 0
    reason: str = ""
    hint: str = ""
    error: str = ""
    understand_seconds: float | None = None
    """How long it took to make memories of the text; of texts that were worked on together, its
    share by length."""
    redacted: int = 0
    """How many secrets were taken out of the text."""
    tries: tuple[Attempt, ...] = ()
    """What came before it, the first one first."""


class ProvenanceRepository:
    """Readings of files."""

    def __init__(self, ledger: Connections) -> None:
        self._ledger = ledger

    def add(self, outcomes: Iterable[FileOutcome], now: datetime, pipeline_version: int) -> None:
        """Note what became of files; sources without a file are passed over."""
        rows = [_values(item, now, pipeline_version) for item in outcomes if item.path is not None]
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            with self._ledger.transaction(durable=False) as connection:
                connection.executemany(
                    f"INSERT INTO receipts ({_PROVENANCE_COLUMNS}) VALUES ({marks})", rows
                )

    def note_try(self, paths: Iterable[str], reason: str, now: datetime) -> None:
        """Note why files were not dealt with, which will be tried again; by where they are from."""
        rows = [(path, reason, to_text(now)) for path in paths]
        if not rows:
            return
        with self._ledger.transaction(durable=False) as connection:
            connection.executemany(
                "INSERT INTO tries VALUES (?1, ?2, 1, ?3, ?3) ON CONFLICT (path, reason)"
                " DO UPDATE SET times = times + 1, last_at = excluded.last_at",
                rows,
            )

    def tries(self, path: str) -> tuple[Attempt, ...]:
        """Return what was tried so far with a file that waits to be tried again."""
        with self._ledger.reading() as connection:
            (found,) = connection.execute(f"SELECT {_TRIES}", (path,)).fetchone()
        return _tries(found)

    def complete(
        self,
        read_at: str,
        path: str,
        place: str,
        *,
        seen_at: datetime | None,
        claimed_at: datetime | None,
        now: datetime,
    ) -> None:
        """Note of a file that was read in ``processing/`` where it is from and where it goes."""
        with self._ledger.transaction() as connection:
            connection.execute(
                "UPDATE receipts SET path = ?1, place = ?2, seen_at = ?3, claimed_at = ?4,"
                f" moved_at = ?5, tries = {_TRIES} WHERE path = ?6",
                (path, place, *map(_text, (seen_at, claimed_at, now)), read_at),
            )
            connection.execute("DELETE FROM tries WHERE path = ?", (path,))

    def of(self, path: str, name: str, within: str = "") -> list[ProvenanceEntry]:
        """Return the readings of a file, the newest first.

        Args:
            path: Where it is, or was.
            name: The last parts of that path, which those of others may be equal to.
            within: The path from the knowledge base's folder on, of a file that is in there: it
                may have been noted where that folder was before.
        """
        end, moved = f"{os.sep}{name}", f"{os.sep}{within}"
        with self._ledger.reading() as connection:
            rows = connection.execute(
                f"SELECT {_PROVENANCE_COLUMNS}, tries FROM receipts WHERE path = ?1 OR place = ?1"
                " OR substr(path, -?2) = ?3 OR substr(place, -?2) = ?3"
                " OR (?4 > 1 AND moved_at IS NOT NULL"
                " AND ?5 IN (substr(path, -?4), substr(place, -?4))) ORDER BY id DESC",
                (path, len(end), end, len(moved), moved),
            )
            return [_provenance_entry(row) for row in rows.fetchall()]

    def places_of(self, document_ids: Iterable[str]) -> list[str]:
        """Return where files were put that documents were made from."""
        wanted = json.dumps(list(document_ids))
        with self._ledger.reading() as connection:
            rows = connection.execute(
                "SELECT DISTINCT place FROM receipts"
                " WHERE place != '' AND document_id IN (SELECT value FROM json_each(?))",
                (wanted,),
            ).fetchall()
        return [place for (place,) in rows]

    def remove_failed(self, within: str) -> None:
        """Strike the readings of a file in ``failed/``, which goes.

        Args:
            within: Its path from the knowledge base's folder on.
        """
        end = f"{os.sep}{within}"
        with self._ledger.transaction() as connection:
            connection.execute(
                "DELETE FROM receipts WHERE document_id IS NULL AND moved_at IS NOT NULL"
                " AND substr(place, -?1) = ?2",
                (len(end), end),
            )

    def paths(self) -> Iterator[str]:
        """Yield the paths that files were found at, the latest first."""
        with self._ledger.reading() as connection:
            rows = connection.execute("SELECT path FROM receipts ORDER BY id DESC").fetchall()
        yield from (path for (path,) in rows)

    def trim(self) -> None:
        """Strike all but the newest rows."""
        with self._ledger.transaction(durable=False) as connection:
            prune_oldest(connection, "receipts", MAX_PROVENANCE_ENTRIES)
            connection.execute(
                "DELETE FROM tries WHERE path NOT IN"
                " (SELECT path FROM tries ORDER BY last_at DESC LIMIT ?)",
                (MAX_PROVENANCE_ENTRIES,),
            )


def _values(item: FileOutcome, now: datetime, pipeline_version: int) -> tuple[Any, ...]:
    return (
        item.path, item.outcome, to_text(now), None, None, None, "", item.read_seconds,
        item.reader, pipeline_version, item.document_id, item.memories, item.reason, item.hint,
        item.error, item.understand_seconds, item.redacted,
    )  # fmt: skip


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else to_text(instant)


def _provenance_entry(row: tuple[Any, ...]) -> ProvenanceEntry:
    path, outcome, *instants, place, seconds, reader, version, document, memories = row[:12]
    decided, *others = instants
    seen, claimed, moved = (None if each is None else from_text(each) for each in others)
    reason, hint, error, understand_seconds, redacted, tries = row[12:]
    return ProvenanceEntry(
        path, outcome, from_text(decided), seen, claimed, moved, place, seconds, reader, version,
        document, memories, reason, hint, error, understand_seconds, redacted, _tries(tries),
    )  # fmt: skip


def _tries(text: str) -> tuple[Attempt, ...]:
    found = (Attempt(why, times, *map(from_text, ends)) for why, times, *ends in json.loads(text))
    return tuple(sorted(found, key=lambda each: each.first_at))


MAX_QUERIES = 10_000
_QUERY_COLUMNS = (
    "at, question, mode, hits, seconds, query_id, kind, found, mean_score, filters, hit_ids,"
    " feedback"
)


_INSERT = f"INSERT INTO query_log ({_QUERY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class QueryEntry:
    """One question that was asked."""

    at: datetime
    question: str
    """Empty where its text is not kept."""
    mode: str
    hits: int
    seconds: float
    query_id: str = ""
    """The same in every knowledge base that was asked; empty for those of older versions."""
    kind: QueryKind = "query"
    found: bool = True
    """Whether it was answered, or where no answer was asked for, anything was near."""
    mean_score: float | None = None
    """Of the hits; None where there are none."""
    filters: Mapping[str, Any] = field(default_factory=dict)
    hit_ids: tuple[str, ...] = ()
    """Memories, best first."""
    feedback: Verdict | None = None


class QueryRepository:
    """The latest questions; older ones fall off the end."""

    def __init__(self, ledger: Connections) -> None:
        self._ledger = ledger

    def add(self, entry: QueryEntry, keep: int = MAX_QUERIES) -> None:
        """Note a question, and strike all but the newest ones."""
        with self._ledger.transaction() as connection:
            connection.execute(_INSERT, _query_row(entry))
            prune_oldest(connection, "query_log", keep)

    def restore(self, entries: Iterable[QueryEntry]) -> None:
        """Bring questions back, the oldest first."""
        with self._ledger.transaction() as connection:
            connection.executemany(_INSERT, map(_query_row, entries))

    def all(self) -> list[QueryEntry]:
        """Return every question, the oldest first."""
        return self.recent(-1)[::-1]

    def recent(self, limit: int = 20) -> list[QueryEntry]:
        """Return questions, newest first; all of them where the limit is -1."""
        with self._ledger.reading() as connection:
            rows = connection.execute(
                f"SELECT {_QUERY_COLUMNS} FROM query_log ORDER BY id DESC LIMIT ?", (limit,)
            ).fetchall()
        return [_query_entry(row) for row in rows]

    def judge(self, query_id: str, verdict: Verdict) -> bool:
        """Note how good what a question gave was; say whether there is such a question."""
        with self._ledger.reading() as connection:
            found = connection.execute(
                "SELECT id FROM query_log WHERE query_id = ? AND query_id <> ''", (query_id,)
            ).fetchall()
        if found:  # where it stands must be writable, and nothing else need be
            with self._ledger.transaction() as connection:
                connection.executemany(
                    "UPDATE query_log SET feedback = ? WHERE id = ?",
                    [(verdict, number) for (number,) in found],
                )
        return bool(found)

    def forget_texts(self) -> None:
        """Strike the text of every question, and what it was limited to; the rest stays.

        It is gone from the file too: what SQLite leaves of it is overwritten.
        """
        with self._ledger.transaction() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("UPDATE query_log SET question = '', filters = '{}'")
        with self._ledger.reading() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _query_row(entry: QueryEntry) -> tuple[Any, ...]:
    return (
        to_text(entry.at), storable(entry.question), entry.mode, entry.hits, entry.seconds,
        entry.query_id, entry.kind, entry.found, entry.mean_score, json.dumps(dict(entry.filters)),
        json.dumps(entry.hit_ids), entry.feedback,
    )  # fmt: skip


def _query_entry(row: tuple[Any, ...]) -> QueryEntry:
    at, question, mode, hits, seconds, query_id, kind, found, score, filters, ids, feedback = row
    return QueryEntry(
        from_text(at), question, mode, hits, seconds, query_id, kind, bool(found), score,
        json.loads(filters), tuple(json.loads(ids)), feedback,
    )  # fmt: skip


_AMOUNTS = "task, model, calls, cached, failed, input_tokens, output_tokens, cost, seconds"
_ADD_UP = (
    "DO UPDATE SET calls = calls + excluded.calls, cached = cached + excluded.cached,"
    " failed = failed + excluded.failed, input_tokens = input_tokens + excluded.input_tokens,"
    " output_tokens = output_tokens + excluded.output_tokens, cost = cost + excluded.cost,"
    " seconds = seconds + excluded.seconds"
)


class ReplyRepository:
    """Replies by what was asked, so that asking the same again costs nothing."""

    def __init__(self, ledger: Connections, asking: Path) -> None:
        self._ledger = ledger
        self._asking = asking

    def asking(self, key: str) -> AbstractContextManager[object]:
        """Let nobody else do meanwhile what has a key; the folder is there for that."""
        return exclusive(self._asking / key)

    def get(self, key: str) -> bytes | None:
        """Return the reply that was kept under a key."""
        with self._ledger.reading() as connection:
            row = connection.execute(
                "SELECT reply FROM model_replies WHERE key = ?", (key,)
            ).fetchone()
        return zlib.decompress(row[0]) if row else None

    def put(self, key: str, task: str, model: str, reply: bytes, now: datetime) -> None:
        """Keep a reply, in place of an earlier one under the same key."""
        with self._ledger.transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO model_replies VALUES (?, ?, ?, ?, ?)",
                (key, task, model, zlib.compress(reply), to_text(now)),
            )

    def together(self) -> AbstractContextManager[object]:
        """Keep what is kept inside in one durable step, which takes no longer than for one."""
        return self._ledger.transaction()

    def forget_all(self) -> None:
        """Delete every reply; they are gone from the file too."""
        with self._ledger.transaction() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("DELETE FROM model_replies")
        with self._ledger.reading() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


class UsageRepository:
    """What models used, added up by day (UTC), task and model, and by document.

    Args:
        ledger: The ledger that it is a book of.
        document_id: The document that what is added was used for; "" for none.
    """

    def __init__(self, ledger: Connections, document_id: str = "") -> None:
        self._ledger = ledger
        self._document_id = document_id

    def of(self, document_id: str) -> UsageRepository:
        """Return this book for what is used for one document, by its id."""
        return UsageRepository(self._ledger, document_id)

    def add(self, day: str, usage: Usage) -> None:
        """Add a call, or several, to a day, and to the document where it is for one."""
        with self._ledger.transaction() as connection:
            connection.execute(
                f"INSERT INTO model_usage (day, {_AMOUNTS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                f" ON CONFLICT (day, task, model) {_ADD_UP}",
                (day, *_amounts(usage)),
            )
            if self._document_id:
                self._add_to_document(connection, usage)

    def _add_to_document(self, connection: sqlite3.Connection, usage: Usage) -> None:
        connection.execute(
            f"INSERT INTO document_usage (document_id, {_AMOUNTS})"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            f" ON CONFLICT (document_id, task, model) {_ADD_UP}",
            (self._document_id, *_amounts(usage)),
        )

    def of_documents(self, ids: Iterable[str]) -> dict[str, list[Usage]]:
        """Return what was used for documents, by their ids, those without any left out."""
        found: dict[str, list[Usage]] = {}
        with self._ledger.reading() as connection:
            rows = connection.execute(
                f"SELECT document_id, {_AMOUNTS} FROM document_usage WHERE document_id IN"
                " (SELECT value FROM json_each(?)) ORDER BY document_id, task, model",
                (json.dumps(list(ids)),),
            ).fetchall()
        for document_id, *amounts in rows:
            found.setdefault(document_id, []).append(Usage(*amounts))
        return found

    def of_day(self, day: str) -> list[Usage]:
        """Return what was used on a day (``2026-05-12``, UTC)."""
        with self._ledger.reading() as connection:
            rows = connection.execute(
                f"SELECT {_AMOUNTS} FROM model_usage WHERE day = ?", (day,)
            ).fetchall()
        return [Usage(*row) for row in rows]


def _amounts(usage: Usage) -> tuple[Any, ...]:
    return (
        usage.task, usage.model, usage.calls, usage.cached, usage.failed, usage.input_tokens,
        usage.output_tokens, usage.cost, usage.seconds,
    )  # fmt: skip


class ComparisonRepository:
    """New facts that have not been compared yet with what was known."""

    def __init__(self, ledger: Connections) -> None:
        self._ledger = ledger

    def add(self, memory_ids: Iterable[str], now: datetime) -> None:
        """Note facts that are to be compared."""
        with self._ledger.transaction() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO comparisons VALUES (?, ?)",
                [(identifier, to_text(now)) for identifier in memory_ids],
            )

    def remove(self, memory_ids: Iterable[str]) -> None:
        """Strike facts that have been compared, or that there are no more."""
        with self._ledger.transaction() as connection:
            connection.executemany(
                "DELETE FROM comparisons WHERE memory_id = ?",
                [(identifier,) for identifier in memory_ids],
            )

    def pending(self) -> list[str]:
        """Return the ids of the facts that wait."""
        with self._ledger.reading() as connection:
            rows = connection.execute("SELECT memory_id FROM comparisons ORDER BY memory_id")
            return [row[0] for row in rows.fetchall()]

    def count(self) -> int:
        """Return how many wait."""
        with self._ledger.reading() as connection:
            return int(connection.execute("SELECT count(*) FROM comparisons").fetchone()[0])
