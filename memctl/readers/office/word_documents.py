"""Word documents: paragraphs under their headings, tables, foot- and endnotes, comments.

The text is taken from the XML itself: python-docx (1.2) passes over text in content controls,
text boxes and insertions that nobody has accepted yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

from memctl.files import open_regular
from memctl.readers.data_files.table_rows import grid_pieces
from memctl.readers.document_properties import with_stated_day
from memctl.readers.file_names import clean_title
from memctl.readers.office.office_files import WORD, check_archive, head_of, import_library
from memctl.readers.pieces import HeadingPath, Piece, assemble
from memctl.readers.reader_errors import damage_as_unreadable, limit_expansion, without_warnings
from memctl.records import SourceText

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_PARAGRAPH, _TABLE, _ROW, _CELL = f"{_W}p", f"{_W}tbl", f"{_W}tr", f"{_W}tc"
_VALUE = f"{_W}val"
_AS_TEXT = {f"{_W}tab": "\t", f"{_W}br": "\n", f"{_W}cr": "\n", f"{_W}noBreakHyphen": "-"}
_IGNORED_ELEMENTS = {
    f"{_W}pPr",
    f"{_W}rPr",
    f"{_W}del",
    f"{_W}moveFrom",
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback",
}
_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)
_ASIDES = ("/footnotes", "/endnotes", "/comments")
_MAX_SPANNED = 200
"""Columns; Word has 63 at most."""


def read(path: Path, name: str) -> Iterator[SourceText]:
    """Yield paragraphs under their headings, tables by rows, notes and comments.

    Raises:
        UnreadableSource: It is damaged, or unpacks to an absurd size.
        MissingReader: python-docx is not installed.
    """
    docx = import_library("docx", name, WORD)
    check_archive(path, name, WORD)
    own = docx.opc.exceptions.OpcError
    with open_regular(path) as file, without_warnings(), damage_as_unreadable(name, WORD, own):
        document = docx.Document(file)
        reader = _WordReader(_heading_levels(document))
        blocks = reader.block_pieces(document.element.body)
        found = chain(blocks, _aside_pieces(docx, document.part))
        pieces = list(limit_expansion(found, path, name))
        head = head_of(document.core_properties, name, reader.title)
    yield from assemble(with_stated_day(head, pieces, path), pieces)


def _heading_levels(document: Any) -> Mapping[str, int]:
    """The level of each style that is a heading; 0 for the document's title."""
    levels = {}
    for style in document.styles:
        name = style.name or ""
        if match := _HEADING.match(name):
            levels[style.style_id] = int(match[1])
        elif name.lower() == "title":
            levels[style.style_id] = 0
    return levels


class _WordReader:
    """Walks a document from block to block and remembers the headings above."""

    def __init__(self, levels: Mapping[str, int]) -> None:
        self._levels = levels
        self._headings = HeadingPath()
        self._in_list = False
        self.title = ""

    def block_pieces(self, parent: Any) -> Iterator[Piece]:
        """Pieces of the paragraphs and tables in an element, whatever they are wrapped in."""
        for element in parent:
            if element.tag == _PARAGRAPH:
                yield from self._paragraph(element)
            elif element.tag == _TABLE:
                yield from grid_pieces(_table_rows(element), heading=str(self._headings))
                yield Piece("\n")
            elif element.tag not in _IGNORED_ELEMENTS:
                yield from self.block_pieces(element)

    def _paragraph(self, element: Any) -> Iterator[Piece]:
        text = "".join(_text(element)).strip()
        if not text:
            return
        style = _property(element, "pStyle")
        is_item = style.startswith("List") or element.find(f"{_W}pPr/{_W}numPr") is not None
        level = self._levels.get(style)
        was_in_list, self._in_list = self._in_list, is_item and level is None
        if was_in_list and not self._in_list:
            yield Piece("\n")
        if level is not None and not self.title:
            self.title = clean_title(text)
        if level is not None:
            self._headings.enter(level, clean_title(text))
            yield Piece(text + "\n\n", "heading", str(self._headings))
        elif is_item:
            yield Piece(f"- {text}\n", heading=str(self._headings))
        else:
            yield Piece(text + "\n\n", heading=str(self._headings))


def _property(paragraph: Any, name: str) -> str:
    found = paragraph.find(f"{_W}pPr/{_W}{name}")
    return "" if found is None else str(found.get(_VALUE, ""))


def _text(element: Any) -> Iterator[str]:
    """The text in an element, line breaks and tabs included, deletions left out."""
    for child in element:
        tag = child.tag
        if tag == f"{_W}t":
            yield child.text or ""
        elif tag in _AS_TEXT:
            yield _AS_TEXT[tag]
        elif tag not in _IGNORED_ELEMENTS:
            if tag == _PARAGRAPH:
                yield "\n"
            yield from _text(child)


def _table_rows(table: Any) -> Iterator[list[str]]:
    """Rows of cells; a cell that goes down over several rows is said again in each."""
    above: list[str] = []
    for row in table.iter(_ROW):
        if next(row.iterancestors(_TABLE)) is not table:
            continue
        cells: list[str] = []
        for cell in row.iter(_CELL):
            if next(cell.iterancestors(_ROW)) is row:
                cells.extend(_cell_texts(cell, above, len(cells)))
        yield cells
        above = cells


def _cell_texts(cell: Any, above: list[str], place: int) -> list[str]:
    """The cell's text, with blanks for the further columns that it spans."""
    merge = cell.find(f"{_W}tcPr/{_W}vMerge")
    text = "".join(_text(cell)).strip()
    if merge is not None and merge.get(_VALUE) != "restart" and place < len(above):
        text = above[place]
    span = cell.find(f"{_W}tcPr/{_W}gridSpan")
    width = "" if span is None else str(span.get(_VALUE, ""))
    wanted = int(width) if width.isdecimal() and len(width) < 9 else 1
    further = min(wanted, _MAX_SPANNED - place) - 1
    return [text, *[""] * further]


def _aside_pieces(docx: ModuleType, part: Any) -> Iterator[Piece]:
    """Footnotes, endnotes and comments, which Word keeps in parts of their own."""
    for relation in part.rels.values():
        if relation.is_external or not relation.reltype.endswith(_ASIDES):
            continue
        for note in docx.oxml.parse_xml(relation.target_part.blob):
            author = clean_title(note.get(f"{_W}author", ""))
            text = "".join(_text(note)).strip()
            label = f"Comment by {author}" if author else "Note"
            if text:
                yield Piece(f"{label}: {text}\n\n", "caption")
