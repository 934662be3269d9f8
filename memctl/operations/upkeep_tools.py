"""Operations on what keeps memory in order: learnings, jobs, archived memories, the audit trail."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from msgspec import Struct

from memctl.errors import UsageError
from memctl.instants import parse_instant
from memctl.literals import LEARNING, LearningOutcome
from memctl.operations.operation_context import OperationContext, Unavailable
from memctl.records import record_like
from memctl.validation import Rule

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase

_MOST = 100
_DRY_RUN = "Change nothing; only say what would be done."
_ID = "The id of the memory, or enough of its beginning."


# --- learnings -----------------------------------------------------------------------------------


class LearningsParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``query_learnings``."""

    query: Annotated[str | None, Rule("What they are about; by default all.")] = None
    outcome: Annotated[LearningOutcome | None, Rule("Only what worked, or what did not.")] = None
    limit: Annotated[int, Rule("At most this many.", low=1, high=_MOST)] = 10


class LearningReply(Struct, frozen=True):
    """One lesson from experience."""

    id: str
    text: str
    importance: float
    """As it is now: raised by confirmations, lowered by disuse."""
    confirmations: int
    outcome: str | None
    context: str | None
    quality: float
    agent: str | None
    created_at: datetime
    kb: str
    namespace: str


class Learnings(Struct, frozen=True):
    """Lessons, the most important first; with a query, the nearest first."""

    learnings: tuple[LearningReply, ...]


def query_learnings(context: OperationContext, parameters: LearningsParameters) -> Learnings:
    """Return what ``memctl memory learnings`` lists."""
    from memctl.upkeep import learnings

    found = [
        each
        for each in learnings.query_learnings(
            context.reading(),
            context.now,
            query=parameters.query or "",
            filters=context.filters(),
            limit=_MOST if parameters.outcome else parameters.limit,
        )
        if parameters.outcome in (None, each.outcome)
    ]
    return Learnings(tuple(record_like(LearningReply, each) for each in found[: parameters.limit]))


class AddLearningParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``add_learning``."""

    text: Annotated[str, Rule("What was done, what came of it, what to do next time.")]
    outcome: Annotated[LearningOutcome | None, Rule("Whether it worked.")] = None
    context: Annotated[str | None, Rule("What it was learnt in, such as a task.")] = None
    share: Annotated[bool, Rule("Have it copied to where all users read.")] = False
    tags: Annotated[tuple[str, ...], Rule("Words to file it under.")] = ()
    dry_run: Annotated[bool, Rule(_DRY_RUN)] = False


class LearningAdded(Struct, frozen=True):
    """A learning as it is stored, or would be."""

    id: str
    text: str
    kb: str
    namespace: str
    dry_run: bool


def add_learning(context: OperationContext, parameters: AddLearningParameters) -> LearningAdded:
    """Store a lesson; one that is there already is confirmed by that."""
    from memctl.memories.memory_editing import learning_metadata

    with context.open_for_adding(dry_run=parameters.dry_run) as base:
        memory = base.memories.add(
            parameters.text.strip(),
            type_=LEARNING,
            namespace=context.own_namespace(),
            tags=[tag.removeprefix("#") for tag in parameters.tags],
            session=context.identity.session,
            metadata=learning_metadata(
                parameters.outcome, parameters.context, share=parameters.share
            ),
            dry_run=parameters.dry_run,
        )
    return LearningAdded(
        memory.id, memory.text, context.kb_to_write, memory.namespace, parameters.dry_run
    )


class MemoryIdParameters(Struct, frozen=True, kw_only=True):
    """Parameters of operations on one memory."""

    id: Annotated[str, Rule(_ID)]
    dry_run: Annotated[bool, Rule(_DRY_RUN)] = False


class Confirmed(Struct, frozen=True):
    """How often a learning was confirmed by now, each who confirms it counted once."""

    id: str
    confirmations: int
    dry_run: bool


def confirm_learning(context: OperationContext, parameters: MemoryIdParameters) -> Confirmed:
    """Confirm a learning as ``memctl memory confirm`` does."""
    base = _owner(context, parameters.id)
    view = base.memories.get(parameters.id)
    if view.memory.type != LEARNING:
        raise UsageError(f"memory {view.memory.id} is a {view.memory.type}, and no learning")
    times = view.confirmations if parameters.dry_run else base.memories.confirm(view.memory.id)
    return Confirmed(view.memory.id, times, parameters.dry_run)


# --- archived memories ---------------------------------------------------------------------------


class RestoredMemory(Struct, frozen=True):
    """A memory that takes part in queries again."""

    id: str
    text: str
    kb: str
    dry_run: bool


def restore_memory(context: OperationContext, parameters: MemoryIdParameters) -> RestoredMemory:
    """Bring back an archived memory as ``memctl memory restore`` does."""
    from memctl.memories.memory_views import get_memory

    base = _owner(context, parameters.id)
    memory = get_memory(base.resources.seen_snapshot(), parameters.id)
    context.check_changeable(base, memory.namespace, f"memory {parameters.id!r}")
    if not parameters.dry_run:
        memory = base.memories.restore(memory.id)
    return RestoredMemory(memory.id, memory.text, base.name, parameters.dry_run)


def _owner(context: OperationContext, id_: str) -> KnowledgeBase:
    from memctl.memories.memory_views import get_memory

    base = context.owner("memories", id_)
    memory = get_memory(base.resources.seen_snapshot(), id_)
    context.check_readable(base, memory.namespace, f"memory {id_!r}")
    return base


# --- jobs ----------------------------------------------------------------------------------------


class ListJobsParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``list_upkeep_jobs``; it has none."""


