"""Plain text, logs, reStructuredText and source code, streamed; chat logs in them become turns."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

from memctl.language.inline_tags import find_hashtags, find_wikilinks
from memctl.readers.document_properties import parse_date
from memctl.readers.file_kinds import CODE_LANGUAGES, extension_of
from memctl.readers.file_names import clean_title, date_from_name, title_from_name
from memctl.readers.pieces import HEADING_SEPARATOR, Piece, assemble, new_document
from memctl.readers.text_files.chat_logs import ChatReader, looks_like_chat
from memctl.readers.text_files.decoding import text_blocks
from memctl.records import SourceText

LOG_GROUP_CHARS = 800
"""Log lines are grouped up to this many characters."""

PieceMaker = Callable[[str], Iterator[Piece]]

_PARAGRAPH = re.compile(r".*?(?:\n(?:[^\S\n]*\n)+|\Z)", re.S)
_LOG_TIME = re.compile(
    r"\W{0,2}(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?)[.,]?\d*\s?(Z|[+-]\d\d:?\d\d)?"
)
_RST_UNDERLINE = re.compile(r"([=\-~^\"'`#*+:.<>_])\1{2,}[^\S\n]*$")
_EMPTY_LINE_BEFORE = re.compile(r"\n[^\S\n]*\n$")
_TITLE_MARKS = "=-~^*#+"
_NO_TITLE = re.compile(r"\S {2,}\S|[\t|]|^[-*+•>] ")
"""Has columns as a row of a table, or begins as an item of a list."""
_MOST_BEYOND_TITLE = 2
"""Characters by which the line under a title may be longer; a longer one only separates."""
_DEFINITION = re.compile(
    r"(?:export\s+|pub(?:\(\w+\))?\s+|public\s+|private\s+|protected\s+|static\s+|async\s+|"
    r"abstract\s+|final\s+|default\s+)*"
    r"(?:def|class|func|fn|function|interface|struct|enum|trait|impl|type|module|namespace|"
    r"package|sub|create\s+(?:or\s+replace\s+)?(?:table|view|function))\s+"
    r"(?:\([^)\n]*\)\s*)?([A-Za-z_]\w*(?:(?:\.|::)\w+)*)",
    re.I,
)


def prose_pieces(text: str, heading: str = "") -> Iterator[Piece]:
    """One piece for each paragraph, the blank lines after it included."""
    for match in _PARAGRAPH.finditer(text):
        if match[0]:
            yield Piece(match[0], heading=heading)


def read(path: Path, name: str) -> Iterator[SourceText]:
    """Read plain text: paragraphs, or turns where it is a chat."""
    blocks = text_blocks(path)
    first = next(blocks, "")
    head = new_document(
        title=title_from_name(name),
        created_at=date_from_name(name),
        tags=find_hashtags(first),
        links=find_wikilinks(first),
    )
    make = ChatReader(first, head.created_at).pieces if looks_like_chat(first) else text_pieces
    return assemble(head, _make_pieces(chain([first], blocks), make))


def text_pieces(text: str, heading: str = "") -> Iterator[Piece]:
    """Paragraphs under their path of headings: lines that are underlined as long as they are."""
    titles = [each for each in _rst_headings(text) if _is_title(text, *each)]
    return _headed_pieces(text, titles, heading)


def _is_title(text: str, title: str, start: int, end: int) -> bool:
    over, *_, under = text[start:end].split()  # the title where there is no line above it
    is_apart = over == under or start == 0
    return (
        (is_apart or _EMPTY_LINE_BEFORE.search(text[max(0, start - 99) : start]) is not None)
        and _NO_TITLE.search(title) is None
        and any(map(str.isalpha, title))
        and under[0] in _TITLE_MARKS
        and len(under) <= len(title) + sum(map(_is_wide, title)) + _MOST_BEYOND_TITLE
    )


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"


def read_log(path: Path, name: str) -> Iterator[SourceText]:
    """Read a log: groups of lines with their line number and time; turns where it is a chat."""
    blocks = text_blocks(path)
    first = next(blocks, "")
    title, created_at = title_from_name(name), date_from_name(name)
    head = new_document(title=title, created_at=created_at)
    if looks_like_chat(first):
        return assemble(
            head, _make_pieces(chain([first], blocks), ChatReader(first, created_at).pieces)
        )
    return assemble(head, log_pieces(chain([first], blocks)))


def _make_pieces(blocks: Iterable[str], make: PieceMaker) -> Iterator[Piece]:
    for block in blocks:
        yield from make(block)


def log_pieces(blocks: Iterable[str]) -> Iterator[Piece]:
    """Groups of whole lines; ``row`` is the number of a group's first line, from 1."""
    group, begin, number = "", 1, 1
    for block in blocks:
        for line in block.splitlines(keepends=True):
            if group and len(group) + len(line) > LOG_GROUP_CHARS and not line[0].isspace():
                yield _log_piece(group, begin)
                group, begin = "", number
            group += line
            number += line.endswith("\n")
    if group:
        yield _log_piece(group, begin)


