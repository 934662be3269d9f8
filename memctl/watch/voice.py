"""What the watcher of one knowledge base says: each thing once, and what is wrong now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from memctl.errors import MemctlError
from memctl.ingest.sources import printable
from memctl.store.books import Event
from memctl.watch.report import EventKind, Listener, WatchEvent
from memctl.watch.served import Served

Clock = Callable[[], datetime]


@dataclass(slots=True)
class Voice:
    """Tells the listener, and has the ledger keep what goes wrong."""

    base: Served
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
        """Tell of one thing that happened."""
        event = WatchEvent(
            self.clock(), kind, self.base.name, source, message, hint, document_id, detail or {}
        )
        self.listener(event)
        return event

    def complain(
        self, kind: EventKind, source: str, message: str, hint: str = "", key: str = ""
    ) -> None:
        """Say it once, however often it is met, even if in other words under the same key."""
        key = key or message
        if key not in self._complaints:
            self._note(kind, source, message, hint)
            self._complaints[key] = self.say(kind, source, message, hint)

    def is_over(self, key: str) -> None:
        """Say it anew when it is met again."""
        self._complaints.pop(key, None)

    def all_is_over(self) -> None:
        """Say everything anew when it is met again."""
        self._complaints.clear()

    def keep(self, kind: EventKind, source: str, message: str, hint: str) -> None:
        """Have the ledger keep what went wrong."""
        event = Event(self.clock(), kind, message, hint, source)
        self.base.store.ledger.events.add(event)

    def _note(self, kind: EventKind, source: str, message: str, hint: str) -> None:
        with suppress(MemctlError):  # the ledger may be what fails
            self.keep(kind, source, message, hint)


def told(error: MemctlError | OSError) -> tuple[str, str]:
    """Return what an error says, and what to do about it."""
    if isinstance(error, MemctlError):
        return error.message, error.hint
    where = f"{printable(error.filename)}: " if error.filename else ""
    return f"{where}{error.strerror or error}", "free space or rights; it is tried again"
