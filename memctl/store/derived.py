"""What was worked out from the tables as they are at HEAD, kept for the next process.

It can always be made again, so whatever is torn or cannot be read counts as not there, and a disk
that cannot be written to is no error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from memctl.files import save_file

FOLDER = "derived"
MOST_KEPT = 4
"""Files; of more, the oldest go."""
_DIGEST_BYTES = hashlib.sha256().digest_size


class Derived:
    """What is kept of one commit.

    Args:
        folder: The knowledge base's.
        is_head: Tells whether that commit is the last one still.
    """

    def __init__(self, folder: Path, is_head: Callable[[], bool]) -> None:
        self._folder = folder / FOLDER
        self._is_head = is_head

    def read(self, name: str) -> bytes | None:
        """Return what was kept by that name; None where nothing was, or not all of it is there.

        Args:
            name: Says all that decides what it is, the state of the tables too.
        """
        try:
            kept = self._path(name).read_bytes()
        except OSError:
            return None
        digest, content = kept[:_DIGEST_BYTES], kept[_DIGEST_BYTES:]
        return content if hashlib.sha256(content).digest() == digest else None

    def write(self, name: str, content: bytes) -> None:
        """Keep something by a name, where the disk lets it, unless there is a later commit.

        That has removed what was kept before it; what is written after it has to be asked for.
        """
        path = self._path(name)
        with suppress(OSError):  # read-only, full, or removed by a commit meanwhile
            self._folder.mkdir(mode=0o700, exist_ok=True)
            save_file(path, hashlib.sha256(content).digest() + content)
            if not self._is_head():
                path.unlink()
            _drop_oldest(self._folder)

    def _path(self, name: str) -> Path:
        return self._folder / hashlib.sha256(name.encode()).hexdigest()


def drop_derived(folder: Path) -> None:
    """Remove all that is kept of a knowledge base, and what an interrupted write has left."""
    with suppress(OSError):
        for path in (folder / FOLDER).iterdir():
            path.unlink(missing_ok=True)


def _drop_oldest(folder: Path) -> None:
    newest = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in newest[MOST_KEPT:]:
        path.unlink()
