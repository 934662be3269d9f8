"""The book of the ledger on checksums: what the tables' files were like when they were written."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from memctl.store.books import Connections
from memctl.store.names import TableName


class Sum(NamedTuple):
    """How long a file is, and its checksum.

    CRC-32 tells each change of up to four bytes that stand together, and all but one in 2^32 of
    the others; a digest that nobody could forge would take five times as long.
    """

    size: int
    crc32: int


Sums = Mapping[str, Sum]
"""By the path of a file below its table's folder."""


class SumBook:
    """The checksums of the tables' files of rows, of deletions and of indexes."""

    def __init__(self, ledger: Connections) -> None:
        self._ledger = ledger

    def add(self, table: TableName, sums: Sums) -> None:
        """Note files of a table; of one that is known the first sum stays."""
        if not sums:
            return
        with self._ledger.transaction() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO file_sums VALUES (?, ?, ?, ?)",
                [(table, path, *found) for path, found in sums.items()],
            )

    def all(self, table: TableName) -> dict[str, Sum]:
        """Return the sums of the files of a table."""
        with self._ledger.reading() as connection:
            rows = connection.execute(
                "SELECT path, size, crc32 FROM file_sums WHERE table_name = ?", (table,)
            ).fetchall()
        return {path: Sum(size, crc32) for path, size, crc32 in rows}

    def keep(self, table: TableName, paths: Collection[str]) -> None:
        """Drop the sums of files of a table that are none of these."""
        gone = [(table, path) for path in self.all(table) if path not in paths]
        with self._ledger.transaction() as connection:
            connection.executemany("DELETE FROM file_sums WHERE table_name = ? AND path = ?", gone)
