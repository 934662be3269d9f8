"""How many sources there are to come, for whoever shows how far an ingest is."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

_BLOCK = 1 << 20


def count_lines(given: Path | BinaryIO) -> int | None:
    """Return the number of lines, blank ones included; None where reading them would use them up.

    A stream is left where it stood.
    """
    if isinstance(given, Path):
        with given.open("rb") as file:
            return count_lines(file)
    if not given.seekable():
        return None
    start, lines, last = given.tell(), 0, b"\n"
    while block := given.read(_BLOCK):
        lines += block.count(b"\n")
        last = block[-1:]
    given.seek(start)
    return lines + (last != b"\n")
