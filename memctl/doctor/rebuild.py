"""All that is derived made anew: vectors, indexes, entities and relations.

It becomes the version that counts only when it is proved to have the same documents and memories,
with the same texts, and the same vectors but for rounding; else nothing has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from memctl.doctor.row_checks import CrossReferences, passages_with_offsets
from memctl.errors import DamagedError
from memctl.formatting import format_count
from memctl.graph.derivation import derive_all
from memctl.ids import next_version_id, root_id
from memctl.ingest.batches import PIPELINE_VERSION
from memctl.knowledge_base import KnowledgeBase
from memctl.memories.reembedding import EMBEDDED_COLUMNS, EmbedderTarget, VectorFilling, vector_keys
from memctl.records import Document, ProgressListener
from memctl.rows.derived_rows import replace_entities
from memctl.rows.row_changes import set_columns
from memctl.rows.row_lifecycle import erase_rows
from memctl.schema.arrow_tables import VECTOR, vector_rows
from memctl.schema.table_names import TABLES, TableName
from memctl.store.file_caches import VectorCache, lock_vector_caches
from memctl.store.store_repair import Step
from memctl.store.tables.coverage import require_all_found
from memctl.store.tables.filter_expressions import col
from memctl.store.tables.indexes import remake_indexes
from memctl.store.tables.upkeep import VECTOR_ROWS

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from memctl.store.tables.snapshot import Snapshot
    from memctl.store.tables.transaction import Transaction

RELATIVE_ERROR, MIN_ERROR = 2e-3, 1e-3
"""How far a number of a vector may be off: two roundings to 16 bits, and the order of a sum."""
REBUILDING = "rebuilding"


class Rebuild(Struct, frozen=True):
    """Makes what is derived in one knowledge base anew.

    Args:
        base: The open knowledge base.
        progress: Called with how many memories have their new vector.
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
                steps = list(_report_counts(before, transaction.snapshot()))
            made.drop()
        store.upkeep()
        yield from steps

    def _remake(self, transaction: Transaction, vectors: VectorCache, before: Snapshot) -> None:
        try:
            _require_same_vectors(before, vectors)
        except DamagedError:
            vectors.drop()
            raise
        replace_entities(transaction, *derive_all(before))
        dangling = CrossReferences(transaction.snapshot()).dangling_relations()
        erase_rows(transaction, "relations", dangling)
        transaction.replace_vectors(
            vectors.dimension, EMBEDDED_COLUMNS, lambda batch: vectors.vectors(vector_keys(batch))
        )
        for table in TABLES:
            remake_indexes(table, transaction.dataset(table))
        after = transaction.snapshot()
        require_same_rows(before, after)
        require_all_found(before, after, REBUILDING, ("documents", "memories"))
        transaction.ledger(lambda _: self.base.store.ledger.set_meta(VECTOR_ROWS, "0"))


def _report_counts(before: Snapshot, after: Snapshot) -> Iterator[Step]:
    counts = {table: (before.count(table), after.count(table)) for table in TABLES}
    documents, memories = counts["documents"][1], counts["memories"][1]
    yield Step("documents", f"{format_count(documents, 'document')}, the same as before")
    amount = format_count(memories, "memory", "memories")
    yield Step("memories", f"{amount} with vectors made anew, the same as before")
    for table in ("entities", "relations"):
        was, now = counts[table]
        yield Step(table, f"{now:,} made anew" + (f", where {was:,} were" if was != now else ""))
    yield Step("indexes", "all made anew")


# --- the proof -----------------------------------------------------------------------------------


