"""Rows of a table become lines that a person can search: ``Name: Ann; City: Rome``.

Every row is one line, so the row of any place in a segment is the segment's ``row`` plus the
number of line ends before that place.  A row too long for one line stands alone as a block of
lines.  Rows are counted from 1, the header and blank rows left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

from memctl.readers.decoding import text_blocks, text_lines
from memctl.readers.names import date_from_name, title_from_name
from memctl.readers.pieces import PART_CHARS, Piece, assemble, storable
from memctl.readers.separated import (
    Dialect,
    column_names,
    guess_dialect,
    looks_like_header,
    separated_rows,
)
from memctl.readers.text import prose_pieces
from memctl.records import Segment, SourceText

GROUP_CHARS = 400
"""Short rows are grouped up to this many characters: one memory for a few rows, not for each."""

LINE_CHARS = 600
"""A row longer than this is written with one value a line, its own line breaks kept."""

_PREAMBLE_ROWS = 20

Field = tuple[str, str]


# --- rows as text ---------------------------------------------------------------------------------


def named_fields(names: Sequence[str], row: Sequence[str]) -> list[Field]:
    """The row's values under their columns' names, blank ones left out, surplus ones numbered."""
    fields = []
    for place, value in enumerate(row):
        if value := value.strip():
            name = names[place] if place < len(names) else f"column {place + 1}"
            fields.append((name, value))
    return fields


def row_text(fields: Iterable[Field]) -> str:
    """One row as ``Header: value; Header: value``, a line; a long one as a block of lines."""
    fields = list(fields)
    line = "; ".join(f"{name}: {' '.join(value.split())}" for name, value in fields)
    if len(line) <= LINE_CHARS:
        return f"{line}\n" if line else ""
    return "".join(f"{name}: {value.strip()}\n" for name, value in fields) + "\n"


def field_pieces(
    rows: Iterable[Sequence[Field]],
    *,
    first_row: int = 1,
    heading: str = "",
    page: int | None = None,
) -> Iterator[Piece]:
    """Table pieces for rows whose fields carry their names; short neighbours share a piece."""
    group, begin = "", first_row
    for number, fields in enumerate(rows, first_row):
        text = row_text(fields)
        if not text:
            continue
        consecutive = number == begin + group.count("\n")
        if group and (len(group) + len(text) > GROUP_CHARS or not consecutive):
            yield Piece(group, "table", heading, page, row=begin)
            group = ""
        begin = begin if group else number
        group += text
    if group:
        yield Piece(group, "table", heading, page, row=begin)


def row_pieces(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    first_row: int = 1,
    heading: str = "",
    page: int | None = None,
) -> Iterator[Piece]:
    """Table pieces, one for each group of short rows or each long row, for ``pieces.assemble``.

    Args:
        header: The columns' names; blank and repeated ones are told apart.
        rows: The cells as text; rows may be shorter or longer than the header.
        first_row: The number of the first of these rows.
        heading: What the table stands under, such as the sheet's name.
        page: The page or sheet number, from 1.
    """
    names = column_names(header)
    fields = (named_fields(names, row) for row in rows)
    return field_pieces(fields, first_row=first_row, heading=heading, page=page)


def rows_to_segments(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    start: int = 0,
    first_row: int = 1,
    heading: str = "",
    page: int | None = None,
) -> tuple[str, tuple[Segment, ...]]:
    """The same as :func:`row_pieces` as text and segments, for text that begins at ``start``."""
    texts, segments = [], []
    for piece in row_pieces(header, rows, first_row=first_row, heading=heading, page=page):
        text = storable(piece.text)
        end = start + len(text.rstrip())
        segments.append(Segment(start, end, "table", heading, page, piece.row))
        texts.append(text)
        start += len(text)
    return "".join(texts), tuple(segments)


# --- CSV and TSV ----------------------------------------------------------------------------------


def read_csv(path: Path, name: str) -> Iterator[SourceText]:
    """Read a table whose values are separated by commas, semicolons, tabs or bars."""
    return _read(path, name, "csv/1", "text/csv")


def read_tsv(path: Path, name: str) -> Iterator[SourceText]:
    """Read a table whose values are separated by tabs."""
    return _read(path, name, "tsv/1", "text/tab-separated-values", ("\t", ",", ";", "|"))


def _read(
    path: Path,
    name: str,
    reader: str,
    media_type: str,
    separators: Sequence[str] = (",", ";", "\t", "|"),
) -> Iterator[SourceText]:
    sample = next(text_blocks(path, 64 * 1024), "")
    head = SourceText(
        "", media_type, reader, title=title_from_name(name), created_at=date_from_name(name)
    )
    dialect = _named_dialect(sample) or guess_dialect(sample, separators=separators)
    if dialect is None:
        prose = chain.from_iterable(prose_pieces(block) for block in text_blocks(path))
        return assemble(head, prose)
    rows = separated_rows(text_lines(path), dialect.delimiter)
    return _table_parts(head, rows, dialect)


def separated_pieces(text: str) -> Iterator[Piece]:
    """Pieces of a table that is in memory: rows where a separator is found, else prose."""
    dialect = _named_dialect(text) or guess_dialect(text[: 64 * 1024])
    if dialect is None:
        return prose_pieces(text)
    lines = (f"{line}\n" for line in text.split("\n"))
    preamble, header, rows = _opened(separated_rows(lines, dialect.delimiter), dialect)
    return chain(preamble, row_pieces(header, rows))


def _named_dialect(sample: str) -> Dialect | None:
    """The separator that a first line like ``sep=;`` names."""
    first = sample.partition("\n")[0].strip().lower()
    if len(first) == 5 and first.startswith("sep="):
        return Dialect(first[4], sample.split("\n", 2)[1].count(first[4]) + 1)
    return None


def _table_parts(
    head: SourceText, rows: Iterator[list[str]], dialect: Dialect
) -> Iterator[SourceText]:
    preamble, header, rest = _opened(rows, dialect)
    head = replace(head, metadata={"columns": header, "delimiter": dialect.delimiter})
    return assemble(head, chain(preamble, row_pieces(header, rest)), PART_CHARS)


def _opened(
    rows: Iterator[list[str]], dialect: Dialect
) -> tuple[list[Piece], list[str], Iterator[list[str]]]:
    """What stands above the table, the columns' names, and the data rows."""
    first = list(islice(rows, _PREAMBLE_ROWS))
    if first and first[0][0].lower().startswith("sep="):
        first = first[1:]
    skipped = next((n for n, row in enumerate(first) if len(row) >= min(dialect.columns, 2)), 0)
    lines = [" ".join(cell.strip() for cell in row) for row in first[:skipped]]
    preamble = [Piece("\n".join(lines) + "\n\n")] if lines else []
    body = first[skipped:]
    if body and looks_like_header(body[0], body[1:]) and (len(body) > 1 or skipped):
        return preamble, column_names(body[0], dialect.columns), chain(body[1:], rows)
    return preamble, column_names([], dialect.columns), chain(body, rows)
