"""Operations on conversations: which there were."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from memctl.operations.operation_context import OperationContext
from memctl.operations.parameters import parameter
from memctl.operations.recall import opened

SessionStatus = Literal["open", "compressed", "archived", "ended"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSessionsParameters:
    """Parameters of ``list_sessions``."""

    status: SessionStatus | None = parameter("Only those in this state.", default=None)
    limit: int = parameter("At most this many.", default=20, low=1, high=200)


@dataclass(frozen=True, slots=True)
class ListedSession:
    """One conversation of a list."""

    session_id: str
    kb: str
    title: str
    status: str
    user_id: str
    agent_id: str | None
    started_at: datetime
    last_at: datetime
    message_count: int
    summary: str


@dataclass(frozen=True, slots=True)
class SessionList:
    """Conversations, the latest first."""

    sessions: tuple[ListedSession, ...]


def list_sessions(context: OperationContext, asked: ListSessionsParameters) -> SessionList:
    """List conversations, those of the user where one is named, of all knowledge bases together."""
    found = [
        ListedSession(
            session_id=session.session_id,
            kb=base.name,
            title=session.title,
            status=session.status,
            user_id=session.user_id,
            agent_id=session.agent_id,
            started_at=session.started_at,
            last_at=session.last_at,
            message_count=session.message_count,
            summary=session.summary,
        )
        for base in opened(context)
        for session in base.sessions.list(
            namespaces=context.namespaces("conversations"), status=asked.status, limit=asked.limit
        )
    ]
    found.sort(key=lambda each: each.last_at, reverse=True)
    return SessionList(tuple(found[: asked.limit]))
