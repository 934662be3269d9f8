"""Sets of ids in little memory: eight bytes each, whatever their length."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray


class Ids:
    """The ids that some columns have; two different ones are taken for one once in 10^19."""

    def __init__(self, columns: Iterable[pa.Array | pa.ChunkedArray] = ()) -> None:
        parts = [_hashes(column) for column in columns]
        self._sorted = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *parts]))

    def __len__(self) -> int:
        return len(self._sorted)

    @property
    def twins(self) -> int:
        """How many ids were there before."""
        return int((self._sorted[1:] == self._sorted[:-1]).sum())

    def has(self, value: str) -> bool:
        """Tell whether one id is there."""
        place = int(np.searchsorted(self._sorted, hash(value)))
        return place < len(self._sorted) and int(self._sorted[place]) == hash(value)

    def repeated(self, column: pa.Array | pa.ChunkedArray) -> NDArray[np.bool_]:
        """Tell of each value of a column whether it is there more than once."""
        twins = self._sorted[1:][self._sorted[1:] == self._sorted[:-1]]
        return np.isin(_hashes(column), twins)

    def union(self, other: Ids) -> Ids:
        """Return the ids of both."""
        both = Ids()
        both._sorted = np.union1d(self._sorted, other._sorted)
        return both

    def lacks(self, column: pa.Array | pa.ChunkedArray) -> NDArray[np.bool_]:
        """Tell of each value of a column whether it is missing here; nulls are not."""
        wanted = _hashes(column)
        if not len(self._sorted):
            found = np.zeros(len(wanted), dtype=bool)
        else:
            places = np.searchsorted(self._sorted, wanted)
            found = self._sorted[np.minimum(places, len(self._sorted) - 1)] == wanted
        given: NDArray[np.bool_] = np.asarray(column.is_valid(), dtype=bool)
        return given & ~found


def _hashes(column: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
    return np.fromiter(map(hash, column.to_pylist()), dtype=np.int64, count=len(column))
