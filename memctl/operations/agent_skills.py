"""Operations on skills: agents find, read and propose them, and say how a use went.

What has an effect on agents is not among them: a person imports, assigns, activates and approves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Struct

from memctl.errors import NotFoundError, UsageError
from memctl.literals import ProposalStatus, SkillCategory, SkillStatus
from memctl.operations.operation_context import (
    NO_KNOWLEDGE_BASE,
    OperationContext,
    Unavailable,
)
from memctl.records import record_like
from memctl.validation import Rule

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase
    from memctl.skills.skill_registry import Skills

_SKILL = "The skill: its id or slug."
_DRY_RUN = "Write nothing; only say what would be done."


class DiscoverSkillsParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``discover_skills``."""

    description: Annotated[str, Rule("What is to be done, such as: deploy to kubernetes.")]
    limit: Annotated[int, Rule("At most this many.", low=1, high=50)] = 5


class SkillSummary(Struct, frozen=True):
    """A skill in short."""

    skill_id: str
    slug: str
    name: str
    description: str
    category: SkillCategory
    status: SkillStatus
    version: int
    health: float
    score: float | None
    """How well it fits, and does; None in a list."""


class SkillList(Struct, frozen=True):
    """Skills in short."""

    skills: tuple[SkillSummary, ...]


def discover_skills(context: OperationContext, parameters: DiscoverSkillsParameters) -> SkillList:
    """Search as ``memctl skill search`` does."""
    kb = context.reading_existing()
    skills = kb.skills.acting_as(context.identity.agent)
    hits = skills.search(parameters.description, limit=parameters.limit)
    return SkillList(tuple(record_like(SkillSummary, each) for each in hits))


class SkillContextParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``get_skill_context``."""

    skill_id: Annotated[str, Rule(_SKILL)]
    task: Annotated[str | None, Rule("What it is to be used for.")] = None
    budget: Annotated[int, Rule("Most tokens.", low=100, high=100_000)] = 4_000


class SkillReading(Struct, frozen=True):
    """A skill to read before it is used."""

    skill_id: str
    slug: str
    version: int
    text: str
    tokens: int
    is_cut: bool
    """Whether the skill's own text did not fit into the budget."""
    requires: tuple[str, ...]
    """What it requires, what must come first in front."""
    missing: tuple[str, ...]
    conflicts: tuple[str, ...]
    files: tuple[str, ...]
    """Paths of files that came with it."""


def get_skill_context(
    context: OperationContext, parameters: SkillContextParameters
) -> SkillReading:
    """Read as ``memctl skill context`` does."""
    kb = context.reading_existing()
    found = kb.skills.context(
        parameters.skill_id,
        task=parameters.task,
        budget=parameters.budget,
        agent=context.identity.agent,
    )
    return record_like(SkillReading, found, files=tuple(each.path for each in found.files))


def skill_text(reading: SkillReading) -> str:
    """Return what is read as text."""
    return reading.text


class ReadSkillFileParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``read_skill_file``."""

    skill_id: Annotated[str, Rule(_SKILL)]
    path: Annotated[str, Rule("The path of the file, as get_skill_context lists it.")]
    version: Annotated[
        int | None, Rule("The version that is used; by default the active one.", low=1)
    ] = None


class SkillFileText(Struct, frozen=True):
    """A file of a skill."""

    skill_id: str
    version: int
    path: str
    sha256: str
    encoding: str
    """``utf-8``, or ``base64`` where it is no text."""
    content: str


def read_skill_file(
    context: OperationContext, parameters: ReadSkillFileParameters
) -> SkillFileText:
    """Read a file that came with a skill; it is never executed here.

    Raises:
        NotFoundError: The skill has no such file.
    """
    from memctl.skills.skill_files import digest

    skills = context.reading_existing().skills.acting_as(context.identity.agent)
    skill = skills.find(parameters.skill_id)
    version = parameters.version or skill.active_version
    for file in skills.files(skill.skill_id, version):
        if file.path == parameters.path:
            checksum = digest(file.data)
            return SkillFileText(
                skill.skill_id, version, file.path, checksum, file.encoding, file.content
            )
    raise NotFoundError(
        f"{skill.slug} has no file {parameters.path[:80]!r}", "get_skill_context lists its files"
    )


class ListSkillsParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``list_skills``."""

    category: Annotated[SkillCategory | None, Rule("Only of this category.")] = None
    status: Annotated[SkillStatus, Rule("Only in this status.")] = "active"
    limit: Annotated[int, Rule("At most this many.", low=1, high=500)] = 50


