"""Evidence within a token budget, numbered, ready to precede a prompt."""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import count as numbers_from
from math import sqrt

from msgspec import Struct, field
from msgspec.structs import replace

from memctl.errors import UsageError
from memctl.language.inline_tags import without_wikilinks
from memctl.language.sentence_splitting import split_sentences
from memctl.models.protocols import Embedder, TokenCounter, estimate_tokens
from memctl.records import Citation, Community, Context, Hit
from memctl.search.answering.excerpts import (
    INSIGHTS,
    NO_SHARED_ORIGIN,
    HitExcerpt,
    SharedOrigin,
    cite,
    conversation_of,
    number_excerpts,
    render_block,
    render_excerpts,
    render_line,
    shared_origin,
)

CountTokens = Callable[[str], int]

_MIN_PART = 0.5
"""The share of a hit that is worth showing without the rest."""
_MAX_MISSES = 6
"""After this many hits in a row that don't fit, no other is tried."""
_COMMUNITY_SHARE = 4
"""At most a quarter of the budget is for communities: evidence comes first."""
_LONG_NUMBER = 1000
"""At least as wide as any number in the text."""
_MAX_MEMBERS = 6
_CONVERSATION_SHARE = 0.01
"""Share of the chances of all other turns of its conversation that a turn gets as well."""
_LABEL_CHARS = 32
"""Rough length of the number, place and day that are shown with each hit."""
PART_OF = "What it is part of:"


def build_context(
    question: str,
    hits: Sequence[Hit],
    insights: Sequence[Hit],
    budget_tokens: int,
    count_tokens: CountTokens | None = None,
    *,
    in_doubt: bool = False,
) -> Context:
    """Return insights and hits as text within a token budget.

    Hits are added in the order given.  Of one that doesn't fit, its first sentences are added if
    they are at least half of it; then shorter hits are tried.  The text is in reading order:
    documents by their best hit, passages by position.  What two passages share is said once, and
    so is the origin that all have in common.  Each block begins with the ``[n]`` to cite it by.

    Args:
        question: The question.
        hits: In the order in which to add them.
        insights: Best first; they precede the hits.
        budget_tokens: Most tokens of the text.
        count_tokens: Counts tokens; by default they are estimated.
        in_doubt: Whether the hits may have nothing to do with the question: the text says so, and
            they get half of the budget, which holds nearly all of their use.

    Raises:
        UsageError: The budget is not positive.
    """
    if budget_tokens < 1:
        raise UsageError(f"a budget of {budget_tokens} tokens holds nothing", "use 100 or more")
    count = cache(count_tokens or estimate_tokens)  # what is tried and then added counts once
    room = budget_tokens // 2 if in_doubt else budget_tokens
    selection = _Selection(room, count, replace(shared_origin(hits), in_doubt=in_doubt))
    selection.fill(_distinct([*insights, *hits]))
    text, citations = selection.render()
    return Context(question, text, count(text) if text else 0, budget_tokens, citations)


class Excerpt(Struct, frozen=True):
    """A hit as it is given to a model, with the number to cite it by."""

    number: int
    text: str
    """Its ``[n]``, a line with its origin, and its text."""
    hit: Hit
    citation: Citation
    """Of all of the text."""


def numbered_excerpts(
    hits: Sequence[Hit], budget_tokens: int, count_tokens: CountTokens
) -> list[Excerpt]:
    """Return hits one by one, together within the budget; see ``build_context``."""
    selection = _Selection(budget_tokens, count_tokens, NO_SHARED_ORIGIN)
    selection.fill(_distinct(hits))
    return [
        Excerpt(number, render_block(number, item), item.hit, cite(number, item))
        for number, item in number_excerpts(selection.items)
    ]


def token_counter(embedder: Embedder) -> CountTokens:
    """Return the embedder's own token counter, or else an estimate."""
    return embedder.count_tokens if isinstance(embedder, TokenCounter) else estimate_tokens


