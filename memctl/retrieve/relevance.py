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
from memctl.understand.dates import MONTHS, WEEKDAYS
from memctl.understand.terms import query_terms

THRESHOLD = 0.35
"""From here on what was found bears on the question."""

NEAR = 0.15
"""Below this what is shown to whoever judges for himself is said to be in doubt: about one question
in fifty of those whose answer is among the hits scores lower, and 70 to 95 in a hundred off the
topic do."""

FAR = 0.05
"""Below this nothing is shown at all: one question in two hundred that can be answered scores
lower, and 40 to 80 in a hundred off the topic do."""

_FOCUS, _LOST_NAMES, _COSINE, _BIAS = 4.46, -5.54, 5.07, -4.00
_UNKNOWN_WORD, _UNTOLD_WORD, _TOGETHER = 0.5, 0.1, 0.6
_LOOKED_AT = 5
_AVERAGED = 3
_CALENDAR = frozenset(query_terms(" ".join((*MONTHS, *WEEKDAYS, "christmas easter")), ("", "en")))
"""Written like names, but what happened then is seldom told with the word: its day tells."""


@dataclass(frozen=True, slots=True)
class Relevance:
    """How much of the question the best of what was found speaks of; each measure is 0 to 1."""

    focus: float
    """Highest share of the question's content, rare words counting most, in one memory; what only
    several memories together have counts less."""
    lost_names: float
    """Share of the question's content that is names, other than of months and the like, which none
    of the memories has."""
    cosine: float
    """Mean cosine of the best three with the question."""
    unknown: float
    """Share of the question's words of content that no memory has, but for those that it need not
    have; see ``untold``."""

    @property
    def score(self) -> float:
        """The probability that the question can be answered from these memories."""
        return logistic(
            _FOCUS * self.focus + _LOST_NAMES * self.lost_names + _COSINE * self.cosine + _BIAS
        )

    @property
    def is_relevant(self) -> bool:
        """Whether they bear on the question."""
        return self.score >= THRESHOLD

    @property
    def is_near(self) -> bool:
        """Whether they are likely enough to have to do with the question."""
        return self.score >= NEAR

    @property
    def is_far(self) -> bool:
        """Whether they have nothing to do with the question."""
        return self.score < FAR


NOT_RELEVANT = Relevance(0.0, 1.0, 0.0, 1.0)


def relevance(
    question: Question, candidates: Sequence[Candidate], statistics: TermStatistics
) -> Relevance:
    """Judge candidates, best first."""
    best = candidates[:_LOOKED_AT]
    if not best:
        return NOT_RELEVANT
    weights = {slot: slot_weight(slot, statistics) for slot in question.slots}
    everything = frozenset[str]().union(*(candidate.terms for candidate in best))
    unknown = [slot for slot in weights if not _is_known(slot, everything, statistics)]
    squares = {
        slot: weight**2 * (_trust(slot, question) if slot in unknown else 1.0)
        for slot, weight in weights.items()
    }
    lost = [
        slot
        for slot in question.names
        if everything.isdisjoint(slot) and _CALENDAR.isdisjoint(slot)
    ]
    single = max(_share(_covered(candidate.terms, squares), squares) for candidate in best)
    together = _share(_covered(everything, squares), squares)
    return Relevance(
        focus=max(single, _TOGETHER * together),
        lost_names=_share(lost, weights),
        cosine=_mean(candidate.vector for candidate in islice(best, _AVERAGED)),
        unknown=sum(map(UNTOLD.isdisjoint, unknown)) / len(weights) if weights else 0.0,
    )


def _is_known(slot: Slot, found: frozenset[str], statistics: TermStatistics) -> bool:
    return any(term in found or statistics.frequencies.get(term) for term in slot)


def _trust(unknown: Slot, question: Question) -> float:
    """A word that no memory has may only be another word for the thing, unless it is a name."""
    if unknown in question.names:
        return 1.0
    return _UNKNOWN_WORD if UNTOLD.isdisjoint(unknown) else _UNTOLD_WORD


def _covered(found: frozenset[str], slots: Iterable[Slot]) -> list[Slot]:
    return [slot for slot in slots if not found.isdisjoint(slot)]


def _share(slots: Iterable[Slot], weights: dict[Slot, float]) -> float:
    total = sum(weights.values())
    return sum(weights[slot] for slot in slots) / total if total else 0.0


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return sum(known) / len(known)


def logistic(value: float) -> float:
    """Return the probability for a value on the logistic scale."""
    return 1 / (1 + math.exp(-value))
