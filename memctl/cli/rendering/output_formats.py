"""Output formats: a table for people, JSON, CSV or Arrow for programs.

Standard output carries data alone.  Nothing here knows what the rows mean.
"""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeVar

from msgspec import Struct

from memctl.cli.rendering.terminal_text import format_moment, json_text, one_line
from memctl.errors import UsageError
from memctl.formatting import escape_hidden
from memctl.plain_values import arrow_batches, plain_rows
from memctl.plain_values import to_plain as to_plain

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from rich.console import Console
    from rich.text import Text

T = TypeVar("T")
Format = Literal["table", "json", "ndjson", "csv", "arrow"]
_TEXTS = frozenset(
    {
        "entities", "inbox", "last_error", "missing", "origin", "problem", "reason", "source",
        "summary", "text", "title", "topics", "value",
    }
)  # fmt: skip
_UNLIMITED_WIDTH = 100_000
_GAP = 3
_NARROWEST = 8
_READABLE = 40
"""A wrapped text in a narrower column goes below its row instead."""


class Column(Struct, frozen=True):
    """A column of the table view: which key it shows, under which header, and how."""

    key: str
    header: str = ""
    show: Callable[[Any], str] | None = None
    right: bool = False
    wrap: bool = False

    @property
    def title(self) -> str:
        """The column's header."""
        return self.header or self.key

    @property
    def is_text(self) -> bool:
        """Whether it may be cut on a narrow terminal: ids, dates and numbers may not."""
        return self.wrap or self.key in _TEXTS


def resolve_format(output: Format | None) -> Format:
    """Return the format asked for; by default a table on a terminal and NDJSON in a pipe."""
    return output or ("table" if sys.stdout.isatty() else "ndjson")


def emit(
    source: object,
    columns: Sequence[Column],
    output: Format | None,
    record: type[Struct] | None = None,
    leading: Sequence[str] = (),
) -> None:
    """Write rows to standard output.

    Args:
        source: Records or mappings, or anything with the Arrow stream protocol.
        columns: What the table view shows; every other format has every key.
        output: The format, or None for the default.
        record: What each row is, which tells the columns of Arrow.
        leading: Columns that stand before its fields.
    """
    format_ = resolve_format(output)
    if format_ == "arrow":
        _write_arrow(source, record, leading)
    else:
        _WRITERS[format_](source, columns)


def emit_one(value: object, output: Format | None, show: Callable[[], None]) -> None:
    """Write one object: as JSON, as one row, or by ``show`` where a table is asked for."""
    format_ = resolve_format(output)
    if format_ == "table":
        show()
    elif format_ == "json":
        print_json(value)
    else:
        emit([value], (), format_)


def emit_each(values: Sequence[T], output: Format | None, show: Callable[[T], None]) -> None:
    """Write objects: as rows, or each by ``show`` where a table is asked for."""
    if resolve_format(output) != "table":
        emit(values, (), output)
        return
    for value in values:
        show(value)


def emit_facts(value: object, output: Format | None) -> None:
    """Write one object, as names with their values where a table is asked for."""
    emit_one(value, output, lambda: print_facts(console(), to_plain(value), indent=0))


def emit_if_asked(value: object, output: Format | None) -> None:
    """Write what was made or changed as ``emit_facts`` does, if a format is named."""
    if output is not None:
        emit_facts(value, output)


def with_kb_column(columns: Sequence[Column], knowledge_bases: int) -> list[Column]:
    """Return the columns of a listing, with the knowledge base in front if there are several."""
    return [Column("kb", "KB"), *columns] if knowledge_bases > 1 else list(columns)


# --- formats -------------------------------------------------------------------------------------


def print_json(value: object) -> None:
    """Write one JSON document, indented."""
    _line(json_text(to_plain(value), indent=2))


def print_line(value: object) -> None:
    """Write one JSON document on one line."""
    _line(json_text(to_plain(value)))


def print_text(text: str) -> None:
    """Write text that came from a source; on a terminal it is made safe first."""
    _line(escape_hidden(text) if sys.stdout.isatty() else text)


def print_piece(text: str) -> None:
    """Write part of a line at once, made safe for a terminal."""
    sys.stdout.write(escape_hidden(text))
    sys.stdout.flush()


def print_error(message: str, hint: str, width: int = 0) -> None:
    """Write an error and its hint, if there is one, to standard error, each on one line."""
    sys.stderr.write(f"error: {one_line(message, width)}\n")
    if hint:
        sys.stderr.write(f"hint: {one_line(hint, width)}\n")


