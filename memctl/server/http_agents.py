"""What agents share and keep: pools, values of tiers and skills, under ``/v1`` and below a base.

``/v1/pools`` is that of the knowledge base that is written to, or of ``?kb=NAME``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import NotFoundError
from memctl.literals import ProposalStatus, ShortTermType, SkillCategory, SkillStatus, Tier
from memctl.operations.agent_skills import (
    ProposeSkillParameters,
    ReadSkillFileParameters,
    SkillOutcomeParameters,
    propose_skill,
    read_skill_file,
    record_skill_outcome,
)
from memctl.operations.operation_context import OperationContext
from memctl.operations.shared_memory import ENTRY_TYPE, TIER_TTL, tier_router
from memctl.server.http_endpoints import Endpoint, Listing, Place, Tagged, changes_in
from memctl.server.http_routes import PageParameters, page_of
from memctl.validation import Rule

if TYPE_CHECKING:
    from memctl.pools import Pools
    from memctl.skills.skill_registry import Skills
    from memctl.tiers import Router

# --- pools ----------------------------------------------------------------------------------------


class NewPool(Struct, frozen=True, kw_only=True):
    """A pool to make; the caller owns it."""

    pool_id: Annotated[str, Rule("1 to 64 of a-z, 0-9, - and _.")]
    name: Annotated[str, Rule("What it is called; by default its id.")] = ""
    public: Annotated[bool, Rule("Whether all agents may read and write it.")] = False


class PoolData(Struct, frozen=True, kw_only=True):
    """A value for a pool."""

    value: Annotated[Any, Rule("Anything that JSON has.")]


def _pools(context: OperationContext) -> Pools:
    return context.reading_existing().pools.acting_as()


def _list_pools(context: OperationContext, parameters: PageParameters, _: Place) -> Listing:
    return page_of(_pools(context).list(), parameters)


def _create_pool(context: OperationContext, parameters: NewPool, _: Place) -> object:
    access = {"public": True} if parameters.public else None
    pools = context.writing().pools.acting_as()
    return pools.create(parameters.pool_id, name=parameters.name, access=access)


def _delete_pool(context: OperationContext, _: object, place: Place) -> object:
    return {"pool_id": _pools(context).delete(place["pool"]).pool_id}


def _read_pool(context: OperationContext, _: object, place: Place) -> Tagged:
    found = _pools(context).read(place["pool"], place.path.get("key"))
    return Tagged(found, str(found.version))


def _write_pool(context: OperationContext, parameters: PoolData, place: Place) -> Tagged:
    made = _pools(context).write(
        place["pool"], place["key"], parameters.value, if_version=place.version
    )
    return Tagged(made, str(made.version))


def _remove_from_pool(context: OperationContext, _: object, place: Place) -> Tagged:
    made = _pools(context).remove(place["pool"], place["key"], if_version=place.version)
    return Tagged(made, str(made.version))


def _pool_statistics(context: OperationContext, _: object, place: Place) -> object:
    return _pools(context).statistics(place["pool"])


def _pool_history(context: OperationContext, parameters: PageParameters, place: Place) -> Listing:
    return page_of(_pools(context).history(place["pool"]), parameters)


# --- tiers ----------------------------------------------------------------------------------------


class TierParameters(Struct, frozen=True, kw_only=True):
    """Which value of which tier."""

    tier: Annotated[Tier | None, Rule("Only this tier.")] = None


class TierData(Struct, frozen=True, kw_only=True):
    """A value for a tier."""

    value: Annotated[Any, Rule("Anything that JSON has.")]
    tier: Annotated[Tier | None, Rule("Where to.")] = None
    ttl: Annotated[float | None, Rule(TIER_TTL, low=0)] = None
    memory_type: Annotated[ShortTermType | None, Rule(ENTRY_TYPE)] = None


def _router(context: OperationContext) -> Router:
    return tier_router(context.reading_existing(), context)


def _read_tier(context: OperationContext, parameters: TierParameters, place: Place) -> object:
    found = _router(context).read(place["key"], tier=parameters.tier)
    if found is None:
        raise NotFoundError(f"there is no value {place['key']!r}")
    return found


def _write_tier(context: OperationContext, parameters: TierData, place: Place) -> object:
    return tier_router(context.writing(), context).write(
        place["key"],
        parameters.value,
        parameters.tier,
        ttl=parameters.ttl,
        type_=parameters.memory_type,
    )


def _remove_tier(context: OperationContext, parameters: TierParameters, place: Place) -> object:
    return {"removed": _router(context).remove(place["key"], parameters.tier)}


def _tier_statistics(context: OperationContext, _: object, __: Place) -> object:
    return _router(context).stats()


# --- skills ---------------------------------------------------------------------------------------


class SkillPage(PageParameters, frozen=True, kw_only=True):
    """Which skills."""

    category: Annotated[SkillCategory | None, Rule("Only of this category.")] = None
    status: Annotated[SkillStatus | None, Rule("Only in this status.")] = None
    agent: Annotated[str | None, Rule("Only those that this agent has.")] = None


class SkillQuestion(Struct, frozen=True, kw_only=True):
    """What a skill is wanted for."""

    description: Annotated[str, Rule("What is to be done, such as: deploy to kubernetes.")]
    category: Annotated[SkillCategory | None, Rule("Only of this category.")] = None
    limit: Annotated[int, Rule("At most this many.", low=1, high=50)] = 10


class SkillTask(Struct, frozen=True, kw_only=True):
    """What a skill is used for."""

    task: Annotated[str | None, Rule("What it is to be used for.")] = None
    budget: Annotated[int, Rule("Most tokens.", low=100, high=100_000)] = 4_000


class SkillFileVersion(Struct, frozen=True, kw_only=True):
    """Of which version of a skill."""

    version: Annotated[int | None, Rule("By default the active one.", low=1)] = None


class ProposalPage(PageParameters, frozen=True, kw_only=True):
    """Which proposals."""

    status: Annotated[ProposalStatus | None, Rule("Only in this status.")] = None


class SkillOutcome(Struct, frozen=True, kw_only=True):
    """How a use of a skill went."""

    success: Annotated[bool, Rule("Whether it went well.")]
    task: Annotated[str | None, Rule("What it was used for.")] = None
    note: Annotated[str | None, Rule("What is to be learned from it.")] = None
    duration: Annotated[float | None, Rule("Seconds that it took.", low=0)] = None
    version: Annotated[int | None, Rule("The version that was used.", low=1)] = None


def _skills(context: OperationContext) -> Skills:
    return context.reading_existing().skills.acting_as()


def _list_skills(context: OperationContext, parameters: SkillPage, _: Place) -> Listing:
    rows = _skills(context).list(
        category=parameters.category, status=parameters.status, agent=parameters.agent
    )
    return page_of(rows, parameters)


def _search_skills(context: OperationContext, parameters: SkillQuestion, _: Place) -> Listing:
    hits = _skills(context).search(
        parameters.description, limit=parameters.limit, category=parameters.category
    )
    return Listing(hits, len(hits))


def _show_skill(context: OperationContext, _: object, place: Place) -> object:
    return _skills(context).show(place["skill"])


def _skill_context(context: OperationContext, parameters: SkillTask, place: Place) -> object:
    skills = context.reading_existing().skills
    return skills.context(place["skill"], task=parameters.task, budget=parameters.budget)


def _skill_file(context: OperationContext, parameters: SkillFileVersion, place: Place) -> object:
    wanted = ReadSkillFileParameters(
        skill_id=place["skill"], path=place["path"], version=parameters.version
    )
    return read_skill_file(context, wanted)


def _skill_outcome(context: OperationContext, parameters: SkillOutcome, place: Place) -> object:
    wanted = SkillOutcomeParameters(skill_id=place["skill"], **changes_in(parameters))
    return record_skill_outcome(context, wanted)


def _list_proposals(context: OperationContext, parameters: ProposalPage, _: Place) -> Listing:
    return page_of(
        context.reading_existing().skills.proposals().list(parameters.status), parameters
    )


def _propose_skill(
    context: OperationContext, parameters: ProposeSkillParameters, _: Place
) -> object:
    return propose_skill(context, parameters)


# --- the table ------------------------------------------------------------------------------------

_POOLS, _TIERS, _SKILLS = "/v1/kbs/{kb}/pools", "/v1/kbs/{kb}/tiers", "/v1/kbs/{kb}/skills"
_POOL, _SKILL = f"{_POOLS}/{{pool}}", f"{_SKILLS}/{{skill}}"
_BELOW_BASES: tuple[Endpoint, ...] = (
    Endpoint(
        "GET", _POOLS, "List pools.", _list_pools, PageParameters, operation="list_memory_pools"
    ),
    Endpoint(
        "POST", _POOLS, "Make a pool.", _create_pool, NewPool, "write", 201, "create_memory_pool"
    ),
    Endpoint("GET", _POOL, "Read all of a pool.", _read_pool, operation="read_shared_memory"),
    Endpoint(
        "DELETE", _POOL, "Delete a pool.", _delete_pool, effect="destructive",
        operation="delete_memory_pool",
    ),
    Endpoint(
        "GET", f"{_POOL}/values/{{key}}", "Read a value.", _read_pool,
        operation="read_shared_memory",
    ),
    Endpoint(
        "PUT", f"{_POOL}/values/{{key}}", "Write a value.", _write_pool, PoolData, "write",
        operation="write_shared_memory",
    ),
    Endpoint(
        "DELETE", f"{_POOL}/values/{{key}}", "Remove a value.", _remove_from_pool,
        effect="destructive", operation="write_shared_memory",
    ),
    Endpoint(
        "GET", f"{_POOL}/history", "List the writes to a pool.", _pool_history, PageParameters,
        operation="read_shared_memory",
    ),
    Endpoint(
        "GET", f"{_POOL}/stats", "Tell how a pool is used.", _pool_statistics,
        operation="memory_pool_stats",
    ),
    Endpoint(
        "GET", _TIERS, "Count what tiers hold.", _tier_statistics, operation="memory_tier_stats"
    ),
    Endpoint(
        "GET", f"{_TIERS}/{{key}}", "Read a value.", _read_tier, TierParameters,
        operation="read_memory_tier",
    ),
    Endpoint(
        "PUT", f"{_TIERS}/{{key}}", "Write a value.", _write_tier, TierData, "write",
        operation="write_memory_tier",
    ),
    Endpoint(
        "DELETE", f"{_TIERS}/{{key}}", "Remove a value.", _remove_tier, TierParameters,
        "destructive", operation="write_memory_tier",
    ),
    Endpoint("GET", _SKILLS, "List skills.", _list_skills, SkillPage, operation="list_skills"),
    Endpoint(
        "GET", f"{_SKILLS}/search", "Find skills by what they do.", _search_skills, SkillQuestion,
        operation="discover_skills",
    ),
    Endpoint(
        "GET", f"{_SKILLS}/proposals", "List proposals of skills.", _list_proposals, ProposalPage,
        operation="propose_skill",
    ),
    Endpoint(
        "POST", f"{_SKILLS}/proposals", "Propose a skill; a person reviews it.", _propose_skill,
        ProposeSkillParameters, "write", 201, "propose_skill",
    ),
    Endpoint("GET", _SKILL, "Show a skill.", _show_skill, operation="get_skill_context"),
    Endpoint(
        "GET", f"{_SKILL}/context", "Read a skill for a task.", _skill_context, SkillTask,
        operation="get_skill_context",
    ),
    Endpoint(
        "GET", f"{_SKILL}/files/{{path:path}}", "Read a file of a skill.", _skill_file,
        SkillFileVersion, operation="read_skill_file",
    ),
    Endpoint(
        "POST", f"{_SKILL}/outcomes", "Say how a use of a skill went.", _skill_outcome,
        SkillOutcome, "write", 201, "record_skill_outcome",
    ),
)  # fmt: skip


def _at_top(endpoints: Iterable[Endpoint]) -> Iterable[Endpoint]:
    """Yield endpoints of a knowledge base without its name in the path."""
    for each in endpoints:
        yield replace(each, path=each.path.replace("/kbs/{kb}", ""), takes_kb=True)


AGENT_ENDPOINTS: tuple[Endpoint, ...] = (*_BELOW_BASES, *_at_top(_BELOW_BASES))
