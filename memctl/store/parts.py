"""Which files a version of a table is made of, and whether they are there and of their length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.store.datasets import Datasets
from memctl.store.engine import without_panics
from memctl.store.inspection import ENGINE_ERRORS, INDEXES, has_its_size
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


def damaged_files(datasets: Datasets, versions: Mapping[TableName, int]) -> list[Path]:
    """Return the files of versions that are gone, cut short or zeroed.

    Of a file that is long enough its end alone is read, which says where everything stands in it.

    Raises:
        DamagedError: A manifest cannot be read.
    """
    return [
        datasets.path(table) / part
        for table, version in versions.items()
        for part in _damaged_parts(datasets.at(table, version))
    ]


def _damaged_parts(dataset: LanceDataset) -> Iterator[str]:
    for fragment in dataset.get_fragments():
        if not _has_its_files(fragment):
            yield f"data/{fragment.metadata.files[0].path}"
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
