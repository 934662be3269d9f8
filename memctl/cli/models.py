"""memctl models: which model does what, and whether it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from memctl.choices import Task
from memctl.cli.commands import Output, command, group
from memctl.cli.output import Column, chosen, emit
from memctl.cli.session import Session
from memctl.cli.text import duration
from memctl.errors import ModelError, UsageError

if TYPE_CHECKING:
    from memctl.models.overview import Duty

app = group("List the models that are configured, and try them.")

_LIST = (
    Column("task", "TASK"),
    Column("model", "MODEL"),
    Column("url", "WHERE"),
    Column("key", "KEY"),
    Column("problem", "PROBLEM", wrap=True),
)
_TEST = (
    Column("task", "TASK"),
    Column("model", "MODEL"),
    Column("ok", "OK"),
    Column("seconds", "TIME", duration, right=True),
    Column("input_tokens", "TOKENS IN", right=True),
    Column("output_tokens", "TOKENS OUT", right=True),
    Column("error", "ERROR", wrap=True),
    Column("hint", "HINT", wrap=True),
)


def register(root: typer.Typer) -> None:
    """Add this noun to the command line."""
    root.add_typer(app, name="models")


@command(app, "list", "memctl models list\nmemctl models list -o json")
def list_(session: Session, output: Output = None) -> None:
    """List which model does which task, and where."""
    from memctl.models.overview import duties

    found = duties(session.config)
    emit([_shown(duty) for duty in found] if chosen(output) == "table" else found, _LIST, output)


def _shown(duty: Duty) -> dict[str, str]:
    return {
        "task": duty.task,
        "model": duty.model or f"built in: {duty.without}",
        "url": duty.url,
        "key": "" if duty.builtin else "present" if duty.has_key else "none",
        "problem": f"{duty.problem}; {duty.hint}" if duty.problem else "",
    }


@command(app, "test", "memctl models test\nmemctl models test understand embed")
def try_out(
    session: Session,
    tasks: Annotated[
        list[str] | None, typer.Argument(metavar="TASK", help="Only the models for these tasks.")
    ] = None,
    output: Output = None,
) -> None:
    """Ask each model that is configured for something small.

    It says how long that took and how many tokens it used; with a model that does not do it the
    exit code is 1.  Nothing of yours is sent.
    """
    from memctl.models.overview import trials

    found = list(trials(session.config, [_task(name) for name in tasks or ()]))
    emit(found, _TEST, output)
    if not found:
        session.say("no model is configured for that; everything is done on this machine")
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
