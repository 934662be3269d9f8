"""What a watcher does between files: a list of jobs, each with when it is due and what it does.

A new job is a function that runs it, one that says when it is due, and an entry in
``SCHEDULED_JOBS``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from memctl.errors import CoverageLost, LockedError
from memctl.pools import has_expired, remove_expired
from memctl.records import FactComparison
from memctl.rows.derived_rows import fold_accesses
from memctl.schema.table_names import COMPARISON, CONSOLIDATION, PROMOTION, UPKEEP
from memctl.watch.reporter import Reporter

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase
    from memctl.store.ledger.ledger import Ledger

Clock = Callable[[], datetime]

_log = logging.getLogger(__name__)

PATIENCE_SECONDS = 60.0
"""So long a consolidation that is due waits for files that have not settled yet."""
FIRST_COMPARE_SECONDS = 5.0
PROMOTE_AGAIN = timedelta(minutes=10)
"""So long a promotion that failed waits until it is tried again."""
LONGEST_COMPARE_SECONDS = 300.0
"""So long facts that a model could not compare wait until it is tried again."""


@dataclass(slots=True)
class Schedule:
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
        """Whether the interval has gone by since the last consolidation began; 0 is never.

        While files are about to be taken in it waits a little, so that it sees them.
        """
        if interval_minutes <= 0 or not self._interval_is_over(interval_minutes):
            self._due_since = None
            return False
        now = self.monotonic()
        self._due_since = now if self._due_since is None else self._due_since
        return not busy or now - self._due_since >= PATIENCE_SECONDS

    def _interval_is_over(self, minutes: int) -> bool:
        last = self.ledger.jobs.last(CONSOLIDATION)
        if last is None:
            return True
        ago = self.clock() - last.started_at
        # One that is still to begin was noted while the clock was ahead: that may be for years.
        return ago >= timedelta(minutes=minutes) or ago < timedelta(0)

    def promotion_due(self, hour: int) -> bool:
        """Whether the hour of the day has come since the last promotion.

        One that was missed is made up for, and one that failed is tried again after a while.

        Args:
            hour: Of the day, in UTC; -1 for never.
        """
        if hour < 0:
            return False
        now = self.clock()
        due = now.replace(hour=hour, minute=0, second=0, microsecond=0)
        due -= timedelta(days=1) if due > now else timedelta(0)
        last = self.ledger.jobs.last(PROMOTION)
        # One that is still to begin was noted while the clock was ahead.
        if last is None or last.started_at < due or last.started_at > now:
            return True
        return last.state != "done" and now - last.started_at >= PROMOTE_AGAIN

    def comparison_due(self) -> bool:
        """Whether facts wait to be compared, and the model that does it may be tried again."""
        if self._compare_at is not None and self.monotonic() < self._compare_at:
            return False
        return self.ledger.comparisons.count() > 0

    def note_comparison(self, facts: FactComparison) -> None:
        """Note whether facts could be compared; if not, it is tried again ever more seldom."""
        if not facts.note:
            self._compare_at, self._compare_seconds = None, 0.0
            return
        _log.info("%d facts are still to be compared: %s", facts.waiting, facts.note)
        longer = min(2 * self._compare_seconds, LONGEST_COMPARE_SECONDS)
        self._compare_seconds = longer or FIRST_COMPARE_SECONDS
        self._compare_at = self.monotonic() + self._compare_seconds

    def note_write(self) -> None:
        """Note that there may be something to tidy up."""
        self._written = True

    def upkeep_due(self) -> bool:
        """Whether there is something to tidy up, and the last upkeep is some time ago."""
        if self._tidied is not None and self.monotonic() - self._tidied < self.upkeep_seconds:
            return False
        return (
            self._written
            or bool(self.ledger.accesses.pending())
            or has_expired(self.ledger, self.clock())
        )

    def note_upkeep(self) -> None:
        """Note that all is tidy."""
        self._written, self._tidied = False, self.monotonic()


@dataclass(frozen=True, slots=True)
class JobContext:
    """What a job works with."""

    base: KnowledgeBase
    schedule: Schedule
    reporter: Reporter

    def report_rollback(self, error: CoverageLost) -> None:
        """Say that a job was undone; files go on being taken in, and it is tried when due again."""
        self.reporter.complain("failed", "", error.message, error.hint, type(error).__name__)

    def report_comparison(self, facts: FactComparison) -> None:
        """Say how new facts compare with what was known, and remember what waits."""
        if facts.updated or facts.contradicted or facts.restated:
            detail = {"added": facts.added, "updated": facts.updated}
            detail |= {"contradicted": facts.contradicted, "restated": facts.restated}
            self.reporter.say("compared", message=facts.told, detail=detail)
        self.schedule.note_comparison(facts)


@dataclass(frozen=True, slots=True)
class ScheduledJob:
    """Work that comes round again while nothing is to be taken from the inboxes."""

    name: str
    is_due: Callable[[JobContext, bool], bool]
    """Whether to run it now; the second argument says whether files are about to be taken in."""
    run: Callable[[JobContext], bool]
    """Does it, and returns whether the inboxes are to be looked at again at once."""
    ends_turn: bool = False
    """Whether no other job runs in the same turn, so that files do not wait for several."""
    is_begun_anew: bool = False
    """Whether one that was cut off is given up, because the next one does its work."""


# --- consolidation -------------------------------------------------------------------------------


def _consolidation_is_due(context: JobContext, busy: bool) -> bool:
    interval = context.base.settings.consolidate_interval
    return context.schedule.consolidation_due(interval, busy=busy)


def _consolidate(context: JobContext) -> bool:
    try:
        report = context.base.insights.consolidate()
    except CoverageLost as error:
        context.report_rollback(error)
        return False
    context.schedule.note_write()
    detail = {"examined": report.examined, "insights": len(report.insights)}
    message = f"{report.examined} memories examined, {len(report.insights)} insights"
    if report.note:
        message += f"; without the model: {report.note}"
    if report.examined or report.waiting:
        context.reporter.say("consolidated", message=message, detail=detail)
    return bool(report.examined)


# --- comparison of new facts with known ones -----------------------------------------------------


def _comparison_is_due(context: JobContext, _busy: bool) -> bool:
    return context.schedule.comparison_due()


def _compare(context: JobContext) -> bool:
    context.report_comparison(context.base.services.ingestor.compare())
    return False


# --- conversations -------------------------------------------------------------------------------


def _sessions_are_due(context: JobContext, _busy: bool) -> bool:
    """Whether something was said that is not in the tables, or a conversation has got long."""
    if context.base.store.ledger.turns.has_pending():
        return True
    return context.base.sessions.is_any_due()


def _take_over_sessions(context: JobContext) -> bool:
    folded = context.base.sessions.fold()
    if folded.turns:
        message = f"{folded.turns} messages of {len(folded.sessions)} conversations"
        context.reporter.say("heard", message=message, detail={"memories": folded.memories})
    for made in context.base.sessions.compress_due():
        message = f"{made.messages} messages of {made.session_id}"
        context.reporter.say("summarised", message=message, document_id=made.document_id)
    context.schedule.note_write()
    return False


# --- promotion of short-term entries -------------------------------------------------------------


def _promotion_is_due(context: JobContext, _busy: bool) -> bool:
    hour = context.base.resources.program_config.tiers.promote_hour
    return context.schedule.promotion_due(hour) and context.base.tiers.has_work()


def _promote(context: JobContext) -> bool:
    try:
        report = context.base.tiers.promote()
    except LockedError as error:
        _log.info("no promotion now: %s", error.message)
        return False
    context.schedule.note_write()
    detail = {"promoted": len(report.promoted), "removed": report.removed}
    message = f"{len(report.promoted)} short-term entries promoted, {report.removed} removed"
    if report.promoted or report.removed:
        context.reporter.say("promoted", message=message, detail=detail)
    return False


# --- upkeep of the tables ------------------------------------------------------------------------


def _upkeep_is_due(context: JobContext, _busy: bool) -> bool:
    return context.schedule.upkeep_due()


def _upkeep(context: JobContext) -> bool:
    try:
        boosts = context.base.resources.program_config.tiers.boost_on_use
        fold_accesses(context.base.store, boosts=boosts)
        remove_expired(context.base.store.ledger, context.base.clock())
        context.base.store.upkeep()
    except LockedError as error:  # whoever writes can do it as well
        _log.info("no upkeep now: %s", error.message)
    except CoverageLost as error:
        context.report_rollback(error)
    context.schedule.note_upkeep()
    return False


SCHEDULED_JOBS: tuple[ScheduledJob, ...] = (
    ScheduledJob("sessions", _sessions_are_due, _take_over_sessions),
    ScheduledJob(
        CONSOLIDATION, _consolidation_is_due, _consolidate, ends_turn=True, is_begun_anew=True
    ),
    ScheduledJob(COMPARISON, _comparison_is_due, _compare, is_begun_anew=True),
    ScheduledJob(PROMOTION, _promotion_is_due, _promote, is_begun_anew=True),
    ScheduledJob(UPKEEP, _upkeep_is_due, _upkeep),
)
"""Every job, in the order in which they are looked at."""


def abandon_cut_off_jobs(ledger: Ledger, now: datetime) -> None:
    """Note which jobs a process that is gone left unfinished, where the next one does their work.

    Args:
        ledger: That of the knowledge base.
        now: When they are given up.
    """
    for job in SCHEDULED_JOBS:
        if job.is_begun_anew:
            ledger.jobs.abandon(now, job.name)


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
