"""Nested values, from JSON, YAML and front matter, become lines that read ``path: value``.

A list of objects becomes table rows; an object becomes property lines under its path; who spoke
and what was said becomes turns.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Any

from memctl.errors import UnreadableSource
from memctl.readers.data_files.table_rows import Field, field_pieces
from memctl.readers.document_properties import parse_timestamp
from memctl.readers.file_names import shorten
from memctl.readers.pieces import Piece, group_lines

MAX_DEPTH = 100
"""Values nested deeper than this are refused: no person wrote them."""

LINE_CHARS = 200
"""A list of scalars up to this long is one line; a longer string is a piece of its own."""

MAX_PATH_LENGTH = 160
"""A path is said with every value below it, so no more than this of its end is."""

_SPEAKER_KEYS = ("speaker", "role", "author", "sender", "from", "user", "name")
_WORDS_KEYS = ("content", "text", "message", "body", "utterance", "clean_text")
_WHEN_KEYS = ("timestamp", "time", "date", "created_at", "said_at", "datetime", "ts", "sent_at")


def too_deep(what: str = "it") -> UnreadableSource:
    """The one error for values nested beyond reason."""
    return UnreadableSource(
        f"{what} is nested deeper than {MAX_DEPTH} levels",
        "flatten it, or split it into smaller files",
    )


def is_too_deep(value: Any) -> bool:
    """Return whether the fields of a value are refused."""
    try:
        deque(fields_of(value), maxlen=0)
    except UnreadableSource:
        return True
    return False


def scalar_text(value: object) -> str:
    """A scalar as a person would write it; ``""`` for nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)


def is_scalar(value: object) -> bool:
    """Return whether it has no parts of its own."""
    return not isinstance(value, dict | list)


def fields_of(value: Any, path: str = "", depth: int = 0) -> Iterator[Field]:
    """Every scalar in the value with its path, such as ``address.city``, blank ones left out."""
    if depth > MAX_DEPTH:
        raise too_deep()
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from fields_of(inner, _join(path, key), depth + 1)
    elif isinstance(value, list):
        if all(is_scalar(item) for item in value):
            if text := ", ".join(filter(None, map(scalar_text, value))):
                yield path or "value", text
            return
        for place, inner in enumerate(value):
            yield from fields_of(inner, _end_of(f"{path}[{place}]"), depth + 1)
    elif (text := scalar_text(value)).strip():
        yield path or "value", text


def _join(path: str, key: object) -> str:
    key = _name(key)
    return _end_of(f"{path}.{key}" if path else key)


def _name(key: object) -> str:
    return shorten(scalar_text(key), MAX_PATH_LENGTH)


def _end_of(path: str) -> str:
    return path if len(path) <= MAX_PATH_LENGTH else f"…{path[1 - MAX_PATH_LENGTH :]}"


def value_pieces(value: Any, path: tuple[str, ...] = ()) -> Iterator[Piece]:
    """Pieces for any value, streaming through it in the order it is written in."""
    if len(path) > MAX_DEPTH:
        raise too_deep()
    if isinstance(value, dict):
        yield from _object_pieces(value, path)
    elif isinstance(value, list) and is_records(value):
        yield from records_pieces(value, " > ".join(path))
    elif isinstance(value, list) and not all(map(is_scalar, value)):
        yield from _list_pieces(value, path)
    else:
        yield from group_lines(_lines(path[-1] if path else "value", value), " > ".join(path[:-1]))


def _list_pieces(values: list[Any], path: tuple[str, ...]) -> Iterator[Piece]:
    """Neighbours without parts of their own, such as the points of a line, are rows together."""
    for is_row, run in groupby(enumerate(values), key=lambda item: _is_simple(item[1])):
        if is_row:
            yield from group_lines(
                chain.from_iterable(_lines(f"[{n}]", v) for n, v in run), " > ".join(path)
            )
            continue
        for place, inner in run:
            yield from value_pieces(inner, (*path, f"[{place}]"))


def _object_pieces(value: dict[Any, Any], path: tuple[str, ...]) -> Iterator[Piece]:
    lines: list[str] = []
    for key, inner in value.items():
        name = _name(key)
        if _is_simple(inner):
            lines += _lines(name, inner)
            continue
        yield from group_lines(lines, " > ".join(path))
        lines = []
        yield from value_pieces(inner, (*path, name))
    yield from group_lines(lines, " > ".join(path))


def _is_simple(value: Any) -> bool:
    return is_scalar(value) or (isinstance(value, list) and all(is_scalar(item) for item in value))


def _lines(name: str, value: Any) -> list[str]:
    if is_scalar(value):
        text = scalar_text(value).strip()
        return [f"{name}: {text}\n"] if text else []
    items = [text for item in value if (text := scalar_text(item).strip())]
    joined = ", ".join(items)
    if len(joined) <= LINE_CHARS and "\n" not in joined:
        return [f"{name}: {joined}\n"] if items else []
    return [f"{name}:\n", *(f"- {item}\n" for item in items)]


# --- lists of objects -----------------------------------------------------------------------------


def is_records(values: Sequence[Any]) -> bool:
    """Return whether a list holds nothing but objects."""
    return bool(values) and all(isinstance(value, dict) for value in values)


def records_pieces(records: Sequence[Mapping[str, Any]], heading: str = "") -> Iterator[Piece]:
    """Table rows for objects, or turns where they are a conversation's."""
    if are_turns(records):
        return turn_pieces(records, heading)
    rows = (list(fields_of(record)) for record in records)
    return field_pieces(rows, heading=heading)


def are_turns(records: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the objects say who spoke and what was said, and little else."""
    return len(records) >= 2 and all(_speaker_and_words(record) for record in records)


def _speaker_and_words(record: Mapping[str, Any]) -> tuple[str, str] | None:
    speaker = next((k for k in _SPEAKER_KEYS if isinstance(record.get(k), str)), None)
    words = next((k for k in _WORDS_KEYS if isinstance(record.get(k), str)), None)
    if speaker is None or words is None or len(record) > 8:
        return None
    name, said = record[speaker].strip(), record[words].strip()
    return (name, said) if name and said and len(name) <= 60 else None


def turn_pieces(records: Sequence[Mapping[str, Any]], heading: str = "") -> Iterator[Piece]:
    """One turn for each object that :func:`are_turns` was asked about."""
    for record in records:
        if spoken := _speaker_and_words(record):
            speaker, said = spoken
            name = re.sub(r"\s+", " ", speaker)
            when = next((parse_timestamp(record[key]) for key in _WHEN_KEYS if key in record), None)
            text = f"{name}: {said}\n\n"
            yield Piece(text, "turn", heading, speaker=name, said_at=when)
