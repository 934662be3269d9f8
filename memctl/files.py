"""Writing files so that a reader sees the old content or the new, never half of either."""

from __future__ import annotations

import errno
import logging
import os
import re
import signal
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

_log = logging.getLogger(__name__)
_BINARY = getattr(os, "O_BINARY", 0)
_NONBLOCKING = getattr(os, "O_NONBLOCK", 0) | _BINARY
"""Opening does not wait for the other end of a pipe."""
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | _NONBLOCKING
"""And fails for a link."""
QUARANTINE_MARK = ".damaged-"
"""What stands in the name of a damaged file that has been kept, before a few random digits."""
_TEMPORARY_STEM_BYTES = 200
"""Of a name, in that of its temporary file: with what is added it stays below 255 bytes."""
_TEMPORARY = re.compile(r"\.(.*)\.[0-9a-f]{12}\.tmp", re.DOTALL)


def modified_ns(status: os.stat_result) -> int:
    """When a file was last changed, as far as 64 bits can tell: from 1677 to 2262."""
    return min(max(status.st_mtime_ns, -(1 << 63)), (1 << 63) - 1)


@contextmanager
def name_in_errors(path: Path | str) -> Iterator[None]:
    """Have an error of the system name ``path``: of a file that is open the system names none."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = os.fspath(path)
        raise


def sync_folder(folder: Path) -> None:
    """Make the folder's entries durable; a no-op where folders cannot be opened (Windows)."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with name_in_errors(folder):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_entry(path: Path) -> None:
    """Make durable what ``path`` names by now, and warn where that fails: it is done already."""
    try:
        sync_folder(path.parent)
    except OSError as error:
        _log.warning(
            "%s is in place, but a power cut may bring back what was: %s", path, error.strerror
        )


