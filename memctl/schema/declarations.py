"""What each table holds, declared once: references, indexes, values that a row must have.

The columns themselves are the fields of the table's record.  Importing this loads neither Arrow
nor the engine.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal, get_args

from msgspec import Struct, field

from memctl.literals import DocType, MemoryKind, SourceType
from memctl.records import LEVELS, Document, DocumentStatus, Entity, Memory, Relation
from memctl.schema.table_names import TABLES, TableName

ScalarIndex = Literal["BTREE", "BITMAP", "LABEL_LIST"]
OnErase = Literal["erase", "erase_if_insight", "erase_if_last", "revive", "clear"]
OnRetire = Literal["end", "keep"]


class Reference(Struct, frozen=True):
    """A column that holds the id of another row, or a list of such ids."""

    column: str
    to: tuple[TableName, ...]
    """The tables that the row may stand in."""
    on_erase: OnErase
    """What happens to the referring row when the row that it names is erased.

    - ``erase``: it is erased too;
    - ``erase_if_last``: the list loses the id, and the row is erased when the list is empty;
    - ``erase_if_insight``: an insight is erased, the list of any other row loses the id;
    - ``revive``: the value becomes null, and a memory holds again that had ended in its favour;
    - ``clear``: the value becomes null.
    """
    on_retire: OnRetire = "keep"
    """What happens to it when the row that it names becomes history: a newer version of its source
    has replaced it, or the source is gone."""
    is_owner: bool = False
    """Whether the row was made from the one that it names, and neither makes sense alone."""

    @property
    def is_list(self) -> bool:
        """Whether the column holds a list of ids."""
        return self.on_erase in ("erase_if_insight", "erase_if_last")


class Table(Struct, frozen=True):
    """One table: what its rows are and what must hold of them."""

    name: TableName
    record: Any
    """The class of its rows.  Its fields are the columns; one that is added later has a default."""
    required: tuple[str, ...]
    """Columns that are never null."""
    references: tuple[Reference, ...] = ()
    scalar_indexes: Mapping[str, ScalarIndex] = field(default_factory=dict)
    keyword_column: str | None = None
    """The column with the analysed terms that keyword search looks at."""
    has_vector: bool = False
    json_columns: tuple[str, ...] = ()
    """Text columns that hold a JSON object."""
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """The least and the greatest value of columns with numbers."""
    choices: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Columns that hold one of a few words."""
    name_columns: tuple[str, ...] = ()
    """Columns with names of entities, or links to pages of such names."""
    verbatim_columns: tuple[str, ...] = ()
    """Text columns whose values are not a source's words: ids, hashes, kinds."""
    tracked_columns: tuple[str, ...] = ()
    """Columns that jobs change in rows that exist; undoing a job restores them."""

    @property
    def id_columns(self) -> frozenset[str]:
        """The columns that hold ids."""
        return frozenset(("id", *(reference.column for reference in self.references)))

    def references_to(self, table: TableName) -> tuple[Reference, ...]:
        """Return the references that can name a row of another table."""
        return tuple(reference for reference in self.references if table in reference.to)

    def ids_referred_to(self, row: Mapping[str, Any]) -> Iterator[str]:
        """Yield the ids of other rows that a row of this table holds."""
        for reference in self.references:
            value = row[reference.column]
            yield from (value,) if isinstance(value, str) else value or ()


_SHARE = (0, 1)
_COUNT = (0, math.inf)
_GRAPH_NODES: tuple[TableName, ...] = ("documents", "memories", "entities")

_DECLARED = (
    Table(
        "documents",
        Document,
        required=("id", "root_id", "namespace", "source", "status", "text", "created_at"),
        references=(
            Reference("root_id", ("documents",), "erase"),
            Reference("superseded_by", ("documents",), "clear"),
        ),
        scalar_indexes={"id": "BTREE", "root_id": "BTREE", "tags": "LABEL_LIST"},
        json_columns=("signals", "metadata"),
        bounds={"importance": _SHARE, "part": _COUNT, "size": _COUNT},
        choices={"status": get_args(DocumentStatus), "doc_type": get_args(DocType)},
        name_columns=("entities", "links"),
        verbatim_columns=(
            "id", "root_id", "external_id", "namespace", "media_type", "sha256", "status",
            "language", "reader", "method", "superseded_by", "doc_type",
        ),
    ),
    Table(
        "memories",
        Memory,
        required=("id", "level", "type", "text", "namespace", "created_at", "valid_from", "source"),
        references=(
            Reference("document_id", ("documents",), "erase", on_retire="end", is_owner=True),
            Reference("superseded_by", ("memories",), "revive"),
            Reference("source_ids", ("memories",), "erase_if_insight"),
        ),
        scalar_indexes={
            "id": "BTREE",
            "document_id": "BTREE",
            "session_id": "BTREE",
            "namespace": "BITMAP",
            "level": "BITMAP",
            "tags": "LABEL_LIST",
        },
        keyword_column="search_text",
        has_vector=True,
        json_columns=("metadata",),
        bounds={
            "importance": _SHARE,
            "confidence": _SHARE,
            "start": _COUNT,
            "end": _COUNT,
            "version": _COUNT,
            "access_count": _COUNT,
        },
        choices={
            "level": LEVELS,
            "doc_type": get_args(DocType),
            "source_type": get_args(SourceType),
            "kind": get_args(MemoryKind),
        },
        name_columns=("entities",),
        verbatim_columns=(
            "id", "document_id", "external_id", "namespace", "method", "superseded_by", "level",
            "type", "source_ids", "search_text", "doc_type", "source_type", "kind",
        ),
        tracked_columns=(
            "is_consolidated", "valid_from", "valid_to", "superseded_by", "version", "archived_at",
        ),
    ),
    Table(
        "entities",
        Entity,
        required=("id", "name", "type"),
        scalar_indexes={"id": "BTREE"},
        bounds={"mention_count": _COUNT},
        verbatim_columns=("id", "type"),
    ),
    Table(
        "relations",
        Relation,
        required=("id", "source_id", "target_id", "relation_type"),
        references=(
            Reference("source_id", _GRAPH_NODES, "erase", on_retire="end"),
            Reference("target_id", _GRAPH_NODES, "erase"),
            Reference("memory_ids", ("memories",), "erase_if_last"),
        ),
        scalar_indexes={"id": "BTREE", "source_id": "BTREE", "target_id": "BTREE"},
        json_columns=("metadata",),
        bounds={"confidence": _SHARE},
        tracked_columns=("valid_from", "valid_to", "weight", "confidence", "text"),
    ),
)  # fmt: skip

DECLARATIONS: Mapping[TableName, Table] = {table.name: table for table in _DECLARED}
"""Every table by its name."""
OF_NAMESPACES = tuple(table.name for table in _DECLARED if "namespace" in table.required)
"""The tables whose rows say of which namespace they are."""
JSON_COLUMNS = frozenset(name for table in _DECLARED for name in table.json_columns)
assert tuple(DECLARATIONS) == TABLES, "every table has to be declared, in the order of TABLES"
