"""The memories that are searched, at one moment, with what is computed of them for many questions.

Knows nothing of any particular question.
"""

from __future__ import annotations

import json
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace

from memctl.records import EndedFact, Filters, Hit
from memctl.search.retrieval.candidate_rows import (
    MAX_IN_MEMORY,
    InMemoryRows,
    SearchScope,
    TableRows,
    ValiditySpan,
)
from memctl.search.term_statistics import (
    Sources,
    TermStatistics,
    joint_statistics,
    read_spread_sample,
    sample_term_statistics,
)
from memctl.store.file_caches import DerivedKind, code_digest, kept_or_made
from memctl.store.tables.filter_expressions import Expr, both, col, memory_filter, namespace_filter
from memctl.store.tables.metadata_filters import metadata_condition
from memctl.store.tables.snapshot import CachedSnapshot, Snapshot

if TYPE_CHECKING:
    from memctl.graph.name_index import NameIndex
    from memctl.graph.name_resolution import Decisions


T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_MAX_LANGUAGES = 8
_MIN_LANGUAGE_SHARE = 0.02
_CACHED_STATISTICS = 64
_CACHED_SCOPES = 8
_CACHED_GRAPHS = 8
_READS_BEFORE_CACHING = 4
"""Reading 20,000 memories and their vectors takes 0.25 s and saves 0.02 s of each question, so it
pays for states that are asked again and again."""
MAX_BYTES_IN_MEMORY = 100_000_000
"""Of the rows of all scopes together, beside those that are few.  Of more memories there is an
index of vectors, which is faster than to compare them all."""
_BYTES_OF_TEXT, _BYTES_OF_NUMBER = 500, 6
"""That a memory takes with the columns that are searched, and each number of its vector: two as it
is stored, and four as it is compared."""


_COUNTING_MODULES = (
    "memctl.search.retrieval.corpus",
    "memctl.search.term_statistics",
    "memctl.store.tables.filter_expressions",
)
"""Whose code decides what is counted."""


class _Counted(Struct, frozen=True):
    """How many memories of one knowledge base match, and when they do."""

    memories: int
    valid: ValiditySpan


class _CachedScope(Struct):
    """A scope, and how often it was used."""

    scope: SearchScope
    uses: int = 0
    bytes_in_memory: int = 0
    is_settled: bool = False
    """Whether it was decided if its rows are held in memory."""


