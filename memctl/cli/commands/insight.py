"""memctl insight: what several memories say together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import KnowledgeBasesOption, Limit, Output, command, group
from memctl.cli.commands.memory import Id
from memctl.cli.commands.memory import show as show_memory
from memctl.cli.rendering.output_formats import Column, emit, format_instant, with_kb_column
from memctl.cli.rendering.terminal_text import short_id

if TYPE_CHECKING:
    from memctl.records import Filters

app = group("List and show what memories say together.")

_LIST = (
    Column("id", "ID", short_id),
    Column("created_at", "DATE", format_instant),
    Column("importance", "IMP.", right=True),
    Column("source_ids", "FROM", lambda ids: str(len(ids)), right=True),
    Column("text", "TEXT", wrap=True),
)


def register(root: typer.Typer) -> None:
    """Add this noun to the command line."""
    root.add_typer(app, name="insight")


@command(
    app,
    "list",
    "memctl insight list\nmemctl insight list --since 7d -o json",
    without=("types", "levels"),  # which all insights share
)
def list_(
    context: CommandContext,
    filters: Filters,
    kb: KnowledgeBasesOption = None,
    limit: Limit = 50,
    output: Output = None,
) -> None:
    """List insights, the newest first."""
    with context.reading(kb) as bases:
        rows = context.collect_rows(
            bases, lambda base, n: base.insights.list(filters, limit=n), limit
        )
        emit(rows, with_kb_column(_LIST, len(bases)), output)


@command(app, "show", "memctl insight show i_77c0de\nmemctl insight show i_77c0de -o json")
def show(
    context: CommandContext, id_: Id, kb: KnowledgeBasesOption = None, output: Output = None
) -> None:
    """Show an insight with the memories it was drawn from."""
    show_memory(context, id_, kb, output)
