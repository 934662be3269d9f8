"""Working values and short-term entries: what agents keep for minutes or hours.

Neither takes the writer's lock of the tables.  Writes of working memory are not waited for until
they are on disk: a power cut may take the last of them, as it ends the work that they belong to.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from msgspec import Struct

from memctl.literals import ShortTermType
from memctl.store.ledger.pool_repositories import Json
from memctl.store.ledger.repository import LedgerTable, Repository, to_text


class WorkingValue(Struct, frozen=True):
    """One value of an agent's working memory."""

    namespace: str
    agent: str
    session_id: str
    place: str
    """What it is: a value, the task state, the result of a step, ..."""
    key: str
    value: Json
    bytes: int
    written_at: datetime
    ttl_seconds: float | None
    """None for as long as the session lasts."""
    expires_at: datetime | None


class SharedValue(Struct, frozen=True):
    """A value that one agent lets another one read."""

    namespace: str
    agent: str
    target: str
    """The one agent that may read it."""
    key: str
    session_id: str
    value: Json
    bytes: int
    written_at: datetime
    ttl_seconds: float | None
    expires_at: datetime | None


class SavedValue(Struct, frozen=True):
    """One value of a copy of working memory that is kept under a name."""

    namespace: str
    agent: str
    name: str
    place: str
    key: str
    session_id: str
    """The session that it was copied from."""
    value: Json
    bytes: int
    ttl_seconds: float | None
    saved_at: datetime


class ShortTermEntry(Struct, frozen=True):
    """What an agent keeps for some hours of one session."""

    namespace: str
    agent: str
    session_id: str
    memory_key: str
    memory_value: Json
    memory_type: ShortTermType
    bytes: int
    by_person: bool
    """Whether a named user wrote it, and no agent."""
    written_at: datetime
    ttl_seconds: float
    expires_at: datetime
    access_count: int = 0
    last_accessed_at: datetime | None = None

    def is_expired(self, now: datetime) -> bool:
        """Return whether its time is over."""
        return self.expires_at <= now


T = TypeVar("T", bound=WorkingValue | SharedValue | ShortTermEntry)


class _ExpiringRepository(Repository[T], Generic[T]):
    """Rows that are over at ``expires_at``, whether or not they are still there."""

    def current(self, where: str, *values: Any, now: datetime) -> list[T]:
        """Return the rows for which a condition holds and that are not over."""
        return self.select(
            f"{where} AND (expires_at IS NULL OR expires_at > ?)", *values, to_text(now)
        )

    def remove_expired(self, now: datetime) -> int:
        """Delete what is over; return how much that was."""
        with self._ledger.transaction(durable=False) as connection:
            return connection.execute(
                f"DELETE FROM {self.table.name} WHERE expires_at <= ?", (to_text(now),)
            ).rowcount

    def clamp(self, now: datetime) -> None:
        """Let nothing last longer from now on than it was to last, as when the clock was ahead."""
        ahead: list[T] = self.select(
            "julianday(expires_at) > julianday(?) + (ttl_seconds + 1) / 86400.0", to_text(now)
        )
        changed: list[tuple[Any, ...]] = []
        for row in ahead:
            end = now + timedelta(seconds=row.ttl_seconds or 0)
            written = min(row.written_at, now)
            changed.append((to_text(written), to_text(end), *self._key_of(row)))
        if changed:
            self.execute_each(
                f"UPDATE {self.table.name} SET written_at = ?, expires_at = ?"
                f" WHERE {self.table.by_key}",
                changed,
            )

    def _key_of(self, row: T) -> tuple[Any, ...]:
        return tuple(self._encode_key(tuple(getattr(row, name) for name in self.table.key)))


class WorkingRepository(_ExpiringRepository[WorkingValue]):
    """Working memory by agent, session and place."""

    table = LedgerTable(
        "working_values", WorkingValue, ("namespace", "agent", "session_id", "place", "key")
    )

    def end_session(self, namespace: str, session_id: str) -> None:
        """Delete what lasts as long as a session, of all agents."""
        self.delete(
            "namespace = ? AND session_id = ? AND expires_at IS NULL", namespace, session_id
        )


class SharedValueRepository(_ExpiringRepository[SharedValue]):
    """Values by the agent that shares them and the one that may read them."""

    table = LedgerTable("working_shares", SharedValue, ("namespace", "agent", "target", "key"))


class SavedValueRepository(Repository[SavedValue]):
    """Named copies of working memory."""

    table = LedgerTable("working_saves", SavedValue, ("namespace", "agent", "name", "place", "key"))


class ShortTermRepository(_ExpiringRepository[ShortTermEntry]):
    """Short-term entries by agent, session and key."""

    table = LedgerTable(
        "short_term_entries", ShortTermEntry, ("namespace", "agent", "session_id", "memory_key")
    )

    def put(self, entry: ShortTermEntry) -> None:
        """Write an entry; under a key that is taken, the count of reads stays."""
        self.write(
            [entry],
            "(namespace, agent, session_id, memory_key) DO UPDATE SET"
            " memory_value = excluded.memory_value, memory_type = excluded.memory_type,"
            " bytes = excluded.bytes, by_person = excluded.by_person,"
            " written_at = excluded.written_at, ttl_seconds = excluded.ttl_seconds,"
            " expires_at = excluded.expires_at",
        )

    def touch(self, entry: ShortTermEntry, now: datetime) -> None:
        """Count a reading; a power cut may take the last ones back."""
        self.execute_each(
            "UPDATE short_term_entries SET access_count = access_count + 1, last_accessed_at = ?"
            f" WHERE {self.table.by_key}",
            [(to_text(now), *self._key_of(entry))],
            durable=False,
        )

    def remove_unchanged(self, entries: Sequence[ShortTermEntry]) -> None:
        """Delete entries, except those that were rewritten since they were read."""
        self.execute_each(
            f"DELETE FROM short_term_entries WHERE {self.table.by_key} AND written_at = ?",
            [(*self._key_of(each), to_text(each.written_at)) for each in entries],
        )
