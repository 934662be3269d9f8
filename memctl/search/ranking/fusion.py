"""Fusion: keyword and vector scores become one score, so that all candidates can be ranked."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memctl.literals import Fusion
from memctl.search.search_plan import KEYWORD_WEIGHT

Scores = NDArray[np.float64]
Spaces = NDArray[np.int64]
"""A number for the embedder that each candidate's vector is from."""
NO_SPACE = -1
"""For a candidate without a vector to compare."""


class Scale(Protocol):
    """Puts scores on a common scale, which the first so many of them set, or all."""

    def __call__(self, scores: Scores, reference: int | None = None, /) -> Scores:
        """Return the scores on that scale."""
        ...


_RANK_CONSTANT = 60
"""From Cormack, Clarke and Büttcher (2009)."""


def fuse(
    keyword: Scores,
    vector: Scores,
    fusion: Fusion,
    spaces: Spaces | None = None,
    reference: int | None = None,
    keyword_weight: float = KEYWORD_WEIGHT,
) -> Scores:
    """Return one score for each candidate from its exact keyword and vector scores.

    ``zscore`` and ``minmax`` put both on one scale over the candidates and add them, keywords at
    three quarters; ``weighted`` is ``zscore`` with a share of choice.  ``rrf`` looks at ranks
    alone; it is offered because it is well known, and measured 1 to 10 points of recall worse.

    Args:
        keyword: The keyword scores.
        vector: The vector scores.
        fusion: How to fuse them.
        spaces: See ``normalize_within``.
        reference: Only the first so many scores set the scale; None for all.
        keyword_weight: The share of keyword scores in ``weighted``, 0 to 1.
    """
    scale = {"minmax": minmax, "rrf": reciprocal_rank}.get(fusion, zscore)
    share = {"rrf": 0.5, "weighted": keyword_weight}.get(fusion, KEYWORD_WEIGHT)
    vectors = normalize_within(spaces, scale, vector, reference)
    return share * scale(keyword, reference) + (1 - share) * vectors


def normalize_within(
    spaces: Spaces | None, scale: Scale, scores: Scores, reference: int | None = None
) -> Scores:
    """Return the scores scaled among those of the same embedder; 0 for those of none.

    Cosines of different embedders say nothing about each other.

    Args:
        spaces: The embedder of each score; None where all have the same.
        scale: Puts scores on a scale.
        scores: The scores.
        reference: See ``fuse``.
    """
    if spaces is None:
        return scale(scores, reference)
    scaled = np.zeros_like(scores)
    for space in set(spaces[spaces != NO_SPACE].tolist()):
        own = spaces == space
        scaled[own] = scale(scores[own], None if reference is None else int(own[:reference].sum()))
    return scaled


def zscore(scores: Scores, reference: int | None = None) -> Scores:
    """Return how many standard deviations each score lies above the mean; 0 if all are equal."""
    of = scores[:reference]
    if not len(of):
        return np.zeros_like(scores)
    return _divide(scores - of.mean(), float(of.std()))


def minmax(scores: Scores, reference: int | None = None) -> Scores:
    """Return the scores scaled to 0 for the lowest and 1 for the highest; 0 if all are equal."""
    of = scores[:reference]
    if not len(of):
        return np.zeros_like(scores)
    return _divide(scores - of.min(), float(np.ptp(of)))


def reciprocal_rank(scores: Scores, reference: int | None = None) -> Scores:
    """Return 1 / (60 + rank); equal scores share the best of their ranks."""
    ranks = 1 + np.searchsorted(np.sort(-scores[:reference]), -scores)
    result: Scores = 1.0 / (_RANK_CONSTANT + ranks)
    return result


def _divide(scores: Scores, by: float) -> Scores:
    # Below this, differences are rounding errors of sums of floats that ought to be equal.
    return scores / by if by > 1e-9 else np.zeros_like(scores)
