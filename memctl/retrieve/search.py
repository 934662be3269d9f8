"""Search: a question and filters become hits, best first, from one or several knowledge bases.

Each leg finds candidates, every candidate is scored exactly in both legs, the legs' scores are
fused over all candidates of all knowledge bases together, and what says the same is one hit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, get_args

import numpy as np
from numpy.typing import NDArray

from memctl.choices import HOPS, Mode
from memctl.errors import UsageError
from memctl.models.protocols import Embedder
from memctl.records import Filters, Hit
from memctl.retrieve.brief import briefly, left_out
from memctl.retrieve.candidates import BOTH, Gatherer, Key, Leg, Sources
from memctl.retrieve.collapse import Collapsed, collapsed
from memctl.retrieve.comparing import Comparing
from memctl.retrieve.corpus import Corpus
from memctl.retrieve.days import dated
from memctl.retrieve.diversity import POOL, Likest, diversified, vectors_of
from memctl.retrieve.duplicates import checked_duplicates, without_duplicates
from memctl.retrieve.expansion import Expansions, expansions, with_expansions
from memctl.retrieve.explained import (
    explained_search,
    explained_spread,
    explained_syntax,
    explained_ways,
)
from memctl.retrieve.finding import Finding
from memctl.retrieve.fusion import KEYWORD_WEIGHT, checked_fusion
from memctl.retrieve.hits import hits_of
from memctl.retrieve.kept import Condition
from memctl.retrieve.outcome import SearchOutcome
from memctl.retrieve.per_document import limited_per_document
from memctl.retrieve.question import Meaning, Question, understood
from memctl.retrieve.ranking import Plan, lead, scored
from memctl.retrieve.relevance import relevance
from memctl.retrieve.rerank import NO_RERANKING, Reranking, reranked
from memctl.retrieve.rounds import Reformulate, in_rounds
from memctl.retrieve.standing import NO_STANDING, Standing
from memctl.retrieve.statistics import TermStatistics
from memctl.retrieve.syntax import Expression, Node, parsed, patterns_of, resolved
from memctl.retrieve.times import timed
from memctl.retrieve.versions import versioned
from memctl.retrieve.words import word_embedder

if TYPE_CHECKING:
    from memctl.graph.resolution import Decisions
    from memctl.retrieve.themes import Themes

MODES: tuple[Mode, ...] = get_args(Mode)
_LEGS: Mapping[Mode, frozenset[Leg]] = {
    "hybrid": BOTH,
    "graph": BOTH,
    "keyword": frozenset(("keyword",)),
    "vector": frozenset(("vector",)),
}

MOST_INSIGHTS = 3


@dataclass(frozen=True, slots=True)
class _Taken:
    """What a question is taken for, among the memories that may be found."""

    asked: Question
    languages: tuple[str, ...]
    condition: Condition
    statistics: TermStatistics
    meant: Expansions
    required: Node | None
    meaning: Meaning
    vectors: Mapping[str, NDArray[np.float32]]
    """The question's, by the name of each source that has any to compare it with."""
    is_by_words: bool
    """Whether those of all sources are word vectors, as the meaning has them."""
    notes: tuple[str, ...]
    """What of it is not looked for, or done without."""


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
        corpus: What has been worked out of the tables of these snapshots; by default nothing yet.
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
        corpus: Corpus | None = None,
    ) -> None:
        self._held = sources  # so that nothing of them is pruned meanwhile
        self._corpus = corpus or Corpus(sources, clock)
        self._sources = self._corpus.sources
        self._comparing = Comparing(self._sources, embedders)
        self._load_words = load_words or partial(word_embedder, list(embedders.values()))
        self._clock = clock
        self._reranking = reranking
        self._standing = standing
        self._decisions = decisions or _nothing_decided
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
        duplicates: str = "exact",
        diversity: float = 0.0,
        per_document: int = 0,
    ) -> SearchOutcome:
        """Return the hits for a question.

        Diversity and hits a document change what is shown, not what answers are drawn from.

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
            duplicates: What is folded of memories that say the same: ``exact`` ones, ``near``
                ones too, or none (``keep``).
            diversity: 0 to 1: how much it counts against a hit to show that it is like a better
                one; see ``diversity``.
            per_document: So many hits of one document are shown at most; 0 for any number.

        Raises:
            UsageError: The question is empty, or something else cannot be used.
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
            duplicates=checked_duplicates(duplicates),
            diversity=diversity,
            per_document=per_document,
        )
        expression = self._parsed(question, plan)
        if plan.mode != "agentic":
            return self._spread(self._found(expression, plan), plan)
        plan = replace(plan, mode="hybrid")

        def once(query: str | None) -> SearchOutcome:
            """Search by the question, or by other words for what it asks for."""
            again = Expression(query or "", expression.required)
            return self._found(expression if query is None else again, plan)

        merged = in_rounds(question, once, limit, self._reformulate)
        return self._spread(self._folded(merged, plan), plan)

    def _found(self, expression: Expression, plan: Plan) -> SearchOutcome:
        """Search once."""
        taken = self._taken(expression, plan)
        plan = replace(plan, spaces=self._comparing.spaces(taken.vectors.keys()))
        gatherer = Gatherer(
            self._sources,
            taken.asked,
            taken.statistics,
            taken.vectors,
            _LEGS[plan.mode],
            taken.required,
        )
        finding = Finding(
            self._corpus,
            gatherer,
            taken.condition,
            plan,
            taken.statistics,
            self._standing,
            self._clock(),
            taken.meaning if taken.is_by_words else None,
            self._decisions,
        )
        found, ways = finding.found()
        ahead = lead(found, plan)
        reranking = self._reranking if plan.mode == "hybrid" else NO_RERANKING
        ranked, notes = reranked(reranking, self._sources, taken.asked.text, found)
        return SearchOutcome(
            asked=taken.asked,
            mode=plan.mode,
            statistics=taken.statistics,
            languages=taken.languages,
            hits=self._hits(ranked, plan),
            insights=self._bearing_insights(gatherer, taken.asked, taken.statistics, plan),
            explain={
                **explained_search(plan, taken.asked, taken.statistics, taken.languages),
                "candidates": len(ranked),
                **({} if ahead is None else {"lead": round(ahead, 3)}),
                **self._comparing.explained(plan.spaces),
                **explained_syntax(taken.required, taken.meant),
                **explained_ways(ways, ranked if plan.spreads else ranked[: plan.limit]),
            },
            meaning=taken.meaning,
            ranked=tuple(ranked),
            has_cosines=taken.is_by_words,
            lead=ahead,
            notes=(*taken.notes, *notes),
            themes=self._themes(finding),
        )

    def _taken(self, expression: Expression, plan: Plan) -> _Taken:
        """Take a question for what can be asked of the memories that may be found."""
        languages = self._corpus.languages(plan.main_filters)
        whole = understood(expression.text, languages)
        condition = self._corpus.condition(plan.main_filters)
        statistics = self._corpus.statistics(plan.main_filters, condition)
        meant = self._expansions(expression, condition, statistics, languages)
        required = expression.required and resolved(expression.required, meant)
        whole = with_expansions(whole, expression.patterns, meant)
        asked = briefly(whole, statistics)
        cut = left_out(whole, asked)
        asked = versioned(asked, statistics)
        meaning = Meaning(asked, statistics, self._load_words)
        vectors, notes = self._comparing.vectors(asked, plan.mode, meaning)
        today = self._clock().date()
        asked = dated(asked, statistics, today)
        asked, statistics = timed(asked, statistics, today, partial(self._corpus.count, condition))
        return _Taken(
            asked=asked,
            languages=languages,
            condition=condition,
            statistics=statistics,
            meant=meant,
            required=required,
            meaning=meaning,
            vectors=vectors,
            is_by_words=len(vectors) == len(self._sources)
            and all(vector is meaning.vector for vector in vectors.values()),
            notes=(*((expression.note,) if expression.note else ()), *cut, *notes),
        )

    def _hits(self, items: Sequence[Collapsed], plan: Plan) -> tuple[Hit, ...]:
        at = plan.filters.as_of or self._clock()
        return self._corpus.endings.marked(hits_of(self._sources, items[: plan.limit]), at)

    def _folded(self, outcome: SearchOutcome, plan: Plan) -> SearchOutcome:
        """Fold what one round has brought up and another one a copy of."""
        items = without_duplicates(outcome.ranked, self._sources, plan.duplicates)
        if len(items) == len(outcome.ranked):
            return outcome
        return replace(outcome, ranked=tuple(items), hits=self._hits(items, plan))

    def _spread(self, outcome: SearchOutcome, plan: Plan) -> SearchOutcome:
        """Choose other hits to show than the best alone, where that was asked for."""
        if not plan.spreads:
            return outcome
        items, likest = list(outcome.ranked), dict[Key, Likest]()
        if plan.per_document:
            items = limited_per_document(items, plan.per_document, plan.limit)
        if plan.diversity:
            pool = items[: max(POOL, 2 * plan.limit)]
            compared = {i.candidate.key[0] for i in pool if i.candidate.direction is not None}
            vectors = vectors_of(pool, self._sources, self._comparing.spaces(compared))
            items, likest = diversified(pool, plan.diversity, plan.limit, vectors)
        explain = {**outcome.explain, **explained_spread(plan, likest)}
        return replace(outcome, spread=self._hits(items, plan), explain=explain)

    def _parsed(self, question: str, plan: Plan) -> Expression:
        """Take the question apart; vectors know no syntax."""
        if plan.mode == "vector":
            return Expression(question)
        return parsed(question, self._corpus.languages(plan.main_filters))

    def _expansions(
        self,
        expression: Expression,
        condition: Condition,
        statistics: TermStatistics,
        languages: Sequence[str],
    ) -> Expansions:
        patterns = set(expression.patterns.values())
        patterns.update(patterns_of(expression.required) if expression.required else ())
        return {
            pattern: expansions(pattern, self._sources, condition.where, statistics, languages)
            for pattern in sorted(patterns, key=str)
        }

    def _themes(self, finding: Finding) -> Themes | None:
        if finding.plan.mode != "graph":
            return None
        from memctl.retrieve.themes import Themes

        return Themes(self._sources, finding.graphs())

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


def _nothing_decided(_: str) -> Decisions:
    from memctl.graph.index import NO_DECISIONS

    return NO_DECISIONS


def _checked_mode(name: str) -> Mode:
    for mode in MODES:
        if mode == name:
            return mode
    raise UsageError(f"unknown mode {name!r}", f"use one of: {', '.join(MODES)}")
