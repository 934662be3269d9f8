"""memctl kb merge, kb diff: two knowledge bases become one, or are compared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from memctl.cli.arguments import input_folder
from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import DryRun, Output, Yes, command
from memctl.cli.commands.administration.kb import ExistingName, app
from memctl.cli.rendering.output_formats import emit_one
from memctl.cli.rendering.terminal_text import one_line
from memctl.errors import KnowledgeBaseNotFound
from memctl.formatting import format_count

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase
    from memctl.merging.kb_diff import KnowledgeBaseDiff
    from memctl.merging.kb_merge import MergeReport

__all__ = ["app"]
_SHOWN = 20
"""At most this many things are listed on a terminal."""
_PLURALS = {"memory": "memories"}
_ROWS_PLURAL = "documents and memories"
OtherName = Annotated[
    str, typer.Argument(metavar="OTHER", help="The one that is read; it stays as it is.")
]
FromHome = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="HOME",
        help="The home that OTHER is in, such as that of another machine; by default this one.",
    ),
]


@contextmanager
def _open_both(
    context: CommandContext, name: str, other: str, home: str | None, *, writes: bool
) -> Iterator[tuple[KnowledgeBase, KnowledgeBase]]:
    """Open both knowledge bases.

    Raises:
        KnowledgeBaseNotFound: There is no such home, or no such knowledge base in it.
    """
    from memctl.home import Home

    where = context.home
    if home is not None:
        folder = input_folder(home, "name the folder that has kb/ in it")
        where = Home(replace(context.config, home=folder))
        if not (folder / "kb").is_dir():
            raise KnowledgeBaseNotFound(f"{folder} is no home of memctl", "it has a folder kb/")
    first = context.home.open_for_writing(name) if writes else context.home.open(name)
    with first as kb, where.open(other) as second:
        yield kb, second


@command(
    app,
    "merge",
    """
    memctl kb merge notes diary --dry-run
    memctl kb merge notes notes --from /media/usb/memctl
    """,
    identity=True,
)
def merge(
    context: CommandContext,
    name: ExistingName,
    other: OtherName,
    home: FromHome = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    output: Output = None,
) -> None:
    """Take another knowledge base into one, without losing anything.

    What both know is one memory then.  Of what was edited in both the later version counts, and
    the earlier one is its history.  Values of pools that gave way are in the table merged_values.
    What does not agree becomes an insight with the next consolidation.  OTHER stays as it is, and
    a snapshot is made first.  Something that was forgotten in one only is there again.
    """
    with _open_both(context, name, other, home, writes=not dry_run) as (kb, second):
        from memctl.merging.kb_merge import merge as merge_into
        from memctl.merging.kb_merge import name_beside, require_mergeable

        require_mergeable(kb, second)
        if dry_run:
            tried = _try_merge(context, kb, second)
            if output is None:
                context.console.print("\n".join(_preview_lines(tried)), soft_wrap=True)
            else:
                emit_one(tried, output, lambda: _print_report(context, tried))
            return
        context.confirm(f"take {name_beside(kb, second)} into {kb.name}?", yes=yes)
        report = merge_into(kb, second)
    emit_one(report, output, lambda: _print_report(context, report))


def _try_merge(context: CommandContext, kb: KnowledgeBase, other: KnowledgeBase) -> MergeReport:
    """Merge into a copy whose files are hard links, and return the report."""
    from memctl.doctor.doctor import hard_linked_copy
    from memctl.knowledge_base import KnowledgeBase
    from memctl.merging.kb_merge import merge as merge_into

    with (
        hard_linked_copy(kb.layout, kb.clock) as layout,
        KnowledgeBase.open(layout, context.config, kb.clock) as copy,
    ):
        return replace(merge_into(copy, other, copies_media=False), snapshot="")


def _count_of(table: str, number: int) -> str:
    """Return how many rows of a table there are, in words."""
    rows = table.replace("_", " ")
    one = f"{rows.removesuffix('ies')}y" if rows.endswith("ies") else rows.removesuffix("s")
    return format_count(number, one, rows)


def _preview_lines(report: MergeReport) -> list[str]:
    return [f"would take {_added_rows(report)} of {report.other} into {report.kb}", *_notes(report)]


def _print_report(context: CommandContext, report: MergeReport) -> None:
    lines = [f"{report.kb} has taken in {report.other}: {_added_rows(report)}", *_notes(report)]
    if report.snapshot:
        lines.append(f"memctl snapshot restore {report.snapshot} -k {report.kb} goes back")
    context.console.print("\n".join(lines), soft_wrap=True)


def _added_rows(report: MergeReport) -> str:
    came = ", ".join(_count_of(table, n) for table, n in report.added.items() if n)
    return came or ("changes of what was known" if report.is_changed else "nothing new")


def _notes(report: MergeReport) -> list[str]:
    """Return lines on what both knowledge bases have, and how it was merged."""
    values = format_count(report.kept_values, "value")
    conversations = format_count(report.split_sessions, "conversation")
    return [
        f"  {text}"
        for number, text in (
            (
                report.same,
                f"{format_count(report.same, 'document or memory', _ROWS_PLURAL)} in both",
            ),
            (
                report.edited_in_both,
                f"{format_count(report.edited_in_both, 'thing')} edited in both: the later version"
                " counts",
            ),
            (
                report.kept_values,
                f"{values} replaced by a later one; see memctl sql 'from merged_values'",
            ),
            (report.split_sessions, f"{conversations} split in two, with one id in both"),
        )
        if number
    ]


@command(
    app,
    "diff",
    """
    memctl kb diff notes diary
    memctl kb diff notes notes --from /media/usb/memctl -o json | jq '.disagreements'
    """,
    identity=True,
)
def diff(
    context: CommandContext,
    name: ExistingName,
    other: OtherName,
    home: FromHome = None,
    output: Output = None,
) -> None:
    """Show what only one of two knows, and where they disagree.

    Conversations, pools, skills, prompts and the like are counted by table.
    """
    with _open_both(context, name, other, home, writes=False) as (kb, second):
        from memctl.merging.kb_diff import diff as compare

        found = compare(kb, second)
    emit_one(found, output, lambda: _print_diff(context, found))


def _print_diff(context: CommandContext, difference: KnowledgeBaseDiff) -> None:
    same = (format_count(n, kind, _PLURALS.get(kind, "")) for kind, n in difference.same.items())
    lines = [f"both: {', '.join(same)}"]
    for kb in dict.fromkeys((difference.kb, difference.other)):
        only = [each for each in difference.only if each.kb == kb]
        lines += ["", f"only in {kb}: {len(only):,}"]
        for each in only[:_SHOWN]:
            lines.append(f"  {each.created_at:%Y-%m-%d}  {one_line(each.text, 70)}")
        if len(only) > _SHOWN:
            lines.append(f"  and {len(only) - _SHOWN:,} more: -o json has all")
    if difference.stored:
        lines += ["", f"stored: only in {difference.kb}, only in {difference.other}, not alike"]
    for stored in difference.stored:
        counts = f"{stored.ours:,}, {stored.theirs:,}, {stored.differing:,}"
        lines.append(f"  {stored.table.replace('_', ' ')}: {counts}")
    lines += ["", f"disagreements: {len(difference.disagreements)}"]
    for disagreement in difference.disagreements:
        lines.append(f"  {disagreement.headline}")
        lines += [f"    {difference.kb}: {text}" for text in disagreement.ours]
        lines += [f"    {difference.other}: {text}" for text in disagreement.theirs]
    context.console.print("\n".join(lines), soft_wrap=True)
