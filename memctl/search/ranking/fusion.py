"""Two legs' scores become one, so that hits of either can be ranked together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from memctl.errors import UsageError
from memctl.literals import DEFAULT_HOPS, MAX_HOPS, Duplicates, Fusion, Mode
from memctl.records import Filters
from memctl.search.query.time_expressions import LEAST_SHOWN
from memctl.search.query.time_expressions import TIME_SCORE as IN_TIME
from memctl.search.ranking.scored_candidates import ScoredCandidate
from memctl.search.retrieval.candidates import Candidate, keyword_scores, vector_scores

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
    return share * scale(keyword, setting) + (1 - share) * normalize_within(
        spaces, scale, vector, setting
    )


def normalize_within(
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


def parse_fusion(name: str) -> Fusion:
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


_AHEAD_OF = 9
"""Place of the hit, from 0, that the best is compared with."""
_ENOUGH = 50
"""Hits among which a best one can stand out: of n none is more than the root of n ahead."""


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """What was asked for, checked."""

    mode: Mode
    fusion: Fusion
    filters: Filters
    limit: int
    hops: int = DEFAULT_HOPS
    """So many steps at most that the mode ``graph`` goes."""
    spaces: Mapping[str, int] = field(default_factory=dict)
    """A number for the embedder of each knowledge base, where they have several."""

    keyword_weight: float = KEYWORD_WEIGHT
    """The share of the words in the fusion ``weighted``."""
    duplicates: Duplicates = "exact"
    diversity: float = 0.0
    """0 to 1: how much it counts against a hit that it is like a better one."""
    per_document: int = 0
    """So many hits of one document at most; 0 for any number."""

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise UsageError(f"cannot return {self.limit} hits", "ask for at least one")
        if not 1 <= self.hops <= MAX_HOPS:
            raise UsageError(f"cannot go {self.hops} hops", f"1 to {MAX_HOPS}")
        if not 0 <= self.diversity <= 1:
            raise UsageError(f"no such diversity: {self.diversity}", "0 to 1")
        if self.per_document < 0:
            raise UsageError(f"cannot return {self.per_document} hits a document", "0 for any")

    @property
    def spreads(self) -> bool:
        """Whether other hits are shown than the best alone."""
        return self.diversity > 0 or self.per_document > 0

    @property
    def collapses(self) -> bool:
        """Whether a distilled memory and its passage are one hit: unless one kind is asked for."""
        return not self.filters.types and not self.filters.levels

    @property
    def main_filters(self) -> Filters:
        """The filters of the hits: insights stand apart unless asked for."""
        if not self.collapses:
            return self.filters
        return replace(self.filters, levels=("evidence", "memory"))


def score_candidates(
    candidates: Sequence[Candidate], plan: SearchPlan, setting: int | None = None
) -> list[ScoredCandidate]:
    """Return each candidate with its score in this mode and what it is made of.

    Args:
        candidates: The candidates.
        plan: What was asked for.
        setting: So many of the first set the scale that the rest are put on; None for all.
    """
    keyword, vector = keyword_scores(candidates), vector_scores(candidates)
    scale = minmax if plan.fusion == "minmax" else zscore
    spaces = _spaces_of(candidates, plan)
    scaled = {
        "keyword": scale(keyword, setting),
        "vector": normalize_within(spaces, scale, vector, setting),
    }
    scores = _mode_scores(keyword, vector, plan, spaces, setting)
    return [
        ScoredCandidate(
            candidate, float(scores[row]), _score_parts(row, candidate, scaled, plan.mode)
        )
        for row, candidate in enumerate(candidates)
    ]


def score_lead(ranked: Sequence[ScoredCandidate], plan: SearchPlan) -> float | None:
    """Return by how many standard deviations the best is ahead of the tenth.

    None where scores are not in standard deviations, or where too few are there to be ahead of.

    Args:
        ranked: All that was found, best first.
        plan: What was asked for.
    """
    if plan.mode != "hybrid" or plan.fusion not in ("zscore", "weighted"):
        return None
    if not plan.collapses or len(ranked) < _ENOUGH:
        return None
    return ranked[0].score - ranked[_AHEAD_OF].score


def _spaces_of(candidates: Sequence[Candidate], plan: SearchPlan) -> Spaces | None:
    if not plan.spaces:
        return None
    return np.array([plan.spaces.get(candidate.key[0], NO_SPACE) for candidate in candidates])


def _mode_scores(
    keyword: Scores, vector: Scores, plan: SearchPlan, spaces: Spaces | None, setting: int | None
) -> Scores:
    if plan.mode in ("hybrid", "graph"):
        return fuse(keyword, vector, plan.fusion, spaces, setting, plan.keyword_weight)
    if plan.mode == "keyword":
        return keyword
    return vector if spaces is None else normalize_within(spaces, zscore, vector, setting)


def _score_parts(
    row: int, candidate: Candidate, scaled: Mapping[str, Scores], mode: Mode
) -> dict[str, float]:
    legs: dict[str, float] = {}
    if mode != "vector":
        legs["keyword"] = candidate.keyword
        legs["keyword_normalised"] = float(scaled["keyword"][row])
        if candidate.in_time > LEAST_SHOWN:
            legs[IN_TIME] = candidate.in_time
    if mode != "keyword":
        legs["vector"] = candidate.vector
        legs["vector_normalised"] = float(scaled["vector"][row])
    return legs
