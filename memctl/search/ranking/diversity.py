"""Diversity: which hits are shown besides the best alone.

Maximal marginal relevance puts hits that say something new before those that repeat a better one,
after Carbonell and Goldstein, "The use of MMR, diversity-based reranking for reordering documents
and producing summaries" (SIGIR 1998).  A limit per document folds what more it has into its best.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from memctl.models.vector_math import dot_products, normalize_rows
from memctl.schema.arrow_tables import VECTOR
from memctl.search.ranking.scored_candidates import ScoredCandidate
from memctl.search.retrieval.candidate_rows import vector_matrix
from memctl.search.retrieval.candidates import Candidate, Key
from memctl.search.term_statistics import Sources

_DIVERSITY = "diversity"
"""The name under which a hit's legs have what it lost, a negative number."""
POOL = 50
"""The hits are chosen from the best 50, or from twice as many as are wanted; those below are too
far from the question to be a gain."""
_MAX_DIVERSITY = 0.99
"""With 1 only dissimilarity would count, and equally dissimilar hits would have no order."""

Vectors = Mapping[Hashable, tuple[NDArray[np.intp], NDArray[np.float32]]]
"""By embedder: the positions of the items that have its vectors, and these, of length 1."""


@dataclass(frozen=True, slots=True)
class NearestBetter:
    """The better hit that a hit is most similar to."""

    key: Key
    cosine: float


def diversify(
    items: Sequence[ScoredCandidate], diversity: float, limit: int, vectors: Vectors
) -> tuple[list[ScoredCandidate], dict[Key, NearestBetter]]:
    """Return the items to show, in order, and for each that lost something the better one.

    The next is the one with the greatest (1 - d) s - d c: d is the diversity, s the item's score
    on a scale from 0 to 1 over all items, c its greatest cosine with one chosen before, at least
    0.  Scores keep their scale: an item loses d / (1 - d) c of the span of the scores.  Ties keep
    their order.

    Args:
        items: All that are chosen from, best first.
        diversity: 0 changes nothing; near 1 only dissimilarity counts.
        limit: Most items to return.
        vectors: The vectors of the items.
    """
    if not items:
        return [], {}
    left = np.array([item.score for item in items])
    share = min(diversity, _MAX_DIVERSITY)
    weight = share / (1 - share) * (float(np.ptp(left)) or 1.0)
    cosines = np.zeros(len(items))  # with the nearest chosen so far
    nearest = np.zeros(len(items), dtype=np.intp)
    chosen: list[ScoredCandidate] = []
    better: dict[Key, NearestBetter] = {}
    for _ in range(min(limit, len(items))):
        at = int(np.argmax(left - weight * cosines))
        item, cosine = items[at], float(cosines[at])
        if cosine:
            lost = weight * cosine
            item = replace(item, score=item.score - lost, legs=item.legs | {_DIVERSITY: -lost})
            other = items[nearest[at]].candidate.key
            better[item.candidate.key] = NearestBetter(other, round(cosine, 3))
        chosen.append(item)
        left[at] = -np.inf
        for places, directions in vectors.values():
            for own in np.flatnonzero(places == at):
                similar = dot_products(directions, directions[own])
                nearer = similar > cosines[places]
                cosines[places[nearer]] = similar[nearer]
                nearest[places[nearer]] = at
    return chosen, better


def candidate_vectors(
    items: Sequence[ScoredCandidate], sources: Sources, spaces: Mapping[str, int]
) -> Vectors:
    """Return the stored vectors of the items; those of a keyword search are read for it.

    Items compared with the question are compared with each other where they have the same
    embedder; the others within their knowledge base, which has one.

    Args:
        items: The items.
        sources: Where vectors are read.
        spaces: A number for the embedder of each knowledge base; empty where all have the same.
    """
    groups: dict[Hashable, list[int]] = {}
    for at, item in enumerate(items):
        kb = item.candidate.key[0]
        is_compared = item.candidate.direction is not None
        groups.setdefault(spaces.get(kb, 0) if is_compared else kb, []).append(at)
    return {
        space: (np.array(places), _unit_vectors([items[at] for at in places], sources))
        for space, places in groups.items()
    }


def _unit_vectors(items: Sequence[ScoredCandidate], sources: Sources) -> NDArray[np.float32]:
    """Return the vectors, of length 1, of items of which all or none have been read."""
    known = [item.candidate.direction for item in items if item.candidate.direction is not None]
    if known:
        return normalize_rows(np.stack(known))
    source = sources[items[0].candidate.key[0]]
    numbers = [item.candidate.number for item in items]
    return normalize_rows(vector_matrix(source.rows("memories", numbers, (VECTOR,))[VECTOR]))


# --- hits per document ---------------------------------------------------------------------------


def document_key(candidate: Candidate) -> Key:
    """Return knowledge base and document; a memory without a document counts as its own."""
    kb, id = candidate.key
    return kb, candidate.row["document_id"] or id


def full_documents(items: Sequence[ScoredCandidate], most: int) -> set[Key]:
    """Return the documents that have at least as many items as they may have hits."""
    counts = Counter(document_key(item.candidate) for item in items)
    return {document for document, count in counts.items() if count >= most}


def limit_per_document(
    items: Sequence[ScoredCandidate], most: int, limit: int
) -> list[ScoredCandidate]:
    """Return the items without those of documents that have enough better ones.

    The first item of a document gets in ``more`` what would have been among the hits.

    Args:
        items: Best first.
        most: Most items per document.
        limit: The number of hits wanted; more items are returned where there are any.
    """
    kept: dict[Key, list[ScoredCandidate]] = {}
    order: list[ScoredCandidate] = []
    more: dict[Key, list[Candidate]] = {}
    for item in items:
        document = document_key(item.candidate)
        of_document = kept.setdefault(document, [])
        if len(of_document) < most:
            of_document.append(item)
            order.append(item)
        elif len(order) < limit:
            more.setdefault(document, []).append(item.candidate)
    folded = {kept[document][0].candidate.key: found for document, found in more.items()}
    return [replace(item, more=tuple(folded.get(item.candidate.key, ()))) for item in order]
