"""memctl stats: what is remembered, in numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import typer

from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import KnowledgeBasesOption, Output, command, flag
from memctl.cli.commands.questions.feedback import show_statistics
from memctl.cli.rendering.output_formats import (
    Column,
    emit,
    emit_each,
    format_instant,
    resolve_format,
    with_kb_column,
)
from memctl.cli.rendering.terminal_text import format_score, one_line
from memctl.errors import MemctlError, UsageError
from memctl.formatting import format_count, format_duration, format_money, format_size
from memctl.literals import QuerySplit

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console

    from memctl.knowledge_base.kb_statistics import (
        KnowledgeBaseStatistics,
        MemoryUseStatistics,
        QueryStatistics,
        SimilarQuestion,
    )


_BAR = 30
_BLOCKS = " ▏▎▍▌▋▊▉█"
_MAX_BARS = 10
_TOTALS = ("calls", "cached", "failed", "input_tokens", "output_tokens", "cost")


app = typer.Typer()


@command(
    app,
    "stats",
    """
    memctl stats
    memctl stats -k notes -o json | jq '.[0].by_type'
    memctl stats --cost
    memctl stats --queries --by fusion
    memctl stats --queries --similar "when is the launch?"
    memctl stats --feedback
    """,
)
def stats(
    context: CommandContext,
    cost: bool = flag("--cost", "What models used and cost, by task, model and day."),
    queries: bool = flag("--queries", "What was asked, and how fast and well it was answered."),
    feedback: bool = flag("--feedback", "Rewards of conversations, by day, prompt and agent."),
    by: QuerySplit | None = typer.Option(
        None, "--by", help="With --queries: what the numbers are split by."
    ),
    similar: str | None = typer.Option(
        None, "--similar", metavar="TEXT", help="Earlier questions that mean much the same."
    ),
    memories: bool = flag("--memories", "Which memories are used most, last and never."),
    kb: KnowledgeBasesOption = None,
    output: Output = None,
) -> None:
    """Show counts, sizes and rates, with bar charts.

    --cost shows calls, tokens and money instead, one row for each knowledge base, day (UTC), task
    and model; a reply that the model had given before is a cached call and costs nothing.

    --queries summarises the query log: questions by mode and day (UTC), mean time and the time
    within which half and 95 % of them were answered, their quality, how many found nothing, what
    was judged good or bad, and what was asked most often without an answer.  --by splits them
    further, --similar lists what was asked before that means much the same.

    --feedback shows the rewards of conversations; see memctl feedback.

    --memories goes by the access log, which keeps the latest 100,000 times that a memory was shown.
    """
    views = {
        "--cost": cost,
        "--queries": queries and similar is None,
        "--by": by and (similar is not None or not queries),
        "--feedback": feedback,
        "--similar": similar is not None,
        "--memories": memories,
    }
    wanted = [name for name, is_wanted in views.items() if is_wanted]
    if len(wanted) > 1:
        options = " and ".join(wanted)
        raise UsageError(f"{options} do not go together", "ask for one after the other")
    if memories:
        _show_memory_use(context, kb, output)
        return
    if feedback:
        show_statistics(context, kb, output)
        return
    if similar is not None:
        _show_similar(context, kb, output, similar)
        return
    if cost:
        _show_cost(context, kb, output)
        return
    if queries or by:
        _show_queries(context, kb, output, by)
        return
    with context.reading(kb) as bases:
        found = [base.statistics.content() for base in bases]
    emit_each(found, output, lambda numbers: _show(context.console, numbers))


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
    Column("seconds", "TIME", format_duration, right=True),
    Column("cost", "COST", format_money, right=True),
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


def _show_cost(context: CommandContext, kb: KnowledgeBasesOption, output: Output) -> None:
    import pyarrow as pa

    with context.reading(context.all_names(kb)) as bases:  # those asked on demand cost as well
        rows = pa.concat_tables(
            usage.add_column(0, "kb", pa.array([base.name] * usage.num_rows, pa.string()))
            for base in bases
            for usage in [base.statistics.model_usage()]
        )
    emit(rows, _cost_columns(context.console.width, rows), output)
    if resolve_format(output) != "table":
        return
    if not rows.num_rows:
        context.console.print("no model has been used")
        return
    total = {column: sum(rows[column].to_pylist()) for column in _TOTALS}
    tokens = total["input_tokens"] + total["output_tokens"]
    parts = [
        format_count(total["calls"], "call"),
        f"{total['cached']:,} cached",
        f"{total['failed']:,} failed",
        format_count(tokens, "token"),
        format_money(total["cost"]),
    ]
    context.console.print(f"\ntotal: {', '.join(parts)}")


def _show(out: Console, numbers: KnowledgeBaseStatistics) -> None:
    """Print the numbers of one knowledge base."""
    out.print(numbers.kb, style="bold")
    facts = [
        format_count(numbers.documents, "document"),
        format_count(numbers.memories, "memory", "memories"),
        format_count(numbers.entities, "entity", "entities"),
        format_count(numbers.relations, "relation"),
    ]
    out.print(f"  {', '.join(facts)}")
    out.print(
        f"  {format_size(numbers.source_bytes)} of sources, "
        f"{format_size(numbers.disk_bytes)} on disk"
    )
    if numbers.superseded or numbers.waiting:
        out.print(f"  {numbers.superseded:,} superseded, {numbers.waiting:,} not consolidated yet")
    if numbers.query_seconds is not None:
        questions = format_count(numbers.queries, "question")
        out.print(
            f"  {questions} asked, half of the latest in {format_duration(numbers.query_seconds)}"
        )
    _chart(out, "memories by type", numbers.by_type)
    _chart(out, "documents by kind", numbers.by_media_type)
    if len(numbers.by_namespace) > 1:
        _chart(out, "memories by namespace", numbers.by_namespace)
    if len([n for n in numbers.by_day.values() if n]) > 1:
        _chart(out, "memories by day", numbers.by_day, most=len(numbers.by_day))


def _chart(out: Console, title: str, counts: Mapping[str, int], most: int = _MAX_BARS) -> None:
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


_MAX_DAYS = 14
_MAX_QUESTIONS = 10


def _query_columns(label: str) -> Sequence[Column]:
    return (
        Column("label", label),
        Column("queries", "QUESTIONS", right=True),
        Column("nothing_found", "NOTHING FOUND", right=True),
        Column("good", "GOOD", right=True),
        Column("bad", "BAD", right=True),
        Column("quality", "QUALITY", format_score),
        Column("mean_seconds", "MEAN", format_duration, right=True),
        Column("p50_seconds", "P50", format_duration, right=True),
        Column("p95_seconds", "P95", format_duration, right=True),
    )


_UNANSWERED = (
    Column("times", "TIMES", right=True),
    Column("last_asked", "LAST", format_instant),
    Column("question", "ASKED WITHOUT AN ANSWER", lambda text: one_line(text, 70)),
)


_SIMILAR = (
    Column("similarity", "SIMILAR", lambda value: f"{value:.2f}", right=True),
    Column("asked_at", "ASKED", format_instant),
    Column("status", "CAME TO"),
    Column("feedback", "JUDGED"),
    Column("question", "QUESTION", lambda text: one_line(text, 70)),
)
_MAX_SIMILAR = 20


def _show_similar(
    context: CommandContext, kb: KnowledgeBasesOption, output: Output, text: str
) -> None:
    """Show earlier questions that mean much the same as a text, the nearest first."""
    if not any(map(str.isalnum, text)):
        raise UsageError("the question is empty", 'memctl stats --similar "when is the launch?"')
    with context.reading(kb) as bases:
        found: list[SimilarQuestion] = []
        for base in bases:
            try:
                found += base.statistics.similar(text, _MAX_SIMILAR)
            except MemctlError as error:
                if len(bases) == 1:
                    raise
                context.say(f"note: {base.name} is left out: {error.message}")
    found.sort(key=lambda each: -each.similarity)
    emit(found[:_MAX_SIMILAR], with_kb_column(_SIMILAR, len({each.kb for each in found})), output)


def _show_queries(
    context: CommandContext, kb: KnowledgeBasesOption, output: Output, by: QuerySplit | None
) -> None:
    """Show the statistics of the query logs."""
    with context.reading(context.all_names(kb)) as bases:
        found = [base.statistics.queries(by) for base in bases]
    emit_each(found, output, lambda numbers: _show_query_statistics(context, numbers))


def _show_query_statistics(context: CommandContext, numbers: QueryStatistics) -> None:
    out = context.console
    out.print(numbers.kb, style="bold")
    if not numbers.queries:
        out.print("  no question is logged\n")
        return
    parts = [
        format_count(numbers.queries, "question"),
        f"nothing found {numbers.share_nothing_found:.0%}",
        f"{numbers.good:,} good",
        f"{numbers.bad:,} bad",
        *([f"{numbers.failed:,} failed"] if numbers.failed else []),
        *([] if numbers.quality is None else [f"quality {numbers.quality:.2f}"]),
        f"mean {format_duration(numbers.mean_seconds or 0.0)}",
        f"p50 {format_duration(numbers.p50_seconds or 0.0)}",
        f"p95 {format_duration(numbers.p95_seconds or 0.0)}",
    ]
    out.print(f"  {', '.join(parts)}\n")
    if numbers.by:
        emit(numbers.by, _query_columns("SPLIT"), "table")
        out.print()
    emit(numbers.by_mode, _query_columns("MODE"), "table")
    out.print()
    emit(numbers.by_day[:_MAX_DAYS], _query_columns("DAY"), "table")
    out.print()
    if numbers.unanswered:
        emit(numbers.unanswered[:_MAX_QUESTIONS], _UNANSWERED, "table")
        out.print()


_USES = (
    Column("times", "TIMES", right=True),
    Column("last_at", "LAST", format_instant),
    Column("type", "TYPE"),
    Column("text", "TEXT", lambda text: one_line(text, 80)),
)


def _show_memory_use(context: CommandContext, kb: KnowledgeBasesOption, output: Output) -> None:
    with context.reading(context.all_names(kb)) as bases:
        found = [base.statistics.memory_use() for base in bases]
    emit_each(found, output, lambda numbers: _show_uses(context.console, numbers))


def _show_uses(out: Console, numbers: MemoryUseStatistics) -> None:
    out.print(numbers.kb, style="bold")
    used = format_count(numbers.used, "memory", "memories")
    out.print(f"  {used} used, {numbers.never_used:,} never\n")
    for title, uses in (("most used", numbers.most_used), ("last used", numbers.last_used)):
        if uses:
            out.print(f"  {title}", style="dim")
            emit(uses[:_MAX_BARS], _USES, "table")
            out.print()
