"""What a question gave, for people: answer, citations, insights, and what else was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memctl.cli.places import place
from memctl.cli.text import moment, one_line, safe

if TYPE_CHECKING:
    from rich.console import Console

    from memctl.records import Hit, QueryResult

_SNIPPET = 200


def show_result(console: Console, result: QueryResult, *, explain: bool = False) -> None:
    """Print one result."""
    answer = result.answer
    if answer is not None:
        _print(console, answer.text, "bold" if answer.found else "yellow")
        for citation in answer.citations:
            _print(console, f"  [{citation.number}] {place(citation)}", "cyan")
    if result.insights:
        _print(console, "\nInsights")
        for insight in result.insights:
            _show_insight(console, insight)
    if result.hits:
        _print(console, "\nFound" if answer is not None else "Found", "dim")
        for hit in result.hits:
            _show_hit(console, hit, explain=explain)
    elif answer is None:
        _print(console, "nothing found", "yellow")


def _print(console: Console, text: str, style: str = "") -> None:
    console.print(safe(text), style=style, soft_wrap=not console.is_terminal)


def _show_insight(console: Console, insight: Hit) -> None:
    _print(console, f"  {one_line(insight.text)}", "green")
    sources = ", ".join(insight.source_ids)
    _print(console, f"      {insight.memory_id}, from {sources}", "dim")


def _show_hit(console: Console, hit: Hit, *, explain: bool) -> None:
    name = hit.title or hit.source
    _print(console, f"{hit.rank:3}. {one_line(name, 60)}  {hit.type}  {moment(hit.created_at)}")
    _print(console, f"     {one_line(hit.text, _SNIPPET)}")
    if explain:
        legs = "  ".join(f"{leg} {score:.3f}" for leg, score in hit.legs.items())
        _print(console, f"     score {hit.score:.3f}: {legs}", "dim")
        _print(console, f"     {hit.memory_id} in {hit.document_id} of {hit.kb}", "dim")
