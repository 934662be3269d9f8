"""Two legs' scores become one, so that hits of either can be ranked together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from memctl.errors import UsageError

Fusion = Literal["zscore", "minmax", "rrf"]
FUSIONS: tuple[Fusion, ...] = get_args(Fusion)

Scores = NDArray[np.float64]
Spaces = NDArray[np.int64]
NO_SPACE = -1

KEYWORD_WEIGHT = 0.75
"""The rest is the vectors' share.  Static word vectors are the weaker leg on every kind of text
measured (encyclopedia, abstracts, chat), yet at this share they improve each of them."""
RANK_CONSTANT = 60
"""From Cormack, Clarke and Büttcher (2009)."""


def fuse(keyword: Scores, vector: Scores, fusion: Fusion, spaces: Spaces | None = None) -> Scores:
    """Return one score for each candidate from its exact score in both legs.

    ``zscore`` and ``minmax`` put the legs on one scale over the candidates and take their
    weighted sum.  ``rrf`` looks at ranks alone; it is offered because it is well known, and was
    2 to 10 points of recall worse.  Cosines of several embedders say nothing of each other, so
    they are put on one scale within each of them; see ``within``.
    """
    scale = {"zscore": zscore, "minmax": minmax, "rrf": reciprocal_rank}[fusion]
    return KEYWORD_WEIGHT * scale(keyword) + (1 - KEYWORD_WEIGHT) * within(spaces, scale, vector)


def within(spaces: Spaces | None, scale: Callable[[Scores], Scores], scores: Scores) -> Scores:
    """Return the scores scaled among those of the same embedder, and 0 for those of none.

    Args:
        spaces: A number for the embedder of each score, ``NO_SPACE`` for none; None where all are
            of one.
        scale: Puts scores on a scale.
        scores: To be scaled.
    """
    if spaces is None:
        return scale(scores)
    scaled = np.zeros_like(scores)
    for space in set(spaces[spaces != NO_SPACE].tolist()):
        scaled[spaces == space] = scale(scores[spaces == space])
    return scaled


def checked_fusion(name: str) -> Fusion:
    """Return the fusion of that name.

    Raises:
        UsageError: There is none.
    """
    for fusion in FUSIONS:
        if fusion == name:
            return fusion
    raise UsageError(f"unknown fusion {name!r}", f"use one of: {', '.join(FUSIONS)}")


def zscore(scores: Scores) -> Scores:
    """Return how many standard deviations each score lies above the mean; 0 if all are equal."""
    if not len(scores):
        return scores
    return _divided(scores - scores.mean(), float(scores.std()))


def minmax(scores: Scores) -> Scores:
    """Return the scores scaled to 0 for the lowest and 1 for the highest; 0 if all are equal."""
    if not len(scores):
        return scores
    return _divided(scores - scores.min(), float(np.ptp(scores)))


def reciprocal_rank(scores: Scores) -> Scores:
    """Return 1 / (60 + rank); equal scores share the best of their ranks."""
    ranks = 1 + np.searchsorted(np.sort(-scores), -scores)
    result: Scores = 1.0 / (RANK_CONSTANT + ranks)
    return result


def _divided(scores: Scores, by: float) -> Scores:
    # Below this, differences are rounding errors of sums of floats that ought to be equal.
    return scores / by if by > 1e-9 else np.zeros_like(scores)
