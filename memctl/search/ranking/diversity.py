"""Hits that say something new before those that say the same again: maximal marginal relevance.

After Carbonell and Goldstein, "The use of MMR, diversity-based reranking for reordering documents
and producing summaries" (SIGIR 1998).
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
from memctl.search.retrieval.candidates import Candidate, Key, Sources

DIVERSITY = "diversity"
"""Under this name a hit's legs have what it lost, a number below zero."""
POOL = 50
"""So many of the best are chosen from, or twice as many as are wanted; those below are too far
from the question to be a gain."""
_MOST = 0.99
"""Above it nothing but unlikeness would count, and equally unlike hits would have no order."""

Vectors = Mapping[Hashable, tuple[NDArray[np.intp], NDArray[np.float32]]]
"""Of each embedder: which of the items are compared by it, and their vectors, of length 1."""


@dataclass(frozen=True, slots=True)
class NearestBetter:
    """The better hit that a hit is most like."""

    key: Key
    cosine: float


def diversify(
    items: Sequence[ScoredCandidate], diversity: float, limit: int, vectors: Vectors
) -> tuple[list[ScoredCandidate], dict[Key, NearestBetter]]:
    """Return the items to be hits, in their order, and what each that lost something is like.

    The next hit is the one of which (1 - d) s - d c is greatest: d is the diversity, s its score
    on a scale from 0 to 1 over all that are chosen from, c its greatest cosine with a hit before
    it, or 0 where that is less.  Scores stay on the scale they had: what a hit lost is d / (1 - d)
    c of the span of the scores.  Equal ones keep their order.

    Args:
        items: Best first, as many as are chosen from.
        diversity: 0 changes nothing; near 1 only unlikeness counts.
        limit: So many hits at most.
        vectors: The vectors of the items.
    """
    if not items:
        return [], {}
    left = np.array([item.score for item in items])
    share = min(diversity, _MOST)
    weight = share / (1 - share) * (float(np.ptp(left)) or 1.0)
    nearest = _Nearest(len(items), vectors)
    chosen: list[ScoredCandidate] = []
    likest: dict[Key, NearestBetter] = {}
    for _ in range(min(limit, len(items))):
        at = int(np.argmax(left - weight * nearest.cosines))
        item, cosine = items[at], float(nearest.cosines[at])
        chosen.append(_with_penalty(item, weight * cosine))
        if cosine:
            better = items[nearest.places[at]].candidate.key
            likest[item.candidate.key] = NearestBetter(better, round(cosine, 3))
        left[at] = -np.inf
        nearest.choose(at)
    return chosen, likest


class _Nearest:
    """The hit chosen so far that each item is most like."""

    def __init__(self, count: int, vectors: Vectors) -> None:
        self._vectors = vectors
        self.cosines = np.zeros(count)
        """0 for an item that is like none of them."""
        self.places = np.zeros(count, dtype=np.intp)

    def choose(self, at: int) -> None:
        """Note that an item has become a hit."""
        for places, directions in self._vectors.values():
            for own in np.flatnonzero(places == at):
                cosines = dot_products(directions, directions[own])
                nearer = cosines > self.cosines[places]
                self.cosines[places[nearer]] = cosines[nearer]
                self.places[places[nearer]] = at


def candidate_vectors(
    items: Sequence[ScoredCandidate], sources: Sources, spaces: Mapping[str, int]
) -> Vectors:
    """Return the stored vectors of the items; those of a search by words alone are read for it.

    What was compared with the question is compared with each other where one embedder made it;
    otherwise what is of one knowledge base, which has one embedder.

    Args:
        items: The items.
        sources: Have the vectors.
        spaces: A number for the embedder of each knowledge base, where they have several.
    """
    groups: dict[Hashable, list[int]] = {}
    for at, item in enumerate(items):
        kb = item.candidate.key[0]
        compared = item.candidate.direction is not None
        groups.setdefault(spaces.get(kb, 0) if compared else kb, []).append(at)
    return {
        space: (np.array(places), _directions([items[at] for at in places], sources))
        for space, places in groups.items()
    }


def _directions(items: Sequence[ScoredCandidate], sources: Sources) -> NDArray[np.float32]:
    """Return the vectors of items of which all or none have been read, of length 1."""
    known = [item.candidate.direction for item in items if item.candidate.direction is not None]
    if known:
        return normalize_rows(np.stack(known))
    source = sources[items[0].candidate.key[0]]
    numbers = [item.candidate.number for item in items]
    return normalize_rows(vector_matrix(source.rows("memories", numbers, (VECTOR,))[VECTOR]))


def _with_penalty(item: ScoredCandidate, by: float) -> ScoredCandidate:
    return replace(item, score=item.score - by, legs=item.legs | {DIVERSITY: -by}) if by else item


def document_key(candidate: Candidate) -> Key:
    """Return knowledge base and document; what belongs to none stands for itself."""
    kb, id = candidate.key
    return kb, candidate.row["document_id"] or id


def full_documents(items: Sequence[ScoredCandidate], most: int) -> set[Key]:
    """Return the documents that have as many items as they may have hits, or more."""
    counts = Counter(document_key(item.candidate) for item in items)
    return {document for document, count in counts.items() if count >= most}


def limit_per_document(
    items: Sequence[ScoredCandidate], most: int, limit: int
) -> list[ScoredCandidate]:
    """Return the items without those of documents that have enough before them.

    The first of a document has in ``more`` what would have been a hit: what stands before the
    last of as many as are wanted.

    Args:
        items: Best first.
        most: Hits a document.
        limit: So many hits are wanted; more are returned where there are any.
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
