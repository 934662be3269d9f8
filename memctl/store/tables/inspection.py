"""Looking at the tables' files without changing any: what can be read of them and what cannot."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from memctl.errors import DamagedError, DiskRefused
from memctl.schema.table_names import TableName
from memctl.store.tables.durability import manifest_name, manifest_version, manifests
from memctl.store.tables.engine import Datasets, bounded_scan, lance, without_panics
from memctl.store.tables.storage import DATA, INDEXES, TableFiles

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset, LanceFragment
    from lance.lance import IndexDescription
    from numpy.typing import NDArray

    from memctl.store.tables.snapshot import Snapshot

ENGINE_ERRORS = (OSError, ValueError, RuntimeError)
READ_BYTES = 8 << 20
"""Rows are read in pieces of about this many bytes."""

_LARGE_INDEXES = ("Inverted", "IVF")
"""How the types begin of indexes that the engine (lance 13) loads whole, however large, when it is
asked to load them: of a million memories into some 300 MB."""
_END_BYTES = 4


class TableState(Struct, frozen=True):
    """What the files of one table are like at the version that counts."""

    table: TableName
    version: int
    rows: int = 0
    files: int = 0
    problem: str = ""
    """Why the version cannot be opened at all."""
    lost_files: int = 0
    """How many of its files of rows cannot be read, with the deletions in them."""
    changed_files: int = 0
    """How many of the others are not as they were written: what is read of them may be wrong."""
    broken_indexes: tuple[str, ...] = ()
    unindexed: int = 0
    """Rows that the index which is furthest behind does not know."""
    versions: tuple[int, ...] = ()
    """Every version that can be opened, the newest first."""
    lost_versions: tuple[int, ...] = ()
    """Versions that cannot, though there is a manifest of them."""

    @property
    def is_readable(self) -> bool:
        """Whether every row can be read, and is what was written."""
        return not self.problem and not self.lost_files and not self.changed_files

    @property
    def later_versions(self) -> tuple[int, ...]:
        """Versions beyond this one: of a change in progress, or left by one that was cut off."""
        return tuple(n for n in (*self.versions, *self.lost_versions) if n > self.version)


def versions_on_disk(datasets: Datasets, table: TableName) -> list[int]:
    """Return the versions that there are manifests of, the newest first."""
    return sorted(map(manifest_version, manifests(datasets.files(table))), reverse=True)


def rows_of(dataset: LanceDataset, fragment: LanceFragment) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one file, in pieces; reading can raise one of ``ENGINE_ERRORS``."""
    with without_panics():
        yield from dataset.scanner(fragments=[fragment], **bounded_scan(READ_BYTES)).to_reader()


def broken_indexes(
    files: TableFiles, dataset: LanceDataset, tables: Container[str]
) -> Iterator[str]:
    """Yield those of some indexes of which a file is gone, or cannot be read to its end."""
    for index in (each for each in dataset.describe_indices() if each.name in tables):
        try:
            is_whole = index_is_complete(files, index)
            for name in index_files(files, index) if is_whole else ():
                for _ in read_file(files.file_uri(name)):
                    pass
            if is_whole and not index.index_type.startswith(_LARGE_INDEXES):
                with without_panics():
                    dataset.prewarm_index(index.name)
        except ENGINE_ERRORS:
            is_whole = False
        if not is_whole:
            yield index.name


def read_file(uri: str) -> Iterator[pa.RecordBatch]:
    """Yield what stands in a file of the engine; reading can raise one of ``ENGINE_ERRORS``."""
    from lance.file import LanceFileReader

    lance()
    with without_panics():
        yield from LanceFileReader(uri).read_all(batch_size=1024).to_batches()


def index_sizes_match(files: TableFiles, folder: str, size: int | None) -> bool:
    """Return whether the files of an index have the bytes that they had; older ones say no size."""
    sizes = {name: files.size(name) for name in files.names(folder)}
    is_as_long = size in (None, 0, sum(sizes.values()))
    return bool(sizes) and is_as_long and all(_has_an_end(files, *each) for each in sizes.items())


