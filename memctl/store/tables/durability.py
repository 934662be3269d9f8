"""Making new files of a table survive a power cut.

Lance 13 never calls fsync: without this a cut can leave the newest manifest or data file empty.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from memctl.errors import DamagedError
from memctl.files import sync_file, sync_folder
from memctl.schema.table_names import TableName
from memctl.store.ledger.ledger import Ledger
from memctl.store.ledger.version_repositories import Manifest, TableVersion
from memctl.store.tables.engine import Datasets

_LARGEST_VERSION = 2**64 - 1
_UNFINISHED = ".tmp"
"""How lance 13 has the names of files begin until they are whole.  It leaves them alone for a week
after, and as long as there is nothing else to prune."""


def files_below(folder: Path) -> set[str]:
    """Return the paths of all files below a folder."""
    return {f"{root}{os.sep}{name}" for root, _, names in os.walk(folder) for name in names}


def drop_unfinished(paths: Iterable[str]) -> None:
    """Remove the temporary files of killed writers; the caller holds the write lock."""
    for path in map(Path, paths):
        if path.name.startswith(_UNFINISHED):
            path.unlink(missing_ok=True)


def sync_new(folder: Path, known: set[str]) -> set[str]:
    """Fsync the files below ``folder`` that are not ``known``, and their folders; return them."""
    new = files_below(folder) - known
    for path in new:
        sync_file(path)  # a temporary file of the engine may be gone by now
    for parent in _folders(new, folder):
        sync_folder(parent)
    return new


def _folders(paths: Iterable[str], top: Path) -> set[Path]:
    """Return the folders of the paths and those between them and ``top``, included."""
    result: set[Path] = set()
    for path in paths:
        folder = Path(path).parent
        while folder not in result and folder != top.parent:
            result.add(folder)
            folder = folder.parent
    return {folder for folder in result if folder.is_dir()}


def drop_unreadable(datasets: Datasets, table: TableName, head: int) -> None:
    """Remove manifests beyond HEAD that a power cut has left empty or in part.

    They were never acknowledged, and while one is there the engine can commit nothing.
    """
    for path in (datasets.path(table) / "_versions").glob("*.manifest"):
        version = manifest_version(path)
        if version > head and not _is_readable(datasets, table, version):
            path.unlink()


def manifest_version(path: Path) -> int:
    """Return the version that a manifest describes: names count down, so that the newest is first.

    Tables made by early versions of the engine count up.
    """
    number = int(path.stem)
    return _LARGEST_VERSION - number if number > _LARGEST_VERSION // 2 else number


def manifest_path(folder: Path, version: int) -> Path:
    """Return the path of a version's manifest, below the folder of its table."""
    return folder / "_versions" / f"{_LARGEST_VERSION - version:020}.manifest"


def _is_readable(datasets: Datasets, table: TableName, version: int) -> bool:
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
    for table, version in ledger.manifests.missing():
        try:
            content = manifest_path(datasets.path(table), version).read_bytes()
            rows = int(datasets.at(table, version).count_rows())
        except (FileNotFoundError, DamagedError):  # of a snapshot that is damaged
            continue
        ledger.manifests.save(Manifest(table, version, content, rows))


def lost_manifests(datasets: Datasets, ledger: Ledger) -> Iterator[tuple[TableVersion, bytes]]:
    """Yield the named versions whose manifest differs from the copy in the ledger."""
    for copy in ledger.manifests.all():
        path = manifest_path(datasets.path(copy.table_name), copy.version)
        if not path.is_file() or path.read_bytes() != copy.content:
            yield (copy.table_name, copy.version), copy.content
