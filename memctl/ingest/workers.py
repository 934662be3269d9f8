"""Worker processes: reading and understanding are Python's own work, which threads cannot share.

A worker is a Python of its own that is sent groups of sources over a pipe and sends finished rows
back.  It is started with its own command line and not through ``multiprocessing``, whose workers
run the caller's main module again: a script that opens a knowledge base would be run twice.
"""

from __future__ import annotations

import gc
import logging
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import IO, Any, NoReturn

from memctl.config import LimitSettings
from memctl.errors import MemctlError
from memctl.ingest.batch import NotRead, Wanted, Worked
from memctl.ingest.work import Workshop, workshop
from memctl.pinned import KnowledgeBaseSettings
from memctl.readers import Readers
from memctl.records import SourceText

_log = logging.getLogger(__name__)

_READY = "ready"
_PIPE_BYTES = 1 << 20
"""Half a group; a pipe of the usual 64 KB makes both sides wait for each other all the time."""
_ENDED = "a worker process ended in the middle of its work"
_START = "import sys; sys.path[:] = {path!r}; from memctl.ingest.workers import serve; serve()"


class WorkerDied(MemctlError):
    """A worker could not be started, or ended in the middle of its work."""


@dataclass(frozen=True, slots=True)
class _Job:
    group: Sequence[Wanted]
    now: datetime
    part: SourceText | None = None
    """Of a source that somebody else reads: the part to work on."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a worker makes its workshop of."""

    settings: KnowledgeBaseSettings
    limits: LimitSettings


class Worker:
    """A process that makes rows of groups of sources.

    Raises:
        WorkerDied: It could not be started.
    """

    def __init__(self, terms: Terms) -> None:
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
        self._tell(terms)

    def is_ready(self) -> bool:
        """Wait until it has started; say whether it has."""
        try:
            return bool(self._hear() == _READY)
        except WorkerDied:
            return False

    def work(self, group: Sequence[Wanted], now: datetime) -> Worked:
        """Make the rows of a group of sources.

        Raises:
            WorkerDied: The process ended; one of the sources may have brought that about.
        """
        return self._done(_Job(group, now))

    def work_on_part(self, wanted: Wanted, text: SourceText, now: datetime) -> Worked:
        """Make the rows of one part of a source that has been read.

        Raises:
            WorkerDied: The process ended.
        """
        return self._done(_Job([wanted], now, text))

    def _done(self, job: _Job) -> Worked:
        self._tell(job)
        answer = self._hear()
        if isinstance(answer, Worked):
            return answer
        raise answer

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()  # first, or closing the pipe would wait for whoever reads from it
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


def start(terms: Terms, count: int, workers: list[Worker]) -> None:
    """Start workers, all at once, and wait until they are ready.

    Args:
        terms: What they make their workshop of.
        count: How many.
        workers: Gets each as soon as there is a process, so that whoever holds it can end them.

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


def _one(terms: Terms) -> Worker:
    workers: list[Worker] = []
    start(terms, 1, workers)
    return workers[0]


def work_apart(terms: Terms, group: Sequence[Wanted], now: datetime) -> tuple[list[Worked], Worker]:
    """Work on a group that a worker died of, each source on its own, to find the one to blame.

    Returns:
        What was made, and the worker that is alive now.
    """
    worker = _one(terms)
    results: list[Worked] = []
    for wanted in group:
        try:
            made = worker.work([wanted], now)
        except WorkerDied:
            worker.close()
            worker = _one(terms)
            made = _deadly(worker, wanted, now)
        results.append(replace(made, wanted=(wanted,)))
    return results, worker


def _deadly(worker: Worker, wanted: Wanted, now: datetime) -> Worked:
    """What there is of a source whose reading ends the process: no rows, and why."""
    nothing = worker.work([], now)
    name = wanted.item.source.source
    why = NotRead(
        f"{name}: reading it ended the process that did it", "the file may be damaged", "WorkerDied"
    )
    return replace(nothing, fates=[why])


# --- in the worker -------------------------------------------------------------------------------


def serve() -> None:
    """Answer questions on standard input until it ends; the main function of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    answers = os.fdopen(os.dup(1), "wb", buffering=_PIPE_BYTES)
    os.dup2(2, 1)  # whatever a library prints must not get among the answers
    with suppress(EOFError, pickle.UnpicklingError, BrokenPipeError):  # whoever asked is gone
        _serve(sys.stdin.buffer, answers)
    with suppress(BrokenPipeError):  # what is left in the buffer has no reader any more
        answers.close()


def _serve(questions: IO[bytes], answers: IO[bytes]) -> NoReturn:
    terms: Terms = pickle.load(questions)
    made = workshop(terms.settings, readers=Readers(terms.limits))
    _send(answers, _READY)
    gc.freeze()
    gc.set_threshold(500_000, 50, 100)  # rows are many small objects without cycles
    while True:
        _send(answers, _answer(made, pickle.load(questions)))


def _answer(made: Workshop, job: _Job) -> Worked | Exception:
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
