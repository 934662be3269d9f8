"""What a watcher does between files: the jobs of upkeep, each when it is due.

What they do, and at which times of day, stands in ``upkeep.job_registry``.  Here is when those run
that have no schedule, and what the watcher says of them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from msgspec import Struct

from memctl.errors import CoverageLost, LockedError, MemctlError
from memctl.pools import has_expired, remove_expired
from memctl.records import FactComparison
from memctl.schema.table_names import COMPARISON, CONSOLIDATION
from memctl.upkeep.job_registry import jobs_of
from memctl.upkeep.runner import Upkeep
from memctl.upkeep.upkeep_job import UpkeepJob
from memctl.watch.reporter import Reporter

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase
    from memctl.store.ledger.ledger import Ledger

Clock = Callable[[], datetime]

_log = logging.getLogger(__name__)

LONGEST_DELAY_SECONDS = 60.0
"""A due consolidation waits at most this long for files that still change."""
FIRST_COMPARE_SECONDS = 5.0
LONGEST_COMPARE_SECONDS = 300.0
"""How long facts that a model could not compare wait until it is tried again."""


class Schedule(Struct):
    """When a knowledge base was consolidated and tidied up last, and what is due now."""

    ledger: Ledger
    clock: Clock
    upkeep_seconds: float
    monotonic: Callable[[], float] = time.monotonic
    _tidied: float | None = None
    _due_since: float | None = None
    _written: bool = False
    _compare_at: float | None = None
    _compare_seconds: float = 0.0

    def consolidation_due(self, interval_minutes: int, *, busy: bool = False) -> bool:
        """Return whether the interval has gone by since the last consolidation began; 0 is never.

        While files are about to be taken in it waits a little, so that it sees them.
        """
        if interval_minutes <= 0 or not self._interval_is_over(interval_minutes):
            self._due_since = None
            return False
        now = self.monotonic()
        self._due_since = now if self._due_since is None else self._due_since
        return not busy or now - self._due_since >= LONGEST_DELAY_SECONDS

    def _interval_is_over(self, minutes: int) -> bool:
        last = self.ledger.jobs.last(CONSOLIDATION)
        if last is None:
            return True
        ago = self.clock() - last.started_at
        # One that is still to begin was noted while the clock was ahead: that may be for years.
        return ago >= timedelta(minutes=minutes) or ago < timedelta(0)

    def comparison_due(self) -> bool:
        """Return whether facts wait to be compared and the model may be tried again."""
        if self._compare_at is not None and self.monotonic() < self._compare_at:
            return False
        return self.ledger.comparisons.count() > 0

    def note_comparison(self, facts: FactComparison) -> None:
        """Record whether facts could be compared; if not, it is tried again ever more seldom."""
        if not facts.note:
            self._compare_at, self._compare_seconds = None, 0.0
            return
        _log.info("%d facts are still to be compared: %s", facts.waiting, facts.note)
        longer = min(2 * self._compare_seconds, LONGEST_COMPARE_SECONDS)
        self._compare_seconds = longer or FIRST_COMPARE_SECONDS
        self._compare_at = self.monotonic() + self._compare_seconds

    def note_write(self) -> None:
        """Record that there may be something to tidy up."""
        self._written = True

    def upkeep_due(self) -> bool:
        """Return whether there is something to tidy up, and the last upkeep is some time ago."""
        if self._tidied is not None and self.monotonic() - self._tidied < self.upkeep_seconds:
            return False
        return self._written or has_expired(self.ledger, self.clock())

    def note_upkeep(self) -> None:
        """Record that all is tidy."""
        self._written, self._tidied = False, self.monotonic()


class JobContext(Struct, frozen=True):
    """What a job works with."""

    base: KnowledgeBase
    upkeep: Upkeep
    schedule: Schedule
    reporter: Reporter

    def report_rollback(self, error: CoverageLost) -> None:
        """Report that a job was undone; ingest goes on, and the job is tried when due again."""
        self.reporter.complain("failed", "", error.message, error.hint, type(error).__name__)

    def report_comparison(self, facts: FactComparison) -> None:
        """Report how new facts compare with what was known, and remember what waits."""
        if facts.updated or facts.contradicted or facts.restated:
            detail = {"added": facts.added, "updated": facts.updated}
            detail |= {"contradicted": facts.contradicted, "restated": facts.restated}
            self.reporter.say("compared", message=facts.summary, detail=detail)
        self.schedule.note_comparison(facts)


class ScheduledJob(Struct, frozen=True):
    """Recurring work for the time when nothing is to be taken from the inboxes."""

    name: str
    is_due: Callable[[JobContext, bool], bool]
    """Whether to run it now; the second argument says whether files are about to be taken in."""
    run: Callable[[JobContext], bool]
    """Does it, and returns whether the inboxes are to be looked at again at once."""
    ends_turn: bool = False
    """Whether no other job runs in the same turn, so that files do not wait for several."""


def _carry_out(context: JobContext, job: UpkeepJob) -> bool:
    """Run a job of upkeep, and say what it came to; return whether there may be more to do."""
    try:
        outcome, _ = context.upkeep.carry_out(job)
    except LockedError as error:  # the other writer is done by the time that it is due again
        _log.info("no %s now: %s", job.name, error.message)
        return False
    except CoverageLost as error:
        context.report_rollback(error)
        return False
    context.schedule.note_write()
    for notice in outcome.notices:
        context.reporter.say(
            notice.kind,
            message=notice.message,
            detail=notice.detail,
            document_id=notice.document_id,
        )
    if outcome.warning:
        context.reporter.complain("failed", "", outcome.warning, outcome.hint, job.name)
    return outcome.worked


# --- jobs without a schedule ---------------------------------------------------------------------


def _consolidation_is_due(context: JobContext, busy: bool) -> bool:
    interval = context.base.settings.consolidate_interval
    return context.schedule.consolidation_due(interval, busy=busy)


def _comparison_is_due(context: JobContext, _busy: bool) -> bool:
    return context.schedule.comparison_due()


def _compare(context: JobContext) -> bool:
    context.report_comparison(context.base.services.ingestor.compare())
    return False


def _sessions_are_due(context: JobContext, _busy: bool) -> bool:
    """Return whether turns are not in the tables yet, or a conversation has got long."""
    if context.base.store.ledger.turns.has_pending():
        return True
    return context.base.sessions.is_any_due()


def _tables_are_due(context: JobContext, _busy: bool) -> bool:
    return context.schedule.upkeep_due()


def _tidy_tables(context: JobContext) -> bool:
    try:
        remove_expired(context.base.store.ledger, context.base.clock())
        context.base.store.upkeep()
    except LockedError as error:  # the other writer can do it as well
        _log.info("no upkeep now: %s", error.message)
    except CoverageLost as error:
        context.report_rollback(error)
    context.schedule.note_upkeep()
    return False


def _runs(name: str) -> Callable[[JobContext], bool]:
    """Return what runs the job of a name."""

    def run(context: JobContext) -> bool:
        return _carry_out(context, context.upkeep.find(name))

    return run


def _is_any_due(context: JobContext, _busy: bool) -> bool:
    return bool(_due_by_the_clock(context))


def _run_by_the_clock(context: JobContext) -> bool:
    """Run what is due at this time of day; what fails keeps nothing else from running."""
    worked = False
    for job in _due_by_the_clock(context):
        try:
            worked = _carry_out(context, job) or worked
        except MemctlError as error:
            context.reporter.complain("failed", "", error.message, error.hint, job.name)
    return worked


def _due_by_the_clock(context: JobContext) -> list[UpkeepJob]:
    """Return what is due, but for consolidation, which also waits for files."""
    return [job for job in context.upkeep.due() if job.name != CONSOLIDATION]


SCHEDULED_JOBS: tuple[ScheduledJob, ...] = (
    ScheduledJob("sessions", _sessions_are_due, _runs("sessions")),
    ScheduledJob(CONSOLIDATION, _consolidation_is_due, _runs(CONSOLIDATION), ends_turn=True),
    ScheduledJob(COMPARISON, _comparison_is_due, _compare),
    ScheduledJob("by the clock", _is_any_due, _run_by_the_clock),
    ScheduledJob("tables", _tables_are_due, _tidy_tables),
)
"""Every job, in the order in which they are looked at."""


def abandon_cut_off_jobs(base: KnowledgeBase, now: datetime) -> None:
    """Record which jobs a process that is gone left unfinished; the next run does their work.

    Args:
        base: The knowledge base.
        now: When they are given up.
    """
    for job in jobs_of(base):
        base.store.ledger.jobs.abandon(now, job.entry_kind)


def run_due_jobs(context: JobContext, *, busy: bool) -> bool:
    """Run the jobs that are due; return whether the inboxes are to be looked at again at once.

    Args:
        context: What the jobs work with.
        busy: Whether files are about to be taken in.
    """
    look_again = False
    for job in SCHEDULED_JOBS:
        if job.is_due(context, busy):
            look_again = job.run(context) or look_again
            if job.ends_turn:
                break
    return look_again
