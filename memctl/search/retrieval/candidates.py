"""Candidates: memories that retrievers find, from one or several knowledge bases.

Retrievers give candidates and no scores: what an index says depends on which rows it has indexed
yet and on what the filters leave.  Every candidate is scored exactly here, by keyword and by
vector, whichever retriever found it.  To add a retriever, add an entry to ``RETRIEVERS``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from memctl.literals import Mode
from memctl.models.vector_math import dot_products
from memctl.schema.arrow_tables import VECTOR
from memctl.search.query.question import Question, Slot
from memctl.search.query.search_syntax import Node, mandatory_terms, matches_node
from memctl.search.query.time_expressions import created_within
from memctl.search.retrieval.candidate_rows import (
    ColumnValues,
    RowView,
    SearchScope,
    TableRows,
    vector_matrix,
)
from memctl.search.term_statistics import Sources, TermStatistics

Key = tuple[str, str]
"""Knowledge base and memory id."""

_SATURATION = 1.2
_LENGTH_SHARE = 0.75
"""The usual parameters of BM25, k1 and b."""
_PAIR_WEIGHT = 0.2
"""Weight of two neighbouring terms, as a share of the rarer one's; sequential dependence after
Metzler and Croft (2005)."""
_MAX_REQUIRED = 1_000
"""Memories read that have all required words; the index knows nothing of word order."""
_NO_TIME = (0.0, frozenset[str]())


class Candidate(Struct, frozen=True, eq=False):
    """A memory that may be a hit."""

    key: Key
    number: int
    """The number of its row."""
    level: str
    type: str
    source_ids: tuple[str, ...]
    keyword: float
    """BM25 of the question's terms, its periods among them; 0 without any."""
    in_time: float
    """The share of ``keyword`` that is due to periods."""
    vector: float
    """Cosine of its vector with the question's; 0 without a vector to compare."""
    terms: frozenset[str]
    """The question's terms that it has."""
    row: RowView
    direction: NDArray[np.float32] | None
    """Its vector; None without one to compare."""


# --- retrievers ----------------------------------------------------------------------------------


class RetrievalQuery(Struct, frozen=True):
    """What retrievers search for in one knowledge base."""

    question: Question
    required: Node | None
    """What must hold for every candidate, whichever retriever finds it."""
    vector: NDArray[np.float32] | None
    """The question's; None without one to compare."""


class Retriever(Struct, frozen=True):
    """A way to find candidates."""

    modes: frozenset[Mode]
    """The search modes that use it."""
    find: Callable[[RetrievalQuery, TableRows, int], Sequence[int]]
    """Returns the numbers of at most this many rows."""


def _find_by_keyword(query: RetrievalQuery, rows: TableRows, limit: int) -> Sequence[int]:
    if not query.question.terms:
        return ()
    terms = dict.fromkeys(chain(query.question.terms, *query.question.phrases))
    return rows.keyword(tuple(terms), limit)


def _find_required(query: RetrievalQuery, rows: TableRows, limit: int) -> Sequence[int]:
    del limit
    terms = mandatory_terms(query.required) if query.required is not None else ()
    return rows.keyword(terms, _MAX_REQUIRED, require_all=True) if terms else ()


def _find_nearest(query: RetrievalQuery, rows: TableRows, limit: int) -> Sequence[int]:
    return () if query.vector is None else rows.nearest(query.vector, limit)


RETRIEVERS: Sequence[Retriever] = (
    Retriever(frozenset(("hybrid", "graph", "keyword")), _find_by_keyword),
    Retriever(frozenset(("hybrid", "graph", "keyword")), _find_required),
    Retriever(frozenset(("hybrid", "graph", "vector")), _find_nearest),
)