class Corpus:
    """Snapshots that are searched together.

    Args:
        sources: Snapshots by the name of their knowledge base.  The corpus reads through cached
            copies, which don't keep table versions from being pruned: the caller has to hold the
            originals while it searches.
        clock: Tells the time, which decides what is valid.
    """

    def __init__(self, sources: Sources, clock: Callable[[], datetime]) -> None:
        self.sources = {kb: CachedSnapshot(sources[kb]) for kb in sorted(sources)}
        self.ended_facts = EndedFacts(self.sources, self._count_ended)
        self._clock = clock
        self._states: dict[str, str] = {}
        self._languages: dict[Filters, tuple[str, ...]] = {}
        self._has_any: dict[Filters, bool] = {}
        self._scopes: _TimedCache[Filters, _CachedScope] = _TimedCache(_CACHED_SCOPES)
        self._statistics: _TimedCache[Filters, TermStatistics] = _TimedCache(_CACHED_STATISTICS)
        graphs = _CACHED_GRAPHS * len(self.sources)
        self._graphs: _TimedCache[tuple[str, Filters, Decisions, bool], NameIndex] = _TimedCache(
            graphs
        )

    def is_of(self, sources: Sources) -> bool:
        """Return whether these are its snapshots, or others of the same table versions."""
        return {kb: each.versions for kb, each in self.sources.items()} == {
            kb: each.versions for kb, each in sources.items()
        }

    def languages(self, filters: Filters) -> tuple[str, ...]:
        """Return the languages of the documents in the filters' namespaces, most frequent first.

        English is always among them: text of unknown language is stemmed as English.
        """
        within = Filters(namespaces=filters.namespaces, private=filters.private)
        known = self._languages.get(within)
        if known is not None:
            return known
        seen = Counter[str]()
        for kb, source in self.sources.items():
            count = partial(_count_languages, source, namespace_filter(within))
            seen.update(self._kept(kb, "languages", within, dict[str, int], count))
        least = _MIN_LANGUAGE_SHARE * seen.total()
        common = [name for name, count in seen.most_common(_MAX_LANGUAGES) if count >= least]
        return self._languages.setdefault(within, tuple(dict.fromkeys([*common, "en"])))

    def has_any(self, filters: Filters) -> bool:
        """Return whether any memory matched the filters when they were first asked for."""
        if filters not in self._has_any:
            now = self._clock()
            counted = self._count_matching(filters, self._where(filters, now), now)
            self._has_any[filters] = any(each.memories for each in counted.values())
        return self._has_any[filters]

    def count(self, scope: SearchScope, where: Expr) -> int:
        """Return how many memories in scope meet a further condition, in all knowledge bases."""
        return sum(self._counts(both(scope.where, where)).values())

    def scope(self, filters: Filters) -> SearchScope:
        """Return the memories that match the filters, valid until the first of them expires."""
        now = self._clock()
        cached = self._scopes.get(filters, now)
        if cached is None:
            scope = self._read_scope(filters, now)
            cached = self._scopes.put(filters, _CachedScope(scope), scope.valid)
        cached.uses += 1
        if cached.uses >= _READS_BEFORE_CACHING and not cached.is_settled:
            cached.is_settled = True
            self._hold_in_memory(cached)
        return cached.scope

    def ended_within(self, filters: Filters, now: datetime) -> Expr:
        """Return the condition on what held once within the filters, and no longer does."""
        return self._where(filters, now, has_ended=True)

    def _where(self, filters: Filters, now: datetime, *, has_ended: bool = False) -> Expr:
        return memory_filter(filters, now, has_ended=has_ended) & metadata_condition(
            filters, "memories", self.sources.values()
        )

    def _read_scope(self, filters: Filters, now: datetime) -> SearchScope:
        condition = self._where(filters, now)
        counted = self._count_matching(filters, condition, now)
        counts = {kb: each.memories for kb, each in counted.items()}
        ends = (each.valid.until for each in counted.values())
        valid = ValiditySpan(now, min((end for end in ends if end is not None), default=None))
        where = None if self._counts(None) == counts else condition
        sources = {
            kb: (InMemoryRows if counts[kb] <= MAX_IN_MEMORY else TableRows)(source, where)
            for kb, source in self.sources.items()
        }
        return SearchScope(where, sources, valid)

    def _count_matching(
        self, filters: Filters, where: Expr, now: datetime
    ) -> Mapping[str, _Counted]:
        """Count the memories that match the filters, by knowledge base."""
        return {
            kb: self._kept(
                kb,
                "scopes",
                filters,
                _Counted,
                partial(_count_matching, source, filters, where, now),
                lambda kept: kept.valid.contains(now),
            )
            for kb, source in self.sources.items()
        }

    def _count_ended(self, kb: str) -> int:
        """Return how many facts of a knowledge base have ended or will end."""
        count = partial(self.sources[kb].count, "memories", _ENDED)
        return self._kept(kb, "scopes", "ended facts", int, count)

    def _hold_in_memory(self, cached: _CachedScope) -> None:
        """Have the rows of a scope held in memory, as far as there is room for them."""
        room = MAX_BYTES_IN_MEMORY - sum(each.bytes_in_memory for each in self._scopes.values())
        sources = dict(cached.scope.sources)
        for kb, count in self._counts(cached.scope.where).items():
            size = count * (_BYTES_OF_TEXT + _BYTES_OF_NUMBER * self.sources[kb].dimension)
            if isinstance(sources[kb], InMemoryRows) or size > room:
                continue
            room -= size
            cached.bytes_in_memory += size
            sources[kb] = InMemoryRows(self.sources[kb], cached.scope.where)
        cached.scope = replace(cached.scope, sources=sources)

    def statistics(self, filters: Filters, scope: SearchScope) -> TermStatistics:
        """Return how common terms are among the memories that match the filters."""
        known = self._statistics.get(filters, scope.valid.since)
        if known is not None:
            return known
        each = {kb: self._count_terms(kb, filters, scope) for kb in self.sources}
        return self._statistics.put(filters, joint_statistics(each), scope.valid)

    def _count_terms(self, kb: str, filters: Filters, scope: SearchScope) -> TermStatistics:
        count = partial(sample_term_statistics, self.sources[kb], scope.where)
        if scope.valid.until is not None:
            return count()
        return self._kept(kb, "statistics", filters, TermStatistics, count)

    def graph(
        self,
        kb: str,
        filters: Filters,
        scope: SearchScope,
        decisions: Decisions,
        *,
        evidence_only: bool,
    ) -> NameIndex:
        """Return the index of names in the matching memories of a knowledge base.

        Args:
            kb: The knowledge base.
            filters: Which memories are searched.
            scope: The same, resolved.
            decisions: The owner's decisions on which names mean the same.
            evidence_only: Whether only verbatim passages count as mentions.
        """
        from memctl.graph.name_index import build_index, cached_name_index

        key = kb, filters, decisions, evidence_only
        known = self._graphs.get(key, scope.valid.since)
        if known is not None:
            return known
        source, where = self.sources[kb], scope.where
        if scope.valid.until is not None:
            index = build_index(source, where, decisions, evidence_only=evidence_only)
        else:
            index = cached_name_index(
                source, where, repr(filters), decisions, evidence_only=evidence_only
            )
        return self._graphs.put(key, index, scope.valid)

    def _counts(self, where: Expr | None) -> Mapping[str, int]:
        return {kb: source.count("memories", where) for kb, source in self.sources.items()}

    def _kept(
        self,
        kb: str,
        kind: DerivedKind,
        what: Filters | str,
        type_: type[T],
        make: Callable[[], T],
        holds: Callable[[T], bool] = lambda _: True,
    ) -> T:
        """Return what is computed of a knowledge base and kept on disk until its next commit.

        Kept is only what everybody asks for: other conditions may hang on the time or on the other
        knowledge bases, and would soon push out the rest.
        """
        if isinstance(what, Filters) and what != Filters(levels=what.levels, private=what.private):
            return make()
        if kb not in self._states:
            state = self.sources[kb].state_of("documents", "memories")
            self._states[kb] = json.dumps([code_digest(*_COUNTING_MODULES), state])
        name = json.dumps([self._states[kb], repr(what)])
        return kept_or_made(self.sources[kb].derived, kind, name, type_, make, holds)


