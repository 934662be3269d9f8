"""Markdown as it is written: the file's own text, front matter included; headings make paths.

Front matter that only describes the note, by title, date and the like, becomes facts of its
document: it stays in the text and is no evidence by itself.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from msgspec.structs import replace

from memctl.language.date_mentions import is_mere_day, leading_day
from memctl.language.inline_tags import find_hashtags, find_wikilinks, is_navigation
from memctl.readers.data_files.structured_data import FRONT_MATTER_CHARS, front_matter_facts
from memctl.readers.document_properties import (
    DocumentProperties,
    document_properties,
    signed_day,
    stated_day,
)
from memctl.readers.file_names import clean_title
from memctl.readers.pieces import (
    EMPHASIS_LEVEL,
    HeadingPath,
    Piece,
    assemble,
    is_title_line,
    named_document,
)
from memctl.readers.text_files.chat_logs import ChatReader
from memctl.readers.text_files.decoding import text_blocks
from memctl.records import SourceText

TABLE_CHARS = 800
"""A table is cut into groups of rows of up to this many characters."""

_FRONT = re.compile(r"(---|\+\+\+)[^\S\n]*\n(?:(.*?)\n)??(?:\1|\.\.\.)[^\S\n]*(?:\n|$)", re.S)
_ATX = re.compile(r" {0,3}(#{1,6})[^\S\n]+(.*?)(?:[^\S\n]+#+)?[^\S\n]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_SETEXT = re.compile(r" {0,3}(=+|-{2,})[^\S\n]*$")
_ROW = re.compile(r"\s*\|.*\|\s*$")
_MARKS = re.compile(r"(\*\*|__|`|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w))")
_INLINE_LINK = re.compile(
    r"!?\[([^\[\]]*+)\]\([^)]{0,2000}+\)|\[\[(?:[^\[\]|]*+\|)?([^\[\]]*+)\]\]"
)

_EMPHASISED = re.compile(r" {0,3}(?P<marks>\*\*|__)(?P<text>[^*_\n]+)(?P=marks)[^\S\n]*\n\s*")
_DATED_ENTRY = re.compile(r"(?:[-*+>]\s+)?(?:\*\*|__)([^*_\n]{4,60}?)[.:]?(?:\*\*|__)")
"""A paragraph of running notes that begins with emphasised words, which may be a day."""


def read(path: Path, name: str) -> Iterator[SourceText]:
    """Read Markdown: paragraphs under their headings, tables, code, front matter; or turns."""
    blocks = text_blocks(path)
    first = next(blocks, "")
    front, facts = _front_matter(first)
    body = first[len(front) :]
    heading = _first_heading(body)
    head = named_document(
        name,
        title=facts.title or ("" if is_mere_day(heading) else heading),
        authors=facts.authors,
        created_at=facts.created_at or stated_day(body, path) or signed_day(body, path),
        tags=tuple(dict.fromkeys((*facts.tags, *find_hashtags(body)))),
        links=find_wikilinks(first),
        metadata=facts.metadata,
    )
    reader = ChatReader.of(body, head.created_at) or MarkdownReader()
    properties = [Piece(front, None if facts.only_describe else "properties")] if front else []
    pieces = chain.from_iterable(map(reader.pieces, chain([body], blocks)))
    return assemble(head, chain(properties, without_navigation(pieces)))


def without_navigation(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Rows of links at the top of a note, such as a day's, stay in its text and are no evidence.

    So does the heading above such a row if it names the day.  Where nothing follows, both are kept.
    """
    held: list[Piece] = []
    for piece in pieces:
        if _may_lead_on(piece, held):
            held.append(piece)
            continue
        has_row = any(each.kind == "prose" and is_navigation(each.text) for each in held)
        yield from (replace(each, kind=None) if has_row else each for each in held)
        yield piece
        yield from pieces
        return
    yield from held


def _may_lead_on(piece: Piece, held: Sequence[Piece]) -> bool:
    """Tell whether a piece may be part of what stands above a note: its day, and rows of links."""
    if piece.kind == "heading":
        name = piece.heading.rpartition(" > ")[2]
        return not any(each.kind == "heading" for each in held) and is_mere_day(name)
    return not piece.text.strip() or (piece.kind == "prose" and is_navigation(piece.text))


def split_front_matter(text: str) -> tuple[str, str]:
    """The front matter with its fences, ``""`` where there is none, and the text after it."""
    front, _ = _front_matter(text)
    return front, text[len(front) :]


