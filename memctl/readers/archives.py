"""Zip files that claim to be documents are looked over before anything in them is unpacked."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from memctl.errors import UnreadableSource
from memctl.files import open_regular
from memctl.readers.damage import told_as_damage
from memctl.readers.names import shown_name

LARGEST = 1024 * 1024 * 1024
"""More unpacked bytes than this are refused outright."""

SUSPICIOUS = 64 * 1024 * 1024
"""From here on the packing itself is looked at."""

HIGHEST_RATIO = 200
"""Tables pack to a hundredth; what packs better than this is made of nothing."""

MOST_MEMBERS = 20_000
MOST_LISTING = 4 * 1024 * 1024
"""Bytes of the list of members: a longer one takes a minute and a gigabyte to be looked through."""

_END, _END_BYTES, _LONGEST_COMMENT = b"PK\x05\x06", 22, 0xFFFF
_END_64, _END_64_BYTES = b"PK\x06\x06", 56
_LOCATOR, _LOCATOR_BYTES = b"PK\x06\x07", 20


def check_archive(path: Path, name: str, kind: str) -> None:
    """Refuse an archive that would unpack to an absurd size.

    The sizes are those that the archive states, and :mod:`zipfile` never unpacks more than that.

    Args:
        path: The archive.
        name: What the source is called.
        kind: What it should be, with its article: ``a Word document``.

    Raises:
        UnreadableSource: It is no zip file, is damaged, or unpacks to too much.
    """
    if listing_bytes(path) > MOST_LISTING:
        raise UnreadableSource(
            f"{shown_name(name)} lists more members than any {kind.partition(' ')[2]} has",
            "check where it comes from",
        )
    with told_as_damage(name, kind), zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    unpacked = sum(member.file_size for member in members)
    packed = max(1, path.stat().st_size)
    absurd = unpacked > SUSPICIOUS and unpacked > HIGHEST_RATIO * packed
    if absurd or unpacked > LARGEST or len(members) > MOST_MEMBERS:
        raise UnreadableSource(
            f"{shown_name(name)} would unpack from {packed:,} to {unpacked:,} bytes in "
            f"{len(members):,} members, which no {kind.partition(' ')[2]} needs",
            "check where it comes from; if it is genuine, save it in smaller parts",
        )


def listing_bytes(path: Path) -> int:
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
    return max((_stated(tail, end, size) for end in ends), default=0)


def _stated(tail: bytes, end: int, size: int) -> int:
    """How long one end says that the list is; as long as the file, if it says so elsewhere."""
    locator = end - _LOCATOR_BYTES
    if locator < 0 or not tail.startswith(_LOCATOR, locator):
        return int.from_bytes(tail[end + 12 : end + 16], "little")
    end_64 = locator - _END_64_BYTES
    if end_64 < 0 or not tail.startswith(_END_64, end_64):
        return size
    return int.from_bytes(tail[end_64 + 40 : end_64 + 48], "little")
