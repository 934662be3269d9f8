"""The sentences of the best hits, each with how well it may answer the question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memctl.records import Hit
from memctl.retrieve.days import day_terms, days_of
from memctl.retrieve.expectation import kind_of, meets
from memctl.retrieve.forms import is_row, states
from memctl.retrieve.scoring import cosines, coverage
from memctl.understand.sentences import sentences
from memctl.understand.terms import query_terms, terms

if TYPE_CHECKING:
    from memctl.retrieve.search import SearchOutcome

LONGEST = 400
"""Characters of a quote; a longer sentence is cut between words."""
_HITS = 8
_SHORTEST = 12
_FRONT_MATTER = re.compile(r"(?:title|author|tags|name|subject|from|to|cc)\s*:", re.IGNORECASE)
_LABELS = frozenset(terms("title name subject heading"))
"""What a line is labelled with that says no more than they do."""
_MOST_A_HIT = 60

_FROM_SENTENCE, _FROM_CONTEXT, _FROM_VECTOR, _FROM_RANK, _FROM_KIND = 1.0, 0.8, 0.6, 0.6, 0.3
_FOR_A_QUESTION = -1.0
_FOR_A_TITLE = -0.5
_FOR_STATING = 0.5
"""To a sentence that says of the very thing asked for what it is."""
_FOR_ANOTHERS_ROW = -0.8
"""To a row of a table without a name or a date that the question has."""
_FOR_A_REPLY = 0.7
"""To the sentence after a question, of what that question covers."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of a hit."""

    hit: Hit
    start: int
    """Offset in the hit's text."""
    end: int
    score: float
    share: float
    """Which share of the question's content the sentence itself speaks of, 0 to 1."""
    covered: frozenset[tuple[str, ...]]
    """The question's slots that the sentence itself speaks of."""
    terms: frozenset[str]

    @property
    def text(self) -> str:
        """The sentence, exactly as it stands there."""
        return self.hit.text[self.start : self.end]


def statements(outcome: SearchOutcome) -> list[Statement]:
    """Return the sentences of the best hits, best first; ties in the order of the hits."""
    judge = _Judge(outcome)
    found = [item for hit in outcome.hits[:_HITS] for item in judge.judged(hit)]
    found = [item for item in found if judge.is_new(item)] or found
    return sorted(found, key=lambda item: (-item.score, item.hit.rank, item.start))


class _Judge:
    """Scores sentences for one question."""

    def __init__(self, outcome: SearchOutcome) -> None:
        self._outcome = outcome
        self._question = outcome.question
        self._kind = kind_of(outcome.question.text)
        scores = [hit.score for hit in outcome.hits[:_HITS]]
        self._lowest = min(scores, default=0.0)
        self._span = max(scores, default=0.0) - self._lowest

    def judged(self, hit: Hit) -> Iterator[Statement]:
        """Yield the sentences of a hit with their scores."""
        spans = _spans(hit.text)
        texts = [hit.text[start:end] for start, end in spans]
        own_terms = [self._spoken(hit, text) for text in texts]
        everything = self._terms(f"{hit.title}\n{hit.heading}").union(*own_terms)
        everything |= self._days_of(hit)
        shared = _FROM_CONTEXT * self._coverage(everything) + _FROM_RANK * self._standing(hit)
        near = cosines(self._outcome.vector, self._outcome.embedder.embed(texts))
        replied_to = 0.0
        for row, (start, end) in enumerate(spans):
            own = self._coverage(own_terms[row])
            score = _FROM_SENTENCE * own + _FROM_VECTOR * float(near[row]) + shared + replied_to
            score += self._suits(texts[row]) + self._form(texts[row], own_terms[row])
            score += _FOR_A_TITLE if _is_title(hit, start, end) else 0.0
            covered = frozenset(s for s in self._question.slots if not own_terms[row].isdisjoint(s))
            yield Statement(hit, start, end, score, own, covered, own_terms[row])
            replied_to = _FOR_A_REPLY * own if _asks(texts[row]) else 0.0

    def _suits(self, sentence: str) -> float:
        suits = _FROM_KIND * meets(self._kind, sentence, self._question.text)
        return suits + (_FOR_A_QUESTION if _asks(sentence) else 0.0)

    def _form(self, sentence: str, own_terms: frozenset[str]) -> float:
        stated = states(self._question, sentence, self._outcome.languages)
        named = (*self._question.names, *self._question.dates)
        strange = is_row(sentence) and any(map(own_terms.isdisjoint, named))
        return _FOR_STATING * stated + _FOR_ANOTHERS_ROW * strange

    def is_new(self, item: Statement) -> bool:
        """Tell whether a sentence says more than the question and the titles above it."""
        if _FRONT_MATTER.match(item.text) and not is_row(item.text):
            return False
        named = self._terms(f"{item.hit.title}\n{item.hit.heading}")
        return not item.terms <= named.union(self._question.terms, _LABELS)

    def _terms(self, text: str) -> frozenset[str]:
        return frozenset(query_terms(text, self._outcome.languages))

    def _spoken(self, hit: Hit, text: str) -> frozenset[str]:
        found = self._terms(text)
        return found | day_terms(text, hit.created_at) if self._question.dates else found

    def _days_of(self, hit: Hit) -> frozenset[str]:
        return days_of(hit) if self._question.dates else frozenset()

    def _coverage(self, found: frozenset[str]) -> float:
        return coverage(self._question, found, self._outcome.statistics)

    def _standing(self, hit: Hit) -> float:
        return (hit.score - self._lowest) / self._span if self._span else 1.0


def _is_title(hit: Hit, start: int, end: int) -> bool:
    """Tell whether a sentence of a passage is a line that stands above others."""
    line = hit.text[start:end]
    alone = hit.text[end : end + 1] == "\n" and hit.text[start - 1 : start] in ("", "\n")
    return hit.type == "passage" and alone and line[:1].isalnum() and line[-1:].isalnum()


def _asks(sentence: str) -> bool:
    return sentence.rstrip("\"'”’)*_").endswith(("?", "？"))


def _spans(text: str) -> list[tuple[int, int]]:
    whole = [
        part
        for start, end in sentences(text)
        if not text.startswith("#", start)
        for part in _cut(text, start, end)
    ]
    told = [(start, end) for start, end in whole if end - start >= _SHORTEST]
    return (told or whole)[:_MOST_A_HIT]


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut what has no sentences, such as a row of a table, at lines or else between words."""
    while end - start > LONGEST:
        at = max(text.rfind("\n", start, start + LONGEST), start)
        if at == start:
            at = max(text.rfind(" ", start, start + LONGEST), start)
        at = at if at > start else start + LONGEST
        yield start, at
        start = at + len(text[at:end]) - len(text[at:end].lstrip())
    if start < end:
        yield start, end


def same_document(one: Statement, other: Statement) -> bool:
    """Tell whether two sentences are from one document."""
    return (one.hit.kb, one.hit.document_id or one.hit.memory_id) == (
        other.hit.kb,
        other.hit.document_id or other.hit.memory_id,
    )


def likeness(one: Sequence[str] | frozenset[str], other: Sequence[str] | frozenset[str]) -> float:
    """Return the Jaccard index of two sets of terms."""
    left, right = frozenset(one), frozenset(other)
    return len(left & right) / len(left | right) if left | right else 0.0
