"""The books of the ledger: inbox files, jobs, events, the daemon, queries and accesses.

Each book is one table behind small typed methods.  Instants are kept as ISO 8601 text in UTC with
microseconds, so that they sort as text; paths as bytes, for they need not be UTF-8.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from memctl.schema.storable_text import storable

FileState = Literal["seen", "claimed", "indexed", "done", "failed", "gone"]
JobState = Literal["running", "done", "failed", "abandoned", "undone"]

MAX_EVENTS = 1_000


class Connections(Protocol):
    """What a book needs of the ledger it belongs to."""

    def transaction(self, *, durable: bool = True) -> AbstractContextManager[sqlite3.Connection]:
        """Write; what is not durable may be taken back by a power cut."""
        ...

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """Read."""
        ...


def to_text(instant: datetime) -> str:
    """Return an instant as text that sorts."""
    return instant.astimezone(UTC).isoformat(timespec="microseconds")


def from_text(text: str) -> datetime:
    """Return the instant that :func:`to_text` wrote."""
    return datetime.fromisoformat(text)


# --- inbox files ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of an inbox and how far it has come."""

    path: str
    inbox: str
    size: int
    mtime_ns: int
    state: FileState
    first_seen: datetime
    updated_at: datetime
    sha256: str | None = None
    document_id: str | None = None
    reason: str = ""
    hint: str = ""


FILE_COLUMNS = (
    "path, inbox, size, mtime_ns, state, first_seen, updated_at, sha256, document_id, reason, hint"
)


class FileRepository:
    """Files of the inboxes, by path."""

    def __init__(self, ledger: Connections) -> None:
        self._ledger = ledger

    def put(self, entry: FileEntry) -> None:
        """Keep an entry, in place of an earlier one of the same path."""
        with self._ledger.transaction() as connection:
            connection.execute(
                f"INSERT OR REPLACE INTO files ({FILE_COLUMNS})"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                _file_values(entry),
            )

    def get(self, path: str) -> FileEntry | None:
        """Return the entry of a path."""
        found = self._select("WHERE path = ?", (os.fsencode(path),))
        return found[0] if found else None

    def entries(
        self, states: Iterable[FileState] = (), inbox: str | None = None
    ) -> list[FileEntry]:
        """Return entries in some states (all when empty), the longest known first."""
        wanted = list(states)
        conditions = ["1"]
        values: list[Any] = [*wanted]
        if wanted:
            conditions.append(f"state IN ({', '.join('?' * len(wanted))})")
        if inbox is not None:
            conditions.append("inbox = ?")
            values.append(os.fsencode(inbox))
        clause = f"WHERE {' AND '.join(conditions)} ORDER BY first_seen, path"
        return self._select(clause, tuple(values))

    def of_documents(self, ids: Iterable[str]) -> dict[str, FileEntry]:
        """Return the files that documents were made from and that lie where they belong, by id.

        Of several with the same content it is the first.
        """
        wanted = json.dumps(list(ids))
        clause = (
            "WHERE state = 'done' AND document_id IN (SELECT value FROM json_each(?))"
            " ORDER BY first_seen DESC, path"
        )
        return {entry.document_id or "": entry for entry in self._select(clause, (wanted,))}

    def move(
        self,
        path: str,
        state: FileState,
        now: datetime,
        *,
        sha256: str | None = None,
        document_id: str | None = None,
        reason: str = "",
        hint: str = "",
    ) -> None:
        """Note the next step of a file that is in the book; hash and document are kept if known."""
        with self._ledger.transaction() as connection:
            connection.execute(
                "UPDATE files SET state = ?, updated_at = ?, sha256 = coalesce(?, sha256),"
                " document_id = coalesce(?, document_id), reason = ?, hint = ? WHERE path = ?",
                (state, to_text(now), sha256, document_id, reason, hint, os.fsencode(path)),
            )

    def remove(self, path: str) -> None:
        """Strike a path from the book."""
        with self._ledger.transaction() as connection:
            connection.execute("DELETE FROM files WHERE path = ?", (os.fsencode(path),))

    def let_go(self, document_id: str) -> None:
        """Note that a document was deleted by hand: its files stay dealt with."""
        with self._ledger.transaction() as connection:
            connection.execute(
                "UPDATE files SET document_id = NULL WHERE document_id = ?", (document_id,)
            )

    def counts(self) -> dict[FileState, int]:
        """Return how many files are in each state that has any."""
        with self._ledger.reading() as connection:
            return dict(connection.execute("SELECT state, count(*) FROM files GROUP BY state"))

    def oldest(self, state: FileState) -> FileEntry | None:
        """Return the entry that is longest known among those in a state."""
        found = self._select("WHERE state = ? ORDER BY first_seen LIMIT 1", (state,))
        return found[0] if found else None

    def _select(self, clause: str, values: tuple[Any, ...]) -> list[FileEntry]:
        with self._ledger.reading() as connection:
            rows = connection.execute(f"SELECT {FILE_COLUMNS} FROM files {clause}", values)
            return [_file_entry(row) for row in rows.fetchall()]


