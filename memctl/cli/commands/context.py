"""memctl context: what is known on a question, ready to stand above a prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from memctl.cli.arguments import read_question, type_hint
from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import KnowledgeBasesOption, ModeOption, Output, command
from memctl.cli.rendering.output_formats import emit_one, print_text
from memctl.errors import NothingFound

if TYPE_CHECKING:
    from memctl.records import Context, Filters


def register(root: typer.Typer) -> None:
    """Add this verb to the command line."""
    command(
        root,
        "context",
        """
        memctl context "the launch" --budget 2000
        memctl context "the launch" -o json | jq '.tokens'
        memctl context --auto "what did we decide about the launch?"
        """,
    )(context)


def context(
    context: CommandContext,
    filters: Filters,
    question: Annotated[
        list[str], typer.Argument(metavar="QUESTION", help="The question; - is standard input.")
    ],
    budget: Annotated[
        int, typer.Option("--budget", metavar="TOKENS", min=16, help="At most this many tokens.")
    ] = 2000,
    kb: KnowledgeBasesOption = None,
    mode: ModeOption = None,
    auto: Annotated[
        bool,
        typer.Option("--auto", help="Print nothing unless the message looks like it needs memory."),
    ] = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 4 when nothing was found.")
    ] = False,
    output: Output = None,
) -> None:
    """Print what is known, ready to paste above a prompt.

    The text stays within a budget of tokens and cites its sources.  It is empty if nothing known
    bears on the question.  With --auto it can run before every prompt: it stays empty for small
    talk, for orders, and if memory has nothing clear to say.
    """
    with context.reading(kb) as bases:
        found = bases.context(
            read_question(question), budget=budget, mode=mode, filters=filters, auto=auto
        )
        context.note_all(found.notes)
    _write_context(found, output)
    if not found.text:
        if not auto:
            context.say("note: nothing in memory has to do with that")
            context.suggest(type_hint(filters.types))
        if exit_code:
            raise NothingFound("nothing was found")


def _write_context(found: Context, output: Output) -> None:
    if output is not None and output != "table":
        emit_one(found, output, lambda: None)
    elif found.text:
        print_text(found.text)
