"""From sources to memories, through a real store."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pytest
from waiting import PATIENCE

from memctl.errors import LockedError
from memctl.ids import document_id
from memctl.ingest import batch_preparation, deduplication, source_reading
from memctl.ingest.batch_preparation import IngestLimits
from memctl.ingest.batches import PIPELINE_VERSION, Batch, ReadFailure
from memctl.ingest.discovery.sources import Labels, Source, from_paths
from memctl.ingest.ingest_pipeline import IngestStopped
from memctl.ingest.reprocessing import older_documents
from memctl.readers import Readers
from memctl.records import FileOutcome, Progress
from memctl.store.tables.filter_expressions import col

if TYPE_CHECKING:
    from conftest import Bench

LONG = "\n\n".join(
    f"Paragraph {n} tells about the harbour of Lisbon and its {n} ships. " * 2 for n in range(8)
)


def outcomes(report: object) -> list[tuple[str, str]]:
    return [(o.outcome, Path(o.source).name) for o in report.outcomes]  # type: ignore[attr-defined]


# --- what is made of a document ------------------------------------------------------------------


def test_every_memory_with_offsets_quotes_its_document_exactly(bench: Bench) -> None:
    bench.paths(
        bench.file("long.md", f"# Ports\n\n{LONG}\n\nWe decided to leave on Friday.\n"),
        bench.file("chat.txt", "Ann: remember: the door code is 4711\nBob: I prefer tea.\n" * 3),
    )
    texts = {row["id"]: row["text"] for row in bench.rows("documents", "id", "text")}
    placed = [row for row in bench.rows("memories") if row["start"] is not None]
    assert len(placed) > 8
    for row in placed:
        if row["level"] == "evidence":
            assert texts[row["document_id"]][row["start"] : row["end"]] == row["text"]


def test_distilled_memories_rest_on_the_passages_that_they_stand_in(bench: Bench) -> None:
    bench.paths(bench.file("n.md", f"{LONG}\n\nWe decided to leave Lisbon on Friday 3 May 2024.\n"))
    rows = {row["id"]: row for row in bench.rows("memories")}
    distilled = [r for r in rows.values() if r["level"] == "memory" and r["type"] != "gist"]
    assert distilled
    for row in distilled:
        for source in row["source_ids"]:
            passage = rows[source]
            assert passage["level"] == "evidence"
            assert passage["start"] <= row["start"] < row["end"] <= passage["end"]


def test_only_a_document_of_several_passages_has_a_gist_of_its_own(bench: Bench) -> None:
    bench.paths(bench.file("short.txt", "Call Ann back."), bench.file("long.txt", LONG))
    gists = [row for row in bench.rows("memories") if row["type"] == "gist"]
    (long,) = [row for row in bench.rows("documents") if row["title"] == "long"]
    assert [row["document_id"] for row in gists] == [long["id"]]
    assert gists[0]["text"] == long["summary"]
    evidence = {r["id"] for r in bench.rows("memories") if r["level"] == "evidence"}
    assert set(gists[0]["source_ids"]) <= evidence
    assert gists[0]["source_ids"]


def test_a_memory_can_be_found_by_its_words_and_by_its_vector(bench: Bench) -> None:
    bench.paths(bench.file("a.txt", "The lighthouse keeper lost his spectacles in the storm."))
    bench.paths(bench.file("b.txt", "Butter, flour and sugar make a pound cake."))
    snapshot = bench.store.snapshot()
    found = snapshot.keyword(["lighthous", "spectacl", "lighthouse"], columns=["text"])
    assert found["text"].to_pylist() == ["The lighthouse keeper lost his spectacles in the storm."]
    vectors = snapshot.scan("memories", columns=["text", "vector"])
    lengths = [np.linalg.norm(np.array(v, np.float32)) for v in vectors["vector"].to_pylist()]
    assert len(lengths) >= 2
    assert lengths == pytest.approx([1] * len(lengths), abs=1e-2)


def test_a_record_keeps_its_fields_in_document_and_memory(bench: Bench) -> None:
    bench.records(
        {
            "id": "x1",
            "text": "Ann likes mint tea.",
            "namespace": "user:ann",
            "title": "Chat",
            "created_at": "2024-01-02",
            "session_id": "s",
            "turn": 4,
            "tags": ["tea"],
            "metadata": {"k": [1]},
            "source": "app",
        }
    )
    (document,) = bench.rows("documents")
    (memory,) = [row for row in bench.rows("memories") if row["level"] == "evidence"]
    assert document["created_at"] == memory["created_at"] == datetime(2024, 1, 2, tzinfo=UTC)
    assert (document["external_id"], memory["external_id"]) == ("x1", "x1")
    assert (memory["session_id"], memory["turn"], memory["type"]) == ("s", 4, "turn")
    assert (memory["namespace"], memory["source"], memory["tags"]) == ("user:ann", "app", ["tea"])
    assert document["metadata"] == '{"k": [1]}'
    assert memory["valid_from"] == bench.clock.now


def test_a_file_is_as_old_as_its_time_stamp_where_it_says_nothing_itself(bench: Bench) -> None:
    path = bench.file("a.txt", "Old news.")
    os.utime(path, (1_000_000_000, 1_000_000_000))
    bench.paths(path)
    (document,) = bench.rows("documents")
    assert document["created_at"] == datetime.fromtimestamp(1_000_000_000, UTC)
    assert document["metadata"] == '{"dated_by_file": "2001-09-09T01:46:40+00:00"}'


def test_a_file_that_says_its_day_is_not_dated_by_its_time_stamp(bench: Bench) -> None:
    bench.paths(bench.file("2026-03-02 a.txt", "Old news."))
    assert bench.rows("documents")[0]["metadata"] == "{}"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("# Rule 7\n\nStatus: superseded by rule 9\n\nOld.", "superseded by rule 9"),
        ("# Rule 7\n\n## Status\n\nDeprecated\n\n## Context\n\nOld.", "Deprecated"),
        ("---\nstatus: obsolete\n---\n\nOld news.", "obsolete"),
        ("This note is superseded by rule 9.\n\nOld.", "superseded by rule 9"),
        ("# Rule 7\n\n3 May\n\n> Note: this policy was withdrawn.", "withdrawn"),
        ("# House\n\nThis boiler was replaced in 2024. The alarm code is 4417.", None),
        ("# House\n\n" + "The roof is new.\n" * 9 + "This page is outdated.", None),
        ("Tell Ann if this document is outdated.", None),
        ("Status: accepted\n\nThe replaced pump is deprecated in value.", None),
    ],
)
def test_a_text_that_is_no_longer_in_force_has_its_status_in_its_metadata(
    bench: Bench, text: str, status: str | None
) -> None:
    bench.paths(bench.file("rule.md", text))
    assert json.loads(bench.rows("documents")[0]["metadata"]).get("status") == status


def test_wikilinks_become_relations_to_pages_with_their_evidence(bench: Bench) -> None:
    bench.paths(bench.file("a.md", "See [[Plan B|the plan]] and [[Ann#Phone]] for more."))
    relations = {row["text"]: row for row in bench.rows("relations")}
    assert set(relations) == {"Plan B", "Ann"}
    (memory,) = bench.rows("memories", "id")
    assert relations["Plan B"]["memory_ids"] == [memory["id"]]
    pages = {row["id"] for row in bench.rows("entities") if row["type"] == "page"}
    assert {row["target_id"] for row in relations.values()} <= pages


def test_entities_are_counted_alike_in_many_commits(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench.ingestor, "_limits", IngestLimits(documents=1, together=1))
    names = ("Fatima Okafor", "Ivan Larsen", "Hanna Novak")
    bench.records(*({"text": f"We saw {names[n % 3]} on day {n}."} for n in range(12)))
    counts = {row["name"]: row["mention_count"] for row in bench.rows("entities")}
    assert {name: counts[name] for name in names} == dict.fromkeys(names, 4)
    assert len(bench.rows("entities")) == len({row["id"] for row in bench.rows("entities")})


def test_entities_are_counted_up_over_ingests(bench: Bench) -> None:
    bench.records({"id": "a", "text": "Fatima Okafor met us.", "created_at": "2024-01-01"})
    bench.records({"id": "b", "text": "We saw Fatima Okafor.", "created_at": "2024-02-01"})
    (entity,) = [row for row in bench.rows("entities") if row["name"] == "Fatima Okafor"]
    assert entity["mention_count"] == 2
    assert entity["first_seen"] == datetime(2024, 1, 1, tzinfo=UTC)
    assert entity["last_seen"] == datetime(2024, 2, 1, tzinfo=UTC)


def test_what_is_new_weighs_more_than_what_has_been_said_before(bench: Bench) -> None:
    bench.records({"id": 0, "text": "The cat sleeps on the warm kitchen floor."})
    bench.records({"id": 1, "text": "The cat sleeps on the warm kitchen floor today."})
    bench.records({"id": 2, "text": "Quarterly interest rates rose across european banks."})
    signals = {r["external_id"]: json.loads(r["signals"]) for r in bench.rows("documents")}
    assert "novelty" not in signals["0"]
    assert 2 * signals["1"]["novelty"] < signals["2"]["novelty"]
    for row in bench.rows("documents"):
        total = sum(json.loads(row["signals"]).values())
        assert row["importance"] == pytest.approx(total, abs=1e-3)


# --- known content -------------------------------------------------------------------------------


def test_the_same_content_is_known_under_another_name_and_within_one_batch(bench: Bench) -> None:
    files = [bench.file(name, "The same words.") for name in ("a.txt", "b.txt")]
    assert outcomes(bench.paths(*files)) == [("known", "b.txt"), ("ingested", "a.txt")]
    again = bench.paths(bench.file("c.txt", "The same words."))
    assert outcomes(again) == [("known", "c.txt")]
    assert again.outcomes[0].document_id == bench.rows("documents")[0]["id"]
    assert len(bench.rows("documents")) == 1


def test_the_same_content_in_another_namespace_is_another_document(bench: Bench) -> None:
    path = bench.file("a.txt", "The same words.")
    bench.paths(path)
    report = bench.paths(path, labels=Labels(namespace="user:bob"))
    assert report.ingested == 1


def test_a_file_whose_twin_failed_is_not_called_known(bench: Bench) -> None:
    broken = b"%PDF-1.4 broken"
    report = bench.paths(bench.file("a.pdf", broken), bench.file("b.pdf", broken))
    assert outcomes(report) == [("failed", "a.pdf"), ("failed", "b.pdf")]


def test_records_with_ids_of_their_own_may_say_the_same(bench: Bench) -> None:
    report = bench.records({"id": 1, "text": "ok"}, {"id": 2, "text": "ok"})
    assert report.ingested == 2


def test_a_new_text_under_a_known_id_supersedes_the_old_one(bench: Bench) -> None:
    bench.records({"id": "x", "text": "The code is 1."})
    bench.clock.advance(days=1)
    report = bench.records({"id": "x", "text": "The code is 2."})
    assert outcomes(report) == [("superseded", "r.jsonl")]
    old, new = sorted(bench.rows("documents"), key=lambda row: row["ingested_at"])
    assert (old["status"], old["superseded_by"]) == ("superseded", new["id"])
    assert (new["status"], new["superseded_by"]) == ("indexed", None)
    ends = {row["text"]: row["valid_to"] for row in bench.rows("memories")}
    assert ends["The code is 1."] == bench.clock.now
    assert ends["The code is 2."] is None


def test_a_text_may_come_back_and_every_version_stays_in_history(bench: Bench) -> None:
    for text in ("one", "two", "one", "two", "two"):
        bench.clock.advance(hours=1)
        bench.records({"id": "x", "text": text})
    rows = sorted(bench.rows("documents"), key=lambda row: row["ingested_at"])
    assert [row["text"] for row in rows] == ["one", "two", "one", "two"]
    assert [row["status"] for row in rows] == ["superseded"] * 3 + ["indexed"]
    assert len({row["id"] for row in rows}) == 4


def test_versions_that_follow_each_other_in_one_batch_end_with_the_last(bench: Bench) -> None:
    report = bench.records(*({"id": "x", "text": text} for text in ("one", "two", "two", "one")))
    assert (report.ingested, report.skipped) == (3, 1)
    live = [row for row in bench.rows("documents") if row["status"] == "indexed"]
    assert [row["text"] for row in live] == ["one"]
    current = [row for row in bench.rows("memories") if row["valid_to"] is None]
    assert [row["text"] for row in current] == ["one"]


def test_a_source_that_names_what_it_supersedes_closes_that_document(bench: Bench) -> None:
    first = bench.paths(bench.file("a.md", "Version one of [[A]].")).outcomes[0].document_id
    path = bench.file("a.md", "Version two of [[A]].")
    bench.ingestor.ingest([Source(str(path), path, supersedes=first)])
    statuses = {row["id"]: row["status"] for row in bench.rows("documents", "id", "status")}
    assert statuses.pop(first or "") == "superseded"
    assert list(statuses.values()) == ["indexed"]
    ends = {r["source_id"]: r["valid_to"] for r in bench.rows("relations", "source_id", "valid_to")}
    assert ends[first or ""] is not None


def test_what_is_gone_becomes_history_and_can_come_back(bench: Bench) -> None:
    path = bench.file("a.txt", "Here today.")
    gone = bench.paths(path).outcomes[0].document_id or ""
    bench.clock.advance(days=1)
    bench.ingestor.retire([gone, "d_nobody"])
    (row,) = bench.rows("documents")
    assert row["status"] == "gone"
    assert bench.rows("memories")[0]["valid_to"] == bench.clock.now
    back = bench.paths(path)
    assert outcomes(back) == [("ingested", "a.txt")]
    assert back.outcomes[0].document_id != gone


def test_ids_depend_on_nothing_but_namespace_and_content(bench: Bench) -> None:
    import hashlib

    report = bench.paths(bench.file("a.txt", "Here today."))
    sha256 = hashlib.sha256(b"Here today.").hexdigest()
    assert report.outcomes[0].document_id == document_id("default", sha256)


# --- failures ------------------------------------------------------------------------------------


def test_one_bad_file_never_stops_the_others(bench: Bench) -> None:
    report = bench.paths(
        bench.file("empty.txt", ""),
        bench.file("broken.pdf", b"%PDF-1.7 truncated"),
        bench.file("good.txt", "All is well."),
        bench.folder / "missing.txt",
    )
    assert (report.ingested, report.empty, report.failed) == (1, 1, 2)
    failures = [outcome for outcome in report.outcomes if outcome.outcome == "failed"]
    assert all(outcome.reason and outcome.hint for outcome in failures)


def test_a_file_that_changes_while_it_is_read_is_not_taken_in(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = bench.file("a.txt", "before")
    identify = batch_preparation.identify

    def then_somebody_writes(source: Source) -> object:
        item = identify(source)
        path.write_text("after that")
        return item

    monkeypatch.setattr(batch_preparation, "identify", then_somebody_writes)
    report = bench.paths(path)
    assert "changed while" in report.outcomes[0].reason
    assert bench.rows("documents") == []


def test_a_store_that_is_locked_stops_the_ingest_and_nothing_is_written(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = bench.store.write
    monkeypatch.setattr(bench.store, "write", lambda: write(0.1))
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with write():
            held.set()
            done.wait(PATIENCE)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(PATIENCE)
    with pytest.raises(LockedError):
        bench.records({"text": "never"})
    done.set()
    thread.join()
    assert bench.rows("documents") == []


def test_a_store_that_fails_half_way_says_what_was_done(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = bench.store.write
    calls = iter([True, False])

    def fills_up() -> object:
        if next(calls):
            return write()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bench.store, "write", fills_up)
    monkeypatch.setattr(bench.ingestor, "_limits", batch_preparation.IngestLimits(documents=2))
    monkeypatch.setattr(batch_preparation, "WORKED_TOGETHER", 2)
    with pytest.raises(IngestStopped, match="2 documents were ingested before") as caught:
        bench.records(*({"id": n, "text": f"text {n}"} for n in range(6)))
    assert caught.value.report.ingested == 2
    assert len(bench.rows("documents")) == 2


def test_an_ingest_that_fails_leaves_no_thread_behind(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        raise OSError(28, "No space left on device")

    started: list[threading.Thread] = []
    start = threading.Thread.start

    def noted(self: threading.Thread) -> None:
        """Note what this ingest starts, and not what the test before has left."""
        if threading.current_thread() in (threading.main_thread(), *started):
            started.append(self)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", noted)
    monkeypatch.setattr(bench.store, "write", fails)
    with pytest.raises(OSError, match="No space"):
        bench.records(*({"id": "same", "text": f"text {n}"} for n in range(50)))
    assert started
    for thread in started:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in started)


def test_an_error_in_the_stream_of_sources_reaches_the_caller(bench: Bench) -> None:
    def sources() -> Iterator[Source | FileOutcome]:
        yield Source("text", text="first")
        raise KeyError("broken stream")

    with pytest.raises(KeyError, match="broken stream"):
        bench.ingestor.ingest(sources())


# --- sources in parts ----------------------------------------------------------------------------


def test_a_source_that_fails_in_its_first_part_is_reported_and_may_come_again(
    bench: Bench, big_csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_preparation, "texts_of", lambda wanted, readers: fails())
    report = bench.paths(big_csv, big_csv)
    assert (report.ingested, report.failed) == (0, 2)


def fails() -> Iterator[object]:
    raise source_reading.Unreadable(ReadFailure("damaged from the start", "", ""))
    yield


@pytest.fixture
def big_csv(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table that its reader gives in several parts."""
    from memctl.readers import pieces
    from memctl.readers.data_files import table_rows
    from memctl.understanding import sentence_reading

    for module in (pieces, table_rows):
        monkeypatch.setattr(module, "PART_CHARS", 2_000)
    monkeypatch.setattr(sentence_reading, "MAX_ROWS_READ", 2)  # each of them takes its time
    rows = "".join(f"{n},city {n},{n * n}\n" for n in range(1_000))
    return bench.file("big.csv", "number,city,square\n" + rows)


