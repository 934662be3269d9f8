"""Whether all is still there and found after a job as before it, asked before it is committed.

A job that marks, ends, joins, indexes or re-embeds memories must make none of them unfindable.  No
row of any table may be gone, and none ended but those that the job says it ends: that is looked at
for every row in a file that the job has written anew.  What it has touched must say what it said.
And a sample is looked up as a question would, by its own words and by its own vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from memctl.errors import CoverageLost
from memctl.machine import processor_count
from memctl.schema.arrow_tables import VECTOR
from memctl.schema.table_names import TABLES
from memctl.store.tables.filter_expressions import EVERYTHING, col
from memctl.store.tables.snapshot import DISTANCE, spread_positions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memctl.schema.table_names import TableName
    from memctl.store.tables.filter_expressions import Expr
    from memctl.store.tables.snapshot import Snapshot

T = TypeVar("T")

SAMPLED = 50
"""At most this many memories are looked up; each takes about 5 ms."""
_WORDS = 12
_SAME = 0.01
"""The distance of a vector to itself is less, through 16-bit numbers and every index."""
DoomedRows = Mapping["TableName", Collection[str]]
"""Ids of rows, by their table."""
_NONE: DoomedRows = {}
_COLUMNS = ("id", "search_text", VECTOR)
_HINT = "the tables are as they were; `memctl doctor` looks at them and at their indexes"


def require_found(
    before: Snapshot,
    after: Snapshot,
    ids: Sequence[str],
    job: str,
    ending: Collection[str] = (),
    doomed: DoomedRows = _NONE,
) -> None:
    """Raise where memories that a job has touched are found no more.

    Args:
        before: The tables when it began.
        after: The tables with what it has written, before that is committed.
        ids: The memories that it has touched.
        job: What it is called.
        ending: The memories that it is to end.
        doomed: The rows that it is to remove.

    Raises:
        CoverageLost: Some were found before and are not found after it.
    """
    require_there(before, after, job, ending, doomed=doomed)
    touched = before.get("memories", ids, _COLUMNS)
    _require_none(_altered_ids(touched, after), job)
    _require_same(before, after, _sample(touched, ending), job)


def require_all_found(
    before: Snapshot, after: Snapshot, job: str, tables: Sequence[TableName] = TABLES
) -> None:
    """Raise as :func:`require_found` does, for a job that touches all and ends nothing.

    Args:
        before: The tables when it began.
        after: The tables with what it has written, before that is committed.
        job: What it is called.
        tables: Those of which no row may be gone.

    Raises:
        CoverageLost: Some were found before and are not found after it.
    """
    require_there(before, after, job, tables=tables)
    _require_same(before, after, before.spread_rows("memories", SAMPLED, _COLUMNS), job)


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
    _require_none(_not_near(after, queries), job)


# --- every row -----------------------------------------------------------------------------------


def require_there(
    before: Snapshot,
    after: Snapshot,
    job: str,
    ending: Collection[str] = (),
    tables: Sequence[TableName] = TABLES,
    doomed: DoomedRows = _NONE,
) -> None:
    """Raise where a row is gone, or a memory has ended, or is to expire, that is not to.

    Args:
        before: The tables when the job began.
        after: The tables with what it has written.
        job: What it is called.
        ending: The memories that it is to end.
        tables: Those of which no row may be gone.
        doomed: The rows that it is to remove.

    Raises:
        CoverageLost: Some are.
    """
    for table in tables:
        gone = _lost_rows(before, after, table, EVERYTHING, ("id",)) - {*doomed.get(table, ())}
        if gone:
            raise CoverageLost(
                f"{job} was rolled back: {len(gone)} of the {table} would be gone,"
                f" such as {min(gone)}",
                _HINT,
            )
    holds, expiry = col("valid_to").is_null(), ("id", "expires_at")
    expected = {*ending, *doomed.get("memories", ())}
    _require_none(_lost_rows(before, after, "memories", holds, expiry) - expected, job)


def _lost_rows(
    before: Snapshot, after: Snapshot, table: TableName, where: Expr, columns: Sequence[str]
) -> set[str]:
    """The ids of rows that a condition held for and that are so no more; reads new files only."""
    old, new = (
        before.rows_unlike(after, table, where, columns),
        after.rows_unlike(before, table, where, columns),
    )
    kept = pc.is_in(_keys(old), value_set=_keys(new))
    return set(old["id"].filter(pc.invert(kept)).to_pylist())


def _keys(rows: pa.Table) -> pa.ChunkedArray:
    """What tells rows apart by all of their columns."""
    parts = [pc.fill_null(pc.cast(column, pa.string()), "") for column in rows.columns]
    return pc.binary_join_element_wise(*parts, " ")


def _altered_ids(rows: pa.Table, after: Snapshot) -> set[str]:
    """The ids of rows that are to be found by other words, or by another vector."""
    ids: list[str] = rows["id"].to_pylist()
    now = after.get("memories", ids, _COLUMNS)
    return {
        id_
        for column in _COLUMNS
        if not rows[column].equals(now[column])
        for id_, old, new in zip(ids, rows[column], now[column], strict=True)
        if old != new
    }


# --- a sample ------------------------------------------------------------------------------------


def _sample(rows: pa.Table, ending: Collection[str]) -> pa.Table:
    """Some of the rows from all over, without those that end."""
    staying = rows.filter(pc.invert(pc.is_in(rows["id"], value_set=pa.array(ending, pa.string()))))
    return staying.take(pa.array(spread_positions(staying.num_rows, SAMPLED), pa.int64()))


def _require_same(before: Snapshot, after: Snapshot, rows: pa.Table, job: str) -> None:
    """Look up what is to be found, and only what is not found also as it was before."""
    texts = dict(zip(rows["id"].to_pylist(), rows["search_text"].to_pylist(), strict=True))
    vectors = {
        id_: np.asarray(vector, np.float32)
        for id_, vector in zip(texts, rows[VECTOR].to_pylist(), strict=True)
        if vector is not None
    }
    unsaid = _unfindable_ids(after, texts)
    unsaid -= _unfindable_ids(before, {id_: texts[id_] for id_ in unsaid})
    far = _not_near(after, vectors)
    far -= _not_near(before, {id_: vectors[id_] for id_ in far})
    _require_none(unsaid | far, job)


def _require_none(names: set[str], job: str) -> None:
    if names:
        raise CoverageLost(
            f"{job} was rolled back: {len(names)} of the memories would not be found any more,"
            f" such as {min(names)}",
            _HINT,
        )


def _unfindable_ids(snapshot: Snapshot, texts: Mapping[str, str]) -> set[str]:
    """Those that a search for all of some of their own words does not find.

    Each is sought among itself alone: rows of a table may have the same words by the thousand.
    """

    def is_findable(id_: str, text: str) -> bool:
        """Return whether the search finds one."""
        words = sorted(set(text.split()), key=lambda word: (-len(word), word))[:_WORDS]
        itself = col("id").is_in([id_])
        found = snapshot.keyword(words, itself, limit=1, columns=["id"], require_all=True)
        return found.num_rows > 0 or not words

    return _missing_keys(texts, is_findable)


def _not_near(snapshot: Snapshot, vectors: Mapping[str, NDArray[np.float32]]) -> set[str]:
    """Those that are not found where their vectors are; one of zeros is nowhere."""
    among = col("id").is_in(list(vectors))

    def is_near(id_: str, vector: NDArray[np.float32]) -> bool:
        """Return whether the search finds one."""
        found = snapshot.nearest(vector, among, len(vectors), ["id"])
        distances = dict(zip(found["id"].to_pylist(), found[DISTANCE].to_pylist(), strict=True))
        return not vector.any() or distances.get(id_, 1.0) <= _SAME

    return _missing_keys(vectors, is_near)


def _missing_keys(keys: Mapping[str, T], is_found: Callable[[str, T], bool]) -> set[str]:
    """Those that are not found; looked up in threads, as the engine works outside Python's lock."""
    with ThreadPoolExecutor(processor_count()) as pool:
        found = pool.map(is_found, keys.keys(), keys.values())
        return {id_ for id_, there in zip(keys, found, strict=True) if not there}
