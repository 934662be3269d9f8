"""Work in other processes gives what work in this one gives, and outlives their death."""

from __future__ import annotations

import io
import logging
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING

import pytest
from waiting import PATIENCE, wait_for

from memctl.config import LimitSettings
from memctl.ids import document_id
from memctl.ingest import ingest_pipeline
from memctl.ingest import worker_pool as crew_module
from memctl.ingest.batch_preparation import IngestLimits
from memctl.ingest.batches import DocumentSummary, ProcessedGroup, ReadFailure, WantedSource
from memctl.ingest.discovery.ingest_inputs import from_jsonl
from memctl.ingest.discovery.sources import Source
from memctl.ingest.document_processing import load_processor
from memctl.ingest.source_reading import identify
from memctl.ingest.worker_pool import (
    WaitingWorkers,
    Worker,
    WorkerDied,
    WorkerPool,
    WorkerSettings,
    start_workers,
)
from memctl.kb_settings import KnowledgeBaseSettings
from memctl.records import Progress, SourceText

if TYPE_CHECKING:
    from conftest import Bench

RECORDS = [
    {"id": n, "text": f"Note {n}: we decided that Fatima Okafor sails on {n % 28 + 1} May 2024."}
    for n in range(600)
]


NOW = datetime(2025, 3, 1, tzinfo=UTC)

