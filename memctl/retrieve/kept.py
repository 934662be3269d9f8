"""The rows that a search looks at: read from the table, or kept in memory where they are few."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from memctl.models.unit import unit_rows
from memctl.store.filters import Expr
from memctl.store.schema import VECTOR
from memctl.store.snapshot import Snapshot

COLUMNS = (
    "id",
    "level",
    "type",
    "source_ids",
    "search_text",
    "document_id",
    "namespace",
    "title",
    "entities",
    "speaker",
    "session_id",
    "turn",
    "importance",
    "confidence",
    "created_at",
)
"""What is known of a candidate besides its vector."""
MOST_KEPT = 10_000
"""Reading so many rows whole takes as long as looking up a few hundred of them three times."""


class Rows:
    """Rows of memories, each column turned into values when it is first asked for."""

    __slots__ = ("_columns", "_table")

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self._columns: dict[str, list[Any]] = {}

    def __getitem__(self, column: str) -> list[Any]:
        if column not in self._columns:
            self._columns[column] = self._table[column].to_pylist()
        return self._columns[column]


class Row:
    """What is stored of one memory."""

    __slots__ = ("_at", "_rows")

    def __init__(self, rows: Rows, at: int) -> None:
        self._rows = rows
        self._at = at

    def __getitem__(self, column: str) -> Any:
        return self._rows[column][self._at]


class Kept:
    """All rows of one snapshot for which a condition holds, in memory.

    Args:
        snapshot: The snapshot.
        where: The condition; None for all rows.
    """

    def __init__(self, snapshot: Snapshot, where: Expr | None) -> None:
        rows = snapshot.scan("memories", where, (*COLUMNS, VECTOR))
        self._table = rows.combine_chunks()
        self._at = {id: at for at, id in enumerate(rows["id"].to_pylist())}

    def get(self, ids: Iterable[str]) -> pa.Table:
        """Return the rows with these ids, in their order; ids that are not there are skipped."""
        return self._rows(self._at[id] for id in ids if id in self._at)

    def nearest(self, vector: NDArray[np.float32], limit: int) -> pa.Table:
        """Return the rows nearest to a vector of length 1; none whose own vector is zero."""
        if not vector.any():
            return self._rows(())
        cosines = self._directions @ vector
        cosines[~self._directions.any(axis=1)] = -np.inf
        best = np.argsort(-cosines, kind="stable")[:limit]
        return self._rows(best[np.isfinite(cosines[best])].tolist())

    def turns(self, places: Collection[tuple[str, int]]) -> pa.Table:
        """Return what stands at places of conversations: session and turn."""
        found = (at for place in sorted(places) for at in self._turns.get(place, ()))
        return self._rows(found)

    def _rows(self, places: Iterable[int]) -> pa.Table:
        return self._table.take(pa.array(places, pa.int64()))

    @cached_property
    def _directions(self) -> NDArray[np.float32]:
        return unit_rows(matrix(self._table[VECTOR]))

    @cached_property
    def _turns(self) -> Mapping[tuple[str, int], list[int]]:
        found: dict[tuple[str, int], list[int]] = {}
        columns = (self._table[name].to_pylist() for name in ("session_id", "turn"))
        for at, (session, turn) in enumerate(zip(*columns, strict=True)):
            if session is not None and turn is not None:
                found.setdefault((session, turn), []).append(at)
        return found


@dataclass(frozen=True, slots=True)
class Condition:
    """What has to hold of the memories that are looked for."""

    where: Expr | None
    """None where it holds of all and always will; looking at it costs some milliseconds."""
    kept: Mapping[str, Kept] = field(default_factory=dict)
    """All for which it holds, of the knowledge bases where these are few."""


def matrix(column: pa.ChunkedArray) -> NDArray[np.float32]:
    """Return a column of vectors as a matrix; a missing one is zero."""
    # A null vector would make `flatten` skip its row.
    flat = column.combine_chunks().fill_null([0.0] * column.type.list_size).flatten()
    return np.asarray(flat).astype(np.float32).reshape(len(column), column.type.list_size)
