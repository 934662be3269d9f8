"""memctl work: what waits for understanding, for the caller to do in place of a model."""

from __future__ import annotations

import sys
from typing import Any

import typer

from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import (
    DryRun,
    KnowledgeBasesOption,
    Output,
    command,
    group,
)
from memctl.cli.paging import Limit
from memctl.cli.rendering.output_formats import Column, emit, emit_one, print_text
from memctl.errors import NothingFound, UsageError
from memctl.literals import WorkKind

app = group("work", "What waits for understanding, for you to do.")

KindOption = typer.Option(None, "--kind", help="Only documents, facts to compare, ...")
_LIST = (
    Column("kind", "KIND"),
    Column("about", "ABOUT"),
    Column("statements", "STATEMENTS", right=True),
    Column("title", "TITLE", wrap=True),
    Column("kb", "KB"),
)


@command(app, "list", "memctl work list\nmemctl work list --kind document -o json", identity=True)
def list_(
    context: CommandContext,
    kind: WorkKind | None = KindOption,
    limit: Limit = 50,
    kb: KnowledgeBasesOption = None,
    output: Output = None,
) -> None:
    """List what waits for understanding."""
    from memctl.operations.operation_context import OperationContext
    from memctl.operations.understanding_work import ListWorkParameters, list_work

    with OperationContext.of(context.home, kb or ()) as caller:
        found = list_work(caller, ListWorkParameters(kind=kind, limit=limit or 200))
    emit(found.work, _LIST, output)
    if found.total > len(found.work):
        context.say(f"note: {found.total - len(found.work)} more wait")


@command(
    app,
    "next",
    "memctl work next\nmemctl work next --kind insight -o json | jq -r .id",
    identity=True,
)
def next_(
    context: CommandContext,
    kind: WorkKind | None = KindOption,
    kb: KnowledgeBasesOption = None,
    output: Output = None,
) -> None:
    """Hand out what to understand next, with instructions.

    It has the id to reply to, what to do, the data in fences, and the JSON schema of the reply.
    Exit code 4 says that nothing waits.
    """
    from memctl.operations.operation_context import OperationContext
    from memctl.operations.understanding_work import NextWorkParameters, next_work, work_text

    with OperationContext.of(context.home, kb or ()) as caller:
        found = next_work(caller, NextWorkParameters(kind=kind))
    if not found.waits:
        raise NothingFound("nothing waits for understanding")
    emit_one(found, output, lambda: print_text(work_text(found)))


@command(
    app,
    "submit",
    """
    memctl work submit notes:document:d_1f0c:9a2b - < reply.json
    memctl work submit notes:document:d_1f0c:9a2b '{"gist": "...", ...}' --dry-run
    """,
    identity=True,
)
def submit(
    context: CommandContext,
    id_: str = typer.Argument(metavar="ID", help="The id that memctl work next gave."),
    reply: str = typer.Argument("-", metavar="JSON", help="The reply; - is standard input."),
    dry_run: DryRun = False,
    kb: KnowledgeBasesOption = None,
    output: Output = None,
) -> None:
    """Give a reply, which is checked against the text.

    Quotes must stand there, names must be named there, and numbers must have been given.  What does
    not is dropped, and counted.
    """
    import json

    from memctl.operations.operation_context import OperationContext
    from memctl.operations.understanding_work import SubmitWorkParameters, submit_work

    text = sys.stdin.read() if reply == "-" else reply
    try:
        payload: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the reply is no JSON: {error}") from None
    if not isinstance(payload, dict):
        raise UsageError("the reply is no JSON object", "its schema comes with the item")
    with OperationContext.of(context.home, kb or ()) as caller:
        done = submit_work(caller, SubmitWorkParameters(id=id_, reply=payload, dry_run=dry_run))
    emit_one(done, output, lambda: print_text(_outcome_text(done)))


def _outcome_text(done: Any) -> str:
    dropped = f", {done.dropped} dropped" if done.dropped else ""
    return f"{done.message}: {done.accepted} accepted{dropped}"
