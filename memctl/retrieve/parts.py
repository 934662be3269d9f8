"""The parts of a hit that may be quoted: its sentences, rows and entries of structured data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memctl.records import Hit
from memctl.retrieve.forms import are_entries, is_entry, is_row
from memctl.understand.sentences import sentences

LONGEST = 400
"""Characters of a quote; a longer sentence is cut between words."""
UNDER = " > "
"""Between the keys above a value of structured data and the value."""
_SHORTEST = 12
_MOST_A_HIT = 60
_LINE = re.compile(r"\S[^\n]*")

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Part:
    """``hit.text[start:end]``."""

    start: int
    end: int
    text: str
    path: str
    """The keys above a value of structured data, which by itself does not say of what it is."""
    is_title: bool
    """Whether it is a line that stands above others."""
    is_fragment: bool
    """Whether it is too short to say anything."""

    @property
    def told(self) -> str:
        """The text below its keys."""
        return f"{self.path}{UNDER}{self.text}" if self.path else self.text

    @property
    def is_row(self) -> bool:
        """Whether it is a row of a table."""
        return is_row(self.text)


def parts_of(hit: Hit) -> list[Part]:
    """Return the parts of a hit as they read."""
    is_data = are_entries(hit.text)
    return [_part(hit, span, is_data=is_data) for span in _spans(hit.text)]


def quotable(parts: Sequence[Part]) -> list[int]:
    """Return the places of those that may be quoted: fragments only where there is nothing else."""
    whole = [place for place, part in enumerate(parts) if not part.is_fragment]
    return whole or list(range(len(parts)))


def _part(hit: Hit, span: Span, *, is_data: bool) -> Part:
    start, end = span
    text = hit.text[start:end]
    return Part(
        start,
        end,
        text,
        path=hit.heading if is_data and not is_row(text) else "",
        is_title=not is_data and _is_title(hit, start, end),
        is_fragment=not is_data and end - start < _SHORTEST,
    )


def _is_title(hit: Hit, start: int, end: int) -> bool:
    line = hit.text[start:end]
    alone = hit.text[end : end + 1] == "\n" and hit.text[start - 1 : start] in ("", "\n")
    return hit.type == "passage" and alone and line[:1].isalnum() and line[-1:].isalnum()


def _spans(text: str) -> list[Span]:
    whole = [
        part
        for sentence in sentences(text)
        if not text.startswith("#", sentence[0])
        for start, end in _entries(text, sentence)
        for part in _cut(text, start, end)
    ]
    return whole[:_MOST_A_HIT]


def _entries(text: str, sentence: Span) -> list[Span]:
    """Return the lines of rows and entries, which together look like one wrapped sentence."""
    lines = [line.span() for line in _LINE.finditer(text, *sentence)]
    return lines if all(is_entry(text[start:end]) for start, end in lines) else [sentence]


def _cut(text: str, start: int, end: int) -> Iterator[Span]:
    """Cut what has no sentences, such as a row of a table, at lines or else between words."""
    while end - start > LONGEST:
        at = max(text.rfind("\n", start, start + LONGEST), start)
        if at == start:
            at = max(text.rfind(" ", start, start + LONGEST), start)
        at = at if at > start else start + LONGEST
        yield start, at
        start = at + len(text[at:end]) - len(text[at:end].lstrip())
    if start < end:
        yield start, end
