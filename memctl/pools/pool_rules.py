"""What may be done with a pool: who reads and writes, how big it gets, how long its keys stay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Self, get_args

from msgspec import Struct, convert
from msgspec.structs import asdict, replace

from memctl.errors import QuotaExceeded, UsageError
from memctl.identity import checked_name
from memctl.literals import AccessLevel, Eviction, Lifetime, PoolType, Visibility
from memctl.store.ledger.pool_repositories import Pool, PoolKey

DEFAULT_MAX_BYTES = 5_000_000
LARGEST_MAX_BYTES = 50_000_000
LONGEST_TTL = timedelta(days=36_525)
"""A century."""
_LISTS = ("read", "write")
_FLAGS = ("public_read", "public_write")
_SHORT = {"agents", "public"}


class Access(Struct, frozen=True):
    """Who but the owner may read and write a pool; an agent stands in one of the lists alone."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    """Who may also read."""
    public_read: bool = False
    public_write: bool = False

    @classmethod
    def parse(cls, values: Mapping[str, Any], pool_type: PoolType) -> Self:
        """Return the rights that a JSON object gives, in its long or its short form.

        The short form is ``{"agents": [...], "public": true}``: the agents may read; everybody may
        if it is public, and of a shared pool also write.

        Raises:
            UsageError: It has another key, or a value of another kind.
        """
        known = _SHORT if _SHORT & values.keys() else {*_LISTS, *_FLAGS}
        if unknown := sorted(values.keys() - known):
            raise UsageError(
                f"rights of a pool have no key {unknown[0]!r}", f"use {', '.join(sorted(known))}"
            )
        if known is _SHORT:
            public = _flag(values, "public")
            writes = public and pool_type == "shared"
            return cls(_agents(values, "agents"), (), public, writes)
        write = _agents(values, "write")
        read = tuple(agent for agent in _agents(values, "read") if agent not in write)
        return cls(read, write, _flag(values, "public_read"), _flag(values, "public_write"))

    @classmethod
    def of(cls, pool: Pool) -> Self:
        """Return the rights in a pool."""
        return convert(pool.access_control, cls)

    def level_of(self, agent: str | None) -> AccessLevel | None:
        """Return the level of the right given to an agent, or to everybody; None for none."""
        if agent is None:
            return "write" if self.public_write else "read" if self.public_read else None
        return "write" if agent in self.write else "read" if agent in self.read else None

    def granting(self, agent: str | None, level: AccessLevel) -> Access:
        """Return the rights with those of an agent, or of everybody, set to a level."""
        if agent is None:
            return replace(self, public_read=True, public_write=level == "write")
        others = self.revoking(agent)
        if level == "write":
            return replace(others, write=(*others.write, agent))
        return replace(others, read=(*others.read, agent))

    def revoking(self, agent: str | None) -> Access:
        """Return the rights without those given to an agent, or to everybody."""
        if agent is None:
            return replace(self, public_read=False, public_write=False)
        return replace(
            self,
            read=tuple(each for each in self.read if each != agent),
            write=tuple(each for each in self.write if each != agent),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the rights as JSON."""
        return asdict(self)


def _agents(values: Mapping[str, Any], key: str) -> tuple[str, ...]:
    names = values.get(key, [])
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"{key!r} is a list of names of agents", f'write {{"{key}": ["agent1"]}}')
    checked = [checked_name(name, "an agent") or "" for name in names]
    return tuple(dict.fromkeys(checked))


def _flag(values: Mapping[str, Any], key: str) -> bool:
    value = values.get(key, False)
    if not isinstance(value, bool):
        raise UsageError(f"{key!r} is true or false")
    return value


def may_read(pool: Pool, agent: str) -> bool:
    """Return whether an agent may read a pool: its owner may, everybody a global one."""
    access = Access.of(pool)
    return (
        agent == pool.owner
        or pool.pool_type == "global"
        or access.public_read
        or agent in access.read
        or may_write(pool, agent)
    )


def may_write(pool: Pool, agent: str) -> bool:
    """Return whether an agent may write to a pool; who may write may also read."""
    access = Access.of(pool)
    return agent == pool.owner or access.public_write or agent in access.write


