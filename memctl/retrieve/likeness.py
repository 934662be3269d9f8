"""Hits that resemble other good hits: what a question is about shows in all of them together.

After the cluster hypothesis (van Rijsbergen 1979) and the regularization of scores (Diaz 2005).
It helps a question about a subject, and buries the one right hit where the question is after
somebody or something with a name, so it stays out there; and in conversations, where turns that
resemble each other say little.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memctl.models.unit import products, unit_rows
from memctl.retrieve.collapse import Collapsed, raised
from memctl.retrieve.names import phrases_of
from memctl.retrieve.question import Question
from memctl.retrieve.surroundings import Surroundings

WEIGHT = 1.0
"""Of the mean score of those alike, against a hit's own."""
SHARPNESS = 10
"""Power of the cosine: only the nearest count."""
LEAST_ALIKE = 0.1
"""Of that, summed over all others: less, as of one with a cosine below 0.8, raises a hit by so much
less.  Without it whatever is nearest would count in full, however far away it is."""
_MOST_OF_IT = 0.5
"""Share of what a hit is raised by, from which on it is raised by one other hit."""
_LOOKED_AT = 100
_NAMED_IN = 10


def with_likeness(
    items: Sequence[Collapsed], question: Question, around: Surroundings
) -> list[Collapsed]:
    """Return the items, raised by those that they resemble, where the question names nothing."""
    best, rest = list(items[:_LOOKED_AT]), list(items[_LOOKED_AT:])
    if len(best) < 2 or _is_about_turns(best) or _names_something(question, best, around):
        return list(items)
    directions = _directions(best)
    if directions is None:
        return list(items)
    alike = np.clip(products(directions, directions), 0, None) ** SHARPNESS
    np.fill_diagonal(alike, 0)
    shares = alike / np.maximum(alike.sum(axis=1, keepdims=True), LEAST_ALIKE)
    scores = np.array([item.score for item in best])
    gains = _in_order(scores, WEIGHT * products(shares, np.clip(scores, 0, None)), shares)
    return [
        *(raised(item, "alike", float(gain)) for item, gain in zip(best, gains, strict=True)),
        *rest,
    ]


def _in_order(
    scores: NDArray[np.float64], gains: NDArray[np.float64], shares: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Return the gains, where none is more than that of a better hit which most of it is from.

    Two that resemble only each other would each gain what the other has, and end equal: the line
    of bus 17 and that of bus 18.
    """
    limited = gains.copy()
    for at in np.argsort(-scores, kind="stable"):
        better = (shares[at] >= _MOST_OF_IT) & (scores > scores[at])
        limited[at] = min(gains[at], limited[better].min(initial=np.inf))
    return limited


def _is_about_turns(best: Sequence[Collapsed]) -> bool:
    return 2 * sum(item.candidate.type == "turn" for item in best) > len(best)


def _names_something(question: Question, best: Sequence[Collapsed], around: Surroundings) -> bool:
    """Whether it is written like a name, or is the name of something in the best hits."""
    if question.names:
        return True
    asked = around.question_terms
    return any(
        asked.issuperset(phrase)
        for item in best[:_NAMED_IN]
        for phrase in phrases_of(item.candidate, around.languages)
    )


def _directions(best: Sequence[Collapsed]) -> NDArray[np.float32] | None:
    """The vectors, of length 1; None unless all are of one embedder."""
    rows = [item.candidate.direction for item in best]
    known = [row for row in rows if row is not None]
    if len(known) < len(rows) or len({len(row) for row in known}) != 1:
        return None
    return unit_rows(np.stack(known))
