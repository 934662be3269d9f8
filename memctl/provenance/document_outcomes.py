"""The documents that files became, as they are now."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from memctl.ingest.discovery.sources import path_of, printable
from memctl.provenance.file_provenance import ContentCounts, FileProvenance, MemoryCounts
from memctl.rows.supersession import is_next_version, lineage_of
from memctl.store.tables.filter_expressions import col

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.kb_settings import KnowledgeBaseSettings, Layout
    from memctl.provenance.file_provenance import FileReference
    from memctl.store.ledger.work_repositories import FileEntry
    from memctl.store.store import Store
    from memctl.store.tables.snapshot import Snapshot


_COLUMNS = (
    "id", "root_id", "part", "source", "title", "status", "reader", "method", "pipeline_version",
    "ingested_at", "missing", "namespace", "metadata",
)  # fmt: skip


class DocumentOutcomes:
    """The documents that files became, as they are now.

    Args:
        layout: Where the knowledge base stands.
        settings: Its settings.
        store: Its tables and ledger.
        ids: Of the documents.
        now: The time.
    """

    def __init__(
        self,
        layout: Layout,
        settings: KnowledgeBaseSettings,
        store: Store,
        ids: Iterable[str],
        now: datetime,
    ) -> None:
        self._layout = layout
        self._private = settings.private_namespaces
        self._files, self._usage = store.ledger.files, store.ledger.usage
        self._snapshot = store.snapshot()
        self._now = now
        self._found = self._read(sorted(ids))

    def complete(self, receipt: FileProvenance, noted: int | None = None) -> FileProvenance:
        """Add to a receipt what is known of its document, if that is still there.

        Args:
            receipt: The receipt.
            noted: How many memories were made of it; None where that was not noted.
        """
        id_ = receipt.document_id or ""
        found = self._found.get(id_)
        if found is None:
            return receipt
        made: MemoryTally = found["made"]
        return replace(
            receipt,
            document_status=found["status"],
            document_source=found["source"],
            title="" if found["namespace"] in self._private else found["title"] or "",
            understood_by=found["method"],
            missing=tuple(found["missing"] or ()),
            models=found["models"],
            passages=made.level(id_, "evidence"),
            facts=made.level(id_, "memory"),
            content=made.content(id_, found["metadata"]),
            memories=made.memories(id_, noted),
            same_as=self._place(id_, found["source"]) if receipt.outcome == "known" else "",
            reader=found["reader"] if receipt.outcome == "remembered" else receipt.reader,
        )

    def _place(self, id_: str, source: str) -> str:
        """Return where the file is that a document was made from, else what it goes by."""
        entry = self._files.of_documents([id_]).get(id_)
        return printable(self._layout.found_here(Path(entry.path))) if entry else source

    def unnoted(self, asked: FileReference) -> list[FileProvenance]:
        """Return the documents of a file whose reading was not noted, the newest first."""
        import pyarrow as pa
        import pyarrow.compute as pc

        names = self._snapshot.scan("documents", col("part") == 0, ["id", "source"])
        within = asked.within(self._layout).removeprefix(f"{self._layout.processed.name}{os.sep}")
        meant = pa.array([printable(asked.path), asked.name, within or asked.name], pa.string())
        is_same = pc.or_(
            pc.is_in(names["source"], meant), pc.ends_with(names["source"], f"/{asked.name}")
        )
        ids = [id_ for id_ in names.filter(is_same)["id"].to_pylist() if id_ not in self._found]
        self._found |= self._read(ids)
        entries = self._files.of_documents(ids)
        found = [self._unnoted(id_, entries.get(id_)) for id_ in ids]
        found.sort(key=lambda receipt: str(receipt.decided_at), reverse=True)
        return [self.complete(receipt) for receipt in found]

    def _unnoted(self, id_: str, entry: FileEntry | None) -> FileProvenance:
        row = self._found[id_]
        place = self._layout.found_here(Path(entry.path)) if entry else path_of(row["source"])
        return FileProvenance(
            self._layout.name,
            row["source"],
            "remembered",
            decided_at=row["ingested_at"],
            pipeline_version=row["pipeline_version"],
            document_id=id_,
            place=printable(place) if entry else "",
            is_there=place.is_absolute() and place.is_file(),
        )

    def _read(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return documents by id, with what was made of them in all their parts."""
        if not ids:
            return {}
        parts = self._snapshot.scan("documents", col("root_id").is_in(ids), _COLUMNS).to_pylist()
        used = self._usage.of_documents(ids)
        made = MemoryTally(self._snapshot, {row["id"]: row["root_id"] for row in parts}, self._now)
        return {
            row["id"]: row | {"models": tuple(used.get(row["id"], ())), "made": made}
            for row in parts
            if row["id"] == row["root_id"]
        }


_MEMORY_COLUMNS = (
    "id", "document_id", "level", "type", "created_at", "version", "superseded_by", "expires_at",
    "page",
)  # fmt: skip

Row = Mapping[str, Any]


