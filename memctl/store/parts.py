"""Which files a version of a table is made of, and whether they are there and of their length."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.store.datasets import Datasets
from memctl.store.engine import without_panics
from memctl.store.inspection import ENGINE_ERRORS
from memctl.store.names import TableName

if TYPE_CHECKING:
    from lance import LanceDataset, LanceFragment

_END_BYTES = 4


def parts_of(dataset: LanceDataset) -> Iterator[tuple[str, int]]:
    """Yield the files and folders of a version, below the table's, with their sizes."""
    for fragment in dataset.get_fragments():
        for part in fragment.metadata.files:
            yield f"data/{part.path}", part.file_size_bytes or 0
        if (deleted := fragment.deletion_file()) is not None:
            yield deleted, 0  # some bytes a row
    for index in dataset.describe_indices():
        for segment in index.segments:
            yield f"_indices/{segment.uuid}", segment.size_bytes or 0


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
            place = f"_indices/{segment.uuid}"
            if not _has_its_size(Path(dataset.uri) / place, segment.size_bytes):
                yield place


def _has_its_files(fragment: LanceFragment) -> bool:
    """Tell whether the files of rows can be opened, and its file of deletions read."""
    try:
        with without_panics():
            fragment.validate()
    except ENGINE_ERRORS:
        return False
    return True


def _has_its_size(folder: Path, size: int | None) -> bool:
    """Tell whether the files of an index have the bytes that they had; older ones say no size."""
    files = list(folder.iterdir()) if folder.is_dir() else []
    total = sum(path.stat().st_size for path in files)
    return bool(files) and size in (None, 0, total) and all(map(_has_an_end, files))


def _has_an_end(path: Path) -> bool:
    """Tell whether the last bytes of a file are anything but zeros, as the engine's own mark is."""
    with path.open("rb") as file:
        file.seek(-min(_END_BYTES, path.stat().st_size), os.SEEK_END)
        return any(file.read())
