"""Why SQLite cannot go on, as errors of ours: somebody else writes, the disk, damage."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memctl.errors import DamagedError, DiskRefused, LockedError

_REFUSALS = {
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR_WRITE,
    sqlite3.SQLITE_IOERR_FSYNC,
    sqlite3.SQLITE_IOERR_TRUNCATE,
    sqlite3.SQLITE_IOERR_SHMOPEN,
    sqlite3.SQLITE_IOERR_SHMSIZE,
    sqlite3.SQLITE_IOERR_SHMMAP,
}


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn SQLite's failures into ours."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise LockedError(
                f"{path} is in use by another process", "wait for it to finish, then try again"
            ) from error
        if is_refusal(error):
            raise refused(path, why_refused(error)) from error
        raise _damaged(path, error) from error
    except sqlite3.DatabaseError as error:
        raise _damaged(path, error) from error


def is_refusal(error: sqlite3.OperationalError) -> bool:
    """Tell a disk that takes nothing more, or nothing from this user, from damage."""
    code = error.sqlite_errorcode
    return code in _REFUSALS or code & 0xFF in _REFUSALS


def why_refused(error: sqlite3.OperationalError) -> str:
    """Return SQLite's words; for a disk without room for its log they are "disk I/O error"."""
    is_vague = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_IOERR
    return f"{error}, perhaps no space is left" if is_vague else str(error)


def refused(path: Path, why: str) -> DiskRefused:
    """Return the error that says why something cannot be written."""
    return DiskRefused(f"cannot write to {path}: {why}", "check the disk's space and permissions")


def _damaged(path: Path, error: sqlite3.Error) -> DamagedError:
    return DamagedError(f"cannot use the ledger {path}: {error}", "run `memctl doctor --repair`")
