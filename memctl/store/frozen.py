"""Reading a ledger that this process may not write: on a read-only mount, or somebody else's.

SQLite reads a database in WAL mode only where it can make or find the files beside it.  Where it
cannot, the ledger is read from a copy in memory, which is made anew when the file has changed.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from memctl.errors import LockedError

Fingerprint = tuple[tuple[int, int, int], ...]

_ATTEMPTS = 5


def obstacle(path: Path) -> str:
    """Return why this process may not write a ledger; empty when it may."""
    if not os.access(path.parent, os.W_OK):
        return "it is read-only for this user"
    return "" if os.access(path, os.W_OK) else f"{path.name} is read-only for this user"


def connect(path: Path, mode: str, wait: float) -> sqlite3.Connection:
    """Open a database file for use from any thread; nothing of it is read yet."""
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}",
        uri=True,
        timeout=wait,
        isolation_level=None,
        check_same_thread=False,
    )


def connect_read_only(path: Path, wait: float) -> tuple[sqlite3.Connection, Fingerprint | None]:
    """Open a ledger without writing a byte beside it.

    Returns:
        The connection and, when it is to a copy, what the file looked like when it was copied.
    """
    connection = connect(path, "mode=ro", wait)
    try:
        connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_NOTADB):
            raise
        return _copied(path)
    return connection, None


def fingerprint(path: Path) -> Fingerprint:
    """Return what tells one state of a ledger's files from another."""
    return tuple(_state(item) for item in (path, _log_of(path)))


def identity(path: Path) -> tuple[int, int]:
    """Return what tells a file from another that stands in its place; zeros where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return (0, 0)
    return (found.st_dev, found.st_ino)


def _state(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return (0, 0, 0)
    return (found.st_ino, found.st_size, found.st_mtime_ns)


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _copied(path: Path) -> tuple[sqlite3.Connection, Fingerprint]:
    """Copy a ledger into memory, again if somebody who may write it did so meanwhile."""
    for _ in range(_ATTEMPTS):
        before = fingerprint(path)
        connection = _in_memory(path)
        if fingerprint(path) == before:
            return connection, before
        connection.close()
    raise LockedError(f"{path} kept changing while it was read", "try again in a moment")


def _in_memory(path: Path) -> sqlite3.Connection:
    if _state(_log_of(path))[1]:  # what it holds must not be lost, so it is read along
        with tempfile.TemporaryDirectory(prefix="memctl-") as folder:
            copy = Path(folder) / path.name
            for item in (path, _log_of(path)):
                shutil.copyfile(item, copy.with_name(item.name))
            return _loaded(copy, "mode=rw")
    return _loaded(path, "mode=ro&immutable=1")


def _loaded(path: Path, mode: str) -> sqlite3.Connection:
    result = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    try:
        with closing(connect(path, mode, 0.0)) as source:
            source.backup(result)
        result.execute("PRAGMA query_only = 1")
    except BaseException:
        result.close()
        raise
    return result