def _require_same_vectors(before: Snapshot, vectors: VectorCache) -> None:
    """Compare the vectors that are there with those that were made of the stored texts.

    Raises:
        DamagedError: Some differ.
    """
    differing: list[str] = []
    for batch in before.batches("memories", None, [*EMBEDDED_COLUMNS, VECTOR]):
        stored = vector_rows(batch.column(VECTOR))
        off = _differ(stored, vectors.vectors(vector_keys(batch)))
        differing += [batch.column("id")[int(row)].as_py() for row in off.nonzero()[0]]
    if differing:
        amount = format_count(len(differing), "vector")
        raise DamagedError(
            f"{amount} would not be as before, as that of {differing[0]}; nothing was changed",
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
            raise _changed_error(table, "rows")
        pairs = _align(before.batches(table, None, columns), after.batches(table, None, columns))
        for one, other in pairs:
            for name in columns:
                if not _is_same(one.column(name), other.column(name)):
                    raise _changed_error(table, name)


def _changed_error(table: TableName, what: str) -> DamagedError:
    return DamagedError(
        f"the {what} of {table} would not be as before; nothing was changed",
        "memctl doctor --deep says what is wrong with them",
    )


def _is_same(one: pa.Array, other: pa.Array) -> bool:
    if one.type != other.type or not hasattr(one.type, "list_size"):
        return bool(one.equals(other))
    return not _differ(vector_rows(one), vector_rows(other)).any()


def _differ(one: NDArray[np.float16], other: NDArray[np.float16]) -> NDArray[np.bool_]:
    """Return for each row whether two matrices differ in it by more than rounding."""
    close = np.isclose(
        one.astype(np.float32), other.astype(np.float32), rtol=RELATIVE_ERROR, atol=MIN_ERROR
    )
    differing: NDArray[np.bool_] = np.logical_not(close.all(axis=1))
    return differing


def _align(
    one: Iterator[pa.RecordBatch], other: Iterator[pa.RecordBatch]
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Yield the rows of two streams side by side, however each is cut into batches."""
    left, right = next(one, None), next(other, None)
    while left is not None and right is not None:
        rows = min(left.num_rows, right.num_rows)
        yield left.slice(0, rows), right.slice(0, rows)
        left = left.slice(rows) if left.num_rows > rows else next(one, None)
        right = right.slice(rows) if right.num_rows > rows else next(other, None)


# --- rows made anew from the rows that are left ---------------------------------------------------

MISSING = "the file, of which passages alone are left"
READER = "passages/1"
_PASSAGE_COLUMNS = (
    "id", "document_id", "text", "start", "end", "namespace", "created_at", "title", "source",
    "external_id", "session_id", "entities", "topics", "keywords", "tags", "importance",
)  # fmt: skip

Row = Mapping[str, Any]


def documents_from_passages(
    snapshot: Snapshot, ids: Sequence[str], now: datetime
) -> tuple[pa.Table, list[str]]:
    """Return rows of documents as far as their passages have their text.

    Args:
        snapshot: Where the passages are.
        ids: Of documents that are not there.
        now: When they become known.

    Returns:
        The rows, and the ids of documents of which no passage is left.
    """
    from memctl.schema.arrow_tables import documents_table

    passages = passages_with_offsets(snapshot, ids, _PASSAGE_COLUMNS)
    made = [_document(id_, rows, now) for id_, rows in passages.items()]
    return documents_table(made), [id_ for id_ in ids if id_ not in passages]


def _document(id_: str, passages: Sequence[Row], now: datetime) -> Document:
    text, first = _text(passages), passages[0]
    content = text.encode("utf-8", "replace")
    part = id_.partition(".")[2]
    return Document(
        id=id_,
        root_id=root_id(id_),
        part=int(part or 0),
        external_id=first["external_id"],
        namespace=first["namespace"],
        source=first["source"],
        title=first["title"],
        media_type="text/plain",
        sha256=sha256(content).hexdigest(),
        size=len(content),
        status="indexed",
        text=text,
        summary="",
        entities=_all(passages, "entities"),
        topics=_all(passages, "topics"),
        keywords=_all(passages, "keywords"),
        importance=first["importance"],
        language="",
        tags=_all(passages, "tags"),
        links=(),
        authors=(),
        dates=(),
        missing=(MISSING,),
        reader=READER,
        method="",
        signals={},
        pipeline_version=PIPELINE_VERSION,
        created_at=first["created_at"],
        ingested_at=now,
        session_id=first["session_id"],
    )


def _text(passages: Sequence[Row]) -> str:
    """Return the passages at their offsets, with blanks where nothing is left."""
    text = ""
    for row in sorted(passages, key=lambda row: (row["start"], row["end"])):
        text = text[: row["start"]].ljust(row["start"]) + row["text"] + text[row["end"] :]
    return text


def _all(passages: Sequence[Row], column: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for row in passages for value in row[column] or ()))


_IDENTITY_COLUMNS = ("id", "document_id", "created_at", "version")
_VERSION_COLUMNS = (*_IDENTITY_COLUMNS, "namespace", "type", "text", "valid_from")

VersionRow = Mapping[str, Any]


def unended_predecessors(snapshot: Snapshot) -> dict[str, VersionRow]:
    """Return memories that hold beside their own next version, each with that version."""
    later: dict[tuple[str | None, datetime, int], list[VersionRow]] = {}
    for row in snapshot.scan("memories", col("version") > 1, list(_VERSION_COLUMNS)).to_pylist():
        if row["id"].startswith("m_"):
            place = (row["document_id"], row["created_at"], row["version"] - 1)
            later.setdefault(place, []).append(row)
    found: dict[str, VersionRow] = {}
    held = col("superseded_by").is_null() & (col("level") == "memory")
    for row in snapshot.each_row("memories", held, _IDENTITY_COLUMNS) if later else ():
        for new in later.get((row["document_id"], row["created_at"], row["version"]), ()):
            if _is_next_version(row["id"], new):
                found[row["id"]] = new
    return found


def lost_predecessors(snapshot: Snapshot, ids: Iterable[str]) -> dict[str, VersionRow]:
    """Return which of some memories are not there though their next version is, with that one.

    The id of a version is made from the id of the one before it, so only that one fits it.

    Args:
        snapshot: The tables.
        ids: Memories that there have been.
    """
    columns = [*_VERSION_COLUMNS, "source"]
    edited = snapshot.scan("memories", col("version") > 1, columns).to_pylist()
    ended: set[str] = set()
    for batch in snapshot.batches("memories", ~col("superseded_by").is_null(), ["superseded_by"]):
        ended.update(batch["superseded_by"].to_pylist())
    alone = [row for row in edited if row["id"].startswith("m_") and row["id"] not in ended]
    return {id_: row for id_ in ids for row in alone if _is_next_version(id_, row)}


def _is_next_version(old: str, new: VersionRow) -> bool:
    made = next_version_id(old, new["version"], new["namespace"], new["type"], new["text"])
    return bool(made == new["id"])


def end_predecessors(transaction: Transaction, pairs: Mapping[str, VersionRow]) -> None:
    """Let memories end where their next versions begin."""
    set_columns(
        transaction,
        "memories",
        pairs.keys(),
        valid_to=[row["valid_from"] for row in pairs.values()],
        superseded_by=[row["id"] for row in pairs.values()],
    )
