"""What a question gave, for people: answer, citations, insights, and what else was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memctl.cli.rendering.output_formats import print_marked, print_paragraph
from memctl.cli.rendering.terminal_text import describe_location, one_line
from memctl.formatting import format_count
from memctl.language.inline_tags import without_wikilinks

if TYPE_CHECKING:
    from rich.console import Console

    from memctl.records import Answer, Community, Hit, QueryResult

_SNIPPET = 200
_INSIGHT = 300
_HITS_BELOW = 5
_COPIES = 3


def is_found(result: QueryResult) -> bool:
    """Return whether the question was answered: hits that are only similar are no answer."""
    return bool(result.hits) if result.answer is None else result.answer.found


def show_result(
    console: Console,
    result: QueryResult,
    *,
    explain: bool = False,
    streamed: bool = False,
) -> None:
    """Print one result.

    Args:
        console: Where to.
        result: What the question gave.
        explain: Whether to print what each signal gave.
        streamed: Whether the answer has been printed already, unchecked.
    """
    answer = result.answer
    several = len({hit.kb for hit in (*result.hits, *result.insights)}) > 1
    if answer is not None:
        if streamed:
            _show_unsupported(console, answer)
        else:
            print_paragraph(console, answer.text, "bold" if answer.found else "yellow")
        for citation in answer.citations:
            print_marked(console, f"[{citation.number}]", describe_location(citation), 2)
    if result.insights:
        print_paragraph(console, "\nInsights")
        for insight in result.insights:
            _show_insight(console, insight, name_kb=several)
    if result.communities:
        print_paragraph(console, "\nCommunities")
        for community in result.communities:
            _show_community(console, community, explain=explain, name_kb=several)
    if result.hits:
        most = None if answer is None or explain else _HITS_BELOW
        _show_hits(console, result, most, explain=explain, name_kb=several)
    elif answer is None:
        print_paragraph(console, "nothing found", "yellow")
    if explain:
        _show_syntax(console, result)
        _show_rounds(console, result)


def _show_syntax(console: Console, result: QueryResult) -> None:
    """Print how a search expression was read; for plain words there is nothing to print."""
    if "required" in result.explain:
        print_paragraph(console, f"\nrequired: {result.explain['required']}", "dim")
    for pattern, terms in result.explain.get("expanded", {}).items():
        print_paragraph(console, f"{pattern}: {', '.join(terms) or 'nothing like it'}", "dim")


def _show_rounds(console: Console, result: QueryResult) -> None:
    """Print the rounds of an agentic search; other searches have none."""
    for number, each in enumerate(result.explain.get("rounds", ()), start=1):
        print_paragraph(
            console, f"\nround {number}, worded by {each['by']}: {each['query']}", "dim"
        )
        came = f"{format_count(each['found'], 'hit')}, {each['new']} new;"
        judged = f"{each['relevant']} of the best relevant, mean {each['mean']:.2f}"
        print_paragraph(console, f"{came} {judged}", "dim", 5)
        if each["missing"]:
            print_paragraph(console, f"not spoken of: {', '.join(each['missing'])}", "dim", 5)
        print_paragraph(console, each["then"], "dim", 5)


def _show_unsupported(console: Console, answer: Answer) -> None:
    from memctl.search.answering.model_answer import UNSUPPORTED

    for sentence in answer.sentences:
        if sentence.unsupported:
            print_paragraph(console, f"{UNSUPPORTED} {sentence.text}", "yellow")


def _show_hits(
    console: Console, result: QueryResult, limit: int | None, *, explain: bool, name_kb: bool
) -> None:
    """Print the hits; below an answer only the first few, for they are not what was asked for."""
    answer = result.answer
    shown = result.hits[:limit]
    if answer is not None:
        print_paragraph(console, "\nFound" if answer.found else "\nNearest", "dim")
    for hit in shown:
        _show_hit(console, hit, explain=explain, name_kb=name_kb)
        way = result.explain.get("paths", {}).get(hit.memory_id)
        if way:
            print_paragraph(console, f"by way of {' → '.join(map(one_line, way))}", "dim", 5)
        _show_most_alike(console, result, hit)
    if len(shown) < len(result.hits):
        print_paragraph(
            console, f"{len(result.hits) - len(shown)} more: add --no-answer to list them", "dim", 2
        )


def _show_most_alike(console: Console, result: QueryResult, hit: Hit) -> None:
    """Print which better hit it resembles most, and so was ranked lower for."""
    likest = result.explain.get("likest", {}).get(hit.memory_id)
    if likest:
        rank = next(h.rank for h in result.hits if h.memory_id == likest["memory_id"])
        print_paragraph(console, f"like {rank}: cosine {likest['cosine']:.3f}", "dim", 5)


def _show_insight(console: Console, insight: Hit, *, name_kb: bool) -> None:
    print_paragraph(console, one_line(insight.text, _INSIGHT), "green", 2)
    sources = format_count(len(insight.source_ids), "memory", "memories")
    of = f" of {insight.kb}" if name_kb else ""
    print_paragraph(
        console, f"from {sources}{of}: memctl insight show {insight.memory_id}", "dim", 4
    )


def _show_community(
    console: Console, community: Community, *, explain: bool, name_kb: bool
) -> None:
    """Print connected names and the sentences that connect them; ``explain`` adds the score."""
    from memctl.search.answering.evidence_context import describe_members

    of = f"{community.kb}: " if name_kb else ""
    print_paragraph(console, f"{of}{describe_members(community)}", "green", 2)
    for citation in community.citations:
        print_paragraph(console, one_line(without_wikilinks(citation.quote), _INSIGHT), "", 4)
        print_marked(console, f"[{citation.number}]", describe_location(citation), 4)
    if explain:
        print_paragraph(
            console, f"score {community.score:.3f}: {', '.join(community.seeds)}", "dim", 4
        )
        for each in community.relations:
            print_paragraph(console, f"{each.name} — {each.relation} — {each.other}", "dim", 4)


def _ended_texts(hit: Hit) -> list[str]:
    """Return the parts of a hit's text that no longer hold."""
    offset = hit.start or 0
    return [hit.text[max(0, span.start - offset) : span.end - offset] for span in hit.ended]


