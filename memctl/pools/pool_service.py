"""Shared pools as one agent sees them: every operation checks first what that agent may do.

Writes take a transaction of the ledger and nothing else, so they wait for no writer of tables.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from msgspec import convert
from msgspec.structs import asdict, replace

from memctl.errors import (
    AccessRefused,
    KnowledgeBaseUnavailable,
    LockedError,
    NotFoundError,
    UsageError,
    VersionConflict,
)
from memctl.identity import DEFAULT_SESSION, DEFAULT_USER, checked_name
from memctl.kb_settings import check_name
from memctl.literals import AccessLevel, Lifetime, PoolType, Visibility
from memctl.pools.pool_rules import (
    Access,
    Retention,
    data_size,
    fit_into,
    has_pool_expired,
    live_keys,
    may_read,
    may_write,
    not_from_future,
)
from memctl.pools.pool_values import (
    Data,
    PoolAgentUse,
    PoolChange,
    PoolKeyUse,
    PoolStatistics,
    PoolValue,
    changed_paths,
    checked_data,
    checked_value,
    count_entries,
    is_bulletin,
    merge_objects,
    parse_path,
    value_at,
    with_value,
    without_secrets,
    without_value,
)
from memctl.records import record_like
from memctl.store.ledger.audit_repositories import Noted
from memctl.store.ledger.pool_repositories import (
    Pool,
    PoolEvent,
    PoolHistoryEntry,
    PoolKey,
    PoolVersion,
    encode_json,
)
from memctl.validation import nearest

if TYPE_CHECKING:
    from memctl.store.ledger.ledger import Ledger

DEFAULT_POOL = "default"
"""The pool that everybody may read and write; it is made when it is first used."""
EVENT = "memory_pool_key_write"
"""The name of the event of a write to a key of a pool."""
LONGEST_EVENT_VALUE = 4_096
"""Bytes of JSON that an event takes along; of a longer value, its digest."""
_COUNTING_SECONDS = 1.0
_NAMED_POOLS = 8
_NO_RETENTION = Retention()


def readable_pools(ledger: Ledger, agent: str | None) -> frozenset[str] | None:
    """Return the pools that an agent may read, expired ones too; None for all where none is named.

    For what reads the ledger's tables as they are.
    """
    if agent is None:
        return None
    return frozenset(pool.pool_id for pool in ledger.pools.all() if may_read(pool, agent))


class Pools:
    """The pools of one knowledge base, for one agent.

    Args:
        ledger: Where they are kept.
        clock: Returns the current time.
        caller: The agent or user that asks; what it may do is checked here, below every surface.
        user: The user that the caller makes pools for.
        redact: Whether secrets are taken out of texts before they are stored.
        require_writable: Raises where the knowledge base must not be changed.
    """

    def __init__(
        self,
        ledger: Ledger,
        clock: Callable[[], datetime],
        caller: str = DEFAULT_USER,
        *,
        user: str | None = None,
        redact: bool = False,
        require_writable: Callable[[], None] | None = None,
    ) -> None:
        self._ledger = ledger
        self._pools = ledger.pools
        self._clock = clock
        self.caller = checked_name(caller, "an agent") or DEFAULT_USER
        self._user = user
        self._redact = redact
        self._require_writable = require_writable or ledger.require_writable

    # --- pools -----------------------------------------------------------------------------------

    def create(
        self,
        pool_id: str,
        *,
        name: str = "",
        pool_type: PoolType | None = None,
        visibility: Visibility | None = None,
        lifetime: Lifetime | None = None,
        retention: Retention = _NO_RETENTION,
        expires_at: datetime | None = None,
        access: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        session_id: str | None = None,
        persist: bool = False,
    ) -> Pool:
        """Make a pool; the caller owns it.

        With a run, a pool that persists across executions and that the caller may write to is
        bound to that run with what it holds; a pool that has expired is made anew.

        Args:
            pool_id: 1 to 64 of a-z, 0-9, - and _.
            name: For people; by default the id.
            pool_type: Whom it is for; by default task_scoped with a run, else shared.
            visibility: By default account.
            lifetime: By default execution with a run, session with a conversation, else
                persistent.
            retention: How long keys stay, how big it gets, and what goes then.
            expires_at: When the whole pool is no longer to be read.
            access: Rights, as ``Access.parse`` reads them; by default the owner's alone.
            run_id: The run of a workflow that it belongs to.
            session_id: The conversation that it belongs to.
            persist: Whether it outlives its run, and later runs bind to it again.

        Raises:
            UsageError: The id is taken, or a value cannot be used.
        """
        check_name(pool_id, "a pool")
        self._require_writable()
        retention.check()
        now = self._clock()
        if expires_at is not None and expires_at <= now:
            raise UsageError("the pool would have expired before it is made", "name a later date")
        run_id = checked_name(run_id, "a run")
        session_id = checked_name(session_id, "a conversation")
        if lifetime is None:
            lifetime = "execution" if run_id else "session" if session_id else "persistent"
        if lifetime == "session":
            session_id = session_id or DEFAULT_SESSION
        kind: PoolType = pool_type or ("task_scoped" if run_id else "shared")
        made = Pool(
            pool_id,
            _title(name) or pool_id,
            kind,
            visibility or "account",
            lifetime,
            self.caller,
            now,
            now,
            expires_at=expires_at,
            retention_policy=retention.to_json(),
            access_control=Access.parse(access or {}, kind).to_json(),
            data_size_bytes=len(encode_json({})),
            persist_across_executions=persist,
            run_id=run_id,
            session_id=session_id,
            user_id=self._user,
        )
        with self._ledger.transaction():
            present = self._default() if pool_id == DEFAULT_POOL else self._pools.find(pool_id)
            if present is not None and not has_pool_expired(present, now):
                return self._bind(present, run_id)
            self._pools.remove_whole(pool_id)
            self._pools.save(made)
            self._ledger.audit.add(now, "pool create", [pool_id])
        return made

    def _bind(self, pool: Pool, run_id: str | None) -> Pool:
        """Return a pool that is there already, bound to another run."""
        if run_id is None or not pool.persist_across_executions or not may_write(pool, self.caller):
            raise UsageError(
                f"pool {pool.pool_id!r} is there already", "choose another id: memctl pool list"
            )
        bound = replace(pool, run_id=run_id)
        self._pools.save(bound)
        return bound

    def list(self, *, include_expired: bool = False, run_id: str | None = None) -> Sequence[Pool]:
        """Return the pools that the caller may read, without those that have expired."""
        now = self._clock()
        return [
            pool
            for pool in self._pools.all()
            if may_read(pool, self.caller)
            and (include_expired or not has_pool_expired(pool, now))
            and run_id in (None, pool.run_id)
        ]

    def get(self, pool_id: str) -> Pool:
        """Return the settings and counts of a pool.

        Raises:
            NotFoundError: There is none of that id, or it has expired.
            AccessRefused: The caller may not read it.
        """
        pool = self._readable(pool_id)
        size = data_size(self._live_keys(pool, self._clock()).values())
        return replace(pool, data_size_bytes=size)

    def require_deletable(self, pool_id: str) -> Pool:
        """Return a pool that the caller may delete; for errors see ``delete``."""
        if pool_id == DEFAULT_POOL:
            raise AccessRefused(
                "the default pool cannot be deleted",
                "empty it instead: memctl pool write default --all '{}'",
            )
        return self._require_owned(pool_id, "delete")

    def require_grantable(self, pool_id: str) -> Pool:
        """Return a pool whose rights the caller may change; for errors see ``grant``."""
        return self._require_owned(pool_id, "change the rights in")

    def delete(self, pool_id: str) -> Pool:
        """Delete a pool with its history; return what it was.

        Raises:
            NotFoundError: There is none of that id.
            AccessRefused: The caller does not own it, or it is the default pool.
        """
        self._require_writable()
        with self._ledger.transaction():
            pool = self.require_deletable(pool_id)
            self._pools.remove_whole(pool_id)
            self._ledger.audit.add(self._clock(), "pool delete", [pool_id])
        return pool

    def grant(self, pool_id: str, agent: str | None, level: AccessLevel = "read") -> Pool:
        """Give an agent a right in a pool, in place of the one it has; return the pool.

        Args:
            pool_id: The pool.
            agent: Whom to grant it; None for everybody.
            level: ``read``, or ``write``, which includes it.

        Raises:
            AccessRefused: The caller does not own the pool.
        """
        return self._with_access(
            pool_id, agent, lambda pool: Access.of(pool).granting(agent, level)
        )

    def revoke(self, pool_id: str, agent: str | None) -> Pool:
        """Take back what an agent, or everybody for None, was granted in a pool.

        Raises:
            AccessRefused: The caller does not own the pool.
            UsageError: The agent is the owner.
        """

        def revoked(pool: Pool) -> Access:
            """Return the rights without those of the agent."""
            if agent == pool.owner:
                raise UsageError(f"{agent!r} owns pool {pool_id!r}, and keeps every right in it")
            return Access.of(pool).revoking(agent)

        return self._with_access(pool_id, agent, revoked)

    def _with_access(
        self, pool_id: str, agent: str | None, change: Callable[[Pool], Access]
    ) -> Pool:
        """Change what an agent, or everybody for None, may do in a pool."""
        self._require_writable()
        with self._ledger.transaction():
            pool = self.require_grantable(pool_id)
            changed = replace(pool, access_control=change(pool).to_json())
            self._pools.save(changed)
            self._ledger.audit.add(
                self._clock(),
                "pool rights",
                [pool_id, "everybody" if agent is None else f"agent {agent}"],
                before=_noted_level(Access.of(pool), agent),
                after=_noted_level(Access.of(changed), agent),
            )
        return changed

    def accessible_by(self, pool_id: str, agent: str) -> bool:
        """Return whether an agent may read a pool."""
        return may_read(self._existing(pool_id), agent)

    def writable_by(self, pool_id: str, agent: str) -> bool:
        """Return whether an agent may write to a pool."""
        return may_write(self._existing(pool_id), agent)

    # --- data ------------------------------------------------------------------------------------

    def read(self, pool_id: str, key: str | None = None) -> PoolValue:
        """Return the data of a pool, or the value that a path in it leads to.

        The reading is counted, except where the ledger cannot be written now.

        Raises:
            NotFoundError: There is no such pool or key.
            AccessRefused: The caller may not read it.
        """
        path = None if key is None else parse_path(key)
        pool = self._readable(pool_id)  # before the data: a version must never be too new
        now = self._clock()
        keys = self._live_keys(pool, now)
        data = {name: entry.value for name, entry in keys.items()}
        value = data if path is None else value_at(data, path)
        with (
            suppress(KnowledgeBaseUnavailable, LockedError),
            self._ledger.transaction(_COUNTING_SECONDS, durable=False),
        ):
            self._require_writable()
            self._pools.note_read(pool, self.caller, keys if path is None else path[:1], now)
        return PoolValue(pool_id, key, value, pool.version)

    def write(
        self, pool_id: str, key: str, value: object, *, if_version: int | None = None
    ) -> PoolChange:
        """Store a value where a path leads; objects on the way are made.

        Args:
            pool_id: The pool.
            key: A path like ``agent_bulletin.market_regime``.
            value: Anything that JSON has.
            if_version: Only if this is still the version of the pool.

        Raises:
            NotFoundError: There is no such pool.
            AccessRefused: The caller may not write to it.
            UsageError: The path leads through a value that is no object, or JSON has no such value.
            VersionConflict: The pool has changed since that version.
            QuotaExceeded: The pool would be too big.
        """
        path, checked = parse_path(key), self._clean(checked_value(value), key.rpartition(".")[2])
        return self._change(
            pool_id,
            "write",
            lambda data: with_value(data, path, checked),
            if_version,
            written=path[:1],
            path=key,
        )

    def check_write(self, pool_id: str, key: str, value: object) -> None:
        """Refuse what ``write`` would refuse, without writing anything."""
        path, checked = parse_path(key), self._clean(checked_value(value), key.rpartition(".")[2])
        self._require_writable()
        pool, now = self._writable(pool_id), self._clock()
        keys = live_keys(pool, self._pools.keys.of(pool_id), now)
        data = with_value({name: entry.value for name, entry in keys.items()}, path, checked)
        name = path[0]
        fresh = {name: self._key(pool, name, data[name], pool.version + 1, now, keys.get(name))}
        fit_into(pool, {**keys, **fresh}, fresh)

    def remove(self, pool_id: str, key: str, *, if_version: int | None = None) -> PoolChange:
        """Remove the value that a path leads to; see ``write``.

        Raises:
            NotFoundError: There is no such pool or key.
        """
        path = parse_path(key)
        return self._change(
            pool_id,
            "remove",
            lambda data: without_value(data, path),
            if_version,
            written=path[:1],
            path=key,
        )

    def replace(self, pool_id: str, data: object, *, if_version: int | None = None) -> PoolChange:
        """Replace all data of a pool by an object; see ``write``."""
        checked = self._clean(checked_data(data))
        return self._change(pool_id, "replace", lambda _: checked, if_version, written=checked)

    def merge(self, pool_id: str, partial: object, *, if_version: int | None = None) -> PoolChange:
        """Merge an object into the data: objects deeply, lists replaced; see ``write``."""
        checked = self._clean(checked_data(partial))
        return self._change(
            pool_id, "merge", lambda data: merge_objects(data, checked), if_version, written=checked
        )

    def restore(self, pool_id: str, version: int, *, if_version: int | None = None) -> PoolChange:
        """Write again what a pool held at one of its latest versions; see ``write``.

        Raises:
            NotFoundError: That version is not kept.
        """
        found = self._version(self._readable(pool_id), version)
        return self._change(
            pool_id, f"restore {version}", lambda _: found, if_version, written=found
        )

    def _clean(self, value: Any, key: str = "") -> Any:
        return without_secrets(value, key) if self._redact else value

    def _change(
        self,
        pool_id: str,
        action: str,
        edit: Callable[[Data], Data],
        if_version: int | None,
        *,
        written: Collection[str],
        path: str = "",
    ) -> PoolChange:
        """Change the data of a pool in one transaction.

        Args:
            pool_id: The pool.
            action: What the history calls the change.
            edit: Gives the new data.
            if_version: As for ``write``.
            written: The top-level keys that count as written, changed or not.
            path: What subscribers learn was written; by default whatever differs.
        """
        self._require_writable()
        with self._ledger.transaction():
            pool, now = self._writable(pool_id), self._clock()
            version = pool.version + 1
            self._ledger.audit.add(
                now,
                f"pool {action}",
                [pool_id, *([path] if path else written)],
                before={"version": pool.version},
                after={"version": version},
            )
            if if_version not in (None, pool.version):
                raise VersionConflict(
                    f"pool {pool_id!r} is at version {pool.version}, not {if_version}",
                    f"read it again: memctl pool read {pool_id} --with-version",
                )
            stored = self._pools.keys.of(pool_id)
            keys = live_keys(pool, stored, now)
            before = {name: entry.value for name, entry in keys.items()}
            after = edit(before)
            fresh = {
                name: self._key(pool, name, after[name], version, now, keys.get(name))
                for name in written
                if name in after
            }
            unchanged = {name: not_from_future(keys[name], now) for name in keys if name in after}
            made, evicted = fit_into(pool, {**unchanged, **fresh}, fresh)
            self._save_keys(pool_id, stored, made)
            notified = (path,) if path else changed_paths(before, after)
            changed = replace(
                pool,
                version=version,
                updated_at=now,
                data_size_bytes=data_size(made.values()),
                write_count=pool.write_count + 1,
            )
            self._save_version(changed, action, notified, made)
            self._pools.events.add(
                [self._event(pool, key, after, version, now) for key in notified], pool_id
            )
            self._pools.agents.note(pool, self.caller, now, is_write=True)
        return PoolChange(pool_id, version, notified, evicted, changed.data_size_bytes)

    def _save_keys(
        self, pool_id: str, stored: Sequence[PoolKey], pool_keys: Mapping[str, PoolKey]
    ) -> None:
        """Store the keys that a pool has after a change, and remove those that it had before."""
        unchanged = {id(entry) for entry in stored}
        self._pools.keys.save(*(each for each in pool_keys.values() if id(each) not in unchanged))
        for entry in stored:
            if entry.key not in pool_keys:
                self._pools.keys.remove(pool_id, entry.key)

    def _save_version(
        self, pool: Pool, action: str, notified: tuple[str, ...], keys: Mapping[str, PoolKey]
    ) -> None:
        """Store a pool as a change has left it, and the version that this makes in its history."""
        self._pools.save(pool)
        self._pools.versions.add(
            PoolVersion(
                pool.pool_id,
                pool.version,
                pool.updated_at,
                self.caller,
                action,
                notified,
                pool.data_size_bytes,
                {name: entry.value for name, entry in keys.items()},
                pool.session_id,
                pool.user_id,
            )
        )

    def _key(
        self,
        pool: Pool,
        name: str,
        value: Any,
        version: int,
        now: datetime,
        previous: PoolKey | None,
    ) -> PoolKey:
        size = len(encode_json(name).encode()) + 1 + len(encode_json(value).encode())
        reads = previous.reads if previous else 0
        return PoolKey(
            pool.pool_id,
            name,
            value,
            version,
            now,
            self.caller,
            size,
            reads,
            pool.session_id,
            pool.user_id,
        )

    def _event(self, pool: Pool, key: str, after: Data, version: int, now: datetime) -> PoolEvent:
        value, digest, removed = None, None, False
        try:
            value = value_at(after, tuple(key.split(".")))
        except NotFoundError:
            removed = True
        text = encode_json(value).encode()
        if len(text) > LONGEST_EVENT_VALUE:
            value, digest = None, hashlib.sha256(text).hexdigest()
        return PoolEvent(
            None,
            pool.pool_id,
            key,
            is_bulletin(key),
            value,
            digest,
            removed,
            self.caller,
            version,
            now,
            pool.session_id,
            pool.user_id,
        )

    # --- history, events and numbers -------------------------------------------------------------

    def history(self, pool_id: str) -> Sequence[PoolHistoryEntry]:
        """Return the writes to a pool whose data is kept, newest first; at most 20."""
        return self._pools.versions.history(self._readable(pool_id).pool_id)

    def read_version(self, pool_id: str, version: int, key: str | None = None) -> PoolValue:
        """Return the data, or a value in it, that a pool held at one of its latest versions.

        Raises:
            NotFoundError: That version is not kept, or has no such key.
        """
        data = self._version(self._readable(pool_id), version)
        value = data if key is None else value_at(data, parse_path(key))
        return PoolValue(pool_id, key, value, version)

    def _version(self, pool: Pool, version: int) -> Data:
        found = self._pools.versions.find(pool.pool_id, version)
        if found is None:
            versions = [entry.version for entry in self._pools.versions.history(pool.pool_id)]
            listed = ", ".join(map(str, versions[:_NAMED_POOLS]))
            raise NotFoundError(
                f"version {version} of pool {pool.pool_id!r} is not kept",
                f"there are {listed}" if versions else "nothing has been written to it yet",
            )
        data: Data = found.data
        return data

    def events(
        self, pool_id: str, *, after: int, bulletins_only: bool = False
    ) -> Sequence[PoolEvent]:
        """Return the writes to keys of a pool that came after one, oldest first.

        Args:
            pool_id: The pool.
            after: The id of an event, as ``last_event`` gives the latest.
            bulletins_only: Leave out all keys but ``agent_bulletin`` and what is below it.
        """
        self._readable(pool_id)
        found = self._pools.events.after(after, pool_id)
        return [event for event in found if event.is_bulletin or not bulletins_only]

    def events_since(self, pool_id: str, version: int) -> Sequence[PoolEvent]:
        """Return the writes to keys of a pool after one of its versions, oldest first."""
        return [event for event in self.events(pool_id, after=0) if event.version > version]

    def bulletins(self, *, after: int) -> Sequence[PoolEvent]:
        """Return the bulletins of all pools that the caller may read, oldest first.

        Args:
            after: The id of an event, as ``last_event`` gives the latest.
        """
        bulletins = [event for event in self._pools.events.after(after) if event.is_bulletin]
        readable = {pool.pool_id for pool in self.list()} if bulletins else set()
        return [event for event in bulletins if event.pool_id in readable]

    def last_event(self) -> int:
        """Return the id of the latest event of all pools; 0 before the first."""
        return self._pools.events.last_id()

    def statistics(self, pool_id: str) -> PoolStatistics:
        """Return a pool in numbers."""
        pool = self._readable(pool_id)
        keys = self._live_keys(pool, self._clock())
        retention = Retention.of(pool)
        agents = sorted(
            self._pools.agents.of(pool_id), key=lambda each: (-each.reads - each.writes, each.agent)
        )
        return PoolStatistics(
            pool_id=pool_id,
            entries=count_entries({name: entry.value for name, entry in keys.items()}),
            data_size_bytes=data_size(keys.values()),
            max_size_bytes=retention.max_size_bytes,
            version=pool.version,
            read_count=pool.read_count,
            write_count=pool.write_count,
            last_read_at=pool.last_read_at,
            last_written_at=pool.updated_at if pool.version else None,
            versions_kept=self._pools.versions.count("pool_id = ?", pool_id),
            by_agent=convert(agents, tuple[PoolAgentUse, ...], from_attributes=True),
            by_key=tuple(_key_use(entry, retention) for entry in keys.values()),
        )

    # --- contexts of a run -----------------------------------------------------------------------

    def require_endable(
        self, *, run_id: str | None = None, session_id: str | None = None
    ) -> Sequence[Pool]:
        """Return the pools that end with a run or a conversation, which the caller must own.

        Those that persist across executions stay.

        Raises:
            NotFoundError: None belongs to it.
            AccessRefused: Another agent owns one of them.
        """
        found = self.of(run_id=run_id, session_id=session_id)
        if not found:
            runs = sorted({pool.run_id for pool in self.list() if pool.run_id})
            known = f"there are the runs {', '.join(runs[:_NAMED_POOLS])}" if runs else ""
            of_what = f"run {run_id!r}" if session_id is None else f"conversation {session_id!r}"
            raise NotFoundError(f"no pool belongs to {of_what}", known)
        ending = [pool for pool in found if not pool.persist_across_executions]
        for pool in ending:
            self._require_owner(pool, "end")
        return ending

    def of(self, *, run_id: str | None = None, session_id: str | None = None) -> Sequence[Pool]:
        """Return all pools of a run, or of a conversation, no matter who may read them.

        Raises:
            UsageError: Neither is named, or both are.
        """
        if session_id is None and run_id is not None:
            return self._pools.of_run(run_id)
        if run_id is None and session_id is not None:
            return self._pools.of_session(session_id)
        raise UsageError("end what?", "name a run with --run, or a conversation with --session")

    def release(self, ending: Iterable[Pool], *, unchanged: bool = False) -> None:
        """Delete pools of a run or a conversation, all or none; those already gone are skipped.

        Args:
            ending: The pools, as ``require_endable`` returned them.
            unchanged: Only if none of them has changed since.

        Raises:
            AccessRefused: Another agent owns one of them by now.
            VersionConflict: One of them has changed.
        """
        self._require_writable()
        with self._ledger.transaction():
            for previous in ending:
                pool = self._pools.find(previous.pool_id)
                if pool is None:
                    continue
                self._require_owner(pool, "end")
                if unchanged and pool.version != previous.version:
                    raise VersionConflict(
                        f"pool {pool.pool_id!r} was written to while it was archived",
                        "run it again",
                    )
                self._pools.remove_whole(pool.pool_id)

    # --- finding and checking --------------------------------------------------------------------

    def _existing(self, pool_id: str) -> Pool:
        """Return a pool, expired or not; the default one is made if need be."""
        if pool_id == DEFAULT_POOL:
            return self._default()
        found = self._pools.find(pool_id)
        if found is None:
            raise self._unknown(pool_id)
        return found

    def _default(self) -> Pool:
        found = self._pools.find(DEFAULT_POOL)
        if found is not None:
            return found
        self._require_writable()
        now = self._clock()
        public = Access.parse({"public": True}, "shared")
        made = Pool(
            DEFAULT_POOL,
            "Default",
            "shared",
            "account",
            "persistent",
            DEFAULT_USER,
            now,
            now,
            retention_policy=Retention().to_json(),
            access_control=public.to_json(),
            data_size_bytes=len(encode_json({})),
        )
        self._pools.write([made], "DO NOTHING")  # another process may have been a moment faster
        return self._pools.find(DEFAULT_POOL) or made

    def _unknown(self, pool_id: str) -> NotFoundError:
        known = [pool.pool_id for pool in self.list()]
        listed = ", ".join(known[:_NAMED_POOLS])
        hint = f"there are {listed}" if known else "make it: memctl pool create NAME"
        hint = f"{nearest(pool_id, known)} {hint}".strip()
        return NotFoundError(f"there is no pool {pool_id[:64]!r}", hint)

    def _active(self, pool: Pool) -> Pool:
        if has_pool_expired(pool, self._clock()):
            raise NotFoundError(
                f"pool {pool.pool_id!r} expired at {pool.expires_at:%Y-%m-%d %H:%M} UTC",
                f"make it anew: memctl pool create {pool.pool_id}",
            )
        return pool

    def _readable(self, pool_id: str) -> Pool:
        pool = self._existing(pool_id)
        if not may_read(pool, self.caller):
            raise self._denial(pool, "read")
        return self._active(pool)

    def _writable(self, pool_id: str) -> Pool:
        pool = self._existing(pool_id)
        if not may_write(pool, self.caller):
            raise self._denial(pool, "write")
        return self._active(pool)

    def _denial(self, pool: Pool, level: AccessLevel) -> AccessRefused:
        action = "read" if level == "read" else "write to"
        return AccessRefused(
            f"{self.caller!r} may not {action} pool {pool.pool_id!r}",
            f"its owner {pool.owner!r} can grant the level {level}",
        )

    def _require_owned(self, pool_id: str, action: str) -> Pool:
        pool = self._existing(pool_id)
        self._require_owner(pool, action)
        return pool

    def _require_owner(self, pool: Pool, action: str) -> None:
        if pool.owner != self.caller:
            raise AccessRefused(
                f"{self.caller!r} may not {action} pool {pool.pool_id!r}",
                f"only its owner {pool.owner!r} may",
            )

    def _live_keys(self, pool: Pool, now: datetime) -> dict[str, PoolKey]:
        return live_keys(pool, self._pools.keys.of(pool.pool_id), now)


def event_row(kb: str, event: PoolEvent) -> dict[str, Any]:
    """Return an event as those who follow a pool of a knowledge base get it."""
    values = asdict(event)
    del values["session_id"], values["user_id"]
    return {"event": EVENT, "kb": kb, **values}


def has_expired(ledger: Ledger, now: datetime) -> bool:
    """Return whether there is a pool that has expired, or a key that has outlived its time."""
    return any(True for _ in _find_expired(ledger, now))


def remove_expired(ledger: Ledger, now: datetime) -> int:
    """Delete the pools that have expired, and the keys that have outlived their time.

    Returns:
        How many of both.
    """
    with ledger.transaction():
        gone = list(_find_expired(ledger, now))
        for pool_id, key in gone:
            if key is None:
                ledger.pools.remove_whole(pool_id)
            else:
                ledger.pools.keys.remove(pool_id, key)
    return len(gone)


def _find_expired(ledger: Ledger, now: datetime) -> Iterator[tuple[str, str | None]]:
    """Yield the ids of pools that have expired, each with None, and of others with their keys."""
    for pool in ledger.pools.all():
        ttl = Retention.of(pool).ttl_seconds
        if has_pool_expired(pool, now):
            yield pool.pool_id, None
        elif ttl is not None:
            since = now - timedelta(seconds=ttl)
            for key in ledger.pools.keys.keys_written_until(pool.pool_id, since):
                yield pool.pool_id, key


def _title(name: str) -> str:
    title = " ".join(name.split())
    if len(title) > 200 or not title.isprintable():
        raise UsageError("the name of a pool has at most 200 characters that can be shown")
    return title


def _noted_level(access: Access, agent: str | None) -> dict[str, Noted]:
    """Return the level of a right as the audit trail has it."""
    level = access.level_of(agent)
    return {} if level is None else {"level": level}


def _key_use(entry: PoolKey, retention: Retention) -> PoolKeyUse:
    until = None
    if retention.ttl_seconds is not None:
        until = entry.written_at + timedelta(seconds=retention.ttl_seconds)
    return record_like(PoolKeyUse, entry, expires_at=until)
