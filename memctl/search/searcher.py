"""Search: a question and filters become hits, best first, from one or several knowledge bases.

The steps, in order: parse the search syntax, analyze the question (``query.analyzers``), embed it,
collect candidates (``retrieval.candidates``), score and rank them (``SearchPipeline``), rerank
them by a model, and select what to show.  Searching reads snapshots and never writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import MemctlError
from memctl.literals import DEFAULT_HOPS
from memctl.models.protocols import Embedder
from memctl.records import Filters, Hit
from memctl.search.answering.relevance import hit_relevance, judge_relevance
from memctl.search.answering.search_outcome import SearchOutcome
from memctl.search.query.analyzers import Analysis, analyze
from memctl.search.query.search_syntax import Expression, parse_query
from memctl.search.ranking.reranking import NO_RERANKING, Reranking, failure_note, rerank
from memctl.search.ranking.scored_candidates import (
    ScoredCandidate,
    fold_distilled,
    load_author,
    load_document,
    load_hits,
    load_owner,
    load_past_versions,
    load_source,
    load_statements_of,
    load_turns_around,
    score_candidates,
    sort_by_score,
    with_document_metadata,
    with_known_days,
)
from memctl.search.ranking.scoring_context import NO_PRIORS, Priors, ScoringContext
from memctl.search.ranking.selection import (
    POOL,
    NearestBetter,
    candidate_vectors,
    diversify,
    fold_duplicates,
    full_documents,
    limit_per_document,
)
from memctl.search.ranking.signals import apply_signals, explain_signals
from memctl.search.retrieval.candidate_rows import SearchScope, TableRows
from memctl.search.retrieval.candidates import Candidate, CandidateCollector, Key
from memctl.search.retrieval.corpus import Corpus
from memctl.search.retrieval.question_vectors import (
    QuestionMeaning,
    QuestionVectors,
    keyword_only_notes,
    word_embedder,
)
from memctl.search.search_plan import (
    DEFAULT_DEPTH,
    DUPLICATES,
    FUSIONS,
    KEYWORD_WEIGHT,
    MODES,
    SearchDepth,
    SearchPlan,
    parse_choice,
)
from memctl.search.term_statistics import Sources, TermStatistics
from memctl.store.tables.filter_expressions import Expr, both, col

if TYPE_CHECKING:
    from memctl.graph.name_index import NameIndex
    from memctl.graph.name_resolution import Decisions
    from memctl.search.agentic_search import Reformulate
    from memctl.search.answering.communities import CommunityFinder

MIN_CANDIDATES = 100
"""Candidates for each retriever, or twice the number of hits asked for."""
_MAX_COLLECTIONS = 6
"""Each collects twice as many as the one before: with six, 6,300 copies don't hide the rest."""


