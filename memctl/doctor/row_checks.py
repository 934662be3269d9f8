"""Checks that the rows of tables and ledger agree, and that no row lacks what it refers to.

A citation has to be where its offsets say: ``document.text[start:end]``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from memctl.doctor.findings import REPAIR, Examination, Finding, damaged, ok, warning
from memctl.formatting import format_count
from memctl.ids import memory_id
from memctl.ingest.reprocessing import PASSAGE_COLUMNS, older_documents, stored_part
from memctl.language.inline_tags import is_navigation
from memctl.literals import QUOTING_READERS
from memctl.readers.text_files.chat_logs import is_left_out
from memctl.rows.references import orphan_entities
from memctl.rows.row_lifecycle import WITHOUT_MEMORIES
from memctl.schema.table_names import TableName
from memctl.store.ledger.work_repositories import FileEntry
from memctl.store.tables.filter_expressions import Expr, col

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from memctl.store.tables.snapshot import Snapshot

MAX_LISTED = 3
"""Ids that a finding names, as examples."""


class CrossReferences(Struct, dict=True):
    """What refers to what is not there, in the tables of one snapshot."""

    snapshot: Snapshot

    @cached_property
    def documents(self) -> HashedIds:
        """The ids of all documents."""
        return self.of("documents")

    @cached_property
    def memories(self) -> HashedIds:
        """The ids of all memories."""
        return self.of("memories")

    @cached_property
    def entities(self) -> HashedIds:
        """The ids of all entities."""
        return self.of("entities")

    def of(self, table: TableName) -> HashedIds:
        """Return the ids of all rows of a table."""
        return HashedIds(batch["id"] for batch in self.snapshot.batches(table, None, ["id"]))

    def duplicates(self, table: TableName) -> Iterator[str]:
        """Yield the ids of rows of a table that are there more than once."""
        ids, seen = self.of(table), set[str]()
        for batch in self.snapshot.batches(table, None, ["id"]) if ids.duplicates else ():
            found = set(batch["id"].filter(_mask(ids.repeated(batch["id"]))).to_pylist()) - seen
            seen |= found
            yield from sorted(found)

    def orphans(self) -> Iterator[str]:
        """Yield the ids of documents that are not there, though memories are theirs."""
        seen: set[str] = set()
        for batch in self.snapshot.batches("memories", None, ["document_id"]):
            column = batch["document_id"]
            lost = set(column.filter(_mask(self.documents.lacks(column))).to_pylist()) - seen
            seen |= lost
            yield from sorted(lost)

    def without_memories(self) -> list[str]:
        """Return the ids of live documents that have text and lost every memory.

        Documents whose memories were all deleted by hand are left out.
        """
        owners = HashedIds(
            b["document_id"] for b in self.snapshot.batches("memories", None, _OWNER)
        )
        live = col("status") == "indexed"
        found: list[str] = []
        for batch in self.snapshot.batches("documents", live, ["id"]):
            found += batch["id"].filter(_mask(owners.lacks(batch["id"]))).to_pylist()
        rows = self.snapshot.get("documents", found, ["id", "text", "metadata"]).to_pylist()
        lost = (
            row for row in rows if not json.loads(row["metadata"] or "{}").get(WITHOUT_MEMORIES)
        )
        return [row["id"] for row in lost if (row["text"] or "").strip()]

    def dangling(self, column: str, table: TableName = "memories") -> Iterator[str]:
        """Yield the ids of rows that name, in a column, a memory that is not there."""
        yield from _naming(self.snapshot, table, column, self.memories)

    def dangling_relations(self) -> Iterator[str]:
        """Yield the ids of relations with a missing end."""
        known = self.documents.union(self.memories).union(self.entities)
        for column in ("source_id", "target_id"):
            yield from _naming(self.snapshot, "relations", column, known)

    def orphan_entities(self) -> Iterator[str]:
        """Yield the names of entities that nothing names any more."""
        yield from (row["name"] for row in orphan_entities(self.snapshot))

    def unknown(self, entries: Sequence[FileEntry]) -> list[FileEntry]:
        """Return the files that are done though the documents that they became are not there."""
        import pyarrow as pa

        named = pa.array([entry.document_id for entry in entries], pa.string())
        return [entries[int(number)] for number in self.documents.lacks(named).nonzero()[0]]


_OWNER = ["document_id"]


def _naming(snapshot: Snapshot, table: TableName, column: str, known: HashedIds) -> Iterator[str]:
    """Yield the ids of rows whose column, or a value in it, is not among those that are known."""
    import pyarrow as pa

    for batch in snapshot.batches(table, None, ["id", column]):
        values, rows = batch[column], batch["id"]
        if pa.types.is_list(values.type):
            import pyarrow.compute as pc

            rows, values = rows.take(pc.list_parent_indices(values)), values.flatten()
        yield from dict.fromkeys(rows.filter(_mask(known.lacks(values))).to_pylist())


def _mask(flags: object) -> pa.Array:
    import pyarrow as pa

    return pa.array(flags, pa.bool_())


# --- the checks ----------------------------------------------------------------------------------


def check_rows(examination: Examination) -> Iterator[Finding]:
    """Look for duplicate rows, and rows that refer to missing ones."""
    agreement = CrossReferences(examination.snapshot)
    readable = [table for table in examination.states if examination.can_read(table)]
    known = examination.ledger.manifests.row_counts()
    for table in readable:
        ids = agreement.of(table)
        committed = known.get((table, examination.states[table].version), len(ids))
        if ids.duplicates:
            yield damaged("rows", table, f"{format_count(ids.duplicates, 'id')} there twice")
        elif len(ids) != committed:
            amount = f"{format_count(len(ids), 'row')}, where the ledger knows of {committed:,}"
            yield damaged("rows", table, amount)
        else:
            yield ok("rows", table, f"{format_count(len(ids), 'id')}, each once")
    if {"documents", "memories"}.issubset(readable):
        yield from _check_documents(agreement)
        yield from _check_files(agreement, examination)
        yield from _check_pipeline_versions(examination)
    if "memories" in readable:
        yield from _check_references(agreement)
    if len(readable) == len(examination.states):
        yield from _check_graph(agreement)


def _check_documents(agreement: CrossReferences) -> Iterator[Finding]:
    orphaned = list(agreement.orphans())
    if orphaned:
        subject = f"memories of {format_count(len(orphaned), 'document')} that are not there"
        yield damaged("rows", "memories", f"{subject}: {some_of(orphaned)}")
    empty = agreement.without_memories()
    if empty:
        bare_documents = f"{format_count(len(empty), 'live document')} without any memory"
        yield damaged("rows", "documents", f"{bare_documents}: {some_of(empty)}")
    if not orphaned and not empty:
        yield ok("rows", "documents", "each live one has memories, and each memory its document")


def _check_pipeline_versions(examination: Examination) -> Iterator[Finding]:
    if older := older_documents(examination.snapshot):
        amount = f"{format_count(len(older), 'document')} taken in by an earlier version of memctl"
        hint = f"read them again: memctl document reprocess --older -k {examination.layout.name}"
        yield warning("rows", "documents", amount, hint)


def _check_files(agreement: CrossReferences, examination: Examination) -> Iterator[Finding]:
    done = examination.ledger.files.entries(["done"])
    lost = agreement.unknown(done)
    if lost:
        message = f"{format_count(len(lost), 'file')} done, of which the document is not there"
        yield damaged("rows", "ledger", f"{message}: {some_of([entry.path for entry in lost])}")
    else:
        yield ok(
            "rows", "ledger", f"{format_count(len(done), 'file')} done, each with its document"
        )


def _check_references(agreement: CrossReferences) -> Iterator[Finding]:
    for column in ("source_ids", "superseded_by"):
        lost = list(dict.fromkeys(agreement.dangling(column)))
        if lost:
            message = (
                f"{format_count(len(lost), 'memory', 'memories')} with {column} that are not there"
            )
            yield damaged("rows", "memories", f"{message}: {some_of(lost)}")
        else:
            yield ok("rows", "memories", f"all {column} are there")


def _check_graph(agreement: CrossReferences) -> Iterator[Finding]:
    unsupported = agreement.dangling("memory_ids", "relations")
    dangling = list(dict.fromkeys([*agreement.dangling_relations(), *unsupported]))
    if dangling:
        message = (
            f"{format_count(len(dangling), 'relation')} of what is not there: {some_of(dangling)}"
        )
        yield warning("rows", "relations", message, REPAIR)
    unnamed = list(agreement.orphan_entities())
    if unnamed:
        message = f"{format_count(len(unnamed), 'entity', 'entities')} that nothing names"
        yield warning("rows", "entities", f"{message}: {some_of(unnamed)}", REPAIR)
    if not dangling and not unnamed:
        yield ok("rows", "relations", "all that they and entities name is there")


def some_of(values: Sequence[str], limit: int = MAX_LISTED) -> str:
    """Return the first of some values, as examples."""
    listed = ", ".join(values[:limit])
    return f"{listed}, ..." if len(values) > limit else listed


class HashedIds:
    """The ids that some columns have; two different ones are taken for one once in 10^19."""

    def __init__(self, columns: Iterable[pa.Array | pa.ChunkedArray] = ()) -> None:
        parts = [_hashes(column) for column in columns]
        self._sorted = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *parts]))

    def __len__(self) -> int:
        return len(self._sorted)

    @property
    def duplicates(self) -> int:
        """How many ids were there before."""
        return int((self._sorted[1:] == self._sorted[:-1]).sum())

    def has(self, value: str) -> bool:
        """Return whether one id is there."""
        place = int(np.searchsorted(self._sorted, hash(value)))
        return place < len(self._sorted) and int(self._sorted[place]) == hash(value)

    def repeated(self, column: pa.Array | pa.ChunkedArray) -> NDArray[np.bool_]:
        """Return for each value of a column whether it is there more than once."""
        duplicates = self._sorted[1:][self._sorted[1:] == self._sorted[:-1]]
        return np.isin(_hashes(column), duplicates)

    def union(self, other: HashedIds) -> HashedIds:
        """Return the ids of both."""
        both = HashedIds()
        both._sorted = np.union1d(self._sorted, other._sorted)
        return both

    def lacks(self, column: pa.Array | pa.ChunkedArray) -> NDArray[np.bool_]:
        """Return for each value of a column whether it is missing here; nulls are not."""
        wanted = _hashes(column)
        if not len(self._sorted):
            found = np.zeros(len(wanted), dtype=bool)
        else:
            places = np.searchsorted(self._sorted, wanted)
            found = self._sorted[np.minimum(places, len(self._sorted) - 1)] == wanted
        present: NDArray[np.bool_] = np.asarray(column.is_valid(), dtype=bool)
        return present & ~found


def _hashes(column: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
    return np.fromiter(map(hash, column.to_pylist()), dtype=np.int64, count=len(column))


# --- whether citations stand where they are said to stand -----------------------------------------

MANY_MEMORIES = 200_000
"""Above this many a sample is looked at; ids are hashes, so those that begin alike are one."""
READ_BYTES = 8 << 20
"""Of documents' texts, at once."""
_EVIDENCE = ["document_id", "start", "end", "text"]
_FRONT_MATTER = ("---", "+++")

