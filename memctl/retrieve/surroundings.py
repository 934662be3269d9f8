"""What stands around the candidates of one search: more memories, scored on the same scale."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

import numpy as np

from memctl.retrieve.candidates import Candidate, Gatherer, Key
from memctl.retrieve.collapse import Collapsed
from memctl.retrieve.kept import Condition
from memctl.retrieve.question import Meaning
from memctl.retrieve.ranking import Plan, scored
from memctl.retrieve.scoring import cosines
from memctl.retrieve.standing import Standing, with_standing
from memctl.retrieve.statistics import TermStatistics


class Surroundings:
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
        gatherer: Gatherer,
        condition: Condition,
        first: Sequence[Collapsed],
        plan: Plan,
        statistics: TermStatistics,
        languages: Sequence[str],
        standing: Standing,
        now: datetime,
        meaning: Meaning | None = None,
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

    def scored(self, more: Mapping[Key, Candidate]) -> dict[Key, Collapsed]:
        """Return more candidates with their scores on the scale of the first."""
        if not more:
            return {}
        together = [*self._candidates, *more.values()]
        added = scored(together, self._plan, len(self._candidates))[len(self._candidates) :]
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

    def with_standing(self, items: Sequence[Collapsed]) -> list[Collapsed]:
        """Return the items with what they are worth besides counted in, best first."""
        return with_standing(items, self._standing, self.now, self.spread)


def _passages(found: Mapping[Key, Candidate]) -> dict[Key, Candidate]:
    return {key: each for key, each in found.items() if each.level == "evidence"}
