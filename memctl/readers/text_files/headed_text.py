"""Text whose headings are lines of it: reStructuredText, AsciiDoc, Org mode and plain text.

Each format says where its headings are and how deep; the text is cut the same way for all.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import chain
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from memctl.language.date_mentions import leading_day, lone_day
from memctl.readers.document_properties import (
    LINES_OF_HEAD,
    parse_authors,
    parse_date,
    parse_tags,
    parse_title,
    stated_day,
)
from memctl.readers.file_names import clean_title
from memctl.readers.pieces import HeadingPath, Piece, assemble, named_document
from memctl.readers.text_files.decoding import text_blocks
from memctl.records import SourceText

PARAGRAPH = re.compile(r".*?(?:\n(?:[^\S\n]*\n)+|\Z)", re.S)
_UNDERLINE = re.compile(r"([=\-~^\"'`#*+:.<>_])\1{2,}[^\S\n]*$")
_EMPTY_LINE_BEFORE = re.compile(r"\n[^\S\n]*\n$")
_TITLE_MARKS = "=-~^*#+"
_NO_TITLE = re.compile(r"\S {2,}\S|[\t|]|^[-*+•>] ")
"""Has columns as a row of a table, or begins as an item of a list."""
_MAX_BEYOND_TITLE = 2
"""Characters by which the line under a title may be longer; a longer one only separates."""
_DAY_LEVEL = 40
"""Of the days of a diary; titles have as many levels as they have styles."""
_LONGEST_DAY, _HAS_YEAR = 40, re.compile(r"(?:19|20)\d\d")
_TERM_LEVEL = 50
"""Of what a list of definitions defines."""
_TERM = re.compile(r"[^\s:][^\n]{0,150}?:{2,4}[^\S\n]*\n")
"""What a list of AsciiDoc defines: ``--quiet::``; what it means stands below, further in."""
_ANCHOR = re.compile(r"\[\[[^\[\]\n]*+\]\]")

_ASCIIDOC_TITLE = re.compile(r"^(?P<marks>={1,6})[^\S\n]+(?P<title>\S[^\n]*)\n?", re.MULTILINE)
_ASCIIDOC_MARKS = "=-~^+"
_ASCIIDOC_BLOCK = re.compile(r"(-{4,}|={4,}|\*{4,}|\+{4,}|_{4,}+|\.{4,}|/{4,}|```)\w*")
_ORG_BLOCK = re.compile(r"#\+begin_(\w+).*", re.IGNORECASE)
_ORG_TITLE = re.compile(r"^(?P<marks>\*{1,30})[^\S\n]+(?P<title>\S[^\n]*)\n?", re.MULTILINE)
_DEEPEST_MARKED = 6
"""Headings of Markdown have no more levels."""
_ORG_TAGS = re.compile(r"\s:[\w@#%:]+:\s*$")
_ORG_KEYWORD = re.compile(r"^#\+(?P<name>\w+):(?P<value>[^\n]*)", re.MULTILINE)
_ORG_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_ORG_SETTINGS = re.compile(
    r"^(?:[ \t]*:PROPERTIES:[ \t]*\n"
    r"(?:[ \t]*:(?:ID|CUSTOM_ID|CREATED|LAST_MODIFIED|EFFORT|CATEGORY|STYLE|VISIBILITY|ORDERED):"
    r"[^\n]*\n){0,20}?[ \t]*:END:[ \t]*\n"
    r"|#\+(?:TITLE|SUBTITLE|DATE|AUTHOR|EMAIL|LANGUAGE|FILETAGS|TAGS|OPTIONS|STARTUP|TODO|SEQ_TODO"
    r"|TYP_TODO|PRIORITIES|PROPERTY|SETUPFILE|INCLUDE|ARCHIVE|COLUMNS|EXPORT_\w+|LATEX\w*|HTML\w*):"
    r"[^\n]*\n)+",
    re.MULTILINE | re.IGNORECASE,
)
"""What is said to the program, not to the reader."""


class Heading(Struct, frozen=True):
    """A line above others, with those that mark it."""

    title: str
    start: int
    end: int
    level: int
    """From 1 on; deeper headings have greater ones."""


FindHeadings = Callable[[str], Iterable[Heading]]


class HeadedText:
    """Cuts text into paragraphs under their path of headings, which goes on from block to block."""

    def __init__(self, find: FindHeadings, above: str = "") -> None:
        self._find = find
        self._path = HeadingPath()
        self._path.enter(0, above)

    def pieces(self, text: str) -> Iterator[Piece]:
        """The pieces of one block of the text; together they are the block."""
        place = 0
        for heading in self._find(text):
            start = max(heading.start, place)  # a line between two titles is the first one's
            yield from prose_pieces(text[place:start], str(self._path))
            self._path.enter(heading.level, heading.title)
            yield Piece(text[start : heading.end], "heading", str(self._path))
            place = heading.end
        yield from prose_pieces(text[place:], str(self._path))


def prose_pieces(text: str, heading: str = "") -> Iterator[Piece]:
    """One piece for each paragraph, the blank lines after it included."""
    for match in PARAGRAPH.finditer(text):
        if match[0]:
            yield Piece(match[0], heading=heading)


def text_pieces(text: str, heading: str = "") -> Iterator[Piece]:
    """Plain text as paragraphs under what looks like its headings."""
    return HeadedText(PlainHeadings(), heading).pieces(text)


def day_above(text: str) -> datetime | None:
    """Return the day that a plain text begins with, in a line of its own, if it has no other."""
    days = list(_days(text.lstrip()))
    return leading_day(days[0].title) if len(days) == 1 and not days[0].start else None


def read_rst(path: Path, name: str) -> Iterator[SourceText]:
    """Read reStructuredText: paragraphs under their path of headings."""
    return _read(path, name, UnderlinedHeadings)


def read_asciidoc(path: Path, name: str) -> Iterator[SourceText]:
    """Read AsciiDoc: as reStructuredText; what a list defines is a heading, too."""
    return _read(path, name, AsciiDocHeadings)


def _read(path: Path, name: str, headings: Callable[[], FindHeadings]) -> Iterator[SourceText]:
    blocks = text_blocks(path)
    first = next(blocks, "")
    title = next((clean_title(each.title) for each in headings()(first)), "")
    head = named_document(name, title=title, created_at=stated_day(first))
    pieces = HeadedText(headings()).pieces
    return assemble(head, chain.from_iterable(map(pieces, chain([first], blocks))))


# --- where headings are --------------------------------------------------------------------------


class UnderlinedHeadings:
    """Headings of reStructuredText; the style that comes first in a document is the highest."""

    def __init__(self) -> None:
        self._styles: list[tuple[str, bool]] = []
        """Each with the sign it is made of, and whether there is a line of it above, too."""

    def __call__(self, text: str) -> Iterator[Heading]:
        """Yield those of one block."""
        for title, start, end in self._lines(text):
            mark = text[start:end].rstrip()[-1]
            yield Heading(title, start, end, self._level((mark, text[start] == mark)))

    def _level(self, style: tuple[str, bool]) -> int:
        if style not in self._styles:
            self._styles.append(style)
        return 1 + self._styles.index(style)

    def _lines(self, text: str) -> Iterator[tuple[str, int, int]]:
        return _underlined_headings(text)


class PlainHeadings(UnderlinedHeadings):
    """Headings of plain text: underlined lines, days of a diary or letter, what a list defines."""

    _across_empty_lines = False
    """Whether an empty line may follow what is defined; in reStructuredText an example does."""

    def __call__(self, text: str) -> Iterator[Heading]:
        """Yield those of one block."""
        terms = _defined_headings(text, across_empty_lines=self._across_empty_lines)
        return _in_order(super().__call__(text), _days(text), terms)

    def _lines(self, text: str) -> Iterator[tuple[str, int, int]]:
        return (each for each in _underlined_headings(text) if _is_title(text, *each))


class AsciiDocHeadings(PlainHeadings):
    """Headings of AsciiDoc: ``== Title``, underlined titles, and what a list defines."""

    _across_empty_lines = True

    def __call__(self, text: str) -> Iterator[Heading]:
        """Yield those of one block."""
        found = _in_order(_marked_headings(_ASCIIDOC_TITLE, text), super().__call__(text))
        return _outside_blocks(found, text, _ASCIIDOC_BLOCK)

    def _level(self, style: tuple[str, bool]) -> int:
        return 1 + _ASCIIDOC_MARKS.find(style[0]) % len(_ASCIIDOC_MARKS)


def _days(text: str) -> Iterator[Heading]:
    """Yield the lines of nothing but a day that begin a paragraph, and that of a letter's head."""
    lines = text.splitlines(keepends=True)
    end = 0
    for number, line in enumerate(lines):
        start, end = end, end + len(line)
        if len(line) > _LONGEST_DAY or not line[:1].strip() or _HAS_YEAR.search(line) is None:
            continue
        is_apart = not number or not lines[number - 1].strip()
        is_in_head = number < LINES_OF_HEAD and not "".join(lines[number + 1 : number + 2]).strip()
        if (is_apart or is_in_head) and lone_day(line):
            yield Heading(line.strip().rstrip(":"), start, end, _DAY_LEVEL)