Row = Mapping[str, Any]
Passages = Sequence[Row]


def check_citations(examination: Examination) -> Iterator[Finding]:
    """Compare verbatim memories with the documents that they are from."""
    if not examination.can_read("documents", "memories"):
        return
    rows = examination.states["memories"].rows
    prefix = "" if examination.deep else sample_prefix(rows)
    looked, wrong = 0, 0
    gappy: list[str] = []
    for document, passages in documents_with_passages(examination.snapshot, prefix):
        text = document["text"]
        looked += len(passages)
        wrong += sum(not is_at_offsets(text, passage) for passage in passages)
        if passages and has_gap(document, passages):
            gappy.append(document["id"])
    part = f"{looked:,} passages" + (f", a sample; --deep looks at all of {rows:,}" * bool(prefix))
    if wrong:
        yield damaged("citations", "memories", f"{wrong:,} of {part} do not stand where they say")
    if gappy:
        amount = f"{format_count(len(gappy), 'document')} of which passages are missing"
        hint = "read them again: memctl document reprocess"
        yield warning("citations", "documents", f"{amount}: {some_of(gappy)}", hint)
    if not wrong and not gappy:
        yield ok("citations", "memories", f"{part} stand where they say")


def sample_prefix(memories: int) -> str:
    """Return how the ids begin of a sample of the documents; empty where all can be looked at."""
    digits, share = 0, memories
    while share > MANY_MEMORIES:
        digits, share = digits + 1, share // 16
    return f"d_{'0' * digits}" if digits else ""


