"""JSON, JSON lines and YAML: objects as property lines, lists of objects as table rows."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from memctl.errors import UnreadableSource
from memctl.readers.decoding import read_whole, text_blocks, text_lines
from memctl.readers.facts import facts_of
from memctl.readers.flatten import (
    are_turns,
    fields_of,
    is_records,
    records_pieces,
    too_deep,
    turn_pieces,
    value_pieces,
)
from memctl.readers.json_stream import array_elements
from memctl.readers.limits import named
from memctl.readers.names import date_from_name, title_from_name
from memctl.readers.pieces import Piece, assemble
from memctl.readers.tables import field_pieces
from memctl.readers.yaml_text import LARGEST as LARGEST_YAML
from memctl.readers.yaml_text import load_documents
from memctl.records import SourceText

LARGEST_JSON = 60 * 1024 * 1024
STREAMED_JSON = 4 * 1024 * 1024
"""An array of objects bigger than this is read element by element."""

_LONGEST_LINE = 20_000_000
_PROBE = 20
"""So many records are looked at to tell a conversation from a table."""

KEPT_AS_TEXT = "(not JSON, kept as text)"
"""How what is missing ends where it is of lines that are no JSON, however often they are read."""
_NAMED_LINES = 10
_NOT_JSON = object()


# --- JSON -----------------------------------------------------------------------------------------


def read_json(path: Path, name: str) -> Iterator[SourceText]:
    """Read a JSON file: its properties as lines, its lists of objects as rows.

    A big array of objects is streamed.
    """
    try:
        if path.stat().st_size > STREAMED_JSON and _starts_with_object_in_array(path):
            head = _head(name, "application/json", "json/1")
            yield from assemble(head, _record_pieces(array_elements(text_blocks(path))))
            return
        text = read_whole(path, name, LARGEST_JSON)
        value = parse_json(text)
        yield from assemble(_head(name, "application/json", "json/1", value), _json_pieces(value))
    except UnreadableSource as error:
        raise named(error, name) from None


def _starts_with_object_in_array(path: Path) -> bool:
    return "".join(next(text_blocks(path, 1000), "").split())[:2] == "[{"


def parse_json(text: str) -> Any:
    """The value of a JSON text, numbers as they are written.

    Raises:
        UnreadableSource: It is no JSON (line and column are named) or nested too deeply.
    """
    try:
        return json.loads(text, parse_int=str, parse_float=str)
    except json.JSONDecodeError as error:
        raise UnreadableSource(
            f"it is not JSON: {error.msg} at line {error.lineno} column {error.colno}",
            "correct that place, or give the file the extension of what it is",
        ) from error
    except ValueError as error:
        raise UnreadableSource(f"it is not JSON that can be read: {error}") from error
    except RecursionError:
        raise too_deep() from None


def _head(name: str, media_type: str, reader: str, value: Any = None) -> SourceText:
    """Title and date from the name, better ones from the value's own properties."""
    head = SourceText(
        "", media_type, reader, title=title_from_name(name), created_at=date_from_name(name)
    )
    if not isinstance(value, dict):
        return head
    facts = facts_of({key: inner for key, inner in value.items() if not isinstance(inner, dict)})
    return replace(
        head,
        title=facts.title or head.title,
        authors=facts.authors,
        created_at=facts.created_at or head.created_at,
        tags=facts.tags,
    )


def _json_pieces(value: Any) -> Iterator[Piece]:
    return _notebook_pieces(value) if _is_notebook(value) else value_pieces(value)


def _is_notebook(value: Any) -> bool:
    return isinstance(value, dict) and "nbformat" in value and is_records(value.get("cells") or ())


def _notebook_pieces(value: Any) -> Iterator[Piece]:
    """The source of a notebook's cells; what they printed is left out."""
    for cell in value["cells"]:
        source = cell.get("source", "")
        lines = source if isinstance(source, list) else [source]
        text = "".join(line for line in lines if isinstance(line, str)).rstrip()
        yield Piece(f"{text}\n\n", "code" if cell.get("cell_type") == "code" else "prose")


