"""How sure it is that the hits answer a question: enough to answer it, to name what is closest, or
to say that it is not in memory.

A logistic model, fitted on questions about encyclopedia articles, a year of chats and a year with
an assistant: asked as they are, where the answer was among the best five hits; asked after the
records that answer them were removed; and asked of records they have nothing to do with.
``tests/bench/refusal.py`` measures it on any set, ``tests/bench/retrieval.md`` has the figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from memctl.retrieve.relevance import Relevance, logistic

SURE = 0.35
"""From here on a question is answered."""
UNSURE = 0.16
"""From here on what is closest is named as unsure."""

_FOCUS, _LOST_NAMES, _COSINE, _UNKNOWN = 1.58, -6.41, 3.85, -2.82
_LEAD, _GAP, _BIAS = 1.02, 1.11, -4.05
_USUAL_LEAD, _USUAL_GAP = 3.0, 0.55
"""What speaks neither for an answer nor against it, for where these are not known."""
_AHEAD_OF = 5
"""The best sentence is compared with that at this place, counted from 0."""


@dataclass(frozen=True, slots=True)
class Certainty:
    """What tells whether the hits answer a question."""

    relevance: Relevance
    lead: float | None
    """By how many standard deviations the best hit is ahead; see ``ranking.lead``.  Where the
    answer is not there, many memories are about equally near: that the spread of the best scores
    tells how well a search went is from Shtok et al. (2012)."""
    gap: float | None
    """By how much the best sentence is ahead of the sixth; None where there are fewer."""

    @property
    def score(self) -> float:
        """The probability that the question can be answered from the hits."""
        relevance = self.relevance
        lead = _USUAL_LEAD if self.lead is None else max(self.lead, 0.0)
        gap = _USUAL_GAP if self.gap is None else self.gap
        return logistic(
            _FOCUS * relevance.focus
            + _LOST_NAMES * relevance.lost_names
            + _COSINE * relevance.cosine
            + _LEAD * math.log1p(lead)
            + _UNKNOWN * relevance.unknown
            + _GAP * gap
            + _BIAS
        )

    @property
    def is_sure(self) -> bool:
        """Whether they are to be answered from."""
        return self.score >= SURE

    @property
    def is_against(self) -> bool:
        """Whether they are not even to be named."""
        return self.score < UNSURE


def gap_of(scores: Sequence[float]) -> float | None:
    """Return how far the best of the sentences is ahead.

    Args:
        scores: Of the sentences, highest first.
    """
    return scores[0] - scores[_AHEAD_OF] if len(scores) > _AHEAD_OF else None
