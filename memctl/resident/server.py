"""The server: carries out one command after the other in the caller's place, for one user's home.

A command gets the caller's arguments, environment, directory and standard streams, so that it sees
the same terminal; what it writes is kept back until its exit code is known.  Commands run in the
main thread of a process that does nothing else, because directory, environment and streams belong
to a process as a whole.  Knows nothing of any command.
"""

from __future__ import annotations

import io
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from memctl.resident.protocol import (
    BEAT_SECONDS,
    DESCRIPTORS,
    SOCKET,
    STREAMS,
    Address,
    Connection,
    close_all,
)

MAX_OUTPUT_BYTES = 8 << 20
"""Of one command; one that writes more is carried out by its caller."""
_REQUEST_SECONDS = 0.5
"""A client that has not sent its request by then is passed over."""
_REPLY_SECONDS = 2.0
"""So is one that does not read the reply."""
_WAITING_CLIENTS = 64
_REFUSED_CODES = frozenset({1, 12})
"""Failures that a process without open files might not have; the caller sees for itself."""
_STREAM_NAMES = ("stdin", "stdout", "stderr")

Run = Callable[[Sequence[str]], int]


class CommandDeclined(BaseException):
    """A command is to be carried out by its caller.

    It is no ``Exception``, so that no command handles it.
    """


class ServedCounts(Struct):
    """What the process has done since it started."""

    started_at: float
    commands: int = 0
    refused: int = 0
    """How many the callers had to carry out themselves."""


class Server:
    """Serves a home until it is idle for long enough, or is stopped.

    Args:
        folder: That of the socket; it is made if it is not there.
        greeting: What clients are greeted with.
        run: Carries out a command and returns its exit code.
        idle_seconds: After this long without a command it ends; 0 for never.
        lifeline: The open end of a pipe; when its other end is closed, it ends. -1 for none.
        settled: Called after each command; tells whether to go on.
    """

    def __init__(
        self,
        folder: Path,
        greeting: Mapping[str, Any],
        run: Run,
        *,
        idle_seconds: float = 0,
        lifeline: int = -1,
        settled: Callable[[], bool] = lambda: True,
    ) -> None:
        self._folder = folder
        self._greeting = {**greeting, "pid": os.getpid()}
        self._run = run
        self._idle_seconds = idle_seconds
        self._lifeline = lifeline
        self._settled = settled
        self._served = ServedCounts(time.time())
        self._goes_on = True

    def serve(self, is_ready: Callable[[], None] = lambda: None) -> None:
        """Serve one client after the other."""
        with self._listening() as listener:
            is_ready()
            while self._goes_on and self._wait(listener):
                with suppress(BlockingIOError, ConnectionAbortedError):
                    peer, _ = listener.accept()
                    with peer:
                        self._serve(peer)

    @contextmanager
    def _listening(self) -> Iterator[socket.socket]:
        """Give a socket that only this user can connect to, in the place of one left behind."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        with Address(str(self._folder)) as path, socket.socket(socket.AF_UNIX) as listener:
            new = f"{path}.new"
            for left in (new, path):
                Path(left).unlink(missing_ok=True)
            listener.bind(new)
            Path(new).chmod(0o600)
            listener.listen(_WAITING_CLIENTS)
            listener.setblocking(False)
            Path(new).rename(path)
            made = Path(path).lstat()
            try:
                yield listener
            finally:
                with suppress(OSError):
                    if os.path.samestat(Path(path).lstat(), made):
                        Path(path).unlink()

    def _wait(self, listener: socket.socket) -> bool:
        """Wait for a client; return whether there is one, and its keeper lives."""
        watched = [listener.fileno(), *([self._lifeline] if self._lifeline >= 0 else [])]
        ready, _, _ = select.select(watched, [], [], self._idle_seconds or None)
        is_in_place = (self._folder / SOCKET).is_socket()  # else the home has gone
        return listener.fileno() in ready and self._lifeline not in ready and is_in_place

    def _serve(self, peer: socket.socket) -> None:
        connection = Connection(peer)
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            if not _is_same_user(peer):
                return
            peer.settimeout(_REQUEST_SECONDS)
            connection.send(self._greeting)
            request, descriptors = connection.request()
            try:
                if "question" in request:
                    reply, content = self._about_itself(request["question"]), b""
                elif len(descriptors) == DESCRIPTORS:
                    reply, content = self._carry_out(peer, request, descriptors)
                else:
                    return
            finally:
                close_all(descriptors)
            peer.settimeout(_REPLY_SECONDS)
            connection.send(reply)
            peer.sendall(content)

    def _about_itself(self, question: object) -> dict[str, Any]:
        if question == "stop":
            self._goes_on = False
        return asdict(self._served)

    def _carry_out(
        self, peer: socket.socket, request: Mapping[str, Any], descriptors: Sequence[int]
    ) -> tuple[dict[str, Any], bytes]:
        """Return the reply to a command, and what the command has written."""
        arguments, environment = list(request["arguments"]), dict(request["environment"])
        self._served.commands += 1
        code: int | None = None
        pieces: list[tuple[int, bytes]] = []
        with (
            suppress(CommandDeclined),
            _impersonate(environment, descriptors),
            _beating(peer),
            _capture_output(pieces, request["encodings"], has_input=bool(request.get("input"))),
        ):
            code = self._run(arguments)
        self._goes_on = self._settled() and self._goes_on
        if code is None or code in _REFUSED_CODES:
            self._served.refused += 1
            return {"refused": True}, b""
        sizes = [(stream, len(piece)) for stream, piece in pieces]
        return {"code": code, "pieces": sizes}, b"".join(piece for _, piece in pieces)


def _is_same_user(peer: socket.socket) -> bool:
    """Return whether the process at the other end is this user's, where the system says."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True  # the folder keeps everybody else out
    credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[4:8], sys.byteorder) == os.getuid()


