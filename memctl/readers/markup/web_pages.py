"""Web pages: the text that a person would read, under its headings; navigation left out.

The page is cut into blocks by ``html_parser``; here it is decided which of them are its content,
and they become pieces.  The same page gives the same text on every machine: there is no optional
library that would change what the offsets of citations point to.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from memctl.files import read_regular
from memctl.readers.data_files.separated_values import looks_like_header
from memctl.readers.data_files.table_rows import has_labels, labelled_pieces, row_pieces
from memctl.readers.document_properties import (
    DocumentProperties,
    parse_authors,
    parse_date,
    parse_tags,
)
from memctl.readers.file_names import clean_title, shorten
from memctl.readers.markup.html_parser import Block, BlockKind, Page, parse_page
from memctl.readers.pieces import (
    EMPHASIS_LEVEL,
    HeadingPath,
    Piece,
    assemble,
    is_title_line,
    named_document,
)
from memctl.readers.reader_errors import check_size
from memctl.readers.text_files.decoding import decode
from memctl.readers.text_files.headed_text import text_pieces
from memctl.records import SegmentKind, SourceText

MAX_BYTES = 30 * 1024 * 1024

_CHARSET = re.compile(rb"charset\s*=\s*[\"']?\s*([A-Za-z0-9.:_-]{2,40})", re.I)

_KINDS: Mapping[BlockKind, SegmentKind] = {
    "prose": "prose",
    "item": "prose",
    "heading": "heading",
    "term": "heading",
    "code": "code",
    "table": "table",
    "caption": "caption",
}
_LEVELS = 10
"""From a term as a heading to those in its definition; HTML has fewer."""
_LONGEST_LABELLED = 80
"""Characters of what is said of a term in its line."""
_MIN_SHOWN = 0.8
"""Share of a page's characters that stands as it was typed, where it only shows a text."""
_SIGNS_OF_CODE = "(){}[]=<>_;|&$\\"
_MAX_SIGNS = 0.03
"""Share of these in a text that people wrote to each other."""
_MIN_WORDS = 4
"""In a line of it, on average."""
_RULER = re.compile(r"^[=\-_~*#+]{3,}[^\S\n]*$", re.MULTILINE)
_MIN_CHARACTERS = 30
"""With fewer characters than this left, nothing is taken for navigation."""

_NOTHING = Block("heading", "", 1)
_LINK_SHARE = 0.7
_LINK_RUN = 3
"""This many blocks in a row that are mostly links make a menu."""


def read(path: Path, name: str) -> Iterator[SourceText]:
    """Read a web page: its main text, tables as rows, properties from its head."""
    check_size(path, name, MAX_BYTES)
    page = parse_page(page_text(read_regular(path)))
    facts = page_properties(page)
    first = next((block.text for block in page.blocks if block.level == 1), "")
    head = named_document(
        name,
        title=facts.title or clean_title(first),
        authors=facts.authors,
        created_at=facts.created_at,
        tags=facts.tags,
        metadata=facts.metadata,
    )
    return assemble(head, page_pieces(page))


def page_text(content: bytes) -> str:
    """The page as text, in the encoding that its own ``<meta>`` names where it is not UTF-8."""
    return decode(content, declared=_declared_encoding(content[:4096]))


def _declared_encoding(head: bytes) -> str:
    match = _CHARSET.search(head)
    return match[1].decode("ascii") if match else ""


def page_pieces(page: Page) -> Iterator[Piece]:
    """The content of a page as pieces; one that only shows plain text is read as plain text."""
    blocks = content_blocks(page.blocks)
    shown = sum(block.characters for block in blocks if block.kind == "code")
    if shown > _MIN_SHOWN * _characters(blocks):
        blocks = [_as_text(block) for block in blocks]
    yield from block_pieces(blocks)


