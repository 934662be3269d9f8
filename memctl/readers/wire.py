"""A document's text as plain data: JSON that a process apart writes, of which nothing is believed.

What is read back is checked field by field, for whoever wrote it may have been taken over by the
file that it was reading.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, astuple
from datetime import UTC, datetime
from typing import Any, TypeVar, get_args

from memctl.readers.clips import Clip
from memctl.records import Segment, SegmentKind, SourceText

T = TypeVar("T")

_KINDS = frozenset(get_args(SegmentKind))


class Garbled(ValueError):
    """What came over the pipe is not what a reader says."""


def line_of(message: Mapping[str, Any]) -> bytes:
    """A message as one line."""
    text = json.dumps(message, ensure_ascii=False, default=_instant)
    return text.encode("utf-8", "surrogatepass") + b"\n"


def message_of(line: bytes) -> dict[str, Any]:
    """The message in a line.

    Raises:
        Garbled: It is none.
    """
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Garbled("it is not JSON") from error
    if not isinstance(message, dict):
        raise Garbled("it is no message")
    return message


def plain(text: SourceText) -> dict[str, Any]:
    """A document's text as JSON knows it; its media type and reader the other side knows."""
    return {
        "text": text.text,
        "segments": [astuple(segment) for segment in text.segments],
        "title": text.title,
        "authors": text.authors,
        "created_at": text.created_at,
        "tags": text.tags,
        "links": text.links,
        "metadata": dict(text.metadata),
        "missing": text.missing,
        "part": text.part,
    }


def source_text(value: object, media_type: str, reader: str) -> SourceText:
    """The document's text that :func:`plain` was made of.

    Raises:
        Garbled: It was not.
    """
    fields = _of(value, dict)
    text = _text(fields.get("text"))
    try:
        return SourceText(
            text=text,
            media_type=media_type,
            reader=reader,
            segments=tuple(_segment(row, len(text)) for row in _of(fields["segments"], list)),
            title=_text(fields["title"]),
            authors=_texts(fields["authors"]),
            created_at=_optional(fields["created_at"], _moment),
            tags=_texts(fields["tags"]),
            links=_texts(fields["links"]),
            metadata=_checked(_of(fields["metadata"], dict)),
            missing=_texts(fields["missing"]),
            part=_count(fields["part"]),
        )
    except (KeyError, RecursionError) as error:
        raise Garbled("it is no text of a document") from error


def plain_clip(clip: Clip) -> dict[str, Any]:
    """A piece of a file as JSON knows it."""
    content = base64.b64encode(clip.content).decode("ascii")
    return {**asdict(clip), "content": content}


def clip_of(value: object) -> Clip:
    """The piece of a file that :func:`plain_clip` was made of.

    Raises:
        Garbled: It was not.
    """
    fields = _of(value, dict)
    try:
        return Clip(
            content=base64.b64decode(_text(fields["content"]), validate=True),
            name=_text(fields["name"]),
            start=_seconds(fields["start"]),
            seconds=_seconds(fields["seconds"]),
            page=_optional(fields["page"], _count),
        )
    except (KeyError, binascii.Error) as error:
        raise Garbled("it is no piece of a file") from error


def _instant(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value)


def _segment(value: object, length: int) -> Segment:
    row = _of(value, list)
    if len(row) != len(Segment.__slots__):
        raise Garbled("a segment has another number of fields")
    start, end, kind, heading, page, number, time_start, time_end, speaker, said_at = row
    if not 0 <= _count(start) <= _count(end) <= length or _text(kind) not in _KINDS:
        raise Garbled("a segment does not lie in its text")
    return Segment(
        start,
        end,
        kind,
        _text(heading),
        _optional(page, _count),
        _optional(number, _count),
        _optional(time_start, _seconds),
        _optional(time_end, _seconds),
        _optional(speaker, _text),
        _optional(said_at, _moment),
    )


def _of(value: object, kind: type[T]) -> T:
    if type(value) is not kind:  # True is no number here
        raise Garbled(f"there is no {kind.__name__} where one should be")
    return value


def _optional(value: object, check: Callable[[object], T]) -> T | None:
    return None if value is None else check(value)


def _text(value: object) -> str:
    text = _of(value, str)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Garbled("a text cannot be stored") from error
    return text


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(_text, _of(value, list)))


def _count(value: object) -> int:
    number = _of(value, int)
    if not 0 <= number < 1 << 31:
        raise Garbled("a number is out of range")
    return number


def _seconds(value: object) -> float:
    number = float(_count(value)) if type(value) is int else _of(value, float)
    if not math.isfinite(number):
        raise Garbled("a time is none")
    return number


def _moment(value: object) -> datetime:
    try:
        moment = datetime.fromisoformat(_text(value))
        moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise Garbled("a date is none") from error
    if moment.tzinfo is None:
        raise Garbled("a date has no zone")
    return moment


def _checked(value: Any) -> Any:
    """A value of JSON whose texts can be stored, and whose numbers can be counted with."""
    if isinstance(value, dict):
        return {_text(key): _checked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_checked(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise Garbled("a number is none")
    return _text(value) if isinstance(value, str) else value
