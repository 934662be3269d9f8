"""Search: a question and filters become hits, best first, from one or several knowledge bases.

Each leg finds candidates, every candidate is scored exactly in both legs, the legs' scores are
fused over all candidates of all knowledge bases together, and what says the same is one hit.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from memctl.choices import HOPS, Mode
from memctl.errors import (
    ConfigError,
    KnowledgeBaseUnavailable,
    MemctlError,
    ModelRefused,
    ModelUnavailable,
    UsageError,
)
from memctl.models.protocols import Embedder
from memctl.records import Community, Filters, Hit
from memctl.retrieve.candidates import BOTH, Candidate, Gatherer, Key, Leg, Sources
from memctl.retrieve.clues import own_score, with_clues
from memctl.retrieve.collapse import Collapsed, collapsed
from memctl.retrieve.days import dated, with_days
from memctl.retrieve.demand import Demand, demand_of, in_other_words, with_exact
from memctl.retrieve.ended import Endings
from memctl.retrieve.expansion import Expansions, expansions, with_expansions
from memctl.retrieve.fusion import KEYWORD_WEIGHT, checked_fusion
from memctl.retrieve.hits import hits_of
from memctl.retrieve.kept import MOST_KEPT, Condition, Kept, Stored
from memctl.retrieve.kin import Kin, kin_of, widened, with_kin
from memctl.retrieve.periods import explained_times
from memctl.retrieve.question import Meaning, Question, understood
from memctl.retrieve.ranking import Plan, scored
from memctl.retrieve.relevance import Relevance, relevance
from memctl.retrieve.rerank import NO_RERANKING, Reranking, reranked
from memctl.retrieve.rounds import Reformulate, in_rounds
from memctl.retrieve.standing import NO_STANDING, Standing
from memctl.retrieve.statistics import NO_STATISTICS, TermStatistics, term_statistics
from memctl.retrieve.surroundings import Surroundings
from memctl.retrieve.syntax import Expression, Node, parsed, patterns_of, resolved, told
from memctl.retrieve.words import judged_by_words, word_embedder
from memctl.store.filters import Expr, memory_filter

if TYPE_CHECKING:
    from memctl.graph.index import Index
    from memctl.graph.resolution import Decisions
    from memctl.retrieve.themes import Themes
    from memctl.retrieve.walk import Way

Made = TypeVar("Made")

MODES: tuple[Mode, ...] = get_args(Mode)
_LEGS: Mapping[Mode, frozenset[Leg]] = {
    "hybrid": BOTH,
    "graph": BOTH,
    "keyword": frozenset(("keyword",)),
    "vector": frozenset(("vector",)),
}

AWAY = (ModelUnavailable, KnowledgeBaseUnavailable)
"""An embedder cannot be had now, or what it costs cannot be noted."""

CANDIDATES = 100
"""Candidates a leg, at least; twice as many as the hits asked for."""
MOST_INSIGHTS = 3
_MOST_LANGUAGES = 4
_LEAST_LANGUAGE_SHARE = 0.02
_LANGUAGE_SAMPLE = 4_096
_STATISTICS_KEPT = 64
_CONDITIONS_KEPT = 8
_GRAPHS_KEPT = 8
_AFTER_ALL = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)  # without slots, for what is worked out late is kept
class SearchOutcome:
    """What a search found, with what answering needs to know about it.

    What takes word vectors is worked out when it is first asked for, so that no model is loaded
    where words alone are looked for and decide.
    """

    asked: Question
    """As it was understood by itself."""
    mode: Mode
    statistics: TermStatistics
    languages: tuple[str, ...]
    """Those of the documents, in which the question was asked."""
    hits: tuple[Hit, ...]
    insights: tuple[Hit, ...]
    """Insights that bear on the question; never among the hits unless their level was asked for."""
    explain: Mapping[str, Any]
    meaning: Meaning
    candidates: tuple[Candidate, ...]
    """Those that became the hits."""
    has_cosines: bool
    """Whether theirs are by word vectors."""
    notes: tuple[str, ...] = ()
    """What was done without because a model could not be had."""
    themes: Themes | None = None
    """Has the graphs that were walked, where any were."""

    @property
    def vector(self) -> NDArray[np.float32] | None:
        """The question's, by ``embedder``; None where words alone are looked for."""
        return None if self.mode == "keyword" else self.meaning.vector

    @property
    def embedder(self) -> Embedder:
        """What words and sentences are judged by."""
        return self.meaning.embedder

    @cached_property
    def question(self) -> Question:
        """The question with the words that the hits have for its own."""
        return widened(self.asked, self._kin)

    @cached_property
    def demand(self) -> Demand:
        """What a sentence must have to answer it."""
        return demand_of(self.question, self.hits, self.languages)

    @cached_property
    def wider_demand(self) -> Demand:
        """What it must have, or else what means the same."""
        return in_other_words(self.demand, self.hits, self.meaning, self.languages)

    @cached_property
    def relevance(self) -> Relevance:
        """How well the hits bear on the question, those best by their own words before others."""
        best = with_kin(self.candidates, self.hits, self._kin, self.languages)
        best = with_exact(self.demand, with_days(self.asked, best, self.hits), self.hits)
        if self.mode == "keyword":
            by_words_alone = self._judged(best)
            if by_words_alone.is_relevant:
                return by_words_alone
        if not self.has_cosines:
            best = judged_by_words(best, self.hits, self.embedder, self.meaning.vector)
        return self._judged(best)

    @cached_property
    def communities(self) -> tuple[Community, ...]:
        """What the names in question and hits are part of, where the hits bear on the question."""
        if self.themes is None or not self.relevance.is_near:
            return ()
        return self.themes.around(self.asked.text, self.hits)

    def _judged(self, candidates: Sequence[Candidate]) -> Relevance:
        own = [own_score(hit) for hit in self.hits]
        order = sorted(range(len(own)), key=lambda at: -own[at])
        return relevance(self.question, [candidates[at] for at in order], self.statistics)

    @cached_property
    def _kin(self) -> Kin:
        return kin_of(self.asked, self.statistics, self.meaning, self.languages, self.hits)