# --- the budget ----------------------------------------------------------------------------------


class _Selection(Struct):
    """The excerpts selected for a budget so far."""

    budget: int
    count: CountTokens
    shared: SharedOrigin
    items: list[HitExcerpt] = field(default_factory=list)
    _spent: int = 0
    """Tokens of the excerpts; an upper bound unless ``_is_exact``."""
    _is_exact: bool = True
    _headings: set[tuple[tuple[str, ...], str]] = field(default_factory=set)

    def render(self) -> tuple[str, tuple[Citation, ...]]:
        """Return the excerpts as text, with their citations."""
        return render_excerpts(self.items, self.shared)

    def fill(self, excerpts: Sequence[HitExcerpt]) -> None:
        """Select from excerpts, best first.

        Counting the whole text for each would take longer than the search.  So each is counted
        alone, and the whole only where these counts exceed the budget.
        """
        misses = 0
        for excerpt in excerpts:
            fitting = self._fit_excerpt(excerpt)
            if fitting is None:
                misses += 1
                if misses >= _MAX_MISSES:
                    break
            else:
                misses = 0
                self._add(fitting)
        while self.items and self.count(self.render()[0]) > self.budget:
            self.items.pop()

    def _fit_excerpt(self, excerpt: HitExcerpt) -> HitExcerpt | None:
        """Return all of an excerpt if it fits, or else its first sentences.

        At least half of it, unless nothing has been selected yet.
        """
        if self._fits(excerpt):
            return excerpt
        least = _MIN_PART * len(excerpt.text) if self.items else 0.0
        cut = [
            HitExcerpt(excerpt.hit, excerpt.start, excerpt.start + end)
            for _, end in split_sentences(excerpt.text)
            if end >= least
        ]
        fitting = bisect(cut, 0, key=lambda part: 0 if self._fits(part) else 1)
        return cut[fitting - 1] if fitting else None

    def _fits(self, excerpt: HitExcerpt) -> bool:
        if self._spent + self._cost(excerpt) <= self.budget:
            return True
        if not self._is_exact:
            self._spent, self._is_exact = self.count(self.render()[0]), True
        return self._spent + self._cost(excerpt) <= self.budget

    def _add(self, excerpt: HitExcerpt) -> None:
        self._spent += self._cost(excerpt)
        self._is_exact = False
        self._headings.add(self._heading(excerpt))
        self.items.append(excerpt)

    def _cost(self, excerpt: HitExcerpt) -> int:
        """Return the most tokens that an excerpt adds: a line where its conversation is there."""
        if excerpt.is_turn and self._heading(excerpt) in self._headings:
            return self.count("\n" + render_line(len(self.items) + 1, excerpt))
        is_insight = excerpt.hit.level == "insight"
        shared = NO_SHARED_ORIGIN if is_insight else self.shared
        alone = render_block(len(self.items) + 1, excerpt, shared)
        if not any((item.hit.level == "insight") == is_insight for item in self.items):
            alone = f"{INSIGHTS if is_insight else shared.heading}\n\n{alone}"
        return self.count(f"\n\n{alone}" if self.items else alone)

    def _heading(self, excerpt: HitExcerpt) -> tuple[tuple[str, ...], str]:
        return excerpt.group, self.shared.origin(excerpt.hit)


def _distinct(hits: Iterable[Hit]) -> list[HitExcerpt]:
    """Return the hits as whole excerpts, each text once."""
    first: dict[str, Hit] = {}
    for hit in hits:
        first.setdefault(" ".join(hit.text.split()).casefold(), hit)
    return [HitExcerpt(hit, 0, len(hit.text)) for text, hit in first.items() if text]


# --- communities ---------------------------------------------------------------------------------