def _count_languages(source: Snapshot, where: Expr | None) -> dict[str, int]:
    """Return how often each language is in a sample of the documents that meet a condition."""
    seen, count = Counter[str](), source.count("documents", where)
    for table in read_spread_sample(source, "documents", where, ["language"], count):
        seen.update(language or "en" for language in table["language"].to_pylist())
    return seen


def _count_matching(
    source: Snapshot, filters: Filters, where: Expr | None, now: datetime
) -> _Counted:
    """Return how many memories meet the condition of filters, until the first of them expires."""
    end = None
    if filters.as_of is None:
        ending = both(where, ~col("expires_at").is_null())
        end = pc.min(source.scan("memories", ending, ["expires_at"])["expires_at"]).as_py()
    return _Counted(source.count("memories", where), ValiditySpan(now, end))


class _TimedCache(Generic[K, V]):
    """The values computed last, each for as long as it is valid."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[K, tuple[V, ValiditySpan]] = OrderedDict()

    def get(self, key: K, now: datetime) -> V | None:
        """Return the value for a key; None where there is none that is still valid."""
        value, valid = self._values.get(key, (None, None))
        return value if valid is not None and valid.contains(now) else None

    def values(self) -> list[V]:
        """Return the values, those no longer valid too."""
        return [value for value, _ in self._values.values()]

    def put(self, key: K, value: V, valid: ValiditySpan) -> V:
        """Store a value, drop the oldest ones beyond the limit, and return the value."""
        self._values[key] = value, valid
        self._values.move_to_end(key)
        while len(self._values) > self._size:
            self._values.popitem(last=False)
        return value


# --- facts that have ended -----------------------------------------------------------------------

_ENDED = (col("level") == "memory") & ~col("superseded_by").is_null()
_POSITION_COLUMNS = ("id", "document_id", "start", "end")
_ENDED_COLUMNS = (*_POSITION_COLUMNS, "valid_to", "superseded_by")


class EndedFacts:
    """Marks the facts in hits that have ended; evidence keeps saying them.

    Args:
        sources: Snapshots by the name of their knowledge base.
        count: Returns how many such facts a knowledge base has.
    """

    def __init__(self, sources: Sources, count: Callable[[str], int]) -> None:
        self._all = sources
        self._count = count

    @cached_property
    def _sources(self) -> Sources:
        return {kb: source for kb, source in self._all.items() if self._count(kb)}

    def mark(self, hits: Sequence[Hit], at: datetime) -> tuple[Hit, ...]:
        """Return the hits with the facts in them that had ended by a time."""
        documents: dict[str, set[str]] = {}
        for hit in hits:
            if hit.document_id is not None and hit.kb in self._sources:
                documents.setdefault(hit.kb, set()).add(hit.document_id)
        found = {
            kb: _ended_by_document(self._sources[kb], ids, at) for kb, ids in documents.items()
        }
        return tuple(_mark_ended(h, found.get(h.kb, {}).get(h.document_id or "", ())) for h in hits)


def _mark_ended(hit: Hit, ended: Iterable[EndedFact]) -> Hit:
    """Mark a hit whose text is copied from its document and says an ended fact."""
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
        if _has_other_evidence(row, places.get(row["superseded_by"])):
            span = EndedFact(row["start"], row["end"], row["valid_to"], row["superseded_by"])
            found.setdefault(row["document_id"], []).append(span)
    return found


def _has_other_evidence(row: Mapping[str, Any], later: Mapping[str, Any] | None) -> bool:
    """Return whether a fact is newer, not a later version of the same fact on the same words."""
    if row["start"] is None or later is None or later["start"] is None:
        return False
    return any(row[name] != later[name] for name in ("document_id", "start", "end"))
