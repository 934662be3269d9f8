"""How long a zip file's list of members is, read from its end alone."""

from __future__ import annotations

import re
from pathlib import Path

from memctl.files import open_regular

MAX_DIRECTORY_BYTES = 4 * 1024 * 1024
"""Bytes of the list of members: a longer one takes a minute and a gigabyte to be looked through."""

_END, _END_BYTES, _LONGEST_COMMENT = b"PK\x05\x06", 22, 0xFFFF
_END_64, _END_64_BYTES = b"PK\x06\x06", 56
_LOCATOR, _LOCATOR_BYTES = b"PK\x06\x07", 20


def directory_bytes(path: Path) -> int:
    """How long an archive's list of members is, as its end states; 0 where it has no end.

    That is what :mod:`zipfile` reads into memory before it looks at anything.  What looks like an
    end may stand within another one, and it has rules of its own for which it takes, so this is
    the most that any of them states.

    Raises:
        OSError: It cannot be read.
    """
    most = _END_BYTES + _LONGEST_COMMENT + _LOCATOR_BYTES + _END_64_BYTES
    with open_regular(path) as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - most))
        tail = file.read()
    ends = [found.start() for found in re.finditer(re.escape(_END), tail)]
    return max((_stated_length(tail, end, size) for end in ends), default=0)


def _stated_length(tail: bytes, end: int, size: int) -> int:
    """How long one end says that the list is; as long as the file, if it says so elsewhere."""
    locator = end - _LOCATOR_BYTES
    if locator < 0 or not tail.startswith(_LOCATOR, locator):
        return int.from_bytes(tail[end + 12 : end + 16], "little")
    end_64 = locator - _END_64_BYTES
    if end_64 < 0 or not tail.startswith(_END_64, end_64):
        return size
    return int.from_bytes(tail[end_64 + 40 : end_64 + 48], "little")
