"""How readers refuse a file: too large, out of proportion, damaged."""

from __future__ import annotations

import errno
import lzma
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from memctl.errors import OverLimit, UnreadableSource
from memctl.readers.file_names import display_name, shorten
from memctl.readers.pieces import Piece
from memctl.records import SourceText

Item = TypeVar("Item", Piece, SourceText)

_LENGTH_OF_ANY = 10_000_000
_LENGTH_PER_BYTE = 50
"""Characters that any file may give, and further ones for each of its bytes.

Tables give the most, since every value is repeated with the name of its column; but a file of a few
kilobytes can repeat one long text in every cell.
"""


def check_size(path: Path, name: str, limit: int) -> None:
    """Refuse a file of a format that can only be read as a whole when it is bigger than ``limit``.

    Raises:
        UnreadableSource: It has more than ``limit`` bytes.
    """
    size = path.stat().st_size
    if size > limit:
        raise UnreadableSource(
            f"{display_name(name)} is too big: {size:,} bytes, and such a file is read as a whole "
            f"up to {limit:,}",
            "split it; tables can be any size as CSV or JSON lines",
        )


def limit_expansion(items: Iterable[Item], path: Path, name: str) -> Iterator[Item]:
    """Yield what is read from a file, and raise when its text is out of proportion to the file.

    Args:
        items: What is read.
        path: The file.
        name: What the source is called.

    Raises:
        OverLimit: It gives far more text than a file of its size holds.
    """
    size = path.stat().st_size
    left = _LENGTH_OF_ANY + _LENGTH_PER_BYTE * size
    for item in items:
        left -= len(item.text)
        if left < 0:
            raise OverLimit(
                f"{display_name(name)} gives far more text than a file of {size:,} bytes holds",
                "check where it comes from; if it is genuine, split it into smaller files",
            )
        yield item


def with_file_name(error: UnreadableSource, name: str) -> UnreadableSource:
    """Return the same error with the file's name in front, unless it is there."""
    shown = display_name(name)
    if error.message.startswith(shown):
        return error
    return type(error)(f"{shown}: {error.message}", error.hint)


PARSER_ERRORS: tuple[type[Exception], ...] = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,  # Pillow, for a broken PNG
    TypeError,
    ValueError,
    lzma.LZMAError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
"""What parsers of binary formats raise when bytes are not what they expect."""

_DISK_ERRORS = frozenset(
    getattr(errno, name) for name in ("EIO", "ENOSPC", "EDQUOT", "EFBIG") if hasattr(errno, name)
)


def is_disk_error(error: Exception) -> bool:
    """Return whether the disk is what failed, full or broken, and not the file that is read.

    The system's errors are ``OSError`` itself; a class of a library's own, as PyAV has for damaged
    videos, may bear the same number.
    """
    return type(error) is OSError and error.errno in _DISK_ERRORS


_REASON_LENGTH = 120
_OBJECT = re.compile(r"\s*<_io\.[^>]*>")
"""How Python shows an open file, which Pillow puts into its messages."""


@contextmanager
def damage_as_unreadable(name: str, kind: str, *own: type[Exception]) -> Iterator[None]:
    """Turn what a library raises for a damaged file into one line that names the file.

    Args:
        name: What the source is called.
        kind: What it should have been, with its article: ``a PDF``.
        own: The library's own exceptions.

    Raises:
        UnreadableSource: In place of them.
        OSError: The disk failed.
    """
    try:
        yield
    except (*PARSER_ERRORS, *own) as error:
        if is_disk_error(error):
            raise
        said = _OBJECT.sub("", str(error))
        reason = shorten(said, _REASON_LENGTH) or type(error).__name__
        raise UnreadableSource(
            f"{display_name(name)} is damaged or not {kind}: {reason}",
            "open it in the program it comes from, save it again and retry",
        ) from error


@contextmanager
def without_warnings() -> Iterator[None]:
    """Keep a library's warnings about an odd file off the terminal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
