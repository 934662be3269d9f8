"""Zip files that claim to be documents are looked over before anything in them is unpacked."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path

from memctl.errors import UnreadableSource
from memctl.readers.damage import told_as_damage
from memctl.readers.names import shown_name
from memctl.store.zip_end import MOST_LISTING, listing_bytes

LARGEST = 1024 * 1024 * 1024
"""More unpacked bytes than this are refused outright."""

SUSPICIOUS = 64 * 1024 * 1024
"""From here on the packing itself is looked at."""

HIGHEST_RATIO = 200
"""Tables pack to a hundredth; what packs better than this is made of nothing."""

MOST_MEMBERS = 20_000

MARKS_OF_ANY, MARKS_PER_BYTE, ROW_MARKS_PER_BYTE = 2_000_000, 2, 10
"""Tags and attributes that any archive may have, and that it may have for each byte besides.

In a tree each takes up to 240 bytes of memory; those of rows take five microseconds of time.
"""

_BYTES_PER_MARK = 80
_BLOCK = 1 << 20


def check_archive(path: Path, name: str, kind: str, streamed: tuple[str, ...] = ()) -> None:
    """Refuse an archive that would unpack to an absurd size, or to more parts than it can need.

    The sizes are those that the archive states, and :mod:`zipfile` never unpacks more than that.

    Args:
        path: The archive.
        name: What the source is called.
        kind: What it should be, with its article: ``a Word document``.
        streamed: How the names of members begin that never are in memory as a whole.

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
        _check_sizes(path, name, kind, members)
        rows = [member for member in members if member.filename.startswith(streamed)]
        trees = [member for member in members if not member.filename.startswith(streamed)]
        size = path.stat().st_size
        if not (
            _has_few_marks(archive, trees, MARKS_OF_ANY + MARKS_PER_BYTE * size)
            and _has_few_marks(archive, rows, MARKS_OF_ANY + ROW_MARKS_PER_BYTE * size)
        ):
            raise UnreadableSource(
                f"{shown_name(name)} has far more parts than {kind} of {size:,} bytes needs",
                "check where it comes from; if it is genuine, save it in smaller parts",
            )


def _check_sizes(path: Path, name: str, kind: str, members: Sequence[zipfile.ZipInfo]) -> None:
    unpacked = sum(member.file_size for member in members)
    packed = max(1, path.stat().st_size)
    absurd = unpacked > SUSPICIOUS and unpacked > HIGHEST_RATIO * packed
    if absurd or unpacked > LARGEST or len(members) > MOST_MEMBERS:
        raise UnreadableSource(
            f"{shown_name(name)} would unpack from {packed:,} to {unpacked:,} bytes in "
            f"{len(members):,} members, which no {kind.partition(' ')[2]} needs",
            "check where it comes from; if it is genuine, save it in smaller parts",
        )


def _has_few_marks(archive: zipfile.ZipFile, members: Iterable[zipfile.ZipInfo], most: int) -> bool:
    counts = accumulate(_marks(archive, member) for member in members)
    return all(count <= most for count in counts)


def _marks(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """How many tags and attributes a member may have; none where it is no XML, as its bytes tell.

    Any bytes at all have one such mark in 128, as pictures do.
    """
    marks = 0
    with archive.open(member) as file:
        while block := file.read(_BLOCK):
            marks += block.count(b"<") + block.count(b"=")
    return marks if marks * _BYTES_PER_MARK > member.file_size else 0
