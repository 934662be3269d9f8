"""Two legs' scores become one, so that hits of either can be ranked together."""

from __future__ import annotations

from typing import Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from memctl.choices import Fusion
from memctl.errors import UsageError

FUSIONS: tuple[Fusion, ...] = get_args(Fusion)

Scores = NDArray[np.float64]
Spaces = NDArray[np.int64]
NO_SPACE = -1


class Scale(Protocol):
    """Puts scores on the scale that so many of the first of them set, or all."""

    def __call__(self, scores: Scores, setting: int | None = None, /) -> Scores:
        """Return the scores on that scale."""
        ...


KEYWORD_WEIGHT = 0.75
"""The rest is the vectors' share.  Static word vectors are the weaker leg on every kind of text
measured (encyclopedia, abstracts, chat), yet at this share they improve each of them."""
RANK_CONSTANT = 60
"""From Cormack, Clarke and Büttcher (2009)."""


def fuse(
    keyword: Scores,
    vector: Scores,
    fusion: Fusion,
    spaces: Spaces | None = None,
    setting: int | None = None,
    keyword_weight: float = KEYWORD_WEIGHT,
) -> Scores:
    """Return one score for each candidate from its exact score in both legs.

    ``zscore`` and ``minmax`` put the legs on one scale over the candidates and take their
    sum, the words at three quarters; in ``weighted``, otherwise as ``zscore``, they have a weight
    of their own.  ``rrf`` looks at ranks alone; it is offered because it is well known, and was
    1 to 10 points of recall worse.  Cosines of several embedders say nothing of each other, so
    they are put on one scale within each of them; see ``within``.

    Args:
        keyword: The scores in one leg.
        vector: Those in the other.
        fusion: How to make one of two.
        spaces: As for ``within``.
        setting: So many of the first set the scale that the rest are put on; None for all.
        keyword_weight: The share of the words in ``weighted``, 0 to 1.
    """
    scale = {"minmax": minmax, "rrf": reciprocal_rank}.get(fusion, zscore)
    share = {"rrf": 0.5, "weighted": keyword_weight}.get(fusion, KEYWORD_WEIGHT)
    return share * scale(keyword, setting) + (1 - share) * within(spaces, scale, vector, setting)


def within(
    spaces: Spaces | None, scale: Scale, scores: Scores, setting: int | None = None
) -> Scores:
    """Return the scores scaled among those of the same embedder, and 0 for those of none.

    Args:
        spaces: A number for the embedder of each score, ``NO_SPACE`` for none; None where all are
            of one.
        scale: Puts scores on a scale.
        scores: To be scaled.
        setting: As for ``fuse``.
    """
    if spaces is None:
        return scale(scores, setting)
    scaled = np.zeros_like(scores)
    for space in set(spaces[spaces != NO_SPACE].tolist()):
        own = spaces == space
        scaled[own] = scale(scores[own], None if setting is None else int(own[:setting].sum()))
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


def zscore(scores: Scores, setting: int | None = None) -> Scores:
    """Return how many standard deviations each score lies above the mean; 0 if all are equal."""
    of = scores[:setting]
    if not len(of):
        return np.zeros_like(scores)
    return _divided(scores - of.mean(), float(of.std()))


def minmax(scores: Scores, setting: int | None = None) -> Scores:
    """Return the scores scaled to 0 for the lowest and 1 for the highest; 0 if all are equal."""
    of = scores[:setting]
    if not len(of):
        return np.zeros_like(scores)
    return _divided(scores - of.min(), float(np.ptp(of)))


def reciprocal_rank(scores: Scores, setting: int | None = None) -> Scores:
    """Return 1 / (60 + rank); equal scores share the best of their ranks."""
    ranks = 1 + np.searchsorted(np.sort(-scores[:setting]), -scores)
    result: Scores = 1.0 / (RANK_CONSTANT + ranks)
    return result


def _divided(scores: Scores, by: float) -> Scores:
    # Below this, differences are rounding errors of sums of floats that ought to be equal.
    return scores / by if by > 1e-9 else np.zeros_like(scores)
