"""One change of a knowledge base: all of it becomes HEAD, or none of it ever happened.

Tables commit one by one as the change goes on, but only HEAD counts: readers look at it alone, and
what lies beyond it after a failure is rolled back, here or by the next writer.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from memctl.errors import DamagedError, DiskRefused
from memctl.schema.arrow_tables import VECTOR, defaults, repeated, schemas, vector_array
from memctl.schema.declarations import DECLARATIONS
from memctl.schema.migrations import SCHEMA_VERSION, migrations_after, tables_at
from memctl.schema.table_names import TABLES, TableName
from memctl.store.ledger.audit_repositories import MAX_OBJECTS
from memctl.store.ledger.decision_repositories import (
    DELETABLE,
    Deletions,
    RowChange,
    Value,
)
from memctl.store.ledger.ledger import Ledger
from memctl.store.ledger.version_repositories import Checksums
from memctl.store.tables.checksums import Verifier, checksums_of
from memctl.store.tables.durability import (
    copy_manifests,
    drop_rows,
    drop_unfinished,
    drop_unreadable,
    sync_new,
)
from memctl.store.tables.engine import (
    Datasets,
    first_line,
    lance,
    translate_write_errors,
    without_panics,
)
from memctl.store.tables.filter_expressions import EVERYTHING, Expr, col, render
from memctl.store.tables.indexes import create_indexes, match_indexes
from memctl.store.tables.inspection import ENGINE_ERRORS, require_written
from memctl.store.tables.snapshot import IDS_A_LOOKUP, Snapshot

if TYPE_CHECKING:
    from lance import LanceDataset
    from numpy.typing import NDArray

    from memctl.store.ledger.decision_repositories import ChangeRepository

_log = logging.getLogger(__name__)

ROWS_HELD = 50_000
BYTES_HELD = 64 << 20
"""Appended rows are buffered up to these limits, so that files do not get small."""

Statement = Callable[[sqlite3.Connection], None]


class _PendingRows:
    """Rows appended to a table and not yet written."""

    def __init__(self) -> None:
        self.parts: list[pa.Table] = []
        self.rows = 0
        self.bytes = 0
        self._ids: set[str] | None = None

    def add(self, rows: pa.Table) -> None:
        """Buffer rows, and their ids where those have been asked for."""
        self.parts.append(rows)
        self.rows += rows.num_rows
        self.bytes += rows.nbytes
        if self._ids is not None:
            self._ids.update(rows["id"].to_pylist())

    def known_ids(self) -> set[str]:
        """Return the ids of the rows; collected on first use, since bulk appends never ask."""
        if self._ids is None:
            self._ids = {name for part in self.parts for name in part["id"].to_pylist()}
        return self._ids


class Transaction:
    """A change in progress; made by ``Store.write``, which commits it or rolls it back."""

    def __init__(
        self, datasets: Datasets, ledger: Ledger, dimension: int, clock: Callable[[], datetime]
    ) -> None:
        self._datasets = datasets
        self._ledger = ledger
        self._dimension = dimension
        self._clock = clock
        self._schemas = schemas(dimension)
        self._held: dict[TableName, _PendingRows] = {}
        self._open: dict[TableName, LanceDataset] = {}
        self._known_files: dict[TableName, set[str]] = {}
        self._statements: list[Statement] = []
        self._written_ids: dict[TableName, tuple[int, list[str]]] = {}
        self._head = self._recover_versions()
        self.deletions = Deletions(ledger.deletions, ledger.forgotten)
        """Rows deleted by hand, in this change and before it."""

    # --- changing ---

    def append(self, table: TableName, rows: pa.Table) -> None:
        """Add rows whose ids are new, which the caller guarantees; the fast way in bulk."""
        if not rows.num_rows:
            return
        self.deletions.record_written(table, rows)
        self._count(table, rows)
        held = self._held.setdefault(table, _PendingRows())
        held.add(self._fit_columns(table, rows))
        if held.rows >= ROWS_HELD or held.bytes >= BYTES_HELD:
            self._flush(table)

    def upsert(self, table: TableName, rows: pa.Table) -> int:
        """Add rows, replacing those with the same ids; of duplicates the last one counts.

        Returns:
            How many rows were added or replaced.
        """
        distinct = _last_of_each_id(self._fit_columns(table, rows))
        if self._has_any(table, distinct["id"].to_pylist()):
            self.deletions.record_written(table, distinct)
            self._count(table, distinct)
            return self._merge(table, distinct, insert=True)
        self.append(table, distinct)
        return int(distinct.num_rows)

    def update(self, table: TableName, rows: pa.Table) -> int:
        """Change some columns of existing rows.

        Args:
            table: The table.
            rows: ``id`` and the columns to change; ids that do not exist are skipped.

        Returns:
            How many rows were changed.
        """
        distinct = _last_of_each_id(self._fit_columns(table, rows))
        if not distinct.num_rows or distinct.num_columns < 2:
            return 0
        self._count(table, distinct)
        return self._merge(table, distinct, insert=False)

    def delete(self, table: TableName, where: Expr) -> int:
        """Remove the rows for which the condition holds; return how many."""
        snapshot = self.snapshot()
        count = snapshot.count(table, where)
        if count:
            self._count(table, snapshot.scan(table, where, ["id"], limit=MAX_OBJECTS), count)
            with translate_write_errors(self._datasets.uri(table)):
                self._writable(table).delete(render(where))
        return count

    def rewrite_empty_cells(self, table: TableName) -> int:
        """Write rows anew whose empty cells still have the bytes of another row's value.

        Merging rows leaves such bytes, which no reader sees and compaction copies.

        Returns:
            How many rows were written.
        """
        dataset = self._writable(table)
        columns = [item.name for item in dataset.schema if _has_offsets(item.type)]
        with translate_write_errors(self._datasets.uri(table)):
            ids = [
                name
                for batch in dataset.to_batches(columns=columns)
                for name in batch["id"].filter(pa.array(_hides_bytes(batch))).to_pylist()
            ]
            for at in range(0, len(ids), IDS_A_LOOKUP):
                where = render(col("id").is_in(ids[at : at + IDS_A_LOOKUP]))
                rows = dataset.to_table(filter=where)
                self._held.setdefault(table, _PendingRows()).add(
                    rows.take(pa.array(range(len(rows))))
                )
                dataset.delete(where)
        self._flush(table)
        return len(ids)

    def replace_vectors(
        self,
        dimension: int,
        columns: Sequence[str],
        vectors: Callable[[pa.RecordBatch], NDArray[np.floating[Any]]],
    ) -> None:
        """Replace the vector of every memory, and drop the vector index, which holds the old ones.

        Args:
            dimension: Length of the new ones.
            columns: What to know of the memories.
            vectors: Gets these columns of some memories and returns a row for each.
        """
        dataset = self._writable("memories")
        schema = pa.schema([schemas(dimension)["memories"].field(VECTOR)])

        def vectors_of(batch: pa.RecordBatch) -> pa.RecordBatch:
            """Return the vectors of the memories of a batch."""
            return pa.record_batch([vector_array(vectors(batch))], schema=schema)

        with translate_write_errors(self._datasets.uri("memories")):
            dataset.drop_columns([VECTOR])
            dataset.add_columns(
                lance().batch_udf(output_schema=schema)(vectors_of), read_columns=list(columns)
            )
        self._dimension, self._schemas = dimension, schemas(dimension)

    def restore(self, versions: Mapping[TableName, int], dimension: int) -> None:
        """Restore the tables to earlier versions, which themselves stay unchanged.

        Args:
            versions: Of every table there was, one that is still there.  Tables that came later
                become empty, and columns that came later are added.
            dimension: Length of the vectors then.
        """
        self._dimension, self._schemas = dimension, schemas(dimension)
        for table in TABLES:
            if table not in versions:
                self.delete(table, EVERYTHING)
            elif versions[table] != self._versions()[table]:
                self._writable(table)
                with translate_write_errors(self._datasets.uri(table)):
                    dataset = self._datasets.fresh(table, versions[table])
                    dataset.restore()  # type: ignore[no-untyped-call]
                self._open[table] = dataset
                self.add_missing_columns(table)
        deleted = sorted(self.deletions.returning_ids)
        for table in DELETABLE if deleted else ():
            self.deletions.record_written(table, self.snapshot().get(table, deleted, ["id"]))

    def create_table(self, table: TableName) -> None:
        """Make a table that is new in the schema, over what an interrupted change may have left."""
        self._known_files[table] = self._datasets.files(table).names()
        self._open[table] = create_empty_table(self._datasets, table, self._schemas[table])

    def add_missing_columns(self, table: TableName) -> None:
        """Give a table the columns that it has not got yet, with their defaults in every row."""
        there = self.snapshot().dataset(table).schema.names
        values = defaults(table)
        missing = [i for i in self._schemas[table] if i.name not in there and i.name in values]
        without_value = [item for item in missing if not values[item.name].is_valid]
        with_value = pa.schema([item for item in missing if values[item.name].is_valid])

        def filled(batch: pa.RecordBatch) -> pa.RecordBatch:
            """Return the defaults for some rows."""
            columns = [repeated(values[name], batch.num_rows) for name in with_value.names]
            return pa.record_batch(columns, schema=with_value)

        with translate_write_errors(self._datasets.uri(table)):
            if without_value:  # changes the manifest alone
                self._writable(table).add_columns(pa.schema(without_value))
            if with_value.names:
                self._writable(table).add_columns(
                    lance().batch_udf(output_schema=with_value)(filled), read_columns=["id"]
                )

    def ledger(self, statement: Statement) -> None:
        """Run a statement in the SQLite transaction that moves HEAD.

        It gets the connection, and may as well call methods of the store's ledger: they join.
        """
        self._statements.append(statement)

    def snapshot(self) -> Snapshot:
        """Return the tables as they are now, with what this transaction has written.

        Good until the transaction ends: a version that never was HEAD may be pruned after it.
        """
        self._flush_all()
        return Snapshot(self._datasets, self._versions(), self._dimension)

    @property
    def versions(self) -> Mapping[TableName, int]:
        """The versions of all tables at HEAD when this began; when it has ended, at its end."""
        return self._head

    def dataset(self, table: TableName) -> LanceDataset:
        """Return the engine's handle that this transaction writes through, for upkeep."""
        return self._writable(table)

    def second_handle(self, table: TableName) -> LanceDataset:
        """Return a handle to write through at the same time as through ``dataset``, in a thread.

        When both are done, ``dataset`` has to check out the latest version.
        """
        return self._datasets.fresh(table, int(self._writable(table).version))

    def verifier(self) -> Verifier:
        """Return what tells whether files are as they were written."""
        return Verifier(self._datasets, self._ledger, reads_rows=False)

    # --- ending ---

    def commit(self) -> None:
        """Make the change durable and make it HEAD."""
        self._flush_all()
        versions = self._versions()
        if versions == self._head and not self._statements:
            return
        sums = {table: self._sync_table(table) for table in self._open}
        with self._ledger.transaction() as connection:
            self._ledger.set_head(versions, self._clock())
            self.deletions.note()
            for statement in self._statements:
                statement(connection)
            for table, found in sums.items():
                self._ledger.checksums.add(table, found)
            copy_manifests(self._datasets, self._ledger)
            self._ledger.audit.note_commit(self._clock(), self._written_ids, self._head, versions)
        self._known_files.clear()  # what is new belongs to HEAD from here on
        self._head = dict(versions)

    def roll_back(self) -> None:
        """Put every table back to HEAD.

        Raises:
            DiskRefused: Whether HEAD has moved is open: all is left as it is, for the next writer.
        """
        self._ledger.settle()
        self._held.clear()
        self._statements.clear()
        self._open.clear()
        if self._ledger.head() == self._head:  # not where it was cut off after it had happened
            for table, known in self._known_files.items():
                with translate_write_errors(self._datasets.uri(table)):
                    drop_rows(self._datasets.files(table), known)
        self._known_files.clear()
        self._written_ids.clear()
        self._head = self._recover_versions()
        self.deletions = Deletions(self._ledger.deletions, self._ledger.forgotten)

    # --- inside ---

    def _sync_table(self, table: TableName) -> Checksums:
        """Make what was written of a table durable and return the checksums of its files.

        Raises:
            DiskRefused: The disk did not take all of it.
        """
        files = self._datasets.files(table)
        new = sync_new(files, self._known_files[table])
        if not self._known_files[table]:
            self._datasets.storage.sync()  # the table itself is new
        require_written(self._datasets, table, int(self._open[table].version), new)
        return checksums_of(files, new)

    def disk_error(self) -> DiskRefused | None:
        """Return the error of the disk that explains why the tables cannot be read, if one does.

        The engine may have read again what it had just written in part.
        """
        for table, dataset in self._open.items():
            new = self._datasets.files(table).names() - self._known_files[table]
            try:
                require_written(self._datasets, table, int(dataset.version), new)
            except DiskRefused as error:
                return error
        return None

    def _recover_versions(self) -> dict[TableName, int]:
        """Return HEAD's versions after rolling back whatever lies beyond them."""
        self._ledger.settle()
        ledger_head = self._ledger.head()
        head: dict[TableName, int] = {}
        required = tables_at(self._ledger.schema_version())
        for table in TABLES:
            if table not in ledger_head and table not in required:
                continue
            if table not in ledger_head:
                raise DamagedError(
                    f"the ledger names no version of the table {table}",
                    "run `memctl doctor --repair`",
                )
            head[table] = self._rolled_back(table, ledger_head[table])
        if head != ledger_head:
            with self._ledger.transaction():
                self._ledger.set_head(head, self._clock())
                copy_manifests(self._datasets, self._ledger)
        return head

    def _rolled_back(self, table: TableName, version: int) -> int:
        files = self._datasets.files(table)
        with translate_write_errors(files.uri):
            if self._datasets.at(table, version).latest_version == version:
                return version
            known = files.names()
            drop_unreadable(self._datasets, table, version)
            dataset = self._datasets.fresh(table, version)
            dataset.restore()  # type: ignore[no-untyped-call]
            require_written(self._datasets, table, int(dataset.version), sync_new(files, known))
            _drop_between(version, dataset)
            return int(dataset.version)

    def _writable(self, table: TableName) -> LanceDataset:
        self._flush(table)
        return self._dataset(table)

    def _dataset(self, table: TableName) -> LanceDataset:
        if table not in self._open:
            self._known_files[table] = self._datasets.files(table).names()
            drop_unfinished(self._datasets.files(table), self._known_files[table])
            self._open[table] = self._datasets.fresh(table, self._head[table])
        return self._open[table]

    def _count(self, table: TableName, rows: pa.Table, count: int | None = None) -> None:
        """Record for the audit trail how many rows are written, and which the first of them are."""
        before, ids = self._written_ids.get(table, (0, []))
        more = rows["id"].slice(0, MAX_OBJECTS - len(ids)).to_pylist()
        count = rows.num_rows if count is None else count
        self._written_ids[table] = (before + count, [*ids, *more])

    def _flush_all(self) -> None:
        for table in list(self._held):
            self._flush(table)

    def _flush(self, table: TableName) -> None:
        held = self._held.pop(table, None)
        if held is not None:
            dataset = self._dataset(table)
            with translate_write_errors(self._datasets.uri(table)):
                self._open[table] = lance().write_dataset(
                    pa.concat_tables(held.parts), dataset, mode="append"
                )

    def _has_any(self, table: TableName, ids: list[str]) -> bool:
        """Return whether rows with some of these ids exist: looking is cheaper than merging."""
        if table in self._held and not self._held[table].known_ids().isdisjoint(ids):
            return True
        dataset = self._open.get(table) or self._datasets.at(table, self._head[table])
        parts = (ids[at : at + IDS_A_LOOKUP] for at in range(0, len(ids), IDS_A_LOOKUP))
        with translate_write_errors(self._datasets.uri(table)):
            return any(dataset.count_rows(filter=render(col("id").is_in(part))) for part in parts)

    def _merge(self, table: TableName, rows: pa.Table, *, insert: bool) -> int:
        dataset = self._writable(table)
        with translate_write_errors(self._datasets.uri(table)):
            merge = dataset.merge_insert("id").when_matched_update_all()
            if insert:
                merge = merge.when_not_matched_insert_all()
            done = merge.execute(rows)
        return int(done["num_inserted_rows"]) + int(done["num_updated_rows"])

    def _fit_columns(self, table: TableName, rows: pa.Table) -> pa.Table:
        """Return the rows with the columns in the table's own order and types."""
        if rows.schema.equals(self._schemas[table]):
            return rows
        given = set(rows.column_names)
        items = [item for item in self._schemas[table] if item.name in given]
        if len(items) != rows.num_columns:
            strange = set(rows.column_names) - set(self._schemas[table].names)
            raise ValueError(f"{table} has no columns {sorted(strange)}")
        schema = pa.schema(items)
        chosen = rows.select(schema.names)
        return chosen if chosen.schema.equals(schema) else chosen.cast(schema)

    def _versions(self) -> Mapping[TableName, int]:
        return self._head | {table: int(item.version) for table, item in self._open.items()}


