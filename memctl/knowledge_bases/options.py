"""How a question may be asked, and how it is then looked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict

from memctl.choices import Duplicates, Fusion, Mode
from memctl.records import Filters


class AskOptions(TypedDict, total=False):
    """How a question is to be asked; what is left out is as configured."""

    mode: Mode | None
    """How memories are found: ``hybrid``, ``keyword``, ``vector``, ``graph`` or ``agentic``."""
    hops: int | None
    """So many steps at most that ``graph`` goes; 2 by default."""
    fusion: Fusion | None
    """How ``hybrid`` makes one score of those by words and by meaning."""
    filters: Filters
    """What the hits are limited to."""
    limit: int | None
    """How many hits."""
    duplicates: Duplicates | None
    """What is folded of memories that say the same: ``exact``, ``near`` or, with ``keep``, none."""
    diversity: float | None
    """0 to 1: how much it counts against a hit that it is like a better one."""
    per_document: int | None
    """So many hits of one document at most; 0 for any number."""
    answer: bool
    """Whether to answer, with citations, besides finding memories; True by default."""
    explain: bool
    """Whether to say how the search went."""
    told: Callable[[str], None] | None
    """Told an answer piece by piece while a model writes it; what it wrote is not kept then."""
    log: bool
    """Whether it is noted in the query log, as it is by default where that is on."""


class SearchOptions(TypedDict):
    """How a question is looked for in the mode that was chosen."""

    filters: Filters
    limit: int
    fusion: Fusion
    keyword_weight: float
    hops: int
    duplicates: Duplicates
    diversity: float
    per_document: int
