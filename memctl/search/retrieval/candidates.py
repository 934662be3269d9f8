"""What the legs bring up, from one or several knowledge bases, with both scores for each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from memctl.models.vector_math import dot_products
from memctl.schema.arrow_tables import VECTOR
from memctl.search.query.question import Question, slot_weight
from memctl.search.query.search_syntax import Node, mandatory_terms, matches_node
from memctl.search.retrieval.candidate_rows import (
    ColumnValues,
    RowView,
    SearchScope,
    TableRows,
    vector_matrix,
)
from memctl.search.retrieval.term_statistics import TermStatistics
from memctl.store.tables.snapshot import Snapshot

Sources = Mapping[str, Snapshot]
Key = tuple[str, str]
"""Knowledge base and memory id."""
RetrieverName = Literal["keyword", "vector"]
BOTH_RETRIEVERS: frozenset[RetrieverName] = frozenset(("keyword", "vector"))
_LOOKED_THROUGH = 1_000
"""Memories with all the words that must be there, of which those where everything holds are
taken; the index knows nothing of what stands side by side."""

_NO_TIME = (0.0, frozenset[str]())

Look = Callable[[], Sequence[int]]
"""Finds rows; gives their numbers."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that may be a hit."""

    key: Key
    number: int
    """Of its row."""
    level: str
    type: str
    source_ids: tuple[str, ...]
    keyword: float
    """BM25 of the question's terms, of which the times that it tells are some; 0 without any."""
    in_time: float
    """Of that, what the times that the question tells give."""
    vector: float
    """Cosine of its vector with the question's; 0 where there is none to compare by."""
    terms: frozenset[str]
    """Its terms that are the question's."""
    row: RowView = field(compare=False, repr=False)
    direction: NDArray[np.float32] | None = field(compare=False, repr=False)
    """Its vector; None where there is none to compare by."""


