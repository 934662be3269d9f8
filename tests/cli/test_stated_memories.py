"""Statements of one's own: what is read from their text, how long they hold, how often shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from memctl.config import load_config
from memctl.home import Home
from memctl.rows.derived_rows import fold_accesses

if TYPE_CHECKING:
    from pathlib import Path

    from memctl.knowledge_base import KnowledgeBase

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def notes(tmp_path: Path) -> KnowledgeBase:
    """A new knowledge base whose clock stands still."""
    home = Home(load_config({"home": str(tmp_path)}, {}), lambda: NOW)
    home.create("notes")
    return home.open("notes")


def opened_later(notes: KnowledgeBase, days: int) -> KnowledgeBase:
    """Open the same knowledge base some days later."""
    config = load_config({"home": str(notes.layout.folder.parent.parent)}, {})
    return Home(config, lambda: NOW + timedelta(days=days)).open("notes")


def test_names_tags_and_type_are_read_from_a_statement(notes: KnowledgeBase) -> None:
    with notes:
        memory = notes.memories.add(
            "We decided that Ann Keller runs the harbour of Bergen, see [[Quay plan]]. #ports"
        )
        assert memory.type == "decision"
        assert {"Ann Keller", "Quay plan"} <= set(memory.entities)
        assert memory.tags == ("ports",)
        names = {place.name for place in notes.graph.view().graph.nodes}
        assert {"Ann Keller", "Quay plan"} <= names
        relations = notes.store.snapshot().scan("relations").to_pylist()
        assert [(row["source_id"], row["text"]) for row in relations] == [(memory.id, "Quay plan")]
        notes.memories.delete(memory.id)
        assert notes.store.snapshot().count("relations") == 0
        assert notes.store.snapshot().count("entities") == 0


def test_an_importance_is_shown_as_it_was_given(notes: KnowledgeBase) -> None:
    with notes:
        memory = notes.memories.add("The gate code is 4711.", importance=0.7)
        assert notes.memories.get(memory.id).memory.importance == 0.7
        assert notes.query("what is the gate code?").hits[0].importance == 0.7


def test_a_label_and_tags_leave_the_text_of_a_statement(notes: KnowledgeBase) -> None:
    with notes:
        memory = notes.memories.add("important: keep the ladder dry #beto_tools", tags=["shed"])
        assert memory.text == "keep the ladder dry"
        assert (memory.type, memory.importance) == ("important_fact", 0.85)
        assert memory.tags == ("shed", "tools")
        whole = notes.memories.add("We met Tom #beto_boat. We built the shed in May. He paid.")
        assert whole.text == "We met Tom. We built the shed in May. He paid."


def test_a_type_that_is_given_counts_and_the_same_statement_is_there_once(
    notes: KnowledgeBase,
) -> None:
    with notes:
        memory = notes.memories.add("We decided to fly to Oslo.", type_="plan")
        assert memory.type == "plan"
        first = notes.memories.add("We decided to take the train.", type_="fact")
        assert notes.memories.add("We decided to take the train.").id == first.id
        assert notes.memories.list().num_rows == 2


def test_names_of_an_edited_statement_are_those_of_its_new_text(notes: KnowledgeBase) -> None:
    with notes:
        old = notes.memories.add("Ann Keller has the spare key.")
        new = notes.memories.edit(old.id, "Bert Olsen has the spare key.")
        assert "Bert Olsen" in new.entities
        assert "Ann Keller" not in new.entities


def test_a_rebuild_gives_the_graph_of_statements_again(notes: KnowledgeBase) -> None:
    from memctl.graph.derivation import derive_all

    with notes:
        notes.memories.add("Ann Keller works at the [[Quay]].")
        snapshot = notes.store.snapshot()
        entities, relations = derive_all(snapshot)
        assert set(entities) == set(snapshot.scan("entities")["id"].to_pylist())
        assert set(relations) == set(snapshot.scan("relations")["id"].to_pylist())


def test_a_statement_holds_until_it_expires(notes: KnowledgeBase) -> None:
    with notes:
        notes.memories.add("The lift is out of order.", expires_at=NOW + timedelta(days=7))
        assert notes.query("the lift", answer=False).hits
    with opened_later(notes, 6) as base:
        assert base.query("the lift", answer=False).hits
        assert base.context("is the lift out of order?").text
    with opened_later(notes, 8) as base:
        assert base.memories.list().num_rows == 0
        assert base.query("the lift", answer=False).hits == ()
        assert base.context("is the lift out of order?").text == ""


def test_accesses_are_folded_into_the_rows_when_something_is_ingested(
    notes: KnowledgeBase,
) -> None:
    with notes:
        memory = notes.memories.add("The door code is 4711.")
        for _ in range(3):
            notes.query("door code", answer=False)

        def accesses() -> tuple[int, datetime | None]:
            """What the row says."""
            columns = ["access_count", "last_accessed_at"]
            (row,) = notes.store.snapshot().get("memories", [memory.id], columns).to_pylist()
            return row["access_count"], row["last_accessed_at"]

        assert accesses() == (0, None)
        notes.ingest(text="Tomatoes want sun.")
        assert accesses() == (3, NOW)
        assert notes.store.ledger.accesses.pending() == []
        assert fold_accesses(notes.store) == 0
        notes.query("door code", answer=False)
        assert fold_accesses(notes.store) > 0
        assert accesses() == (4, NOW)
        notes.memories.get(memory.id)
        assert fold_accesses(notes.store) == 1
        assert accesses() == (5, NOW), "reading it by its id counts"


def test_accesses_are_shown_and_sorted_by_before_they_are_in_the_rows(
    notes: KnowledgeBase,
) -> None:
    with notes:
        other = notes.memories.add("Tomatoes want sun.")
        memory = notes.memories.add("The door code is 4711.")
        notes.memories.get(other.id)
        fold_accesses(notes.store)
    with opened_later(notes, 1) as base:
        for _ in range(2):
            assert base.memories.get(memory.id).memory.access_count in (0, 1)

        def listed(**order: Any) -> list[tuple[str, int]]:
            """What a listing says, which counts as no reading."""
            rows = base.memories.list(**order).to_pylist()
            return [(row["id"], row["access_count"]) for row in rows]

        assert sorted(listed()) == sorted([(memory.id, 2), (other.id, 1)])
        assert listed(sort="accessed") == [(other.id, 1), (memory.id, 2)]
        assert listed(sort="accessed", descending=True, limit=1) == [(memory.id, 2)]
        shown = base.memories.list(sort="accessed", descending=True).to_pylist()
        assert shown[0]["last_accessed_at"] == NOW + timedelta(days=1)


def test_a_memory_that_is_shown_gains_importance_once_a_day_where_that_is_set(
    notes: KnowledgeBase,
) -> None:
    with notes:
        memory = notes.memories.add("The door code is 4711.", importance=0.5)
        for boosts, importance in ((False, 0.5), (True, 0.5), (True, 0.5)):
            notes.query("door code", answer=False)
            fold_accesses(notes.store, boosts=boosts)
            shown = notes.memories.get(memory.id).memory
            assert shown.importance == pytest.approx(importance), "it was shown that day before"
    for days, importance in ((1, 0.55), (1, 0.55), (2, 0.595)):
        with opened_later(notes, days) as base:
            base.query("door code", answer=False)
            fold_accesses(base.store, boosts=True)
            shown = base.memories.get(memory.id).memory
            assert shown.importance == pytest.approx(importance, abs=1e-4)


def test_accesses_of_a_memory_that_is_gone_are_dropped(notes: KnowledgeBase) -> None:
    with notes:
        memory = notes.memories.add("The door code is 4711.")
        notes.query("door code", answer=False)
        notes.memories.delete(memory.id)
        assert fold_accesses(notes.store) == 0
        assert notes.store.ledger.accesses.pending() == []
