"""Views of skills: records that travel from the registry to every surface."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from memctl.literals import ChangeType, SkillCategory, SkillStatus
from memctl.store.ledger.skill_repositories import Skill


class SkillImport(Struct, frozen=True):
    """What became of one file that was imported."""

    source: str
    outcome: str
    """``added``, ``version`` for a new version, ``unchanged`` or ``failed``."""
    skill_id: str | None = None
    name: str = ""
    slug: str = ""
    category: str = ""
    version: int | None = None
    is_active: bool = False
    """Whether agents get that version."""
    reason: str = ""
    hint: str = ""
    left_out: tuple[str, ...] = ()


class SkillView(Struct, frozen=True):
    """A skill as listings show it."""

    skill_id: str
    name: str
    slug: str
    description: str
    category: SkillCategory
    status: SkillStatus
    version: int
    effectiveness: float
    health: float
    uses: int
    last_used_at: datetime | None
    agents: tuple[str, ...]
    """Those that have it, and for which it is enabled."""
    tags: tuple[str, ...]
    requires: tuple[str, ...]
    open_conflicts: int
    successor: str
    created_by: str
    updated_at: datetime


class SkillHit(Struct, frozen=True):
    """A skill that was found by what it does."""

    rank: int
    score: float
    relevance: float
    """By meaning and words, 0 to 1."""
    skill_id: str
    name: str
    slug: str
    description: str
    category: SkillCategory
    status: SkillStatus
    version: int
    health: float
    is_assigned: bool
    """Whether the agent that asks has it."""


class FileView(Struct, frozen=True):
    """A file of a skill."""

    path: str
    size: int
    sha256: str


class VersionView(Struct, frozen=True):
    """A version of a skill, without its text."""

    number: int
    change_type: ChangeType
    notes: str
    is_active: bool
    share: int
    """Per cent of the tasks that get it."""
    uses: int
    successes: int
    failures: int
    success: float
    """Share of successes, with three neutral uses counted in."""
    mean_duration: float | None
    """Seconds."""
    created_at: datetime
    created_by: str
    sha256: str


class SkillDetails(Struct, frozen=True):
    """All that is known of a skill."""

    skill: SkillView
    execution: Mapping[str, Any]
    metadata: Mapping[str, Any]
    source: str
    created_at: datetime
    versions: tuple[VersionView, ...]
    files: tuple[FileView, ...]
    """Of the active version."""
    disabled_for: tuple[str, ...]
    """Agents that have it, and for which it is switched off."""
    requires: tuple[str, ...]
    """What it requires, what must come first in front."""
    cycles: tuple[tuple[str, ...], ...]
    missing: tuple[str, ...]


class Dependencies(Struct, frozen=True):
    """What a skill requires, directly or not."""

    order: tuple[Skill, ...]
    """What others require comes before them; the skill itself is left out."""
    cycles: tuple[tuple[str, ...], ...]
    """Slugs that require each other in a circle; the first one stands again at the end."""
    missing: tuple[str, ...]


class SkillEdge(Struct, frozen=True):
    """An edge of the graph from a skill to another one, or to an agent that has it."""

    name: str
    relation: str
    """``requires``, ``improves``, ``conflicts_with`` or ``used_by``."""
    other: str
    other_type: str = "skill"
    """``skill``, ``agent``, or what a requirement is that cannot be had: ``missing_skill`` or
    ``archived_skill``."""


class Evolution(Struct, frozen=True):
    """How two versions of a skill compare."""

    skill_id: str
    name: str
    older: int
    newer: int
    older_success: float
    newer_success: float
    chance: float
    """How likely chance alone makes them differ as much."""
    is_clear: bool
    better: int | None
    """The better one, where the difference is clear."""