class CandidateCollector:
    """Finds candidates for one question and scores each exactly in both legs.

    Args:
        sources: Snapshots by the name of their knowledge base.
        question: The question.
        statistics: How common terms are in all the sources together.
        vectors: The question's vector for each source that there is one to compare by for.
        legs: The legs that look for candidates.
        required: What must hold of every candidate's terms, whatever brings it up.
    """

    def __init__(
        self,
        sources: Sources,
        question: Question,
        statistics: TermStatistics,
        vectors: Mapping[str, NDArray[np.float32]],
        legs: frozenset[RetrieverName] = BOTH_RETRIEVERS,
        required: Node | None = None,
    ) -> None:
        self._sources = sources
        self.question = question
        self._vectors = vectors
        self._looking = legs
        self._required = required
        self._scorer = KeywordScorer(question, statistics)
        self._times = [(time, statistics.idf(time.term)) for time in question.times]
        self._known: dict[str, dict[int, Candidate | None]] = {kb: {} for kb in sources}

    def gather(self, condition: SearchScope, limit: int) -> dict[Key, Candidate]:
        """Return what each leg finds best in each source, ``limit`` a leg and source."""
        found: dict[Key, Candidate] = {}
        for kb in self._sources:
            places = [condition.sources[kb], *self._of_its_times(kb, condition)]
            legs = (look() for place in places for look in self._legs(kb, place, limit))
            found |= self._candidates(kb, condition, chain.from_iterable(legs))
        return found

    def fetch(self, kb: str, ids: Sequence[str], condition: SearchScope) -> dict[Key, Candidate]:
        """Return these memories of one source, as far as the condition holds for them."""
        return self._candidates(kb, condition, condition.sources[kb].with_ids(ids))

    def turns(
        self, kb: str, places: Collection[tuple[str, int]], condition: SearchScope
    ) -> dict[Key, Candidate]:
        """Return what stands at places of one source's conversations: session and turn."""
        return self._candidates(kb, condition, condition.sources[kb].turns(places))

    def with_terms(
        self, terms: Iterable[str], condition: SearchScope, limit: int
    ) -> dict[Key, Candidate]:
        """Return the memories in which other terms than the question's weigh most, by source."""
        wanted = tuple(dict.fromkeys(terms))
        found: dict[Key, Candidate] = {}
        for kb in self._sources:
            numbers = condition.sources[kb].keyword(wanted, limit)
            found |= self._candidates(kb, condition, numbers)
        return found

    def _of_its_times(self, kb: str, condition: SearchScope) -> Iterator[TableRows]:
        """Yield the rows made in each span of time that the question tells."""
        for time in self.question.times:
            if not time.is_open:
                yield condition.sources[kb].also(time.created)

    def _legs(self, kb: str, source: TableRows, limit: int) -> Iterator[Look]:
        if "keyword" in self._looking and self.question.terms:
            terms = tuple(dict.fromkeys(chain(self.question.terms, *self.question.phrases)))
            yield partial(source.keyword, terms, limit)
        if self._required is not None and (sure := mandatory_terms(self._required)):
            yield partial(source.keyword, sure, _LOOKED_THROUGH, require_all=True)
        if "vector" in self._looking and kb in self._vectors:
            yield partial(source.nearest, self._vectors[kb], limit)

    def _candidates(
        self, kb: str, condition: SearchScope, numbers: Iterable[int]
    ) -> dict[Key, Candidate]:
        """Return the rows of these numbers of which holds what is required, each scored once."""
        wanted, known = list(dict.fromkeys(numbers)), self._known[kb]
        new = [number for number in wanted if number not in known]
        if new:
            known |= dict.fromkeys(new)
            table = condition.sources[kb].rows(new, with_vectors=kb in self._vectors)
            known |= self._scored(kb, new, table)
        found = (known[number] for number in wanted)
        return {candidate.key: candidate for candidate in found if candidate is not None}

    def _scored(self, kb: str, numbers: Sequence[int], table: pa.Table) -> dict[int, Candidate]:
        if self._required is not None:
            texts = table["search_text"].to_pylist()
            held = [
                at for at, text in enumerate(texts) if matches_node(self._required, f" {text} ")
            ]
            table = table.take(pa.array(held, pa.int64()))
            numbers = [numbers[at] for at in held]
        rows = ColumnValues(table)
        words = [self._scorer.score(text) for text in rows["search_text"]]
        times = [self._in_time(day) for day in rows["created_at"]] if self._times else []
        directions = self._directions(kb, table)
        cosine = self._cosines(kb, directions, table.num_rows)
        columns = [rows[name] for name in ("id", "level", "type", "source_ids")]
        return {
            numbers[at]: Candidate(
                key=(kb, id),
                number=numbers[at],
                level=level,
                type=type_,
                source_ids=tuple(source_ids or ()),
                keyword=score + in_time,
                in_time=in_time,
                vector=cosine[at],
                terms=terms | its_times,
                row=RowView(rows, at),
                direction=None if directions is None else directions[at],
            )
            for at, (id, level, type_, source_ids) in enumerate(zip(*columns, strict=True))
            for score, terms in [words[at]]
            for in_time, its_times in [times[at] if times else _NO_TIME]
        }

    def _in_time(self, created: datetime | None) -> tuple[float, frozenset[str]]:
        """Return what the times of the question count for a memory, and those it was made in."""
        if created is None:
            return _NO_TIME
        day = created.date()
        score = sum(weight * time.fit(day) for time, weight in self._times)
        return score, frozenset(time.term for time, _ in self._times if time.holds(day))

    def _cosines(
        self, kb: str, directions: NDArray[np.float32] | None, count: int
    ) -> Sequence[float]:
        if directions is None:
            return [0.0] * count
        exact: list[float] = cosines(self._vectors[kb], directions).tolist()
        return exact

    def _directions(self, kb: str, table: pa.Table) -> NDArray[np.float32] | None:
        return vector_matrix(table[VECTOR]) if kb in self._vectors else None


