"""The book of the ledger on what was forgotten and snapshots still have: ids alone.

It is kept as long as there is a snapshot, and is no part of one.
"""

from __future__ import annotations

from collections.abc import Iterable

from memctl.store.books import Connections


class ForgottenBook:
    """Rows that no snapshot may bring back, and documents that it must not bring words back to."""

    def __init__(self, ledger: Connections) -> None:
        self._ledger = ledger

    def gone(self) -> set[str]:
        """Return the ids of rows that are gone, of any table."""
        return self._ids(stays=False)

    def blocked(self) -> set[str]:
        """Return the ids of first parts of documents that stay without some of their words."""
        return self._ids(stays=True)

    def remove(self, ids: Iterable[str]) -> None:
        """Strike rows that somebody has written again."""
        with self._ledger.transaction() as connection:
            connection.executemany("DELETE FROM forgotten WHERE id = ?", [(i,) for i in ids])

    def _ids(self, *, stays: bool) -> set[str]:
        with self._ledger.reading() as connection:
            rows = connection.execute("SELECT id FROM forgotten WHERE stays = ?", (stays,))
            return {row[0] for row in rows.fetchall()}
