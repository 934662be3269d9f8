"""How watching a knowledge base is going, whether a watcher runs now or not."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from memctl.errors import KnowledgeBaseUnavailable
from memctl.ingest.discovery.inbox_scan import InboxFile, excluded_folders, scan_inbox
from memctl.ingest.discovery.sources import printable
from memctl.locking import is_locked
from memctl.records import SkipReason
from memctl.schema.table_names import CONSOLIDATION, FORGET, WAITS_FOR, WATCH_PROGRESS
from memctl.store.ledger.work_repositories import ACCESS
from memctl.store.locks import is_watched
from memctl.watch.inbox_scanner import scan_obstacle
from memctl.watch.reporter import polled_folders

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase

_MISSED = frozenset(["unfinished", "link", "pipe", "socket", "device", "other"])
MIN_FREE_BYTES = 1 << 20
"""With less than that a disk counts as full."""


class WatchStatus(Struct, frozen=True):
    """One knowledge base as ``memctl status`` shows it."""

    kb: str
    status: str
    alive: bool
    """Whether a daemon serves it now."""
    pid: int | None
    since: datetime | None
    heartbeat: datetime | None
    backlog: int
    """Files that wait in its inboxes or are being taken in."""
    in_hand: int
    """Those of them that have been taken out of inboxes, and are being taken in."""
    oldest_waiting: str
    oldest_since: datetime | None
    failed: int
    """Files that could not be ingested."""
    last_error: str
    last_error_at: datetime | None
    last_consolidation: datetime | None
    problems: tuple[str, ...] = ()
    """What keeps files from being taken in now."""
    writer: int | None = None
    """The process that is writing to it now."""
    working: str = ""
    """What the watcher is reading, and how far it is."""
    forgets_unfinished: int = 0
    """Interrupted forgets, after which files may still have what was forgotten."""
    polled: tuple[str, ...] = ()
    """Folders that are only looked into from time to time, and why."""
    never_taken: tuple[str, ...] = ()
    """Files in inboxes that are never taken as they are, though one may expect it: not what is
    hidden, ignored, or the system's."""


def watch_status(base: KnowledgeBase) -> WatchStatus:
    """Return how watching a knowledge base is going; looks through its inboxes."""
    ledger = base.store.ledger
    alive = is_watched(base.layout)
    daemon = ledger.daemon.current() if alive else None
    in_hand = len(_processing(base))
    waiting, left = _waiting_files(base)
    oldest = min(waiting, key=lambda item: item[1], default=None)
    errors = ledger.events.recent(1, but=ACCESS)
    consolidation = ledger.jobs.last(CONSOLIDATION, "done")
    writer = base.store.writer()
    return WatchStatus(
        kb=base.name,
        status=base.settings.status,
        alive=alive,
        pid=daemon.pid if daemon else None,
        since=daemon.started_at if daemon else None,
        heartbeat=daemon.heartbeat_at if daemon else None,
        backlog=len(waiting),
        in_hand=in_hand,
        oldest_waiting=oldest[0] if oldest else "",
        oldest_since=datetime.fromtimestamp(oldest[1], UTC) if oldest else None,
        failed=ledger.files.counts().get("failed", 0),
        last_error=errors[0].message if errors else "",
        last_error_at=errors[0].at if errors else None,
        last_consolidation=consolidation.started_at if consolidation else None,
        problems=tuple(_problems(base, alive=alive)),
        writer=writer.pid if writer else None,
        working=(ledger.meta(WATCH_PROGRESS) or "") if daemon else "",
        forgets_unfinished=_cut_off(base),
        polled=polled_folders(ledger) if alive else (),
        never_taken=left,
    )


def _cut_off(base: KnowledgeBase) -> int:
    """Return how many forgets were begun and cut off."""
    if is_locked(base.layout.forget_lock, if_unreadable=False):
        return 0
    return len(base.store.ledger.jobs.unfinished_jobs(FORGET))


def _problems(base: KnowledgeBase, *, alive: bool) -> Iterator[str]:
    """What the watcher waits for by its own account, and what can be seen from here.

    Where the disk is full the watcher may have had no room to write its account down.
    """
    ledger, folder = base.store.ledger, base.layout.folder
    if alive and (message := ledger.meta(WAITS_FOR)):
        yield message
    try:
        ledger.require_writable()
    except KnowledgeBaseUnavailable as error:
        yield error.message
    if shutil.disk_usage(folder).free < MIN_FREE_BYTES:
        yield f"no space is left on the disk of {printable(folder)}"
    for inbox in base.settings.inboxes:
        if why := scan_obstacle(inbox.path, ledger):
            yield why


def waiting_files(base: KnowledgeBase) -> list[tuple[str, float]]:
    """Files that wait, each with the time (in seconds since 1970) since when.

    Raises:
        MemctlError, OSError: They cannot be looked at.
    """
    return _waiting_files(base)[0]


def _waiting_files(base: KnowledgeBase) -> tuple[list[tuple[str, float]], tuple[str, ...]]:
    """Waiting files, each with the time since when, and files in inboxes that are never ingested as
    they are."""
    left: list[str] = []

    def note_skipped(path: Path, why: SkipReason) -> None:
        """Record what a user may miss."""
        if why in _MISSED:
            left.append(printable(path))

    waiting = [(printable(path), path.stat().st_mtime) for path in _processing(base)]
    for inbox in base.settings.inboxes:
        if inbox.path.is_dir():
            found = scan_inbox(
                inbox.path, excluded_folders(base.layout, inbox.path), left=note_skipped
            )
            files: Sequence[InboxFile] = found.files
            if inbox.after == "keep":
                files = found.changed(base.store.ledger.files.files_kept_in(str(inbox.path)))
            waiting += [_since(file) for file in files]
    return waiting, tuple(sorted(left))


def _processing(base: KnowledgeBase) -> list[Path]:
    folder = base.layout.processing
    return [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []


def _since(file: InboxFile) -> tuple[str, float]:
    return printable(file.path), file.changed_ns / 1e9
