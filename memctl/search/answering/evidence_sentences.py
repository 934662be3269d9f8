"""Evidence sentences: those of the best hits, with how well each may answer the question."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

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
    quotable_parts,
    split_parts,
    states_value,
)
from memctl.search.answering.relevance import Certainty, score_gap
from memctl.search.answering.search_outcome import SearchOutcome
from memctl.search.query.question import Slot
from memctl.search.query.time_expressions import date_terms, hit_dates, matching_times
from memctl.search.retrieval.candidates import cosines, coverage

MAX_HITS_READ = 8
"""Number of the best hits that are read for an answer, however few are to be shown."""
_FRONT_MATTER = re.compile(r"(?:title|author|tags|name|subject|from|to|cc)\s*:", re.IGNORECASE)
_LABELS = frozenset(terms("title name subject heading"))
"""Labels of lines that say no more than the titles above."""
_MIN_SAID, _MIN_STATED = 0.5, 0.999
"""A sentence that covers this share of a yes-or-no question answers it without saying more; and
this share of a question without a question mark, such as a statement."""
_ALL_BUT_THE_ANSWER, _NEARLY = 0.8, 0.6
"""Where a sentence covers 0.8 of a question and says nothing else, one that answers must cover 0.6
of what that one covers."""
_ENDS = re.compile(r"[.!。！।]\W*$")
"""A title or a label does not end like a sentence."""
_NEXT = re.compile(r"[^\S\n]*\n?[^\S\n]*")
"""Between sentences of one paragraph."""
_CONTINUED = 3
"""Number of sentences before it that one without a subject may continue."""

_OWN_WEIGHT, _CONTEXT_WEIGHT, _COSINE_WEIGHT, _RANK_WEIGHT, _TYPE_WEIGHT = 1.0, 0.8, 0.6, 0.6, 0.3
_DECISION_WEIGHT = 0.6
"""In place of the type's weight: the words for a decision stand for the question's own verb."""
_MIN_CURRENT_SHARE = 0.6
"""A sentence with this share of the score replaces one that is no longer true."""
_QUESTION_WEIGHT = -1.0
_TITLE_WEIGHT = -0.5
_STATES_WEIGHT = 0.5
"""For a sentence that says what the very thing asked for is."""
_OTHER_ROW_WEIGHT = -0.8
"""For a table row without a name or a date of the question."""
_REPLY_WEIGHT = 0.7
"""For the sentence after a question, times what that question covers."""


@dataclass(frozen=True, slots=True)
class EvidenceSentence:
    """A sentence of a hit."""

    hit: Hit
    start: int
    """Offset in the hit's text."""
    end: int
    path: str
    """The keys above a value of structured data."""
    score: float
    share: float
    """Share of the question's content that the sentence itself covers, 0 to 1."""
    covered: frozenset[Slot]
    """The question's slots that the sentence itself covers."""
    terms: frozenset[str]
    context: SentenceContext
    is_informative: bool = True
    """Whether it says more than the question, or confirms what is asked."""

    @property
    def text(self) -> str:
        """The sentence, exactly as it is in the hit."""
        return self.hit.text[self.start : self.end]

    @property
    def has_ended(self) -> bool:
        """Whether more than half of it is a fact that has ended."""
        if self.hit.start is None:
            return False
        first, last = self.hit.start + self.start, self.hit.start + self.end
        return any(
            min(last, fact.end) - max(first, fact.start) > (last - first) / 2
            for fact in self.hit.ended
        )


def rank_sentences(outcome: SearchOutcome) -> list[EvidenceSentence]:
    """Return the sentences of the best hits, best first; ties in the order of the hits.

    Those that say no more than the question are returned only where no others are about it: they
    are no answer, but the closest there is.
    """
    scorer = _SentenceScorer(outcome)
    found = [item for hit in outcome.hits[:MAX_HITS_READ] for item in scorer.score(hit)]
    uninformative = [item for item in found if not item.is_informative]
    new = scorer.relevant([item for item in found if item.is_informative], uninformative)
    return sorted(new or uninformative, key=lambda item: (-item.score, item.hit.rank, item.start))


def select_answering(
    sentences: Sequence[EvidenceSentence], outcome: SearchOutcome
) -> list[EvidenceSentence]:
    """Return the sentences that meet the answer constraints, best first.

    Facts that have ended are among them only where nothing else answers nearly as well.
    """
    near = [
        item
        for item in sentences
        if item.is_informative
        and not outcome.numbered.are_others_in(
            f"{item.hit.title}\n{item.hit.heading}\n{item.context.text}"
        )
    ]
    found = [item for item in near if outcome.constraints.are_met_by(item.context)]
    if not found:
        found = [item for item in near if outcome.loose_constraints.are_met_by(item.context)]
    current = [item for item in found if not item.has_ended]
    is_current = bool(current) and current[0].score >= _MIN_CURRENT_SHARE * found[0].score
    return current if is_current else found


def judge_certainty(outcome: SearchOutcome, sentences: Sequence[EvidenceSentence]) -> Certainty:
    """Return how certain it is that the hits, of which these are the sentences, have the answer."""
    gap = score_gap([item.score for item in sentences])
    return Certainty(outcome.relevance, outcome.lead, gap)


