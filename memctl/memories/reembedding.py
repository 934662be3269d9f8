"""Giving every memory a vector of another embedder, while questions are answered by the old ones.

New vectors gather in a cache, and the old ones are put into another; then one commit switches.
Killed at any instant, it goes on from what is in the cache.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from memctl.errors import LockedError, NotFoundError
from memctl.language.term_analysis import embedding_text
from memctl.models.protocols import Embedder
from memctl.records import Progress, ProgressListener
from memctl.schema.arrow_tables import VECTOR, vector_rows
from memctl.store.file_caches import VectorCache, lock_vector_caches, vector_key
from memctl.store.tables.coverage import SAMPLED, require_found_by, require_there
from memctl.understanding.text_outline import spoken_text

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.store.store import Store
    from memctl.store.tables.snapshot import Snapshot

TEXTS_A_STEP = 256
"""Memories that are embedded before they are durable: at most these are lost to a kill."""
FEW = 256
"""Memories without a vector, that others have added meanwhile, which may wait for the lock."""
MAX_PASSES = 5
EMBEDDED_COLUMNS = ("id", "title", "heading", "text", "level", "speaker")
"""What to know of a memory to tell what its vector is of."""
_JOB = "changing the embedder"


class ReembedReport(Struct, frozen=True):
    """What a change of the embedder came to."""

    embedder: str
    dimension: int
    memories: int
    """How many have a vector of it now."""
    embedded: int
    """How many texts were embedded for it; the others were there from before."""
    seconds: float


class EmbedderTarget(Struct, frozen=True):
    """The embedder to change to; loaded only when there is something to embed."""

    id: str
    dimension: int
    load: Callable[[], Embedder]


def reembed(
    store: Store, current: str, target: EmbedderTarget, progress: ProgressListener | None = None
) -> ReembedReport:
    """Give every memory a vector of the target, and keep the old ones in a cache.

    Args:
        store: The tables.
        current: Id of what the vectors are from now.
        target: What they are to be from.
        progress: Called with how far it is.

    Raises:
        LockedError: Another process does the same, or keeps writing.
        ModelError: The embedder cannot do it; what was done is kept.
        MemctlError: The embedder cannot be had.
        CoverageLost: Memories would not have been found by their new vectors; it was rolled back.
    """
    began = time.monotonic()
    with lock_vector_caches(store.folder):
        made = VectorCache(store.folder, target.id, target.dimension)
        kept = VectorCache(store.folder, current, store.dimension)
        filling = VectorFilling(made, kept, target, progress)
        for _ in range(MAX_PASSES):
            if filling.fill(store.snapshot()) <= FEW:
                break
        with store.write(wait=None) as transaction:
            filling.fill(transaction.snapshot())  # what was written since, and nothing more now
            before = transaction.snapshot()
            memories = before.count("memories")
            store.switch_vectors(transaction, made, EMBEDDED_COLUMNS, vector_keys, current)
            _require_found(before, transaction.snapshot(), made)
        store.switch_embedder()
        made.drop()  # they are in the table now
    with suppress(LockedError):  # the other writer can do it as well
        store.upkeep(wait=0)
    return ReembedReport(
        target.id, target.dimension, memories, filling.embedded, time.monotonic() - began
    )


def require_cached_vectors(store: Store, embedder: str, dimension: int) -> None:
    """Refuse to go back to vectors that are not kept any more.

    Raises:
        NotFoundError: They are not.
    """
    if not len(VectorCache(store.folder, embedder, dimension)) and store.snapshot().count(
        "memories"
    ):
        raise NotFoundError(
            f"the vectors of {embedder} are not kept any more", "make them anew with --embedder"
        )


class VectorFilling:
    """Puts missing vectors into a cache for new ones and, if given, into one for the old ones."""

    def __init__(
        self,
        made: VectorCache,
        kept: VectorCache | None,
        target: EmbedderTarget,
        progress: ProgressListener | None,
    ) -> None:
        self._made = made
        self._kept = kept
        self._target = target
        self._progress = progress
        self._embedder: Embedder | None = None
        self.embedded = 0
        """How many texts were embedded, in all."""

    def fill(self, snapshot: Snapshot) -> int:
        """Look at every memory once; return how many texts had to be embedded."""
        before, done, total = self.embedded, 0, snapshot.count("memories")
        for batch in snapshot.batches("memories", None, [*EMBEDDED_COLUMNS, VECTOR]):
            texts = embedded_texts(batch)
            keys = [vector_key(id, text) for id, text in zip(_ids(batch), texts, strict=True)]
            if self._kept is not None:
                self._kept.add(keys, vector_rows(batch.column(VECTOR)))
            for at in range(0, len(keys), TEXTS_A_STEP):
                part = slice(at, at + TEXTS_A_STEP)
                self._make(keys[part], texts[part])
                done += len(keys[part])
                if self._progress is not None:
                    self._progress(Progress(done, total, "memories"))
        return self.embedded - before

    def _make(self, keys: Sequence[bytes], texts: Sequence[str]) -> None:
        missing = [n for n, key in enumerate(keys) if key not in self._made]
        if not missing:
            return
        if self._embedder is None:
            self._embedder = self._target.load()
        vectors = self._embedder.embed([texts[n] for n in missing])
        self._made.add([keys[n] for n in missing], vectors)
        self.embedded += len(missing)


def _require_found(before: Snapshot, after: Snapshot, made: VectorCache) -> None:
    """Look up memories, as they are about to be, by the vectors that were made of their texts."""
    require_there(before, after, _JOB)
    for batch in (
        after.spread_rows("memories", SAMPLED, EMBEDDED_COLUMNS).combine_chunks().to_batches()
    ):
        require_found_by(after, _ids(batch), made.vectors(vector_keys(batch)), _JOB)


def vector_keys(batch: pa.RecordBatch) -> list[bytes]:
    """Return what the vectors of these memories are found by in a cache."""
    return [
        vector_key(id, text) for id, text in zip(_ids(batch), embedded_texts(batch), strict=True)
    ]


def _ids(batch: pa.RecordBatch) -> list[str]:
    ids: list[str] = batch.column("id").to_pylist()
    return ids


def embedded_texts(batch: pa.RecordBatch | pa.Table) -> list[str]:
    """Return what the vectors of these memories are of."""
    columns = (batch.column(name).to_pylist() for name in EMBEDDED_COLUMNS[1:])
    return [
        embedding_text(title or "", heading or "", spoken_text(text or "", level, speaker))
        for title, heading, text, level, speaker in zip(*columns, strict=True)
    ]
