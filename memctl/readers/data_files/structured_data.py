"""JSON, JSON lines and YAML: objects as property lines, lists of objects as table rows."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from memctl.errors import UnreadableSource
from memctl.readers.data_files.nested_values import (
    MAX_DEPTH,
    are_turns,
    fields_of,
    is_records,
    is_too_deep,
    records_pieces,
    too_deep,
    turn_pieces,
    value_pieces,
)
from memctl.readers.data_files.table_rows import field_pieces
from memctl.readers.document_properties import DocumentProperties, document_properties
from memctl.readers.pieces import Piece, assemble, named_document
from memctl.readers.reader_errors import with_file_name
from memctl.readers.text_files.decoding import read_whole, text_blocks, text_lines
from memctl.records import SourceText

if TYPE_CHECKING:
    from yaml.events import Event


MAX_JSON_BYTES = 60 * 1024 * 1024
STREAMED_JSON_BYTES = 4 * 1024 * 1024
"""An array of objects bigger than this is read element by element."""

_MAX_LINE_LENGTH = 20_000_000
_PROBE = 20
"""Records that are looked at to tell a conversation from a table."""

KEPT_AS_TEXT = ", kept as text)"
"""How an entry of ``missing`` ends that is about lines kept as text."""
_NAMED_LINES = 10


class _NoRecord(Enum):
    """Why a line has no value."""

    NOT_JSON = "not JSON"
    TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"


# --- JSON -----------------------------------------------------------------------------------------


def read_json(path: Path, name: str) -> Iterator[SourceText]:
    """Read a JSON file: its properties as lines, its lists of objects as rows.

    A big array of objects is streamed.
    """
    try:
        if path.stat().st_size > STREAMED_JSON_BYTES and _starts_with_object_in_array(path):
            head = _head(name)
            yield from assemble(head, _record_pieces(array_elements(text_blocks(path))))
            return
        text = read_whole(path, name, MAX_JSON_BYTES)
        value = parse_json(text)
        yield from assemble(_head(name, value), value_pieces(value))
    except UnreadableSource as error:
        raise with_file_name(error, name) from None


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


def _head(name: str, value: Any = None) -> SourceText:
    """Title and date of the value's own properties, else those that the name says."""
    own = value if isinstance(value, dict) else {}
    facts = document_properties(
        {key: inner for key, inner in own.items() if not isinstance(inner, dict)}
    )
    return named_document(
        name,
        title=facts.title,
        authors=facts.authors,
        created_at=facts.created_at,
        tags=facts.tags,
    )


# --- JSON lines -----------------------------------------------------------------------------------


def read_jsonl(path: Path, name: str) -> Iterator[SourceText]:
    """Stream JSON lines: each object is a row with the number of its line.

    A line that is not JSON, or nested too deeply, is kept as text, and its record is listed as
    missing.

    Raises:
        UnreadableSource: There is no other line.
    """
    try:
        head = replace(_head(name), missing=_missing_records(path))
        values = _line_values(text_lines(path, _MAX_LINE_LENGTH))
        yield from assemble(head, _record_pieces(values))
    except UnreadableSource as error:
        raise with_file_name(error, name) from None


def _missing_records(path: Path) -> tuple[str, ...]:
    """Look through all lines for those without a value: the first part lists them all.

    Raises:
        UnreadableSource: No line has one.
    """
    bad, is_any_good = {reason: array("Q") for reason in _NoRecord}, False
    for number, line in enumerate(text_lines(path, _MAX_LINE_LENGTH), 1):
        value = _line_value(line)
        if not isinstance(value, _NoRecord):
            is_any_good = True
        elif line.strip():
            bad[value].append(number)
    found = {reason: numbers for reason, numbers in bad.items() if numbers}
    if found and not is_any_good:
        reason, numbers = min(found.items(), key=lambda item: item[1][0])
        _raise_for_line(path, numbers[0], reason)
    return tuple(_missing(reason, numbers) for reason, numbers in found.items())


def _missing(reason: _NoRecord, numbers: Sequence[int]) -> str:
    noun = "record of line" if len(numbers) == 1 else f"records of {len(numbers):,} lines:"
    named = ", ".join(map(str, numbers[:_NAMED_LINES]))
    more = " and more" if len(numbers) > _NAMED_LINES else ""
    return f"{noun} {named}{more} ({reason.value}{KEPT_AS_TEXT}"


