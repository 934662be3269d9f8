"""The rows that a search reads: from the table, or from memory where they are few."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from memctl.models.vector_math import dot_products, normalize_rows
from memctl.schema.arrow_tables import VECTOR, vector_rows
from memctl.store.tables.filter_expressions import Expr, both
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
"""The columns read for a candidate, besides its vector."""
MAX_IN_MEMORY = 10_000
"""Reading 10,000 whole rows takes as long as looking up a few hundred of them three times."""
_KEPT_SEARCHES = 16
"""Keyword searches whose results are kept: every question searches for instructions."""


class ColumnValues(dict[str, list[Any]]):
    """Rows of memories; each column becomes Python values when it is first used."""

    def __init__(self, table: pa.Table) -> None:
        super().__init__()
        self._table = table

    def __missing__(self, column: str) -> list[Any]:
        values: list[Any] = self._table[column].to_pylist()
        self[column] = values
        return values


class RowView:
    """One row, by column name."""

    __slots__ = ("_at", "_rows")

    def __init__(self, rows: ColumnValues, at: int) -> None:
        self._rows = rows
        self._at = at

    def __getitem__(self, column: str) -> Any:
        return self._rows[column][self._at]


class TableRows:
    """The rows of one snapshot for which a condition holds, read from the table.

    Searches return row numbers, so that only rows not yet known are read.

    Args:
        snapshot: The snapshot.
        where: The condition; None for all rows.
    """

    def __init__(self, snapshot: Snapshot, where: Expr | None) -> None:
        self._snapshot = snapshot
        self._where = where
        search = partial(snapshot.keyword_rows, where=where)
        self._keyword_rows = lru_cache(_KEPT_SEARCHES)(search)

    def restrict(self, where: Expr) -> TableRows:
        """Return the rows for which a further condition holds as well."""
        return TableRows(self._snapshot, both(self._where, where))

    def keyword(
        self, terms: Sequence[str], limit: int, *, require_all: bool = False
    ) -> Sequence[int]:
        """Return the rows with the highest BM25; if required, only those with every term."""
        return self._keyword_rows(tuple(terms), limit=limit, require_all=require_all)

    def nearest(self, vector: NDArray[np.float32], limit: int) -> list[int]:
        """Return the rows nearest to a vector of length 1; never those whose vector is zero."""
        return self._snapshot.nearest_rows(vector, self._where, limit)

    def with_ids(self, ids: Sequence[str]) -> list[int]:
        """Return the rows with these ids; unknown ids are skipped."""
        return self._snapshot.rows_with_ids(ids, self._where)

    def turns(self, places: Collection[tuple[str, int]]) -> list[int]:
        """Return the rows of turns, given as session and number."""
        return self._snapshot.rows_of_turns(places, self._where)

    def rows(self, numbers: Sequence[int], *, with_vectors: bool) -> pa.Table:
        """Return the rows of these numbers, in this order."""
        columns = _columns(with_vectors=with_vectors)
        return self._snapshot.rows("memories", numbers, columns)


class InMemoryRows(TableRows):
    """The rows of one snapshot for which a condition holds, kept in memory."""

    def __init__(self, snapshot: Snapshot, where: Expr | None) -> None:
        super().__init__(snapshot, where)
        rows = snapshot.scan("memories", where, (ROW, *COLUMNS, VECTOR))
        self._table = rows.combine_chunks()
        self._numbers = np.asarray(rows[ROW], dtype=np.int64)
        self._at = {number: at for at, number in enumerate(self._numbers.tolist())}

    def nearest(self, vector: NDArray[np.float32], limit: int) -> list[int]:
        """Return the rows nearest to a vector of length 1; never those whose vector is zero."""
        if not vector.any():
            return []
        cosines = np.where(self._is_nonzero, dot_products(self._unit_vectors, vector), -np.inf)
        best = _largest(cosines, limit)
        numbers: list[int] = self._numbers[best[np.isfinite(cosines[best])]].tolist()
        return numbers

    def with_ids(self, ids: Sequence[str]) -> list[int]:
        """Return the rows with these ids; unknown ids are skipped."""
        return [self._by_id[id] for id in ids if id in self._by_id]

    def turns(self, places: Collection[tuple[str, int]]) -> list[int]:
        """Return the rows of turns, given as session and number."""
        return [number for place in sorted(places) for number in self._turns.get(place, ())]

    def rows(self, numbers: Sequence[int], *, with_vectors: bool) -> pa.Table:
        """Return the rows of these numbers, in this order."""
        places = pa.array([self._at[number] for number in numbers], pa.int64())
        return self._table.select(_columns(with_vectors=with_vectors)).take(places)

    @cached_property
    def _by_id(self) -> Mapping[str, int]:
        return dict(zip(self._table["id"].to_pylist(), self._numbers.tolist(), strict=True))

    @cached_property
    def _unit_vectors(self) -> NDArray[np.float32]:
        return normalize_rows(vector_matrix(self._table[VECTOR]))

    @cached_property
    def _is_nonzero(self) -> NDArray[np.bool_]:
        return np.asarray(self._unit_vectors.any(axis=1))

    @cached_property
    def _turns(self) -> Mapping[tuple[str, int], list[int]]:
        found: dict[tuple[str, int], list[int]] = {}
        columns = (self._table[name].to_pylist() for name in (ROW, "session_id", "turn"))
        for number, session, turn in zip(*columns, strict=True):
            if session is not None and turn is not None:
                found.setdefault((session, turn), []).append(number)
        return found


class ValiditySpan(Struct, frozen=True):
    """The time during which something is valid."""

    since: datetime
    until: datetime | None = None
    """Exclusive; None for no end."""

    def contains(self, at: datetime) -> bool:
        """Return whether a moment lies within it."""
        return self.since <= at and (self.until is None or at < self.until)


class SearchScope(Struct, frozen=True):
    """Which memories are searched."""

    where: Expr | None
    """The condition that holds for them; None for all, which saves some milliseconds."""
    sources: Mapping[str, TableRows]
    """Their rows, by knowledge base; in memory where they are few."""
    valid: ValiditySpan
    """When the condition holds for the same memories."""


def vector_matrix(column: pa.ChunkedArray) -> NDArray[np.float32]:
    """Return a column of vectors as a matrix; a missing vector is a row of zeros."""
    return vector_rows(column.combine_chunks()).astype(np.float32)


def _columns(*, with_vectors: bool) -> tuple[str, ...]:
    return (*COLUMNS, VECTOR) if with_vectors else COLUMNS


def _largest(values: NDArray[np.float32], count: int) -> NDArray[np.intp]:
    """Return the positions of the largest values, largest first; ties keep their order."""
    if count < len(values):
        least = np.partition(values, -count)[-count]
        places = np.flatnonzero(values >= least)
    else:
        places = np.arange(len(values))
    return places[np.argsort(-values[places], kind="stable")][:count]
