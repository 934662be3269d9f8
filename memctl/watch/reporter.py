"""What the watcher of one knowledge base says: each thing once, and what is wrong now."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field

from memctl.errors import MemctlError
from memctl.ingest.discovery.sources import printable
from memctl.paths import os_error_hint
from memctl.store.ledger.work_repositories import Event

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase
    from memctl.store.ledger.ledger import Ledger

EventKind = Literal[
    "started",
    "stopped",
    "serving",
    "left",
    "polling",
    "working",
    "ingested",
    "known",
    "superseded",
    "empty",
    "renamed",
    "gone",
    "failed",
    "put_back",
    "forgotten",
    "waiting",
    "resumed",
    "compared",
    "heard",
    "summarised",
    "consolidated",
    "promoted",
    "upkeep",
    "bulletin",
]


class WatchEvent(Struct, frozen=True):
    """One thing that happened; ``source`` is the file it is about, ``kb`` "" for the daemon."""

    at: datetime
    kind: EventKind
    kb: str = ""
    source: str = ""
    message: str = ""
    hint: str = ""
    document_id: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


class TurnResult(Struct, frozen=True):
    """What one look at a knowledge base, or at an inbox, came to."""

    worked: bool
    look_again_in: float | None = None
    """Seconds until something that is there may be taken; None when there is nothing."""


class Leftover(Struct, frozen=True):
    """What had to be left in one knowledge base, and why."""

    kb: str
    files: tuple[str, ...]
    """All that wait there, where the store failed; none where the reason names what it is about."""
    reason: str
    hint: str = ""


class DrainResult(Struct, frozen=True):
    """The result of a watch that ends on its own."""

    dealt_with: int = 0
    """Files that were remembered or moved to ``failed/``, or followed where they stay."""
    left: tuple[Leftover, ...] = ()


Listener = Callable[[WatchEvent], None]


Clock = Callable[[], datetime]


class Reporter(Struct):
    """Tells the listener, and has the ledger keep what goes wrong."""

    base: KnowledgeBase
    listener: Listener
    clock: Clock
    _complaints: dict[str, WatchEvent] = field(default_factory=dict)
    """What is wrong now, by its message or by what kind of thing it is."""

    @property
    def complaints(self) -> list[WatchEvent]:
        """What is wrong now."""
        return list(self._complaints.values())

    def say(
        self,
        kind: EventKind,
        source: str = "",
        message: str = "",
        hint: str = "",
        document_id: str | None = None,
        detail: Mapping[str, object] | None = None,
    ) -> WatchEvent:
        """Report one event."""
        event = WatchEvent(
            self.clock(), kind, self.base.name, source, message, hint, document_id, detail or {}
        )
        self.listener(event)
        return event

    def complain(
        self, kind: EventKind, source: str, message: str, hint: str = "", key: str = ""
    ) -> None:
        """Report a problem once, however often it occurs, and in whatever words under its key."""
        key = key or message
        if key not in self._complaints:
            self._note(kind, source, message, hint)
            self._complaints[key] = self.say(kind, source, message, hint)

    def is_over(self, key: str) -> None:
        """Report it again when it occurs again."""
        self._complaints.pop(key, None)

    def forget_all_reports(self) -> None:
        """Report everything again when it occurs again."""
        self._complaints.clear()

    def keep(self, kind: EventKind, source: str, message: str, hint: str) -> None:
        """Have the ledger keep what went wrong."""
        event = Event(self.clock(), kind, message, hint, source)
        self.base.store.ledger.events.add(event)

    def _note(self, kind: EventKind, source: str, message: str, hint: str) -> None:
        with suppress(MemctlError):  # the ledger may be what fails
            self.keep(kind, source, message, hint)


def error_message(error: MemctlError | OSError) -> tuple[str, str]:
    """Return what an error says, and what to do about it."""
    if isinstance(error, MemctlError):
        return error.message, error.hint
    where = f"{printable(error.filename)}: " if error.filename else ""
    hint = os_error_hint(error, "free space or rights")
    return f"{where}{error.strerror or error}", f"{hint}; it is tried again"


POLLED = "watch_polls"
"""Where the ledger keeps the notices of folders that send no events."""
_HINT = "nothing is lost, it is only seen later; memctl doctor knows the limits of the system"


class PollingNotice(Struct):
    """What one knowledge base's watcher has reported of folders that send no events."""

    reporter: Reporter
    ledger: Ledger
    rescan_seconds: float
    _notices: Mapping[str, str] | None = None

    def note(self, silent: Mapping[Path, str]) -> None:
        """Record folders that send no events, each with why; report each reason once."""
        notices = {why: self._notice(why, silent) for why in dict.fromkeys(silent.values())}
        for why in notices.keys() - (self._notices or {}).keys():
            self.reporter.say("polling", message=notices[why], hint=_HINT)
        if notices != self._notices:
            with suppress(MemctlError):  # a full disk has room for it at the next look
                self.ledger.set_meta(POLLED, json.dumps(list(notices.values())))
                self._notices = notices

    def _notice(self, why: str, silent: Mapping[Path, str]) -> str:
        folders = sorted(printable(folder) for folder, reason in silent.items() if reason == why)
        more = f" and {len(folders) - 1:,} more" if len(folders) > 1 else ""
        return f"{folders[0]}{more}: no events ({why}); looking every {self.rescan_seconds:g} s"


def polled_folders(ledger: Ledger) -> tuple[str, ...]:
    """Return what the watcher has reported of folders that send no events."""
    return tuple(json.loads(ledger.meta(POLLED) or "[]"))
