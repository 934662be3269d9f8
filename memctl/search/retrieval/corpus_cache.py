"""What was worked out of a knowledge base for one question, kept for the next."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memctl.search.retrieval.candidates import Sources
    from memctl.search.retrieval.corpus import Corpus


class CorpusCache:
    """The corpus that was asked last, kept for as long as its tables are the newest."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._corpus: Corpus | None = None

    def of(self, snapshots: Sources, clock: Callable[[], datetime]) -> Corpus:
        """Return the corpus of some snapshots: that of before where the tables are the same.

        It keeps nothing from being pruned between questions; see ``Corpus``.
        """
        from memctl.search.retrieval.corpus import Corpus

        with self._mutex:
            if self._corpus is None or not self._corpus.is_of(snapshots):
                self._corpus = Corpus(snapshots, clock)
            return self._corpus

    def drop(self) -> None:
        """Keep nothing of what was read."""
        with self._mutex:
            self._corpus = None
