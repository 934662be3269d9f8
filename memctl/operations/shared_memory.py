"""Operations on shared pools: values under a name that several agents read and write."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Struct

from memctl.errors import UsageError
from memctl.identity import DEFAULT_USER
from memctl.literals import PoolType
from memctl.operations.operation_context import OperationContext, Unavailable
from memctl.operations.parameters import parse_names
from memctl.pools.pool_values import PoolStatistics
from memctl.records import record_like
from memctl.validation import Rule

if TYPE_CHECKING:
    from memctl.pools import Pools

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


def read_shared_memory(context: OperationContext, asked: ReadPoolParameters) -> SharedValue:
    """Read as ``memctl pool read`` does."""
    found = _pools(context).read(asked.pool_id, asked.key)
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


def write_shared_memory(context: OperationContext, asked: WritePoolParameters) -> SharedChange:
    """Write as ``memctl pool write`` does.

    Raises:
        Unavailable: On a dry run: the caller may not write to the pool.
    """
    pools = _pools(context)
    if asked.dry_run:
        if not pools.writable_by(asked.pool_id, pools.caller):
            raise Unavailable(f"{pools.caller} may not write to {asked.pool_id}")
        return SharedChange(True, asked.pool_id, asked.key, None, (), True)
    done = pools.write(asked.pool_id, asked.key, asked.value, if_version=asked.if_version)
    return SharedChange(True, done.pool_id, asked.key, done.version, done.evicted, False)


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


def memory_pool_stats(context: OperationContext, asked: PoolStatisticsParameters) -> PoolStatistics:
    """Count as ``memctl pool stats`` does."""
    return _pools(context).statistics(asked.pool_id)


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


def create_memory_pool(context: OperationContext, asked: CreatePoolParameters) -> PoolReply:
    """Make a pool as ``memctl pool create`` does; the caller owns it."""
    from memctl.pools import Retention, parse_scope

    visibility, lifetime = parse_scope(parse_names(asked.scope, "scope"))
    try:
        retention = Retention(**asked.retention_policy or {})
        retention.check()
    except TypeError:
        raise UsageError(
            "the retention policy has a key or value that it cannot have",
            "it has ttl_seconds, max_size_bytes and eviction",
        ) from None
    if asked.dry_run:
        return PoolReply(True, asked.pool_id, _caller(context), True)
    base = context.writing()
    made = base.pools.acting_as(_caller(context)).create(
        asked.pool_id,
        name=asked.name,
        pool_type=asked.pool_type,
        visibility=visibility,
        lifetime=lifetime,
        retention=retention,
        access={"public": True} if asked.public else None,
        session_id=context.identity.session if lifetime == "session" else None,
    )
    return PoolReply(True, made.pool_id, made.owner, False)


class DeletePoolParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``delete_memory_pool``."""

    pool_id: Annotated[str, Rule(_POOL)]
    dry_run: Annotated[bool, Rule("Delete nothing; only check the right to.")] = False


def delete_memory_pool(context: OperationContext, asked: DeletePoolParameters) -> PoolReply:
    """Delete as ``memctl pool delete`` does, which only the owner may."""
    pools = _pools(context)
    found = pools.require_deletable(asked.pool_id) if asked.dry_run else pools.delete(asked.pool_id)
    return PoolReply(True, found.pool_id, found.owner, asked.dry_run)


def _caller(context: OperationContext) -> str:
    identity = context.identity
    return identity.agent or identity.user or DEFAULT_USER


def _pools(context: OperationContext) -> Pools:
    return context.reading_existing().pools.acting_as(_caller(context))
