"""The store of one knowledge base: its tables, its ledger and the lock of its one writer.

Opening it, taking a snapshot and reading never wait for a writer; a writer waits for the lock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.errors import CoverageLost, DamagedError, KnowledgeBaseUnavailable, UsageError
from memctl.instants import utc_now
from memctl.machine import return_freed_memory
from memctl.schema.arrow_tables import schemas
from memctl.schema.migrations import FIRST_VERSION, SCHEMA_VERSION, require_known, tables_at
from memctl.schema.table_names import TABLES, UPKEEP, TableName
from memctl.store.file_caches import DerivedCache, drop_derived_cache
from memctl.store.ledger.ledger import Ledger
from memctl.store.locks import AS_SET, WAIT_SECONDS, Holder, ReaderLeases, Wait, WriteLock
from memctl.store.tables.checksums import CHECKSUM_BATCH_BYTES, add_missing_checksums
from memctl.store.tables.coverage import require_all_found, require_there
from memctl.store.tables.durability import copy_manifests, sync_new
from memctl.store.tables.engine import Datasets, lancedb, translate_write_errors
from memctl.store.tables.inspection import damaged_files, require_written
from memctl.store.tables.snapshot import Snapshot
from memctl.store.tables.transaction import Transaction, create_empty_table, migrate
from memctl.store.tables.upkeep import (
    VECTOR_ROWS,
    PruneResult,
    PurgeResult,
    UpkeepReport,
    improve,
    prune,
    purge,
    rewrite_without_deleted,
)

if TYPE_CHECKING:
    import sqlite3

    import pyarrow as pa
    from lancedb.db import DBConnection

    from memctl.store.file_caches import VectorCache

__all__ = ["Clock", "Ledger", "Snapshot", "Store", "Transaction", "UpkeepReport"]

LEDGER_FILE = "ledger.sqlite"
LEASES_FOLDER = "readers"
UPKEEPS_A_CONNECTION = 10
_READERS_ARE_ASKED, _READERS_PAUSE = 25, 0.2
EMBEDDER, DIMENSION = "embedder", "dimension"
FORMER_EMBEDDER, FORMER_DIMENSION = "former_embedder", "former_dimension"
EMBEDDER_SINCE = "embedder_since"
"""The first version of the memories that may have the vectors of the embedder."""

Clock = Callable[[], datetime]


class Store:
    """One knowledge base's tables and ledger; usable from several threads."""

    def __init__(
        self,
        folder: Path,
        ledger: Ledger,
        dimension: int,
        clock: Clock,
        wait: float = WAIT_SECONDS,
    ) -> None:
        self.folder = folder
        self.wait_seconds = wait
        """How long a change waits for another writer, where it says nothing else."""
        self.ledger = ledger
        self.dimension = dimension
        """Length of its vectors."""
        self.embedder = ledger.meta(EMBEDDER)
        """Id of what they are from; None in a store that was made before it was noted."""
        self._clock = clock
        self._datasets = Datasets.of(folder)
        self._lock = WriteLock(folder, clock)
        self._leases = ReaderLeases(folder / LEASES_FOLDER)
        self._upkeeps = 0

    @classmethod
    def create(
        cls, folder: Path, dimension: int, *, embedder: str = "", clock: Clock = utc_now
    ) -> Store:
        """Make the tables and the ledger in a folder, which may exist.

        Args:
            folder: The knowledge base's.
            dimension: Length of its vectors.
            embedder: Id of what they are from.
            clock: What tells the time.

        Raises:
            UsageError: There is a store already.
        """
        folder.mkdir(parents=True, exist_ok=True)
        with WriteLock(folder, clock).hold(30.0):
            ledger = Ledger.create(folder / LEDGER_FILE)
            try:
                if ledger.head():
                    raise UsageError(f"{folder} already holds a knowledge base")
                datasets = Datasets.of(folder)
                versions = {
                    table: int(create_empty_table(datasets, table, schema).version)
                    for table, schema in schemas(dimension).items()
                }
                for table, version in versions.items():
                    new = sync_new(datasets.files(table), set())
                    require_written(datasets, table, version, new)
                datasets.storage.sync()
                with ledger.transaction():
                    ledger.set_meta(DIMENSION, str(dimension))
                    ledger.set_schema_version(SCHEMA_VERSION)
                    if embedder:
                        ledger.set_meta(EMBEDDER, embedder)
                    ledger.set_head(versions, clock())
                    copy_manifests(datasets, ledger)
                    add_missing_checksums(datasets, ledger)
            except BaseException:
                ledger.close()
                raise
        return cls(folder, ledger, dimension, clock)

    @classmethod
    def open(cls, folder: Path, *, clock: Clock = utc_now, wait: float = WAIT_SECONDS) -> Store:
        """Open the store in a folder.

        Args:
            folder: The knowledge base's.
            clock: What tells the time.
            wait: So many seconds each change waits for another writer, where it says nothing else.

        Raises:
            DamagedError: The ledger is missing or cannot be read.
            KnowledgeBaseUnavailable: A newer version of memctl has written it.
        """
        ledger = Ledger.open(folder / LEDGER_FILE)
        try:
            require_known(ledger.schema_version(), str(folder))
        except BaseException:
            ledger.close()
            raise
        dimension = ledger.meta(DIMENSION)
        if dimension is None:
            ledger.close()
            raise DamagedError(
                f"the ledger in {folder} does not belong to a finished knowledge base",
                "its creation was interrupted: delete the knowledge base and create it again",
            )
        return cls(folder, ledger, int(dimension), clock, wait)

    def close(self) -> None:
        """Close every file."""
        self._leases.close()
        self._datasets.renew()
        self.ledger.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def release_unused(self) -> None:
        """Release the leases on versions that this process no longer reads; before a long pause."""
        self._leases.trim()

    def writer(self) -> Holder | None:
        """Return which process is writing now."""
        return self._lock.writer()

    def require_writable(self) -> None:
        """Raise where this process may only read, before work is done in vain.

        Raises:
            DiskRefused: On a read-only mount, or without the permission.
        """
        self.ledger.require_writable()

    def snapshot(self) -> Snapshot:
        """Return the tables as of the last commit of any process.

        Raises:
            KnowledgeBaseNotFound: It has been renamed or deleted since it was opened.
        """
        self.ledger.require_in_place()
        head = self.ledger.head()
        while True:
            self._require_same_vectors()  # after HEAD was read: they are switched together
            require_known(self.ledger.schema_version(), str(self.folder))
            snapshot = self._snapshot_of(head)
            self._leases.add(snapshot)
            before, head = head, self.ledger.head()
            if head == before:  # else it may have been pruned before anybody could see the lease
                return snapshot

    def _snapshot_of(self, head: Mapping[TableName, int]) -> Snapshot:
        for table in tables_at(FIRST_VERSION):
            if table not in head:
                raise DamagedError(
                    f"the ledger names no version of the table {table}",
                    "run `memctl doctor --repair`",
                )
        versions = {table: head[table] for table in TABLES if table in head}
        derived = DerivedCache(self.folder, lambda: self.ledger.head() == head)
        return Snapshot(
            self._datasets, versions, self.dimension, self.ledger.require_in_place, derived
        )

    @contextmanager
    def write(self, wait: Wait = AS_SET) -> Iterator[Transaction]:
        """Change the tables: committed when the block ends, rolled back when it raises.

        Args:
            wait: Seconds to wait for another writer, None for ever; by default as the store does.

        Raises:
            LockedError: Another process or thread kept writing; the message names it.
            DiskRefused: This process may only read, or the disk is full.
            KnowledgeBaseNotFound: It has been renamed or deleted since it was opened.
            DamagedError: A table cannot be read.
        """
        with self._hold_lock(wait), self._commit_or_roll_back() as transaction:
            yield transaction

    def former_embedder(self) -> tuple[str, int] | None:
        """Return the embedder before this one, and the length of its vectors."""
        embedder = self.ledger.meta(FORMER_EMBEDDER)
        dimension = self.ledger.meta(FORMER_DIMENSION)
        return None if embedder is None or dimension is None else (embedder, int(dimension))

    def switch_vectors(
        self,
        transaction: Transaction,
        cache: VectorCache,
        columns: Sequence[str],
        keys: Callable[[pa.RecordBatch], Sequence[bytes]],
        former: str,
    ) -> None:
        """Take every memory's vector from a cache, at the very instant that HEAD moves.

        Args:
            transaction: The change that this is part of; call :meth:`switch_embedder` after it.
            cache: Has them all.
            columns: What ``keys`` wants to know of memories.
            keys: Gives the keys of memories in the cache.
            former: Id of what the vectors are from now.
        """
        transaction.replace_vectors(
            cache.dimension, columns, lambda batch: cache.vectors(keys(batch))
        )
        settings = {
            EMBEDDER: cache.embedder,
            DIMENSION: str(cache.dimension),
            FORMER_EMBEDDER: former,
            FORMER_DIMENSION: str(self.dimension),
            EMBEDDER_SINCE: str(transaction.versions["memories"] + 1),
            VECTOR_ROWS: "0",
        }

        def record(_: sqlite3.Connection) -> None:
            """Record in the ledger what the vectors are from."""
            for key, value in settings.items():
                self.ledger.set_meta(key, value)

        transaction.ledger(record)

    def switch_embedder(self) -> None:
        """Go on with the embedder that the ledger names now."""
        self.embedder = self.ledger.meta(EMBEDDER)
        self.dimension = int(self.ledger.meta(DIMENSION) or self.dimension)

    def _require_same_vectors(self) -> None:
        """Raise where another process has given it vectors of another embedder.

        Raises:
            KnowledgeBaseUnavailable: It has.
        """
        if not self.has_same_vectors():
            embedder = self.ledger.meta(EMBEDDER)
            raise KnowledgeBaseUnavailable(
                f"{self.folder} has been given the vectors of {embedder} meanwhile", "run it again"
            )

    def has_same_vectors(self) -> bool:
        """Return whether the vectors are still from the same embedder as at opening."""
        now = (self.ledger.meta(EMBEDDER), self.ledger.meta(DIMENSION))
        return now == (self.embedder, str(self.dimension))

    @contextmanager
    def _hold_lock(self, wait: Wait) -> Iterator[None]:
        self.require_writable()
        self.ledger.require_in_place()
        with self._lock.hold(self.wait_seconds if wait == AS_SET else wait):
            self.ledger.require_in_place()  # it may have been renamed or deleted while this waited
            self._require_same_vectors()
            self._migrate()
            yield

    def _migrate(self) -> None:
        """Bring tables of an earlier schema up to date, as a commit before that of the caller.

        Raises:
            KnowledgeBaseUnavailable: They are of a later schema.
            DamagedError: A file of them is damaged: it is to be repaired as what it was.
        """
        version = self.ledger.schema_version()
        if version == SCHEMA_VERSION:
            return
        require_known(version, str(self.folder))
        for path in damaged_files(self._datasets, self.ledger.head()):
            raise DamagedError(f"{path} is damaged", "run `memctl doctor --repair`")
        with self._commit_or_roll_back() as transaction:
            migrate(transaction, self.ledger, version)

    @contextmanager
    def _commit_or_roll_back(self) -> Iterator[Transaction]:
        transaction = Transaction(self._datasets, self.ledger, self.dimension, self._clock)
        before = self.ledger.head()
        try:
            yield transaction
            transaction.commit()
        except DamagedError as error:
            disk_error = transaction.disk_error()
            transaction.roll_back()
            if disk_error is not None:
                raise disk_error from error
            raise
        except BaseException:
            transaction.roll_back()
            raise
        if self.ledger.head() != before:
            drop_derived_cache(self.folder)

    def _reconnect_sometimes(self) -> None:
        """Drop the engine's caches now and then: lance 13 leaks files with every index update."""
        self._upkeeps += 1
        if self._upkeeps % UPKEEPS_A_CONNECTION == 0:
            self._datasets.renew()

    def upkeep(self, force: bool = False, wait: Wait = AS_SET) -> UpkeepReport:
        """Join small files, index new rows and prune old versions, where thresholds say it pays.

        Queries go on meanwhile and find the same.  Never called by a query.

        Args:
            force: Do all that can gain anything, below the thresholds too.
            wait: Seconds to wait for a writer, None for ever; by default as the store does.

        Raises:
            LockedError: Another process or thread kept writing.
            CoverageLost: Memories would not have been found any more; it was rolled back, and is
                in the ledger as a job that failed.
        """
        began = self._clock()
        with self._hold_lock(wait):
            try:
                with self._commit_or_roll_back() as transaction:
                    before = transaction.snapshot()
                    with translate_write_errors(self._datasets.storage.uri):
                        done = improve(transaction, self.ledger, force=force)
                    all_found = require_all_found if done.touches("memories") else require_there
                    all_found(before, transaction.snapshot(), UPKEEP)
            except CoverageLost as error:
                job = self.ledger.jobs.start(UPKEEP, began)
                self.ledger.jobs.fail(job, self._clock(), error.message, error.hint)
                raise
            add_missing_checksums(self._datasets, self.ledger, CHECKSUM_BATCH_BYTES)
            pruned = self._prune_versions(force=force)
            self.ledger.provenance.trim_old()
        self._reconnect_sometimes()
        return_freed_memory()
        return UpkeepReport(
            compacted=done.compacted,
            indexed=done.indexed,
            vector_index_built=done.vector_index_built,
            versions_pruned=pruned.versions,
            bytes_freed=pruned.bytes,
            seconds=(self._clock() - began).total_seconds(),
            before=before.versions,
            after=transaction.versions,
        )

    def prune(self, wait: Wait = AS_SET) -> PruneResult:
        """Remove every version that has no name and no reader.

        Raises:
            LockedError: Another process or thread kept writing.
        """
        with self._hold_lock(wait):
            return self._prune_versions(force=True)

    def _prune_versions(self, *, force: bool) -> PruneResult:
        now = self._clock()
        return prune(self._datasets, self.ledger, self._leases.held_versions(), now, force=force)

    def purge(self, wait: float | None = 30.0) -> PurgeResult:
        """Remove from the tables' files what is in no row any more.

        Only a version that has a name or a reader stays.  A reader that cannot write its lease, as
        on a read-only mount, has to ask again.

        Args:
            wait: Seconds to wait for a writer; None waits for ever.

        Raises:
            LockedError: Another process or thread kept writing.
            CoverageLost: Memories would not have been found any more; it was rolled back.
        """
        with self._hold_lock(wait):
            with self._commit_or_roll_back() as transaction:
                before = transaction.snapshot()
                with translate_write_errors(self._datasets.storage.uri):
                    rewrite_without_deleted(transaction, self.ledger)
                require_all_found(before, transaction.snapshot(), UPKEEP)
            self._datasets.renew()
            self._await_readers()
            now = self._clock()
            return purge(self._datasets, self.ledger, self._leases.held_versions(), now)

    def _await_readers(self) -> None:
        """Give readers of an earlier state a moment to finish."""
        for _ in range(_READERS_ARE_ASKED):
            named = list(self.ledger.heads().values())
            if all(versions in named for versions in self._leases.held_versions()):
                return
            time.sleep(_READERS_PAUSE)

    def lancedb(self) -> DBConnection:
        """Return a LanceDB connection to the tables, to read from with LanceDB's own interface.

        What is written through it is not part of any commit: the next writer rolls it back.
        """
        connection: DBConnection = lancedb().connect(self._datasets.storage.uri)
        return connection
