"""Skills: versions, files, agents that have them, uses, proposals, conflicts and repairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct, field

from memctl.literals import (
    ChangeType,
    ConflictStatus,
    ConflictType,
    ProposalStatus,
    Severity,
    SkillCategory,
    SkillStatus,
)
from memctl.store.ledger.repository import (
    Connections,
    LedgerTable,
    OwnedRepository,
    Repository,
    to_text,
)

FileEncoding = Literal["utf-8", "base64"]
RepairedField = Literal["name", "slug", "requires", "version"]
"""What a job changes of a skill; ``version`` is a version that it has added."""
REPAIRED_FIELDS: tuple[RepairedField, ...] = ("name", "slug", "requires")
"""Those that a repair gives another value."""


class Skill(Struct, frozen=True):
    """A capability that agents have and run."""

    skill_id: str
    declared_name: str
    """As its file has it; by it the file is recognised when it is imported again."""
    name: str
    slug: str
    description: str
    category: SkillCategory
    status: SkillStatus
    created_by: str
    created_at: datetime
    updated_at: datetime
    active_version: int
    effectiveness: float
    """0 to 1; fades while it is not used."""
    execution: Mapping[str, Any] = field(default_factory=dict)
    """How it is run: allowed tools, a command, inputs, outputs; never executed here."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    """Slugs of skills, each with ``@NUMBER`` where it asks for a version."""
    successor: str = ""
    """The slug of the skill that replaces it."""
    source: str = ""
    vector: str = ""
    """Of name and description: float16 in base64."""
    vector_of: str = ""
    """Embedder and checksum of the text that the vector is of."""


class SkillVersion(Struct, frozen=True):
    """One version of a skill: its text, verbatim."""

    skill_id: str
    number: int
    change_type: ChangeType
    content: str
    notes: str
    share: int
    """Per cent of the tasks that get it; 0 where it is not active."""
    successes: int
    failures: int
    created_at: datetime
    created_by: str


class SkillFile(Struct, frozen=True):
    """A file that came with a version of a skill, verbatim; never executed."""

    skill_id: str
    number: int
    path: str
    content: str
    encoding: FileEncoding
    written_at: datetime


class SkillAgent(Struct, frozen=True):
    """An agent that has a skill."""

    skill_id: str
    agent: str
    since: datetime
    enabled: bool = True


class SkillUse(Struct, frozen=True):
    """One use of a skill and how it ended."""

    id: int | None
    """Counts up over all skills."""
    skill_id: str
    version: int
    agent: str
    task: str
    success: bool
    duration: float | None
    """Seconds."""
    note: str
    at: datetime
    session_id: str | None = None
    user_id: str | None = None


class SkillProposal(Struct, frozen=True):
    """A skill that an agent or a user asked for."""

    proposal_id: str
    topic: str
    name: str
    description: str
    category: SkillCategory
    confidence: float
    agent: str
    status: ProposalStatus
    created_at: datetime
    updated_at: datetime
    expires_at: datetime
    requires: tuple[str, ...] = ()
    content: str = ""
    """The draft of its text."""
    findings: tuple[str, ...] = ()
    """What is known of its topic: documents and skills."""
    reasons: str = ""
    """Of the reviewer."""
    reviewer: str = ""
    parent_id: str | None = None
    """The proposal that needs this one."""
    skill_id: str | None = None
    """The skill that was made of it, or that it is a version of."""
    user_id: str | None = None


class SkillConflict(Struct, frozen=True):
    """What speaks against two skills as they are, or against one and what it requires."""

    conflict_id: str
    skill_id: str
    other_id: str
    """The other skill; "" where there is none."""
    type: ConflictType
    severity: Severity
    status: ConflictStatus
    priority: float
    explanation: str
    found_at: datetime
    requirement: str = ""
    """What is required and cannot be had, as the skill writes it."""
    resolved_at: datetime | None = None
    resolved_by: str | None = None


class SkillRepair(Struct, frozen=True):
    """What a job has changed of one field of a skill, as JSON."""

    job: int
    skill_id: str
    field: RepairedField
    before: str
    after: str
    conflict_id: str
    at: datetime


class SkillVersionRepository(OwnedRepository[SkillVersion]):
    """Versions of skills, the oldest first."""

    table = LedgerTable("skill_versions", SkillVersion, ("skill_id", "number"))

    def shares(self) -> dict[str, dict[int, int]]:
        """Return the shares of the active versions in per cent, by slug and number."""
        found: dict[str, dict[int, int]] = {}
        for slug, number, share in self.rows(
            "SELECT slug, number, share FROM skill_versions JOIN skills USING (skill_id)"
            " WHERE share <> 0 ORDER BY skill_id, number"
        ):
            found.setdefault(slug, {})[number] = share
        return found

    def set_shares(self, skill_id: str, shares: Mapping[int, int]) -> None:
        """Make some versions active, each with its share in per cent, and no other."""
        with self._ledger.transaction():
            self.execute("UPDATE skill_versions SET share = 0 WHERE skill_id = ?", skill_id)
            self.execute_each(
                "UPDATE skill_versions SET share = ? WHERE skill_id = ? AND number = ?",
                [(share, skill_id, number) for number, share in shares.items()],
            )

    def count_outcome(self, skill_id: str, number: int, *, success: bool) -> None:
        """Count a use."""
        column = "successes" if success else "failures"
        self.execute(
            f"UPDATE skill_versions SET {column} = {column} + 1 WHERE skill_id = ? AND number = ?",
            *(skill_id, number),
        )


class SkillFileRepository(OwnedRepository[SkillFile]):
    """Files of versions, sorted by path."""

    table = LedgerTable("skill_files", SkillFile, ("skill_id", "number", "path"))


class SkillAgentRepository(OwnedRepository[SkillAgent]):
    """Which agent has which skill."""

    table = LedgerTable("skill_agents", SkillAgent, ("skill_id", "agent"))


class SkillUseRepository(Repository[SkillUse]):
    """Uses of skills, the oldest first."""

    table = LedgerTable("skill_usage", SkillUse, ("id",))

    def of(self, skill_id: str, limit: int = -1) -> list[SkillUse]:
        """Return the uses of a skill, the latest first."""
        return self.select("skill_id = ?", skill_id, order="at DESC, id DESC", limit=limit)

    def last_at(self) -> dict[str, datetime]:
        """Return when each skill was last used."""
        rows = self.rows("SELECT skill_id, max(at) FROM skill_usage GROUP BY skill_id")
        return {skill_id: datetime.fromisoformat(at) for skill_id, at in rows}

    def counts_since(self, since: datetime) -> dict[str, int]:
        """Return how often each skill was used from an instant on."""
        return dict(
            self.rows(
                "SELECT skill_id, count(*) FROM skill_usage WHERE at >= ? GROUP BY skill_id",
                to_text(since),
            )
        )


class SkillProposalRepository(Repository[SkillProposal]):
    """Proposals, the latest first."""

    table = LedgerTable(
        "skill_proposals", SkillProposal, ("proposal_id",), "created_at DESC, proposal_id"
    )


class SkillConflictRepository(Repository[SkillConflict]):
    """Conflicts, the most pressing first."""

    table = LedgerTable(
        "skill_conflicts", SkillConflict, ("conflict_id",), "priority DESC, found_at, conflict_id"
    )

    def open(self) -> list[SkillConflict]:
        """Return those that are still open."""
        return self.select("status IN ('detected', 'acknowledged')")


class SkillRepairRepository(OwnedRepository[SkillRepair]):
    """What jobs have changed of skills, by job."""

    table = LedgerTable("skill_repairs", SkillRepair, ("job", "skill_id", "field"))

    def jobs(self) -> list[int]:
        """Return the jobs that can be taken back, the latest first."""
        rows = self.rows("SELECT DISTINCT job FROM skill_repairs ORDER BY job DESC")
        return [job for (job,) in rows]


class SkillRepository(Repository[Skill]):
    """Skills by id; what belongs to them is in the repositories that it has."""

    table = LedgerTable("skills", Skill, ("skill_id",), "slug, skill_id")

    def __init__(self, ledger: Connections) -> None:
        super().__init__(ledger)
        self.versions = SkillVersionRepository(ledger)
        self.files = SkillFileRepository(ledger)
        self.agents = SkillAgentRepository(ledger)
        self.uses = SkillUseRepository(ledger)
        self.proposals = SkillProposalRepository(ledger)
        self.conflicts = SkillConflictRepository(ledger)
        self.repairs = SkillRepairRepository(ledger)

    def find_by_reference(self, word: str) -> list[Skill]:
        """Return the skills with an id, a slug or a name; an id may be shortened.

        Where none is called so, those that were before they were renamed.
        """
        is_short_id = word.startswith("sk_") and len(word) > _SHORTEST_PREFIX
        found = self.select(
            "skill_id = ?1 OR slug = ?1 OR name = ?1"
            " OR (?2 AND substr(skill_id, 1, length(?1)) = ?1)",
            *(word, is_short_id),
        )
        return found or self.select("declared_name = ?", word)

    def find_by_name(self, name: str) -> list[Skill]:
        """Return the skills whose file has a name, or that have got it since."""
        return self.select("declared_name = ?1 OR name = ?1", name)

    def set_vectors(self, vectors: Iterable[tuple[str, str, str]]) -> None:
        """Keep vectors: id of the skill, the vector, and what it is of."""
        self.execute_each(
            "UPDATE skills SET vector = ?2, vector_of = ?3 WHERE skill_id = ?1", vectors
        )

    def remove_whole(self, skill_id: str) -> None:
        """Delete a skill with all that belongs to it."""
        with self._ledger.transaction():
            self.conflicts.delete("skill_id = ?1 OR other_id = ?1", skill_id)
            self.proposals.execute(
                "UPDATE skill_proposals SET skill_id = NULL WHERE skill_id = ?", skill_id
            )
            for repository in (
                self, self.versions, self.files, self.agents, self.uses, self.repairs,
            ):  # fmt: skip
                repository.delete("skill_id = ?", skill_id)


_SHORTEST_PREFIX = 6
