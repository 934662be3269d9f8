"""Keeping the tables fast: joining small files, indexing new rows, pruning old versions.

Runs inside a transaction of its own, never in a query, and only where a threshold says it pays:
rewriting a whole table for a few new rows is what makes stores of this kind slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct, field

from memctl.errors import DamagedError
from memctl.schema.arrow_tables import VECTOR
from memctl.schema.table_names import TABLES, TableName
from memctl.store.tables.checksums import drop_checksums
from memctl.store.tables.engine import translate_write_errors
from memctl.store.tables.indexes import (
    VECTOR_INDEX_ROWS,
    create_indexes,
    create_vector_index,
    is_of_another_kind,
    match_indexes,
    max_unindexed,
    unindexed_rows,
)
from memctl.store.tables.inspection import version_entries
from memctl.store.tables.snapshot_tags import damaged_tags, repair_tags
from memctl.store.tables.storage import DATA, DELETIONS, INDEXES, TableFiles

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.fragment import FragmentMetadata

    from memctl.store.ledger.ledger import Ledger
    from memctl.store.tables.checksums import Verifier
    from memctl.store.tables.engine import Datasets
    from memctl.store.tables.snapshot import Snapshot
    from memctl.store.tables.transaction import Transaction


TIERS = (1_000, 10_000, 100_000)
"""Rows a file; small files are joined tier by tier, so that a row is rewritten three times."""
MAX_SMALL_FILES = 20
MAX_DELETED_SHARE = 0.1
MIN_DELETED = 100
"""Fewer deleted rows cost a reader nothing."""
LARGE_FILE_BYTES = 256 << 20
"""A file of long texts is large whatever its rows, and not worth rewriting to join it."""
READ_BYTES = 32 << 20
"""Memory that a batch takes while a file is rewritten."""

GRACE = timedelta(hours=1)
"""How long a version stays after it was HEAD, for readers that have just looked it up."""
MAX_OLD_VERSIONS = 20

VECTOR_INDEX_GROWTH = 3
"""The vector index is rebuilt, with more partitions, when the table has grown by this factor."""
VECTOR_ROWS = "vector_index_rows"


class UpkeepReport(Struct, frozen=True):
    """What an upkeep run did."""

    compacted: tuple[TableName, ...] = ()
    indexed: tuple[TableName, ...] = ()
    vector_index_built: bool = False
    versions_pruned: int = 0
    bytes_freed: int = 0
    seconds: float = 0.0
    before: Mapping[TableName, int] = field(default_factory=dict)
    """The versions of the tables that it has found."""
    after: Mapping[TableName, int] = field(default_factory=dict)
    """Those that it has left."""


class Improvement(Struct, frozen=True):
    """What was done to the tables inside the transaction."""

    compacted: tuple[TableName, ...]
    indexed: tuple[TableName, ...]
    vector_index_built: bool

    def touches(self, table: TableName) -> bool:
        """Return whether rows or an index of a table have been rewritten."""
        built = self.vector_index_built and table == "memories"
        return built or table in (*self.compacted, *self.indexed)


# --- joining and indexing ------------------------------------------------------------------------


def improve(transaction: Transaction, ledger: Ledger, *, force: bool = False) -> Improvement:
    """Compact and index the tables that need it; with ``force`` all that can gain from it."""
    before = transaction.snapshot()
    verifier = transaction.verifier()
    compacted = [
        table
        for table in TABLES
        if _compact(transaction, table, before.dataset(table), verifier, force)
    ]
    after = transaction.snapshot()
    rows = _wanted_vector_index(after, ledger)
    indexed = [table for table in TABLES if _wants_indexing(table, after.dataset(table), force)]
    for table in indexed:
        match_indexes(table, transaction.dataset(table))
    works: list[Callable[[], None]] = [
        transaction.dataset(table).optimize.optimize_indices
        for table in indexed
        if table != "memories" or not rows
    ]
    if rows:
        works.append(partial(create_vector_index, transaction.dataset("memories")))
        works.append(_indexing_beside_vectors(transaction))
    _at_once(works)
    if rows:
        memories = transaction.dataset("memories")
        memories.checkout_latest()  # type: ignore[no-untyped-call]  # two handles added to it
        transaction.ledger(lambda _: ledger.set_meta(VECTOR_ROWS, str(rows)))
    return Improvement(tuple(compacted), tuple(indexed), bool(rows))


def _files(dataset: LanceDataset) -> list[FragmentMetadata]:
    return [item.metadata for item in dataset.get_fragments()]


def _compact(
    transaction: Transaction,
    table: TableName,
    dataset: LanceDataset,
    verifier: Verifier,
    force: bool,
) -> bool:
    files = _files(dataset)
    target = _target_rows(files, force)
    if target is None:
        return False
    kept = [item.id for item in files if _is_full(item)]
    kept += _changed_files(dataset, verifier, target)
    transaction.dataset(table).optimize.compact_files(
        target_rows_per_fragment=target,
        materialize_deletions_threshold=MAX_DELETED_SHARE,
        excluded_fragment_ids=kept,
        max_bytes_per_file=LARGE_FILE_BYTES,
        batch_size=_batch_rows(files),
    )
    return True


def _changed_files(dataset: LanceDataset, verifier: Verifier, target: int) -> list[int]:
    """Return the files that would be joined though bytes in them have changed since.

    Written anew with a sum of its own what is wrong would not be found any more.
    """
    return [
        each.fragment_id
        for each in dataset.get_fragments()
        if (_is_small(each.metadata, target) or each.metadata.num_deletions)
        and verifier.of_rows(dataset, each) == "changed"
    ]


def _target_rows(files: Sequence[FragmentMetadata], force: bool) -> int | None:
    """Return how many rows a file should have, or None when joining does not pay yet."""
    deleted = sum(item.num_deletions for item in files)
    if force:
        small = sum(_is_small(item, TIERS[-1]) for item in files)
        return TIERS[-1] if deleted or small > 1 else None
    for tier in reversed(TIERS):
        if sum(_is_small(item, tier) for item in files) > MAX_SMALL_FILES:
            return tier
    rows = sum(item.physical_rows for item in files)
    return TIERS[0] if deleted > max(MAX_DELETED_SHARE * rows, MIN_DELETED) else None


def _is_small(item: FragmentMetadata, rows: int) -> bool:
    return item.num_rows < rows and _bytes(item) < LARGE_FILE_BYTES


def _is_full(item: FragmentMetadata) -> bool:
    few_deleted = item.num_deletions <= MAX_DELETED_SHARE * item.physical_rows
    return few_deleted and _bytes(item) >= LARGE_FILE_BYTES


def _bytes(item: FragmentMetadata) -> int:
    return sum(part.file_size_bytes or 0 for part in item.files)


def _batch_rows(files: Sequence[FragmentMetadata]) -> int:
    rows = sum(item.physical_rows for item in files)
    row_bytes = max((_bytes(item) / max(item.physical_rows, 1) for item in files), default=0)
    return int(min(max(READ_BYTES / max(row_bytes, 1), 16), 8_192, max(rows, 16)))


def _wants_indexing(table: TableName, dataset: LanceDataset, force: bool) -> bool:
    rows = int(dataset.count_rows())
    return unindexed_rows(table, dataset, rows) > (0 if force else max_unindexed(rows))


def _wanted_vector_index(snapshot: Snapshot, ledger: Ledger) -> int:
    """Return for how many rows the vector index is to be made now: there are (far) more of them.

    Or it is of a kind that earlier versions have made.
    """
    rows = snapshot.count("memories")
    is_outdated = rows and is_of_another_kind(snapshot.dataset("memories"))
    built_at = 0 if is_outdated else int(ledger.meta(VECTOR_ROWS) or 0)
    return rows if rows >= max(VECTOR_INDEX_ROWS, VECTOR_INDEX_GROWTH * built_at) else 0


def _at_once(works: Sequence[Callable[[], None]]) -> None:
    """Run them in threads: the engine releases Python's lock and uses little more than one core."""
    if not works:
        return
    with ThreadPoolExecutor(len(works)) as pool:
        for done in [pool.submit(work) for work in works]:
            done.result()