class Searcher:
    """Searches snapshots that were taken at one moment; keep it while they are to be asked.

    Args:
        sources: Snapshots by the name of their knowledge base.
        embedders: What turned the passages of each into vectors, one object where it is the same;
            none where only keywords can be asked for.
        clock: Tells the time, on which it depends what is valid.
        reranking: What puts the best of ``hybrid`` in order.
        load_words: Gives what words and sentences are judged by, when that is needed; by default
            an embedder that can, or else the built-in one.
        standing: What counts in ``hybrid`` and ``graph`` besides likeness to the question.
        decisions: Gives what was decided by hand on which names of a knowledge base mean the
            same, for ``graph``; by default nothing was.
        reformulate: Words the next query of ``agentic``; by default rules do.
    """

    def __init__(
        self,
        sources: Sources,
        embedders: Mapping[str, Embedder],
        clock: Callable[[], datetime],
        reranking: Reranking = NO_RERANKING,
        load_words: Callable[[], Embedder] | None = None,
        standing: Standing = NO_STANDING,
        decisions: Callable[[str], Decisions] | None = None,
        reformulate: Reformulate | None = None,
    ) -> None:
        self._sources = dict(sorted(sources.items()))
        self._endings = Endings(self._sources)
        self._embedders = embedders
        self._load_words = load_words or partial(word_embedder, list(embedders.values()))
        self._clock = clock
        self._reranking = reranking
        self._standing = standing
        self._reformulate = reformulate
        self._languages = _languages(self._sources)
        self._statistics: OrderedDict[Filters, TermStatistics] = OrderedDict()
        self._insights: dict[Filters, bool] = {}
        self._lasting: OrderedDict[Filters, Condition] = OrderedDict()
        self._decisions = decisions
        self._graphs: OrderedDict[Filters, Mapping[str, Index]] = OrderedDict()

    def search(
        self,
        question: str,
        *,
        mode: str = "hybrid",
        filters: Filters | None = None,
        limit: int = 10,
        fusion: str = "zscore",
        hops: int = HOPS,
        keyword_weight: float = KEYWORD_WEIGHT,
    ) -> SearchOutcome:
        """Return the hits for a question.

        Args:
            question: The question, in words.
            mode: ``hybrid``, ``vector``, ``keyword``, ``graph``, or ``agentic``:
                up to three rounds of ``hybrid``, see ``rounds``.
            filters: Looked at before the search; without levels, evidence and memories are found.
            limit: The most hits to return.
            fusion: How ``hybrid`` makes one score of two: ``zscore``, ``minmax``, ``rrf`` or
                ``weighted``.
            keyword_weight: The share of the words in ``weighted``.
            hops: So many steps at most that ``graph`` goes, 1 to 4.

        Raises:
            UsageError: The question is empty, or a mode, fusion, limit or filter is not valid.
            ModelError: The question's vector cannot be had by any embedder, or by one of them in
                the mode ``vector``; never in the mode ``keyword``.
        """
        plan = Plan(
            _checked_mode(mode),
            checked_fusion(fusion),
            filters or Filters(),
            limit,
            hops,
            keyword_weight=keyword_weight,
        )
        expression = self._parsed(question, plan.mode)
        if plan.mode != "agentic":
            return self._found(expression, plan)
        plan = replace(plan, mode="hybrid")

        def once(query: str | None) -> SearchOutcome:
            """Search by the question, or by other words for what it asks for."""
            again = Expression(query or "", expression.required)
            return self._found(expression if query is None else again, plan)

        return in_rounds(question, once, limit, self._reformulate)

    def _found(self, expression: Expression, plan: Plan) -> SearchOutcome:
        """Search once."""
        asked = understood(expression.text, self._languages)
        condition = self._condition(plan.main_filters)
        statistics = self._statistics_for(plan.main_filters, condition.where)
        meant = self._expansions(expression, condition, statistics)
        required = expression.required and resolved(expression.required, meant)
        asked = with_expansions(asked, expression.patterns, meant)
        meaning = Meaning(asked, statistics, self._load_words)
        vectors, notes = self._vectors(asked, plan.mode, meaning)
        plan = replace(plan, spaces=self._spaces(vectors))
        asked = dated(asked, statistics, self._clock().date())
        gatherer = Gatherer(self._sources, asked, statistics, vectors, _LEGS[plan.mode], required)
        reranking = self._reranking if plan.mode == "hybrid" else NO_RERANKING
        found, ways = self._ranked(gatherer, condition, plan, statistics)
        at = plan.filters.as_of or self._clock()
        ranked, more_notes = reranked(reranking, self._sources, asked.text, found)
        return SearchOutcome(
            asked=asked,
            mode=plan.mode,
            statistics=statistics,
            languages=self._languages,
            hits=self._endings.marked(hits_of(self._sources, ranked[: plan.limit]), at),
            insights=self._bearing_insights(gatherer, asked, statistics, plan),
            explain=self._explanation(plan, asked, statistics, len(ranked))
            | _explained_syntax(required, meant)
            | _told_ways(ways, ranked[: plan.limit]),
            meaning=meaning,
            candidates=tuple(item.candidate for item in ranked[: plan.limit]),
            has_cosines=len(vectors) == len(self._sources)
            and all(vector is meaning.vector for vector in vectors.values()),
            notes=(*((expression.note,) if expression.note else ()), *notes, *more_notes),
            themes=self._themes(plan, condition),
        )

    def _parsed(self, question: str, mode: Mode) -> Expression:
        """Take the question apart; vectors know no syntax."""
        return Expression(question) if mode == "vector" else parsed(question, self._languages)

    def _expansions(
        self, expression: Expression, condition: Condition, statistics: TermStatistics
    ) -> Expansions:
        patterns = set(expression.patterns.values())
        patterns.update(patterns_of(expression.required) if expression.required else ())
        return {
            pattern: expansions(
                pattern, self._sources, condition.where, statistics, self._languages
            )
            for pattern in sorted(patterns, key=str)
        }

    def _vectors(
        self, question: Question, mode: Mode, meaning: Meaning
    ) -> tuple[dict[str, NDArray[np.float32]], tuple[str, ...]]:
        """Return the question's vector for each source that has any, and what is done without."""
        if mode == "keyword":
            return {}, ()
        vectors: dict[str, NDArray[np.float32]] = {}
        failures: dict[str, MemctlError] = {}
        for kbs in self._alike():
            try:
                vector = self._vector(question, self._embedders[kbs[0]], meaning)
            except (*AWAY, ModelRefused, ConfigError) as error:  # raised below where it is all
                if mode == "vector":
                    raise
                failures |= dict.fromkeys(kbs, error)
            else:
                vectors |= dict.fromkeys(kbs, vector)
        if failures and not vectors:
            raise next(iter(failures.values()))
        return vectors, _by_keyword_alone(failures)

    def _alike(self) -> list[list[str]]:
        """The sources that have the same embedder, together."""
        alike: dict[int, list[str]] = {}
        for kb in self._sources:
            if kb in self._embedders:
                alike.setdefault(id(self._embedders[kb]), []).append(kb)
        return list(alike.values())

    def _vector(
        self, question: Question, embedder: Embedder, meaning: Meaning
    ) -> NDArray[np.float32]:
        """Return the question's vector to compare passages' by."""
        if embedder is meaning.embedder:
            return meaning.vector
        vector: NDArray[np.float32] = embedder.embed([question.text])[0]
        return vector

    def _spaces(self, vectors: Mapping[str, NDArray[np.float32]]) -> Mapping[str, int]:
        """Return a number for the embedder of each source; none where all have one, or none."""
        spaces = {kb: n for n, kbs in enumerate(self._alike()) for kb in kbs if kb in vectors}
        is_one = len(spaces) == len(self._sources) and len(set(spaces.values())) == 1
        return {} if is_one else spaces

    def _ranked(
        self, gatherer: Gatherer, condition: Condition, plan: Plan, statistics: TermStatistics
    ) -> tuple[list[Collapsed], Mapping[Key, Way]]:
        found = gatherer.gather(condition, max(CANDIDATES, 2 * plan.limit))
        if plan.collapses:
            found |= _missing_sources(gatherer, found, condition)
        candidates = sorted(found.values(), key=lambda candidate: candidate.key)
        first = scored(candidates, plan)
        items = collapsed(first, plan.collapses)
        if plan.mode != "graph" and (plan.mode != "hybrid" or not plan.collapses):
            return items, {}
        around = Surroundings(
            gatherer,
            condition,
            first,
            plan,
            statistics,
            self._languages,
            self._standing,
            self._clock(),
        )
        if plan.mode == "hybrid":
            return with_clues(items, gatherer.question, around), {}
        from memctl.retrieve.walk import walked

        graphs = self._graphs_for(plan, condition)
        standing = around.with_standing(items)
        walk = walked(standing, gatherer.question, around, graphs, plan.hops)
        return walk.items, walk.ways

    def _graphs_for(self, plan: Plan, condition: Condition) -> Mapping[str, Index]:
        """The names in the memories that may be found, read once for each condition."""
        known = self._graphs.get(plan.main_filters)
        if known is not None:
            return known
        made = {kb: self._graph(kb, plan, condition) for kb in self._sources}
        return _kept(self._graphs, plan.main_filters, made, _GRAPHS_KEPT)

    def _graph(self, kb: str, plan: Plan, condition: Condition) -> Index:
        from memctl.graph.index import NO_DECISIONS, build_index
        from memctl.graph.kept_index import kept_index

        source, where = self._sources[kb], condition.where
        decisions = self._decisions(kb) if self._decisions else NO_DECISIONS
        if not condition.lasts:
            return build_index(source, where, decisions, evidence_only=plan.collapses)
        what = repr(plan.main_filters)
        return kept_index(source, where, what, decisions, evidence_only=plan.collapses)

    def _themes(self, plan: Plan, condition: Condition) -> Themes | None:
        if plan.mode != "graph":
            return None
        from memctl.retrieve.themes import Themes

        return Themes(self._sources, self._graphs_for(plan, condition))

    def _bearing_insights(
        self, gatherer: Gatherer, question: Question, statistics: TermStatistics, plan: Plan
    ) -> tuple[Hit, ...]:
        filters = replace(plan.filters, levels=("insight",))
        if not plan.collapses or not self._has_insights(filters):
            return ()
        found = gatherer.gather(self._condition(filters), 2 * MOST_INSIGHTS)
        bearing = [
            candidate
            for candidate in sorted(found.values(), key=lambda candidate: candidate.key)
            if relevance(question, [candidate], statistics).is_relevant
        ]
        ranked = collapsed(scored(bearing, plan), collapses=False)
        return hits_of(self._sources, ranked[:MOST_INSIGHTS])

    def _has_insights(self, filters: Filters) -> bool:
        if filters not in self._insights:
            where = memory_filter(filters, self._clock())
            self._insights[filters] = any(self._counts(where).values())
        return self._insights[filters]

    def _condition(self, filters: Filters) -> Condition:
        """What has to hold of memories; what it holds of is kept where nothing of it can end."""
        lasting = self._lasting.get(filters)
        if lasting is not None:
            return lasting
        now, ever = (memory_filter(filters, at) for at in (self._clock(), _AFTER_ALL))
        counts = self._counts(now)
        if self._counts(ever) != counts:
            return Condition(now, {kb: Stored(each, now) for kb, each in self._sources.items()})
        where = None if self._counts(None) == counts else now
        sources = {
            kb: (Kept if counts[kb] <= MOST_KEPT else Stored)(source, where)
            for kb, source in self._sources.items()
        }
        condition = Condition(where, sources, lasts=True)
        return _kept(self._lasting, filters, condition, _CONDITIONS_KEPT)

    def _counts(self, where: Expr | None) -> Mapping[str, int]:
        return {kb: source.count("memories", where) for kb, source in self._sources.items()}

    def _statistics_for(self, filters: Filters, where: Expr | None) -> TermStatistics:
        known = self._statistics.get(filters)
        if known is not None:
            return known
        each = (term_statistics(source, where) for source in self._sources.values())
        return _kept(self._statistics, filters, sum(each, NO_STATISTICS), _STATISTICS_KEPT)

    def _explanation(
        self, plan: Plan, question: Question, statistics: TermStatistics, candidates: int
    ) -> dict[str, Any]:
        return {
            "mode": plan.mode,
            "fusion": plan.fusion if plan.mode in ("hybrid", "graph") else None,
            "languages": list(self._languages),
            "terms": {term: round(statistics.idf(term), 3) for term in question.terms},
            "memories": statistics.memories,
            "sampled": statistics.sampled,
            "candidates": candidates,
            **self._explained_spaces(plan),
            **(explained_times(question, self._clock().date()) if plan.mode == "hybrid" else {}),
        }

    def _explained_spaces(self, plan: Plan) -> dict[str, Any]:
        """Whose vectors each source was searched by, where they are not those of one embedder."""
        if not plan.spaces:
            return {}
        named = {kb: self._embedders[kb].id if kb in plan.spaces else None for kb in self._sources}
        return {"embedders": named, "vectors_compared": "within each embedder"}


