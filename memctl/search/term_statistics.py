"""How common each term is among the memories that are searched.

Each text counts once: what was made of a document says again what its passages say.

Counted in a sample of the very rows that the filters leave: a name that is rare overall but stands
in every turn of one conversation counts as common when only that conversation is searched.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import add

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct, field
from msgspec.structs import replace

from memctl.schema.table_names import TableName
from memctl.store.tables.filter_expressions import Expr
from memctl.store.tables.snapshot import Snapshot

SAMPLE = 4_096
"""Up to 4,096 rows are all read; of more, as many in evenly spread blocks."""
_BLOCKS = 8
_COLUMNS = ("search_text", "level", "document_id")

Sources = Mapping[str, Snapshot]
"""Snapshots by the name of their knowledge base."""


class TermStatistics(Struct, frozen=True):
    """Document frequencies in a sample of memories."""

    memories: int
    """How many memories there are, the sample included."""
    sampled: int
    terms: int
    """How many terms the sampled memories have together, repetitions included."""
    frequencies: Mapping[str, int]
    """In how many sampled memories a term occurs."""
    lengths: Mapping[str, float] = field(default_factory=dict)
    """Mean number of terms in a memory of each source, where there are several."""

    @property
    def average_length(self) -> float:
        """Mean number of terms in a memory."""
        return self.terms / self.sampled if self.sampled else 1.0

    def idf(self, term: str) -> float:
        """Return the inverse document frequency of BM25 (Robertson and Zaragoza 2009)."""
        found = self.frequencies.get(term, 0)
        return math.log(1 + (self.sampled - found + 0.5) / (found + 0.5))

    @property
    def highest_idf(self) -> float:
        """The idf of a term that does not occur."""
        return math.log(1 + (self.sampled + 0.5) / 0.5)

    def slot_weight(self, slot: Sequence[str]) -> float:
        """Return the lowest idf of the terms that occur; the highest possible if none does."""
        known = [term for term in slot if self.frequencies.get(term)]
        return min(map(self.idf, known), default=self.highest_idf)

    def __add__(self, other: TermStatistics) -> TermStatistics:
        return TermStatistics(
            self.memories + other.memories,
            self.sampled + other.sampled,
            self.terms + other.terms,
            Counter(self.frequencies) + Counter(other.frequencies),
        )


def joint_statistics(each: Mapping[str, TermStatistics]) -> TermStatistics:
    """Return the statistics of all knowledge bases together."""
    lengths = {kb: statistics.average_length for kb, statistics in each.items()}
    return replace(reduce(add, each.values()), lengths=lengths)


def sample_term_statistics(snapshot: Snapshot, where: Expr | None) -> TermStatistics:
    """Count the terms in a sample of the memories for which a condition holds."""
    count = snapshot.count("memories", where)
    tables = read_spread_sample(snapshot, "memories", where, _COLUMNS, count)
    texts = pa.concat_arrays(
        [chunk for table in tables for chunk in _own_texts(table)] or [pa.array([], pa.string())]
    )
    lists = pc.split_pattern(texts, " ")
    return TermStatistics(count, len(texts), *_count_lists(lists))


def _own_texts(table: pa.Table) -> Sequence[pa.StringArray]:
    """Return the texts of what was not made of others, or all where there is nothing else."""
    level, is_stated = table["level"], pc.is_null(table["document_id"])
    is_stated = pc.and_(is_stated, pc.equal(level, "memory"))
    own = table.filter(pc.or_(pc.equal(level, "evidence"), is_stated))
    chunks: Sequence[pa.StringArray] = (own if len(own) else table)["search_text"].chunks
    return chunks


def read_spread_sample(
    snapshot: Snapshot, table: TableName, where: Expr | None, columns: Sequence[str], count: int
) -> Iterator[pa.Table]:
    """Yield columns of the rows for which a condition holds; of many only a sample.

    Args:
        snapshot: Where the table is read.
        table: The name of the table.
        where: The condition.
        columns: Their names.
        count: For how many rows the condition holds.
    """
    if count <= SAMPLE:
        yield snapshot.scan(table, where, columns)
        return
    size = SAMPLE // _BLOCKS
    for block in range(_BLOCKS):
        offset = block * (count - size) // (_BLOCKS - 1)
        yield snapshot.scan(table, where, columns, limit=size, offset=offset)


def _count_lists(lists: pa.ListArray) -> tuple[int, dict[str, int]]:
    """Return the number of terms and, for each term, in how many lists it occurs."""
    encoded = pc.list_flatten(lists).dictionary_encode()
    codes = np.asarray(encoded.indices, dtype=np.int64)
    owners = np.asarray(pc.list_parent_indices(lists), dtype=np.int64)
    size = max(len(encoded.dictionary), 1)
    pairs = np.sort(owners * size + codes)  # `np.unique` hashes them, which takes ten times as long
    is_first = np.append(True, pairs[1:] != pairs[:-1])[: len(pairs)]
    counts = np.bincount(pairs[is_first] % size, minlength=size).tolist()
    return len(codes), dict(zip(encoded.dictionary.to_pylist(), counts, strict=False))
