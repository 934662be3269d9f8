"""Serving one knowledge base: one turn after the other, and waiting for what fails."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from memctl.errors import (
    DiskRefused,
    MemctlError,
    ModelError,
)
from memctl.ingest.ingest_pipeline import IngestStopped
from memctl.schema.table_names import WAITS_FOR
from memctl.store.ledger.pool_repositories import encode_json
from memctl.watch.claims import Claims
from memctl.watch.inbox_modes import KeepMode, MoveMode
from memctl.watch.inbox_scanner import InboxScanner
from memctl.watch.intake import Intake
from memctl.watch.reporter import (
    Listener,
    PollingNotice,
    Reporter,
    TurnResult,
    WatchEvent,
    error_message,
)
from memctl.watch.scheduled_jobs import JobContext, Schedule, run_due_jobs

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase
    from memctl.upkeep.runner import Upkeep

Clock = Callable[[], datetime]

LONGEST_RETRY_SECONDS = 300.0
_log = logging.getLogger(__name__)


class WatchOptions(Struct, frozen=True):
    """How to watch; see the settings of the same names."""

    settle_seconds: float = 2.0
    rescan_seconds: float = 30.0
    poll: bool = False
    """Whether to do without events of the file system."""
    once: bool = False
    """Whether to end when everything that is there has been dealt with."""
    upkeep_seconds: float = 300.0
    retry_seconds: float = 5.0
    """How long to wait for a store that failed; doubled each time it fails again."""


class KnowledgeBaseWatcher:
    """Serves one knowledge base; one turn takes at most one group of files."""

    def __init__(
        self,
        base: KnowledgeBase,
        upkeep: Upkeep,
        options: WatchOptions,
        listener: Listener,
        clock: Clock,
        beat: Callable[[], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.base, self.upkeep, self.options, self.listener = base, upkeep, options, listener
        self.clock, self.beat, self.monotonic = clock, beat, monotonic
        self._recovering = True
        self._retry_at = self._retry_seconds = 0.0
        self._may_say_waiting = True  # the ledger may say that something is waited for
        ledger, settle = base.store.ledger, options.settle_seconds
        schedule = Schedule(ledger, self.clock, self.options.upkeep_seconds, self.monotonic)
        self._last_event = base.pools.acting_as().last_event()
        reporter = self._reporter = Reporter(base, self.listener, self.clock)
        jobs = self._jobs = JobContext(base, self.upkeep, schedule, reporter)
        self._polling = PollingNotice(reporter, ledger, self.options.rescan_seconds)
        scanner = InboxScanner(base, reporter, settle, self.clock, self.monotonic)
        intake = self._intake = Intake(base, reporter, jobs, self.beat, self.monotonic)
        claims = Claims(base.layout, ledger, self.clock)
        self._drainer = MoveMode(base, reporter, scanner, intake, claims)
        self._keeper = KeepMode(base, reporter, scanner, intake, settle, self.clock, self.monotonic)

    def turn(self) -> TurnResult:
        """Look at every inbox and take what may be taken; a failing store is tried again later."""
        left = self._retry_at - self.monotonic()
        if left > 0:
            return self._waiting(left)
        try:
            turn = self._turn()
        except (MemctlError, OSError) as error:
            return self._wait_after(error)
        except Exception as error:  # noqa: BLE001 - this worker ends here; the other knowledge bases go on
            _log.exception("watching %s", self.base.name)
            message = f"unexpected {type(error).__name__}: {error}"
            return self._wait_for(message, "this is a bug in memctl: please report the traceback")
        if self._retry_at:
            self._retry_at = self._retry_seconds = 0.0
            self._reporter.forget_all_reports()
            self._reporter.say("resumed")
        if self._may_say_waiting:
            self._note_wait("")
        return turn

    def put_back(self) -> None:
        """Return files whose ingest was interrupted to the inboxes they came from."""
        self._drainer.put_back()

    def note_polled(self, silent: Mapping[Path, str]) -> None:
        """Record folders that send no events, each with why."""
        self._polling.note(silent)

    def release_unused(self) -> None:
        """Do nothing that could hold up others during a pause."""
        self.base.store.release_unused()

    @property
    def is_waiting(self) -> bool:
        """Whether the store has failed and is to be tried again."""
        return bool(self._retry_at)

    @property
    def dealt_with(self) -> int:
        """How many files are done."""
        return self._intake.dealt_with

    @property
    def complaints(self) -> list[WatchEvent]:
        """What is wrong now."""
        return self._reporter.complaints

    def _turn(self) -> TurnResult:
        if self._recovering:
            self._intake.forget_progress()
            self._drainer.recover()
            self._recovering = False
        self._forget_the_rest()
        self._tell_bulletins()
        worked, waits = False, []
        for inbox in self.base.settings.inboxes:
            turn = (self._keeper if inbox.after == "keep" else self._drainer).turn(inbox)
            worked = worked or turn.worked
            if turn.look_again_in is not None:
                waits.append(turn.look_again_in)
        if not worked:
            worked = run_due_jobs(self._jobs, busy=bool(waits))
        return TurnResult(worked, min(waits, default=None))

    def _tell_bulletins(self) -> None:
        """Report the bulletins of pools that may be read here."""
        pools = self.base.pools.acting_as()
        last = pools.last_event()
        if last == self._last_event:
            return
        for event in pools.bulletins(after=self._last_event):
            value = event.digest if event.value is None else event.value
            detail = {"pool_id": event.pool_id, "key": event.key, "is_bulletin": True,
                      "value": event.value, "digest": event.digest, "removed": event.removed,
                      "writer": event.writer, "version": event.version}  # fmt: skip
            said = "removed" if event.removed else encode_json(value)
            message = f"{event.writer}: {event.pool_id} {event.key}: {said}"
            self._reporter.say("bulletin", message=message, detail=detail)
        self._last_event = last

    def _forget_the_rest(self) -> None:
        """Complete a forget that was cut off, and say so."""
        report = self.base.erasure.complete()
        if report is not None:
            self._jobs.schedule.note_write()
            self._reporter.say("forgotten", message=report.summary)

    def _wait_after(self, error: MemctlError | OSError) -> TurnResult:
        """Wait for what failed; files that a model cannot be had for wait in their inboxes."""
        cause = error.cause if isinstance(error, IngestStopped) else error
        with suppress(MemctlError):  # the ledger may be what fails
            self._drainer.note_try(_message(cause))
        if not isinstance(cause, ModelError):
            return self._wait_for(*error_message(error), _kind_of(cause))
        with suppress(MemctlError, OSError):  # what is not put back is found when it goes on
            self._drainer.let_wait()
        return self._wait_for(cause.message, cause.hint, type(cause).__name__)

    def _wait_for(self, message: str, hint: str, key: str = "") -> TurnResult:
        """Leave everything as it is and try again later, ever more seldom."""
        self._reporter.complain("waiting", "", message, hint, key)
        self._note_wait(message)
        self._recovering = True
        wait = min(2 * self._retry_seconds or self.options.retry_seconds, LONGEST_RETRY_SECONDS)
        self._retry_seconds = wait
        self._retry_at = self.monotonic() + wait
        return self._waiting(wait)

    def _note_wait(self, message: str) -> None:
        """Have the ledger say what is waited for; the disk that fails may be its own."""
        with suppress(MemctlError):
            self.base.store.ledger.set_meta(WAITS_FOR, message)
            self._may_say_waiting = bool(message)

    def _waiting(self, seconds: float) -> TurnResult:
        """One that is to end does not wait for a store that failed."""
        return TurnResult(False, None if self.options.once else seconds)


def _message(error: BaseException) -> str:
    return error_message(error)[0] if isinstance(error, (MemctlError, OSError)) else str(error)


def _kind_of(error: BaseException) -> str:
    """What is waited for: a disk fails in many words, which name another file each time."""
    is_disk = isinstance(error, (OSError, DiskRefused))
    return "disk" if is_disk else type(error).__name__
