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

from memctl.retrieve.kept import Condition, Row, Rows, Stored, matrix
from memctl.retrieve.question import Question
from memctl.retrieve.scoring import KeywordScorer, cosines
from memctl.retrieve.statistics import TermStatistics
from memctl.retrieve.syntax import Node, holds, sure_terms
from memctl.store.schema import VECTOR
from memctl.store.snapshot import Snapshot

Sources = Mapping[str, Snapshot]
Key = tuple[str, str]
"""Knowledge base and memory id."""
Leg = Literal["keyword", "vector"]
BOTH: frozenset[Leg] = frozenset(("keyword", "vector"))
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
    row: Row = field(compare=False, repr=False)
    direction: NDArray[np.float32] | None = field(compare=False, repr=False)
    """Its vector; None where there is none to compare by."""


class Gatherer:
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
        legs: frozenset[Leg] = BOTH,
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

    def gather(self, condition: Condition, limit: int) -> dict[Key, Candidate]:
        """Return what each leg finds best in each source, ``limit`` a leg and source."""
        found: dict[Key, Candidate] = {}
        for kb in self._sources:
            places = [condition.sources[kb], *self._of_its_times(kb, condition)]
            legs = (look() for place in places for look in self._legs(kb, place, limit))
            found |= self._candidates(kb, condition, chain.from_iterable(legs))
        return found

    def fetch(self, kb: str, ids: Sequence[str], condition: Condition) -> dict[Key, Candidate]:
        """Return these memories of one source, as far as the condition holds for them."""
        return self._candidates(kb, condition, condition.sources[kb].with_ids(ids))

    def turns(
        self, kb: str, places: Collection[tuple[str, int]], condition: Condition
    ) -> dict[Key, Candidate]:
        """Return what stands at places of one source's conversations: session and turn."""
        return self._candidates(kb, condition, condition.sources[kb].turns(places))

    def with_terms(
        self, terms: Iterable[str], condition: Condition, limit: int
    ) -> dict[Key, Candidate]:
        """Return the memories in which other terms than the question's weigh most, by source."""
        wanted = tuple(dict.fromkeys(terms))
        found: dict[Key, Candidate] = {}
        for kb in self._sources:
            numbers = condition.sources[kb].keyword(wanted, limit)
            found |= self._candidates(kb, condition, numbers)
        return found

    def _of_its_times(self, kb: str, condition: Condition) -> Iterator[Stored]:
        """Yield the rows made in each span of time that the question tells."""
        for time in self.question.times:
            if not time.is_open:
                yield condition.sources[kb].also(time.created)

    def _legs(self, kb: str, source: Stored, limit: int) -> Iterator[Look]:
        if "keyword" in self._looking and self.question.terms:
            terms = tuple(dict.fromkeys(chain(self.question.terms, *self.question.phrases)))
            yield partial(source.keyword, terms, limit)
        if self._required is not None and (sure := sure_terms(self._required)):
            yield partial(source.keyword, sure, _LOOKED_THROUGH, require_all=True)
        if "vector" in self._looking and kb in self._vectors:
            yield partial(source.nearest, self._vectors[kb], limit)

    def _candidates(
        self, kb: str, condition: Condition, numbers: Iterable[int]
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
            held = [at for at, text in enumerate(texts) if holds(self._required, f" {text} ")]
            table = table.take(pa.array(held, pa.int64()))
            numbers = [numbers[at] for at in held]
        rows = Rows(table)
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
                row=Row(rows, at),
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
        return matrix(table[VECTOR]) if kb in self._vectors else None


def keywords(candidates: Sequence[Candidate]) -> NDArray[np.float64]:
    """Return the candidates' scores in the keyword leg."""
    return np.array([candidate.keyword for candidate in candidates], dtype=np.float64)


def vectors(candidates: Sequence[Candidate]) -> NDArray[np.float64]:
    """Return the candidates' scores in the vector leg."""
    return np.array([candidate.vector for candidate in candidates], dtype=np.float64)
