"""Rows of a table become lines that a person can search: ``Name: Ann; City: Rome``.

Every row is one line, so the row of any place in a segment is the segment's ``row`` plus the
number of line ends before that place.  A row too long for one line stands alone as a block of
lines.  Rows are counted from 1, the header and blank rows left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from msgspec.structs import replace

from memctl.errors import EmptySource
from memctl.readers.data_files.separated_values import (
    SEPARATORS,
    Dialect,
    column_names,
    guess_dialect,
    is_value,
    looks_like_header,
    separated_rows,
)
from memctl.readers.pieces import PART_CHARS, Piece, assemble, named_document
from memctl.readers.text_files.decoding import text_blocks, text_lines
from memctl.readers.text_files.headed_text import prose_pieces
from memctl.records import SourceText

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
    heading: str = "",
    page: int | None = None,
) -> Iterator[Piece]:
    """Table pieces, one for each group of short rows or each long row, for ``pieces.assemble``.

    Args:
        header: The columns' names; blank and repeated ones get names of their own.
        rows: The cells as text; rows may be shorter or longer than the header.
        heading: What the table stands under, such as the sheet's name.
        page: The page or sheet number, from 1.
    """
    names = column_names(header)
    fields = (named_fields(names, row) for row in rows)
    return field_pieces(fields, heading=heading, page=page)


# --- CSV and TSV ----------------------------------------------------------------------------------


def read_tsv(path: Path, name: str) -> Iterator[SourceText]:
    """Read a table whose values are separated by tabs."""
    return read_csv(path, name, ("\t", ",", ";", "|"))


def read_csv(path: Path, name: str, separators: Sequence[str] = SEPARATORS) -> Iterator[SourceText]:
    """Read a table whose values are separated by commas, semicolons, tabs or bars.

    Raises:
        EmptySource: There is nothing but a row that names columns.
    """
    sample = next(text_blocks(path, 64 * 1024), "")
    head = named_document(name)
    dialect = _named_dialect(sample) or guess_dialect(sample, separators=separators)
    if dialect is None:
        prose = chain.from_iterable(prose_pieces(block) for block in text_blocks(path))
        return assemble(head, prose)
    rows = separated_rows(text_lines(path), dialect.delimiter)
    first = list(islice(rows, 2))
    if len(first) == 1 and looks_like_header(first[0]):
        raise EmptySource(
            f"{name} has column names and no rows", "put rows below them and try again"
        )
    preamble, header, rest = _split_header(chain(first, rows), dialect)
    head = replace(head, metadata={"columns": header, "delimiter": dialect.delimiter})
    return assemble(head, chain(preamble, row_pieces(header, rest)), PART_CHARS)


def separated_pieces(text: str) -> Iterator[Piece]:
    """Pieces of a table that is in memory: rows where a separator is found, else prose."""
    dialect = _named_dialect(text) or guess_dialect(text[: 64 * 1024])
    if dialect is None:
        return prose_pieces(text)
    lines = (f"{line}\n" for line in text.split("\n"))
    preamble, header, rows = _split_header(separated_rows(lines, dialect.delimiter), dialect)
    return chain(preamble, row_pieces(header, rows))


def _named_dialect(sample: str) -> Dialect | None:
    """The separator that a first line like ``sep=;`` names."""
    first = sample.partition("\n")[0].strip().lower()
    if len(first) == 5 and first.startswith("sep="):
        return Dialect(first[4], sample.split("\n", 2)[1].count(first[4]) + 1)
    return None


def _split_header(
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


Row = list[str]
_SAMPLE = 20


def grid_pieces(
    rows: Iterable[Sequence[str]], *, heading: str = "", page: int | None = None
) -> Iterator[Piece]:
    """Pieces for the rows of one table; only the first twenty rows are held at once.

    Lines above the table become prose, a table of one column or one row too, and one of labels
    that end with a colon is read across.
    """
    filled = (row for row in map(_trim, rows) if row)
    sample = list(islice(filled, _SAMPLE))
    lead = min((_blanks(row) for row in sample), default=0)
    width = _usual_width(sample, lead)
    above = next((n for n, row in enumerate(sample) if _count(row) >= min(width, 2)), 0)
    yield from _prose(sample[:above], heading, page)
    body = [row[lead:] for row in sample[above:]]
    rest = (row[lead:] for row in filled)
    if width < 2 or (len(body) < 2 and len(sample) < _SAMPLE):
        yield from _prose(chain(body, rest), heading, page)
    elif _is_labelled(body):
        yield from labelled_pieces(chain(body, rest), heading=heading, page=page)
    elif looks_like_header(body[0]):
        yield from row_pieces(body[0], chain(body[1:], rest), heading=heading, page=page)
    else:
        yield from row_pieces([], chain(body, rest), heading=heading, page=page)


def _trim(row: Sequence[str]) -> Row:
    """The row without blank cells at its end; empty when there are only such."""
    last = next((n for n in range(len(row), 0, -1) if row[n - 1].strip()), 0)
    return list(row[:last])


def _blanks(row: Row) -> int:
    return next(n for n, cell in enumerate(row) if cell.strip())


def _count(row: Row) -> int:
    return sum(bool(cell.strip()) for cell in row)


def _usual_width(rows: Sequence[Row], lead: int) -> int:
    """How many columns the table has: as many as its fuller rows reach to."""
    widths = Counter(len(row) - lead for row in rows)
    return max((width for width, count in widths.items() if 3 * count >= len(rows)), default=2)


def _is_labelled(rows: Sequence[Row]) -> bool:
    return all(len(row) == 2 and row[0].rstrip().endswith(":") for row in rows)


def has_labels(rows: Sequence[Row]) -> bool:
    """Return whether the first of two columns has labels for the second.

    It does if all of its cells end with a colon, or if they are names and the values beside them
    are of several kinds, unlike a column of a table: ``Serial | AC3-77120``, ``Bought | 9 March``.
    """
    if len(rows) < 2 or any(len(row) != 2 for row in rows):
        return False
    kinds = {is_value(row[1].strip()) for row in rows[1:]}
    return _is_labelled(rows) or (len(kinds) == 2 and looks_like_header([row[0] for row in rows]))


def labelled_pieces(
    rows: Iterable[Sequence[str]], *, heading: str = "", page: int | None = None
) -> Iterator[Piece]:
    """Table pieces for rows of which the first cell names the others: ``Serial: AC3-77120``."""
    fields = (
        [(row[0].rstrip(": "), " ".join(row[1:]))] if len(row) > 1 else named_fields((), row)
        for row in rows
    )
    return field_pieces(fields, heading=heading, page=page)


def _prose(rows: Iterable[Row], heading: str, page: int | None) -> Iterator[Piece]:
    for row in rows:
        text = "\n".join(cell.strip() for cell in row if cell.strip())
        yield Piece(text + "\n\n", heading=heading, page=page)
