"""Limits that several readers share."""

from __future__ import annotations

from pathlib import Path

from memctl.errors import UnreadableSource
from memctl.readers.names import shown_name


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


def named(error: UnreadableSource, name: str) -> UnreadableSource:
    """The same refusal with the file's name in front, where it is not there yet."""
    shown = shown_name(name)
    if error.message.startswith(shown):
        return error
    return type(error)(f"{shown}: {error.message}", error.hint)
