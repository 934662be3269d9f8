"""What became of one file: when it was seen, read and remembered, as what, or why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from memctl.ingest.sources import absolute, printable
from memctl.records import OutcomeKind
from memctl.store.filters import col

if TYPE_CHECKING:
    from memctl.pinned import KnowledgeBaseSettings, Layout
    from memctl.store.receipt_book import ReceiptEntry
    from memctl.store.snapshot import Snapshot
    from memctl.store.store import Store

ReceiptOutcome = OutcomeKind | Literal["waiting", "processing", "remembered"]

_COLUMNS = (
    "id", "root_id", "part", "source", "title", "status", "reader", "method", "pipeline_version",
    "ingested_at", "missing",
)  # fmt: skip
_EVENTS = 1_000


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a file at one reading of it."""

    kb: str
    path: str
    """Where it was found."""
    outcome: ReceiptOutcome
    """``waiting`` lies in an inbox, ``processing`` is being read, ``remembered`` has a document
    whose reading was not noted, as records have and what older versions of memctl took in."""
    seen_at: datetime | None = None
    claimed_at: datetime | None = None
    decided_at: datetime | None = None
    """When it was remembered, recognised or given up."""
    moved_at: datetime | None = None
    read_seconds: float | None = None
    """How long it took to turn it into text."""
    reader: str = ""
    pipeline_version: int | None = None
    document_id: str | None = None
    document_status: str = ""
    """Empty where there is no such document any more."""
    document_source: str = ""
    """The name that the document goes by: that of another file where this one is a duplicate."""
    title: str = ""
    understood_by: str = ""
    """The method; one that begins with ``model`` has asked a model."""
    missing: tuple[str, ...] = ()
    passages: int = 0
    """Of the document, as it is now."""
    facts: int = 0
    """Distilled memories of the document, as it is now."""
    place: str = ""
    """Where it was put; empty where it was left, or deleted."""
    is_there: bool = False
    """Whether a file is there now: at ``place``, or at ``path`` where there is none."""
    reason: str = ""
    hint: str = ""
    error: str = ""


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
    path = absolute(Path(file).expanduser())
    places = [path, *(inbox.path / file for inbox in settings.inboxes)]
    noted = [
        _receipt(layout.name, entry)
        for entry in store.ledger.receipts.of(printable(path), printable(file))
    ]
    under_way = _under_way(layout.name, settings, store, list(dict.fromkeys(places)))
    described = _Documents(store.snapshot(), {each.document_id for each in noted})
    unnoted = described.unnoted(layout.name, printable(path), printable(file))
    return [*under_way, *(described.told(receipt) for receipt in noted), *unnoted]


def _receipt(kb: str, entry: ReceiptEntry) -> Receipt:
    return Receipt(
        kb=kb,
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
        place=entry.place,
        is_there=Path(entry.place or entry.path).is_file(),
        reason=entry.reason,
        hint=entry.hint,
        error=entry.error,
    )


def _under_way(
    kb: str, settings: KnowledgeBaseSettings, store: Store, places: Iterable[Path]
) -> Iterator[Receipt]:
    """Files that lie in an inbox, or have been claimed, and have not met their fate."""
    for place in places:
        entry = store.ledger.files.get(str(place))
        if entry is not None and entry.state == "claimed":
            yield Receipt(kb, printable(place), "processing", entry.first_seen, entry.updated_at)
        elif entry is None and place.is_file() and _is_in_inbox(settings, place):
            path = printable(place)
            reason, hint = _trouble(store, path)
            yield Receipt(kb, path, "waiting", is_there=True, reason=reason, hint=hint)


def _is_in_inbox(settings: KnowledgeBaseSettings, path: Path) -> bool:
    return any(inbox.path in path.parents for inbox in settings.inboxes)


def _trouble(store: Store, path: str) -> tuple[str, str]:
    """What the watcher had against a file, if it said anything lately, and what to do."""
    for event in store.ledger.events.recent(_EVENTS):
        if event.subject == path:
            return event.message, event.hint
    return "", "memctl watch takes it in"


class _Documents:
    """The documents that files became, as they are now."""

    def __init__(self, snapshot: Snapshot, ids: set[str | None]) -> None:
        self._snapshot = snapshot
        known = sorted(id_ for id_ in ids if id_)
        self._found = self._read(known)

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

    def unnoted(self, kb: str, path: str, name: str) -> list[Receipt]:
        """Return the documents of a file whose reading was not noted, the newest first."""
        import pyarrow.compute as pc

        names = self._snapshot.scan("documents", col("part") == 0, ["id", "source"])
        is_same = pc.or_(
            pc.or_(pc.equal(names["source"], path), pc.equal(names["source"], name)),
            pc.ends_with(names["source"], f"/{name}"),
        )
        ids = [id_ for id_ in names.filter(is_same)["id"].to_pylist() if id_ not in self._found]
        self._found |= self._read(ids)
        found = [
            Receipt(
                kb,
                self._found[id_]["source"],
                "remembered",
                decided_at=self._found[id_]["ingested_at"],
                pipeline_version=self._found[id_]["pipeline_version"],
                document_id=id_,
                is_there=Path(self._found[id_]["source"]).is_file(),
            )
            for id_ in ids
        ]
        found.sort(key=lambda receipt: str(receipt.decided_at), reverse=True)
        return [self.told(receipt) for receipt in found]

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
