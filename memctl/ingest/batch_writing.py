"""Batches become commits: rows are added, earlier versions are closed, all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from memctl.errors import LockedError
from memctl.graph.derivation import LINKS_TO
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
from memctl.ingest.file_units import renamed_units
from memctl.ingest.file_versions import FileVersions, VersionChanges
from memctl.records import Entity, FileOutcome, Relation
from memctl.rows.derived_rows import EntityCounts, add_missing, add_up
from memctl.rows.references import in_portions, names_in
from memctl.rows.row_changes import append_rows, delete_rows, put_rows, set_columns
from memctl.rows.row_lifecycle import (
    drop_orphan_entities,
    erase_missing,
    retire_documents,
    supersede_documents,
)
from memctl.rows.supersession import reinstate_after
from memctl.store.tables.filter_expressions import col

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.store.ledger.log_repositories import ComparisonRepository
    from memctl.store.store import Store
    from memctl.store.tables.transaction import Transaction


class _Abandoned(Exception):
    """A source in many parts failed half-way; what was written of it is to be rolled back."""

    def __init__(self, failure: FileOutcome) -> None:
        super().__init__(failure.reason)
        self.failure = failure


OutcomeListener = Callable[[Sequence[FileOutcome]], None]
"""Called with what has become of some sources, within the commit that makes it known."""


def write_batch(
    store: Store,
    batch: Batch,
    rest: Iterator[Batch],
    known: Deduplicator,
    counts: EntityCounts,
    on_commit: OutcomeListener | None = None,
    versions: FileVersions | None = None,
) -> list[FileOutcome]:
    """Commit a batch, and with it those from ``rest`` that continue it.

    Args:
        store: Where to.
        batch: What to commit.
        rest: What follows it.
        known: Has judged the sources, and says whether another process has written since.
        counts: Of entities, of the run that this is a part of.
        on_commit: What else is to be done in the same commit; it may use the store's ledger.
        versions: Finds what the files were before, which ends in the same commit.

    Returns:
        What became of each source.
    """
    before = [*batch.outcomes, *([batch.failure] if batch.failure and not batch.groups else [])]
    if not batch.groups and not (versions and versions.after(store.snapshot(), before)):
        return before
    try:
        with store.write() as transaction:
            alone = known.is_alone(transaction.versions["documents"])
            writing = _Writing(transaction, store.ledger.comparisons, counts, alone=alone)
            outcomes = written = _write_all(writing, batch, rest)
            if versions is not None:
                turnover = writing.end_earlier(versions, [*before, *written])
                marked = turnover.mark_superseded(before)
                before = [item for item in marked if item.outcome != "superseded"]
                outcomes = [item for item in marked if item.outcome == "superseded"]
                outcomes += turnover.mark_superseded(written)
            writing.finish()
            if on_commit is not None:
                transaction.ledger(lambda _: on_commit(outcomes))
        known.note_version(transaction.versions["documents"])
        known.note_ended(writing.ended_keys)
        counts.note_committed(transaction)
    except _Abandoned as abandoned:
        outcomes = [abandoned.failure]
    return [*before, *outcomes]


def _write_all(writing: _Writing, batch: Batch, rest: Iterator[Batch]) -> list[FileOutcome]:
    """Hold no more than one batch at a time: together they may be bigger than memory."""
    writing.add(batch)
    while not batch.last:
        batch = next(rest)
        if batch.failure is not None:
            raise _Abandoned(batch.failure)
        writing.add(batch)
    return writing.outcomes()


class _Writing:
    """The rows of one transaction; ``alone`` if no other process has written since the judging."""

    def __init__(
        self,
        transaction: Transaction,
        comparisons: ComparisonRepository,
        counts: EntityCounts,
        *,
        alone: bool = False,
    ) -> None:
        self._transaction = transaction
        self._comparisons = comparisons
        self._counts = counts
        self._alone = alone
        self._entities: dict[str, Entity] = {}
        self._entities_again: dict[str, Entity] = {}
        """Of documents made anew, whose mentions have been counted once."""
        self._relations: dict[str, Relation] = {}
        self._relations_again: dict[str, Relation] = {}
        self._refused: set[str] = set()
        self._edited: set[str] = set()
        self._replaced: dict[str, str] = {}
        self.ended_keys: frozenset[str] = frozenset()
        """Keys of documents that have ended because their files say something else now."""
        self._closed: list[str] = []
        self._withdrawn: dict[str, str] = {}
        self._names: set[str] = set()
        self._facts: list[str] = []
        self._now: datetime | None = None
        self._outcomes: dict[tuple[str, int | None], FileOutcome] = {}
        """By document, and by the number of the source where a document has several."""

    def add(self, batch: Batch) -> None:
        """Add the rows of a batch, but for documents that another process has added meanwhile."""
        first = [
            pair
            for processed in batch.groups
            if not processed.part
            for pair in processed.ingested()
        ]
        self._refuse([wanted for wanted, _ in first if not wanted.redo and not wanted.adds])
        kept = [wanted for wanted, _ in first if wanted.document_id not in self._refused]
        if batch.groups:
            self._now = batch.groups[0].now
            self._close_replaced(kept, self._now)
            ended = [id_ for wanted in kept for id_ in wanted.ends]
            retire_documents(self._transaction, ended, self._now)
        cleared = _clear_redone(self._transaction, kept)
        self._edited |= cleared.edited
        self._withdrawn |= cleared.withdrawn
        self._names |= cleared.names
        for processed in batch.groups:
            self._append(processed)

    def outcomes(self) -> list[FileOutcome]:
        """Return what became of each source."""
        return list(self._outcomes.values())

    def end_earlier(
        self, versions: FileVersions, outcomes: Sequence[FileOutcome]
    ) -> VersionChanges:
        """End what files were before that are something else now, or rename it to its copy."""
        turnover = versions.after(self._transaction.snapshot(), outcomes)
        if turnover.ended:
            self._now = self._now or versions.clock()
            self._closed += supersede_documents(self._transaction, turnover.ended, self._now)
            self._replaced |= turnover.ended
        for document_id, source in turnover.renamed.items():
            rename_document(self._transaction, document_id, source)
        self.ended_keys = turnover.keys
        return turnover

    def finish(self) -> None:
        """Add what follows from all documents together."""
        self._write_derived()
        if self._closed and self._now is not None:
            reinstate_after(self._transaction, self._closed, self._now, self._replaced)
        if self._withdrawn:
            erase_missing(self._transaction, "memories", self._withdrawn)
        if self._names:
            drop_orphan_entities(self._transaction, self._names)
        self._have_compared()

    def _write_derived(self) -> None:
        from memctl.schema.arrow_tables import relations_table

        self._counts.write(self._transaction, self._entities)
        if self._entities_again:
            add_missing(self._transaction, self._entities_again, self._relations_again)
        if self._relations:
            relations = relations_table(list(self._relations.values()))
            put_rows(self._transaction, "relations", relations)

    def _close_replaced(self, kept: Sequence[WantedSource], now: datetime) -> None:
        replaced = {each.replaces: each.document_id for each in kept if each.replaces}
        if replaced:
            self._closed += supersede_documents(self._transaction, replaced, now)
            self._replaced |= replaced

    def _have_compared(self) -> None:
        """Record facts to be compared; those that a model has stated before have been, or wait."""
        known = {id_ for id_, method in self._withdrawn.items() if is_by_model(method)}
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
            self._outcomes[row["id"], None] = _overtaken(wanted[row["id"]], row["sha256"])

    def _append(self, processed: ProcessedGroup) -> None:
        documents = without(processed.documents, "root_id", self._refused)
        if self._refused:
            kept = set(documents["id"].to_pylist())
            away = set(processed.documents["id"].to_pylist()) - kept
            memories = without(processed.memories, "document_id", away)
        else:
            memories = processed.memories
        append_rows(self._transaction, "documents", documents)
        memories = without(memories, "id", self._edited)
        if any(wanted.redo for wanted in processed.wanted):
            memories = _without_deleted(memories, self._transaction.deletions.ids)
        append_rows(self._transaction, "memories", memories)
        self._facts += facts_of_model(memories)
        if any(wanted.redo for wanted in processed.wanted):
            add_up(self._entities_again, processed.entities.values())
            stated = (each for each in processed.relations if each.relation_type != LINKS_TO)
            self._relations_again |= {relation.id: relation for relation in stated}
        else:
            add_up(self._entities, processed.entities.values())
            self._relations |= {relation.id: relation for relation in processed.relations}
        for wanted, taken in processed.ingested():
            if wanted.document_id not in self._refused:
                self._note(wanted, taken, processed.readings.get(wanted.document_id))

    def _note(
        self, wanted: WantedSource, taken: DocumentSummary, reading: ReadTiming | None
    ) -> None:
        """The parts of one source have one outcome."""
        place = (wanted.document_id, wanted.item.source.line if wanted.adds else None)
        known = self._outcomes.get(place)
        self._outcomes[place] = (
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
    """Leave out deleted statements; passages come back, or the text has a gap."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not deleted:
        return memories
    gone = pc.is_in(memories["id"], pa.array(sorted(deleted), pa.string()))
    return memories.filter(pc.or_(pc.invert(gone), pc.equal(memories["level"], "evidence")))


