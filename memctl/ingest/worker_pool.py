"""Who does the work: this process, and in bulk also workers, one for each processor."""

from __future__ import annotations

import gc
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from queue import SimpleQueue
from typing import IO, Any, NoReturn

from msgspec import Struct
from msgspec.structs import replace

from memctl.config import LimitSettings
from memctl.errors import MemctlError
from memctl.ingest.batches import ProcessedGroup, ReadFailure, WantedSource
from memctl.ingest.document_processing import DocumentProcessor, NoveltyWeighing, load_processor
from memctl.kb_settings import KnowledgeBaseSettings
from memctl.machine import processor_count
from memctl.readers import Readers
from memctl.records import SourceText

_log = logging.getLogger(__name__)

WEIGHED_AT_MOST = 4
"""More sources at once are not weighed by what is known: each document costs a search."""


class WorkerPool:
    """Works on groups of sources, here until that has taken some time, then in workers.

    Args:
        processor: What the work is done with here.
        settings: What workers make their own processor of; None where they could not.
        start_workers_after: Seconds of work here after which workers are started; 0 for at once.
        weigh: Weighs the documents of small groups by what is known.
        waiting: Has the workers of an earlier run, and gets these when they are released.
    """

    def __init__(
        self,
        processor: DocumentProcessor,
        settings: KnowledgeBaseSettings | None,
        start_workers_after: float,
        weigh: NoveltyWeighing | None = None,
        waiting: WaitingWorkers | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._processor = processor
        self._settings = settings
        self._start_workers_after = start_workers_after
        self._weigh = weigh
        self._waiting = waiting
        self._monotonic = monotonic
        self._spent = 0.0
        self._starting: threading.Thread | None = None
        self._workers: list[Worker] = []
        self._idle: SimpleQueue[Worker] = SimpleQueue()
        self._threads: ThreadPoolExecutor | None = None
        self._closed = False
        self._mutex = threading.Lock()
        """Held where workers are wanted or the pool is closed, which different threads may do."""
        if weigh is None:  # workers do not weigh
            self._use(self._take_waiting())
        self._start_if_worth_it()

    @property
    def readers(self) -> Readers:
        """What reads files here."""
        return self._processor.readers

    @property
    def capacity(self) -> int:
        """How many groups may be in work at once; 0 while the work is done here."""
        return 2 * len(self._workers) if self._threads else 0

    @property
    def reading(self) -> str:
        """The source that is being read, or of those that are read together the first."""
        return self._processor.reading

    def submit(self, group: Sequence[WantedSource], now: datetime) -> Future[list[ProcessedGroup]]:
        """Have a group worked on; done already when the work was done here."""
        self._wait_for_workers_wanted_at_once()
        if self._threads is not None:
            return self._threads.submit(self._send_group, group, now)
        done: Future[list[ProcessedGroup]] = Future()
        done.set_result([self._here(group, now)])
        return done

    def submit_part(
        self, wanted: WantedSource, text: SourceText, now: datetime
    ) -> Future[ProcessedGroup]:
        """Have one part of a source worked on, which has been read already."""
        if self._threads is not None:
            return self._threads.submit(self._sent_part, wanted, text, now)
        done: Future[ProcessedGroup] = Future()
        done.set_result(self._measure_work(lambda: self._processor.work_on_part(wanted, text, now)))
        return done

    def release(self) -> None:
        """Leave the workers to the next run; to be called when all work is done."""
        if self._threads is None or self._settings is None or self._waiting is None:
            return
        self._threads.shutdown()
        self._waiting.keep(self._terms(self._settings), self._workers)
        self._workers, self._threads = [], None

    def close(self) -> None:
        """End the workers, whatever they are doing; none is started any more."""
        with self._mutex:
            self._closed = True
        self._end_workers()
        if self._starting is not None:
            self._starting.join()
        self._end_workers()
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
            self._end_workers()  # and who took the place of one that died meanwhile

    # --- here ---

    def _here(self, group: Sequence[WantedSource], now: datetime) -> ProcessedGroup:
        again = any(wanted.redo for wanted in group)  # what is known includes what is redone
        weigh = self._weigh if len(group) <= WEIGHED_AT_MOST and not again else None
        processed = self._measure_work(lambda: self._processor.work(group, now, weigh))
        return replace(processed, wanted=tuple(group))

    def _measure_work(self, work: Callable[[], ProcessedGroup]) -> ProcessedGroup:
        """Do some work here, and see whether others should be had for the rest."""
        began = self._monotonic()
        processed = work()
        self._spent += self._monotonic() - began
        self._start_if_worth_it()
        return processed

    def _start_if_worth_it(self) -> None:
        if self._starting is not None or self._threads is not None or self._settings is None:
            return
        if self._spent < self._start_workers_after or processor_count() == 1:
            return
        with self._mutex:
            if not self._closed:  # work that was begun before goes on to its end
                self._starting = threading.Thread(
                    target=self._start_workers, args=(self._settings,), daemon=True
                )
                self._starting.start()

    def _wait_for_workers_wanted_at_once(self) -> None:
        """Leave the processors to them while they start: the model is not loaded here then, too."""
        if self._start_workers_after == 0 and self._starting is not None:
            self._starting.join()

    # --- in workers ---

    def _start_workers(self, settings: KnowledgeBaseSettings) -> None:
        """Start workers while the work goes on here."""
        if self._use(self._take_waiting()):
            return
        try:
            start_workers(self._terms(settings), processor_count(), self._workers)
        except WorkerDied as error:
            if not self._closed:
                _log.warning("working in one process, for no other could be started: %s", error)
            return
        self._use(self._workers)

    def _take_waiting(self) -> list[Worker]:
        if self._waiting is None or self._settings is None:
            return []
        return self._waiting.take(self._terms(self._settings))

    def _use(self, workers: list[Worker]) -> bool:
        """Have workers work from now on; return whether there are any."""
        if not workers:
            return False
        self._workers = workers
        for worker in workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(len(workers))
        return True

    def _terms(self, settings: KnowledgeBaseSettings) -> WorkerSettings:
        return WorkerSettings(settings, self.readers.limits)

    def _send_group(self, group: Sequence[WantedSource], now: datetime) -> list[ProcessedGroup]:
        worker = self._idle.get()
        self._processor.reading = group[0].item.source.source
        try:
            return [replace(worker.work(group, now), wanted=tuple(group))]
        except WorkerDied:
            if self._closed or self._settings is None:
                raise
            worker.close()
            results, alive = process_separately(self._terms(self._settings), group, now)
            worker = self._put_in_place_of(worker, alive)
            return results
        finally:
            self._idle.put(worker)

    def _sent_part(self, wanted: WantedSource, text: SourceText, now: datetime) -> ProcessedGroup:
        worker = self._idle.get()
        try:
            return replace(worker.work_on_part(wanted, text, now), wanted=(wanted,))
        except WorkerDied:
            if not self._closed and self._settings is not None:
                worker.close()
                worker = self._put_in_place_of(worker, _start_one(self._terms(self._settings)))
            raise
        finally:
            self._idle.put(worker)

    def _put_in_place_of(self, dead: Worker, alive: Worker) -> Worker:
        """Record who works now; two threads may do so at once, each for its own."""
        self._workers[self._workers.index(dead)] = alive
        return alive

    def _end_workers(self) -> None:
        for worker in list(self._workers):
            worker.close()


class WaitingWorkers:
    """Workers between two runs; those that nobody wants for a while end.

    Args:
        seconds: How long they wait.
    """

    def __init__(self, seconds: float = 30.0) -> None:
        self._seconds = seconds
        self._terms: WorkerSettings | None = None
        self._workers: list[Worker] = []
        self._timer: threading.Timer | None = None
        self._mutex = threading.Lock()

    def keep(self, terms: WorkerSettings, workers: list[Worker]) -> None:
        """Keep workers that have nothing to do, in place of those that wait already."""
        self.close()
        with self._mutex:
            self._terms, self._workers = terms, workers
            self._timer = threading.Timer(self._seconds, self._expire, [workers])
            self._timer.daemon = True
            self._timer.start()

    def take(self, terms: WorkerSettings) -> list[Worker]:
        """Give workers away; none if they are for other settings, or one of them has ended."""
        with self._mutex:
            if self._terms == terms and all(worker.is_alive() for worker in self._workers):
                return self._take_all()
        self.close()
        return []

    def close(self) -> None:
        """End those that wait."""
        with self._mutex:
            workers = self._take_all()
        for worker in workers:
            worker.close()

    def _expire(self, workers: list[Worker]) -> None:
        """End workers that have waited for too long, unless they have been taken just now."""
        with self._mutex:
            if self._workers is not workers:
                return
            self._take_all()
        for worker in workers:
            worker.close()

    def _take_all(self) -> list[Worker]:
        if self._timer is not None:
            self._timer.cancel()
        workers, self._workers, self._terms, self._timer = self._workers, [], None, None
        return workers


_READY = "ready"
_PIPE_BYTES = 1 << 20
"""Half a group; a pipe of the usual 64 KB makes both sides wait for each other all the time."""
_ENDED = "a worker process ended in the middle of its work"
_START = "import sys; sys.path[:] = {path!r}; from memctl.ingest.worker_pool import serve; serve()"


class WorkerDied(MemctlError):
    """A worker could not be started, or ended in the middle of its work."""


class _Job(Struct, frozen=True):
    group: Sequence[WantedSource]
    now: datetime
    part: SourceText | None = None
    """Of a source that another process reads: the part to work on."""


class WorkerSettings(Struct, frozen=True):
    """What a worker makes its processor of."""

    settings: KnowledgeBaseSettings
    limits: LimitSettings


class Worker:
    """A process that makes rows of groups of sources.

    Raises:
        WorkerDied: It could not be started.
    """

    def __init__(self, terms: WorkerSettings) -> None:
        command = [sys.executable, "-c", _START.format(path=sys.path)]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=_PIPE_BYTES,
                pipesize=_PIPE_BYTES,
            )
        except OSError as error:
            raise WorkerDied(f"cannot start {sys.executable}: {error}") from error
        try:
            self._tell(terms)
        except BaseException:
            self.close()
            raise

    def is_ready(self) -> bool:
        """Wait until it has started; say whether it has."""
        try:
            return bool(self._hear() == _READY)
        except WorkerDied:
            return False

    def is_alive(self) -> bool:
        """Return whether the process is there."""
        return self._process.poll() is None

    def work(self, group: Sequence[WantedSource], now: datetime) -> ProcessedGroup:
        """Make the rows of a group of sources.

        Raises:
            WorkerDied: The process ended; one of the sources may have brought that about.
        """
        return self._result_of(_Job(group, now))

    def work_on_part(self, wanted: WantedSource, text: SourceText, now: datetime) -> ProcessedGroup:
        """Make the rows of one part of a source that has been read.

        Raises:
            WorkerDied: The process ended.
        """
        return self._result_of(_Job([wanted], now, text))

    def _result_of(self, job: _Job) -> ProcessedGroup:
        self._tell(job)
        answer = self._hear()
        if isinstance(answer, ProcessedGroup):
            return answer
        raise answer

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()  # first, or closing the pipe would wait for its reader
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # what is left in the buffer has no reader any more
                if pipe is not None:
                    pipe.close()

    def _tell(self, question: object) -> None:
        assert self._process.stdin is not None
        try:
            _send(self._process.stdin, question)
        except (OSError, ValueError) as error:
            raise WorkerDied(_ENDED) from error

    def _hear(self) -> Any:
        assert self._process.stdout is not None
        try:
            return pickle.load(self._process.stdout)
        except (EOFError, OSError, ValueError, pickle.UnpicklingError) as error:
            raise WorkerDied(_ENDED) from error


