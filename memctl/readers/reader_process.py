"""The isolated process that reads risky formats: it limits itself and reads one file at a time.

Requests and answers are lines of JSON on standard input and output; knowledge bases are unknown
here.  The process exits when its parent is gone, after a while without requests, and when it has
grown.  The receiver takes no answer but one of the right types and reach, for the process may have
been taken over by the file that it was reading.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Annotated, Any, Literal

from msgspec import Meta, Struct, to_builtins
from msgspec.json import Decoder
from msgspec.structs import replace

from memctl.errors import UnreadableSource
from memctl.readers.file_kinds import FILE_KINDS, FileKind, kind_of_media_type
from memctl.readers.media.clips import Clip, make_clips
from memctl.records import SourceText

OVER_MEMORY = 97
"""The exit code of a process that took more memory than it may."""

_IDLE_SECONDS = 60.0
_WATCH_SECONDS = 0.2
_MAX_READINGS = 500
_MAX_IDLE_MEMORY_SHARE = 0.25
"""A process that holds this share of its memory limit is replaced before the next file."""


class Answer(Struct, frozen=True, omit_defaults=True):
    """What the process says: a part of what was asked for, its end, or why there is none."""

    text: SourceText | None = None
    clip: Clip | None = None
    end: bool = False
    over: Literal["", "memory"] = ""
    """Of which it would take more than it may."""
    refused: tuple[str, str, str] | None = None
    """Class, message and hint of the error by which the reader refuses the file."""
    fault: tuple[str, str, str] | None = None
    """Class, message and trace of an error that no reader should raise."""
    system: tuple[Annotated[int, Meta(ge=0, lt=100_000)], str] | None = None
    """Number and words of an error of the system."""

    @property
    def is_part(self) -> bool:
        """Whether more may follow."""
        return self.text is not None or self.clip is not None


_ANSWERS = Decoder(Answer)


def serve() -> None:
    """Answer questions on standard input until it ends; the main function of the process."""
    parent = os.getppid()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not get among the answers
    questions = os.fdopen(0, "rb", buffering=0, closefd=False)
    opening = questions.readline()
    if not opening:
        return
    most_bytes = int(json.loads(opening)["memory"])
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
        if not answer.is_part:
            reading = None
        answers.write(encode_message(answer))
        answers.flush()
        grown = readings >= _MAX_READINGS or resident_bytes() > _MAX_IDLE_MEMORY_SHARE * most_bytes
        if reading is None and (grown or answer.over):
            return


def _next_question(questions: IO[bytes], *, is_idle: bool) -> dict[str, Any] | None:
    """The next request; None when there are no more."""
    if is_idle and os.name == "posix":
        ready, _, _ = select.select([questions], [], [], _IDLE_SECONDS)
        if not ready:
            return None
    line = questions.readline()
    return json.loads(line) if line else None


def _reading(question: Mapping[str, Any]) -> Iterator[Answer]:
    """Read a file or make clips of it; nothing is done before the first part is requested."""
    _limit_processor(int(question["processor_seconds"]))
    path, name = Path(question["path"]), question["name"]
    if "cut" in question:
        for clip in make_clips(question["cut"], path, name, question["is"], question["seconds"]):
            yield Answer(clip=clip)
        return
    for text in kind_of_media_type(question["read"]).load()(path, name):
        yield Answer(text=text)


def _next_answer(reading: Iterator[Answer]) -> Answer:
    """Return the next part of a document, its end, or why it cannot be read."""
    try:
        return next(reading, Answer(end=True))
    except MemoryError:
        return Answer(over="memory")
    except UnreadableSource as error:
        if isinstance(error.__cause__, MemoryError):
            return Answer(over="memory")
        return Answer(refused=(type(error).__name__, error.message, error.hint))
    except OSError as error:
        return Answer(system=(error.errno or 0, error.strerror or str(error)))
    except Exception as error:  # noqa: BLE001 - a reader's own bug must not stop the other files
        return Answer(fault=(type(error).__name__, str(error), traceback.format_exc()))


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


class InvalidMessage(ValueError):
    """What came over the pipe is not an answer that a reader gives."""


def encode_message(message: Answer | Mapping[str, Any]) -> bytes:
    """Return a message as one line of JSON, with ``?`` for half characters; see ``storable``."""
    plain = to_builtins(message, str_keys=True, enc_hook=str)
    return json.dumps(plain, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def decode_answer(line: bytes) -> Answer:
    """The answer in a line: its texts can be stored, its numbers are finite.

    Raises:
        InvalidMessage: It is none.
    """
    try:
        return _ANSWERS.decode(line)
    except (ValueError, RecursionError) as error:
        raise InvalidMessage("it is no answer") from error


def check_text(text: SourceText | None, reader: FileKind) -> SourceText:
    """Return a document's text with the name of its reader, and with what readers say alone.

    Args:
        text: As the process gave it.
        reader: What was to read it; a member of an archive has one of its own.

    Raises:
        InvalidMessage: No reader makes that.
    """
    if text is None:
        raise InvalidMessage("it is no text of a document")
    _check_count(text.part)
    _check_moment(text.created_at)
    for segment in text.segments:
        if not 0 <= segment.start <= segment.end <= len(text.text) or segment.kept is not None:
            raise InvalidMessage("a segment does not lie in its text")
        for number in (segment.page, segment.row, segment.turn):
            _check_count(number)
        _check_moment(segment.said_at)
    kind = FILE_KINDS.get(text.media_type, reader)
    return replace(
        text,
        media_type=kind.media_type,
        reader=kind.name,
        share=1.0,
        origin={},
        asked=None,
        document_id="",
        redacted=0,
    )


def check_clip(clip: Clip | None) -> Clip:
    """Return a piece of a file.

    Raises:
        InvalidMessage: No reader makes that.
    """
    if clip is None:
        raise InvalidMessage("it is no piece of a file")
    _check_count(clip.page)
    return clip


def _check_count(number: int | None) -> None:
    if number is not None and not 0 <= number < 1 << 31:
        raise InvalidMessage("a number is out of range")


def _check_moment(moment: datetime | None) -> None:
    if moment is None:
        return
    if moment.tzinfo is None:
        raise InvalidMessage("a date has no zone")
    try:
        moment.astimezone(UTC)
    except OverflowError as error:
        raise InvalidMessage("a date is none") from error