def rename_document(transaction: Transaction, document_id: str, source: str) -> None:
    """Give a document and its memories another source; with a file of many go its units."""
    snapshot = transaction.snapshot()
    names = {document_id: source, **renamed_units(snapshot, document_id, source)}
    for roots in in_portions(list(names)):
        where = col("root_id").is_in(roots)
        parts = snapshot.scan("documents", where, ["id", "root_id"]).to_pylist()
        sources = {row["id"]: names[row["root_id"]] for row in parts}
        where = col("document_id").is_in(list(sources))
        made = snapshot.scan("memories", where, ["id", "document_id"]).to_pylist()
        set_columns(transaction, "documents", list(sources), source=list(sources.values()))
        memory_sources = [sources[row["document_id"]] for row in made]
        set_columns(transaction, "memories", [row["id"] for row in made], source=memory_sources)


class _Cleared(Struct, frozen=True):
    """What was there of documents that are made anew."""

    edited: set[str] = field(default_factory=set)
    """Memories that people edited, or that ended in favour of others; they stay as they are."""
    withdrawn: dict[str, str] = field(default_factory=dict)
    """Memories that are not there any more, by id, each with the method that had made it."""
    names: set[str] = field(default_factory=set)
    """What they named, and may name no more."""


def _clear_redone(transaction: Transaction, kept: Sequence[WantedSource]) -> _Cleared:
    """Remove the rows of documents that are made anew.

    What has a history stays, with it.
    """
    roots = [each.document_id for each in kept if each.redo]
    if not roots:
        return _Cleared()
    snapshot = transaction.snapshot()
    whole = col("root_id").is_in(roots)
    ids = snapshot.scan("documents", whole, ["id"])["id"].to_pylist()
    lost = [part for each in kept for part in each.lost_parts]
    made = col("document_id").is_in([*ids, *lost])
    edited = (col("version") > 1) | ~col("superseded_by").is_null()
    stays = snapshot.scan("memories", made & edited, ["id"])["id"].to_pylist()
    names = names_in(snapshot, whole, made)
    withdrawn = snapshot.scan("memories", made & ~edited, ["id", "method"]).to_pylist()
    delete_rows(transaction, "memories", made & ~edited)
    delete_rows(transaction, "documents", whole)
    return _Cleared(set(stays), {row["id"]: row["method"] for row in withdrawn}, names)


def _overtaken(wanted: WantedSource, sha256: str) -> FileOutcome:
    """Another process added a document under the same id after this one had been judged."""
    source = wanted.item.source
    if sha256 == wanted.item.sha256:
        return known_outcome(source, wanted.document_id)
    reason = f"{source.source}: another process wrote a version of it at the same time"
    return failed_outcome(source, ReadFailure(reason, "ingest it again", LockedError.__name__))
