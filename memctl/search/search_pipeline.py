"""One search: collect candidates, score them, apply signals, and fold duplicates, until enough."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from memctl.search.ranking.diversity import full_documents, limit_per_document
from memctl.search.ranking.duplicates import fold_duplicates
from memctl.search.ranking.scored_candidates import (
    ScoredCandidate,
    fold_distilled,
    score_candidates,
    sort_by_score,
)
from memctl.search.ranking.scoring_context import Priors, ScoringContext
from memctl.search.ranking.signals import apply_signals
from memctl.search.retrieval.candidate_rows import SearchScope, TableRows
from memctl.search.retrieval.candidates import Candidate, CandidateCollector, Key
from memctl.search.retrieval.corpus import Corpus
from memctl.search.retrieval.question_vectors import QuestionMeaning
from memctl.search.search_plan import SearchPlan
from memctl.search.term_statistics import TermStatistics
from memctl.store.tables.filter_expressions import Expr, both, col

if TYPE_CHECKING:
    from memctl.graph.name_index import NameIndex
    from memctl.graph.name_resolution import Decisions

MIN_CANDIDATES = 100
"""Candidates for each retriever, or twice the number of hits asked for."""
_MAX_COLLECTIONS = 6
"""Each collects twice as many as the one before: with six, 6,300 copies don't hide the rest."""
_LEAD_OVER = 9
"""Position, from 0, of the hit that the best is compared with."""
_MIN_FOR_LEAD = 50
"""Hits among which one can stand out: of n, none is more than the root of n ahead."""


@dataclass(frozen=True, slots=True)
class SearchPipeline:
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


def score_lead(ranked: Sequence[ScoredCandidate], plan: SearchPlan) -> float | None:
    """Return by how many standard deviations the best is ahead of the tenth.

    None where scores aren't in standard deviations, or where there are too few.

    Args:
        ranked: All that was found, best first.
        plan: What was asked for.
    """
    if plan.mode != "hybrid" or plan.fusion not in ("zscore", "weighted"):
        return None
    if not plan.folds_distilled or len(ranked) < _MIN_FOR_LEAD:
        return None
    return ranked[0].score - ranked[_LEAD_OVER].score
