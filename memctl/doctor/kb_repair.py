"""Putting one knowledge base right, layer by layer, with as little loss as can be.

Each step looks first and changes then, and says what it did; done twice, the second time changes
nothing.  Nothing that can be read is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from memctl.doctor.inbox_checks import inbox_source
from memctl.doctor.rebuild import (
    documents_from_passages,
    end_predecessors,
    lost_predecessors,
    unended_predecessors,
)
from memctl.doctor.row_checks import (
    CrossReferences,
    HashedIds,
    Passages,
    Row,
    documents_lacking_memories,
    documents_with_passages,
    has_gap,
    is_at_offsets,
    some_of,
)
from memctl.doctor.table_checks import bad_vectors
from memctl.errors import ChangedSource
from memctl.formatting import format_count
from memctl.graph.derivation import derive_all
from memctl.ids import memory_id, root_id
from memctl.ingest.batches import WantedSource
from memctl.ingest.discovery.sources import printable
from memctl.ingest.reprocessing import LostDocument, documents_to_recover, is_file_of
from memctl.ingest.source_reading import Unreadable, identify
from memctl.kb_settings import Layout
from memctl.knowledge_base import KnowledgeBase
from memctl.literals import RECORD_READER
from memctl.memories.reembedding import EMBEDDED_COLUMNS, embedded_texts
from memctl.records import FileOutcome
from memctl.rows.derived_rows import add_missing
from memctl.rows.references import in_portions
from memctl.rows.row_changes import (
    amend_rows,
    append_rows,
    delete_rows,
    put_rows,
    revive_memories,
    set_columns,
)
from memctl.rows.row_lifecycle import drop_orphan_entities, erase_rows, replace_rows
from memctl.schema.table_names import FORGET, TABLES, TableName
from memctl.store.ledger.work_repositories import FileEntry
from memctl.store.store_repair import Loss, Step
from memctl.store.tables.filter_expressions import col
from memctl.store.tables.inspection import LostRow

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.store.tables.checksums import Verifier
    from memctl.store.tables.snapshot import Snapshot
    from memctl.store.tables.transaction import Transaction

MAX_NAMED = 5
"""Rows that are lost and named each; every other format than a table has all."""


def _singular(table: TableName) -> str:
    return f"{table[:-3]}y" if table.endswith("ies") else table.removesuffix("s")


_NOUNS: Mapping[TableName, tuple[str, str]] = {
    table: (_singular(table), table) for table in TABLES if table != "entities"
}
"""The tables whose losses are reported; entities all follow from documents."""

Sources = Callable[[Iterable[str]], Mapping[str, str]]
"""Gives the files that documents are from, by the ids of the documents."""


class Losses(Struct):
    """The rows of one knowledge base that files no longer have."""

    rows: dict[TableName, int] = field(default_factory=dict)
    """How many rows of a table could not be read."""
    named: dict[TableName, dict[str, LostRow]] = field(default_factory=dict)
    """Rows that an index, a file or another row refers to."""
    again: set[str] = field(default_factory=set)
    """Documents that are read again, by the id of their first part."""
    waits: bool = False
    """Whether some could not be read yet, and may be when this is done once more."""
    _before: dict[TableName, HashedIds] = field(default_factory=dict)

    @classmethod
    def found(cls, losses: Mapping[TableName, Loss], snapshot: Snapshot) -> Losses:
        """Take up what reading the tables has lost; the snapshot has the rest of them."""
        agreement = CrossReferences(snapshot)
        rows = {table: loss.rows for table, loss in losses.items() if loss.rows}
        named = {table: {row.id: row for row in losses[table].named} for table in rows}
        return cls(rows, named, _before={table: agreement.of(table) for table in rows})

    def note(self, table: TableName, rows: Iterable[LostRow]) -> None:
        """Record rows that are not there though something says that they were."""
        for row in rows:
            self.named.setdefault(table, {}).setdefault(row.id, row)

    def documents(self) -> Set[str]:
        """Return the documents of which memories are lost, by the id of their first part."""
        rows = self.named.get("memories", {}).values()
        return {root_id(row.document_id) for row in rows if row.document_id}

    @property
    def is_all_named(self) -> bool:
        """Whether of each lost memory it is known which one it is."""
        return len(self.named.get("memories", {})) >= self.rows.get("memories", 0)

    def report(self, snapshot: Snapshot, sources: Sources, *, planned: bool) -> Iterator[Step]:
        """Yield what is lost for good of each table.

        Args:
            snapshot: The tables by now.
            sources: Where documents are from.
            planned: Whether documents are still to be read again.
        """
        is_pending = planned or self.waits
        for table in _NOUNS:
            missing = self._missing(table, snapshot, is_pending)
            lost = max(self._count_missing(table, snapshot, is_pending), len(missing))
            if not lost:
                continue
            places = sources(row.document_id or row.id for row in missing)
            rows = tuple(
                replace(row, source=row.source or places.get(row.document_id or row.id, ""))
                for row in missing
            )
            verb = "would be lost" if planned else "lost"
            message = (
                f"{format_count(lost, *_NOUNS[table])} {verb} for good: {_row_names(rows, lost)}"
            )
            yield Step(table, message, lost, rows)

    def _missing(self, table: TableName, snapshot: Snapshot, is_pending: bool) -> list[LostRow]:
        named = self.named.get(table, {})
        there = set(snapshot.get(table, list(named), ["id"])["id"].to_pylist()) if named else set()
        rows = [row for row in named.values() if row.id not in there]
        return [row for row in rows if not (is_pending and self._comes_back(row))]

    def _comes_back(self, row: LostRow) -> bool:
        return root_id(row.document_id or row.id) in self.again

    def _count_missing(self, table: TableName, snapshot: Snapshot, is_pending: bool) -> int:
        """Return how many of the lost rows have not come back."""
        lost = self.rows.get(table, 0)
        if not lost or (is_pending and self.again):
            return 0
        batches = snapshot.batches(table, None, ["id"])
        return lost - sum(int(self._before[table].lacks(batch["id"]).sum()) for batch in batches)


def _row_names(rows: tuple[LostRow, ...], lost: int) -> str:
    parts = [f"{row.id} ({row.source})" if row.source else row.id for row in rows[:MAX_NAMED]]
    if len(rows) > MAX_NAMED:
        parts.append(f"{len(rows) - MAX_NAMED:,} others")
    if lost > len(rows):
        parts.append(f"{lost - len(rows):,} that nothing names")
    return ", ".join(parts)


MAX_FAILURES_NAMED = 5
"""Documents that could not be brought back and are named each."""
EMBEDDED_TOGETHER = 256
_SECOND = 2
_FINAL = (FileNotFoundError.__name__, ChangedSource.__name__)
"""What keeps a document from being read again that no other try changes."""


class Repair(Struct):
    """The rows of one knowledge base, whose tables and ledger can be read by now.

    Args:
        base: The open knowledge base.
        files: Where its files are; a copy of it to try things on has none of its own.
        verifier: Knows which files of tables are not as they were written.
        dry_run: Whether to say alone what would be done.
        thorough: Whether to look into each document for what is missing, as after rows were lost.
        losses: What reading the tables has lost.
    """

    base: KnowledgeBase
    files: Layout
    verifier: Verifier
    dry_run: bool = False
    thorough: bool = False
    losses: Losses = field(default_factory=Losses)

    def run(self) -> Iterator[Step]:
        """Do all that is to be done, yielding each step when it is done."""
        yield from self._without_duplicates()
        yield from self._without_deleted()
        self._name_predecessors()
        yield from self._report_restored()
        if not self.dry_run:  # what stays without its document is known only now
            yield from self._with_documents()
        yield from self._with_versions()
        yield from self._written_anew()
        yield from self._without_dangling()
        yield from self._with_vectors()
        yield from self._with_graph()
        yield from self._without_loose_ends()
        yield from self._complete_forgetting()
        yield from self._report_missing()

    @property
    def _agreement(self) -> CrossReferences:
        return CrossReferences(self.base.store.snapshot())

    def _write(self, change: Callable[[Transaction], object]) -> None:
        if not self.dry_run:
            with self.base.store.write() as transaction:
                change(transaction)

    # --- rows that are there twice ---

    def _without_duplicates(self) -> Iterator[Step]:
        for table in TABLES:
            duplicates = list(self._agreement.duplicates(table))
            if duplicates:
                self._write(partial(_keep_one, table=table, ids=duplicates))
                yield Step(table, f"kept one row of each of {format_count(len(duplicates), 'id')}")

    # --- rows that are there again ---

    def _without_deleted(self) -> Iterator[Step]:
        """Delete again what an earlier version has of documents that were deleted by hand."""
        deleted = self.base.store.ledger.deletions.ids()
        again = [document for document in self._agreement.orphans() if document in deleted]
        if not again:
            return
        where = col("document_id").is_in(again)
        rows = self.base.store.snapshot().scan("memories", where, ["id"])["id"].to_pylist()
        self._write(lambda transaction: erase_rows(transaction, "memories", rows))
        verb = "would delete" if self.dry_run else "deleted"
        amount = f"{_memories(rows)} of {format_count(len(again), 'document')}"
        yield Step("memories", f"{verb} again what had been deleted: {amount}")

    # --- documents and memories that are lost ---

    def _name_predecessors(self) -> None:
        """Name lost memories that were edited: what ended since the last indexing no index has."""
        if self.losses.is_all_named:
            return
        ledger, snapshot = self.base.store.ledger, self.base.store.snapshot()
        known = self._agreement.memories
        gone = ledger.deletions.ids() | ledger.forgotten.gone_ids()
        written = ledger.audit.memories() | ledger.changes.memories()
        missing = [id_ for id_ in written if not known.has(id_) and id_ not in gone]
        if not missing:
            return
        for id_, newer in lost_predecessors(snapshot, missing).items():
            # Reading a document again gives the first version of what was drawn from it.
            document = newer["document_id"] if newer["version"] == _SECOND else None
            self.losses.note("memories", [LostRow(id_, document, newer["source"])])

    def _report_restored(self) -> Iterator[Step]:
        self._without_doubtful()
        lost = self._lost_documents()
        if not lost:
            return
        number, failed = self._plan(lost) if self.dry_run else self._read_again(lost)
        if number:
            verb = "would read" if self.dry_run else "read"
            yield Step("documents", f"{verb} {format_count(number, 'document')} again")
        self.losses.waits = any(outcome.error not in _FINAL for outcome in failed)
        yield from _report_failures(failed)

    def _plan(self, lost: Sequence[LostDocument]) -> tuple[int, list[FileOutcome]]:
        """Return how many documents would be read again, and which cannot be."""
        again = list(documents_to_recover(self.base.store, lost))
        ready = [each.document_id for each in again if isinstance(each, WantedSource)]
        self.losses.again.update(ready)
        return len(ready), [each for each in again if isinstance(each, FileOutcome)]

    def _read_again(self, lost: Sequence[LostDocument]) -> tuple[int, list[FileOutcome]]:
        """Read documents again; return how many, and which could not be."""
        self.losses.again.update(each.document_id for each in lost)
        report = self.base.services.ingestor.bring_back(lost)
        return report.ingested, [each for each in report.outcomes if each.outcome == "failed"]

    def _lost_documents(self) -> list[LostDocument]:
        """Return the documents with missing or wrong rows, each with its file."""
        agreement = self._agreement
        entries = self.base.store.ledger.files.entries(["done"])
        blocked = self.base.store.ledger.deletions.blocked_documents()
        of_documents = (e for e in entries if e.document_id and e.document_id not in blocked)
        places = {e.document_id: inbox_source(self.files, e) for e in of_documents}
        parts: dict[str, list[str]] = {}
        for entry in agreement.unknown(entries):
            parts.setdefault(entry.document_id or "", [])
        for orphan in agreement.orphans():
            parts.setdefault(root_id(orphan), []).append(orphan)
            self.losses.note("documents", [LostRow(orphan)])
        lost = {root_id(id_) for id_ in agreement.without_memories()} - parts.keys()
        broken = set(self._broken_roots()) - parts.keys() - lost
        broken -= {root_id(row.id) for row in self._doubtful_rows.get("documents", ())}
        readable = {root for root in broken if places.get(root) or self._is_record(root)}
        roots = [*parts, *sorted(lost), *sorted(readable)]
        found = [LostDocument(root, places.get(root), tuple(parts.get(root, ()))) for root in roots]
        return [each for each in found if each.source is not None or each.document_id not in parts]

    def _broken_roots(self) -> Iterator[str]:
        """Yield the roots of documents of which a memory is missing or is not where it says."""
        agreement = self._agreement
        for document, passages in documents_with_passages(agreement.snapshot):
            wrong = not all(is_at_offsets(document["text"], passage) for passage in passages)
            if wrong or (self.thorough and _is_incomplete(agreement, document, passages)):
                yield root_id(document["id"])
        if self.thorough:
            yield from self.losses.documents()
        yield from self._doubtful_roots()
        if self.thorough and not self.losses.is_all_named:
            deleted = self.base.store.ledger.deletions.ids()
            lacking = documents_lacking_memories(agreement.snapshot, agreement.memories, deleted)
            yield from map(root_id, lacking)

    def _doubtful_roots(self) -> Iterator[str]:
        """Yield the roots of documents with memories in files that have changed."""
        for row in self._doubtful_rows.get("memories", ()):
            if row.document_id:
                yield root_id(row.document_id)

    @property
    def _doubtful_rows(self) -> Mapping[TableName, Sequence[LostRow]]:
        """The rows of files in which bytes have changed, so that any may be wrong."""
        return self.verifier.doubtful_rows(self.base.store.ledger.head())

    def _without_doubtful(self) -> None:
        """Let go of documents' rows of files that have changed where their own files give them.

        They are lost then, and are read again; a copy to try things on is changed, too.
        """
        rows = self._doubtful_rows.get("documents", ())
        files = self.base.store.ledger.files.entries(["done"]) if rows else ()
        again = {entry.document_id for entry in files if self._can_be_read(entry)}
        ids = [row.id for row in rows if root_id(row.id) in again]
        if ids:
            with self.base.store.write() as transaction:
                delete_rows(transaction, "documents", col("id").is_in(ids))

    def _written_anew(self) -> Iterator[Step]:
        """Write rows of files that have changed anew where nothing else gave them, and name them.

        What is wrong with them nothing says; they are kept, for most of them are as they were.
        """
        for table, rows in self._doubtful_rows.items():
            left = tuple(row for row in rows if not (self.dry_run and self._comes_anew(row)))
            ids = [row.id for row in left]
            for some in in_portions(ids):
                self._write(partial(_write_anew, table=table, ids=some))
            if left:
                message = (
                    f"kept {format_count(len(left), 'row')} of files in which bytes have changed"
                )
                named = some_of(ids, MAX_FAILURES_NAMED)
                yield Step(table, f"{message}, and one may be wrong: {named}", len(left), left)

    def _comes_anew(self, row: LostRow) -> bool:
        """Return whether reading documents again will give a row; what has a history stays."""
        if root_id(row.document_id or row.id) not in self.losses.again:
            return False
        columns = ["version", "superseded_by"]
        found = self.base.store.snapshot().get("memories", [row.id], columns).to_pylist()
        return all(each["version"] == 1 and each["superseded_by"] is None for each in found)

    def _is_record(self, root: str) -> bool:
        found = self.base.store.snapshot().get("documents", [root], ["reader"])
        return RECORD_READER in found["reader"].to_pylist()

    def _with_documents(self) -> Iterator[Step]:
        """Make documents anew from the passages that are left of those without any file."""
        orphans = list(self._agreement.orphans())
        if not orphans:
            return
        now = self.base.clock()
        rows, bare = documents_from_passages(self.base.store.snapshot(), orphans, now)
        self._write(lambda t: append_rows(t, "documents", rows))
        if rows.num_rows:
            amount = format_count(rows.num_rows, "document")
            yield Step("documents", f"made {amount} anew from the passages that are left")
        if bare:
            self._write(lambda t: _detach(t, bare))
            amount = format_count(len(bare), "document")
            yield Step("memories", f"kept what was drawn from {amount} without a trace, on its own")

    def _with_versions(self) -> Iterator[Step]:
        """Let what was edited end again, where it came back as it was before."""
        pairs = unended_predecessors(self.base.store.snapshot()) if self.thorough else {}
        if pairs:
            self._write(partial(end_predecessors, pairs=pairs))
            yield Step("memories", f"let end again what had been edited: {_memories([*pairs])}")

    def _with_graph(self) -> Iterator[Step]:
        """Derive entities and wikilinks again if some were lost."""
        if not self.losses.rows.keys() & {"entities", "relations"}:
            return
        if self.dry_run:
            yield Step("entities", "would make what is lost of the graph anew from the documents")
            return
        derived = derive_all(self.base.store.snapshot())
        with self.base.store.write() as transaction:
            made = add_missing(transaction, *derived)
        if made:
            yield Step("entities", f"made {made:,} of the graph anew from the documents")

    # --- what refers to nothing ---

    def _without_dangling(self) -> Iterator[Step]:
        agreement = self._agreement
        self.losses.note("memories", self._named_by_others(agreement))
        if rows := list(dict.fromkeys(agreement.dangling("source_ids"))):
            self._write(partial(_drop_lost, agreement=agreement, ids=rows))
            yield Step("memories", f"dropped source_ids that are lost, of {_memories(rows)}")
        if rows := list(agreement.dangling("superseded_by")):
            self._write(partial(revive_memories, ids=rows))
            yield Step(
                "memories", f"let hold again what ended in favour of lost ones: {_memories(rows)}"
            )

    def _named_by_others(self, agreement: CrossReferences) -> Iterator[LostRow]:
        """Yield the memories that others name and that are not there."""
        naming = [*agreement.dangling("source_ids"), *agreement.dangling("superseded_by")]
        columns = ["document_id", "source", "source_ids", "superseded_by"]
        for row in self.base.store.snapshot().get("memories", naming, columns).to_pylist():
            named = [LostRow(id_, row["document_id"], row["source"]) for id_ in row["source_ids"]]
            if row["superseded_by"]:  # an edited version, which no reading of the document gives
                named.append(LostRow(row["superseded_by"], None, row["source"]))
            yield from (each for each in named if not agreement.memories.has(each.id))

    def _without_loose_ends(self) -> Iterator[Step]:
        agreement = self._agreement
        dangling = list(dict.fromkeys(agreement.dangling_relations()))
        if dangling:
            self._write(lambda t: erase_rows(t, "relations", dangling))
            yield Step("relations", f"dropped {len(dangling):,} of what is not there")
        unsupported = list(dict.fromkeys(self._agreement.dangling("memory_ids", "relations")))
        if unsupported:
            drop = partial(_drop_lost, agreement=agreement, ids=unsupported)
            self._write(partial(drop, table="relations", column="memory_ids"))
            yield Step("relations", f"dropped memory_ids that are lost, of {len(unsupported):,}")
        if unnamed := list(self._agreement.orphan_entities()):
            self._write(drop_orphan_entities)
            yield Step("entities", f"dropped {len(unnamed):,} that nothing names")

    def _complete_forgetting(self) -> Iterator[Step]:
        """Complete what was to be forgotten and was cut off."""
        unfinished = self.base.store.ledger.jobs.unfinished_jobs(FORGET)
        if not unfinished:
            return
        amount = format_count(len(unfinished), "forget")
        if self.dry_run:
            yield Step("forget", f"would complete {amount} that had been cut off")
            return
        left = dict.fromkeys(each.place for each in self.base.forget().left)
        more = f"; some of it is left in {', '.join(left)}" if left else ""
        yield Step("forget", f"completed {amount} that had been cut off{more}")

    def _report_missing(self) -> Iterator[Step]:
        """Report what is still missing, and release files that no longer became documents."""
        files = self.base.store.ledger.files
        unknown = self._agreement.unknown(files.entries(["done"]))
        self.losses.note(
            "documents", (LostRow(e.document_id or "", None, _name(e.path)) for e in unknown)
        )
        snapshot = self.base.store.snapshot()
        yield from self.losses.report(snapshot, self._sources, planned=self.dry_run)
        if self.dry_run:
            return
        for entry in unknown:
            if entry.document_id and not self._can_be_read(entry):
                files.release_document(entry.document_id)

    def _can_be_read(self, entry: FileEntry) -> bool:
        """Return whether a file is still there from which its document was made."""
        source = inbox_source(self.files, entry)
        try:
            return source is not None and is_file_of(identify(source), entry.document_id or "")
        except Unreadable:
            return False

    def _sources(self, documents: Iterable[str]) -> Mapping[str, str]:
        """Return where documents are from, as far as that is known."""
        wanted = [*documents]
        files = self.base.store.ledger.files.entries(["done"])
        found = {each.document_id: _name(each.path) for each in files if each.document_id}
        rows = self.base.store.snapshot().get("documents", wanted, ["id", "source"]).to_pylist()
        found |= {row["id"]: row["source"] for row in rows}
        return {id_: found.get(id_) or found.get(root_id(id_), "") for id_ in wanted}

    def _with_vectors(self) -> Iterator[Step]:
        bad = list(dict.fromkeys(id_ for id_, _ in bad_vectors(self.base.store.snapshot())))
        if not bad:
            return
        if not self.dry_run:
            for some in in_portions(bad, EMBEDDED_TOGETHER):
                rows = self._embed_rows(some)
                with self.base.store.write() as transaction:
                    amend_rows(transaction, "memories", rows)
        yield Step("memories", f"made the vectors of {_memories(bad)} anew")

    def _embed_rows(self, ids: Sequence[str]) -> pa.Table:
        import pyarrow as pa

        from memctl.schema.arrow_tables import VECTOR, vector_array

        rows = self.base.store.snapshot().get("memories", ids, EMBEDDED_COLUMNS)
        texts = embedded_texts(rows)
        return pa.table(
            {"id": rows["id"], VECTOR: vector_array(self.base.services.embedder.embed(texts))}
        )


def _name(path: str) -> str:
    return printable(Path(path).name)


def _memories(rows: Sequence[str]) -> str:
    return format_count(len(rows), "memory", "memories")


def _is_incomplete(agreement: CrossReferences, document: Row, passages: Passages) -> bool:
    """Return whether a document lacks a passage, or the gist that one of several passages has."""
    if document["status"] != "indexed":
        return False
    if not passages:
        return bool(document["text"].strip())
    gist = memory_id(document["id"], "gist", 0, len(document["text"]))
    has_one = len(passages) > 1 and not document["part"] and (document["summary"] or "").strip()
    lacks_gist = bool(has_one) and not agreement.memories.has(gist)
    return lacks_gist or has_gap(document, passages)


def _report_failures(failed: Sequence[FileOutcome]) -> Iterator[Step]:
    for outcome in failed[:MAX_FAILURES_NAMED]:
        yield Step("documents", f"not brought back: {outcome.reason}", lost_rows=1)
    if others := len(failed[MAX_FAILURES_NAMED:]):
        message = f"and {format_count(others, 'other')} not brought back"
        yield Step("documents", message, lost_rows=others)


# --- changes -------------------------------------------------------------------------------------


def _write_anew(transaction: Transaction, table: TableName, ids: Sequence[str]) -> None:
    from memctl.schema.arrow_tables import decodable

    put_rows(transaction, table, decodable(transaction.snapshot().get(table, ids)))


def _keep_one(transaction: Transaction, table: TableName, ids: Sequence[str]) -> None:
    rows = transaction.snapshot().scan(table, col("id").is_in(ids))
    replace_rows(transaction, table, ids, rows)


def _detach(transaction: Transaction, documents: Sequence[str]) -> None:
    """Let memories stand for themselves whose document is lost with all its passages."""
    where = col("document_id").is_in(documents)
    ids = transaction.snapshot().scan("memories", where, ["id"])["id"].to_pylist()
    set_columns(transaction, "memories", ids, document_id=None, start=None, end=None)


def _drop_lost(
    transaction: Transaction,
    agreement: CrossReferences,
    ids: Sequence[str],
    table: TableName = "memories",
    column: str = "source_ids",
) -> None:
    rows = transaction.snapshot().get(table, ids, ["id", column]).to_pylist()
    remaining = [[each for each in row[column] if agreement.memories.has(each)] for row in rows]
    set_columns(transaction, table, [row["id"] for row in rows], **{column: remaining})
