"""memctl watch and memctl status: what is dropped into an inbox is remembered."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import typer
from msgspec.structs import replace

from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import KnowledgeBasesOption, Output, command, flag
from memctl.cli.rendering.output_formats import (
    Column,
    emit,
    format_instant,
    print_error,
    print_paragraph,
    resolve_format,
)
from memctl.cli.rendering.terminal_text import format_moment, json_text, one_line
from memctl.errors import MemctlError, PartialFailure
from memctl.formatting import format_count
from memctl.plain_values import to_plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memctl.kb_settings import KnowledgeBaseSettings
    from memctl.watch.reporter import DrainResult, Leftover, Listener, WatchEvent
    from memctl.watch.watch_status import WatchStatus

_QUIET_KINDS = frozenset({"failed", "waiting"})
_SHOWN_FILES = 3
_DEBUG_KINDS = frozenset({"upkeep", "left"})
_STATUS = (
    Column("kb", "KB"),
    Column("status", "STATUS"),
    Column("pid", "WATCHED BY", lambda pid: f"process {pid}"),
    Column("backlog", "WAITING", right=True),
    Column("oldest_since", "OLDEST", format_instant),
    Column("failed", "FAILED", right=True),
    Column("last_consolidation", "CONSOLIDATED", format_instant),
)


app = typer.Typer()


@command(
    app,
    "watch",
    """
    memctl watch
    memctl watch -k notes -k work
    memctl watch --once          # for cron: take what is there, then end
    """,
)
def watch(
    context: CommandContext,
    kb: KnowledgeBasesOption = None,
    once: bool = flag("--once", "Process what is there and end."),
    poll: bool = flag("--poll", "Scan folders instead of using file events, as on network drives."),
) -> None:
    """Remember whatever is dropped into an inbox.

    Files are taken once they no longer change, and moved to processed/, or to failed/ with a
    .reason.json.  Each knowledge base is consolidated on its interval.  One line reports each
    thing that happens, as JSON if standard output is no terminal.  Ctrl-C ends it after the
    current file.
    """
    from contextlib import nullcontext

    from memctl.machine import limit_malloc_caching
    from memctl.resident.processes import resident_beside
    from memctl.watch.kb_watcher import WatchOptions
    from memctl.watch.service import WatchedBases, WatchService

    bases = WatchedBases(context.home, kb or ([context.config.kb] if context.config.kb else []))
    bases.check()
    settings = context.config.watch
    options = WatchOptions(settings.settle_seconds, settings.rescan_seconds, poll, once)
    if not bases.names():
        context.home.check_creatable()
        context.hint("there is nothing to watch yet: memctl kb create NAME")
    limit_malloc_caching()
    with nullcontext() if once else resident_beside(context.config):
        drained = WatchService(bases, options, listener(context)).run()
    raise_left(drained)


def raise_left(drained: DrainResult) -> None:
    """Report what was left waiting and why, and end with the right exit code.

    Raises:
        MemctlError: Nothing could be done.
        PartialFailure: Something has been.
    """
    if not drained.left:
        return
    *others, last = drained.left
    for left in others:
        print_error(_describe(left), left.hint)
    failure = PartialFailure if drained.dealt_with else MemctlError
    raise failure(_describe(last), last.hint)


def _describe(leftover: Leftover) -> str:
    if not leftover.files:
        return f"{leftover.kb}: {leftover.reason}"
    what = (
        f"{format_count(len(leftover.files), 'file')} left waiting ({_first_names(leftover.files)})"
    )
    return f"{leftover.kb}: {what}: {leftover.reason}"


def _first_names(files: Sequence[str]) -> str:
    """Return the names of the first files, and how many more there are."""
    names = ", ".join(name.rsplit("/", 1)[-1] for name in files[:_SHOWN_FILES])
    more = len(files) - _SHOWN_FILES
    return f"{names} and {more:,} more" if more > 0 else names


def listener(context: CommandContext) -> Listener:
    """Return a function that writes one line per event: JSON to programs, text to people.

    On a terminal a line is cut to its width, unless more is asked for.
    """
    wanted = context.config.log.format
    is_cut = sys.stdout.isatty() and not context.verbose
    width = shutil.get_terminal_size().columns if is_cut else 0
    as_json = wanted == "json" or (wanted == "auto" and not sys.stdout.isatty())

    def tell(event: WatchEvent) -> None:
        """Write an event as one line, at once, unless it was not asked for."""
        if context.quiet and event.kind not in _QUIET_KINDS:
            return
        if event.kind in _DEBUG_KINDS and not context.verbose:
            return
        line = json_text(to_plain(event)) if as_json else _line(event)
        if not as_json and 0 < width < len(line):
            line = f"{line[: width - 1]}…"
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    return tell


def _line(event: WatchEvent) -> str:
    parts = [f"{event.at.astimezone():%H:%M:%S}", event.kind]
    if event.kb:
        parts.append(event.kb)
    if event.source:
        parts.append(one_line(event.source.rsplit("/", 1)[-1], 60))
    text = one_line(event.message, 160)
    if memories := event.detail.get("memories"):
        text = f"{format_count(int(memories), 'memory', 'memories')}: {text}"
    if event.detail.get("missing"):
        text += f" (no {', '.join(event.detail['missing'])} yet)"
    if event.hint:
        text += f" (hint: {one_line(event.hint)})"
    return "  ".join([*parts, text] if text else parts)


@command(
    app,
    "status",
    """
    memctl status
    memctl status -o json | jq '.[] | select(.backlog > 0)'
    """,
)
def status(context: CommandContext, kb: KnowledgeBasesOption = None, output: Output = None) -> None:
    """Show who watches each knowledge base and what waits."""
    from memctl.watch.watch_status import watch_status

    names = list(dict.fromkeys(kb or context.home.names()))
    rows = []
    for name in names:
        try:
            with context.home.open(name) as base:
                found = watch_status(base)
                is_named = kb is not None or not _takes_private(base.settings)
                rows.append(found if is_named else _without_private_details(found))
        except MemctlError as error:
            if kb:
                raise
            context.say(f"warning: {name} is left out: {error.message}")
    emit(rows, _STATUS, output)
    if resolve_format(output) == "table":
        for row in rows:
            _show_details(context, row)
    if not names:
        context.hint("there is no knowledge base yet: memctl kb create NAME")


def _takes_private(settings: KnowledgeBaseSettings) -> bool:
    """Return whether what is dropped into inboxes becomes private."""
    from memctl.identity import DEFAULT_NAMESPACE

    return settings.private or DEFAULT_NAMESPACE in settings.private_namespaces


def _without_private_details(row: WatchStatus) -> WatchStatus:
    """Return what may be shown of a private knowledge base that was not named."""
    text = f"memctl status -k {row.kb} shows it" if row.last_error else ""
    return replace(row, oldest_waiting="", working="", last_error=text, never_taken=())


def _show_details(context: CommandContext, row: WatchStatus) -> None:
    """Print below the table what does not fit into it."""
    if row.oldest_waiting:
        print_paragraph(context.console, f"\n{row.kb}: waiting longest is {row.oldest_waiting}")
    if row.working:
        rest = row.backlog - row.in_hand
        more = f"; {format_count(rest, 'more file waits', 'more files wait')}" if rest else ""
        print_paragraph(context.console, f"\n{row.kb}: taking in {row.working}{more}")
    elif row.writer:
        print_paragraph(context.console, f"\n{row.kb}: process {row.writer} is writing to it")
    for problem in row.problems:
        print_paragraph(
            context.console, f"\n{row.kb}: nothing is taken in now: {problem}", "yellow"
        )
    if row.never_taken:
        names = _first_names(row.never_taken)
        what = format_count(len(row.never_taken), "file in an inbox is", "files in inboxes are")
        text = f"{what} never taken as things are ({names}); memctl why FILE says why"
        print_paragraph(context.console, f"\n{row.kb}: {text}")
    for text in row.polled:
        print_paragraph(context.console, f"\n{row.kb}: {text}")
    if row.forgets_unfinished:
        text = f"a forget was cut off; what writes next completes it, or memctl forget -k {row.kb}"
        print_paragraph(context.console, f"\n{row.kb}: {text}", "yellow")
    if row.last_error:
        when = format_moment(row.last_error_at)
        print_paragraph(
            context.console, f"\n{row.kb}: last error, {when}: {row.last_error}", "yellow"
        )