def test_a_source_in_parts_is_one_document_with_one_outcome(bench: Bench, big_csv: Path) -> None:
    report = bench.paths(big_csv, bench.file("small.txt", "Something small."))
    assert (report.ingested, report.failed) == (2, 0)
    parts = [row for row in bench.rows("documents") if row["media_type"] == "text/csv"]
    assert len(parts) > 3
    assert {row["root_id"] for row in parts} == {min(row["id"] for row in parts)}
    assert sorted(row["part"] for row in parts) == list(range(len(parts)))
    (outcome,) = [o for o in report.outcomes if o.source.endswith("big.csv")]
    of_csv = [r for r in bench.rows("memories") if r["source"].endswith("big.csv")]
    assert outcome.memories == len(of_csv)
    texts = {row["id"]: row["text"] for row in parts}
    for row in of_csv:
        if row["level"] == "evidence":
            assert texts[row["document_id"]][row["start"] : row["end"]] == row["text"]


def test_progress_is_told_after_each_part_of_a_source(bench: Bench, big_csv: Path) -> None:
    steps: list[Progress] = []
    bench.ingestor.ingest(from_paths([big_csv]), steps.append)
    assert (steps[0].done, steps[0].note) == (0, "reading")
    of_parts = [progress for progress in steps if progress.source]
    assert len(of_parts) > 5
    assert {progress.source for progress in of_parts} == {str(big_csv)}
    counts = [int(progress.note.split()[0].replace(",", "")) for progress in of_parts]
    assert counts == sorted(counts)
    assert of_parts[-1].note.endswith("MB of text")
    assert (steps[-1].done, steps[-1].note) == (1, "")


