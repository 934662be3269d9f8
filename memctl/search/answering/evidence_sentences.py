"""The sentences of the best hits, each with how well it may answer the question."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memctl.language.term_analysis import query_terms, terms
from memctl.records import Hit
from memctl.search.answering.answer_constraints import SentenceContext
from memctl.search.answering.answer_type import (
    asks_whether,
    classify_question,
    has_answer_type,
    has_value,
)
from memctl.search.answering.evidence_parts import (
    Part,
    is_table_row,
    quotable,
    split_parts,
    states_value,
)
from memctl.search.query.time_expressions import date_terms, hit_dates, matching_times
from memctl.search.retrieval.candidates import cosines, coverage
from memctl.search.retrieval.corpus import has_ended

if TYPE_CHECKING:
    from memctl.search.answering.search_outcome import SearchOutcome

MAX_HITS_READ = 8
"""So many hits, at most, are read for an answer, however few are to be shown."""
_FRONT_MATTER = re.compile(r"(?:title|author|tags|name|subject|from|to|cc)\s*:", re.IGNORECASE)
_LABELS = frozenset(terms("title name subject heading"))
"""What a line is labelled with that says no more than they do."""
_AS_ASKED, _AS_SAID = 0.5, 0.999
"""A sentence that says this share of what a question asks for a yes or a no answers it, though it
says no more; and this share of what a question without a mark says, such as a statement."""
_ALL_BUT_THE_ANSWER, _NEARLY = 0.8, 0.6
"""Where a sentence says this share of a question and nothing else, one that is to answer it must
say this share of what that says."""
_ENDS = re.compile(r"[.!。！।]\W*$")
"""A title or a label says nothing."""
_NEXT = re.compile(r"[^\S\n]*\n?[^\S\n]*")
"""Between sentences of one paragraph."""
_GOES_ON = 3
"""Sentences back that one without a subject may go on about."""

_FROM_SENTENCE, _FROM_CONTEXT, _FROM_VECTOR, _FROM_RANK, _FROM_KIND = 1.0, 0.8, 0.6, 0.6, 0.3
_FROM_A_DECISION = 0.6
"""In place of that for a decision: the words that say so stand for the question's own verb."""
_STANDS_IN = 0.6
"""A sentence of this share of the score answers instead of one that does not hold any more."""
_FOR_A_QUESTION = -1.0
_FOR_A_TITLE = -0.5
_FOR_STATING = 0.5
"""To a sentence that says of the very thing asked for what it is."""
_FOR_ANOTHERS_ROW = -0.8
"""To a row of a table without a name or a date that the question has."""
_FOR_A_REPLY = 0.7
"""To the sentence after a question, of what that question covers."""


@dataclass(frozen=True, slots=True)
class EvidenceSentence:
    """A sentence of a hit."""

    hit: Hit
    start: int
    """Offset in the hit's text."""
    end: int
    path: str
    """The keys above a value of structured data, which by itself does not say of what it is."""
    score: float
    share: float
    """Which share of the question's content the sentence itself speaks of, 0 to 1."""
    covered: frozenset[tuple[str, ...]]
    """The question's slots that the sentence itself speaks of."""
    terms: frozenset[str]
    around: SentenceContext
    says_it: bool
    """Whether it says more than what is asked, or just that where a yes or a no is asked for."""

    @property
    def text(self) -> str:
        """The sentence, exactly as it stands there."""
        return self.hit.text[self.start : self.end]

    @property
    def has_ended(self) -> bool:
        """Whether it does not hold any more."""
        return has_ended(self.hit, self.start, self.end)


def answering_sentences(outcome: SearchOutcome) -> list[EvidenceSentence]:
    """Return the sentences that have what the question demands, best first.

    What does not hold any more is among them only where nothing else answers nearly as well.
    """
    near = [item for item in outcome.statements if item.says_it and not _is_another(item, outcome)]
    literal = [item for item in near if outcome.demand.is_met_by(item.around)]
    found = literal or [item for item in near if outcome.wider_demand.is_met_by(item.around)]
    current = [item for item in found if not item.has_ended]
    stands_in = bool(current) and current[0].score >= _STANDS_IN * found[0].score
    return current if stands_in else found


