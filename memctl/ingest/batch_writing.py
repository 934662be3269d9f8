"""Batches become commits: rows are added, earlier versions are closed, all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from memctl.errors import LockedError
from memctl.ingest.batches import (
    Batch,
    DocumentSummary,
    ProcessedGroup,
    ReadFailure,
    ReadTiming,
    WantedSource,
    failed_outcome,
    ingested_outcome,
    known_outcome,
)
from memctl.ingest.deduplication import Deduplicator
from memctl.ingest.fact_comparison import facts_of_model, is_by_model
from memctl.records import DocumentStatus, FileOutcome
from memctl.rows.derived_rows import DerivedRows
from memctl.rows.orphan_entities import drop_orphan_entities, names_in
from memctl.rows.supersession import LIVE_STATUSES, reinstate_after, reinstate_without

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.schema.table_names import TableName
    from memctl.store.ledger.log_repositories import ComparisonRepository
    from memctl.store.store import Store
    from memctl.store.tables.filter_expressions import Expr
    from memctl.store.tables.transaction import Transaction


class _Abandoned(Exception):
    """A source in many parts failed half-way; what was written of it is to be rolled back."""

    def __init__(self, failure: FileOutcome) -> None:
        super().__init__(failure.reason)
        self.failure = failure


OutcomeListener = Callable[[Sequence[FileOutcome]], None]
"""Told, within the very step that makes them known, what has become of some sources."""


def write_batch(
    store: Store,
    batch: Batch,
    rest: Iterator[Batch],
    known: Deduplicator,
    settled: OutcomeListener | None = None,
) -> list[FileOutcome]:
    """Commit a batch, and with it those from ``rest`` that continue it.

    Args:
        store: Where to.
        batch: What to commit.
        rest: What follows it.
        known: Has judged the sources, and says whether somebody else has written since.
        settled: What else is to be done in the same commit; it may use the store's ledger.

    Returns:
        What became of each source.
    """
    if not batch.worked:
        return [*batch.outcomes, *([batch.failure] if batch.failure else [])]
    try:
        with store.write() as transaction:
            alone = known.is_alone(transaction.version("documents"))
            writing = _Writing(transaction, store.ledger.comparisons, alone=alone)
            outcomes = _write_all(writing, batch, rest)
            if settled is not None:
                transaction.ledger(lambda _: settled(outcomes))
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

    def __init__(
        self, transaction: Transaction, comparisons: ComparisonRepository, *, alone: bool = False
    ) -> None:
        self._transaction = transaction
        self._comparisons = comparisons
        self._alone = alone
        self._derived = DerivedRows()
        self._refused: set[str] = set()
        self._edited: set[str] = set()
        self._replaced: dict[str, str] = {}
        self._closed: list[str] = []
        self._erased: dict[str, str] = {}
        self._unsaid: set[str] = set()
        self._facts: list[str] = []
        self._now: datetime | None = None
        self._outcomes: dict[str, FileOutcome] = {}

    def add(self, batch: Batch) -> None:
        """Add the rows of a batch, but for documents that somebody else has added meanwhile."""
        first = [pair for worked in batch.worked if not worked.part for pair in worked.taken()]
        self._refuse([wanted for wanted, _ in first if not wanted.redo])
        kept = [wanted for wanted, _ in first if wanted.document_id not in self._refused]
        if batch.worked:
            self._now = batch.worked[0].now
            self._close_replaced(kept, self._now)
        cleared = _clear_redone(self._transaction, kept)
        self._edited |= cleared.edited
        self._erased |= cleared.erased
        self._unsaid |= cleared.names
        for worked in batch.worked:
            self._append(worked)

    def finish(self) -> list[FileOutcome]:
        """Add what follows from all documents together; return what became of each source."""
        self._derived.write(self._transaction)
        if self._closed and self._now is not None:
            reinstate_after(self._transaction, self._closed, self._now, self._replaced)
        if self._erased:
            _let_go(self._transaction, list(self._erased))
        drop_orphan_entities(self._transaction, self._unsaid)
        self._have_compared()
        return list(self._outcomes.values())

    def _close_replaced(self, kept: Sequence[WantedSource], now: datetime) -> None:
        replaced = {each.replaces: each.document_id for each in kept if each.replaces}
        if replaced:
            self._closed += close_documents(self._transaction, replaced, "superseded", now)
            self._replaced |= replaced

    def _have_compared(self) -> None:
        """Note facts to be compared; those that a model has stated before have been, or wait."""
        known = {id_ for id_, method in self._erased.items() if is_by_model(method)}
        facts = [id_ for id_ in self._facts if id_ not in known]
        if facts and self._now is not None:
            now = self._now
            self._transaction.ledger(lambda _: self._comparisons.add(facts, now))

    def _refuse(self, new: Sequence[WantedSource]) -> None:
        """Set documents aside that are there by now, though they were not when they were judged."""
        wanted = {each.document_id: each for each in new}
        if not wanted or self._alone:
            return
        found = self._transaction.snapshot().get("documents", list(wanted), ["id", "sha256"])
        for row in found.to_pylist():
            self._refused.add(row["id"])
            self._outcomes[row["id"]] = _overtaken(wanted[row["id"]], row["sha256"])

    def _append(self, worked: ProcessedGroup) -> None:
        documents = without(worked.documents, "root_id", self._refused)
        if self._refused:
            kept = set(documents["id"].to_pylist())
            away = set(worked.documents["id"].to_pylist()) - kept
            memories = without(worked.memories, "document_id", away)
        else:
            memories = worked.memories
        self._transaction.append("documents", documents)
        memories = without(memories, "id", self._edited)
        if any(wanted.redo for wanted in worked.wanted):
            memories = _without_deleted(memories, self._transaction.deletions.ids)
        self._transaction.append("memories", memories)
        self._facts += facts_of_model(memories)
        if any(wanted.redo for wanted in worked.wanted):
            self._derived.add_missing(worked.entities)
        else:
            self._derived.add(worked.entities, worked.relations)
        for wanted, taken in worked.taken():
            if wanted.document_id not in self._refused:
                self._note(wanted, taken, worked.readings.get(wanted.document_id))

    def _note(
        self, wanted: WantedSource, taken: DocumentSummary, reading: ReadTiming | None
    ) -> None:
        """The parts of one source have one outcome."""
        known = self._outcomes.get(wanted.document_id)
        self._outcomes[wanted.document_id] = (
            replace(
                known,
                memories=known.memories + taken.memories,
                missing=tuple(dict.fromkeys((*known.missing, *taken.missing))),
                dropped=known.dropped + taken.dropped,
                redacted=known.redacted + taken.redacted,
            )
            if known
            else ingested_outcome(wanted, taken, reading)
        )


def without(rows: pa.Table, column: str, values: set[str]) -> pa.Table:
    """The rows whose value in a column is none of these."""
    if not values:
        return rows
    import pyarrow as pa
    import pyarrow.compute as pc

    return rows.filter(pc.invert(pc.is_in(rows[column], pa.array(sorted(values), pa.string()))))


def _without_deleted(memories: pa.Table, deleted: set[str]) -> pa.Table:
    """Leave out statements that somebody deleted; passages come back, or the text has a gap."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not deleted:
        return memories
    gone = pc.is_in(memories["id"], pa.array(sorted(deleted), pa.string()))
    return memories.filter(pc.or_(pc.invert(gone), pc.equal(memories["level"], "evidence")))


