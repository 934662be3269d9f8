"""What a search found, and what answering works out from it when it needs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memctl.literals import Mode
from memctl.models.protocols import Embedder
from memctl.records import Community, Hit
from memctl.search.answering.answer_constraints import (
    AnswerConstraints,
    NumberedThings,
    add_value_terms,
    allow_synonyms,
    derive_constraints,
    find_numbered_things,
)
from memctl.search.answering.evidence_sentences import EvidenceSentence, rank_sentences
from memctl.search.answering.relevance import Certainty, Relevance, judge_relevance, score_gap
from memctl.search.query.question import Question, QuestionMeaning
from memctl.search.query.synonyms import Synonyms, add_synonym_terms, add_synonyms, find_synonyms
from memctl.search.query.time_expressions import add_date_terms
from memctl.search.ranking.scored_candidates import ScoredCandidate
from memctl.search.ranking.signals import text_score
from memctl.search.retrieval.candidates import Candidate
from memctl.search.retrieval.term_statistics import TermStatistics
from memctl.search.retrieval.word_vectors import rescore_by_words

if TYPE_CHECKING:
    from memctl.search.answering.communities import CommunityFinder


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
    meaning: QuestionMeaning
    ranked: tuple[ScoredCandidate, ...]
    """All that was found, best first; the first of it became the hits."""
    has_cosines: bool
    """Whether theirs are by word vectors."""
    lead: float | None = None
    """By how many standard deviations the best was ahead; see ``ranking.lead``."""
    notes: tuple[str, ...] = ()
    """What was done without because a model could not be had."""
    themes: CommunityFinder | None = None
    """Has the graphs that were walked, where any were."""
    spread: tuple[Hit, ...] | None = None
    """Hits of which each says something else, or is of another document, where that was asked
    for."""

    @property
    def listed(self) -> tuple[Hit, ...]:
        """The hits to show."""
        return self.hits if self.spread is None else self.spread

    @property
    def best(self) -> tuple[ScoredCandidate, ...]:
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
        return add_synonyms(self.asked, self._kin)

    @cached_property
    def demand(self) -> AnswerConstraints:
        """What a sentence must have to answer it."""
        return derive_constraints(self.question, self.hits, self.languages)

    @cached_property
    def wider_demand(self) -> AnswerConstraints:
        """What it must have, or else what means the same."""
        return allow_synonyms(self.demand, self.hits, self.meaning, self.languages)

    @cached_property
    def numbered(self) -> NumberedThings:
        """The things of the question that a number tells apart from others."""
        return find_numbered_things(self.asked.text, self.hits, self.languages)

    @cached_property
    def relevance(self) -> Relevance:
        """How well the hits bear on the question, those best by their own words before others."""
        best = add_synonym_terms(self.candidates, self.hits, self._kin, self.languages)
        best = add_value_terms(self.demand, add_date_terms(self.asked, best, self.hits), self.hits)
        if self.mode == "keyword":
            by_words_alone = self._judged(best)
            if by_words_alone.is_relevant:
                return by_words_alone
        if not self.has_cosines:
            best = rescore_by_words(best, self.hits, self.embedder, self.meaning.vector)
        return self._judged(best)

    @cached_property
    def statements(self) -> Sequence[EvidenceSentence]:
        """The sentences of the best hits, best first."""
        return rank_sentences(self)

    @cached_property
    def certainty(self) -> Certainty:
        """How sure it is that the hits answer the question."""
        return Certainty(
            self.relevance,
            self.lead,
            score_gap([item.score for item in self.statements]),
        )

    @cached_property
    def communities(self) -> tuple[Community, ...]:
        """What the names in question and hits are part of, where the hits bear on the question."""
        if self.themes is None or not self.relevance.is_near:
            return ()
        return self.themes.around(self.asked.text, self.hits)

    def _judged(self, candidates: Sequence[Candidate]) -> Relevance:
        own = [text_score(hit) for hit in self.hits]
        order = sorted(range(len(own)), key=lambda at: -own[at])
        return judge_relevance(self.question, [candidates[at] for at in order], self.statistics)

    @cached_property
    def _kin(self) -> Synonyms:
        return find_synonyms(self.asked, self.statistics, self.meaning, self.languages, self.hits)