# --- in the caller's place ------------------------------------------------------------------------


@contextmanager
def _impersonate(environment: Mapping[str, str], descriptors: Sequence[int]) -> Iterator[None]:
    """Have the environment, standard streams and directory of a caller."""
    own_environment = dict(os.environ)
    own_streams = [os.dup(stream) for stream in range(STREAMS)]
    own_directory = os.open(".", os.O_RDONLY)
    try:
        os.fchdir(descriptors[STREAMS])
        _use_environment(environment)
        for stream in range(STREAMS):
            os.dup2(descriptors[stream], stream)
        yield
    finally:
        for stream, own in enumerate(own_streams):
            os.dup2(own, stream)
        _use_environment(own_environment)
        os.fchdir(own_directory)
        close_all([*own_streams, own_directory])


def _use_environment(environment: Mapping[str, str]) -> None:
    for name in [name for name in os.environ if name not in environment]:
        del os.environ[name]
    for name, value in environment.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
    time.tzset()


@contextmanager
def _capture_output(
    pieces: list[tuple[int, bytes]], encodings: Sequence[str], *, has_input: bool
) -> Iterator[None]:
    """Collect what is written to the standard streams, each piece with the number of its stream."""
    output = _Output(pieces)
    written = [
        io.TextIOWrapper(
            io.BufferedWriter(output.stream(number)),
            encodings[number],
            errors="backslashreplace",
            line_buffering=number == 2 or os.isatty(number),
        )
        for number in (1, 2)
    ]
    read = io.TextIOWrapper(io.BufferedReader(_Input(is_kept=has_input)), encodings[0])
    with ExitStack() as stack:
        for name, stream in zip(_STREAM_NAMES, (read, *written), strict=True):
            for attribute in (name, f"__{name}__"):
                stack.callback(setattr, sys, attribute, getattr(sys, attribute))
                setattr(sys, attribute, stream)
        try:
            yield
            for stream in written:
                stream.flush()
        finally:
            output.is_over = True


class _Output:
    """What a command has written so far."""

    def __init__(self, pieces: list[tuple[int, bytes]]) -> None:
        self._pieces = pieces
        self._size = 0
        self.is_over = False
        """Whether its client is gone."""

    def stream(self, number: int) -> io.RawIOBase:
        """Return a stream that adds to it."""
        return _Stream(number, self.add)

    def add(self, number: int, content: bytes) -> None:
        """Add what was written to a stream."""
        if self.is_over:
            return
        self._size += len(content)
        if self._size > MAX_OUTPUT_BYTES:
            raise CommandDeclined
        self._pieces.append((number, content))


class _Stream(io.RawIOBase):
    """A standard stream for writing, which is kept back; otherwise it is that of the caller."""

    def __init__(self, number: int, add: Callable[[int, bytes], None]) -> None:
        self._number = number
        self._add = add

    def fileno(self) -> int:
        """Return the number of the caller's stream, whose width and kind can be asked for."""
        return self._number

    def isatty(self) -> bool:
        """Return whether the caller's stream is a terminal."""
        return os.isatty(self._number)

    def writable(self) -> bool:
        """Return whether it can be written to: it can."""
        return True

    def write(self, content: Any) -> int:
        """Keep a piece back."""
        octets = bytes(content)
        self._add(self._number, octets)
        return len(octets)


class _Input(io.RawIOBase):
    """The caller's standard input: what is read from it here would be missing there.

    Args:
        is_kept: Whether the caller has kept it, and can read it again.
    """

    def __init__(self, *, is_kept: bool) -> None:
        self._is_kept = is_kept

    def fileno(self) -> int:
        """Return the number of the caller's stream."""
        return 0

    def isatty(self) -> bool:
        """Return whether the caller's stream is a terminal."""
        return os.isatty(0)

    def readable(self) -> bool:
        """Return whether it can be read: by its caller."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what the caller has kept; leave the command to any other caller."""
        if not self._is_kept:
            raise CommandDeclined
        return os.readv(0, [buffer])


@contextmanager
def _beating(peer: socket.socket) -> Iterator[None]:
    """Tell a client now and then that its command is being carried out.

    A command whose client has gone is interrupted.
    """
    is_over, mutex = threading.Event(), threading.Lock()
    main_thread = threading.get_ident()

    def beat() -> None:
        """Beat until it is over."""
        while not is_over.wait(BEAT_SECONDS):
            try:
                peer.send(b"\n")
            except OSError:
                with mutex:
                    if not is_over.is_set():
                        signal.pthread_kill(main_thread, signal.SIGINT)
                return

    thread = threading.Thread(target=beat, name="beat", daemon=True)
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread.start()
    try:
        yield
    except KeyboardInterrupt:
        raise CommandDeclined from None
    finally:
        with mutex:
            is_over.set()
        signal.signal(signal.SIGINT, previous)
        thread.join()
