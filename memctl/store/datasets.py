"""Handles on the tables' versions, shared by the snapshots and transactions of one store.

A handle is never written through while it is in here: writers open their own.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.store.engine import INDEX_CACHE_BYTES, METADATA_CACHE_BYTES, lance, opening
from memctl.store.schema import TABLES, TableName

if TYPE_CHECKING:
    from lance import LanceDataset

KEPT = 2 * len(TABLES)
"""Handles kept open: those of HEAD and of the HEAD before it."""


class Datasets:
    """Opens tables at a version, with bounded caches."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._mutex = threading.Lock()
        self._kept: OrderedDict[tuple[TableName, int], LanceDataset] = OrderedDict()
        self._session: object | None = None

    def path(self, table: TableName) -> Path:
        """Return the folder of a table."""
        return self.folder / f"{table}.lance"

    def at(self, table: TableName, version: int) -> LanceDataset:
        """Return a shared handle on a version, to read from."""
        key = (table, version)
        with self._mutex:
            if key not in self._kept:
                self._kept[key] = self.fresh(table, version)
            self._kept.move_to_end(key)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return self._kept[key]

    def fresh(self, table: TableName, version: int | None = None) -> LanceDataset:
        """Return a handle of one's own, to write with; on the latest version by default."""
        with opening(self.path(table)):
            dataset: LanceDataset = lance().dataset(
                str(self.path(table)), version=version, session=self._shared_session()
            )
        return dataset

    def renew(self) -> None:
        """Let go of every handle and cache, and with them of the memory and files they hold."""
        with self._mutex:
            self._kept.clear()
            self._session = None

    def _shared_session(self) -> object:
        if self._session is None:
            self._session = lance().Session(
                index_cache_size_bytes=INDEX_CACHE_BYTES,
                metadata_cache_size_bytes=METADATA_CACHE_BYTES,
            )
        return self._session