class SearchPipeline(Struct, frozen=True):
    """Finds and ranks the memories for one analyzed question."""

    corpus: Corpus
    collector: CandidateCollector
    scope: SearchScope
    plan: SearchPlan
    statistics: TermStatistics
    priors: Priors
    now: datetime
    meaning: QuestionMeaning | None
    """The question's; None unless the vectors of all passages are from its embedder."""
    decisions: Callable[[str], Decisions]
    """Returns the owner's decisions on which names of a knowledge base mean the same."""

    def run(self) -> list[ScoredCandidate]:
        """Return what was found, best first.

        Where folding leaves fewer than the limit, more is collected besides what is known.
        """
        wanted = max(MIN_CANDIDATES, 2 * self.plan.limit)
        known = self._collect(self.scope, wanted)
        items = self._rank(known)
        for _ in range(1, _MAX_COLLECTIONS):
            if len(known) < wanted or self._are_enough(items):
                break
            wanted *= 2
            more = self._collect(self._other_memories(known, items), wanted)
            if more.keys() <= known.keys():
                break
            known |= more
            items = self._rank(known)
        return items

    def graphs(self) -> Mapping[str, NameIndex]:
        """Return the names in the memories searched, by knowledge base."""
        filters, evidence_only = self.plan.main_filters, self.plan.folds_distilled
        return {
            kb: self.corpus.graph(
                kb, filters, self.scope, self.decisions(kb), evidence_only=evidence_only
            )
            for kb in self.corpus.sources
        }

    def _collect(self, scope: SearchScope, wanted: int) -> dict[Key, Candidate]:
        found = self.collector.collect(scope, wanted)
        return found | self._missing_sources(found) if self.plan.folds_distilled else found

    def _missing_sources(self, found: Mapping[Key, Candidate]) -> dict[Key, Candidate]:
        """Return a source passage for each distilled memory of which none was found itself."""
        wanted: dict[str, set[str]] = {}
        for candidate in found.values():
            kb = candidate.key[0]
            if candidate.source_ids and not any((kb, id) in found for id in candidate.source_ids):
                wanted.setdefault(kb, set()).add(candidate.source_ids[0])
        missing: dict[Key, Candidate] = {}
        for kb, ids in wanted.items():
            missing |= self.collector.fetch(kb, sorted(ids), self.scope)
        return missing

    def _rank(self, found: Mapping[Key, Candidate]) -> list[ScoredCandidate]:
        plan = self.plan
        candidates = sorted(found.values(), key=lambda candidate: candidate.key)
        first = score_candidates(candidates, plan)
        items = fold_distilled(first) if plan.folds_distilled else sort_by_score(first)
        if plan.folds_distilled or plan.mode == "graph":
            items = apply_signals(items, self._context(first))
        return fold_duplicates(items, self.corpus.sources, plan.duplicates)

    def _context(self, first: Sequence[ScoredCandidate]) -> ScoringContext:
        return ScoringContext(
            self.collector,
            self.scope,
            first,
            self.plan,
            self.statistics,
            self.corpus.languages(self.plan.main_filters),
            self.priors,
            self.now,
            self.graphs,
            self.meaning,
        )

    def _are_enough(self, items: Sequence[ScoredCandidate]) -> bool:
        limit, most = self.plan.limit, self.plan.per_document
        return len(limit_per_document(items, most, limit) if most else items) >= limit

    def _other_memories(
        self, known: Mapping[Key, Candidate], items: Sequence[ScoredCandidate]
    ) -> SearchScope:
        """Return the scope without what is known, and without documents that have enough hits."""
        full = full_documents(items, self.plan.per_document) if self.plan.per_document else set()
        sources: dict[str, TableRows] = {}
        for kb, source in self.corpus.sources.items():
            where: Expr = ~col("id").is_in([id for name, id in known if name == kb])
            if documents := sorted(document for name, document in full if name == kb):
                no_document = col("document_id").is_null()
                where &= no_document | ~col("document_id").is_in(documents)
            sources[kb] = TableRows(source, both(self.scope.where, where))
        return SearchScope(self.scope.where, sources, self.scope.valid)


_MAX_INSIGHTS = 3