# --- JSON lines -----------------------------------------------------------------------------------


def read_jsonl(path: Path, name: str) -> Iterator[SourceText]:
    """Read JSON lines, streaming: each object is a row whose number is that of its line.

    A line that is no JSON is kept as it is, and its record is told of as missing.

    Raises:
        UnreadableSource: No line is JSON, or a line is nested too deeply.
    """
    try:
        head = replace(
            _head(name, "application/x-ndjson", "jsonl/2"), missing=_missing_records(path)
        )
        values = _line_values(text_lines(path, _LONGEST_LINE))
        yield from assemble(head, _record_pieces(values))
    except UnreadableSource as error:
        raise named(error, name) from None


def _missing_records(path: Path) -> tuple[str, ...]:
    """Look through all lines for those that are no JSON, since the first part tells of them all.

    Raises:
        UnreadableSource: No line is JSON.
    """
    bad, is_any_json = array("Q"), False
    for number, line in enumerate(text_lines(path, _LONGEST_LINE), 1):
        if _line_value(line) is not _NOT_JSON:
            is_any_json = True
        elif line.strip():
            bad.append(number)
    if not bad:
        return ()
    if not is_any_json:
        _refuse(path, bad[0])
    noun = "record of line" if len(bad) == 1 else f"records of {len(bad):,} lines:"
    numbers = ", ".join(map(str, bad[:_NAMED_LINES]))
    more = " and more" if len(bad) > _NAMED_LINES else ""
    return (f"{noun} {numbers}{more} {KEPT_AS_TEXT}",)


def _refuse(path: Path, number: int) -> None:
    """Say where a line stops being JSON."""
    lines = text_lines(path, _LONGEST_LINE)
    try:
        parse_json(next(islice(lines, number - 1, None)))
    except UnreadableSource as error:
        message = error.message.replace("line 1 column", f"line {number} column")
        raise UnreadableSource(message, error.hint) from error


def _line_value(line: str) -> Any:
    """The value of a line, numbers as they are written; ``_NOT_JSON`` where it has none."""
    try:
        return json.loads(line, parse_int=str, parse_float=str)
    except RecursionError:
        raise too_deep() from None
    except ValueError:
        return _NOT_JSON


def _line_values(lines: Iterable[str]) -> Iterator[Any]:
    """The values of lines; the line itself where that is no JSON, or null."""
    for line in lines:
        value = _line_value(line)
        yield line.strip() if value is _NOT_JSON or value is None else value


def _fields(value: Any) -> list[tuple[str, str]]:
    if isinstance(value, dict | list):
        return list(fields_of(value))
    return [("line", str(value))] if str(value) else []


def _record_pieces(values: Iterator[Any]) -> Iterator[Piece]:
    """Rows, or turns where the first values are a conversation's; a value's number is its row."""
    probe = list(islice(values, _PROBE))
    first = [value for value in probe if not isinstance(value, str)]
    if is_records(first) and are_turns(first):
        return _turns_or_rows(chain(probe, values))
    return field_pieces(map(_fields, chain(probe, values)))


def _turns_or_rows(values: Iterable[Any]) -> Iterator[Piece]:
    for row, value in enumerate(values, 1):
        if isinstance(value, dict) and (pieces := list(turn_pieces([value]))):
            yield from (replace(piece, row=row) for piece in pieces)
        else:
            yield from field_pieces([_fields(value)], first_row=row)


# --- YAML -----------------------------------------------------------------------------------------


def read_yaml(path: Path, name: str) -> Iterator[SourceText]:
    """Read a YAML file: its properties as lines, its lists of mappings as rows."""
    text = read_whole(path, name, LARGEST_YAML)
    try:
        documents = load_documents(text)
        head = _head(name, "application/yaml", "yaml/1", documents[0] if documents else None)
        yield from assemble(head, _documents_pieces(documents))
    except UnreadableSource as error:
        raise named(error, name) from None


def _documents_pieces(documents: list[Any]) -> Iterator[Piece]:
    if len(documents) > 1 and is_records(documents):
        return records_pieces(documents)
    return (piece for document in documents for piece in value_pieces(document))
