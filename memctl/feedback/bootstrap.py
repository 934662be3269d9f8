"""Intervals of means by the bootstrap (Efron, 1979): how much of a difference may be chance.

Knows numbers alone; the same numbers always give the same interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DRAWS = 10_000
_DRAWS_AT_ONCE = 500
_SEED = 20_260_101
_BOUNDS = (2.5, 97.5)

Interval = tuple[float, float] | tuple[None, None]


def bootstrap_interval(values: Sequence[float], digits: int = 2) -> Interval:
    """Return the 95 % interval of the mean, reproducibly; None with fewer than two values."""
    import numpy as np

    if len(values) < 2:
        return None, None
    return _bounds(_means(values, np.random.default_rng(_SEED)), digits)


def bootstrap_difference(one: Sequence[float], other: Sequence[float], digits: int = 4) -> Interval:
    """Return the 95 % interval of how much greater the mean of the first sample is.

    None where one of the samples has fewer than two values.
    """
    import numpy as np

    if min(len(one), len(other)) < 2:
        return None, None
    random = np.random.default_rng(_SEED)
    return _bounds(_means(one, random) - _means(other, random), digits)


def _means(values: Sequence[float], random: np.random.Generator) -> NDArray[np.float64]:
    import numpy as np

    given = np.asarray(values, np.float64)
    return np.concatenate(
        [
            given[random.integers(len(given), size=(_DRAWS_AT_ONCE, len(given)))].mean(axis=1)
            for _ in range(DRAWS // _DRAWS_AT_ONCE)
        ]
    )


def _bounds(means: NDArray[np.float64], digits: int) -> tuple[float, float]:
    import numpy as np

    low, high = (round(float(bound), digits) for bound in np.percentile(means, _BOUNDS))
    return low, high
