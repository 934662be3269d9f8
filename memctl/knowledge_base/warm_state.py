"""What a process that carries out many commands keeps from one to the next."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.errors import MemctlError
from memctl.queries.search_context import CorpusCache

if TYPE_CHECKING:
    from memctl.store.store import Store

_MAX_CORPORA = 4
"""Sets of knowledge bases that are searched together, of which what queries compute is kept."""


class WarmState:
    """Open stores, and what queries have computed of them; for one thread.

    Settings, identities and models are no part of it: each command has its own.

    Args:
        before_model: Called before a model is asked to answer or to rerank, which may take longer
            than the other commands can wait.
    """

    def __init__(self, before_model: Callable[[], None]) -> None:
        self.before_model = before_model
        self._stores: dict[Path, Store] = {}
        self._corpora: OrderedDict[tuple[Store, ...], CorpusCache] = OrderedDict()

    def open(self, folder: Path, *, clock: Callable[[], datetime], wait: float) -> Store:
        """Return the store in a folder, to be given back; see ``Store.open``.

        It is opened once, and again if it was replaced on the disk.
        """
        from memctl.store.store import Store

        known = self._stores.get(folder)
        if known is None or not _is_current(known):
            self._stores.pop(folder, None)  # its readers may go on
            known = self._stores[folder] = Store.open(folder, clock=clock, wait=wait)
        known.wait_seconds = wait
        return known

    def give_back(self, store: Store) -> None:
        """Keep a store open for the next command, but hold no version of its tables for it."""
        store.release_unused()

    def corpora(self, stores: Sequence[Store]) -> CorpusCache:
        """Return what queries have computed of some stores together."""
        cache = self._corpora.setdefault(tuple(stores), CorpusCache())
        self._corpora.move_to_end(tuple(stores))
        while len(self._corpora) > _MAX_CORPORA:
            self._corpora.popitem(last=False)
        return cache

    def drop(self) -> None:
        """Close everything."""
        self._corpora.clear()
        for store in self._stores.values():
            store.close()
        self._stores.clear()


def _is_current(store: Store) -> bool:
    """Return whether a store would be opened just as it was."""
    from memctl.store.store import LEDGER_FILE

    try:
        store.ledger.require_in_place()
        is_writable = os.access(store.folder / LEDGER_FILE, os.W_OK)
        return store.has_same_vectors() and is_writable == store.ledger.is_writable
    except MemctlError:
        return False