def _indexing_beside_vectors(transaction: Transaction) -> Callable[[], None]:
    """What brings the other indexes of the memories up to date at the same time."""
    dataset = transaction.second_handle("memories")
    others = [item.name for item in dataset.describe_indices() if item.field_names != [VECTOR]]
    return partial(dataset.optimize.optimize_indices, index_names=others)


# --- pruning -------------------------------------------------------------------------------------


class PruneResult(Struct, frozen=True):
    """What was removed from disk."""

    versions: int
    bytes: int


def prune(
    datasets: Datasets,
    ledger: Ledger,
    held: Iterable[Mapping[TableName, int]],
    now: datetime,
    *,
    force: bool = False,
    grace: timedelta = GRACE,
) -> PruneResult:
    """Remove versions that have no reader; the caller holds the write lock.

    A version stays while it is HEAD or has another name, while a reader holds it, and for a while
    after it was HEAD.  Versions in the middle of a transaction never were, and go at once.

    Args:
        datasets: The tables.
        ledger: Knows HEAD, other names, and since when a version has not been HEAD.
        held: Versions that readers hold.
        now: The time.
        force: Prune even when there is little to remove.
        grace: How long that is, for readers who could not say that they hold one.
    """
    ledger.clamp_retired(now)
    kept = [*ledger.heads().values(), *held]
    most = 0 if force else MAX_OLD_VERSIONS
    done = [_prune(datasets, ledger, table, kept, now - grace, most) for table in TABLES]
    if any(item.versions for item in done):
        drop_checksums(datasets, ledger)
    return PruneResult(sum(item.versions for item in done), sum(item.bytes for item in done))


