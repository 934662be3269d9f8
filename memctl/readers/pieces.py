"""Pieces, which readers cut a source into, become parts of bounded size with exact offsets.

The document's text is all pieces in their order, each with its own line ends: offsets are right by
construction, whatever the format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memctl.language.date_mentions import leading_day
from memctl.readers.file_names import date_from_name, date_from_title, title_from_name
from memctl.records import Segment, SegmentKind, SourceText

PART_CHARS = 1_000_000
"""A part's text is at most this long."""

GROUP_CHARS = 600
"""Property lines that stand together share a piece up to this many characters."""

HEADING_SEPARATOR = " > "

MAX_HEADING_LENGTH = 500
"""Every passage below a heading carries it, so no more than this of its end is kept."""

EMPHASIS_LEVEL = 7
"""Of a line that is emphasised instead of being marked as a heading."""
_LONGEST_TITLE = 120

_SURROGATES = re.compile(r"[\ud800-\udfff\x00]")


new_document = partial(SourceText, text="", media_type="", reader="")
"""Make the facts of a document, to which text, kind and reader are added later."""


def named_document(
    name: str,
    *,
    title: str = "",
    heading: str = "",
    created_at: datetime | None = None,
    **facts: Any,
) -> SourceText:
    """Make the facts of a document; what it lacks of title and date, its name says.

    A day in its title, or in the heading that stands above its text, is its date, too.
    """
    return new_document(
        title=title or title_from_name(name),
        created_at=created_at or date_from_name(name) or date_from_title(title or heading),
        **facts,
    )


def storable_text(text: str) -> str:
    """The text with what no UTF-8 column can hold replaced, character for character."""
    return _SURROGATES.sub("\ufffd", text) if _SURROGATES.search(text) else text


class Piece(Struct, frozen=True):
    """A run of text, line ends and blank lines after it included, and where it comes from."""

    text: str
    kind: SegmentKind | None = "prose"
    """None for text that belongs to the document and says nothing by itself: it gets no segment."""
    heading: str = ""
    page: int | None = None
    row: int | None = None
    time_start: float | None = None
    time_end: float | None = None
    speaker: str | None = None
    said_at: datetime | None = None
    quotation: int = 0
    """Of a text without a segment that quotes another message: how deep, from 1."""


class HeadingPath:
    """The headings that the text at hand stands under; as a string it is their path."""

    def __init__(self) -> None:
        self._entered: list[tuple[int, str]] = []

    def __str__(self) -> str:
        return HEADING_SEPARATOR.join(title for _, title in self._entered)

    def enter(self, level: int, title: str) -> None:
        """Go under a heading, which ends those of its level and of the levels below."""
        while self._entered and self._entered[-1][0] >= level:
            self._entered.pop()
        if title:
            self._entered.append((level, title))


def is_title_line(text: str) -> bool:
    """Return whether a text that is all emphasised is a title rather than a sentence.

    As markdownlint tells them apart (MD036, emphasis used instead of a heading): it is one line and
    doesn't end as a sentence does; a question can be a title.
    """
    text = text.strip()
    return (
        len(text) <= _LONGEST_TITLE and "\n" not in text and text[-1:] not in tuple(".,;!。，；！")
    )


def _day_of(heading: str) -> datetime | None:
    """The day that the innermost dated heading of a path begins with."""
    parts = reversed(heading.split(HEADING_SEPARATOR)) if heading else ()
    return next((day for part in parts if (day := leading_day(part))), None)


def group_lines(lines: Iterable[str], heading: str) -> Iterator[Piece]:
    """Yield lines of properties in pieces of a bounded length, neighbours together."""
    group = ""
    for line in lines:
        if group and len(group) + len(line) > GROUP_CHARS:
            yield Piece(group + "\n", "properties", heading)
            group = ""
        group += line
    if group:
        yield Piece(group + "\n", "properties", heading)


def assemble(
    head: SourceText, pieces: Iterable[Piece], limit: int = PART_CHARS
) -> Iterator[SourceText]:
    """Lay the pieces into parts of at most ``limit`` characters that all carry the head's facts."""
    texts: list[str] = []
    segments: list[Segment] = []
    quoted: list[tuple[int, int, int]] = []
    length = part = 0
    for piece in _cut_to(pieces, limit):
        if length + len(piece.text) > limit:
            yield _part(head, texts, segments, quoted, part)
            texts, segments, quoted, length, part = [], [], [], 0, part + 1
        if segment := _segment(piece, length):
            segments.append(segment)
        if piece.quotation:
            is_more = quoted and quoted[-1][1:] == (length, piece.quotation)
            start = quoted.pop()[0] if is_more else length
            quoted.append((start, length + len(piece.text), piece.quotation))
        texts.append(piece.text)
        length += len(piece.text)
    if texts:
        yield _part(head, texts, segments, quoted, part)


def _cut_to(pieces: Iterable[Piece], limit: int) -> Iterator[Piece]:
    for piece in pieces:
        text = storable_text(piece.text)
        if len(text) <= limit:
            yield piece if text is piece.text else replace(piece, text=text)
            continue
        start = 0
        while start < len(text):
            end = _cut_place(text, start, start + limit)
            yield replace(piece, text=text[start:end])
            start = end


def _cut_place(text: str, start: int, latest: int) -> int:
    """The end of the last line that ends by ``latest``; ``latest`` in the midst of a long line."""
    if latest >= len(text):
        return len(text)
    return text.rfind("\n", start, latest) + 1 or latest


def _segment(piece: Piece, offset: int) -> Segment | None:
    stripped = piece.text.strip()
    if not stripped or piece.kind is None:
        return None
    start = offset + piece.text.index(stripped[0])
    return Segment(
        start,
        start + len(stripped),
        piece.kind,
        piece.heading[-MAX_HEADING_LENGTH:],
        piece.page,
        piece.row,
        piece.time_start,
        piece.time_end,
        piece.speaker,
        piece.said_at or _day_of(piece.heading),
    )


def _part(
    head: SourceText,
    texts: list[str],
    segments: list[Segment],
    quoted: list[tuple[int, int, int]],
    part: int,
) -> SourceText:
    quotations = tuple((start, end) for start, end, _ in quoted)
    text = "".join(texts)
    return replace(head, text=text, segments=tuple(segments), quotations=quotations, part=part)
