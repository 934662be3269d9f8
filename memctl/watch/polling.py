"""Folders that send no events: they are looked into from time to time, and that is told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.errors import MemctlError
from memctl.ingest.sources import printable
from memctl.watch.voice import Voice

if TYPE_CHECKING:
    from memctl.store.ledger import Ledger

POLLED = "watch_polls"
"""Where the ledger keeps what is told of folders that send no events."""
_HINT = "nothing is lost, it is only seen later; memctl doctor knows the limits of the system"


@dataclass(slots=True)
class Polling:
    """What one knowledge base's watcher has told of folders that send no events."""

    voice: Voice
    ledger: Ledger
    rescan_seconds: float
    _told: Mapping[str, str] | None = None

    def note(self, silent: Mapping[Path, str]) -> None:
        """Take note of folders that send no events, each with why; say each reason once."""
        told = {why: self._said(why, silent) for why in dict.fromkeys(silent.values())}
        for why in told.keys() - (self._told or {}).keys():
            self.voice.say("polling", message=told[why], hint=_HINT)
        if told != self._told:
            with suppress(MemctlError):  # a full disk has room for it at the next look
                self.ledger.set_meta(POLLED, json.dumps(list(told.values())))
                self._told = told

    def _said(self, why: str, silent: Mapping[Path, str]) -> str:
        folders = sorted(printable(folder) for folder, reason in silent.items() if reason == why)
        more = f" and {len(folders) - 1:,} more" if len(folders) > 1 else ""
        return f"{folders[0]}{more}: no events ({why}); looking every {self.rescan_seconds:g} s"


def polled(ledger: Ledger) -> tuple[str, ...]:
    """Return what the watcher has told of folders that send no events."""
    return tuple(json.loads(ledger.meta(POLLED) or "[]"))
