"""Tables that stand in a document: which row names the columns, and what is no table at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from memctl.readers.pieces import Piece
from memctl.readers.separated import looks_like_header
from memctl.readers.tables import field_pieces, row_pieces

Row = list[str]
_SAMPLE = 20


def grid_pieces(
    rows: Iterable[Sequence[str]], *, heading: str = "", page: int | None = None
) -> Iterator[Piece]:
    """Pieces for the rows of one table; only the first twenty rows are held at once.

    Lines above the table become prose, a table of one column or one row too, and one of labels
    that end with a colon is read across.
    """
    filled = (row for row in map(_trimmed, rows) if row)
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
        fields = ([(row[0].rstrip(": "), " ".join(row[1:]))] for row in chain(body, rest))
        yield from field_pieces(fields, heading=heading, page=page)
    elif looks_like_header(body[0]):
        yield from row_pieces(body[0], chain(body[1:], rest), heading=heading, page=page)
    else:
        yield from row_pieces([], chain(body, rest), heading=heading, page=page)


def _trimmed(row: Sequence[str]) -> Row:
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


def _prose(rows: Iterable[Row], heading: str, page: int | None) -> Iterator[Piece]:
    for row in rows:
        text = "\n".join(cell.strip() for cell in row if cell.strip())
        yield Piece(text + "\n\n", heading=heading, page=page)