def _has_offsets(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_list(kind))


def _hides_bytes(rows: pa.RecordBatch) -> NDArray[np.bool_]:
    """Return for each row whether an empty cell of texts or lists has bytes in its buffer."""
    hides = np.zeros(rows.num_rows, np.bool_)
    for column in rows.columns:
        if column.null_count and _has_offsets(column.type):
            offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset :]
            hides |= np.diff(offsets[: len(column) + 1]) * np.asarray(column.is_null()) > 0
    return hides


def _drop_between(head: int, restored: LanceDataset) -> None:
    """Remove what was written beyond HEAD: it has no reader, and may be what fills the disk."""
    versions = (int(item["version"]) for item in restored.version_refs())
    gone = [version for version in versions if head < version < restored.version]
    try:
        with without_panics():
            restored.cleanup_old_versions(versions=gone, error_if_tagged_old_versions=False)
    except ENGINE_ERRORS as error:  # where anything is damaged it stays until that is repaired
        _log.warning("what was cut off stays on the disk: %s", first_line(error))


def create_empty_table(datasets: Datasets, table: TableName, schema: pa.Schema) -> LanceDataset:
    """Make an empty table with its indexes, over what an interrupted change may have left."""
    with translate_write_errors(datasets.uri(table)):
        dataset: LanceDataset = lance().write_dataset(
            schema.empty_table(), datasets.uri(table), mode="overwrite"
        )
        create_indexes(table, dataset)
    return dataset


