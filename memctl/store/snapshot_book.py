"""The book of the ledger on snapshots: what of the ledger belongs to the tables as they were.

That is what the vectors are from, decisions on names, facts that wait to be compared, and which
files have been taken in.  Logs, usage, jobs and files on their way are no part of it: those are of
what happened, whatever the tables are set back to.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memctl.store.books import FILE_COLUMNS, Connections, from_text, to_text

_COPIED = {
    "snapshot_names": ("name_decisions", "one, other, same, at", "1"),
    "snapshot_comparisons": ("comparisons", "memory_id, at", "1"),
    "snapshot_files": ("files", FILE_COLUMNS, "state = 'done'"),
}
"""Where rows are kept, which book they are of, what of them, and which of them."""
_LATER = "document_id IS NULL AND path NOT IN (SELECT path FROM snapshot_files WHERE snapshot = ?)"
"""What of the book of files is of after a snapshot, and stays as it is."""


@dataclass(frozen=True, slots=True)
class SnapshotEntry:
    """A name that was given to a commit."""

    name: str
    at: datetime
    pinned: Mapping[str, str]
    """Settings of the store as they were, such as ``dimension``."""


class SnapshotBook:
    """Snapshots, and their copies of rows of other books."""

    def __init__(self, ledger: Connections) -> None:
        self._ledger = ledger

    def add(self, name: str, now: datetime, pinned: Mapping[str, str]) -> None:
        """Note a snapshot under a name that is free, with the rows that belong to it."""
        with self._ledger.transaction() as connection:
            connection.execute(
                "INSERT INTO snapshots VALUES (?, ?, ?)",
                (name, to_text(now), json.dumps(dict(pinned))),
            )
            for copies, (book, columns, where) in _COPIED.items():
                connection.execute(
                    f"INSERT INTO {copies} (snapshot, {columns})"
                    f" SELECT ?, {columns} FROM {book} WHERE {where}",
                    (name,),
                )

    def note_files(self, name: str, paths: Iterable[str]) -> None:
        """Copy rows of the book of files to those of a snapshot."""
        with self._ledger.transaction() as connection:
            connection.executemany(
                f"INSERT OR REPLACE INTO snapshot_files (snapshot, {FILE_COLUMNS})"
                f" SELECT ?, {FILE_COLUMNS} FROM files WHERE path = ?",
                [(name, os.fsencode(path)) for path in paths],
            )

    def get(self, name: str) -> SnapshotEntry | None:
        """Return the snapshot of a name."""
        return next((entry for entry in self.all() if entry.name == name), None)

    def all(self) -> list[SnapshotEntry]:
        """Return every snapshot, the oldest first."""
        with self._ledger.reading() as connection:
            rows = connection.execute("SELECT name, at, pinned FROM snapshots ORDER BY at, name")
            return [_entry(row) for row in rows.fetchall()]

    def give_back(self, name: str) -> None:
        """Make the books what they were; a file that is on its way, or has failed, stays so.

        So does one that was taken in later and is no document's, for that was deleted or forgotten.
        What jobs changed in rows is of other rows than those that there are now, and goes.
        """
        with self._ledger.transaction() as connection:
            connection.execute("DELETE FROM job_changes")
            for copies, (book, columns, where) in _COPIED.items():
                stays = f" AND NOT ({_LATER})" if book == "files" else ""
                values = (name,) if stays else ()
                connection.execute(f"DELETE FROM {book} WHERE {where}{stays}", values)
                connection.execute(
                    f"INSERT OR IGNORE INTO {book} ({columns})"
                    f" SELECT {columns} FROM {copies} WHERE snapshot = ?",
                    (name,),
                )

    def remove(self, name: str) -> None:
        """Strike a snapshot with its copies."""
        with self._ledger.transaction() as connection:
            for copies in _COPIED:
                connection.execute(f"DELETE FROM {copies} WHERE snapshot = ?", (name,))
            connection.execute("DELETE FROM snapshots WHERE name = ?", (name,))
            connection.execute("DELETE FROM forgotten WHERE NOT EXISTS (SELECT 1 FROM snapshots)")

    def strike_file(self, path: str) -> None:
        """Strike a file from what snapshots knew, for it is forgotten."""
        with self._ledger.transaction() as connection:
            connection.execute("DELETE FROM snapshot_files WHERE path = ?", (os.fsencode(path),))


def _entry(row: tuple[Any, ...]) -> SnapshotEntry:
    name, at, pinned = row
    return SnapshotEntry(name, from_text(at), json.loads(pinned))
