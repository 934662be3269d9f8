"""A long ingest indexes what it has taken in before it is done."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import memctl
from memctl.ingest import document_processing, ingest_pipeline
from memctl.ingest.batch_preparation import IngestLimits
from memctl.ingest.discovery.ingest_inputs import from_jsonl
from memctl.ingest.ingest_pipeline import IngestStopped
from memctl.records import Progress, SourceText
from memctl.schema.table_names import UPKEEP
from memctl.sessions import folding
from memctl.sessions.conversations import Message
from memctl.store.ledger.session_repositories import Turn, TurnRepository
from memctl.store.tables import upkeep
from memctl.understanding.builtin_understander import BuiltinUnderstander

from .conftest import Bench

NAMES = ("Ann Keller", "Bo Lind", "Cleo Marsh")


def records(count: int) -> list[dict[str, Any]]:
    return [
        {"id": str(at), "text": f"{NAMES[at % 3]} moved crate number {at} to the harbour office."}
        for at in range(count)
    ]


def lines(count: int) -> io.BytesIO:
    return io.BytesIO("".join(json.dumps(each) + "\n" for each in records(count)).encode())


@pytest.fixture
def often(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Commits of a few records, after some of which there is upkeep."""
    monkeypatch.setattr(ingest_pipeline, "UPKEEP_MEMORIES", 20)
    monkeypatch.setattr(upkeep, "max_unindexed", lambda _: 10)
    monkeypatch.setattr(bench.ingestor, "_limits", IngestLimits(documents=6, together=3))
    return bench


def test_a_run_that_breaks_off_leaves_what_it_has_taken_in_indexed(often: Bench) -> None:
    def break_off(progress: Progress) -> None:
        if progress.done >= 45:
            raise OSError("the disk is gone")

    with pytest.raises(IngestStopped):
        often.ingestor.ingest(from_jsonl(lines(60), "r.jsonl"), break_off)
    memories = often.store.snapshot().dataset("memories")
    indexed = [item.num_rows_indexed for item in memories.describe_indices()]
    assert min(indexed) >= memories.count_rows() // 2 > 0


def test_what_is_remembered_is_the_same_with_it(often: Bench) -> None:
    report = often.ingestor.ingest(from_jsonl(lines(60), "r.jsonl"))
    assert report.ingested == 60
    assert len(often.rows("documents")) == 60
    counts = {row["name"]: row["mention_count"] for row in often.rows("entities")}
    assert {name: counts[name] for name in NAMES} == dict.fromkeys(NAMES, 20)
    again = often.ingestor.ingest(from_jsonl(lines(60), "r.jsonl"))
    assert (again.ingested, again.skipped) == (0, 60)


def test_turns_and_other_lines_that_come_together_are_indexed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest_pipeline, "MANY_MEMORIES", 40)  # of all runs together
    monkeypatch.setattr(folding, "_TURNS_PER_BATCH", 7)
    monkeypatch.setattr(upkeep, "max_unindexed", lambda _: 10)
    given = records(40)
    for at, record in enumerate(given[:20]):
        record |= {"session_id": "s", "turn": at}
    with memctl.open("boats", home=tmp_path, create=True) as kb:
        kb.ingest(jsonl=io.BytesIO("".join(json.dumps(each) + "\n" for each in given).encode()))
        jobs = [job.kind for job in kb.store.ledger.jobs.recent(9)]
        memories = kb.store.snapshot().dataset("memories")
    assert jobs.count(UPKEEP) == 1
    indexed = [item.num_rows_indexed for item in memories.describe_indices()]
    assert min(indexed) == memories.count_rows() >= 40


def test_many_turns_are_indexed_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest_pipeline, "MANY_MEMORIES", 1)
    monkeypatch.setattr(folding, "_TURNS_PER_BATCH", 7)
    monkeypatch.setattr(folding, "UPKEEP_MEMORIES", 7)
    given = [record | {"session_id": "s", "turn": at} for at, record in enumerate(records(35))]
    with memctl.open("boats", home=tmp_path, create=True) as kb:
        kb.ingest(jsonl=io.BytesIO("".join(json.dumps(each) + "\n" for each in given).encode()))
        jobs = [job.kind for job in kb.store.ledger.jobs.recent(9)]
    assert jobs.count(UPKEEP) == 3  # after 14 and after 28 memories, and at the end


