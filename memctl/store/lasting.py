"""A snapshot that many questions are asked of: what they read again and again stays in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from memctl.store.filters import Expr
from memctl.store.indexes import refinement
from memctl.store.schema import VECTOR, TableName, vector_rows
from memctl.store.snapshot import ROW, ROW_ID, Snapshot

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_HELD = 150_000
"""Memories whose columns may be kept: with texts and vectors of 256 numbers 1 kB each."""
A_LOOKUP, A_ROW = 1_000, 60
"""What looking rows up costs, and each of them, next to a row when all are read one after another:
of 100,000 memories lance 13 finds 200 in 17 ms, and reads all in 120."""
_PATIENCE = 2
"""Reading all pays when so many times its cost has gone into single rows; no one question does."""


class LastingSnapshot(Snapshot):
    """The same tables as another snapshot has, kept for as long as anybody likes.

    It keeps nothing from being pruned: whoever reads has to hold that other one meanwhile.
    """

    def __init__(self, of: Snapshot) -> None:
        super().__init__(of._datasets, of.versions, of._dimension, of._require_in_place, of.derived)
        self._paid: Counter[str] = Counter()
        self._held: dict[str, pa.ChunkedArray] = {}

    def rows(self, table: TableName, numbers: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """Return the rows of these numbers in their order, as far as possible from memory."""
        if table != "memories" or not self._is_small:
            return super().rows(table, numbers, columns)
        self._hold([name for name in columns if self._pays(name)])
        missing = [name for name in columns if name not in self._held]
        found: dict[str, pa.ChunkedArray] = {}
        if missing:
            self._paid.update(dict.fromkeys(missing, A_LOOKUP + A_ROW * len(numbers)))
            found |= zip(missing, super().rows(table, numbers, missing).columns, strict=True)
        places = pa.array(numbers, pa.int64())
        found |= {name: self._held[name].take(places) for name in columns if name in self._held}
        return pa.table({name: found[name] for name in columns})

    def _pays(self, column: str) -> bool:
        return column not in self._held and self._paid[column] > _PATIENCE * self._count

    def _hold(self, columns: Sequence[str]) -> None:
        if columns:
            read = self.scan("memories", None, columns).combine_chunks()
            self._held |= zip(columns, read.columns, strict=True)

    @cached_property
    def _count(self) -> int:
        return self.count("memories")

    @property
    def _is_small(self) -> bool:
        return self._count <= MOST_HELD

    def nearest_rows(
        self, vector: NDArray[np.floating[Any]], where: Expr | None = None, limit: int = 100
    ) -> list[int]:
        """Return the numbers of what :meth:`nearest` finds.

        With vectors at hand the nearest are told from the fairly near in half the time.
        """
        if VECTOR not in self._held:
            return super().nearest_rows(vector, where, limit)
        by, several = self._numbered_by, limit * refinement(self._count)
        fairly_near = self._numbers(self.nearest(vector, where, several, (by,), refined=False)[by])
        if len(fairly_near) <= limit:
            return fairly_near
        found = self._held[VECTOR].take(pa.array(fairly_near, pa.int64())).combine_chunks()
        vectors = vector_rows(found).astype(np.float32)
        # Not by a BLAS, whose threads wait for each other on a machine that is busy.
        cosines = np.einsum("ij,j->i", vectors, vector) / np.linalg.norm(vectors, axis=1)
        best = np.argsort(-cosines, kind="stable")[:limit]
        return [fairly_near[at] for at in best.tolist()]

    # --- numbers of rows -------------------------------------------------------------------------

    @property
    def _numbered_by(self) -> str:
        # With lance 13 a search that gives the numbers themselves takes half as long again.
        return ROW_ID if self._is_small else ROW

    def _numbers(self, found: pa.ChunkedArray) -> list[int]:
        if not self._is_small:
            return super()._numbers(found)
        ids, numbers = self._row_ids
        places = np.searchsorted(ids, np.asarray(found, dtype=np.uint64))
        result: list[int] = numbers[places].tolist()
        return result

    @cached_property
    def _row_ids(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """The ids of all rows in ascending order, and the number of each."""
        read = self.scan("memories", None, (ROW_ID, ROW))
        ids = np.asarray(read[ROW_ID], dtype=np.uint64)
        order = np.argsort(ids)
        return ids[order], np.asarray(read[ROW], dtype=np.int64)[order]
