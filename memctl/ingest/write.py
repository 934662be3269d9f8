"""Batches become commits: rows are added, earlier versions are closed, all or nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from memctl.errors import LockedError
from memctl.ingest.batch import (
    Batch,
    NotRead,
    Taken,
    Wanted,
    Worked,
    failed_outcome,
    known_outcome,
    taken_outcome,
)
from memctl.ingest.derive import Derived
from memctl.ingest.known import LIVE, Known
from memctl.records import DocumentStatus, FileOutcome

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.store.filters import Expr
    from memctl.store.names import TableName
    from memctl.store.store import Store
    from memctl.store.transaction import Transaction


class _Abandoned(Exception):
    """A source in many parts failed half-way; what was written of it is to be rolled back."""

    def __init__(self, failure: FileOutcome) -> None:
        super().__init__(failure.reason)
        self.failure = failure


def write(store: Store, batch: Batch, rest: Iterator[Batch], known: Known) -> list[FileOutcome]:
    """Commit a batch, and with it those from ``rest`` that continue it.

    ``known`` has judged the sources, and says whether somebody else has written since.

    Returns:
        What became of each source.
    """
    if not batch.worked:
        return [*batch.outcomes, *([batch.failure] if batch.failure else [])]
    try:
        with store.write() as transaction:
            alone = known.is_alone(transaction.version("documents"))
            outcomes = _write_all(_Writing(transaction, alone=alone), batch, rest)
        known.moved(transaction.version("documents"))
    except _Abandoned as abandoned:
        outcomes = [abandoned.failure]
    return [*batch.outcomes, *outcomes]


def _write_all(writing: _Writing, batch: Batch, rest: Iterator[Batch]) -> list[FileOutcome]:
    """Hold no more than one batch at a time: together they may be bigger than memory."""
    writing.add(batch)
    while not batch.last:
        batch = next(rest)
        if batch.failure is not None:
            raise _Abandoned(batch.failure)
        writing.add(batch)
    return writing.finish()


class _Writing:
    """The rows of one transaction; ``alone`` where nobody else has written since the judging."""

    def __init__(self, transaction: Transaction, *, alone: bool = False) -> None:
        self._transaction = transaction
        self._alone = alone
        self._derived = Derived()
        self._refused: set[str] = set()
        self._edited: set[str] = set()
        self._outcomes: dict[str, FileOutcome] = {}

    def add(self, batch: Batch) -> None:
        """Add the rows of a batch, but for documents that somebody else has added meanwhile."""
        first = [pair for worked in batch.worked if not worked.part for pair in worked.taken()]
        self._refuse([wanted for wanted, _ in first if not wanted.redo])
        kept = [wanted for wanted, _ in first if wanted.document_id not in self._refused]
        if batch.worked:
            _close_replaced(self._transaction, kept, batch.worked[0].now)
        self._edited |= _clear_redone(self._transaction, kept)
        for worked in batch.worked:
            self._append(worked)

    def finish(self) -> list[FileOutcome]:
        """Add what follows from all documents together; return what became of each source."""
        self._derived.write(self._transaction)
        return list(self._outcomes.values())

    def _refuse(self, new: Sequence[Wanted]) -> None:
        """Set documents aside that are there by now, though they were not when they were judged."""
        wanted = {each.document_id: each for each in new}
        if not wanted or self._alone:
            return
        found = self._transaction.snapshot().get("documents", list(wanted), ["id", "sha256"])
        for row in found.to_pylist():
            self._refused.add(row["id"])
            self._outcomes[row["id"]] = _overtaken(wanted[row["id"]], row["sha256"])

    def _append(self, worked: Worked) -> None:
        documents = without(worked.documents, "root_id", self._refused)
        if self._refused:
            kept = set(documents["id"].to_pylist())
            away = set(worked.documents["id"].to_pylist()) - kept
            memories = without(worked.memories, "document_id", away)
        else:
            memories = worked.memories
        self._transaction.append("documents", documents)
        self._transaction.append("memories", without(memories, "id", self._edited))
        if any(wanted.redo for wanted in worked.wanted):
            self._derived.add_missing(worked.entities)
        else:
            self._derived.add(worked.entities, worked.relations)
        for wanted, taken in worked.taken():
            if wanted.document_id not in self._refused:
                self._note(wanted, taken)

    def _note(self, wanted: Wanted, taken: Taken) -> None:
        """The parts of one source have one outcome."""
        known = self._outcomes.get(wanted.document_id)
        self._outcomes[wanted.document_id] = (
            replace(
                known,
                memories=known.memories + taken.memories,
                missing=tuple(dict.fromkeys((*known.missing, *taken.missing))),
                dropped=known.dropped + taken.dropped,
            )
            if known
            else taken_outcome(wanted, taken)
        )


def without(rows: pa.Table, column: str, values: set[str]) -> pa.Table:
    """The rows whose value in a column is none of these."""
    if not values:
        return rows
    import pyarrow as pa
    import pyarrow.compute as pc

    return rows.filter(pc.invert(pc.is_in(rows[column], pa.array(sorted(values), pa.string()))))


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


def _close_replaced(transaction: Transaction, kept: Sequence[Wanted], now: datetime) -> None:
    replaced = {each.replaces: each.document_id for each in kept if each.replaces}
    if replaced:
        close_documents(transaction, replaced, "superseded", now)


def _clear_redone(transaction: Transaction, kept: Sequence[Wanted]) -> set[str]:
    """Remove the rows of documents that are made anew; return the memories that people edited.

    Those stay as they are, with their history.
    """
    from memctl.store.filters import col

    roots = [each.document_id for each in kept if each.redo]
    if not roots:
        return set()
    snapshot = transaction.snapshot()
    ids = snapshot.scan("documents", _is_in("root_id", roots), ["id"])["id"].to_pylist()
    edited = (col("version") > 1) | ~col("superseded_by").is_null()
    stays = snapshot.scan("memories", _is_in("document_id", ids) & edited, ["id"])
    transaction.delete("memories", _is_in("document_id", ids) & ~edited)
    transaction.delete("documents", _is_in("id", ids))
    return set(stays["id"].to_pylist())


def _end(transaction: Transaction, table: TableName, where: Expr, now: datetime) -> None:
    import pyarrow as pa

    from memctl.store.filters import col

    found = transaction.snapshot().scan(table, where & col("valid_to").is_null(), ["id"])
    until = pa.array([now] * found.num_rows, pa.timestamp("us", tz="UTC"))
    transaction.update(table, pa.table({"id": found["id"], "valid_to": until}))


def _is_in(column: str, values: Sequence[str]) -> Expr:
    from memctl.store.filters import col

    return col(column).is_in(values)


def _overtaken(wanted: Wanted, sha256: str) -> FileOutcome:
    """Another process added a document under the same id after this one had been judged."""
    source = wanted.item.source
    if sha256 == wanted.item.sha256:
        return known_outcome(source, wanted.document_id)
    reason = f"{source.source}: another process wrote a version of it at the same time"
    return failed_outcome(source, NotRead(reason, "ingest it again", LockedError.__name__))
