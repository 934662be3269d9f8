"""memctl stats --queries: what was asked, how fast and how well it was answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memctl.cli.commands import KnowledgeBasesOption, Output
from memctl.cli.output import Column, chosen, emit, shown_instant
from memctl.cli.session import Session
from memctl.cli.text import count, duration, one_line

if TYPE_CHECKING:
    from memctl.query_statistics import QueryStatistics

_MOST_DAYS = 14
_MOST_QUESTIONS = 10


def _columns(label: str) -> Sequence[Column]:
    return (
        Column("label", label),
        Column("queries", "QUESTIONS", right=True),
        Column("nothing_found", "NOTHING FOUND", right=True),
        Column("good", "GOOD", right=True),
        Column("bad", "BAD", right=True),
        Column("p50_seconds", "P50", duration, right=True),
        Column("p95_seconds", "P95", duration, right=True),
    )


_UNANSWERED = (
    Column("times", "TIMES", right=True),
    Column("last_asked", "LAST", shown_instant),
    Column("question", "ASKED WITHOUT AN ANSWER", lambda text: one_line(text, 70)),
)


def show_queries(session: Session, kb: KnowledgeBasesOption, output: Output) -> None:
    """Show the numbers of every query log that is meant."""
    with session.reading(session.all_names(kb)) as bases:
        found = [base.query_statistics() for base in bases]
    if chosen(output) != "table":
        emit(found, (), output)
        return
    for numbers in found:
        _show(session, numbers)


def _show(session: Session, numbers: QueryStatistics) -> None:
    out = session.console
    out.print(numbers.kb, style="bold")
    if not numbers.queries:
        out.print("  no question is logged\n")
        return
    parts = [
        count(numbers.queries, "question"),
        f"nothing found {numbers.share_nothing_found:.0%}",
        f"{numbers.good:,} good",
        f"{numbers.bad:,} bad",
        f"p50 {duration(numbers.p50_seconds or 0.0)}",
        f"p95 {duration(numbers.p95_seconds or 0.0)}",
    ]
    out.print(f"  {', '.join(parts)}\n")
    emit(numbers.by_mode, _columns("MODE"), "table")
    out.print()
    emit(numbers.by_day[:_MOST_DAYS], _columns("DAY"), "table")
    out.print()
    if numbers.unanswered:
        emit(numbers.unanswered[:_MOST_QUESTIONS], _UNANSWERED, "table")
        out.print()
