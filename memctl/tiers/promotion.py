"""The way from short-term to long-term memory.

An entry whose time is over becomes a memory if it was read often enough, or if a person wrote it;
else it goes.  Never knows how memories are understood and stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from memctl.identity import DEFAULT_USER, checked_name
from memctl.literals import MemoryKind, ShortTermType, SourceType
from memctl.records import Memory
from memctl.redaction import redact_name
from memctl.store.ledger.tier_repositories import ShortTermEntry
from memctl.tiers.long_term import LongTermMemory, value_metadata
from memctl.tiers.tier_values import checked_value, text_of

if TYPE_CHECKING:
    from memctl.store.ledger.ledger import Ledger

PROMOTED = "promoted"
"""The method of memories that were short-term entries."""
BASE_IMPORTANCE, STEP_IMPORTANCE, MAX_IMPORTANCE = 0.5, 0.05, 0.8
MAX_AT_ONCE = 200
"""Entries that become memories in one commit."""
_TYPES: dict[ShortTermType, str] = {
    "task_context": "",  # plan or fact, as its text says
    "conversation": "conversation_summary",
    "tool_result": "tool_output",
    "reflection": "reflection",
    "observation": "observation",
}


class PromotedEntry(Struct, frozen=True):
    """A short-term entry that has become a memory, or would."""

    key: str
    session_id: str
    agent: str
    reads: int
    memory_id: str | None
    """None in a dry run."""
    text: str


class PromotionReport(Struct, frozen=True):
    """What became of short-term entries."""

    kb: str
    dry_run: bool
    promoted: tuple[PromotedEntry, ...]
    replaced: int
    """Memories of the same sessions that a newer one took the place of."""
    removed: int
    """Entries that were over and had been read too seldom."""
    withheld: int
    """Entries of private sessions, which become no memories of an open knowledge base."""
    working_removed: int
    """Values of working memory that were over."""
    seconds: float


class _Plan(Struct, frozen=True):
    """What is to become of entries."""

    promoted: tuple[ShortTermEntry, ...]
    removed: tuple[ShortTermEntry, ...]
    withheld: tuple[ShortTermEntry, ...]


class Promoter(Struct, frozen=True):
    """Promotes the short-term entries of one knowledge base.

    Args:
        kb: Its name.
        ledger: Where the entries are.
        long_term: Where they go.
        clock: Returns the current time.
        reads: How often an entry has to be read to be kept for good.
        near: The cosine from which two entries of a session become one.
        is_private: Tells of a namespace and a session whether they must not be promoted.
    """

    kb: str
    ledger: Ledger
    long_term: LongTermMemory
    clock: Callable[[], datetime]
    reads: int
    near: float
    is_private: Callable[[str, str], bool]

    def has_work(self) -> bool:
        """Return whether any entry or value is there at all."""
        return bool(self.ledger.short_term.count() or self.ledger.working.count())

    def run(
        self,
        session: str | None = None,
        *,
        namespace: str | None = None,
        dry_run: bool = False,
        at_once: bool = False,
        job: int | None = None,
    ) -> PromotionReport:
        """Promote what is over, and remove what is over and was read too seldom.

        Killed half-way, an entry is either still there or a memory, and never both.

        Args:
            session: Of this session alone.
            namespace: Of this namespace alone.
            dry_run: Only say what would be done.
            at_once: Also promote what was read often enough and is not over yet.
            job: The number of the job under which the changes are noted.
        """
        began, now = time.monotonic(), self.clock()
        if not dry_run:
            for rows in (self.ledger.working, self.ledger.shared_values, self.ledger.short_term):
                rows.clamp(now)
        session = checked_name(session, "a session")
        plan = self._plan(session, namespace, now, at_once=at_once)
        replaced = working = 0
        if dry_run:
            promoted = tuple(_promoted_entry(entry, None) for entry in plan.promoted)
        else:
            promoted, replaced = self._promote(plan.promoted, job)
            gone = [each for each in plan.withheld if each.is_expired(now) and not each.by_person]
            self.ledger.short_term.remove_unchanged([*plan.removed, *gone])
            working = self.ledger.working.remove_expired(now)
            working += self.ledger.shared_values.remove_expired(now)
        return PromotionReport(
            kb=self.kb,
            dry_run=dry_run,
            promoted=promoted,
            replaced=replaced,
            removed=len(plan.removed),
            withheld=len(plan.withheld),
            working_removed=working,
            seconds=time.monotonic() - began,
        )

    def _plan(
        self, session: str | None, namespace: str | None, now: datetime, *, at_once: bool
    ) -> _Plan:
        found = self.ledger.short_term.select(
            "session_id = coalesce(?, session_id) AND namespace = coalesce(?, namespace)",
            *(session, namespace),
            order="written_at, memory_key",
        )
        promoted, removed, withheld = [], [], []
        for entry in found:
            is_over, is_wanted = entry.is_expired(now), entry.access_count >= self.reads
            if not is_over and not (at_once and is_wanted):
                continue
            if not (is_wanted or entry.by_person) or not _says_something(entry):
                removed.append(entry)
            elif self.is_private(entry.namespace, entry.session_id):
                withheld.append(entry)
            else:
                promoted.append(entry)
        return _Plan(tuple(promoted), tuple(removed), tuple(withheld))

    def _promote(
        self, entries: Sequence[ShortTermEntry], job: int | None
    ) -> tuple[tuple[PromotedEntry, ...], int]:
        promoted: list[PromotedEntry] = []
        replaced = 0
        for start in range(0, len(entries), MAX_AT_ONCE):
            found, ended = self._promote_part(entries[start : start + MAX_AT_ONCE], job)
            promoted += found
            replaced += ended
        return tuple(promoted), replaced

    def _promote_part(
        self, entries: Sequence[ShortTermEntry], job: int | None
    ) -> tuple[list[PromotedEntry], int]:
        remaining: list[ShortTermEntry] = []

        def unchanged_entries() -> Collection[int]:
            """Return the entries that were not promoted, removed or rewritten meanwhile."""
            return [place for place, entry in enumerate(entries) if self._is_unchanged(entry)]

        def finish(places: Collection[int]) -> None:
            """Remove the entries that are memories now."""
            remaining.extend(entries[place] for place in places)
            self.ledger.short_term.remove_unchanged(remaining)

        written = self.long_term.write(
            [_memory(entry, self.clock()) for entry in entries],
            near=self.near,
            wanted=unchanged_entries,
            finish=finish,
            job=job,
        )
        answers = zip(remaining, written.answers, strict=True)
        return [_promoted_entry(entry, memory.id) for entry, memory in answers], len(
            written.replaced
        )

    def _is_unchanged(self, entry: ShortTermEntry) -> bool:
        key = (entry.namespace, entry.agent, entry.session_id, entry.memory_key)
        found = self.ledger.short_term.find(*key)
        return found is not None and found.written_at == entry.written_at


def _says_something(entry: ShortTermEntry) -> bool:
    return bool(text_of(entry.memory_value).strip())


def _promoted_entry(entry: ShortTermEntry, memory_id: str | None) -> PromotedEntry:
    return PromotedEntry(
        entry.memory_key,
        entry.session_id,
        entry.agent,
        entry.access_count,
        memory_id,
        text_of(entry.memory_value),
    )


def _memory(entry: ShortTermEntry, now: datetime) -> Memory:
    """Return the memory that an entry becomes, without an id; it has no keys and passwords."""
    value, _ = checked_value(entry.memory_value, redacts=True)
    key, session = redact_name(entry.memory_key), redact_name(entry.session_id)
    more_reads = max(0, entry.access_count - 3)
    is_of_agent = not entry.by_person and entry.agent != DEFAULT_USER
    return Memory(
        id="",
        document_id=None,
        level="memory",
        type=_TYPES[entry.memory_type],
        text=text_of(value),
        namespace=entry.namespace,
        created_at=entry.written_at,
        valid_from=now,
        source=f"session:{session}",
        external_id=key,
        session_id=session,
        importance=min(BASE_IMPORTANCE + STEP_IMPORTANCE * more_reads, MAX_IMPORTANCE),
        method=PROMOTED,
        agent_id=entry.agent if is_of_agent else None,
        source_type=_source_type(entry, is_of_agent=is_of_agent),
        kind=_KINDS.get(entry.memory_type),
        metadata={
            "key": key,
            "reads": entry.access_count,
            "written_at": entry.written_at.isoformat(),
            "expired_at": entry.expires_at.isoformat(),
            **value_metadata(value),
        },
    )


_KINDS: dict[ShortTermType, MemoryKind] = {"task_context": "working"}
"""The notes of work; of the others, the type tells the kind."""


def _source_type(entry: ShortTermEntry, *, is_of_agent: bool) -> SourceType:
    if entry.memory_type == "tool_result":
        return "tool"
    return "agent" if is_of_agent else "user"
