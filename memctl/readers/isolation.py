"""Reads files, those of risky formats in isolated processes with limits.

A small file can claim gigabytes, never end, or crash the library that reads it.  An isolated
process receives the path of a file and returns text, both as JSON.  One that exceeds a limit or
dies is replaced, and its file fails with the reason.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from memctl import errors
from memctl.config import LimitSettings
from memctl.errors import EmptySource, OverLimit, UnreadableSource
from memctl.files import lock_file, new_temporary, open_regular
from memctl.readers.detection import detect_media_type
from memctl.readers.file_kinds import FILE_KINDS, FileKind, kind_of_media_type
from memctl.readers.file_names import display_name
from memctl.readers.media.clips import MAX_CLIPS, Clip, ClipKind
from memctl.readers.reader_errors import limit_expansion
from memctl.readers.reader_process import (
    OVER_MEMORY,
    Answer,
    InvalidMessage,
    check_clip,
    check_text,
    decode_answer,
    encode_message,
)
from memctl.records import SourceText

Part = TypeVar("Part")


BYTES_PER_ALLOWANCE = 10_000_000
"""A file gets its time once for each stretch of this many bytes."""

_MAX_LINE_LENGTH = 128 << 20
_LAST_SECONDS = 5.0
"""Time for a process that has nothing more to say to exit, so that its exit code is known."""
_START = (
    "import sys; sys.path[:] = {path!r}; from memctl.readers.reader_process import serve; serve()"
)
_SCRATCH = "memctl-reader-"
_SCRATCH_MARK = "in-use"
_UNMARKED_SECONDS = 3600.0
"""After this long a folder without a mark is no longer about to get one."""
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
_HINT = "check where it comes from; limits.{setting} in the settings allows more"


class ReaderCrash(Exception):
    """A reader raised what no reader should: a bug of its own, in an isolated process."""

    def __init__(self, kind: str, message: str, trace: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.trace = trace


class _ProcessExited(Exception):
    """The process had exited before it was asked, as it does after a while without work."""


class Readers:
    """Reads files, those of risky formats in isolated processes; usable from several threads.

    A process is started when the first such file comes, and serves all that follow.

    Args:
        limits: What one file may take.
    """

    def __init__(self, limits: LimitSettings | None = None) -> None:
        self.limits = limits or LimitSettings()
        self._idle: list[_Process] = []
        self._mutex = threading.Lock()

    def read(self, path: Path, *, name: str | None = None) -> Generator[SourceText, None, None]:
        """Yield the text of a file as :func:`memctl.readers.read`.

        Raises:
            OverLimit: Reading it takes more than it may.
            UnreadableSource: As there; or its reader died of it.
            ReaderCrash: Its reader has a bug.
        """
        yield from read(path, name=name, run=self._run)

    def clips(
        self, kind: ClipKind, path: Path, name: str, media_type: str, seconds: float = 0.0
    ) -> Generator[Clip, None, None]:
        """Yield clips of a file for a model to hear or see; they are made in an isolated process.

        Args:
            kind: What pieces; see :func:`memctl.readers.media.clips.make_clips`.
            path: Where the file is.
            name: What it is called.
            media_type: What it is.
            seconds: The length of a recording, 0 where that is not known.

        Raises:
            OverLimit, UnreadableSource, ReaderCrash: As :meth:`read`.
        """
        request = {"cut": kind, "is": media_type, "seconds": seconds}
        yield from self._in_process(lambda process: process.clips(request, path, name))

    def close(self) -> None:
        """End the processes that wait for work."""
        with self._mutex:
            idle, self._idle = self._idle, []
        for process in idle:
            process.close()

    # --- inside ---

    def _run(self, reader: FileKind, path: Path, name: str) -> Generator[SourceText, None, None]:
        if not reader.is_isolated:
            yield from read_in_process(reader, path, name)
        else:
            yield from self._in_process(lambda process: process.texts(reader, path, name))

    def _in_process(
        self, work: Callable[[_Process], Generator[Part, None, None]]
    ) -> Generator[Part, None, None]:
        """Yield what a process gives; another one is asked where it had left before."""
        process = self._take_process()
        try:
            try:
                yield from work(process)
            except _ProcessExited:
                process.close()
                process = _Process(self.limits)
                yield from work(process)
        finally:
            self._give_back(process)

    def _take_process(self) -> _Process:
        with self._mutex:
            if self._idle:
                return self._idle.pop()
        return _Process(self.limits)

    def _give_back(self, process: _Process) -> None:
        with self._mutex:
            if process.is_ready and not self._idle:
                self._idle.append(process)
                return
        process.close()


class _Process:
    """A process that reads one file after the other for its owner."""

    def __init__(self, limits: LimitSettings) -> None:
        self._limits = limits
        scratch = _new_scratch()
        environ = _without_secrets(os.environ)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START.format(path=sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environ | {"TMPDIR": str(scratch.folder)} if scratch else environ,
                start_new_session=True,  # so that what it starts can be ended with it
            )
        except BaseException:
            _remove_scratch(scratch)
            raise
        self._end = weakref.finalize(self, _end, self._process, scratch)
        self._is_between_files = True
        self._has_served = False
        self._is_overdue = False
        self._seconds_left = 0.0
        """Seconds left for the current file."""
        self._opening = encode_message({"memory": limits.memory_mb << 20})

    @property
    def is_ready(self) -> bool:
        """Whether it can be asked for another file."""
        return self._is_between_files and self._process.poll() is None

    def close(self) -> None:
        """End the process, whatever it is doing, and the programs that it runs."""
        self._end()

    def texts(self, reader: FileKind, path: Path, name: str) -> Generator[SourceText, None, None]:
        """Yield what a reader makes of a file, part by part; raises as :meth:`Readers.read`."""
        characters, unit = 0, ""
        with _rejecting_invalid_messages(name):
            for answer in self._parts({"read": reader.media_type}, path, name):
                text = check_text(answer.text, reader)
                if text.unit and text.unit.key != unit:
                    characters, unit = 0, text.unit.key
                characters += len(text.text)
                if characters > self._limits.text_mb * 1_000_000:
                    most = f"{self._limits.text_mb:,} million characters"
                    raise _limit_error(name, f"gives more than {most} of text", "text_mb")
                yield text

    def clips(
        self, request: Mapping[str, Any], path: Path, name: str
    ) -> Generator[Clip, None, None]:
        """Yield pieces of a file; raises as :meth:`Readers.clips`."""
        with _rejecting_invalid_messages(name):
            for number, answer in enumerate(self._parts(request, path, name)):
                if number >= MAX_CLIPS:
                    raise InvalidMessage("there is no end to them")
                yield check_clip(answer.clip)

    # --- inside ---

    def _parts(
        self, request: Mapping[str, Any], path: Path, name: str
    ) -> Generator[Answer, None, None]:
        """Yield what a process returns for a file, part by part."""
        self._is_between_files = False
        answer = self._answer(self._question(request, path, name), name)
        while answer.is_part:
            yield answer
            answer = self._answer({"next": True}, name)
        error = self._error(answer, name)
        self._is_between_files = self._has_served = True
        if error is not None:
            raise error

    def _question(self, request: Mapping[str, Any], path: Path, name: str) -> dict[str, Any]:
        """Return the first request for a file; from here on its seconds count."""
        allowance = max(1.0, path.stat().st_size / BYTES_PER_ALLOWANCE)
        self._seconds_left = self._limits.seconds * allowance
        return {
            **request,
            "path": str(path.absolute()),
            "name": name,
            "processor_seconds": int(self._limits.processor_seconds * allowance),
        }

    def _answer(self, question: Mapping[str, Any], name: str) -> Answer:
        """Ask, and wait for the answer as long as the file may take."""
        line = self._exchange(encode_message(question))
        if len(line) == _MAX_LINE_LENGTH:
            raise OverLimit(
                f"{display_name(name)} gives more than {_MAX_LINE_LENGTH >> 20} MB in one piece",
                "check where it comes from; if it is genuine, save it in smaller parts",
            )
        if not line.endswith(b"\n"):
            raise self._exit_error(name, was_asked_before="next" in question)
        return decode_answer(line)

    def _exchange(self, question: bytes) -> bytes:
        """Return the answering line, without an end if the process exited or it is too long."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        began = time.monotonic()
        alarm = threading.Timer(max(0.0, self._seconds_left), self._time_out)
        alarm.daemon = True
        alarm.start()
        try:
            self._process.stdin.write(self._opening + question)
            self._process.stdin.flush()
            self._opening = b""
            line = self._process.stdout.readline(_MAX_LINE_LENGTH)
        except OSError:  # it has ended
            line = b""
        finally:
            alarm.cancel()
            self._seconds_left -= time.monotonic() - began
        return line

    def _time_out(self) -> None:
        self._is_overdue = True
        _kill(self._process)

    def _exit_error(self, name: str, *, was_asked_before: bool) -> Exception:
        """Why the process ended, as an error to raise."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_LAST_SECONDS)
        _kill(self._process)
        _kill_group(self._process)  # what it started goes on without it
        code = self._process.wait()
        if self._is_overdue:
            return _limit_error(
                name, f"was not read within {self._limits.seconds:,g} seconds", "seconds"
            )
        if code == OVER_MEMORY:
            return self._over_memory(name)
        if os.name == "posix" and code == -signal.SIGXCPU:
            seconds = self._limits.processor_seconds
            return _limit_error(
                name, f"takes more than {seconds:,} seconds of processor time", "processor_seconds"
            )
        if code == 0 and self._has_served and not was_asked_before:
            return _ProcessExited()
        return UnreadableSource(
            f"{display_name(name)}: reading it ended the process that did it ({_ending(code)})",
            "the file may be damaged",
        )

    def _over_memory(self, name: str) -> OverLimit:
        return _limit_error(
            name, f"needs more than {self._limits.memory_mb:,} MB to be read", "memory_mb"
        )

    def _error(self, answer: Answer, name: str) -> Exception | None:
        """Return the error that a final answer reports; None at a regular end."""
        if answer.over:
            return self._over_memory(name)
        if answer.refused:
            return _refusal(*answer.refused)
        if answer.fault:
            return ReaderCrash(*answer.fault)
        if answer.system:
            return OSError(*answer.system, name)
        if not answer.end:
            raise InvalidMessage("it is no answer")
        return None


@contextmanager
def _rejecting_invalid_messages(name: str) -> Iterator[None]:
    """Turn an invalid message into a file that cannot be read."""
    try:
        yield
    except InvalidMessage as error:
        raise UnreadableSource(
            f"{display_name(name)}: the process that read it said something that no reader says",
            "the file may be damaged, or made to do harm",
        ) from error


class _Scratch(Struct, frozen=True):
    """The folder for temporary files of one process, and the locked file that says it lives."""

    folder: Path
    mark: Path
    descriptor: int


def _new_scratch() -> _Scratch | None:
    """Make one, in which a process that is killed leaves what it has unpacked; None without room.

    Those that processes left whose owner was killed, too, are removed.
    """
    clear_scratch()
    try:
        folder = Path(tempfile.mkdtemp(prefix=_SCRATCH))
    except OSError:
        return None
    try:
        return _Scratch(folder, *new_temporary(folder / _SCRATCH_MARK))
    except OSError:
        folder.rmdir()
        return None


def _remove_scratch(scratch: _Scratch | None) -> None:
    if scratch is not None:
        with suppress(OSError):
            _remove_marked(scratch.folder, scratch.mark)
        os.close(scratch.descriptor)


def _remove_marked(folder: Path, mark: Path) -> None:
    """Remove a folder, its mark last: if this is cut off, the mark has the rest found again.

    Raises:
        OSError: Something in it cannot be removed; it is still marked.
    """
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path != mark:
            path.unlink()
    mark.unlink()
    folder.rmdir()


def clear_scratch() -> None:
    """Remove what isolated processes have left whose owner was killed: pieces of private files."""
    if sys.platform == "win32":  # where nothing tells who lives
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{_SCRATCH}*"):
        with suppress(OSError):  # it is in use, gone, or no folder
            if folder.is_symlink() or folder.lstat().st_uid != os.getuid():
                continue
            mark = next(folder.glob(f".{_SCRATCH_MARK}.*.tmp"), None)
            if mark is not None:
                with open_regular(mark) as file:
                    lock_file(file.fileno())
                    _remove_marked(folder, mark)
            elif time.time() - folder.lstat().st_mtime > _UNMARKED_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


def _end(process: subprocess.Popen[bytes], scratch: _Scratch | None) -> None:
    _kill(process)
    process.wait()
    _remove_scratch(scratch)
    for pipe in (process.stdin, process.stdout):
        with suppress(OSError):  # what is left in the buffer has no reader any more
            if pipe is not None:
                pipe.close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        _kill_group(process)
        process.kill()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill what a process has started, and itself; it lives, or has only just ended."""
    if os.name == "posix":
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _ending(code: int) -> str:
    if code < 0:
        with suppress(ValueError):
            return signal.Signals(-code).name
    return f"exit code {code}"


