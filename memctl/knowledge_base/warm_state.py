"""What a process that carries out many commands keeps from one to the next."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.queries.search_context import CorpusCache

if TYPE_CHECKING:
    from memctl.store.store import Store

_MAX_CORPORA = 4
"""Sets of knowledge bases that are searched together, of which what queries compute is kept."""


class WarmState:
    """Open stores, and what queries have computed of them; for one thread.

    Settings, identities and models are no part of it: each command has its own.
    """

    def __init__(self) -> None:
        from memctl.store.open_stores import OpenStores

        self._stores = OpenStores()
        self._corpora: OrderedDict[tuple[Store, ...], CorpusCache] = OrderedDict()

    def open(self, folder: Path, *, clock: Callable[[], datetime], wait: float) -> Store:
        """Return the store in a folder, to be given back; see ``Store.open``."""
        return self._stores.open(folder, clock=clock, wait=wait)

    def give_back(self, store: Store) -> None:
        """Keep a store open for the next command."""
        self._stores.give_back(store)

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
        self._stores.drop()
