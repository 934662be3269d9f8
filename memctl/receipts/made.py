"""What was made of documents, counted without reading the memories one by one."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memctl.ingest.succession import Lineage, is_next_version
from memctl.receipts.receipt import Content, Memories
from memctl.store.filters import col

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.store.snapshot import Snapshot

_COLUMNS = (
    "id", "document_id", "level", "type", "created_at", "version", "superseded_by", "expires_at",
    "page",
)  # fmt: skip

Row = Mapping[str, Any]


class Made:
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
        table = snapshot.scan("memories", where, _COLUMNS)
        self._parts = Counter(roots.values())
        self._counts = self._counted(table)
        self._originals = self._counted_originals(table)
        self._last_pages = self._furthest(table)
        self._changed = self._histories(table)
        self._insights = self._resting_on(snapshot, table)

    def level(self, root: str, level: str) -> int:
        """Return how many memories of a level a document has."""
        return sum(number for (at, _), number in self._counts[root].items() if at == level)

    def content(self, root: str, metadata: str | None) -> Content:
        """Return how much of a document there was to read.

        Args:
            root: Its id.
            metadata: What else its reader found, as JSON.
        """
        found = json.loads(metadata or "{}")
        length, listed = found.get("duration"), found.get("attachments")
        return Content(
            parts=self._parts[root],
            pages=self._last_pages.get(root),
            seconds=float(length) if isinstance(length, (int, float)) else None,
            attachments=tuple(_names(listed if isinstance(listed, list) else [])),
        )

    def memories(self, root: str, noted: int | None) -> Memories:
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
        return Memories(
            types={type_: number for type_, number in types.items() if number},
            edited=sum(row["version"] > 1 for row in heads),
            superseded=sum(row["superseded_by"] is not None for row in heads),
            expired=sum(end <= self._now for end in ends),
            gone=max(0, (noted or 0) - self._originals[root]),
            insights=self._insights[root],
        )

    # --- inside ---

    def _counted(self, table: pa.Table) -> defaultdict[str, Counter[tuple[str, str]]]:
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
            and is_next_version(_lineage(row), _lineage(later))
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


def _lineage(row: Row) -> Lineage:
    return Lineage(row["document_id"], row["created_at"], row["version"])


def _names(attachments: Iterable[Any]) -> Iterator[str]:
    for each in attachments:
        if isinstance(each, Mapping) and each.get("name"):
            yield str(each["name"])