def documents_with_passages(snapshot: Snapshot, prefix: str = "") -> Iterator[tuple[Row, Passages]]:
    """Yield each document with its verbatim memories: id, part, status, text, summary, reader."""
    where: Expr | None = col("id").like_glob(f"{prefix}*") if prefix else None
    columns = ["id", "part", "status", "text", "summary", "reader"]
    for batch in snapshot.batches("documents", where, columns, batch_bytes=READ_BYTES):
        rows = batch.to_pylist()
        passages = passages_of(snapshot, [row["id"] for row in rows])
        for row in rows:
            yield row, passages[row["id"]]


def passages_of(
    snapshot: Snapshot, ids: Sequence[str], columns: Sequence[str] = _EVIDENCE
) -> dict[str, list[Row]]:
    """Return the verbatim memories of documents, by document."""
    found: dict[str, list[Row]] = {id_: [] for id_ in ids}
    where = col("document_id").is_in(ids) & (col("level") == "evidence")
    for row in snapshot.each_row("memories", where, columns):
        found[row["document_id"]].append(row)
    return found


def passages_with_offsets(
    snapshot: Snapshot, ids: Sequence[str], columns: Sequence[str]
) -> dict[str, list[Row]]:
    """Return those of documents that say where they stand; of documents that have any."""
    found = passages_of(snapshot, ids, columns)
    kept = {id_: [row for row in rows if row["start"] is not None] for id_, rows in found.items()}
    return {id_: rows for id_, rows in kept.items() if rows}


