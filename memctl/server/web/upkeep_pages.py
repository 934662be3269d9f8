"""Inboxes; what was done by itself and the way back, storage, cost, questions; the settings."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memctl.config import settings_of, without_password
from memctl.consolidation.job_undo import JobView
from memctl.errors import KnowledgeBaseNotFound, LockedError, UsageError
from memctl.knowledge_base import KnowledgeBase
from memctl.knowledge_base.kb_statistics import KnowledgeBaseStatistics, QueryStatistics
from memctl.models.model_status import ProbeResult, TaskModel, probe_models, task_models
from memctl.operations.operation_context import OperationContext
from memctl.plain_values import plain_rows
from memctl.records import FileOutcome, record_like
from memctl.server.web.pages import ChangeResult, Page, PageRequest, address
from memctl.upkeep.runner import JobStatus, Upkeep
from memctl.watch.hand_in import FailedFile, failed_files, put_in, retry, take_in
from memctl.watch.watch_status import WatchStatus, waiting_files, watch_status

if TYPE_CHECKING:
    from memctl.home import Home, KnowledgeBaseEntry

_JOBS = 30
_COST_DAYS = 60
_MAX_FILES = 100
_RECENT_FILES = 12


class UpkeepState(Struct, frozen=True):
    """How one knowledge base is doing."""

    kb: str
    jobs: tuple[JobView, ...]
    content: KnowledgeBaseStatistics
    queries: QueryStatistics
    cost: tuple[dict[str, Any], ...]
    """What models used, by day, task and model."""
    schedules: tuple[JobStatus, ...] = ()
    """When each job of upkeep runs."""


def upkeep(context: OperationContext, _: PageRequest) -> Page:
    """Show jobs and schedules, storage, cost and questions.

    As ``memctl job list``, ``memctl upkeep list`` and ``memctl stats`` do.
    """
    states: Sequence[UpkeepState] = ()
    with suppress(KnowledgeBaseNotFound):
        states = [_state(base, context.home) for base in context.reading()]
    return Page("upkeep.html", "Upkeep", {"bases": states})


def _state(base: KnowledgeBase, home: Home) -> UpkeepState:
    return UpkeepState(
        base.name,
        tuple(base.jobs.list(limit=_JOBS)),
        base.statistics.content(),
        base.statistics.queries(),
        tuple(plain_rows(base.statistics.model_usage().slice(0, _COST_DAYS))),
        tuple(Upkeep(base, home).statuses()),
    )


def _job(context: OperationContext, parameters: PageRequest) -> tuple[KnowledgeBase, int]:
    """Return the knowledge base and the number of the requested job.

    Raises:
        UsageError: It may be one of several.
    """
    bases = list(context.reading())
    if len(bases) > 1:
        raise UsageError("which knowledge base?", "open the job from its list")
    number = parameters.path["job"]
    if not number.isascii() or not number.isdigit():
        raise UsageError(f"{number[:20]!r} is no job")
    return bases[0], int(number[:15])


def preview_undo(context: OperationContext, parameters: PageRequest) -> Page:
    """Show what taking a job back would come to, as ``memctl job undo --dry-run`` does."""
    base, number = _job(context, parameters)
    report = base.jobs.undo(number, dry_run=True)
    return Page("undo.html", "Take a job back", report)


def undo(context: OperationContext, parameters: PageRequest) -> ChangeResult:
    """Take a job back as ``memctl job undo`` does."""
    base, number = _job(context, parameters)
    report = base.jobs.undo(number, again=parameters.has("again"))
    return ChangeResult(address("/upkeep", kb=base.name), report, "undone")


def consolidate(context: OperationContext, _: PageRequest) -> ChangeResult:
    """Draw insights now, as ``memctl consolidate`` does."""
    base = context.reading_existing()
    report = base.consolidate()
    return ChangeResult(address("/insights", kb=base.name), report, "consolidated")


# --- settings -------------------------------------------------------------------------------------


class Setting(Struct, frozen=True):
    """One setting of the program, without what is secret in it."""

    key: str
    value: str
    origin: str


class BaseSettings(Struct, frozen=True):
    """What of a knowledge base's settings is shown."""

    name: str
    status: str
    problem: str
    description: str = ""
    always_on: bool = False
    private: bool = False
    redact: bool = False
    embedder: str = ""
    consolidate_interval: int = 0
    inboxes: tuple[str, ...] = ()


class AllSettings(Struct, frozen=True):
    """Everything that is set; keys are never among it."""

    home: str
    kbs: tuple[BaseSettings, ...]
    models: tuple[TaskModel, ...]
    settings: tuple[Setting, ...]
    tests: tuple[ProbeResult, ...] = ()
    """What came of asking each model for something small."""


