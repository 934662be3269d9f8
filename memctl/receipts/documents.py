"""The documents that files became, as they are now."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memctl.ingest.sources import path_of, printable
from memctl.receipts.made import Made
from memctl.receipts.receipt import Receipt
from memctl.store.filters import col

if TYPE_CHECKING:
    from datetime import datetime

    from memctl.pinned import KnowledgeBaseSettings, Layout
    from memctl.receipts.asked import Asked
    from memctl.store.books import FileEntry
    from memctl.store.store import Store

_COLUMNS = (
    "id", "root_id", "part", "source", "title", "status", "reader", "method", "pipeline_version",
    "ingested_at", "missing", "namespace", "metadata",
)  # fmt: skip


class Documents:
    """The documents that files became, as they are now.

    Args:
        layout: Where the knowledge base stands.
        settings: What is pinned for it.
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

    def told(self, receipt: Receipt, noted: int | None = None) -> Receipt:
        """Add to a receipt what is known of its document, if that is still there.

        Args:
            receipt: The receipt.
            noted: How many memories were made of it; None where that was not noted.
        """
        id_ = receipt.document_id or ""
        found = self._found.get(id_)
        if found is None:
            return receipt
        made: Made = found["made"]
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
        """Return documents by id, with what was made of them in all their parts."""
        if not ids:
            return {}
        parts = self._snapshot.scan("documents", col("root_id").is_in(ids), _COLUMNS).to_pylist()
        used = self._usage.of_documents(ids)
        made = Made(self._snapshot, {row["id"]: row["root_id"] for row in parts}, self._now)
        return {
            row["id"]: row | {"models": tuple(used.get(row["id"], ())), "made": made}
            for row in parts
            if row["id"] == row["root_id"]
        }
