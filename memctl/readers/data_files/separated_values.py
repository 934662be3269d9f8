"""Tables of separated values: which separator, whether there is a header, and the rows."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from msgspec import Struct

SEPARATORS = (",", ";", "\t", "|")
_SAMPLE_ROWS = 60
_MAX_NAME_LENGTH = 80
_NUMBER = re.compile(r"[-+(]?[$€£¥]?\s?\d[\d.,' ]*(?:[eE][-+]?\d+)?\s?[%€$)]?$")
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ].*)?$|\d{1,2}:\d\d")


class Dialect(Struct, frozen=True):
    """How the cells of a table are separated."""

    delimiter: str
    columns: int
    """How many cells most rows have."""


def guess_dialect(
    sample: str, *, strict: bool = False, separators: Sequence[str] = SEPARATORS
) -> Dialect | None:
    """The separator under which the rows of the sample have the same number of cells.

    With ``strict`` only what cannot well be prose with commas in it counts.
    """
    lines = sample.split("\n")
    lines = lines[:-1] if len(lines) > _SAMPLE_ROWS else lines
    samples = {mark: _sample_rows(lines, mark) for mark in separators}
    candidates = [(_score(rows), -n, mark) for n, (mark, rows) in enumerate(samples.items())]
    (share, columns), _, mark = max(candidates)
    rows = samples[mark]
    if not strict and share < 0.6:
        return _ragged_dialect(samples)
    if strict and (share < 0.9 or len(rows) < 3 or not _is_tabular(lines, rows, mark, columns)):
        return None
    return Dialect(mark, columns)


def _ragged_dialect(samples: Mapping[str, Sequence[Sequence[str]]]) -> Dialect | None:
    """The separator that stands in the first row and in most others, however ragged they are."""
    for mark, rows in samples.items():
        if rows and len(rows[0]) > 1 and sum(len(row) > 1 for row in rows) > 0.5 * len(rows):
            return Dialect(mark, len(rows[0]))
    return None


def _score(rows: Sequence[Sequence[str]]) -> tuple[float, int]:
    """Share of the rows that have the usual number of cells, and that number."""
    counts = Counter(map(len, rows))
    columns, hits = max(counts.items(), key=lambda item: (item[1], item[0]), default=(0, 0))
    return (round(hits / len(rows), 2) if columns > 1 else 0.0), columns


def _sample_rows(lines: Sequence[str], mark: str) -> list[list[str]]:
    return list(islice(separated_rows((f"{line}\n" for line in lines), mark), _SAMPLE_ROWS))


def _is_tabular(
    lines: Sequence[str], rows: Sequence[Sequence[str]], mark: str, columns: int
) -> bool:
    """Return whether the cells are as short as cells are, and the rows too even to be prose."""
    cells = [cell.strip() for row in rows for cell in row]
    if not cells or sum(map(len, cells)) > 40 * len(cells):
        return False
    even = all(len(row) == columns for row in rows)
    typed = sum(is_value(cell) for cell in cells)
    marks = sum(line.count(mark) for line in lines)
    spaced = sum(line.count(f"{mark} ") for line in lines)
    return even and (typed >= 0.2 * len(cells) or mark == "\t" or spaced < 0.2 * marks)


def is_value(cell: str) -> bool:
    """Return whether a cell holds a number, a date or a time rather than words."""
    return bool(_NUMBER.match(cell) or _DATE.match(cell))


def looks_like_header(row: Sequence[str], below: Sequence[Sequence[str]] = ()) -> bool:
    """Return whether the first row is a header: short words, no two of them equal.

    Two may be the same where a column of numbers or dates below shows that it is no row of data.
    """
    cells = [cell.strip() for cell in row]
    named = [cell for cell in cells if cell]
    if len(named) < max(1, 0.5 * len(cells)):
        return False
    if any(is_value(cell) or len(cell) > _MAX_NAME_LENGTH for cell in named):
        return False
    return len({cell.casefold() for cell in named}) == len(named) or _has_values(below)


def _has_values(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether some column of the rows holds nothing but numbers or dates."""
    width = max(map(len, rows), default=0)
    columns = ([r[n].strip() for r in rows if n < len(r) and r[n].strip()] for n in range(width))
    return any(column and all(map(is_value, column)) for column in columns)


def column_names(header: Sequence[str], count: int = 0) -> list[str]:
    """Unique names for the columns: those of the header, or made-up ones where it has none."""
    seen: Counter[str] = Counter()
    names = []
    for place in range(max(len(header), count)):
        name = " ".join(header[place].split()) if place < len(header) else ""
        name = name or f"column {place + 1}"
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} {seen[name]}")
    return names


class _RecordingLines:
    """Lines for a csv reader that remembers those that the row at hand is made of."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self.lines: list[str] = []

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.lines.append(line)
        return line


def separated_rows(lines: Iterable[str], mark: str) -> Iterator[list[str]]:
    """Yield the rows, blank ones left out; quotes may hold separators and line ends.

    A quote that is never closed would swallow the rest of the file: at its end, or as soon as a
    cell outgrows the csv module's limit (131,072 characters), those lines are read as rows
    without quoting.
    """
    source = _RecordingLines(iter(lines))
    reader = csv.reader(source, delimiter=mark, skipinitialspace=True)
    while True:
        source.lines.clear()
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:
            yield from (_unquote(line, mark) for line in source.lines if line.strip())
            reader = csv.reader(source, delimiter=mark, skipinitialspace=True)
            continue
        if _is_unclosed(source.lines):
            yield from (_unquote(line, mark) for line in source.lines if line.strip())
        elif any(cell.strip() for cell in row):
            yield row


def _is_unclosed(lines: Sequence[str]) -> bool:
    """Return whether a row runs over these lines only because a quote in them is never closed."""
    return len(lines) > 1 and sum(line.count('"') for line in lines) % 2 == 1


def _unquote(line: str, mark: str) -> list[str]:
    return [cell.strip().strip('"') for cell in line.rstrip("\n").split(mark)]
