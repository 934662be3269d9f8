"""Making new files of a table survive a power cut.

Lance 13 never calls fsync: without this a cut can leave the newest manifest or data file empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from pathlib import PurePath, PurePosixPath

from memctl.errors import DamagedError
from memctl.schema.table_names import TableName
from memctl.store.ledger.ledger import Ledger
from memctl.store.ledger.version_repositories import Manifest, TableVersion
from memctl.store.tables.engine import Datasets
from memctl.store.tables.storage import (
    DATA,
    DELETIONS,
    INDEXES,
    VERSIONS,
    TableFiles,
    read_whole,
)

_LARGEST_VERSION = 2**64 - 1
_MANIFEST = ".manifest"
_UNFINISHED = ".tmp"
"""How lance 13 has the names of files begin until they are whole.  It leaves them alone for a week
after, and as long as there is nothing else to prune."""


def drop_unfinished(files: TableFiles, names: Iterable[str]) -> None:
    """Remove the temporary files of killed writers; the caller holds the write lock."""
    for name in names:
        if PurePosixPath(name).name.startswith(_UNFINISHED):
            files.remove(name)


def drop_rows(files: TableFiles, known: Set[str]) -> None:
    """Remove what was written of rows and indexes, but no manifest.

    Nobody reads them, and a full disk needs room for the manifest that takes them back.
    """
    for name in files.names() - known:
        if PurePosixPath(name).parts[0] in (DATA, DELETIONS, INDEXES):
            files.remove(name)


def sync_new(files: TableFiles, known: Set[str]) -> set[str]:
    """Make the files of a table durable that are not ``known``; return their names."""
    new = files.names() - known
    files.sync(new)
    return new


def drop_unreadable(datasets: Datasets, table: TableName, head: int) -> None:
    """Remove manifests beyond HEAD that a power cut has left empty or in part.

    They were never acknowledged, and while one is there the engine can commit nothing.
    """
    files = datasets.files(table)
    for name in manifests(files):
        version = manifest_version(name)
        if version > head and not can_be_opened(datasets, table, version):
            files.remove(name)


def manifests(files: TableFiles) -> list[str]:
    """Return the names of a table's manifests."""
    return [name for name in files.names(VERSIONS) if name.endswith(_MANIFEST)]


def manifest_version(name: str | PurePath) -> int:
    """Return the version that a manifest describes: names count down, so that the newest is first.

    Tables made by early versions of the engine count up.
    """
    number = int(PurePath(name).stem)
    return _LARGEST_VERSION - number if number > _LARGEST_VERSION // 2 else number


def manifest_name(version: int) -> str:
    """Return the name of a version's manifest."""
    return f"{VERSIONS}/{_LARGEST_VERSION - version:020}{_MANIFEST}"


def can_be_opened(datasets: Datasets, table: TableName, version: int) -> bool:
    """Return whether the manifest of a version can be read."""
    try:
        datasets.fresh(table, version)
    except DamagedError:
        return False
    return True


def copy_manifests(datasets: Datasets, ledger: Ledger) -> None:
    """Keep copies of the manifests of all named versions in the ledger, and of no others.

    It belongs into the transaction that gives versions their names.
    """
    ledger.manifests.remove_unnamed()
    for table, version in ledger.manifests.missing_copies():
        try:
            content = read_whole(datasets.files(table), manifest_name(version))
            rows = int(datasets.at(table, version).count_rows())
        except (FileNotFoundError, DamagedError):  # of a snapshot that is damaged
            continue
        ledger.manifests.save(Manifest(table, version, content, rows))


def lost_manifests(datasets: Datasets, ledger: Ledger) -> Iterator[tuple[TableVersion, bytes]]:
    """Yield the named versions whose manifest differs from the copy in the ledger."""
    for copy in ledger.manifests.all():
        files, name = datasets.files(copy.table_name), manifest_name(copy.version)
        if not files.exists(name) or read_whole(files, name) != copy.content:
            yield (copy.table_name, copy.version), copy.content
