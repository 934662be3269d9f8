"""Runs the jobs of one knowledge base: when each is due, what it came to, and who set it so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from msgspec import Struct, field

from memctl.errors import MemctlError, UsageError
from memctl.schedules import OFF, RETRY_AFTER, Schedule, parse_schedule
from memctl.schema.table_names import CONSOLIDATION
from memctl.store.ledger.ledger import job_context
from memctl.store.ledger.work_repositories import JobSchedule
from memctl.upkeep.job_registry import default_schedule, find_job, jobs_of
from memctl.upkeep.upkeep_job import (
    AS_NEEDED,
    BY_ITSELF,
    JobFailed,
    Outcome,
    UpkeepContext,
    UpkeepJob,
    UpkeepOptions,
)

if TYPE_CHECKING:
    from memctl.home import Home
    from memctl.knowledge_base import KnowledgeBase
    from memctl.store.ledger.work_repositories import Job

_ENDED = ("done", "undone")
_LONGEST_INTERVAL = timedelta(days=365)


class JobStatus(Struct, frozen=True):
    """One job of one knowledge base: when it runs, and what it came to last."""

    kb: str
    job: str
    about: str
    schedule: str
    is_default: bool
    """Whether the schedule is the default one."""
    last_run: datetime | None
    state: str
    """Of the last run: ``done``, ``failed``, ``running``, ...; "" where there was none."""
    next_run: datetime | None
    """None where it runs as needed, or never."""
    came_to: Mapping[str, int] = field(default_factory=dict)


class JobRun(Struct, frozen=True):
    """What one run of one job came to, or with ``dry_run`` would."""

    kb: str
    job: str
    number: int | None
    """Under which ``memctl job undo`` takes it back; None where the ledger has no entry of it."""
    dry_run: bool
    counts: Mapping[str, int]
    ids: Sequence[str] = ()
    """Memories that it is about."""
    warning: str = ""
    hint: str = ""
    error: str = ""
    note: str = ""


class Upkeep:
    """The jobs of one knowledge base.

    Args:
        base: Which.
        home: All knowledge bases; learnings are shared among them.
        clock: What tells the time; by default that of the knowledge base.
    """

    def __init__(
        self, base: KnowledgeBase, home: Home, clock: Callable[[], datetime] | None = None
    ) -> None:
        self._base = base
        self._home = home
        self._clock = clock or base.clock
        self._ledger = base.store.ledger

    def statuses(self) -> list[JobStatus]:
        """Return every job, in the order in which they run."""
        return [self._status(job) for job in jobs_of(self._base)]

    def _status(self, job: UpkeepJob) -> JobStatus:
        now, last = self._clock(), self._ledger.jobs.last(job.entry_kind)
        schedule = self.schedule(job)
        detail = last.detail if last is not None else {}
        return JobStatus(
            kb=self._base.name,
            job=job.name,
            about=job.about,
            schedule=AS_NEEDED if job.is_as_needed else str(schedule),
            is_default=self._ledger.schedules.find(job.name) is None,
            last_run=last.started_at if last is not None else None,
            state=last.state if last is not None else "",
            next_run=None if job.is_as_needed else self._next_run(job, schedule, last, now),
            came_to={name: value for name, value in detail.items() if type(value) is int},
        )

    def _next_run(
        self, job: UpkeepJob, schedule: Schedule, last: Job | None, now: datetime
    ) -> datetime | None:
        if self.is_due(job):
            return now
        began = last.started_at if last is not None else None
        return schedule.following(began, now, self._base.settings.created_at)

    def schedule(self, job: UpkeepJob) -> Schedule:
        """Return when a job runs."""
        found = self._ledger.schedules.find(job.name)
        return (
            default_schedule(job, self._base) if found is None else parse_schedule(found.schedule)
        )

    def is_due(self, job: UpkeepJob) -> bool:
        """Return whether a job is due: its time has come, was missed, or it failed a while ago.

        A run that was undone is not repeated before it is due again.
        """
        if job.is_as_needed:
            return False
        schedule = self.schedule(job)
        if schedule.is_off:
            return False
        now, last = self._clock(), self._ledger.jobs.last(job.entry_kind)
        if last is None:
            return schedule.is_due(None, now, self._base.settings.created_at)
        if schedule.is_due(last.started_at, now, self._base.settings.created_at):
            return True
        return last.state not in _ENDED and now - last.started_at >= RETRY_AFTER

    def due(self) -> list[UpkeepJob]:
        """Return the jobs that are due, in the order in which they run."""
        return [job for job in jobs_of(self._base) if self.is_due(job)]

    def find(self, name: str) -> UpkeepJob:
        """Return the job of a name.

        Raises:
            UsageError: There is none.
        """
        return find_job(self._base, name)

    def run(self, job: UpkeepJob, options: UpkeepOptions = BY_ITSELF) -> JobRun:
        """Run a job now, whether or not it is due.

        Raises:
            KnowledgeBaseUnavailable: It is archived, or this process may only read.
            LockedError: Another process kept writing.
            MemctlError: The job failed; the ledger says so.
        """
        outcome, number = self.carry_out(job, options)
        return JobRun(
            kb=self._base.name,
            job=job.name,
            number=number,
            dry_run=options.dry_run,
            counts=outcome.counts,
            ids=tuple(outcome.ids),
            warning=outcome.warning,
            hint=outcome.hint,
            note=outcome.note,
        )

    def carry_out(
        self, job: UpkeepJob, options: UpkeepOptions = BY_ITSELF
    ) -> tuple[Outcome, int | None]:
        """Run a job as ``run`` does; return what it came to, and its number in the ledger."""
        base = self._base
        context = UpkeepContext(base, self._home, self._clock(), None, options)
        if options.dry_run:
            return job.run(context), None
        base.resources.begin_change()
        if job.keeps_own_entry:
            outcome = job.run(context)
            last = self._ledger.jobs.last(job.entry_kind)
            return outcome, None if last is None else last.id
        with job_context(self._ledger, job.entry_kind, self._clock) as entry:
            try:
                outcome = job.run(UpkeepContext(base, self._home, context.now, entry.id, options))
            except JobFailed as error:
                entry.detail = {**error.counts, "error": error.message}
                raise
            entry.detail = dict(outcome.counts)
        return outcome, entry.id

    def run_due(self, options: UpkeepOptions = BY_ITSELF) -> list[JobRun]:
        """Run every job that is due; one that fails keeps no other from running."""
        runs = []
        for job in self.due():
            try:
                runs.append(self.run(job, options))
            except MemctlError as error:
                runs.append(
                    JobRun(
                        self._base.name,
                        job.name,
                        None,
                        options.dry_run,
                        {},
                        hint=error.hint,
                        error=error.message,
                    )
                )
        return runs

    def set(self, name: str, schedule: Schedule | None) -> JobStatus:
        """Say when a job runs; None is as by default.

        Raises:
            UsageError: There is no such job, or it has no schedule.
        """
        job = self.find(name)
        if job.is_as_needed:
            raise UsageError(
                f"{name} runs whenever there is something to do, and has no schedule",
                "memctl upkeep list shows which jobs have one",
            )
        if job.entry_kind.startswith("custom "):
            raise UsageError(
                f"the schedule of {name!r} stands in the config file",
                "change it in [[upkeep.custom]]; memctl config path says where",
            )
        self._base.resources.require_writable()
        if job.name == CONSOLIDATION:
            self._set_interval(schedule)
        elif schedule is None:
            self._ledger.schedules.remove(name)
        else:
            now = self._clock()
            self._ledger.schedules.save(JobSchedule(name, str(schedule), now))
        self._ledger.audit.add(self._clock(), "upkeep set", [name])
        return self._status(job)

    def _set_interval(self, schedule: Schedule | None) -> None:
        """Keep the interval of consolidation where it stood before: among the settings."""
        every = None if schedule is None else schedule.every
        if schedule is not None and not schedule.is_off and every is None:
            raise UsageError(
                "consolidation runs at intervals", "such as --every 30m; promotion has a time"
            )
        if every is not None and not timedelta(minutes=1) <= every <= _LONGEST_INTERVAL:
            raise UsageError("consolidation runs every minute at most", "such as --every 30m")
        from memctl.kb_settings import KnowledgeBaseSettings
        from memctl.validation import setting_default

        default: int = setting_default(KnowledgeBaseSettings, "consolidate_interval")
        minutes = default if every is None else int(every.total_seconds()) // 60
        minutes = 0 if schedule == OFF else minutes
        changed = self._home.change(self._base.name, consolidate_interval=minutes)
        self._base.resources.settings = changed
