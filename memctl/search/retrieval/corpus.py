"""What is searched, as it was at one moment, with what is worked out of it once for many questions.

Knows nothing of any one question.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow.compute as pc

from memctl.records import EndedFact, Filters, Hit
from memctl.search.retrieval.candidate_rows import (
    MAX_IN_MEMORY,
    InMemoryRows,
    SearchScope,
    TableRows,
    ValiditySpan,
)
from memctl.search.retrieval.candidates import Sources
from memctl.search.retrieval.term_statistics import (
    NO_STATISTICS,
    TermStatistics,
    read_spread_sample,
    sample_term_statistics,
)
from memctl.store.tables.filter_expressions import Expr, both, col, memory_filter, namespace_filter
from memctl.store.tables.snapshot import CachedSnapshot, Snapshot

if TYPE_CHECKING:
    from memctl.graph.name_index import NameIndex
    from memctl.graph.name_resolution import Decisions


Subject = TypeVar("Subject", bound=Hashable)
Made = TypeVar("Made")

_MOST_LANGUAGES = 8
_LEAST_LANGUAGE_SHARE = 0.02
_STATISTICS_KEPT = 64
_CONDITIONS_KEPT = 8
_GRAPHS_KEPT = 8
_EXPIRES = "expires_at"


class Corpus:
    """Snapshots that are searched together.

    Args:
        sources: Snapshots by the name of their knowledge base.  It reads by others of the same
            tables: whoever asks holds these meanwhile, so that nothing of them is pruned.
        clock: Tells the time, on which it depends what is valid.
    """

    def __init__(self, sources: Sources, clock: Callable[[], datetime]) -> None:
        self.sources = {kb: CachedSnapshot(sources[kb]) for kb in sorted(sources)}
        self.endings = EndedFacts(self.sources)
        self._clock = clock
        self._languages: dict[Filters, tuple[str, ...]] = {}
        self._has_any: dict[Filters, bool] = {}
        self._conditions: _TimedCache[Filters, SearchScope] = _TimedCache(_CONDITIONS_KEPT)
        self._statistics: _TimedCache[Filters, TermStatistics] = _TimedCache(_STATISTICS_KEPT)
        graphs = _GRAPHS_KEPT * len(self.sources)
        self._graphs: _TimedCache[tuple[str, Filters, Decisions, bool], NameIndex] = _TimedCache(
            graphs
        )

    def is_of(self, sources: Sources) -> bool:
        """Tell whether these are the snapshots that it is of, or others of the same tables."""
        return {kb: each.versions for kb, each in self.sources.items()} == {
            kb: each.versions for kb, each in sources.items()
        }

    def languages(self, filters: Filters) -> tuple[str, ...]:
        """Return the languages of the documents in the namespaces that the filters let through.

        The most frequent first, always with English: what has no known language is stemmed so.
        """
        within = Filters(namespaces=filters.namespaces, private=filters.private)
        known = self._languages.get(within)
        if known is not None:
            return known
        where, seen = namespace_filter(within), Counter[str]()
        for snapshot in self.sources.values():
            count = snapshot.count("documents", where)
            for table in read_spread_sample(snapshot, "documents", where, "language", count):
                seen.update(language or "en" for language in table["language"].to_pylist())
        least = _LEAST_LANGUAGE_SHARE * seen.total()
        common = [name for name, count in seen.most_common(_MOST_LANGUAGES) if count >= least]
        return self._languages.setdefault(within, tuple(dict.fromkeys([*common, "en"])))

    def has_any(self, filters: Filters) -> bool:
        """Tell whether any memory is, or was when that was first asked, what the filters say."""
        if filters not in self._has_any:
            where = memory_filter(filters, self._clock())
            self._has_any[filters] = any(self._counts(where).values())
        return self._has_any[filters]

    def count(self, condition: SearchScope, where: Expr) -> int:
        """Return of how many memories both hold, in all knowledge bases."""
        return sum(self._counts(both(condition.where, where)).values())

    def condition(self, filters: Filters) -> SearchScope:
        """What has to hold of memories, with what it holds of until the first of that ends."""
        now = self._clock()
        known = self._conditions.get(filters, now)
        if known is not None:
            return known
        made = self._condition(filters, now)
        return self._conditions.put(filters, made, made.span)

    def _condition(self, filters: Filters, now: datetime) -> SearchScope:
        where: Expr | None = memory_filter(filters, now)
        counts, span = self._counts(where), ValiditySpan(now, self._first_end(filters, where))
        where = None if self._counts(None) == counts else where
        sources = {
            kb: (InMemoryRows if counts[kb] <= MAX_IN_MEMORY else TableRows)(source, where)
            for kb, source in self.sources.items()
        }
        return SearchScope(where, sources, span)

    def _first_end(self, filters: Filters, where: Expr | None) -> datetime | None:
        """Return when the first of the memories ends of which a condition holds; None if never."""
        if filters.as_of is not None:
            return None
        ending = both(where, ~col(_EXPIRES).is_null())
        found = (each.scan("memories", ending, [_EXPIRES]) for each in self.sources.values())
        ends = (pc.min(table[_EXPIRES]).as_py() for table in found)
        return min((end for end in ends if end is not None), default=None)

    def statistics(self, filters: Filters, condition: SearchScope) -> TermStatistics:
        """Return how common terms are among the memories that the filters let through."""
        known = self._statistics.get(filters, condition.span.since)
        if known is not None:
            return known
        each = (sample_term_statistics(source, condition.where) for source in self.sources.values())
        return self._statistics.put(filters, sum(each, NO_STATISTICS), condition.span)

    def graph(
        self,
        kb: str,
        filters: Filters,
        condition: SearchScope,
        decisions: Decisions,
        *,
        evidence_only: bool,
    ) -> NameIndex:
        """Return the names in the memories of a knowledge base that may be found.

        Args:
            kb: The knowledge base.
            filters: What the memories are.
            condition: The same.
            decisions: What was decided by hand on which names mean the same.
            evidence_only: Whether only verbatim passages count as mentions.
        """
        from memctl.graph.name_index import build_index, cached_name_index

        what = kb, filters, decisions, evidence_only
        known = self._graphs.get(what, condition.span.since)
        if known is not None:
            return known
        source, where = self.sources[kb], condition.where
        if condition.span.until is not None:
            made = build_index(source, where, decisions, evidence_only=evidence_only)
        else:
            made = cached_name_index(
                source, where, repr(filters), decisions, evidence_only=evidence_only
            )
        return self._graphs.put(what, made, condition.span)

    def _counts(self, where: Expr | None) -> Mapping[str, int]:
        return {kb: source.count("memories", where) for kb, source in self.sources.items()}


class _TimedCache(Generic[Subject, Made]):
    """What was made for some subjects, the latest ones, for as long as it holds."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._made: OrderedDict[Subject, tuple[Made, ValiditySpan]] = OrderedDict()

    def get(self, subject: Subject, now: datetime) -> Made | None:
        """Return what was made for a subject; None where it does not hold any more."""
        made, span = self._made.get(subject, (None, None))
        return made if span is not None and span.has(now) else None

    def put(self, subject: Subject, value: Made, span: ValiditySpan) -> Made:
        """Keep what was made, let go of the oldest there is too much of, and return it."""
        self._made[subject] = value, span
        while len(self._made) > self._most:
            self._made.popitem(last=False)
        return value


