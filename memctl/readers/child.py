"""The process apart in which risky formats are read: caps on itself, one file after the other.

It is asked by lines of JSON on standard input and answers by lines of JSON; it knows nothing of
knowledge bases.  It ends when whoever asks is gone, when nothing was asked for a while, and when
it has grown.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from memctl.errors import UnreadableSource
from memctl.readers.clips import clips
from memctl.readers.registry import reader_for
from memctl.readers.wire import line_of, message_of, plain, plain_clip

OVER_MEMORY = 97
"""The exit code of a process that took more memory than it may."""

_IDLE_SECONDS = 60.0
_WATCH_SECONDS = 0.2
_MOST_READINGS = 500
_GROWN = 0.25
"""A process that holds this share of what it may is replaced before the next file."""

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
    most_bytes = int(message_of(terms)["memory"])
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
        answers.write(line_of(answer))
        answers.flush()
        grown = readings >= _MOST_READINGS or resident_bytes() > _GROWN * most_bytes
        if reading is None and (grown or "over" in answer):
            return


def _next_question(questions: IO[bytes], *, is_idle: bool) -> Answer | None:
    """What is asked next; None when nobody asks any more."""
    if is_idle and os.name == "posix":
        ready, _, _ = select.select([questions], [], [], _IDLE_SECONDS)
        if not ready:
            return None
    line = questions.readline()
    return message_of(line) if line else None


def _reading(question: Answer) -> Iterator[Answer]:
    """Read a file, or cut it up; nothing of that is done before the first part is asked for."""
    _limit_processor(int(question["processor_seconds"]))
    path, name = Path(question["path"]), question["name"]
    if "cut" in question:
        for clip in clips(question["cut"], path, name, question["is"], question["seconds"]):
            yield {"clip": plain_clip(clip)}
        return
    for text in reader_for(question["read"]).load()(path, name):
        yield {"text": plain(text)}


def _next_answer(reading: Iterator[Answer]) -> Answer:
    """The next part of a document, that there is none, or why it cannot be read."""
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


# --- caps ----------------------------------------------------------------------------------------


def _limit_memory(most_bytes: int) -> None:
    """Have memory refused beyond a cap, and no image of it left on the disk after a crash."""
    with suppress(ImportError):  # Windows has no such limits
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for kind in (resource.RLIMIT_DATA, resource.RLIMIT_AS):
            if kind == resource.RLIMIT_AS and sys.platform == "linux":
                continue  # it counts what is only reserved; data is what is written to
            with suppress(ValueError, OSError):  # macOS refuses what the watch looks after
                resource.setrlimit(kind, (most_bytes, most_bytes))


def _limit_processor(seconds: int) -> None:
    """End the process when the file in hand has had so many seconds of processor time."""
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
