"""Records become rows and come back the same."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memctl.literals import DocType, MemoryKind, SourceType
from memctl.records import Document, Entity, Memory, Relation
from memctl.schema.arrow_tables import (
    document_rows,
    documents_table,
    entities_table,
    entity_rows,
    memories_table,
    memory_rows,
    relation_rows,
    relations_table,
    schemas,
)
from memctl.schema.table_names import TABLES, TableName
from memctl.store.store import Store

DIMENSION = 8

texts = st.text(max_size=20)
instants = st.datetimes(timezones=st.just(UTC))
small_ints = st.integers(-(2**31), 2**31 - 1)
large_ints = st.integers(-(2**63), 2**63 - 1)
single_floats = st.floats(width=32, allow_nan=False).map(lambda each: float(str(np.float32(each))))
"""With the digits that single precision has, as they are read."""
double_floats = st.floats(allow_nan=False)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
metadata = st.dictionaries(texts, st.recursive(scalars, st.lists, max_leaves=4), max_size=3)

BY_ANNOTATION = {
    "str": texts,
    "Level": st.sampled_from(["evidence", "memory", "insight"]),
    "DocumentStatus": st.sampled_from(["indexed", "failed"]),
    "DocType": st.sampled_from(get_args(DocType)),
    "SourceType": st.sampled_from(get_args(SourceType)),
    "MemoryKind": st.sampled_from(get_args(MemoryKind)),
    "int": small_ints,
    "float": single_floats,
    "bool": st.booleans(),
    "datetime": instants,
    "tuple[str, ...]": st.lists(texts, max_size=3).map(tuple),
    "Metadata": metadata,
    "Mapping[str, float]": st.dictionaries(texts, double_floats, max_size=3),
}
BY_NAME = {
    "size": large_ints,
    "row": large_ints,
    "turn": large_ints,
    "time_start": double_floats,
    "time_end": double_floats,
}


def records(kind: type[Any]) -> st.SearchStrategy[Any]:
    return st.builds(
        kind, **{name: _values(name, kind.__annotations__[name]) for name in kind.__struct_fields__}
    )


def _values(name: str, annotation: str) -> st.SearchStrategy[Any]:
    bare = annotation.removesuffix(" | None")
    values = BY_NAME.get(name, BY_ANNOTATION[bare])
    return values if bare == annotation else st.none() | values


def _memories_table(memories: list[Memory]) -> pa.Table:
    return memories_table(memories, np.ones((len(memories), DIMENSION)))


CASES: list[tuple[TableName, type[Any], Callable[..., pa.Table], Callable[..., list[Any]]]] = [
    ("documents", Document, documents_table, document_rows),
    ("memories", Memory, _memories_table, memory_rows),
    ("entities", Entity, entities_table, entity_rows),
    ("relations", Relation, relations_table, relation_rows),
]


@pytest.mark.parametrize(("table", "kind", "to_table", "to_rows"), CASES)
@given(data=st.data())
@settings(max_examples=30)
def test_any_record_comes_back_as_it_went_into_arrow(table, kind, to_table, to_rows, data) -> None:
    made = data.draw(st.lists(records(kind), max_size=3))
    rows = to_table(made)
    assert rows.schema == schemas(DIMENSION)[table]
    assert to_rows(rows) == made


@pytest.mark.parametrize(("table", "kind", "to_table", "to_rows"), CASES)
@given(data=st.data())
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_record_comes_back_as_it_went_into_the_database(
    store: Store, table, kind, to_table, to_rows, data
) -> None:
    made = data.draw(st.lists(records(kind), max_size=5, unique_by=lambda item: item.id))
    with store.write() as transaction:
        transaction.upsert(table, to_table(made))
    found = store.snapshot().get(table, [item.id for item in made])
    assert to_rows(found) == made


def test_every_table_has_a_schema_and_only_memories_have_vectors() -> None:
    made = schemas(DIMENSION)
    assert set(made) == set(TABLES)
    assert [name for name in TABLES if "vector" in made[name].names] == ["memories"]
    assert made["memories"].field("vector").type == pa.list_(pa.float16(), DIMENSION)


def test_a_name_that_is_not_utf8_is_kept_with_a_question_mark(memory_of) -> None:
    memory = memory_of(source="caf\udce9.md", tags=("a\udce9",))
    back = memory_rows(_memories_table([memory]))[0]
    assert (back.source, back.tags) == ("caf?.md", ("a?",))


def test_rows_without_the_columns_that_a_memory_can_do_without_become_memories(memory_of) -> None:
    needed = ["id", "document_id", "level", "type", "text", "namespace", "created_at", "valid_from"]
    rows = _memories_table([memory_of(tags=("a",))])
    back = memory_rows(rows.select(needed))[0]
    assert (back.id, back.tags) == ("m_0", ())
    with pytest.raises(ValueError, match="text"):
        memory_rows(rows.drop_columns(["text"]))


def test_vectors_must_be_as_many_as_memories(memory_of) -> None:
    with pytest.raises(ValueError, match="1 memories"):
        memories_table([memory_of()], np.ones((2, DIMENSION)))


def test_instants_in_other_zones_are_stored_as_the_same_instant(memory_of) -> None:
    berlin = datetime.fromisoformat("2025-06-01T14:00:00+02:00")
    back = memory_rows(_memories_table([memory_of(created_at=berlin)]))[0]
    assert back.created_at == berlin
    assert back.created_at.utcoffset().total_seconds() == 0