def test_the_progress_of_the_only_source_is_that_of_its_text(bench: Bench, big_csv: Path) -> None:
    steps: list[Progress] = []
    bench.ingestor.ingest(from_paths([big_csv]), steps.append, total=1)
    kilobytes = big_csv.stat().st_size // 1000
    of_parts = [progress for progress in steps if progress.source]
    assert {(progress.total, progress.unit) for progress in of_parts} == {(kilobytes, "kB of text")}
    done = [progress.done for progress in of_parts]
    assert done == sorted(done)
    assert 0 < done[0] < done[-1] <= kilobytes
    assert (steps[-1].done, steps[-1].total, steps[-1].unit) == (1, 1, "documents")


def test_the_parts_of_a_source_become_visible_at_once(
    bench: Bench, big_csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    clock = bench.clock

    def looks() -> datetime:
        if threading.current_thread() is not threading.main_thread():  # a part is being made
            seen.append(bench.store.snapshot().count("documents"))
        return clock()

    monkeypatch.setattr(bench.ingestor, "_clock", looks)
    bench.paths(big_csv)
    assert len(seen) > 3
    assert set(seen) == {0}


def test_rows_of_a_source_in_parts_are_let_go_of_once_they_are_written(
    bench: Bench, big_csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memctl.ingest.batch_writing import _Writing

    class Counted(Batch):
        alive: ClassVar[int] = 0

        def __post_init__(self) -> None:
            Counted.alive += 1

        def __del__(self) -> None:
            Counted.alive -= 1

    alive: list[int] = []
    add = _Writing.add

    def counts(self: _Writing, batch: Batch) -> None:
        add(self, batch)
        alive.append(Counted.alive)

    monkeypatch.setattr(batch_preparation, "Batch", Counted)
    monkeypatch.setattr(_Writing, "add", counts)
    bench.paths(big_csv)
    assert len(alive) > 12
    assert max(alive) < 8  # the one in hand, and the few that are prepared ahead of it


def test_a_source_that_fails_in_a_later_part_leaves_nothing(
    bench: Bench, big_csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = source_reading._read

    def breaks(readers: Readers, path: Path, name: str | None) -> Iterator[object]:
        for number, part in enumerate(read(readers, path, name)):
            if number == 3:
                raise source_reading.Unreadable(ReadFailure("row 99 is damaged", "", ""))
            yield part

    monkeypatch.setattr(source_reading, "_read", breaks)
    report = bench.paths(big_csv, bench.file("b.txt", "After it."))
    assert (report.ingested, report.failed) == (1, 1)
    (failure,) = [outcome for outcome in report.outcomes if outcome.outcome == "failed"]
    assert "row 99" in failure.reason
    assert [row["title"] for row in bench.rows("documents")] == ["b"]


def test_a_newer_version_of_a_source_in_parts_closes_all_of_them(
    bench: Bench, big_csv: Path
) -> None:
    first = bench.paths(big_csv).outcomes[0].document_id
    path = bench.file("other.csv", "a,b\n1,2\n")
    bench.ingestor.ingest([Source(str(path), path, supersedes=first)])
    closed = bench.store.snapshot().count("documents", col("status") == "superseded")
    assert closed == len(bench.rows("documents")) - 1 > 3
    assert bench.store.snapshot().count("memories", col("valid_to").is_null()) < 5


def test_a_turn_that_begins_with_a_name_is_said_by_it(bench: Bench) -> None:
    turn = {"session_id": "s", "turn": 1}
    bench.records(
        {"id": 1, "text": "Ann Lee: the pears are ripe", **turn},
        {"id": 2, "text": "Remember: the pears are ripe", **turn},
        {"id": 3, "text": "Ann Lee: the pears are ripe, too"},
        {"id": 4, "text": "Ann Lee: they are ripe", "speaker": "Bob", **turn},
    )
    spoken = {row["external_id"]: row["speaker"] for row in bench.rows("memories")
              if row["level"] == "evidence"}  # fmt: skip
    assert spoken == {"1": "Ann Lee", "2": None, "3": None, "4": "Bob"}


# --- reprocessing --------------------------------------------------------------------------------


def test_reprocessing_makes_the_same_rows_again(bench: Bench) -> None:
    bench.paths(bench.file("a.md", f"# T\n\n{LONG}\n\nWe decided to go."))
    bench.records({"id": 1, "text": "Ann: hello", "session_id": "s", "turn": 7, "speaker": "Ann"})
    before = bench.rows_but_importance()
    ids = [row["id"] for row in bench.rows("documents")]
    report = bench.ingestor.reprocess(ids)
    assert (report.ingested, report.failed) == (2, 0)
    assert bench.rows_but_importance() == before
    assert len(bench.rows("documents")) == 2


def _wav(bench: Bench) -> Path:
    return bench.file(
        "talk.wav",
        b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0"
        b"\x01\0\x08\0data\0\0\0\0",
    )


def test_reprocessing_a_file_that_is_gone_or_changed_says_so(bench: Bench) -> None:
    paths = [bench.file(name, name) for name in ("a.txt", "b.txt")]
    ids = [o.document_id or "" for o in bench.paths(*paths).outcomes]
    paths[0].unlink()
    paths[1].write_text("something else")
    report = bench.ingestor.reprocess(ids)
    reasons = " ".join(outcome.reason for outcome in report.outcomes)
    assert report.failed == 2
    assert "no longer there" in reasons
    assert "changed since" in reasons
    assert len(bench.rows("documents")) == 2


def test_reprocessing_what_never_had_a_file_here_takes_its_text(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = bench.file("minutes.md", f"# Minutes\n\n{LONG}\n\nWe decided to go.")
    bench.ingestor.ingest(
        [Source(source="minutes.md", path=sent), Source(source="talk", path=_wav(bench))]
    )
    before = bench.rows_but_importance()
    sent.unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "minutes.md").write_text("A file that only has the same name.")
    monkeypatch.chdir(elsewhere)
    report = bench.ingestor.reprocess([row["id"] for row in bench.rows("documents")])
    assert (report.ingested, report.failed) == (1, 1)
    assert bench.rows_but_importance() == before
    (failed,) = [outcome for outcome in report.outcomes if outcome.outcome == "failed"]
    assert failed.reason == "talk: it lacks transcript, and what is sent is not kept as a file"


def test_reprocessing_incomplete_documents_takes_those_and_no_others(bench: Bench) -> None:
    bench.paths(_wav(bench), bench.file("b.txt", "Complete."))
    (incomplete,) = [row for row in bench.rows("documents") if row["missing"]]
    bench.file("talk.srt", "1\n00:00:00,000 --> 00:00:02,000\nThe harbour is closed.\n")
    report = bench.ingestor.reprocess(incomplete=True)
    assert report.ingested == 1
    (again,) = [row for row in bench.rows("documents") if row["id"] == incomplete["id"]]
    assert again["missing"] == []
    assert "The harbour is closed." in again["text"]


def test_reprocessing_older_documents_takes_those_and_no_others(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = bench.file("a.txt", "The harbour is closed.")
    with monkeypatch.context() as earlier:
        earlier.setattr("memctl.ingest.document_records.PIPELINE_VERSION", PIPELINE_VERSION - 1)
        bench.paths(gone)
    bench.paths(bench.file("b.txt", "The bridge is open."))
    gone.unlink()
    (older,) = older_documents(bench.store.snapshot())
    report = bench.ingestor.reprocess(older=True)
    assert [outcome.document_id for outcome in report.outcomes] == [older]
    assert report.ingested == 1
    assert {row["pipeline_version"] for row in bench.rows("documents")} == {PIPELINE_VERSION}
    assert bench.ingestor.reprocess(older=True).outcomes == ()


def test_renaming_changes_the_source_of_a_document_and_its_memories(bench: Bench) -> None:
    document = bench.paths(bench.file("a.txt", "Same.")).outcomes[0].document_id or ""
    bench.ingestor.rename(document, "elsewhere/b.txt")
    assert bench.rows("documents", "source") == [{"source": "elsewhere/b.txt"}]
    assert bench.rows("memories", "source") == [{"source": "elsewhere/b.txt"}]


# --- bounds --------------------------------------------------------------------------------------


def test_only_a_thousand_outcomes_are_kept_besides_the_failures(bench: Bench) -> None:
    report = bench.records(*({"id": n, "text": f"note {n}"} for n in range(1_100)), {"bad": 1})
    assert (report.ingested, report.failed) == (1_100, 1)
    assert len(report.outcomes) == 1_001


def test_two_ingests_at_once_write_everything_once(bench: Bench) -> None:
    files = [bench.file(f"{n}.txt", f"File number {n}.") for n in range(30)]
    reports: list[object] = []

    def run(order: int) -> None:
        reports.append(bench.ingestor.ingest(from_paths(files[::order])))

    threads = [threading.Thread(target=run, args=(order,)) for order in (1, -1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(report.ingested for report in reports) == 30  # type: ignore[attr-defined]
    ids = [row["id"] for row in bench.rows("documents", "id")]
    assert len(ids) == len(set(ids)) == 30
    memories = [row["id"] for row in bench.rows("memories", "id")]
    assert len(memories) == len(set(memories))


@pytest.mark.parametrize("remembered", [1, 500_000])
def test_versions_that_follow_each_other_over_commits_end_with_the_last(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, remembered: int
) -> None:
    monkeypatch.setattr(deduplication, "MOST_ADDED", remembered)
    monkeypatch.setattr(bench.ingestor, "_limits", batch_preparation.IngestLimits(documents=1))
    texts = ("one", "two", "two", "one", "three")
    report = bench.records(*({"id": "x", "text": text} for text in texts))
    assert (report.ingested, report.skipped) == (4, 1)
    live = [row for row in bench.rows("documents") if row["status"] == "indexed"]
    assert [row["text"] for row in live] == ["three"]
    assert len(bench.rows("documents")) == 4


def test_what_somebody_else_writes_during_an_ingest_is_recognised(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench.ingestor, "_limits", batch_preparation.IngestLimits(documents=1))
    same = [bench.file(f"{n}.txt", f"Note {n}.") for n in range(4)]

    def disturbed() -> Iterator[Source | FileOutcome]:
        yield from from_paths(same[:2])
        bench.paths(*same[2:])
        yield from from_paths(same[2:])

    report = bench.ingestor.ingest(disturbed())
    assert (report.ingested, report.skipped) == (2, 2)
    assert len(bench.rows("documents")) == 4
