"""Shared pools: their settings, data by key, versions, events, and who has used them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any

from msgspec import Struct, field

from memctl.literals import Lifetime, PoolType, Visibility
from memctl.store.ledger.repository import (
    Codec,
    Connections,
    LedgerTable,
    OwnedRepository,
    Repository,
    to_text,
)

MAX_POOL_VERSIONS = 20
MAX_VERSION_BYTES = 20_000_000
"""What the earlier versions of one pool may take together."""
MAX_POOL_EVENTS = 1_000
"""Of one pool."""


def encode_json(value: Any) -> str:
    """Return a value as the shortest JSON, in UTF-8 where it has bytes for every character."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return json.dumps(value, separators=(",", ":"))
    return text


Json = Annotated[Any, Codec(encode_json, json.loads)]
"""A value of JSON; its null is stored as NULL."""


class Pool(Struct, frozen=True):
    """The settings and counts of one pool."""

    pool_id: str
    name: str
    pool_type: PoolType
    visibility: Visibility
    lifetime: Lifetime
    owner: str
    """The agent or user that made it."""
    created_at: datetime
    updated_at: datetime
    version: int = 0
    """How often its data has been written."""
    expires_at: datetime | None = None
    retention_policy: Mapping[str, Any] = field(default_factory=dict)
    access_control: Mapping[str, Any] = field(default_factory=dict)
    data_size_bytes: int = 0
    persist_across_executions: bool = False
    run_id: str | None = None
    """The run of a workflow that it belongs to."""
    session_id: str | None = None
    """The conversation that it belongs to."""
    last_read_at: datetime | None = None
    read_count: int = 0
    write_count: int = 0
    user_id: str | None = None
    """The user that it was made for; None if it is for no particular user."""


class PoolKey(Struct, frozen=True):
    """One top-level key of a pool's data with its value."""

    pool_id: str
    key: str
    value: Json
    version: int
    """The version of the pool that it was last written in."""
    written_at: datetime
    written_by: str
    bytes: int
    reads: int = 0
    session_id: str | None = None
    user_id: str | None = None


class PoolVersion(Struct, frozen=True):
    """The data of a pool as one write left it."""

    pool_id: str
    version: int
    written_at: datetime
    written_by: str
    action: str
    keys: tuple[str, ...]
    """The paths that were written or removed."""
    bytes: int
    data: Json
    session_id: str | None = None
    user_id: str | None = None


class PoolHistoryEntry(Struct, frozen=True):
    """One write to a pool, without the data."""

    version: int
    written_at: datetime
    written_by: str
    action: str
    keys: tuple[str, ...]
    bytes: int


class PoolEvent(Struct, frozen=True):
    """A key of a pool was written or removed."""

    id: int | None
    """Counts up over all pools."""
    pool_id: str
    key: str
    is_bulletin: bool
    value: Json
    """None where it is too long to be sent along, and where the key was removed."""
    digest: str | None
    """SHA-256 of the value as JSON, where the value is left out."""
    removed: bool
    writer: str
    version: int
    written_at: datetime
    session_id: str | None = None
    user_id: str | None = None


class PoolAgent(Struct, frozen=True):
    """How much one agent has used a pool."""

    pool_id: str
    agent: str
    reads: int
    writes: int
    last_read_at: datetime | None
    last_written_at: datetime | None
    last_at: datetime
    session_id: str | None = None
    user_id: str | None = None


class PoolKeyRepository(OwnedRepository[PoolKey]):
    """Data of pools by key, sorted."""

    table = LedgerTable("pool_keys", PoolKey, ("pool_id", "key"))

    def keys_written_until(self, pool_id: str, instant: datetime) -> list[str]:
        """Return the keys of a pool that were last written at an instant or before."""
        rows = self.rows(
            "SELECT key FROM pool_keys WHERE pool_id = ? AND written_at <= ?",
            *(pool_id, to_text(instant)),
        )
        return [key for (key,) in rows]

    def note_read(self, pool_id: str, keys: Iterable[str]) -> None:
        """Count a reading of some keys."""
        self.execute_each(
            "UPDATE pool_keys SET reads = reads + 1 WHERE pool_id = ? AND key = ?",
            [(pool_id, key) for key in keys],
        )


_HISTORY = LedgerTable("pool_versions", PoolHistoryEntry)


