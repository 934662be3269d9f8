"""Keeps the corpus of the last question for the next one, without importing it before."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memctl.search.retrieval.corpus import Corpus
    from memctl.search.term_statistics import Sources


class CorpusCache:
    """The corpus that was searched last, kept until one of its tables changes."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._corpus: Corpus | None = None

    def of(self, snapshots: Sources, clock: Callable[[], datetime]) -> Corpus:
        """Return the corpus of some snapshots: the last one where the tables are the same.

        Between questions it does not keep table versions from being pruned; see ``Corpus``.
        """
        from memctl.search.retrieval.corpus import Corpus

        with self._mutex:
            if self._corpus is None or not self._corpus.is_of(snapshots):
                self._corpus = Corpus(snapshots, clock)
            return self._corpus

    def drop(self) -> None:
        """Forget the last corpus."""
        with self._mutex:
            self._corpus = None