class UpkeepJobReply(Struct, frozen=True):
    """One job of one knowledge base."""

    kb: str
    job: str
    about: str
    schedule: str
    last_run: datetime | None
    state: str
    next_run: datetime | None
    came_to: Mapping[str, int]


class UpkeepJobs(Struct, frozen=True):
    """Every job, in the order in which they run."""

    jobs: tuple[UpkeepJobReply, ...]


def list_upkeep_jobs(context: OperationContext, _asked: ListJobsParameters) -> UpkeepJobs:
    """Return what ``memctl upkeep list`` lists."""
    from memctl.upkeep.runner import Upkeep

    return UpkeepJobs(
        tuple(
            record_like(UpkeepJobReply, each)
            for base in context.reading()
            for each in Upkeep(base, context.home).statuses()
        )
    )


class RunJobParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``run_upkeep_job``."""

    job: Annotated[str, Rule("Its name, as list_upkeep_jobs says.")]
    dry_run: Annotated[bool, Rule(_DRY_RUN)] = False


class RunJobReply(Struct, frozen=True):
    """What a run came to."""

    kb: str
    job: str
    number: int | None
    counts: Mapping[str, int]
    warning: str
    note: str
    dry_run: bool


def run_upkeep_job(context: OperationContext, parameters: RunJobParameters) -> RunJobReply:
    """Run a job of the knowledge base that is written to; never a command of the owner's.

    Raises:
        Unavailable: The job is a command that its owner has set up, or the caller is one of
            several users.
    """
    from memctl.upkeep.job_registry import JOBS, find_job
    from memctl.upkeep.runner import Upkeep
    from memctl.upkeep.upkeep_job import UpkeepOptions

    base = context.reading_existing()
    job = find_job(base, parameters.job)
    if job not in JOBS:
        raise Unavailable(f"{parameters.job} is a command of the owner's, whom alone it runs for")
    _require_whole(context, "the jobs are about what all users keep")
    done = Upkeep(base, context.home).run(job, UpkeepOptions(dry_run=parameters.dry_run))
    return record_like(RunJobReply, done)


def _require_whole(context: OperationContext, why: str) -> None:
    """Refuse what is about all users to one of them.

    Raises:
        Unavailable: The call is for one user.
    """
    if context.identity.user is not None:
        raise Unavailable(f"{context.identity.user} may not do that: {why}")


# --- reports -------------------------------------------------------------------------------------


class ReportParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``upkeep_report``."""

    limit: Annotated[int, Rule("At most this many.", low=1, high=_MOST)] = 20


class DoubtfulMemory(Struct, frozen=True):
    """One memory that should be looked at."""

    id: str
    kb: str
    type: str
    text: str
    why: str
    """``stale``, ``source gone``, ``contradicted``, ``judged bad`` or ``low quality``."""
    quality: float
    idle_days: float


class UpkeepReport(Struct, frozen=True):
    """Memories that should be looked at, the worst first."""

    entries: tuple[DoubtfulMemory, ...]


def upkeep_report(context: OperationContext, parameters: ReportParameters) -> UpkeepReport:
    """Return what ``memctl upkeep report`` lists, of what the caller may read."""
    from memctl.upkeep.upkeep_report import doubtful_entries

    found = [
        each
        for base in context.reading()
        for each in doubtful_entries(base, context.now)
        if context.reads(base, each.namespace)
    ]
    found.sort(key=lambda each: each.quality)
    return UpkeepReport(
        tuple(record_like(DoubtfulMemory, each) for each in found[: parameters.limit])
    )


class SummaryParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``daily_summary``."""

    day: Annotated[str | None, Rule("2026-05-12, today or yesterday; by default today.")] = None


class SummaryReply(Struct, frozen=True):
    """The page of a day."""

    kb: str
    day: str
    text: str
    documents: int
    decisions: int
    contradictions: int
    insights: int
    unanswered: int


def daily_summary(context: OperationContext, parameters: SummaryParameters) -> SummaryReply:
    """Return the page that ``memctl summary`` shows.

    Raises:
        Unavailable: The call is for one user, and the page is about all.
    """
    from memctl.upkeep.daily_summary import parse_day, summarise_day

    _require_whole(context, "the page is about what all users keep")
    made = summarise_day(context.reading_existing(), parse_day(parameters.day, context.now))
    return record_like(SummaryReply, made, day=made.day.isoformat())


class AuditParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``audit_trail``."""

    since: Annotated[str | None, Rule("Only from that date on: 2026-03-01, 7d, today.")] = None
    actor: Annotated[str | None, Rule("Only of this user or agent.")] = None
    about: Annotated[str | None, Rule("Only about this id.")] = None
    limit: Annotated[int, Rule("At most this many.", low=1, high=_MOST)] = 20


class AuditedChange(Struct, frozen=True):
    """One change: ids and numbers, never words."""

    id: int
    kb: str
    at: datetime
    actor: str
    action: str
    objects: tuple[str, ...]
    counts: Mapping[str, int]


class AuditTrail(Struct, frozen=True):
    """Who changed what, the latest first."""

    changes: tuple[AuditedChange, ...]


def audit_trail(context: OperationContext, parameters: AuditParameters) -> AuditTrail:
    """Return what ``memctl audit`` lists; a user sees their own changes alone."""
    since = None if parameters.since is None else parse_instant(parameters.since, context.now)
    return AuditTrail(
        tuple(
            record_like(AuditedChange, each, kb=base.name)
            for base in context.reading()
            for each in base.statistics.audit(
                since, parameters.actor, parameters.about, limit=parameters.limit
            )
        )[: parameters.limit]
    )