def _has_an_end(files: TableFiles, name: str, size: int) -> bool:
    """Return whether the last bytes of a file are anything but zeros, as the engine's mark is."""
    with files.open(name) as file:
        file.seek(max(size - _END_BYTES, 0))
        return any(file.read())


def vector_length(snapshot: Snapshot) -> int:
    """Return the length that the table itself gives its vectors."""
    return int(snapshot.dataset("memories").schema.field("vector").type.list_size)


def can_be_read(dataset: LanceDataset, fragment: LanceFragment) -> bool:
    """Return whether every row of a file can be read, and which of them are deleted."""
    try:
        for batch in rows_of(dataset, fragment):
            batch.validate(full=True)  # bytes that have changed may be no text any more
    except ENGINE_ERRORS:
        return False
    return True


def version_entries(dataset: LanceDataset) -> Iterator[tuple[str, int]]:
    """Yield the files and folders of a version, below the table's, with their sizes."""
    for fragment in dataset.get_fragments():
        for part in fragment.metadata.files:
            yield f"{DATA}/{part.path}", part.file_size_bytes or 0
        if (deleted := fragment.deletion_file()) is not None:
            yield deleted, 0  # some bytes a row
    for index in dataset.describe_indices():
        for segment in index.segments:
            yield f"{INDEXES}/{segment.uuid}", segment.size_bytes or 0


def version_files(files: TableFiles, dataset: LanceDataset) -> Iterator[str]:
    """Yield the files of a version, those in folders of indexes too."""
    for fragment in dataset.get_fragments():
        yield from fragment_files(fragment)
    for index in dataset.describe_indices():
        yield from index_files(files, index)


def fragment_files(fragment: LanceFragment) -> list[str]:
    """Return the files of some rows, relative to the table's folder, deletion files last."""
    deleted = fragment.deletion_file()
    rows = [f"{DATA}/{part.path}" for part in fragment.metadata.files]
    return [*rows, deleted] if deleted is not None else rows


def index_files(files: TableFiles, index: IndexDescription) -> Iterator[str]:
    """Yield the files of an index that are there, below the table's folder."""
    for segment in index.segments:
        yield from files.names(f"{INDEXES}/{segment.uuid}")


def index_is_complete(files: TableFiles, index: IndexDescription) -> bool:
    """Return whether an index of a table has all of its files, as long as they were."""
    return all(
        index_sizes_match(files, f"{INDEXES}/{segment.uuid}", segment.size_bytes)
        for segment in index.segments
    )


def damaged_files(datasets: Datasets, versions: Mapping[TableName, int]) -> list[str]:
    """Return the URIs of files of versions that are gone, cut short or zeroed, as their ends tell.

    The end of a file says where everything stands in it.

    Raises:
        DamagedError: A manifest cannot be read.
    """
    return [
        datasets.files(table).file_uri(part)
        for table, version in versions.items()
        for part in damaged_version_files(datasets.files(table), datasets.at(table, version))
    ]


def damaged_version_files(
    files: TableFiles, dataset: LanceDataset, tables: Container[str] | None = None
) -> Iterator[str]:
    """Yield the damaged files of one version, below the table's folder.

    Args:
        files: The table's.
        dataset: The version.
        tables: Look only at these files, and for indexes at these folders; by default at all.
    """
    for fragment in dataset.get_fragments():
        parts = fragment_files(fragment)
        is_asked_for = tables is None or any(part in tables for part in parts)
        if is_asked_for and not _has_its_files(fragment):
            yield parts[0]
    for index in dataset.describe_indices():
        for segment in index.segments:
            place = f"{INDEXES}/{segment.uuid}"
            is_asked_for = tables is None or place in tables
            if is_asked_for and not index_sizes_match(files, place, segment.size_bytes):
                yield place


