"""memctl upkeep, summary and audit: what runs by itself, what a day brought, who changed what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from memctl.cli.arguments import parse_instant, refuse_empty
from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import (
    DryRun,
    KnowledgeBaseOption,
    KnowledgeBasesOption,
    Output,
    SinceOption,
    command,
    flag,
    group,
)
from memctl.cli.paging import Page
from memctl.cli.rendering.output_formats import (
    Column,
    emit,
    emit_if_asked,
    emit_one,
    format_instant,
    to_plain,
    with_kb_column,
)
from memctl.cli.rendering.terminal_text import one_line, short_id
from memctl.errors import PartialFailure, UsageError
from memctl.formatting import format_counts
from memctl.language.inline_tags import without_wikilinks

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBases
    from memctl.upkeep.runner import JobRun

app = group("upkeep", "Keep knowledge bases in order: jobs and their schedules.")
pages_app = typer.Typer()


_JOBS = (
    Column("job", "JOB"),
    Column("schedule", "SCHEDULE"),
    Column("last_run", "LAST RUN", format_instant),
    Column("state", "STATE"),
    Column("next_run", "NEXT RUN", format_instant),
    Column("came_to", "CAME TO", format_counts, wrap=True),
)
_RUNS = (
    Column("job", "JOB"),
    Column("number", "NUMBER", right=True),
    Column("counts", "CAME TO", format_counts),
    Column("error", "ERROR", wrap=True),
)
_DOUBTFUL = (
    Column("id", "ID", short_id),
    Column("why", "WHY"),
    Column("quality", "QUALITY", lambda value: f"{value:.2f}", right=True),
    Column("idle_days", "IDLE DAYS", lambda value: f"{value:,.0f}", right=True),
    Column("type", "TYPE"),
    Column("text", "TEXT", lambda text: one_line(without_wikilinks(text), 80)),
)
_AUDIT = (
    Column("id", "ENTRY", right=True),
    Column("at", "AT", format_instant),
    Column("actor", "WHO"),
    Column("action", "WHAT"),
    Column("objects", "ABOUT", lambda ids: one_line(", ".join(ids), 60), wrap=True),
    Column("counts", "ROWS", format_counts, wrap=True),
)
JobArgument = Annotated[
    str | None, typer.Argument(metavar="JOB", help="A job; see memctl upkeep list.")
]


@command(app, "list", "memctl upkeep list\nmemctl upkeep list -k notes -o json")
def list_(
    context: CommandContext,
    kb: KnowledgeBasesOption = None,
    page: Page = Page(),
    output: Output = None,
) -> None:
    """List jobs: when each runs, ran last and what it did."""
    from memctl.upkeep.runner import Upkeep

    with context.reading(kb) as bases:
        rows = [row for base in bases for row in Upkeep(base, context.home).statuses()]
        emit(context.page(rows, page), with_kb_column(_JOBS, len(bases)), output)


@command(
    app,
    "run",
    """
    memctl upkeep run --due
    memctl upkeep run rot --dry-run
    memctl upkeep run duplicates --merge -k notes
    """,
)
def run(
    context: CommandContext,
    job: JobArgument = None,
    due: bool = flag("--due", "Run every job whose time has come, as memctl watch does."),
    merge: bool = flag("--merge", "With duplicates: end the older of two memories."),
    force: bool = flag("--force", "With rot: archive however much is stale."),
    dry_run: DryRun = False,
    kb: KnowledgeBasesOption = None,
    output: Output = None,
) -> None:
    """Run one job, or all that are due.

    For cron, where memctl watch does not run: memctl upkeep run --due -q, every quarter of an hour.
    What was missed runs once.  Each run is listed by memctl job list, and memctl job undo takes it
    back.
    """
    from memctl.upkeep.runner import Upkeep
    from memctl.upkeep.upkeep_job import UpkeepOptions

    if (job is None) != due:
        raise UsageError("which job?", "name one, or say --due for all that are due")
    if merge and job != "duplicates":
        hint = "memctl upkeep run duplicates --merge"
        raise UsageError("--merge is for the job duplicates", hint)
    if force and job != "rot":
        raise UsageError("--force is for the job rot", "memctl upkeep run rot --force")
    options = UpkeepOptions(dry_run=dry_run, force=force, merge=merge)
    with context.reading(kb) as bases:
        _check_name(bases, job)
        active = [base for base in bases if base.settings.status == "active"]
        upkeeps = [Upkeep(base, context.home) for base in active]
        if job is None:
            runs = [each for upkeep in upkeeps for each in upkeep.run_due(options)]
        else:
            runs = [upkeep.run(upkeep.find(job), options) for upkeep in upkeeps]
        _say_warnings(context, runs)
        emit(runs, with_kb_column(_RUNS, len(bases)), output)
    if failed := [each for each in runs if each.error]:
        raise PartialFailure(f"{len(failed)} of {len(runs)} jobs failed", failed[0].hint)


def _check_name(bases: KnowledgeBases, job: str | None) -> None:
    """Refuse a name that no job of any knowledge base has, before any is run."""
    from memctl.upkeep.job_registry import find_job

    for base in bases if job is not None else ():
        find_job(base, str(job))


def _say_warnings(context: CommandContext, runs: list[JobRun]) -> None:
    for each in runs:
        if each.warning:
            context.say(f"warning: {each.warning}")
            context.suggest(each.hint)
        if each.note:
            context.say(f"note: {each.note}")


@command(
    app,
    "set",
    """
    memctl upkeep set summary --at 23:55
    memctl upkeep set rot --at "sun 05:00" -k notes
    memctl upkeep set consolidation --every 30m
    memctl upkeep set shared --off
    """,
)
def set_(
    context: CommandContext,
    job: Annotated[str, typer.Argument(metavar="JOB", help="See memctl upkeep list.")],
    at: str | None = typer.Option(
        None, "--at", metavar="TIME", help="A local time: 04:00, 'sun 05:00', '1 03:00'."
    ),
    every: str | None = typer.Option(
        None, "--every", metavar="TIME", help="An interval: 30m, 6h, 2d."
    ),
    off: bool = flag("--off", "Never automatically."),
    default: bool = flag("--default", "As it is where nothing was set."),
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Say when a job of one knowledge base runs."""
    from memctl.schedules import OFF, parse_schedule
    from memctl.upkeep.runner import Upkeep

    if [at is not None, every is not None, off, default].count(True) != 1:
        raise UsageError("when?", "give one of --at, --every, --off and --default")
    text = f"every {every}" if at is None else at
    schedule = OFF if off else None if default else parse_schedule(text)
    with context.writing_existing(kb) as base:
        status = Upkeep(base, context.home).set(job, schedule)
    context.say(f"{job} of {status.kb}: {status.schedule}")
    emit_if_asked(status, output)


