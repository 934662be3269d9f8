"""The book of the ledger on files: one row each time that a file was read, with when and how.

Rows are only added, and completed once; the oldest fall off the end.  Records of JSON lines have no
row here: the document is their receipt.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memctl.records import FileOutcome, OutcomeKind
from memctl.store.books import Connections, from_text, keep_newest, to_text

MOST_RECEIPTS = 50_000
_COLUMNS = (
    "path, outcome, decided_at, seen_at, claimed_at, moved_at, place, read_seconds, reader,"
    " pipeline_version, document_id, memories, reason, hint, error, understand_seconds, redacted"
)
_TRIES = (
    "(SELECT json_group_array(json_array(reason, times, first_at, last_at)) FROM tries"
    " WHERE path = ?1)"
)


@dataclass(frozen=True, slots=True)
class Try:
    """Why a file that was taken out of its inbox was not dealt with, and how often."""

    reason: str
    times: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class ReceiptEntry:
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
    tries: tuple[Try, ...] = ()
    """What came before it, the first one first."""


class ReceiptBook:
    """Readings of files."""

    def __init__(self, ledger: Connections) -> None:
        self._ledger = ledger

    def add(self, outcomes: Iterable[FileOutcome], now: datetime, pipeline_version: int) -> None:
        """Note what became of files; sources without a file are passed over."""
        rows = [_values(item, now, pipeline_version) for item in outcomes if item.path is not None]
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            with self._ledger.transaction(durable=False) as connection:
                connection.executemany(f"INSERT INTO receipts ({_COLUMNS}) VALUES ({marks})", rows)

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

    def tries(self, path: str) -> tuple[Try, ...]:
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

    def of(self, path: str, name: str, within: str = "") -> list[ReceiptEntry]:
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
                f"SELECT {_COLUMNS}, tries FROM receipts WHERE path = ?1 OR place = ?1"
                " OR substr(path, -?2) = ?3 OR substr(place, -?2) = ?3"
                " OR (?4 > 1 AND moved_at IS NOT NULL"
                " AND ?5 IN (substr(path, -?4), substr(place, -?4))) ORDER BY id DESC",
                (path, len(end), end, len(moved), moved),
            )
            return [_entry(row) for row in rows.fetchall()]

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
            keep_newest(connection, "receipts", MOST_RECEIPTS)
            connection.execute(
                "DELETE FROM tries WHERE path NOT IN"
                " (SELECT path FROM tries ORDER BY last_at DESC LIMIT ?)",
                (MOST_RECEIPTS,),
            )


def _values(item: FileOutcome, now: datetime, pipeline_version: int) -> tuple[Any, ...]:
    return (
        item.path, item.outcome, to_text(now), None, None, None, "", item.read_seconds,
        item.reader, pipeline_version, item.document_id, item.memories, item.reason, item.hint,
        item.error, item.understand_seconds, item.redacted,
    )  # fmt: skip


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else to_text(instant)


def _entry(row: tuple[Any, ...]) -> ReceiptEntry:
    path, outcome, *instants, place, seconds, reader, version, document, memories = row[:12]
    decided, *others = instants
    seen, claimed, moved = (None if each is None else from_text(each) for each in others)
    reason, hint, error, understand_seconds, redacted, tries = row[12:]
    return ReceiptEntry(
        path, outcome, from_text(decided), seen, claimed, moved, place, seconds, reader, version,
        document, memories, reason, hint, error, understand_seconds, redacted, _tries(tries),
    )  # fmt: skip


def _tries(text: str) -> tuple[Try, ...]:
    found = (Try(why, times, *map(from_text, ends)) for why, times, *ends in json.loads(text))
    return tuple(sorted(found, key=lambda each: each.first_at))
