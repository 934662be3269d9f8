"""Are the tables' files as they were when they were written: by checksum, or by reading them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from memctl.store.inspection import broken_indexes, can_be_read
from memctl.store.lost_rows import LostRow
from memctl.store.names import TABLES, TableName
from memctl.store.parts import (
    damaged_parts,
    files_of_index,
    files_of_rows,
    index_has_its_size,
)
from memctl.store.sums import sum_of

if TYPE_CHECKING:
    from lance import LanceDataset, LanceFragment

    from memctl.store.datasets import Datasets
    from memctl.store.ledger import Ledger

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
        self._sums = {datasets.path(table): ledger.sums.all(table) for table in TABLES}
        self._reads_rows = reads_rows
        self._same: dict[Path, bool] = {}
        self._read: dict[tuple[Path, ...], bool] = {}

    def of_rows(self, dataset: LanceDataset, fragment: LanceFragment) -> State:
        """Tell of the files of some rows, with their deletions, whether all are the same."""
        return self._of(Path(dataset.uri), files_of_rows(fragment))

    def can_be_read(self, dataset: LanceDataset, fragment: LanceFragment) -> bool:
        """Tell whether some rows can be read, which those of the same files as before can."""
        files = tuple(Path(dataset.uri) / part for part in files_of_rows(fragment))
        if files not in self._read:
            is_same = self.of_rows(dataset, fragment) == "same"
            self._read[files] = is_same or can_be_read(dataset, fragment)
        return self._read[files]

    def is_whole(self, dataset: LanceDataset) -> bool:
        """Tell whether every row of a version can be read."""
        return all(self.can_be_read(dataset, fragment) for fragment in dataset.get_fragments())

    def doubtful(self, versions: Mapping[TableName, int]) -> dict[TableName, list[LostRow]]:
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
        folder, broken, unknown = Path(dataset.uri), list[str](), set[str]()
        for index in dataset.describe_indices():
            state = self._of(folder, files_of_index(folder, index))
            if state == "changed":
                broken.append(index.name)
            elif state == "unknown" or not index_has_its_size(folder, index):
                unknown.add(index.name)
        return [*broken, *broken_indexes(dataset, unknown)]

    def damaged(self, versions: Mapping[TableName, int]) -> list[Path]:
        """Return the files of versions that are gone or not as they were written.

        Raises:
            DamagedError: A manifest cannot be read.
        """
        return [path for each in versions.items() for path in self._damaged(*each)]

    def _damaged(self, table: TableName, version: int) -> Iterator[Path]:
        dataset = self.datasets.at(table, version)
        folder = self.datasets.path(table)
        seen = {folder / part for part in damaged_parts(dataset)}
        yield from seen
        for fragment in dataset.get_fragments():
            first, *_ = (folder / part for part in files_of_rows(fragment))
            state = self.of_rows(dataset, fragment)
            unread = state == "unknown" and self._reads_rows
            is_damaged = state == "changed" or (unread and not self.can_be_read(dataset, fragment))
            if first not in seen and is_damaged:
                yield first
        for index in dataset.describe_indices():
            for part in files_of_index(folder, index):
                if (folder / part).parent not in seen and self._is_same(folder, part) is False:
                    yield folder / part

    def _of(self, folder: Path, parts: Iterable[str]) -> State:
        found = [self._is_same(folder, part) for part in parts]
        if False in found:
            return "changed"
        return "unknown" if None in found else "same"

    def _is_same(self, folder: Path, part: str) -> bool | None:
        known = self._sums[folder].get(part)
        path = folder / part
        if known is not None and path not in self._same:
            try:
                self._same[path] = sum_of(path) == known
            except FileNotFoundError:
                self._same[path] = False
        return self._same.get(path)
