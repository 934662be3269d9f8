"""Whether an inbox can be looked into, and which of its files have stood still.

A scan is the truth; events only say when to look.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.ingest.inbox import InboxFile
from memctl.ingest.sources import printable

if TYPE_CHECKING:
    from memctl.store.ledger import Ledger


def out_of_reach(inbox: Path, ledger: Ledger) -> str:
    """Say why an inbox cannot be looked into, "" where it can.

    The folder of a share that is not mounted is there, and empty: what was in it is not deleted.
    """
    if not os.path.isdir(inbox):  # noqa: PTH112 - Path.is_dir raises where a share hangs
        return f"no folder {printable(inbox)}"
    try:
        with os.scandir(inbox) as entries:
            is_empty = not any(entries)
    except OSError as error:
        return f"cannot list {printable(inbox)}: {error.strerror}"
    if is_empty and ledger.meta(_was_mounted(inbox)) and not os.path.ismount(inbox):
        return f"nothing is mounted at {printable(inbox)}"
    return ""


def note_mount(inbox: Path, ledger: Ledger) -> None:
    """Keep in the ledger that an inbox is a file system of its own, if it is."""
    if os.path.ismount(inbox) and not ledger.meta(_was_mounted(inbox)):
        ledger.set_meta(_was_mounted(inbox), "yes")


def _was_mounted(inbox: Path) -> str:
    return f"mounted {printable(inbox)}"


# --- standing still ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Sight:
    size: int
    mtime_ns: int
    since: float
    first_at: float


_CLOCK_DRIFT_SECONDS = 1.0
"""By so much two clocks may come apart between two looks before one of them counts as set."""


@dataclass(slots=True)
class Settling:
    """Remembers how files looked, to tell which have not changed for some seconds.

    One whose last change the system dates further back than that has stood still already; where
    its clock is ahead of ours, or was set while we looked, only looking again tells.
    """

    seconds: float
    wall: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    _seen: dict[Path, _Sight] = field(default_factory=dict)
    _ahead: float | None = None
    _steady_since: float = float("-inf")

    def ready(self, files: Iterable[InboxFile]) -> tuple[list[InboxFile], float | None]:
        """Return the files that stand still, and in how many seconds to look at the others."""
        now, wall_now = self.monotonic(), self.wall()
        self._note_clock(now, wall_now)
        before, self._seen = self._seen, {}
        ready: list[InboxFile] = []
        waits: list[float] = []
        for file in files:
            sight = before.get(file.path)
            if sight is None or (sight.size, sight.mtime_ns) != (file.size, file.mtime_ns):
                first_at = sight.first_at if sight else wall_now
                sight = _Sight(file.size, file.mtime_ns, now, first_at)
            self._seen[file.path] = sight
            dated = min(wall_now - file.changed_ns / 1e9, now - self._steady_since)
            age = max(now - sight.since, dated)
            if age >= self.seconds:
                seen_at = datetime.fromtimestamp(sight.first_at, UTC)
                ready.append(replace(file, seen_at=seen_at))
            else:
                waits.append(self.seconds - max(age, 0.0))
        return ready, min(waits, default=None)

    def _note_clock(self, now: float, wall_now: float) -> None:
        """Note when the clock on the wall was set: ages that it tells begin anew then."""
        ahead = wall_now - now
        if self._ahead is not None and abs(ahead - self._ahead) > _CLOCK_DRIFT_SECONDS:
            self._steady_since = now
        self._ahead = ahead
