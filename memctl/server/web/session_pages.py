"""Conversations: a list of them, one with what was said, and putting one away."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from memctl.literals import SessionStatus
from memctl.operations.finding import readable_session
from memctl.operations.operation_context import OperationContext
from memctl.plain_values import to_plain
from memctl.server.web.listing import RowList, bases_of
from memctl.server.web.memory_pages import forget_page, forgotten_reply
from memctl.server.web.pages import PAGE_ROWS, Asked, Done, Page, address

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase
    from memctl.store.ledger.session_repositories import Session

_TURNS = 200


def sessions(context: OperationContext, asked: Asked) -> Page:
    """List conversations as ``memctl session list`` does, the latest first."""
    status: SessionStatus | None = asked.choice("status", SessionStatus, None)
    offset = asked.offset
    found = [
        {"kb": base.name, **to_plain(each)}
        for base in bases_of(context)
        for each in base.sessions.list(
            namespaces=context.namespaces("conversations"),
            status=status,
            limit=offset + PAGE_ROWS + 1,
        )
    ]
    found.sort(key=lambda row: str(row["last_at"]), reverse=True)
    rows = found[offset : offset + PAGE_ROWS]
    more = offset + PAGE_ROWS if len(found) > offset + PAGE_ROWS else None
    data = RowList(tuple(rows), None, offset, more)
    shown = {
        "fields": {"status": status or ""},
        "states": get_args(SessionStatus),
        "previous_offset": data.previous_offset,
    }
    return Page("sessions.html", "Sessions", data, shown)


def session(context: OperationContext, asked: Asked) -> Page:
    """Show a conversation with what was said last."""
    base, found = _session(context, asked)
    turns = base.sessions.turns(found, last=_TURNS)
    data = {"kb": base.name, "session": found, "turns": turns}
    return Page("session.html", found.title or found.session_id, data)


def _session(context: OperationContext, asked: Asked) -> tuple[KnowledgeBase, Session]:
    namespace = asked.text("namespace") or None
    return readable_session(context, bases_of(context), asked.path["id"], namespace)


def archive(context: OperationContext, asked: Asked) -> Done:
    """Summarise a conversation and put it away, as ``memctl session archive`` does."""
    base, found = _session(context, asked)
    made = base.sessions.archive(found)
    to = address(f"/sessions/{found.session_id}", kb=base.name, namespace=found.namespace)
    return Done(to, made, "archived")


def preview(context: OperationContext, asked: Asked) -> Page:
    """Show what would go with a conversation."""
    base, found = _session(context, asked)
    report = base.sessions.forget(found, dry_run=True)
    back, name = f"/sessions/{found.session_id}", found.title or found.session_id
    return forget_page(base, report, "conversation", back, name)


def forget(context: OperationContext, asked: Asked) -> Done:
    """Remove a conversation for good, as ``memctl forget --session`` does."""
    base, found = _session(context, asked)
    return forgotten_reply(base, base.sessions.forget(found), "/sessions")