def _file_values(entry: FileEntry) -> tuple[Any, ...]:
    return (
        os.fsencode(entry.path),
        os.fsencode(entry.inbox),
        entry.size,
        entry.mtime_ns,
        entry.state,
        to_text(entry.first_seen),
        to_text(entry.updated_at),
        entry.sha256,
        entry.document_id,
        entry.reason,
        entry.hint,
    )


def _file_entry(row: tuple[Any, ...]) -> FileEntry:
    path, inbox, size, mtime_ns, state, first_seen, updated_at, *rest = row
    paths = os.fsdecode(path), os.fsdecode(inbox)
    return FileEntry(
        *paths, size, mtime_ns, state, from_text(first_seen), from_text(updated_at), *rest
    )


# --- jobs ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Job:
    """A piece of work that takes a while: an ingest, a consolidation, an upkeep."""

    id: int
    kind: str
    state: JobState
    started_at: datetime
    finished_at: datetime | None
    detail: Mapping[str, Any] = field(default_factory=dict)


_JOB_COLUMNS = "id, kind, state, started_at, finished_at, detail"


class JobRepository:
    """Jobs, newest last."""

    def __init__(self, ledger: Connections) -> None:
        self._ledger = ledger

    def start(self, kind: str, now: datetime, detail: Mapping[str, Any] | None = None) -> int:
        """Note that a job has begun and return its number."""
        with self._ledger.transaction() as connection:
            cursor = connection.execute(
                "INSERT INTO jobs (kind, state, started_at, detail) VALUES (?, 'running', ?, ?)",
                (kind, to_text(now), json.dumps(dict(detail or {}))),
            )
        return int(cursor.lastrowid or 0)

    def finish(
        self, job: int, state: JobState, now: datetime, detail: Mapping[str, Any] | None = None
    ) -> None:
        """Note how a job ended; ``detail`` replaces what was noted at its start when given.

        One that was taken back while it ran stays so.
        """
        text = None if detail is None else json.dumps(dict(detail))
        with self._ledger.transaction() as connection:
            connection.execute(
                "UPDATE jobs SET state = ?, finished_at = ?, detail = coalesce(?, detail)"
                " WHERE id = ? AND state != 'undone'",
                (state, to_text(now), text, job),
            )

    def take_back(self, job: int, now: datetime) -> None:
        """Note that what a job did has been taken back."""
        with self._ledger.transaction() as connection:
            connection.execute(
                "UPDATE jobs SET state = 'undone', finished_at = coalesce(finished_at, ?)"
                " WHERE id = ?",
                (to_text(now), job),
            )

    def note(self, job: int, detail: Mapping[str, Any]) -> None:
        """Note how far a job has come, in place of what was noted before."""
        with self._ledger.transaction() as connection:
            connection.execute(
                "UPDATE jobs SET detail = ? WHERE id = ?", (json.dumps(dict(detail)), job)
            )

    def fail(self, job: int, now: datetime, message: str, hint: str) -> None:
        """Note why a job failed, also among the events, which the status shows."""
        with self._ledger.transaction() as connection:
            self.finish(job, "failed", now, {"error": message, "hint": hint})
            kinds = connection.execute("SELECT kind FROM jobs WHERE id = ?", (job,)).fetchone()
            EventRepository(self._ledger).add(Event(now, "failed", message, hint, kinds[0]))

    def abandon(self, now: datetime, kind: str | None = None) -> int:
        """Mark jobs that still run in the book, though their process is gone, as abandoned."""
        with self._ledger.transaction() as connection:
            cursor = connection.execute(
                "UPDATE jobs SET state = 'abandoned', finished_at = ?"
                " WHERE state = 'running' AND kind = coalesce(?, kind)",
                (to_text(now), kind),
            )
        return cursor.rowcount

    def get(self, job: int) -> Job | None:
        """Return the job of a number."""
        with self._ledger.reading() as connection:
            row = connection.execute(f"SELECT {_JOB_COLUMNS} FROM jobs WHERE id = ?", (job,))
            found = row.fetchone()
        return None if found is None else _job(found)

    def unfinished(self, kind: str) -> list[Job]:
        """Return the jobs of a kind that have begun and are not done, the newest first."""
        return [job for job in self.recent(1_000, kind) if job.state != "done"]

    def last(self, kind: str, state: JobState | None = None) -> Job | None:
        """Return the newest job of a kind."""
        found = self.recent(1, kind, state)
        return found[0] if found else None

    def recent(
        self, limit: int = 20, kind: str | None = None, state: JobState | None = None
    ) -> list[Job]:
        """Return jobs, newest first; all of them with a limit of -1."""
        with self._ledger.reading() as connection:
            rows = connection.execute(
                f"SELECT {_JOB_COLUMNS} FROM jobs"
                " WHERE kind = coalesce(?, kind) AND state = coalesce(?, state)"
                " ORDER BY id DESC LIMIT ?",
                (kind, state, limit),
            ).fetchall()
        return [_job(row) for row in rows]