@command(app, "report", "memctl upkeep report\nmemctl upkeep report -k notes -o json")
def report(
    context: CommandContext,
    kb: KnowledgeBasesOption = None,
    page: Page = Page(50),
    output: Output = None,
) -> None:
    """List entries to look at: stale, contradicted, judged bad.

    Those without ground come first, then the worst: QUALITY is made of confidence, feedback on
    answers that used the entry, how recently it was used, and on how many sources it rests.
    """
    _show_doubtful(context, kb, page, output)


def _show_doubtful(
    context: CommandContext, kb: KnowledgeBasesOption, page: Page, output: Output
) -> None:
    from memctl.upkeep.upkeep_report import doubtful_entries

    now = context.home.now()
    with context.reading(kb) as bases:
        rows = [row for base in bases for row in doubtful_entries(base, now)]
        rows.sort(key=lambda each: each.quality)
        emit(context.page(rows, page), with_kb_column(_DOUBTFUL, len(bases)), output)
    if not rows:
        context.say("note: nothing to look at: no entry is stale, contradicted or judged bad")


# --- a page of the day ---------------------------------------------------------------------------


@command(
    pages_app,
    "summary",
    """
    memctl summary
    memctl summary yesterday
    memctl summary 2026-05-12 --write
    """,
)
def summary(
    context: CommandContext,
    day: Annotated[
        str | None,
        typer.Argument(metavar="DATE", help="2026-05-12, today or yesterday; by default today."),
    ] = None,
    write: bool = flag("--write", "Keep the page as a document of the knowledge base."),
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Show what one day brought, as a page with wikilinks.

    New documents, decisions, contradictions, insights and questions without an answer.  With
    --write the page becomes a document, in place of an earlier one of the same day; memctl upkeep
    set summary --at 23:55 has it written every day.
    """
    from memctl.upkeep.daily_summary import parse_day, summarise_day

    wanted = parse_day(day, context.home.now())
    with context.writing_existing(kb) if write else context.reading_one(kb) as base:
        made = summarise_day(base, wanted, write=write)
    emit_one(made, output, lambda: context.console.print(made.text, end=""))


# --- who changed what ----------------------------------------------------------------------------


@command(
    pages_app,
    "audit",
    """
    memctl audit --since 7d
    memctl audit --object m_3fa2b1 -o ndjson
    memctl audit stale
    """,
)
def audit(
    context: CommandContext,
    what: Annotated[
        str,
        typer.Argument(metavar="[changes|stale]", help="Changes, or entries that went stale."),
    ] = "changes",
    since: SinceOption = None,
    actor: str | None = typer.Option(
        None, "--actor", metavar="NAME", help="Only of a user or an agent; owner, or watch."
    ),
    about: str | None = typer.Option(
        None, "--object", metavar="ID", help="Only about an id, or a beginning of one."
    ),
    kb: KnowledgeBasesOption = None,
    page: Page = Page(50),
    output: Output = None,
) -> None:
    """List who changed what, the latest first.

    Entries hold ids and versions of tables, never texts.  Each is chained to the one before, so
    that memctl doctor finds out whether any was removed.  memctl audit stale lists memories that
    are not used, that lost their source, are contradicted or were judged bad.
    """
    refuse_empty({"--since": since, "--actor": actor, "--object": about})
    if what == "stale":
        _show_doubtful(context, kb, page, output)
        return
    if what != "changes":
        raise UsageError(f"there is no list {what[:40]!r}", "memctl audit, or memctl audit stale")
    first = None if since is None else parse_instant(since, context.home.now())
    with context.reading(kb) as bases:
        rows = [
            {"kb": base.name, **to_plain(entry), "at": entry.at}
            for base in bases
            for entry in base.statistics.audit(first, actor, about, limit=page.needed)
        ]
        rows.sort(key=lambda row: row["at"], reverse=True)
        emit(page.of(rows), with_kb_column(_AUDIT, len(bases)), output)