def _log_piece(group: str, row: int) -> Piece:
    match = _LOG_TIME.match(group)
    said_at = parse_date(match[1] + (match[2] or "")) if match else None
    return Piece(group, "table", row=row, said_at=said_at)


# --- reStructuredText -----------------------------------------------------------------------------


def read_rst(path: Path, name: str) -> Iterator[SourceText]:
    """Read reStructuredText: paragraphs under their path of headings."""
    blocks = text_blocks(path)
    first = next(blocks, "")
    titles = [title for title, _, _ in _rst_headings(first)]
    head = new_document(
        title=(clean_title(titles[0]) if titles else "") or title_from_name(name),
        created_at=date_from_name(name),
    )
    return assemble(head, _make_pieces(chain([first], blocks), _rst_pieces))


def _rst_headings(text: str) -> list[tuple[str, int, int]]:
    """Title, where it starts (over- and underline included) and where it ends, of each heading."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    found = []
    for place in range(1, len(lines)):
        title = lines[place - 1].rstrip()
        underline = _RST_UNDERLINE.match(lines[place])
        if not underline or not title.strip() or _RST_UNDERLINE.match(title):
            continue
        if len(lines[place].rstrip()) >= len(title):
            over = place > 1 and lines[place - 2].rstrip() == lines[place].rstrip()
            found.append(
                (title.strip(), starts[place - 2 if over else place - 1], starts[place + 1])
            )
    return found


def _rst_pieces(text: str) -> Iterator[Piece]:
    return _headed_pieces(text, _rst_headings(text))


def _headed_pieces(
    text: str, headings: Iterable[tuple[str, int, int]], above: str = ""
) -> Iterator[Piece]:
    ranks: list[tuple[str, bool]] = []
    path: list[str] = []
    place, heading = 0, above
    for title, start, end in headings:
        start = max(start, place)  # a line between two titles is the first one's
        yield from prose_pieces(text[place:start], heading)
        mark = text[start:end].rstrip()[-1]
        style = (mark, text[start] == mark)
        if style not in ranks:
            ranks.append(style)
        path = [*path[: ranks.index(style)], title]
        heading = HEADING_SEPARATOR.join([above, *path] if above else path)
        yield Piece(text[start:end], "heading", heading)
        place = end
    yield from prose_pieces(text[place:], heading)


# --- source code ----------------------------------------------------------------------------------


def read_code(path: Path, name: str) -> Iterator[SourceText]:
    """Read source code: blocks between blank lines, under the name of their definition."""
    language = CODE_LANGUAGES.get(extension_of(name), "")
    head = new_document(
        title=clean_title(Path(name).name) or title_from_name(name),
        metadata={"programming_language": language} if language else {},
    )
    return assemble(head, _make_pieces(text_blocks(path), code_pieces))


def code_pieces(text: str) -> Iterator[Piece]:
    """One piece for each block between blank lines, under the name of its definition."""
    heading = ""
    for match in _PARAGRAPH.finditer(text):
        block = match[0]
        if not block:
            continue
        if block[0] not in " \t})]":
            heading = next(
                (d[1] for line in block.split("\n") if (d := _DEFINITION.match(line))), ""
            )
        yield Piece(block, "code", heading)
