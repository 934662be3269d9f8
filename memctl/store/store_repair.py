"""Putting a store back into working order with as little loss as can be.

Nothing is thrown away: unreadable files are set aside, and every step is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import closing
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from msgspec import Struct, field

from memctl.errors import DamagedError
from memctl.files import quarantine
from memctl.schema.arrow_tables import VECTOR, schemas
from memctl.schema.declarations import DECLARATIONS
from memctl.schema.migrations import FIRST_VERSION, require_known, tables_at, version_of
from memctl.schema.table_names import TABLES, TableName
from memctl.store.ledger.ledger import HEAD, Ledger
from memctl.store.locks import WriteLock
from memctl.store.rescue import Believed, RescuedTable, Trust, rescue
from memctl.store.store import (
    DIMENSION,
    EMBEDDER,
    EMBEDDER_SINCE,
    FORMER_EMBEDDER,
    LEDGER_FILE,
)
from memctl.store.tables.checksums import Verifier, add_missing_checksums
from memctl.store.tables.durability import (
    can_be_opened,
    copy_manifests,
    lost_manifests,
    manifest_name,
    manifest_version,
    manifests,
    sync_new,
)
from memctl.store.tables.engine import Datasets, translate_open_errors, translate_write_errors
from memctl.store.tables.indexes import remake_indexes
from memctl.store.tables.inspection import (
    LostRow,
    damaged_files,
    require_written,
    versions_on_disk,
)
from memctl.store.tables.snapshot_tags import Tag, damaged_tags, repair_tags, snapshot_tags
from memctl.store.tables.storage import read_whole
from memctl.store.tables.upkeep import VECTOR_ROWS

if TYPE_CHECKING:
    from lance import LanceDataset


_RELATED_TABLE: dict[TableName, tuple[TableName, str, str]] = {}
for _table in DECLARATIONS.values():
    for _owner in (each for each in _table.references if each.is_owner):
        _RELATED_TABLE[_table.name] = (_owner.to[0], "id", _owner.column)
        _RELATED_TABLE[_owner.to[0]] = (_table.name, _owner.column, "id")
"""What knows of the rows of a table: another one, by which column, and by which of its own."""
FILES_UNKNOWN = "files_unknown"
"""Set in a ledger that was made anew until its table of inbox files has been, too."""
MAX_LISTED = 5
"""Rows that a step names; its ``lost`` has them all."""


class Step(Struct, frozen=True):
    """Something that was done about damage."""

    subject: str
    """``ledger`` or the name of a table."""
    message: str
    lost_rows: int = 0
    """Rows that nothing brought back; 1 where nothing says how many."""
    lost: tuple[LostRow, ...] = ()
    """Those of them that something names, and rows that are as they were before."""


class Loss(Struct, frozen=True):
    """Rows of a table that could not be read anywhere; documents may be read again."""

    rows: int = 0
    named: tuple[LostRow, ...] = ()


class RepairReport(Struct, frozen=True):
    """What was repaired in tables and ledger, and what is still missing."""

    verifier: Verifier
    """Has read all files."""
    steps: list[Step] = field(default_factory=list)
    losses: dict[TableName, Loss] = field(default_factory=dict)


def repair(folder: Path, clock: Callable[[], datetime]) -> RepairReport:
    """Put right what cannot be read, and return what was done.

    A lost ledger is made anew from the newest readable version of each table and the tags of
    snapshots, and the unreadable one is kept beside it; jobs and logs are lost with it.  Of a
    damaged table every row is kept that can be read anywhere; broken indexes are made anew.

    Raises:
        LockedError: Another process is writing.
        DamagedError: Nothing of a table can be read.
    """
    steps: list[Step] = []
    with WriteLock(folder, clock).hold(5.0):
        datasets = Datasets.of(folder)
        with closing(_ledger(folder, steps)) as ledger:
            old_head = ledger.head()
            # Before anything is written: then the numbers of versions that are lost come again.
            steps += _with_manifests(datasets, ledger)
            verifier = Verifier(datasets, ledger, reads_rows=True)
            repaired = RepairReport(verifier, steps)
            tagged = set() if old_head else _readable_by_tag(verifier)
            with ledger.transaction():
                steps += _without_lost_names(ledger, verifier)
            since = _newest_version(datasets, "memories", old_head.get("memories"))
            version = ledger.schema_version()
            columns = schemas(int(ledger.meta(DIMENSION) or 0), version) if old_head else {}
            head = {}
            for table in _tables(datasets, old_head, version):
                gone = ledger.deletions.ids() | ledger.forgotten.gone_ids()
                blocked = ledger.forgotten.blocked_ids()
                trust = Trust(_not_deleted(verifier, table, old_head), gone, blocked)
                with translate_write_errors(datasets.uri(table)):
                    head[table] = _repair_table(
                        verifier, table, old_head.get(table), columns.get(table), trust, repaired
                    )
            found = {table: _schema(datasets, table, head[table]).names for table in head}
            with ledger.transaction():
                steps += _restore_embedder_name(ledger, since)
                ledger.set_meta(DIMENSION, str(_dimension(datasets, head["memories"])))
                if any(step.subject == "memories" for step in steps):
                    ledger.set_meta(VECTOR_ROWS, "0")
                ledger.set_head(head, clock())
                # A table that went back to an earlier version may be of an earlier schema.
                ledger.set_schema_version(
                    min(version_of(found), version) if old_head else version_of(found)
                )
                if not old_head:
                    steps += _named_by_tags(ledger, datasets, tagged)
                copy_manifests(datasets, ledger)
                add_missing_checksums(datasets, ledger)
            steps += _repair_tags(ledger, datasets)
            steps += _damaged_snapshots(ledger, verifier)
    return repaired


def _ledger(folder: Path, steps: list[Step]) -> Ledger:
    path = folder / LEDGER_FILE
    try:
        ledger = Ledger.open(path)
        if not ledger.complaints():
            require_known(ledger.schema_version(), str(folder))
            return ledger
        ledger.close()
    except DamagedError:
        pass
    parts = [path.with_name(f"{path.name}{end}") for end in ("", "-wal", "-shm")]
    beside = [part for part in parts if part.exists()]
    for part in beside:
        quarantine(part)
    kept = "; the old one is kept beside it" if beside else ""
    steps.append(Step("ledger", f"made anew from the tables{kept}"))
    ledger = Ledger.create(path)
    ledger.set_meta(FILES_UNKNOWN, "1")
    return ledger


def _repair_table(
    verifier: Verifier,
    table: TableName,
    version: int | None,
    columns: pa.Schema | None,
    trust: Trust,
    repaired: RepairReport,
) -> int:
    steps, datasets = repaired.steps, verifier.datasets
    files = datasets.files(table)
    if files.is_blocked():
        files.set_aside()
        steps.append(Step(table, "what stood in its place, a file, is put aside"))
    files_before = files.names()
    if version is None:  # the ledger is lost, and with it which one counts
        version = _newest_if_unreadable(datasets, table)
    steps += _without_lost_manifests(datasets, table, version)
    newest = _newest_version(datasets, table, version)
    dataset = None if newest is None else datasets.fresh(table, newest)
    is_head = dataset is not None and version in (None, newest)
    if dataset is None or not is_head or not verifier.is_whole(dataset):
        doubtful = verifier.doubtful_in(dataset) if dataset is not None else []
        rescued = _rescue_rows(datasets, table, dataset, version, columns, trust, steps)
        repaired.losses[table] = Loss(rescued.lost, (*rescued.named, *doubtful))
        dataset = rescued.dataset
    elif dataset.version != dataset.latest_version:
        dataset.restore()  # type: ignore[no-untyped-call]
    if broken := verifier.broken_indexes(dataset):
        remake_indexes(table, dataset)
        steps.append(Step(table, f"made its indexes anew, for {', '.join(broken)} was broken"))
    new = sync_new(files, files_before)
    require_written(datasets, table, int(dataset.version), new)
    return int(dataset.version)


def _with_manifests(datasets: Datasets, ledger: Ledger) -> Iterator[Step]:
    """Write manifests again that are lost alone: with them every row is back."""
    ledger.manifests.remove_unnamed()
    for (table, version), content in lost_manifests(datasets, ledger):
        files, name = datasets.files(table), manifest_name(version)
        if not files.exists():
            continue
        former = read_whole(files, name) if can_be_opened(datasets, table, version) else None
        if files.exists(name):
            files.set_aside(name)
        files.save(name, content)
        datasets.renew()
        if former is None or not damaged_files(datasets, {table: version}):
            yield Step(table, f"wrote the manifest of version {version} again, from the ledger")
            continue
        files.save(name, former)  # its own files are there, those of the one that counted are not
        datasets.renew()
        ledger.manifests.remove(table, version)
        reason = f"version {version} is not the one that was committed, of which files are gone"
        yield Step(table, f"{reason}: what differed is lost", lost_rows=1)


def _without_lost_manifests(
    datasets: Datasets, table: TableName, head: int | None
) -> Iterator[Step]:
    """Put manifests aside that cannot be read: the engine stumbles over them when it prunes."""
    files = datasets.files(table)
    for name in manifests(files):
        version = manifest_version(name)
        if can_be_opened(datasets, table, version):
            continue
        files.set_aside(name)
        if version != head:
            yield Step(table, f"put the unreadable manifest of version {version} aside")


def _newest_version(datasets: Datasets, table: TableName, limit: int | None) -> int | None:
    """Return the newest version that can be opened, up to one; None where none can."""
    for version in versions_on_disk(datasets, table):
        if (limit is not None and version > limit) or not can_be_opened(datasets, table, version):
            continue
        # A change of the embedder drops the vectors in one version and adds others in the next.
        if table != "memories" or VECTOR in datasets.fresh(table, version).schema.names:
            return version
    return None


def _newest_if_unreadable(datasets: Datasets, table: TableName) -> int | None:
    """Return the newest version there is a manifest of, where that cannot be opened."""
    newest = next(iter(versions_on_disk(datasets, table)), None)
    return None if newest is None or can_be_opened(datasets, table, newest) else newest


def _rescue_rows(
    datasets: Datasets,
    table: TableName,
    dataset: LanceDataset | None,
    version: int | None,
    columns: pa.Schema | None,
    trust: Trust,
    steps: list[Step],
) -> RescuedTable:
    before = 0 if dataset is None else int(dataset.count_rows())
    opened = None if dataset is None else int(dataset.version)
    names_all = opened is not None and version == opened
    rescued = rescue(datasets, table, dataset, names_all=names_all, columns=columns, trust=trust)
    if rescued is None:
        raise DamagedError(
            f"nothing of the table {table} can be read", "restore the knowledge base from a backup"
        )
    if version is not None and opened != version:
        steps.append(_step_back(table, version, opened, rescued.undone))
    if opened is None and table == "memories":
        message = "no version says any more what it had; what has no file in processed/ is lost"
        steps.append(Step(table, message, lost_rows=1))
    message = (
        f"kept {rescued.kept} of {before} rows" if rescued.lost else f"kept {rescued.kept} rows"
    )
    more = ((rescued.earlier, "an earlier version"), (rescued.loose, "files that no version names"))
    message += "".join(f", {rows} more from {where}" for rows, where in more if rows)
    if rescued.lost:
        message += "; the others cannot be read"
    steps.append(Step(table, message))
    return rescued


def _step_back(
    table: TableName, version: int, opened: int | None, undone: tuple[LostRow, ...]
) -> Step:
    if opened is None:
        return Step(table, f"went back from version {version} to what can be read of its files")
    message = f"went back from version {version} to {opened}: what was changed since may be undone"
    if undone:
        named = ", ".join(row.id for row in undone[:MAX_LISTED])
        more = f" and {len(undone) - MAX_LISTED:,} others" if len(undone) > MAX_LISTED else ""
        message += f", that of {named}{more} is"
    return Step(table, message, max(1, len(undone)), undone)


def _not_deleted(verifier: Verifier, table: TableName, head: Mapping[TableName, int]) -> Believed:
    """Return a filter of documents and memories: rows that were, as a rule, not deleted.

    A document without a memory and a memory without its document were deleted, where the other
    table, which would know them, is whole.
    """

    def all_are(batch: pa.RecordBatch) -> pa.Array:
        """Believe every row."""
        return batch["id"].is_valid()

    if table not in _RELATED_TABLE:
        return all_are
    other, named, own = _RELATED_TABLE[table]
    version = head.get(other)
    if version is None or not _is_readable(verifier, other, version):
        return all_are
    dataset = verifier.datasets.fresh(other, version)

    @cache
    def known_ids() -> set[str]:
        """Return what the other table names; asked for only when something is to be rescued."""
        return set(dataset.to_table(columns=[named])[named].to_pylist())

    def is_known(batch: pa.RecordBatch) -> pa.Array:
        """Believe rows that the other table knows of, and memories of no document."""
        values = batch[own].to_pylist()
        return pa.array([value is None or value in known_ids() for value in values], pa.bool_())

    return is_known


def _without_lost_names(ledger: Ledger, verifier: Verifier) -> Iterator[Step]:
    """Forget names, as snapshots have, of versions that are lost: their numbers come again.

    Of a ledger that was made anew those go too whose rows cannot be read: they are what says which
    files such a state had.
    """
    by_rows = ledger.meta(FILES_UNKNOWN) == "1"
    is_there = (
        partial(_is_readable, verifier) if by_rows else partial(can_be_opened, verifier.datasets)
    )
    for name, head in ledger.heads().items():
        if name != HEAD and not all(is_there(*each) for each in head.items()):
            ledger.forget_head(name)
            ledger.snapshots.remove(name)
            yield Step("ledger", f"the state called {name} is lost")


def _damaged_snapshots(ledger: Ledger, verifier: Verifier) -> Iterator[Step]:
    """Report snapshots that lack files: they cannot be restored, though some rows may be left."""
    for name, head in ledger.heads().items():
        if name != HEAD and (files := verifier.damaged_files(head)):
            message = f"the snapshot {name} cannot be restored: {len(files)} of its files are lost"
            hint = f"memctl snapshot delete {name} removes it"
            yield Step("ledger", f"{message}; {hint}", lost_rows=1)


def _is_readable(verifier: Verifier, table: TableName, version: int) -> bool:
    """Return whether every row of a version can be read."""
    datasets = verifier.datasets
    if not can_be_opened(datasets, table, version):
        return False
    return verifier.is_whole(datasets.fresh(table, version))


def _readable_by_tag(verifier: Verifier) -> set[tuple[TableName, int]]:
    """Return the versions with a snapshot's tag of which every row can be read."""
    datasets = verifier.datasets
    tags = ((table, tag) for table in TABLES for tag in snapshot_tags(datasets, table).values())
    named = {(table, tag.version) for table, tag in tags if tag is not None}
    return {each for each in named if _is_readable(verifier, *each)}


