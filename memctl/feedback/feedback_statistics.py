"""Judgements and rewards in numbers, and how much of a difference between means may be chance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from msgspec import Struct

from memctl.feedback.judging import verdict_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memctl.store.ledger.feedback_repositories import ConversationSummary, Feedback

_DIGITS = 4


class RewardMeans(Struct, frozen=True):
    """Means over some conversations that have something in common; None for what nothing tells."""

    label: str
    """What they have in common; empty for all."""
    conversations: int
    reward: float | None
    satisfaction: float | None
    completion: float | None
    grounding: float | None


class FeedbackStatistics(Struct, frozen=True):
    """What is thought of one knowledge base's answers and conversations."""

    kb: str
    judgements: int
    good: int
    bad: int
    with_text: int
    with_example: int
    mean_score: float | None
    conversations: int
    reward: float | None
    satisfaction: float | None
    completion: float | None
    grounding: float | None
    by_day: tuple[RewardMeans, ...]
    """The latest day first."""
    by_prompt: tuple[RewardMeans, ...]
    by_agent: tuple[RewardMeans, ...]


def feedback_statistics(
    kb: str, feedback: Sequence[Feedback], records: Sequence[ConversationSummary]
) -> FeedbackStatistics:
    """Return the numbers of some judgements, and of the last record of each conversation."""
    scores = [each.score for each in feedback if each.score is not None]
    whole = _means("", records)
    return FeedbackStatistics(
        kb=kb,
        judgements=len(feedback),
        good=sum(verdict_of(score) == "good" for score in scores),
        bad=sum(verdict_of(score) == "bad" for score in scores),
        with_text=sum(bool(each.text) for each in feedback),
        with_example=sum(bool(each.example) for each in feedback),
        mean_score=_mean(scores),
        conversations=len(records),
        reward=whole.reward,
        satisfaction=whole.satisfaction,
        completion=whole.completion,
        grounding=whole.grounding,
        by_day=_group(records, lambda each: each.timestamp.date().isoformat(), latest=True),
        by_prompt=_group(records, lambda each: each.prompt_version or "none"),
        by_agent=_group(records, lambda each: each.agent_id or "none"),
    )


def _group(
    records: Iterable[ConversationSummary],
    label: Callable[[ConversationSummary], str],
    *,
    latest: bool = False,
) -> tuple[RewardMeans, ...]:
    groups: dict[str, list[ConversationSummary]] = {}
    for each in records:
        groups.setdefault(label(each), []).append(each)
    return tuple(_means(name, groups[name]) for name in sorted(groups, reverse=latest))


def _means(label: str, records: Sequence[ConversationSummary]) -> RewardMeans:
    return RewardMeans(
        label,
        len(records),
        _mean(each.reward_score for each in records),
        _mean(each.satisfaction for each in records),
        _mean(each.completion for each in records),
        _mean(each.grounding for each in records),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(fmean(known), _DIGITS) if known else None


# --- how much of a difference may be chance ------------------------------------------------------

RESAMPLES = 10_000
_RESAMPLES_PER_BATCH = 500
_SEED = 20_260_101
_BOUNDS = (2.5, 97.5)

Interval = tuple[float, float] | tuple[None, None]


def bootstrap_interval(values: Sequence[float], digits: int = 2) -> Interval:
    """Return the 95 % interval of the mean by the bootstrap (Efron, 1979), always the same.

    None with fewer than two values.
    """
    import numpy as np

    if len(values) < 2:
        return None, None
    return _bounds(_resampled_means(values, np.random.default_rng(_SEED)), digits)


def bootstrap_difference(one: Sequence[float], other: Sequence[float], digits: int = 4) -> Interval:
    """Return the 95 % interval of how much greater the mean of the first sample is.

    None where one of the samples has fewer than two values.
    """
    import numpy as np

    if min(len(one), len(other)) < 2:
        return None, None
    random = np.random.default_rng(_SEED)
    return _bounds(_resampled_means(one, random) - _resampled_means(other, random), digits)


def _resampled_means(values: Sequence[float], random: np.random.Generator) -> NDArray[np.float64]:
    import numpy as np

    given = np.asarray(values, np.float64)
    return np.concatenate(
        [
            given[random.integers(len(given), size=(_RESAMPLES_PER_BATCH, len(given)))].mean(axis=1)
            for _ in range(RESAMPLES // _RESAMPLES_PER_BATCH)
        ]
    )


def _bounds(means: NDArray[np.float64], digits: int) -> tuple[float, float]:
    import numpy as np

    low, high = (round(float(bound), digits) for bound in np.percentile(means, _BOUNDS))
    return low, high
