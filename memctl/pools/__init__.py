"""Shared pools: JSON documents with a name that several agents read and write.

Knows rights, quotas and versions; never who is behind an agent's name: rights keep agents out of
each other's way, and are no protection against a program that reads the files.
"""

from memctl.pools.pool_rules import Access, Retention, parse_scope
from memctl.pools.pool_service import (
    DEFAULT_POOL,
    Pools,
    event_row,
    has_expired,
    readable_pools,
    remove_expired,
)
from memctl.pools.pool_values import PoolChange, PoolValue

__all__ = [
    "DEFAULT_POOL",
    "Access",
    "PoolChange",
    "PoolValue",
    "Pools",
    "Retention",
    "event_row",
    "has_expired",
    "parse_scope",
    "readable_pools",
    "remove_expired",
]