def close_documents(
    transaction: Transaction,
    successors: Mapping[str, str | None],
    status: DocumentStatus,
    now: datetime,
) -> list[str]:
    """Make documents history: their rows get a status, their memories and relations an end.

    What had ended in favour of them is not looked at; see ``hold_again_after``.

    Args:
        transaction: What to write with.
        successors: Root ids of the documents, each with the id of its newer version.
        status: ``superseded`` or ``gone``.
        now: From when on they are history.

    Returns:
        Their ids, those of their parts among them.
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
    return list(ids)


def retire_documents(transaction: Transaction, document_ids: Sequence[str], now: datetime) -> None:
    """Mark live documents as gone; what had ended in favour of what they say holds again."""
    gone: dict[str, str | None] = dict.fromkeys(live_documents(transaction, document_ids))
    if gone:
        reinstate_after(transaction, close_documents(transaction, gone, "gone", now), now, gone)


def live_documents(transaction: Transaction, document_ids: Sequence[str]) -> list[str]:
    """Those of the documents that are neither superseded nor gone."""
    found = transaction.snapshot().get("documents", document_ids, ["id", "status"])
    return [row["id"] for row in found.to_pylist() if row["status"] in LIVE_STATUSES]


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


@dataclass(frozen=True, slots=True)
class _Cleared:
    """What was there of documents that are made anew."""

    edited: set[str]
    """Memories that people edited, or that ended in favour of others; they stay as they are."""
    erased: dict[str, str]
    """Statements that are not there any more, by id, each with the method that had made it."""
    names: set[str]
    """What they named, and may name no more."""


def _clear_redone(transaction: Transaction, kept: Sequence[WantedSource]) -> _Cleared:
    """Remove the rows of documents that are made anew.

    What has a history stays, with it.
    """
    from memctl.store.tables.filter_expressions import col

    roots = [each.document_id for each in kept if each.redo]
    if not roots:
        return _Cleared(set(), {}, set())
    snapshot = transaction.snapshot()
    ids = snapshot.scan("documents", _is_in("root_id", roots), ["id"])["id"].to_pylist()
    lost = [part for each in kept for part in each.lost_parts]
    made = _is_in("document_id", [*ids, *lost])
    edited = (col("version") > 1) | ~col("superseded_by").is_null()
    stays = snapshot.scan("memories", made & edited, ["id"])
    erased = snapshot.scan(
        "memories", made & ~edited & (col("level") == "memory"), ["id", "method"]
    )
    names = names_in(snapshot, _is_in("id", ids), made)
    transaction.delete("memories", made & ~edited)
    transaction.delete("documents", _is_in("id", ids))
    methods = dict(zip(erased["id"].to_pylist(), erased["method"].to_pylist(), strict=True))
    return _Cleared(set(stays["id"].to_pylist()), methods, names)


def _let_go(transaction: Transaction, erased: Sequence[str]) -> None:
    """Let nothing hang on statements that have been erased and not made again."""
    there = transaction.snapshot().get("memories", erased, ["id"])["id"].to_pylist()
    gone = sorted(set(erased).difference(there))
    if gone:
        reinstate_without(transaction, gone)
        transaction.delete("relations", _is_in("source_id", gone) | _is_in("target_id", gone))


def _end(transaction: Transaction, table: TableName, where: Expr, now: datetime) -> None:
    import pyarrow as pa

    from memctl.store.tables.filter_expressions import col

    found = transaction.snapshot().scan(table, where & col("valid_to").is_null(), ["id"])
    until = pa.array([now] * found.num_rows, pa.timestamp("us", tz="UTC"))
    transaction.update(table, pa.table({"id": found["id"], "valid_to": until}))


def _is_in(column: str, values: Sequence[str]) -> Expr:
    from memctl.store.tables.filter_expressions import col

    return col(column).is_in(values)


def _overtaken(wanted: WantedSource, sha256: str) -> FileOutcome:
    """Another process added a document under the same id after this one had been judged."""
    source = wanted.item.source
    if sha256 == wanted.item.sha256:
        return known_outcome(source, wanted.document_id)
    reason = f"{source.source}: another process wrote a version of it at the same time"
    return failed_outcome(source, ReadFailure(reason, "ingest it again", LockedError.__name__))
