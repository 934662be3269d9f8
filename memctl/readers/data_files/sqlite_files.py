"""SQLite databases of other programs: their tables row by row, never written to or waited for.

What stands only in a log beside a database is read with it, from a copy of both.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from memctl.errors import UnreadableSource
from memctl.files import open_regular
from memctl.readers.data_files.table_rows import row_pieces
from memctl.readers.file_kinds import database_logs
from memctl.readers.file_names import display_name
from memctl.readers.pieces import Piece, assemble, named_document
from memctl.readers.reader_errors import damage_as_unreadable
from memctl.records import SourceText

MAX_ROWS = 10_000
"""Rows of one table."""

MAX_TABLES = 200
MAX_COPIED = 1 << 30
"""Bytes of a database and its logs that are copied to be read."""
_MAX_CELL = 10_000
_TABLES = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
    " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
)


def read(path: Path, name: str) -> Iterator[SourceText]:
    """Yield the rows of each table under its name; virtual tables and views are passed over.

    Raises:
        UnreadableSource: A program writes to it; or it is damaged or encrypted.
    """
    kind = "an SQLite database that is not encrypted"
    with (
        _with_logs(path, name) as uri,
        damage_as_unreadable(name, kind, sqlite3.Error),
        closing(sqlite3.connect(uri, uri=True)) as database,
    ):
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


@contextmanager
def _with_logs(path: Path, name: str) -> Iterator[str]:
    """Give the URI of a database that has what its logs have: of itself, or of a copy."""
    with open_regular(path):
        logs = database_logs(path)
    if not logs:
        yield f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        return
    files = [path, *logs]
    before = [_signature(each) for each in files]
    if sum(size for size, _ in before) > MAX_COPIED:
        raise UnreadableSource(
            f"{display_name(name)} has changes that are still in {logs[0].name}, and is too big to "
            "be copied with them",
            "close the program that has it open and try again",
        )
    with TemporaryDirectory(prefix="memctl-") as folder:
        copy = Path(folder) / "copy.db"
        for each in files:
            end = each.name.removeprefix(path.name)
            with open_regular(each) as source, copy.with_name(f"{copy.name}{end}").open("xb") as to:
                shutil.copyfileobj(source, to, 1 << 20)
        if [_signature(each) for each in files] != before or database_logs(path) != logs:
            raise UnreadableSource(
                f"{display_name(name)} is in use: it changed while it was being copied",
                "close the program that has it open and try again",
            )
        yield f"{copy.as_uri()}?mode=rw"


def _signature(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except FileNotFoundError:  # the program has ended
        return -1, -1
    return status.st_size, status.st_mtime_ns


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