def settings(context: OperationContext, parameters: PageRequest) -> Page:
    """Show knowledge bases, models and settings, as ``kb list``, ``models list`` and ``config``."""
    return Page("settings.html", "Settings", _settings(context, parameters), {"was_tested": False})


def test_models(context: OperationContext, parameters: PageRequest) -> Page:
    """Ask each configured model for something small, as ``memctl models test`` does."""
    tests = tuple(probe_models(context.home.config))
    return Page(
        "settings.html", "Settings", _settings(context, parameters, tests), {"was_tested": True}
    )


def _settings(
    context: OperationContext, parameters: PageRequest, tests: tuple[ProbeResult, ...] = ()
) -> AllSettings:
    config = context.home.config
    return AllSettings(
        home=str(config.home),
        kbs=tuple(map(_base_settings, parameters.entries)),
        models=tuple(task_models(config)),
        settings=tuple(
            Setting(key, _value(value), str(config.origins[key]))
            for key, value in settings_of(config).items()
        ),
        tests=tests,
    )


def _base_settings(entry: KnowledgeBaseEntry) -> BaseSettings:
    found = entry.settings
    if found is None:
        return BaseSettings(entry.name, "error", entry.problem)
    inboxes = tuple(str(each.path) for each in found.inboxes)
    return record_like(BaseSettings, found, name=entry.name, problem="", inboxes=inboxes)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return without_password(value) if isinstance(value, str) else str(value)


# --- the inbox ------------------------------------------------------------------------------------


class InboxState(Struct, frozen=True):
    """The inboxes of one knowledge base."""

    kb: str
    folders: tuple[str, ...]
    status: WatchStatus
    waiting: tuple[str, ...]
    failed: tuple[FailedFile, ...]
    recent: tuple[RecentFile, ...]
    """The latest ingested files."""


class RecentFile(Struct, frozen=True):
    """A file that was taken in."""

    document_id: str
    title: str
    source: str
    ingested_at: str


def inbox(context: OperationContext, parameters: PageRequest) -> Page:
    """Show what waits, what failed, and whether a watcher is alive."""
    states: Sequence[InboxState] = ()
    with suppress(KnowledgeBaseNotFound):  # the first file makes the default one
        states = [_inbox_state(base) for base in context.reading()]
    shown = {"target": parameters.kbs[0] if parameters.kbs else context.kb_to_write}
    return Page("inbox.html", "Inbox", {"inboxes": states}, shown)


def _inbox_state(base: KnowledgeBase) -> InboxState:
    rows = plain_rows(base.documents.list(limit=_RECENT_FILES))
    return InboxState(
        kb=base.name,
        folders=tuple(str(each.path) for each in base.settings.inboxes),
        status=watch_status(base),
        waiting=tuple(name for name, _ in waiting_files(base)[:_MAX_FILES]),
        failed=tuple(failed_files(base.layout)[:_MAX_FILES]),
        recent=tuple(
            RecentFile(row["id"], row["title"], row["source"], row["ingested_at"]) for row in rows
        ),
    )


def receive(context: OperationContext, parameters: PageRequest) -> ChangeResult:
    """Put files into the inbox and take them in, or one text.

    Raises:
        UsageError: There is none.
    """
    base = context.writing()
    files = [file for file in parameters.files if file.filename]
    text = parameters.text("text")
    if not files and not text:
        raise UsageError("no file was given", "choose one, or drop it on the page")
    outcome: Sequence[FileOutcome] = ()
    if text:
        outcome = base.documents.ingest(text=text, title=parameters.text("title")).outcomes
    placed = [str(put_in(base.layout, file.filename or "", file.file)) for file in files]
    notice = _ingested_at(context, base) if placed else "received"
    to = address("/inbox", kb=base.name)
    return ChangeResult(to, {"kb": base.name, "files": placed, "outcomes": outcome}, notice)


def _ingested_at(context: OperationContext, base: KnowledgeBase) -> str:
    try:
        take_in(context.home, base.name)
    except LockedError:
        return "waiting"
    return "received"


def take_in_waiting(context: OperationContext, _: PageRequest) -> ChangeResult:
    """Ingest waiting files, as ``memctl watch --once`` does."""
    base = context.reading_existing()
    notice = _ingested_at(context, base)
    return ChangeResult(address("/inbox", kb=base.name), {"kb": base.name}, notice)


def try_again(context: OperationContext, parameters: PageRequest) -> ChangeResult:
    """Have a failed file tried again."""
    base = context.reading_existing()
    base.resources.require_writable()
    placed = retry(base.layout, parameters.text("file"))
    notice = _ingested_at(context, base)
    to = address("/inbox", kb=base.name)
    notice = "retried" if notice == "received" else notice
    return ChangeResult(to, {"kb": base.name, "files": [str(placed)]}, notice)
