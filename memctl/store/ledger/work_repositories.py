"""What is going on: inbox files, jobs and their schedules, events, and memories that were shown."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct, field

from memctl.store.ledger.repository import LedgerTable, PathText, Repository, to_text

FileState = Literal["seen", "claimed", "indexed", "done", "failed", "gone"]
JobState = Literal["running", "done", "failed", "abandoned", "undone"]

MAX_EVENTS = 1_000
ACCESS = "access"
"""The kind of event that says what an agent did, or was refused; all others say what failed."""


# --- inbox files ---------------------------------------------------------------------------------


class FileEntry(Struct, frozen=True):
    """A file of an inbox and how far it has come."""

    path: PathText
    inbox: PathText
    size: int
    mtime_ns: int
    state: FileState
    first_seen: datetime
    updated_at: datetime
    sha256: str | None = None
    document_id: str | None = None
    reason: str = ""
    hint: str = ""


class FileRepository(Repository[FileEntry]):
    """Files of the inboxes, by path."""

    table = LedgerTable("files", FileEntry, ("path",), "first_seen, path")

    def entries(
        self, states: Iterable[FileState] = (), inbox: str | None = None
    ) -> list[FileEntry]:
        """Return the entries in some states, or in any state if none is given, oldest first."""
        values: list[Any] = [*states]
        where = f"state IN ({', '.join('?' * len(values))})" if values else "TRUE"
        if inbox is not None:
            where += " AND inbox = ?"
            values.append(os.fsencode(inbox))
        return self.select(where, *values)

    def files_kept_in(self, inbox: str) -> dict[str, FileEntry]:
        """Return the files that stay in an inbox and have been dealt with, by path."""
        return {entry.path: entry for entry in self.entries(["done", "failed"], inbox)}

    def of_documents(self, ids: Iterable[str]) -> dict[str, FileEntry]:
        """Return the files that documents were made from and that are in place, by document id.

        Of several with the same content it is the first.
        """
        where = "state = 'done' AND document_id IN (SELECT value FROM json_each(?))"
        found = self.select(where, json.dumps(list(ids)), order="first_seen DESC, path")
        return {entry.document_id or "": entry for entry in found}

    def move(
        self, path: str, state: FileState, now: datetime, *, document_id: str | None = None
    ) -> None:
        """Record the next step of a file that is known; a known document is kept."""
        self.execute(
            "UPDATE files SET state = ?, updated_at = ?,"
            " document_id = coalesce(?, document_id), reason = '', hint = '' WHERE path = ?",
            *(state, to_text(now), document_id, os.fsencode(path)),
        )

    def follow_folder(self, before: str, now: str) -> None:
        """Correct the paths below a folder that has been moved.

        Args:
            before: Where it was.
            now: Where it is.
        """
        old, new = os.fsencode(before), os.fsencode(now)
        for column in ("path", "inbox"):
            self.execute(
                f"UPDATE OR REPLACE files SET {column} = CAST(?1 || substr({column}, ?2) AS BLOB)"
                f" WHERE substr({column}, 1, ?2) = ?3",
                *(new, len(old) + 1, old + os.fsencode(os.sep)),
            )

    def release_document(self, document_id: str) -> None:
        """Record that a document was deleted by hand: its files are not ingested again."""
        self.execute("UPDATE files SET document_id = NULL WHERE document_id = ?", document_id)

    def counts(self) -> dict[FileState, int]:
        """Return how many files are in each state that has any."""
        return dict(self.rows("SELECT state, count(*) FROM files GROUP BY state"))


# --- jobs ----------------------------------------------------------------------------------------


class Job(Struct, frozen=True):
    """A piece of work that takes a while: an ingest, a consolidation, an upkeep."""

    id: int
    kind: str
    state: JobState
    started_at: datetime
    finished_at: datetime | None
    detail: Mapping[str, Any] = field(default_factory=dict)


class JobRepository(Repository[Job]):
    """Jobs, by number."""

    table = LedgerTable("jobs", Job, ("id",), "id DESC")

    def start(self, kind: str, now: datetime, detail: Mapping[str, Any] | None = None) -> int:
        """Record that a job has begun and return its number."""
        cursor = self.execute(
            "INSERT INTO jobs (kind, state, started_at, detail) VALUES (?, 'running', ?, ?)",
            *(kind, to_text(now), json.dumps(dict(detail or {}))),
        )
        return int(cursor.lastrowid or 0)

    def finish(
        self, job: int, state: JobState, now: datetime, detail: Mapping[str, Any] | None = None
    ) -> None:
        """Record how a job ended; ``detail``, if given, replaces what was noted at its start.

        A job that was undone while it ran stays undone.
        """
        self.execute(
            "UPDATE jobs SET state = ?, finished_at = ?, detail = coalesce(?, detail)"
            " WHERE id = ? AND state != 'undone'",
            *(state, to_text(now), None if detail is None else json.dumps(dict(detail)), job),
        )

    def undo(self, job: int, now: datetime) -> None:
        """Record that what a job did has been undone."""
        self.execute(
            "UPDATE jobs SET state = 'undone', finished_at = coalesce(finished_at, ?) WHERE id = ?",
            *(to_text(now), job),
        )

    def note(self, job: int, detail: Mapping[str, Any]) -> None:
        """Record how far a job has come, in place of what was noted before."""
        self.execute("UPDATE jobs SET detail = ? WHERE id = ?", json.dumps(dict(detail)), job)

    def fail(self, job: int, now: datetime, message: str, hint: str) -> None:
        """Record why a job failed, also as an event, which the status shows."""
        with self._ledger.transaction():
            self.finish(job, "failed", now, {"error": message, "hint": hint})
            ((kind,),) = self.rows("SELECT kind FROM jobs WHERE id = ?", job)
            EventRepository(self._ledger).add(Event(now, "failed", message, hint, kind))

    def abandon(self, now: datetime, kind: str | None = None) -> int:
        """Mark jobs as abandoned that still count as running though their process is gone."""
        cursor = self.execute(
            "UPDATE jobs SET state = 'abandoned', finished_at = ?"
            " WHERE state = 'running' AND kind = coalesce(?, kind)",
            *(to_text(now), kind),
        )
        return cursor.rowcount

    def unfinished_jobs(self, kind: str) -> list[Job]:
        """Return the jobs of a kind that have begun and are not done, newest first."""
        return [job for job in self.recent(1_000, kind) if job.state != "done"]

    def last(self, kind: str, state: JobState | None = None) -> Job | None:
        """Return the newest job of a kind."""
        found = self.recent(1, kind, state)
        return found[0] if found else None

    def finished_after(self, instant: datetime, limit: int) -> list[Job]:
        """Return jobs of the last thousand that ended after an instant, in that order."""
        return self.select(
            "id > (SELECT max(id) FROM jobs) - 1000 AND finished_at > ?",
            to_text(instant),
            order="finished_at, id",
            limit=limit,
        )

    def recent(
        self, limit: int = 20, kind: str | None = None, state: JobState | None = None
    ) -> list[Job]:
        """Return jobs, newest first; all of them with a limit of -1."""
        where = "kind = coalesce(?, kind) AND state = coalesce(?, state)"
        return self.select(where, kind, state, limit=limit)


# --- events --------------------------------------------------------------------------------------


class Event(Struct, frozen=True):
    """Something worth telling: mostly an error, with the file or job it is about."""

    at: datetime
    kind: str
    message: str
    hint: str = ""
    subject: str = ""


class EventRepository(Repository[Event]):
    """The latest events."""

    table = LedgerTable("events", Event, order="id DESC")

    def add(self, event: Event) -> None:
        """Record an event, and drop the oldest ones."""
        with self._ledger.transaction():
            self.save(event)
            self.trim(MAX_EVENTS)

    def recent(self, limit: int = 20, kind: str | None = None, but: str = "") -> list[Event]:
        """Return events, newest first: of a kind, or of all but one."""
        return self.select("kind = coalesce(?, kind) AND kind != ?", kind, but, limit=limit)


# --- the daemon ----------------------------------------------------------------------------------


class DaemonEntry(Struct, frozen=True):
    """The process that watches this knowledge base, by its own account."""

    pid: int
    host: str
    started_at: datetime
    heartbeat_at: datetime


class DaemonRepository(Repository[DaemonEntry]):
    """At most one daemon."""

    table = LedgerTable("daemon", DaemonEntry)

    def register(self, pid: int, host: str, now: datetime) -> None:
        """Record that this process is the daemon from now on."""
        entry = DaemonEntry(pid, host, now, now)
        self.execute(
            f"INSERT OR REPLACE INTO daemon (id, {self.table.columns})"
            f" VALUES (1, {self.table.marks})",
            *self.table.encode(entry),
        )

    def beat(self, pid: int, now: datetime) -> None:
        """Record that the daemon is alive."""
        self.execute("UPDATE daemon SET heartbeat_at = ? WHERE pid = ?", to_text(now), pid)

    def clear(self, pid: int) -> None:
        """Record that the daemon has left, unless another has taken over."""
        self.delete("pid = ?", pid)

    def current(self) -> DaemonEntry | None:
        """Return the daemon on record; it need not be alive."""
        return next(iter(self.all()), None)


# --- accesses ------------------------------------------------------------------------------------


class Access(Struct, frozen=True):
    """How often a memory was shown since the last time that was written to its row."""

    memory_id: str
    count: int
    last_at: datetime


class AccessRepository(Repository[Access]):
    """Accesses not yet written to the memories themselves."""

    table = LedgerTable("access_log", Access, ("memory_id",), "memory_id")

    def add(self, memory_ids: Iterable[str], now: datetime) -> None:
        """Record that memories were shown."""
        self.write(
            (Access(memory_id, 1, now) for memory_id in memory_ids),
            "(memory_id) DO UPDATE SET count = count + 1, last_at = max(last_at, excluded.last_at)",
        )

    def pending(self) -> list[Access]:
        """Return what is not yet written to the memories."""
        return self.all()

    def clear(self, accesses: Iterable[Access]) -> None:
        """Take off what has been written; accesses noted since then stay."""
        with self._ledger.transaction():
            self.execute_each(
                "UPDATE access_log SET count = count - ? WHERE memory_id = ?",
                ((access.count, access.memory_id) for access in accesses),
            )
            self.delete("count <= 0")


# --- schedules and confirmed lessons --------------------------------------------------------------

# --- schedules -----------------------------------------------------------------------------------


class JobSchedule(Struct, frozen=True):
    """When a job runs in one knowledge base, where that is not as by default."""

    job: str
    schedule: str
    """As ``memctl upkeep list`` shows it: ``04:00``, ``sun 05:00``, ``every 6h``, ``off``."""
    set_at: datetime


class ScheduleRepository(Repository[JobSchedule]):
    """Schedules that a user has set."""

    table = LedgerTable("job_schedules", JobSchedule, ("job",))


# --- lessons -------------------------------------------------------------------------------------


class Confirmation(Struct, frozen=True):
    """A later observation of what a learning says."""

    memory_id: str
    source: str
    """The agent or user that confirms it, or the question whose answer was judged good."""
    at: datetime
    job_id: int | None = None
    """The job that noted it; None where a user or an agent did."""


class ConfirmationRepository(Repository[Confirmation]):
    """Confirmations of learnings: one of each memory by each who confirms it."""

    table = LedgerTable("confirmations", Confirmation, ("memory_id", "source"), "memory_id, at")

    def add(self, confirmations: Iterable[Confirmation]) -> None:
        """Record confirmations; the same one again changes nothing."""
        self.write(confirmations, "DO NOTHING")

    def of(self, memory_ids: Iterable[str]) -> dict[str, list[Confirmation]]:
        """Return the confirmations of memories, by id; those without any are left out."""
        wanted = "memory_id IN (SELECT value FROM json_each(?))"
        return _by_memory(self.select(wanted, json.dumps(list(memory_ids))))

    def by_memory(self) -> dict[str, list[Confirmation]]:
        """Return all confirmations, by the id of the memory."""
        return _by_memory(self.all())

    def jobs(self) -> set[int]:
        """Return the jobs that have noted any."""
        wanted = "SELECT DISTINCT job_id FROM confirmations WHERE job_id IS NOT NULL"
        return {job for (job,) in self.rows(wanted)}

    def remove_job(self, job: int) -> int:
        """Delete what a job has noted; return how many."""
        return self.execute("DELETE FROM confirmations WHERE job_id = ?", job).rowcount


def _by_memory(confirmations: Iterable[Confirmation]) -> dict[str, list[Confirmation]]:
    found: dict[str, list[Confirmation]] = {}
    for each in confirmations:
        found.setdefault(each.memory_id, []).append(each)
    return found
