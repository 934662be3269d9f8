"""Standard input as a file: readers seek in it, and some of them run in a child process.

The file is in the knowledge base's own folder, which is closed to other people.  Whoever wrote it
holds a lock on it, so that what a process which was killed has left can be told and removed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from memctl.files import is_temporary, lock_file, temporary_beside

_NAME = "stdin"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def is_spool(path: Path) -> bool:
    """Whether a file is a copy of standard input."""
    return is_temporary(path.name, _NAME)


def spool_folder(folder: Path) -> Path:
    """The folder of a knowledge base; that for temporary files where nothing is written to it."""
    return folder if os.access(folder, os.W_OK) else Path(tempfile.gettempdir())


@contextmanager
def spooled(stream: BinaryIO, folder: Path) -> Iterator[Path]:
    """A file in ``folder`` with all that ``stream`` gives, gone when the context is left."""
    path, file = _made(folder)
    try:
        with file:
            shutil.copyfileobj(stream, file)
            file.flush()
            yield path
    finally:
        path.unlink(missing_ok=True)


def clear_spools(folder: Path) -> None:
    """Remove copies of standard input that nobody reads any more."""
    for path in folder.glob(f".{_NAME}.*"):
        if is_spool(path):
            with suppress(OSError):  # it is in use, or gone
                with path.open("rb") as file:
                    lock_file(file.fileno())
                path.unlink()


def _made(folder: Path) -> tuple[Path, BinaryIO]:
    while True:
        path = temporary_beside(folder / _NAME)
        file = os.fdopen(os.open(path, _NEW, 0o600), "wb")
        with suppress(OSError):  # where there are no locks, nothing is cleared
            lock_file(file.fileno())
        if path.exists():  # nobody has cleared it before it was locked
            return path, file
        file.close()
