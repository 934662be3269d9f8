"""How good a conversation was, from 0 to 1, and what that is made of.

The reward is the weighted mean of satisfaction, completion and grounding; what nothing tells is
left out, and the weights of the others made to sum to 1.  Knows records alone, no tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from memctl.config import FeedbackSettings
    from memctl.literals import QueryStatus
    from memctl.store.ledger.feedback_repositories import Feedback
    from memctl.store.ledger.log_repositories import QueryDetail

PLEASED, DISPLEASED = 0.8, 0.2
"""What the words of a user say of their satisfaction, where no score was given."""
_COMPLETED: dict[QueryStatus, float] = {"answered": 1.0, "unsure": 0.5, "nothing": 0.0}
_APOSTROPHES = str.maketrans("’‘", "''")


class Reward(Struct, frozen=True):
    """How good a conversation was; None for what nothing tells."""

    score: float | None
    satisfaction: float | None
    completion: float | None
    grounding: float | None


def reward_of(
    settings: FeedbackSettings,
    feedback: Sequence[Feedback],
    queries: Sequence[QueryDetail],
    said: Sequence[str],
) -> Reward:
    """Return the reward of a conversation, or of a question that was asked outside of any.

    Args:
        settings: The weights, and the words of users who are content or not.
        feedback: What was said of it, the latest first.
        queries: The questions that were asked in it, the oldest first.
        said: What the user said in it, in order.
    """
    satisfaction = _satisfaction(settings, feedback, said)
    completion = _completion(feedback, queries)
    supported = [each.grounding for each in queries if each.grounding is not None]
    grounding = fmean(supported) if supported else None
    return Reward(
        weighted(
            (settings.satisfaction_weight, satisfaction),
            (settings.completion_weight, completion),
            (settings.grounding_weight, grounding),
        ),
        satisfaction,
        completion,
        grounding,
    )


def weighted(*parts: tuple[float, float | None]) -> float | None:
    """Return the weighted mean of the parts that are known; None where none is, or none counts."""
    known = [(weight, value) for weight, value in parts if value is not None]
    total = sum(weight for weight, _ in known)
    return sum(weight * value for weight, value in known) / total if total else None


def _satisfaction(
    settings: FeedbackSettings, feedback: Sequence[Feedback], said: Sequence[str]
) -> float | None:
    """Return what was said of the whole conversation, else of its answers, else by the user."""
    scored = [each for each in feedback if each.score is not None]
    whole = next((each.score for each in scored if not each.query_id), None)
    if whole is not None:
        return whole
    latest: dict[str, float] = {}
    for each in scored:
        if each.score is not None:
            latest.setdefault(each.query_id, each.score)
    if latest:
        return fmean(latest.values())
    for message in reversed(said):
        text = message.translate(_APOSTROPHES).casefold().strip()
        if _begins_with(text, settings.displeased):
            return DISPLEASED
        if any(_has(text, phrase) for phrase in settings.pleased):
            return PLEASED
    return None


def _begins_with(text: str, phrases: Iterable[str]) -> bool:
    return any(re.match(rf"{re.escape(each.casefold())}(?!\w)", text) for each in phrases if each)


def _has(text: str, phrase: str) -> bool:
    return bool(phrase) and bool(re.search(rf"(?<!\w){re.escape(phrase.casefold())}(?!\w)", text))


def _completion(feedback: Sequence[Feedback], queries: Sequence[QueryDetail]) -> float | None:
    stated = next((each.task for each in feedback if each.task), "")
    if stated:
        return 1.0 if stated == "done" else 0.0
    return next(
        (_COMPLETED[each.status] for each in reversed(queries) if each.status in _COMPLETED), None
    )
