"""Views of skills: what every surface shows of them, made from the rows of the ledger."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from msgspec import Struct

from memctl.errors import NotFoundError, UsageError
from memctl.literals import ChangeType, Severity, SkillCategory, SkillStatus
from memctl.records import record_like
from memctl.skills.skill_files import digest, parse_requirement, with_name
from memctl.store.ledger.skill_repositories import (
    Skill,
    SkillConflict,
    SkillProposal,
    SkillRepository,
    SkillVersion,
)

R = TypeVar("R", SkillConflict, SkillProposal)


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


def skill_views(
    repository: SkillRepository, skills: Sequence[Skill], now: datetime
) -> Sequence[SkillView]:
    """Return skills as listings show them."""
    versions = by_skill(repository.versions.all())
    agents = by_skill(repository.agents.all())
    conflicts = open_conflicts_by_skill(repository.conflicts.open())
    last = repository.uses.last_at()
    views = []
    for skill in skills:
        own = versions.get(skill.skill_id, [])
        successes = sum(each.successes for each in own)
        failures = sum(each.failures for each in own)
        used = last.get(skill.skill_id)
        against = conflicts.get(skill.skill_id, [])
        severities = (each.severity for each in against)
        score = health(successes, failures, used or skill.created_at, severities, now)
        views.append(
            record_like(
                SkillView,
                skill,
                version=skill.active_version,
                effectiveness=round(skill.effectiveness, 4),
                health=round(score, 4),
                uses=successes + failures,
                last_used_at=used,
                agents=tuple(a.agent for a in agents.get(skill.skill_id, []) if a.enabled),
                open_conflicts=len(against),
            )
        )
    return views


def version_views(repository: SkillRepository, skill_id: str) -> Sequence[VersionView]:
    """Return the versions of a skill, the oldest first."""
    durations: dict[int, list[float]] = {}
    for use in repository.uses.of(skill_id):
        if use.duration is not None:
            durations.setdefault(use.version, []).append(use.duration)
    return [
        record_like(
            VersionView,
            each,
            is_active=each.share > 0,
            uses=each.successes + each.failures,
            success=round(success_share(each.successes, each.failures), 4),
            mean_duration=_mean(durations.get(each.number, [])),
            sha256=digest(each.content.encode("utf-8")),
        )
        for each in repository.versions.of(skill_id)
    ]


def _mean(values: Sequence[float]) -> float | None:
    return round(math.fsum(values) / len(values), 3) if values else None


def dependencies(skill: Skill, skills: Iterable[Skill]) -> Dependencies:
    """Return what a skill requires in the order in which it has to be known.

    Args:
        skill: The skill.
        skills: All skills that there are.
    """
    by_slug = skills_by_slug(skills)
    order: dict[str, Skill] = {}
    cycles: dict[frozenset[str], tuple[str, ...]] = {}
    missing: dict[str, None] = {}
    done: set[str] = set()
    way: list[str] = []
    steps: list[Iterator[str]] = []

    def enter(found: Skill) -> None:
        """Go on to what a skill requires."""
        way.append(found.slug)
        steps.append(iter(found.requires))

    enter(skill)
    while steps:
        needed = next(steps[-1], None)
        if needed is None:
            steps.pop()
            slug = way.pop()
            done.add(slug)
            if way and slug != skill.slug:
                order[slug] = by_slug[slug]
            continue
        slug, _ = parse_requirement(needed)
        if slug in way:
            circle = (*way[way.index(slug) :], slug)
            cycles.setdefault(frozenset(circle), circle)
        elif slug not in by_slug:
            missing[needed] = None
        elif slug not in done:
            enter(by_slug[slug])
    return Dependencies(tuple(order.values()), tuple(cycles.values()), tuple(missing))


def skill_edges(repository: SkillRepository) -> Sequence[SkillEdge]:
    """Return how skills are connected with each other and with agents, by their names."""
    known = repository.all()
    skills = [each for each in known if each.status != "archived"]
    archived = {each.slug for each in known if each.status == "archived"}
    by_slug, by_id = skills_by_slug(skills), {each.skill_id: each for each in skills}
    found = []
    for skill in skills:
        for requirement in skill.requires:
            slug, _ = parse_requirement(requirement)
            needed = by_slug.get(slug)
            if needed is None:
                kind = "archived_skill" if slug in archived else "missing_skill"
                found.append(SkillEdge(skill.name, "requires", slug, kind))
            elif needed.skill_id != skill.skill_id:
                found.append(SkillEdge(skill.name, "requires", needed.name))
        after = by_slug.get(skill.successor)
        if after is not None and after.skill_id != skill.skill_id:
            found.append(SkillEdge(after.name, "improves", skill.name))
    for conflict in repository.conflicts.open():
        one, other = by_id.get(conflict.skill_id), by_id.get(conflict.other_id)
        if one is not None and other is not None:
            found.append(SkillEdge(one.name, "conflicts_with", other.name))
    found += [
        SkillEdge(by_id[assignment.skill_id].name, "used_by", assignment.agent, "agent")
        for assignment in repository.agents.select("enabled")
        if assignment.skill_id in by_id
    ]
    return found


def compare_versions(skill: Skill, older: SkillVersion, newer: SkillVersion) -> Evolution:
    """Return how two versions of a skill compare by the uses of each."""
    before, after = (older.successes, older.failures), (newer.successes, newer.failures)
    chance = chance_of_difference(before, after)
    shares = [wins / (wins + losses) for wins, losses in (before, after)]
    is_clear = chance < CLEAR_DIFFERENCE
    better = newer.number if shares[1] > shares[0] else older.number
    return Evolution(
        skill_id=skill.skill_id,
        name=skill.name,
        older=older.number,
        newer=newer.number,
        older_success=round(shares[0], 4),
        newer_success=round(shares[1], 4),
        chance=round(chance, 6),
        is_clear=is_clear,
        better=better if is_clear else None,
    )


def text_of(skill: Skill, version: SkillVersion) -> str:
    """Return the text of a version; of a skill that was renamed it has the new name."""
    is_renamed = skill.name != skill.declared_name
    return with_name(version.content, skill.name) if is_renamed else version.content


def only_match(found: Sequence[R], id_: str, kind: str) -> R:
    """Return the one row of a kind whose id is an id, or begins so.

    Raises:
        NotFoundError: There is none.
        UsageError: There are several.
    """
    if not found or not id_:
        raise NotFoundError(f"there is no {kind} {id_[:40]!r}", f"memctl skill {kind}s lists them")
    if len(found) > 1:
        raise UsageError(f"{len(found)} {kind}s begin with {id_!r}", "give more of the id")
    return found[0]


def skills_by_slug(skills: Iterable[Skill]) -> dict[str, Skill]:
    """Return the skill that each slug stands for: one that is active before others, the oldest."""
    rank = {"active": 0, "draft": 1, "deprecated": 2, "archived": 3}
    ordered = sorted(skills, key=lambda each: (rank[each.status], each.created_at, each.skill_id))
    found: dict[str, Skill] = {}
    for skill in ordered:
        found.setdefault(skill.slug, skill)
    return found


def open_conflicts_by_skill(
    conflicts: Iterable[SkillConflict],
) -> dict[str, list[SkillConflict]]:
    """Return conflicts by each of the skills that they are about."""
    found: dict[str, list[SkillConflict]] = {}
    for each in conflicts:
        for skill in dict.fromkeys((each.skill_id, each.other_id)):
            if skill:
                found.setdefault(skill, []).append(each)
    return found


def by_skill(rows: Iterable[Any]) -> dict[str, list[Any]]:
    """Return rows that belong to one skill each, by its id."""
    found: dict[str, list[Any]] = {}
    for each in rows:
        found.setdefault(each.skill_id, []).append(each)
    return found


# --- how well a skill does ------------------------------------------------------------------------

SEVERITY_WEIGHTS: Mapping[Severity, int] = {"low": 1, "medium": 2, "high": 4, "critical": 8}
NEUTRAL_USES = 3
"""Uses, half of them successful, that are assumed before the first."""
RECENCY_DAYS = 30.0
"""After this many days without use, half of the recency is left."""
FADING, FADING_DAYS, MIN_EFFECTIVENESS = 0.9, 30, 0.1
CLEAR_DIFFERENCE = 0.05
"""A difference that chance gives less often than this counts as one."""
_DAY = 86_400
_MAX_CONFLICTS = 8


def success_share(successes: int, failures: int) -> float:
    """Return the share of uses that went well, with a few neutral ones."""
    return (successes + NEUTRAL_USES / 2) / (successes + failures + NEUTRAL_USES)


def effectiveness(successes: int, failures: int, last_use: datetime, now: datetime) -> float:
    """Return the share of successes, less a tenth for each 30 days without use; at least 0.1."""
    share = success_share(successes, failures)
    periods = max(0, (now - last_use).days // FADING_DAYS)
    return min(share, max(MIN_EFFECTIVENESS, share * math.pow(FADING, periods)))


def health(
    successes: int, failures: int, last_use: datetime, severities: Iterable[Severity], now: datetime
) -> float:
    """Return 0 to 1: half by success, three tenths by recency, a fifth by open conflicts.

    Args:
        successes: Of all versions.
        failures: Of all versions.
        last_use: The latest use; of a skill that was never used, when it was made.
        severities: Of its open conflicts.
        now: The present instant.
    """
    days = max(0.0, (now - last_use).total_seconds() / _DAY)
    weight = min(sum(SEVERITY_WEIGHTS[each] for each in severities), _MAX_CONFLICTS)
    return (
        0.5 * success_share(successes, failures)
        + 0.3 * math.pow(0.5, days / RECENCY_DAYS)
        + 0.2 * (1 - weight / _MAX_CONFLICTS)
    )


def conflict_priority(severity: Severity, uses: int) -> float:
    """Return how pressing a conflict is, by the uses of both skills in the last 30 days."""
    return SEVERITY_WEIGHTS[severity] * (1 + math.log2(1 + uses))


def chance_of_difference(one: tuple[int, int], other: tuple[int, int]) -> float:
    """Return how likely chance alone makes two versions differ as much (Fisher's exact test).

    Args:
        one: Successes and failures of one version.
        other: Those of another.
    """
    (a, b), (c, d) = one, other
    successes, total, count = a + c, a + b + c + d, a + b
    if not count or count == total:
        return 1.0
    logs = [
        _log_ways(successes, k, total, count) for k in _possible_counts(successes, total, count)
    ]
    seen = _log_ways(successes, a, total, count) + 1e-9
    return min(1.0, math.fsum(math.exp(each) for each in logs if each <= seen))


def _possible_counts(successes: int, total: int, count: int) -> range:
    return range(max(0, count - (total - successes)), min(count, successes) + 1)


def _log_ways(successes: int, k: int, total: int, count: int) -> float:
    """The logarithm of the hypergeometric probability of k successes."""
    return (
        _log_choose(successes, k)
        + _log_choose(total - successes, count - k)
        - _log_choose(total, count)
    )


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
