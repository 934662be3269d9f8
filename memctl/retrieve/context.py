"""Evidence within a budget of tokens, numbered, ready to stand above a prompt."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from memctl.errors import UsageError
from memctl.models.protocols import Embedder, TokenCounter
from memctl.models.tokens import approximate_tokens
from memctl.records import Citation, Context, Hit
from memctl.retrieve.shown import PLAIN, Frame, Shown, block, citation, frame_of, line, numbered
from memctl.retrieve.shown import written as written_in
from memctl.understand.sentences import sentences

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
    count = cache(count_tokens or approximate_tokens)  # what is tried and taken is counted once
    room = budget_tokens // 2 if in_doubt else budget_tokens
    filling = _Filling(room, count, replace(frame_of(hits), in_doubt=in_doubt))
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
    filling = _Filling(budget_tokens, count_tokens, PLAIN)
    filling.fill(_distinct(hits))
    return [
        Excerpt(number, block(number, item), item.hit, citation(number, item))
        for number, item in numbered(filling.items)
    ]


def token_counter(embedder: Embedder) -> CountTokens:
    """Return the embedder's own tokenizer as a counter, else an estimate."""
    return embedder.count_tokens if isinstance(embedder, TokenCounter) else approximate_tokens


# --- filling the budget --------------------------------------------------------------------------


@dataclass
class _Filling:
    """What has been chosen for a budget so far."""

    budget: int
    count: CountTokens
    frame: Frame
    items: list[Shown] = field(default_factory=list)
    _spent: int = 0
    """Tokens of what has been chosen, or some more."""
    _is_exact: bool = True
    _headings: set[tuple[tuple[str, ...], str]] = field(default_factory=set)

    @property
    def written(self) -> tuple[str, tuple[Citation, ...]]:
        """What has been chosen, as text."""
        return written_in(self.items, self.frame)

    def fill(self, parts: Sequence[Shown]) -> None:
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

    def _fitting(self, part: Shown) -> Shown | None:
        """Return as much of a part as fits beside what is there.

        All of it, else its first sentences: half of it or more, or any where nothing is there.
        """
        if self._fits(part):
            return part
        least = _LEAST_PART * len(part.text) if self.items else 0.0
        cut = [
            Shown(part.hit, part.start, part.start + end)
            for _, end in sentences(part.text)
            if end >= least
        ]
        return cut[fitting - 1] if (fitting := bisect(cut, 0, key=self._is_too_much)) else None

    def _fits(self, part: Shown) -> bool:
        if self._spent + self._cost(part) <= self.budget:
            return True
        if not self._is_exact:
            self._spent, self._is_exact = self.count(self.written[0]), True
        return self._spent + self._cost(part) <= self.budget

    def _is_too_much(self, part: Shown) -> int:
        return 0 if self._fits(part) else 1

    def _take(self, part: Shown) -> None:
        self._spent += self._cost(part)
        self._is_exact = False
        self._headings.add(self._heading(part))
        self.items.append(part)

    def _cost(self, part: Shown) -> int:
        """Tokens that a part adds, at most: only its line to the turns of a day that are there."""
        if part.is_turn and self._heading(part) in self._headings:
            return self.count("\n" + line(len(self.items) + 1, part))
        alone = block(len(self.items) + 1, part, self.frame)
        if not self.items:
            return self.count(f"{self.frame.heading}\n\n{alone}")
        return self.count(f"\n\n{alone}")

    def _heading(self, part: Shown) -> tuple[tuple[str, ...], str]:
        return part.told_in, self.frame.origin(part.hit)


def _distinct(hits: Iterable[Hit]) -> list[Shown]:
    """Return the hits whole, the same text once."""
    said: dict[str, Hit] = {}
    for hit in hits:
        said.setdefault(" ".join(hit.text.split()).casefold(), hit)
    return [Shown(hit, 0, len(hit.text)) for text, hit in said.items() if text]
