"""Locks that the kernel holds for a process, and lets go of when that ends, however it ends."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.errors import DiskRefused, MemctlError

if TYPE_CHECKING:
    from filelock import FileLock

_NO_LOCKS = frozenset([errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])


def acquire_lock(path: Path, wait: float | None, held: Callable[[], MemctlError]) -> FileLock:
    """Lock a file, which is made if it is not there; threads of this process are kept out, too.

    Args:
        path: Which one.
        wait: Seconds to wait for its holder; without a limit if None.
        held: Gives the error to raise if it is still held then.

    Raises:
        MemctlError: What ``held`` gives.
        DiskRefused: It cannot be locked.
    """
    from filelock import Timeout  # only writers pay for its import

    lock = _lock(path)
    try:
        lock.acquire(timeout=-1 if wait is None else wait)
    except Timeout as error:
        raise held() from error
    except OSError as error:
        raise DiskRefused(f"cannot lock {path}: {error.strerror}", _hint(error)) from error
    return lock


@contextmanager
def hold_lock(path: Path, wait: float | None, held: Callable[[], MemctlError]) -> Iterator[None]:
    """Hold the lock of a file in a block; see :func:`acquire_lock`."""
    lock = acquire_lock(path, wait, held)
    try:
        yield
    finally:
        lock.release()


def is_locked(path: Path, *, if_unreadable: bool) -> bool:
    """Return whether a lock is held now.

    Args:
        path: The file of the lock.
        if_unreadable: The answer where it is not ours to open, as that of another user.
    """
    from filelock import Timeout

    if not path.exists():
        return False
    lock = _lock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    except OSError:
        return _is_locked_by_others(path, if_unreadable=if_unreadable)
    lock.release()
    return False


def _is_locked_by_others(path: Path, *, if_unreadable: bool) -> bool:
    """Return whether a lock is held whose file can only be read, as on a read-only mount."""
    if sys.platform == "win32":
        return if_unreadable
    import fcntl

    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return if_unreadable
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return if_unreadable
    finally:
        os.close(descriptor)
    return False


def _lock(path: Path) -> FileLock:
    """A lock of the kernel's; where a file system has none, no other kind is taken for it.

    The other kind is a file that stays when its process is killed, and keeps everybody out then.
    """
    from filelock import FileLock

    return FileLock(path, mode=0o600, thread_local=False, fallback_to_soft=False)


def _hint(error: OSError) -> str:
    if error.errno in _NO_LOCKS:
        return "its file system knows no locks: keep the home on another one"
    return "check the disk and the folder's permissions"
