"""Search: a question and filters become hits, best first, from one or several knowledge bases.

Each leg finds candidates, every candidate is scored exactly in both legs, the legs' scores are
fused over all candidates of all knowledge bases together, and what says the same is one hit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, get_args

from memctl.choices import HOPS, Mode
from memctl.errors import UsageError
from memctl.models.protocols import Embedder
from memctl.records import Filters, Hit
from memctl.retrieve.candidates import BOTH, Candidate, Gatherer, Key, Leg, Sources
from memctl.retrieve.clues import with_clues
from memctl.retrieve.collapse import Collapsed, collapsed
from memctl.retrieve.comparing import Comparing
from memctl.retrieve.corpus import Corpus
from memctl.retrieve.days import dated
from memctl.retrieve.ended import Endings
from memctl.retrieve.expansion import Expansions, expansions, with_expansions
from memctl.retrieve.explained import explained_search, explained_syntax, explained_ways
from memctl.retrieve.fusion import KEYWORD_WEIGHT, checked_fusion
from memctl.retrieve.hits import hits_of
from memctl.retrieve.kept import Condition
from memctl.retrieve.outcome import SearchOutcome
from memctl.retrieve.question import Meaning, Question, understood
from memctl.retrieve.ranking import Plan, scored
from memctl.retrieve.relevance import relevance
from memctl.retrieve.rerank import NO_RERANKING, Reranking, reranked
from memctl.retrieve.rounds import Reformulate, in_rounds
from memctl.retrieve.standing import NO_STANDING, Standing
from memctl.retrieve.statistics import TermStatistics
from memctl.retrieve.surroundings import Surroundings
from memctl.retrieve.syntax import Expression, parsed, patterns_of, resolved
from memctl.retrieve.words import word_embedder

if TYPE_CHECKING:
    from memctl.graph.index import Index
    from memctl.graph.resolution import Decisions
    from memctl.retrieve.themes import Themes
    from memctl.retrieve.walk import Way

MODES: tuple[Mode, ...] = get_args(Mode)
_LEGS: Mapping[Mode, frozenset[Leg]] = {
    "hybrid": BOTH,
    "graph": BOTH,
    "keyword": frozenset(("keyword",)),
    "vector": frozenset(("vector",)),
}

CANDIDATES = 100
"""Candidates a leg, at least; twice as many as the hits asked for."""
MOST_INSIGHTS = 3


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
        self._corpus = Corpus(sources, clock, decisions)
        self._sources = self._corpus.sources
        self._languages = self._corpus.languages
        self._comparing = Comparing(self._sources, embedders)
        self._endings = Endings(self._sources)
        self._load_words = load_words or partial(word_embedder, list(embedders.values()))
        self._clock = clock
        self._reranking = reranking
        self._standing = standing
        self._reformulate = reformulate

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
        condition = self._corpus.condition(plan.main_filters)
        statistics = self._corpus.statistics(plan.main_filters, condition)
        meant = self._expansions(expression, condition, statistics)
        required = expression.required and resolved(expression.required, meant)
        asked = with_expansions(asked, expression.patterns, meant)
        meaning = Meaning(asked, statistics, self._load_words)
        vectors, notes = self._comparing.vectors(asked, plan.mode, meaning)
        plan = replace(plan, spaces=self._comparing.spaces(vectors))
        asked = dated(asked, statistics, self._clock().date())
        gatherer = Gatherer(self._sources, asked, statistics, vectors, _LEGS[plan.mode], required)
        reranking = self._reranking if plan.mode == "hybrid" else NO_RERANKING
        by_words = len(vectors) == len(self._sources) and all(
            vector is meaning.vector for vector in vectors.values()
        )
        found, ways = self._ranked(
            gatherer, condition, plan, statistics, meaning if by_words else None
        )
        at = plan.filters.as_of or self._clock()
        ranked, more_notes = reranked(reranking, self._sources, asked.text, found)
        return SearchOutcome(
            asked=asked,
            mode=plan.mode,
            statistics=statistics,
            languages=self._languages,
            hits=self._endings.marked(hits_of(self._sources, ranked[: plan.limit]), at),
            insights=self._bearing_insights(gatherer, asked, statistics, plan),
            explain={
                **explained_search(plan, asked, statistics, self._languages, self._clock().date()),
                "candidates": len(ranked),
                **self._comparing.explained(plan.spaces),
                **explained_syntax(required, meant),
                **explained_ways(ways, ranked[: plan.limit]),
            },
            meaning=meaning,
            candidates=tuple(item.candidate for item in ranked[: plan.limit]),
            has_cosines=by_words,
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

    def _ranked(
        self,
        gatherer: Gatherer,
        condition: Condition,
        plan: Plan,
        statistics: TermStatistics,
        meaning: Meaning | None,
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
            meaning,
        )
        if plan.mode == "hybrid":
            return with_clues(items, gatherer.question, around), {}
        from memctl.retrieve.walk import walked

        graphs = self._graphs(plan, condition)
        standing = around.with_standing(items)
        walk = walked(standing, gatherer.question, around, graphs, plan.hops)
        return walk.items, walk.ways

    def _graphs(self, plan: Plan, condition: Condition) -> Mapping[str, Index]:
        return self._corpus.graphs(plan.main_filters, condition, evidence_only=plan.collapses)

    def _themes(self, plan: Plan, condition: Condition) -> Themes | None:
        if plan.mode != "graph":
            return None
        from memctl.retrieve.themes import Themes

        return Themes(self._sources, self._graphs(plan, condition))

    def _bearing_insights(
        self, gatherer: Gatherer, question: Question, statistics: TermStatistics, plan: Plan
    ) -> tuple[Hit, ...]:
        filters = replace(plan.filters, levels=("insight",))
        if not plan.collapses or not self._corpus.has_any(filters):
            return ()
        found = gatherer.gather(self._corpus.condition(filters), 2 * MOST_INSIGHTS)
        bearing = [
            candidate
            for candidate in sorted(found.values(), key=lambda candidate: candidate.key)
            if relevance(question, [candidate], statistics).is_relevant
        ]
        ranked = collapsed(scored(bearing, plan), collapses=False)
        return hits_of(self._sources, ranked[:MOST_INSIGHTS])


def _checked_mode(name: str) -> Mode:
    for mode in MODES:
        if mode == name:
            return mode
    raise UsageError(f"unknown mode {name!r}", f"use one of: {', '.join(MODES)}")


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
