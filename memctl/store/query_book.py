"""The book of the ledger on questions: what was asked, what came of it, and how good that was."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memctl.choices import QueryKind, Verdict
from memctl.store.books import Connections, from_text, keep_newest, to_text
from memctl.store.unicode import storable

MOST_QUERIES = 10_000
_COLUMNS = (
    "at, question, mode, hits, seconds, query_id, kind, found, mean_score, filters, hit_ids,"
    " feedback"
)


_INSERT = f"INSERT INTO query_log ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


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


class QueryBook:
    """The latest questions; older ones fall off the end."""

    def __init__(self, ledger: Connections) -> None:
        self._ledger = ledger

    def add(self, entry: QueryEntry, keep: int = MOST_QUERIES) -> None:
        """Note a question, and strike all but the newest ones."""
        with self._ledger.transaction() as connection:
            connection.execute(_INSERT, _row(entry))
            keep_newest(connection, "query_log", keep)

    def restore(self, entries: Iterable[QueryEntry]) -> None:
        """Bring questions back, the oldest first."""
        with self._ledger.transaction() as connection:
            connection.executemany(_INSERT, map(_row, entries))

    def all(self) -> list[QueryEntry]:
        """Return every question, the oldest first."""
        return self.recent(-1)[::-1]

    def recent(self, limit: int = 20) -> list[QueryEntry]:
        """Return questions, newest first; all of them where the limit is -1."""
        with self._ledger.reading() as connection:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM query_log ORDER BY id DESC LIMIT ?", (limit,)
            ).fetchall()
        return [_entry(row) for row in rows]

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


def _row(entry: QueryEntry) -> tuple[Any, ...]:
    return (
        to_text(entry.at), storable(entry.question), entry.mode, entry.hits, entry.seconds,
        entry.query_id, entry.kind, entry.found, entry.mean_score, json.dumps(dict(entry.filters)),
        json.dumps(entry.hit_ids), entry.feedback,
    )  # fmt: skip


def _entry(row: tuple[Any, ...]) -> QueryEntry:
    at, question, mode, hits, seconds, query_id, kind, found, score, filters, ids, feedback = row
    return QueryEntry(
        from_text(at), question, mode, hits, seconds, query_id, kind, bool(found), score,
        json.loads(filters), tuple(json.loads(ids)), feedback,
    )  # fmt: skip
