"""Conversations and what is said in them, as it comes in, and the profiles of their users.

A turn is here before it is in the tables, and stays here after: the latest messages are
read without the tables.  Must never know what the words mean.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from memctl.literals import MessageType, SessionStatus
from memctl.store.ledger.repository import LedgerTable, Repository, to_text


class Session(Struct, frozen=True):
    """One conversation."""

    namespace: str
    session_id: str
    user_id: str
    started_at: datetime
    last_at: datetime
    """When the latest turn was said."""
    agent_id: str | None = None
    status: SessionStatus = "open"
    ended_at: datetime | None = None
    title: str = ""
    message_count: int = 0
    token_count: int = 0
    """Of the turns that are not summarised, about."""
    summary: str = ""
    """Of the turns that are no longer in the window of recent ones."""
    summarized_through: int | None = None
    """The last turn that the summary is of."""


class Turn(Struct, frozen=True):
    """One message of a conversation."""

    namespace: str
    session_id: str
    turn: int
    """Its number in the conversation, from 0."""
    at: datetime
    sender: str
    content: str = ""
    message_type: MessageType = "text"
    media: str = ""
    """The path of its picture, recording or file; one that was copied lies in the folder of the
    knowledge base."""
    media_sha256: str = ""
    external_id: str | None = None
    memory_type: str = "turn"
    """The type of its memories: ``turn`` or ``query``."""
    title: str = ""
    source: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    agent_id: str | None = None
    """Who writes it; None where no agent is named."""
    document_id: str | None = None
    """The document in the tables that it is in; None while it is in none."""


SESSIONS: LedgerTable[Session] = LedgerTable(
    "sessions", Session, ("namespace", "session_id"), "last_at DESC, session_id"
)
TURNS: LedgerTable[Turn] = LedgerTable("turns", Turn, ("namespace", "session_id", "turn"))
SessionKey = tuple[str, str]
"""Namespace and session id."""


class SessionRepository(Repository[Session]):
    """Conversations, the latest first."""

    table = SESSIONS

    def find_by_name(self, session_id: str, namespace: str | None = None) -> list[Session]:
        """Return the conversations of a name, which several namespaces may have."""
        where = "session_id = ? AND namespace = coalesce(?, namespace)"
        return self.select(where, session_id, namespace)

    def drop_empty(self) -> None:
        """Delete conversations without any turns left."""
        turns = "SELECT 1 FROM turns t WHERE t.namespace = sessions.namespace"
        self.delete(
            f"message_count > 0 AND NOT EXISTS ({turns} AND t.session_id = sessions.session_id)"
        )

    def agents(self) -> list[str | None]:
        """Return with whom there are conversations; None for those that name no agent."""
        found = self.rows("SELECT DISTINCT agent_id FROM sessions ORDER BY 1")
        return [agent for (agent,) in found]

    def unsummarised_longer_than(
        self, agent: str | None, tokens: int, messages: int
    ) -> list[Session]:
        """Return the long conversations that go on, with many turns that no summary covers.

        Args:
            agent: With whom; None for those that name no agent.
            tokens: They have more tokens than this.
            messages: They have more messages than this, too.
        """
        open_turns = (
            "SELECT count(*) FROM turns t WHERE t.namespace = sessions.namespace"
            " AND t.session_id = sessions.session_id AND t.turn > coalesce(summarized_through, -1)"
        )
        where = (
            "agent_id IS ? AND token_count > ? AND status IN ('open', 'compressed')"
            f" AND ({open_turns}) > ?"
        )
        return self.select(where, agent, tokens, messages)

    def search(
        self,
        *,
        user: str | None = None,
        namespaces: Sequence[str] | None = None,
        without: Sequence[str] = (),
        status: SessionStatus | None = None,
        limit: int = -1,
    ) -> list[Session]:
        """Return conversations, the latest first: of a user, in some namespaces, of a status."""
        where = "user_id = coalesce(?, user_id) AND status = coalesce(?, status)"
        values: list[Any] = [user, status]
        if namespaces:
            where += f" AND namespace IN ({_marks(namespaces)})"
            values += namespaces
        if without:
            where += f" AND namespace NOT IN ({_marks(without)})"
            values += without
        return self.select(where, *values, limit=limit)


class TurnRepository(Repository[Turn]):
    """Turns, in the order in which they were said."""

    table = TURNS

    def of(self, key: SessionKey, *, after: int = -1, limit: int = -1) -> list[Turn]:
        """Return the turns of a conversation, those after a number."""
        where = "namespace = ? AND session_id = ? AND turn > ?"
        return self.select(where, *key, after, order="turn", limit=limit)

    def last(self, key: SessionKey, count: int) -> list[Turn]:
        """Return the last turns of a conversation, in order."""
        where = "namespace = ? AND session_id = ?"
        return self.select(where, *key, order="turn DESC", limit=count)[::-1]

    def next_number(self, key: SessionKey) -> int:
        """Return the number of the turn that comes next."""
        ask = "SELECT coalesce(max(turn) + 1, 0) FROM turns WHERE namespace = ? AND session_id = ?"
        return int(self.rows(ask, *key)[0][0])

    def with_media(
        self,
        session: str | None = None,
        namespace: str | None = None,
        before: datetime | None = None,
    ) -> list[Turn]:
        """Return the turns that came with a file: of a conversation, a namespace, of before."""
        where = "media != '' AND session_id = coalesce(?, session_id)"
        where += " AND namespace = coalesce(?, namespace) AND at < coalesce(?, at || '~')"
        return self.select(where, session, namespace, None if before is None else to_text(before))

    def documents(self) -> set[str]:
        """Return the documents that turns are noted to be in."""
        ask = "SELECT DISTINCT document_id FROM turns WHERE document_id IS NOT NULL"
        return {str(row[0]) for row in self.rows(ask)}

    def imported_files(self, namespace: str) -> dict[str, str | None]:
        """Return the files that turns were imported from, each with its only conversation, if so.

        Args:
            namespace: That of the turns.
        """
        ask = (
            "SELECT source, min(session_id), max(session_id) FROM turns"
            " WHERE source != '' AND namespace = ? GROUP BY source"
        )
        return {
            str(source): str(first) if first == last else None
            for source, first, last in self.rows(ask, namespace)
        }

    def detach_documents(self, documents: Iterable[str]) -> None:
        """Record that documents are not there any more: their turns wait to be taken over again."""
        statement = "UPDATE turns SET document_id = NULL WHERE document_id = ?"
        self.execute_each(statement, ((each,) for each in documents))

    def has_pending(self) -> bool:
        """Return whether turns are not in the tables yet; costs next to nothing."""
        return bool(
            self.rows("SELECT EXISTS (SELECT 1 FROM turns WHERE document_id IS NULL)")[0][0]
        )

    def count_pending(self) -> int:
        """Return how many turns are not in the tables yet."""
        return self.count("document_id IS NULL")

    def pending(self, limit: int, key: SessionKey | None = None) -> list[Turn]:
        """Return turns that are not in the tables yet, each conversation's in order."""
        if key is None:
            return self.select("document_id IS NULL", limit=limit)
        where = "document_id IS NULL AND namespace = ? AND session_id = ?"
        return self.select(where, *key, limit=limit)

    def note_documents(self, turns: Iterable[Turn]) -> int:
        """Record in which documents turns are; return how many turns had no document before."""
        changed = 0
        for turn in turns:
            changed += self.execute(
                "UPDATE turns SET document_id = ? WHERE document_id IS NULL"
                " AND namespace = ? AND session_id = ? AND turn = ?",
                *(turn.document_id, turn.namespace, turn.session_id, turn.turn),
            ).rowcount
        return changed


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))


# --- profiles, and what was put into prompts ------------------------------------------------------

MAX_INJECTED = 50_000


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

    def profile_to_show(self, namespace: str, agent_id: str = "") -> Profile | None:
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
        if self.count() > MAX_INJECTED:
            self.delete(
                "at < (SELECT at FROM injected_spans ORDER BY at DESC LIMIT 1 OFFSET ?)",
                MAX_INJECTED // 2,
            )

    def times_of(self, digests: Iterable[str]) -> dict[str, datetime]:
        """Return when each of some sentences was put into a prompt last, where it was."""
        where = "digest IN (SELECT value FROM json_each(?))"
        return {span.digest: span.at for span in self.select(where, json.dumps(list(digests)))}
