"""Excel sheets row by row; the file's other parts, charts and formulas, are not looked at."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

from memctl.files import open_regular
from memctl.readers.damage import told_as_damage, without_warnings
from memctl.readers.grids import grid_pieces
from memctl.readers.office import EXCEL, head_of
from memctl.readers.pieces import Piece, assemble
from memctl.records import SourceText

_EXACT_DIGITS = 12
_ROWS_AT_ONCE = 500


def sheet_parts(openpyxl: ModuleType, path: Path, name: str) -> Iterator[SourceText]:
    """Yield the sheets of an Excel file as text, a part at a time."""
    own = openpyxl.utils.exceptions.InvalidFileException
    with open_regular(path) as file:
        with told_as_damage(name, EXCEL, own), without_warnings():
            book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
            sheets = list(book.worksheets)
            titles = [str(sheet.title) for sheet in sheets]
            head = head_of(book.properties, name, EXCEL, sheets=titles)
        yield from assemble(head, _pieces(sheets, titles, name))


def _pieces(sheets: list[Any], titles: list[str], name: str) -> Iterator[Piece]:
    for number, (sheet, title) in enumerate(zip(sheets, titles, strict=True), 1):
        first = True
        for piece in grid_pieces(_rows(sheet, name), heading=title, page=number):
            if first and len(sheets) > 1:
                yield Piece(f"{title}\n\n", "heading", title, number)
            first = False
            yield piece
        yield Piece("\n")


def _rows(sheet: Any, name: str) -> Iterator[list[str]]:
    with told_as_damage(name, EXCEL):
        # Some programs write a used range that leaves out most of the rows.
        sheet.reset_dimensions()
        rows = sheet.iter_rows(values_only=True)
        while some := _some_rows(rows):
            yield from some


def _some_rows(rows: Iterator[tuple[object, ...]]) -> list[list[str]]:
    with without_warnings():
        return [[cell_text(value) for value in row] for row in islice(rows, _ROWS_AT_ONCE)]


def cell_text(value: object) -> str:
    """A cell's value as a person would type it: ISO dates, numbers without noise digits."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case float():
            rounded = f"{value:.{_EXACT_DIGITS}g}"
            return rounded if "e" in rounded else rounded.removesuffix(".0")
        case datetime():
            return value.date().isoformat() if value.time() == time() else value.isoformat(" ")
        case date() | time():
            return value.isoformat()
        case timedelta():
            return str(value)
    return str(value)
