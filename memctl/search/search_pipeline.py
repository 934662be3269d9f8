"""One search: candidates are gathered, scored, put in order and folded, until there are enough."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from memctl.search.query.question import QuestionMeaning
from memctl.search.ranking.diversity import full_documents, limit_per_document
from memctl.search.ranking.duplicates import fold_duplicates
from memctl.search.ranking.fusion import SearchPlan, score_candidates
from memctl.search.ranking.scored_candidates import ScoredCandidate, fold_distilled
from memctl.search.ranking.scoring_context import Priors, ScoringContext
from memctl.search.ranking.signals import apply_signals
from memctl.search.retrieval.candidate_rows import SearchScope, TableRows
from memctl.search.retrieval.candidates import Candidate, CandidateCollector, Key
from memctl.search.retrieval.corpus import Corpus
from memctl.search.retrieval.term_statistics import TermStatistics
from memctl.store.tables.filter_expressions import Expr, both, col

if TYPE_CHECKING:
    from memctl.graph.name_index import NameIndex
    from memctl.graph.name_resolution import Decisions
    from memctl.search.ranking.graph_walk import WalkPath

MIN_CANDIDATES = 100
"""Candidates a leg, at least; twice as many as the hits asked for."""
_MOST_GATHERINGS = 6
"""Each looks for twice as many as the one before: with them 6,300 copies do not hide the rest."""


@dataclass(frozen=True, slots=True)
class SearchPipeline:
    """What is looked for, where, and how it is judged."""

    corpus: Corpus
    gatherer: CandidateCollector
    condition: SearchScope
    plan: SearchPlan
    statistics: TermStatistics
    standing: Priors
    now: datetime
    meaning: QuestionMeaning | None
    """Where passages are compared by the word vectors that it has."""
    decisions: Callable[[str], Decisions]
    """Gives what was decided by hand on which names of a knowledge base mean the same."""

    def found(self) -> tuple[list[ScoredCandidate], Mapping[Key, WalkPath]]:
        """Return what was found, best first, and in the mode ``graph`` the ways that led to it.

        Where folding leaves fewer than the limit, more is gathered besides what is known.
        """
        wanted = max(MIN_CANDIDATES, 2 * self.plan.limit)
        known = self._gathered(self.condition, wanted)
        items, ways = self._ranked(known)
        for _ in range(1, _MOST_GATHERINGS):
            if len(known) < wanted or self._fill(items):
                break
            wanted *= 2
            more = self._gathered(self._elsewhere(known, items), wanted)
            if more.keys() <= known.keys():
                break
            known |= more
            items, ways = self._ranked(known)
        return items, ways

    def graphs(self) -> Mapping[str, NameIndex]:
        """Return the names in the memories that may be found, by knowledge base."""
        filters, collapses = self.plan.main_filters, self.plan.collapses
        return {
            kb: self.corpus.graph(
                kb, filters, self.condition, self.decisions(kb), evidence_only=collapses
            )
            for kb in self.corpus.sources
        }

    def _gathered(self, condition: SearchScope, wanted: int) -> dict[Key, Candidate]:
        found = self.gatherer.gather(condition, wanted)
        return found | self._missing_sources(found) if self.plan.collapses else found

    def _missing_sources(self, found: Mapping[Key, Candidate]) -> dict[Key, Candidate]:
        """Return the passages behind distilled memories of which no passage was found itself."""
        wanted: dict[str, set[str]] = {}
        for candidate in found.values():
            kb = candidate.key[0]
            if candidate.source_ids and not any((kb, id) in found for id in candidate.source_ids):
                wanted.setdefault(kb, set()).add(candidate.source_ids[0])
        missing: dict[Key, Candidate] = {}
        for kb, ids in wanted.items():
            missing |= self.gatherer.fetch(kb, sorted(ids), self.condition)
        return missing

    def _ranked(
        self, found: Mapping[Key, Candidate]
    ) -> tuple[list[ScoredCandidate], Mapping[Key, WalkPath]]:
        candidates = sorted(found.values(), key=lambda candidate: candidate.key)
        first = score_candidates(candidates, self.plan)
        items, ways = self._with_clues(fold_distilled(first, self.plan.collapses), first)
        return fold_duplicates(items, self.corpus.sources, self.plan.duplicates), ways

    def _with_clues(
        self, items: list[ScoredCandidate], first: Sequence[ScoredCandidate]
    ) -> tuple[list[ScoredCandidate], Mapping[Key, WalkPath]]:
        plan, question = self.plan, self.gatherer.question
        if plan.mode != "graph" and (plan.mode != "hybrid" or not plan.collapses):
            return items, {}
        around = ScoringContext(
            self.gatherer,
            self.condition,
            first,
            plan,
            self.statistics,
            self.corpus.languages(self.plan.main_filters),
            self.standing,
            self.now,
            self.meaning,
        )
        if plan.mode == "hybrid":
            return apply_signals(items, question, around), {}
        from memctl.search.ranking.graph_walk import walk_graph

        standing = around.with_standing(items)
        walk = walk_graph(standing, question, around, self.graphs(), plan.hops)
        return walk.items, walk.ways

    # --- enough of them --------------------------------------------------------------------------

    def _fill(self, items: Sequence[ScoredCandidate]) -> bool:
        """Tell whether there are as many hits as were asked for."""
        limit, most = self.plan.limit, self.plan.per_document
        return len(limit_per_document(items, most, limit) if most else items) >= limit

    def _elsewhere(
        self, known: Mapping[Key, Candidate], items: Sequence[ScoredCandidate]
    ) -> SearchScope:
        """What has to hold of memories that are not known yet, nor of a document with enough."""
        full = full_documents(items, self.plan.per_document) if self.plan.per_document else set()
        sources: dict[str, TableRows] = {}
        for kb, source in self.corpus.sources.items():
            where: Expr = ~col("id").is_in([id for name, id in known if name == kb])
            if documents := sorted(document for name, document in full if name == kb):
                of_none = col("document_id").is_null()
                where &= of_none | ~col("document_id").is_in(documents)
            sources[kb] = TableRows(source, both(self.condition.where, where))
        return SearchScope(self.condition.where, sources, self.condition.span)