def _prune(
    datasets: Datasets,
    ledger: Ledger,
    table: TableName,
    kept: Sequence[Mapping[TableName, int]],
    before: datetime,
    limit: int,
) -> PruneResult:
    dataset = datasets.fresh(table)
    recent = {version for version, at in ledger.retired_versions(table).items() if at > before}
    needed = recent | {versions[table] for versions in kept if table in versions}
    old = [item["version"] for item in dataset.version_refs() if item["version"] not in needed]
    if len(old) <= limit:
        return PruneResult(0, 0)
    with translate_write_errors(datasets.uri(table)):
        _repair_tags(datasets, ledger, table)
        # Never `delete_unverified`: it takes files that a writer has not committed yet.
        stats = dataset.cleanup_old_versions(versions=old, error_if_tagged_old_versions=False)
    ledger.forget_retired(table, old)
    return PruneResult(stats.old_versions, stats.bytes_removed)


def _repair_tags(datasets: Datasets, ledger: Ledger, table: TableName) -> None:
    repair_tags(datasets, ledger, table)
    for path in damaged_tags(datasets, table).values():
        place = datasets.files(table).file_uri(path)
        raise DamagedError(f"cannot read the tag {place}", "run `memctl doctor --repair`")


Versions = Mapping[TableName, int]


class PurgeResult(Struct, frozen=True):
    """What was removed from disk, and what could not be."""

    bytes: int
    held: tuple[Versions, ...] = ()
    """Earlier versions that may still be read."""


def rewrite_without_deleted(transaction: Transaction, ledger: Ledger) -> None:
    """Rewrite every file that has deleted rows without them, and rebuild all indexes."""
    for table in TABLES:
        transaction.rewrite_empty_cells(table)
        dataset = transaction.dataset(table)
        for index in dataset.describe_indices():
            dataset.drop_index(index.name)
        dataset.optimize.compact_files(
            target_rows_per_fragment=TIERS[-1],
            materialize_deletions=True,
            materialize_deletions_threshold=0.0,
            max_bytes_per_file=LARGE_FILE_BYTES,
        )
        dataset.restore()  # type: ignore[no-untyped-call]  # a manifest says what was deleted last
        create_indexes(table, dataset)
    _make_vector_index(transaction, ledger)


def _make_vector_index(transaction: Transaction, ledger: Ledger) -> None:
    dataset = transaction.dataset("memories")
    rows = int(dataset.count_rows())
    built = rows if rows >= VECTOR_INDEX_ROWS else 0
    if built:
        create_vector_index(dataset)
    transaction.ledger(lambda _: ledger.set_meta(VECTOR_ROWS, str(built)))


def purge(
    datasets: Datasets, ledger: Ledger, held: Iterable[Versions], now: datetime
) -> PurgeResult:
    """Remove all versions but those that have a name or a reader, and files that none needs."""
    named = list(ledger.heads().values())
    needed = [versions for versions in held if versions not in named]
    pruned = prune(datasets, ledger, needed, now, force=True, grace=timedelta(0))
    orphaned = sum(_remove_orphans(datasets, table) for table in TABLES)
    return PurgeResult(pruned.bytes + orphaned, tuple(needed))


def _remove_orphans(datasets: Datasets, table: TableName) -> int:
    """Remove files that no version names: writers that were killed have left them.

    The caller holds the write lock, so none belongs to a change that is about to be committed.
    """
    files = datasets.files(table)
    needed = {
        part for dataset in _versions(datasets, table) for part, _ in version_entries(dataset)
    }
    freed = 0
    with translate_write_errors(files.uri):
        for name in _entries(files, (DATA, DELETIONS, INDEXES)):
            if name not in needed:
                freed += sum(map(files.size, files.names(name) or [name]))
                files.remove(name)
    return freed


def _versions(datasets: Datasets, table: TableName) -> Iterator[LanceDataset]:
    latest = datasets.fresh(table)
    for item in latest.version_refs():
        yield datasets.fresh(table, item["version"])


def _entries(files: TableFiles, folders: Iterable[str]) -> set[str]:
    """Return the files and folders that stand in some folders of a table."""
    names = (name for folder in folders for name in files.names(folder))
    return {"/".join(name.split("/")[:2]) for name in names}