def _without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without variables named like secrets: reading needs none of them."""
    return {name: value for name, value in environ.items() if not _SECRET.search(name)}


# --- errors as the process reports them, each of them checked -----------------------------------


def _limit_error(name: str, what: str, setting: str) -> OverLimit:
    return OverLimit(f"{display_name(name)} {what}", _HINT.format(setting=setting))


def _refusal(kind: str, message: str, hint: str) -> UnreadableSource:
    found = getattr(errors, kind, None)
    if isinstance(found, type) and issubclass(found, UnreadableSource):
        return found(message, hint)
    raise InvalidMessage("there is no such refusal")


RunReader = Callable[[FileKind, Path, str], Iterator[SourceText]]
"""Runs the reader of a kind on the file at a path, under a name."""


def read_in_process(reader: FileKind, path: Path, name: str) -> Iterator[SourceText]:
    """Run a reader in this process."""
    return reader.load()(path, name)


def read(
    path: Path, *, name: str | None = None, run: RunReader = read_in_process
) -> Iterator[SourceText]:
    """Yield the text of the file at ``path``: one part, or several where it is too big for one.

    Args:
        path: Where the bytes are; sidecar files are looked for beside it.
        name: What the source is called, where the path is a claimed or temporary one.
        run: Where readers work.

    Raises:
        UnreadableSource: It is missing, damaged, empty, encrypted, of an unknown kind, or gives
            far more text than a file of its size holds.
    """
    shown = name or path.name
    reader = kind_of_media_type(detect_media_type(path, shown))
    anything = False
    for source in limit_expansion(run(reader, path, shown), path, shown):
        anything = anything or bool(source.text.strip() or source.missing or source.unit)
        own = (source.unit and FILE_KINDS.get(source.media_type)) or reader
        yield replace(source, media_type=own.media_type, reader=own.name)
    if not anything:
        raise EmptySource(f"{shown} holds no text", "put something into it and try again")
