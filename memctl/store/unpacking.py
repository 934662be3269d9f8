"""What is packed in a file: members of archives and office files, compressed streams of a PDF.

Anybody may have made the file, so only so much of it is unpacked, and what cannot be is left out.
"""

from __future__ import annotations

import bz2
import gzip
import itertools
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from memctl.files import NotRegular, open_regular
from memctl.store.zip_end import MOST_LISTING, listing_bytes

_LARGEST_FILE = 64 << 20
_MOST_BYTES = 256 << 20
"""Of what is unpacked from one file."""
_MOST_MEMBERS = 10_000
_PIECE = 1 << 20
_STREAM = re.compile(rb"stream\r?\n")
_OPENERS: Mapping[bytes, Callable[..., Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
_CANNOT = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError, RuntimeError, EOFError,
    OSError, ValueError,
)  # fmt: skip
"""What the libraries raise for what is damaged, encrypted or packed in a way of its own."""


def unpacked(path: Path) -> Iterator[Iterator[bytes]]:
    """Yield what is packed in a file, each part of it as pieces that follow on one another."""
    try:
        with open_regular(path) as file:
            if os.fstat(file.fileno()).st_size > _LARGEST_FILE:
                return
            left = _Left()
            for part in _parts(path, file):
                yield left.of(part)
    except (FileNotFoundError, NotRegular):  # removed meanwhile, or another thing by now
        return


class _Left:
    """How much of a file may still be unpacked."""

    def __init__(self) -> None:
        self._bytes = _MOST_BYTES

    def of(self, part: IO[bytes] | bytes) -> Iterator[bytes]:
        """Yield the pieces of a part, as far as it can be unpacked."""
        if isinstance(part, bytes):
            self._bytes -= len(part)
            yield part
            return
        try:
            while self._bytes > 0 and (piece := part.read(_PIECE)):
                self._bytes -= len(piece)
                yield piece
        except _CANNOT:
            return


def _parts(path: Path, file: IO[bytes]) -> Iterator[IO[bytes] | bytes]:
    start = file.read(6)
    file.seek(0)
    if start.startswith(b"PK") and listing_bytes(path) <= MOST_LISTING:
        yield from _members(file)
    elif start.startswith(b"%PDF"):
        yield from _streams(file.read())
    for magic, opened in _OPENERS.items():
        if start.startswith(magic):
            with opened(file) as part:
                yield part


def _members(file: IO[bytes]) -> Iterator[IO[bytes] | bytes]:
    try:
        archive = zipfile.ZipFile(file)
    except _CANNOT:
        return
    with archive:
        for info in itertools.islice(archive.infolist(), _MOST_MEMBERS):
            yield info.filename.encode("utf-8", "surrogatepass")
            try:
                with archive.open(info) as member:
                    yield member
            except _CANNOT:
                continue


def _streams(content: bytes) -> Iterator[bytes]:
    whole = memoryview(content)
    for found in _STREAM.finditer(content):
        try:
            yield zlib.decompressobj().decompress(whole[found.end() :][:_PIECE], _PIECE)
        except zlib.error:  # not packed, or in another way
            continue
