"""Standard input as a file: readers seek in it, and some of them run in a child process.

The file is in the knowledge base's own folder, which is closed to other people.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from memctl.files import clear_temporaries, is_temporary, new_temporary

_NAME = "stdin"


def is_spool(path: Path) -> bool:
    """Whether a file is a copy of standard input."""
    return is_temporary(path.name, _NAME)


def spool_folder(folder: Path) -> Path:
    """The folder of a knowledge base; that for temporary files where nothing is written to it."""
    return folder if os.access(folder, os.W_OK) else Path(tempfile.gettempdir())


@contextmanager
def spooled(stream: BinaryIO, folder: Path) -> Iterator[Path]:
    """A file in ``folder`` with all that ``stream`` gives, gone when the context is left."""
    path, descriptor = new_temporary(folder / _NAME)
    try:
        with os.fdopen(descriptor, "wb") as file:
            shutil.copyfileobj(stream, file)
            file.flush()
            yield path
    finally:
        path.unlink(missing_ok=True)


def clear_spools(folder: Path) -> None:
    """Remove copies of standard input that nobody reads any more."""
    clear_temporaries(filter(is_spool, folder.glob(f".{_NAME}.*")))
