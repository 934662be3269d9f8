"""Scans the inboxes of one knowledge base: which files are there, and which no longer change."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from memctl.files import is_being_written
from memctl.ingest.discovery.inbox_scan import (
    ALLOW_READING_HINT,
    InboxFile,
    InboxScan,
    excluded_folders,
    scan_inbox,
)
from memctl.ingest.discovery.sources import printable
from memctl.kb_settings import Inbox
from memctl.readers.file_kinds import kind_by_extension
from memctl.watch.reporter import Reporter

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase
    from memctl.store.ledger.ledger import Ledger


def scan_obstacle(inbox: Path, ledger: Ledger) -> str:
    """Return why an inbox cannot be scanned; "" if it can.

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


class _FileState(Struct, frozen=True):
    size: int
    mtime_ns: int
    since: float
    first_at: float


_CLOCK_DRIFT_SECONDS = 1.0
"""By this much two clocks may come apart between two looks before one of them counts as set."""


class StabilityTracker(Struct):
    """Remembers how files looked, to tell which have not changed for some seconds.

    One whose last change the system dates further back than that has stood still already; where
    its clock is ahead of ours, or was set while we looked, only looking again tells.
    """

    seconds: float
    wall: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    _seen: dict[Path, _FileState] = field(default_factory=dict)
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
                sight = _FileState(file.size, file.mtime_ns, now, first_at)
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
        """Record when the clock on the wall was set: ages that it tells begin anew then."""
        ahead = wall_now - now
        if self._ahead is not None and abs(ahead - self._ahead) > _CLOCK_DRIFT_SECONDS:
            self._steady_since = now
        self._ahead = ahead


FILES_AT_ONCE = 64
BYTES_AT_ONCE = 32 << 20
"""Files are taken in groups of at most this many, so that stopping never takes long."""

_LONG_FROM_BYTES = 100_000
"""A PDF of 700 KB with 150 pages of text is read in 13 seconds, other formats faster."""

_OPEN_ELSEWHERE = "a program still has it open for writing"
_TO_CLOSE_IT = "it is taken as soon as that is closed"


class InboxScanner(Struct):
    """Looks into inboxes, and says once what cannot be looked into."""

    base: KnowledgeBase
    reporter: Reporter
    settle_seconds: float
    clock: Callable[[], datetime]
    monotonic: Callable[[], float] = time.monotonic
    _trackers: dict[Path, StabilityTracker] = field(default_factory=dict)
    _out_of_reach: dict[Path, set[str]] = field(default_factory=dict)
    """What keeps folders of an inbox from being looked into."""

    def look(self, inbox: Inbox) -> InboxScan:
        """Return what lies in an inbox."""
        if problem := scan_obstacle(inbox.path, self.base.store.ledger):
            found = InboxScan(problems=(problem,))
        else:
            note_mount(inbox.path, self.base.store.ledger)
            found = scan_inbox(inbox.path, excluded_folders(self.base.layout, inbox.path))
        self._tell_of_problems(inbox, set(found.problems))
        return found

    def ready_files(
        self, inbox: Inbox, files: Sequence[InboxFile]
    ) -> tuple[list[InboxFile], float | None]:
        """Return the files that may be taken, and in how many seconds to look at the others."""
        if inbox.path not in self._trackers:
            self._trackers[inbox.path] = StabilityTracker(
                self.settle_seconds, lambda: self.clock().timestamp(), self.monotonic
            )
        ready, wait = self._trackers[inbox.path].ready(files)
        return [file for file in ready if self.is_readable(file)], wait

    def is_readable(self, file: InboxFile) -> bool:
        """Return whether a file and its sidecars may be read; say so if they may not."""
        if not file.obstacle:
            return True
        if file.path.exists():
            name = printable(file.path)
            self.reporter.complain("failed", name, file.obstacle, ALLOW_READING_HINT)
        return False

    def is_closed(self, file: InboxFile) -> bool:
        """Return whether no program has a file or a sidecar open for writing; say so if one has."""
        is_open = any(is_being_written(path) for path in (file.path, *file.sidecars))
        key = f"open {file.path}"
        if is_open:
            self.reporter.complain(
                "waiting", printable(file.path), _OPEN_ELSEWHERE, _TO_CLOSE_IT, key
            )
        else:
            self.reporter.is_over(key)
        return not is_open

    def _tell_of_problems(self, inbox: Inbox, problems: set[str]) -> None:
        """Report once that folders cannot be scanned, and once that they can again."""
        place, before = printable(inbox.path), self._out_of_reach.get(inbox.path, set())
        for problem in sorted(problems):
            self.reporter.complain("waiting", place, problem, "it is looked at again later")
        for problem in before - problems:
            self.reporter.is_over(problem)
        if before and not problems:
            self.reporter.say("resumed", place)
        self._out_of_reach[inbox.path] = problems


def take_batch(files: Iterable[InboxFile]) -> list[InboxFile]:
    """The first files, as many as may be taken at once and at least one.

    What takes long to read comes last, the smaller ones first, so that nothing quick waits for it.
    """
    taken: list[InboxFile] = []
    size = 0
    for file in sorted(files, key=_expected_effort):
        if taken and (_takes_long(file) != _takes_long(taken[0]) or len(taken) == FILES_AT_ONCE):
            break
        size += file.size
        if taken and size > BYTES_AT_ONCE:
            break
        taken.append(file)
    return taken


def _expected_effort(file: InboxFile) -> int:
    return file.size if _takes_long(file) else 0


def _takes_long(file: InboxFile) -> bool:
    """Return whether reading a file may take seconds: big ones of formats such as PDF."""
    kind = kind_by_extension(file.path.name)
    return file.size >= _LONG_FROM_BYTES and kind is not None and kind.is_isolated