class PoolVersionRepository(Repository[PoolVersion]):
    """The latest versions of pools."""

    table = LedgerTable("pool_versions", PoolVersion, ("pool_id", "version"))

    def add(self, version: PoolVersion) -> None:
        """Keep a version, and drop the oldest ones of its pool."""
        with self._ledger.transaction():
            self.save(version)
            rows = self.rows(
                "SELECT version, bytes FROM pool_versions WHERE pool_id = ? ORDER BY version DESC",
                version.pool_id,
            )
            total = 0
            for number, (earlier, size) in enumerate(rows):
                total += size if number else 0
                if number >= MAX_POOL_VERSIONS or total > MAX_VERSION_BYTES:
                    self.delete("pool_id = ? AND version <= ?", version.pool_id, earlier)
                    return

    def history(self, pool_id: str) -> list[PoolHistoryEntry]:
        """Return the versions that are kept, newest first."""
        rows = self.rows(f"{_HISTORY.select} WHERE pool_id = ? ORDER BY version DESC", pool_id)
        return [_HISTORY.decode(row) for row in rows]


class PoolEventRepository(Repository[PoolEvent]):
    """The latest writes to keys of pools."""

    table = LedgerTable("pool_events", PoolEvent, ("id",))

    def add(self, events: Iterable[PoolEvent], pool_id: str) -> None:
        """Record writes to one pool, and drop its oldest ones."""
        with self._ledger.transaction():
            self.write(events)
            self.execute(
                "DELETE FROM pool_events WHERE pool_id = ?1 AND id <= (SELECT id FROM pool_events"
                " WHERE pool_id = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
                *(pool_id, MAX_POOL_EVENTS),
            )

    def last_id(self) -> int:
        """Return the number of the latest write of all; 0 before the first."""
        return int(self.rows("SELECT coalesce(max(id), 0) FROM pool_events")[0][0])

    def after(self, id_: int, pool_id: str | None = None) -> list[PoolEvent]:
        """Return writes that came after one, oldest first."""
        return self.select("id > ? AND pool_id = coalesce(?, pool_id)", id_, pool_id)


class PoolAgentRepository(OwnedRepository[PoolAgent]):
    """Uses of pools by agent."""

    table = LedgerTable("pool_agents", PoolAgent, ("pool_id", "agent"))

    def note(self, pool: Pool, agent: str, now: datetime, *, is_write: bool) -> None:
        """Count a reading or a write."""
        read_at, written_at = (None, now) if is_write else (now, None)
        self.write(
            [
                PoolAgent(
                    pool.pool_id,
                    agent,
                    int(not is_write),
                    int(is_write),
                    read_at,
                    written_at,
                    now,
                    pool.session_id,
                    pool.user_id,
                )
            ],
            "(pool_id, agent) DO UPDATE SET reads = reads + excluded.reads,"
            " writes = writes + excluded.writes,"
            " last_read_at = coalesce(excluded.last_read_at, last_read_at),"
            " last_written_at = coalesce(excluded.last_written_at, last_written_at),"
            " last_at = excluded.last_at",
        )


class PoolRepository(Repository[Pool]):
    """Pools by id; what belongs to them is in the repositories of ``keys``, ``versions``,
    ``events`` and ``agents``.
    """

    table = LedgerTable("pools", Pool, ("pool_id",))

    def __init__(self, ledger: Connections) -> None:
        super().__init__(ledger)
        self.keys = PoolKeyRepository(ledger)
        self.versions = PoolVersionRepository(ledger)
        self.events = PoolEventRepository(ledger)
        self.agents = PoolAgentRepository(ledger)

    def of_run(self, run_id: str) -> list[Pool]:
        """Return the pools that belong to a run of a workflow."""
        return self.select("run_id = ?", run_id)

    def of_session(self, session_id: str) -> list[Pool]:
        """Return the pools that belong to a conversation."""
        return self.select("session_id = ?", session_id)

    def note_read(self, pool: Pool, agent: str, keys: Iterable[str], now: datetime) -> None:
        """Count a reading."""
        self.execute(
            "UPDATE pools SET read_count = read_count + 1, last_read_at = ? WHERE pool_id = ?",
            *(to_text(now), pool.pool_id),
        )
        self.keys.note_read(pool.pool_id, keys)
        self.agents.note(pool, agent, now, is_write=False)

    def remove_whole(self, pool_id: str) -> None:
        """Delete a pool with all that belongs to it, or what is left of one."""
        with self._ledger.transaction():
            for repository in (self, self.keys, self.versions, self.events, self.agents):
                repository.delete("pool_id = ?", pool_id)