def _raise_for_line(path: Path, number: int, reason: _NoRecord) -> None:
    """Raise the error that says where a line stops being JSON."""
    if reason is _NoRecord.TOO_DEEP:
        raise too_deep(f"line {number}")
    lines = text_lines(path, _MAX_LINE_LENGTH)
    try:
        parse_json(next(islice(lines, number - 1, None)))
    except UnreadableSource as error:
        message = error.message.replace("line 1 column", f"line {number} column")
        raise UnreadableSource(message, error.hint) from error


def _line_value(line: str) -> Any:
    """The value of a line, numbers as they are written, or why it has none."""
    try:
        value = json.loads(line, parse_int=str, parse_float=str)
    except RecursionError:
        return _NoRecord.TOO_DEEP
    except ValueError:
        return _NoRecord.NOT_JSON
    may_be_deep = line.count("{") + line.count("[") > MAX_DEPTH
    return _NoRecord.TOO_DEEP if may_be_deep and is_too_deep(value) else value


def _line_values(lines: Iterable[str]) -> Iterator[Any]:
    """The values of lines; the line itself where it has none, or null."""
    for line in lines:
        value = _line_value(line)
        yield line.strip() if isinstance(value, _NoRecord) or value is None else value


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
    text = read_whole(path, name, MAX_YAML_BYTES)
    try:
        documents = load_documents(text)
        head = _head(name, documents[0] if documents else None)
        yield from assemble(head, _documents_pieces(documents))
    except UnreadableSource as error:
        raise with_file_name(error, name) from None


def _documents_pieces(documents: list[Any]) -> Iterator[Piece]:
    if len(documents) > 1 and is_records(documents):
        return records_pieces(documents)
    return (piece for document in documents for piece in value_pieces(document))


_BLANK = re.compile(r"[ \t\n\r]*")

MAX_ELEMENT_LENGTH = 50_000_000
"""An element longer than this many characters is refused."""


def array_elements(blocks: Iterator[str]) -> Iterator[Any]:
    """Yield the elements of the array that the blocks of text make up; numbers as written.

    Raises:
        UnreadableSource: It is no JSON array (line and column are named), an element is too long
            or nested too deeply.
    """
    text = _Window(blocks)
    text.expect("[")
    if text.peek() == "]":
        return
    while True:
        yield text.value()
        if text.peek() == "]":
            break
        text.expect(",")
    text.expect("]")
    if text.peek():
        text.fail("Extra data")


