"""What is searched, as it was at one moment, with what is worked out of it once for many questions.

Knows nothing of any one question.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from memctl.records import Filters
from memctl.retrieve.candidates import Sources
from memctl.retrieve.kept import MOST_KEPT, Condition, Kept, Stored
from memctl.retrieve.statistics import (
    NO_STATISTICS,
    TermStatistics,
    spread_sample,
    term_statistics,
)
from memctl.store.filters import Expr, memory_filter, namespace_filter

if TYPE_CHECKING:
    from memctl.graph.index import Index
    from memctl.graph.resolution import Decisions

Made = TypeVar("Made")

_MOST_LANGUAGES = 8
_LEAST_LANGUAGE_SHARE = 0.02
_LANGUAGES_KEPT = 64
_STATISTICS_KEPT = 64
_CONDITIONS_KEPT = 8
_GRAPHS_KEPT = 8
_AFTER_ALL = datetime(9999, 1, 1, tzinfo=UTC)


class Corpus:
    """Snapshots that are searched together.

    Args:
        sources: Snapshots by the name of their knowledge base.
        clock: Tells the time, on which it depends what is valid.
        decisions: Gives what was decided by hand on which names of a knowledge base mean the
            same; without it nothing was.
    """

    def __init__(
        self,
        sources: Sources,
        clock: Callable[[], datetime],
        decisions: Callable[[str], Decisions] | None = None,
    ) -> None:
        self.sources = dict(sorted(sources.items()))
        self._clock = clock
        self._decisions = decisions
        self._languages: OrderedDict[Filters, tuple[str, ...]] = OrderedDict()
        self._statistics: OrderedDict[Filters, TermStatistics] = OrderedDict()
        self._has_any: dict[Filters, bool] = {}
        self._lasting: OrderedDict[Filters, Condition] = OrderedDict()
        self._graphs: OrderedDict[Filters, Mapping[str, Index]] = OrderedDict()

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
            for table in spread_sample(snapshot, "documents", where, "language", count):
                seen.update(language or "en" for language in table["language"].to_pylist())
        least = _LEAST_LANGUAGE_SHARE * seen.total()
        common = [name for name, count in seen.most_common(_MOST_LANGUAGES) if count >= least]
        languages = tuple(dict.fromkeys([*common, "en"]))
        return _kept(self._languages, within, languages, _LANGUAGES_KEPT)

    def has_any(self, filters: Filters) -> bool:
        """Tell whether any memory is what the filters say."""
        if filters not in self._has_any:
            where = memory_filter(filters, self._clock())
            self._has_any[filters] = any(self._counts(where).values())
        return self._has_any[filters]

    def condition(self, filters: Filters) -> Condition:
        """What has to hold of memories; what it holds of is kept where nothing of it can end."""
        lasting = self._lasting.get(filters)
        if lasting is not None:
            return lasting
        now, ever = (memory_filter(filters, at) for at in (self._clock(), _AFTER_ALL))
        counts = self._counts(now)
        if self._counts(ever) != counts:
            return Condition(now, {kb: Stored(each, now) for kb, each in self.sources.items()})
        where = None if self._counts(None) == counts else now
        sources = {
            kb: (Kept if counts[kb] <= MOST_KEPT else Stored)(source, where)
            for kb, source in self.sources.items()
        }
        condition = Condition(where, sources, lasts=True)
        return _kept(self._lasting, filters, condition, _CONDITIONS_KEPT)

    def statistics(self, filters: Filters, condition: Condition) -> TermStatistics:
        """Return how common terms are among the memories that the filters let through."""
        known = self._statistics.get(filters)
        if known is not None:
            return known
        each = (term_statistics(source, condition.where) for source in self.sources.values())
        return _kept(self._statistics, filters, sum(each, NO_STATISTICS), _STATISTICS_KEPT)

    def graphs(
        self, filters: Filters, condition: Condition, *, evidence_only: bool
    ) -> Mapping[str, Index]:
        """The names in the memories that may be found, read once for each condition."""
        known = self._graphs.get(filters)
        if known is not None:
            return known
        made = {
            kb: self._graph(kb, filters, condition, evidence_only=evidence_only)
            for kb in self.sources
        }
        return _kept(self._graphs, filters, made, _GRAPHS_KEPT)

    def _graph(
        self, kb: str, filters: Filters, condition: Condition, *, evidence_only: bool
    ) -> Index:
        from memctl.graph.index import NO_DECISIONS, build_index
        from memctl.graph.kept_index import kept_index

        source, where = self.sources[kb], condition.where
        decisions = self._decisions(kb) if self._decisions else NO_DECISIONS
        if not condition.lasts:
            return build_index(source, where, decisions, evidence_only=evidence_only)
        return kept_index(source, where, repr(filters), decisions, evidence_only=evidence_only)

    def _counts(self, where: Expr | None) -> Mapping[str, int]:
        return {kb: source.count("memories", where) for kb, source in self.sources.items()}


def _kept(made: OrderedDict[Filters, Made], filters: Filters, value: Made, most: int) -> Made:
    """Keep what was made for some filters, and of what was made before only so much."""
    made[filters] = value
    while len(made) > most:
        made.popitem(last=False)
    return value
