"""Evidence within a budget of tokens, numbered, ready to stand above a prompt."""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count as numbers_from
from math import sqrt

from memctl.errors import UsageError
from memctl.language.sentence_splitting import split_sentences
from memctl.models.protocols import Embedder, TokenCounter, estimate_tokens
from memctl.records import Citation, Community, Context, Hit
from memctl.search.answering.excerpts import (
    NO_SHARED_ORIGIN,
    HitExcerpt,
    SharedOrigin,
    cite_excerpt,
    number_excerpts,
    render_block,
    render_line,
    shared_origin,
)
from memctl.search.answering.excerpts import render_excerpts as written_in

CountTokens = Callable[[str], int]

_LEAST_PART = 0.5
"""Of a hit, that is worth showing without the rest."""
_MOST_MISSES = 6
"""So many hits that do not fit, one after another, say that nothing else will."""


def build_context(
    question: str,
    hits: Sequence[Hit],
    insights: Sequence[Hit],
    budget_tokens: int,
    count_tokens: CountTokens | None = None,
    *,
    in_doubt: bool = False,
) -> Context:
    """Return insights and hits as text, no longer than the budget.

    What comes first goes in first; of a hit that no longer fits the first sentences, if they are
    half of it, and after it what is shorter.  Documents stand in the order of their best hit by
    rank, their passages as they read; what two passages share is said once, and so is where all of
    it is from.  Each block begins with the ``[n]`` to cite it by.

    Args:
        question: What was asked.
        hits: In the order to choose them in.
        insights: Best first; they stand before the hits.
        budget_tokens: The most tokens of the text.
        count_tokens: Counts tokens; by default they are estimated.  See
            :func:`token_counter`.
        in_doubt: Whether the hits may have nothing to do with the question: then it says so, and
            they get half of the budget, in which nearly all that they are good for is.

    Raises:
        UsageError: The budget is not positive.
    """
    if budget_tokens < 1:
        raise UsageError(f"a budget of {budget_tokens} tokens holds nothing", "use 100 or more")
    count = cache(count_tokens or estimate_tokens)  # what is tried and taken is counted once
    room = budget_tokens // 2 if in_doubt else budget_tokens
    filling = _Filling(room, count, replace(shared_origin(hits), in_doubt=in_doubt))
    filling.fill(_distinct([*insights, *hits]))
    text, citations = filling.written
    return Context(question, text, count(text) if text else 0, budget_tokens, citations)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A hit as it is given to a model, under the number to cite it by."""

    number: int
    text: str
    """Its ``[n]``, a line on where it is from, and what it says."""
    hit: Hit
    citation: Citation
    """Of all that is shown of it."""


def numbered_excerpts(
    hits: Sequence[Hit], budget_tokens: int, count_tokens: CountTokens
) -> list[Excerpt]:
    """Return hits one by one, together no longer than the budget, as :func:`build_context` does."""
    filling = _Filling(budget_tokens, count_tokens, NO_SHARED_ORIGIN)
    filling.fill(_distinct(hits))
    return [
        Excerpt(number, render_block(number, item), item.hit, cite_excerpt(number, item))
        for number, item in number_excerpts(filling.items)
    ]


def token_counter(embedder: Embedder) -> CountTokens:
    """Return the embedder's own tokenizer as a counter, else an estimate."""
    return embedder.count_tokens if isinstance(embedder, TokenCounter) else estimate_tokens


# --- filling the budget --------------------------------------------------------------------------