class _Window:
    """The part of the text that is being read."""

    def __init__(self, blocks: Iterator[str]) -> None:
        self._blocks = blocks
        self._text = ""
        self._place = 0
        self._line = 1
        self._column = 1
        self._decoder = json.JSONDecoder(parse_int=str, parse_float=str)

    def peek(self) -> str:
        """The next character that is not blank, which is not consumed; ``""`` at the end."""
        while True:
            blank = _BLANK.match(self._text, self._place)
            self._place = blank.end() if blank else self._place
            if self._place < len(self._text):
                return self._text[self._place]
            if not self._more():
                return ""

    def expect(self, mark: str) -> None:
        """Consume the mark."""
        if self.peek() != mark:
            self.fail(f"Expecting '{mark}'")
        self._place += 1

    def value(self) -> Any:
        """Consume the next value, reading on until it is whole."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._place)
            except json.JSONDecodeError as error:
                if not self._more():
                    self.fail(error.msg, error.pos)
                continue
            except RecursionError:
                raise too_deep() from None
            if end == len(self._text) and not isinstance(value, dict | list) and self._more():
                continue
            self._place = end
            return value

    def _more(self) -> bool:
        """Drop what is consumed and read on, at least as much again as is at hand."""
        consumed = self._text[: self._place]
        lines = consumed.count("\n")
        self._column = (self._column if not lines else 1) + len(consumed) - consumed.rfind("\n") - 1
        self._line += lines
        rest = [self._text[self._place :]]
        length = wanted = len(rest[0])
        if length > MAX_ELEMENT_LENGTH:
            raise UnreadableSource(
                f"its element at line {self._line} is too long", "split it into smaller files"
            )
        grown = False
        while (not grown or length < 2 * wanted) and (block := next(self._blocks, "")):
            rest.append(block)
            length += len(block)
            grown = True
        self._text, self._place = "".join(rest), 0
        return grown

    def fail(self, problem: str, place: int | None = None) -> None:
        """Refuse the text because of what stands at ``place``."""
        before = self._text[: self._place if place is None else place]
        lines = before.count("\n")
        column = len(before) - before.rfind("\n") + (0 if lines else self._column - 1)
        raise UnreadableSource(
            f"it is not JSON: {problem} at line {self._line + lines} column {column}",
            "correct that place, or give the file the extension of what it is",
        )


MAX_YAML_BYTES = 20 * 1024 * 1024
FRONT_MATTER_CHARS = 64 * 1024
_MAX_VALUES = 2_000_000
_PLAIN_LINE = re.compile(
    r"^(?P<key>[\w-]+:[^\S\n]+)(?P<value>[^\s\"'\[{|>&!#][^\n]*)$(?!\n[^\S\n]+\S)", re.MULTILINE
)
"""A key with a value on its line that is not quoted, no list, and not continued below."""
_EXPANSION = 20
"""Aliases may make a document this many times as large as it is written."""


def load_documents(text: str) -> list[Any]:
    """The documents of a YAML text, every scalar as it is written: ``no``, ``10:30``, ``007``.

    Raises:
        UnreadableSource: It is no YAML (line and column are named), nested too deeply, refers to
            itself, or expands its aliases out of proportion.
    """
    import yaml

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        _check_size(yaml.parse(text, Loader=loader))
        return list(yaml.load_all(text, Loader=loader))
    except yaml.MarkedYAMLError as error:
        if "nesting depth" in (error.problem or ""):  # libyaml's own limit, since PyYAML 6.0.4
            raise too_deep() from None
        raise UnreadableSource(f"it is not YAML: {_place(error)}", "correct that place") from error
    except (yaml.YAMLError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise UnreadableSource(f"it is not YAML: {reason}", "correct that place") from error
    except RecursionError:
        raise too_deep() from None


def _place(error: Any) -> str:
    problem = error.problem or error.context or "cannot be parsed"
    mark = error.problem_mark or error.context_mark
    return f"{problem} at line {mark.line + 1} column {mark.column + 1}" if mark else problem


def _check_size(events: Iterator[Event]) -> None:
    """Add up how many values the text has once every alias is written out, and how deep it is."""
    from yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, NodeEvent

    sizes: dict[str, int] = {}
    open_: list[tuple[str | None, int]] = []
    written = expanded = 0
    for event in events:
        if isinstance(event, CollectionEndEvent):
            anchor, before = open_.pop()
            if anchor:
                sizes[anchor] = expanded - before
        elif isinstance(event, NodeEvent):
            written += 1
            expanded += _size(event, sizes) if isinstance(event, AliasEvent) else 1
            if isinstance(event, CollectionStartEvent):
                sizes.pop(event.anchor or "", None)
                open_.append((event.anchor, expanded - 1))
            elif event.anchor and not isinstance(event, AliasEvent):
                sizes[event.anchor] = 1
        if len(open_) > MAX_DEPTH:
            raise too_deep()
        if expanded > min(_MAX_VALUES, _EXPANSION * written + 1000):
            raise UnreadableSource(
                "its aliases expand to too many values", "write the values out, or split the file"
            )


def _size(alias: Any, sizes: dict[str, int]) -> int:
    if alias.anchor not in sizes:
        raise UnreadableSource(
            f"its alias *{alias.anchor} refers to itself or to nothing", "correct that alias"
        )
    return sizes[alias.anchor]


def load_front_matter(text: str) -> Any:
    """The value of YAML front matter; None where there is none.

    People write ``description: Review code: style, tests``, and the programs that such files are
    for read it. So if it is not valid YAML, everything after a key is taken literally.

    Raises:
        UnreadableSource: It cannot be read that way either; line and column are those of the text.
    """
    try:
        documents = load_documents(text)
    except UnreadableSource:
        quoted = _PLAIN_LINE.sub(_quoted_line, text)
        if quoted == text:
            raise
        try:
            documents = load_documents(quoted)
        except UnreadableSource:
            documents = load_documents(text)  # tells the place in what was written
    return documents[0] if documents else None


def _quoted_line(match: re.Match[str]) -> str:
    value = match["value"].rstrip().replace("'", "''")
    return f"{match['key']}'{value}'"


def front_matter_facts(text: str) -> DocumentProperties | None:
    """What YAML front matter says of its document; None where it is no mapping."""
    if len(text) > FRONT_MATTER_CHARS:
        return None
    try:
        values = load_front_matter(text)
    except UnreadableSource:
        return None
    return document_properties(values) if isinstance(values, dict) else None
