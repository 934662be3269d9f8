"""The rows that a search looks at: read from the table, or kept in memory where they are few."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from memctl.models.vector_math import dot_products, normalize_rows
from memctl.schema.arrow_tables import VECTOR
from memctl.store.tables.filter_expressions import Expr, both, col
from memctl.store.tables.snapshot import ROW, Snapshot

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
MAX_IN_MEMORY = 10_000
"""Reading so many rows whole takes as long as looking up a few hundred of them three times."""


class ColumnValues:
    """Rows of memories, each column turned into values when it is first asked for."""

    __slots__ = ("_columns", "_table")

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self._columns: dict[str, list[Any]] = {}

    def __getitem__(self, column: str) -> list[Any]:
        if column not in self._columns:
            self._columns[column] = self._table[column].to_pylist()
        return self._columns[column]


class RowView:
    """What is stored of one memory."""

    __slots__ = ("_at", "_rows")

    def __init__(self, rows: ColumnValues, at: int) -> None:
        self._rows = rows
        self._at = at

    def __getitem__(self, column: str) -> Any:
        return self._rows[column][self._at]


class TableRows:
    """The rows of one snapshot for which a condition holds, read when they are asked for.

    What looks for rows gives their numbers, so that only those not yet known are read.

    Args:
        snapshot: The snapshot.
        where: The condition; None for all rows.
    """

    def __init__(self, snapshot: Snapshot, where: Expr | None) -> None:
        self._snapshot = snapshot
        self._where = where

    def also(self, where: Expr) -> TableRows:
        """Return those of the rows for which something else holds as well."""
        return TableRows(self._snapshot, both(self._where, where))

    def keyword(self, terms: Sequence[str], limit: int, *, require_all: bool = False) -> list[int]:
        """Return the rows in which terms weigh most; only those with all of them if required."""
        return self._snapshot.keyword_rows(terms, self._where, limit, require_all)

    def nearest(self, vector: NDArray[np.float32], limit: int) -> list[int]:
        """Return the rows nearest to a vector of length 1; none whose own vector is zero."""
        return self._snapshot.nearest_rows(vector, self._where, limit)

    def with_ids(self, ids: Sequence[str]) -> list[int]:
        """Return the rows with these ids; ids that are not there are skipped."""
        where = both(self._where, col("id").is_in(ids))
        numbers: list[int] = self._snapshot.scan("memories", where, (ROW,))[ROW].to_pylist()
        return numbers

    def turns(self, places: Collection[tuple[str, int]]) -> list[int]:
        """Return what stands at places of conversations: session and turn."""
        sessions, turns = (sorted(set(each)) for each in zip(*places, strict=True))
        where = both(self._where, col("session_id").is_in(sessions) & col("turn").is_in(turns))
        found = self._snapshot.scan("memories", where, (ROW, "session_id", "turn"))
        columns = (found[name].to_pylist() for name in found.column_names)
        return [row for row, *place in zip(*columns, strict=True) if tuple(place) in places]

    def rows(self, numbers: Sequence[int], *, with_vectors: bool) -> pa.Table:
        """Return these rows in their order."""
        columns = _columns(with_vectors=with_vectors)
        return self._snapshot.rows("memories", numbers, columns)


class InMemoryRows(TableRows):
    """The rows of one snapshot for which a condition holds, in memory."""

    def __init__(self, snapshot: Snapshot, where: Expr | None) -> None:
        super().__init__(snapshot, where)
        rows = snapshot.scan("memories", where, (ROW, *COLUMNS, VECTOR))
        self._table = rows.combine_chunks()
        self._numbers = np.asarray(rows[ROW], dtype=np.int64)
        self._at = {number: at for at, number in enumerate(self._numbers.tolist())}

    def nearest(self, vector: NDArray[np.float32], limit: int) -> list[int]:
        """Return the rows nearest to a vector of length 1; none whose own vector is zero."""
        if not vector.any():
            return []
        cosines = np.where(self._has_direction, dot_products(self._directions, vector), -np.inf)
        best = _largest(cosines, limit)
        numbers: list[int] = self._numbers[best[np.isfinite(cosines[best])]].tolist()
        return numbers

    def with_ids(self, ids: Sequence[str]) -> list[int]:
        """Return the rows with these ids; ids that are not there are skipped."""
        return [self._by_id[id] for id in ids if id in self._by_id]

    def turns(self, places: Collection[tuple[str, int]]) -> list[int]:
        """Return what stands at places of conversations: session and turn."""
        return [number for place in sorted(places) for number in self._turns.get(place, ())]

    def rows(self, numbers: Sequence[int], *, with_vectors: bool) -> pa.Table:
        """Return these rows in their order."""
        places = pa.array([self._at[number] for number in numbers], pa.int64())
        return self._table.select(_columns(with_vectors=with_vectors)).take(places)

    @cached_property
    def _by_id(self) -> Mapping[str, int]:
        return dict(zip(self._table["id"].to_pylist(), self._numbers.tolist(), strict=True))

    @cached_property
    def _directions(self) -> NDArray[np.float32]:
        return normalize_rows(vector_matrix(self._table[VECTOR]))

    @cached_property
    def _has_direction(self) -> NDArray[np.bool_]:
        return np.asarray(self._directions.any(axis=1))

    @cached_property
    def _turns(self) -> Mapping[tuple[str, int], list[int]]:
        found: dict[tuple[str, int], list[int]] = {}
        columns = (self._table[name].to_pylist() for name in (ROW, "session_id", "turn"))
        for number, session, turn in zip(*columns, strict=True):
            if session is not None and turn is not None:
                found.setdefault((session, turn), []).append(number)
        return found


@dataclass(frozen=True, slots=True)
class ValiditySpan:
    """A stretch of time."""

    since: datetime
    until: datetime | None = None
    """When it is over; None for never."""

    def has(self, at: datetime) -> bool:
        """Tell whether a moment is within it."""
        return self.since <= at and (self.until is None or at < self.until)


@dataclass(frozen=True, slots=True)
class SearchScope:
    """What has to hold of the memories that are looked for."""

    where: Expr | None
    """None where it holds of all; looking at it costs some milliseconds."""
    sources: Mapping[str, TableRows]
    """All for which it holds, of each knowledge base; kept in memory where these are few."""
    span: ValiditySpan
    """When it holds of the same memories."""


def vector_matrix(column: pa.ChunkedArray) -> NDArray[np.float32]:
    """Return a column of vectors as a matrix; a missing one is zero."""
    array = column.combine_chunks()
    if array.null_count:  # `flatten` would skip their rows
        array = array.fill_null([0.0] * column.type.list_size)
    flat = np.asarray(array.flatten()).astype(np.float32)
    return flat.reshape(len(column), column.type.list_size)


def _columns(*, with_vectors: bool) -> tuple[str, ...]:
    return (*COLUMNS, VECTOR) if with_vectors else COLUMNS


def _largest(values: NDArray[np.float32], count: int) -> NDArray[np.intp]:
    """Return where the largest values stand, the largest first, equal ones in their order."""
    if count < len(values):
        least = np.partition(values, -count)[-count]
        places = np.flatnonzero(values >= least)
    else:
        places = np.arange(len(values))
    return places[np.argsort(-values[places], kind="stable")][:count]
