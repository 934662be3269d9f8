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

from memctl.language.date_mentions import MONTHS, WEEKDAYS
from memctl.language.term_analysis import query_terms
from memctl.search.query.question import Question, Slot, slot_weight
from memctl.search.retrieval.candidates import Candidate
from memctl.search.retrieval.term_statistics import TermStatistics

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


def judge_relevance(
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
        unknown=sum(map(GENERIC_TERMS.isdisjoint, unknown)) / len(weights) if weights else 0.0,
    )


def _is_known(slot: Slot, found: frozenset[str], statistics: TermStatistics) -> bool:
    return any(term in found or statistics.frequencies.get(term) for term in slot)


def _trust(unknown: Slot, question: Question) -> float:
    """A word that no memory has may only be another word for the thing, unless it is a name."""
    if unknown in question.names:
        return 1.0
    return _UNKNOWN_WORD if GENERIC_TERMS.isdisjoint(unknown) else _UNTOLD_WORD


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


ANSWER_THRESHOLD = 0.35
"""From here on a question is answered."""
UNSURE_THRESHOLD = 0.16
"""From here on what is closest is named as unsure."""

_CERTAINTY_FOCUS, _CERTAINTY_LOST_NAMES, _CERTAINTY_COSINE, _CERTAINTY_UNKNOWN = (
    1.58,
    -6.41,
    3.85,
    -2.82,
)
_LEAD, _GAP, _CERTAINTY_BIAS = 1.02, 1.11, -4.05
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
            _CERTAINTY_FOCUS * relevance.focus
            + _CERTAINTY_LOST_NAMES * relevance.lost_names
            + _CERTAINTY_COSINE * relevance.cosine
            + _LEAD * math.log1p(lead)
            + _CERTAINTY_UNKNOWN * relevance.unknown
            + _GAP * gap
            + _CERTAINTY_BIAS
        )

    @property
    def is_sure(self) -> bool:
        """Whether they are to be answered from."""
        return self.score >= ANSWER_THRESHOLD

    @property
    def is_against(self) -> bool:
        """Whether they are not even to be named."""
        return self.score < UNSURE_THRESHOLD


def score_gap(scores: Sequence[float]) -> float | None:
    """Return how far the best of the sentences is ahead.

    Args:
        scores: Of the sentences, highest first.
    """
    return scores[0] - scores[_AHEAD_OF] if len(scores) > _AHEAD_OF else None


GENERIC_TERMS = frozenset(
    query_terms(
        """say tell ask answer reply suggest propose recommend mention remind invite offer share
        inform announce discuss initiate start begin explain describe express claim think believe
        feel want wish like love enjoy prefer agree plan hope
        do make have get give take put go come become happen use keep hold let be bring show see
        look find know need help try talk speak meet call name title kind type part reason purpose
        idea opinion thought advice feedback view goal topic thing way time day person people
        someone everybody first last next new favorite favourite best main current"""
    )
)
"""Words that a memory which answers need not have: of saying, of doing anything at all."""