def _show_duplicates(console: Console, hit: Hit, *, name_kb: bool) -> None:
    """Print where else a hit's text is, and how many more memories of its document were found."""
    for copy in hit.also_in[:_COPIES]:
        of = f"{copy.kb}: " if name_kb else ""
        relation = "also in" if copy.likeness == 1 else "nearly the same in"
        print_paragraph(console, f"{relation} {of}{describe_location(copy)}", "dim", 5)
    if len(hit.also_in) > _COPIES:
        print_paragraph(console, f"and in {len(hit.also_in) - _COPIES} more places", "dim", 5)
    if hit.more_in_document:
        print_paragraph(console, f"+{len(hit.more_in_document)} more of this document", "dim", 5)


def _show_hit(console: Console, hit: Hit, *, explain: bool, name_kb: bool) -> None:
    kind = "" if hit.level == "evidence" else f"{hit.type}, "
    of = f"{hit.kb}: " if name_kb else ""
    print_marked(console, f"{hit.rank:3}.", f"{of}{kind}{describe_location(hit)}")
    print_paragraph(console, one_line(without_wikilinks(hit.text), _SNIPPET), "", 5)
    for text in _ended_texts(hit):
        print_paragraph(console, f"no longer: {one_line(text, _SNIPPET)}", "dim", 5)
    _show_duplicates(console, hit, name_kb=name_kb)
    if explain:
        scores = "  ".join(f"{name} {score:.3f}" for name, score in hit.legs.items())
        print_paragraph(console, f"score {hit.score:.3f}: {scores}", "dim", 5)
        print_paragraph(console, f"{hit.memory_id} in {hit.document_id} of {hit.kb}", "dim", 5)
