"""How evidence reads: what is shown of hits, in what order, under which headings and numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby

from memctl.records import Citation, Hit

INSIGHTS = "What is known in short:"
EVIDENCE = "Evidence:"
DOUBT = ", though nothing known clearly bears on the question"
_FEWEST_ALIKE = 2
_ANY_TIME = datetime.min.replace(tzinfo=UTC)
_SLASH = re.compile(r"[/\\]")


@dataclass(frozen=True, slots=True)
class HitExcerpt:
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
        return self.hit.document

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


@dataclass(frozen=True, slots=True)
class SharedOrigin:
    """What all evidence of a context has in common, so that it is said once and not of each."""

    name: str = ""
    """The title, or else the file, that all of it is from."""
    day: str = ""
    """The day that all of it is of."""
    in_doubt: bool = False
    """Whether it may have nothing to do with the question."""

    @property
    def heading(self) -> str:
        """The line above the evidence."""
        known = [f"from {self.name}" if self.name else "", self.day]
        told = f"{EVIDENCE[:-1]} {', '.join(filter(None, known))}".rstrip()
        return f"{told}{DOUBT if self.in_doubt else ''}:"

    def origin(self, hit: Hit) -> str:
        """Say in one line where an excerpt is from, besides what is said of all."""
        parts = ["" if self.name else _name(hit), hit.heading]
        parts.append(f"page {hit.page}" if hit.page is not None else "")
        parts.append(f"row {hit.row}" if hit.row is not None else "")
        parts.append(f"at {hit.time_start:.0f} s" if hit.time_start is not None else "")
        parts.append("" if self.day else _day(hit))
        return ", ".join(" ".join(part.split()) for part in parts if part)


NO_SHARED_ORIGIN = SharedOrigin()


def shared_origin(hits: Iterable[Hit]) -> SharedOrigin:
    """Return what several hits have in common; of one alone, all is said with it."""
    told = [hit for hit in hits if hit.level != "insight"]
    if len(told) < _FEWEST_ALIKE:
        return NO_SHARED_ORIGIN
    names, days = {_name(hit) for hit in told}, {_day(hit) for hit in told}
    return SharedOrigin(
        " ".join(names.pop().split()) if len(names) == 1 else "",
        days.pop() if len(days) == 1 else "",
    )


def render_excerpts(
    items: Sequence[HitExcerpt], frame: SharedOrigin
) -> tuple[str, tuple[Citation, ...]]:
    """Return excerpts as text, insights first, and a citation for each of them."""
    in_order = number_excerpts(items)
    insights = [pair for pair in in_order if pair[1].hit.level == "insight"]
    parts: list[str] = []
    for heading, group, below in (
        (INSIGHTS, insights, NO_SHARED_ORIGIN),
        (frame.heading, in_order[len(insights) :], frame),
    ):
        if group:
            parts.append("\n\n".join([heading, *_blocks(group, below)]))
    return "\n\n".join(parts), tuple(cite_excerpt(number, item) for number, item in in_order)


def number_excerpts(items: Sequence[HitExcerpt]) -> list[tuple[int, HitExcerpt]]:
    """Return excerpts in the order of reading, under the numbers to cite them by."""
    insights = [item for item in items if item.hit.level == "insight"]
    return list(enumerate([*insights, *_told_once(_reading_order(items))], start=1))


def _reading_order(items: Sequence[HitExcerpt]) -> list[HitExcerpt]:
    evidence = [item for item in items if item.hit.level != "insight"]
    places: dict[tuple[str, ...], int] = {}
    for item in sorted(evidence, key=lambda item: item.hit.rank):
        places.setdefault(item.told_in, len(places))
    return sorted(evidence, key=lambda item: (places[item.told_in], *item.when, item.hit.rank))


def _told_once(ordered: Sequence[HitExcerpt]) -> Iterator[HitExcerpt]:
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


def _blocks(pairs: Iterable[tuple[int, HitExcerpt]], frame: SharedOrigin) -> Iterator[str]:
    """Turns of one conversation and day are one block, which says once where they are from."""
    for (is_turn, _, origin), group in groupby(pairs, lambda pair: _head(pair[1], frame)):
        items = list(group)
        if is_turn and len(items) > 1:
            yield "\n".join([f"{origin}:"] * bool(origin) + [render_line(*pair) for pair in items])
        else:
            yield from (render_block(number, item, frame) for number, item in items)


def _head(item: HitExcerpt, frame: SharedOrigin) -> tuple[bool, tuple[str, ...], str]:
    return item.is_turn, item.told_in, frame.origin(item.hit)


def render_line(number: int, item: HitExcerpt) -> str:
    """Return a turn below a heading: what is said on one line, however it was written."""
    return "\n".join([f"[{number}] {' '.join(item.text.split())}", *_no_longer(item)])


def render_block(number: int, item: HitExcerpt, frame: SharedOrigin = NO_SHARED_ORIGIN) -> str:
    """Return an excerpt that stands alone: its number, where it is from, and what it says."""
    origin = frame.origin(item.hit)
    told = "\n".join([item.text.strip(), *_no_longer(item)])
    return f"[{number}] {origin}\n{told}" if origin else f"[{number}] {told}"


def _no_longer(item: HitExcerpt) -> Iterator[str]:
    """Say what of an excerpt does not hold any more, each on a line of its own."""
    offset, text = item.offset, item.hit.text
    for span in item.hit.ended:
        start, end = max(span.start - offset, item.start), min(span.end - offset, item.end)
        if start < end:
            said = " ".join(text[start:end].split())
            yield f"(known since {span.at.date().isoformat()} to hold no longer: “{said}”)"


def _name(hit: Hit) -> str:
    return hit.title or _SLASH.split(hit.source)[-1]


def _day(hit: Hit) -> str:
    return hit.created_at.date().isoformat()


def cite_excerpt(number: int, item: HitExcerpt) -> Citation:
    """Return what an excerpt is cited by."""
    return cite(number, item.hit, item.start, item.end)


def has_offsets(hit: Hit) -> bool:
    """Say whether a hit's text is that of its document between its offsets."""
    return hit.start is not None and hit.end is not None and hit.end - hit.start == len(hit.text)


def cite(number: int, hit: Hit, start: int, end: int) -> Citation:
    """Return the citation of ``hit.text[start:end]``.

    It has no offsets where a memory's text is not that of a document.
    """
    begins = hit.start if has_offsets(hit) else None
    return Citation(
        number=number,
        kb=hit.kb,
        memory_id=hit.memory_id,
        document_id=hit.document_id,
        source=hit.source,
        title=hit.title,
        quote=hit.text[start:end],
        start=None if begins is None else begins + start,
        end=None if begins is None else begins + end,
        page=hit.page,
        row=hit.row,
        time_start=hit.time_start,
        created_at=hit.created_at,
    )
