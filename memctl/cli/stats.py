"""memctl stats: what is remembered, in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from memctl.cli.commands import KnowledgeBasesOption, Output, command
from memctl.cli.listings import listed
from memctl.cli.output import Column, chosen, emit
from memctl.cli.query_stats import show_queries
from memctl.cli.session import Session
from memctl.cli.text import count, duration, money, one_line, size
from memctl.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console

    from memctl.statistics import Statistics

_BAR = 30
_BLOCKS = " ▏▎▍▌▋▊▉█"
_MOST_BARS = 10
_TOTALS = ("calls", "cached", "failed", "input_tokens", "output_tokens", "cost")


def register(root: typer.Typer) -> None:
    """Add this verb to the command line."""
    command(
        root,
        "stats",
        """
        memctl stats
        memctl stats -k notes -o json | jq '.[0].by_type'
        memctl stats --cost
        memctl stats --queries
        """,
    )(stats)


def stats(
    session: Session,
    cost: Annotated[
        bool, typer.Option("--cost", help="What models used and cost, by task, model and day.")
    ] = False,
    queries: Annotated[
        bool, typer.Option("--queries", help="What was asked, how fast and how well answered.")
    ] = False,
    kb: KnowledgeBasesOption = None,
    output: Output = None,
) -> None:
    """Show counts, sizes and rates, with bar charts.

    With --cost they are calls, tokens and money instead, one row for each knowledge base, day
    (UTC), task and model; what a model had replied before is a cached call and costs nothing.

    With --queries they are those of the query log: questions by mode and day (UTC), half and 95 %
    of them answered within which time, how many found nothing, what was judged good or bad, and
    what was asked most often without an answer.
    """
    if cost and queries:
        raise UsageError("--cost and --queries do not go together", "ask for one after the other")
    if cost:
        _show_cost(session, kb, output)
        return
    if queries:
        show_queries(session, kb, output)
        return
    with session.reading(kb) as bases:
        found = [base.statistics() for base in bases]
    if chosen(output) == "table":
        for numbers in found:
            _show(session.console, numbers)
    else:
        emit(found, (), output)


_COST = (
    Column("kb", "KB"),
    Column("day", "DAY"),
    Column("task", "TASK"),
    Column("model", "MODEL", wrap=True),
    Column("calls", "CALLS", right=True),
    Column("cached", "CACHED", right=True),
    Column("failed", "FAILED", right=True),
    Column("input_tokens", "IN", right=True),
    Column("output_tokens", "OUT", right=True),
    Column("seconds", "TIME", duration, right=True),
    Column("cost", "COST", money, right=True),
)


_NARROW = 120
_LEFT_OUT = frozenset(("cached", "seconds"))
"""Columns that there is no room for on a narrow terminal."""


def _cost_columns(width: int, rows: pa.Table) -> list[Column]:
    """Return the columns that fit and say something."""
    if width >= _NARROW:
        return list(_COST)
    out = set(_LEFT_OUT)
    if len(set(rows["kb"].to_pylist())) < 2:
        out.add("kb")
    if not any(rows["failed"].to_pylist()):
        out.add("failed")
    return [column for column in _COST if column.key not in out]


def _show_cost(session: Session, kb: KnowledgeBasesOption, output: Output) -> None:
    with session.reading(session.all_names(kb)) as bases:  # those asked on demand cost as well
        rows = listed(session, bases, lambda base, _: base.usage(), limit=0)
    emit(rows, _cost_columns(session.console.width, rows), output)
    if chosen(output) != "table":
        return
    if not rows.num_rows:
        session.console.print("no model has been used")
        return
    total = {column: sum(rows[column].to_pylist()) for column in _TOTALS}
    tokens = total["input_tokens"] + total["output_tokens"]
    parts = [
        count(total["calls"], "call"),
        f"{total['cached']:,} cached",
        f"{total['failed']:,} failed",
        count(tokens, "token"),
        money(total["cost"]),
    ]
    session.console.print(f"\ntotal: {', '.join(parts)}")


def _show(out: Console, numbers: Statistics) -> None:
    """Print the numbers of one knowledge base."""
    out.print(numbers.kb, style="bold")
    facts = [
        count(numbers.documents, "document"),
        count(numbers.memories, "memory", "memories"),
        count(numbers.entities, "entity", "entities"),
        count(numbers.relations, "relation"),
    ]
    out.print(f"  {', '.join(facts)}")
    out.print(f"  {size(numbers.source_bytes)} of sources, {size(numbers.disk_bytes)} on disk")
    if numbers.superseded or numbers.waiting:
        out.print(f"  {numbers.superseded:,} superseded, {numbers.waiting:,} not consolidated yet")
    if numbers.query_seconds is not None:
        asked = count(numbers.queries, "question")
        out.print(f"  {asked} asked, half of the latest in {duration(numbers.query_seconds)}")
    _chart(out, "memories by type", numbers.by_type)
    _chart(out, "documents by kind", numbers.by_media_type)
    if len(numbers.by_namespace) > 1:
        _chart(out, "memories by namespace", numbers.by_namespace)
    if len([n for n in numbers.by_day.values() if n]) > 1:
        _chart(out, "memories by day", numbers.by_day, most=len(numbers.by_day))


def _chart(out: Console, title: str, counts: Mapping[str, int], most: int = _MOST_BARS) -> None:
    """Draw one bar for each count, the longest over the whole width."""
    if not counts:
        return
    shown = dict(list(counts.items())[:most])
    rest = sum(counts.values()) - sum(shown.values())
    if rest:
        shown["others"] = rest
    label = max(len(one_line(key, 40)) for key in shown)
    largest = max(shown.values())
    out.print(f"\n  {title}", style="dim")
    for key, number in shown.items():
        name = one_line(key, 40).ljust(label)
        out.print(f"  {name}  {bar(number / largest if largest else 0, _BAR)} {number:,}")


def bar(share: float, width: int) -> str:
    """Return a bar of blocks whose length is a share of ``width``, to an eighth of a character."""
    eighths = round(max(0.0, min(share, 1.0)) * width * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (_BLOCKS[rest] if rest else "")