_ENDED = (col("level") == "memory") & ~col("superseded_by").is_null()
_POSITION_COLUMNS = ("id", "document_id", "start", "end")
_ENDED_COLUMNS = (*_POSITION_COLUMNS, "valid_to", "superseded_by")


class EndedFacts:
    """Marks what of hits has ended; looks only where anything has.

    Args:
        sources: Snapshots by the name of their knowledge base.
    """

    def __init__(self, sources: Sources) -> None:
        self._all = sources

    @cached_property
    def _sources(self) -> Sources:
        return {kb: source for kb, source in self._all.items() if source.count("memories", _ENDED)}

    def marked(self, hits: Sequence[Hit], at: datetime) -> tuple[Hit, ...]:
        """Return the hits with what of them had ended by a time; what ended later held then."""
        documents: dict[str, set[str]] = {}
        for hit in hits:
            if hit.document_id is not None and hit.kb in self._sources:
                documents.setdefault(hit.kb, set()).add(hit.document_id)
        found = {
            kb: _ended_by_document(self._sources[kb], ids, at) for kb, ids in documents.items()
        }
        return tuple(_mark_ended(h, found.get(h.kb, {}).get(h.document_id or "", ())) for h in hits)


def has_ended(hit: Hit, start: int, end: int) -> bool:
    """Tell whether what stands there in the text of a hit does not hold any more."""
    if hit.start is None:
        return False
    first, last = hit.start + start, hit.start + end
    return any(
        min(last, span.end) - max(first, span.start) > (last - first) / 2 for span in hit.ended
    )


def _mark_ended(hit: Hit, ended: Iterable[EndedFact]) -> Hit:
    """Mark a hit whose text is a run of its document's, and which says it."""
    if hit.start is None or hit.end is None or hit.end - hit.start != len(hit.text):
        return hit
    inside = tuple(span for span in ended if span.start < hit.end and hit.start < span.end)
    return replace(hit, ended=inside) if inside else hit


def _ended_by_document(
    source: Snapshot, documents: Iterable[str], at: datetime
) -> Mapping[str, list[EndedFact]]:
    where = col("document_id").is_in(sorted(documents)) & _ENDED & (col("valid_to") <= at)
    rows = source.scan("memories", where, _ENDED_COLUMNS).to_pylist()
    if not rows:
        return {}
    later = source.get(
        "memories", [row["superseded_by"] for row in rows], _POSITION_COLUMNS
    ).to_pylist()
    places = {row["id"]: row for row in later}
    found: dict[str, list[EndedFact]] = {}
    for row in rows:
        if _says_it_elsewhere(row, places.get(row["superseded_by"])):
            span = EndedFact(row["start"], row["end"], row["valid_to"], row["superseded_by"])
            found.setdefault(row["document_id"], []).append(span)
    return found


def _says_it_elsewhere(row: Mapping[str, Any], later: Mapping[str, Any] | None) -> bool:
    """Tell a newer fact from a later version of the same one, which rests on the same words."""
    if row["start"] is None or later is None or later["start"] is None:
        return False
    return any(row[name] != later[name] for name in ("document_id", "start", "end"))
