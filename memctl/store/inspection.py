"""Looking at the tables' files without changing any: what can be read of them and what cannot."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.errors import DamagedError
from memctl.store.datasets import Datasets
from memctl.store.durability import manifest_version
from memctl.store.engine import bounded, lance, without_panics
from memctl.store.names import TableName

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset, LanceFragment

    from memctl.store.snapshot import Snapshot
    from memctl.store.verifying import Verifier

INDEXES = "_indices"
ENGINE_ERRORS = (OSError, ValueError, RuntimeError)
READ_BYTES = 8 << 20
"""Rows are read in pieces of about so many bytes."""

_LARGE_INDEXES = ("Inverted", "IVF")
"""How the types begin of indexes that the engine (lance 13) loads whole, however large, when it is
asked to load them: of a million memories into some 300 MB."""
_END_BYTES = 4


@dataclass(frozen=True, slots=True)
class TableState:
    """What the files of one table are like at the version that counts."""

    table: TableName
    version: int
    rows: int = 0
    files: int = 0
    problem: str = ""
    """Why the version cannot be opened at all."""
    lost_files: int = 0
    """How many of its files of rows cannot be read, with the deletions in them."""
    changed_files: int = 0
    """How many of the others are not as they were written: what is read of them may be wrong."""
    broken_indexes: tuple[str, ...] = ()
    unindexed: int = 0
    """Rows that the index which is furthest behind does not know."""
    versions: tuple[int, ...] = ()
    """Every version that can be opened, the newest first."""
    lost_versions: tuple[int, ...] = ()
    """Versions that cannot, though there is a manifest of them."""

    @property
    def is_readable(self) -> bool:
        """Whether every row can be read, and is what was written."""
        return not self.problem and not self.lost_files and not self.changed_files

    @property
    def later_versions(self) -> tuple[int, ...]:
        """Versions beyond this one: of a change in progress, or left by one that was cut off."""
        return tuple(n for n in (*self.versions, *self.lost_versions) if n > self.version)


def inspect_table(
    datasets: Datasets, table: TableName, version: int, verifier: Verifier
) -> TableState:
    """Open a table at a version and read each of its files and indexes once."""
    present = versions_on_disk(datasets, table)
    versions = tuple(number for number in present if can_be_opened(datasets, table, number))
    lost = tuple(sorted(set(present).difference(versions), reverse=True))
    try:
        dataset = datasets.fresh(table, version)
    except DamagedError as error:
        return TableState(
            table, version, problem=error.message, versions=versions, lost_versions=lost
        )
    fragments = dataset.get_fragments()
    readable = [each for each in fragments if verifier.can_be_read(dataset, each)]
    changed = [each for each in readable if verifier.of_rows(dataset, each) == "changed"]
    unreadable = len(fragments) - len(readable)
    rows = int(dataset.count_rows()) if not unreadable else 0
    indexed = min((item.num_rows_indexed for item in dataset.describe_indices()), default=rows)
    return TableState(
        table,
        version,
        rows,
        len(fragments),
        lost_files=unreadable,
        changed_files=len(changed),
        broken_indexes=tuple(verifier.broken_indexes(dataset)),
        unindexed=max(rows - indexed, 0),
        versions=versions,
        lost_versions=lost,
    )


def versions_on_disk(datasets: Datasets, table: TableName) -> list[int]:
    """Return the versions that there are manifests of, the newest first."""
    manifests = (datasets.path(table) / "_versions").glob("*.manifest")
    return sorted(map(manifest_version, manifests), reverse=True)


def can_be_opened(datasets: Datasets, table: TableName, version: int) -> bool:
    """Tell whether the manifest of a version can be read."""
    try:
        datasets.fresh(table, version)
    except DamagedError:
        return False
    return True


def rows_of(dataset: LanceDataset, fragment: LanceFragment) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one file, in pieces; reading can raise one of ``ENGINE_ERRORS``."""
    with without_panics():
        yield from dataset.scanner(fragments=[fragment], **bounded(READ_BYTES)).to_reader()


def broken_indexes(dataset: LanceDataset, names: Container[str]) -> Iterator[str]:
    """Yield those of some indexes of which a file is gone, or cannot be read to its end."""
    for index in (each for each in dataset.describe_indices() if each.name in names):
        folders = [Path(dataset.uri) / INDEXES / str(each.uuid) for each in index.segments]
        sizes = [each.size_bytes for each in index.segments]
        try:
            is_whole = all(map(has_its_size, folders, sizes))
            for path in (path for folder in folders if is_whole for path in folder.iterdir()):
                for _ in read_file(path):
                    pass
            if is_whole and not index.index_type.startswith(_LARGE_INDEXES):
                with without_panics():
                    dataset.prewarm_index(index.name)
        except ENGINE_ERRORS:
            is_whole = False
        if not is_whole:
            yield index.name


def read_file(path: Path) -> Iterator[pa.RecordBatch]:
    """Yield what stands in a file of the engine; reading can raise one of ``ENGINE_ERRORS``."""
    from lance.file import LanceFileReader

    lance()
    with without_panics():
        yield from LanceFileReader(str(path)).read_all(batch_size=1024).to_batches()


def has_its_size(folder: Path, size: int | None) -> bool:
    """Tell whether the files of an index have the bytes that they had; older ones say no size."""
    files = list(folder.iterdir()) if folder.is_dir() else []
    total = sum(path.stat().st_size for path in files)
    return bool(files) and size in (None, 0, total) and all(map(_has_an_end, files))


def _has_an_end(path: Path) -> bool:
    """Tell whether the last bytes of a file are anything but zeros, as the engine's mark is."""
    with path.open("rb") as file:
        file.seek(-min(_END_BYTES, path.stat().st_size), os.SEEK_END)
        return any(file.read())


def vectors_wide(snapshot: Snapshot) -> int:
    """Return the length that the table itself gives its vectors."""
    return int(snapshot.dataset("memories").schema.field("vector").type.list_size)


def can_be_read(dataset: LanceDataset, fragment: LanceFragment) -> bool:
    """Tell whether every row of a file can be read, and which of them are deleted."""
    try:
        for batch in rows_of(dataset, fragment):
            batch.validate(full=True)  # bytes that have changed may be no text any more
    except ENGINE_ERRORS:
        return False
    return True
