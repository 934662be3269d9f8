"""What a memory is worth besides its likeness to the question: importance, confidence, recency.

After the retrieval function of generative agents (Park et al. 2023).  All of it is off by default:
on question sets with known evidence importance lowers recall (0.5 to 2 points at a weight of 0.3)
and recency changes nothing, for what is asked is as often small or old.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from memctl.retrieve.collapse import Collapsed, ordered, raised
from memctl.retrieve.kept import Row

_DAY = timedelta(days=1)
_MOST_HALVINGS = 1_000.0
DEFAULT_HALF_LIFE = 90
"""Days."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How much each counts, in standard deviations of the candidates' scores."""

    importance: float = 0.0
    confidence: float = 0.0
    recency: float = 0.0
    half_lives: Mapping[str, float] = field(default_factory=dict)
    """Days after which something counts half as recent, by knowledge base."""

    @property
    def counts(self) -> bool:
        """Whether anything of it counts."""
        return any((self.importance, self.confidence, self.recency))

    def gains(self, kb: str, row: Row, now: datetime) -> Mapping[str, float]:
        """Return what each gives a memory."""
        return {
            "importance": self.importance * (row["importance"] or 0.0),
            "confidence": self.confidence * (row["confidence"] or 0.0),
            "recency": self.recency * self._recency(kb, row["created_at"], now),
        }

    def _recency(self, kb: str, when: datetime | None, now: datetime) -> float:
        """1 for now and what is still to come, half of that after each half-life."""
        if when is None:
            return 0.0
        halvings = (now - when) / _DAY / self.half_lives.get(kb, DEFAULT_HALF_LIFE)
        return float(0.5 ** min(max(halvings, 0.0), _MOST_HALVINGS))


NO_STANDING = Standing()


def with_standing(
    items: Sequence[Collapsed], standing: Standing, now: datetime, spread: float
) -> list[Collapsed]:
    """Return the items with what they are worth counted in, best first.

    Args:
        items: Best first.
        standing: What counts.
        now: The time.
        spread: The standard deviation of the candidates' scores.
    """
    if not standing.counts:
        return list(items)
    return ordered(_raised(item, standing, now, spread) for item in items)


def _raised(item: Collapsed, standing: Standing, now: datetime, spread: float) -> Collapsed:
    candidate = item.candidate
    for clue, gain in standing.gains(candidate.key[0], candidate.row, now).items():
        item = raised(item, clue, gain * spread)
    return item
