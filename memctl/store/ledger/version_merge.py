"""Versions of skills and prompts in two ledgers: one version is one text, with one number in both.

Pure but for ``settle_skills`` and ``rename_ours``, which write within the transaction of a merge.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from memctl.store.ledger.feedback_repositories import SUMMARIES, USES, VARIANTS, ShareRepository
from memctl.store.ledger.repository import LedgerTable
from memctl.store.ledger.skill_repositories import (
    SkillFileRepository,
    SkillRepairRepository,
    SkillRepository,
    SkillUseRepository,
    SkillVersionRepository,
)

Row = dict[str, Any]
"""A row as SQLite stores it, by column."""
Content = Mapping[str, list[Row]]
"""The rows of several tables, by the name of the table."""
Name = int | str
"""What a version is called: 2 or ``v2``."""
Names = Mapping[tuple[str, Name], Name]
"""What versions are called from now on, by skill or task and former name."""
_SKILLS, _VERSIONS = SkillRepository.table, SkillVersionRepository.table
_FILES, _OUTCOMES = SkillFileRepository.table, SkillUseRepository.table
_REPAIRS, _SHARES = SkillRepairRepository.table, ShareRepository.table
VERSIONED: tuple[LedgerTable[Any], ...] = (
    *(_SKILLS, _VERSIONS, _FILES, _OUTCOMES, _REPAIRS),
    *(VARIANTS, USES, SUMMARIES, _SHARES),
)
"""The tables that have versions, or name them."""


class _Version(Struct, frozen=True):
    name: Name
    at: str
    text: str


class VersionNames(Struct, frozen=True):
    """What versions that both have are called, in ours and in theirs."""

    ours: dict[tuple[str, Name], Name] = field(default_factory=dict)
    theirs: dict[tuple[str, Name], Name] = field(default_factory=dict)


def version_names(ours: Content, theirs: Content) -> VersionNames:
    """Return what the versions of skills and prompts are called, the same whichever comes first.

    Versions that say the same are one.  Of two that are called the same the earlier one keeps its
    name, and the other one gets the next that is free.
    """
    found = VersionNames()
    for versions_of, name_of in ((_skill_versions, int), (_prompt_versions, "v{}".format)):
        mine, others = versions_of(ours), versions_of(theirs)
        for owner in mine.keys() & others.keys():
            both = mine[owner], others[owner]
            names = _names(both, name_of)
            for versions, renamed in zip(both, (found.ours, found.theirs), strict=True):
                for identity, version in _by_identity(versions):
                    if names[identity] != version.name:
                        renamed[owner, version.name] = names[identity]
    return found


def _skill_versions(content: Content) -> dict[str, list[_Version]]:
    files: dict[tuple[str, int], list[list[str]]] = defaultdict(list)
    for row in content[_FILES.name]:
        place = row["skill_id"], row["number"]
        files[place].append([row["path"], row["content"], row["encoding"]])
    found: dict[str, list[_Version]] = defaultdict(list)
    for row in content[_VERSIONS.name]:
        id_, number = row["skill_id"], row["number"]
        text = json.dumps([row["content"], sorted(files[id_, number])])
        found[id_].append(_Version(number, row["created_at"], text))
    return found


def _prompt_versions(content: Content) -> dict[str, list[_Version]]:
    found: dict[str, list[_Version]] = defaultdict(list)
    for row in content[VARIANTS.name]:
        found[row["task"]].append(_Version(row["version"], row["at"], row["text"]))
    return found


_Identity = tuple[str, int]
"""A text, and how often a ledger has had it before."""


def _by_identity(versions: Iterable[_Version]) -> Iterable[tuple[_Identity, _Version]]:
    seen: Counter[str] = Counter()
    for each in sorted(versions, key=lambda each: (each.at, _rank(each.name))):
        yield (each.text, seen[each.text]), each
        seen[each.text] += 1


def _names(
    both: Iterable[Sequence[_Version]], name_of: Callable[[int], Name]
) -> dict[_Identity, Name]:
    claims: dict[_Identity, list[_Version]] = defaultdict(list)
    for versions in both:
        for identity, version in _by_identity(versions):
            claims[identity].append(version)
    ordered = sorted(claims, key=lambda each: (min(v.at for v in claims[each]), each))
    names: dict[_Identity, Name] = {}
    for identity in ordered:
        used = set(names.values())
        free = [each.name for each in claims[identity] if each.name not in used]
        if free:
            names[identity] = min(free, key=_rank)
    last = max(_rank(version.name)[0] for versions in claims.values() for version in versions)
    for identity in ordered:
        if identity not in names:
            last += 1
            names[identity] = name_of(last)
    return names


def _rank(name: Name) -> tuple[int, str]:
    digits = str(name).removeprefix("v")
    return (int(digits) if digits.isdecimal() else 0, str(name))


def rename_versions(content: Content, names: Names) -> None:
    """Give versions their names in the rows of one side, wherever they stand."""
    if not names:
        return
    ids = {row["slug"]: row["skill_id"] for row in content[_SKILLS.name]}
    for row in content[_SKILLS.name]:
        required = [_renamed_requirement(each, ids, names) for each in json.loads(row["requires"])]
        row["requires"] = json.dumps(required)
    for table, owner, column in (
        (_SKILLS, "skill_id", "active_version"),
        (_VERSIONS, "skill_id", "number"),
        (_FILES, "skill_id", "number"),
        (_OUTCOMES, "skill_id", "version"),
        (VARIANTS, "task", "parent"),
        (VARIANTS, "task", "version"),
        (USES, "task", "version"),
        (_SHARES, "task", "version"),
    ):
        for row in content[table.name]:
            row[column] = names.get((row[owner], row[column]), row[column])
    for row in content[_REPAIRS.name]:
        if row["field"] == "version":
            number = json.loads(row["after"])
            row["after"] = json.dumps(names.get((row["skill_id"], number), number))
    for row in content[SUMMARIES.name]:
        row["prompt_version"] = _renamed_reference(row["prompt_version"], names)


def _renamed_requirement(text: str, ids: Mapping[str, str], names: Names) -> str:
    """Return ``SLUG@NUMBER`` with the number that the version has now."""
    slug, _, number = text.rpartition("@")
    if not number.isdecimal() or slug not in ids:
        return text
    return f"{slug}@{names.get((ids[slug], int(number)), number)}"


def _renamed_reference(text: str, names: Names) -> str:
    """Return ``TASK/VERSION`` with the name that the version has now."""
    task, slash, version = text.rpartition("/")
    return f"{task}{slash}{names.get((task, version), version)}"


def rename_ours(connection: sqlite3.Connection, rows: Content, names: Names) -> int:
    """Give versions their names in a ledger, and in its rows as they were read.

    Returns:
        How many rows were written.
    """
    if not names:
        return 0
    before = {name: [dict(row) for row in found] for name, found in rows.items()}
    rename_versions(rows, names)
    written = 0
    for table in VERSIONED:
        pairs = zip(before[table.name], rows[table.name], strict=True)
        changed = [(old, new) for old, new in pairs if old != new]
        connection.executemany(
            f"DELETE FROM {table.name} WHERE {table.by_key}",
            [tuple(old[column] for column in table.key) for old, _ in changed],
        )
        connection.executemany(
            table.insert(),
            [tuple(new[column] for column in table.fields) for _, new in changed],
        )
        written += len(changed)
    questions = connection.execute("SELECT query_id, prompt FROM query_details WHERE prompt <> ''")
    references = [(_renamed_reference(text, names), id_) for id_, text in questions.fetchall()]
    connection.executemany(
        "UPDATE query_details SET prompt = ?1 WHERE query_id = ?2 AND prompt <> ?1", references
    )
    return written


# --- shares and outcomes of skills ---------------------------------------------------------------


def settle_skills(connection: sqlite3.Connection, ours: Content, theirs: Content) -> int:
    """Set shares and outcomes of the skills of both, whose rows have been joined.

    The shares are those of the side that has changed the skill last.  Outcomes are the uses of
    both, and what either has counted whose use it has no longer.

    Args:
        connection: Of the ledger, with the uses of both.
        ours: The rows as they were before, with the versions called as they are now.
        theirs: The same of the other one.

    Returns:
        How many versions have other values now.
    """
    our_skills, their_skills = (_by_skill(side[_VERSIONS.name]) for side in (ours, theirs))
    both = our_skills.keys() & their_skills.keys()
    if not both:
        return 0
    shares = {
        id_: _last_shares(id_, ours, theirs, our_skills[id_], their_skills[id_]) for id_ in both
    }
    counted = [_count_without_use(side) for side in (ours, theirs)]
    uses = _uses(_OUTCOMES.stored_rows(connection))
    values = [
        (
            shares[id_].get(number, 0),
            *(
                uses[id_, number, success] + max(each[id_, number, success] for each in counted)
                for success in (True, False)
            ),
            id_,
            number,
        )
        for id_ in both
        for number in our_skills[id_].keys() | their_skills[id_].keys()
    ]
    made = connection.executemany(
        f"UPDATE {_VERSIONS.name} SET share = ?1, successes = ?2, failures = ?3"
        " WHERE skill_id = ?4 AND number = ?5"
        " AND (share, successes, failures) IS NOT (?1, ?2, ?3)",
        values,
    )
    return made.rowcount


def _by_skill(versions: Iterable[Row]) -> dict[str, dict[int, Row]]:
    found: dict[str, dict[int, Row]] = defaultdict(dict)
    for row in versions:
        found[row["skill_id"]][row["number"]] = row
    return found


def _last_shares(
    id_: str, ours: Content, theirs: Content, here: Mapping[int, Row], known_rows: Mapping[int, Row]
) -> dict[int, int]:
    """Return the shares of the side that has changed a skill last, by version."""
    sides = []
    for content, versions in ((ours, here), (theirs, known_rows)):
        shares = {n: row["share"] for n, row in sorted(versions.items()) if row["share"]}
        changed = [row["updated_at"] for row in content[_SKILLS.name] if row["skill_id"] == id_]
        sides.append((max(changed, default=""), json.dumps([*shares.items()]), shares))
    return max(sides, key=lambda side: side[:2])[2]


def _uses(rows: Iterable[Row]) -> Counter[tuple[str, int, bool]]:
    return Counter((row["skill_id"], row["version"], bool(row["success"])) for row in rows)


def _count_without_use(content: Content) -> Counter[tuple[str, int, bool]]:
    """Return how many outcomes of each version were counted whose use is not there any more."""
    left: Counter[tuple[str, int, bool]] = Counter()
    for row in content[_VERSIONS.name]:
        left[row["skill_id"], row["number"], True] = row["successes"]
        left[row["skill_id"], row["number"], False] = row["failures"]
    left.subtract(_uses(content[_OUTCOMES.name]))
    return +left