def _as_text(block: Block) -> Block:
    """What stands as it was typed, as prose where it has too few signs for code."""
    text = _RULER.sub("", block.text)
    words, lines = len(text.split()), sum(1 for line in text.split("\n") if line.strip())
    signs = sum(map(_SIGNS_OF_CODE.count, text))
    is_prose = signs < _MAX_SIGNS * len(text) and words > _MIN_WORDS * lines
    return replace(block, kind="prose") if is_prose and block.kind == "code" else block


def block_pieces(blocks: Iterable[Block]) -> Iterator[Piece]:
    """Blocks as pieces, each under its headings; a term is a heading of what defines it."""
    headings = HeadingPath()
    for block in _with_labels(_with_titles(list(blocks))):
        above = _LEVELS * len(block.terms)
        headings.enter(above + _LEVELS, "")  # ends what is defined in it
        if block.kind == "term" or block.level:
            level = above + (block.level or _LEVELS)
            headings.enter(level, " ".join(block.text.split()))
        yield from _block_pieces(block, str(headings))


def _with_titles(blocks: list[Block]) -> list[Block]:
    """Blocks of which a short one in bold above others is a heading, below those marked as such."""
    neighbours = zip([_NOTHING, *blocks], blocks, [*blocks[1:], _NOTHING], strict=False)
    return [
        replace(block, kind="heading", level=EMPHASIS_LEVEL, text=block.text.removeprefix("- "))
        if _is_title(block)
        and not (_is_apart(below) or (block.kind == "item" and above.is_emphasised))
        else block
        for above, block, below in neighbours
    ]


def _is_title(block: Block) -> bool:
    is_text = block.kind in ("prose", "item") and not block.level
    return is_text and block.is_emphasised and is_title_line(block.text)


def _is_apart(block: Block) -> bool:
    return block.is_emphasised or block.level > 0 or block.kind == "term"


def _with_labels(blocks: list[Block]) -> Iterator[Block]:
    """Each block; a term of which a few words are said, with these in one line."""
    left = deque(blocks)
    while left:
        block = left.popleft()
        said = [each for each in islice(left, 2) if _is_described_by(block, each)]
        if block.kind == "term" and not said:
            yield replace(block, kind="prose")
        elif len(said) == 1 and said[0].kind == "prose" and len(said[0].text) <= _LONGEST_LABELLED:
            left.popleft()
            label = block.text.rstrip(" :–—-") or block.text
            mark = "" if label.endswith("?") else ":"
            yield replace(block, kind="item", text=f"{label}{mark} {said[0].text}")
        else:
            yield block


def _is_described_by(term: Block, block: Block) -> bool:
    path = (*term.terms, term.text)
    return term.kind == "term" and block.terms[: len(path)] == path


def _block_pieces(block: Block, heading: str) -> Iterator[Piece]:
    if block.is_labelled or (not block.header and has_labels(block.rows)):
        yield from labelled_pieces(block.rows, heading=heading)
        yield Piece("\n", heading=heading)
    elif block.rows:
        has_header = block.header or looks_like_header(block.rows[0])
        header, rows = (block.rows[0], block.rows[1:]) if has_header else ([], block.rows)
        yield from row_pieces(header, rows, heading=heading)
        yield Piece("\n", heading=heading)
    elif block.kind == "prose" and "\n\n" in block.text:
        yield from text_pieces(block.text + "\n\n", heading)
    else:
        end = "\n" if block.kind == "item" else "\n\n"
        kind: SegmentKind = _KINDS[block.kind]
        yield Piece(block.text + end, kind, heading)


def content_blocks(blocks: Sequence[Block]) -> list[Block]:
    """Those blocks that are what the page is about."""
    everything = list(blocks)
    kept = _unless_too_short([b for b in everything if not b.boilerplate], everything, 0.1)
    kept = _unless_too_short([b for b in kept if b.main], kept, 0.4)
    return _unless_too_short(_without_menus(kept), kept, 0.3)


