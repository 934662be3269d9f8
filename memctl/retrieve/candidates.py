"""What the legs bring up, from one or several knowledge bases, with both scores for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from memctl.retrieve.question import Question
from memctl.retrieve.scoring import KeywordScorer, cosines
from memctl.retrieve.statistics import TermStatistics
from memctl.store.filters import Expr, both, col
from memctl.store.schema import VECTOR
from memctl.store.snapshot import Snapshot

MOST_KEPT = 10_000
"""Reading so many rows whole takes as long as fetching a few hundred of them three times."""

Sources = Mapping[str, Snapshot]
Key = tuple[str, str]
"""Knowledge base and memory id."""
Leg = Literal["keyword", "vector"]
BOTH: frozenset[Leg] = frozenset(("keyword", "vector"))

COLUMNS = (
    "id",
    "level",
    "type",
    "source_ids",
    "search_text",
    "document_id",
    "namespace",
    "title",
    "entities",
    "speaker",
    "session_id",
    "turn",
)


Look = Callable[[Sequence[str]], pa.Table]
"""Finds memories, with the columns that it is given."""


class Kept:
    """All rows of a small table in memory: to look some up there takes no time."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._table = snapshot.scan("memories", None, (*COLUMNS, VECTOR)).combine_chunks()
        self._at = {id: at for at, id in enumerate(self._table["id"].to_pylist())}

    def get(self, ids: Iterable[str]) -> pa.Table:
        """Return the rows with these ids, in their order; ids that do not exist are skipped."""
        places = [self._at[id] for id in ids if id in self._at]
        return self._table.take(pa.array(places, pa.int64()))


def kept(snapshot: Snapshot) -> Kept | None:
    """Return the rows of a snapshot's memories where they are few, else None."""
    return Kept(snapshot) if snapshot.count("memories") <= MOST_KEPT else None


class Rows:
    """Rows of memories, each column turned into values when it is first asked for."""

    __slots__ = ("_columns", "_table")

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self._columns: dict[str, list[Any]] = {}

    def __getitem__(self, column: str) -> list[Any]:
        if column not in self._columns:
            self._columns[column] = self._table[column].to_pylist()
        return self._columns[column]


class Row:
    """What is stored of one candidate."""

    __slots__ = ("_at", "_rows")

    def __init__(self, rows: Rows, at: int) -> None:
        self._rows = rows
        self._at = at

    def __getitem__(self, column: str) -> Any:
        return self._rows[column][self._at]


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
        kept: The rows of sources that are small enough to be kept in memory.
    """

    def __init__(
        self,
        sources: Sources,
        question: Question,
        statistics: TermStatistics,
        vectors: Mapping[str, NDArray[np.float32]],
        legs: frozenset[Leg] = BOTH,
        kept: Mapping[str, Kept] | None = None,
    ) -> None:
        self._sources = sources
        self._kept = kept or {}
        self.question = question
        self._vectors = vectors
        self._looking = legs
        self._scorer = KeywordScorer(question, statistics)

    def gather(self, where: Expr | None, limit: int) -> dict[Key, Candidate]:
        """Return what each leg finds best in each source, ``limit`` a leg and source."""
        found: dict[Key, Candidate] = {}
        for kb, snapshot in self._sources.items():
            for look in self._legs(kb, snapshot, where, limit):
                found |= self._found(kb, look, found)
        return found

    def fetch(self, kb: str, ids: Iterable[str], where: Expr | None) -> dict[Key, Candidate]:
        """Return these memories of one source, as far as the condition holds for them."""
        kept = self._kept.get(kb)
        if kept is not None and where is None:
            return self._scored(kb, kept.get(ids), {})
        return self.matching(kb, both(where, col("id").is_in(ids)))

    def matching(self, kb: str, where: Expr | None) -> dict[Key, Candidate]:
        """Return all memories of one source for which a condition holds."""
        table = self._sources[kb].scan("memories", where, self._columns(kb))
        return self._scored(kb, table, {})

    def with_terms(
        self, terms: Iterable[str], where: Expr | None, limit: int
    ) -> dict[Key, Candidate]:
        """Return the memories in which other terms than the question's weigh most, by source."""
        wanted = tuple(dict.fromkeys(terms))
        found: dict[Key, Candidate] = {}
        for kb, snapshot in self._sources.items():
            found |= self._found(kb, partial(snapshot.keyword, wanted, where, limit), found)
        return found

    def _found(self, kb: str, look: Look, known: Mapping[Key, Candidate]) -> dict[Key, Candidate]:
        """Return what a look for memories brings up that is not known."""
        kept = self._kept.get(kb)
        if kept is None:
            return self._scored(kb, look(self._columns(kb)), known)
        ids: list[str] = look(("id",))["id"].to_pylist()
        return self._scored(kb, kept.get(id for id in ids if (kb, id) not in known), known)

    def _columns(self, kb: str) -> tuple[str, ...]:
        return (*COLUMNS, VECTOR) if kb in self._vectors else COLUMNS

    def _legs(self, kb: str, snapshot: Snapshot, where: Expr | None, limit: int) -> Iterator[Look]:
        if "keyword" in self._looking and self.question.terms:
            terms = tuple(dict.fromkeys(chain(self.question.terms, *self.question.phrases)))
            yield partial(snapshot.keyword, terms, where, limit)
        if "vector" in self._looking and kb in self._vectors:
            yield partial(snapshot.nearest, self._vectors[kb], where, limit)

    def _scored(
        self, kb: str, table: pa.Table, known: Mapping[Key, Candidate]
    ) -> dict[Key, Candidate]:
        new = [row for row, id in enumerate(table["id"].to_pylist()) if (kb, id) not in known]
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
        return _matrix(table[VECTOR]) if kb in self._vectors else None


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
