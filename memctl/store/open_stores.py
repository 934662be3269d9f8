"""Stores that stay open from one command to the next, for a process that carries out many."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from memctl.errors import MemctlError
from memctl.store.store import LEDGER_FILE, Store


class OpenStores:
    """Opens each store once; what has been replaced on the disk is opened anew.  For one thread."""

    def __init__(self) -> None:
        self._stores: dict[Path, Store] = {}

    def open(self, folder: Path, *, clock: Callable[[], datetime], wait: float) -> Store:
        """Return the store in a folder, to be given back; see ``Store.open``."""
        known = self._stores.get(folder)
        if known is None or not _is_as_opened(known):
            self._stores.pop(folder, None)  # its readers may go on
            known = self._stores[folder] = Store.open(folder, clock=clock, wait=wait)
        known.wait_seconds = wait
        return known

    def give_back(self, store: Store) -> None:
        """Keep a store open, but hold no version of its tables for it."""
        store.release_unused()

    def drop(self) -> None:
        """Close them all."""
        for store in self._stores.values():
            store.close()
        self._stores.clear()


def _is_as_opened(store: Store) -> bool:
    """Tell whether a store would be opened just as it was."""
    try:
        store.ledger.require_in_place()
        is_writable = os.access(store.folder / LEDGER_FILE, os.W_OK)
        return store.has_same_vectors() and is_writable == store.ledger.is_writable
    except MemctlError:
        return False
