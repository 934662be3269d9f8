"""A skill for one run: its text, what it requires, how it did, and what is known of the task.

All within a budget of tokens; also the shapes in which skills are served, file by file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from memctl.errors import NotFoundError
from memctl.language.inline_tags import without_wikilinks
from memctl.language.term_analysis import terms
from memctl.records import Hit
from memctl.skills.skill_files import SKILL_FILE, digest, one_line
from memctl.skills.skill_registry import Skills
from memctl.skills.skill_views import FileView, text_of
from memctl.store.ledger.skill_repositories import Skill, SkillConflict, SkillUse, SkillVersion

DEFAULT_BUDGET = 4_000
_DEPENDENCY_SHARE = 0.25
_OUTCOME_SHARE = 0.15
_MAX_OUTCOMES = 5
_NEAREST = 8
SERVED_STATUS = "active"

Count = Callable[[str], int]
Memories = Callable[[str, int], Sequence[Hit]]
"""Returns the memories that are nearest to a text, at most this many."""


class SkillContext(Struct, frozen=True):
    """What an agent reads before it uses a skill."""

    skill_id: str
    name: str
    slug: str
    status: str
    version: int
    text: str
    """All of it, in sections."""
    tokens: int
    budget: int
    is_cut: bool
    """Whether the skill's own text did not fit."""
    requires: tuple[str, ...]
    """Slugs of what it requires, what must come first in front."""
    cycles: tuple[tuple[str, ...], ...]
    missing: tuple[str, ...]
    conflicts: tuple[str, ...]
    """What speaks against it, the most pressing first."""
    files: tuple[FileView, ...]
    """What came with it; read one with its path."""


def skill_context(
    skills: Skills,
    word: str,
    *,
    task: str | None,
    budget: int,
    count: Count,
    conflicts: Sequence[SkillConflict],
    memories: Memories,
) -> SkillContext:
    """Return a skill for a run.

    Args:
        skills: The skills, for the acting user or agent.
        word: The skill.
        task: What it is to be used for; by it the version is picked where several are active.
        budget: Most tokens.
        count: Counts tokens.
        conflicts: Those of the skill that are open.
        memories: Finds what is known.

    Raises:
        NotFoundError: There is no such skill, or its text has been forgotten.
    """
    skill = skills.find(word)
    version = skills.version_for(skill, task)
    needed = skills.dependencies(skill)
    text, is_cut = _cut_lines(text_of(skill, version), budget, count)
    parts = [text]

    def add(heading: str, lines: Sequence[str], share: float) -> None:
        """Add a section, as many lines of it as there is room for."""
        room = min(budget - count("\n\n".join(parts)), int(budget * share))
        section = _section(heading, lines, room, count)
        if section:
            parts.append(section)

    add("Requires, in this order", [_skill_line(each) for each in needed.order], _DEPENDENCY_SHARE)
    add("Cannot be had", needed.missing, 1.0)
    add("Open conflicts", [each.explanation for each in conflicts], 1.0)
    outcomes = [_outcome(use) for use in skills.uses(skill.skill_id, 50) if use.note]
    add("Earlier outcomes", outcomes[:_MAX_OUTCOMES], _OUTCOME_SHARE)
    if task:
        near = _relevant(memories(f"{task} {skill.name}", _NEAREST), f"{task} {skill.name}")
        add("What is known", [_hit_line(hit) for hit in near], 1.0)
    joined = "\n\n".join(parts)
    return SkillContext(
        skill_id=skill.skill_id,
        name=skill.name,
        slug=skill.slug,
        status=skill.status,
        version=version.number,
        text=joined,
        tokens=count(joined),
        budget=budget,
        is_cut=is_cut,
        requires=tuple(each.slug for each in needed.order),
        cycles=needed.cycles,
        missing=needed.missing,
        conflicts=tuple(each.explanation for each in conflicts),
        files=skills.file_views(skill.skill_id, version.number),
    )


def _cut_lines(text: str, budget: int, count: Count) -> tuple[str, bool]:
    """Return as many whole lines of a text as a budget has room for."""
    if count(text) <= budget:
        return text, False
    lines = text.splitlines(keepends=True)
    low, high = 0, len(lines)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (
            (middle, high) if count("".join(lines[:middle])) <= budget else (low, middle - 1)
        )
    return "".join(lines[:low]).rstrip(), True


