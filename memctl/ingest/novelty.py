"""Importance by novelty: what says something that is not known yet matters a little more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from memctl.ingest.batch import Prepared
from memctl.understand.importance import with_novelty

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memctl.store.snapshot import Snapshot
    from memctl.store.store import Store

PASSAGES_LOOKED_AT = 2
"""Only so many passages of a document are compared: each costs a search."""
ROWS_LOOKED_AT = 500_000
"""No more vectors than that are compared in all, which takes half a second."""


class Novelty:
    """Weighs documents by how unlike they are to what is known in a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __call__(
        self, made: Sequence[Prepared], vectors: NDArray[np.float32]
    ) -> Sequence[Prepared]:
        """Return the documents with ``novelty`` among the signals of their importance."""
        snapshot = self._store.snapshot()
        known = snapshot.count("memories")
        if not known or len(made) * PASSAGES_LOOKED_AT * known > ROWS_LOOKED_AT:
            return made
        weighed: list[Prepared] = []
        at = 0
        for item in made:
            own = vectors[at : at + min(len(item.memories), PASSAGES_LOOKED_AT)]
            at += len(item.memories)
            weighed.append(_weighed(item, 1 - _likeness(snapshot, own)))
        return weighed


def _likeness(snapshot: Snapshot, vectors: NDArray[np.float32]) -> float:
    """The mean cosine of vectors with the nearest known memory, from 0 to 1."""
    found = [snapshot.nearest(vector, limit=1, columns=["id"])["_distance"] for vector in vectors]
    cosines = [1 - column[0].as_py() for column in found if len(column)]
    mean = sum(cosines) / len(cosines) if cosines else 0.0
    return min(max(mean, 0.0), 1.0)


def _weighed(item: Prepared, novelty: float) -> Prepared:
    importance, signals = with_novelty(item.document.signals, novelty)
    document = replace(item.document, importance=importance, signals=signals)
    memories = tuple(
        replace(memory, importance=importance) if memory.level == "evidence" else memory
        for memory in item.memories
    )
    return replace(item, document=document, memories=memories)
