"""What a knowledge base holds, in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from memctl.consolidation.memory_pool import count_waiting
from memctl.ids import folded_name
from memctl.records import Filters, record_like
from memctl.schema.table_names import TABLES
from memctl.store.sql import NamespaceScope
from memctl.store.tables.filter_expressions import EVERYTHING, Expr, col
from memctl.store.tables.storage import table_storage

if TYPE_CHECKING:
    from memctl.literals import QuerySplit
    from memctl.models.protocols import Embedder
    from memctl.store.ledger.audit_repositories import MemoryUse
    from memctl.store.ledger.ledger import Ledger
    from memctl.store.ledger.log_repositories import QueryDetail, QueryEntry
    from memctl.store.store import Store
    from memctl.store.tables.snapshot import Snapshot

_DAYS = 14
IsOpen = Callable[["QueryEntry"], bool]


class KnowledgeBaseStatistics(Struct, frozen=True):
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
    name: str,
    store: Store,
    snapshot: Snapshot,
    now: datetime,
    is_open: IsOpen,
    within: Collection[str] = (),
) -> KnowledgeBaseStatistics:
    """Return the numbers of a knowledge base as a snapshot has it.

    Args:
        name: The knowledge base's.
        store: Where it lies.
        snapshot: What is counted.
        now: The last day is this one's.
        is_open: Whether a question may be known of; only such are counted.
        within: Only of rows of these namespaces; empty for all. What is on the disk is always the
            whole.
    """
    scope = NamespaceScope(Filters(namespaces=tuple(within)))
    columns = ["status", "media_type", "size", "part"]
    documents = snapshot.scan("documents", scope.of(snapshot, "documents"), columns)
    firsts = documents.filter(pc.equal(documents["part"], 0))
    columns = ["level", "type", "namespace", "valid_from", "superseded_by", "is_consolidated"]
    memories = snapshot.scan("memories", scope.of(snapshot, "memories"), columns)
    questions = _questions(store.ledger, is_open)
    times = sorted(entry.seconds for entry in questions[:100])
    return KnowledgeBaseStatistics(
        kb=name,
        documents=firsts.num_rows,
        memories=memories.num_rows,
        entities=_count_names(snapshot, scope.of(snapshot, "entities")),
        relations=snapshot.count("relations", scope.of(snapshot, "relations")),
        by_status=_value_counts(firsts["status"]),
        by_media_type=_value_counts(firsts["media_type"]),
        by_level=_value_counts(memories["level"]),
        by_type=_value_counts(memories["type"]),
        by_namespace=_value_counts(memories["namespace"]),
        by_day=_by_day(memories["valid_from"], now),
        superseded=memories.num_rows - memories["superseded_by"].null_count,
        waiting=count_waiting(snapshot, now, scope.of(snapshot, "memories")),
        source_bytes=int(pc.sum(firsts["size"]).as_py() or 0),
        disk_bytes=_disk_bytes(store.folder),
        queries=len(questions),
        query_seconds=times[len(times) // 2] if times else None,
    )


def _count_names(snapshot: Snapshot, where: Expr | None) -> int:
    """Return how many names there are; a row without a type is that of its name with one."""
    total, untyped = snapshot.count("entities", where), col("type") == "other"
    scope = EVERYTHING if where is None else where
    names = snapshot.scan("entities", scope & untyped, ["name"])["name"].to_pylist()
    if not names:
        return total
    unknown = set(map(folded_name, names))
    typed = snapshot.scan("entities", scope & ~untyped, ["name"])["name"].to_pylist()
    return total - len(unknown.intersection(map(folded_name, typed)))


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


_MAX_UNANSWERED = 20


class QueryCounts(Struct, frozen=True):
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
    mean_seconds: float = 0.0
    failed: int = 0
    """Those that could not be asked; they do not count as nothing found."""
    quality: float | None = None
    """The mean of what is known; see ``queries.query_log.quality``."""

    @property
    def share_nothing_found(self) -> float:
        """From 0 to 1."""
        return self.nothing_found / self.queries if self.queries else 0.0


class Unanswered(Struct, frozen=True):
    """A question without an answer; it counts as the same however it is written."""

    question: str
    """As it was asked last."""
    times: int
    last_asked: datetime


class QueryStatistics(Struct, frozen=True):
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
    mean_seconds: float | None = None
    failed: int = 0
    """Those that could not be asked."""
    quality: float | None = None
    by: tuple[QueryCounts, ...] = ()
    """Split as was asked for, the most frequent first; empty where it was not."""


def query_statistics(
    name: str, ledger: Ledger, is_open: IsOpen, by: QuerySplit | None = None
) -> QueryStatistics:
    """Return the numbers of a query log.

    Args:
        name: The knowledge base's.
        ledger: Where the log stands.
        is_open: Whether a question may be known of; only such are counted.
        by: What else they are split by.
    """
    entries = _questions(ledger, is_open)
    details = {each.query_id: each for each in ledger.query_details.all()}
    counts = _counts("", entries, details)
    by_mode = _largest_first(_group(entries, details, lambda entry: entry.mode))
    by_day = _group(entries, details, lambda entry: entry.at.date().isoformat())
    split = _largest_first(_group(entries, details, _label(by, name, details))) if by else []
    return record_like(
        QueryStatistics,
        counts,
        kb=name,
        p50_seconds=counts.p50_seconds if entries else None,
        p95_seconds=counts.p95_seconds if entries else None,
        by_mode=tuple(by_mode),
        by_day=tuple(sorted(by_day, key=lambda group: group.label, reverse=True)),
        unanswered=_most_unanswered(
            each
            for each in entries
            if each.query_id not in details or details[each.query_id].status != "failed"
        ),
        mean_seconds=counts.mean_seconds if entries else None,
        by=tuple(split),
    )


def _largest_first(groups: Iterable[QueryCounts]) -> list[QueryCounts]:
    return sorted(groups, key=lambda group: (-group.queries, group.label))


_DETAIL_FIELDS = {"fusion": "fusion", "reranker": "reranker", "user": "user_id"}
"""Where the detail of a question has what it can be split by."""


def _label(
    by: QuerySplit, kb: str, details: Mapping[str, QueryDetail]
) -> Callable[[QueryEntry], str]:
    """Return what tells the group of a question; "none" where it was not noted."""

    def label(entry: QueryEntry) -> str:
        """Return the name of the group."""
        if by == "mode":
            return entry.mode
        if by == "kb":
            return kb
        return getattr(details.get(entry.query_id), _DETAIL_FIELDS[by], None) or "none"

    return label


def _questions(ledger: Ledger, is_open: IsOpen) -> Sequence[QueryEntry]:
    return [entry for entry in ledger.queries.recent(-1) if is_open(entry)]


def percentile(values: Iterable[float], percent: int) -> float:
    """Return the smallest value that a percentage of them do not exceed; 0 for no values."""
    ordered = sorted(values)
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else 0.0


def _counts(
    label: str, entries: Sequence[QueryEntry], details: Mapping[str, QueryDetail]
) -> QueryCounts:
    seconds = [entry.seconds for entry in entries]
    known = [details[entry.query_id] for entry in entries if entry.query_id in details]
    counted = [each for each in known if each.status != "failed"]
    failed = len(known) - len(counted)
    qualities = [each.quality for each in counted if each.quality is not None]
    return QueryCounts(
        label=label,
        queries=len(entries),
        nothing_found=sum(not entry.found for entry in entries) - failed,
        good=sum(entry.feedback == "good" for entry in entries),
        bad=sum(entry.feedback == "bad" for entry in entries),
        p50_seconds=percentile(seconds, 50),
        p95_seconds=percentile(seconds, 95),
        mean_seconds=fmean(seconds) if seconds else 0.0,
        failed=failed,
        quality=round(fmean(qualities), 4) if qualities else None,
    )


def _group(
    entries: Iterable[QueryEntry],
    details: Mapping[str, QueryDetail],
    label: Callable[[QueryEntry], str],
) -> list[QueryCounts]:
    groups: dict[str, list[QueryEntry]] = {}
    for entry in entries:
        groups.setdefault(label(entry), []).append(entry)
    return [_counts(name, group, details) for name, group in groups.items()]


def _most_unanswered(entries: Iterable[QueryEntry]) -> tuple[Unanswered, ...]:
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
        for key, number in times.most_common(_MAX_UNANSWERED)
    )


# --- which memories are used ---------------------------------------------------------------------


class UsedMemory(Struct, frozen=True):
    """One memory that was shown, and how often."""

    id: str
    type: str
    text: str
    times: int
    last_at: datetime


class MemoryUseStatistics(Struct, frozen=True):
    """Which memories of one knowledge base are used, as far as its access log goes back."""

    kb: str
    accesses: int
    used: int
    """How many memories were shown at least once."""
    never_used: int
    """How many that hold never were."""
    most_used: tuple[UsedMemory, ...]
    last_used: tuple[UsedMemory, ...]


def memory_use_statistics(
    kb: str, ledger: Ledger, snapshot: Snapshot, filters: Filters, now: datetime, limit: int
) -> MemoryUseStatistics:
    """Return which memories are used.

    Args:
        kb: The knowledge base's name.
        ledger: Has its access log.
        snapshot: Its tables.
        filters: What may be read.
        now: Decides what holds.
        limit: How many of each kind are named.
    """
    from memctl.store.tables.filter_expressions import memory_filter

    columns = ["id", "type", "text", "access_count", "last_accessed_at"]
    rows = snapshot.scan("memories", memory_filter(filters, now), columns).to_pylist()
    by_id = {row["id"]: row for row in rows}
    uses = [each for each in ledger.access_trail.uses() if each.memory_id in by_id]
    counted = {row["id"] for row in rows if row["access_count"]} | {u.memory_id for u in uses}

    def named(use: MemoryUse) -> UsedMemory:
        """Return a use with what the memory says."""
        row = by_id[use.memory_id]
        return UsedMemory(row["id"], row["type"], row["text"], use.times, use.last_at)

    most = sorted(uses, key=lambda use: (-use.times, use.memory_id))[:limit]
    last = sorted(uses, key=lambda use: (use.last_at, use.memory_id), reverse=True)[:limit]
    return MemoryUseStatistics(
        kb=kb,
        accesses=sum(use.times for use in uses),
        used=len(counted),
        never_used=len(rows) - len(counted),
        most_used=tuple(map(named, most)),
        last_used=tuple(map(named, last)),
    )


# --- questions that were asked before -------------------------------------------------------------


class SimilarQuestion(Struct, frozen=True):
    """A question that was asked before and means much the same."""

    kb: str
    question: str
    similarity: float
    """The cosine of both questions' vectors."""
    query_id: str
    asked_at: datetime
    status: str
    quality: float | None
    feedback: str | None


