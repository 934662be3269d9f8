"""What a question is part of, below its evidence: sentences of communities, within the budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count as numbers_from

from memctl.records import Citation, Community, Context, Hit
from memctl.retrieve.context import CountTokens, build_context

PART_OF = "What it is part of:"
_SHARE = 4
"""Of the budget, so much (a quarter) is theirs at most: evidence comes first."""
_WIDEST = 1000
"""A number no shorter than any that will stand there."""
_NAMED = 6

_Part = tuple[Community, tuple[Citation, ...]]
"""A community with those of its sentences that are shown."""


def build_with_communities(
    question: str,
    hits: Sequence[Hit],
    insights: Sequence[Hit],
    communities: Sequence[Community],
    budget: int,
    count: CountTokens,
    *,
    in_doubt: bool = False,
) -> Context:
    """Return a context, and below it what of communities it has not said, within the budget.

    Args:
        question: What was asked.
        hits: In the order to choose them in.
        insights: Best first.
        communities: Best first.
        budget: Of all together, in tokens.
        count: Counts tokens.
        in_doubt: Whether the hits may have nothing to do with the question.

    Raises:
        UsageError: The budget is not positive.
    """
    parts = _fitting(communities, budget // _SHARE, count)
    if not parts:
        return build_context(question, hits, insights, budget, count, in_doubt=in_doubt)
    room = budget - count(_text(parts, _WIDEST))
    context = build_context(question, hits, insights, room, count, in_doubt=in_doubt)
    new = list(_unsaid(parts, context.text))
    if not context.text or not new:
        return build_context(question, hits, insights, budget, count, in_doubt=in_doubt)
    first = len(context.citations) + 1
    text = context.text + _text(new, first)
    cited = enumerate((each for _, shown in new for each in shown), start=first)
    numbered = tuple(replace(each, number=number) for number, each in cited)
    citations = (*context.citations, *numbered)
    return replace(context, text=text, tokens=count(text), budget=budget, citations=citations)


def _fitting(communities: Sequence[Community], room: int, count: CountTokens) -> list[_Part]:
    """The communities with as many of their sentences as there is room for."""
    parts: list[_Part] = []
    for community in communities:
        shown: tuple[Citation, ...] = ()
        for citation in community.citations:
            more = (*shown, citation)
            if count(_text([*parts, (community, more)], _WIDEST)) > room:
                break
            shown = more
        if shown:
            parts.append((community, shown))
    return parts


def _unsaid(parts: Sequence[_Part], text: str) -> Iterator[_Part]:
    """Yield the communities with the sentences that a text has not."""
    for community, shown in parts:
        kept = tuple(each for each in shown if each.quote not in text)
        if kept:
            yield community, kept


def _text(parts: Sequence[_Part], first: int) -> str:
    return "\n\n" + "\n\n".join([PART_OF, *_blocks(parts, first)])


def _blocks(parts: Sequence[_Part], first: int) -> Iterator[str]:
    numbers = numbers_from(first)
    for community, shown in parts:
        lines = (f"[{next(numbers)}] {' '.join(each.quote.split())}" for each in shown)
        yield "\n".join([f"{named(community)}:", *lines])


def named(community: Community) -> str:
    """Return the best connected names of a community, and how many more there are."""
    names = community.members[:_NAMED]
    more = community.size - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")
