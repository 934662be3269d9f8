"""Evidence within a budget of tokens, numbered, ready to stand above a prompt."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby

from memctl.errors import UsageError
from memctl.models.protocols import Embedder, TokenCounter
from memctl.records import Citation, Context, Hit
from memctl.retrieve.citing import citation_of, has_offsets
from memctl.understand.sentences import sentences

CountTokens = Callable[[str], int]

INSIGHTS = "What is known in short:"
EVIDENCE = "Evidence:"
_CHARACTERS_A_TOKEN = 4
_ANY_TIME = datetime.min.replace(tzinfo=UTC)
_SLASH = re.compile(r"[/\\]")


def build_context(
    question: str,
    hits: Sequence[Hit],
    insights: Sequence[Hit],
    budget_tokens: int,
    count_tokens: CountTokens | None = None,
) -> Context:
    """Return insights and hits as text, no longer than the budget.

    What is best goes in first; a hit that no longer fits is cut after a sentence.  Documents stand
    in the order of their best hit, their passages as they read; what two passages share is said
    once.  Each block begins with the ``[n]`` to cite it by.

    Args:
        question: What was asked.
        hits: Best first.
        insights: Best first; they stand before the hits.
        budget_tokens: The most tokens of the text.
        count_tokens: Counts tokens; by default a token is four characters.  See
            :func:`token_counter`.

    Raises:
        UsageError: The budget is not positive.
    """
    if budget_tokens < 1:
        raise UsageError(f"a budget of {budget_tokens} tokens holds nothing", "use 100 or more")
    count = count_tokens or approximate_tokens
    excerpts = _chosen([*insights, *hits], budget_tokens, count)
    text, citations = _written(excerpts)
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
    numbered = _numbered(_chosen(hits, budget_tokens, count_tokens))
    return [
        Excerpt(number, _block(number, item), item.hit, _citation(number, item))
        for number, item in numbered
    ]


def token_counter(embedder: Embedder) -> CountTokens:
    """Return the embedder's own tokenizer as a counter, else an estimate of 4 characters each."""
    return embedder.count_tokens if isinstance(embedder, TokenCounter) else approximate_tokens


