"""Looking for damage, and putting a store back into working order with as little loss as can be.

Nothing is thrown away: what is unreadable is left beside, and every step is told.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from memctl.errors import DamagedError
from memctl.store.datasets import Datasets
from memctl.store.durability import drop_unreadable, files_below, manifest_version, sync_new
from memctl.store.engine import lance, opening
from memctl.store.indexes import create_indexes
from memctl.store.ledger import Ledger
from memctl.store.lock import WriteLock
from memctl.store.names import TABLES, TableName
from memctl.store.schema import VECTOR
from memctl.store.store import (
    DIMENSION,
    EMBEDDER,
    EMBEDDER_SINCE,
    FORMER_EMBEDDER,
    LEDGER_FILE,
    TABLES_FOLDER,
)
from memctl.store.upkeep import VECTOR_ROWS

if TYPE_CHECKING:
    from lance import LanceDataset

_ENGINE_ERRORS = (OSError, ValueError, RuntimeError)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong, or that was done about it."""

    subject: str
    """``ledger`` or the name of a table."""
    message: str


# --- looking -------------------------------------------------------------------------------------


def examine(folder: Path) -> list[Finding]:
    """Read everything once and return what is wrong; changes nothing.

    Args:
        folder: The knowledge base's folder.
    """
    try:
        with closing(Ledger.open(folder / LEDGER_FILE)) as ledger:
            head = ledger.head()
            complaints = ledger.complaints()
    except DamagedError as error:
        return [Finding("ledger", error.message)]
    datasets = Datasets(folder / TABLES_FOLDER)
    findings = [Finding("ledger", complaint) for complaint in complaints]
    for table in TABLES:
        findings += _examine_table(datasets, table, head.get(table))
    return findings


def _examine_table(datasets: Datasets, table: TableName, version: int | None) -> Iterator[Finding]:
    if version is None:
        yield Finding(table, "the ledger names no version of it")
        return
    try:
        dataset = datasets.fresh(table, version)
    except DamagedError as error:
        yield Finding(table, error.message)
        return
    if lost := len(dataset.get_fragments()) - len(list(_readable(dataset))):
        yield Finding(table, f"{lost} of its files cannot be read")
        return
    for name in _broken_indexes(dataset):
        yield Finding(table, f"the index {name} cannot be read")


def _readable(dataset: LanceDataset) -> Iterator[pa.Table]:
    """Yield the rows of every file that can be read whole."""
    for fragment in dataset.get_fragments():
        try:
            yield fragment.to_table()
        except _ENGINE_ERRORS:
            continue


def _broken_indexes(dataset: LanceDataset) -> Iterator[str]:
    for index in dataset.describe_indices():
        try:
            dataset.prewarm_index(index.name)
        except _ENGINE_ERRORS:
            yield index.name


# --- putting right -------------------------------------------------------------------------------


def repair(folder: Path, clock: Callable[[], datetime]) -> list[Finding]:
    """Put right what :func:`examine` finds, and return what was done.

    A lost ledger is made anew from the newest readable version of each table, and the unreadable
    one is kept beside it; inbox states, jobs and logs are lost with it.  Of a damaged table the
    files that can be read are kept; broken indexes are made anew.

    Raises:
        LockedError: Somebody is writing.
        DamagedError: A table has no readable version at all.
    """
    done: list[Finding] = []
    with WriteLock(folder, clock).held(5.0):
        datasets = Datasets(folder / TABLES_FOLDER)
        with closing(_ledger(folder, done)) as ledger:
            named = ledger.head()
            since = _newest_readable(datasets, "memories", named.get("memories"))
            head = {table: _repaired(datasets, table, named.get(table), done) for table in TABLES}
            with ledger.transaction():
                done += _went_back(ledger, since)
                ledger.set_meta(DIMENSION, str(_dimension(datasets, head["memories"])))
                if any(finding.subject == "memories" for finding in done):
                    ledger.set_meta(VECTOR_ROWS, "0")
                ledger.set_head(head, clock())
    return done


def _ledger(folder: Path, done: list[Finding]) -> Ledger:
    path = folder / LEDGER_FILE
    try:
        ledger = Ledger.open(path)
        if not ledger.complaints():
            return ledger
        ledger.close()
    except DamagedError:
        pass
    for part in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        if part.exists():
            part.rename(part.with_name(f"{part.name}.damaged-{secrets.token_hex(3)}"))
    done.append(Finding("ledger", "made anew from the tables; the old one is kept beside it"))
    return Ledger.create(path)


def _repaired(
    datasets: Datasets, table: TableName, version: int | None, done: list[Finding]
) -> int:
    known = files_below(datasets.path(table))
    readable = _newest_readable(datasets, table, version)
    if version is not None and readable != version:
        done.append(Finding(table, f"went back from version {version} to {readable}"))
    drop_unreadable(datasets, table, readable)
    dataset = datasets.fresh(table, readable)
    dataset = _without_lost_files(datasets, table, dataset, done)
    if dataset.version != dataset.latest_version:
        dataset.restore()  # type: ignore[no-untyped-call]
    if broken := list(_broken_indexes(dataset)):
        _remake_indexes(table, dataset)
        done.append(Finding(table, f"made its indexes anew, for {', '.join(broken)} was broken"))
    sync_new(datasets.path(table), known)
    return int(dataset.version)


def _newest_readable(datasets: Datasets, table: TableName, most: int | None) -> int:
    manifests = (datasets.path(table) / "_versions").glob("*.manifest")
    versions = sorted(map(manifest_version, manifests), reverse=True)
    for version in versions:
        if most is not None and version > most:
            continue
        try:
            dataset = datasets.fresh(table, version)
        except DamagedError:
            continue
        # A change of the embedder drops the vectors in one version and adds others in the next.
        if table != "memories" or VECTOR in dataset.schema.names:
            return version
    raise DamagedError(
        f"no version of the table {table} can be read", "restore the knowledge base from a backup"
    )


def _without_lost_files(
    datasets: Datasets, table: TableName, dataset: LanceDataset, done: list[Finding]
) -> LanceDataset:
    """Return the table rewritten from the files that can be read, where some cannot."""
    files = len(dataset.get_fragments())
    if sum(1 for _ in _readable(dataset)) == files:
        return dataset
    before, kept = dataset.count_rows(), 0
    path = str(datasets.path(table))
    dataset.restore()  # type: ignore[no-untyped-call]
    # One file at a time: the engine stalls when it writes from a stream that reads from it.
    written: LanceDataset = lance().write_dataset(
        dataset.schema.empty_table(), path, mode="overwrite"
    )
    for rows in _readable(dataset):
        kept += rows.num_rows
        written = lance().write_dataset(rows, path, mode="append")
    create_indexes(table, written)
    done.append(Finding(table, f"kept {kept} of {before} rows; the others cannot be read"))
    return written


def _remake_indexes(table: TableName, dataset: LanceDataset) -> None:
    for index in dataset.describe_indices():
        dataset.drop_index(index.name)
    create_indexes(table, dataset)


def _went_back(ledger: Ledger, version: int) -> Iterator[Finding]:
    """Name the former embedder again where the memories are those from before the change."""
    former = ledger.meta(FORMER_EMBEDDER)
    if former is None or version >= int(ledger.meta(EMBEDDER_SINCE) or 0):
        return
    ledger.set_meta(EMBEDDER, former)
    yield Finding("memories", f"their vectors are those from before the change, from {former}")


def _dimension(datasets: Datasets, version: int) -> int:
    with opening(datasets.path("memories")):
        schema = datasets.fresh("memories", version).schema
        return int(schema.field("vector").type.list_size)
