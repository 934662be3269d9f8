"""What a caller gives to be remembered, in any of four ways, becomes one run of sources."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Self, cast, get_args

from msgspec import Struct

from memctl.config import WebSettings
from memctl.errors import BadRecord, MemctlError
from memctl.ids import storable
from memctl.ingest.discovery.sources import (
    NO_LABELS,
    STDIN_NAME,
    Labels,
    Source,
    SourceOrFailure,
    buffer_stdin,
    clear_stdin_buffers,
    from_copy,
    from_paths,
    from_text,
    is_url,
    plain_url,
    stdin_buffer_folder,
)
from memctl.literals import DocType
from memctl.plain_values import MOST_LEVELS, is_deep
from memctl.records import FileOutcome, SkipListener
from memctl.redaction import redact_name


class Inputs(Struct, frozen=True):
    """Files and folders, a text, a stream of one document, JSON lines, URLs: any of them."""

    paths: tuple[Path, ...] = ()
    text: str | None = None
    stream: BinaryIO | None = None
    jsonl: Path | str | BinaryIO | None = None
    urls: tuple[str, ...] = ()
    stream_name: str = ""
    """The file name by which a stream is judged; empty where it has none."""

    @classmethod
    def of(
        cls,
        paths: Path | str | Iterable[Path | str],
        text: str | None = None,
        stream: BinaryIO | None = None,
        jsonl: Path | str | BinaryIO | None = None,
        stream_name: str = "",
    ) -> Self:
        """Return inputs of which the paths may be one or many, and pages of the web too."""
        given = [paths] if isinstance(paths, (str, Path)) else list(paths)
        urls = tuple(each for each in given if isinstance(each, str) and is_url(each))
        files = tuple(Path(each) for each in given if each not in urls)
        return cls(files, text, stream, jsonl, urls, stream_name)

    @property
    def has_names(self) -> bool:
        """Whether some have a name, under which something may be known already."""
        return bool(self.paths or self.urls)


@contextmanager
def open_inputs(
    given: Inputs,
    labels: Labels,
    folder: Path,
    left_out: SkipListener | None = None,
    web: WebSettings | None = None,
) -> Iterator[tuple[Iterable[SourceOrFailure], int | None]]:
    """Return the sources, and how many there are if that is known beforehand.

    Args:
        given: Where they are.
        labels: What is said of all of them.
        folder: Of the knowledge base that they are for, where a stream is kept meanwhile.
        left_out: Called with everything in a folder that is skipped, and why.
        web: What fetching a page may take.

    Raises:
        OSError: A file of JSON lines cannot be opened.
    """
    place = stdin_buffer_folder(folder)
    clear_stdin_buffers(place)
    with ExitStack() as stack:
        few = list(from_paths(given.paths, labels, left_out))
        web, urls = web or WebSettings(), map(plain_url, given.urls)
        few.extend(_fetch(url, labels, place, web, stack) for url in urls)
        if given.text is not None:
            few.append(from_text(given.text, labels))
        if given.stream is not None:
            path = stack.enter_context(buffer_stdin(given.stream, place))
            name = given.stream_name or STDIN_NAME
            few.append(from_copy(path, name, name, labels))
        lines, total = (
            ((), 0) if given.jsonl is None else _jsonl_sources(given.jsonl, labels, stack)
        )
        yield chain(few, lines), None if total is None else len(few) + total


def _fetch(
    url: str, labels: Labels, place: Path, web: WebSettings, stack: ExitStack
) -> SourceOrFailure:
    """Fetch a page into a temporary file, which is as old as the page."""
    from memctl.ingest.discovery.downloads import download

    try:
        page = download(url, web)
    except MemctlError as error:
        kind = type(error).__name__
        return FileOutcome(
            url, "failed", reason=error.message, hint=error.hint, error=kind, path=url
        )
    path = stack.enter_context(buffer_stdin(io.BytesIO(page.content), place))
    if page.modified is not None:
        with suppress(OSError, ValueError, OverflowError):  # a date that no file can have
            os.utime(path, (page.modified.timestamp(),) * 2)
    return from_copy(path, url, page.name, labels, url=url)


def _jsonl_sources(
    given: Path | str | BinaryIO, labels: Labels, stack: ExitStack
) -> tuple[Iterable[SourceOrFailure], int | None]:
    """Return the sources of JSON lines, and how many there are if that is known."""
    if isinstance(given, (str, Path)):
        total = count_lines(Path(given))
        return from_jsonl(stack.enter_context(Path(given).open("rb")), str(given), labels), total
    name = getattr(given, "name", None)
    is_file = isinstance(name, str) and not name.startswith("<")
    return from_jsonl(given, str(name) if is_file else "stdin", labels), count_lines(given)


_BLOCK = 1 << 20


def count_lines(given: Path | BinaryIO) -> int | None:
    """Return the number of lines, blank ones included; None where reading them would use them up.

    A stream is left where it stood.
    """
    if isinstance(given, Path):
        with given.open("rb") as file:
            return count_lines(file)
    if not given.seekable():
        return None
    start, lines, last = given.tell(), 0, b"\n"
    while block := given.read(_BLOCK):
        lines += block.count(b"\n")
        last = block[-1:]
    given.seek(start)
    return lines + (last != b"\n")


LINE_LIMIT = 64 << 20
"""A longer line, in bytes, is not taken for a record."""

_HINT = 'each line is a JSON object with at least "text", as in {"text": "..."}'
_KNOWN_FIELDS = frozenset(
    ("text", "id", "namespace", "title", "created_at", "session_id", "turn", "speaker", "type",
     "doc_type", "tags", "metadata", "source")
)  # fmt: skip
_TYPES = ("passage", "turn", "query")
_MILLISECONDS_FROM = 1e11


def from_jsonl(
    stream: BinaryIO, name: str, labels: Labels = NO_LABELS
) -> Iterator[SourceOrFailure]:
    """The records of ``stream``, in order; a bad line is a failed outcome with its number.

    Fields that are not known are kept in the record's metadata.  Blank lines are skipped.
    """
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
        created_at=parse_instant(fields.get("created_at")),
        session_id=_label(fields, "session_id") or labels.session_id,
        turn=_turn(fields.get("turn")),
        speaker=_text(fields, "speaker") or None,
        type=_type(fields),
        tags=tuple(dict.fromkeys(tags)) if tags else (),
        metadata={**labels.metadata, **_metadata(fields)},
        doc_type=_doc_type(fields) or labels.doc_type,
        agent_id=labels.agent_id,
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
    return redact_name(given) if given and labels.redacts else given


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


def _doc_type(fields: dict[str, Any]) -> DocType | None:
    value = _text(fields, "doc_type")
    for known in get_args(DocType):
        if value == known:
            return cast(DocType, value)
    if value:
        raise BadRecord(f'"doc_type" is none of {", ".join(get_args(DocType))}')
    return None


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
    if is_deep(fields):
        raise BadRecord(f"its metadata is nested deeper than {MOST_LEVELS} levels")
    if fields.keys() <= _KNOWN_FIELDS:
        return stated or {}
    unknown = {key: value for key, value in fields.items() if key not in _KNOWN_FIELDS}
    return {**unknown, **(stated or {})}


def parse_instant(value: object, key: str = "created_at") -> datetime | None:
    """Return the instant that a value of JSON says; None where it says none.

    Raises:
        BadRecord: It is neither an ISO 8601 date nor seconds or milliseconds since 1970.
    """
    if value is None or value == "":
        return None
    try:
        if isinstance(value, str):
            return _utc(datetime.fromisoformat(value))
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            seconds = value / 1000 if abs(value) >= _MILLISECONDS_FROM else value
            return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise BadRecord(f'"{key}" is no date ({error})') from error
    raise BadRecord(f'"{key}" is neither an ISO 8601 date nor seconds since 1970')


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
