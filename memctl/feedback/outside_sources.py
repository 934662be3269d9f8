"""Programs of the user's that know more: asked with one question, answering in lines of JSON.

None is run unless the settings name it.  What one prints is data, checked line by line; it is
stopped when it takes too long or prints too much.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any

from msgspec import Struct

from memctl.errors import ConfigError, MemctlError, UsageError
from memctl.ids import storable
from memctl.instants import parse_instant
from memctl.validation import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memctl.config import OutsideSource

_LONGEST_TEXT = 200_000
_LONGEST_FIELD = 2_000
_PIECE = 65_536
_MAX_SHOWN = 200
_LINE_HINT = 'each line is {"text": "...", "source": "...", "url": "...", "date": "2026-01-31"}'


class OutsideText(Struct, frozen=True):
    """One text that a program gave."""

    text: str
    source: str
    url: str
    date: datetime | None


class OutsideReply(Struct, frozen=True):
    """What a program gave to a question."""

    name: str
    texts: tuple[OutsideText, ...]
    bad_lines: tuple[int, ...]
    """Numbers of the lines that are not valid text, from 1."""


def find_source(sources: Mapping[str, OutsideSource], name: str) -> OutsideSource:
    """Return the program of that name.

    Raises:
        UsageError: The settings name none.
    """
    if name not in sources:
        near = nearest(name, sources)
        raise UsageError(
            f"there is no source {name[:80]!r}",
            near or "name a program: [sources.NAME] with command in the config file",
        )
    return sources[name]


def ask_source(name: str, source: OutsideSource, question: str, now: datetime) -> OutsideReply:
    """Ask a program, and read what it prints.

    Args:
        name: What the settings call it.
        source: Its command and bounds.
        question: Goes to its standard input.
        now: The time that dates such as ``today`` refer to.

    Raises:
        ConfigError: Its command cannot be run.
        MemctlError: It failed, took too long, printed too much, or nothing of use.
    """
    output = _run(name, source, question)
    texts: list[OutsideText] = []
    bad: list[int] = []
    for number, line in enumerate(output.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            texts.append(_parse_line(line, name, now))
        except ValueError:
            bad.append(number)
    if bad and not texts:
        raise MemctlError(f"source {name!r} printed no line that can be read", _LINE_HINT)
    return OutsideReply(name, tuple(texts[: source.most]), tuple(bad))


def _parse_line(line: bytes, name: str, now: datetime) -> OutsideText:
    value: Any = json.loads(line.decode("utf-8"))
    if not isinstance(value, dict):
        raise ValueError("not an object")
    text, date = value.get("text"), value.get("date")
    if not isinstance(text, str) or not text.strip():
        raise ValueError("no text in it")
    fields = {key: value.get(key) or "" for key in ("source", "url")}
    if not all(isinstance(each, str) for each in fields.values()):
        raise ValueError("source and url are texts")
    when = None
    if isinstance(date, str) and date.strip():
        try:
            when = parse_instant(date, now)
        except MemctlError as error:
            raise ValueError(str(error)) from error
    return OutsideText(
        text=storable(text).replace("\0", "\ufffd").strip()[:_LONGEST_TEXT],
        source=storable(fields["source"])[:_LONGEST_FIELD] or name,
        url=storable(fields["url"])[:_LONGEST_FIELD],
        date=when,
    )


def _run(name: str, source: OutsideSource, question: str) -> bytes:
    """Return what a program prints; it and all that it started end with this call."""
    try:
        words = shlex.split(source.command)
        process = subprocess.Popen(
            [os.path.expanduser(words[0]), *words[1:]],  # noqa: PTH111 - a command, not a path
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError, IndexError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"sources.{name}.command cannot be run: {why}", "see [sources] in the config file"
        ) from error
    assert process.stdin
    assert process.stdout
    assert process.stderr
    most = int(source.megabytes * 1_000_000)
    output = _Collector(process.stdout, most, process)
    said = _Collector(process.stderr, _PIECE, None)
    writer = threading.Thread(target=_write, args=(process.stdin, question), daemon=True)
    threads = (output, said, writer)
    for thread in threads:
        thread.start()
    try:
        process.wait(source.seconds)
    except subprocess.TimeoutExpired:
        raise MemctlError(
            f"source {name!r} was stopped after {source.seconds:g} seconds",
            f"allow it more with seconds of [sources.{name}]",
        ) from None
    finally:
        _end(process)
        for thread in threads:
            thread.join(1.0)
        for stream in (process.stdin, process.stdout, process.stderr):
            with suppress(OSError, ValueError):
                stream.close()
    if output.is_too_much:
        raise MemctlError(
            f"source {name!r} was stopped: it printed more than {source.megabytes:g} megabytes",
            f"allow it more with megabytes of [sources.{name}]",
        )
    if process.returncode:
        first = said.content.decode("utf-8", "replace").strip().partition("\n")[0]
        raise MemctlError(
            f"source {name!r} failed with exit code {process.returncode}",
            first[:_MAX_SHOWN] or f"run it yourself: {source.command}",
        )
    return output.content


class _Collector(threading.Thread):
    """Reads a stream up to a limit; what comes after it is read and dropped, or ends the process.

    Args:
        stream: What to read.
        most: Bytes that are kept.
        process: What is ended where there is more.
    """

    def __init__(
        self, stream: IO[bytes], most: int, process: subprocess.Popen[bytes] | None
    ) -> None:
        super().__init__(daemon=True)
        self._stream = stream
        self._most = most
        self._process = process
        self._pieces: list[bytes] = []
        self.is_too_much = False

    @property
    def content(self) -> bytes:
        """What was read."""
        return b"".join(self._pieces)

    def run(self) -> None:
        """Read to the end."""
        kept = 0
        for piece in self._read():
            kept += len(piece)
            if kept <= self._most:
                self._pieces.append(piece)
                continue
            self.is_too_much = True
            if self._process is not None:
                _end(self._process)
                return

    def _read(self) -> Iterator[bytes]:
        with suppress(OSError, ValueError):  # it was closed
            while piece := self._stream.read1(_PIECE):  # type: ignore[attr-defined]
                yield piece


def _write(stream: IO[bytes], question: str) -> None:
    with suppress(OSError, ValueError):  # it does not read
        stream.write(storable(question).encode() + b"\n")
        stream.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program with all that it has started."""
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(5.0)
