"""What the query log says, in numbers: how many questions, how fast, how well answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memctl.store.ledger import Ledger
    from memctl.store.query_book import QueryEntry

_ALL = 1_000_000
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


def query_statistics(name: str, ledger: Ledger) -> QueryStatistics:
    """Return the numbers of a query log."""
    entries = ledger.queries.recent(_ALL)
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
