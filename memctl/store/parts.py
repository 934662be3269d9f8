"""Which files a version of a table is made of, and whether they are there and of their length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.store.datasets import Datasets
from memctl.store.engine import without_panics
from memctl.store.inspection import ENGINE_ERRORS, INDEXES, can_be_read, has_its_size
from memctl.store.names import TableName

if TYPE_CHECKING:
    from lance import LanceDataset, LanceFragment


def parts_of(dataset: LanceDataset) -> Iterator[tuple[str, int]]:
    """Yield the files and folders of a version, below the table's, with their sizes."""
    for fragment in dataset.get_fragments():
        for part in fragment.metadata.files:
            yield f"data/{part.path}", part.file_size_bytes or 0
        if (deleted := fragment.deletion_file()) is not None:
            yield deleted, 0  # some bytes a row
    for index in dataset.describe_indices():
        for segment in index.segments:
            yield f"{INDEXES}/{segment.uuid}", segment.size_bytes or 0


def damaged_files(
    datasets: Datasets, versions: Mapping[TableName, int], read: set[str] | None = None
) -> list[Path]:
    """Return the files of versions that are gone, cut short or zeroed.

    Args:
        datasets: The tables.
        versions: Which ones.
        read: Where it is given every row is read, and of each file by default its end alone, which
            says where everything stands in it.  Files of rows that are named here are passed over,
            and those that could be read are added.

    Raises:
        DamagedError: A manifest cannot be read.
    """
    return [
        datasets.path(table) / part
        for table, version in versions.items()
        for part in _damaged_parts(datasets.at(table, version), read)
    ]


def _damaged_parts(dataset: LanceDataset, read: set[str] | None) -> Iterator[str]:
    for fragment in dataset.get_fragments():
        files = f"{[part.path for part in fragment.metadata.files]} {fragment.deletion_file()}"
        if read is not None and files in read:
            continue
        if not _has_its_files(fragment) or (
            read is not None and not can_be_read(dataset, fragment)
        ):
            yield f"data/{fragment.metadata.files[0].path}"
        elif read is not None:
            read.add(files)
    for index in dataset.describe_indices():
        for segment in index.segments:
            place = f"{INDEXES}/{segment.uuid}"
            if not has_its_size(Path(dataset.uri) / place, segment.size_bytes):
                yield place


def _has_its_files(fragment: LanceFragment) -> bool:
    """Tell whether the files of rows can be opened, and its file of deletions read."""
    try:
        with without_panics():
            fragment.validate()
    except ENGINE_ERRORS:
        return False
    return True