def migrate(transaction: Transaction, ledger: Ledger, version: int) -> None:
    """Bring the tables of an earlier schema version up to date, as a change of its own.

    Args:
        transaction: What to write with; nothing else has been written with it.
        ledger: Of the same store; it names the new version from the instant that HEAD moves.
        version: The schema version of the tables.
    """
    for table in TABLES:
        if table in transaction.versions:
            transaction.add_missing_columns(table)
        else:
            transaction.create_table(table)
    for table in {name for step in migrations_after(version) for name in step.indexes}:
        match_indexes(table, transaction.dataset(table))
    transaction.ledger(lambda _: ledger.set_schema_version(SCHEMA_VERSION))


def _last_of_each_id(rows: pa.Table) -> pa.Table:
    numbered = pa.table({"id": rows["id"], "at": np.arange(rows.num_rows)})
    last = numbered.group_by("id").aggregate([("at", "max")])["at_max"]
    return rows if len(last) == rows.num_rows else rows.take(last.combine_chunks().sort())


TrackedRow = dict[str, Value]

TRACKED_COLUMNS: Mapping[TableName, tuple[str, ...]] = {
    name: table.tracked_columns for name, table in DECLARATIONS.items() if table.tracked_columns
}
"""The columns of existing rows that jobs change; they never change what a row says."""


