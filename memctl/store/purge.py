"""Making sure that rows which are gone are gone from the disk, too.

The tables are written anew without them, indexes are made anew, and versions and files that nobody
needs are removed at once.  The caller holds the lock.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.store.engine import changing
from memctl.store.indexes import VECTOR_INDEX_ROWS, create_indexes, create_vector_index
from memctl.store.names import TABLES, TableName
from memctl.store.parts import parts_of
from memctl.store.upkeep import LARGE_FILE_BYTES, TIERS, VECTOR_ROWS, prune

if TYPE_CHECKING:
    from lance import LanceDataset

    from memctl.store.datasets import Datasets
    from memctl.store.ledger import Ledger
    from memctl.store.transaction import Transaction

Versions = Mapping[TableName, int]


@dataclass(frozen=True, slots=True)
class Purged:
    """What was removed from disk, and what could not be."""

    bytes: int
    held: tuple[Versions, ...] = ()
    """Earlier versions that somebody may be reading."""


def rewrite(transaction: Transaction, ledger: Ledger) -> None:
    """Write every file that has deleted rows anew without them, and make all indexes anew."""
    for table in TABLES:
        dataset = transaction.dataset(table)
        for index in dataset.describe_indices():
            dataset.drop_index(index.name)
        dataset.optimize.compact_files(
            target_rows_per_fragment=TIERS[-1],
            materialize_deletions=True,
            materialize_deletions_threshold=0.0,
            max_bytes_per_file=LARGE_FILE_BYTES,
        )
        create_indexes(table, dataset)
    _make_vector_index(transaction, ledger)


def _make_vector_index(transaction: Transaction, ledger: Ledger) -> None:
    dataset = transaction.dataset("memories")
    rows = int(dataset.count_rows())
    built = rows if rows >= VECTOR_INDEX_ROWS else 0
    if built:
        create_vector_index(dataset, rows)
    transaction.ledger(lambda _: ledger.set_meta(VECTOR_ROWS, str(built)))


def purge(datasets: Datasets, ledger: Ledger, held: Iterable[Versions], now: datetime) -> Purged:
    """Remove all versions but those that have a name or a reader, and files that none needs."""
    named = list(ledger.heads().values())
    needed = [versions for versions in held if versions not in named]
    pruned = prune(datasets, ledger, needed, now, force=True, grace=timedelta(0))
    orphaned = sum(_remove_orphans(datasets, table) for table in TABLES)
    return Purged(pruned.bytes + orphaned, tuple(needed))


def _remove_orphans(datasets: Datasets, table: TableName) -> int:
    """Remove files that no version names: writers that were killed have left them.

    Whoever writes holds the lock, so none of them is of a change that is about to be committed.
    """
    path = datasets.path(table)
    needed = {part for dataset in _versions(datasets, table) for part, _ in parts_of(dataset)}
    freed = 0
    with changing(path):
        for found in _below(path, ("data", "_deletions", "_indices")):
            if found.relative_to(path).as_posix() not in needed:
                freed += _remove(found)
    return freed


def _versions(datasets: Datasets, table: TableName) -> Iterator[LanceDataset]:
    latest = datasets.fresh(table)
    for item in latest.version_refs():
        yield datasets.fresh(table, item["version"])


def _below(path: Path, folders: Iterable[str]) -> Iterator[Path]:
    for folder in folders:
        if (path / folder).is_dir():
            yield from (path / folder).iterdir()


def _remove(path: Path) -> int:
    files = [path] if path.is_file() else [item for item in path.rglob("*") if item.is_file()]
    size = sum(item.stat().st_size for item in files)
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    return size
