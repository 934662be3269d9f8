"""What the legs bring up, from one or several knowledge bases, with both scores for each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from memctl.retrieve.kept import COLUMNS, Condition, Row, Rows, matrix
from memctl.retrieve.question import Question
from memctl.retrieve.scoring import KeywordScorer, cosines
from memctl.retrieve.statistics import TermStatistics
from memctl.retrieve.syntax import Node, holds, sure_terms
from memctl.store.filters import Expr, both, col
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

Look = Callable[[], pa.Table]
"""Finds memories; their rows have the columns of candidates."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that may be a hit."""

    key: Key
    level: str
    type: str
    source_ids: tuple[str, ...]
    keyword: float
    """BM25 of the question's terms; 0 without any of them."""
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

    def gather(self, condition: Condition, limit: int) -> dict[Key, Candidate]:
        """Return what each leg finds best in each source, ``limit`` a leg and source."""
        found: dict[Key, Candidate] = {}
        for kb in self._sources:
            for look in self._legs(kb, condition, limit):
                found |= self._scored(kb, look(), found)
        return found

    def fetch(self, kb: str, ids: Sequence[str], condition: Condition) -> dict[Key, Candidate]:
        """Return these memories of one source, as far as the condition holds for them."""
        kept = condition.kept.get(kb)
        if kept is not None:
            return self._scored(kb, kept.get(ids), {})
        return self._matching(kb, both(condition.where, col("id").is_in(ids)))

    def turns(
        self, kb: str, places: Collection[tuple[str, int]], condition: Condition
    ) -> dict[Key, Candidate]:
        """Return what stands at places of one source's conversations: session and turn."""
        kept = condition.kept.get(kb)
        if kept is not None:
            return self._scored(kb, kept.turns(places), {})
        sessions, numbers = (sorted(set(each)) for each in zip(*places, strict=True))
        where = col("session_id").is_in(sessions) & col("turn").is_in(numbers)
        return self._matching(kb, both(condition.where, where))

    def with_terms(
        self, terms: Iterable[str], condition: Condition, limit: int
    ) -> dict[Key, Candidate]:
        """Return the memories in which other terms than the question's weigh most, by source."""
        wanted = tuple(dict.fromkeys(terms))
        found: dict[Key, Candidate] = {}
        for kb in self._sources:
            found |= self._scored(kb, self._keyword(kb, wanted, condition, limit), found)
        return found

    def _matching(self, kb: str, where: Expr | None) -> dict[Key, Candidate]:
        table = self._sources[kb].scan("memories", where, self._columns(kb))
        return self._scored(kb, table, {})

    def _columns(self, kb: str) -> tuple[str, ...]:
        return (*COLUMNS, VECTOR) if kb in self._vectors else COLUMNS

    def _legs(self, kb: str, condition: Condition, limit: int) -> Iterator[Look]:
        if "keyword" in self._looking and self.question.terms:
            terms = tuple(dict.fromkeys(chain(self.question.terms, *self.question.phrases)))
            yield partial(self._keyword, kb, terms, condition, limit)
        if self._required is not None and (sure := sure_terms(self._required)):
            yield partial(self._keyword, kb, sure, condition, _LOOKED_THROUGH, require_all=True)
        if "vector" in self._looking and kb in self._vectors:
            yield partial(self._nearest, kb, condition, limit)

    def _keyword(
        self,
        kb: str,
        terms: Sequence[str],
        condition: Condition,
        limit: int,
        *,
        require_all: bool = False,
    ) -> pa.Table:
        kept, snapshot = condition.kept.get(kb), self._sources[kb]
        if kept is None:
            columns = self._columns(kb)
            return snapshot.keyword(terms, condition.where, limit, columns, require_all)
        found = snapshot.keyword(terms, condition.where, limit, ("id",), require_all)
        return kept.get(found["id"].to_pylist())

    def _nearest(self, kb: str, condition: Condition, limit: int) -> pa.Table:
        kept = condition.kept.get(kb)
        if kept is not None:
            return kept.nearest(self._vectors[kb], limit)
        return self._sources[kb].nearest(
            self._vectors[kb], condition.where, limit, self._columns(kb)
        )

    def _scored(
        self, kb: str, table: pa.Table, known: Mapping[Key, Candidate]
    ) -> dict[Key, Candidate]:
        new = [row for row, id in enumerate(table["id"].to_pylist()) if (kb, id) not in known]
        if self._required is not None:
            texts = table["search_text"].to_pylist()
            new = [row for row in new if holds(self._required, f" {texts[row]} ")]
        if not new:
            return {}
        if len(new) < table.num_rows:
            table = table.take(new)
        rows = Rows(table)
        keyword = [self._scorer.score(text) for text in rows["search_text"]]
        directions = self._directions(kb, table)
        cosine = self._cosines(kb, directions, table.num_rows)
        columns = [rows[name] for name in ("id", "level", "type", "source_ids")]
        return {
            (kb, id): Candidate(
                key=(kb, id),
                level=level,
                type=type_,
                source_ids=tuple(source_ids or ()),
                keyword=keyword[at][0],
                vector=cosine[at],
                terms=keyword[at][1],
                row=Row(rows, at),
                direction=None if directions is None else directions[at],
            )
            for at, (id, level, type_, source_ids) in enumerate(zip(*columns, strict=True))
        }

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