def is_at_offsets(text: str, passage: Row) -> bool:
    """Return whether a passage is what the text has between its offsets."""
    start, end = passage["start"], passage["end"]
    return start is None or end is None or text[start:end] == passage["text"]


def has_gap(document: Row, passages: Passages) -> bool:
    """Return whether passages leave out a part of the text that its reader does not leave out."""
    text = document["text"]
    spans = sorted((p["start"], p["end"]) for p in passages if p["start"] is not None)
    if not spans or document["reader"].startswith(QUOTING_READERS):
        return False
    begins_bare = text.startswith(_FRONT_MATTER) or _is_navigation(text[: spans[0][0]])
    reached = spans[0][0] if begins_bare else 0
    for start, end in (*spans, (len(text), len(text))):
        if start > reached and not is_left_out(text[reached:start]):
            return True
        reached = max(reached, end)
    return False


def _is_navigation(top: str) -> bool:
    """Return whether a text is rows of links and the day above them, as at the top of a note."""
    blocks = filter(None, map(str.strip, top.split("\n\n")))
    return all(block.startswith("#") or is_navigation(block) for block in blocks)


def documents_lacking_memories(
    snapshot: Snapshot, memories: HashedIds, deleted: Set[str]
) -> Iterator[str]:
    """Yield the ids of live documents that lack a statement though it was not deleted.

    Documents that a model understood are left out: only the model could say what is missing.

    Args:
        snapshot: Where they are.
        memories: The ids of all memories.
        deleted: The ids of deleted memories.
    """
    import pyarrow as pa

    from memctl.models.task_encoder import load_task_encoder
    from memctl.schema.arrow_tables import document_rows
    from memctl.understanding.builtin_understander import BuiltinUnderstander

    understander = BuiltinUnderstander(encoder=load_task_encoder())
    live = (col("status") == "indexed") & (col("method") == understander.method)
    for batch in snapshot.batches("documents", live, batch_bytes=READ_BYTES):
        documents = document_rows(pa.Table.from_batches([batch]))
        ids = [each.id for each in documents]
        passages = passages_with_offsets(snapshot, ids, PASSAGE_COLUMNS)
        texts = [stored_part(each, passages.get(each.id, ())).text for each in documents]
        for document, understood in zip(documents, understander.understand(texts), strict=True):
            made = {
                memory_id(document.id, each.type, each.start, each.end)
                for each in understood.distilled
            }
            if any(not memories.has(id_) for id_ in made - deleted):
                yield document.id