def _section(heading: str, lines: Sequence[str], tokens_left: int, count: Count) -> str:
    shown: list[str] = []
    for line in lines:
        if count("\n".join(("\n\n", f"## {heading}", "", *shown, f"- {line}"))) > tokens_left:
            break
        shown.append(f"- {line}")
    return "\n".join((f"## {heading}", "", *shown)) if shown else ""


def _relevant(hits: Sequence[Hit], question: str) -> Sequence[Hit]:
    """Return the memories that share words with the task: the nearest one may still be far off."""
    wanted = set(terms(question))
    return [hit for hit in hits if len(wanted & set(terms(hit.text))) >= min(2, len(wanted))]


def _hit_line(hit: Hit) -> str:
    lines = without_wikilinks(hit.text).splitlines()
    body = [line for line in lines if not line.startswith("#")] or lines
    return f"{one_line(' '.join(body))} ({one_line(hit.title or hit.source)})"


def _skill_line(skill: Skill) -> str:
    status = "" if skill.status == "active" else f" ({skill.status})"
    return f"{skill.slug}{status}: {one_line(skill.description)}"


def _outcome(use: SkillUse) -> str:
    how = "went well" if use.success else "failed"
    return f"version {use.version} {how}: {one_line(use.note)}"


# --- skills as they are served -------------------------------------------------------------------


def served_skills(skills: Skills) -> list[dict[str, Any]]:
    """Return every active skill as ``skills/list`` gives it: name, description, files, hashes."""
    own = skills.assignments()
    versions = skills.ledger.skills.versions
    return [
        _serve(skills, skill, version)
        for skill in skills.ledger.skills.select("status = ?", SERVED_STATUS)
        if own.get(skill.skill_id, True)
        and (version := versions.find(skill.skill_id, skill.active_version)) is not None
    ]


def served_skill(skills: Skills, word: str) -> dict[str, Any]:
    """Return one skill as ``skills/get`` gives it: as in the list, and the text of every file.

    Raises:
        NotFoundError: There is no such skill, or none that is active.
    """
    skill = skills.find(word)
    if skill.status != SERVED_STATUS:
        raise NotFoundError(
            f"skill {skill.slug} is {skill.status}", "memctl skill list shows others"
        )
    version = skills.version_for(skill, None)
    files, text = skills.files(skill.skill_id, version.number), text_of(skill, version)
    contents = [
        {
            "path": SKILL_FILE,
            "text": text,
            "sha256": digest(text.encode("utf-8")),
        },
        *(
            {
                "path": each.path,
                ("text" if each.encoding == "utf-8" else "blob"): each.content,
                "sha256": digest(each.data),
            }
            for each in files
        ),
    ]
    return {**_serve(skills, skill, version), "contents": contents}


def _address(skill: Skill, path: object) -> str:
    """Return the address of a file of a skill in the Model Context Protocol (SEP-2640)."""
    return f"skill://{quote(skill.slug)}/{quote(str(path))}"


def _serve(skills: Skills, skill: Skill, version: SkillVersion) -> dict[str, Any]:
    data = text_of(skill, version).encode("utf-8")
    files = skills.file_views(skill.skill_id, version.number)
    served = [
        {"path": SKILL_FILE, "size": len(data), "sha256": digest(data)},
        *({"path": each.path, "size": each.size, "sha256": each.sha256} for each in files),
    ]
    return {
        "uri": _address(skill, SKILL_FILE),
        "frontmatter": {"name": skill.slug, "description": skill.description},
        "resources": [
            {
                "uri": _address(skill, each["path"]),
                "digest": f"sha256:{each['sha256']}",
                "size": each["size"],
            }
            for each in served
        ],
        "name": skill.slug,
        "title": skill.name,
        "description": skill.description,
        "version": str(version.number),
        "files": served,
        "_meta": {
            "memctl/skillId": skill.skill_id,
            "memctl/category": skill.category,
            "memctl/tags": list(skill.tags),
            "memctl/requires": list(skill.requires),
        },
    }
