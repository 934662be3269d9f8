"""Whether the rows of the tables and the ledger agree: nothing without what it belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from memctl.doctor.findings import REPAIR, Examined, Finding, counted, damaged, ok, warning
from memctl.doctor.ids import Ids
from memctl.ingest.nameless import nameless
from memctl.store.books import FileEntry
from memctl.store.filters import col
from memctl.store.names import TABLES, TableName

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.store.snapshot import Snapshot

MOST_TOLD = 3
"""Ids that a finding names, as examples."""


@dataclass
class Agreement:
    """What refers to what is not there, in the tables of one snapshot."""

    snapshot: Snapshot

    @cached_property
    def documents(self) -> Ids:
        """The ids of all documents."""
        return self.of("documents")

    @cached_property
    def memories(self) -> Ids:
        """The ids of all memories."""
        return self.of("memories")

    @cached_property
    def entities(self) -> Ids:
        """The ids of all entities."""
        return self.of("entities")

    def of(self, table: TableName) -> Ids:
        """Return the ids of all rows of a table."""
        return Ids(batch["id"] for batch in self.snapshot.batches(table, None, ["id"]))

    def twins(self, table: TableName) -> Iterator[str]:
        """Yield the ids of rows of a table that are there more than once."""
        ids, seen = self.of(table), set[str]()
        for batch in self.snapshot.batches(table, None, ["id"]) if ids.twins else ():
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
        """Return the ids of live documents that have text and not one memory."""
        owners = Ids(b["document_id"] for b in self.snapshot.batches("memories", None, _OWNER))
        live = col("status") == "indexed"
        bare: list[str] = []
        for batch in self.snapshot.batches("documents", live, ["id"]):
            bare += batch["id"].filter(_mask(owners.lacks(batch["id"]))).to_pylist()
        texts = self.snapshot.get("documents", bare, ["id", "text"]).to_pylist()
        return [row["id"] for row in texts if (row["text"] or "").strip()]

    def dangling(self, column: str, table: TableName = "memories") -> Iterator[str]:
        """Yield the ids of rows that name, in a column, a memory that is not there."""
        yield from _naming(self.snapshot, table, column, self.memories)

    def loose_ends(self) -> Iterator[str]:
        """Yield the ids of relations one end of which is not there."""
        known = self.documents.union(self.memories).union(self.entities)
        for column in ("source_id", "target_id"):
            yield from _naming(self.snapshot, "relations", column, known)

    def nameless(self) -> Iterator[str]:
        """Yield the names of entities that nothing names any more."""
        yield from (row["name"] for row in nameless(self.snapshot))

    def unknown(self, entries: Sequence[FileEntry]) -> list[FileEntry]:
        """Return the files that are done though the documents that they became are not there."""
        import pyarrow as pa

        named = pa.array([entry.document_id for entry in entries], pa.string())
        return [entries[int(number)] for number in self.documents.lacks(named).nonzero()[0]]


_OWNER = ["document_id"]


def _naming(snapshot: Snapshot, table: TableName, column: str, known: Ids) -> Iterator[str]:
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


def check_rows(examined: Examined) -> Iterator[Finding]:
    """Look for rows that are there twice, or belong to or name what is not there."""
    agreement = Agreement(examined.snapshot)
    readable = [table for table in TABLES if examined.can_read(table)]
    known = examined.ledger.manifests.rows()
    for table in readable:
        ids = agreement.of(table)
        committed = known.get((table, examined.states[table].version), len(ids))
        if ids.twins:
            yield damaged("rows", table, f"{counted(ids.twins, 'id')} there twice")
        elif len(ids) != committed:
            told = f"{counted(len(ids), 'row')}, where the ledger knows of {committed:,}"
            yield damaged("rows", table, told)
        else:
            yield ok("rows", table, f"{counted(len(ids), 'id')}, each once")
    if {"documents", "memories"}.issubset(readable):
        yield from _check_documents(agreement)
        yield from _check_files(agreement, examined)
    if "memories" in readable:
        yield from _check_references(agreement)
    if len(readable) == len(TABLES):
        yield from _check_graph(agreement)


def _check_documents(agreement: Agreement) -> Iterator[Finding]:
    orphaned = list(agreement.orphans())
    if orphaned:
        told = f"memories of {counted(len(orphaned), 'document')} that are not there"
        yield damaged("rows", "memories", f"{told}: {_some(orphaned)}")
    bare = agreement.without_memories()
    if bare:
        told = f"{counted(len(bare), 'live document')} without any memory"
        yield damaged("rows", "documents", f"{told}: {_some(bare)}")
    if not orphaned and not bare:
        yield ok("rows", "documents", "each live one has memories, and each memory its document")


def _check_files(agreement: Agreement, examined: Examined) -> Iterator[Finding]:
    done = examined.ledger.files.entries(["done"])
    lost = agreement.unknown(done)
    if lost:
        told = f"{counted(len(lost), 'file')} done, of which the document is not there"
        yield damaged("rows", "ledger", f"{told}: {_some([entry.path for entry in lost])}")
    else:
        yield ok("rows", "ledger", f"{counted(len(done), 'file')} done, each with its document")


def _check_references(agreement: Agreement) -> Iterator[Finding]:
    for column in ("source_ids", "superseded_by"):
        lost = list(dict.fromkeys(agreement.dangling(column)))
        if lost:
            told = f"{counted(len(lost), 'memory', 'memories')} with {column} that are not there"
            yield damaged("rows", "memories", f"{told}: {_some(lost)}")
        else:
            yield ok("rows", "memories", f"all {column} are there")


def _check_graph(agreement: Agreement) -> Iterator[Finding]:
    unborne = agreement.dangling("memory_ids", "relations")
    loose = list(dict.fromkeys([*agreement.loose_ends(), *unborne]))
    if loose:
        told = f"{counted(len(loose), 'relation')} of what is not there: {_some(loose)}"
        yield warning("rows", "relations", told, REPAIR)
    unnamed = list(agreement.nameless())
    if unnamed:
        told = f"{counted(len(unnamed), 'entity', 'entities')} that nothing names"
        yield warning("rows", "entities", f"{told}: {_some(unnamed)}", REPAIR)
    if not loose and not unnamed:
        yield ok("rows", "relations", "all that they and entities name is there")


def _some(values: Sequence[str]) -> str:
    told = ", ".join(values[:MOST_TOLD])
    return f"{told}, ..." if len(values) > MOST_TOLD else told
