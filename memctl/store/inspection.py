"""Looking at the tables' files without changing any: what can be read of them and what cannot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memctl.errors import DamagedError
from memctl.store.datasets import Datasets
from memctl.store.durability import manifest_version
from memctl.store.engine import without_panics
from memctl.store.names import TableName

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset, LanceFragment

    from memctl.store.snapshot import Snapshot

ENGINE_ERRORS = (OSError, ValueError, RuntimeError)
READ_BYTES = 8 << 20
"""Rows are read in pieces of about so many bytes."""

_READ_BUT_NOT_KEPT = (
    "Encountered internal error. Please file a bug report at https://github.com/lance-format/lance"
    "/issues. FTS prewarm completed"
)
"""lance 13 has read all of a full-text index by then, and complains that the cache, which is
bounded here, has no room for it: so from some hundred thousand rows on."""


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
    broken_indexes: tuple[str, ...] = ()
    unindexed: int = 0
    """Rows that the index which is furthest behind does not know."""
    versions: tuple[int, ...] = ()
    """Every version that can be opened, the newest first."""
    lost_versions: tuple[int, ...] = ()
    """Versions that cannot, though there is a manifest of them."""

    @property
    def is_readable(self) -> bool:
        """Whether every row can be read."""
        return not self.problem and not self.lost_files

    @property
    def later_versions(self) -> tuple[int, ...]:
        """Versions beyond this one: of a change in progress, or left by one that was cut off."""
        return tuple(n for n in (*self.versions, *self.lost_versions) if n > self.version)


def inspect_table(datasets: Datasets, table: TableName, version: int) -> TableState:
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
    unreadable = [fragment for fragment in fragments if not can_be_read(dataset, fragment)]
    rows = int(dataset.count_rows()) if not unreadable else 0
    indexed = min((item.num_rows_indexed for item in dataset.describe_indices()), default=rows)
    return TableState(
        table,
        version,
        rows,
        len(fragments),
        lost_files=len(unreadable),
        broken_indexes=tuple(broken_indexes(dataset)),
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
        yield from dataset.scanner(
            fragments=[fragment], batch_size_bytes=READ_BYTES, batch_readahead=1
        ).to_reader()


def broken_indexes(dataset: LanceDataset) -> Iterator[str]:
    """Yield the names of indexes that cannot be loaded."""
    for index in dataset.describe_indices():
        try:
            with without_panics():
                dataset.prewarm_index(index.name)
        except ENGINE_ERRORS as error:
            if not str(error).startswith(_READ_BUT_NOT_KEPT):
                yield index.name


def vectors_wide(snapshot: Snapshot) -> int:
    """Return the length that the table itself gives its vectors."""
    return int(snapshot.dataset("memories").schema.field("vector").type.list_size)


def can_be_read(dataset: LanceDataset, fragment: LanceFragment) -> bool:
    """Tell whether every row of a file can be read, and which of them are deleted."""
    try:
        for _ in rows_of(dataset, fragment):
            pass
    except ENGINE_ERRORS:
        return False
    return True