def test_turns_are_indexed_though_others_take_over_those_that_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest_pipeline, "MANY_MEMORIES", 1)
    monkeypatch.setattr(folding, "_TURNS_PER_BATCH", 7)
    note_documents = TurnRepository.note_documents
    calls: list[int] = []

    def note_the_first(turns: TurnRepository, taken: list[Turn]) -> int:
        calls.append(len(taken))
        return note_documents(turns, taken) if len(calls) == 1 else 0

    monkeypatch.setattr(TurnRepository, "note_documents", note_the_first)
    given = [record | {"session_id": "s", "turn": at} for at, record in enumerate(records(10))]
    with memctl.open("boats", home=tmp_path, create=True) as kb:
        kb.ingest(jsonl=io.BytesIO("".join(json.dumps(each) + "\n" for each in given).encode()))
        assert calls == [7, *[3] * 5]
        assert UPKEEP in [job.kind for job in kb.store.ledger.jobs.recent(9)]


def test_what_was_left_to_a_run_that_stopped_does_not_count_for_the_next(
    often: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(progress: Progress) -> None:
        if progress.done >= 50:
            raise OSError("the disk is gone")

    monkeypatch.setattr(ingest_pipeline, "MANY_MEMORIES", 40)
    often.ingestor.ingest(from_jsonl(lines(45), "r.jsonl"), turns_follow=lambda: True)
    with pytest.raises((IngestStopped, OSError)):
        often.ingestor.ingest(from_jsonl(lines(60), "r.jsonl"), break_off)
    often.ingestor.ingest(from_jsonl(lines(61), "r.jsonl"))
    assert not often.store.ledger.jobs.recent(9)


def test_lines_are_indexed_though_a_turn_of_another_conversation_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest_pipeline, "MANY_MEMORIES", 1)
    with memctl.open("boats", home=tmp_path, create=True) as kb:
        talk = kb.sessions.start("talk")
        kb.sessions.say(talk, Message(sender="user", content="The mast is made of ash."))
        kb.ingest(jsonl=lines(40))
        assert kb.store.ledger.turns.has_pending()
        assert UPKEEP in [job.kind for job in kb.store.ledger.jobs.recent(9)]


@pytest.fixture
def read_closely(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts the reading model gets while a test runs, each time."""
    counts: list[int] = []
    understand = BuiltinUnderstander.understand

    def count(self: BuiltinUnderstander, texts: Sequence[SourceText]) -> Any:
        if self._encoder is not None:
            counts.append(len(texts))
        return understand(self, texts)

    monkeypatch.setattr(BuiltinUnderstander, "understand", count)
    return counts


def test_the_last_few_of_many_records_are_not_read_closely(
    bench: Bench, read_closely: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_processing, "UNDERSTOOD_TOGETHER", 70)
    assert bench.ingestor.ingest(from_jsonl(lines(75), "r.jsonl")).ingested == 75
    assert not read_closely
    bench.ingestor.ingest(from_jsonl(lines(80), "r.jsonl"))
    assert read_closely == [5]


@pytest.mark.parametrize(("count", "at_once"), [(270, 20_000), (80, 70)])
def test_the_last_few_of_many_turns_are_not_read_closely(
    tmp_path: Path,
    read_closely: list[int],
    monkeypatch: pytest.MonkeyPatch,
    count: int,
    at_once: int,
) -> None:
    monkeypatch.setattr(folding, "_TURNS_PER_BATCH", at_once)
    given = [record | {"session_id": "s", "turn": at} for at, record in enumerate(records(count))]
    with memctl.open("boats", home=tmp_path, create=True) as kb:
        kb.ingest(jsonl=io.BytesIO("".join(json.dumps(each) + "\n" for each in given).encode()))
        assert not kb.store.ledger.turns.has_pending()
    assert not read_closely