def _line(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def terminal_file(escape: Callable[[str], str]) -> BinaryIO:
    """Return standard output as a binary file for text, which is escaped first."""
    return io.BufferedWriter(_Terminal(escape))


class _Terminal(io.RawIOBase):
    def __init__(self, escape: Callable[[str], str]) -> None:
        self._escape = escape
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        """Return True: it can be written to."""
        return True

    def write(self, content: ReadableBuffer) -> int:
        """Show some bytes of UTF-8; they may end within a character."""
        octets = bytes(content)
        sys.stdout.write(self._escape(self._decoder.decode(octets)))
        return len(octets)


def check_format(output: Format | None) -> None:
    """Refuse a format that standard output cannot take.

    Raises:
        UsageError: Arrow was asked for on a terminal.
    """
    if output == "arrow" and sys.stdout.isatty():
        raise UsageError(
            "Arrow is binary, which a terminal cannot show",
            "redirect it: ... -o arrow > rows.arrows, or use -o table",
        )


def _write_json(source: object, _: Sequence[Column]) -> None:
    _line(json_text(list(plain_rows(source)), indent=2))


def _write_ndjson(source: object, _: Sequence[Column]) -> None:
    for row in plain_rows(source):
        _line(json_text(row))


def _write_arrow(source: object, record: type[Struct] | None, leading: Sequence[str]) -> None:
    import pyarrow as pa

    reader = arrow_batches(source, json_text, record, leading)
    with pa.ipc.new_stream(sys.stdout.buffer, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
    sys.stdout.buffer.flush()


def _write_csv(source: object, columns: Sequence[Column]) -> None:
    import csv
    from itertools import chain

    rows = plain_rows(source)
    first = next(rows, None)
    names = list(first) if first is not None else _names(source, columns)
    writer = csv.DictWriter(
        sys.stdout, names, restval="", extrasaction="ignore", lineterminator="\n"
    )
    shown = escape_hidden if sys.stdout.isatty() else str
    writer.writerow({name: shown(name) for name in names})
    for row in chain([first] if first is not None else [], rows):
        cells = ((key, _cell(value)) for key, value in row.items())
        writer.writerow(
            {key: shown(cell) if isinstance(cell, str) else cell for key, cell in cells}
        )


def _names(source: object, columns: Sequence[Column]) -> list[str]:
    """Return the names of the columns if there are no rows."""
    schema = getattr(source, "schema", None)
    if schema is not None:
        return [name for name in schema.names if name != "vector"]
    return [column.key for column in columns]


def _cell(value: object) -> object:
    if isinstance(value, (list, dict)):
        return json_text(value)
    return str(value).lower() if isinstance(value, bool) else value


# --- for people ----------------------------------------------------------------------------------


def console(*, stderr: bool = False) -> Console:
    """Return a Rich console; in a pipe it neither colours nor wraps."""
    from rich.console import Console

    class SafeConsole(Console):
        """A console that escapes what could steer a terminal, and never exits by itself."""

        def print(self, *objects: Any, **options: Any) -> None:
            """Print objects, and texts made safe: Rich leaves escape sequences in them."""
            safe = (escape_hidden(each) if isinstance(each, str) else each for each in objects)
            super().print(*safe, **options)

        def on_broken_pipe(self) -> None:
            """Raise the error of a closed pipe, for which Rich exits with 1."""
            raise BrokenPipeError

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _UNLIMITED_WIDTH
    return SafeConsole(file=stream, width=width, highlight=False, markup=False, emoji=False)


def print_paragraph(out: Console, text: str, style: str = "", indent: int = 0) -> None:
    """Print text that is made safe; on a terminal its lines are wrapped and all are indented."""
    from rich.padding import Padding
    from rich.text import Text

    if out.is_terminal:
        out.print(Padding(Text(escape_hidden(text), style), (0, 0, 0, indent)))
    else:
        out.print(" " * indent + text, soft_wrap=True)


def print_marked(out: Console, marker: str, text: str, indent: int = 0) -> None:
    """Print a paragraph after its number; on a terminal its further lines begin below its text."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    if not out.is_terminal:
        print_paragraph(out, f"{marker} {text}", "cyan", indent)
        return
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True, style="cyan")
    grid.add_column(overflow="fold", style="cyan")
    grid.add_row(Text(marker), Text(escape_hidden(text)))
    out.print(Padding(grid, (0, 0, 0, indent)))


def print_facts(out: Console, values: Mapping[str, object], indent: int = 2) -> None:
    """Print names with their values, one below the other; empty values are left out."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    shown = {key: text for key, value in values.items() if (text := _fact(value))}
    width = max(map(len, shown), default=0) + 2
    if not out.is_terminal:
        for key, value in shown.items():
            out.print(" " * indent + key.ljust(width) + value, soft_wrap=True)
        return
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    for key, value in shown.items():
        grid.add_row(Text(key), Text(value))
    out.print(Padding(grid, (0, 0, 0, indent)))


def _fact(value: object) -> str:
    """Return a value as people read it: ``yes`` for True, an instant in local time."""
    if value is None:
        return ""
    if isinstance(value, (bool, list)):
        return _readable(value)
    if isinstance(value, Mapping):
        return ", ".join(
            f"{escape_hidden(key)} {_fact(item) or '-'}" for key, item in value.items()
        )
    return format_moment(value) if isinstance(value, datetime) else escape_hidden(str(value))


def _write_table(source: object, columns: Sequence[Column]) -> None:
    out, rows = console(), plain_rows(source)
    cells = [[_cell_text(column, row.get(column.key)) for column in columns] for row in rows]
    if not cells:
        return
    if not _fits(_widths(columns, cells, _UNLIMITED_WIDTH), out.width):
        columns, cells = _drop_empty(columns, cells)  # before texts are cut
    widths = _widths(columns, cells, out.width)
    below = _column_below(columns, cells, widths, out.width)
    if below is not None and out.is_terminal:
        _print_with_texts_below(out, columns, cells, below)
    elif _fits(widths, out.width):
        _print_table(out, columns, cells, widths)
    else:
        _print_records(out, columns, cells)


def _drop_empty(
    columns: Sequence[Column], cells: list[list[Text]]
) -> tuple[list[Column], list[list[Text]]]:
    """Return the columns that are not empty, and their cells."""
    shown = [at for at in range(len(columns)) if any(row[at].plain for row in cells)]
    return [columns[at] for at in shown], [[row[at] for at in shown] for row in cells]


def _print_table(
    out: Console, columns: Sequence[Column], cells: list[list[Text]], widths: list[int]
) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for column, width in zip(columns, widths, strict=True):
        table.add_column(
            column.title,
            justify="right" if column.right else "left",
            no_wrap=not column.wrap,
            overflow="fold" if column.wrap else "ellipsis",
            max_width=width,
        )
    for row_cells in cells:
        table.add_row(*row_cells)
    out.print(table)


def _column_below(
    columns: Sequence[Column], cells: list[list[Text]], widths: list[int], total: int
) -> int | None:
    """Return the place of the column whose texts go below the rows, the longest; mostly none."""
    whole = _widths(columns, cells, _UNLIMITED_WIDTH)
    texts = [at for at, column in enumerate(columns) if column.is_text]
    longest = max(texts, key=lambda at: whole[at], default=None)
    if longest is None:
        return None
    is_narrow = columns[longest].wrap and widths[longest] < min(_READABLE, whole[longest])
    if _fits(widths, total) and not is_narrow:
        return None
    others, rest = _without_column(columns, cells, longest)
    return longest if others and _fits(_widths(others, rest, total), total) else None


def _without_column(
    columns: Sequence[Column], cells: list[list[Text]], at: int
) -> tuple[list[Column], list[list[Text]]]:
    others = [*columns[:at], *columns[at + 1 :]]
    return others, [[*row[:at], *row[at + 1 :]] for row in cells]


def _print_with_texts_below(
    out: Console, columns: Sequence[Column], cells: list[list[Text]], below: int
) -> None:
    """Print a table without one column, whose texts each have lines of their own."""
    from rich.text import Text

    others, rest = _without_column(columns, cells, below)
    widths = _widths(others, rest, out.width)

    def line(texts: Sequence[Text]) -> Text:
        """Return a row, each text as wide as its column."""
        padded = [text.copy() for text in texts]
        for column, text, width in zip(others, padded, widths, strict=True):
            text.truncate(width, overflow="ellipsis")
            room = width - text.cell_len
            text.pad_left(room) if column.right else text.pad_right(room)
        joined = Text(" " * _GAP).join(padded)
        joined.rstrip()
        return joined

    out.print(line([Text(column.title, style="bold") for column in others]))
    for row, shown in zip(cells, rest, strict=True):
        out.print(line(shown))
        if row[below].plain:
            print_paragraph(out, row[below].plain, indent=2)


def _print_records(out: Console, columns: Sequence[Column], cells: list[list[Text]]) -> None:
    """Print each row as lines of its own, for a terminal too narrow to show ids in a table."""
    for at, row in enumerate(cells):
        if at:
            out.print()
        print_facts(
            out, {column.title: cell.plain for column, cell in zip(columns, row, strict=True)}, 0
        )


def _widths(columns: Sequence[Column], cells: list[list[Text]], total: int) -> list[int]:
    """Return the width of each column: its own where all fit, else the widest texts are cut."""
    widths = [
        max(len(column.title), *(row[at].cell_len for row in cells))
        for at, column in enumerate(columns)
    ]
    flexible = [at for at, column in enumerate(columns) if column.is_text]
    while flexible and not _fits(widths, total):
        widest = max(flexible, key=lambda at: widths[at])
        if widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
    return widths


def _fits(widths: Sequence[int], total: int) -> bool:
    return sum(widths) + _GAP * (len(widths) - 1) <= total


def _cell_text(column: Column, value: Any) -> Text:
    from rich.text import Text

    if value is None:
        return Text("")
    if column.show is not None:
        return Text(escape_hidden(column.show(value)))
    return Text(_readable(value))


def _readable(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, list):
        return one_line(", ".join(str(item) for item in value))
    return one_line(str(value))


def format_instant(value: str) -> str:
    """Show an instant of a row (ISO 8601) in local time."""
    return format_moment(datetime.fromisoformat(value))


_WRITERS: Mapping[Format, Callable[[object, Sequence[Column]], None]] = {
    "table": _write_table,
    "json": _write_json,
    "ndjson": _write_ndjson,
    "csv": _write_csv,
}
"""Every output format that needs no types; a new one is a name in ``Format`` and an entry here."""
