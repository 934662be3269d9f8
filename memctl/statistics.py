"""What a knowledge base holds, in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from memctl.consolidate.pool import count_waiting
from memctl.store.names import TableName

if TYPE_CHECKING:
    from memctl.store.snapshot import Snapshot
    from memctl.store.store import Store

_DAYS = 14


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts, sizes and rates of one knowledge base."""

    kb: str
    documents: int
    memories: int
    entities: int
    relations: int
    by_status: Mapping[str, int]
    """Documents by status."""
    by_media_type: Mapping[str, int]
    """Documents by what kind of source they were."""
    by_level: Mapping[str, int]
    """Memories by level."""
    by_type: Mapping[str, int]
    """Memories by type."""
    by_namespace: Mapping[str, int]
    """Memories by namespace."""
    by_day: Mapping[str, int]
    """Memories made on each of the last days, the oldest first."""
    superseded: int
    """Memories that have a newer version; they are kept for the history."""
    waiting: int
    """Memories that the next consolidation would look at."""
    source_bytes: int
    """Size of all sources together."""
    disk_bytes: int
    """What tables and ledger take on disk."""
    queries: int
    """Questions in the log."""
    query_seconds: float | None
    """Median time of the latest of them."""


def statistics(name: str, store: Store, now: datetime) -> Statistics:
    """Return the numbers of a knowledge base as of its last commit."""
    snapshot = store.snapshot()
    documents = snapshot.scan("documents", columns=["status", "media_type", "size", "part"])
    firsts = documents.filter(pc.equal(documents["part"], 0))
    columns = ["level", "type", "namespace", "valid_from", "superseded_by", "is_consolidated"]
    memories = snapshot.scan("memories", columns=columns)
    questions = store.ledger.queries.recent(1_000_000)
    times = sorted(entry.seconds for entry in questions[:100])
    return Statistics(
        kb=name,
        documents=firsts.num_rows,
        memories=memories.num_rows,
        entities=_count(snapshot, "entities"),
        relations=_count(snapshot, "relations"),
        by_status=_counts(firsts["status"]),
        by_media_type=_counts(firsts["media_type"]),
        by_level=_counts(memories["level"]),
        by_type=_counts(memories["type"]),
        by_namespace=_counts(memories["namespace"]),
        by_day=_by_day(memories["valid_from"], now),
        superseded=memories.num_rows - memories["superseded_by"].null_count,
        waiting=count_waiting(snapshot, now),
        source_bytes=int(pc.sum(firsts["size"]).as_py() or 0),
        disk_bytes=_disk_bytes(store.folder),
        queries=len(questions),
        query_seconds=times[len(times) // 2] if times else None,
    )


def _count(snapshot: Snapshot, table: TableName) -> int:
    return snapshot.count(table)


def _counts(column: pa.ChunkedArray) -> dict[str, int]:
    """Return how often each value occurs, the most frequent first."""
    found = pc.value_counts(column)
    pairs = ((str(item["values"].as_py()), int(item["counts"].as_py())) for item in found)
    return dict(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))


def _by_day(instants: pa.ChunkedArray, now: datetime) -> dict[str, int]:
    first = (now.astimezone(UTC) - timedelta(days=_DAYS - 1)).date()
    start = datetime(first.year, first.month, first.day, tzinfo=UTC)
    recent = instants.filter(pc.greater_equal(instants, pa.scalar(start, instants.type)))
    found = _counts(pc.strftime(recent, "%Y-%m-%d"))
    days = [(first + timedelta(days=n)).isoformat() for n in range(_DAYS)]
    return {day: found.get(day, 0) for day in days}


def _disk_bytes(folder: Path) -> int:
    files = [*(folder / "lance").rglob("*"), *folder.glob("ledger.sqlite*")]
    return sum(path.stat().st_size for path in files if path.is_file())
