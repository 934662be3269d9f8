"""Versions of the tables: snapshots, copies of manifests, and checksums of files."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from msgspec import Struct

from memctl.schema.table_names import TableName
from memctl.store.ledger.content_tables import copy_to_snapshot, restore_from_snapshot
from memctl.store.ledger.repository import Compressed, LedgerTable, Repository
from memctl.store.ledger.work_repositories import FileRepository

_FILE_COLUMNS = FileRepository.table.columns
_COPIED = {
    "snapshot_names": ("name_decisions", "one, other, same, at", "1"),
    "snapshot_comparisons": ("comparisons", "memory_id, at", "1"),
    "snapshot_files": ("files", _FILE_COLUMNS, "state = 'done'"),
}
"""The tables of copies: which table the rows are from, which columns, and which rows."""
_LATER = "document_id IS NULL AND path NOT IN (SELECT path FROM snapshot_files WHERE snapshot = ?)"
"""Files that came after a snapshot, which stay as they are."""


class SnapshotEntry(Struct, frozen=True):
    """A name that was given to a commit."""

    name: str
    at: datetime
    pinned: Mapping[str, str]
    """Settings of the store as they were, such as ``dimension``."""


class SnapshotRepository(Repository[SnapshotEntry]):
    """Snapshots, and their copies of rows of other tables of the ledger.

    A snapshot takes along what the vectors are from, decisions on names, facts that wait to be
    compared, which files were ingested, and what users and agents have said or stored.  Logs,
    usage, jobs and files on their way stay: they are about what happened, whatever the tables are
    set back to.
    """

    table = LedgerTable("snapshots", SnapshotEntry, ("name",), "at, name")

    def add(self, name: str, now: datetime, settings: Mapping[str, str]) -> None:
        """Record a snapshot under a name that is free, with the rows that belong to it."""
        with self._ledger.transaction() as connection:
            self.write([SnapshotEntry(name, now, settings)], "DO NOTHING")
            copy_to_snapshot(connection, name)
            for copies, (source, columns, where) in _COPIED.items():
                self.execute(
                    f"INSERT INTO {copies} (snapshot, {columns})"
                    f" SELECT ?, {columns} FROM {source} WHERE {where}",
                    name,
                )

    def note_files(self, name: str, paths: Iterable[str]) -> None:
        """Copy files to those of a snapshot."""
        self.execute_each(
            f"INSERT OR REPLACE INTO snapshot_files (snapshot, {_FILE_COLUMNS})"
            f" SELECT ?, {_FILE_COLUMNS} FROM files WHERE path = ?",
            [(name, os.fsencode(path)) for path in paths],
        )

    def give_back(self, name: str) -> None:
        """Make the tables of the ledger what they were; a file on its way, or failed, stays so.

        So does a file that was ingested later and has no document, because that was deleted or
        forgotten.  What jobs changed goes: it is about other rows than there are now.
        """
        with self._ledger.transaction() as connection:
            restore_from_snapshot(connection, name)
            self.execute("DELETE FROM job_changes")
            for copies, (target, columns, where) in _COPIED.items():
                stays = f" AND NOT ({_LATER})" if target == "files" else ""
                values = (name,) if stays else ()
                self.execute(f"DELETE FROM {target} WHERE {where}{stays}", *values)
                self.execute(
                    f"INSERT OR IGNORE INTO {target} ({columns})"
                    f" SELECT {columns} FROM {copies} WHERE snapshot = ?",
                    name,
                )

    def remove(self, *key: Any) -> None:
        """Delete a snapshot with its copies."""
        with self._ledger.transaction():
            for copies in (*_COPIED, "snapshot_content"):
                self.execute(f"DELETE FROM {copies} WHERE snapshot = ?", *key)
            super().remove(*key)
            self.execute("DELETE FROM forgotten WHERE NOT EXISTS (SELECT 1 FROM snapshots)")

    def remove_file(self, path: str) -> None:
        """Delete a file from what snapshots knew, because it is forgotten."""
        self.execute("DELETE FROM snapshot_files WHERE path = ?", os.fsencode(path))


TableVersion = tuple[TableName, int]
"""A table and a version of it."""


class Manifest(Struct, frozen=True):
    """A copy of the one small file that says which others a version of a table has."""

    table_name: TableName
    version: int
    content: Compressed
    rows: int | None
    """How many rows the version had when it was committed, if that is known."""


class ManifestRepository(Repository[Manifest]):
    """The manifests of HEAD and of snapshots, byte by byte."""

    table = LedgerTable("manifests", Manifest, ("table_name", "version"))

    def missing_copies(self) -> list[TableVersion]:
        """Return the named versions without a copy."""
        rows = self.rows(
            "SELECT table_name, version FROM heads EXCEPT SELECT table_name, version FROM manifests"
        )
        return [(table, version) for table, version in rows]

    def row_counts(self) -> dict[TableVersion, int]:
        """Return how many rows each version had when it was committed, as far as it is known."""
        found = self.rows("SELECT table_name, version, rows FROM manifests WHERE rows IS NOT NULL")
        return {(table, version): rows for table, version, rows in found}

    def remove_unnamed(self) -> None:
        """Delete the copies of versions without a name: their numbers may be used again."""
        self.delete("(table_name, version) NOT IN (SELECT table_name, version FROM heads)")


class Checksum(NamedTuple):
    """How long a file is, and its CRC-32.

    CRC-32 tells each change of up to four bytes that stand together, and all but one in 2^32 of
    the others; a cryptographic digest would take five times as long.
    """

    size: int
    crc32: int


Checksums = Mapping[str, Checksum]
"""By the path of a file below its table's folder."""


class FileChecksum(Struct, frozen=True):
    """The checksum of one file of a table."""

    table_name: TableName
    path: str
    size: int
    crc32: int


class ChecksumRepository(Repository[FileChecksum]):
    """The checksums of the tables' files of rows, of deletions and of indexes."""

    table = LedgerTable("file_sums", FileChecksum, ("table_name", "path"))

    def add(self, table: TableName, sums: Checksums) -> None:
        """Record files of a table; a file that is known keeps its first checksum."""
        if sums:
            self.write(
                (FileChecksum(table, path, *each) for path, each in sums.items()), "DO NOTHING"
            )

    def of(self, table: TableName) -> dict[str, Checksum]:
        """Return the checksums of the files of a table."""
        found = self.select("table_name = ?", table)
        return {each.path: Checksum(each.size, each.crc32) for each in found}

    def keep_only(self, table: TableName, paths: Collection[str]) -> None:
        """Delete the checksums of all other files of a table."""
        gone = [(table, path) for path in self.of(table) if path not in paths]
        self.execute_each("DELETE FROM file_sums WHERE table_name = ? AND path = ?", gone)
