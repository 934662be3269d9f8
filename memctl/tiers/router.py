"""The router: reads a key from whichever tier has it, and writes to the right one.

Working memory is asked first, then short-term entries, the default pool, and long-term memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, get_args

from msgspec import Struct
from msgspec.structs import replace

from memctl.config import TierSettings
from memctl.errors import AccessRefused, NotFoundError, UsageError
from memctl.identity import DEFAULT_SESSION, DEFAULT_USER, Identity, checked_name
from memctl.literals import ShortTermType, Tier
from memctl.models.vector_math import dot_products
from memctl.pools import DEFAULT_POOL, Pools
from memctl.records import Hit, Memory, record_like
from memctl.schema.document_types import source_type
from memctl.store.ledger.tier_repositories import ShortTermEntry, WorkingValue
from memctl.tiers.long_term import LongTermMemory, value_metadata, value_of
from memctl.tiers.promotion import PromotionReport
from memctl.tiers.short_term import ShortTermMemory, require_type
from memctl.tiers.tier_values import (
    LONGEST_MEMORY,
    LONGEST_TTL,
    checked_key,
    checked_ttl,
    checked_value,
    end_of,
    text_of,
)
from memctl.tiers.working_memory import TierOwner, WorkingMemory

if TYPE_CHECKING:
    from memctl.models.protocols import Embedder
    from memctl.store.ledger.ledger import Ledger

ROUTED = "routed"
"""The method of memories that were written by key."""
LONG_TERM_IMPORTANCE = 0.7
MAX_ENTRIES = 1_000
"""At most this many short-term entries, the newest, take part in a search."""
SOON = timedelta(hours=1)
_SEARCHED: tuple[Tier, ...] = ("long_term", "short_term", "shared")


class TierValue(Struct, frozen=True):
    """A value, and the tier that it is in."""

    tier: Tier
    key: str
    value: Any
    agent: str | None = None
    session_id: str | None = None
    memory_type: str | None = None
    written_at: datetime | None = None
    expires_at: datetime | None = None
    access_count: int | None = None
    memory_id: str | None = None


class TierHit(Struct, frozen=True):
    """What a search by meaning found in a tier; ``score`` is a cosine and compares everywhere."""

    rank: int
    tier: Tier
    score: float
    key: str | None
    text: str
    session_id: str | None = None
    memory_id: str | None = None


class TierStatistics(Struct, frozen=True):
    """One tier in numbers."""

    tier: Tier
    count: int
    bytes: int
    oldest: datetime | None
    expiring_within_hour: int


class RouterParts(Struct, frozen=True):
    """What a router works with.

    Args:
        ledger: That of the knowledge base.
        clock: Returns the current time.
        settings: How long things last.
        redacts: Whether keys and passwords are taken out of what is stored.
        require_writable: Raises where nothing may be changed.
        counts_reads: Whether readings of short-term entries are counted.
        long_term: Memories by key.
        search: Finds memories for a question: at most this many, in the namespaces of a user.
        embedder: Gives the embedder.
        pools: Gives the pools as an agent sees them.
        promote: Promotes what was read often enough in a session.
        count_memories: Gives the numbers of long-term memory, of a user or of all.
        private_namespaces: Namespaces that statistics leave out.
    """

    ledger: Ledger
    clock: Callable[[], datetime]
    settings: TierSettings
    redacts: bool
    require_writable: Callable[[], None]
    counts_reads: bool
    long_term: LongTermMemory
    search: Callable[[str, int, str | None], Sequence[Hit]]
    embedder: Callable[[], Embedder]
    pools: Callable[[str], Pools]
    promote: Callable[[str], PromotionReport]
    count_memories: Callable[[str | None], TierStatistics]
    private_namespaces: frozenset[str]


class Router:
    """The tiers of one knowledge base, for one agent.

    Args:
        parts: What it works with.
        identity: Who asks, and in which session.
        namespace: Where what it keeps belongs.
    """

    def __init__(self, parts: RouterParts, identity: Identity, namespace: str) -> None:
        self._parts = parts
        self._identity = identity
        self._namespace = namespace
        self.working = self._working(identity.session)
        self.short_term = self._short_term(identity.session)

    # --- values ----------------------------------------------------------------------------------

    def read(
        self,
        key: str,
        session_id: str | None = None,
        *,
        tier: Tier | None = None,
        keep: bool = False,
    ) -> TierValue | None:
        """Return the value of a key from the first tier that has it; None where none has.

        Args:
            key: Its name.
            session_id: The session; by default that of the router.
            tier: Only from this one.
            keep: Whether what another tier has is put into working memory for the session.

        Raises:
            UsageError: The key cannot be one, or there is no such tier.
        """
        checked_key(key)
        _require_tiers(tier)
        readers: dict[Tier, Callable[[str, str | None], TierValue | None]] = {
            "working": self._read_working,
            "short_term": self._read_short_term,
            "shared": self._read_shared,
            "long_term": self._read_long_term,
        }
        for name, reader in readers.items():
            if tier in (None, name) and (found := reader(key, session_id)) is not None:
                if keep and name != "working":
                    self._working_of(session_id).store(key, found.value)
                return found
        return None

    def write(
        self,
        key: str,
        value: object,
        tier: Tier | None = None,
        session_id: str | None = None,
        *,
        ttl: float | None = None,
        type_: ShortTermType | None = None,
    ) -> TierValue:
        """Store a value under a key.

        Args:
            key: Its name.
            value: Anything that JSON has.
            tier: Where to; by default short_term where a session is named, else long_term.
            session_id: The session; by default that of the router.
            ttl: Seconds that it lasts; a memory lasts for good by default.
            type_: What a short-term entry is, by default an observation.

        Raises:
            UsageError: Something cannot be stored, or does not go with the tier.
            AccessRefused: The agent may not write to the knowledge base, or to the default pool.
        """
        chosen, plain, session = self._checked_write(key, value, tier, session_id, ttl, type_)
        if chosen == "working":
            return from_working(self._working_of(session_id).store(key, value, ttl))
        if chosen == "short_term":
            entry = self._short_term_of(session_id).write(
                key, value, type_=type_ or "observation", ttl=ttl
            )
            return of_entry(entry)
        if chosen == "shared":
            self._pools.write(DEFAULT_POOL, key, plain)
            return TierValue("shared", key, plain, agent=self._agent)
        return self._write_long_term(key, plain, session, ttl)

    def check_write(
        self,
        key: str,
        value: object,
        tier: Tier | None = None,
        session_id: str | None = None,
        *,
        ttl: float | None = None,
        type_: ShortTermType | None = None,
    ) -> Tier:
        """Return the tier that ``write`` would write to; refuse what it would refuse."""
        chosen, plain, _ = self._checked_write(key, value, tier, session_id, ttl, type_)
        if chosen == "shared":
            self._pools.check_write(DEFAULT_POOL, key, plain)
        return chosen

    def _checked_write(
        self,
        key: str,
        value: object,
        tier: Tier | None,
        session_id: str | None,
        ttl: float | None,
        type_: ShortTermType | None,
    ) -> tuple[Tier, Any, str | None]:
        """Return the tier to write to, the value as plain JSON data, and the session."""
        checked_key(key)
        _require_tiers(tier)
        session = checked_name(session_id or self._identity.session, "a session")
        chosen: Tier = tier or ("short_term" if session else "long_term")
        _check_ttl(chosen, ttl)
        if type_ is not None:
            _check_type(chosen, type_)
        self._parts.require_writable()
        plain, _ = checked_value(value, redacts=self._parts.redacts)
        if chosen == "long_term" and not text_of(plain).strip():
            raise UsageError("a memory needs a text", "write a value that says something")
        return chosen, plain, session

    def shared_values(self) -> Sequence[TierValue]:
        """Return what the default pool holds."""
        found = self._pools.read(DEFAULT_POOL).value
        return [TierValue("shared", key, value) for key, value in found.items()]

    def remove(self, key: str, tier: Tier | None = None, session_id: str | None = None) -> bool:
        """Remove a key from working and short-term memory, or from the tier that is named.

        Raises:
            UsageError: Memories are not removed by key, or there is no such tier.
        """
        _require_tiers(tier)
        if tier == "long_term":
            raise UsageError(
                "a memory is not removed by key", "memctl memory delete ID, or memctl forget"
            )
        found = False
        if tier in (None, "working"):
            found |= self._working_of(session_id).remove(key)
        if tier in (None, "short_term"):
            found |= self._short_term_of(session_id).remove(key)
        if tier == "shared":
            with suppress(NotFoundError):
                self._pools.remove(DEFAULT_POOL, key)
                found = True
        return found

    def consolidate(self, session_id: str | None = None) -> PromotionReport:
        """Promote what was read often enough in the session, without waiting until it is over."""
        return self._parts.promote(session_id or self._identity.session or DEFAULT_SESSION)

    # --- search ----------------------------------------------------------------------------------

    def semantic_search(
        self, query: str, limit: int = 10, *, tiers: Collection[Tier] = _SEARCHED
    ) -> Sequence[TierHit]:
        """Return what is nearest in meaning to a query, from all tiers but working memory.

        Args:
            query: In words.
            limit: Most hits.
            tiers: From these of them alone.

        Raises:
            UsageError: The query is empty, or there is no such tier.
        """
        _require_tiers(*tiers)
        sources: dict[Tier, Callable[[], Iterator[TierHit]]] = {
            "long_term": lambda: self._found_memories(query, limit),
            "short_term": self._entries,
            "shared": self._pool_values,
        }
        found = [each for tier, read in sources.items() if tier in tiers for each in read()]
        if not found:
            return ()
        vectors = self._parts.embedder().embed([query, *(each.text for each in found)])
        cosines = dot_products(vectors[1:], vectors[0])
        ranked = sorted(
            (
                replace(each, score=float(cosine))
                for each, cosine in zip(found, cosines, strict=True)
            ),
            key=lambda each: -each.score,
        )
        best = [each for each in ranked if each.score > 0][:limit]
        return [replace(each, rank=rank) for rank, each in enumerate(best, start=1)]

    def _found_memories(self, query: str, limit: int) -> Iterator[TierHit]:
        texts: set[str] = set()
        for hit in self._parts.search(query, limit, self._identity.user):
            key = hit.external_id if hit.document_id is None else None
            if key is None and hit.text in texts:
                continue
            texts.add(hit.text)
            yield TierHit(0, "long_term", 0.0, key, hit.text, hit.session_id, hit.memory_id)

    def _entries(self) -> Iterator[TierHit]:
        rows = self._parts.ledger.short_term
        found = rows.current(
            "namespace = ? AND agent = ?",
            *(self._namespace, self._agent),
            now=self._parts.clock(),
        )
        newest = sorted(found, key=lambda each: each.written_at, reverse=True)[:MAX_ENTRIES]
        for entry in newest:
            if text := text_of(entry.memory_value).strip():
                yield TierHit(0, "short_term", 0.0, entry.memory_key, text, entry.session_id)

    def _pool_values(self) -> Iterator[TierHit]:
        for pool in self._pools.list():
            with suppress(AccessRefused, NotFoundError):
                for key, value in self._pools.read(pool.pool_id).value.items():
                    if text := text_of(value).strip():
                        yield TierHit(0, "shared", 0.0, f"{pool.pool_id}/{key}", text)

    # --- numbers ---------------------------------------------------------------------------------

    def stats(self) -> Sequence[TierStatistics]:
        """Return every tier in numbers: of the user, or of all without private namespaces."""
        now = self._parts.clock()
        return (
            self._tier_statistics(
                "working", self._parts.ledger.working.current("TRUE", now=now), now
            ),
            self._tier_statistics(
                "short_term", self._parts.ledger.short_term.current("TRUE", now=now), now
            ),
            self._parts.count_memories(self._identity.user),
            self._counted_pools(now),
        )

    def _tier_statistics(
        self, tier: Tier, rows: Sequence[WorkingValue] | Sequence[ShortTermEntry], now: datetime
    ) -> TierStatistics:
        shown = [row for row in rows if self._counts(row.namespace)]
        ends = [row.expires_at for row in shown]
        return TierStatistics(
            tier,
            len(shown),
            sum(row.bytes for row in shown),
            min((row.written_at for row in shown), default=None),
            sum(end is not None and end <= now + SOON for end in ends),
        )

    def _counts(self, namespace: str) -> bool:
        """Return whether statistics count what is in a namespace."""
        if self._identity.user is not None:
            return namespace == self._namespace
        return namespace not in self._parts.private_namespaces

    def _counted_pools(self, now: datetime) -> TierStatistics:
        pools = self._pools.list()
        return TierStatistics(
            "shared",
            len(pools),
            sum(pool.data_size_bytes for pool in pools),
            min((pool.created_at for pool in pools), default=None),
            sum(pool.expires_at is not None and pool.expires_at <= now + SOON for pool in pools),
        )

    # --- tiers -----------------------------------------------------------------------------------

    @property
    def _agent(self) -> str:
        return self._identity.agent or self._identity.user or DEFAULT_USER

    @property
    def _pools(self) -> Pools:
        return self._parts.pools(self._agent)

    def _owner(self, session: str | None) -> TierOwner:
        return TierOwner(
            self._agent,
            checked_name(session, "a session") or DEFAULT_SESSION,
            self._namespace,
            by_person=self._identity.user is not None and self._identity.agent is None,
        )

    def _working(self, session: str | None) -> WorkingMemory:
        parts = self._parts
        return WorkingMemory(
            parts.ledger,
            parts.clock,
            self._owner(session),
            ttl=parts.settings.working_ttl,
            redacts=parts.redacts,
            require_writable=parts.require_writable,
        )

    def _short_term(self, session: str | None) -> ShortTermMemory:
        parts = self._parts
        return ShortTermMemory(
            parts.ledger,
            parts.clock,
            self._owner(session),
            ttl=parts.settings.short_term_ttl,
            redacts=parts.redacts,
            require_writable=parts.require_writable,
            counts_reads=parts.counts_reads,
        )

    def _working_of(self, session: str | None) -> WorkingMemory:
        is_own = session in (None, self._identity.session)
        return self.working if is_own else self._working(session)

    def _short_term_of(self, session: str | None) -> ShortTermMemory:
        is_own = session in (None, self._identity.session)
        return self.short_term if is_own else self._short_term(session)

    def _read_working(self, key: str, session: str | None) -> TierValue | None:
        found = self._working_of(session).find("value", key)
        return None if found is None else from_working(found)

    def _read_short_term(self, key: str, session: str | None) -> TierValue | None:
        found = self._short_term_of(session).read(key)
        return None if found is None else of_entry(found)

    def _read_shared(self, key: str, _session: str | None) -> TierValue | None:
        with suppress(NotFoundError, AccessRefused, UsageError):  # a key need be no path of a pool
            found = self._pools.read(DEFAULT_POOL, key)
            return TierValue("shared", key, found.value)
        return None

    def _read_long_term(self, key: str, session: str | None) -> TierValue | None:
        wanted = session or self._identity.session
        found = self._parts.long_term.find(key, self._namespace, wanted)
        return None if found is None else _of_memory(found)

    def _write_long_term(
        self, key: str, plain: Any, session: str | None, ttl: float | None
    ) -> TierValue:
        text = text_of(plain)
        now, agent = self._parts.clock(), self._identity.agent
        draft = Memory(
            id="",
            document_id=None,
            level="memory",
            type="",
            text=text,
            namespace=self._namespace,
            created_at=now,
            valid_from=now,
            source=f"session:{session}" if session else f"tier:{key}",
            external_id=key,
            session_id=session,
            importance=LONG_TERM_IMPORTANCE,
            method=ROUTED,
            agent_id=agent,
            source_type=source_type(agent),
            metadata=value_metadata(plain),
            expires_at=end_of(now, ttl),
        )
        return _of_memory(self._parts.long_term.write([draft]).answers[0])


def _require_tiers(*tiers: str | None) -> None:
    for tier in tiers:
        if tier is not None and tier not in get_args(Tier):
            raise UsageError(f"there is no tier {tier!r}", f"there are {', '.join(get_args(Tier))}")


def _check_ttl(tier: Tier, ttl: float | None) -> None:
    if ttl is None:
        return
    if tier == "shared":
        raise UsageError(
            "what is written to the default pool has no time to live",
            "write to another tier, or leave it out",
        )
    longest = LONGEST_MEMORY if tier == "long_term" else LONGEST_TTL
    checked_ttl(ttl, ttl, minimum=0 if tier == "working" else 1, longest=longest)


def _check_type(tier: Tier, type_: str) -> None:
    if tier != "short_term":
        raise UsageError("only a short-term entry has a memory_type", "leave it out")
    require_type(type_)


def from_working(value: WorkingValue) -> TierValue:
    """Return a value of working memory as what every tier gives."""
    return TierValue(
        "working",
        value.key,
        value.value,
        value.agent,
        value.session_id,
        written_at=value.written_at,
        expires_at=value.expires_at,
    )


def of_entry(entry: ShortTermEntry) -> TierValue:
    """Return a short-term entry as what every tier gives."""
    key, value = entry.memory_key, entry.memory_value
    return record_like(TierValue, entry, tier="short_term", key=key, value=value, memory_id=None)


def _of_memory(memory: Memory) -> TierValue:
    return TierValue(
        "long_term",
        memory.external_id or "",
        value_of(memory),
        memory.agent_id,
        memory.session_id,
        memory.type,
        memory.valid_from,
        memory.expires_at,
        memory.access_count,
        memory.id,
    )
