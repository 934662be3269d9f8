"""What is derived is made anew, and counts only when all else is proved to be as before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from memctl.doctor import rebuild
from memctl.doctor.doctor import Doctor
from memctl.errors import CoverageLost, DamagedError
from memctl.home import Home
from memctl.records import Progress
from memctl.schema.arrow_tables import vector_array, vector_rows
from memctl.schema.table_names import TableName
from memctl.store.tables.filter_expressions import EVERYTHING, col

from .conftest import leave_names, not_ok

Rows = list[dict[str, Any]]


def rows(home: Home, table: str, *columns: str) -> Rows:
    with home.open("notes") as base:
        found = base.store.snapshot().scan(table, None, ["id", *columns])
    return sorted(found.to_pylist(), key=lambda row: row["id"])


def content(home: Home) -> tuple[Rows, Rows]:
    return rows(home, "documents", "text"), rows(home, "memories", "text", "valid_from", "method")


def vectors(home: Home) -> np.ndarray:
    with home.open("notes") as base:
        table = base.store.snapshot().scan("memories", None, ["id", "vector"]).sort_by("id")
    return vector_rows(table["vector"].combine_chunks())


def versions(home: Home) -> dict[str, int]:
    with home.open("notes") as base:
        return dict(base.store.snapshot().versions)


def messages(doctor: Doctor, *arguments: Any) -> dict[str, str]:
    return {step.subject: step.message for step in doctor.rebuild("notes", *arguments)}


def test_all_that_is_derived_is_made_anew_and_the_rest_is_as_before(
    home: Home, doctor: Doctor
) -> None:
    with home.open("notes") as base:
        base.consolidate()
    before, was, graph = content(home), vectors(home), rows(home, "entities", "name", "type")
    relations, at = rows(home, "relations", "text"), versions(home)
    seen: list[Progress] = []
    steps = messages(doctor, seen.append)
    assert steps["memories"] == (
        f"{len(before[1])} memories with vectors made anew, the same as before"
    )
    assert seen[-1].done == len(before[1])
    assert content(home) == before
    assert np.allclose(vectors(home), was, atol=1e-3)
    assert rows(home, "entities", "name", "type") == graph
    assert rows(home, "relations", "text") == relations
    assert all(versions(home)[table] > at[table] for table in ("memories", "entities"))
    assert not_ok(doctor.examine("notes", deep=True)) == []
    with home.open("notes") as base:
        assert "4,350" in base.query("How much is the deposit?").hits[0].text


def test_a_lost_graph_is_derived_again_from_the_documents(home: Home, doctor: Doctor) -> None:
    entities = rows(home, "entities", "name", "type", "first_seen", "last_seen")
    relations = rows(home, "relations", "source_id", "target_id", "text", "memory_ids")
    assert entities
    assert relations
    with home.open("notes") as base, base.store.write() as transaction:
        transaction.delete("entities", EVERYTHING)
        transaction.delete("relations", EVERYTHING)
    assert messages(doctor)["entities"] == f"{len(entities)} made anew, where 0 were"
    assert rows(home, "entities", "name", "type", "first_seen", "last_seen") == entities
    again = rows(home, "relations", "source_id", "target_id", "text", "memory_ids")
    assert again == relations


def test_a_repair_removes_names_that_no_document_has_any_more(home: Home, doctor: Doctor) -> None:
    leave_names(home)
    assert not_ok(doctor.examine("notes"))
    messages(doctor)
    assert not_ok(doctor.examine("notes")) == []


def test_vectors_that_would_be_others_are_told_and_nothing_is_changed(
    home: Home, doctor: Doctor
) -> None:
    with home.open("notes") as base, base.store.write() as transaction:
        row = transaction.snapshot().scan("memories", col("type") == "fact", ["id"], limit=1)
        turned = vector_array(np.eye(256)[:1])
        transaction.update("memories", pa.table({"id": row["id"], "vector": turned}))
    at, before = versions(home), content(home)
    with pytest.raises(DamagedError, match="1 vector would not be as before, as that of m_"):
        messages(doctor)
    assert (versions(home)["documents"], content(home)) == (at["documents"], before)
    assert np.isin(1.0, vectors(home))


@pytest.mark.parametrize("table", ["documents", "memories"])
def test_a_text_that_would_be_another_undoes_all(
    home: Home, doctor: Doctor, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    before, graph = content(home), rows(home, "entities", "name")
    remake = rebuild.remake_indexes

    def spoilt(name: str, dataset: Any) -> None:
        if name == table:
            dataset.update({"text": "'something else'"})
        remake(name, dataset)

    monkeypatch.setattr(rebuild, "remake_indexes", spoilt)
    with pytest.raises(DamagedError, match=f"the text of {table} would not be as before"):
        messages(doctor)
    assert (content(home), rows(home, "entities", "name")) == (before, graph)
    assert not_ok(doctor.examine("notes", deep=True)) == []


def test_nothing_is_changed_where_a_memory_would_not_be_found_by_its_words(
    home: Home, doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, was = content(home), vectors(home)
    remake = rebuild.remake_indexes

    def sabotaged(table: TableName, dataset: Any) -> None:
        remake(table, dataset)
        if table == "memories":
            short = {"base_tokenizer": "whitespace", "max_token_length": 1, "replace": True}
            dataset.create_scalar_index("search_text", "INVERTED", **short)

    with monkeypatch.context() as patch:
        patch.setattr(rebuild, "remake_indexes", sabotaged)
        with pytest.raises(CoverageLost, match="rebuilding was rolled back"):
            messages(doctor)
    assert content(home) == before
    np.testing.assert_array_equal(vectors(home), was)
    assert messages(doctor)
