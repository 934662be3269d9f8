"""Limits that several readers share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from memctl.errors import OverLimit, UnreadableSource
from memctl.readers.names import shown_name

Item = TypeVar("Item")

_LENGTH_OF_ANY = 10_000_000
_LENGTH_PER_BYTE = 50
"""Characters that any file may give, and that it may give for each of its bytes besides.

A table gives the most, where every value is said with the name of its column; but a few kilobytes
can say one long text in every cell.
"""


def check_size(path: Path, name: str, limit: int) -> None:
    """Refuse a file of a format that can only be read as a whole when it is bigger than ``limit``.

    Raises:
        UnreadableSource: It has more than ``limit`` bytes.
    """
    size = path.stat().st_size
    if size > limit:
        raise UnreadableSource(
            f"{shown_name(name)} is too big: {size:,} bytes, and such a file is read as a whole "
            f"up to {limit:,}",
            "split it; tables can be any size as CSV or JSON lines",
        )


def in_proportion(
    items: Iterable[Item], path: Path, name: str, length: Callable[[Item], int]
) -> Iterator[Item]:
    """Yield what is read from a file until its text is out of proportion to the file.

    Args:
        items: What is read.
        path: The file.
        name: What the source is called.
        length: How many characters one has.

    Raises:
        OverLimit: It gives far more text than a file of its size holds.
    """
    size = path.stat().st_size
    left = _LENGTH_OF_ANY + _LENGTH_PER_BYTE * size
    for item in items:
        left -= length(item)
        if left < 0:
            raise OverLimit(
                f"{shown_name(name)} gives far more text than a file of {size:,} bytes holds",
                "check where it comes from; if it is genuine, split it into smaller files",
            )
        yield item


def named(error: UnreadableSource, name: str) -> UnreadableSource:
    """The same refusal with the file's name in front, where it is not there yet."""
    shown = shown_name(name)
    if error.message.startswith(shown):
        return error
    return type(error)(f"{shown}: {error.message}", error.hint)
