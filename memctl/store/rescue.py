"""Writing a damaged table anew from every row of it that can still be read.

Rows come from the version that counts, then from earlier ones, then from files that no version
names any more; of an id that is met twice the first row counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from memctl.ids import root_id
from memctl.schema.arrow_tables import with_all_columns
from memctl.schema.migrations import FIRST_VERSION, columns_after
from memctl.schema.table_names import TableName
from memctl.store.tables.durability import can_be_opened
from memctl.store.tables.engine import Datasets, lance
from memctl.store.tables.filter_expressions import col, render
from memctl.store.tables.indexes import create_indexes
from memctl.store.tables.inspection import (
    ENGINE_ERRORS,
    LostRow,
    can_be_read,
    live_places,
    named_rows,
    read_file,
    rows_of,
    versions_on_disk,
)
from memctl.store.tables.storage import DATA

if TYPE_CHECKING:
    from lance import LanceDataset, LanceFragment
    from numpy.typing import NDArray


Believed = Callable[[pa.RecordBatch], pa.Array]


class Trust(Struct, frozen=True):
    """Tells rows that are lost from rows that have been deleted."""

    is_known: Believed
    """Whether another table knows of rows."""
    deleted: Set[str]
    """Rows that were deleted by hand or forgotten."""
    blocked: Set[str] = frozenset()
    """Documents that earlier versions have with words that were forgotten since."""

    def is_current(self, batch: pa.RecordBatch) -> pa.Array:
        """Return for rows of an earlier version whether they, and their words, still count."""
        stays = pc.invert(pc.is_in(batch["id"], pa.array(sorted(self.deleted), pa.string())))
        own = "document_id" if "document_id" in batch.schema.names else "id"
        if not self.blocked or own not in batch.schema.names:
            return stays
        roots = pa.array([of and root_id(of) for of in batch[own].to_pylist()], pa.string())
        forgotten = pc.is_in(roots, pa.array(sorted(self.blocked), pa.string()))
        return pc.and_(stays, pc.invert(forgotten))

    def belongs(self, batch: pa.RecordBatch) -> pa.Array:
        """Return for rows from anywhere whether they belong to what counts."""
        return pc.and_(self.is_known(batch), self.is_current(batch))


class RescuedTable(Struct, frozen=True):
    """A table that was written anew, and where its rows came from."""

    dataset: LanceDataset
    kept: int
    """Rows of the version that counts, or of the newest one that can be opened."""
    earlier: int
    """Rows that only earlier versions have."""
    loose: int
    """Rows from files that no version names any more."""
    lost: int = 0
    """Rows of the version that counts that could not be read anywhere."""
    named: tuple[LostRow, ...] = ()
    """Those of them that an index names."""
    undone: tuple[LostRow, ...] = ()
    """Rows that are as an earlier version has them, though newer files had them otherwise."""


def rescue(
    datasets: Datasets,
    table: TableName,
    dataset: LanceDataset | None,
    *,
    names_all: bool,
    columns: pa.Schema | None,
    trust: Trust,
) -> RescuedTable | None:
    """Write a table anew; None where there is nothing to learn its columns from.

    Args:
        datasets: The tables; the caller holds the lock.
        table: Which one.
        dataset: Its newest version that can be opened.
        names_all: Whether that one names every file of rows there is, as the version that counts
            does; of an earlier one newer files are read too.
        columns: What it should have, where that is known.
        trust: Tells which rows may come from elsewhere than from that version: one that has been
            deleted since must not come back.
    """
    loose = [] if names_all else _loose_files(datasets, table)
    schema = dataset.schema if dataset is not None else _schema_in(loose) or columns
    if schema is None:
        return None
    expected = int(dataset.count_rows()) if dataset is not None else 0
    named, left = _of_unreadable(datasets, table, dataset) if dataset is not None else ([], [])
    gathered = _RowCollector(datasets, table, schema, dataset)
    kept = gathered.add_all(_batch_pieces(dataset), None if names_all else trust.is_current)
    earlier = 0
    for parts in (*_earlier_files(datasets, table, dataset), left):
        if kept + earlier >= expected:
            break
        earlier += gathered.add_all(parts, trust.belongs)
    undone = tuple(_undone_rows(gathered.dataset, loose, trust))
    found = gathered.add_all((read_file(uri) for uri in loose), trust.belongs)
    create_indexes(table, gathered.dataset)
    missing = tuple(row for row in named if not gathered.has(row.id))
    lost = max(expected - kept - earlier, len(missing)) if names_all else len(missing)
    return RescuedTable(gathered.dataset, kept, earlier, found, lost, missing, undone)


class _RowCollector:
    """Rows on their way into a table that is written anew, each id once."""

    def __init__(
        self,
        datasets: Datasets,
        table: TableName,
        schema: pa.Schema,
        dataset: LanceDataset | None,
    ) -> None:
        self._table = table
        self._uri = datasets.uri(table)
        self._seen: set[int] = set()
        if dataset is not None:
            dataset.restore()  # type: ignore[no-untyped-call]
        mode = "create" if dataset is None else "overwrite"
        self.dataset: LanceDataset = lance().write_dataset(
            schema.empty_table(), self._uri, mode=mode
        )

    def has(self, id_: str) -> bool:
        """Return whether a row with that id has been added."""
        return hash(id_) in self._seen

    def add_all(
        self, parts: Iterable[Iterator[pa.RecordBatch]], trust: Believed | None = None
    ) -> int:
        """Add the rows of some files, as far as each can be read; return how many are new."""
        return sum(self._add(part, trust) for part in parts)

    def _add(self, part: Iterator[pa.RecordBatch], trust: Believed | None) -> int:
        # Read to its end first: lance 13 stalls when it writes from a stream that reads from it.
        batches = [
            self._drop_seen(batch if trust is None else batch.filter(trust(batch)))
            for each in _readable_batches(part)
            for batch in self._fit_columns(each)
        ]
        rows = sum(int(batch.num_rows) for batch in batches)
        if rows:
            table = pa.Table.from_batches(batches)
            self.dataset = lance().write_dataset(table, self._uri, mode="append")
        return rows

    def _fit_columns(self, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        """Return rows with the columns of the table; none with the vectors of another embedder."""
        schema: pa.Schema = self.dataset.schema
        if batch.schema.equals(schema):
            return [batch]
        lacking = set(schema.names) - set(batch.schema.names)
        if not lacking <= columns_after(FIRST_VERSION, self._table):
            return []
        whole = with_all_columns(pa.Table.from_batches([batch]), self._table, schema.names)
        batches: list[pa.RecordBatch] = whole.combine_chunks().to_batches()
        return batches if whole.schema.equals(schema) else []

    def _drop_seen(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        new = []
        for id_ in map(hash, batch["id"].to_pylist()):
            new.append(id_ not in self._seen)
            self._seen.add(id_)
        return batch.filter(pa.array(new, pa.bool_()))


def _readable_batches(part: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    try:
        for batch in part:
            yield from _valid_rows(batch)
    except ENGINE_ERRORS:
        return


def _valid_rows(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield a batch in pieces, without the rows in which bytes that have changed are no text."""
    try:
        batch.validate(full=True)
        yield batch
    except pa.ArrowInvalid:
        half = batch.num_rows // 2
        for piece in (batch.slice(0, half), batch.slice(half)) if half else ():
            yield from _valid_rows(piece)


