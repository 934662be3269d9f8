"""Two runs of the same questions compared, question by question.

The interval is that of the paired bootstrap: the differences are drawn again with replacement ten
thousand times, from a fixed seed, and 95 % of the means lie within it (Efron and Tibshirani, An
Introduction to the Bootstrap, 1993, chapter 13; for retrieval Sakai, Evaluating evaluation metrics
based on the bootstrap, SIGIR 2006).  An interval without 0 is a difference that is not chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memctl.evaluate.scores import METRICS, Outcome

_DRAWS = 10_000
_DRAWS_AT_ONCE = 500
_SEED = 20_260_101
_BOUNDS = (2.5, 97.5)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One metric of two runs, in percent, over the questions that both have."""

    mode: str
    before_mode: str
    metric: str
    questions: int
    before: float
    after: float
    difference: float
    """The mean of what each question gained, in percentage points."""
    low: float | None
    """The 95 % interval of that; None with fewer than two questions."""
    high: float | None
    better: int
    """Questions that gained."""
    worse: int
    """Questions that lost."""


def compared(
    mode: str, before_mode: str, before: Sequence[Outcome], after: Sequence[Outcome]
) -> list[Comparison]:
    """Compare two runs in every metric; nothing where they have no question in common."""
    earlier = {outcome.id: outcome for outcome in before}
    pairs = [(earlier[outcome.id], outcome) for outcome in after if outcome.id in earlier]
    if not pairs:
        return []
    return [
        _comparison(
            mode,
            before_mode,
            metric,
            [(100 * old.scores[metric], 100 * new.scores[metric]) for old, new in pairs],
        )
        for metric in METRICS
    ]


def _comparison(
    mode: str, before_mode: str, metric: str, pairs: Sequence[tuple[float, float]]
) -> Comparison:
    differences = [new - old for old, new in pairs]
    low, high = interval(differences)
    return Comparison(
        mode=mode,
        before_mode=before_mode,
        metric=metric,
        questions=len(pairs),
        before=_mean([old for old, _ in pairs]),
        after=_mean([new for _, new in pairs]),
        difference=_mean(differences, 2),
        low=low,
        high=high,
        better=sum(difference > 1e-9 for difference in differences),
        worse=sum(difference < -1e-9 for difference in differences),
    )


def _mean(values: Sequence[float], digits: int = 1) -> float:
    return round(sum(values) / len(values), digits)


def interval(differences: Sequence[float]) -> tuple[float, float] | tuple[None, None]:
    """Return within which bounds the mean lies with 95 % confidence, always the same ones."""
    import numpy as np

    if len(differences) < 2:
        return None, None
    given = np.asarray(differences, np.float64)
    random = np.random.default_rng(_SEED)
    means = np.concatenate(
        [
            given[random.integers(len(given), size=(_DRAWS_AT_ONCE, len(given)))].mean(axis=1)
            for _ in range(_DRAWS // _DRAWS_AT_ONCE)
        ]
    )
    low, high = (round(float(bound), 2) for bound in np.percentile(means, _BOUNDS))
    return low, high


def partner(mode: str, saved: Mapping[str, object], asked: int) -> str | None:
    """Return which mode of a saved run a mode is compared with.

    The same one; or where there is but one mode in either run, the one that there is.

    Args:
        mode: Of this run.
        saved: The saved run, by mode.
        asked: How many modes this run has.
    """
    if mode in saved:
        return mode
    return next(iter(saved)) if len(saved) == asked == 1 else None
