"""The books of the ledger on models: what they replied, what they used, what waits for them."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any

from memctl.files import alone
from memctl.records import Usage
from memctl.store.books import Connections, to_text

_AMOUNTS = "task, model, calls, cached, failed, input_tokens, output_tokens, cost, seconds"
_SUM = (
    "DO UPDATE SET calls = calls + excluded.calls, cached = cached + excluded.cached,"
    " failed = failed + excluded.failed, input_tokens = input_tokens + excluded.input_tokens,"
    " output_tokens = output_tokens + excluded.output_tokens, cost = cost + excluded.cost,"
    " seconds = seconds + excluded.seconds"
)


class ReplyBook:
    """Replies by what was asked, so that asking the same again costs nothing."""

    def __init__(self, ledger: Connections, asking: Path) -> None:
        self._ledger = ledger
        self._asking = asking

    def asking(self, key: str) -> AbstractContextManager[object]:
        """Let nobody else do meanwhile what has a key; the folder is there for that."""
        return alone(self._asking / key)

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


class UsageBook:
    """What models used, added up by day (UTC), task and model, and by document.

    Args:
        ledger: The ledger that it is a book of.
        document_id: The document that what is added was used for; "" for none.
    """

    def __init__(self, ledger: Connections, document_id: str = "") -> None:
        self._ledger = ledger
        self._document_id = document_id

    def of(self, document_id: str) -> UsageBook:
        """Return this book for what is used for one document, by its id."""
        return UsageBook(self._ledger, document_id)

    def add(self, day: str, usage: Usage) -> None:
        """Add a call, or several, to a day, and to the document where it is for one."""
        with self._ledger.transaction() as connection:
            connection.execute(
                f"INSERT INTO model_usage (day, {_AMOUNTS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                f" ON CONFLICT (day, task, model) {_SUM}",
                (day, *_amounts(usage)),
            )
            if self._document_id:
                self._add_to_document(connection, usage)

    def _add_to_document(self, connection: sqlite3.Connection, usage: Usage) -> None:
        connection.execute(
            f"INSERT INTO document_usage (document_id, {_AMOUNTS})"
            f" VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (document_id, task, model) {_SUM}",
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


class ComparisonBook:
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
