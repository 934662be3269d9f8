"""EPUB books, OpenDocument texts and sheets: zip archives of XML whose parts stand in order.

See https://www.w3.org/TR/epub-33/ and OASIS OpenDocument 1.3.
"""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from memctl.errors import EncryptedSource, UnreadableSource
from memctl.files import open_regular
from memctl.readers.data_files.table_rows import grid_pieces
from memctl.readers.document_properties import (
    parse_date,
    plausible_authors,
    plausible_title,
    with_stated_day,
)
from memctl.readers.file_names import (
    clean_title,
    date_from_name,
    date_from_title,
    display_name,
    title_from_name,
)
from memctl.readers.markup.html_parser import parse_page
from memctl.readers.markup.web_pages import page_pieces, page_text
from memctl.readers.office.office_files import check_archive
from memctl.readers.pieces import HeadingPath, Piece, assemble, new_document
from memctl.readers.reader_errors import damage_as_unreadable, limit_expansion
from memctl.records import SourceText

BOOK, TEXT, SHEET = "an EPUB book", "an OpenDocument text", "an OpenDocument sheet"

_DC = "{http://purl.org/dc/elements/1.1/}"
_META = "{urn:oasis:names:tc:opendocument:xmlns:meta:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_OPF = "{http://www.idpf.org/2007/opf}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"

_MAX_REPEATED_ROWS, _MAX_REPEATED_CELLS = 1_000, 200
"""A sheet says how often a row or a cell stands there again; blank ones fill it to its end."""


def read_book(path: Path, name: str) -> Iterator[SourceText]:
    """Yield the chapters of a book in the order of its spine.

    Raises:
        EncryptedSource: Its chapters are under digital rights management.
        UnreadableSource: It is damaged, or unpacks to an absurd size.
    """
    with _open(path, name, BOOK) as file, damage_as_unreadable(name, BOOK, *_xml_errors()):
        archive = zipfile.ZipFile(file)
        if "META-INF/rights.xml" in archive.namelist():
            raise _locked_error(name)
        package = _root_file(archive)
        book = _tree(archive, package)
        chapters = list(_chapters(archive, book, posixpath.dirname(package)))
        pieces = list(limit_expansion(chapters, path, name))
        head = _head(book, name, f"{_DC}creator", (f"{_DC}date",))
    yield from assemble(head, pieces)


def read_text(path: Path, name: str) -> Iterator[SourceText]:
    """Yield paragraphs under their headings and tables by rows; raises as :func:`read_book`."""
    with _open(path, name, TEXT) as file, damage_as_unreadable(name, TEXT, *_xml_errors()):
        archive, properties = _open_document(file, name)
        body = _tree(archive, "content.xml").find(f"{_OFFICE}body/{_OFFICE}text")
        blocks = _blocks(body if body is not None else (), HeadingPath())
        pieces = list(limit_expansion(blocks, path, name))
        first = next((piece.heading for piece in pieces if piece.kind == "heading"), "")
        head = _document_head(properties, name, first)
    yield from assemble(with_stated_day(head, pieces, path), pieces)


def read_sheets(path: Path, name: str) -> Iterator[SourceText]:
    """Yield sheets row by row; raises as :func:`read_book`."""
    with _open(path, name, SHEET) as file, damage_as_unreadable(name, SHEET, *_xml_errors()):
        archive, properties = _open_document(file, name)
        tables = _tree(archive, "content.xml").iter(f"{_TABLE}table")
        sheets = (
            piece
            for number, table in enumerate(tables, 1)
            for piece in grid_pieces(_rows(table), heading=_title(table), page=number)
        )
        pieces = list(limit_expansion(sheets, path, name))
        head = _document_head(properties, name)
    yield from assemble(with_stated_day(head, pieces, path), pieces)


def _open(path: Path, name: str, kind: str) -> Any:
    check_archive(path, name, kind)
    return open_regular(path)


def _xml_errors() -> tuple[type[Exception], ...]:
    from defusedxml.common import DefusedXmlException

    return (DefusedXmlException, NotImplementedError)  # the latter for a packing that is unknown


def _tree(archive: zipfile.ZipFile, member: str) -> Any:
    from defusedxml.ElementTree import fromstring

    return fromstring(archive.read(member))


def _locked_error(name: str) -> EncryptedSource:
    return EncryptedSource(
        f"{display_name(name)} is protected by a password or a shop", "save it without and retry"
    )


def _head(
    properties: Any, name: str, author: str, dates: tuple[str, ...], title: str = ""
) -> SourceText:
    texts = ["".join(each.itertext()).strip() for each in properties.iter(author)]
    days = ("".join(each.itertext()) for tag in dates for each in properties.iter(tag))
    titles = ("".join(each.itertext()) for each in properties.iter(f"{_DC}title"))
    title = plausible_title(next(titles, "")) or title
    return new_document(
        title=title or title_from_name(name),
        authors=plausible_authors("; ".join(texts)),
        created_at=date_from_name(name)
        or next((day for each in days if (day := parse_date(each.strip()))), None)
        or date_from_title(title),
    )


# --- books ---------------------------------------------------------------------------------------


def _root_file(archive: zipfile.ZipFile) -> str:
    """Where the list of a book's parts stands in it."""
    for element in _tree(archive, "META-INF/container.xml").iter():
        if element.tag.endswith("}rootfile"):
            return str(element.get("full-path", ""))
    raise UnreadableSource("it names no list of its parts")


def _chapters(archive: zipfile.ZipFile, book: Any, folder: str) -> Iterator[Piece]:
    places = {item.get("id"): item.get("href", "") for item in book.iter(f"{_OPF}item")}
    names, read = set(archive.namelist()), set()
    for item in book.iter(f"{_OPF}itemref"):
        place = unquote(places.get(item.get("idref"), "")).partition("#")[0]
        member = posixpath.normpath(posixpath.join(folder, place))
        if member in names and member not in read:
            read.add(member)
            yield from page_pieces(parse_page(page_text(archive.read(member))))


# --- OpenDocument --------------------------------------------------------------------------------


def _open_document(file: Any, name: str) -> tuple[zipfile.ZipFile, Any]:
    """The archive and its properties."""
    archive = zipfile.ZipFile(file)
    names = archive.namelist()
    if "META-INF/manifest.xml" in names and b"encryption-data" in archive.read(
        "META-INF/manifest.xml"
    ):
        raise _locked_error(name)
    return archive, _tree(archive, "meta.xml") if "meta.xml" in names else None


def _document_head(properties: Any, name: str, heading: str = "") -> SourceText:
    if properties is None:
        return new_document(
            title=heading or title_from_name(name),
            created_at=date_from_name(name) or date_from_title(heading),
        )
    dates = (f"{_META}creation-date", f"{_DC}date")
    has_first = next(iter(properties.iter(f"{_META}initial-creator")), None) is not None
    author = f"{_META}initial-creator" if has_first else f"{_DC}creator"
    return _head(properties, name, author, dates, heading)


def _blocks(parent: Any, headings: HeadingPath) -> Iterator[Piece]:
    for element in parent:
        if element.tag == f"{_TEXT}h":
            title = clean_title("".join(_inner(element)))
            level = element.get(f"{_TEXT}outline-level", "1")
            headings.enter(int(level) if level.isdecimal() and len(level) < 3 else 1, title)
            if title:
                yield Piece(title + "\n\n", "heading", str(headings))
        elif element.tag == f"{_TEXT}p":
            if text := "".join(_inner(element)).strip():
                yield Piece(text + "\n\n", heading=str(headings))
        elif element.tag == f"{_TEXT}list":
            for item in element.iter(f"{_TEXT}p"):
                if text := "".join(_inner(item)).strip():
                    yield Piece(f"- {text}\n", heading=str(headings))
            yield Piece("\n")
        elif element.tag == f"{_TABLE}table":
            yield from grid_pieces(_rows(element), heading=str(headings))
            yield Piece("\n")
        elif element.tag != f"{_TEXT}tracked-changes":
            yield from _blocks(element, headings)


def _inner(element: Any) -> Iterator[str]:
    """The text in an element, with the blanks that have elements of their own."""
    yield element.text or ""
    for child in element:
        if child.tag == f"{_TEXT}s":
            yield " "
        elif child.tag == f"{_TEXT}tab":
            yield "\t"
        elif child.tag == f"{_TEXT}line-break":
            yield "\n"
        elif child.tag == f"{_OFFICE}annotation":
            yield f" [Comment: {' '.join(' '.join(child.itertext()).split())}] "
        else:
            yield from _inner(child)
        yield child.tail or ""


def _title(table: Any) -> str:
    return clean_title(table.get(f"{_TABLE}name", ""))


def _rows(table: Any) -> Iterator[list[str]]:
    for row in table.iter(f"{_TABLE}table-row"):
        cells: list[str] = []
        for cell in row:
            if cell.tag in (f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
                text = "\n".join("".join(_inner(each)) for each in cell.iter(f"{_TEXT}p"))
                cells += [text] * _repeat_count(cell, "columns", _MAX_REPEATED_CELLS)
        while cells and not cells[-1].strip():
            cells.pop()
        for _ in range(_repeat_count(row, "rows", _MAX_REPEATED_ROWS) if cells else 1):
            yield cells


def _repeat_count(element: Any, what: str, limit: int) -> int:
    said = element.get(f"{_TABLE}number-{what}-repeated", "1")
    return min(int(said), limit) if said.isdecimal() and len(said) < 9 else 1