def approximate_tokens(text: str) -> int:
    """Return a quarter of the number of characters, rounded up."""
    return -(-len(text) // _CHARACTERS_A_TOKEN)


@dataclass(frozen=True, slots=True)
class _Excerpt:
    """The part of a hit that is shown: ``hit.text[start:end]``."""

    hit: Hit
    start: int
    end: int

    @property
    def text(self) -> str:
        """What is shown of the hit."""
        return self.hit.text[self.start : self.end]

    @property
    def document(self) -> tuple[str, str]:
        """What excerpts that are read together share: knowledge base, and document or memory."""
        return self.hit.kb, self.hit.document_id or self.hit.memory_id

    @property
    def told_in(self) -> tuple[str, ...]:
        """What is told together: a conversation of which each turn is a document, or a document."""
        if self.is_turn and self.hit.session_id is not None:
            return self.hit.kb, self.hit.namespace, self.hit.session_id
        return self.document

    @property
    def is_turn(self) -> bool:
        """Whether it is what somebody said."""
        return self.hit.type == "turn" and self.hit.level == "evidence"

    @property
    def when(self) -> tuple[datetime, int, int]:
        """Its place among what is told together."""
        if self.is_turn and self.hit.session_id is not None:
            return self.hit.created_at, self.hit.turn or 0, self.offset
        return _ANY_TIME, 0, self.offset

    @property
    def offset(self) -> int:
        """Where the hit's text begins in the document; 0 where that is not known."""
        return self.hit.start if has_offsets(self.hit) and self.hit.start is not None else 0


def _distinct(hits: Iterable[Hit]) -> Iterator[Hit]:
    seen: set[str] = set()
    for hit in hits:
        said = " ".join(hit.text.split()).casefold()
        if said and said not in seen:
            seen.add(said)
            yield hit


def _chosen(hits: Iterable[Hit], budget: int, count: CountTokens) -> list[_Excerpt]:
    excerpts: list[_Excerpt] = []
    for hit in _distinct(hits):
        added = _fitting(excerpts, hit, budget, count)
        if added is None:
            break
        excerpts.append(added)
    return excerpts


def _fitting(
    excerpts: Sequence[_Excerpt], hit: Hit, budget: int, count: CountTokens
) -> _Excerpt | None:
    """Return as much of a hit as fits beside what is there: all, or its first sentences."""

    def fits(end: int) -> bool:
        """Tell whether the budget has room for the hit up to there."""
        return count(_written([*excerpts, _Excerpt(hit, 0, end)])[0]) <= budget

    if fits(len(hit.text)):
        return _Excerpt(hit, 0, len(hit.text))
    ends = [end for _, end in sentences(hit.text)]
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(ends[middle - 1]) else (low, middle - 1)
    return _Excerpt(hit, 0, ends[low - 1]) if low else None


def _written(excerpts: Sequence[_Excerpt]) -> tuple[str, tuple[Citation, ...]]:
    numbered = _numbered(excerpts)
    insights = [(number, item) for number, item in numbered if item.hit.level == "insight"]
    parts: list[str] = []
    for heading, group in ((INSIGHTS, insights), (EVIDENCE, numbered[len(insights) :])):
        if group:
            parts.append("\n\n".join([heading, *_blocks(group)]))
    return "\n\n".join(parts), tuple(_citation(number, item) for number, item in numbered)


def _numbered(excerpts: Sequence[_Excerpt]) -> list[tuple[int, _Excerpt]]:
    insights = [item for item in excerpts if item.hit.level == "insight"]
    return list(enumerate([*insights, *_told_once(_reading_order(excerpts))], start=1))


def _reading_order(excerpts: Sequence[_Excerpt]) -> list[_Excerpt]:
    evidence = [item for item in excerpts if item.hit.level != "insight"]
    places: dict[tuple[str, ...], int] = {}
    for item in evidence:
        places.setdefault(item.told_in, len(places))
    return sorted(evidence, key=lambda item: (places[item.told_in], *item.when, item.hit.rank))


def _told_once(ordered: Sequence[_Excerpt]) -> Iterator[_Excerpt]:
    """Leave out of a passage what the one before it in the document has said."""
    reached: dict[tuple[str, str], int] = {}
    for item in ordered:
        if not has_offsets(item.hit):
            yield item
            continue
        start = max(item.start, reached.get(item.document, 0) - item.offset)
        reached[item.document] = max(reached.get(item.document, 0), item.offset + item.end)
        if start < item.end and item.hit.text[start : item.end].strip():
            yield replace(item, start=start)


def _blocks(numbered: Iterable[tuple[int, _Excerpt]]) -> Iterator[str]:
    """Turns of one conversation and day are one block, which says once where they are from."""
    for (is_turn, _, origin), group in groupby(numbered, lambda pair: _head(pair[1])):
        items = list(group)
        if is_turn and len(items) > 1:
            turns = (f"[{number}] {' '.join(item.text.split())}" for number, item in items)
            yield "\n".join([f"{origin}:", *turns])
        else:
            yield from (_block(number, item) for number, item in items)


def _head(item: _Excerpt) -> tuple[bool, tuple[str, ...], str]:
    return item.is_turn, item.told_in, _origin(item.hit)


def _block(number: int, item: _Excerpt) -> str:
    return "\n".join([f"[{number}] {_origin(item.hit)}", item.text.strip(), *_no_longer(item)])


def _no_longer(item: _Excerpt) -> Iterator[str]:
    """Say what of an excerpt does not hold any more, each on a line of its own."""
    offset, text = item.offset, item.hit.text
    for span in item.hit.ended:
        start, end = max(span.start - offset, item.start), min(span.end - offset, item.end)
        if start < end:
            said = " ".join(text[start:end].split())
            yield f"(known since {span.at.date().isoformat()} to hold no longer: “{said}”)"


def _origin(hit: Hit) -> str:
    """Say in one line where an excerpt is from."""
    parts = [hit.title or _SLASH.split(hit.source)[-1], hit.heading]
    parts.append(f"page {hit.page}" if hit.page is not None else "")
    parts.append(f"row {hit.row}" if hit.row is not None else "")
    parts.append(f"at {hit.time_start:.0f} s" if hit.time_start is not None else "")
    parts.append(hit.created_at.date().isoformat())
    return ", ".join(" ".join(part.split()) for part in parts if part)


def _citation(number: int, item: _Excerpt) -> Citation:
    return citation_of(number, item.hit, item.start, item.end)
