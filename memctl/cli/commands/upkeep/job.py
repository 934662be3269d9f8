"""memctl job: what ran automatically, and how to undo it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import typer

from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import (
    DryRun,
    KnowledgeBaseOption,
    KnowledgeBasesOption,
    Output,
    Yes,
    command,
    flag,
    group,
)
from memctl.cli.completion import complete_job
from memctl.cli.paging import Page
from memctl.cli.rendering.output_formats import (
    Column,
    emit,
    emit_facts,
    emit_if_asked,
    format_instant,
    with_kb_column,
)
from memctl.cli.rendering.terminal_text import format_moment
from memctl.formatting import format_count, format_counts
from memctl.schema.table_names import CONSOLIDATION

if TYPE_CHECKING:
    from memctl.consolidation.job_undo import UndoReport
    from memctl.knowledge_base import KnowledgeBase

app = group("job", "List what ran automatically, and undo it.")


_COLUMNS = (
    Column("id", "JOB", right=True),
    Column("kind", "KIND"),
    Column("state", "STATE"),
    Column("started_at", "BEGAN", format_instant),
    Column("can_be_undone", "CAN BE UNDONE", lambda can: "yes" if can else ""),
    Column("detail", "CAME TO", format_counts, wrap=True),
    Column("error", "ERROR", wrap=True),
)


_UNDONE = (
    Column("job", "JOB", right=True),
    Column("kind", "KIND"),
    Column("started_at", "BEGAN", format_instant),
    Column("removed", "REMOVED", lambda ids: f"{len(ids):,}", right=True),
    Column("restored", "AS BEFORE", lambda ids: f"{len(ids):,}", right=True),
    Column("kept", "LEFT AS THEY ARE", lambda ids: f"{len(ids):,}", right=True),
)


@command(app, "list", "memctl job list\nmemctl job list -k notes -n 0 -o json")
def list_(
    context: CommandContext,
    kb: KnowledgeBasesOption = None,
    page: Page = Page(20),
    output: Output = None,
) -> None:
    """List automatic and long jobs, the newest first."""
    with context.reading(kb) as bases:
        rows = [job for base in bases for job in base.jobs.list(limit=page.needed)]
        columns = with_kb_column(_COLUMNS, len(bases))
    rows.sort(key=lambda job: job.started_at, reverse=True)
    emit(page.of(rows), columns, output)
    if not rows:
        context.hint("none has run yet: memctl watch runs them, or memctl upkeep run")


@command(
    app,
    "undo",
    """
    memctl job undo --dry-run
    memctl job undo -k notes
    memctl job undo 12 --again --yes
    memctl job undo --all-of-night
    """,
)
def undo(
    context: CommandContext,
    job: int | None = typer.Argument(
        None,
        metavar="JOB",
        help="See memctl job list; by default the latest.",
        autocompletion=complete_job,
    ),
    again: bool = flag("--again", "Let the next consolidation look at the same memories again."),
    night: bool = flag("--all-of-night", "Take back every job from noon to noon around it."),
    yes: Yes = False,
    dry_run: DryRun = False,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Take back a consolidation, a comparison or a job of upkeep.

    Its insights and connections go; insights and facts that it ended hold again, and what it
    archived is back.  What was ingested, edited or deleted since stays as it is.  Run again, it
    takes back the job before.  Each knowledge base can take back its latest 20 jobs of each kind,
    until a snapshot is restored.

    The memories count as processed, so the next consolidation says the same again only if they
    change, or together with new ones.  With --again, or later with memctl consolidate --again, it
    processes them again, for example with another model or other settings.
    """
    with context.reading_one(kb) as base:
        if night:
            _undo_night(context, base, job, again=again, yes=yes, dry_run=dry_run, output=output)
            return
        report = base.jobs.undo(job, again=again, dry_run=True)
        which = f"{report.kind} {report.job} of {base.name}, {format_moment(report.started_at)}"
        if dry_run and output is not None:
            emit_facts(report, output)
            return
        what = f"take back {which}: {_summary(report)}"
        if not context.confirm_or_preview(what, yes=yes, dry_run=dry_run):
            return
        report = base.jobs.undo(report.job, again=again)
        context.say(f"took back {which}: {_summary(report)}")
        if report.kind == CONSOLIDATION and not again:
            context.hint("memctl consolidate --again draws insights from the same memories again")
        emit_if_asked(report, output)


def _undo_night(
    context: CommandContext,
    base: KnowledgeBase,
    job: int | None,
    *,
    again: bool,
    yes: bool,
    dry_run: bool,
    output: Output,
) -> None:
    """Take back the jobs of one night, the latest first, or say what would come of it."""
    reports = base.jobs.undo_night(job, again=again, dry_run=True)
    if not (dry_run and output is not None):
        for each in reports:
            context.say(f"{each.kind} {each.job}: {_summary(each)}")
        what = f"take back {format_count(len(reports), 'job')} of {base.name}"
        if not context.confirm_or_preview(what, yes=yes, dry_run=dry_run):
            return
        reports = base.jobs.undo_night(reports[0].job, again=again)
        context.say(f"took back {format_count(len(reports), 'job')}")
    if output is not None:
        emit(reports, _UNDONE, output)


_REMOVED = {
    "d": ("document", "documents"),
    "m": ("memory", "memories"),
    "i": ("insight", "insights"),
}
"""What is removed, by how its ids begin."""


def _summary(report: UndoReport) -> str:
    counts = Counter(id_[0] for id_ in report.removed)
    removed = [
        format_count(counts[prefix], *words) for prefix, words in _REMOVED.items() if counts[prefix]
    ]
    if report.disconnected:
        removed.append(format_count(report.disconnected, "connection"))
    parts = [f"{' and '.join(removed)} removed"] if removed else []
    if report.restored:
        parts.append(f"{len(report.restored):,} as before")
    if report.kept:
        why = "changed since, or based on what no longer holds"
        parts.append(f"{len(report.kept):,} left as they are ({why})")
    if report.waiting:
        parts.append(f"{format_count(report.waiting, 'memory', 'memories')} to be looked at again")
    return ", ".join(parts) or "nothing is left of it"
