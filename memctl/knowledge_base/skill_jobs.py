"""Jobs on the skills of a knowledge base; the schedule is decided elsewhere.

Each is a function of a knowledge base, the present instant and the number of the job under which
``memctl job undo`` takes back what it changes, and returns what came of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from memctl.knowledge_base.knowledge_base import KnowledgeBase


class SkillJobReport(Struct, frozen=True):
    """What a job on skills came to."""

    examined: int
    changed: int
    messages: tuple[str, ...] = ()
    """What a person should look at."""


def scan_skill_conflicts(kb: KnowledgeBase, now: datetime, _: int | None = None) -> SkillJobReport:
    """Look for conflicts among the skills."""
    scan = kb.skills.conflicts(now=now).scan()
    messages = tuple(f"{each.type}: {each.explanation}" for each in scan.found)
    return SkillJobReport(scan.skills, scan.new + scan.resolved, messages)


def decay_skills(kb: KnowledgeBase, now: datetime, _: int | None = None) -> SkillJobReport:
    """Let the effectiveness of skills fade that are not used."""
    skills = kb.skills.acting_as(now=now)
    return SkillJobReport(kb.store.ledger.skills.count(), skills.decay())


def reembed_skills(kb: KnowledgeBase, now: datetime, _: int | None = None) -> SkillJobReport:
    """Make vectors anew whose text or embedder has changed."""
    skills = kb.skills.acting_as(now=now)
    return SkillJobReport(kb.store.ledger.skills.count(), skills.reembed())


def find_skill_gaps(kb: KnowledgeBase, now: datetime, _: int | None = None) -> SkillJobReport:
    """Look for what no skill is for."""
    gaps = kb.skills.gaps(now)
    messages = tuple(f"{each.team}: {each.kind} {each.name}" for each in gaps)
    return SkillJobReport(len(gaps), 0, messages)


def expire_skill_proposals(
    kb: KnowledgeBase, now: datetime, _: int | None = None
) -> SkillJobReport:
    """Mark proposals as expired that were not reviewed in time."""
    expired = kb.skills.proposals(now=now).expire()
    return SkillJobReport(kb.store.ledger.skills.proposals.count(), expired)


def learn_from_skill_uses(
    kb: KnowledgeBase, now: datetime, job: int | None = None
) -> SkillJobReport:
    """Propose experimental versions from the notes of uses."""
    learned = kb.skills.proposals(now=now).learn(job=job)
    messages = tuple(f"version {each.version} of {each.slug} waits for review" for each in learned)
    return SkillJobReport(kb.store.ledger.skills.count(), len(learned), messages)


def repair_skills(kb: KnowledgeBase, now: datetime, job: int | None = None) -> SkillJobReport:
    """Repair simple conflicts, where the setting skills.auto_repair allows it."""
    if not kb.resources.program_config.skills.auto_repair:
        return SkillJobReport(0, 0)
    report = kb.skills.conflicts(now=now).repair(job=job)
    messages = (f"memctl job undo {report.job} takes it back",) if report.job else ()
    return SkillJobReport(report.left + len(report.repaired), len(report.repaired), messages)


_Run = Callable[["KnowledgeBase", "datetime", int | None], SkillJobReport]
SKILL_JOBS: Mapping[str, tuple[str, str, _Run]] = {
    "skill_conflicts": ("04:15", "Look for conflicts among the skills.", scan_skill_conflicts),
    "skill_repair": ("04:20", "Repair simple conflicts.", repair_skills),
    "skill_decay": (
        "sun 05:00", "Let the effectiveness of skills fade that are not used.", decay_skills
    ),
    "skill_reembedding": (
        "sun 05:00", "Make vectors anew whose text or embedder has changed.", reembed_skills
    ),
    "skill_learning": (
        "sun 05:30", "Propose experimental versions from the notes of uses.", learn_from_skill_uses
    ),
    "skill_gaps": ("1 03:00", "Look for what no skill is for.", find_skill_gaps),
    "skill_proposals": (
        "every 1h", "Mark proposals as expired that were not reviewed in time.",
        expire_skill_proposals,
    ),
}  # fmt: skip
"""Every job on skills: its schedule, as ``memctl.schedules`` reads it, and what it is for."""
