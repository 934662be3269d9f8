"""The Arrow schemas of the tables, and the conversion of records to rows and back.

Knows nothing of files or of the engine: everything here is Arrow in memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
from msgspec import NODEFAULT
from msgspec.structs import fields

from memctl.ids import storable
from memctl.records import Document, Entity, Memory, Relation
from memctl.schema.declarations import DECLARATIONS, JSON_COLUMNS
from memctl.schema.migrations import SCHEMA_VERSION, columns_after, tables_at
from memctl.schema.table_names import TableName

if TYPE_CHECKING:
    from numpy.typing import NDArray

VECTOR = "vector"

Record = TypeVar("Record", Document, Memory, Entity, Relation)

_INSTANT = pa.timestamp("us", tz="UTC")
_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True, default=str)
# Record fields are declared with text annotations (``from __future__ import annotations``), so
# the text is what can be looked up.  A column that wants another width is named below.
_ARROW_TYPES: Mapping[str, pa.DataType] = {
    "str": pa.string(),
    "Level": pa.string(),
    "DocumentStatus": pa.string(),
    "DocType": pa.string(),
    "SourceType": pa.string(),
    "MemoryKind": pa.string(),
    "int": pa.int32(),
    "float": pa.float32(),
    "bool": pa.bool_(),
    "datetime": _INSTANT,
    "tuple[str, ...]": pa.list_(pa.string()),
    "Metadata": pa.string(),
    "Mapping[str, float]": pa.string(),
}
_WIDER: Mapping[str, pa.DataType] = {
    "size": pa.int64(),
    "row": pa.int64(),
    "turn": pa.int64(),
    "time_start": pa.float64(),
    "time_end": pa.float64(),
}


def schemas(dimension: int, version: int = SCHEMA_VERSION) -> dict[TableName, pa.Schema]:
    """Return the schema of every table, for vectors of ``dimension`` numbers.

    Args:
        dimension: Length of the vectors.
        version: As of which schema version; by default the present one.
    """
    vector = pa.field(VECTOR, pa.list_(pa.float16(), dimension))
    result = {}
    for name in tables_at(version):
        later, table = columns_after(version, name), DECLARATIONS[name]
        columns = [item for item in _record_schema(table.record) if item.name not in later]
        result[name] = pa.schema([*columns, vector] if table.has_vector else columns)
    return result


@cache
def defaults(table: TableName) -> Mapping[str, Any]:
    """Return what rows have in columns that they were written without, as it is stored."""
    record = DECLARATIONS[table].record
    schema = _record_schema(record)
    return {
        item.name: _column(schema.field(item.name), [_default(item)])[0]
        for item in fields(record)
        if not _is_required(item)
    }


def repeated(value: pa.Scalar, count: int) -> pa.Array:
    """Return a column of one value; pyarrow 26 cannot repeat a list no times."""
    return pa.repeat(value, count) if count else pa.array([], value.type)


def with_all_columns(rows: pa.Table, table: TableName, names: Sequence[str]) -> pa.Table:
    """Return rows with some columns, those that they were written without at their defaults."""
    declared = _record_schema(DECLARATIONS[table].record)
    there = set(rows.column_names)
    schema = pa.schema([(rows.schema if n in there else declared).field(n) for n in names])
    columns = [
        rows[name] if name in there else repeated(defaults(table)[name], rows.num_rows)
        for name in names
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def with_column(rows: pa.Table, name: str, values: Iterable[Any]) -> pa.Table:
    """Return rows with other values in one column."""
    place = rows.schema.get_field_index(name)
    item = rows.schema.field(place)
    return rows.set_column(place, item, pa.array(values, item.type))


@cache
def _record_schema(record: type[Any]) -> pa.Schema:
    return pa.schema(
        [_field(name, record.__annotations__[name]) for name in record.__struct_fields__]
    )


def _field(name: str, annotation: str) -> pa.Field:
    bare = annotation.removesuffix(" | None")
    return pa.field(name, _WIDER.get(name, _ARROW_TYPES[bare]), nullable=name != "id")


# --- records to rows -----------------------------------------------------------------------------


def documents_table(documents: Sequence[Document]) -> pa.Table:
    """Return the documents as rows of the ``documents`` table."""
    return _table(Document, documents)


def entities_table(entities: Sequence[Entity]) -> pa.Table:
    """Return the entities as rows of the ``entities`` table."""
    return _table(Entity, entities)


def relations_table(relations: Sequence[Relation]) -> pa.Table:
    """Return the relations as rows of the ``relations`` table."""
    return _table(Relation, relations)


def memories_table(memories: Sequence[Memory], vectors: NDArray[np.floating[Any]]) -> pa.Table:
    """Return the memories as rows of the ``memories`` table.

    Args:
        memories: The memories.
        vectors: One row for each memory, shape ``(len(memories), dimension)``, any float type.
    """
    if vectors.ndim != 2 or len(vectors) != len(memories):
        raise ValueError(f"{len(memories)} memories with vectors of shape {vectors.shape}")
    return _table(Memory, memories).append_column(VECTOR, vector_array(vectors))


def vector_array(vectors: NDArray[np.floating[Any]]) -> pa.FixedSizeListArray:
    """Return a matrix as an Arrow column of float16 vectors."""
    flat = np.ascontiguousarray(vectors, dtype=np.float16).reshape(-1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat), vectors.shape[1])


def vector_rows(column: pa.FixedSizeListArray) -> NDArray[np.float16]:
    """Return a column of vectors as a matrix; a missing one is a row of zeros."""
    length = column.type.list_size
    # A null vector would make `flatten` skip its row.
    flat = column.fill_null([0.0] * length).flatten() if column.null_count else column.flatten()
    matrix: NDArray[np.float16] = np.asarray(flat).reshape(len(column), length)
    return matrix


def _table(record: type[Any], rows: Sequence[Any]) -> pa.Table:
    kind: Any = record  # mypy 1 does not see that a class is hashable
    schema = _record_schema(kind)
    columns = zip(*map(attrgetter(*schema.names), rows), strict=True) if rows else repeat(())
    arrays = [_column(item, column) for item, column in zip(schema, columns, strict=False)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _column(item: pa.Field, values: Sequence[Any]) -> pa.Array:
    if item.name == "metadata":
        values = [metadata_to_json(value) for value in values]
    elif item.name == "signals":  # thousands of short texts share a few dozen
        values = [_signals_to_json(tuple(value.items())) for value in values]
    try:
        return pa.array(values, item.type)
    except UnicodeEncodeError:  # a file name that is not UTF-8 carries lone surrogates
        return pa.array([_scrub(value) for value in values], item.type)


def metadata_to_json(value: Mapping[str, Any]) -> str:
    """Return metadata as its column has them."""
    if not value:
        return "{}"
    return _ENCODER.encode(dict(value))


@lru_cache(maxsize=10_000)
def _signals_to_json(signals: tuple[tuple[str, float], ...]) -> str:
    return metadata_to_json(dict(signals))


def _scrub(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    return [_scrub(item) for item in value] if isinstance(value, tuple) else value


# --- rows to records -----------------------------------------------------------------------------


def document_rows(table: pa.Table) -> list[Document]:
    """Return rows of ``documents`` as records."""
    return _rows(Document, table)


def memory_rows(table: pa.Table) -> list[Memory]:
    """Return rows of ``memories`` as records; columns that a Memory can do without may be absent.

    Vectors and scores are left out: take those from the table.
    """
    return _rows(Memory, table)


def entity_rows(table: pa.Table) -> list[Entity]:
    """Return rows of ``entities`` as records."""
    return _rows(Entity, table)


def relation_rows(table: pa.Table) -> list[Relation]:
    """Return rows of ``relations`` as records."""
    return _rows(Relation, table)


def decodable(table: pa.Table) -> pa.Table:
    """Return rows with nothing in place of what should be JSON and is none, as after damage."""
    for name in JSON_COLUMNS.intersection(table.column_names):
        table = with_column(table, name, map(_if_json, table[name].to_pylist()))
    return table


def _if_json(value: str | None) -> str:
    try:
        return value if value and isinstance(json.loads(value), dict) else "{}"
    except ValueError:
        return "{}"


def _rows(record: type[Record], table: pa.Table) -> list[Record]:
    present = [item for item in fields(record) if item.name in table.column_names]
    missing = {item.name for item in fields(record) if _is_required(item)} - set(table.column_names)
    if missing:
        raise ValueError(f"a {record.__name__} needs the columns {sorted(missing)}")
    names = [item.name for item in present]
    columns = [_values(table[name], _decoder(table.schema.field(name))) for name in names]
    return [record(**dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]


def _is_required(item: Any) -> bool:
    return item.default is NODEFAULT and item.default_factory is NODEFAULT


def _default(item: Any) -> Any:
    return item.default if item.default is not NODEFAULT else item.default_factory()


def _values(column: pa.ChunkedArray, decode: Callable[[Any], Any] | None) -> Iterable[Any]:
    values = plain_values(column)
    return values if decode is None else [decode(value) for value in values]


def plain_values(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column, of single precision with the digits that they have.

    By way of text 0.7 stays 0.7, and does not become 0.699999988079071.
    """
    if pa.types.is_float32(column.type):
        column = column.cast(pa.string()).cast(pa.float64())
    values: list[Any] = column.to_pylist()
    return values


def _decoder(item: pa.Field) -> Callable[[Any], Any] | None:
    if item.name in JSON_COLUMNS:
        return lambda value: json.loads(value) if value else {}
    if pa.types.is_list(item.type):
        return lambda value: tuple(value or ())
    return None