def _in_order(*found: Iterable[Heading]) -> Iterator[Heading]:
    end = 0
    for heading in sorted(chain(*found), key=lambda each: each.start):
        if heading.start >= end:
            yield heading
            end = heading.end


def _outside_blocks(
    headings: Iterable[Heading], text: str, begins: re.Pattern[str]
) -> Iterator[Heading]:
    """Yield the headings outside delimited blocks.

    Args:
        headings: In order.
        text: What they stand in.
        begins: A pattern of the lines that begin a block; its group is what the line that ends it
            has, after ``#+END_`` in Org mode.
    """
    spans = []
    opened, before, start, place = "", "", 0, 0
    for line in text.splitlines(keepends=True):
        found = begins.fullmatch(line.strip())
        if found and before.strip() and before[0] not in "[.+" and found[1][0] in _ASCIIDOC_MARKS:
            found = None  # it underlines a title
        closing = line.strip().lower().removeprefix("#+end_")
        if opened and closing == opened:
            spans.append((start, place + len(line)))
            opened = ""
        elif not opened and found:
            opened, start = found[1].lower(), place
        place, before = place + len(line), line
    ends = iter([*spans, (len(text) + 1, len(text) + 1)])
    start, end = next(ends)
    for heading in headings:
        while heading.start >= end:
            start, end = next(ends)
        if heading.end <= start:
            yield heading


