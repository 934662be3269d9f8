"""Short-term memory: what an agent keeps for some hours of a session.

An entry that is over is never given.  What becomes of it is decided by ``promotion``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, get_args

from msgspec.structs import replace

from memctl.errors import NothingFound, UsageError
from memctl.literals import ShortTermType
from memctl.store.ledger.tier_repositories import ShortTermEntry
from memctl.tiers.tier_values import checked_key, checked_ttl, checked_value
from memctl.tiers.working_memory import OWNED, TierClock, TierOwner

if TYPE_CHECKING:
    from memctl.store.ledger.ledger import Ledger


class ShortTermMemory:
    """The short-term entries of one agent in one session.

    Args:
        ledger: Where they are kept.
        clock: Returns the current time.
        owner: Whose they are.
        ttl: Seconds that they last by default.
        redacts: Whether keys and passwords are taken out of values.
        require_writable: Raises where nothing may be changed.
        counts_reads: Whether readings are counted, as they cannot be where nothing may be changed.
    """

    def __init__(
        self,
        ledger: Ledger,
        clock: Callable[[], datetime],
        owner: TierOwner,
        *,
        ttl: float,
        redacts: bool,
        require_writable: Callable[[], None],
        counts_reads: bool,
    ) -> None:
        self._ledger = ledger
        self._rows = ledger.short_term
        self.owner = owner
        self._ttl = ttl
        self._redacts = redacts
        self._require_writable = require_writable
        self._counts_reads = counts_reads
        self._now = TierClock(clock, self._clamp)

    def _clamp(self, now: datetime) -> None:
        if self._ledger.is_writable:
            self._rows.clamp(now)

    def write(
        self,
        key: str,
        value: object,
        *,
        type_: ShortTermType = "observation",
        ttl: float | None = None,
    ) -> ShortTermEntry:
        """Keep a value under a key, durably.

        A value that is there already is replaced, and its time starts anew; its count of reads
        stays.

        Args:
            key: Its name.
            value: Anything that JSON has, up to 1 MB.
            type_: What it is, which decides what it becomes in long-term memory.
            ttl: Seconds that it lasts; by default as the settings say.

        Raises:
            UsageError: The key, the value, the type or the time cannot be used.
        """
        self._require_writable()
        require_type(type_)
        plain, size = checked_value(value, redacts=self._redacts)
        seconds = checked_ttl(ttl, self._ttl)
        now = self._now()
        self._rows.put(
            ShortTermEntry(
                *(*self.owner.key, checked_key(key)),
                *(plain, type_, size, self.owner.by_person),
                *(now, seconds, now + timedelta(seconds=seconds)),
            )
        )
        return self._find(key)

    def read(self, key: str) -> ShortTermEntry | None:
        """Return the entry of a key, and count the reading; None where there is none."""
        found = self.find(key)
        if found is None or not self._counts_reads:
            return found
        now = self._now()
        self._rows.touch(found, now)
        return replace(found, access_count=found.access_count + 1, last_accessed_at=now)

    def find(self, key: str) -> ShortTermEntry | None:
        """Return the entry of a key without counting it."""
        where = f"{OWNED} AND memory_key = ?"
        found = self._rows.current(where, *self.owner.key, key, now=self._now())
        return found[0] if found else None

    def refresh_ttl(self, key: str, ttl: float | None = None) -> ShortTermEntry:
        """Let the time of an entry start anew, now.

        Args:
            key: Its key.
            ttl: Seconds that it lasts; by default as long as before.

        Raises:
            NothingFound: There is none that is not over.
        """
        self._require_writable()
        with self._ledger.transaction():
            found = self._find(key)
            seconds = checked_ttl(ttl, found.ttl_seconds)
            end = self._now() + timedelta(seconds=seconds)
            refreshed = replace(found, ttl_seconds=seconds, expires_at=end)
            self._rows.save(refreshed)
        return refreshed

    def remove(self, key: str) -> bool:
        """Remove an entry; return whether there was one."""
        self._require_writable()
        with self._ledger.transaction():
            found = self.find(key)
            self._rows.remove(*self.owner.key, key)
        return found is not None

    def list(self) -> Sequence[ShortTermEntry]:
        """Return the entries by key."""
        return self._rows.current(OWNED, *self.owner.key, now=self._now())

    def clear(self) -> int:
        """Remove all entries; return how many there were."""
        self._require_writable()
        with self._ledger.transaction():
            count = len(self.list())
            self._rows.delete(OWNED, *self.owner.key)
        return count

    # --- inside ----------------------------------------------------------------------------------

    def _find(self, key: str) -> ShortTermEntry:
        if (found := self.find(key)) is None:
            raise NothingFound(
                f"session {self.owner.session!r} of {self.owner.agent!r} has no entry {key!r}",
                "memctl tier list shows what there is",
            )
        return found


def require_type(type_: str) -> None:
    """Refuse what no short-term entry can be.

    Raises:
        UsageError: There is no such type.
    """
    if type_ not in get_args(ShortTermType):
        types = ", ".join(get_args(ShortTermType))
        raise UsageError(f"an entry cannot be of the type {type_!r}", f"there are {types}")
