"""All that is known of one file in one knowledge base, the latest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memctl.ingest.sources import path_of, printable
from memctl.receipts.asked import Asked
from memctl.receipts.documents import Documents
from memctl.receipts.receipt import Receipt
from memctl.receipts.under_way import UnderWay

if TYPE_CHECKING:
    from memctl.pinned import KnowledgeBaseSettings, Layout
    from memctl.store.receipt_book import ReceiptEntry
    from memctl.store.store import Store


def receipts(
    layout: Layout, settings: KnowledgeBaseSettings, store: Store, file: str
) -> list[Receipt]:
    """Return what became of a file, the newest first.

    Args:
        layout: Where the knowledge base stands.
        settings: What is pinned for it.
        store: Its tables and ledger.
        file: A path, or the last parts of one.
    """
    asked = Asked.of(file)
    path = printable(asked.path)
    noted = [
        _receipt(layout, entry)
        for entry in store.ledger.receipts.of(path, asked.name, asked.within(layout))
    ]
    under_way = UnderWay(layout, settings, store.ledger).receipts(asked)
    described = Documents(layout, store, {each.document_id for each in noted})
    unnoted = described.unnoted(asked)
    return [*under_way, *(described.told(receipt) for receipt in noted), *unnoted]


def _receipt(layout: Layout, entry: ReceiptEntry) -> Receipt:
    place = layout.found_here(path_of(entry.place)) if entry.place else path_of(entry.path)
    return Receipt(
        kb=layout.name,
        path=entry.path,
        outcome=entry.outcome,
        seen_at=entry.seen_at,
        claimed_at=entry.claimed_at,
        decided_at=entry.decided_at,
        moved_at=entry.moved_at,
        read_seconds=entry.read_seconds,
        reader=entry.reader,
        pipeline_version=entry.pipeline_version,
        document_id=entry.document_id,
        place=printable(place) if entry.place else "",
        is_there=place.is_file(),
        reason=entry.reason,
        hint=entry.hint,
        error=entry.error,
    )
