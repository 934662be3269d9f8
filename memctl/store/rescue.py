"""Writing a damaged table anew from every row of it that can still be read.

Rows come from the version that counts, then from earlier ones, then from files that no version
names any more; of an id that is met twice the first row counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from memctl.store.datasets import Datasets
from memctl.store.engine import lance, without_panics
from memctl.store.indexes import create_indexes
from memctl.store.inspection import ENGINE_ERRORS, can_be_opened, rows_of, versions_on_disk
from memctl.store.names import TableName

if TYPE_CHECKING:
    from lance import LanceDataset


Believed = Callable[[pa.RecordBatch], pa.Array]


@dataclass(frozen=True, slots=True)
class Rescued:
    """A table that was written anew, and where its rows came from."""

    dataset: LanceDataset
    kept: int
    """Rows of the version that counts, or of the newest one that can be opened."""
    earlier: int
    """Rows that only earlier versions have."""
    loose: int
    """Rows from files that no version names any more."""


def rescue(
    datasets: Datasets,
    table: TableName,
    dataset: LanceDataset | None,
    *,
    names_all: bool,
    columns: pa.Schema | None,
    believed: Believed,
) -> Rescued | None:
    """Write a table anew; None where there is nothing to learn its columns from.

    Args:
        datasets: The tables; the caller holds the lock.
        table: Which one.
        dataset: Its newest version that can be opened.
        names_all: Whether that one names every file of rows there is, as the version that counts
            does; of an earlier one newer files are read too.
        columns: What it should have, where that is known.
        believed: Tells which rows may come from elsewhere than from that version: one that has
            been deleted since must not come back.
    """
    loose = [] if names_all else _loose_files(datasets, table)
    schema = dataset.schema if dataset is not None else _schema_in(loose) or columns
    if schema is None:
        return None
    expected = int(dataset.count_rows()) if dataset is not None else 0
    gathered = _Gathered(datasets.path(table), schema, dataset)
    kept = gathered.add_all(_parts(dataset))
    earlier = 0
    for version in _earlier(datasets, table, dataset):
        if kept + earlier >= expected:
            break
        earlier += gathered.add_all(_parts(datasets.fresh(table, version)), believed)
    found = gathered.add_all((_rows_in(path) for path in loose), believed)
    create_indexes(table, gathered.dataset)
    return Rescued(gathered.dataset, kept, earlier, found)


class _Gathered:
    """Rows on their way into a table that is written anew, each id once."""

    def __init__(self, path: Path, schema: pa.Schema, dataset: LanceDataset | None) -> None:
        self._path = str(path)
        self._seen: set[int] = set()
        if dataset is not None:
            dataset.restore()  # type: ignore[no-untyped-call]
        mode = "create" if dataset is None else "overwrite"
        self.dataset: LanceDataset = lance().write_dataset(
            schema.empty_table(), self._path, mode=mode
        )

    def add_all(
        self, parts: Iterable[Iterator[pa.RecordBatch]], believed: Believed | None = None
    ) -> int:
        """Add the rows of some files, as far as each can be read; return how many are new."""
        return sum(self._add(part, believed) for part in parts)

    def _add(self, part: Iterator[pa.RecordBatch], believed: Believed | None) -> int:
        # Read to its end first: lance 13 stalls when it writes from a stream that reads from it.
        batches = [
            self._unseen(batch if believed is None else batch.filter(believed(batch)))
            for batch in _until_unreadable(part)
            if batch.schema.equals(self.dataset.schema)  # another embedder's vectors are others
        ]
        rows = sum(int(batch.num_rows) for batch in batches)
        if rows:
            table = pa.Table.from_batches(batches)
            self.dataset = lance().write_dataset(table, self._path, mode="append")
        return rows

    def _unseen(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        new = []
        for id_ in map(hash, batch["id"].to_pylist()):
            new.append(id_ not in self._seen)
            self._seen.add(id_)
        return batch.filter(pa.array(new, pa.bool_()))


def _until_unreadable(part: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    try:
        yield from part
    except ENGINE_ERRORS:
        return


def _parts(dataset: LanceDataset | None) -> Iterator[Iterator[pa.RecordBatch]]:
    if dataset is not None:
        yield from (rows_of(dataset, fragment) for fragment in dataset.get_fragments())


def _earlier(datasets: Datasets, table: TableName, dataset: LanceDataset | None) -> Iterator[int]:
    if dataset is None:
        return
    for version in versions_on_disk(datasets, table):
        if version < dataset.version and can_be_opened(datasets, table, version):
            yield version


def _loose_files(datasets: Datasets, table: TableName) -> list[Path]:
    """Return the files of rows that no version names which can be opened, the newest first."""
    named: set[str] = set()
    for version in versions_on_disk(datasets, table):
        if can_be_opened(datasets, table, version):
            for fragment in datasets.fresh(table, version).get_fragments():
                named.update(str(file.path) for file in fragment.metadata.files)
    there = (datasets.path(table) / "data").glob("*.lance")
    loose = [path for path in there if path.name not in named]
    return sorted(loose, key=lambda path: path.stat().st_mtime_ns, reverse=True)


def _schema_in(paths: Iterable[Path]) -> pa.Schema | None:
    """Return the columns of the first file that has rows of whole memories or documents."""
    for path in paths:
        schema = next((batch.schema for batch in _until_unreadable(_rows_in(path))), None)
        if schema is not None and "id" in schema.names:
            return schema
    return None


def _rows_in(path: Path) -> Iterator[pa.RecordBatch]:
    from lance.file import LanceFileReader

    lance()
    with without_panics():
        yield from LanceFileReader(str(path)).read_all(batch_size=1024).to_batches()
