"""What a search found, and what answering works out from it when it needs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memctl.choices import Mode
from memctl.models.protocols import Embedder
from memctl.records import Community, Hit
from memctl.retrieve.candidates import Candidate
from memctl.retrieve.certainty import Certainty, gap_of
from memctl.retrieve.clues import own_score
from memctl.retrieve.collapse import Collapsed
from memctl.retrieve.days import with_days
from memctl.retrieve.demand import Demand, demand_of, in_other_words, with_exact
from memctl.retrieve.kin import Kin, kin_of, widened, with_kin
from memctl.retrieve.numbered import Numbered, numbered
from memctl.retrieve.question import Meaning, Question
from memctl.retrieve.relevance import Relevance, relevance
from memctl.retrieve.statements import Statement, statements
from memctl.retrieve.statistics import TermStatistics
from memctl.retrieve.words import judged_by_words

if TYPE_CHECKING:
    from memctl.retrieve.themes import Themes


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
    """What answers are drawn from."""
    insights: tuple[Hit, ...]
    """Insights that bear on the question; never among the hits unless their level was asked for."""
    explain: Mapping[str, Any]
    meaning: Meaning
    ranked: tuple[Collapsed, ...]
    """All that was found, best first; the first of it became the hits."""
    has_cosines: bool
    """Whether theirs are by word vectors."""
    lead: float | None = None
    """By how many standard deviations the best was ahead; see ``ranking.lead``."""
    notes: tuple[str, ...] = ()
    """What was done without because a model could not be had."""
    themes: Themes | None = None
    """Has the graphs that were walked, where any were."""
    spread: tuple[Hit, ...] | None = None
    """Hits of which each says something else, or is of another document, where that was asked
    for."""

    @property
    def listed(self) -> tuple[Hit, ...]:
        """The hits to show."""
        return self.hits if self.spread is None else self.spread

    @property
    def best(self) -> tuple[Collapsed, ...]:
        """What became the hits."""
        return self.ranked[: len(self.hits)]

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The candidates that became the hits."""
        return tuple(item.candidate for item in self.best)

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
    def numbered(self) -> Numbered:
        """The things of the question that a number tells apart from others."""
        return numbered(self.asked.text, self.hits, self.languages)

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
    def statements(self) -> Sequence[Statement]:
        """The sentences of the best hits, best first."""
        return statements(self)

    @cached_property
    def certainty(self) -> Certainty:
        """How sure it is that the hits answer the question."""
        return Certainty(
            self.relevance,
            self.lead,
            gap_of([item.score for item in self.statements]),
        )

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
