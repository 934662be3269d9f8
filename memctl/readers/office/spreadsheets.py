"""Excel sheets row by row; the file's other parts, charts and formulas, are not looked at."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from itertools import chain, islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from memctl.errors import OverLimit
from memctl.files import open_regular
from memctl.readers.data_files.table_rows import grid_pieces
from memctl.readers.document_properties import with_stated_day
from memctl.readers.file_names import display_name
from memctl.readers.office.office_files import EXCEL, check_archive, head_of, import_library
from memctl.readers.pieces import PART_CHARS, Piece, assemble
from memctl.readers.reader_errors import damage_as_unreadable, without_warnings
from memctl.records import SourceText

CELLS_OF_ANY, CELLS_PER_BYTE, COST_OF_VALUE = 20_000_000, 20, 10
"""Blank cells that any file may have, and that it may have for each byte besides.

A row, and a cell that is not blank, count as ten.
"""

ROW_MEMBERS = ("xl/worksheets/", "xl/sharedStrings.")
"""How the names begin of what the file has row by row."""

_EXACT_DIGITS = 12
_ROWS_AT_ONCE = 500
_PIECES_OF_HEAD = 5
"""Lines above the first table, which may say of which day it is."""


def read(path: Path, name: str) -> Iterator[SourceText]:
    """Yield sheets as tables, row by row, in parts; raises as for Word."""
    openpyxl = import_library("openpyxl", name, EXCEL)
    check_archive(path, name, EXCEL, ROW_MEMBERS)
    own = openpyxl.utils.exceptions.InvalidFileException
    # Before a file is open openpyxl (3.1) reads through all sheets, and the same one for every name
    # that it has, to learn a size that is not believed in any case.
    openpyxl.worksheet._read_only.ReadOnlyWorksheet._get_size = lambda _: None
    with open_regular(path) as file:
        with damage_as_unreadable(name, EXCEL, own), without_warnings():
            book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
            # No program keeps two sheets of a workbook in one part.
            sheets = list({sheet._worksheet_path: sheet for sheet in book.worksheets}.values())
            titles = [str(sheet.title) for sheet in sheets]
            head = head_of(book.properties, name, sheets=titles)
        rows = _Rows(name, CELLS_OF_ANY + CELLS_PER_BYTE * path.stat().st_size)
        pieces = _pieces(sheets, titles, rows)
        first = list(islice(pieces, _PIECES_OF_HEAD))
        yield from assemble(with_stated_day(head, first, path), chain(first, pieces))


def _pieces(sheets: list[Any], titles: list[str], rows: _Rows) -> Iterator[Piece]:
    for number, (sheet, title) in enumerate(zip(sheets, titles, strict=True), 1):
        first = True
        for piece in grid_pieces(rows.of(sheet), heading=title, page=number):
            if first and len(sheets) > 1:
                yield Piece(f"{title}\n\n", "heading", title, number)
            first = False
            yield piece
        yield Piece("\n")


class _Rows(Struct):
    """The rows of a file's sheets, which have no more cells all together than they may."""

    name: str
    left: int
    """Blank cells that there still may be."""

    def of(self, sheet: Any) -> Iterator[list[str]]:
        """Yield the rows of one sheet as text."""
        with damage_as_unreadable(self.name, EXCEL):
            rows = sheet.iter_rows(values_only=True)
            while some := self._some(rows):
                yield from some

    def _some(self, rows: Iterator[tuple[object, ...]]) -> list[list[str]]:
        with without_warnings():
            return [self._row(values) for values in islice(rows, _ROWS_AT_ONCE)]

    def _row(self, values: tuple[object, ...]) -> list[str]:
        row = ["" if value is None else cell_text(value) for value in values]
        self.left -= len(row) + COST_OF_VALUE * (1 + sum(map(bool, row)))
        if self.left < 0 or sum(map(len, row)) > PART_CHARS:
            raise OverLimit(
                f"{display_name(self.name)} has more in its cells than an Excel file of its size",
                "check where it comes from; if it is genuine, save it in smaller files",
            )
        return row


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
