"""What the resident process and its clients say to each other, and where they meet.

A client connects, gets a greeting, sends one request together with its standard streams and its
directory, and gets beats while it waits and one reply.  Imports nothing that takes time.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
import zlib
from collections.abc import Mapping
from typing import Any

PROTOCOL = 1
FOLDER, SOCKET = "resident", "socket"
GREETING_SECONDS = 0.05
"""A process that has not greeted by then is busy: the command is carried out without it."""
BEAT_SECONDS = 0.5
"""How often a client that waits hears that its command is being carried out."""
SILENT_SECONDS = 10.0
"""After this long without a beat the process counts as dead; a busy machine may delay one."""
STREAMS = 3
DESCRIPTORS = STREAMS + 1
"""Standard input, output and error of the client, and its directory."""
LONGEST_LINE = 16 << 20
_LONGEST_ADDRESS = 100
"""Bytes of a path that a Unix socket can have on every system."""
_IMPORT_TIME_PREFIXES = ("LANCE_", "RUST_")
"""Variables that a library reads once, when it is imported."""
_IMPORT_DEFAULTS = {"LANCE_LOG": "error", "LANCE_FTS_PARTITION_SIZE": "512"}
"""What the engine is imported with where nothing else is set."""


def is_available() -> bool:
    """Return whether this system has what it takes: Unix sockets that carry open files."""
    return sys.platform != "win32" and hasattr(socket, "send_fds")


def fingerprint(environ: Mapping[str, str] = os.environ) -> str:
    """Return a hash of what a process takes in when it starts and cannot take from a caller.

    Everything else, such as settings, user and time zone, comes with each request.
    """
    flags = sys.flags
    variables = {
        **_IMPORT_DEFAULTS,
        **{
            name: value for name, value in environ.items() if name.startswith(_IMPORT_TIME_PREFIXES)
        },
    }
    parts = [
        os.path.dirname(__file__),  # noqa: PTH120 - pathlib takes 10 ms to import
        sys.prefix,
        sys.version,
        sys.getfilesystemencoding(),
        [flags.optimize, flags.dev_mode, flags.utf8_mode, flags.bytes_warning, flags.isolated],
        sorted(variables.items()),
    ]
    return f"{zlib.crc32(json.dumps(parts).encode()):08x}"


def identity_of(folder: str) -> str:
    """Return what tells a folder from every other, by whatever path it is found.

    Raises:
        OSError: It is not there.
    """
    found = os.stat(folder)  # noqa: PTH116 - as above
    return f"{found.st_dev}:{found.st_ino}"


def greeting(version: str, home: str, settings: str) -> dict[str, Any]:
    """Return what the process says first, and what a client that it can serve expects."""
    return {"protocol": PROTOCOL, "version": version, "home": home, "settings": settings}


def is_own_folder(folder: str) -> bool:
    """Return whether a folder is this user's, and closed to everybody else."""
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def is_own_socket(path: str) -> bool:
    """Return whether a socket is there that is this user's."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISSOCK(found.st_mode) and found.st_uid == os.getuid()


class Address:
    """The address of the socket in a folder, however long the path of that is.

    Args:
        folder: It has to be there.

    Raises:
        OSError: It cannot be opened, or its path is too long for this system.
    """

    def __init__(self, folder: str) -> None:
        self._descriptor = -1
        self.path = os.path.join(folder, SOCKET)  # noqa: PTH118 - as above
        if len(os.fsencode(self.path)) > _LONGEST_ADDRESS:
            if sys.platform != "linux":
                raise OSError(f"the path {self.path} is too long for a socket")
            self._descriptor = os.open(folder, os.O_RDONLY)
            self.path = f"/proc/self/fd/{self._descriptor}/{SOCKET}"

    def __enter__(self) -> str:
        return self.path

    def __exit__(self, *exception: object) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)


def connect(folder: str, greeting_seconds: float = GREETING_SECONDS) -> Connection | None:
    """Return a connection to the process of a home, or None where none is there or free.

    Args:
        folder: That of the socket.
        greeting_seconds: How long to wait for it to be free.
    """
    if not is_available() or not is_own_folder(folder):
        return None
    connection = None
    try:
        with Address(folder) as path:
            if not is_own_socket(path):
                return None
            peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection = Connection(peer)
            peer.settimeout(greeting_seconds)
            peer.connect(path)
        connection.greeting = connection.line()
    except (OSError, ValueError):
        if connection is not None:
            connection.close()
        return None
    return connection


class Connection:
    """One end of a connection that carries JSON lines, open files and bytes."""

    def __init__(self, peer: socket.socket) -> None:
        self.socket = peer
        self.greeting: dict[str, Any] = {}
        self._read = b""

    def close(self) -> None:
        """Hang up."""
        self.socket.close()

    def send(self, message: Mapping[str, Any], descriptors: tuple[int, ...] = ()) -> None:
        """Send a message, with open files."""
        content = json.dumps(message).encode() + b"\n"
        if descriptors:
            sent = socket.send_fds(self.socket, [content], list(descriptors))
            content = content[sent:]
        self.socket.sendall(content)

    def line(self) -> dict[str, Any]:
        """Return the next message; beats are passed over.

        Raises:
            OSError: There is none: the other end has hung up, or is silent for too long.
            ValueError: It is none.
        """
        while True:
            line, end, rest = self._read.partition(b"\n")
            if end:
                self._read = rest
                if line:
                    return _message(line)
            else:
                self._receive()

    def request(self) -> tuple[dict[str, Any], list[int]]:
        """Return the first message of a client, with the open files that came with it.

        Raises:
            OSError: There is none.
            ValueError: It is none.
        """
        self._read, descriptors, _, _ = socket.recv_fds(self.socket, 1 << 16, DESCRIPTORS)
        if not self._read:
            raise ConnectionResetError
        try:
            return self.line(), descriptors
        except BaseException:
            close_all(descriptors)
            raise

    def content(self, size: int) -> bytes:
        """Return this many bytes that follow a message.

        Raises:
            OSError: They don't come.
        """
        while len(self._read) < size:
            self._receive()
        content, self._read = self._read[:size], self._read[size:]
        return content

    def _receive(self) -> None:
        received = self.socket.recv(1 << 20)
        if not received or len(self._read) > LONGEST_LINE:
            raise ConnectionResetError
        self._read += received


def _message(line: bytes) -> dict[str, Any]:
    message = json.loads(line)
    if not isinstance(message, dict):
        raise ValueError("a message is a JSON object")
    return message


def close_all(descriptors: list[int]) -> None:
    """Close open files."""
    for descriptor in descriptors:
        os.close(descriptor)
