"""The Python interface: what the command line itself uses."""

from __future__ import annotations

import inspect
import io
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from waiting import PATIENCE

import memctl
from memctl.errors import KnowledgeBaseNotFound, NotFoundError, UsageError
from memctl.knowledge_base import KnowledgeBase
from memctl.records import Filters, Progress, Question
from memctl.store.ledger import ledger

TEXT = "We decided to launch Aurora on 12 May 2026. The budget of Aurora is 40,000 euros."


@pytest.fixture
def notes(tmp_path: Path) -> KnowledgeBase:
    """A new knowledge base."""
    return memctl.open("notes", home=tmp_path, create=True)


def test_one_that_is_not_there_is_not_made_by_accident(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeBaseNotFound):
        memctl.open("notes", home=tmp_path)
    assert list(tmp_path.iterdir()) == []
    memctl.open("notes", home=tmp_path, create=True).close()
    memctl.open("notes", home=tmp_path).close()
    assert memctl.open_home(tmp_path).names() == ["notes"]


def test_every_kind_of_input_can_be_given_at_once(notes: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The venue is Hall 3.")
    with notes:
        report = notes.ingest(
            [tmp_path / "a.txt"],
            text=TEXT,
            stream=io.BytesIO(b"Tomatoes want sun."),
            jsonl=io.BytesIO(b'{"text": "tea is nice", "id": "t"}\n'),
            tags=["all"],
        )
        assert (report.ingested, report.failed) == (4, 0)
        assert notes.documents.list().num_rows == 4
        assert {tuple(tags) for tags in notes.documents.list()["tags"].to_pylist()} == {("all",)}


def test_a_single_path_needs_no_list(notes: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    with notes:
        assert notes.ingest(tmp_path / "a.txt").ingested == 1
        assert notes.ingest(str(tmp_path / "a.txt")).skipped == 1


def test_progress_is_told(notes: KnowledgeBase) -> None:
    steps: list[Progress] = []
    with notes:
        notes.ingest(text=TEXT, progress=steps.append)
    assert steps[-1].done == 1


def test_results_are_frozen_and_tables_are_arrow(notes: KnowledgeBase) -> None:
    with notes:
        notes.ingest(text=TEXT)
        result = notes.query("When is the launch?")
        assert isinstance(notes.memories.list(), pa.Table)
        assert isinstance(notes.export("memories"), pa.RecordBatchReader)
        assert notes.sql("select count(*) n from documents").read_all()["n"].to_pylist() == [1]
    assert result.answer is not None
    with pytest.raises(AttributeError):
        result.answer.text = "something else"  # type: ignore[misc]


def test_a_citation_s_quote_stands_at_its_offsets(notes: KnowledgeBase) -> None:
    with notes:
        notes.ingest(text=TEXT)
        answer = notes.query("What is the budget of Aurora?").answer
        assert answer is not None
        assert answer.citations
        for citation in answer.citations:
            assert citation.document_id is not None
            text = notes.documents.get(citation.document_id).document.text
            assert text[citation.start : citation.end] == citation.quote


def test_many_questions_are_asked_of_one_state(notes: KnowledgeBase) -> None:
    with notes:
        notes.ingest(text=TEXT, namespace="work")
        asked = ["the budget", Question("the budget", "b", "nowhere")]
        first, second = notes.query_many(asked, answer=False, limit=3)
    assert (first.id, second.id) == (None, "b")
    assert first.hits
    assert first.answer is None
    assert second.hits == ()


def test_memories_are_added_edited_looked_at_and_forgotten(notes: KnowledgeBase) -> None:
    with notes:
        first = notes.memories.add("tea, not coffee")
        second = notes.memories.edit(first.id, "coffee, not tea")
        third = notes.memories.edit(second.id, tags=("drink",), importance=1.0)
        view = notes.memories.get(third.id)
        assert [m.version for m in view.history] == [1, 2, 3]
        assert (view.memory.text, view.memory.tags) == ("coffee, not tea", ("drink",))
        assert notes.memories.list().num_rows == 1
        assert notes.memories.delete(third.id) == 3
        with pytest.raises(NotFoundError):
            notes.memories.get(first.id)


def test_what_was_found_by_a_word_is_found_by_the_new_one_after_an_edit(
    notes: KnowledgeBase,
) -> None:
    with notes:
        memory = notes.memories.add("The door code is 4711.")
        notes.memories.edit(memory.id, "The door code is 1234.")
        texts = [hit.text for hit in notes.query("door code", answer=False).hits]
    assert texts == ["The door code is 1234."]


@pytest.mark.parametrize(
    "statement",
    [{"text": " "}, {"text": "x", "importance": 7}, {"text": "x", "type_": "insight"},
     {"text": "x", "type_": "a b"}],
)  # fmt: skip
def test_a_statement_that_makes_no_sense_is_refused(
    notes: KnowledgeBase, statement: dict[str, Any]
) -> None:
    with notes:
        with pytest.raises(UsageError):
            notes.memories.add(**statement)
        assert notes.memories.list().num_rows == 0


def test_a_memory_that_rests_on_a_forgotten_one_loses_only_that_source(
    notes: KnowledgeBase,
) -> None:
    with notes:
        one, two = notes.memories.add("tea is nice"), notes.memories.add("coffee is nice")
        both = notes.memories.add("drinks are nice", source_ids=(one.id, two.id))
        notes.memories.delete(one.id)
        assert notes.memories.get(both.id).memory.source_ids == (two.id,)


def test_filters_limit_listings(notes: KnowledgeBase) -> None:
    with notes:
        notes.memories.add("tea", type_="preference", tags=("drink",))
        notes.memories.add("the code is 4711", namespace="home")
        assert notes.memories.list(Filters(tags=("drink",)))["text"].to_pylist() == ["tea"]
        assert notes.memories.list(Filters(namespaces=("home",))).num_rows == 1
        assert notes.memories.list(limit=1).num_rows == 1
        assert notes.memories.list(limit=1, offset=2).num_rows == 0


def test_an_id_may_be_cut_short_while_it_is_clear(notes: KnowledgeBase) -> None:
    with notes:
        memory = notes.memories.add("tea is nice")
        assert notes.memories.get(memory.id[:8]).memory.id == memory.id
        with pytest.raises(NotFoundError):
            notes.memories.get(memory.id[:3])


def test_what_one_object_writes_another_reads(notes: KnowledgeBase, tmp_path: Path) -> None:
    with notes, memctl.open("notes", home=tmp_path) as other:
        notes.memories.add("tea is nice")
        assert other.memories.list().num_rows == 1


def test_a_question_does_not_wait_for_a_ledger_that_somebody_else_is_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "BUSY_SECONDS", PATIENCE)
    notes = memctl.open("notes", home=tmp_path, create=True)
    notes.ingest(text=TEXT)
    with (
        notes,
        closing(
            sqlite3.connect(notes.store.folder / "ledger.sqlite", isolation_level=None)
        ) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        assert notes.query("When is the launch?").hits
        assert time.monotonic() - began < PATIENCE / 3
        assert notes.store.ledger.queries.recent() == []


def test_waiting_is_what_the_next_consolidation_would_look_at(notes: KnowledgeBase) -> None:
    with notes:
        notes.ingest(text=f"# Aurora\n\n{TEXT}\n\n" + "The venue has seats and tables. " * 200)
        notes.memories.add("The door code is 4711.")
        unconsolidated = notes.memories.list().num_rows
        would = notes.consolidate(dry_run=True).examined
        assert 0 < notes.statistics.content().waiting == would < unconsolidated
        notes.consolidate()
        assert notes.statistics.content().waiting == 0


def test_an_option_that_there_is_not_is_refused_and_help_tells_all(notes: KnowledgeBase) -> None:
    with notes:
        with pytest.raises(TypeError):
            notes.query("x", limt=1)  # type: ignore[call-arg]
        parameters = inspect.signature(notes.query).parameters
        assert {"mode", "limit", "filters", "answer", "explain"} <= set(parameters)
        assert all(each.kind is not each.VAR_KEYWORD for each in parameters.values())


@pytest.mark.parametrize("option", ["rounds", "hops", "limit"])
def test_a_number_with_which_nothing_is_found_is_refused(notes: KnowledgeBase, option: str) -> None:
    with pytest.raises(UsageError, match=f"{option} must be at least 1, not 0"):
        notes.query("the lease", mode="agentic", **{option: 0})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="offset must be at least 0, not -2"):
        notes.query("the lease", offset=-2)


def test_errors_and_records_are_imported_from_memctl_only_when_they_are_used() -> None:
    script = "import sys, memctl; print([m for m in sys.modules if m.startswith('memctl.')])"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert said.stdout.strip() == "[]"
    assert memctl.UsageError is UsageError
    assert all(getattr(memctl, name) is not None for name in memctl.__all__)
