"""The inbox: files handed in, what waits, and what failed with the way to try again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from memctl.errors import KnowledgeBaseNotFound, LockedError, UsageError
from memctl.operations.operation_context import OperationContext
from memctl.plain_values import plain_rows
from memctl.records import FileOutcome
from memctl.server.web.pages import Asked, Done, Page, address
from memctl.watch.hand_in import FailedFile, failed_files, put_in, retry, take_in
from memctl.watch.watch_status import WatchStatus, waiting_files, watch_status

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase

_MOST_SHOWN = 100
_RECENT = 12


class InboxState(Struct, frozen=True):
    """The inboxes of one knowledge base."""

    kb: str
    folders: tuple[str, ...]
    status: WatchStatus
    waiting: tuple[str, ...]
    failed: tuple[FailedFile, ...]
    recent: tuple[RecentFile, ...]
    """What was taken in last."""


class RecentFile(Struct, frozen=True):
    """A file that was taken in."""

    document_id: str
    title: str
    source: str
    ingested_at: str


def inbox(context: OperationContext, asked: Asked) -> Page:
    """Show what waits, what failed, and whether a watcher is alive."""
    states: Sequence[InboxState] = ()
    with suppress(KnowledgeBaseNotFound):  # the first file makes the default one
        states = [_state(base) for base in context.reading()]
    shown = {"target": asked.kbs[0] if asked.kbs else context.kb_to_write}
    return Page("inbox.html", "Inbox", {"inboxes": states}, shown)


def _state(base: KnowledgeBase) -> InboxState:
    rows = plain_rows(base.documents.list(limit=_RECENT))
    return InboxState(
        kb=base.name,
        folders=tuple(str(each.path) for each in base.settings.inboxes),
        status=watch_status(base),
        waiting=tuple(name for name, _ in waiting_files(base)[:_MOST_SHOWN]),
        failed=tuple(failed_files(base.layout)[:_MOST_SHOWN]),
        recent=tuple(
            RecentFile(row["id"], row["title"], row["source"], row["ingested_at"]) for row in rows
        ),
    )


def receive(context: OperationContext, asked: Asked) -> Done:
    """Put files into the inbox and take them in, or one text.

    Raises:
        UsageError: There is none.
    """
    base = context.writing()
    files = [file for file in asked.files if file.filename]
    text = asked.text("text")
    if not files and not text:
        raise UsageError("no file was given", "choose one, or drop it on the page")
    outcome: Sequence[FileOutcome] = ()
    if text:
        outcome = base.documents.ingest(text=text, title=asked.text("title")).outcomes
    placed = [str(put_in(base.layout, file.filename or "", file.file)) for file in files]
    notice = _taken_in(context, base) if placed else "received"
    to = address("/inbox", kb=base.name)
    return Done(to, {"kb": base.name, "files": placed, "outcomes": outcome}, notice)


def _taken_in(context: OperationContext, base: KnowledgeBase) -> str:
    try:
        take_in(context.home, base.name)
    except LockedError:
        return "waiting"
    return "received"


def take_in_waiting(context: OperationContext, _: Asked) -> Done:
    """Take in what waits, as ``memctl watch --once`` does."""
    base = context.reading_existing()
    notice = _taken_in(context, base)
    return Done(address("/inbox", kb=base.name), {"kb": base.name}, notice)


def try_again(context: OperationContext, asked: Asked) -> Done:
    """Have a failed file tried again."""
    base = context.reading_existing()
    base.resources.require_writable()
    placed = retry(base.layout, asked.text("file"))
    notice = _taken_in(context, base)
    to = address("/inbox", kb=base.name)
    notice = "retried" if notice == "received" else notice
    return Done(to, {"kb": base.name, "files": [str(placed)]}, notice)