@dataclass
class _Filling:
    """What has been chosen for a budget so far."""

    budget: int
    count: CountTokens
    frame: SharedOrigin
    items: list[HitExcerpt] = field(default_factory=list)
    _spent: int = 0
    """Tokens of what has been chosen, or some more."""
    _is_exact: bool = True
    _headings: set[tuple[tuple[str, ...], str]] = field(default_factory=set)

    @property
    def written(self) -> tuple[str, tuple[Citation, ...]]:
        """What has been chosen, as text."""
        return written_in(self.items, self.frame)

    def fill(self, parts: Sequence[HitExcerpt]) -> None:
        """Choose from parts of hits, the best first.

        Counting all of the text for each would take longer than the search; so what one adds is
        counted alone, and the whole only where that says that the budget is used up.
        """
        misses = 0
        for part in parts:
            fitting = self._fitting(part)
            if fitting is None:
                misses += 1
                if misses >= _MOST_MISSES:
                    break
            else:
                misses = 0
                self._take(fitting)
        while self.items and self.count(self.written[0]) > self.budget:
            self.items.pop()

    def _fitting(self, part: HitExcerpt) -> HitExcerpt | None:
        """Return as much of a part as fits beside what is there.

        All of it, else its first sentences: half of it or more, or any where nothing is there.
        """
        if self._fits(part):
            return part
        least = _LEAST_PART * len(part.text) if self.items else 0.0
        cut = [
            HitExcerpt(part.hit, part.start, part.start + end)
            for _, end in split_sentences(part.text)
            if end >= least
        ]
        return cut[fitting - 1] if (fitting := bisect(cut, 0, key=self._is_too_much)) else None

    def _fits(self, part: HitExcerpt) -> bool:
        if self._spent + self._cost(part) <= self.budget:
            return True
        if not self._is_exact:
            self._spent, self._is_exact = self.count(self.written[0]), True
        return self._spent + self._cost(part) <= self.budget

    def _is_too_much(self, part: HitExcerpt) -> int:
        return 0 if self._fits(part) else 1

    def _take(self, part: HitExcerpt) -> None:
        self._spent += self._cost(part)
        self._is_exact = False
        self._headings.add(self._heading(part))
        self.items.append(part)

    def _cost(self, part: HitExcerpt) -> int:
        """Tokens that a part adds, at most: only its line to the turns of a day that are there."""
        if part.is_turn and self._heading(part) in self._headings:
            return self.count("\n" + render_line(len(self.items) + 1, part))
        alone = render_block(len(self.items) + 1, part, self.frame)
        if not self.items:
            return self.count(f"{self.frame.heading}\n\n{alone}")
        return self.count(f"\n\n{alone}")

    def _heading(self, part: HitExcerpt) -> tuple[tuple[str, ...], str]:
        return part.told_in, self.frame.origin(part.hit)


def _distinct(hits: Iterable[Hit]) -> list[HitExcerpt]:
    """Return the hits whole, the same text once."""
    said: dict[str, Hit] = {}
    for hit in hits:
        said.setdefault(" ".join(hit.text.split()).casefold(), hit)
    return [HitExcerpt(hit, 0, len(hit.text)) for text, hit in said.items() if text]


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
    parts = _fitting_communities(communities, budget // _SHARE, count)
    if not parts:
        return build_context(question, hits, insights, budget, count, in_doubt=in_doubt)
    room = budget - count(_communities_text(parts, _WIDEST))
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
    """The communities with as many of their sentences as there is room for."""
    parts: list[_Part] = []
    for community in communities:
        shown: tuple[Citation, ...] = ()
        for citation in community.citations:
            more = (*shown, citation)
            if count(_communities_text([*parts, (community, more)], _WIDEST)) > room:
                break
            shown = more
        if shown:
            parts.append((community, shown))
    return parts


def _new_sentences(parts: Sequence[_Part], text: str) -> Iterator[_Part]:
    """Yield the communities with the sentences that a text has not."""
    for community, shown in parts:
        kept = tuple(each for each in shown if each.quote not in text)
        if kept:
            yield community, kept


def _communities_text(parts: Sequence[_Part], first: int) -> str:
    return "\n\n" + "\n\n".join([PART_OF, *_community_blocks(parts, first)])


def _community_blocks(parts: Sequence[_Part], first: int) -> Iterator[str]:
    numbers = numbers_from(first)
    for community, shown in parts:
        lines = (f"[{next(numbers)}] {' '.join(each.quote.split())}" for each in shown)
        yield "\n".join([f"{describe_members(community)}:", *lines])


def describe_members(community: Community) -> str:
    """Return the best connected names of a community, and how many more there are."""
    names = community.members[:_NAMED]
    more = community.size - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


SAME_CONVERSATION_SHARE = 0.01
"""Of the chances of all other turns of its conversation, the share that is a turn's as well."""
_LABEL_CHARS = 32
"""Characters of a number, a place or a day that stand with each hit, roughly."""

_Conversation = tuple[str, str, str]


def budget_order(hits: Sequence[Hit]) -> list[Hit]:
    """Return hits that are best first in the order to fill a budget with; the best stays first."""
    chances = [1 / rank for rank, _ in enumerate(hits, start=1)]
    conversations = [_conversation(hit) for hit in hits]
    told: dict[_Conversation, float] = defaultdict(float)
    for conversation, chance in zip(conversations, chances, strict=True):
        if conversation is not None:
            told[conversation] += chance

    def worth(at: int) -> float:
        """Return the chance that a hit is evidence, for its length."""
        chance, conversation = chances[at], conversations[at]
        if conversation is not None:
            chance += SAME_CONVERSATION_SHARE * (told[conversation] - chance)
        return chance / sqrt(len(hits[at].text) + _LABEL_CHARS)

    others = sorted(range(1, len(hits)), key=worth, reverse=True)
    return [*hits[:1], *(hits[at] for at in others)]


def _conversation(hit: Hit) -> _Conversation | None:
    """The conversation that a hit is a turn of."""
    if hit.level != "evidence" or hit.type != "turn" or hit.session_id is None:
        return None
    return hit.kb, hit.namespace, hit.session_id
