"""Which indexes the tables have, and how they are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from memctl.schema.arrow_tables import TableName

if TYPE_CHECKING:
    from lance import LanceDataset

ScalarIndex = Literal["BTREE", "BITMAP", "LABEL_LIST"]

SCALAR_INDEXES: Mapping[TableName, Mapping[str, ScalarIndex]] = {
    "documents": {"id": "BTREE", "root_id": "BTREE", "tags": "LABEL_LIST"},
    "memories": {
        "id": "BTREE",
        "document_id": "BTREE",
        "session_id": "BTREE",
        "namespace": "BITMAP",
        "level": "BITMAP",
        "tags": "LABEL_LIST",
    },
    "entities": {"id": "BTREE"},
    "relations": {"id": "BTREE", "source_id": "BTREE", "target_id": "BTREE"},
}

VECTOR_INDEX_ROWS = 50_000
"""Below this a scan of all vectors takes about as long as a search of the index, and is exact."""
LARGE_TABLE_ROWS = 500_000
SAMPLED_A_PARTITION = 64
"""A quarter of the engine's own; at 100,000 rows recall stays 1.00 and it takes half the time."""
FEWEST_PROBES = 50
ROWS_A_PROBE = 6_500

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
    """Make every index of a table but the vector index, which only pays off when it is large."""
    for column, kind in SCALAR_INDEXES[table].items():
        dataset.create_scalar_index(column, kind)
    if table == "memories":
        dataset.create_scalar_index("search_text", "INVERTED", **KEYWORD_INDEX)


def remake_indexes(table: TableName, dataset: LanceDataset) -> None:
    """Make every index of a table anew; the vector index goes, until upkeep makes it again."""
    for index in dataset.describe_indices():
        dataset.drop_index(index.name)
    create_indexes(table, dataset)


def create_vector_index(dataset: LanceDataset, rows: int) -> None:
    """Make the vector index of a table of so many rows, in place of an earlier one.

    At 100,000 rows IVF with scalar quantization and with RaBitQ codes are both as exact as a full
    scan after refining, and the first is made in half the time; at a million the second is
    smaller and faster.  Product quantization loses a third of the neighbours, and graphs take ten
    times as long.
    """
    more: dict[str, Any] = {"metric": "cosine", "replace": True}
    if rows < LARGE_TABLE_ROWS:
        dataset.create_index("vector", "IVF_SQ", sample_rate=SAMPLED_A_PARTITION, **more)
    else:
        dataset.create_index("vector", "IVF_RQ", **more)


def probes(rows: int, *, filtered: bool, refined: bool = True) -> dict[str, int]:
    """Return how thoroughly to search the vector index of a table of so many rows.

    The engine goes on to further partitions when a filter leaves too few rows in these.
    """
    least = FEWEST_PROBES + rows // ROWS_A_PROBE
    refining = {"refine_factor": refinement(rows)} if refined else {}
    return {"minimum_nprobes": 2 * least if filtered else least, **refining}


def refinement(rows: int) -> int:
    """Return of how many times as many as are wanted the nearest are taken."""
    return 5 if rows < LARGE_TABLE_ROWS else 10