def start_workers(terms: WorkerSettings, count: int, workers: list[Worker]) -> None:
    """Start workers, all at once, and wait until they are ready.

    Args:
        terms: What they make their processor of.
        count: How many.
        workers: Gets each as soon as there is a process, so that its owner can end them.

    Raises:
        WorkerDied: One of them did not start; none is left.
    """
    try:
        for _ in range(count):
            workers += [Worker(terms)]
        if not all(worker.is_ready() for worker in workers):
            raise WorkerDied("a worker process did not start", "see its message above")
    except BaseException:
        for worker in workers:
            worker.close()
        workers.clear()
        raise


def _start_one(terms: WorkerSettings) -> Worker:
    workers: list[Worker] = []
    start_workers(terms, 1, workers)
    return workers[0]


def process_separately(
    terms: WorkerSettings, group: Sequence[WantedSource], now: datetime
) -> tuple[list[ProcessedGroup], Worker]:
    """Work on a group that a worker died of, each source on its own, to find the one to blame.

    Returns:
        What was made, and the worker that is alive now.
    """
    worker = _start_one(terms)
    results: list[ProcessedGroup] = []
    for wanted in group:
        try:
            made = worker.work([wanted], now)
        except WorkerDied:
            worker.close()
            worker = _start_one(terms)
            made = _crash_result(worker, wanted, now)
        results.append(replace(made, wanted=(wanted,)))
    return results, worker


