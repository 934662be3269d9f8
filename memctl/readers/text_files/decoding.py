"""Bytes become text: UTF-8 where they are UTF-8, else the declared or likeliest encoding.

Line ends become ``\\n`` and NUL characters go.  Nothing here holds more than a few million
characters of a streamed file, however long its lines are.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from memctl.files import open_regular, read_regular
from memctl.readers.pieces import PART_CHARS
from memctl.readers.reader_errors import check_size

SAMPLE_BYTES = 64 * 1024
_BLOCK = 1 << 20
_MIN_STATISTICS_BYTES = 40
"""With fewer bytes than this outside ASCII no statistics can tell legacy encodings apart."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def encoding_by_mark(head: bytes) -> str:
    """The encoding that a byte order mark, or the pattern of zero bytes, names; else ``""``."""
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding
    pairs = len(head) // 2
    if pairs >= 2:
        even, odd = head[0 : 2 * pairs : 2].count(0), head[1 : 2 * pairs : 2].count(0)
        if odd > 0.4 * pairs and even <= 0.02 * pairs:
            return "utf-16-le"
        if even > 0.4 * pairs and odd <= 0.02 * pairs:
            return "utf-16-be"
    return ""


def encoding_of_bytes(content: bytes, declared: str = "") -> str:
    """The encoding to decode ``content`` with: UTF-8 if it is, else the declared or likeliest."""
    if encoding := encoding_by_mark(content[:SAMPLE_BYTES]):
        return encoding
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        if _is_legacy(declared):
            return declared
        begin = max(0, error.start - SAMPLE_BYTES // 2)
        return _legacy_encoding(content[begin : begin + SAMPLE_BYTES])
    return "utf-8"


def _is_legacy(encoding: str) -> bool:
    """Return whether Python can decode text by that name and it is another than UTF-8 or ASCII."""
    try:
        known = codecs.lookup(encoding)
    except (LookupError, ValueError):
        return False
    return known._is_text_encoding and known.name not in ("utf-8", "ascii", "utf-7")


def encoding_of_file(path: Path) -> str:
    """The encoding of a whole file, in one pass over it that keeps nothing."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with open_regular(path) as file:
        block = file.read(_BLOCK)
        if encoding := encoding_by_mark(block[:SAMPLE_BYTES]):
            return encoding
        try:
            while block:
                decoder.decode(block)
                previous, block = block, file.read(_BLOCK)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            block = block or previous
            begin = max(0, error.start - SAMPLE_BYTES // 2)
            return _legacy_encoding(block[begin : begin + SAMPLE_BYTES])
    return "utf-8"


def _legacy_encoding(sample: bytes) -> str:
    if _mostly_utf8(sample):
        return "utf-8"
    if has_many_foreign(sample):
        from charset_normalizer import from_bytes

        best = from_bytes(sample).best()
        if best is not None:
            return best.encoding
    return "cp1252"


def has_many_foreign(sample: bytes) -> bool:
    """Return whether there are enough bytes outside ASCII to tell legacy encodings apart."""
    return sum(byte >= 0x80 for byte in sample) >= _MIN_STATISTICS_BYTES


def _mostly_utf8(sample: bytes) -> bool:
    """Return whether this is UTF-8 with a few damaged places rather than another encoding."""
    text = sample.decode("utf-8", "replace").strip("\ufffd")
    damaged = text.count("\ufffd")
    foreign = sum(character >= "\x80" for character in text) - damaged
    return foreign > 4 * damaged


def decode(content: bytes, declared: str = "") -> str:
    """The text of bytes that are in memory.

    ``declared`` is the encoding that the source itself names; it counts where the bytes are not
    UTF-8.
    """
    encoding = encoding_of_bytes(content, declared)
    return normalise_line_ends(content.decode(encoding, "replace").removeprefix("\ufeff"))


def normalise_line_ends(text: str) -> str:
    """The text with ``\\n`` as its line end and without NUL characters."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")


def open_text(path: Path) -> TextIO:
    """Open a text file in its own encoding, line ends as ``\\n``, NUL characters still in it."""
    return path.open("r", encoding=encoding_of_file(path), errors="replace", newline=None)


def read_whole(path: Path, name: str, limit: int) -> str:
    """The text of a file of a format that cannot be read in parts.

    Raises:
        UnreadableSource: It has more than ``limit`` bytes.
    """
    check_size(path, name, limit)
    return decode(read_regular(path))


def text_blocks(path: Path, size: int = PART_CHARS) -> Iterator[str]:
    """Yield the text in blocks of up to ``size`` characters, cut at line ends where it has any."""
    with open_text(path) as file:
        rest = file.read(1).removeprefix("\ufeff").replace("\0", "")
        while True:
            block = file.read(size - len(rest))
            rest += block.replace("\0", "")
            if not block:
                break
            if len(rest) >= size:
                cut = rest.rfind("\n") + 1 or len(rest)
                yield rest[:cut]
                rest = rest[cut:]
    if rest:
        yield rest


def text_lines(path: Path, longest: int = PART_CHARS) -> Iterator[str]:
    """Yield the lines with their ends; one longer than ``longest`` characters comes in pieces."""
    with open_text(path) as file:
        line = file.readline(longest).removeprefix("\ufeff")
        while line:
            yield line.replace("\0", "")
            line = file.readline(longest)