class CandidateCollector:
    """Runs the retrievers for one question, and scores each candidate once.

    Args:
        sources: Snapshots by the name of their knowledge base.
        question: The question.
        statistics: How common terms are in all sources together.
        vectors: The question's vector for each source that has vectors to compare it with.
        mode: Selects the retrievers.
        required: What must hold for every candidate.
    """

    def __init__(
        self,
        sources: Sources,
        question: Question,
        statistics: TermStatistics,
        vectors: Mapping[str, NDArray[np.float32]],
        mode: Mode = "hybrid",
        required: Node | None = None,
    ) -> None:
        self._sources = sources
        self.question = question
        self._vectors = vectors
        self._retrievers = [each for each in RETRIEVERS if mode in each.modes]
        self._required = required
        self._scorer = KeywordScorer(question, statistics)
        self._times = [(time, statistics.idf(time.term)) for time in question.times]
        self._candidates_by_row: dict[str, dict[int, Candidate | None]] = {kb: {} for kb in sources}

    def collect(self, scope: SearchScope, limit: int) -> dict[Key, Candidate]:
        """Return the candidates, at most ``limit`` for each retriever and source.

        The memories made in a period that the question names are searched on their own as well.
        """
        found: dict[Key, Candidate] = {}
        periods = [created_within(time) for time in self.question.times if not time.is_open]
        for kb in self._sources:
            query = RetrievalQuery(self.question, self._required, self._vectors.get(kb))
            rows = scope.sources[kb]
            numbers = (
                retriever.find(query, part, limit)
                for part in [rows, *map(rows.restrict, periods)]
                for retriever in self._retrievers
            )
            found |= self._candidates(kb, scope, chain.from_iterable(numbers))
        return found

    def fetch(self, kb: str, ids: Sequence[str], scope: SearchScope) -> dict[Key, Candidate]:
        """Return those memories of one source that are in scope."""
        return self._candidates(kb, scope, scope.sources[kb].with_ids(ids))

    def turns(
        self, kb: str, places: Collection[tuple[str, int]], scope: SearchScope
    ) -> dict[Key, Candidate]:
        """Return the turns of one source at these places, given as session and number."""
        return self._candidates(kb, scope, scope.sources[kb].turns(places))

    def with_terms(
        self, terms: Iterable[str], scope: SearchScope, limit: int
    ) -> dict[Key, Candidate]:
        """Return the memories of each source in which these terms weigh most."""
        wanted = tuple(dict.fromkeys(terms))
        found: dict[Key, Candidate] = {}
        for kb in self._sources:
            found |= self._candidates(kb, scope, scope.sources[kb].keyword(wanted, limit))
        return found

    def texts(self, candidates: Sequence[Candidate]) -> list[str]:
        """Return the texts of candidates, which their rows lack."""
        rows = read_rows(self._sources, candidates, ("text",))
        return [rows[each.key]["text"] or "" for each in candidates]

    def _candidates(
        self, kb: str, scope: SearchScope, numbers: Iterable[int]
    ) -> dict[Key, Candidate]:
        """Return the rows of these numbers that meet what is required, each scored once."""
        wanted, known = list(dict.fromkeys(numbers)), self._candidates_by_row[kb]
        new = [number for number in wanted if number not in known]
        if new:
            known |= dict.fromkeys(new)
            table = scope.sources[kb].rows(new, with_vectors=kb in self._vectors)
            known |= self._score(kb, new, table)
        found = (known[number] for number in wanted)
        return {candidate.key: candidate for candidate in found if candidate is not None}

    def _score(self, kb: str, numbers: Sequence[int], table: pa.Table) -> dict[int, Candidate]:
        if self._required is not None:
            texts = table["search_text"].to_pylist()
            met = [at for at, text in enumerate(texts) if matches_node(self._required, f" {text} ")]
            table = table.take(pa.array(met, pa.int64()))
            numbers = [numbers[at] for at in met]
        rows = ColumnValues(table)
        words = [self._scorer.score(text, kb) for text in rows["search_text"]]
        times = [self._time_score(day) for day in rows["created_at"]] if self._times else []
        directions = vector_matrix(table[VECTOR]) if kb in self._vectors else None
        cosine: Sequence[float] = [0.0] * table.num_rows
        if directions is not None:
            cosine = cosines(self._vectors[kb], directions).tolist()
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
                terms=terms | periods,
                row=RowView(rows, at),
                direction=None if directions is None else directions[at],
            )
            for at, (id, level, type_, source_ids) in enumerate(zip(*columns, strict=True))
            for score, terms in [words[at]]
            for in_time, periods in [times[at] if times else _NO_TIME]
        }

    def _time_score(self, created: datetime | None) -> tuple[float, frozenset[str]]:
        """Return what the question's periods add for a memory, and those it was made in."""
        if created is None:
            return _NO_TIME
        day = created.date()
        score = sum(weight * time.fit(day) for time, weight in self._times)
        return score, frozenset(time.term for time, _ in self._times if time.contains(day))


