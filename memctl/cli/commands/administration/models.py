"""memctl models: which model does what, and whether it answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast, get_args

import typer

from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import Output, command, group
from memctl.cli.rendering.output_formats import Column, emit, print_paragraph, resolve_format
from memctl.errors import ModelError, UsageError
from memctl.formatting import format_duration
from memctl.literals import Task

if TYPE_CHECKING:
    from memctl.models.model_status import TaskModel

app = group("models", "List the models that are configured, and try them.")

_LIST = (Column("task", "TASK"), Column("model", "MODEL", wrap=True))
_TEST = (
    Column("task", "TASK"),
    Column("model", "MODEL", wrap=True),
    Column("ok", "OK"),
    Column("seconds", "TIME", format_duration, right=True),
    Column("input_tokens", "IN", right=True),
    Column("output_tokens", "OUT", right=True),
)


@command(app, "list", "memctl models list\nmemctl models list -o json")
def list_(context: CommandContext, output: Output = None) -> None:
    """List which model does which task, and where."""
    from memctl.models.model_status import task_models

    found = task_models(context.config)
    if resolve_format(output) != "table":
        emit(found, (), output)
        return
    emit(
        [{"task": d.task, "model": d.model or f"built in: {d.without}"} for d in found],
        _LIST,
        output,
    )
    _print_notes(context, [(d.task, _place(d), "") for d in found if d.url or d.folder])
    _print_notes(context, [(d.task, d.problem, d.hint) for d in found if d.problem], "red")


def _place(task_model: TaskModel) -> str:
    if task_model.folder:
        return f"on this machine, in {task_model.folder}"
    return f"{task_model.url}, {'with a key' if task_model.has_key else 'without a key'}"


def _print_notes(
    context: CommandContext, entries: Sequence[tuple[str, str, str]], style: str = ""
) -> None:
    """Print notes on tasks; one that several tasks share is printed once."""
    tasks: dict[tuple[str, str], list[str]] = {}
    for task, text, hint in entries:
        tasks.setdefault((text, hint), []).append(task)
    if tasks:
        context.console.print()
    for (text, hint), named in tasks.items():
        print_paragraph(context.console, f"{', '.join(named)}: {text}", style)
        if hint:
            print_paragraph(context.console, f"hint: {hint}", "", 2)


@command(app, "test", "memctl models test\nmemctl models test understand embed")
def try_out(
    context: CommandContext,
    tasks: list[str] | None = typer.Argument(
        None, metavar="TASK", help="Only the models for these tasks."
    ),
    output: Output = None,
) -> None:
    """Ask each configured model for something small.

    It shows how long that took and how many tokens it used; the exit code is 1 if a model fails.
    Nothing of yours is sent.
    """
    from memctl.models.model_status import probe_models

    found = list(probe_models(context.config, [_task(name) for name in tasks or ()]))
    if found or resolve_format(output) != "table":
        emit(found, _TEST, output)
    if resolve_format(output) == "table":
        failures = [trial for trial in found if not trial.ok]
        _print_notes(context, [(t.task, t.error, t.hint) for t in failures], "red")
    if not found:
        context.say("no model is configured for that; everything is done on this machine")
    failed = [trial.task for trial in found if not trial.ok]
    if failed:
        raise ModelError(f"no good reply for {', '.join(failed)}")


def _task(name: str) -> Task:
    """Return the task of a name.

    Raises:
        UsageError: There is none of that name.
    """
    for task in get_args(Task):
        if task == name:
            return cast(Task, task)
    raise UsageError(f"no task {name!r}", f"use one of: {', '.join(get_args(Task))}")