class MemoryTally:
    """The memories of some documents.

    Args:
        snapshot: Where they are.
        roots: The documents of each part, by the part's id.
        now: The time.
    """

    def __init__(self, snapshot: Snapshot, roots: Mapping[str, str], now: datetime) -> None:
        self._roots = roots
        self._now = now
        where = col("document_id").is_in(list(roots))
        table = snapshot.scan("memories", where, _MEMORY_COLUMNS)
        self._parts = Counter(roots.values())
        self._counts = self._count_memories(table)
        self._originals = self._counted_originals(table)
        self._last_pages = self._furthest(table)
        self._changed = self._histories(table)
        self._insights = self._resting_on(snapshot, table)

    def level(self, root: str, level: str) -> int:
        """Return how many memories of a level a document has."""
        return sum(number for (at, _), number in self._counts[root].items() if at == level)

    def content(self, root: str, metadata: str | None) -> ContentCounts:
        """Return how much of a document there was to read.

        Args:
            root: Its id.
            metadata: What else its reader found, as JSON.
        """
        found = json.loads(metadata or "{}")
        length, listed = found.get("duration"), found.get("attachments")
        return ContentCounts(
            parts=self._parts[root],
            pages=self._last_pages.get(root),
            seconds=float(length) if isinstance(length, (int, float)) else None,
            attachments=tuple(_names(listed if isinstance(listed, list) else [])),
        )

    def memories(self, root: str, noted: int | None) -> MemoryCounts:
        """Return what was made of a document.

        Args:
            root: Its id.
            noted: How many memories were made of it; None where that was not noted.
        """
        types: Counter[str] = Counter()
        for (_, type_), number in sorted(self._counts[root].items()):
            types[type_] += number
        heads = self._changed[root]
        ends = [row["expires_at"] for row in heads if row["expires_at"] is not None]
        return MemoryCounts(
            types={type_: number for type_, number in types.items() if number},
            edited=sum(row["version"] > 1 for row in heads),
            superseded=sum(row["superseded_by"] is not None for row in heads),
            expired=sum(end <= self._now for end in ends),
            gone=max(0, (noted or 0) - self._originals[root]),
            insights=self._insights[root],
        )

    # --- inside ---

    def _count_memories(self, table: pa.Table) -> defaultdict[str, Counter[tuple[str, str]]]:
        """Count by level and type, of a memory that was edited its newest version alone."""
        found: defaultdict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        groups = table.group_by(["document_id", "level", "type"]).aggregate([("id", "count")])
        for row in groups.to_pylist():
            found[self._roots[row["document_id"]]][row["level"], row["type"]] += row["id_count"]
        for row in self._former(table):
            found[self._roots[row["document_id"]]][row["level"], row["type"]] -= 1
        return found

    def _counted_originals(self, table: pa.Table) -> Counter[str]:
        import pyarrow.compute as pc

        first = table.filter(pc.equal(table["version"], 1))["document_id"]
        groups = first.value_counts().to_pylist()
        found: Counter[str] = Counter()
        for group in groups:
            found[self._roots[group["values"]]] += group["counts"]
        return found

    def _furthest(self, table: pa.Table) -> dict[str, int]:
        """Return the last page of each document that has pages."""
        found: dict[str, int] = {}
        for group in table.group_by("document_id").aggregate([("page", "max")]).to_pylist():
            if (page := group["page_max"]) is not None:
                root = self._roots[group["document_id"]]
                found[root] = max(page, found.get(root, 0))
        return found

    def _histories(self, table: pa.Table) -> defaultdict[str, list[Row]]:
        """Return the memories that something has happened to, but for former versions."""
        former = {row["id"] for row in self._former(table)}
        found: defaultdict[str, list[Row]] = defaultdict(list)
        for row in _touched(table):
            if row["id"] not in former:
                found[self._roots[row["document_id"]]].append(row)
        return found

    def _former(self, table: pa.Table) -> list[Row]:
        """Return the versions of memories that a later one was made out of."""
        rows = {row["id"]: row for row in _touched(table)}
        return [
            row
            for row in rows.values()
            if (later := rows.get(row["superseded_by"] or "")) is not None
            and is_next_version(lineage_of(row), lineage_of(later))
        ]

    def _resting_on(self, snapshot: Snapshot, table: pa.Table) -> Counter[str]:
        """Count the insights that hold and rest on memories of each document."""
        import pyarrow.compute as pc

        where = (col("level") == "insight") & col("valid_to").is_null()
        found: Counter[str] = Counter()
        for batch in snapshot.batches("memories", where, ["source_ids"]):
            sources = batch.column("source_ids")
            flat = pc.list_flatten(sources)
            parents = pc.list_parent_indices(sources)
            at = pc.index_in(flat, value_set=table["id"].combine_chunks())
            of = table["document_id"].combine_chunks().take(at).to_pylist()
            pairs = zip(parents.to_pylist(), of, strict=True)
            found.update(root for _, root in {(n, self._roots[id_]) for n, id_ in pairs if id_})
        return found


def _touched(table: pa.Table) -> Sequence[Row]:
    """Return the memories that have a history, or an end."""
    import pyarrow.compute as pc

    is_touched = pc.or_(
        pc.greater(table["version"], 1),
        pc.or_(pc.is_valid(table["superseded_by"]), pc.is_valid(table["expires_at"])),
    )
    rows: list[Row] = table.filter(is_touched).to_pylist()
    return rows


def _names(attachments: Iterable[Any]) -> Iterator[str]:
    for each in attachments:
        if isinstance(each, Mapping) and each.get("name"):
            yield str(each["name"])
