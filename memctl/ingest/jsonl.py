"""JSON lines become sources, one a line, without ever holding more than a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, BinaryIO

from memctl.errors import BadRecord
from memctl.ingest.sources import Labels, Source, SourceOrFailure
from memctl.records import FileOutcome
from memctl.redaction import distinct_without_secrets
from memctl.store.unicode import storable

LINE_LIMIT = 64 << 20
"""A longer line, in bytes, is not taken for a record."""

_HINT = 'each line is a JSON object with at least "text", as in {"text": "..."}'
_OPTIONAL = ("id", "namespace", "title", "created_at", "session_id", "turn", "speaker", "type")
_KNOWN = frozenset(("text", *_OPTIONAL, "tags", "metadata", "source"))
_TYPES = ("passage", "turn", "query")
_MILLISECONDS_FROM = 1e11


def from_jsonl(
    stream: BinaryIO, name: str, labels: Labels | None = None
) -> Iterator[SourceOrFailure]:
    """The records of ``stream``, in order; a bad line is a failed outcome with its number.

    Fields that are not known are kept in the record's metadata.  Blank lines are skipped.
    """
    labels = labels or Labels()
    for number, line in enumerate(_lines(stream), start=1):
        if line is None:
            yield _bad(name, number, f"longer than {LINE_LIMIT >> 20} MiB")
            continue
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line.strip():
            continue
        try:
            yield _record(line, number, name, labels)
        except BadRecord as error:
            yield _bad(name, number, error.message)


def _lines(stream: BinaryIO) -> Iterator[bytes | None]:
    """Lines without end; None stands for one that is too long."""
    while line := stream.readline(LINE_LIMIT):
        if len(line) < LINE_LIMIT or line.endswith(b"\n"):
            yield line
            continue
        while (rest := stream.readline(LINE_LIMIT)) and not rest.endswith(b"\n"):
            pass
        yield None


def _bad(name: str, number: int, reason: str) -> FileOutcome:
    return FileOutcome(
        source=name,
        outcome="failed",
        reason=f"{name}, line {number}: {reason}",
        hint=_HINT,
        line=number,
        error=BadRecord.__name__,
    )


def _record(line: bytes, number: int, name: str, labels: Labels) -> Source:
    fields = _fields(line)
    tags = (*labels.tags, *_tags(fields.get("tags")))
    return Source(
        source=_text(fields, "source") or labels.source or name,
        text=_body(fields),
        external_id=_external_id(fields, labels),
        namespace=_text(fields, "namespace") or labels.namespace,
        title=_text(fields, "title"),
        created_at=_instant(fields.get("created_at")),
        session_id=_label(fields, "session_id") or labels.session_id,
        turn=_turn(fields.get("turn")),
        speaker=_text(fields, "speaker") or None,
        type=_type(fields),
        tags=tuple(dict.fromkeys(tags)) if tags else (),
        metadata=_metadata(fields),
        line=number,
    )


def _fields(line: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except UnicodeDecodeError as error:
        raise BadRecord("not UTF-8") from error
    except (json.JSONDecodeError, RecursionError) as error:
        raise BadRecord(f"not JSON ({error})") from error
    except ValueError as error:
        raise BadRecord(f"a number that is too long ({error})") from error
    if not isinstance(fields, dict):
        raise BadRecord("not a JSON object")
    return fields


def _body(fields: dict[str, Any]) -> str:
    if "text" not in fields:
        raise BadRecord('no "text"')
    text = _text(fields, "text")
    if not text.strip():
        raise BadRecord('"text" is empty')
    return text


def _text(fields: dict[str, Any], key: str) -> str:
    value = fields.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadRecord(f'"{key}" is not a string')
    return storable(value)


def _label(fields: dict[str, Any], key: str) -> str | None:
    """A string, or a whole number that stands for one, as ids often do."""
    value = fields.get(key)
    if value is None or value == "":
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _text(fields, key)


def _external_id(fields: dict[str, Any], labels: Labels) -> str | None:
    given = _label(fields, "id")
    return distinct_without_secrets(given) if given and labels.redacts else given


def _turn(value: object) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
        raise BadRecord('"turn" is not a whole number from 0')
    return value


def _type(fields: dict[str, Any]) -> str:
    value = _text(fields, "type")
    if value and value not in _TYPES:
        raise BadRecord(f'"type" is none of {", ".join(_TYPES)}')
    return value


def _tags(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (storable(value),) if value else ()
    if isinstance(value, list) and all(isinstance(tag, str) for tag in value):
        return tuple(storable(tag) for tag in value if tag)
    raise BadRecord('"tags" is not a list of strings')


def _metadata(fields: dict[str, Any]) -> dict[str, Any]:
    stated = fields.get("metadata")
    if stated is not None and not isinstance(stated, dict):
        raise BadRecord('"metadata" is not an object')
    if fields.keys() <= _KNOWN:
        return stated or {}
    unknown = {key: value for key, value in fields.items() if key not in _KNOWN}
    return {**unknown, **(stated or {})}


def _instant(value: object) -> datetime | None:
    if value is None or value == "":
        return None
    try:
        if isinstance(value, str):
            return _utc(datetime.fromisoformat(value))
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            seconds = value / 1000 if abs(value) >= _MILLISECONDS_FROM else value
            return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise BadRecord(f'"created_at" is no date ({error})') from error
    raise BadRecord('"created_at" is neither an ISO 8601 date nor seconds since 1970')


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
