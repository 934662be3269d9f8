"""The scores of candidates in a mode, on one scale that later ones can be put on, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from memctl.choices import HOPS, MOST_HOPS, Duplicates, Fusion, Mode
from memctl.errors import UsageError
from memctl.records import Filters
from memctl.retrieve.candidates import Candidate, keywords, vectors
from memctl.retrieve.collapse import Collapsed
from memctl.retrieve.fusion import (
    KEYWORD_WEIGHT,
    NO_SPACE,
    Scores,
    Spaces,
    fuse,
    minmax,
    within,
    zscore,
)
from memctl.retrieve.times import LEAST_SHOWN
from memctl.retrieve.times import LEG as IN_TIME

_AHEAD_OF = 9
"""Place of the hit, from 0, that the best is compared with."""
_ENOUGH = 50
"""Hits among which a best one can stand out: of n none is more than the root of n ahead."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What was asked for, checked."""

    mode: Mode
    fusion: Fusion
    filters: Filters
    limit: int
    hops: int = HOPS
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
        if not 1 <= self.hops <= MOST_HOPS:
            raise UsageError(f"cannot go {self.hops} hops", f"1 to {MOST_HOPS}")
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


def scored(
    candidates: Sequence[Candidate], plan: Plan, setting: int | None = None
) -> list[Collapsed]:
    """Return each candidate with its score in this mode and what it is made of.

    Args:
        candidates: The candidates.
        plan: What was asked for.
        setting: So many of the first set the scale that the rest are put on; None for all.
    """
    keyword, vector = keywords(candidates), vectors(candidates)
    scale = minmax if plan.fusion == "minmax" else zscore
    spaces = _spaces_of(candidates, plan)
    scaled = {"keyword": scale(keyword, setting), "vector": within(spaces, scale, vector, setting)}
    scores = _final(keyword, vector, plan, spaces, setting)
    return [
        Collapsed(candidate, float(scores[row]), _legs(row, candidate, scaled, plan.mode))
        for row, candidate in enumerate(candidates)
    ]


def lead(ranked: Sequence[Collapsed], plan: Plan) -> float | None:
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


def _spaces_of(candidates: Sequence[Candidate], plan: Plan) -> Spaces | None:
    if not plan.spaces:
        return None
    return np.array([plan.spaces.get(candidate.key[0], NO_SPACE) for candidate in candidates])


def _final(
    keyword: Scores, vector: Scores, plan: Plan, spaces: Spaces | None, setting: int | None
) -> Scores:
    if plan.mode in ("hybrid", "graph"):
        return fuse(keyword, vector, plan.fusion, spaces, setting, plan.keyword_weight)
    if plan.mode == "keyword":
        return keyword
    return vector if spaces is None else within(spaces, zscore, vector, setting)


def _legs(
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
