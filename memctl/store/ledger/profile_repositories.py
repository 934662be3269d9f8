"""What is known of each user in short, and what was put into prompts from memory.

Of what was put into prompts only hashes are here, which tell nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

from memctl.store.ledger.repository import LedgerTable, Repository, to_text

MOST_INJECTED = 50_000


class Profile(Struct, frozen=True):
    """What is known of a user in short, as it was from some moment on; each field is a text."""

    namespace: str
    """That of the user's conversations."""
    user_id: str
    at: datetime
    agent_id: str = ""
    """The agent that knows it; "" for what every agent knows."""
    version: int = 1
    session_id: str = ""
    """The conversation whose end made it; "" where a user or an agent wrote it."""
    by: str = "builtin"
    """Who wrote it: ``builtin``, ``user``, or the name of a model."""
    user_info: str = ""
    last_conversation_summary: str = ""
    recent_goal_and_status: str = ""
    important_context: str = ""
    agent_beliefs: str = ""
    """About the world and what the user wants."""
    agent_info: str = ""


PROFILE_FIELDS = (
    "user_info", "last_conversation_summary", "recent_goal_and_status", "important_context",
    "agent_beliefs", "agent_info",
)  # fmt: skip

PROFILES: LedgerTable[Profile] = LedgerTable(
    "profiles", Profile, ("namespace", "agent_id", "version"), "namespace, agent_id, version DESC"
)


class ProfileRepository(Repository[Profile]):
    """Profiles with their former versions."""

    table = PROFILES

    def versions(self, namespace: str, agent_id: str = "") -> list[Profile]:
        """Return the versions of a profile, the latest first."""
        return self.select("namespace = ? AND agent_id = ?", namespace, agent_id)

    def latest(self, namespace: str, agent_id: str = "") -> Profile | None:
        """Return a profile as it is now; for an agent that has none, that of the user."""
        where, order = "namespace = ? AND agent_id IN (?, '')", "agent_id DESC, version DESC"
        found = self.select(where, namespace, agent_id, order=order, limit=1)
        return found[0] if found else None

    def shown(self, namespace: str, agent_id: str = "") -> Profile | None:
        """Return the profile to show: the ``latest``, else, for no agent, that of any agent."""
        found = self.latest(namespace, agent_id)
        if found is not None or agent_id:
            return found
        of_any = self.select("namespace = ?", namespace, order="at DESC, version DESC", limit=1)
        return of_any[0] if of_any else None


class InjectedSpan(Struct, frozen=True):
    """A sentence or line that was put into a prompt from memory."""

    digest: str
    at: datetime


class InjectedRepository(Repository[InjectedSpan]):
    """The newest of what was put into prompts."""

    table = LedgerTable("injected_spans", InjectedSpan, ("digest",), "at")

    def note(self, digests: Iterable[str], at: datetime) -> None:
        """Record sentences; what is known already counts as new again."""
        self.write((InjectedSpan(digest, at) for digest in digests), durable=False)
        if self.count() > MOST_INJECTED:
            self.delete(
                "at < (SELECT at FROM injected_spans ORDER BY at DESC LIMIT 1 OFFSET ?)",
                MOST_INJECTED // 2,
            )

    def known(self, digests: Iterable[str], since: datetime) -> frozenset[str]:
        """Return those of some sentences that were put into a prompt since some time."""
        rows = self.rows(
            "SELECT digest FROM injected_spans WHERE at >= ?"
            " AND digest IN (SELECT value FROM json_each(?))",
            *(to_text(since), json.dumps(list(digests))),
        )
        return frozenset(digest for (digest,) in rows)
