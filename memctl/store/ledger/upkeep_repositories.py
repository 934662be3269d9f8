"""What runs by itself and when, and which lessons were confirmed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

from memctl.store.ledger.repository import LedgerTable, Repository

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
