"""All that is known of one file in one knowledge base, the latest first."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.ingest.sources import path_of, printable
from memctl.receipts.asked import Asked
from memctl.receipts.documents import Documents
from memctl.receipts.receipt import Receipt
from memctl.receipts.under_way import UnderWay
from memctl.records import TAKEN

if TYPE_CHECKING:
    from datetime import datetime

    from memctl.pinned import KnowledgeBaseSettings, Layout
    from memctl.store.receipt_book import ReceiptEntry
    from memctl.store.store import Store


def receipts(
    layout: Layout, settings: KnowledgeBaseSettings, store: Store, file: str, now: datetime
) -> list[Receipt]:
    """Return what became of a file, the newest first.

    Args:
        layout: Where the knowledge base stands.
        settings: What is pinned for it.
        store: Its tables and ledger.
        file: A path, or the last parts of one.
        now: The time.
    """
    asked = Asked.of(file)
    entries = store.ledger.receipts.of(printable(asked.path), asked.name, asked.within(layout))
    ids = {entry.document_id for entry in entries if entry.document_id}
    documents = Documents(layout, settings, store, ids, now)
    noted = _latest_counts(entries)
    return [
        *UnderWay(layout, settings, store.ledger).receipts(asked),
        *(
            documents.told(_receipt(layout, entry), noted.get(entry.document_id or ""))
            for entry in entries
        ),
        *documents.unnoted(asked),
    ]


def _latest_counts(entries: Sequence[ReceiptEntry]) -> dict[str, int]:
    """Return how many memories were made of each document when it was read last."""
    return {
        entry.document_id or "": entry.memories
        for entry in reversed(entries)
        if entry.outcome in TAKEN
    }


def _receipt(layout: Layout, entry: ReceiptEntry) -> Receipt:
    place = layout.found_here(path_of(entry.place)) if entry.place else path_of(entry.path)
    is_there = place.is_file()
    return Receipt(
        kb=layout.name,
        path=entry.path,
        outcome=entry.outcome,
        seen_at=entry.seen_at,
        claimed_at=entry.claimed_at,
        decided_at=entry.decided_at,
        moved_at=entry.moved_at,
        tries=entry.tries,
        read_seconds=entry.read_seconds,
        understand_seconds=entry.understand_seconds,
        redacted=entry.redacted,
        reader=entry.reader,
        pipeline_version=entry.pipeline_version,
        document_id=entry.document_id,
        place=printable(place) if entry.place else "",
        is_there=is_there,
        reason=entry.reason,
        hint=entry.hint,
        error=entry.error,
        retry=_retry(layout, entry, place) if entry.outcome == "failed" and is_there else "",
    )


def _retry(layout: Layout, entry: ReceiptEntry, place: Path) -> str:
    """Return the command that has a failed file tried again; one of an inbox goes back there."""
    if not entry.place:
        return f"memctl ingest {shlex.quote(printable(place))}"
    inbox = path_of(entry.path).parent
    back = inbox if inbox.is_dir() else layout.inbox
    return f"mv {shlex.quote(printable(place))} {shlex.quote(printable(back))}"
