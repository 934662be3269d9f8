"""Batches become commits: rows are added, earlier versions are closed, all or nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from memctl.ingest.batch import Batch, Prepared, failed_outcome, known_outcome
from memctl.ingest.derive import Derived
from memctl.ingest.known import LIVE
from memctl.records import DocumentStatus, FileOutcome

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.store.filters import Expr
    from memctl.store.names import TableName
    from memctl.store.store import Store
    from memctl.store.transaction import Transaction


class _Abandoned(Exception):
    """A source in many parts failed half-way; what was written of it is to be rolled back."""


def write(
    store: Store, batch: Batch, rest: Iterator[Batch]
) -> tuple[list[FileOutcome], list[Batch]]:
    """Commit a batch, and with it those from ``rest`` that continue it.

    Returns:
        What became of each source, and the batches that were used up.
    """
    used = [batch]
    if not batch.prepared:
        return batch.outcomes, used
    try:
        with store.write() as transaction:
            writing = _Writing(transaction)
            writing.add(batch)
            while not used[-1].last:
                used.append(next(rest))
                if used[-1].failure is not None:
                    raise _Abandoned
                writing.add(used[-1])
            outcomes = writing.finish()
    except _Abandoned:
        outcomes = [failure for each in used if (failure := each.failure)]
    return [*batch.outcomes, *outcomes], used


class _Writing:
    """The rows of one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._derived = Derived()
        self._refused: set[str] = set()
        self._edited: set[str] = set()
        self._outcomes: dict[str, FileOutcome] = {}

    def add(self, batch: Batch) -> None:
        """Add the rows of a batch, but for documents that somebody else has added meanwhile."""
        from memctl.store.schema import documents_table

        self._refuse([item for item in batch.prepared if not item.document.part])
        kept = [x for x in batch.prepared if x.document.root_id not in self._refused]
        if not kept:
            return
        _close_replaced(self._transaction, kept)
        self._edited |= _clear_redone(self._transaction, kept)
        memories = _memory_rows(batch, self._refused, self._edited)
        self._derived.add([item for item in kept if not item.wanted.redo])
        self._transaction.append("documents", documents_table([x.document for x in kept]))
        self._transaction.append("memories", memories)
        for item in kept:
            self._note(item)

    def finish(self) -> list[FileOutcome]:
        """Add what follows from all documents together; return what became of each source."""
        self._derived.write(self._transaction)
        return list(self._outcomes.values())

    def _refuse(self, items: Sequence[Prepared]) -> None:
        new = {item.document.id: item for item in items if not item.wanted.redo}
        if not new:
            return
        found = self._transaction.snapshot().get("documents", list(new), ["id", "sha256"])
        for row in found.to_pylist():
            self._refused.add(row["id"])
            self._outcomes[row["id"]] = _overtaken(new[row["id"]], row["sha256"])

    def _note(self, item: Prepared) -> None:
        """The parts of one source have one outcome."""
        root = item.document.root_id
        known = self._outcomes.get(root)
        self._outcomes[root] = (
            replace(known, memories=known.memories + len(item.memories))
            if known
            else _ingested(item)
        )


def close_documents(
    transaction: Transaction,
    successors: Mapping[str, str | None],
    status: DocumentStatus,
    now: datetime,
) -> None:
    """Make documents history: their rows get a status, their memories and relations an end.

    Args:
        transaction: What to write with.
        successors: Root ids of the documents, each with the id of its newer version.
        status: ``superseded`` or ``gone``.
        now: From when on they are history.
    """
    import pyarrow as pa

    where = _is_in("root_id", list(successors))
    found = transaction.snapshot().scan("documents", where, ["id", "root_id"])
    newer = [successors[root] for root in found["root_id"].to_pylist()]
    columns = {
        "id": found["id"],
        "status": pa.array([status] * len(newer), pa.string()),
        "superseded_by": pa.array(newer, pa.string()),
    }
    transaction.update("documents", pa.table(columns))
    ids = found["id"].to_pylist()
    _end(transaction, "memories", _is_in("document_id", ids), now)
    _end(transaction, "relations", _is_in("source_id", ids), now)


