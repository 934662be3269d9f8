"""What the legs bring up, from one or several knowledge bases, with both scores for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from memctl.retrieve.question import Question
from memctl.retrieve.scoring import KeywordScorer, cosines
from memctl.retrieve.statistics import TermStatistics
from memctl.store.filters import Expr, col
from memctl.store.schema import VECTOR
from memctl.store.snapshot import Snapshot

Sources = Mapping[str, Snapshot]
Key = tuple[str, str]
"""Knowledge base and memory id."""
Leg = Literal["keyword", "vector"]
BOTH: frozenset[Leg] = frozenset(("keyword", "vector"))

_COLUMNS = ("id", "level", "type", "source_ids", "search_text")


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


class Gatherer:
    """Finds candidates for one question and scores each exactly in both legs.

    Args:
        sources: Snapshots by the name of their knowledge base.
        question: The question.
        statistics: How common terms are in all the sources together.
        vector: The question's vector; None where there is none to compare by.
        legs: The legs that look for candidates.
    """

    def __init__(
        self,
        sources: Sources,
        question: Question,
        statistics: TermStatistics,
        vector: NDArray[np.float32] | None,
        legs: frozenset[Leg] = BOTH,
    ) -> None:
        self._sources = sources
        self._question = question
        self._vector = vector
        self._looking = legs
        self._columns = _COLUMNS if vector is None else (*_COLUMNS, VECTOR)
        self._scorer = KeywordScorer(question, statistics)

    def gather(self, where: Expr, limit: int) -> dict[Key, Candidate]:
        """Return what each leg finds best in each source, ``limit`` a leg and source."""
        found: dict[Key, Candidate] = {}
        for kb, snapshot in self._sources.items():
            for table in self._legs(snapshot, where, limit):
                found |= self._scored(kb, table, found)
        return found

    def fetch(self, kb: str, ids: Iterable[str], where: Expr) -> dict[Key, Candidate]:
        """Return these memories of one source, as far as the condition holds for them."""
        table = self._sources[kb].scan("memories", where & col("id").is_in(ids), self._columns)
        return self._scored(kb, table, {})

    def _legs(self, snapshot: Snapshot, where: Expr, limit: int) -> Iterator[pa.Table]:
        if "keyword" in self._looking and self._question.terms:
            terms = dict.fromkeys(chain(self._question.terms, *self._question.phrases))
            yield snapshot.keyword(tuple(terms), where, limit, self._columns)
        if "vector" in self._looking and self._vector is not None:
            yield snapshot.nearest(self._vector, where, limit, self._columns)

    def _scored(
        self, kb: str, table: pa.Table, known: Mapping[Key, Candidate]
    ) -> dict[Key, Candidate]:
        new = [row for row, id in enumerate(table["id"].to_pylist()) if (kb, id) not in known]
        if not new:
            return {}
        table = table.take(new)
        texts: list[str] = table["search_text"].to_pylist()
        keyword = [self._scorer.score(text) for text in texts]
        vector = self._cosines(table)
        columns = [table[name].to_pylist() for name in ("id", "level", "type", "source_ids")]
        return {
            (kb, id): Candidate(
                key=(kb, id),
                level=level,
                type=type_,
                source_ids=tuple(source_ids or ()),
                keyword=keyword[row][0],
                vector=float(vector[row]),
                terms=keyword[row][1],
            )
            for row, (id, level, type_, source_ids) in enumerate(zip(*columns, strict=True))
        }

    def _cosines(self, table: pa.Table) -> NDArray[np.float64]:
        if self._vector is None:
            return np.zeros(table.num_rows)
        return cosines(self._vector, _matrix(table[VECTOR]))


def keywords(candidates: Sequence[Candidate]) -> NDArray[np.float64]:
    """Return the candidates' scores in the keyword leg."""
    return np.array([candidate.keyword for candidate in candidates], dtype=np.float64)


def vectors(candidates: Sequence[Candidate]) -> NDArray[np.float64]:
    """Return the candidates' scores in the vector leg."""
    return np.array([candidate.vector for candidate in candidates], dtype=np.float64)


def _matrix(column: pa.ChunkedArray) -> NDArray[np.float32]:
    # A null vector would make `flatten` skip its row.
    flat = column.combine_chunks().fill_null([0.0] * column.type.list_size).flatten()
    return np.asarray(flat).astype(np.float32).reshape(len(column), column.type.list_size)
