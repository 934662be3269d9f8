"""Who read which memory, and who changed what: ids, names and numbers, never words.

The audit trail is a chain: each entry holds the hash of the one before, so that an entry which
was removed or altered can be detected.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from memctl.ids import storable
from memctl.literals import AccessKind
from memctl.schema.table_names import TableName
from memctl.store.ledger.decision_repositories import DELETABLE
from memctl.store.ledger.repository import Connections, LedgerTable, Repository, from_text, to_text

MAX_AUDIT_ENTRIES = 100_000
OWNER = "owner"
"""Who acts where neither a user nor an agent is named."""
WATCHER = "watch"
"""Who acts in the watcher."""
FORGETTING = "forget"
"""The action of which the trail never says what it was about."""
MAX_OBJECTS = 20
"""Ids that an entry names; of more, it says only how many."""
_HEAD, _ANCHOR = "audit_head", "audit_anchor"
"""Where the ledger keeps the hash of the last entry, and of the last one that was trimmed."""
_TRIM_EVERY = 1_000


# --- who read what -------------------------------------------------------------------------------


class AccessEntry(Struct, frozen=True):
    """One memory that was shown once."""

    at: datetime
    memory_id: str
    query_id: str
    """The question that it was shown for; "" where there was none."""
    kind: AccessKind
    user: str
    """Whose question it was; "" where no one was named."""
    agent: str
    """Who asked for them; "" where a person did."""


class MemoryUse(Struct, frozen=True):
    """How often the access log has a memory, and when last."""

    memory_id: str
    times: int
    last_at: datetime


_reading_kind: ContextVar[AccessKind | None] = ContextVar("access_kind", default=None)


@contextmanager
def reading_as(kind: AccessKind) -> Iterator[None]:
    """Have accesses inside noted as of one kind, such as those of a tool."""
    token = _reading_kind.set(kind)
    try:
        yield
    finally:
        _reading_kind.reset(token)


def access_kind(kind: AccessKind) -> AccessKind:
    """Return the kind of an access: that of what goes on around it, else its own."""
    return _reading_kind.get() or kind


class AccessTrailRepository(Repository[AccessEntry]):
    """The latest accesses, one by one."""

    table = LedgerTable("accesses", AccessEntry, order="id")

    def add(self, entries: Iterable[AccessEntry], keep: int) -> None:
        """Record accesses, and drop all but the newest ones; a power cut may take it back."""
        with self._ledger.transaction(durable=False):
            self.write(entries, durable=False)
            self.trim(keep)

    def of(self, memory_id: str, limit: int = -1) -> list[AccessEntry]:
        """Return the accesses to a memory, the newest first."""
        return self.select("memory_id = ?", memory_id, order="id DESC", limit=limit)

    def uses(self) -> list[MemoryUse]:
        """Return how often each memory was shown, and when last."""
        rows = self.rows("SELECT memory_id, count(*), max(at) FROM accesses GROUP BY memory_id")
        return [MemoryUse(id_, times, from_text(last)) for id_, times, last in rows]


# --- who changed what ----------------------------------------------------------------------------


Noted: TypeAlias = int | float | str
"""A version, a number or a word of a fixed list; names are objects, which can be forgotten."""


class AuditEntry(Struct, frozen=True):
    """One change, by hand or by itself."""

    id: int
    at: datetime
    actor: str
    """``owner``, ``user NAME``, ``agent NAME`` or ``watch``."""
    action: str
    """What was done: ``memory add``, ``job rot``, ``settings``, ..."""
    objects: tuple[str, ...]
    """What it was about: ids and names; empty where there were too many, or they are forgotten."""
    objects_digest: str
    """The hash of what ``objects`` was, which the chain goes over."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """How many rows of each table were written."""
    before: Mapping[str, Noted] = field(default_factory=dict)
    """What changed, as it was: versions of tables or of a pool, settings, the level of a right."""
    after: Mapping[str, Noted] = field(default_factory=dict)
    """The same, as the change left them."""
    hash: str = ""


class _Scope(Struct, frozen=True):
    """What is being done, for entries that are written meanwhile."""

    action: str
    objects: tuple[str, ...] = ()


_scope: ContextVar[_Scope | None] = ContextVar("audit_scope", default=None)


def actor_of(user: str | None, agent: str | None) -> str:
    """Return who acts as the trail calls them: an agent before the user that it acts for."""
    if agent is not None:
        return f"agent {agent}"
    return OWNER if user is None else f"user {user}"


class AuditRepository(Repository[AuditEntry]):
    """The audit trail, oldest first; entries are only ever added."""

    table = LedgerTable("audit", AuditEntry, ("id",), "id")

    def __init__(self, ledger: Connections) -> None:
        super().__init__(ledger)
        self.actor = OWNER
        """Who acts through this process."""

    @contextmanager
    def action(self, name: str, *objects: str, is_job: bool = False) -> Iterator[None]:
        """Name the action of a block; nested actions belong to it, except jobs.

        Args:
            name: What is done.
            objects: What it is about, besides the rows that it writes.
            is_job: Whether it is a job; jobs are recorded no matter who started them.
        """
        outer = _scope.get()
        inner = outer if outer is not None and not is_job else _Scope(name, objects)
        token = _scope.set(inner)
        try:
            yield
        finally:
            _scope.reset(token)

    def note_commit(
        self,
        at: datetime,
        written: Mapping[TableName, tuple[int, list[str]]],
        before: Mapping[TableName, int],
        after: Mapping[TableName, int],
    ) -> None:
        """Record a commit of the tables, within the ledger's transaction that makes it count.

        Args:
            at: The instant of the commit.
            written: For each table how many rows, and the ids of the first of them.
            before: The versions of all tables that counted until now.
            after: Those that count from now on.
        """
        changed = [table for table in after if before.get(table) != after[table]]
        if not changed or not (written or _scope.get()):  # files are joined, and no row changes
            return
        named = [id_ for table in DELETABLE if table in written for id_ in written[table][1]]
        self.add(
            at,
            "ingest" if "documents" in written else "write",
            named,
            {table: count for table, (count, _) in written.items() if count},
            {table: before[table] for table in changed if table in before},
            {table: after[table] for table in changed},
        )

    def add(
        self,
        at: datetime,
        action: str,
        objects: Iterable[str] = (),
        counts: Mapping[str, int] | None = None,
        before: Mapping[str, Noted] | None = None,
        after: Mapping[str, Noted] | None = None,
    ) -> None:
        """Record a change; within an action it is recorded as a part of that."""
        scope = _scope.get()
        action = scope.action if scope else action
        within = scope.objects if scope else ()
        named = tuple(map(storable, dict.fromkeys((*within, *objects))))[:MAX_OBJECTS]
        if action == FORGETTING:
            named = ()
        with self._ledger.transaction(durable=False) as connection:
            last, previous = _place(connection, _HEAD)
            entry = AuditEntry(
                last + 1, at, self.actor, action, named, _digest(named),
                dict(counts or {}), dict(before or {}), dict(after or {}),
            )  # fmt: skip
            entry = replace(entry, hash=_chain_digest(previous, entry))
            self.write([entry], durable=False)
            _set_meta(connection, _HEAD, f"{entry.id}:{entry.hash}")
            if entry.id % _TRIM_EVERY == 0:
                self._trim_old(connection, entry.id - MAX_AUDIT_ENTRIES)

    def _trim_old(self, connection: sqlite3.Connection, last: int) -> None:
        row = connection.execute("SELECT hash FROM audit WHERE id = ?", (last,)).fetchone()
        if row is not None:
            _set_meta(connection, _ANCHOR, f"{last}:{row[0]}")
            connection.execute("DELETE FROM audit WHERE id <= ?", (last,))

    def search(
        self,
        since: datetime | None = None,
        actor: str | None = None,
        about: str | None = None,
        limit: int = -1,
    ) -> list[AuditEntry]:
        """Return entries, the newest first.

        Args:
            since: Only from then on.
            actor: Only of this one; a bare name finds ``user NAME`` and ``agent NAME`` too.
            about: Only with an object that begins so.
            limit: At most this many; -1 for all.
        """
        return self.select(
            "at >= coalesce(?1, at)"
            " AND (?2 IS NULL OR actor IN (?2, 'user ' || ?2, 'agent ' || ?2))"
            " AND (?3 IS NULL OR EXISTS (SELECT 1 FROM json_each(objects)"
            " WHERE substr(value, 1, length(?3)) = ?3))",
            *(None if since is None else to_text(since), actor, about),
            order="id DESC",
            limit=limit,
        )

    def memories(self) -> set[str]:
        """Return the ids of all memories that entries name, there or not."""
        named = "SELECT DISTINCT value FROM audit, json_each(objects) WHERE value GLOB ?"
        return {id_ for (id_,) in self.rows(named, "m_*")}

    def problems(self) -> Iterator[str]:
        """Yield what is wrong with the chain: entries that were removed or altered."""
        with self._ledger.reading() as connection:
            anchor, head = (_place(connection, name) for name in (_ANCHOR, _HEAD))
        number, previous = anchor
        for entry in self.all():
            if entry.id != number + 1:
                yield _describe_gap(number + 1, entry.id - 1)
            elif entry.hash != _chain_digest(previous, entry):
                yield f"entry {entry.id} of the audit trail is not as it was written"
            elif entry.objects and entry.objects_digest != _digest(entry.objects):
                yield f"entry {entry.id} of the audit trail names other objects than it did"
            number, previous = entry.id, entry.hash
        if number < head[0]:
            yield _describe_gap(number + 1, head[0])
        elif (number, previous) != head:
            yield f"the audit trail ends with an entry {number} that was not written last"


def strike_audited(
    connection: sqlite3.Connection, ids: Collection[str], says: Callable[[str], bool]
) -> None:
    """Have no entry name what is forgotten; that something was done stays, and so does the chain.

    Args:
        connection: Within a transaction of the ledger's.
        ids: Of what is forgotten.
        says: Whether a name holds any of what is to be forgotten.
    """
    rows = connection.execute("SELECT id, objects FROM audit WHERE objects != '[]'").fetchall()
    spoken = [
        (number,)
        for number, objects in rows
        if any(each in ids or says(each) for each in json.loads(objects))
    ]
    connection.executemany("UPDATE audit SET objects = '[]' WHERE id = ?", spoken)


def _place(connection: sqlite3.Connection, name: str) -> tuple[int, str]:
    """Return the number and the hash of an entry that the ledger keeps under a name."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (name,)).fetchone()
    number, _, digest = ("0:" if row is None else str(row[0])).partition(":")
    return int(number), digest


def _set_meta(connection: sqlite3.Connection, key: str, value: str) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def _digest(objects: tuple[str, ...]) -> str:
    return hashlib.sha256(json.dumps(objects).encode()).hexdigest()[:32] if objects else ""


def _chain_digest(previous: str, entry: AuditEntry) -> str:
    content = (
        previous, entry.id, to_text(entry.at), entry.actor, entry.action, entry.objects_digest,
        dict(entry.counts), dict(entry.before), dict(entry.after),
    )  # fmt: skip
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _describe_gap(first: int, last: int) -> str:
    if first == last:
        return f"entry {first} of the audit trail is gone"
    return f"entries {first} to {last} of the audit trail are gone"
