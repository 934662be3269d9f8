"""Operations on shared pools: values under a name that several agents read and write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memctl.identity import DEFAULT_USER
from memctl.operations.operation_context import OperationContext, Unavailable
from memctl.operations.parameters import parameter

if TYPE_CHECKING:
    from memctl.pools import Pools

_POOL = "The id of the pool, such as default."


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPoolParameters:
    """Parameters of ``read_shared_memory``."""

    pool_id: str = parameter(_POOL)
    key: str | None = parameter(
        "A path with dots, such as agent_bulletin.status; by default all data.", default=None
    )


@dataclass(frozen=True, slots=True)
class SharedValue:
    """What was read."""

    success: bool
    pool_id: str
    key: str | None
    value: Any
    version: int
    """Of the pool; a write with ``if_version`` is refused if somebody has written since."""


def read_shared_memory(context: OperationContext, asked: ReadPoolParameters) -> SharedValue:
    """Read as ``memctl pool read`` does."""
    found = _pools(context).read(asked.pool_id, asked.key)
    return SharedValue(True, found.pool_id, found.key, found.value, found.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePoolParameters:
    """Parameters of ``write_shared_memory``."""

    pool_id: str = parameter(_POOL)
    key: str = parameter("A path with dots; objects on the way are made.")
    value: Any = parameter("Any value; an object or a list may also be given as JSON text.")
    if_version: int | None = parameter(
        "Only if this is still the version of the pool.", default=None, low=0
    )
    dry_run: bool = parameter("Write nothing; only check the right to write.", default=False)


@dataclass(frozen=True, slots=True)
class SharedChange:
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


def _pools(context: OperationContext) -> Pools:
    identity = context.identity
    caller = identity.agent or identity.user or DEFAULT_USER
    return context.looking().pools.acting_as(caller)
