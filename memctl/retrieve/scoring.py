"""Exact scores of candidates, whichever leg found them.

The index gives candidates; its scores depend on which rows it has indexed yet and on what the
filter leaves, so they are not compared.  What is compared is computed here, the same for all.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from memctl.models.unit import products
from memctl.retrieve.question import Question, slot_weight
from memctl.retrieve.statistics import TermStatistics

SATURATION = 1.2
LENGTH_SHARE = 0.75
PHRASE_WEIGHT = 0.2
"""Share of a pair of neighbouring terms, as against the rarer of the two on its own; sequential
dependence after Metzler and Croft (2005)."""


class KeywordScorer:
    """BM25 of a question's terms, of its neighbouring terms standing next to each other, and of the
    phrases that stand for a term.

    The terms that one word may be found by weigh the same: a form that is rare because most
    records were stemmed by another language says no more than the form in these.
    """

    def __init__(self, question: Question, statistics: TermStatistics) -> None:
        self._average = max(statistics.average_length, 1.0)
        self._weights = _weights(question, statistics)
        self._pairs = {
            pair: PHRASE_WEIGHT * min(self._weights[pair[0]], self._weights[pair[1]])
            for pair in question.pairs
        }
        self._said = {pair: min(map(statistics.idf, pair)) for pair in question.phrases}

    def score(self, search_text: str) -> tuple[float, frozenset[str]]:
        """Return the score of one memory, 0 without any of the terms, and those that it has."""
        # Counting in one string is ten times as fast as in a list of terms.  With two spaces
        # between terms, neighbours do not share the space that a count has used up.
        text = f" {search_text.replace(' ', '  ')} "
        counts = {term: n for term in self._weights if (n := text.count(f" {term} "))}
        if not counts and not self._said:
            return 0.0, frozenset()
        terms = 1 + search_text.count(" ")
        length = 1 - LENGTH_SHARE + LENGTH_SHARE * terms / self._average
        single = sum(self._weights[term] * _saturated(n, length) for term, n in counts.items())
        said = sum(
            weight * _saturated(_neighbours(text, pair), length)
            for pair, weight in self._said.items()
        )
        return single + said + self._phrases(text, counts, length), frozenset(counts)

    def _phrases(self, text: str, counts: Mapping[str, int], length: float) -> float:
        return sum(
            weight * _saturated(_neighbours(text, pair), length)
            for pair, weight in self._pairs.items()
            if pair[0] in counts and pair[1] in counts
        )


def _weights(question: Question, statistics: TermStatistics) -> dict[str, float]:
    weights = {term: statistics.idf(term) for term in question.terms}
    for slot in question.slots:
        together = slot_weight(slot, statistics)
        weights |= {term: min(weights[term], together) for term in slot}
    return weights


def cosines(vector: NDArray[np.float32], vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the cosine of each row with a vector of length 1; 0 for a row of zeros."""
    lengths = np.linalg.norm(vectors, axis=1)
    lengths[lengths == 0] = 1
    result: NDArray[np.float64] = (products(vectors, vector) / lengths).astype(np.float64)
    return result


def coverage(question: Question, found: frozenset[str], statistics: TermStatistics) -> float:
    """Return which share of the question's content, weighted by rarity, is among the terms."""
    weights = {slot: slot_weight(slot, statistics) for slot in question.slots}
    total = sum(weights.values())
    covered = sum(weight for slot, weight in weights.items() if not found.isdisjoint(slot))
    return covered / total if total else 0.0


def _neighbours(text: str, pair: tuple[str, str]) -> int:
    return text.count(f" {pair[0]}  {pair[1]} ")


def _saturated(count: int, length: float) -> float:
    return count * (SATURATION + 1) / (count + SATURATION * length)
