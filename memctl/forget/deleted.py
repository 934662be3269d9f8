"""Documents that were deleted before they are forgotten: the ledger and earlier versions have them.

The tables do not know them any more, but their files, their receipts and what earlier versions of
the tables have of them are still on disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memctl.forget.copies import Copies, Sources
from memctl.memories.forgetting import pieces
from memctl.store.filters import col
from memctl.store.traces import former_rows

if TYPE_CHECKING:
    from memctl.store.ledger import Ledger
    from memctl.store.store import Store

_COLUMNS = ("text", "summary", "source", "sha256", "size")


def deleted_documents(ledger: Ledger) -> list[str]:
    """Return the ids of documents that were deleted by hand, first parts alone."""
    return sorted(id_ for id_ in ledger.deletions.all() if id_.startswith("d_") and "." not in id_)


@dataclass(frozen=True, slots=True)
class Deleted:
    """What is known of documents that were deleted."""

    sources: Sources = field(default_factory=Sources)
    texts: tuple[str, ...] = ()
    """Pieces of what they said."""
    memories: frozenset[str] = frozenset()
    """What was made of them."""

    @classmethod
    def of(cls, store: Store, copies: Copies, ids: Sequence[str]) -> Deleted:
        """Find it out.

        Args:
            store: Has what earlier versions of its tables know of them, and their receipts.
            copies: The files of the knowledge base.
            ids: The documents, by their first parts.
        """
        if not ids:
            return cls()
        rows = former_rows(store, "documents", col("root_id").is_in(ids), _COLUMNS)
        of_them = col("document_id").is_in([row["id"] for row in rows])
        memories = former_rows(store, "memories", of_them, ["text"])
        kept = copies.content_of(store.ledger.receipts.places_of(ids))
        sources = Sources(
            frozenset(row["sha256"] for row in rows) | kept.keys(),
            frozenset(row["size"] for row in rows) | frozenset(kept.values()),
            frozenset(row["source"] for row in rows),
            frozenset(ids),
        )
        said = [row[column] or "" for row in rows for column in ("text", "summary")]
        said += [row["text"] for row in memories]
        return cls(sources, tuple(pieces(said)), frozenset(row["id"] for row in memories))
