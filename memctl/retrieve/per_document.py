"""So many hits a document: what more was found of it is folded into the best of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from memctl.retrieve.candidates import Candidate, Key
from memctl.retrieve.collapse import Collapsed


def document_of(candidate: Candidate) -> Key:
    """Return knowledge base and document; what belongs to none stands for itself."""
    kb, id = candidate.key
    return kb, candidate.row["document_id"] or id


def full_documents(items: Sequence[Collapsed], most: int) -> set[Key]:
    """Return the documents that have as many items as they may have hits, or more."""
    counts = Counter(document_of(item.candidate) for item in items)
    return {document for document, count in counts.items() if count >= most}


def limited_per_document(items: Sequence[Collapsed], most: int, limit: int) -> list[Collapsed]:
    """Return the items without those of documents that have enough before them.

    The first of a document has in ``more`` what would have been a hit: what stands before the
    last of as many as are wanted.

    Args:
        items: Best first.
        most: Hits a document.
        limit: So many hits are wanted; more are returned where there are any.
    """
    kept: dict[Key, list[Collapsed]] = {}
    order: list[Collapsed] = []
    more: dict[Key, list[Candidate]] = {}
    for item in items:
        document = document_of(item.candidate)
        of_document = kept.setdefault(document, [])
        if len(of_document) < most:
            of_document.append(item)
            order.append(item)
        elif len(order) < limit:
            more.setdefault(document, []).append(item.candidate)
    folded = {kept[document][0].candidate.key: found for document, found in more.items()}
    return [replace(item, more=tuple(folded.get(item.candidate.key, ()))) for item in order]
