"""Operations on values by key, in shared pools and in an agent's tiers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Struct

from memctl.errors import UsageError
from memctl.identity import DEFAULT_SESSION, DEFAULT_USER
from memctl.literals import PoolType, ShortTermType, Tier
from memctl.operations.operation_context import OperationContext, Unavailable
from memctl.operations.parameters import parse_names
from memctl.plain_values import to_plain
from memctl.pools.pool_values import PoolStatistics
from memctl.records import record_like
from memctl.validation import Rule

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase
    from memctl.pools import Pools
    from memctl.tiers import Router

_POOL = "The id of the pool, such as default."


class ReadPoolParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``read_shared_memory``."""

    pool_id: Annotated[str, Rule(_POOL)]
    key: Annotated[
        str | None, Rule("A path with dots, such as agent_bulletin.status; by default all data.")
    ] = None


class SharedValue(Struct, frozen=True):
    """What was read."""

    success: bool
    pool_id: str
    key: str | None
    value: Any
    version: int
    """Of the pool; a write with ``if_version`` is refused if the pool has changed since."""


def read_shared_memory(context: OperationContext, parameters: ReadPoolParameters) -> SharedValue:
    """Read as ``memctl pool read`` does."""
    found = _pools(context).read(parameters.pool_id, parameters.key)
    return record_like(SharedValue, found, success=True)


class WritePoolParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``write_shared_memory``."""

    pool_id: Annotated[str, Rule(_POOL)]
    key: Annotated[str, Rule("A path with dots; objects on the way are made.")]
    value: Annotated[Any, Rule("Any value; an object or a list may also be given as JSON text.")]
    if_version: Annotated[
        int | None, Rule("Only if this is still the version of the pool.", low=0)
    ] = None
    dry_run: Annotated[bool, Rule("Write nothing; only check the right to write.")] = False


class SharedChange(Struct, frozen=True):
    """What a write came to."""

    success: bool
    pool_id: str
    key: str
    version: int | None
    evicted: tuple[str, ...]
    """Keys that had to go to make room."""
    dry_run: bool


def write_shared_memory(context: OperationContext, parameters: WritePoolParameters) -> SharedChange:
    """Write as ``memctl pool write`` does.

    Raises:
        Unavailable: On a dry run: the caller may not write to the pool.
    """
    pools = _pools(context)
    if parameters.dry_run:
        if not pools.writable_by(parameters.pool_id, pools.caller):
            raise Unavailable(f"{pools.caller} may not write to {parameters.pool_id}")
        return SharedChange(True, parameters.pool_id, parameters.key, None, (), True)
    done = pools.write(
        parameters.pool_id, parameters.key, parameters.value, if_version=parameters.if_version
    )
    return SharedChange(True, done.pool_id, parameters.key, done.version, done.evicted, False)


# --- pools ----------------------------------------------------------------------------------------


class PoolListParameters(Struct, frozen=True):
    """Of ``list_memory_pools``, which takes none."""


class ListedPool(Struct, frozen=True):
    """The settings and counts of one pool."""

    pool_id: str
    name: str
    pool_type: str
    owner: str
    version: int
    data_size_bytes: int
    updated_at: datetime
    expires_at: datetime | None


class PoolList(Struct, frozen=True):
    """The active pools that the caller may read."""

    pools: tuple[ListedPool, ...]


def list_memory_pools(context: OperationContext, _: PoolListParameters) -> PoolList:
    """List as ``memctl pool list`` does."""
    return PoolList(tuple(record_like(ListedPool, each) for each in _pools(context).list()))


class PoolStatisticsParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``memory_pool_stats``."""

    pool_id: Annotated[str, Rule(_POOL)]


def memory_pool_stats(
    context: OperationContext, parameters: PoolStatisticsParameters
) -> PoolStatistics:
    """Count as ``memctl pool stats`` does."""
    return _pools(context).statistics(parameters.pool_id)


class CreatePoolParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``create_memory_pool``."""

    pool_id: Annotated[str, Rule("1 to 64 of a-z, 0-9, - and _.")]
    name: Annotated[str, Rule("A name for people.")] = ""
    pool_type: Annotated[PoolType | None, Rule("Whom it is for.")] = None
    scope: Annotated[
        Any, Rule("A visibility (account, ...), a lifetime (session, ...), or both as a list.")
    ] = None
    retention_policy: Annotated[
        Mapping[str, Any] | None, Rule("ttl_seconds, max_size_bytes and eviction.")
    ] = None
    public: Annotated[bool, Rule("Whether everybody may read it.")] = False
    dry_run: Annotated[bool, Rule("Make nothing; only check what is given.")] = False


class PoolReply(Struct, frozen=True):
    """A pool that was made or deleted, or would be."""

    success: bool
    pool_id: str
    owner: str
    dry_run: bool


def create_memory_pool(context: OperationContext, parameters: CreatePoolParameters) -> PoolReply:
    """Make a pool as ``memctl pool create`` does; the caller owns it."""
    from memctl.pools import Retention, parse_scope

    visibility, lifetime = parse_scope(parse_names(parameters.scope, "scope"))
    try:
        retention = Retention(**parameters.retention_policy or {})
        retention.check()
    except TypeError:
        raise UsageError(
            "the retention policy has a key or value that it cannot have",
            "it has ttl_seconds, max_size_bytes and eviction",
        ) from None
    if parameters.dry_run:
        return PoolReply(True, parameters.pool_id, _caller(context), True)
    base = context.writing()
    made = base.pools.acting_as(_caller(context)).create(
        parameters.pool_id,
        name=parameters.name,
        pool_type=parameters.pool_type,
        visibility=visibility,
        lifetime=lifetime,
        retention=retention,
        access={"public": True} if parameters.public else None,
        session_id=context.identity.session if lifetime == "session" else None,
    )
    return PoolReply(True, made.pool_id, made.owner, False)


class GrantPoolParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``grant_memory_pool``."""

    pool_id: Annotated[str, Rule(_POOL)]
    agent: Annotated[str, Rule("The agent that gets the right.")]
    level: Annotated[
        Literal["read", "write", "none"],
        Rule("What it may do; write includes read, and none takes the right back."),
    ] = "read"
    dry_run: Annotated[bool, Rule("Change nothing; only check the right to.")] = False


class PoolRights(Struct, frozen=True):
    """Who may do what in a pool beside its owner."""

    success: bool
    pool_id: str
    owner: str
    access_control: Mapping[str, Any]
    dry_run: bool


def grant_memory_pool(context: OperationContext, parameters: GrantPoolParameters) -> PoolRights:
    """Grant or revoke as ``memctl pool grant`` and ``memctl pool revoke`` do.

    Raises:
        AccessRefused: The caller does not own the pool.
    """
    pools = _pools(context)
    if parameters.dry_run:
        pool = pools.require_grantable(parameters.pool_id)
    elif parameters.level == "none":
        pool = pools.revoke(parameters.pool_id, parameters.agent)
    else:
        pool = pools.grant(parameters.pool_id, parameters.agent, parameters.level)
    return PoolRights(True, pool.pool_id, pool.owner, pool.access_control, parameters.dry_run)


class DeletePoolParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``delete_memory_pool``."""

    pool_id: Annotated[str, Rule(_POOL)]
    dry_run: Annotated[bool, Rule("Delete nothing; only check the right to.")] = False


def delete_memory_pool(context: OperationContext, parameters: DeletePoolParameters) -> PoolReply:
    """Delete as ``memctl pool delete`` does, which only the owner may."""
    pools = _pools(context)
    found = (
        pools.require_deletable(parameters.pool_id)
        if parameters.dry_run
        else pools.delete(parameters.pool_id)
    )
    return PoolReply(True, found.pool_id, found.owner, parameters.dry_run)


def _caller(context: OperationContext) -> str:
    identity = context.identity
    return identity.agent or identity.user or DEFAULT_USER


def _pools(context: OperationContext) -> Pools:
    return context.reading_existing().pools.acting_as(_caller(context))


# --- tiers ----------------------------------------------------------------------------------------

_KEY = "The name of the value, such as next_step."
_SESSION = "The conversation or task that it belongs to; by default the one that is going on."
TIER_TTL = "Seconds that it lasts; 0, in working alone: until the conversation ends."
ENTRY_TYPE = "What a short-term entry is, by default an observation; no other tier has one."
_TIER = "working lasts minutes, short_term hours, long_term for good; shared is the default pool."


class ReadTierParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``read_memory_tier``."""

    key: Annotated[str, Rule(_KEY)]
    tier: Annotated[Tier | None, Rule(f"Only this tier: {_TIER}")] = None
    session_id: Annotated[str | None, Rule(_SESSION)] = None


class ValueOfTier(Struct, frozen=True):
    """A value, and the tier that it is in."""

    found: bool
    key: str
    tier: Tier | None = None
    value: Any = None
    memory_type: str | None = None
    written_at: datetime | None = None
    expires_at: datetime | None = None
    access_count: int | None = None
    """How often a short-term entry has been read, which decides whether it becomes a memory."""
    memory_id: str | None = None


def read_memory_tier(context: OperationContext, parameters: ReadTierParameters) -> ValueOfTier:
    """Read as ``memctl tier get`` does."""
    router = tier_router(context.reading_existing(), context, parameters.session_id)
    found = router.read(parameters.key, tier=parameters.tier)
    if found is None:
        return ValueOfTier(False, parameters.key)
    return record_like(ValueOfTier, found, found=True)


class WriteTierParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``write_memory_tier``."""

    key: Annotated[str, Rule(_KEY)]
    value: Annotated[Any, Rule("Any value, up to 1 MB.")]
    tier: Annotated[
        Tier | None,
        Rule(f"Where to, by default short_term in a conversation and else long_term: {_TIER}"),
    ] = None
    ttl: Annotated[float | None, Rule(TIER_TTL, low=0)] = None
    memory_type: Annotated[ShortTermType | None, Rule(ENTRY_TYPE)] = None
    session_id: Annotated[str | None, Rule(_SESSION)] = None
    dry_run: Annotated[bool, Rule("Write nothing; only check what is given.")] = False


class TierChange(Struct, frozen=True):
    """What was written where."""

    success: bool
    key: str
    tier: Tier
    expires_at: datetime | None
    memory_id: str | None
    dry_run: bool


def write_memory_tier(context: OperationContext, parameters: WriteTierParameters) -> TierChange:
    """Write as ``memctl tier set`` does.

    Raises:
        UsageError: Something cannot be stored, or does not go with the tier.
    """
    with context.open_for_adding(dry_run=parameters.dry_run) as base:
        router = tier_router(base, context, parameters.session_id)
        if parameters.dry_run:
            tier = router.check_write(
                parameters.key,
                parameters.value,
                parameters.tier,
                ttl=parameters.ttl,
                type_=parameters.memory_type,
            )
            return TierChange(True, parameters.key, tier, None, None, True)
        made = router.write(
            parameters.key,
            parameters.value,
            parameters.tier,
            ttl=parameters.ttl,
            type_=parameters.memory_type,
        )
    return record_like(TierChange, made, success=True, dry_run=False)


class SearchTiersParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``search_memory_tiers``."""

    query: Annotated[str, Rule("What to look for, in words.")]
    limit: Annotated[int, Rule("At most this many.", low=1, high=50)] = 10


class HitOfTier(Struct, frozen=True):
    """What was found in a tier."""

    tier: Tier
    key: str | None
    text: str
    score: float
    """A cosine, which compares everywhere."""
    session_id: str | None
    memory_id: str | None


class TierHits(Struct, frozen=True):
    """What was found in all tiers, the nearest in meaning first."""

    query: str
    results: tuple[HitOfTier, ...]
    kb: str
    """The knowledge base that was searched, the one that is written to."""


def search_memory_tiers(context: OperationContext, parameters: SearchTiersParameters) -> TierHits:
    """Search as ``memctl tier find`` does."""
    base = context.reading_existing()
    found = tier_router(base, context).semantic_search(parameters.query, parameters.limit)
    return TierHits(
        parameters.query, tuple(record_like(HitOfTier, hit) for hit in found), base.name
    )


class TierStatisticsParameters(Struct, frozen=True):
    """Of ``memory_tier_stats``, which takes none."""


class TiersInNumbers(Struct, frozen=True):
    """A block for each tier."""

    working_memory: Mapping[str, Any]
    short_term: Mapping[str, Any]
    long_term: Mapping[str, Any]
    shared: Mapping[str, Any]


def memory_tier_stats(context: OperationContext, _: TierStatisticsParameters) -> TiersInNumbers:
    """Count as ``memctl tier stats`` does."""
    blocks = tier_router(context.reading_existing(), context).stats()
    return TiersInNumbers(*(to_plain(block) for block in blocks))


class PromoteParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``consolidate_memory_tiers``."""

    session_id: Annotated[str | None, Rule(_SESSION)] = None
    dry_run: Annotated[bool, Rule("Only say what would be done.")] = False


class PromotedValue(Struct, frozen=True):
    """An entry that is a memory now, or would be."""

    key: str
    session_id: str
    text: str
    memory_id: str | None


class TierPromotion(Struct, frozen=True):
    """What became of the short-term entries of a conversation."""

    promoted: tuple[PromotedValue, ...]
    removed: int
    """Entries that were over and had been read too seldom."""
    dry_run: bool


def consolidate_memory_tiers(
    context: OperationContext, parameters: PromoteParameters
) -> TierPromotion:
    """Promote as ``memctl tier promote --session`` does."""
    session = parameters.session_id or context.identity.session or DEFAULT_SESSION
    with context.open_for_adding(dry_run=parameters.dry_run) as base:
        report = base.tiers.promote(session, at_once=True, dry_run=parameters.dry_run)
    promoted = tuple(record_like(PromotedValue, each) for each in report.promoted)
    return TierPromotion(promoted, report.removed, report.dry_run)


def tier_router(
    base: KnowledgeBase, context: OperationContext, session: str | None = None
) -> Router:
    """Return the tiers of a knowledge base as a caller sees them.

    Args:
        base: The knowledge base.
        context: Who asks, and what may be read.
        session: The conversation; by default that of the caller.
    """
    identity = context.identity
    return base.router(
        identity.agent,
        session or identity.session,
        identity.user,
        filters=context.filters(),
        counts_reads=not context.read_only,
    )
