"""Whether anything found bears on the question, so that nothing is answered from what does not.

A logistic model of three measures, fitted on questions about encyclopedia articles and a year of
chats: asked as they are, asked after the records that answer them were removed, and asked of
records they have nothing to do with.  ``tests/bench/refusal.py`` measures it on any set.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from memctl.retrieve.candidates import Candidate
from memctl.retrieve.question import Question, Slot, slot_weight
from memctl.retrieve.statistics import TermStatistics
from memctl.retrieve.untold import UNTOLD

THRESHOLD = 0.35
"""Below this nothing is answered; about one answerable question in twenty scores lower."""

NEAR = 0.15
"""Below this what is shown to whoever judges for himself is said to be in doubt: about one question
in fifty of those whose answer is among the hits scores lower, and 70 to 95 in a hundred off the
topic do."""

FAR = 0.05
"""Below this nothing is shown at all: one question in two hundred that can be answered scores
lower, and 40 to 80 in a hundred off the topic do."""

_FOCUS, _LOST_NAMES, _COSINE, _BIAS = 4.46, -5.54, 5.07, -4.00
_UNKNOWN_WORD, _UNTOLD_WORD, _TOGETHER = 0.5, 0.1, 0.6
_LEAD, _USUAL_LEAD = 0.4, 3.0
_LOOKED_AT = 5
_AVERAGED = 3


@dataclass(frozen=True, slots=True)
class Relevance:
    """How much of the question the best of what was found speaks of; each measure is 0 to 1."""

    focus: float
    """Highest share of the question's content, rare words counting most, in one memory; what only
    several memories together have counts less."""
    lost_names: float
    """Share of the question's content that is names which none of the memories has."""
    cosine: float
    """Mean cosine of the best three with the question."""

    @property
    def score(self) -> float:
        """The probability that the question can be answered from these memories."""
        return _logistic(
            _FOCUS * self.focus + _LOST_NAMES * self.lost_names + _COSINE * self.cosine + _BIAS
        )

    @property
    def is_relevant(self) -> bool:
        """Whether they are worth answering from."""
        return self.score >= THRESHOLD

    @property
    def is_near(self) -> bool:
        """Whether they are likely enough to have to do with the question."""
        return self.score >= NEAR

    @property
    def is_far(self) -> bool:
        """Whether they have nothing to do with the question."""
        return self.score < FAR


def confident(relevance: Relevance, lead: float | None) -> float:
    """Return the probability that a question can be answered, by how far the best hit leads, too.

    Where the answer is not there, many memories are about equally near.  That the spread of the
    best scores tells how well a search went is from Shtok et al. (2012).  It orders questions
    better, but decides nothing: at the threshold it would refuse as many wrongly as before.

    Args:
        relevance: Of what was found; what is not relevant gets no more than its score.
        lead: By how many standard deviations the best hit is ahead; None where that is unknown.
    """
    score = relevance.score
    if lead is None:
        return score
    odds = score / (1 - score) * math.exp(_LEAD * (lead - _USUAL_LEAD))
    return odds / (1 + odds) if relevance.is_relevant else min(score, odds / (1 + odds))


NOT_RELEVANT = Relevance(0.0, 1.0, 0.0)


def relevance(
    question: Question, candidates: Sequence[Candidate], statistics: TermStatistics
) -> Relevance:
    """Judge candidates, best first."""
    best = candidates[:_LOOKED_AT]
    if not best:
        return NOT_RELEVANT
    weights = {slot: slot_weight(slot, statistics) for slot in question.slots}
    everything = frozenset[str]().union(*(candidate.terms for candidate in best))
    squares = {
        slot: weight**2 * _trust(slot, question, everything, statistics)
        for slot, weight in weights.items()
    }
    lost = [slot for slot in question.names if everything.isdisjoint(slot)]
    single = max(_share(_covered(candidate.terms, squares), squares) for candidate in best)
    together = _share(_covered(everything, squares), squares)
    return Relevance(
        focus=max(single, _TOGETHER * together),
        lost_names=_share(lost, weights),
        cosine=_mean(candidate.vector for candidate in islice(best, _AVERAGED)),
    )


def _trust(
    slot: Slot, question: Question, found: frozenset[str], statistics: TermStatistics
) -> float:
    """A word that no memory has may only be another word for the thing, unless it is a name."""
    if slot in question.names or any(t in found or statistics.frequencies.get(t) for t in slot):
        return 1.0
    return _UNKNOWN_WORD if UNTOLD.isdisjoint(slot) else _UNTOLD_WORD


def _covered(found: frozenset[str], slots: Iterable[Slot]) -> list[Slot]:
    return [slot for slot in slots if not found.isdisjoint(slot)]


def _share(slots: Iterable[Slot], weights: dict[Slot, float]) -> float:
    total = sum(weights.values())
    return sum(weights[slot] for slot in slots) / total if total else 0.0


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return sum(known) / len(known)


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-value))