def keyword_scores(candidates: Sequence[Candidate]) -> NDArray[np.float64]:
    """Return the candidates' scores in the keyword leg."""
    return np.array([candidate.keyword for candidate in candidates], dtype=np.float64)


def vector_scores(candidates: Sequence[Candidate]) -> NDArray[np.float64]:
    """Return the candidates' scores in the vector leg."""
    return np.array([candidate.vector for candidate in candidates], dtype=np.float64)


SATURATION = 1.2
LENGTH_SHARE = 0.75
PHRASE_WEIGHT = 0.2
"""Share of a pair of neighbouring terms, as against the rarer of the two on its own; sequential
dependence after Metzler and Croft (2005)."""


class KeywordScorer:
    """BM25 of a question's terms, of its neighbouring terms standing next to each other, and of the
    phrases that stand for a term.

    The terms that one word may be found by weigh the same: a form that is rare because most
    records were stemmed by another language says no more than the form in these.
    """

    def __init__(self, question: Question, statistics: TermStatistics) -> None:
        self._average = max(statistics.average_length, 1.0)
        self._weights = _weights(question, statistics)
        self._pairs = {
            pair: PHRASE_WEIGHT * min(self._weights[pair[0]], self._weights[pair[1]])
            for pair in question.pairs
        }
        self._said = {pair: min(map(statistics.idf, pair)) for pair in question.phrases}

    def score(self, search_text: str) -> tuple[float, frozenset[str]]:
        """Return the score of one memory, 0 without any of the terms, and those that it has."""
        # Counting in one string is ten times as fast as in a list of terms.  With two spaces
        # between terms, neighbours do not share the space that a count has used up.
        text = f" {search_text.replace(' ', '  ')} "
        counts = {term: n for term in self._weights if (n := text.count(f" {term} "))}
        if not counts and not self._said:
            return 0.0, frozenset()
        terms = 1 + search_text.count(" ")
        length = 1 - LENGTH_SHARE + LENGTH_SHARE * terms / self._average
        single = sum(self._weights[term] * _saturated(n, length) for term, n in counts.items())
        said = sum(
            weight * _saturated(_neighbours(text, pair), length)
            for pair, weight in self._said.items()
        )
        return single + said + self._phrases(text, counts, length), frozenset(counts)

    def _phrases(self, text: str, counts: Mapping[str, int], length: float) -> float:
        return sum(
            weight * _saturated(_neighbours(text, pair), length)
            for pair, weight in self._pairs.items()
            if pair[0] in counts and pair[1] in counts
        )


def _weights(question: Question, statistics: TermStatistics) -> dict[str, float]:
    weights = {term: statistics.idf(term) for term in question.terms}
    for slot in question.slots:
        together = slot_weight(slot, statistics)
        weights |= {term: min(weights[term], together) for term in slot}
    return weights


def cosines(vector: NDArray[np.float32], vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the cosine of each row with a vector of length 1; 0 for a row of zeros."""
    lengths = np.linalg.norm(vectors, axis=1)
    lengths[lengths == 0] = 1
    result: NDArray[np.float64] = (dot_products(vectors, vector) / lengths).astype(np.float64)
    return result


def coverage(question: Question, found: frozenset[str], statistics: TermStatistics) -> float:
    """Return which share of the question's content, weighted by rarity, is among the terms."""
    weights = {slot: slot_weight(slot, statistics) for slot in question.slots}
    total = sum(weights.values())
    covered = sum(weight for slot, weight in weights.items() if not found.isdisjoint(slot))
    return covered / total if total else 0.0


def _neighbours(text: str, pair: tuple[str, str]) -> int:
    return text.count(f" {pair[0]}  {pair[1]} ")


def _saturated(count: int, length: float) -> float:
    return count * (SATURATION + 1) / (count + SATURATION * length)
