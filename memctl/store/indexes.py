"""Which indexes the tables have, and how they are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from memctl.store.schema import TableName

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
