"""Judgements and rewards in numbers: by day, by version of a prompt and by agent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from msgspec import Struct

from memctl.feedback.judging import verdict_of

if TYPE_CHECKING:
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
        by_day=_grouped(records, lambda each: each.timestamp.date().isoformat(), latest=True),
        by_prompt=_grouped(records, lambda each: each.prompt_version or "none"),
        by_agent=_grouped(records, lambda each: each.agent_id or "none"),
    )


def _grouped(
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