def _named_by_tags(
    ledger: Ledger, datasets: Datasets, readable: Set[tuple[TableName, int]]
) -> Iterator[Step]:
    """Write down the snapshots that the tables' tags tell of, in a ledger that knows none."""
    tags = {table: snapshot_tags(datasets, table) for table in TABLES}
    for name in sorted({name for each in tags.values() for name in each}):
        found = {table: tag for table in TABLES if (tag := tags[table].get(name)) is not None}
        heads = {table: tag.version for table, tag in found.items()}
        if lacking := [table for table in tables_at(FIRST_VERSION) if table not in found]:
            why = f"no tag says which version it is of {', '.join(lacking)}"
        elif not heads.items() <= readable:
            why = "versions of it cannot be read"
        elif settings := _tag_settings(
            datasets, found["memories"], int(ledger.meta(DIMENSION) or 0)
        ):
            ledger.name_head(name, heads)
            ledger.snapshots.add(name, found["memories"].created_at, settings)
            yield Step("ledger", f"read the snapshot {name} back from the tables' tags")
            continue
        else:
            why = "nothing says what its vectors are from"
        yield Step("ledger", f"the snapshot {name} is lost: {why}")


def _tag_settings(datasets: Datasets, tag: Tag, dimension: int) -> Mapping[str, str]:
    """Return the settings that a tag holds; without any, the dimension if the vectors fit it."""
    if tag.metadata:
        return tag.metadata
    alike = _dimension(datasets, tag.version) == dimension
    return {DIMENSION: str(dimension)} if alike else {}