def similar_questions(
    name: str,
    ledger: Ledger,
    embedder: Embedder,
    text: str,
    limit: int,
    is_open: IsOpen,
) -> list[SimilarQuestion]:
    """Return earlier questions by how near they are to a text, each once, the nearest first.

    Args:
        name: The knowledge base's.
        ledger: Where the questions are noted.
        embedder: What their vectors are from; those of another one are left out.
        text: The question.
        limit: At most this many.
        is_open: As for ``query_statistics``.
    """
    import numpy as np

    vectors = ledger.query_vectors.select("embedder = ?", embedder.id)
    if not vectors:
        return []
    stored = np.stack([np.frombuffer(each.vector, np.float16) for each in vectors])
    vector = embedder.embed([text])[0].astype(np.float32)
    known = stored.astype(np.float32)
    lengths = np.linalg.norm(known, axis=1) * np.linalg.norm(vector)
    cosines = known @ vector / np.where(lengths > 0, lengths, 1)
    found: dict[str, SimilarQuestion] = {}
    for place in np.argsort(-cosines, kind="stable"):
        query_id = vectors[place].query_id
        entry, detail = ledger.queries.find_by_id(query_id), ledger.query_details.find(query_id)
        if entry is None or detail is None or not entry.question:
            continue
        if not is_open(entry):
            continue
        similar = SimilarQuestion(
            name,
            entry.question,
            round(float(cosines[place]), 4),
            query_id,
            entry.at,
            detail.status,
            detail.quality,
            entry.feedback,
        )
        found.setdefault(" ".join(entry.question.casefold().split()), similar)
        if len(found) == limit:
            break
    return list(found.values())
