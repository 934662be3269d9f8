"""Relevance: whether the hits have to do with a question.

It is a logistic model, fitted on questions about encyclopedia articles and a year of chats: asked
as they are, where the answer was among the best five hits; after the records that answer them were
removed; and of records they have nothing to do with.  ``tests/bench/refusal.py`` measures it on any
set, ``tests/bench/retrieval.md`` has the figures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache

from msgspec import Struct

from memctl.language.date_mentions import MONTHS, WEEKDAYS
from memctl.language.term_analysis import query_terms
from memctl.search.query.question import Question, Slot
from memctl.search.retrieval.candidates import Candidate, coverage, slot_weights
from memctl.search.term_statistics import TermStatistics

RELEVANT = 0.35
"""From this score on, the hits are relevant."""
NEAR = 0.15
"""Below it, what is shown to someone who asked is marked as doubtful: about one question in fifty
whose answer is among the hits scores lower, and 70 to 95 in a hundred that are off the topic."""
FAR = 0.05
"""Below it, nothing is shown: one question in two hundred whose answer is among the hits scores
lower, and 40 to 80 in a hundred that are off the topic."""

_UNKNOWN_TRUST, _GENERIC_TRUST, _COMBINED_SHARE = 0.5, 0.1, 0.6
_MAX_JUDGED = 5
_MAX_AVERAGED = 3
_GENERIC_WORDS = """
    say tell ask answer reply suggest propose recommend mention remind remember recall invite
    offer share inform announce discuss initiate start begin explain describe express claim
    think believe feel want wish like love enjoy prefer agree plan hope
    do make have get give take put go come become happen use keep hold let be bring show see
    look find know need help try talk speak meet call name title kind type part reason purpose
    idea opinion thought advice feedback view goal topic thing way time day person people
    someone everybody first last next new favorite favourite best main current"""


@cache
def _calendar_terms() -> frozenset[str]:
    """Return terms written like names; what happened then seldom has the word but a date."""
    return frozenset(query_terms(" ".join((*MONTHS, *WEEKDAYS, "christmas easter")), ("", "en")))


@cache
def generic_terms() -> frozenset[str]:
    """Return terms that a memory may lack and still answer: of saying, of doing anything."""
    return frozenset(query_terms(_GENERIC_WORDS))


class Relevance(Struct, frozen=True):
    """How much of a question the best hits cover; each measure is 0 to 1."""

    focus: float
    """Highest share of the question's content, weighted by rarity, that one memory covers; what
    only several memories cover together counts less."""
    lost_names: float
    """Share of the question's content that is names which no memory has, months and such aside."""
    cosine: float
    """Mean cosine of the best three hits with the question."""

    @property
    def score(self) -> float:
        """The probability that these memories answer the question."""
        return sigmoid(self.log_odds)

    @property
    def log_odds(self) -> float:
        """The log odds of that."""
        return 4.46 * self.focus - 5.54 * self.lost_names + 5.07 * self.cosine - 4.00

    @property
    def is_relevant(self) -> bool:
        """Whether the hits are relevant to the question."""
        return self.score >= RELEVANT

    @property
    def is_near(self) -> bool:
        """Whether the hits are likely to have to do with the question."""
        return self.score >= NEAR

    @property
    def is_far(self) -> bool:
        """Whether the hits have nothing to do with the question."""
        return self.score < FAR


_OWN_SHARE, _SHIFT = 0.35, 1.15
"""How much a hit's own relevance counts beside that of all, and what puts 0.7 where a hit is
clearly relevant (``tests/bench/threshold.py``)."""
_OWN_SLOPE, _OWN_SHIFT = 2.0, 6.05
"""What bounds a hit by its own relevance alone.  On five public sets this takes 0 to 5 in 100 hits
that are evidence below 0.7, mostly of a second step, and 0 to 12 of the others; of these, 0 to 34
in 100 are below 0.3 then, and 0 to 3 were."""


def hit_relevance(own: Relevance, whole: Relevance) -> float:
    """Return how relevant one hit is, 0 to 1; from 0.7 on it is clearly relevant.

    Args:
        own: The relevance of the hit alone.
        whole: That of the best hits together, which knows what a question of several steps needs.
    """
    odds = _OWN_SHARE * own.log_odds + (1 - _OWN_SHARE) * whole.log_odds + _SHIFT
    return sigmoid(min(odds, _OWN_SLOPE * own.log_odds + _OWN_SHIFT))


def judge_relevance(
    question: Question,
    candidates: Sequence[Candidate],
    statistics: TermStatistics,
    weights: Mapping[Slot, float] | None = None,
) -> Relevance:
    """Return the relevance of candidates, given best first.

    Args:
        question: The question.
        candidates: The candidates.
        statistics: How common terms are.
        weights: What each part of the question's content weighs, where that is known.
    """
    best = candidates[:_MAX_JUDGED]
    if not best:
        return Relevance(focus=0.0, lost_names=1.0, cosine=0.0)
    if weights is None:
        weights = slot_weights(question, statistics)
    everything = frozenset[str]().union(*(candidate.terms for candidate in best))
    squares = {
        slot: weight**2 * (1 if _is_known(slot, everything, statistics) else _trust(slot, question))
        for slot, weight in weights.items()
    }
    lost = [
        slot
        for slot in question.names
        if everything.isdisjoint(slot) and _calendar_terms().isdisjoint(slot)
    ]
    single = max(coverage(squares, candidate.terms) for candidate in best)
    together = coverage(squares, everything)
    nearest = [candidate.vector for candidate in best[:_MAX_AVERAGED]]
    return Relevance(
        focus=max(single, _COMBINED_SHARE * together),
        lost_names=sum(weights[slot] for slot in lost) / sum(weights.values()) if lost else 0.0,
        cosine=sum(nearest) / len(nearest),
    )


def _is_known(slot: Slot, found: frozenset[str], statistics: TermStatistics) -> bool:
    return any(term in found or statistics.frequencies.get(term) for term in slot)


def _trust(unknown: Slot, question: Question) -> float:
    """Return how much an unknown word counts: unless a name, it may just be said otherwise."""
    if unknown in question.names:
        return 1.0
    return _UNKNOWN_TRUST if generic_terms().isdisjoint(unknown) else _GENERIC_TRUST


def sigmoid(value: float) -> float:
    """Return the probability of log odds."""
    return 1 / (1 + math.exp(-value))
