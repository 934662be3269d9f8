"""One knowledge base that is asked again and again, while it changes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE

import memctl
from memctl.forget import Selection
from memctl.knowledge_base import KnowledgeBase, KnowledgeBases
from memctl.records import Filters, Hit
from memctl.search.query import synonyms
from memctl.search.retrieval import corpus
from memctl.search.retrieval.candidate_rows import InMemoryRows
from memctl.store.tables import snapshot
from memctl.store.tables.snapshot import Snapshot

RENT = "The rent of the workshop is 1,450 euros."
KEY = "The spare key hangs behind the boiler."
ASKED = "Where is the spare key?"


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[KnowledgeBase]:
    """A knowledge base that has been asked for what it does not know."""
    with memctl.open("notes", home=tmp_path, create=True) as made:
        made.ingest(text=RENT)
        assert not tells(made)
        yield made


def tells(bases: KnowledgeBase | KnowledgeBases, asked: str = ASKED, text: str = KEY) -> bool:
    """Whether both a context and the hits of a question have a text."""
    hits = {hit.text for hit in bases.query(asked).hits}
    context = bases.context(asked).text
    assert (text in hits) == (text in context)
    return text in hits


def elsewhere(home: Path, *arguments: str) -> None:
    """Run a command in a process of its own."""
    command = [sys.executable, "-m", "memctl", *arguments]
    environment = os.environ | {"MEMCTL_HOME": str(home)}
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=PATIENCE)


def test_changes_between_questions_are_seen_at_once(
    notes: KnowledgeBase,
) -> None:
    notes.ingest(text=KEY)
    assert tells(notes)
    document = notes.documents.list()["id"].to_pylist()[0]
    assert notes.documents.get(document).document.text == KEY
    notes.documents.delete(document)
    assert not tells(notes)


def test_writes_of_another_process_between_questions_are_seen_at_once(
    notes: KnowledgeBase, tmp_path: Path
) -> None:
    several = KnowledgeBases([notes])
    assert not tells(several)
    elsewhere(tmp_path, "ingest", "-k", "notes", "--text", KEY)
    assert tells(notes)
    assert tells(several)
    memory = next(hit for hit in notes.query(ASKED).hits if hit.text == KEY)
    elsewhere(tmp_path, "document", "delete", "-k", "notes", "--yes", memory.document_id or "")
    assert not tells(notes)
    assert not tells(several)


def test_names_that_are_merged_between_questions_are_one_at_once(tmp_path: Path) -> None:
    with memctl.open("notes", home=tmp_path, create=True) as notes:
        for text in ("Dr Ostrander repairs pumps.", "Ilse Varga writes the invoices.", RENT):
            notes.ingest(text=text)

        def led_to() -> int:
            asked = notes.query("What does Ostrander do?", mode="graph", explain=True)
            return len(asked.explain.get("paths", {}))

        assert led_to() == 0
        notes.graph.merge_names("Dr Ostrander", "Ilse Varga")
        assert led_to() == 2


def test_nothing_is_read_twice_for_questions_about_the_same_state(
    notes: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = []
    original = corpus.sample_term_statistics
    monkeypatch.setattr(
        corpus,
        "sample_term_statistics",
        lambda *given: counted.append(given) or original(*given),
    )
    for _ in range(3):
        tells(notes)
        notes.context(ASKED, filters=Filters(namespaces=("default",)))
    assert len(counted) == 1  # of the namespace; of all it was known
    notes.ingest(text=KEY)
    tells(notes)
    assert len(counted) == 2


def test_other_names_of_documents_are_read_once_for_the_same_state(
    notes: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    original = synonyms.kept_or_made
    monkeypatch.setattr(
        synonyms, "kept_or_made", lambda *given: read.append(given) or original(*given)
    )
    for number in range(1, 3):
        notes.ingest(text=f"The boiler is {number} years old.")
        tells(notes)
        tells(notes, "Who painted the fence?")
        assert len(read) == number


def test_what_is_counted_of_a_condition_is_counted_each_time(tmp_path: Path) -> None:
    fence = "Tom Frey paints the fence green."
    with (
        memctl.open("plain", home=tmp_path, create=True) as plain,
        memctl.open("dated", home=tmp_path, create=True) as dated,
    ):
        plain.ingest(text=fence)
        dated.ingest(text=fence, metadata={"year": 2024})
        of_2024 = Filters(metadata={"year": 2024})
        both = KnowledgeBases([plain, dated])
        assert both.query("Who paints the fence?", filters=of_2024).hits
        with memctl.open("plain", home=tmp_path) as anew:
            assert not anew.query("Who paints the fence?", filters=of_2024).hits


def test_what_was_counted_is_known_to_the_next_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scores() -> list[tuple[str, float]]:
        with memctl.open("notes", home=tmp_path, create=True) as notes:
            if not notes.documents.list().num_rows:
                notes.ingest(text=RENT)
                notes.ingest(text=KEY)
            return [(hit.text, hit.score) for hit in notes.query(ASKED).hits]

    expected = scores()
    counted = []
    for name in ("_count_languages", "_count_matching", "sample_term_statistics"):
        original = getattr(corpus, name)
        monkeypatch.setattr(
            corpus, name, lambda *given, _of=original: counted.append(given) or _of(*given)
        )
    assert scores() == expected
    assert not counted
    with memctl.open("notes", home=tmp_path) as notes:
        notes.ingest(text="The boiler is serviced in May.")
    scores()
    assert counted


def test_repeated_reads_come_from_memory_and_are_the_same(
    notes: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        notes.ingest(text=f"Pump {number} of the workshop was oiled in week {number}.")
    for document in notes.documents.list()["id"].to_pylist()[::4]:
        notes.documents.delete(document)  # so that a row's number is not what the engine has for it
    looked_up = []
    original = Snapshot.rows
    monkeypatch.setattr(
        Snapshot, "rows", lambda *given: looked_up.append(given) or original(*given)
    )

    def found() -> list[tuple[tuple[str, float, str], ...]]:
        asked = (notes.query(f"When was pump {number} oiled?") for number in range(8))
        return [tuple((h.memory_id, h.score, h.text) for h in each.hits) for each in asked]

    monkeypatch.setattr(snapshot, "_ONE_QUESTION", 8_000)
    first = found()
    assert looked_up
    looked_up.clear()
    assert found() == first
    assert not looked_up
    monkeypatch.setattr(corpus, "MAX_IN_MEMORY", 0)
    monkeypatch.setattr(corpus, "MAX_BYTES_IN_MEMORY", 0)
    monkeypatch.setattr(snapshot, "MAX_CACHED_ROWS", 0)
    monkeypatch.setattr(snapshot, "MAX_CACHED_BYTES", 6_000)
    notes.ingest(text=KEY)
    notes.documents.delete(notes.documents.list()["id"].to_pylist()[0])
    assert found() == first
    assert {"level", "search_text"} <= {name for _, _, _, names in looked_up for name in names}
    looked_up.clear()
    assert found() == first
    looked_up_now = {name for _, _, _, names in looked_up for name in names}
    assert "search_text" in looked_up_now  # there is no room for it
    assert "level" not in looked_up_now


def test_a_large_state_is_searched_in_memory_once_it_is_asked_often(
    notes: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "MAX_IN_MEMORY", 0)
    for number in range(12):
        notes.ingest(text=f"Pump {number} was oiled.", metadata={"pump": number})
    searched, looked_up = [], []
    nearest, get = Snapshot.nearest, Snapshot.get
    monkeypatch.setattr(
        Snapshot,
        "nearest",
        lambda *given, **options: searched.append(given) or nearest(*given, **options),
    )
    monkeypatch.setattr(Snapshot, "get", lambda *given: looked_up.append(given) or get(*given))

    def found() -> list[tuple[Hit, ...]]:
        return [notes.query(f"Was pump {n} oiled?", answer=False).hits for n in range(4)]

    first = found()
    assert first[0][0].metadata == {"pump": 0}
    assert searched
    assert looked_up
    searched.clear()
    looked_up.clear()
    assert found() == first
    assert not searched
    assert not looked_up


def test_room_in_memory_is_given_back_with_the_state_that_held_it(
    notes: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "MAX_IN_MEMORY", 0)
    monkeypatch.setattr(corpus, "_CACHED_SCOPES", 2)
    for number in range(6):
        notes.ingest(text=f"Pump {number} was oiled.", tags=[f"pump{number}"])
    made: list[InMemoryRows] = []

    class CountedRows(InMemoryRows):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            made.append(self)

    monkeypatch.setattr(corpus, "InMemoryRows", CountedRows)
    monkeypatch.setattr(corpus, "MAX_BYTES_IN_MEMORY", 4 * (500 + 6 * 256))
    for _ in range(2):
        for number in range(6):
            for question in ("Was it oiled?", "Was a pump oiled?", "oiled?", "Which pump?"):
                notes.query(question, filters=Filters(tags=(f"pump{number}",)), answer=False)
    assert len(made) == 12


def test_a_question_asked_before_keeps_nothing_on_disk_of_what_is_forgotten(
    notes: KnowledgeBase,
) -> None:
    notes.ingest(text=KEY)
    assert tells(notes)
    document = notes.documents.list()["id"].to_pylist()[0]
    report = notes.forget(Selection(documents=(document,)))
    assert report.left == ()
    assert not tells(notes)