def _unless_too_short(fewer: list[Block], blocks: list[Block], share: float) -> list[Block]:
    left = _characters(fewer)
    return fewer if left >= _MIN_CHARACTERS and left >= share * _characters(blocks) else blocks


def _characters(blocks: Sequence[Block]) -> int:
    return sum(block.characters for block in blocks)


def _without_menus(blocks: list[Block]) -> list[Block]:
    kept: list[Block] = []
    for is_link, run in groupby(blocks, key=_is_mostly_links):
        members = list(run)
        if not (is_link and len(members) >= _LINK_RUN):
            kept += members
    return kept


def _is_mostly_links(block: Block) -> bool:
    return block.link_characters > _LINK_SHARE * block.characters and not block.level


_TITLES = ("og:title", "twitter:title", "dc.title", "citation_title")
_AUTHORS = ("author", "article:author", "dc.creator", "citation_author", "parsely-author")
_DATES = ("article:published_time", "og:published_time", "datepublished", "date", "dc.date",
          "dc.date.issued", "citation_publication_date", "pubdate", "publish-date",
          "article:modified_time", "last-modified")  # fmt: skip
_SITE_SUFFIX = re.compile(r"\s+[|–—·»]\s+[^|–—·»]{1,60}$")
_MAX_OBJECTS = 500


def page_properties(page: Page) -> DocumentProperties:
    """Title, authors, date and keywords: ``<meta>``, linked data, ``<title>``, ``<time>``."""
    linked = list(_linked_objects(page.linked_data))
    description = _first(page, ("description", "og:description"))
    return DocumentProperties(
        title=clean_title(_title(page, linked)),
        authors=_authors(page, linked),
        created_at=next(
            (date for text in _date_texts(page, linked) if (date := parse_date(text))), None
        ),
        tags=tuple(dict.fromkeys(parse_tags(", ".join(page.meta.get("keywords", ()))))),
        metadata={
            key: value
            for key, value in (
                ("description", shorten(description, 1000)),
                ("site", shorten(_first(page, ("og:site_name",)), 200)),
                ("url", shorten(_first(page, ("og:url",)), 1000)),
                ("declared_language", page.language),
            )
            if value
        },
    )


def _first(page: Page, keys: tuple[str, ...]) -> str:
    return next((value for key in keys for value in page.meta.get(key, ()) if value.strip()), "")


def _title(page: Page, linked: list[dict[str, Any]]) -> str:
    headline = next((o["headline"] for o in linked if isinstance(o.get("headline"), str)), "")
    return _first(page, _TITLES) or headline or _SITE_SUFFIX.sub("", page.title) or page.title


def _authors(page: Page, linked: list[dict[str, Any]]) -> tuple[str, ...]:
    named = [name for key in _AUTHORS for name in page.meta.get(key, ())]
    people = [name for name in named if not name.startswith(("http", "@"))]
    if people:
        return parse_authors(people)
    return next((a for o in linked if (a := parse_authors(o.get("author")))), ())


def _date_texts(page: Page, linked: list[dict[str, Any]]) -> Iterator[object]:
    yield from (o["datePublished"] for o in linked if "datePublished" in o)
    yield from (value for key in _DATES for value in page.meta.get(key, ()))
    yield from page.times[:1]


def _linked_objects(texts: list[str]) -> Iterator[dict[str, Any]]:
    """Every object in the page's JSON-LD, outermost first; what is no JSON is left out."""
    waiting: list[Any] = []
    for text in texts:
        try:
            waiting.append(json.loads(text))
        except (ValueError, RecursionError):
            continue
    for _ in range(_MAX_OBJECTS):
        if not waiting:
            return
        value = waiting.pop(0)
        if isinstance(value, list):
            waiting += value[:_MAX_OBJECTS]
        elif isinstance(value, dict):
            yield value
            waiting += [inner for inner in value.values() if isinstance(inner, dict | list)]
