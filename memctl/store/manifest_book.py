"""The book of the ledger on manifests: copies of those that versions with a name cannot do without.

A version of a table is nothing without the one small file that says which others it has.
"""

from __future__ import annotations

import zlib

from memctl.store.books import Connections
from memctl.store.names import TableName

Place = tuple[TableName, int]
"""A table and a version of it."""


class ManifestBook:
    """The manifests of HEAD and of snapshots, byte by byte."""

    def __init__(self, ledger: Connections) -> None:
        self._ledger = ledger

    def lacking(self) -> list[Place]:
        """Return the versions with a name of which there is no copy."""
        with self._ledger.reading() as connection:
            rows = connection.execute(
                "SELECT table_name, version FROM heads"
                " EXCEPT SELECT table_name, version FROM manifests"
            )
            return [(table, version) for table, version in rows.fetchall()]

    def all(self) -> dict[Place, bytes]:
        """Return every copy."""
        with self._ledger.reading() as connection:
            rows = connection.execute("SELECT table_name, version, content FROM manifests")
            return {(row[0], row[1]): zlib.decompress(row[2]) for row in rows.fetchall()}

    def rows(self) -> dict[Place, int]:
        """Return how many rows each version had when it was committed, as far as it is known."""
        known = "SELECT table_name, version, rows FROM manifests WHERE rows IS NOT NULL"
        with self._ledger.reading() as connection:
            found = connection.execute(known)
            return {(table, version): rows for table, version, rows in found.fetchall()}

    def put(self, place: Place, content: bytes, rows: int) -> None:
        """Keep a copy of the manifest of a version that has so many rows."""
        with self._ledger.transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO manifests (table_name, version, content, rows)"
                " VALUES (?, ?, ?, ?)",
                (*place, zlib.compress(content), rows),
            )

    def drop(self, place: Place) -> None:
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