def _batch_pieces(dataset: LanceDataset | None) -> Iterator[Iterator[pa.RecordBatch]]:
    if dataset is not None:
        yield from (rows_of(dataset, fragment) for fragment in dataset.get_fragments())


def _earlier_files(
    datasets: Datasets, table: TableName, dataset: LanceDataset | None
) -> Iterator[Iterator[Iterator[pa.RecordBatch]]]:
    """Yield the files of every earlier version that can be opened, the newest first."""
    newest = 0 if dataset is None else int(dataset.version)
    for version in versions_on_disk(datasets, table):
        if version < newest and can_be_opened(datasets, table, version):
            yield _batch_pieces(datasets.fresh(table, version))


def _of_unreadable(
    datasets: Datasets, table: TableName, dataset: LanceDataset
) -> tuple[list[LostRow], list[Iterator[pa.RecordBatch]]]:
    """Return which rows stood in files that cannot be read, and what is left of any of them."""
    lost = [each for each in dataset.get_fragments() if not can_be_read(dataset, each)]
    left = [part for each in lost for part in _remaining_rows(datasets, table, dataset, each)]
    return named_rows(datasets, table, dataset, lost), left


def _remaining_rows(
    datasets: Datasets, table: TableName, dataset: LanceDataset, fragment: LanceFragment
) -> Iterator[Iterator[pa.RecordBatch]]:
    """Yield what is left of rows that stand in several files, as after an update of some columns.

    The first of them has all columns, as they were before.
    """
    live = live_places(dataset, fragment)
    for file in fragment.data_files():
        yield _at(read_file(datasets.files(table).file_uri(f"{DATA}/{file.path}")), live)


def _at(batches: Iterator[pa.RecordBatch], places: NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
    """Yield the rows at these places alone."""
    reached = 0
    for batch in batches:
        here = np.arange(reached, reached + batch.num_rows)
        reached += batch.num_rows
        yield batch.filter(pa.array(np.isin(here, places)))


def _loose_files(datasets: Datasets, table: TableName) -> list[str]:
    """Return the URIs of files that no version names which can be opened, the newest first."""
    named: set[str] = set()
    for version in versions_on_disk(datasets, table):
        if can_be_opened(datasets, table, version):
            for fragment in datasets.fresh(table, version).get_fragments():
                named.update(f"{DATA}/{file.path}" for file in fragment.metadata.files)
    files = datasets.files(table)
    there = (name for name in files.names(DATA) if name.endswith(".lance"))
    loose = sorted((name for name in there if name not in named), key=files.changed_at)
    return [files.file_uri(name) for name in reversed(loose)]


def _undone_rows(dataset: LanceDataset, loose: Iterable[str], trust: Trust) -> Iterator[LostRow]:
    """Yield the rows that files which no version names have otherwise, in any of their columns."""
    for uri in loose:
        for batch in _readable_batches(read_file(uri)):
            if {"id"} <= set(batch.schema.names) <= set(dataset.schema.names):
                yield from _differing_rows(dataset, batch.filter(trust.is_current(batch)))


def _differing_rows(dataset: LanceDataset, batch: pa.RecordBatch) -> Iterator[LostRow]:
    where = render(col("id").is_in(batch["id"].to_pylist()))
    rows = dataset.to_table(columns=batch.schema.names, filter=where).to_pylist()
    there = {row["id"]: row for row in rows}
    for row in batch.to_pylist():
        if there.get(row["id"], row) != row:
            yield LostRow(row["id"])


def _schema_in(uris: Iterable[str]) -> pa.Schema | None:
    """Return the columns of the first file that has rows of whole memories or documents."""
    for uri in uris:
        schema = next((batch.schema for batch in _readable_batches(read_file(uri))), None)
        if schema is not None and "id" in schema.names:
            return schema
    return None
