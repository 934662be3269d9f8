"""SQLite databases of other programs: their tables row by row, never written to or waited for."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from memctl.errors import UnreadableSource
from memctl.files import open_regular
from memctl.readers.data_files.table_rows import row_pieces
from memctl.readers.file_names import display_name
from memctl.readers.pieces import Piece, assemble, named_document
from memctl.readers.reader_errors import damage_as_unreadable
from memctl.records import SourceText

MAX_ROWS = 10_000
"""Rows of one table."""

MAX_TABLES = 200
_MAX_CELL = 10_000
_TABLES = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
    " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
)


def read(path: Path, name: str) -> Iterator[SourceText]:
    """Yield the rows of each table under its name; virtual tables and views are passed over.

    Raises:
        UnreadableSource: A program has it open with changes that are not in it yet; or it is
            damaged or encrypted.
    """
    with open_regular(path):
        _check_not_in_use(path, name)
    kind = "an SQLite database that is not encrypted"
    with damage_as_unreadable(name, kind, sqlite3.Error):
        uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as database:
            database.execute("PRAGMA trusted_schema = OFF")
            database.text_factory = lambda text: text.decode("utf-8", "replace")
            tables = [str(row[0]) for row in database.execute(_TABLES)]
            left_out: list[str] = []
            pieces = [
                piece
                for table in tables[:MAX_TABLES]
                for piece in _table_pieces(database, table, left_out)
            ]
    if len(tables) > MAX_TABLES:
        left_out.append(f"tables beyond the first {MAX_TABLES:,}")
    metadata = {"tables": tables[:MAX_TABLES]}
    head = named_document(name, metadata=metadata, missing=tuple(left_out))
    yield from assemble(head, pieces)


def _check_not_in_use(path: Path, name: str) -> None:
    """Refuse a database with a log or a journal: without them it may be half of a change."""
    for suffix in ("-wal", "-journal"):
        beside = path.with_name(path.name + suffix)
        if beside.is_file() and beside.stat().st_size:
            raise UnreadableSource(
                f"{display_name(name)} is in use: changes to it are still in {beside.name}",
                "close the program that has it open and try again",
            )


def _table_pieces(database: sqlite3.Connection, table: str, left_out: list[str]) -> Iterator[Piece]:
    quoted = table.replace('"', '""')
    rows = database.execute(f'SELECT * FROM "{quoted}" LIMIT {MAX_ROWS + 1}')  # an identifier
    header = [str(column[0]) for column in rows.description]
    cells = [[_cell(value) for value in row] for row in rows]
    if len(cells) > MAX_ROWS:
        left_out.append(f"rows of {table} beyond the first {MAX_ROWS:,}")
    if cells:
        yield Piece(f"{table}\n\n", "heading", table)
        yield from row_pieces(header, cells[:MAX_ROWS], heading=table)
        yield Piece("\n")


def _cell(value: object) -> str:
    """A value as text; none of bytes, which are pictures and the like."""
    return "" if value is None or isinstance(value, bytes) else str(value)[:_MAX_CELL]