def _front_matter(text: str) -> tuple[str, DocumentProperties]:
    """The front matter with its fences, ``""`` where there is none, and what it says."""
    opened = text[: FRONT_MATTER_CHARS + 10]
    match = _FRONT.match(opened) if opened.startswith(("---", "+++")) else None
    facts = _facts(match) if match else None
    return (match[0], facts) if match and facts else ("", DocumentProperties())


def _facts(match: re.Match[str]) -> DocumentProperties | None:
    if match[1] == "---":
        return front_matter_facts(match[2] or "")
    try:
        return document_properties(tomllib.loads(match[2] or ""))
    except (tomllib.TOMLDecodeError, RecursionError):
        return DocumentProperties()


def _first_heading(body: str) -> str:
    for piece in MarkdownReader().pieces(body[:20_000]):
        if piece.kind == "heading" and not _EMPHASISED.fullmatch(piece.text):
            return clean_title(piece.heading.rpartition(" > ")[2])
    return ""


def plain_heading(text: str) -> str:
    """A heading's words without emphasis, code marks and link targets."""
    text = _INLINE_LINK.sub(lambda match: match[1] or match[2] or "", text)
    return " ".join(_MARKS.sub("", text).split())


class MarkdownReader:
    """Cuts Markdown into pieces, line by line; remembers headings and open fences across blocks."""

    def __init__(self) -> None:
        self._headings = HeadingPath()
        self._fence = ""

    def pieces(self, text: str) -> Iterator[Piece]:
        """The pieces of one block of the text, cut at line ends; together they are the block."""
        run: list[str] = []
        for line in text.splitlines(keepends=True):
            bare = line.rstrip("\n")
            if self._fence:
                run.append(line)
                if self._closes_fence(bare):
                    yield from self._flush(run, "code")
            elif fence := _FENCE.match(bare):
                yield from self._flush(run)
                self._fence = fence[1]
                run.append(line)
            elif atx := _ATX.match(bare):
                yield from self._flush(run)
                yield self._heading_piece(len(atx[1]), atx[2], line)
            elif run and _SETEXT.match(bare) and _is_title(run[-1]) and len(run) == 1:
                level = 1 if bare.lstrip()[0] == "=" else 2
                title = run.pop()
                yield self._heading_piece(level, title.strip(), title, line)
            elif run and not run[-1].strip() and bare.strip():
                yield from self._flush(run)
                run.append(line)
            else:
                run.append(line)
        yield from self._flush(run, "code" if self._fence else "")

    def _closes_fence(self, line: str) -> bool:
        match = _FENCE.match(line)
        closes = bool(match) and line.strip() == line.strip()[0] * len(line.strip())
        if closes and match and match[1].startswith(self._fence):
            self._fence = ""
        return not self._fence

    def _heading_piece(self, level: int, title: str, *lines: str) -> Piece:
        self._headings.enter(level, plain_heading(title))
        return Piece("".join(lines), "heading", str(self._headings))

    def _flush(self, run: list[str], kind: str = "") -> Iterator[Piece]:
        lines, run[:] = list(run), []
        if not lines:
            return
        if kind == "code":
            yield Piece("".join(lines), "code", str(self._headings))
        elif sum(bool(_ROW.match(line)) for line in lines) >= 2:
            yield from _table_pieces(lines, str(self._headings))
        else:
            text = "".join(lines)
            title = _EMPHASISED.fullmatch(text)
            if title and is_title_line(title["text"]):
                yield self._heading_piece(EMPHASIS_LEVEL, title["text"], text)
                return
            entry = _DATED_ENTRY.match(text)
            day = leading_day(entry[1]) if entry else None
            yield Piece(text, "prose", str(self._headings), said_at=day)


def _is_title(line: str) -> bool:
    return bool(re.search(r"\w", line)) and not re.match(r"\s*(?:[-*+>|]|\d+[.)])\s", line)


def _table_pieces(lines: list[str], heading: str) -> Iterator[Piece]:
    """Groups of a table's lines; ``row`` counts its data rows, header and rule left out."""
    group, begin, row = "", 1, -1
    for line in lines:
        if group and row > 0 and len(group) + len(line) > TABLE_CHARS:
            yield Piece(group, "table", heading, row=max(begin, 1))
            group, begin = "", row
        group += line
        row += 1
    if group:
        yield Piece(group, "table", heading, row=max(begin, 1))
