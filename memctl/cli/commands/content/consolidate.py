"""memctl consolidate: memories become insights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import KnowledgeBasesOption, Output, command, flag
from memctl.cli.rendering.output_formats import emit_each, print_paragraph
from memctl.errors import ModelUnavailable, PartialFailure
from memctl.formatting import format_count, format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memctl.records import ConsolidationReport


app = typer.Typer()


@command(
    app,
    "consolidate",
    """
    memctl consolidate
    memctl consolidate -k notes --dry-run
    memctl consolidate --again
    memctl consolidate -o json | jq '.[].insights[].text'
    """,
)
def consolidate(
    context: CommandContext,
    kb: KnowledgeBasesOption = None,
    again: bool = flag("--again", "Look at what has been looked at before, too."),
    dry_run: bool = flag("--dry-run", "Show the insights without writing them."),
    output: Output = None,
) -> None:
    """Draw insights from memories that belong together.

    An insight says what follows from several memories: what changed, contradicts, recurs, is over
    a budget or overdue, or who is connected, and names them.  Nothing is deleted, and memctl job
    undo takes it back.  While the model that writes insights is down, its groups wait for the
    next run.

    Each memory is looked at once.  With --again all are looked at, so that insights come back that
    were taken back or deleted.
    """
    reports = []
    known: dict[str, int] = {}
    with context.reading(kb) as bases:
        for base in bases:
            with context.progress(f"consolidating {base.name}") as listener:
                reports.append(base.consolidate(dry_run=dry_run, again=again, progress=listener))
            if not reports[-1].insights:
                known[base.name] = base.insights.count()
    emit_each(reports, output, lambda report: show_report(context, report, known.get(report.kb, 0)))
    if dry_run and context.config.models.consolidate:
        context.say("note: a dry run asks no model: these are the built-in insights")
    _report_waiting(context, reports)


def _report_waiting(context: CommandContext, reports: Sequence[ConsolidationReport]) -> None:
    """Say why a model did not write, if it did not.

    Raises:
        ModelUnavailable: All groups wait for it.
        PartialFailure: Some do.
    """
    noted = sorted((r for r in reports if r.note), key=lambda report: -report.waiting)
    if not noted:
        return
    first = noted[0]
    waiting = sum(report.waiting for report in reports)
    if not waiting:
        context.say(f"note: found without the model: {first.note}")
        context.suggest(first.hint)
        return
    message = f"{format_count(waiting, 'group')} left for later: {first.note}"
    if any(report.groups for report in reports):
        raise PartialFailure(message, first.hint)
    raise ModelUnavailable(message, first.hint)


def show_report(context: CommandContext, report: ConsolidationReport, known: int) -> None:
    """Print what one consolidation did, for people; ``known`` counts the earlier insights."""
    out = context.console
    did = "would make" if report.dry_run else "made"
    out.print(
        f"{report.kb}: {format_count(report.examined, 'memory', 'memories')} looked at, "
        f"{did} {format_count(len(report.insights), 'insight')}, "
        f"{format_count(report.duplicates, 'near duplicate')}, "
        f"in {format_duration(report.seconds)}",
        soft_wrap=True,
    )
    if report.by_model or report.waiting:
        waiting = (
            f", {format_count(report.waiting, 'group')} waiting for it" if report.waiting else ""
        )
        dropped = (
            f", {format_count(report.dropped, 'forged citation')} dropped" if report.dropped else ""
        )
        out.print(f"  {report.by_model:,} written by a model{dropped}{waiting}", soft_wrap=True)
    if known:
        earlier = format_count(known, "earlier insight")
        out.print(f"  {earlier}: memctl insight list -k {report.kb}", soft_wrap=True)
    for insight in report.insights:
        style = "yellow" if insight.kind == "contradiction" else "green"
        out.print()
        print_paragraph(out, f"{insight.kind}: {insight.text}", style, 2)
        sources = format_count(len(insight.source_ids), "memory", "memories")
        print_paragraph(out, f"from {sources}: memctl insight show {insight.id}", "dim", 4)
