"""How the indexes of the tables are built and searched; the declarations say which there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memctl.schema.arrow_tables import VECTOR
from memctl.schema.declarations import DECLARATIONS
from memctl.schema.table_names import TableName
from memctl.store.tables.engine import translate_write_errors

if TYPE_CHECKING:
    from lance import LanceDataset

MIN_UNINDEXED = 1_000
"""A table of no more rows has no scalar index: none would know any of them."""
MAX_UNINDEXED = 10_000
UNINDEXED_SHARE = 0.05
"""Rows that no index knows cost a keyword search some 3 ms a thousand; indexing them costs the
more the larger the table is (2.6 s at a million rows), so a large one may have more of them."""

VECTOR_INDEX_ROWS = 50_000
"""Below this a scan of all vectors takes about as long as a search of the index, and is exact."""
CODE_BITS = 3
"""Of a dimension of a vector in the index.  Of the 100 nearest among 100,000 and 300,000 of 256
dimensions, refined from 500, 2 bits lose half of a percent and 3 lose none."""
SAMPLED_A_PARTITION = 64
"""A quarter of the engine's own; recall stays 1.00 and it takes two thirds of the time."""
MIN_PROBES = 50
ROWS_A_PROBE = 6_500
REFINEMENT = 5
"""How many candidates to refine for each row that is wanted."""
_CODES_COME_BY = 8
"""The engine makes RaBitQ codes only of vectors whose dimensions are a multiple of this."""

# The analyser has split, folded and stemmed the text already, so here a term is what stands
# between two spaces.  Positions are needed for phrases alone and double the time to build.
KEYWORD_INDEX: Mapping[str, Any] = {
    "base_tokenizer": "whitespace",
    "lower_case": False,
    "stem": False,
    "remove_stop_words": False,
    "ascii_folding": False,
    "with_position": False,
    "max_token_length": 1_000,
}


def create_indexes(table: TableName, dataset: LanceDataset) -> None:
    """Make the indexes that a table of its size should have, but for that of its vectors."""
    match_indexes(table, dataset)
    keyword_column = DECLARATIONS[table].keyword_column
    if keyword_column is not None:
        dataset.create_scalar_index(keyword_column, "INVERTED", **KEYWORD_INDEX)


def match_indexes(table: TableName, dataset: LanceDataset) -> None:
    """Make the scalar indexes that a table of its size lacks; drop those that are not declared."""
    declared = DECLARATIONS[table].scalar_indexes
    others = {DECLARATIONS[table].keyword_column, VECTOR}
    there = set[str]()
    with translate_write_errors(dataset.uri):
        for index in dataset.describe_indices():
            column = index.field_names[0]
            kind = declared.get(column)
            if kind is not None and index.index_type.upper() == kind.replace("_", ""):
                there.add(column)
            elif column not in others:
                dataset.drop_index(index.name)
        lacking = [column for column in declared if column not in there]
        if lacking and int(dataset.count_rows()) > MIN_UNINDEXED:
            for column in lacking:
                dataset.create_scalar_index(column, declared[column])


def unindexed_rows(table: TableName, dataset: LanceDataset, rows: int) -> int:
    """Return how many of a table's rows an index does not know that is there or should be."""
    known = {index.field_names[0]: index.num_rows_indexed for index in dataset.describe_indices()}
    if rows > MIN_UNINDEXED and not known.keys() >= DECLARATIONS[table].scalar_indexes.keys():
        return rows
    return max(rows - min(known.values(), default=rows), 0)


def remake_indexes(table: TableName, dataset: LanceDataset) -> None:
    """Rebuild every index of a table; the vector index is dropped until upkeep builds it again."""
    with translate_write_errors(dataset.uri):
        for index in dataset.describe_indices():
            dataset.drop_index(index.name)
        create_indexes(table, dataset)


def max_unindexed(rows: int) -> int:
    """Return how many rows of a table may stay unindexed."""
    return int(min(max(UNINDEXED_SHARE * rows, MIN_UNINDEXED), MAX_UNINDEXED))


def create_vector_index(dataset: LanceDataset) -> None:
    """Build the vector index of a table, replacing an earlier one.

    RaBitQ codes are as exact as a full scan after refining, a search of 300,000 takes a quarter of
    the time that 8-bit scalar quantization does, which also takes twice the room and at a million
    more than the engine may cache.  Product quantization loses a third of the neighbours, and
    graphs take ten times as long to build.
    """
    more: dict[str, Any] = {"metric": "cosine", "sample_rate": SAMPLED_A_PARTITION}
    kind = _vector_index_kind(dataset)
    if kind == "IVF_RQ":
        more["num_bits"] = CODE_BITS
    dataset.create_index(VECTOR, kind, replace=True, **more)


def is_of_another_kind(dataset: LanceDataset) -> bool:
    """Return whether a table has a vector index of a kind that is made no more."""
    kinds = {
        index.index_type for index in dataset.describe_indices() if index.field_names == [VECTOR]
    }
    return not kinds <= {_vector_index_kind(dataset)}


def _vector_index_kind(dataset: LanceDataset) -> str:
    """The engine's name for the vector index that a table should have."""
    dimension: int = dataset.schema.field(VECTOR).type.list_size
    return "IVF_SQ" if dimension % _CODES_COME_BY else "IVF_RQ"


def probes(rows: int, *, filtered: bool, refined: bool = True) -> dict[str, int]:
    """Return how thoroughly to search the vector index of a table with this many rows.

    The engine goes on to further partitions when a filter leaves too few rows in these.
    """
    least = MIN_PROBES + rows // ROWS_A_PROBE
    refining = {"refine_factor": REFINEMENT} if refined else {}
    return {"minimum_nprobes": 2 * least if filtered else least, **refining}