def _job(row: tuple[Any, ...]) -> Job:
    number, kind, state, started, finished, detail = row
    ended = None if finished is None else from_text(finished)
    return Job(number, kind, state, from_text(started), ended, json.loads(detail))


# --- events --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Event:
    """Something worth telling: mostly an error, with the file or job it is about."""

    at: datetime
    kind: str
    message: str
    hint: str = ""
    subject: str = ""


class EventRepository:
    """The latest events; older ones fall off the end."""

    def __init__(self, ledger: Connections) -> None:
        self._ledger = ledger

    def add(self, event: Event) -> None:
        """Note an event."""
        values = (to_text(event.at), event.kind, event.message, event.hint, event.subject)
        clean = [storable(value) for value in values]
        with self._ledger.transaction() as connection:
            connection.execute(
                "INSERT INTO events (at, kind, message, hint, subject) VALUES (?, ?, ?, ?, ?)",
                clean,
            )
            prune_oldest(connection, "events", MAX_EVENTS)

    def recent(self, limit: int = 20, kind: str | None = None) -> list[Event]:
        """Return events, newest first."""
        with self._ledger.reading() as connection:
            rows = connection.execute(
                "SELECT at, kind, message, hint, subject FROM events"
                " WHERE kind = coalesce(?, kind) ORDER BY id DESC LIMIT ?",
                (kind, limit),
            ).fetchall()
        return [Event(from_text(at), *rest) for at, *rest in rows]


def prune_oldest(connection: sqlite3.Connection, table: str, most: int) -> None:
    """Strike all but the newest rows of a book."""
    connection.execute(
        f"DELETE FROM {table} WHERE id <= (SELECT max(id) FROM {table}) - ?", (most,)
    )


# --- the daemon ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DaemonEntry:
    """The process that watches this knowledge base, by its own account."""

    pid: int
    host: str
    started_at: datetime
    heartbeat_at: datetime


class DaemonRepository:
    """At most one daemon."""

    def __init__(self, ledger: Connections) -> None:
        self._ledger = ledger

    def register(self, pid: int, host: str, now: datetime) -> None:
        """Note that this process is the daemon from now on, whoever was before."""
        with self._ledger.transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO daemon VALUES (1, ?, ?, ?, ?)",
                (pid, host, to_text(now), to_text(now)),
            )

    def beat(self, pid: int, now: datetime) -> None:
        """Note that the daemon is alive."""
        with self._ledger.transaction() as connection:
            connection.execute(
                "UPDATE daemon SET heartbeat_at = ? WHERE pid = ?", (to_text(now), pid)
            )

    def clear(self, pid: int) -> None:
        """Note that the daemon has left, unless another has taken over."""
        with self._ledger.transaction() as connection:
            connection.execute("DELETE FROM daemon WHERE pid = ?", (pid,))

    def get(self) -> DaemonEntry | None:
        """Return the daemon on record; it need not be alive."""
        with self._ledger.reading() as connection:
            row = connection.execute(
                "SELECT pid, host, started_at, heartbeat_at FROM daemon"
            ).fetchone()
        return row and DaemonEntry(row[0], row[1], from_text(row[2]), from_text(row[3]))


# --- accesses ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Access:
    """How often a memory was shown since the last time that was written to its row."""

    memory_id: str
    count: int
    last_at: datetime


class AccessRepository:
    """Accesses not yet written to the memories themselves."""

    def __init__(self, ledger: Connections) -> None:
        self._ledger = ledger

    def add(self, memory_ids: Iterable[str], now: datetime) -> None:
        """Note that memories were shown."""
        with self._ledger.transaction() as connection:
            connection.executemany(
                "INSERT INTO access_log VALUES (?, 1, ?) ON CONFLICT (memory_id)"
                " DO UPDATE SET count = count + 1, last_at = max(last_at, excluded.last_at)",
                [(identifier, to_text(now)) for identifier in memory_ids],
            )

    def pending(self) -> list[Access]:
        """Return what is not yet written to the memories."""
        with self._ledger.reading() as connection:
            rows = connection.execute("SELECT memory_id, count, last_at FROM access_log")
            return [Access(row[0], row[1], from_text(row[2])) for row in rows.fetchall()]

    def clear(self, accesses: Iterable[Access]) -> None:
        """Take off what has been written; accesses noted since then stay."""
        done = [(access.count, access.memory_id) for access in accesses]
        with self._ledger.transaction() as connection:
            connection.executemany(
                "UPDATE access_log SET count = count - ? WHERE memory_id = ?", done
            )
            connection.execute("DELETE FROM access_log WHERE count <= 0")
