"""Whether memories are still found after a job as before it, asked before the job is committed.

A job that marks, ends, joins, indexes or re-embeds memories must make none of them unfindable.  A
sample of those that it touches is looked up by their own words and by their own vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from memctl.errors import CoverageLost
from memctl.processors import processors
from memctl.store.filters import col
from memctl.store.schema import VECTOR
from memctl.store.snapshot import DISTANCE

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from memctl.store.snapshot import Snapshot

T = TypeVar("T")

SAMPLED = 50
"""So many memories are looked up at most; each takes some 5 ms."""
_WORDS = 12
_TOP_HITS = 100
_SAME = 0.01
"""The distance of a vector to itself is less, through 16-bit numbers and every index."""
_COLUMNS = ("id", "search_text", VECTOR)


def require_found(before: Snapshot, after: Snapshot, ids: Sequence[str], job: str) -> None:
    """Raise where memories that a job has touched are found no more.

    Args:
        before: The tables when it began.
        after: The tables with what it has written, before that is committed.
        ids: The memories that it has touched.
        job: What it is called.

    Raises:
        CoverageLost: Some were found before and are not found after it.
    """
    _require_same(before, after, before.get("memories", _sample(ids), _COLUMNS), job)


def require_all_found(before: Snapshot, after: Snapshot, job: str) -> None:
    """Raise as :func:`require_found` does, for a job that touches the whole table.

    Raises:
        CoverageLost: Some were found before and are not found after it.
    """
    _require_same(before, after, before.spread("memories", SAMPLED, _COLUMNS), job)


def require_found_by(
    after: Snapshot, ids: Sequence[str], vectors: NDArray[np.floating[Any]], job: str
) -> None:
    """Raise where memories are not found by vectors that were made anew from their texts.

    Args:
        after: The tables with what the job has written, before that is committed.
        ids: Memories, at most :data:`SAMPLED`.
        vectors: A row for each.
        job: What it is called.

    Raises:
        CoverageLost: Some are not.
    """
    queries = dict(zip(ids, np.asarray(vectors, np.float32), strict=True))
    _require_none(_not_near(after, queries), len(ids), job)


def _sample(ids: Sequence[str]) -> list[str]:
    places = np.linspace(0, len(ids) - 1, min(SAMPLED, len(ids))).astype(int)
    return [ids[place] for place in places]


def _require_same(before: Snapshot, after: Snapshot, rows: pa.Table, job: str) -> None:
    """Look up what is to be found, and only what is not found also as it was before."""
    texts = dict(zip(rows["id"].to_pylist(), rows["search_text"].to_pylist(), strict=True))
    vectors = {
        id_: np.asarray(vector, np.float32)
        for id_, vector in zip(texts, rows[VECTOR].to_pylist(), strict=True)
        if vector is not None
    }
    unsaid = _not_said(after, texts)
    unsaid -= _not_said(before, {id_: texts[id_] for id_ in unsaid})
    far = _not_near(after, vectors)
    far -= _not_near(before, {id_: vectors[id_] for id_ in far})
    _require_none(unsaid | far, rows.num_rows, job)


def _require_none(lost: set[str], looked_up: int, job: str) -> None:
    if lost:
        raise CoverageLost(
            f"{job} was rolled back: of {looked_up} memories that were looked up {len(lost)} would"
            f" not be found any more, such as {min(lost)}",
            "nothing has been changed; `memctl doctor` looks at the tables and their indexes",
        )


def _not_said(snapshot: Snapshot, texts: Mapping[str, str]) -> set[str]:
    """Those that a search for all of some of their own words does not find, nor their like."""

    def is_said(id_: str, text: str) -> bool:
        """Whether the search finds one."""
        words = sorted(set(text.split()), key=lambda word: (-len(word), word))[:_WORDS]
        found = snapshot.keyword(
            words, limit=_TOP_HITS, columns=["id", "search_text"], require_all=True
        )
        return id_ in found["id"].to_pylist() or text in found["search_text"].to_pylist()

    return _lost(texts, is_said)


def _not_near(snapshot: Snapshot, vectors: Mapping[str, NDArray[np.float32]]) -> set[str]:
    """Those that are not found where their vectors are; one of zeros is nowhere."""
    among = col("id").is_in(list(vectors))

    def is_near(id_: str, vector: NDArray[np.float32]) -> bool:
        """Whether the search finds one."""
        found = snapshot.nearest(vector, among, len(vectors), ["id"])
        distances = dict(zip(found["id"].to_pylist(), found[DISTANCE].to_pylist(), strict=True))
        return not vector.any() or distances.get(id_, 1.0) <= _SAME

    return _lost(vectors, is_near)


def _lost(sought: Mapping[str, T], is_found: Callable[[str, T], bool]) -> set[str]:
    """Those that are not found; looked up in threads, as the engine works outside Python's lock."""
    with ThreadPoolExecutor(processors()) as pool:
        found = pool.map(is_found, sought.keys(), sought.values())
        return {id_ for id_, there in zip(sought, found, strict=True) if not there}