def sync_file(path: Path | str) -> None:
    """Make a regular file's content durable; nothing is done where there is none any more."""
    try:
        descriptor = _open_regular(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    except (FileNotFoundError, NotRegular):
        return
    try:
        with name_in_errors(path):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


class NotRegular(OSError):
    """What should be opened is a link, a pipe, a socket or a device."""


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading; a link is not followed, and nothing waits for a pipe.

    Raises:
        NotRegular: It is something else.
        OSError: It cannot be opened.
    """
    return os.fdopen(_open_regular(path, os.O_RDONLY), "rb")


def _open_regular(path: Path | str, access: int, flags: int = _NO_FOLLOW) -> int:
    is_a_link = (errno.ELOOP, errno.EMLINK) if flags == _NO_FOLLOW else ()
    try:
        descriptor = os.open(path, access | flags)
    except OSError as error:
        if error.errno in (*is_a_link, errno.ENXIO):  # or a socket
            raise NotRegular(error.errno, "it is no regular file", str(path)) from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegular(errno.EINVAL, "it is no regular file", str(path))
    return descriptor


def is_being_written(path: Path) -> bool:
    """Return whether a program has a file open for writing.

    Linux says so of one's own files on file systems that know leases; of every other the answer is
    no.  See fcntl(2), F_SETLEASE.
    """
    if sys.platform != "linux":
        return False
    import fcntl

    try:
        with open_regular(path) as file:
            # If it is opened in between, the kernel sends this process a harmless signal.
            fcntl.fcntl(file, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    return False


def read_regular(path: Path) -> bytes:
    """Return what is in a regular file; see :func:`open_regular`."""
    with open_regular(path) as file:
        return file.read()


def read_head(path: Path, limit: int) -> bytes:
    """Return the first bytes of a regular file, or of the one that a link leads to.

    Raises:
        NotRegular: It is something else; nothing waits for a pipe.
        OSError: It cannot be read.
    """
    with os.fdopen(_open_regular(path, os.O_RDONLY, _NONBLOCKING), "rb") as file:
        return file.read(limit)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Keep others out of a block under the same path, in this process and in all others.

    The file exists as long as the block is held.  Where it cannot be made, and on Windows, no one
    is kept out: what is done inside must be right for several at once, if in vain.
    """
    descriptor = _acquire_exclusive(path)
    try:
        yield
    finally:
        if descriptor is not None:
            with suppress(OSError):
                path.unlink()
            os.close(descriptor)


def _acquire_exclusive(path: Path) -> int | None:
    if sys.platform == "win32":
        return None
    import fcntl

    while True:
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        except FileNotFoundError:  # the former holder has removed it
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def lock_file(descriptor: int) -> None:
    """Lock a file for as long as it is open in this process; a no-op on Windows.

    Raises:
        OSError: Another process has locked it, or its file system knows no locks.
    """
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def make_folder(folder: Path, *, mode: int = 0o777) -> None:
    """Make a folder and those above it that are missing, durably; it may be there already.

    Args:
        folder: Which one.
        mode: Who may do what with it, less the umask; those above it are as the umask says.
    """
    missing = [each for each in (folder, *folder.parents) if not each.is_dir()]
    folder.mkdir(mode=mode, parents=True, exist_ok=True)
    for each in missing:
        sync_folder(each.parent)


@contextmanager
def atomic_write(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Give a file to write; ``path`` becomes it in one durable step when the block ends well.

    It is its owner's alone.

    Args:
        path: What to replace, or to make.
        durable: False for what is of no use after a power cut: it is not waited for the disk.

    Raises:
        OSError: The folder is missing, read-only or full; ``path`` is then as it was, and it is
            what the error names.
    """
    temporary, descriptor = new_temporary(path)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
            if os.name != "nt":  # where none that is open can be renamed, nor cleared away
                temporary.replace(path)
        if os.name == "nt":
            temporary.replace(path)
    except BaseException as error:
        with suppress(OSError):  # its folder may be gone
            temporary.unlink(missing_ok=True)
        _name_target(error, temporary, path)
        raise
    if durable:
        sync_entry(path)


def new_temporary(path: Path) -> tuple[Path, int]:
    """Make a file beside another one, as which that one is written, and lock it.

    It is its owner's alone.  Locked it stays until it is closed; see :func:`clear_temporaries`.

    Returns:
        Where it is, and its descriptor.

    Raises:
        OSError: The folder is missing, read-only or full; ``path`` is what the error names.
    """
    kept = os.fsencode(path.name)[-_TEMPORARY_STEM_BYTES:].decode("utf-8", "ignore")
    while True:
        temporary = path.with_name(f".{kept}.{os.urandom(6).hex()}.tmp")
        try:
            descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY, 0o600)
        except OSError as error:
            _name_target(error, temporary, path)
            raise
        try:
            lock_file(descriptor)
        except BlockingIOError:  # another process takes it for a leftover
            os.close(descriptor)
            temporary.unlink(missing_ok=True)
            continue
        except OSError:  # where there are no locks, nothing is cleared away
            return temporary, descriptor
        if temporary.exists():
            return temporary, descriptor
        os.close(descriptor)


def _name_target(error: BaseException, temporary: Path, path: Path) -> None:
    """Have an error of the system name what was to be written; writing and syncing name nothing."""
    if not isinstance(error, OSError) or error.errno is None:
        return
    if error.filename in (None, os.fspath(temporary)):
        error.filename, error.filename2 = os.fspath(path), None


def clear_temporaries(paths: Iterable[Path]) -> None:
    """Remove the temporary files of killed processes.

    A file that is still written is locked.  Files that are not named as :func:`new_temporary` does
    stay.
    """
    for path in paths:
        if is_temporary(path.name, ""):
            with suppress(OSError):  # it is in use, or gone
                with open_regular(path) as file:
                    lock_file(file.fileno())
                path.unlink()


def quarantine(path: Path) -> Path:
    """Give what is damaged another name beside it, and return that.

    Raises:
        OSError: It cannot be renamed.
    """
    return path.rename(path.with_name(f"{path.name}{QUARANTINE_MARK}{os.urandom(3).hex()}"))


def is_temporary(name: str, suffix: str) -> bool:
    """Return whether a killed process may have left this while writing a file that ends so."""
    match = _TEMPORARY.fullmatch(name)
    return match is not None and match[1].endswith(suffix)


def save_file(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Replace ``path`` by ``content`` in one step and make it durable; see :func:`replacing`.

    Raises:
        OSError: The folder is missing, read-only or full; ``path`` is then as it was.
    """
    with atomic_write(path, durable=durable) as file:
        file.write(content)
