"""What stands around the candidates of one search: more memories, scored on the same scale."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np

from memctl.search.query.question import QuestionMeaning
from memctl.search.ranking.fusion import SearchPlan, score_candidates
from memctl.search.ranking.scored_candidates import ScoredCandidate, boost_score, sort_by_score
from memctl.search.retrieval.candidate_rows import RowView, SearchScope
from memctl.search.retrieval.candidates import Candidate, CandidateCollector, Key, cosines
from memctl.search.retrieval.term_statistics import TermStatistics


class ScoringContext:
    """Finds passages that a search by the question itself has not brought up.

    Args:
        gatherer: Finds candidates.
        condition: What has to hold for all of them.
        first: What the legs brought up, scored; sets the scale.
        plan: What was asked for.
        statistics: How common terms are.
        languages: Those that the question was asked in, the most frequent first.
        standing: What counts of a memory besides its likeness to the question.
        now: The time.
        meaning: Of the question; None where the passages' vectors are not all from its embedder.
    """

    def __init__(
        self,
        gatherer: CandidateCollector,
        condition: SearchScope,
        first: Sequence[ScoredCandidate],
        plan: SearchPlan,
        statistics: TermStatistics,
        languages: Sequence[str],
        standing: Priors,
        now: datetime,
        meaning: QuestionMeaning | None = None,
    ) -> None:
        self._gatherer = gatherer
        self._condition = condition
        self._candidates = [item.candidate for item in first]
        self._plan = plan
        self.statistics = statistics
        self.languages = languages
        self._standing = standing
        self.now = now
        self._meaning = meaning
        self.spread = float(np.std([item.score for item in first])) if first else 0.0
        """The standard deviation of the candidates' scores, in which clues are weighed."""

    @property
    def question_terms(self) -> frozenset[str]:
        """The terms that the question itself looks for."""
        return frozenset(self._gatherer.question.terms)

    def turns(self, kb: str, places: Collection[tuple[str, int]]) -> dict[Key, Candidate]:
        """Return the passages at places of one knowledge base's conversations: session, turn."""
        return _passages(self._gatherer.turns(kb, places, self._condition))

    def with_terms(self, terms: Iterable[str], limit: int) -> dict[Key, Candidate]:
        """Return the passages among the memories in which these terms weigh most.

        Args:
            terms: The terms.
            limit: Memories a knowledge base.
        """
        return _passages(self._gatherer.with_terms(terms, self._condition, limit))

    def fetch(self, kb: str, ids: Sequence[str]) -> dict[Key, Candidate]:
        """Return those of some memories of one knowledge base for which the condition holds."""
        return self._gatherer.fetch(kb, ids, self._condition) if ids else {}

    def scored(self, more: Mapping[Key, Candidate]) -> dict[Key, ScoredCandidate]:
        """Return more candidates with their scores on the scale of the first."""
        if not more:
            return {}
        together = [*self._candidates, *more.values()]
        added = score_candidates(together, self._plan, len(self._candidates))[
            len(self._candidates) :
        ]
        return {item.candidate.key: item for item in self.with_standing(added)}

    def near_what_is_left(
        self, told: frozenset[str], candidates: Sequence[Candidate]
    ) -> Sequence[float]:
        """Return the cosines of candidates with what some terms leave open of the question.

        They are 0 where nothing is left, or where there are no vectors to compare by.
        """
        known = [each.direction for each in candidates if each.direction is not None]
        if self._meaning is None or not known or len(known) < len(candidates):
            return [0.0] * len(candidates)
        left = self._meaning.of_what_is_left(told)
        if left is None:
            return [0.0] * len(candidates)
        near: list[float] = cosines(left, np.stack(known)).tolist()
        return near

    def with_standing(self, items: Sequence[ScoredCandidate]) -> list[ScoredCandidate]:
        """Return the items with what they are worth besides counted in, best first."""
        return apply_priors(items, self._standing, self.now, self.spread)


def _passages(found: Mapping[Key, Candidate]) -> dict[Key, Candidate]:
    return {key: each for key, each in found.items() if each.level == "evidence"}


_DAY = timedelta(days=1)
_MOST_HALVINGS = 1_000.0
DEFAULT_HALF_LIFE = 90
"""Days."""


@dataclass(frozen=True, slots=True)
class Priors:
    """How much each counts, in standard deviations of the candidates' scores."""

    importance: float = 0.0
    confidence: float = 0.0
    recency: float = 0.0
    half_lives: Mapping[str, float] = field(default_factory=dict)
    """Days after which something counts half as recent, by knowledge base."""

    @property
    def counts(self) -> bool:
        """Whether anything of it counts."""
        return any((self.importance, self.confidence, self.recency))

    def gains(self, kb: str, row: RowView, now: datetime) -> Mapping[str, float]:
        """Return what each gives a memory."""
        return {
            "importance": self.importance * (row["importance"] or 0.0),
            "confidence": self.confidence * (row["confidence"] or 0.0),
            "recency": self.recency * self._recency(kb, row["created_at"], now),
        }

    def _recency(self, kb: str, when: datetime | None, now: datetime) -> float:
        """1 for now and what is still to come, half of that after each half-life."""
        if when is None:
            return 0.0
        halvings = (now - when) / _DAY / self.half_lives.get(kb, DEFAULT_HALF_LIFE)
        return float(0.5 ** min(max(halvings, 0.0), _MOST_HALVINGS))


NO_PRIORS = Priors()


def apply_priors(
    items: Sequence[ScoredCandidate], standing: Priors, now: datetime, spread: float
) -> list[ScoredCandidate]:
    """Return the items with what they are worth counted in, best first.

    Args:
        items: Best first.
        standing: What counts.
        now: The time.
        spread: The standard deviation of the candidates' scores.
    """
    if not standing.counts:
        return list(items)
    return sort_by_score(_raised(item, standing, now, spread) for item in items)


def _raised(
    item: ScoredCandidate, standing: Priors, now: datetime, spread: float
) -> ScoredCandidate:
    candidate = item.candidate
    for clue, gain in standing.gains(candidate.key[0], candidate.row, now).items():
        item = boost_score(item, clue, gain * spread)
    return item
