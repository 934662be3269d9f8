"""What signals work with: the question, its candidates, and more memories on the same scale."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from memctl.search.query.question import Question
from memctl.search.ranking.scored_candidates import (
    ScoredCandidate,
    boost_score,
    score_candidates,
    sort_by_score,
)
from memctl.search.retrieval.candidate_rows import RowView, SearchScope
from memctl.search.retrieval.candidates import Candidate, CandidateCollector, Key, cosines
from memctl.search.retrieval.question_vectors import QuestionMeaning
from memctl.search.search_plan import SearchPlan
from memctl.search.term_statistics import TermStatistics

if TYPE_CHECKING:
    from memctl.graph.name_index import NameIndex

_DEFAULT_HALF_LIFE = 90
"""Days."""
_DAY = timedelta(days=1)
_MAX_HALVINGS = 1_000.0


class Priors(Struct, frozen=True):
    """Weights of what counts for a memory whatever the question is; all 0 by default.

    In standard deviations of the candidates' scores, after the retrieval function of generative
    agents (Park et al. 2023).  On question sets with known evidence, importance lowers recall (by
    0.5 to 2 points at a weight of 0.3) and recency changes nothing: as many questions are about
    what is small or old.
    """

    importance: float = 0.0
    confidence: float = 0.0
    recency: float = 0.0
    half_lives: Mapping[str, float] = field(default_factory=dict)
    """Days after which a memory counts half as recent, by knowledge base."""

    @property
    def count(self) -> bool:
        """Whether any of them has a weight."""
        return any((self.importance, self.confidence, self.recency))

    def gains(self, kb: str, row: RowView, now: datetime) -> Mapping[str, float]:
        """Return what a memory gains, by the name of the signal."""
        return {
            "importance": self.importance * (row["importance"] or 0.0),
            "confidence": self.confidence * (row["confidence"] or 0.0),
            "recency": self.recency * self._recency(kb, row["created_at"], now),
        }

    def _recency(self, kb: str, when: datetime | None, now: datetime) -> float:
        """Return 1 for now and the future, and half of that after each half-life."""
        if when is None:
            return 0.0
        halvings = (now - when) / _DAY / self.half_lives.get(kb, _DEFAULT_HALF_LIFE)
        return float(0.5 ** min(max(halvings, 0.0), _MAX_HALVINGS))


NO_PRIORS = Priors()


class ScoringContext(Struct, frozen=True, dict=True):
    """Gives signals the question and what is known around its candidates.

    Args:
        collector: Finds candidates.
        scope: Which memories are searched.
        first: What the retrievers found, scored; sets the scale of all scores.
        plan: What was asked for.
        statistics: How common terms are.
        languages: Those of the memories, the most frequent first.
        priors: What counts for a memory besides the question.
        now: The time.
        load_graphs: Returns the names in the memories searched, by knowledge base.
        meaning: The question's; None unless the vectors of all passages are from its embedder.
    """

    collector: CandidateCollector
    scope: SearchScope
    first: Sequence[ScoredCandidate]
    plan: SearchPlan
    statistics: TermStatistics
    languages: Sequence[str]
    priors: Priors
    now: datetime
    load_graphs: Callable[[], Mapping[str, NameIndex]]
    meaning: QuestionMeaning | None

    @cached_property
    def spread(self) -> float:
        """Standard deviation of the candidates' scores, the unit of all weights."""
        return float(np.std([item.score for item in self.first])) if self.first else 0.0

    @property
    def question(self) -> Question:
        """The question."""
        return self.collector.question

    def turns(self, kb: str, places: Collection[tuple[str, int]]) -> dict[Key, Candidate]:
        """Return the turns of one knowledge base at these places: session and number."""
        return _passages(self.collector.turns(kb, places, self.scope))

    def with_terms(self, terms: Iterable[str], limit: int) -> dict[Key, Candidate]:
        """Return passages among the memories in which these terms weigh most.

        Args:
            terms: The terms.
            limit: Memories for each knowledge base.
        """
        return _passages(self.collector.with_terms(terms, self.scope, limit))

    def fetch(self, kb: str, ids: Sequence[str]) -> dict[Key, Candidate]:
        """Return those memories of one knowledge base that are in scope."""
        return self.collector.fetch(kb, ids, self.scope) if ids else {}

    def score_more(self, more: Mapping[Key, Candidate]) -> dict[Key, ScoredCandidate]:
        """Return further candidates with their scores on the scale of the first."""
        if not more:
            return {}
        together = [*(item.candidate for item in self.first), *more.values()]
        count = len(self.first)
        added = score_candidates(together, self.plan, count)[count:]
        return {item.candidate.key: item for item in apply_priors(added, self)}

    def cosines_with_texts(self, texts: Sequence[str]) -> Sequence[float]:
        """Return the cosines of texts with the question; 0 without vectors to compare."""
        if self.meaning is None or not texts:
            return [0.0] * len(texts)
        near: list[float] = cosines(
            self.meaning.vector, self.meaning.embedder.embed(list(texts))
        ).tolist()
        return near

    def cosines_with_remainder(
        self, covered: frozenset[str], candidates: Sequence[Candidate]
    ) -> Sequence[float]:
        """Return the cosines of candidates with the content that some terms leave uncovered.

        They are 0 where nothing is left, or where there are no vectors to compare.
        """
        none = [0.0] * len(candidates)
        known = [each.direction for each in candidates if each.direction is not None]
        if self.meaning is None or not known or len(known) < len(candidates):
            return none
        remainder = self.meaning.remainder(covered)
        if remainder is None:
            return none
        near: list[float] = cosines(remainder, np.stack(known)).tolist()
        return near


def apply_priors(
    items: Sequence[ScoredCandidate], context: ScoringContext
) -> list[ScoredCandidate]:
    """Return the items raised by their priors, best first."""
    if not context.priors.count:
        return list(items)
    return sort_by_score(_with_priors(item, context) for item in items)


def _with_priors(item: ScoredCandidate, context: ScoringContext) -> ScoredCandidate:
    candidate = item.candidate
    gains = context.priors.gains(candidate.key[0], candidate.row, context.now)
    for signal, gain in gains.items():
        item = boost_score(item, signal, gain * context.spread)
    return item


def _passages(found: Mapping[Key, Candidate]) -> dict[Key, Candidate]:
    return {key: each for key, each in found.items() if each.level == "evidence"}
