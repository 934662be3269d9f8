"""All that is derived made anew: vectors, indexes, entities and relations.

It becomes the version that counts only when it is proved to have the same documents and memories,
with the same texts, and the same vectors but for rounding; else nothing has changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memctl.doctor.findings import counted
from memctl.doctor.row_checks import CrossReferences
from memctl.errors import DamagedError
from memctl.graph.derivation import derive_all
from memctl.knowledge_base import KnowledgeBase
from memctl.memories.reembedding import EMBEDDED_COLUMNS, EmbedderTarget, VectorFilling, vector_keys
from memctl.records import ProgressListener
from memctl.rows.derived_rows import replace_entities
from memctl.rows.row_lifecycle import erase_rows
from memctl.schema.arrow_tables import VECTOR, vector_rows
from memctl.schema.table_names import TABLES, TableName
from memctl.store.file_caches import VectorCache, lock_vector_caches
from memctl.store.integrity.coverage import require_all_found
from memctl.store.integrity.store_repair import Step
from memctl.store.tables.indexes import remake_indexes
from memctl.store.tables.upkeep import VECTOR_ROWS

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from memctl.store.tables.snapshot import Snapshot
    from memctl.store.tables.transaction import Transaction

RELATIVE_ERROR, LEAST_ERROR = 2e-3, 1e-3
"""So far a number of a vector may be off: two roundings to 16 bits, and the order of a sum."""
REBUILDING = "rebuilding"


@dataclass(frozen=True, slots=True)
class Rebuild:
    """Makes what is derived in one knowledge base anew.

    Args:
        base: It, open.
        progress: Told how many memories have their new vector.
    """

    base: KnowledgeBase
    progress: ProgressListener | None = None

    def run(self) -> Iterator[Step]:
        """Do it, and yield what was made.

        Raises:
            DamagedError: It would not be the same as before; nothing was changed.
            ModelError: The embedder cannot do it; what was embedded is kept for the next time.
            LockedError: Another process writes, or makes new vectors, and does not stop.
        """
        store, embedder = self.base.store, self.base.settings.embedder
        target = EmbedderTarget(embedder, store.dimension, lambda: self.base.services.embedder)
        with lock_vector_caches(store.folder):
            made = VectorCache(store.folder, f"{embedder}, {REBUILDING}", store.dimension)
            filling = VectorFilling(made, None, target, self.progress)
            filling.fill(store.snapshot())  # while others may read and write
            with store.write() as transaction:
                before = transaction.snapshot()
                filling.fill(before)
                self._remake(transaction, made, before)
                steps = list(_told(before, transaction.snapshot()))
            made.drop()
        store.upkeep()
        yield from steps

    def _remake(self, transaction: Transaction, made: VectorCache, before: Snapshot) -> None:
        try:
            _require_same_vectors(before, made)
        except DamagedError:
            made.drop()
            raise
        replace_entities(transaction, *derive_all(before))
        loose = CrossReferences(transaction.snapshot()).loose_ends()
        erase_rows(transaction, "relations", loose)
        transaction.replace_vectors(
            made.dimension, EMBEDDED_COLUMNS, lambda batch: made.vectors(vector_keys(batch))
        )
        for table in TABLES:
            remake_indexes(table, transaction.dataset(table))
        after = transaction.snapshot()
        require_same_rows(before, after)
        require_all_found(before, after, REBUILDING, ("documents", "memories"))
        transaction.ledger(lambda _: self.base.store.ledger.set_meta(VECTOR_ROWS, "0"))


def _told(before: Snapshot, after: Snapshot) -> Iterator[Step]:
    counts = {table: (before.count(table), after.count(table)) for table in TABLES}
    documents, memories = counts["documents"][1], counts["memories"][1]
    yield Step("documents", f"{counted(documents, 'document')}, the same as before")
    told = counted(memories, "memory", "memories")
    yield Step("memories", f"{told} with vectors made anew, the same as before")
    for table in ("entities", "relations"):
        was, now = counts[table]
        yield Step(table, f"{now:,} made anew" + (f", where {was:,} were" if was != now else ""))
    yield Step("indexes", "all made anew")


# --- the proof -----------------------------------------------------------------------------------


def _require_same_vectors(before: Snapshot, made: VectorCache) -> None:
    """Compare the vectors that are there with those that were made of the stored texts.

    Raises:
        DamagedError: Some differ.
    """
    differing: list[str] = []
    for batch in before.batches("memories", None, [*EMBEDDED_COLUMNS, VECTOR]):
        stored = vector_rows(batch.column(VECTOR))
        off = _differ(stored, made.vectors(vector_keys(batch)))
        differing += [batch.column("id")[int(row)].as_py() for row in off.nonzero()[0]]
    if differing:
        told = counted(len(differing), "vector")
        raise DamagedError(
            f"{told} would not be as before, as that of {differing[0]}; nothing was changed",
            "is the embedder the one that made them? memctl kb reembed changes it",
        )


def require_same_rows(before: Snapshot, after: Snapshot) -> None:
    """Compare every document and memory of two snapshots, which stand in the same order.

    Raises:
        DamagedError: An id, a text or a vector differs.
    """
    compared: tuple[tuple[TableName, tuple[str, ...]], ...] = (
        ("documents", ("id", "text")),
        ("memories", ("id", "text", VECTOR)),
    )
    for table, columns in compared:
        if before.count(table) != after.count(table):
            raise _other_than_before(table, "rows")
        pairs = _abreast(before.batches(table, None, columns), after.batches(table, None, columns))
        for one, other in pairs:
            for name in columns:
                if not _is_same(one.column(name), other.column(name)):
                    raise _other_than_before(table, name)


def _other_than_before(table: TableName, what: str) -> DamagedError:
    return DamagedError(
        f"the {what} of {table} would not be as before; nothing was changed",
        "memctl doctor --deep says what is wrong with them",
    )


def _is_same(one: pa.Array, other: pa.Array) -> bool:
    if one.type != other.type or not hasattr(one.type, "list_size"):
        return bool(one.equals(other))
    return not _differ(vector_rows(one), vector_rows(other)).any()


def _differ(one: NDArray[np.float16], other: NDArray[np.float16]) -> NDArray[np.bool_]:
    """Tell of each row whether two matrices differ in it by more than rounding."""
    close = np.isclose(
        one.astype(np.float32), other.astype(np.float32), rtol=RELATIVE_ERROR, atol=LEAST_ERROR
    )
    differing: NDArray[np.bool_] = np.logical_not(close.all(axis=1))
    return differing


def _abreast(
    one: Iterator[pa.RecordBatch], other: Iterator[pa.RecordBatch]
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Yield the rows of two streams side by side, however each is cut into batches."""
    left, right = next(one, None), next(other, None)
    while left is not None and right is not None:
        rows = min(left.num_rows, right.num_rows)
        yield left.slice(0, rows), right.slice(0, rows)
        left = left.slice(rows) if left.num_rows > rows else next(one, None)
        right = right.slice(rows) if right.num_rows > rows else next(other, None)