def list_skills(context: OperationContext, parameters: ListSkillsParameters) -> SkillList:
    """List as ``memctl skill list`` does."""
    skills = context.reading_existing().skills.acting_as(context.identity.agent)
    views = skills.list(category=parameters.category, status=parameters.status)[: parameters.limit]
    return SkillList(tuple(record_like(SkillSummary, each, score=None) for each in views))


class ProposeSkillParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``propose_skill``."""

    topic: Annotated[str, Rule("What it is to be for, such as: Kubernetes deployment automation.")]
    description: Annotated[str | None, Rule("What it does and when to use it.")] = None
    category: Annotated[SkillCategory | None, Rule("By default the one whose words fit best.")] = (
        None
    )
    requires: Annotated[tuple[str, ...], Rule("Slugs of skills that it needs.")] = ()
    dry_run: Annotated[bool, Rule(_DRY_RUN)] = False


class ProposedSkill(Struct, frozen=True):
    """A proposal that waits for a person's review."""

    success: bool
    proposal_id: str
    name: str
    category: SkillCategory
    confidence: float
    status: ProposalStatus
    findings: tuple[str, ...]
    """What is known of its topic."""


def propose_skill(context: OperationContext, parameters: ProposeSkillParameters) -> ProposedSkill:
    """Propose as ``memctl skill propose`` does, and submit it."""
    made = (
        context.writing()
        .skills.proposals(context.identity.agent)
        .propose(
            parameters.topic,
            description=parameters.description or "",
            category=parameters.category,
            requires=parameters.requires,
            submitted=True,
            dry_run=parameters.dry_run,
        )
    )
    return record_like(ProposedSkill, made, success=True)


class SkillOutcomeParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``record_skill_outcome``."""

    skill_id: Annotated[str, Rule(_SKILL)]
    success: Annotated[bool, Rule("Whether it went well.")]
    task: Annotated[str | None, Rule("What it was used for, as get_skill_context got it.")] = None
    note: Annotated[str | None, Rule("What is to be learned from it.")] = None
    duration: Annotated[float | None, Rule("Seconds that it took.", low=0)] = None
    version: Annotated[int | None, Rule("The version that was used.", low=1)] = None
    dry_run: Annotated[bool, Rule(_DRY_RUN)] = False


class RecordedOutcome(Struct, frozen=True):
    """A use that was noted."""

    success: bool
    """Whether it was noted."""
    skill_id: str
    version: int
    effectiveness: float


def record_skill_outcome(
    context: OperationContext, parameters: SkillOutcomeParameters
) -> RecordedOutcome:
    """Record a use as ``memctl skill used`` does."""
    kb: KnowledgeBase = context.reading_existing()
    skills = kb.skills.acting_as(context.identity.agent, session=context.identity.session)
    use = skills.record_use(
        parameters.skill_id,
        success=parameters.success,
        task=parameters.task or "",
        note=parameters.note or "",
        duration=parameters.duration,
        version=parameters.version,
        dry_run=parameters.dry_run,
    )
    value = skills.find(use.skill_id).effectiveness
    return RecordedOutcome(True, use.skill_id, use.version, round(value, 4))


# --- skills over MCP -----------------------------------------------------------------------------


def served_skill_list(context: OperationContext) -> dict[str, Any]:
    """Return the result of ``skills/list``: active skills with the hash of every file.

    Raises:
        Unavailable: The caller may not read skills.
    """
    from memctl.skills.skill_context import served_skills

    return {"skills": served_skills(_open_skills(context, "list_skills"))}


def served_skill_text(context: OperationContext, name: object) -> dict[str, Any]:
    """Return the result of ``skills/get``: one active skill with its files.

    Raises:
        Unavailable: The caller may not read skills.
        UsageError: No skill is named.
        NotFoundError: There is no such skill, or it is not active.
    """
    from memctl.skills.skill_context import served_skill

    if not isinstance(name, str) or not name.strip():
        raise UsageError("skills/get needs the name of a skill", "skills/list gives them")
    return {"skill": served_skill(_open_skills(context, "get_skill_context"), name)}


def _open_skills(context: OperationContext, operation: str) -> Skills:
    """Return the skills for a caller that may use an operation on them."""
    if "knowledge_base" not in context.resources:
        raise Unavailable(NO_KNOWLEDGE_BASE)
    if context.allowed_tools is not None and operation not in context.allowed_tools:
        raise Unavailable(f"{operation} is not allowed here")
    return context.reading_existing().skills.acting_as(context.identity.agent)