def live_documents(transaction: Transaction, document_ids: Sequence[str]) -> list[str]:
    """Those of the documents that are neither superseded nor gone."""
    found = transaction.snapshot().get("documents", document_ids, ["id", "status"])
    return [row["id"] for row in found.to_pylist() if row["status"] in LIVE]


def rename_document(transaction: Transaction, document_id: str, source: str) -> None:
    """Give a document and its memories another source."""
    import pyarrow as pa

    snapshot = transaction.snapshot()
    ids = snapshot.scan("documents", _is_in("root_id", [document_id]), ["id"])["id"]
    memories = snapshot.scan("memories", _is_in("document_id", ids.to_pylist()), ["id"])["id"]
    changes: tuple[tuple[TableName, pa.ChunkedArray], ...]
    changes = (("documents", ids), ("memories", memories))
    for table, rows in changes:
        names = pa.array([source] * len(rows), pa.string())
        transaction.update(table, pa.table({"id": rows, "source": names}))


def _close_replaced(transaction: Transaction, items: Sequence[Prepared]) -> None:
    replaced: dict[str, str | None] = {
        item.wanted.replaces: item.document.id
        for item in items
        if item.wanted.replaces and not item.document.part
    }
    if replaced:
        now = items[0].document.ingested_at
        close_documents(transaction, replaced, "superseded", now)


def _clear_redone(transaction: Transaction, items: Sequence[Prepared]) -> set[str]:
    """Remove the rows of documents that are made anew; return the memories that people edited.

    Those stay as they are, with their history.
    """
    from memctl.store.filters import col

    roots = [x.document.root_id for x in items if x.wanted.redo and not x.document.part]
    if not roots:
        return set()
    snapshot = transaction.snapshot()
    ids = snapshot.scan("documents", _is_in("root_id", roots), ["id"])["id"].to_pylist()
    edited = (col("version") > 1) | ~col("superseded_by").is_null()
    kept = snapshot.scan("memories", _is_in("document_id", ids) & edited, ["id"])
    transaction.delete("memories", _is_in("document_id", ids) & ~edited)
    transaction.delete("documents", _is_in("id", ids))
    return set(kept["id"].to_pylist())


def _memory_rows(batch: Batch, refused: set[str], edited: set[str]) -> pa.Table:
    from memctl.store.schema import memories_table

    owners = [item.document.root_id for item in batch.prepared for _ in item.memories]
    memories = batch.memories
    assert batch.vectors is not None
    places = [
        place
        for place, (memory, owner) in enumerate(zip(memories, owners, strict=True))
        if owner not in refused and memory.id not in edited
    ]
    if len(places) == len(memories):
        return memories_table(memories, batch.vectors)
    return memories_table([memories[place] for place in places], batch.vectors[places])


def _end(transaction: Transaction, table: TableName, where: Expr, now: datetime) -> None:
    import pyarrow as pa

    from memctl.store.filters import col

    found = transaction.snapshot().scan(table, where & col("valid_to").is_null(), ["id"])
    until = pa.array([now] * found.num_rows, pa.timestamp("us", tz="UTC"))
    transaction.update(table, pa.table({"id": found["id"], "valid_to": until}))


def _is_in(column: str, values: Sequence[str]) -> Expr:
    from memctl.store.filters import col

    return col(column).is_in(values)


# --- outcomes ------------------------------------------------------------------------------------


def _ingested(item: Prepared) -> FileOutcome:
    document = item.document
    return FileOutcome(
        item.wanted.item.source.source,
        "superseded" if item.wanted.replaces else "ingested",
        document_id=document.root_id,
        memories=len(item.memories),
        title=document.title,
        summary=document.summary,
        missing=document.missing,
        line=item.wanted.item.source.line,
    )


def _overtaken(item: Prepared, sha256: str) -> FileOutcome:
    """Another process added a document under the same id after this one had been judged."""
    source = item.wanted.item.source
    if sha256 == item.wanted.item.sha256:
        return known_outcome(source, item.document.id)
    reason = f"{source.source}: another process wrote a version of it at the same time"
    return failed_outcome(source, reason, "ingest it again")
