"""What consolidation draws from memories."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Connection:
    """How two memories hang together."""

    source_id: str
    target_id: str
    relationship: str
    """``similar``, ``near_duplicate``, ``same_entity``, ``follows``, ``contradicts``."""
    weight: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class Insight:
    """What several memories say together."""

    id: str
    text: str
    source_ids: tuple[str, ...]
    entities: tuple[str, ...]
    connections: tuple[Connection, ...]
    importance: float
    confidence: float
    kind: str
    """``common``, ``change`` or ``contradiction``."""


@dataclass(frozen=True, slots=True)
class ConsolidationReport:
    """What one consolidation did, or with ``dry_run`` would do."""

    kb: str
    examined: int
    groups: int
    insights: tuple[Insight, ...]
    duplicates: int
    dry_run: bool
    seconds: float
    by_model: int = 0
    """Groups whose insight a model wrote."""
    dropped: int = 0
    """What a model cited without having been given it."""
    waiting: int = 0
    """Groups that are not consolidated yet, because they wait for a model."""
    note: str = ""
    """Why a model that is configured did not write, where it did not."""
    hint: str = ""
    """What to do about that."""
