"""What a search was asked for, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar, get_args

from msgspec import Struct, field
from msgspec.structs import replace

from memctl.errors import UsageError
from memctl.literals import (
    DEFAULT_COMMUNITIES,
    DEFAULT_HOPS,
    DEFAULT_ROUNDS,
    MAX_COMMUNITIES,
    MAX_HOPS,
    MAX_ROUNDS,
    Duplicates,
    Fusion,
    Mode,
)
from memctl.records import Filters

MODES: tuple[Mode, ...] = get_args(Mode)
FUSIONS: tuple[Fusion, ...] = get_args(Fusion)
DUPLICATES: tuple[Duplicates, ...] = get_args(Duplicates)

KEYWORD_WEIGHT = 0.75
"""Share of keyword scores in a fused score; the rest is the share of vectors.  Static word vectors
are the weaker retriever on every kind of text measured (encyclopedia, abstracts, chat), yet with
this share they improve each of them."""

Choice = TypeVar("Choice", bound=str)


class SearchDepth(Struct, frozen=True):
    """How far the modes ``agentic`` and ``graph`` go.

    Raises:
        UsageError: A number is out of range.
    """

    rounds: int = DEFAULT_ROUNDS
    """Most rounds of ``agentic``."""
    relevant_hits: int = 3
    """Its search stops when so many hits are relevant,"""
    mean_relevance: float = 0.5
    """and their mean relevance is at least this."""
    graph_seeds: int = 5
    """A walk of ``graph`` starts at this many passages at most,"""
    seed_distance: float = 0.8
    """none of them at a larger cosine distance from the question."""
    communities: int = DEFAULT_COMMUNITIES
    """Most communities that ``graph`` returns besides hits."""

    def __post_init__(self) -> None:
        if not 1 <= self.rounds <= MAX_ROUNDS:
            raise UsageError(f"cannot search in {self.rounds} rounds", f"1 to {MAX_ROUNDS}")
        if not 0 <= self.communities <= MAX_COMMUNITIES:
            raise UsageError(
                f"cannot return {self.communities} communities", f"0 to {MAX_COMMUNITIES}"
            )


DEFAULT_DEPTH = SearchDepth()


class SearchPlan(Struct, frozen=True):
    """What a search was asked for.

    Raises:
        UsageError: A number is out of range.
    """

    mode: Mode
    fusion: Fusion
    filters: Filters
    limit: int
    hops: int = DEFAULT_HOPS
    """Longest path in the mode ``graph``, in steps."""
    depth: SearchDepth = DEFAULT_DEPTH
    spaces: Mapping[str, int] = field(default_factory=dict)
    """A number for the embedder of each knowledge base; empty where they have the same."""
    keyword_weight: float = KEYWORD_WEIGHT
    """The share of keyword scores in the fusion ``weighted``."""
    duplicates: Duplicates = "exact"
    diversity: float = 0.0
    """0 to 1: how much similarity to a better hit counts against a hit."""
    per_document: int = 0
    """Most hits per document; 0 means no limit."""

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
    def selects(self) -> bool:
        """Whether the hits shown are selected by more than their score."""
        return self.diversity > 0 or self.per_document > 0

    @property
    def folds_distilled(self) -> bool:
        """Whether a distilled memory is folded into its passage: unless one kind is asked for."""
        return not self.filters.types and not self.filters.levels

    @property
    def main_filters(self) -> Filters:
        """The filters of the hits; insights are listed separately unless asked for."""
        if not self.folds_distilled:
            return self.filters
        return replace(self.filters, levels=("evidence", "memory"))


def parse_choice(kind: str, name: str, choices: tuple[Choice, ...]) -> Choice:
    """Return the choice of that name.

    Raises:
        UsageError: There is none.
    """
    for choice in choices:
        if choice == name:
            return choice
    raise UsageError(f"unknown {kind} {name!r}", f"use one of: {', '.join(choices)}")
