"""The book of the ledger on what was deleted by hand: ids alone, for it must not come back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from memctl.store.books import Connections
from memctl.store.forgotten_book import ForgottenBook
from memctl.store.names import TableName

if TYPE_CHECKING:
    import pyarrow as pa

DELETABLE: tuple[TableName, ...] = ("documents", "memories")
"""Tables of which rows are deleted by hand."""


class DeletionBook:
    """Documents and memories that were deleted by hand though something may have them still.

    An earlier version of a table has them, or a document that stays would give them again: neither
    a repair nor another reading of the document brings them back.
    """

    def __init__(self, ledger: Connections) -> None:
        self._ledger = ledger

    def add(self, rows: Mapping[str, str | None]) -> None:
        """Note rows, each with the document that it was of, if of any."""
        with self._ledger.transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO deleted_rows VALUES (?, ?)", rows.items()
            )

    def remove(self, ids: Iterable[str]) -> None:
        """Strike rows that are there again."""
        with self._ledger.transaction() as connection:
            connection.executemany("DELETE FROM deleted_rows WHERE id = ?", [(i,) for i in ids])

    def remove_of(self, documents: Iterable[str]) -> None:
        """Strike what was of documents that are gone with all that was made of them."""
        with self._ledger.transaction() as connection:
            connection.executemany(
                "DELETE FROM deleted_rows WHERE document_id = ?", [(i,) for i in documents]
            )

    def blocked(self) -> set[str]:
        """Return the documents of which words were forgotten that their files may still have."""
        with self._ledger.reading() as connection:
            rows = connection.execute("SELECT document_id FROM blocked_documents").fetchall()
        return {row[0] for row in rows}

    def all(self) -> set[str]:
        """Return the ids of all."""
        with self._ledger.reading() as connection:
            return {row[0] for row in connection.execute("SELECT id FROM deleted_rows").fetchall()}


class Deletions:
    """What one change deletes by hand, and what it writes again of what was deleted before."""

    def __init__(self, book: DeletionBook, forgotten: ForgottenBook) -> None:
        self._book = book
        self._forgotten = forgotten
        self._before = book.all()
        self._gone = forgotten.gone()
        self._new: dict[str, str | None] = {}
        self._again: set[str] = set()
        self._bygone: set[str] = set()

    @property
    def returning(self) -> set[str]:
        """The documents and memories that come back with an earlier state that has them."""
        return self.ids - self._gone

    @property
    def ids(self) -> set[str]:
        """The documents and memories that must not come back."""
        return self._before.union(self._new) - self._again

    def keep(self, rows: Mapping[str, str | None]) -> None:
        """Note that rows are deleted by hand; see ``DeletionBook.add``."""
        self._new |= rows
        self._again.difference_update(rows)

    def let_go_of(self, documents: Iterable[str]) -> None:
        """Note that documents go with all that was made of them: what was of them cannot return."""
        self._bygone.update(documents)

    def written(self, table: TableName, rows: pa.Table) -> None:
        """Note rows that somebody writes: they are neither deleted nor forgotten any more."""
        if table not in DELETABLE or not (self._before or self._new or self._gone):
            return
        import pyarrow as pa
        import pyarrow.compute as pc

        known = pa.array(sorted(self.ids | self._gone), pa.string())
        self._again.update(rows["id"].filter(pc.is_in(rows["id"], known)).to_pylist())

    def note(self) -> None:
        """Write it all into the book."""
        if not (self._new or self._again or self._bygone):
            return
        self._book.remove_of(self._bygone)
        new = self._new.items()
        self._book.add({i: of for i, of in new if i not in self._again and of not in self._bygone})
        self._book.remove(self._again)
        self._forgotten.remove(self._again)