def read_rows(
    sources: Sources, candidates: Sequence[Candidate], columns: Sequence[str]
) -> dict[Key, dict[str, Any]]:
    """Return columns of the rows of candidates, by their keys."""
    rows: dict[Key, dict[str, Any]] = {}
    for kb in dict.fromkeys(each.key[0] for each in candidates):
        own = [each for each in candidates if each.key[0] == kb]
        table = sources[kb].rows("memories", [each.number for each in own], columns)
        rows |= zip((each.key for each in own), table.to_pylist(), strict=True)
    return rows


# --- scores --------------------------------------------------------------------------------------


class KeywordScorer:
    """BM25 of a question's terms, with its neighbouring terms and its phrases.

    The terms of one slot weigh the same: a form that is rare because most records were stemmed in
    another language says no more than the common form.  The length of a memory counts against the
    average of its own source: a file isn't long because turns of chats are searched with it.
    """

    def __init__(self, question: Question, statistics: TermStatistics) -> None:
        self._average = statistics.average_length
        self._averages = statistics.lengths
        self._weights = _term_weights(question, statistics)
        self._spaced = {term: f" {term.replace(' ', '  ')} " for term in self._weights}
        self._pairs = {
            pair: _PAIR_WEIGHT * min(self._weights[pair[0]], self._weights[pair[1]])
            for pair in question.pairs
        }
        self._phrases = {pair: min(map(statistics.idf, pair)) for pair in question.phrases}

    def score(self, search_text: str, source: str = "") -> tuple[float, frozenset[str]]:
        """Return the score of one memory, 0 without any of the terms, and the terms it has."""
        # Counting in one string is ten times as fast as in a list of terms.  With two spaces
        # between terms, neighbours do not share the space that a count has used up.
        text = f" {search_text.replace(' ', '  ')} "
        counts = {term: n for term, each in self._spaced.items() if (n := text.count(each))}
        if not counts and not self._phrases:
            return 0.0, frozenset()
        terms = 1 + search_text.count(" ")
        average = max(self._averages.get(source, self._average), 1.0)
        length = 1 - _LENGTH_SHARE + _LENGTH_SHARE * terms / average
        score = sum(self._weights[term] * _saturate(n, length) for term, n in counts.items())
        for pair, weight in self._phrases.items():
            score += weight * _saturate(_count_pair(text, pair), length)
        for pair, weight in self._pairs.items():
            if pair[0] in counts and pair[1] in counts:
                score += weight * _saturate(_count_pair(text, pair), length)
        return score, frozenset(counts)


def cosines(vector: NDArray[np.float32], vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the cosine of each row with a vector of length 1; 0 for a row of zeros."""
    lengths = np.linalg.norm(vectors, axis=1)
    lengths[lengths == 0] = 1
    result: NDArray[np.float64] = (dot_products(vectors, vector) / lengths).astype(np.float64)
    return result


def slot_weights(question: Question, statistics: TermStatistics) -> dict[Slot, float]:
    """Return what each part of a question's content weighs, by rarity."""
    return {slot: statistics.slot_weight(slot) for slot in question.slots}


def coverage(weights: Mapping[Slot, float], found: frozenset[str]) -> float:
    """Return the share of a question's content that terms cover.

    Args:
        weights: What each part of the content weighs.
        found: The terms.
    """
    total = sum(weights.values())
    covered = sum(weight for slot, weight in weights.items() if not found.isdisjoint(slot))
    return covered / total if total else 0.0


def _term_weights(question: Question, statistics: TermStatistics) -> dict[str, float]:
    weights = {term: statistics.idf(term) for term in question.terms}
    for slot in question.slots:
        shared = statistics.slot_weight(slot)
        weights |= {term: min(weights[term], shared) for term in slot}
    return weights


def _count_pair(text: str, pair: tuple[str, str]) -> int:
    return text.count(f" {pair[0]}  {pair[1]} ")


def _saturate(count: int, length: float) -> float:
    return count * (_SATURATION + 1) / (count + _SATURATION * length)
