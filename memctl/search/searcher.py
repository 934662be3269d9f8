"""Search: a question and filters become hits, best first, from one or several knowledge bases.

Each leg finds candidates, every candidate is scored exactly in both legs, the legs' scores are
fused over all candidates of all knowledge bases together, and what says the same is one hit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from memctl.errors import UsageError
from memctl.literals import DEFAULT_HOPS, Mode
from memctl.models.protocols import Embedder
from memctl.records import Filters, Hit
from memctl.search.agentic_search import Reformulate, search_in_rounds
from memctl.search.answering.relevance import judge_relevance
from memctl.search.answering.search_outcome import SearchOutcome
from memctl.search.query.analyzers import (
    Expansions,
    apply_expansions,
    expand_pattern,
    recognize_versions,
    shorten_question,
    shortening_note,
)
from memctl.search.query.question import Question, QuestionMeaning, analyze_question
from memctl.search.query.search_syntax import (
    Expression,
    Node,
    describe_node,
    iter_patterns,
    parse_query,
    resolve_patterns,
)
from memctl.search.query.time_expressions import explain_times, recognize_dates, recognize_times
from memctl.search.ranking.diversity import (
    POOL,
    NearestBetter,
    candidate_vectors,
    diversify,
    limit_per_document,
)
from memctl.search.ranking.duplicates import fold_duplicates, parse_duplicates
from memctl.search.ranking.fusion import (
    KEYWORD_WEIGHT,
    SearchPlan,
    parse_fusion,
    score_candidates,
    score_lead,
)
from memctl.search.ranking.reranking import NO_RERANKING, Reranking, rerank
from memctl.search.ranking.scored_candidates import ScoredCandidate, fold_distilled, load_hits
from memctl.search.ranking.scoring_context import NO_PRIORS, Priors
from memctl.search.retrieval.candidate_rows import SearchScope
from memctl.search.retrieval.candidates import (
    BOTH_RETRIEVERS,
    CandidateCollector,
    Key,
    RetrieverName,
    Sources,
)
from memctl.search.retrieval.corpus import Corpus
from memctl.search.retrieval.question_vectors import QuestionVectors
from memctl.search.retrieval.term_statistics import TermStatistics
from memctl.search.retrieval.word_vectors import word_embedder
from memctl.search.search_pipeline import SearchPipeline

if TYPE_CHECKING:
    from memctl.graph.name_resolution import Decisions
    from memctl.search.answering.communities import CommunityFinder
    from memctl.search.ranking.graph_walk import WalkPath


MODES: tuple[Mode, ...] = get_args(Mode)
_LEGS: Mapping[Mode, frozenset[RetrieverName]] = {
    "hybrid": BOTH_RETRIEVERS,
    "graph": BOTH_RETRIEVERS,
    "keyword": frozenset(("keyword",)),
    "vector": frozenset(("vector",)),
}

MAX_INSIGHTS = 3


@dataclass(frozen=True, slots=True)
class _Analysis:
    """What a question is taken for, among the memories that may be found."""

    asked: Question
    languages: tuple[str, ...]
    condition: SearchScope
    statistics: TermStatistics
    meant: Expansions
    required: Node | None
    meaning: QuestionMeaning
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
        standing: Priors = NO_PRIORS,
        decisions: Callable[[str], Decisions] | None = None,
        reformulate: Reformulate | None = None,
        corpus: Corpus | None = None,
    ) -> None:
        self._held = sources  # so that nothing of them is pruned meanwhile
        self._corpus = corpus or Corpus(sources, clock)
        self._sources = self._corpus.sources
        self._comparing = QuestionVectors(self._sources, embedders)
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
        hops: int = DEFAULT_HOPS,
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
        plan = SearchPlan(
            _parse_mode(mode),
            parse_fusion(fusion),
            filters or Filters(),
            limit,
            hops,
            keyword_weight=keyword_weight,
            duplicates=parse_duplicates(duplicates),
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

        merged = search_in_rounds(question, once, limit, self._reformulate)
        return self._spread(self._folded(merged, plan), plan)

    def _found(self, expression: Expression, plan: SearchPlan) -> SearchOutcome:
        """Search once."""
        taken = self._taken(expression, plan)
        plan = replace(plan, spaces=self._comparing.spaces(taken.vectors.keys()))
        gatherer = CandidateCollector(
            self._sources,
            taken.asked,
            taken.statistics,
            taken.vectors,
            _LEGS[plan.mode],
            taken.required,
        )
        finding = SearchPipeline(
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
        ahead = score_lead(found, plan)
        reranking = self._reranking if plan.mode == "hybrid" else NO_RERANKING
        ranked, notes = rerank(reranking, self._sources, taken.asked.text, found)
        return SearchOutcome(
            asked=taken.asked,
            mode=plan.mode,
            statistics=taken.statistics,
            languages=taken.languages,
            hits=self._hits(ranked, plan),
            insights=self._bearing_insights(gatherer, taken.asked, taken.statistics, plan),
            explain={
                **explain_query(plan, taken.asked, taken.statistics, taken.languages),
                "candidates": len(ranked),
                **({} if ahead is None else {"lead": round(ahead, 3)}),
                **self._comparing.explained(plan.spaces),
                **explain_syntax(taken.required, taken.meant),
                **explain_paths(ways, ranked if plan.spreads else ranked[: plan.limit]),
            },
            meaning=taken.meaning,
            ranked=tuple(ranked),
            has_cosines=taken.is_by_words,
            lead=ahead,
            notes=(*taken.notes, *notes),
            themes=self._themes(finding),
        )

    def _taken(self, expression: Expression, plan: SearchPlan) -> _Analysis:
        """Take a question for what can be asked of the memories that may be found."""
        languages = self._corpus.languages(plan.main_filters)
        whole = analyze_question(expression.text, languages)
        condition = self._corpus.condition(plan.main_filters)
        statistics = self._corpus.statistics(plan.main_filters, condition)
        meant = self._expansions(expression, condition, statistics, languages)
        required = expression.required and resolve_patterns(expression.required, meant)
        whole = apply_expansions(whole, expression.patterns, meant)
        asked = shorten_question(whole, statistics)
        cut = shortening_note(whole, asked)
        asked = recognize_versions(asked, statistics)
        meaning = QuestionMeaning(asked, statistics, self._load_words)
        vectors, notes = self._comparing.vectors(asked, plan.mode, meaning)
        today = self._clock().date()
        asked = recognize_dates(asked, statistics, today)
        asked, statistics = recognize_times(
            asked, statistics, today, partial(self._corpus.count, condition)
        )
        return _Analysis(
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

    def _hits(self, items: Sequence[ScoredCandidate], plan: SearchPlan) -> tuple[Hit, ...]:
        at = plan.filters.as_of or self._clock()
        return self._corpus.endings.marked(load_hits(self._sources, items[: plan.limit]), at)

    def _folded(self, outcome: SearchOutcome, plan: SearchPlan) -> SearchOutcome:
        """Fold what one round has brought up and another one a copy of."""
        items = fold_duplicates(outcome.ranked, self._sources, plan.duplicates)
        if len(items) == len(outcome.ranked):
            return outcome
        return replace(outcome, ranked=tuple(items), hits=self._hits(items, plan))

    def _spread(self, outcome: SearchOutcome, plan: SearchPlan) -> SearchOutcome:
        """Choose other hits to show than the best alone, where that was asked for."""
        if not plan.spreads:
            return outcome
        items, likest = list(outcome.ranked), dict[Key, NearestBetter]()
        if plan.per_document:
            items = limit_per_document(items, plan.per_document, plan.limit)
        if plan.diversity:
            pool = items[: max(POOL, 2 * plan.limit)]
            compared = {i.candidate.key[0] for i in pool if i.candidate.direction is not None}
            vectors = candidate_vectors(pool, self._sources, self._comparing.spaces(compared))
            items, likest = diversify(pool, plan.diversity, plan.limit, vectors)
        explain = {**outcome.explain, **explain_selection(plan, likest)}
        return replace(outcome, spread=self._hits(items, plan), explain=explain)

    def _parsed(self, question: str, plan: SearchPlan) -> Expression:
        """Take the question apart; vectors know no syntax."""
        if plan.mode == "vector":
            return Expression(question)
        return parse_query(question, self._corpus.languages(plan.main_filters))

    def _expansions(
        self,
        expression: Expression,
        condition: SearchScope,
        statistics: TermStatistics,
        languages: Sequence[str],
    ) -> Expansions:
        patterns = set(expression.patterns.values())
        patterns.update(iter_patterns(expression.required) if expression.required else ())
        return {
            pattern: expand_pattern(pattern, self._sources, condition.where, statistics, languages)
            for pattern in sorted(patterns, key=str)
        }

    def _themes(self, finding: SearchPipeline) -> CommunityFinder | None:
        if finding.plan.mode != "graph":
            return None
        from memctl.search.answering.communities import CommunityFinder

        return CommunityFinder(self._sources, finding.graphs())

    def _bearing_insights(
        self,
        gatherer: CandidateCollector,
        question: Question,
        statistics: TermStatistics,
        plan: SearchPlan,
    ) -> tuple[Hit, ...]:
        filters = replace(plan.filters, levels=("insight",))
        if not plan.collapses or not self._corpus.has_any(filters):
            return ()
        found = gatherer.gather(self._corpus.condition(filters), 2 * MAX_INSIGHTS)
        bearing = [
            candidate
            for candidate in sorted(found.values(), key=lambda candidate: candidate.key)
            if judge_relevance(question, [candidate], statistics).is_relevant
        ]
        ranked = fold_distilled(score_candidates(bearing, plan), collapses=False)
        return load_hits(self._sources, ranked[:MAX_INSIGHTS])


def _nothing_decided(_: str) -> Decisions:
    from memctl.graph.name_index import NO_DECISIONS

    return NO_DECISIONS


def _parse_mode(name: str) -> Mode:
    for mode in MODES:
        if mode == name:
            return mode
    raise UsageError(f"unknown mode {name!r}", f"use one of: {', '.join(MODES)}")


def explain_query(
    plan: SearchPlan, question: Question, statistics: TermStatistics, languages: Sequence[str]
) -> dict[str, Any]:
    """What was looked for and by what; of times which days they mean."""
    return {
        "mode": plan.mode,
        "fusion": plan.fusion if plan.mode in ("hybrid", "graph") else None,
        "languages": list(languages),
        "terms": {term: round(statistics.idf(term), 3) for term in question.terms},
        "memories": statistics.memories,
        "sampled": statistics.sampled,
        **explain_times(question),
    }


def explain_syntax(required: Node | None, meant: Expansions) -> dict[str, Any]:
    """What must hold, and what words with ``*`` and ``~`` stand for; nothing of plain words."""
    expanded = {str(pattern): list(terms) for pattern, terms in meant.items()}
    return ({"required": describe_node(required)} if required else {}) | (
        {"expanded": expanded} if expanded else {}
    )


def explain_paths(
    ways: Mapping[Key, WalkPath], ranked: Sequence[ScoredCandidate]
) -> dict[str, Any]:
    """The way that led to each hit: memory ids, with the names between."""
    told = {key[1]: list(ways[key]) for item in ranked if (key := item.candidate.key) in ways}
    return {"paths": told} if told else {}


def explain_selection(plan: SearchPlan, likest: Mapping[Key, NearestBetter]) -> dict[str, Any]:
    """What was asked for, and the better hit that each hit is most like."""
    told = {
        key[1]: {"memory_id": each.key[1], "cosine": each.cosine} for key, each in likest.items()
    }
    return ({"per_document": plan.per_document} if plan.per_document else {}) | (
        {"diversity": plan.diversity, "likest": told} if plan.diversity else {}
    )
