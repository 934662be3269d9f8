"""Checksums of the tables' files, by which a byte that has changed on the disk is found.

The engine has none of its own: a flipped bit in a text, a number or a vector is read as it stands.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.files import open_regular
from memctl.store.durability import files_below
from memctl.store.inspection import INDEXES
from memctl.store.names import TABLES
from memctl.store.parts import files_of
from memctl.store.sum_book import Sum

if TYPE_CHECKING:
    from memctl.store.datasets import Datasets
    from memctl.store.ledger import Ledger

_SUMMED = ("data", "_deletions", INDEXES)
"""Folders of a table.  Of manifests the ledger has copies, and nothing else is ever read."""
_READ_BYTES = 1 << 20
"""At once."""
AT_ONCE_BYTES = 1 << 30
"""An upkeep reads so much, and one file more, of what memctl of before has written without sums."""


def sum_of(path: Path) -> Sum:
    """Return the length and the checksum of a file.

    Raises:
        OSError: It cannot be read.
    """
    size = crc32 = 0
    buffer = bytearray(_READ_BYTES)
    view = memoryview(buffer)
    with open_regular(path) as file:
        while read := file.readinto(buffer):
            size, crc32 = size + read, zlib.crc32(view[:read], crc32)
    return Sum(size, crc32)


def sums_of(folder: Path, paths: Iterable[str]) -> dict[str, Sum]:
    """Return the sums of those of some files that a table cannot do without.

    Args:
        folder: The table's.
        paths: Of files in it; some may be gone by now.
    """
    found: dict[str, Sum] = {}
    for path in map(Path, paths):
        place = path.relative_to(folder)
        if place.parts[0] in _SUMMED:
            try:
                found[place.as_posix()] = sum_of(path)
            except FileNotFoundError:
                continue
    return found


def note_missing_sums(datasets: Datasets, ledger: Ledger, most: int | None = None) -> None:
    """Take the sums of files of HEAD that have none, of which some are from before there were any.

    Args:
        datasets: The tables; the caller holds the lock.
        ledger: Where they are noted.
        most: Stop when so many bytes have been read; by default at the end.
    """
    read = 0
    for table, version in ledger.head().items():
        known, folder = ledger.sums.all(table), datasets.path(table)
        found: dict[str, Sum] = {}
        for part in files_of(datasets.at(table, version)):
            if part not in known and (most is None or read < most):
                found |= sums_of(folder, [f"{folder}/{part}"])
                read += found[part].size if part in found else 0
        ledger.sums.add(table, found)


def drop_sums(datasets: Datasets, ledger: Ledger) -> None:
    """Drop the sums of files that have been pruned."""
    for table in TABLES:
        folder = datasets.path(table)
        there = {Path(path).relative_to(folder).as_posix() for path in files_below(folder)}
        ledger.sums.keep(table, there)