def _crash_result(worker: Worker, wanted: WantedSource, now: datetime) -> ProcessedGroup:
    """What there is of a source whose reading ends the process: no rows, and why."""
    nothing = worker.work([], now)
    name = wanted.item.source.source
    why = ReadFailure(
        f"{name}: reading it ended the process that did it", "the file may be damaged", "WorkerDied"
    )
    return replace(nothing, results=[why])


# --- in the worker -------------------------------------------------------------------------------


def serve() -> None:
    """Answer questions on standard input until it ends; the main function of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    answers = os.fdopen(os.dup(1), "wb", buffering=_PIPE_BYTES)
    os.dup2(2, 1)  # whatever a library prints must not get among the answers
    with suppress(EOFError, pickle.UnpicklingError, BrokenPipeError):  # the parent is gone
        _serve(sys.stdin.buffer, answers)
    with suppress(BrokenPipeError):  # what is left in the buffer has no reader any more
        answers.close()


def _serve(questions: IO[bytes], answers: IO[bytes]) -> NoReturn:
    terms: WorkerSettings = pickle.load(questions)
    made = load_processor(terms.settings, readers=Readers(terms.limits))
    _send(answers, _READY)
    gc.freeze()
    gc.set_threshold(500_000, 50, 100)  # rows are many small objects without cycles
    while True:
        _send(answers, _answer(made, pickle.load(questions)))


def _answer(made: DocumentProcessor, job: _Job) -> ProcessedGroup | Exception:
    try:
        if job.part is not None:
            return made.work_on_part(job.group[0], job.part, job.now)
        return made.work(job.group, job.now)
    except Exception as error:  # noqa: BLE001 - a worker ends here; its error goes on
        _log.exception("in a worker")
        return RuntimeError(f"{type(error).__name__}: {error}")


def _send(pipe: IO[bytes], value: object) -> None:
    pickle.dump(value, pipe, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.flush()
