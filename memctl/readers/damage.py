"""What libraries raise over a damaged file, and how that is told to a person."""

from __future__ import annotations

import lzma
import struct
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from memctl.errors import UnreadableSource
from memctl.readers.names import shortened, shown_name

DAMAGE: tuple[type[Exception], ...] = (
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
"""What parsers of binary formats let through when bytes are not what they must be."""

_REASON_LENGTH = 120


@contextmanager
def told_as_damage(name: str, kind: str, *own: type[Exception]) -> Iterator[None]:
    """Turn what a library raises over a damaged file into one line that names the file.

    Args:
        name: What the source is called.
        kind: What it should have been, with its article: ``a PDF``.
        own: The library's own exceptions.

    Raises:
        UnreadableSource: In place of them.
    """
    try:
        yield
    except (*DAMAGE, *own) as error:
        reason = shortened(str(error), _REASON_LENGTH) or type(error).__name__
        raise UnreadableSource(
            f"{shown_name(name)} is damaged or not {kind}: {reason}",
            "open it in the program it comes from, save it again and retry",
        ) from error


@contextmanager
def without_warnings() -> Iterator[None]:
    """Keep what a library has to say about an odd file off the terminal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