def _marked_headings(form: re.Pattern[str], text: str) -> Iterator[Heading]:
    for match in form.finditer(text):
        yield Heading(_plain(match["title"]), *match.span(), len(match["marks"]))


def _defined_headings(text: str, *, across_empty_lines: bool) -> Iterator[Heading]:
    terms: list[str] = []
    start = end = 0
    for line in text.splitlines(keepends=True):
        if terms and across_empty_lines and not line.strip():
            pass
        elif _TERM.fullmatch(line):
            start = start if terms else end
            terms.append(_plain(line.rstrip().rstrip(":")))
        else:
            if terms and line[0].isspace() and line.strip():
                yield Heading(", ".join(filter(None, terms)), start, end, _TERM_LEVEL)
            terms.clear()
        end += len(line)


def _plain(title: str) -> str:
    return " ".join(_ANCHOR.sub("", title).replace("`", "").split())


def _underlined_headings(text: str) -> Iterator[tuple[str, int, int]]:
    """Title, where it starts (over- and underline included) and where it ends, of each heading."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    for place in range(1, len(lines)):
        title = lines[place - 1].rstrip()
        underline = _UNDERLINE.match(lines[place])
        if not underline or not title.strip() or _UNDERLINE.match(title):
            continue
        if len(lines[place].rstrip()) >= len(title):
            over = place > 1 and lines[place - 2].rstrip() == lines[place].rstrip()
            yield title.strip(), starts[place - 2 if over else place - 1], starts[place + 1]


def _is_title(text: str, title: str, start: int, end: int) -> bool:
    over, *_, under = text[start:end].split()  # the title where there is no line above it
    is_apart = over == under or start == 0
    return (
        (is_apart or _EMPTY_LINE_BEFORE.search(text[max(0, start - 99) : start]) is not None)
        and _NO_TITLE.search(title) is None
        and any(map(str.isalpha, title))
        and under[0] in _TITLE_MARKS
        and len(under) <= len(title) + sum(map(_is_wide, title)) + _MAX_BEYOND_TITLE
    )


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"


# --- Org mode ------------------------------------------------------------------------------------


def read_org(path: Path, name: str) -> Iterator[SourceText]:
    """Read notes of Org mode; settings and drawers stay in the text and are no evidence.

    Headings get the marks of Markdown.
    """
    blocks = text_blocks(path)
    first = next(blocks, "")
    said = {each["name"].lower(): each["value"].strip() for each in _ORG_KEYWORD.finditer(first)}
    day = _ORG_DAY.search(said.get("date", ""))
    head = named_document(
        name,
        title=parse_title(said.get("title")),
        authors=parse_authors(said.get("author")),
        created_at=parse_date(day[0]) if day else None,
        tags=parse_tags(said.get("filetags", "").replace(":", " ")),
    )
    pieces = chain.from_iterable(map(HeadedText(_org_headings).pieces, chain([first], blocks)))
    marked = map(_with_usual_marks, pieces)
    return assemble(head, chain.from_iterable(map(_without_settings, marked)))


def _with_usual_marks(piece: Piece) -> Piece:
    """Return a heading marked as in Markdown, every character in its place.

    A line that begins with stars reads as an item of a list, which goes on in the line below.
    """
    if piece.kind != "heading":
        return piece
    title = piece.text.lstrip("*")
    level = len(piece.text) - len(title)
    return replace(piece, text=("#" * min(level, _DEEPEST_MARKED)).ljust(level) + title)


def _org_headings(text: str) -> Iterator[Heading]:
    for heading in _outside_blocks(_marked_headings(_ORG_TITLE, text), text, _ORG_BLOCK):
        yield replace(heading, title=_ORG_TAGS.sub("", heading.title))


def _without_settings(piece: Piece) -> Iterator[Piece]:
    place = 0
    for found in _ORG_SETTINGS.finditer(piece.text):
        if found.start() > place:
            yield replace(piece, text=piece.text[place : found.start()])
        yield replace(piece, text=found[0], kind=None)
        place = found.end()
    if place < len(piece.text):
        yield replace(piece, text=piece.text[place:])
