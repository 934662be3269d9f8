"""Zip files that claim to be documents are looked over before anything in them is unpacked."""

from __future__ import annotations

import zipfile
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