class _SentenceScorer:
    """Scores sentences for one question."""

    def __init__(self, outcome: SearchOutcome) -> None:
        self._outcome = outcome
        self._question = outcome.question
        self._constraints = outcome.constraints
        self._type = classify_question(outcome.question.text)
        self._min_said = _min_said(outcome.question.text)
        scores = [hit.score for hit in outcome.hits[:MAX_HITS_READ]]
        self._lowest = min(scores, default=0.0)
        self._span = max(scores, default=0.0) - self._lowest

    def score(self, hit: Hit) -> Iterator[EvidenceSentence]:
        """Yield the sentences of a hit with their scores."""
        parts = split_parts(hit)
        terms_of = [self._part_terms(hit, part) for part in parts]
        dates = hit_dates(hit) if self._question.dates else frozenset[str]()
        everything = _union([self._above(hit), dates, *terms_of])
        rank = (hit.score - self._lowest) / self._span if self._span else 1.0
        shared = _CONTEXT_WEIGHT * self._coverage(everything) + _RANK_WEIGHT * rank
        near = self._cosines(parts)
        reply = 0.0
        for place in quotable_parts(parts):
            part, own_terms = parts[place], terms_of[place]
            own = self._coverage(own_terms)
            score = _OWN_WEIGHT * own + _COSINE_WEIGHT * float(near[place]) + shared + reply
            score += self._form_score(part, own_terms)
            item = EvidenceSentence(
                hit=hit,
                start=part.start,
                end=part.end,
                path=part.path,
                score=score,
                share=own,
                covered=frozenset(s for s in self._question.slots if not own_terms.isdisjoint(s)),
                terms=own_terms,
                context=self._context(hit, parts, terms_of, place),
            )
            yield replace(item, is_informative=self._is_informative(item))
            reply = _REPLY_WEIGHT * own if _is_question(part.text) else 0.0

    def relevant(
        self, items: Sequence[EvidenceSentence], uninformative: Iterable[EvidenceSentence]
    ) -> list[EvidenceSentence]:
        """Return the sentences that may answer, where others say all of the question.

        These cover nearly as much of it, or continue such a sentence with an answer of its type.
        """
        said = [
            item
            for item in uninformative
            if item.share >= _ALL_BUT_THE_ANSWER and _ENDS.search(item.text)
        ]
        least = _NEARLY * max((item.share for item in said), default=0.0)
        return [
            item
            for item in items
            if item.share >= least or item.context.is_turn or self._continues(item, said)
        ]

    def _continues(self, item: EvidenceSentence, said: Iterable[EvidenceSentence]) -> bool:
        """Tell whether a sentence directly follows one of others and has the answer's type."""
        text = item.hit.text
        return has_answer_type(self._type, item.text, self._question.text) and any(
            other.hit is item.hit and _NEXT.fullmatch(text, other.end, item.start) is not None
            for other in said
        )

    def _cosines(self, parts: Sequence[Part]) -> NDArray[np.float64]:
        vector = self._outcome.vector
        if vector is None:
            return np.zeros(len(parts))
        texts = [part.text_with_path for part in parts]
        return cosines(vector, self._outcome.embedder.embed(texts))

    def _part_terms(self, hit: Hit, part: Part) -> frozenset[str]:
        """Return the terms of a sentence, with those that its figures and its time imply."""
        text = part.text_with_path
        found = self._terms(text) | matching_times(self._question, hit)
        if self._question.dates:
            found |= date_terms(part.text, hit.created_at)
        value = self._constraints.value
        if value is not None and has_value(value.kind, text):
            found |= self._constraints.naming
        return found

    def _context(
        self, hit: Hit, parts: Sequence[Part], terms_of: Sequence[frozenset[str]], place: int
    ) -> SentenceContext:
        is_row = is_table_row(parts[place].text)
        before = [] if is_row else terms_of[max(0, place - _CONTINUED) : place]
        beside = [] if is_row else terms_of[max(0, place - 1) : place + 2]
        speaker = terms_of[:1] if hit.type == "turn" else []
        return SentenceContext(
            parts[place].text_with_path,
            terms_of[place],
            before=_union([*before, *speaker]),
            beside=_union([*beside, *speaker]),
            above=self._above(hit),
            whole=_union([self._above(hit), *terms_of]),
            is_turn=hit.type == "turn",
        )

    def _form_score(self, part: Part, own_terms: frozenset[str]) -> float:
        """Return what the form of a sentence adds to its score."""
        question, text = self._question, part.text_with_path
        weight = _DECISION_WEIGHT if self._type == "decision" else _TYPE_WEIGHT
        score = weight * has_answer_type(self._type, text, question.text)
        if _is_question(text):
            score += _QUESTION_WEIGHT
        if states_value(question, text, self._outcome.languages):
            score += _STATES_WEIGHT
        names = (*question.names, *question.dates)
        if is_table_row(text) and any(map(own_terms.isdisjoint, names)):
            score += _OTHER_ROW_WEIGHT
        return score + (_TITLE_WEIGHT if part.is_title else 0.0)

    def _is_informative(self, item: EvidenceSentence) -> bool:
        """Tell whether a sentence says more than the question and its titles, or confirms it."""
        is_value = item.path or is_table_row(item.text) or self._constraints.value
        if _FRONT_MATTER.match(item.text) and not is_value:
            return False
        if item.share >= self._min_said and not _is_question(item.text):
            return True
        above = self._above(item.hit)
        return not item.terms <= above.union(self._question.terms, _LABELS)

    def _above(self, hit: Hit) -> frozenset[str]:
        return self._terms(f"{hit.title}\n{hit.heading}")

    def _terms(self, text: str) -> frozenset[str]:
        return frozenset(query_terms(text, self._outcome.languages))

    def _coverage(self, found: frozenset[str]) -> float:
        return coverage(self._question, found, self._outcome.statistics)


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*sets)


def _min_said(question: str) -> float:
    """Return the share of a question that a sentence must cover to answer by saying only that."""
    if not asks_whether(question):
        return math.inf
    return _MIN_SAID if _is_question(question) else _MIN_STATED


def _is_question(sentence: str) -> bool:
    return sentence.rstrip("\"'”’)*_").endswith(("?", "？"))