def _kept(made: OrderedDict[Filters, Made], filters: Filters, value: Made, most: int) -> Made:
    """Keep what was made for some filters, and of what was made before only so much."""
    made[filters] = value
    while len(made) > most:
        made.popitem(last=False)
    return value


def _told_ways(ways: Mapping[Key, Way], ranked: Sequence[Collapsed]) -> dict[str, Any]:
    """The way that led to each hit: memory ids, with the names between."""
    told = {key[1]: list(ways[key]) for item in ranked if (key := item.candidate.key) in ways}
    return {"paths": told} if told else {}


def _checked_mode(name: str) -> Mode:
    for mode in MODES:
        if mode == name:
            return mode
    raise UsageError(f"unknown mode {name!r}", f"use one of: {', '.join(MODES)}")


def _explained_syntax(required: Node | None, meant: Expansions) -> dict[str, Any]:
    """What must hold, and what words with ``*`` and ``~`` stand for; nothing of plain words."""
    expanded = {str(pattern): list(terms) for pattern, terms in meant.items()}
    return ({"required": told(required)} if required else {}) | (
        {"expanded": expanded} if expanded else {}
    )


def _by_keyword_alone(failures: Mapping[str, MemctlError]) -> tuple[str, ...]:
    """One note for each reason, with the sources that it holds for."""
    kbs: dict[str, list[str]] = {}
    for kb, error in failures.items():
        kbs.setdefault(error.message, []).append(kb)
    return tuple(f"found by keyword alone in {', '.join(kbs[why])}: {why}" for why in kbs)


def _missing_sources(
    gatherer: Gatherer, found: Mapping[Key, Candidate], condition: Condition
) -> dict[Key, Candidate]:
    """Return the passages behind distilled memories of which no passage was found itself."""
    wanted: dict[str, set[str]] = {}
    for candidate in found.values():
        kb = candidate.key[0]
        if candidate.source_ids and not any((kb, id) in found for id in candidate.source_ids):
            wanted.setdefault(kb, set()).add(candidate.source_ids[0])
    missing: dict[Key, Candidate] = {}
    for kb, ids in wanted.items():
        missing |= gatherer.fetch(kb, sorted(ids), condition)
    return missing


def _languages(sources: Sources) -> tuple[str, ...]:
    """Return the languages of the documents, most frequent first, always with English."""
    seen: Counter[str] = Counter()
    for snapshot in sources.values():
        table = snapshot.scan("documents", None, ["language"], limit=_LANGUAGE_SAMPLE)
        seen.update(language or "en" for language in table["language"].to_pylist())
    least = _LEAST_LANGUAGE_SHARE * seen.total()
    common = [language for language, count in seen.most_common(_MOST_LANGUAGES) if count >= least]
    return tuple(dict.fromkeys([*common, "en"]))
