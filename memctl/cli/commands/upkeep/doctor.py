"""memctl doctor: is what is on disk whole, and if not, put it right."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer
from msgspec.structs import asdict

from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import KnowledgeBasesOption, Output, Yes, command, flag
from memctl.cli.rendering.output_formats import Column, emit, resolve_format
from memctl.cli.rendering.terminal_text import one_line
from memctl.errors import DamagedError, DiskRefused, MemctlError, PartialFailure, UsageError
from memctl.formatting import format_count
from memctl.paths import os_error_hint, os_error_message

if TYPE_CHECKING:
    from memctl.doctor.doctor import Doctor
    from memctl.store.store_repair import Step

_COLUMNS = (
    Column("kb", "KB"),
    Column("verdict", "VERDICT"),
    Column("layer", "LAYER"),
    Column("subject", "WHAT"),
    Column("message", "FOUND", wrap=True),
    Column("hint", "HINT", wrap=True),
)
_STEPS = (Column("kb", "KB"), Column("subject", "WHAT"), Column("message", "DONE", wrap=True))


app = typer.Typer()


@command(
    app,
    "doctor",
    """
    memctl doctor
    memctl doctor -k notes --verbose
    memctl doctor -k notes --repair --dry-run
    memctl doctor -k notes --repair
    memctl doctor -k notes --rebuild
    """,
)
def doctor(
    context: CommandContext,
    kb: KnowledgeBasesOption = None,
    repair: bool = flag("--repair", "Repair what is damaged."),
    rebuild: bool = flag("--rebuild", "Rebuild all derived data, if it stays the same."),
    dry_run: bool = flag("--dry-run", "With --repair, only say what it would do."),
    deep: bool = flag("--deep", "Check every row, not a sample."),
    yes: Yes = False,
    output: Output = None,
) -> None:
    """Check every layer of what is on disk, and repair it.

    It checks folders, settings, locks, the ledger, the tables' files and indexes, whether rows
    agree with each other, vectors, citations, and files in the inboxes.  Without --repair or
    --rebuild it changes and sends nothing.  A table shows what is not in order, and every check
    with --verbose; other formats show all checks.  The exit code is 12 if something is damaged,
    and 0 for warnings alone.
    """
    from memctl.doctor.doctor import Doctor
    from memctl.machine import limit_malloc_caching

    limit_malloc_caching()
    if dry_run and not repair:
        raise UsageError("--dry-run is for --repair", "without either, nothing is changed anyway")
    examiner = Doctor(context.home)
    context.home.check_creatable()
    names = list(dict.fromkeys(kb or examiner.names()))
    if repair and rebuild:
        raise UsageError("--repair and --rebuild are two things", "first the one, then the other")
    if rebuild:
        _rebuild(context, examiner, names, yes, output)
        return
    if repair:
        _repair(context, examiner, names, dry_run, output)
        return
    findings = list(_findings(context, examiner, names, deep))
    shows_all = context.verbose or resolve_format(output) != "table"
    shown = [found for found in findings if shows_all or found["verdict"] != "ok"]
    emit(shown, _COLUMNS, output)
    _conclude(context, names, findings)


def _findings(
    context: CommandContext, examiner: Doctor, names: Sequence[str], deep: bool
) -> Iterator[dict[str, Any]]:
    for finding in examiner.machine(context.config_path):
        yield {"kb": "", **asdict(finding)}
    for name in names:
        for finding in examiner.examine(name, deep=deep):
            yield {"kb": name, **asdict(finding)}


def _repair(
    context: CommandContext, examiner: Doctor, names: Sequence[str], dry_run: bool, output: Output
) -> None:
    steps, failed = _do_each(names, lambda name: examiner.repair(name, dry_run=dry_run))
    emit(steps, _STEPS, output)
    if not steps and not failed:
        _print_whole(context, names)
    elif dry_run:
        context.say("nothing has been changed")
    lost = [step["message"] for step in steps if step["lost_rows"]]
    message = one_line("; ".join(lost), 300)
    hint = "bring it from a backup, or ingest it again; -o json names each row"
    if lost and failed:
        context.say(f"warning: {message}")
        context.suggest(hint)
    _raise_worst(context, names, failed)
    if lost:
        raise PartialFailure(message, hint)


def _rebuild(
    context: CommandContext, examiner: Doctor, names: Sequence[str], yes: bool, output: Output
) -> None:
    for name in names:
        if where := examiner.sends(name):
            context.confirm(f"send the text of every memory of {name} to {where}?", yes=yes)
    began = time.monotonic()
    with context.progress("rebuilding") as listener:
        steps, failed = _do_each(names, lambda name: examiner.rebuild(name, listener))
    emit(steps, _STEPS, output)
    _raise_worst(context, names, failed)
    context.say(f"{format_count(len(names), 'knowledge base')} in {time.monotonic() - began:.1f} s")


def _do_each(
    names: Sequence[str], work: Callable[[str], Iterator[Step]]
) -> tuple[list[dict[str, Any]], dict[str, MemctlError]]:
    """Do something to each knowledge base; a failure does not stop the others.

    Returns:
        The steps that were done, and the error of each knowledge base that failed.
    """
    steps: list[dict[str, Any]] = []
    failed: dict[str, MemctlError] = {}
    for name in names:
        try:
            steps.extend({"kb": name, **asdict(step)} for step in work(name))  # up to an error
        except MemctlError as error:
            failed[name] = error
        except OSError as error:
            failed[name] = DiskRefused(os_error_message(error), os_error_hint(error))
    return steps, failed


def _raise_worst(
    context: CommandContext, names: Sequence[str], failed: Mapping[str, MemctlError]
) -> None:
    """Report each failure, and raise the one with the highest exit code.

    That is the one of the highest exit code: damage before a lock before everything else.
    """
    if not failed:
        return
    worst = max(failed.values(), key=lambda error: error.exit_code)
    if len(names) == 1:
        raise worst
    for name, error in failed.items():
        context.say(f"warning: {name} is left out: {error.message}")
        context.suggest(error.hint if error is not worst else "")
    message = f"{', '.join(failed)} could not be put right, and the others were"
    raise type(worst)(message, worst.hint)


def _conclude(
    context: CommandContext, names: Sequence[str], findings: Sequence[dict[str, Any]]
) -> None:
    verdicts = Counter(finding["verdict"] for finding in findings)
    context.say(
        f"{format_count(verdicts['ok'], 'check')} ok, "
        f"{format_count(verdicts['warning'], 'warning')}"
    )
    if not verdicts["damaged"]:
        _print_whole(context, names)
        return
    worst = next(finding for finding in findings if finding["verdict"] == "damaged")
    bases = format_count(len(names), "knowledge base")
    raise DamagedError(f"{format_count(verdicts['damaged'], 'finding')} in {bases}", worst["hint"])


def _print_whole(context: CommandContext, names: Sequence[str]) -> None:
    bases = format_count(len(names), "knowledge base")
    context.say(f"{bases} whole" if names else "no knowledge base yet")