def record_changes(
    transaction: Transaction,
    changes: ChangeRepository,
    job: int,
    before: Snapshot,
    after: Snapshot,
    written: Mapping[TableName, Sequence[str]],
) -> None:
    """Record what a job has changed, in the SQLite transaction that moves HEAD.

    Args:
        transaction: What it has written with.
        changes: Where to.
        job: Its number.
        before: The tables when the transaction began.
        after: The tables as it leaves them.
        written: The rows that it may have changed or added.
    """
    found = [
        change
        for table, ids in written.items()
        for change in _row_changes(
            table, tracked_values(before, table, ids), tracked_values(after, table, ids)
        )
    ]
    if found:
        transaction.ledger(lambda _: changes.add(job, found))


def tracked_values(
    snapshot: Snapshot, table: TableName, ids: Sequence[str]
) -> dict[str, TrackedRow]:
    """Return the tracked columns of rows as the ledger keeps them, by id."""
    rows = snapshot.get(table, list(ids), ["id", *TRACKED_COLUMNS[table]])
    for place, item in enumerate(rows.schema):
        if pa.types.is_timestamp(item.type) or pa.types.is_boolean(item.type):
            plain = rows.column(place).cast(pa.int64())
            rows = rows.set_column(place, item.name, plain)
    return {row.pop("id"): row for row in rows.to_pylist()}


def rows_from_tracked(
    table: TableName, rows: Mapping[str, TrackedRow], schema: pa.Schema
) -> pa.Table:
    """Return what :func:`tracked_values` gave as rows to update a table with."""
    columns: dict[str, Any] = {"id": pa.array(rows, pa.string())}
    for name in TRACKED_COLUMNS[table]:
        values = pa.array([row[name] for row in rows.values()])
        columns[name] = values.cast(schema.field(name).type)
    return pa.table(columns)


def _row_changes(
    table: TableName, before: Mapping[str, TrackedRow], after: Mapping[str, TrackedRow]
) -> list[RowChange]:
    found = []
    for id_, row in after.items():
        was = before.get(id_)
        if was is None:
            values = row if table == "memories" else {}  # of many connections, ids will do
            found.append(RowChange(table, id_, {}, values, is_added=True))
        elif was != row:
            names = [name for name, value in row.items() if was[name] != value]
            old, new = ({name: each[name] for name in names} for each in (was, row))
            found.append(RowChange(table, id_, old, new))
    return found
