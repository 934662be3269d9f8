"""The isolated process that reads risky formats: it limits itself and reads one file at a time.

Requests and answers are lines of JSON on standard input and output; knowledge bases are unknown
here.  The process exits when its parent is gone, after a while without requests, and when it has
grown.  The receiver checks an answer field by field, for the process may have been taken
over by the file that it was reading.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, TypeVar, get_args

from msgspec.structs import asdict, astuple

from memctl.errors import UnreadableSource
from memctl.readers.file_kinds import FILE_KINDS, kind_of_media_type
from memctl.readers.media.clips import Clip, make_clips
from memctl.records import Segment, SegmentKind, SourceText, Unit

OVER_MEMORY = 97
"""The exit code of a process that took more memory than it may."""

_IDLE_SECONDS = 60.0
_WATCH_SECONDS = 0.2
_MAX_READINGS = 500
_GROWN = 0.25
"""A process that holds this share of its memory limit is replaced before the next file."""

Answer = dict[str, Any]


def serve() -> None:
    """Answer questions on standard input until it ends; the main function of the process."""
    parent = os.getppid()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not get among the answers
    questions = os.fdopen(0, "rb", buffering=0, closefd=False)
    terms = questions.readline()
    if not terms:
        return
    most_bytes = int(decode_message(terms)["memory"])
    _limit_memory(most_bytes)
    threading.Thread(target=_watch, args=(parent, most_bytes), daemon=True).start()
    _answer_all(questions, answers, most_bytes)


def _answer_all(questions: IO[bytes], answers: IO[bytes], most_bytes: int) -> None:
    reading: Iterator[Answer] | None = None
    readings = 0
    while question := _next_question(questions, is_idle=reading is None):
        if "next" not in question:
            reading, readings = _reading(question), readings + 1
        answer = _next_answer(reading or iter(()))
        if not answer.keys() & {"text", "clip"}:
            reading = None
        answers.write(encode_message(answer))
        answers.flush()
        grown = readings >= _MAX_READINGS or resident_bytes() > _GROWN * most_bytes
        if reading is None and (grown or "over" in answer):
            return


def _next_question(questions: IO[bytes], *, is_idle: bool) -> Answer | None:
    """The next request; None when there are no more."""
    if is_idle and os.name == "posix":
        ready, _, _ = select.select([questions], [], [], _IDLE_SECONDS)
        if not ready:
            return None
    line = questions.readline()
    return decode_message(line) if line else None


def _reading(question: Answer) -> Iterator[Answer]:
    """Read a file or make clips of it; nothing is done before the first part is requested."""
    _limit_processor(int(question["processor_seconds"]))
    path, name = Path(question["path"]), question["name"]
    if "cut" in question:
        for clip in make_clips(question["cut"], path, name, question["is"], question["seconds"]):
            yield {"clip": clip_to_json(clip)}
        return
    for text in kind_of_media_type(question["read"]).load()(path, name):
        yield {"text": text_to_json(text)}


def _next_answer(reading: Iterator[Answer]) -> Answer:
    """Return the next part of a document, its end, or why it cannot be read."""
    try:
        return next(reading, {"end": True})
    except MemoryError:
        return {"over": "memory"}
    except UnreadableSource as error:
        if isinstance(error.__cause__, MemoryError):
            return {"over": "memory"}
        return {"refused": [type(error).__name__, error.message, error.hint]}
    except OSError as error:
        return {"system": [str(error.errno or 0), error.strerror or str(error)]}
    except Exception as error:  # noqa: BLE001 - a reader's own bug must not stop the other files
        return {"fault": [type(error).__name__, str(error), traceback.format_exc()]}


# --- limits --------------------------------------------------------------------------------------


def _limit_memory(most_bytes: int) -> None:
    """Limit the memory, and leave no core dump on the disk after a crash."""
    with suppress(ImportError):  # Windows has no such limits
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for kind in (resource.RLIMIT_DATA, resource.RLIMIT_AS):
            if kind == resource.RLIMIT_AS and sys.platform == "linux":
                continue  # it counts what is only reserved; data is what is written to
            with suppress(ValueError, OSError):  # macOS refuses what the watch looks after
                resource.setrlimit(kind, (most_bytes, most_bytes))


def _limit_processor(seconds: int) -> None:
    """End the process when the current file has used that many seconds of processor time."""
    with suppress(ImportError):
        import resource

        most = int(time.process_time()) + 1 + seconds
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        if hard == resource.RLIM_INFINITY or most < hard:
            resource.setrlimit(resource.RLIMIT_CPU, (most, hard))


def _watch(parent: int, most_bytes: int) -> None:
    """End the process, and the programs it runs, when it is too big or its parent is gone."""
    while True:
        time.sleep(_WATCH_SECONDS)
        if os.getppid() != parent:
            end_group()
        if resident_bytes() > most_bytes:
            os._exit(OVER_MEMORY)


def end_group() -> None:
    """Kill this process with all that it has started; it leads a group of its own."""
    if os.name == "posix" and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def resident_bytes() -> int:
    """Memory that this process holds, where the system says; its peak on macOS."""
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    with suppress(ImportError):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return 0


T = TypeVar("T")

_KINDS = frozenset(get_args(SegmentKind))


class InvalidMessage(ValueError):
    """What came over the pipe is not an answer that a reader gives."""


def encode_message(message: Mapping[str, Any]) -> bytes:
    """Return a message as one line of JSON."""
    text = json.dumps(message, ensure_ascii=False, default=_instant)
    return text.encode("utf-8", "surrogatepass") + b"\n"


def decode_message(line: bytes) -> dict[str, Any]:
    """The message in a line.

    Raises:
        Garbled: It is none.
    """
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidMessage("it is not JSON") from error
    if not isinstance(message, dict):
        raise InvalidMessage("it is no message")
    return message


def text_to_json(text: SourceText) -> dict[str, Any]:
    """Return a document's text as JSON; the other side knows its reader, but of a member's own."""
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
        "unit": asdict(text.unit) if text.unit else None,
        "is": text.media_type,
    }


def text_from_json(value: object, media_type: str, reader: str) -> SourceText:
    """The document's text that :func:`plain` was made of.

    Raises:
        Garbled: It was not.
    """
    fields = _expect(value, dict)
    text = _text(fields.get("text"))
    if (own := FILE_KINDS.get(_text(fields.get("is")))) is not None:
        media_type, reader = own.media_type, own.name
    try:
        return SourceText(
            text=text,
            media_type=media_type,
            reader=reader,
            segments=tuple(_segment(row, len(text)) for row in _expect(fields["segments"], list)),
            title=_text(fields["title"]),
            authors=_texts(fields["authors"]),
            created_at=_optional(fields["created_at"], _moment),
            tags=_texts(fields["tags"]),
            links=_texts(fields["links"]),
            metadata=_check_value(_expect(fields["metadata"], dict)),
            missing=_texts(fields["missing"]),
            part=_count(fields["part"]),
            unit=_optional(fields["unit"], _unit),
        )
    except (KeyError, RecursionError) as error:
        raise InvalidMessage("it is no text of a document") from error


def _unit(value: object) -> Unit:
    fields = _expect(value, dict)
    said = {name: _text(fields[name]) for name in ("key", "sha256", "problem", "hint")}
    return Unit(**said, size=_expect(fields["size"], int))


def clip_to_json(clip: Clip) -> dict[str, Any]:
    """Return a clip as JSON."""
    content = base64.b64encode(clip.content).decode("ascii")
    return {**asdict(clip), "content": content}


def clip_from_json(value: object) -> Clip:
    """The piece of a file that :func:`plain_clip` was made of.

    Raises:
        Garbled: It was not.
    """
    fields = _expect(value, dict)
    try:
        return Clip(
            content=base64.b64decode(_text(fields["content"]), validate=True),
            name=_text(fields["name"]),
            start=_seconds(fields["start"]),
            seconds=_seconds(fields["seconds"]),
            page=_optional(fields["page"], _count),
        )
    except (KeyError, binascii.Error) as error:
        raise InvalidMessage("it is no piece of a file") from error


def _instant(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value)


def _segment(value: object, length: int) -> Segment:
    row = _expect(value, list)
    if len(row) != len(Segment.__struct_fields__):
        raise InvalidMessage("a segment has another number of fields")
    start, end, kind, heading, page, number, time_start, time_end, speaker, said_at, *said = row
    if not 0 <= _count(start) <= _count(end) <= length or _text(kind) not in _KINDS:
        raise InvalidMessage("a segment does not lie in its text")
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
        _optional(said[0], _count),
        _optional(said[1], _text),
        _text(said[2]),
    )


def _expect(value: object, kind: type[T]) -> T:
    if type(value) is not kind:  # True is no number here
        raise InvalidMessage(f"there is no {kind.__name__} where one should be")
    return value


def _optional(value: object, check: Callable[[object], T]) -> T | None:
    return None if value is None else check(value)


def _text(value: object) -> str:
    text = _expect(value, str)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidMessage("a text cannot be stored") from error
    return text


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(_text, _expect(value, list)))


def _count(value: object) -> int:
    number = _expect(value, int)
    if not 0 <= number < 1 << 31:
        raise InvalidMessage("a number is out of range")
    return number


def _seconds(value: object) -> float:
    number = float(_count(value)) if type(value) is int else _expect(value, float)
    if not math.isfinite(number):
        raise InvalidMessage("a time is none")
    return number


def _moment(value: object) -> datetime:
    try:
        moment = datetime.fromisoformat(_text(value))
        moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidMessage("a date is none") from error
    if moment.tzinfo is None:
        raise InvalidMessage("a date has no zone")
    return moment


def _check_value(value: Any) -> Any:
    """Return a JSON value, checked: its texts can be stored and its numbers are finite."""
    if isinstance(value, dict):
        return {_text(key): _check_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_check_value(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidMessage("a number is none")
    return _text(value) if isinstance(value, str) else value
