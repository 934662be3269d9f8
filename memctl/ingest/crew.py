"""Who does the work: this process, and in bulk also workers, one for each processor."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from queue import SimpleQueue

from memctl.ingest.batch import Wanted, Worked
from memctl.ingest.work import Weigh, Workshop
from memctl.ingest.workers import Terms, Worker, WorkerDied, start, work_apart
from memctl.pinned import KnowledgeBaseSettings
from memctl.processors import processors
from memctl.readers import Readers
from memctl.records import SourceText

_log = logging.getLogger(__name__)

WEIGHED_AT_MOST = 32
"""Larger groups are not weighed by what is known: each document costs a search."""


class Crew:
    """Works on groups of sources, here until that has taken some time, then in workers.

    Args:
        workshop: What the work is done with here.
        settings: What workers make their own workshop of; None where they could not.
        hire_after: Seconds of work here after which workers are started; 0 for at once.
        weigh: Weighs the documents of small groups by what is known.
    """

    def __init__(
        self,
        workshop: Workshop,
        settings: KnowledgeBaseSettings | None,
        hire_after: float,
        weigh: Weigh | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._workshop = workshop
        self._settings = settings
        self._hire_after = hire_after
        self._weigh = weigh
        self._monotonic = monotonic
        self._spent = 0.0
        self._hiring: threading.Thread | None = None
        self._hired: list[Worker] = []
        self._idle: SimpleQueue[Worker] = SimpleQueue()
        self._threads: ThreadPoolExecutor | None = None
        self._closed = False
        self._hire_if_worth_it()

    @property
    def readers(self) -> Readers:
        """What reads files here."""
        return self._workshop.readers

    @property
    def capacity(self) -> int:
        """How many groups may be in work at once; 0 while the work is done here."""
        return 2 * len(self._hired) if self._threads else 0

    def submit(self, group: Sequence[Wanted], now: datetime) -> Future[list[Worked]]:
        """Have a group worked on; done already when the work was done here."""
        self._wait_for_workers_wanted_at_once()
        if self._threads is not None:
            return self._threads.submit(self._sent, group, now)
        done: Future[list[Worked]] = Future()
        done.set_result([self._here(group, now)])
        return done

    def submit_part(self, wanted: Wanted, text: SourceText, now: datetime) -> Future[Worked]:
        """Have one part of a source worked on, which has been read already."""
        if self._threads is not None:
            return self._threads.submit(self._sent_part, wanted, text, now)
        done: Future[Worked] = Future()
        done.set_result(self._timed(lambda: self._workshop.work_on_part(wanted, text, now)))
        return done

    def close(self) -> None:
        """End the workers, whatever they are doing."""
        self._closed = True
        self._end_workers()
        if self._hiring is not None:
            self._hiring.join()
        self._end_workers()
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
            self._end_workers()  # and who took the place of one that died meanwhile

    # --- here ---

    def _here(self, group: Sequence[Wanted], now: datetime) -> Worked:
        again = any(wanted.redo for wanted in group)  # what is known includes what is redone
        weigh = self._weigh if len(group) <= WEIGHED_AT_MOST and not again else None
        worked = self._timed(lambda: self._workshop.work(group, now, weigh))
        return replace(worked, wanted=tuple(group))

    def _timed(self, work: Callable[[], Worked]) -> Worked:
        """Do some work here, and see whether others should be had for the rest."""
        began = self._monotonic()
        worked = work()
        self._spent += self._monotonic() - began
        self._hire_if_worth_it()
        return worked

    def _hire_if_worth_it(self) -> None:
        if self._hiring is not None or self._settings is None:
            return
        if self._spent >= self._hire_after and processors() > 1:
            self._hiring = threading.Thread(target=self._hire, args=(self._settings,), daemon=True)
            self._hiring.start()

    def _wait_for_workers_wanted_at_once(self) -> None:
        """Leave the processors to them while they start: the model is not loaded here then, too."""
        if self._hire_after == 0 and self._hiring is not None:
            self._hiring.join()

    # --- in workers ---

    def _hire(self, settings: KnowledgeBaseSettings) -> None:
        """Start workers while the work goes on here."""
        try:
            start(self._terms(settings), processors(), self._hired)
        except WorkerDied as error:
            if not self._closed:
                _log.warning("working in one process, for no other could be started: %s", error)
            return
        for worker in self._hired:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(len(self._hired))

    def _terms(self, settings: KnowledgeBaseSettings) -> Terms:
        return Terms(settings, self.readers.limits)

    def _sent(self, group: Sequence[Wanted], now: datetime) -> list[Worked]:
        worker = self._idle.get()
        try:
            return [replace(worker.work(group, now), wanted=tuple(group))]
        except WorkerDied:
            if self._closed or self._settings is None:
                raise
            worker.close()
            results, alive = work_apart(self._terms(self._settings), group, now)
            worker = self._put_in_place_of(worker, alive)
            return results
        finally:
            self._idle.put(worker)

    def _sent_part(self, wanted: Wanted, text: SourceText, now: datetime) -> Worked:
        worker = self._idle.get()
        try:
            return replace(worker.work_on_part(wanted, text, now), wanted=(wanted,))
        except WorkerDied:
            if not self._closed and self._settings is not None:
                worker = self._replaced(worker, self._settings)
            raise
        finally:
            self._idle.put(worker)

    def _replaced(self, dead: Worker, settings: KnowledgeBaseSettings) -> Worker:
        dead.close()
        alive: list[Worker] = []
        start(self._terms(settings), 1, alive)
        return self._put_in_place_of(dead, alive[0])

    def _put_in_place_of(self, dead: Worker, alive: Worker) -> Worker:
        """Note who works now; two threads may do so at once, each for its own."""
        self._hired[self._hired.index(dead)] = alive
        return alive

    def _end_workers(self) -> None:
        for worker in list(self._hired):
            worker.close()