def _is_another(item: EvidenceSentence, outcome: SearchOutcome) -> bool:
    told = f"{item.hit.title}\n{item.hit.heading}\n{item.around.text}"
    return outcome.numbered.is_another(told)


def rank_sentences(outcome: SearchOutcome) -> list[EvidenceSentence]:
    """Return the sentences of the best hits, best first; ties in the order of the hits.

    Those that say no more than what is asked are among them only where nothing else has to do with
    it: they are no answer, but the closest.
    """
    judge = _Judge(outcome)
    found = [item for hit in outcome.hits[:MAX_HITS_READ] for item in judge.judged(hit)]
    old = [item for item in found if not item.says_it]
    new = judge.bearing([item for item in found if item.says_it], old)
    return sorted(new or old, key=lambda item: (-item.score, item.hit.rank, item.start))


class _Judge:
    """Scores sentences for one question."""

    def __init__(self, outcome: SearchOutcome) -> None:
        self._outcome = outcome
        self._question = outcome.question
        self._demand = outcome.demand
        self._kind = classify_question(outcome.question.text)
        self._enough = _enough_said(outcome.question.text)
        scores = [hit.score for hit in outcome.hits[:MAX_HITS_READ]]
        self._lowest = min(scores, default=0.0)
        self._span = max(scores, default=0.0) - self._lowest

    def judged(self, hit: Hit) -> Iterator[EvidenceSentence]:
        """Yield the sentences of a hit with their scores."""
        parts = split_parts(hit)
        spoken = [self._spoken(hit, part) for part in parts]
        everything = _all([self._above(hit), self._days_of(hit), *spoken])
        shared = _FROM_CONTEXT * self._coverage(everything) + _FROM_RANK * self._standing(hit)
        near = self._cosines(parts)
        replied_to = 0.0
        for place in quotable(parts):
            part, own_terms = parts[place], spoken[place]
            own = self._coverage(own_terms)
            score = _FROM_SENTENCE * own + _FROM_VECTOR * float(near[place]) + shared + replied_to
            score += self._suits(part.told) + self._form(part.told, own_terms)
            score += _FOR_A_TITLE if part.is_title else 0.0
            item = EvidenceSentence(
                hit=hit,
                start=part.start,
                end=part.end,
                path=part.path,
                score=score,
                share=own,
                covered=frozenset(s for s in self._question.slots if not own_terms.isdisjoint(s)),
                terms=own_terms,
                around=self._around(hit, parts, spoken, place),
                says_it=True,
            )
            yield replace(item, says_it=self.is_new(item))
            replied_to = _FOR_A_REPLY * own if _asks(part.text) else 0.0

    def _cosines(self, parts: Sequence[Part]) -> NDArray[np.float64]:
        vector = self._outcome.vector
        if vector is None:
            return np.zeros(len(parts))
        return cosines(vector, self._outcome.embedder.embed([part.told for part in parts]))

    def _spoken(self, hit: Hit, part: Part) -> frozenset[str]:
        """Return the terms of a sentence, with those that its figures and its time stand for."""
        found = self._terms(part.told) | matching_times(self._question, hit)
        if self._question.dates:
            found |= date_terms(part.text, hit.created_at)
        if self._demand.exact is not None and has_value(self._demand.exact.kind, part.told):
            found |= self._demand.naming
        return found

    def _around(
        self, hit: Hit, parts: Sequence[Part], spoken: Sequence[frozenset[str]], place: int
    ) -> SentenceContext:
        before = [] if parts[place].is_row else spoken[max(0, place - _GOES_ON) : place]
        beside = [] if parts[place].is_row else spoken[max(0, place - 1) : place + 2]
        speaker = spoken[:1] if hit.type == "turn" else []
        return SentenceContext(
            parts[place].told,
            spoken[place],
            before=_all([*before, *speaker]),
            beside=_all([*beside, *speaker]),
            above=self._above(hit),
            whole=_all([self._above(hit), *spoken]),
            is_turn=hit.type == "turn",
        )

    def _suits(self, sentence: str) -> float:
        weight = _FROM_A_DECISION if self._kind == "decision" else _FROM_KIND
        suits = weight * has_answer_type(self._kind, sentence, self._question.text)
        return suits + (_FOR_A_QUESTION if _asks(sentence) else 0.0)

    def _form(self, sentence: str, own_terms: frozenset[str]) -> float:
        stated = states_value(self._question, sentence, self._outcome.languages)
        named = (*self._question.names, *self._question.dates)
        strange = is_table_row(sentence) and any(map(own_terms.isdisjoint, named))
        return _FOR_STATING * stated + _FOR_ANOTHERS_ROW * strange

    def is_new(self, item: EvidenceSentence) -> bool:
        """Tell whether a sentence says more than the question and the titles above it, or just
        what is asked whether it is so."""
        is_value = item.path or is_table_row(item.text) or self._demand.exact
        if _FRONT_MATTER.match(item.text) and not is_value:
            return False
        if item.share >= self._enough and not _asks(item.text):
            return True
        above = self._above(item.hit)
        return not item.terms <= above.union(self._question.terms, _LABELS)

    def bearing(
        self, items: Sequence[EvidenceSentence], old: Iterable[EvidenceSentence]
    ) -> list[EvidenceSentence]:
        """Return the sentences that may answer where others say all that is asked but the answer:
        those which speak of it nearly as much, or go on about it with what is asked for."""
        said = [
            item for item in old if item.share >= _ALL_BUT_THE_ANSWER and _ENDS.search(item.text)
        ]
        enough = _NEARLY * max((item.share for item in said), default=0.0)
        return [
            item
            for item in items
            if item.share >= enough or item.around.is_turn or self._goes_on(item, said)
        ]

    def _goes_on(self, item: EvidenceSentence, said: Iterable[EvidenceSentence]) -> bool:
        """Tell whether a sentence has what is asked for and stands right behind one of others."""
        text = item.hit.text
        return has_answer_type(self._kind, item.text, self._question.text) and any(
            other.hit is item.hit and _NEXT.fullmatch(text, other.end, item.start) is not None
            for other in said
        )

    def _above(self, hit: Hit) -> frozenset[str]:
        return self._terms(f"{hit.title}\n{hit.heading}")

    def _days_of(self, hit: Hit) -> frozenset[str]:
        return hit_dates(hit) if self._question.dates else frozenset()

    def _terms(self, text: str) -> frozenset[str]:
        return frozenset(query_terms(text, self._outcome.languages))

    def _coverage(self, found: frozenset[str]) -> float:
        return coverage(self._question, found, self._outcome.statistics)

    def _standing(self, hit: Hit) -> float:
        return (hit.score - self._lowest) / self._span if self._span else 1.0


def _all(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*sets)


def _enough_said(question: str) -> float:
    """Return which share of a question a sentence must say to answer it with that alone."""
    if not asks_whether(question):
        return math.inf
    return _AS_ASKED if _asks(question) else _AS_SAID


def _asks(sentence: str) -> bool:
    return sentence.rstrip("\"'”’)*_").endswith(("?", "？"))


def same_document(one: EvidenceSentence, other: EvidenceSentence) -> bool:
    """Tell whether two sentences are from one document."""
    return one.hit.document == other.hit.document


def jaccard(one: Sequence[str] | frozenset[str], other: Sequence[str] | frozenset[str]) -> float:
    """Return the Jaccard index of two sets of terms."""
    left, right = frozenset(one), frozenset(other)
    return len(left & right) / len(left | right) if left | right else 0.0
