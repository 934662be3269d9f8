"""Which documents are about the same, by the vectors that are stored of them.

The vector of a document is the mean of those of its passages and its gist, weighted by how long
each is.  Nothing is embedded for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from memctl.ids import root_id
from memctl.store.tables.filter_expressions import Expr, both, col

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from memctl.store.tables.snapshot import Snapshot

_READ_BYTES = 16 << 20
_COLUMNS = ("document_id", "text", "vector")


class PageVectors(Struct, frozen=True, dict=True):
    """A vector of length one for each document that has any, in the order of ``ids``."""

    ids: tuple[str, ...]
    matrix: NDArray[np.float32]

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {id_: at for at, id_ in enumerate(self.ids)}

    def of(self, id_: str) -> NDArray[np.float32] | None:
        """Return the vector of a document; None where it has none."""
        at = self._numbers.get(id_)
        return None if at is None else self.matrix[at]

    def similar(self, vector: NDArray[np.float32]) -> Iterator[tuple[str, float]]:
        """Yield every document with its cosine, from 0 to 1, best first."""
        if not self.ids:
            return
        # Not by a BLAS, whose threads wait for each other on a machine that is busy.
        cosines = np.einsum("ij,j->i", self.matrix, vector)
        for at in np.argsort(-cosines, kind="stable").tolist():
            yield self.ids[at], float(min(max(cosines[at], 0.0), 1.0))


def read_vectors(snapshot: Snapshot, where: Expr | None) -> PageVectors:
    """Return the vectors of documents, of the memories for which a condition holds.

    Raises:
        DamagedError: The table cannot be read.
    """
    counted = (col("level") == "evidence") | (col("type") == "gist")
    condition = both(where, counted & ~col("document_id").is_null())
    numbers: dict[str, int] = {}
    sums = np.zeros((0, 0), dtype=np.float32)
    for batch in snapshot.batches("memories", condition, _COLUMNS, batch_bytes=_READ_BYTES):
        owners, weighted = _weighted(batch, numbers)
        if len(numbers) > len(sums):
            grown = np.zeros((max(2 * len(sums), len(numbers)), weighted.shape[1]), np.float32)
            grown[: len(sums), : sums.shape[1]] = sums
            sums = grown
        np.add.at(sums, owners, weighted)
    return _normalised(numbers, sums[: len(numbers)])


def _weighted(
    batch: pa.RecordBatch, numbers: dict[str, int]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the number of the document of each vector, and the vectors times their lengths."""
    import pyarrow.compute as pc

    from memctl.schema.arrow_tables import vector_rows

    owners = [
        numbers.setdefault(root_id(id_), len(numbers)) for id_ in batch["document_id"].to_pylist()
    ]
    lengths = np.asarray(pc.utf8_length(batch["text"]).fill_null(0), dtype=np.float32)
    vectors = vector_rows(batch["vector"]).astype(np.float32)
    return np.asarray(owners, dtype=np.int64), vectors * np.maximum(lengths, 1.0)[:, None]


def _normalised(numbers: Mapping[str, int], sums: NDArray[np.float32]) -> PageVectors:
    lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums)) if len(sums) else np.zeros(0, np.float32)
    known = np.flatnonzero(lengths > 0)
    ids = [*numbers]
    return PageVectors(tuple(ids[at] for at in known), sums[known] / lengths[known, None])
