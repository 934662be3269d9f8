"""What becomes of rows when those that they refer to are erased or become history."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from source_trees import PACKAGE, source_trees

from memctl.records import Document, Entity, Memory, Relation
from memctl.rows import references
from memctl.rows.row_changes import append_rows
from memctl.rows.row_lifecycle import erase_rows, replace_rows, retire_documents
from memctl.schema.arrow_tables import (
    documents_table,
    entities_table,
    memories_table,
    relations_table,
)
from memctl.schema.declarations import DECLARATIONS, Reference
from memctl.schema.table_names import TABLES, TableName
from memctl.store.store import Store

DIMENSION = 4
NOW = datetime(2026, 3, 1, tzinfo=UTC)
LATER = datetime(2026, 4, 1, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    Store.create(tmp_path / "kb", DIMENSION).close()
    with Store.open(tmp_path / "kb") as opened:
        yield opened


def document(name: str, **changes: Any) -> Document:
    made = Document(
        id=f"d_{name}", root_id=f"d_{name}", part=0, external_id=None, namespace="default",
        source=f"{name}.md", title=name, media_type="text/markdown", sha256="0" * 64, size=1,
        status="indexed", text=name, summary="", entities=(), topics=(), keywords=(),
        importance=0.5, language="en", tags=(), links=(), authors=(), dates=(), missing=(),
        reader="text/1", method="builtin/1", signals={}, pipeline_version=1, created_at=NOW,
        ingested_at=NOW,
    )  # fmt: skip
    return replace(made, **changes)


def memory(name: str, level: str = "memory", **changes: Any) -> Memory:
    made = Memory(
        id=f"m_{name}", document_id=None, level="memory", type="fact", text=name,
        namespace="default", created_at=NOW, valid_from=NOW, is_consolidated=True,
    )  # fmt: skip
    return replace(made, level=level, **changes)


def relation(name: str, source: str, target: str, *memories: str) -> Relation:
    return Relation(f"r_{name}", source, target, "related", "", 1.0, 1.0, memories, NOW)


def fill(store: Store, *rows: Document | Memory | Entity | Relation) -> None:
    def of(kind: type) -> list[Any]:
        return [row for row in rows if isinstance(row, kind)]

    with store.write() as transaction:
        memories = of(Memory)
        vectors = np.ones((len(memories), DIMENSION), np.float32)
        append_rows(transaction, "documents", documents_table(of(Document)))
        append_rows(transaction, "memories", memories_table(memories, vectors))
        append_rows(transaction, "entities", entities_table(of(Entity)))
        append_rows(transaction, "relations", relations_table(of(Relation)))


def erase(store: Store, table: TableName, *ids: str) -> None:
    with store.write() as transaction:
        erase_rows(transaction, table, ids)


def rows(store: Store, table: TableName) -> Mapping[str, Any]:
    return {row["id"]: row for row in store.snapshot().scan(table).to_pylist()}


def test_insights_go_with_any_of_their_sources_and_free_the_others(store: Store) -> None:
    insight = memory("i", "insight", source_ids=("m_a", "m_b"))
    above = memory("j", "insight", source_ids=("m_i", "m_c"))
    stated = memory("s", source_ids=("m_a", "m_b"))
    fill(store, memory("a"), memory("b"), memory("c"), insight, above, stated)
    erase(store, "memories", "m_a")
    left = rows(store, "memories")
    assert left.keys() == {"m_b", "m_c", "m_s"}
    assert left["m_s"]["source_ids"] == ["m_b"]
    assert not left["m_b"]["is_consolidated"]
    assert not left["m_c"]["is_consolidated"]


def test_a_memory_holds_again_when_that_in_whose_favour_it_ended_is_erased(store: Store) -> None:
    old = memory("old", document_id="d_1", valid_to=LATER, superseded_by="m_new")
    fill(store, document("1"), document("2"), old, memory("new", document_id="d_2"))
    erase(store, "documents", "d_2")
    left = rows(store, "memories")
    assert left.keys() == {"m_old"}
    assert left["m_old"]["valid_to"] is None
    assert left["m_old"]["superseded_by"] is None


def test_a_relation_goes_with_its_ends_and_with_the_last_memory_that_bears_it(
    store: Store,
) -> None:
    fill(
        store,
        *(memory(name) for name in "abc"),
        relation("ends", "m_a", "m_b", "m_c"),
        relation("one", "e_1", "e_2", "m_a"),
        relation("two", "e_1", "e_2", "m_a", "m_c"),
    )
    erase(store, "memories", "m_a")
    left = rows(store, "relations")
    assert left.keys() == {"r_two"}
    assert left["r_two"]["memory_ids"] == ["m_c"]


def test_entities_that_nothing_names_any_more_go_with_their_relations(store: Store) -> None:
    names = [Entity(f"e_{n}", n, "person", (), 1, NOW, NOW) for n in ("Ann", "Bob")]
    first = document("1", entities=("Ann", "Bob"))
    fill(store, first, document("2", entities=("Bob",)), *names, relation("r", "e_Ann", "e_Bob"))
    erase(store, "documents", "d_1")
    assert rows(store, "entities").keys() == {"e_Bob"}
    assert not rows(store, "relations")


def test_memories_and_relations_of_a_document_end_when_it_is_retired(store: Store) -> None:
    ended = memory("b", document_id="d_1", valid_to=NOW, superseded_by="m_a")
    link = relation("link", "d_1", "e_1")
    fill(store, document("1"), memory("a", document_id="d_1"), ended, link, memory("c"))
    with store.write() as transaction:
        retire_documents(transaction, ["d_1"], LATER)
    found = rows(store, "memories")
    assert rows(store, "documents")["d_1"]["status"] == "gone"
    assert found["m_a"]["valid_to"] == LATER
    assert found["m_b"]["valid_to"] == NOW
    assert found["m_c"]["valid_to"] is None
    assert rows(store, "relations")["r_link"]["valid_to"] == LATER


def test_rows_that_do_not_come_back_are_erased(store: Store) -> None:
    fill(store, memory("a"), memory("b"), memory("c", source_ids=("m_a", "m_b")))
    new = memories_table([memory("a", text="new")], np.ones((1, DIMENSION)))
    with store.write() as transaction:
        replace_rows(transaction, "memories", ["m_a", "m_b"], new)
    left = rows(store, "memories")
    assert left.keys() == {"m_a", "m_c"}
    assert left["m_a"]["text"] == "new"
    assert left["m_c"]["source_ids"] == ["m_a"]


@pytest.mark.parametrize(("on_erase", "left"), [("erase", None), ("clear", "")])
def test_a_reference_that_is_declared_is_followed(
    store: Store, monkeypatch: pytest.MonkeyPatch, on_erase: Any, left: str | None
) -> None:
    declared = DECLARATIONS["memories"]
    more = (*declared.references, Reference("session_id", ("memories",), on_erase, "end"))
    changed = {**DECLARATIONS, "memories": replace(declared, references=more)}
    monkeypatch.setattr(references, "DECLARATIONS", changed)
    fill(store, memory("a"), memory("b", session_id="m_a"), memory("c", session_id="m_b"))
    erase(store, "memories", "m_a")
    found = {id_: row["session_id"] or "" for id_, row in rows(store, "memories").items()}
    assert found.get("m_b") == left
    assert ("m_c" in found) == (left is not None)


def test_nobody_else_changes_a_table() -> None:
    own = {PACKAGE / "rows/row_changes.py", PACKAGE / "store/transfer/exports.py"}
    found = [
        f"{path.relative_to(PACKAGE)}:{call.lineno}"
        for path, tree in source_trees().items()
        if path not in own
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and _changes_a_table(call)
    ]
    assert not found


def _changes_a_table(call: ast.Call) -> bool:
    """Tell whether a call looks like one of a transaction's own methods."""
    if not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr not in ("append", "upsert", "update", "delete"):
        return False
    receiver, first = call.func.value, call.args[0] if call.args else None
    name = receiver.attr if isinstance(receiver, ast.Attribute) else getattr(receiver, "id", "")
    table = first.value if isinstance(first, ast.Constant) else None
    return "transaction" in name or table in TABLES