class Retention(Struct, frozen=True):
    """How long the keys of a pool stay, how big it gets, and what goes when it would be bigger."""

    ttl_seconds: int | None = None
    """Of each top-level key, since it was last written; None for no end."""
    max_size_bytes: int = DEFAULT_MAX_BYTES
    eviction: Eviction = "oldest"

    @classmethod
    def of(cls, pool: Pool) -> Self:
        """Return what holds for a pool."""
        stored = pool.retention_policy
        return cls(stored["ttl_seconds"], stored["max_size_bytes"], stored["eviction"])

    def check(self) -> None:
        """Refuse what cannot be kept to.

        Raises:
            UsageError: A number is out of range.
        """
        if self.ttl_seconds is not None:
            most = int(LONGEST_TTL.total_seconds())
            if not 1 <= self.ttl_seconds <= most:
                raise UsageError(
                    f"a time to live of {self.ttl_seconds:,} seconds cannot be kept to",
                    "give a second to a century, or leave it out to keep keys for ever",
                )
        if not 2 <= self.max_size_bytes <= LARGEST_MAX_BYTES:
            raise UsageError(
                f"a pool cannot have at most {self.max_size_bytes:,} bytes",
                f"give 2 to {LARGEST_MAX_BYTES:,}, like 5MB",
            )

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)

    def is_expired(self, key: PoolKey, now: datetime) -> bool:
        """Return whether a key has expired; one that a faster clock wrote after now has not."""
        if self.ttl_seconds is None:
            return False
        return now - key.written_at >= timedelta(seconds=self.ttl_seconds)

    def in_order_of_eviction(self, keys: Iterable[PoolKey]) -> list[PoolKey]:
        """Return keys with those first that go first.

        By version, not by time: a clock that is set back changes nothing about the order.
        """
        if self.eviction == "least_read":
            return sorted(keys, key=lambda key: (key.reads, key.version, key.key))
        return sorted(keys, key=lambda key: (key.version, key.key))


def parse_scope(words: Sequence[str]) -> tuple[Visibility | None, Lifetime | None]:
    """Return which visibility and which lifetime some words mean; None where none is named.

    Raises:
        UsageError: A word is neither, or two words mean the same kind.
    """
    visibility: Visibility | None = None
    lifetime: Lifetime | None = None
    for word in words:
        if word in get_args(Visibility) and visibility is None:
            visibility = word  # type: ignore[assignment]
        elif word in get_args(Lifetime) and lifetime is None:
            lifetime = word  # type: ignore[assignment]
        else:
            one, other = ", ".join(get_args(Visibility)), ", ".join(get_args(Lifetime))
            problem = f"{' and '.join(words)!r} cannot be the scope of a pool"
            raise UsageError(problem, f"use one of {one}; and one of {other}")
    return visibility, lifetime


def has_pool_expired(pool: Pool, now: datetime) -> bool:
    """Return whether the time of a whole pool is over."""
    return pool.expires_at is not None and pool.expires_at <= now


def live_keys(pool: Pool, keys: Iterable[PoolKey], now: datetime) -> dict[str, PoolKey]:
    """Return the keys that have not outlived their time, by name."""
    retention = Retention.of(pool)
    return {entry.key: entry for entry in keys if not retention.is_expired(entry, now)}


def not_from_future(entry: PoolKey, now: datetime) -> PoolKey:
    """Return a key as written now at the latest: the clock may have been ahead."""
    return entry if entry.written_at <= now else replace(entry, written_at=now)


def data_size(entries: Iterable[PoolKey]) -> int:
    """Return the bytes of data as the shortest JSON: braces, and a comma between two keys."""
    sizes = [entry.bytes for entry in entries]
    return 2 + sum(sizes) + max(len(sizes) - 1, 0)


def fit_into(
    pool: Pool, entries: Mapping[str, PoolKey], fresh: Mapping[str, PoolKey]
) -> tuple[dict[str, PoolKey], tuple[str, ...]]:
    """Return the keys that fit into a pool, and the names of those to evict.

    Raises:
        QuotaExceeded: Nothing may be evicted, or the new value alone is too big.
    """
    retention, left = Retention.of(pool), dict(entries)
    most = retention.max_size_bytes
    if data_size(left.values()) <= most:
        return left, ()
    evicted: list[str] = []
    if retention.eviction != "refuse":
        others = (entry for name, entry in left.items() if name not in fresh)
        for entry in retention.in_order_of_eviction(others):
            del left[entry.key]
            evicted.append(entry.key)
            if data_size(left.values()) <= most:
                return left, tuple(evicted)
        needed = data_size(left.values())
        raise QuotaExceeded(
            f"what is written takes {needed:,} bytes, and pool {pool.pool_id!r} has room for"
            f" {most:,}",
            "write less, or make a pool with a greater --max-size",
        )
    raise QuotaExceeded(
        f"pool {pool.pool_id!r} would have {data_size(left.values()):,} bytes, and has room for"
        f" {most:,}",
        f"remove keys first: memctl pool write {pool.pool_id} KEY --remove",
    )
