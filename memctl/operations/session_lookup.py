"""Operations on conversations: which there were."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from memctl.errors import NotFoundError
from memctl.operations.operation_context import OperationContext
from memctl.operations.parameters import parameter
from memctl.operations.recall import opened

if TYPE_CHECKING:
    from memctl.store.ledger.session_repositories import Session

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
        _listed(base.name, session)
        for base in opened(context)
        for session in base.sessions.list(
            namespaces=context.namespaces("conversations"), status=asked.status, limit=asked.limit
        )
    ]
    found.sort(key=lambda each: each.last_at, reverse=True)
    return SessionList(tuple(found[: asked.limit]))


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionParameters:
    """Parameters of ``session``."""

    session_id: str | None = parameter("Show this one, with what was said.", default=None)
    limit: int = parameter("At most this many conversations or turns.", default=20, low=1, high=200)


@dataclass(frozen=True, slots=True)
class SaidTurn:
    """One turn of a conversation."""

    turn: int
    at: datetime
    sender: str
    content: str


@dataclass(frozen=True, slots=True)
class SessionReply:
    """Conversations, or the last turns of one."""

    sessions: tuple[ListedSession, ...]
    turns: tuple[SaidTurn, ...]


def look_at_sessions(context: OperationContext, asked: SessionParameters) -> SessionReply:
    """List conversations, or show the last turns of one.

    Raises:
        NotFoundError: There is none of that name.
    """
    if asked.session_id is None:
        listed = list_sessions(context, ListSessionsParameters(limit=asked.limit))
        return SessionReply(listed.sessions, ())
    missing: NotFoundError | None = None
    for base in opened(context):
        try:
            session = base.sessions.get(asked.session_id, user=context.identity.user)
        except NotFoundError as error:
            missing = error
            continue
        context.check_readable(base, session.namespace, f"conversation {asked.session_id!r}")
        turns = tuple(
            SaidTurn(turn.turn, turn.at, turn.sender, turn.content)
            for turn in base.sessions.turns(session, last=asked.limit)
        )
        return SessionReply((_listed(base.name, session),), turns)
    raise missing or NotFoundError(f"there is no conversation {asked.session_id!r}")


def _listed(kb: str, session: Session) -> ListedSession:
    return ListedSession(
        session_id=session.session_id,
        kb=kb,
        title=session.title,
        status=session.status,
        user_id=session.user_id,
        agent_id=session.agent_id,
        started_at=session.started_at,
        last_at=session.last_at,
        message_count=session.message_count,
        summary=session.summary,
    )
