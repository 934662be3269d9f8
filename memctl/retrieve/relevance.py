"""Whether anything found bears on the question, so that nothing is answered from what does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memctl.retrieve.candidates import Candidate
from memctl.retrieve.question import Question
from memctl.retrieve.scoring import coverage
from memctl.retrieve.statistics import TermStatistics

THRESHOLD = 0.5


@dataclass(frozen=True, slots=True)
class Relevance:
    """How much of the question the best of what was found speaks of."""

    coverage: float
    """Highest share of the question's content, by rarity, in one memory."""
    together: float
    """The same share in the best five memories together."""
    cosine: float
    """Highest cosine with the question."""

    @property
    def score(self) -> float:
        """0 to 1."""
        return 0.5 * self.coverage + 0.5 * self.together

    @property
    def is_relevant(self) -> bool:
        """Whether it is worth answering from."""
        return self.score >= THRESHOLD


def relevance(
    question: Question, candidates: Sequence[Candidate], statistics: TermStatistics
) -> Relevance:
    """Judge the best candidates."""
    best = candidates[:5]
    shares = [coverage(question, candidate.terms, statistics) for candidate in best]
    everything = frozenset[str]().union(*(candidate.terms for candidate in best))
    return Relevance(
        coverage=max(shares, default=0.0),
        together=coverage(question, everything, statistics),
        cosine=max((candidate.vector for candidate in best), default=0.0),
    )