KILLED = """
import os, pickle, signal, sys
sys.path[:] = {path!r}
from datetime import UTC, datetime
from memctl.config import LimitSettings
from memctl.ingest.batches import IdentifiedSource, WantedSource
from memctl.ingest.discovery.sources import Source
from memctl.ingest.worker_pool import Worker, WorkerSettings, _Job
from memctl.kb_settings import KnowledgeBaseSettings

now = datetime(2025, 3, 1, tzinfo=UTC)
worker = Worker(WorkerSettings(KnowledgeBaseSettings("test", now), LimitSettings()))
if {share} == 0:  # while it starts
    os.kill(os.getpid(), signal.SIGKILL)
assert worker.is_ready()
text = "The crane lifts. " * 100_000
item = IdentifiedSource(Source("text", text=text), "1", 1, "d")
asked = pickle.dumps(_Job([WantedSource(item, "d")], now))
worker._process.stdin.write(asked[: int(len(asked) * {share})])
worker._process.stdin.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True, scope="module")
def two_processors() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crew_module, "processor_count", lambda: 2)
        yield


def wanted(text: str) -> WantedSource:
    item = identify(Source("text", text=text))
    return WantedSource(item, document_id("default", item.sha256))


@pytest.fixture(scope="module")
def crew(two_processors: None) -> Iterator[WorkerPool]:
    """A crew whose workers are there."""
    settings = KnowledgeBaseSettings("test", NOW)
    with closing(WorkerPool(load_processor(settings), settings, start_workers_after=0)) as crew:
        crew.submit([wanted("the first one is done here")], NOW)
        wait_for(lambda: crew.capacity)
        yield crew


def fates(results: list[ProcessedGroup]) -> list[type]:
    return [type(fate) for worked in results for fate in worked.results]


def test_workers_make_the_same_rows_as_this_process(crew: WorkerPool) -> None:
    group = [wanted(str(record["text"])) for record in RECORDS[:40]]
    here = crew._processor.work(group, NOW)
    (there,) = crew.submit(group, NOW).result()
    assert there.documents.equals(here.documents)
    assert there.memories.equals(here.memories)
    assert there.entities == here.entities
    assert there.wanted == tuple(group)


def test_parts_are_worked_on_by_workers_too(crew: WorkerPool) -> None:
    one = wanted("a big one")
    texts = [SourceText(f"Part {n} of it.", "text/plain", "text/1", part=n) for n in range(5)]
    made = [crew.submit_part(one, text, NOW) for text in texts]
    rows = [future.result().documents.to_pylist()[0] for future in made]
    assert [row["part"] for row in rows] == [0, 1, 2, 3, 4]
    assert {row["root_id"] for row in rows} == {one.document_id}


def test_a_source_that_cannot_be_read_is_so_in_a_worker_too(bench: Bench, crew: WorkerPool) -> None:
    path = bench.file("broken.pdf", b"%PDF-1.4 broken")
    broken = WantedSource(identify(Source("broken.pdf", path)), "d_1")
    results = crew.submit([broken, wanted("all is well")], NOW).result()
    assert fates(results) == [ReadFailure, DocumentSummary]


def test_a_worker_that_is_killed_is_replaced_and_nothing_is_lost(crew: WorkerPool) -> None:
    for worker in crew._workers:
        worker._process.kill()
    groups = [[wanted(f"text {n}-{m}") for m in range(3)] for n in range(6)]
    results = [crew.submit(group, NOW) for group in groups]
    made = [future.result() for future in results]
    assert [fates(result) for result in made] == [[DocumentSummary] * 3] * 6
    assert [worker._process.poll() for worker in crew._workers] == [None] * len(crew._workers)


@pytest.mark.parametrize(
    "share", [0, 0.5, 1], ids=["while it starts", "while it asks", "before the answer"]
)
def test_a_worker_ends_without_a_word_when_whoever_asked_is_killed(share: float) -> None:
    program = KILLED.format(path=sys.path, share=share)
    parent = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )  # which is over when the worker, too, has closed what it has in common with it
    assert (parent.returncode, parent.stderr) == (-signal.SIGKILL, "")


def test_a_source_that_kills_its_reader_fails_and_the_others_go_on(
    crew: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadly = wanted("deadly")
    work = crew_module.Worker.work

    def dies(self: crew_module.Worker, group: list[WantedSource], now: object) -> ProcessedGroup:
        if deadly in group:
            self._process.kill()
            raise WorkerDied("killed")
        return work(self, group, now)  # type: ignore[arg-type]

    monkeypatch.setattr(crew_module.Worker, "work", dies)
    results = crew.submit([wanted("one"), deadly, wanted("three")], NOW).result()
    assert fates(results) == [DocumentSummary, ReadFailure, DocumentSummary]
    assert fates(crew.submit([wanted("four")], NOW).result()) == [DocumentSummary]


def test_closing_does_not_wait_for_workers_that_start_or_are_busy(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = KnowledgeBaseSettings("test", NOW)
    starting = WorkerPool(load_processor(settings), settings, start_workers_after=0)
    starting.submit([wanted("one")], NOW)
    starting.close()
    busy = WorkerPool(load_processor(settings), settings, start_workers_after=0)
    busy.submit([wanted("one")], NOW)
    wait_for(lambda: busy.capacity)
    for worker in busy._workers:
        worker._process.send_signal(signal.SIGSTOP)  # so that its work never ends
    forever = busy.submit([wanted("two")], NOW)
    wait_for(lambda: forever.running())
    closing = threading.Thread(target=busy.close, daemon=True)
    closing.start()
    closing.join(PATIENCE)
    assert not closing.is_alive()
    assert isinstance(forever.exception(), WorkerDied)


def test_work_that_outlasts_the_closing_of_a_pool_starts_no_workers() -> None:
    settings = KnowledgeBaseSettings("test", NOW)
    seconds = count()  # it is later at each look
    pool = WorkerPool(load_processor(settings), settings, 0.5, monotonic=lambda: next(seconds))
    pool.close()
    assert fates(pool.submit([wanted("one")], NOW).result()) == [DocumentSummary]
    assert pool._starting is None


def test_a_run_that_breaks_off_before_its_first_source_ends_its_workers(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(_: Progress) -> None:
        raise OSError("the terminal is gone")

    closed: list[WorkerPool] = []
    close = WorkerPool.close
    monkeypatch.setattr(WorkerPool, "close", lambda self: (closed.append(self), close(self)))
    monkeypatch.setattr(bench.ingestor, "_limits", IngestLimits(start_workers_after=0))
    with pytest.raises(OSError, match="terminal"):
        bench.ingestor.ingest(from_jsonl(io.BytesIO(b'{"text": "one"}'), "r.jsonl"), break_off)
    assert len(closed) == 1


def test_a_worker_that_ends_at_once_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[Worker] = []
    close = Worker.close
    monkeypatch.setattr(Worker, "close", lambda self: (ended.append(self), close(self)))
    monkeypatch.setattr(crew_module, "_send", lambda *_: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        Worker(WorkerSettings(KnowledgeBaseSettings("test", NOW), LimitSettings()))
    assert not ended[0].is_alive()


def test_the_work_goes_on_here_where_no_worker_can_be_started(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(logging.getLogger("memctl"), "propagate", True)  # a command ends that
    caplog.set_level("WARNING", "memctl")
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    monkeypatch.setattr(bench.ingestor, "_limits", IngestLimits(start_workers_after=0))
    report = bench.records(*RECORDS)
    assert report.ingested == len(RECORDS)
    assert "no other could be started" in caplog.text


def test_a_source_in_parts_is_whole_when_workers_take_over_half_way(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memctl.readers import pieces
    from memctl.readers.data_files import table_rows

    for module in (pieces, table_rows):
        monkeypatch.setattr(module, "PART_CHARS", 4_000)
    monkeypatch.setattr(bench.ingestor, "_limits", IngestLimits(start_workers_after=0))
    rows = "".join(f"{n},city {n},Fatima met {n} people there\n" for n in range(6_000))
    report = bench.paths(bench.file("big.csv", "number,city,note\n" + rows))
    assert (report.ingested, report.failed) == (1, 0)
    parts = sorted(row["part"] for row in bench.rows("documents", "part"))
    assert parts == list(range(len(parts)))
    text = " ".join(row["text"] for row in bench.rows("documents", "text"))
    assert all(re.search(rf"city {n}\b", text) for n in range(0, 6_000, 500))


def test_a_bulk_ingest_with_workers_stores_everything_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        bench.ingestor, "_limits", IngestLimits(start_workers_after=0, documents=500)
    )
    twice = [*RECORDS, *RECORDS[:100], {"id": 3, "text": "Another text."}, {"broken": True}]
    many = [{**record, "id": f"{record.get('id')}-{n}"} for n in range(4) for record in RECORDS]
    report = bench.records(*twice, *many)
    assert (report.ingested, report.skipped, report.failed) == (601 + 2400, 100, 1)
    ids = [row["id"] for row in bench.rows("memories", "id")]
    assert len(ids) == len(set(ids)) == report.memories


@pytest.fixture
def waiting() -> Iterator[WaitingWorkers]:
    with closing(WaitingWorkers()) as kept:
        yield kept


def test_the_next_run_has_the_workers_of_the_last_one(
    bench: Bench, waiting: WaitingWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Worker] = []
    start = Worker.__init__

    def counted(self: Worker, terms: WorkerSettings) -> None:
        started.append(self)
        start(self, terms)

    monkeypatch.setattr(Worker, "__init__", counted)
    monkeypatch.setattr(bench.ingestor, "_workers", waiting)
    monkeypatch.setattr(bench.ingestor, "_limits", IngestLimits(start_workers_after=0))
    assert bench.records(*RECORDS[:10]).ingested == 10
    assert bench.records(*RECORDS[10:20]).ingested == 10
    assert len(started) == 2
    assert all(worker.is_alive() for worker in started)
    monkeypatch.setattr(ingest_pipeline, "MANY_MEMORIES", 10)  # they end before much is indexed
    assert bench.records(*RECORDS[20:30]).ingested == 10
    assert not any(worker.is_alive() for worker in started)


def test_workers_that_wait_are_left_to_the_same_settings_only_and_while_all_live(
    waiting: WaitingWorkers,
) -> None:
    terms = WorkerSettings(KnowledgeBaseSettings("test", NOW), LimitSettings())
    others = WorkerSettings(KnowledgeBaseSettings("other", NOW), LimitSettings())
    workers: list[Worker] = []
    start_workers(terms, 2, workers)
    waiting.keep(terms, workers)
    assert waiting.take(terms) == workers
    workers[0].close()
    waiting.keep(terms, workers)
    assert waiting.take(terms) == []
    assert not workers[1].is_alive()
    waiting.keep(terms, one := [Worker(terms)])
    assert waiting.take(others) == []
    assert not one[0].is_alive()


def test_workers_that_nobody_wants_end() -> None:
    terms = WorkerSettings(KnowledgeBaseSettings("test", NOW), LimitSettings())
    waiting, worker = WaitingWorkers(seconds=0), Worker(terms)
    waiting.keep(terms, [worker])
    wait_for(lambda: not worker.is_alive())
    assert waiting.take(terms) == []
