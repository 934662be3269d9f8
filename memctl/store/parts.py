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
    from lance.lance import IndexDescription


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


def files_of(dataset: LanceDataset) -> Iterator[str]:
    """Yield the files of a version, below its table's folder, those in folders of indexes too."""
    for fragment in dataset.get_fragments():
        yield from files_of_rows(fragment)
    for index in dataset.describe_indices():
        yield from files_of_index(Path(dataset.uri), index)


def files_of_rows(fragment: LanceFragment) -> list[str]:
    """Return the files that some rows stand in, below the table's folder, their deletions last."""
    deleted = fragment.deletion_file()
    rows = [f"data/{part.path}" for part in fragment.metadata.files]
    return [*rows, deleted] if deleted is not None else rows


def files_of_index(folder: Path, index: IndexDescription) -> Iterator[str]:
    """Yield the files of an index that are there, below the table's folder."""
    for segment in index.segments:
        place = f"{INDEXES}/{segment.uuid}"
        if (folder / place).is_dir():
            yield from (f"{place}/{path.name}" for path in (folder / place).iterdir())


def index_has_its_size(folder: Path, index: IndexDescription) -> bool:
    """Tell whether an index of the table in a folder has all of its files, as long as they were."""
    return all(
        has_its_size(folder / INDEXES / str(segment.uuid), segment.size_bytes)
        for segment in index.segments
    )


def damaged_files(datasets: Datasets, versions: Mapping[TableName, int]) -> list[Path]:
    """Return the files of versions that are gone, cut short or zeroed, as their ends tell.

    The end of a file says where everything stands in it.

    Raises:
        DamagedError: A manifest cannot be read.
    """
    return [
        datasets.path(table) / part
        for table, version in versions.items()
        for part in damaged_parts(datasets.at(table, version))
    ]


def damaged_parts(dataset: LanceDataset) -> Iterator[str]:
    """Yield those of one version, below the table's folder."""
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
