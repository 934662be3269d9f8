"""Checksums of the tables' files, by which a byte that has changed on the disk is found.

The engine has none of its own: a flipped bit in a text, a number or a vector is read as it stands.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from memctl.errors import DamagedError
from memctl.schema.table_names import TABLES, TableName
from memctl.store.ledger.version_repositories import Checksum
from memctl.store.tables.durability import can_be_opened
from memctl.store.tables.indexes import unindexed_rows
from memctl.store.tables.inspection import (
    LostRow,
    TableState,
    broken_indexes,
    can_be_read,
    damaged_version_files,
    fragment_files,
    index_files,
    index_is_complete,
    version_files,
    versions_on_disk,
)
from memctl.store.tables.storage import DATA, DELETIONS, INDEXES, TableFiles

if TYPE_CHECKING:
    from lance import LanceDataset, LanceFragment

    from memctl.store.ledger.ledger import Ledger
    from memctl.store.tables.engine import Datasets


_SUMMED = (DATA, DELETIONS, INDEXES)
"""Folders of a table.  Of manifests the ledger has copies, and nothing else is ever read."""
_READ_BYTES = 1 << 20
"""At once."""
CHECKSUM_BATCH_BYTES = 1 << 30
"""Bytes, and one file more, that an upkeep reads of files of older versions without checksums."""


def checksum_of(files: TableFiles, name: str) -> Checksum:
    """Return the length and the checksum of a file.

    Raises:
        OSError: It cannot be read.
    """
    size = crc32 = 0
    buffer = bytearray(_READ_BYTES)
    view = memoryview(buffer)
    with files.open(name) as file:
        while read := file.readinto(buffer):
            size, crc32 = size + read, zlib.crc32(view[:read], crc32)
    return Checksum(size, crc32)


def checksums_of(files: TableFiles, names: Iterable[str]) -> dict[str, Checksum]:
    """Return the sums of those of some files that a table cannot do without.

    Args:
        files: The table's.
        names: Which of them; some may be gone by now.
    """
    found: dict[str, Checksum] = {}
    for name in names:
        if name.partition("/")[0] in _SUMMED:
            try:
                found[name] = checksum_of(files, name)
            except FileNotFoundError:
                continue
    return found


def add_missing_checksums(datasets: Datasets, ledger: Ledger, most: int | None = None) -> None:
    """Take the sums of files of HEAD that have none, of which some are from before there were any.

    Args:
        datasets: The tables; the caller holds the lock.
        ledger: Where they are noted.
        most: Stop when this many bytes have been read; by default at the end.
    """
    read = 0
    for table, version in ledger.head().items():
        known, files = ledger.checksums.of(table), datasets.files(table)
        found: dict[str, Checksum] = {}
        for part in version_files(files, datasets.at(table, version)):
            if part not in known and (most is None or read < most):
                found |= checksums_of(files, [part])
                read += found[part].size if part in found else 0
        ledger.checksums.add(table, found)


def drop_checksums(datasets: Datasets, ledger: Ledger) -> None:
    """Drop the sums of files that have been pruned."""
    for table in TABLES:
        ledger.checksums.keep_only(table, datasets.files(table).names())


State = Literal["same", "changed", "unknown"]
_NAMING = ("id", "document_id", "source")
"""Columns that say which row it is."""


class Verifier:
    """Compares files with the sums that the ledger took of them; each is read once.

    Args:
        datasets: The tables.
        ledger: Knows the sums; of files that memctl of before has written it has none.
        reads_rows: Of what has no sum, read every row; else the ends of its files are looked at.
    """

    def __init__(self, datasets: Datasets, ledger: Ledger, *, reads_rows: bool) -> None:
        self.datasets = datasets
        self._sums = {datasets.uri(table): ledger.checksums.of(table) for table in TABLES}
        self._reads_rows = reads_rows
        self._same: dict[str, bool] = {}
        self._is_readable: dict[tuple[str, ...], bool] = {}

    def inspect_table(self, table: TableName, version: int) -> TableState:
        """Open a table at a version and read each of its files and indexes once."""
        datasets = self.datasets
        present = versions_on_disk(datasets, table)
        versions = tuple(number for number in present if can_be_opened(datasets, table, number))
        lost = tuple(sorted(set(present).difference(versions), reverse=True))
        try:
            dataset = datasets.fresh(table, version)
        except DamagedError as error:
            return TableState(
                table, version, problem=error.message, versions=versions, lost_versions=lost
            )
        fragments = dataset.get_fragments()
        readable = [each for each in fragments if self.can_be_read(dataset, each)]
        changed = [each for each in readable if self.of_rows(dataset, each) == "changed"]
        unreadable = len(fragments) - len(readable)
        rows = int(dataset.count_rows()) if not unreadable else 0
        return TableState(
            table,
            version,
            rows,
            len(fragments),
            lost_files=unreadable,
            changed_files=len(changed),
            broken_indexes=tuple(self.broken_indexes(dataset)),
            unindexed=unindexed_rows(table, dataset, rows),
            versions=versions,
            lost_versions=lost,
        )

    def of_rows(self, dataset: LanceDataset, fragment: LanceFragment) -> State:
        """Return whether the files of some rows, with their deletions, are unchanged."""
        return self._of(self.datasets.files_of(dataset), fragment_files(fragment))

    def can_be_read(self, dataset: LanceDataset, fragment: LanceFragment) -> bool:
        """Return whether some rows can be read, which those of the same files as before can."""
        files = (dataset.uri, *fragment_files(fragment))
        if files not in self._is_readable:
            is_same = self.of_rows(dataset, fragment) == "same"
            self._is_readable[files] = is_same or can_be_read(dataset, fragment)
        return self._is_readable[files]

    def is_whole(self, dataset: LanceDataset) -> bool:
        """Return whether every row of a version can be read."""
        return all(self.can_be_read(dataset, fragment) for fragment in dataset.get_fragments())

    def doubtful_rows(self, versions: Mapping[TableName, int]) -> dict[TableName, list[LostRow]]:
        """Return the rows that can be read, and stand in files that are not as they were."""
        found = {each[0]: self.doubtful_in(self.datasets.at(*each)) for each in versions.items()}
        return {table: rows for table, rows in found.items() if rows}

    def doubtful_in(self, dataset: LanceDataset) -> list[LostRow]:
        """Return those of one version of a table."""
        changed = [
            fragment
            for fragment in dataset.get_fragments()
            if self.of_rows(dataset, fragment) == "changed" and self.can_be_read(dataset, fragment)
        ]
        if not changed:
            return []
        columns = [name for name in _NAMING if name in dataset.schema.names]
        rows = dataset.scanner(columns=columns, fragments=changed).to_table().to_pylist()
        return [LostRow(r["id"], r.get("document_id"), r.get("source") or "") for r in rows]

    def broken_indexes(self, dataset: LanceDataset) -> list[str]:
        """Return the names of indexes that are not as they were written, or cannot be read."""
        files, broken, unknown = self.datasets.files_of(dataset), list[str](), set[str]()
        for index in dataset.describe_indices():
            state = self._of(files, index_files(files, index))
            if state == "changed":
                broken.append(index.name)
            elif state == "unknown" or not index_is_complete(files, index):
                unknown.add(index.name)
        return [*broken, *broken_indexes(files, dataset, unknown)]

    def damaged_files(self, versions: Mapping[TableName, int]) -> list[str]:
        """Return the URIs of files of versions that are gone or not as they were written.

        Raises:
            DamagedError: A manifest cannot be read.
        """
        return [
            self.datasets.files(table).file_uri(part)
            for table, version in versions.items()
            for part in self._damaged_files(table, version)
        ]

    def _damaged_files(self, table: TableName, version: int) -> Iterator[str]:
        dataset = self.datasets.at(table, version)
        files = self.datasets.files(table)
        seen = set(damaged_version_files(files, dataset))
        yield from seen
        for fragment in dataset.get_fragments():
            first = fragment_files(fragment)[0]
            state = self.of_rows(dataset, fragment)
            unread = state == "unknown" and self._reads_rows
            is_damaged = state == "changed" or (unread and not self.can_be_read(dataset, fragment))
            if first not in seen and is_damaged:
                yield first
        for index in dataset.describe_indices():
            for part in index_files(files, index):
                is_seen = part.rpartition("/")[0] in seen
                if not is_seen and self._is_same(files, part) is False:
                    yield part

    def _of(self, files: TableFiles, parts: Iterable[str]) -> State:
        found = [self._is_same(files, part) for part in parts]
        if False in found:
            return "changed"
        return "unknown" if None in found else "same"

    def _is_same(self, files: TableFiles, part: str) -> bool | None:
        known = self._sums[files.uri].get(part)
        uri = files.file_uri(part)
        if known is not None and uri not in self._same:
            try:
                self._same[uri] = checksum_of(files, part) == known
            except FileNotFoundError:
                self._same[uri] = False
        return self._same.get(uri)
