"""The book of the ledger on snapshots: what of the ledger belongs to the tables as they were.

That is what the vectors are from, decisions on names, facts that wait to be compared, and which
files have been taken in.  Logs, usage, jobs and files on their way are no part of it: those are of
what happened, whatever the tables are set back to.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from memctl.schema.table_names import TableName
from memctl.store.ledger.work_repositories import FILE_COLUMNS, Connections, from_text, to_text

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


class SnapshotRepository:
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
            return [_snapshot_entry(row) for row in rows.fetchall()]

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


def _snapshot_entry(row: tuple[Any, ...]) -> SnapshotEntry:
    name, at, pinned = row
    return SnapshotEntry(name, from_text(at), json.loads(pinned))


TableVersion = tuple[TableName, int]
"""A table and a version of it."""


class ManifestRepository:
    """The manifests of HEAD and of snapshots, byte by byte."""

    def __init__(self, ledger: Connections) -> None:
        self._ledger = ledger

    def lacking(self) -> list[TableVersion]:
        """Return the versions with a name of which there is no copy."""
        with self._ledger.reading() as connection:
            rows = connection.execute(
                "SELECT table_name, version FROM heads"
                " EXCEPT SELECT table_name, version FROM manifests"
            )
            return [(table, version) for table, version in rows.fetchall()]

    def all(self) -> dict[TableVersion, bytes]:
        """Return every copy."""
        with self._ledger.reading() as connection:
            rows = connection.execute("SELECT table_name, version, content FROM manifests")
            return {(row[0], row[1]): zlib.decompress(row[2]) for row in rows.fetchall()}

    def rows(self) -> dict[TableVersion, int]:
        """Return how many rows each version had when it was committed, as far as it is known."""
        known = "SELECT table_name, version, rows FROM manifests WHERE rows IS NOT NULL"
        with self._ledger.reading() as connection:
            found = connection.execute(known)
            return {(table, version): rows for table, version, rows in found.fetchall()}

    def put(self, place: TableVersion, content: bytes, rows: int) -> None:
        """Keep a copy of the manifest of a version that has so many rows."""
        with self._ledger.transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO manifests (table_name, version, content, rows)"
                " VALUES (?, ?, ?, ?)",
                (*place, zlib.compress(content), rows),
            )

    def drop(self, place: TableVersion) -> None:
        """Drop the copy of one version."""
        with self._ledger.transaction() as connection:
            connection.execute("DELETE FROM manifests WHERE table_name = ? AND version = ?", place)

    def drop_nameless(self) -> None:
        """Drop the copies of versions that have no name any more: their numbers may come again."""
        with self._ledger.transaction() as connection:
            connection.execute(
                "DELETE FROM manifests WHERE (table_name, version) NOT IN"
                " (SELECT table_name, version FROM heads)"
            )


class Checksum(NamedTuple):
    """How long a file is, and its checksum.

    CRC-32 tells each change of up to four bytes that stand together, and all but one in 2^32 of
    the others; a digest that nobody could forge would take five times as long.
    """

    size: int
    crc32: int


Checksums = Mapping[str, Checksum]
"""By the path of a file below its table's folder."""


class ChecksumRepository:
    """The checksums of the tables' files of rows, of deletions and of indexes."""

    def __init__(self, ledger: Connections) -> None:
        self._ledger = ledger

    def add(self, table: TableName, sums: Checksums) -> None:
        """Note files of a table; of one that is known the first sum stays."""
        if not sums:
            return
        with self._ledger.transaction() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO file_sums VALUES (?, ?, ?, ?)",
                [(table, path, *found) for path, found in sums.items()],
            )

    def all(self, table: TableName) -> dict[str, Checksum]:
        """Return the sums of the files of a table."""
        with self._ledger.reading() as connection:
            rows = connection.execute(
                "SELECT path, size, crc32 FROM file_sums WHERE table_name = ?", (table,)
            ).fetchall()
        return {path: Checksum(size, crc32) for path, size, crc32 in rows}

    def keep(self, table: TableName, paths: Collection[str]) -> None:
        """Drop the sums of files of a table that are none of these."""
        gone = [(table, path) for path in self.all(table) if path not in paths]
        with self._ledger.transaction() as connection:
            connection.executemany("DELETE FROM file_sums WHERE table_name = ? AND path = ?", gone)
