"""What a knowledge base holds, in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from memctl.consolidation.memory_pool import count_waiting
from memctl.schema.table_names import TABLES
from memctl.store.tables.storage import table_storage

if TYPE_CHECKING:
    from memctl.store.ledger.ledger import Ledger
    from memctl.store.ledger.log_repositories import QueryEntry
    from memctl.store.store import Store
    from memctl.store.tables.snapshot import Snapshot

_DAYS = 14


@dataclass(frozen=True, slots=True)
class KnowledgeBaseStatistics:
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


def kb_statistics(
    name: str, store: Store, snapshot: Snapshot, now: datetime
) -> KnowledgeBaseStatistics:
    """Return the numbers of a knowledge base as a snapshot has it."""
    documents = snapshot.scan("documents", columns=["status", "media_type", "size", "part"])
    firsts = documents.filter(pc.equal(documents["part"], 0))
    columns = ["level", "type", "namespace", "valid_from", "superseded_by", "is_consolidated"]
    memories = snapshot.scan("memories", columns=columns)
    questions = store.ledger.queries.recent(-1)
    times = sorted(entry.seconds for entry in questions[:100])
    return KnowledgeBaseStatistics(
        kb=name,
        documents=firsts.num_rows,
        memories=memories.num_rows,
        entities=snapshot.count("entities"),
        relations=snapshot.count("relations"),
        by_status=_value_counts(firsts["status"]),
        by_media_type=_value_counts(firsts["media_type"]),
        by_level=_value_counts(memories["level"]),
        by_type=_value_counts(memories["type"]),
        by_namespace=_value_counts(memories["namespace"]),
        by_day=_by_day(memories["valid_from"], now),
        superseded=memories.num_rows - memories["superseded_by"].null_count,
        waiting=count_waiting(snapshot, now),
        source_bytes=int(pc.sum(firsts["size"]).as_py() or 0),
        disk_bytes=_disk_bytes(store.folder),
        queries=len(questions),
        query_seconds=times[len(times) // 2] if times else None,
    )


def _value_counts(column: pa.ChunkedArray) -> dict[str, int]:
    """Return how often each value occurs, the most frequent first."""
    found = pc.value_counts(column)
    pairs = ((str(item["values"].as_py()), int(item["counts"].as_py())) for item in found)
    return dict(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))


def _by_day(instants: pa.ChunkedArray, now: datetime) -> dict[str, int]:
    first = (now.astimezone(UTC) - timedelta(days=_DAYS - 1)).date()
    start = datetime(first.year, first.month, first.day, tzinfo=UTC)
    recent = instants.filter(pc.greater_equal(instants, pa.scalar(start, instants.type)))
    found = _value_counts(pc.strftime(recent, "%Y-%m-%d"))
    days = [(first + timedelta(days=n)).isoformat() for n in range(_DAYS)]
    return {day: found.get(day, 0) for day in days}


def _disk_bytes(folder: Path) -> int:
    ledger = sum(path.stat().st_size for path in folder.glob("ledger.sqlite*"))
    return ledger + sum(map(table_storage(folder).size, TABLES))


_MOST_UNANSWERED = 20


@dataclass(frozen=True, slots=True)
class QueryCounts:
    """Numbers of some questions that have something in common."""

    label: str
    """What they have in common: a mode, or a day (UTC); empty for all."""
    queries: int
    nothing_found: int
    good: int
    bad: int
    p50_seconds: float
    """Half of them took no longer."""
    p95_seconds: float

    @property
    def share_nothing_found(self) -> float:
        """From 0 to 1."""
        return self.nothing_found / self.queries if self.queries else 0.0


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A question without an answer; it counts as the same however it is written."""

    question: str
    """As it was asked last."""
    times: int
    last_asked: datetime


@dataclass(frozen=True, slots=True)
class QueryStatistics:
    """Numbers of one knowledge base's query log."""

    kb: str
    queries: int
    nothing_found: int
    share_nothing_found: float
    good: int
    bad: int
    p50_seconds: float | None
    p95_seconds: float | None
    by_mode: tuple[QueryCounts, ...]
    """The most frequent mode first."""
    by_day: tuple[QueryCounts, ...]
    """The latest day first."""
    unanswered: tuple[Unanswered, ...]
    """The most frequent questions without an answer, at most 20."""


def query_statistics(name: str, ledger: Ledger, within: Collection[str] = ()) -> QueryStatistics:
    """Return the numbers of a query log.

    Args:
        name: The knowledge base's.
        ledger: Where the log stands.
        within: Only of questions that were limited to some of these namespaces; empty for all.
    """
    entries = ledger.queries.recent(-1)
    if within:
        entries = [entry for entry in entries if _is_within(entry, within)]
    counts = _counts("", entries)
    by_mode = sorted(_grouped(entries, lambda entry: entry.mode), key=lambda group: -group.queries)
    by_day = _grouped(entries, lambda entry: entry.at.date().isoformat())
    return QueryStatistics(
        kb=name,
        queries=counts.queries,
        nothing_found=counts.nothing_found,
        share_nothing_found=counts.share_nothing_found,
        good=counts.good,
        bad=counts.bad,
        p50_seconds=counts.p50_seconds if entries else None,
        p95_seconds=counts.p95_seconds if entries else None,
        by_mode=tuple(by_mode),
        by_day=tuple(sorted(by_day, key=lambda group: group.label, reverse=True)),
        unanswered=_unanswered(entries),
    )


def _is_within(entry: QueryEntry, namespaces: Collection[str]) -> bool:
    asked = entry.filters.get("namespaces")
    return bool(asked) and set(asked or ()) <= set(namespaces)


def percentile(values: Iterable[float], percent: int) -> float:
    """Return the smallest value that so many percent of them do not exceed; 0 for no values."""
    ordered = sorted(values)
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else 0.0


def _counts(label: str, entries: Sequence[QueryEntry]) -> QueryCounts:
    seconds = [entry.seconds for entry in entries]
    return QueryCounts(
        label=label,
        queries=len(entries),
        nothing_found=sum(not entry.found for entry in entries),
        good=sum(entry.feedback == "good" for entry in entries),
        bad=sum(entry.feedback == "bad" for entry in entries),
        p50_seconds=percentile(seconds, 50),
        p95_seconds=percentile(seconds, 95),
    )


def _grouped(
    entries: Iterable[QueryEntry], label: Callable[[QueryEntry], str]
) -> list[QueryCounts]:
    groups: dict[str, list[QueryEntry]] = {}
    for entry in entries:
        groups.setdefault(label(entry), []).append(entry)
    return [_counts(name, group) for name, group in groups.items()]


def _unanswered(entries: Iterable[QueryEntry]) -> tuple[Unanswered, ...]:
    """Return the most frequent questions without an answer; entries come newest first."""
    times: Counter[str] = Counter()
    latest: dict[str, QueryEntry] = {}
    for entry in entries:
        if entry.question and not entry.found:
            key = " ".join(entry.question.casefold().rstrip("?!. ").split())
            times[key] += 1
            latest.setdefault(key, entry)
    return tuple(
        Unanswered(latest[key].question, number, latest[key].at)
        for key, number in times.most_common(_MOST_UNANSWERED)
    )
