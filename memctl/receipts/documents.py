"""The documents that files became, as they are now."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memctl.ingest.sources import path_of, printable
from memctl.receipts.receipt import Receipt
from memctl.store.filters import col

if TYPE_CHECKING:
    from memctl.pinned import Layout
    from memctl.receipts.asked import Asked
    from memctl.store.books import FileEntry
    from memctl.store.store import Store

_COLUMNS = (
    "id", "root_id", "part", "source", "title", "status", "reader", "method", "pipeline_version",
    "ingested_at", "missing",
)  # fmt: skip


class Documents:
    """The documents that files became, as they are now."""

    def __init__(self, layout: Layout, store: Store, ids: set[str | None]) -> None:
        self._layout = layout
        self._files = store.ledger.files
        self._snapshot = store.snapshot()
        self._found = self._read(sorted(id_ for id_ in ids if id_))

    def told(self, receipt: Receipt) -> Receipt:
        """Add to a receipt what is known of its document, if that is still there."""
        found = self._found.get(receipt.document_id or "")
        if found is None:
            return receipt
        return replace(
            receipt,
            document_status=found["status"],
            document_source=found["source"],
            title=found["title"] or "",
            understood_by=found["method"],
            missing=tuple(found["missing"] or ()),
            passages=found["passages"],
            facts=found["facts"],
            reader=found["reader"] if receipt.outcome == "remembered" else receipt.reader,
        )

    def unnoted(self, asked: Asked) -> list[Receipt]:
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
        return [self.told(receipt) for receipt in found]

    def _unnoted(self, id_: str, entry: FileEntry | None) -> Receipt:
        row = self._found[id_]
        place = self._layout.found_here(Path(entry.path)) if entry else path_of(row["source"])
        return Receipt(
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
        """Return documents by id, each with how many passages and facts it has in all its parts."""
        if not ids:
            return {}
        parts = self._snapshot.scan("documents", col("root_id").is_in(ids), _COLUMNS).to_pylist()
        counts = self._counts({row["id"]: row["root_id"] for row in parts})
        return {
            row["id"]: row
            | {
                "passages": counts[row["id"], "evidence"],
                "facts": counts[row["id"], "memory"],
            }
            for row in parts
            if row["id"] == row["root_id"]
        }

    def _counts(self, roots: Mapping[str, str]) -> Counter[tuple[str, str]]:
        """Return how many memories there are of each document and level."""
        where = col("document_id").is_in(list(roots))
        rows = self._snapshot.scan("memories", where, ["document_id", "level"]).to_pylist()
        return Counter((roots[row["document_id"]], row["level"]) for row in rows)