_Part = tuple[Community, tuple[Citation, ...]]
"""A community with the sentences of it that are shown."""


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
    """Return a context, followed by sentences of communities that it lacks, within the budget.

    Args:
        question: The question.
        hits: In the order in which to add them.
        insights: Best first.
        communities: Best first.
        budget: Most tokens of the whole text.
        count: Counts tokens.
        in_doubt: Whether the hits may have nothing to do with the question.

    Raises:
        UsageError: The budget is not positive.
    """
    parts = _fitting_communities(communities, budget // _COMMUNITY_SHARE, count)
    if not parts:
        return build_context(question, hits, insights, budget, count, in_doubt=in_doubt)
    room = budget - count(_communities_text(parts, _LONG_NUMBER))
    context = build_context(question, hits, insights, room, count, in_doubt=in_doubt)
    new = list(_new_sentences(parts, context.text))
    if not context.text or not new:
        return build_context(question, hits, insights, budget, count, in_doubt=in_doubt)
    first = len(context.citations) + 1
    text = context.text + _communities_text(new, first)
    cited = enumerate((each for _, shown in new for each in shown), start=first)
    numbered = tuple(replace(each, number=number) for number, each in cited)
    citations = (*context.citations, *numbered)
    return replace(context, text=text, tokens=count(text), budget=budget, citations=citations)


def _fitting_communities(
    communities: Sequence[Community], room: int, count: CountTokens
) -> list[_Part]:
    """Return the communities with as many of their sentences as there is room for."""
    parts: list[_Part] = []
    for community in communities:
        shown: tuple[Citation, ...] = ()
        for citation in community.citations:
            more = (*shown, citation)
            if count(_communities_text([*parts, (community, more)], _LONG_NUMBER)) > room:
                break
            shown = more
        if shown:
            parts.append((community, shown))
    return parts


def _new_sentences(parts: Sequence[_Part], text: str) -> Iterator[_Part]:
    """Yield the communities with those of their sentences that a text lacks."""
    for community, shown in parts:
        kept = tuple(each for each in shown if without_wikilinks(each.quote) not in text)
        if kept:
            yield community, kept


def _communities_text(parts: Sequence[_Part], first: int) -> str:
    return "\n\n" + "\n\n".join([PART_OF, *_community_blocks(parts, first)])


def _community_blocks(parts: Sequence[_Part], first: int) -> Iterator[str]:
    numbers = numbers_from(first)
    for community, shown in parts:
        lines = (
            f"[{next(numbers)}] {' '.join(without_wikilinks(each.quote).split())}" for each in shown
        )
        yield "\n".join([f"{describe_members(community)}:", *lines])


def describe_members(community: Community) -> str:
    """Return the best connected names of a community, and the number of the others."""
    names = community.members[:_MAX_MEMBERS]
    more = community.size - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


# --- the order for a budget ----------------------------------------------------------------------


def budget_order(hits: Sequence[Hit]) -> list[Hit]:
    """Return hits, given best first, in the order in which to fill a budget with them.

    The chance that a hit is evidence falls with its rank about as one over it.  At the same rank a
    long hit is evidence more often than a short one, but not twice as often at twice the length,
    so a budget holds more evidence in short ones.  And who answers in one turn of a conversation
    tends to say more in others.  The best hit stays first.  Measured in
    ``tests/bench/retrieval.md``.
    """
    chances = [1 / rank for rank, _ in enumerate(hits, start=1)]
    conversations = [conversation_of(hit) for hit in hits]
    totals: dict[tuple[str, ...] | None, float] = defaultdict(float)
    for conversation, chance in zip(conversations, chances, strict=True):
        totals[conversation] += chance

    def value(at: int) -> float:
        """Return the chance that a hit is evidence, for its length."""
        chance, conversation = chances[at], conversations[at]
        if conversation is not None:
            chance += _CONVERSATION_SHARE * (totals[conversation] - chance)
        return chance / sqrt(len(hits[at].text) + _LABEL_CHARS)

    others = sorted(range(1, len(hits)), key=value, reverse=True)
    return [*hits[:1], *(hits[at] for at in others)]