class Searcher:
    """Searches snapshots that were taken at one moment; keep it while they are searched.

    Args:
        sources: Snapshots by the name of their knowledge base.
        embedders: What made the vectors of each, one object where it is the same; none where
            only keywords are searched for.
        clock: Returns the time, which decides what is valid.
        reranking: The model that reorders the best of ``hybrid``.
        load_words: Returns what words and sentences are compared by, when that is needed; by
            default an embedder with word vectors, or else the built-in one.
        priors: What counts in ``hybrid`` and ``graph`` besides the question.
        decisions: Returns the owner's decisions on which names of a knowledge base mean the
            same, for ``graph``; by default there are none.
        reformulate: Words the next query of ``agentic``; by default rules do.
        corpus: What has been computed of these snapshots before.
    """

    def __init__(
        self,
        sources: Sources,
        embedders: Mapping[str, Embedder],
        clock: Callable[[], datetime],
        reranking: Reranking = NO_RERANKING,
        load_words: Callable[[], Embedder] | None = None,
        priors: Priors = NO_PRIORS,
        decisions: Callable[[str], Decisions] | None = None,
        reformulate: Reformulate | None = None,
        corpus: Corpus | None = None,
    ) -> None:
        self._snapshots = sources  # so that none of their table versions is pruned meanwhile
        self._corpus = corpus or Corpus(sources, clock)
        self._sources = self._corpus.sources
        self._question_vectors = QuestionVectors(self._sources, embedders)
        self._load_words = load_words or partial(word_embedder, list(embedders.values()))
        self._clock = clock
        self._reranking = reranking
        self._priors = priors
        self._decisions = decisions or _no_decisions
        self._reformulate = reformulate

    def with_document_metadata(self, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        """Return hits with the metadata of their documents, which searching has no use for."""
        return with_document_metadata(self._sources, hits)

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
        depth: SearchDepth = DEFAULT_DEPTH,
    ) -> SearchOutcome:
        """Return the hits for a question.

        Diversity and the limit per document change what is shown, not what answers are drawn from.

        Args:
            question: The question, in words.
            mode: ``hybrid``, ``vector``, ``keyword``, ``graph``, or ``agentic`` for rounds of
                ``hybrid``.
            filters: Which memories are searched; without levels, evidence and memories.
            limit: Most hits to return.
            fusion: How ``hybrid`` fuses keyword and vector scores: ``zscore``, ``minmax``,
                ``simple``, ``rrf`` or ``weighted``.
            hops: Longest path in ``graph``, 1 to 4 steps.
            keyword_weight: The share of keyword scores in ``weighted``.
            duplicates: Which duplicates are folded into one hit: ``exact`` ones, ``near`` ones
                too, or none (``keep``).
            diversity: 0 to 1: how much similarity to a better hit counts against a hit.
            per_document: Most hits to show per document; 0 means no limit.
            depth: How far ``agentic`` and ``graph`` go.

        Raises:
            UsageError: The question is empty, or another argument cannot be used.
            ModelError: No embedder is available, or, in the mode ``vector``, one of them is not;
                never in the mode ``keyword``.
        """
        plan = SearchPlan(
            parse_choice("mode", mode, MODES),
            parse_choice("fusion", fusion, FUSIONS),
            filters or Filters(),
            limit,
            hops,
            depth=depth,
            keyword_weight=keyword_weight,
            duplicates=parse_choice("duplicates", duplicates, DUPLICATES),
            diversity=diversity,
            per_document=per_document,
        )
        if plan.mode == "vector":  # vectors know no syntax
            expression = Expression(question)
        else:
            expression = parse_query(question, self._corpus.languages(plan.main_filters))
        if plan.mode != "agentic":
            return self._select(self._search_once(expression, plan), plan)
        from memctl.search.agentic_search import search_in_rounds  # 14 ms

        plan = replace(plan, mode="hybrid")

        def search_once(query: str | None) -> SearchOutcome:
            """Search by the question, or by another query for what it asks for."""
            again = expression if query is None else Expression(query, expression.required)
            return self._search_once(again, plan)

        merged = search_in_rounds(question, search_once, limit, depth, self._reformulate)
        items = fold_duplicates(merged.ranked, self._sources, plan.duplicates)
        if len(items) < len(merged.ranked):  # one round has found copies of what another one has
            merged = replace(merged, ranked=tuple(items), hits=self._hits(items, plan))
        return self._select(merged, plan)

    def _search_once(self, expression: Expression, plan: SearchPlan) -> SearchOutcome:
        scope = self._corpus.scope(plan.main_filters)
        analysis = self._analyze(expression, scope, plan)
        question, statistics = analysis.question, analysis.statistics
        meaning = QuestionMeaning(analysis.embedded, statistics, self._load_words)
        vectors, without_vector = self._question_vectors.vectors(plan.mode, meaning)
        is_by_words = len(vectors) == len(self._sources) and all(
            vector is meaning.vector for vector in vectors.values()
        )
        plan = replace(plan, spaces=self._question_vectors.spaces(vectors.keys()))
        collector = CandidateCollector(
            self._sources, question, statistics, vectors, plan.mode, analysis.required
        )
        pipeline = SearchPipeline(
            self._corpus,
            collector,
            scope,
            plan,
            statistics,
            self._priors,
            self._clock(),
            meaning if is_by_words else None,
            self._decisions,
        )
        found = pipeline.run()
        reranking = self._reranking if plan.mode == "hybrid" else NO_RERANKING
        ranked, unranked = rerank(reranking, self._sources, question.text, found)
        shown = ranked if plan.selects else ranked[: plan.limit]
        return SearchOutcome(
            asked=question,
            asked_on=self._asked_on(plan),
            mode=plan.mode,
            statistics=statistics,
            languages=analysis.languages,
            hits=self._hits(ranked, plan),
            insights=self._relevant_insights(collector, analysis, plan),
            explain={
                "mode": plan.mode,
                "fusion": plan.fusion if plan.mode in ("hybrid", "graph") else None,
                **analysis.explain(),
                "candidates": len(ranked),
                **self._question_vectors.explain(plan.spaces),
                **explain_signals(shown),
                **_explain_paths(shown),
            },
            meaning=meaning,
            ranked=tuple(ranked),
            has_cosines=is_by_words,
            load_turns_around=partial(load_turns_around, self._sources),
            load_document=partial(load_document, self._sources),
            load_source=partial(load_source, self._sources),
            load_past_versions=partial(
                load_past_versions,
                self._sources,
                partial(self._corpus.ended_within, plan.main_filters, self._clock()),
            ),
            load_author=partial(load_author, self._sources),
            load_owner=cache(partial(load_owner, self._sources)),
            with_known_days=partial(with_known_days, self._sources),
            load_statements_of=partial(load_statements_of, self._sources, scope),
            notes=(
                *analysis.notes,
                *keyword_only_notes(without_vector),
                *([failure_note(unranked)] if unranked else ()),
            ),
            failures=_classes(*without_vector.values(), unranked),
            community_finder=self._community_finder(pipeline),
        )

    def _analyze(self, expression: Expression, scope: SearchScope, plan: SearchPlan) -> Analysis:
        filters = plan.main_filters
        return analyze(
            expression,
            self._corpus.languages(filters),
            self._corpus.statistics(filters, scope),
            self._sources,
            scope.where,
            self._asked_on(plan),
            partial(self._corpus.count, scope),
        )

    def _asked_on(self, plan: SearchPlan) -> date:
        """Return the day from which a question counts: today, or the one as of which it asks."""
        return (plan.filters.as_of or self._clock()).date()

    def _hits(self, items: Sequence[ScoredCandidate], plan: SearchPlan) -> tuple[Hit, ...]:
        at = plan.filters.as_of or self._clock()
        return self._corpus.ended_facts.mark(load_hits(self._sources, items[: plan.limit]), at)

    def _select(self, outcome: SearchOutcome, plan: SearchPlan) -> SearchOutcome:
        """Select the hits to show, where more than their score decides."""
        if not plan.selects:
            return outcome
        items, nearest = list(outcome.ranked), dict[Key, NearestBetter]()
        if plan.per_document:
            items = limit_per_document(items, plan.per_document, plan.limit)
        if plan.diversity:
            pool = items[: max(POOL, 2 * plan.limit)]
            compared = {i.candidate.key[0] for i in pool if i.candidate.direction is not None}
            spaces = self._question_vectors.spaces(compared)
            vectors = candidate_vectors(pool, self._sources, spaces)
            items, nearest = diversify(pool, plan.diversity, plan.limit, vectors)
        explain = {**outcome.explain, **_explain_selection(plan, nearest)}
        return replace(outcome, selected=self._hits(items, plan), explain=explain)

    def _community_finder(self, pipeline: SearchPipeline) -> CommunityFinder | None:
        most = pipeline.plan.depth.communities
        if pipeline.plan.mode != "graph" or not most:
            return None
        from memctl.search.answering.communities import CommunityFinder

        return CommunityFinder(self._sources, pipeline.graphs(), most)

    def _relevant_insights(
        self, collector: CandidateCollector, analysis: Analysis, plan: SearchPlan
    ) -> tuple[Hit, ...]:
        filters = replace(plan.filters, levels=("insight",))
        if not plan.folds_distilled or not self._corpus.has_any(filters):
            return ()
        found = collector.collect(self._corpus.scope(filters), 2 * _MAX_INSIGHTS)
        candidates = sorted(found.values(), key=lambda candidate: candidate.key)
        judged = {
            each.key: judge_relevance(analysis.question, [each], analysis.statistics)
            for each in candidates
        }
        relevant = [each for each in candidates if judged[each.key].is_relevant]
        ranked = sort_by_score(score_candidates(relevant, plan))[:_MAX_INSIGHTS]
        hits = load_hits(self._sources, ranked)
        return tuple(
            replace(
                hit,
                relevance=round(hit_relevance(own, own), 4),
                similarity=round(max(item.candidate.vector, 0.0), 4),
            )
            for hit, item in zip(hits, ranked, strict=True)
            if (own := judged[item.candidate.key])
        )


def _classes(*errors: MemctlError | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(type(error).__name__ for error in errors if error is not None))


def _no_decisions(_: str) -> Decisions:
    from memctl.graph.name_index import NO_DECISIONS

    return NO_DECISIONS


def _explain_paths(ranked: Sequence[ScoredCandidate]) -> dict[str, Any]:
    """Return the path that led to each hit: memory ids, with the names between them."""
    paths = {item.candidate.key[1]: list(item.path) for item in ranked if item.path}
    return {"paths": paths} if paths else {}


def _explain_selection(plan: SearchPlan, nearest: Mapping[Key, NearestBetter]) -> dict[str, Any]:
    """Return how the hits were selected, and the better hit that each is most similar to."""
    similar = {
        key[1]: {"memory_id": each.key[1], "cosine": each.cosine} for key, each in nearest.items()
    }
    return ({"per_document": plan.per_document} if plan.per_document else {}) | (
        {"diversity": plan.diversity, "likest": similar} if plan.diversity else {}
    )
