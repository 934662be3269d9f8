"""What lies in an inbox: files that may be taken, and which of them have stood still.

A scan is the truth; events only say when to look.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.ingest.ignore import IgnoreRules
from memctl.ingest.sources import is_hidden, printable
from memctl.readers.sidecars import by_recording

if TYPE_CHECKING:
    from memctl.store.ledger import Ledger

_BROWSERS = (".part", ".partial", ".crdownload", ".download", ".opdownload", ".filepart", ".aria2")
_EDITORS = (".tmp", ".temp", ".swp", ".swo", ".swx")
PARTIAL_SUFFIXES = frozenset((*_BROWSERS, *_EDITORS))
_SYSTEM_NAMES = frozenset(["thumbs.db", "desktop.ini"])


@dataclass(frozen=True, slots=True)
class InboxFile:
    """A regular file of an inbox; a recording comes with the subtitles that lie beside it."""

    path: Path
    inbox: Path
    size: int
    """Bytes, sidecars included."""
    mtime_ns: int
    """The newest of file and sidecars."""
    changed_ns: int
    """When content, name or rights last changed, by the system's own account."""
    sidecars: tuple[Path, ...] = ()
    seen_at: datetime | None = field(default=None, compare=False)
    """When the watcher first saw it, of one that has stood still."""

    @property
    def relative(self) -> Path:
        """The path within the inbox."""
        return self.path.relative_to(self.inbox)

    @property
    def tags(self) -> tuple[str, ...]:
        """The names of the subfolders it lies in."""
        return folder_tags(self.relative)


@dataclass(frozen=True, slots=True)
class Scan:
    """What one look at an inbox found; ``problems`` are folders that could not be listed."""

    files: tuple[InboxFile, ...] = ()
    problems: tuple[str, ...] = ()


def folder_tags(relative: Path) -> tuple[str, ...]:
    """The subfolders of a path as tags."""
    return tuple(dict.fromkeys(printable(part) for part in relative.parent.parts))


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


def may_be_taken(name: str) -> bool:
    """Whether a name is not that of a hidden, temporary or half-downloaded file."""
    lower = name.lower()
    return not (
        is_hidden(name)
        or lower.startswith("~$")
        or lower.endswith("~")
        or lower in _SYSTEM_NAMES
        or Path(lower).suffix in PARTIAL_SUFFIXES
    )


def scan(inbox: Path, exclude: Collection[Path] = ()) -> Scan:
    """Look through an inbox and its subfolders; links, pipes and devices are passed over.

    Args:
        inbox: The folder.
        exclude: Folders within it that are none of its business.
    """
    problems: list[str] = []
    files: list[InboxFile] = []
    for folder_files in _folders(inbox, inbox, IgnoreRules.above(inbox), exclude, problems):
        files += _with_sidecars(folder_files)
    files.sort(key=lambda file: (file.mtime_ns, os.fsencode(file.path)))
    return Scan(tuple(files), tuple(problems))


def _folders(
    folder: Path,
    inbox: Path,
    inherited: IgnoreRules,
    exclude: Collection[Path],
    problems: list[str],
) -> Iterator[list[InboxFile]]:
    rules = inherited.within(folder)
    try:
        with os.scandir(folder) as entries:
            children = [entry for entry in entries if may_be_taken(entry.name)]
    except OSError as error:
        problems.append(f"cannot list {printable(folder)}: {error.strerror}")
        return
    files: list[InboxFile] = []
    for entry in children:
        path = Path(entry.path)
        is_folder = entry.is_dir(follow_symlinks=False)
        if path in exclude or rules.ignore(path, is_folder=is_folder):
            continue
        if is_folder:
            yield from _folders(path, inbox, rules, exclude, problems)
        elif entry.is_file(follow_symlinks=False) and (file := _file(entry, inbox)):
            files.append(file)
    yield files


def _file(entry: os.DirEntry[str], inbox: Path) -> InboxFile | None:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:  # gone since the folder was listed
        return None
    # On Windows st_ctime is the time of creation and says nothing about changes.
    changed = status.st_mtime_ns if os.name == "nt" else status.st_ctime_ns
    newest = max(status.st_mtime_ns, changed)
    return InboxFile(Path(entry.path), inbox, status.st_size, status.st_mtime_ns, newest)


def _with_sidecars(files: Iterable[InboxFile]) -> list[InboxFile]:
    """Put subtitles to their recordings; those without one stay on their own."""
    everything = {file.path: file for file in files}
    for recording, subtitles in by_recording(list(everything)).items():
        own = [everything.pop(subtitle) for subtitle in subtitles]
        everything[recording] = _joined(everything[recording], own)
    return list(everything.values())


def _joined(file: InboxFile, sidecars: list[InboxFile]) -> InboxFile:
    everything = [file, *sidecars]
    return replace(
        file,
        size=sum(each.size for each in everything),
        mtime_ns=max(each.mtime_ns for each in everything),
        changed_ns=max(each.changed_ns for each in everything),
        sidecars=tuple(each.path for each in sidecars),
    )


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
