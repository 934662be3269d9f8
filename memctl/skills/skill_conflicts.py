"""What skills have against each other: found, weighed, settled, and the simple ones repaired.

A repair is noted in the ledger with what was there before, so that it can be taken back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import combinations
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import UsageError
from memctl.ids import conflict_id
from memctl.language.term_analysis import terms
from memctl.literals import ConflictStatus, ConflictType, Severity, SkillStatus
from memctl.skills.skill_files import body_of, parse_requirement, slug_of
from memctl.skills.skill_registry import Skills
from memctl.skills.skill_views import conflict_priority, only_match, skills_by_slug
from memctl.store.ledger.skill_repositories import (
    REPAIRED_FIELDS,
    RepairedField,
    Skill,
    SkillConflict,
    SkillRepair,
)

if TYPE_CHECKING:
    from memctl.store.ledger.work_repositories import Job

SKILL_REPAIR = "skill_repair"
"""The kind of job that repairs skills."""
OVERLAP, STRONG_OVERLAP = 0.85, 0.95
"""Cosine of two descriptions of one category from which they overlap, and do so badly."""
SAME_TRIGGER = 0.6
"""Cosine of two names and descriptions of one category from which they may be for the same."""
_SAME_INSTRUCTION = 0.6
"""Share of words that an instruction and its opposite have in common."""
_USES_DAYS = 30
_MAX_INSTRUCTIONS = 200
_IN_USE: tuple[SkillStatus, ...] = ("draft", "active")
_SCAN = "scan"
_REPAIR = "repair"
_SENTENCES = re.compile(r"[^.!?\n]+")
_NEGATIVE = re.compile(
    r"\b(?:never|must not|mustn't|do not|don't|should not|shouldn't|may not|avoid)\b", re.IGNORECASE
)
_POSITIVE = re.compile(r"\b(?:always|must|should|make sure|be sure|ensure)\b", re.IGNORECASE)


class ConflictScan(Struct, frozen=True):
    """What a scan found."""

    skills: int
    found: tuple[SkillConflict, ...]
    """That are open, the most pressing first."""
    new: int
    resolved: int
    """That were open, and are there no more."""


class SkillRepairReport(Struct, frozen=True):
    """What a repair did, or would do."""

    job: int | None
    """None where nothing was changed."""
    repaired: tuple[RepairedConflict, ...]
    left: int
    """Open conflicts that a person has to settle."""
    dry_run: bool


class RepairedConflict(Struct, frozen=True):
    """One change of a repair."""

    conflict_id: str
    type: ConflictType
    skill_id: str
    field: RepairedField
    before: Any
    after: Any


class _Finding(Struct, frozen=True):
    type: ConflictType
    severity: Severity
    skill: Skill
    other: Skill | None
    explanation: str
    requirement: str = ""

    @property
    def id(self) -> str:
        """Its id, the same at every scan."""
        skills = [self.skill.skill_id, *([self.other.skill_id] if self.other else [])]
        return conflict_id(self.type, skills, self.requirement)


class SkillConflicts:
    """The conflicts among the skills of one knowledge base.

    Args:
        skills: The skills, for the acting user or agent.
    """

    def __init__(self, skills: Skills) -> None:
        self._skills = skills
        self._stored = skills.ledger.skills

    # --- finding ---------------------------------------------------------------------------------

    def scan(self) -> ConflictScan:
        """Compare all skills; what is found for the first time is noted, what is gone resolved.

        What was dismissed stays so; what was said to be resolved and is there still is open again.
        """
        self._skills.require_writable()
        now = self._skills.clock()
        skills = [each for each in self._stored.all() if each.status != "archived"]
        uses = self._stored.uses.counts_since(now - timedelta(days=_USES_DAYS))
        known = {each.conflict_id: each for each in self._stored.conflicts.all()}
        current: dict[str, SkillConflict] = {}
        for found in self._findings(skills):
            current[found.id] = _as_conflict(found, known.get(found.id), uses, now)
        gone = [
            replace(each, status="resolved", resolved_at=now, resolved_by=_SCAN)
            for each in known.values()
            if each.conflict_id not in current and each.status in ("detected", "acknowledged")
        ]
        self._stored.conflicts.save(*current.values(), *gone)
        return ConflictScan(
            skills=len(skills),
            found=tuple(self._stored.conflicts.open()),
            new=len(current.keys() - known.keys()),
            resolved=len(gone),
        )

    def _findings(self, skills: Sequence[Skill]) -> Iterator[_Finding]:
        for find in (self._naming, self._overlaps, self._requirements, self._cycles):
            yield from find(skills)

    def _naming(self, skills: Sequence[Skill]) -> Iterator[_Finding]:
        same_slug = {}
        for one, other in _pairs(skills, lambda skill: [skill.slug]):
            same_slug[one.skill_id, other.skill_id] = True
            explanation = f"{one.name!r} and {other.name!r} have the same slug, {one.slug}"
            yield _Finding("naming", "medium", one, other, explanation)
        for one, other in _pairs(skills, lambda skill: [_plain_name(skill.name)]):
            if (one.skill_id, other.skill_id) not in same_slug:
                explanation = (
                    f"{one.name!r} and {other.name!r} differ in case, plural or hyphen only"
                )
                yield _Finding("naming", "low", one, other, explanation)

    def _overlaps(self, skills: Sequence[Skill]) -> Iterator[_Finding]:
        """Skills of one category whose descriptions say the same, or that say the opposite."""
        import numpy as np

        for category in sorted({each.category for each in skills}):
            group = [e for e in skills if e.category == category and e.status in _IN_USE]
            if len(group) < 2:
                continue
            vectors = self._skills.matcher.vectors(group)
            near = np.triu(vectors @ vectors.T, 1)
            pairs = {(int(one), int(other)) for one, other in np.argwhere(near >= SAME_TRIGGER)}
            places = {skill.skill_id: at for at, skill in enumerate(group)}
            for one, other in _pairs(group, _triggers):
                pairs.add((places[one.skill_id], places[other.skill_id]))
            described = self._skills.matcher.description_similarities(group, sorted(pairs))
            for (first, second), cosine in described.items():
                if cosine >= OVERLAP:
                    severity: Severity = "high" if cosine >= STRONG_OVERLAP else "medium"
                    explanation = (
                        f"both are for {category}, and their descriptions say nearly the same"
                        f" ({cosine:.2f})"
                    )
                    yield _Finding("overlap", severity, group[first], group[second], explanation)
                yield from self._contradiction(group[first], group[second])

    def _contradiction(self, one: Skill, other: Skill) -> Iterator[_Finding]:
        texts = [self._instructions(each) for each in (one, other)]
        pair = opposite_instructions(*texts)
        if pair:
            explanation = f"for the same, one says {pair[0]!r} and the other {pair[1]!r}"
            yield _Finding("contradiction", "high", one, other, explanation)

    def _instructions(self, skill: Skill) -> str:
        """Return what a skill says to do, without what it is called."""
        version = self._stored.versions.find(skill.skill_id, skill.active_version)
        lines = body_of(version.content).splitlines() if version else ()
        names = {slug_of(name) for name in (skill.declared_name, skill.name)}
        return "\n".join(
            line for line in lines if not (line.startswith("#") and slug_of(line) in names)
        )

    def _requirements(self, skills: Sequence[Skill]) -> Iterator[_Finding]:
        by_slug = skills_by_slug(self._stored.all())
        for skill in skills:
            if skill.status not in _IN_USE:
                continue
            for requirement in skill.requires:
                slug, number = parse_requirement(requirement)
                other = by_slug.get(slug)
                if other is None:
                    explanation = f"{skill.slug} requires {slug}, which is not there"
                    yield _Finding("dependency", "high", skill, None, explanation, requirement)
                elif other.status in ("deprecated", "archived"):
                    after = f"; {other.successor} replaces it" if other.successor else ""
                    explanation = f"{skill.slug} requires {slug}, which is {other.status}{after}"
                    severity: Severity = "medium" if other.status == "deprecated" else "high"
                    yield _Finding("dependency", severity, skill, other, explanation, requirement)
                elif number is not None and number not in self._active_numbers(other):
                    explanation = (
                        f"{skill.slug} requires version {number} of {slug}, which is not active"
                    )
                    yield _Finding(
                        "version_mismatch", "medium", skill, other, explanation, requirement
                    )

    def _active_numbers(self, skill: Skill) -> set[int]:
        return {v.number for v in self._stored.versions.of(skill.skill_id) if v.share > 0}

    def _cycles(self, skills: Sequence[Skill]) -> Iterator[_Finding]:
        seen: set[frozenset[str]] = set()
        by_slug = skills_by_slug(skills)
        for skill in by_slug.values():
            for circle in self._skills.dependencies(skill).cycles:
                slugs = frozenset(circle)
                if slugs in seen or not slugs <= by_slug.keys():
                    continue
                seen.add(slugs)
                first, second = sorted(slugs)[0], sorted(slugs)[-1]
                other = by_slug[second] if second != first else None
                explanation = f"they require each other in a circle: {' -> '.join(circle)}"
                about = "circle: " + " ".join(sorted(slugs))
                yield _Finding("dependency", "critical", by_slug[first], other, explanation, about)

    # --- resolving -------------------------------------------------------------------------------

    def find(self, id_: str) -> SkillConflict:
        """Return the conflict with an id, or the beginning of one.

        Raises:
            NotFoundError: There is none.
            UsageError: Several begin so.
        """
        found = self._stored.conflicts.select("substr(conflict_id, 1, length(?1)) = ?1", id_)
        return only_match(found, id_, "conflict")

    def list(
        self, *, status: ConflictStatus | None = None, skill: str | None = None
    ) -> Sequence[SkillConflict]:
        """Return conflicts, the most pressing first; by default those that are open.

        Args:
            status: Only in this one.
            skill: Only of this skill.
        """
        conflicts = self._stored.conflicts
        found = conflicts.open() if status is None else conflicts.select("status = ?", status)
        if skill is None:
            return found
        id_ = self._skills.find(skill).skill_id
        return [each for each in found if id_ in (each.skill_id, each.other_id)]

    def settle(self, id_: str, status: ConflictStatus) -> SkillConflict:
        """Acknowledge, resolve or dismiss a conflict.

        Raises:
            AccessRefused: An agent acts.
            NotFoundError: There is none.
            UsageError: It is settled already.
        """
        self._skills.require_person("settle conflicts")
        self._skills.require_writable()
        conflict = self.find(id_)
        if conflict.status in ("resolved", "dismissed"):
            raise UsageError(
                f"conflict {conflict.conflict_id} is {conflict.status} already",
                "memctl skill conflicts --scan looks whether it is still there",
            )
        is_over = status in ("resolved", "dismissed")
        changed = replace(
            conflict,
            status=status,
            resolved_at=self._skills.clock() if is_over else None,
            resolved_by=self._skills.actor if is_over else None,
        )
        with self._skills.ledger.transaction():
            self._stored.conflicts.save(changed)
            self._skills.note(f"conflict {status}", changed.conflict_id)
        return changed

    # --- repairing -------------------------------------------------------------------------------

    def repair(self, *, dry_run: bool = False, job: int | None = None) -> SkillRepairReport:
        """Repair what is simple, as one job that can be taken back.

        The newer of two skills with like names gets a suffix; what requires a deprecated skill
        with a successor requires that one; what requires a version that is not active requires
        the active one.  Everything else is left for a person.

        Args:
            dry_run: Change nothing.
            job: The job that it is part of; by default it is one of its own.

        Raises:
            AccessRefused: An agent acts.
        """
        self._skills.require_person("repair skills")
        self._skills.require_writable()
        now, ledger = self._skills.clock(), self._skills.ledger
        with ledger.transaction():
            current = {each.skill_id: each for each in self._stored.all()}
            started = dict(current)
            tried = (self._repair_one(each, current) for each in self._stored.conflicts.open())
            repaired = [each for each in tried if each is not None]
            left = len(self._stored.conflicts.open()) - len(repaired)
            if dry_run or not repaired:
                return SkillRepairReport(None, tuple(repaired), left, dry_run)
            number = ledger.jobs.start(SKILL_REPAIR, now) if job is None else job
            self._skills.note("repair", *(i for i, each in current.items() if each != started[i]))
            for id_, skill in current.items():
                if skill != started[id_]:
                    self._stored.save(replace(skill, updated_at=now))
                    self._stored.repairs.save(*_repairs(number, started[id_], skill, repaired, now))
            self._stored.conflicts.save(
                *(
                    replace(c, status="resolved", resolved_at=now, resolved_by=_REPAIR)
                    for c in map(self.find, (each.conflict_id for each in repaired))
                )
            )
            if job is None:
                ledger.jobs.finish(number, "done", now, {"repaired": len(repaired), "left": left})
        return SkillRepairReport(number, tuple(repaired), left, dry_run)

    def _repair_one(
        self, conflict: SkillConflict, current: dict[str, Skill]
    ) -> RepairedConflict | None:
        """Change what a conflict is about in ``current``, where that is simple."""
        skill, other = current.get(conflict.skill_id), current.get(conflict.other_id)
        if skill is None or other is None:
            return None
        if conflict.type == "naming":
            newer = max(skill, other, key=lambda each: (each.created_at, each.skill_id))
            slugs = {each.slug for each in current.values()}
            name, slug = _free_name(newer, slugs, {_plain_name(e.name) for e in current.values()})
            current[newer.skill_id] = replace(newer, name=name, slug=slug)
            return _change(conflict, newer, "name", newer.name, name)
        wanted = self._other_requirement(conflict, other, current)
        if wanted is None or conflict.requirement not in skill.requires:
            return None
        requires = tuple(
            dict.fromkeys(
                wanted if each == conflict.requirement else each for each in skill.requires
            )
        )
        current[skill.skill_id] = replace(skill, requires=requires)
        return _change(conflict, skill, "requires", list(skill.requires), list(requires))

    def _other_requirement(
        self, conflict: SkillConflict, other: Skill, current: Mapping[str, Skill]
    ) -> str | None:
        """What a skill is to require instead; None where that is not plain."""
        if conflict.type == "version_mismatch":
            active = self._active_numbers(other)
            return (
                f"{other.slug}@{other.active_version}" if other.active_version in active else None
            )
        if conflict.type == "dependency" and other.status == "deprecated" and other.successor:
            after = skills_by_slug(current.values()).get(other.successor)
            is_usable = after is not None and after.status == "active"
            return (
                other.successor
                if is_usable and after and after.skill_id != conflict.skill_id
                else None
            )
        return None

    def undo(self, job: Job, *, dry_run: bool = False) -> tuple[Sequence[str], Sequence[str]]:
        """Undo a job's changes to skills; later changes stay.

        Returns:
            The skills that are as before, and those that are left as they are.
        """
        restored: list[str] = []
        left: list[str] = []
        with self._skills.ledger.transaction():
            repairs = self._stored.repairs.of(job.id)
            for skill_id in dict.fromkeys(each.skill_id for each in repairs):
                own = [each for each in repairs if each.skill_id == skill_id]
                skill = self._stored.find(skill_id)
                if skill is None or not all(self._is_unchanged_since(skill, each) for each in own):
                    left.append(skill_id)
                    continue
                restored.append(skill_id)
                if not dry_run:
                    self._revert(skill, own)
            if not dry_run:
                self._stored.repairs.delete("job = ?", job.id)
                self._skills.ledger.jobs.undo(job.id, self._skills.clock())
        return restored, left

    def _is_unchanged_since(self, skill: Skill, repair: SkillRepair) -> bool:
        """Return whether a skill is as a job left it; a version is if nobody has used it."""
        after = json.loads(repair.after)
        if repair.field != "version":
            return bool(_value(skill, repair.field) == after)
        latest = self._stored.versions.of(skill.skill_id)[-1:]
        uses = [each for each in self._stored.uses.of(skill.skill_id) if each.version == after]
        return [(each.number, each.share) for each in latest] == [(after, 0)] and not uses

    def _revert(self, skill: Skill, repairs: Iterable[SkillRepair]) -> None:
        values: dict[str, Any] = {}
        for each in repairs:
            if each.field == "version":
                for stored in (self._stored.versions, self._stored.files):
                    where = "skill_id = ? AND number = ?"
                    stored.delete(where, skill.skill_id, json.loads(each.after))
                continue
            before = json.loads(each.before)
            values[each.field] = tuple(before) if each.field == "requires" else before
            self._stored.conflicts.execute(
                "UPDATE skill_conflicts SET status = 'detected', resolved_at = NULL,"
                " resolved_by = NULL WHERE conflict_id = ? AND resolved_by = ?",
                *(each.conflict_id, _REPAIR),
            )
        self._stored.save(replace(skill, **values, updated_at=self._skills.clock()))


def opposite_instructions(one: str, other: str) -> tuple[str, str] | None:
    """Return two sentences that ask for the opposite, one of each text; None where there are none.

    One says always or must, the other never or avoid, and the rest is in nearly the same words.
    """
    does, nots = zip(*(_instructions(text) for text in (one, other)), strict=True)
    for first, second in ((0, 1), (1, 0)):
        for wanted, words in does[first]:
            for refused, others in nots[second]:
                shared = len(words & others) / len(words | others)
                if len(words & others) >= 2 and shared >= _SAME_INSTRUCTION:
                    return (wanted, refused) if first == 0 else (refused, wanted)
    return None


_Instructions = list[tuple[str, frozenset[str]]]


def _instructions(text: str) -> tuple[_Instructions, _Instructions]:
    """Return the sentences that ask for something, and those that forbid it, with their words."""
    wanted: _Instructions = []
    refused: _Instructions = []
    for match in _SENTENCES.finditer(text):
        sentence = " ".join(match[0].strip(" \t-*#>").split())
        if _NEGATIVE.search(sentence):
            target, rest = refused, _NEGATIVE.sub(" ", sentence)
        elif _POSITIVE.search(sentence):
            target, rest = wanted, _POSITIVE.sub(" ", sentence)
        else:
            continue
        words = frozenset(terms(rest))
        if words and len(target) < _MAX_INSTRUCTIONS:
            target.append((sentence, words))
    return wanted, refused


def _pairs(
    skills: Sequence[Skill], keys: Callable[[Skill], Iterable[str]]
) -> Iterator[tuple[Skill, Skill]]:
    """Yield each two skills that have a key in common, once, in their order."""
    groups: dict[str, list[int]] = {}
    for at, skill in enumerate(skills):
        for key in dict.fromkeys(keys(skill)):
            groups.setdefault(key, []).append(at)
    pairs = {pair for group in groups.values() for pair in combinations(group, 2)}
    for one, other in sorted(pairs):
        yield skills[one], skills[other]


def _triggers(skill: Skill) -> frozenset[str]:
    triggers = skill.metadata.get("triggers", ())
    words = triggers.split(",") if isinstance(triggers, str) else triggers
    return frozenset(" ".join(str(word).casefold().split()) for word in words) - {""}


def _plain_name(name: str) -> str:
    """Return a name without case, hyphens and the ending of a plural."""
    words = slug_of(name).split("-")
    return "".join(_singular(word) for word in words)


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _free_name(skill: Skill, slugs: set[str], plain: set[str]) -> tuple[str, str]:
    number = 2
    while (
        slug_of(f"{skill.name} {number}") in slugs or _plain_name(f"{skill.name} {number}") in plain
    ):
        number += 1
    separator = "-" if skill.name == skill.slug else " "
    name = f"{skill.name}{separator}{number}"
    return name, slug_of(name)


def _as_conflict(
    finding: _Finding, known: SkillConflict | None, uses: Mapping[str, int], now: datetime
) -> SkillConflict:
    other = finding.other.skill_id if finding.other else ""
    used = uses.get(finding.skill.skill_id, 0) + (uses.get(other, 0) if other else 0)
    status: ConflictStatus = "detected"
    if known is not None and known.status in ("acknowledged", "dismissed"):
        status = known.status
    return SkillConflict(
        conflict_id=finding.id,
        skill_id=finding.skill.skill_id,
        other_id=other,
        type=finding.type,
        severity=finding.severity,
        status=status,
        priority=round(conflict_priority(finding.severity, used), 4),
        explanation=finding.explanation,
        found_at=known.found_at if known else now,
        requirement=finding.requirement,
        resolved_at=known.resolved_at if known and status == "dismissed" else None,
        resolved_by=known.resolved_by if known and status == "dismissed" else None,
    )


def _change(
    conflict: SkillConflict, skill: Skill, field: RepairedField, before: Any, after: Any
) -> RepairedConflict:
    return RepairedConflict(
        conflict.conflict_id, conflict.type, skill.skill_id, field, before, after
    )


def _value(skill: Skill, field: RepairedField) -> Any:
    value = getattr(skill, field)
    return list(value) if isinstance(value, tuple) else value


def _repairs(
    job: int, before: Skill, after: Skill, repaired: Iterable[RepairedConflict], now: datetime
) -> Iterator[SkillRepair]:
    about = next(each.conflict_id for each in repaired if each.skill_id == before.skill_id)
    for field in REPAIRED_FIELDS:
        old, new = _value(before, field), _value(after, field)
        if old != new:
            yield SkillRepair(
                job, before.skill_id, field, json.dumps(old), json.dumps(new), about, now
            )