def _repair_tags(ledger: Ledger, datasets: Datasets) -> Iterator[Step]:
    """Have the tables' tags say what the ledger says: nothing is pruned while one is damaged."""
    for table in TABLES:
        repaired = repair_tags(datasets, ledger, table)
        for name in repaired.written:
            yield Step(table, f"wrote the tag of the snapshot {name} anew")
        for name in repaired.removed:
            yield Step(table, f"removed the unreadable tag of the snapshot {name}")
        for name, path in damaged_tags(datasets, table).items():
            datasets.files(table).set_aside(path)
            yield Step(table, f"put the unreadable tag {name} aside")


def _restore_embedder_name(ledger: Ledger, version: int | None) -> Iterator[Step]:
    """Name the former embedder again where the memories are those from before the change."""
    former = ledger.meta(FORMER_EMBEDDER)
    if former is None or version is None or version >= int(ledger.meta(EMBEDDER_SINCE) or 0):
        return
    ledger.set_meta(EMBEDDER, former)
    yield Step("memories", f"their vectors are those from before the change, from {former}")


def _dimension(datasets: Datasets, version: int) -> int:
    return int(_schema(datasets, "memories", version).field(VECTOR).type.list_size)


def _schema(datasets: Datasets, table: TableName, version: int) -> pa.Schema:
    with translate_open_errors(datasets.uri(table)):
        return datasets.fresh(table, version).schema


def _tables(datasets: Datasets, head: Mapping[TableName, int], version: int) -> Iterator[TableName]:
    """Yield the tables that there should be; without HEAD later ones too that are there."""
    for table in TABLES:
        files = datasets.files(table)
        is_there = table in head if head else files.exists() or files.is_blocked()
        if is_there or table in tables_at(version):
            yield table