def require_written(datasets: Datasets, table: TableName, version: int, new: set[str]) -> None:
    """Refuse a version of which files just written are not as the engine meant to write them.

    The engine (lance 13) does not see every failure of the disk: a file can be left short while a
    manifest names it.  Checked are lengths, the ends of files of rows and of indexes, deletions,
    and the manifest itself.

    Args:
        datasets: The tables.
        table: Which one was written to.
        version: The version that is to count.
        new: The names of its new files.

    Raises:
        DiskRefused: The disk did not take all of them.
    """
    files = datasets.files(table)
    tables = new | {name.rpartition("/")[0] for name in new}
    try:
        lost = next(damaged_version_files(files, datasets.at(table, version), tables), None)
    except DamagedError:
        lost = manifest_name(version)
    if lost is not None:
        datasets.renew()  # the number of the version may be used again
        raise DiskRefused(
            f"cannot write {files.file_uri(lost)}: the disk did not take all of it",
            "check the disk's space and health, then run the command again",
        )


def _has_its_files(fragment: LanceFragment) -> bool:
    """Return whether the files of rows can be opened, and its file of deletions read."""
    try:
        with without_panics():
            fragment.validate()
    except ENGINE_ERRORS:
        return False
    return True


PLACES = 1 << 32
"""The number of addresses of each file."""
_PAGES = "page_data.lance"
"""In the folder of a B-tree: its values in order, each with the address of its row."""


class LostRow(Struct, frozen=True):
    """A row that cannot be read any more."""

    id: str
    document_id: str | None = None
    """The document that it was of, where that is known."""
    source: str = ""
    """The file that it was from, where that is known."""


def named_rows(
    datasets: Datasets,
    table: TableName,
    dataset: LanceDataset,
    fragments: Sequence[LanceFragment],
) -> list[LostRow]:
    """Return the rows of unreadable files that indexes name; newer ones stand in no index yet.

    Args:
        datasets: The tables.
        table: Which table.
        dataset: It, at the version that counts.
        fragments: Its files of rows that cannot be read.
    """
    places = {fragment.fragment_id: live_places(dataset, fragment) for fragment in fragments}
    files = datasets.files(table)
    ids = _read_indexed_values(files, dataset, "id", places)
    documents = (
        _read_indexed_values(files, dataset, "document_id", places) if table == "memories" else {}
    )
    return [LostRow(id_, documents.get(address)) for address, id_ in ids.items()]


def live_places(dataset: LanceDataset, fragment: LanceFragment) -> NDArray[np.int64]:
    """Return the places of the rows of a file that are not deleted; all where nothing says so."""
    try:
        with without_panics():
            addresses = dataset.scanner(
                columns=[], with_row_address=True, fragments=[fragment]
            ).to_table()["_rowaddr"]
    except ENGINE_ERRORS:
        return np.arange(fragment.physical_rows)
    return np.asarray(addresses).astype(np.int64) % PLACES


def _read_indexed_values(
    files: TableFiles, dataset: LanceDataset, column: str, places: dict[int, NDArray[np.int64]]
) -> dict[int, str]:
    """Return the values of a column by address, as far as its index can be read."""
    found: dict[int, str] = {}
    for index in dataset.describe_indices():
        for part in index.segments if index.name == f"{column}_idx" else ():
            pages = files.file_uri(f"{INDEXES}/{part.uuid}/{_PAGES}")
            try:
                for batch in read_file(pages):
                    found |= _of_files(batch, places)
            except ENGINE_ERRORS:
                continue
    return found


def _of_files(batch: pa.RecordBatch, places: dict[int, NDArray[np.int64]]) -> dict[int, str]:
    import pyarrow as pa

    addresses = np.asarray(batch["ids"]).astype(np.int64)
    wanted = np.zeros(len(addresses), dtype=bool)
    for number, live in places.items():
        wanted |= (addresses // PLACES == number) & np.isin(addresses % PLACES, live)
    values = batch["values"].filter(pa.array(wanted)).to_pylist()
    pairs = zip(addresses[wanted].tolist(), values, strict=True)
    return {address: value for address, value in pairs if value is not None}
