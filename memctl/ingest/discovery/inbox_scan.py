"""What lies in an inbox: which files of it may be taken, and why the others are left.

The watcher takes what a scan gives and nothing else, so questions about one file ask a scan.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from memctl.files import modified_ns
from memctl.ingest.discovery.skip_rules import (
    DEEPEST_FOLDER,
    TOO_DEEP,
    IgnoreRules,
    inbox_skip_reason,
)
from memctl.ingest.discovery.sources import by_owner, printable
from memctl.paths import display_path

if TYPE_CHECKING:
    from memctl.kb_settings import Layout
    from memctl.records import SkipReason
    from memctl.store.ledger.work_repositories import FileEntry

ALLOW_READING_HINT = "allow it to be read; it is left where it is"
"""What to do about an obstacle."""
SkipListener = Callable[[Path, "SkipReason"], None]
"""Called with a file that is skipped, or a folder that is not entered, and why."""


class InboxFile(Struct, frozen=True):
    """A regular file of an inbox, with the subtitles or logs beside it that belong to it."""

    path: Path
    inbox: Path
    size: int
    """Bytes, sidecars included."""
    mtime_ns: int
    """The newest of file and sidecars."""
    changed_ns: int
    """When content, name or rights last changed, by the system's own account."""
    sidecars: tuple[Path, ...] = ()
    seen_at: datetime | None = None
    """When the watcher first saw it, of one that has stood still."""

    @property
    def relative(self) -> Path:
        """The path within the inbox."""
        return self.path.relative_to(self.inbox)

    @property
    def tags(self) -> tuple[str, ...]:
        """The names of the subfolders it lies in."""
        return folder_tags(self.relative)

    @property
    def obstacle(self) -> str:
        """What keeps it, or a sidecar, from being read; it is left until nothing does any more."""
        if all(os.access(path, os.R_OK) for path in (self.path, *self.sidecars)):
            return ""
        return f"cannot read {printable(self.path)}: permission denied"

    def is_unchanged_since(self, row: FileEntry | None) -> bool:
        """Return whether it looks as it did when it was taken in, of an inbox whose files stay."""
        return row is not None and (row.size, row.mtime_ns) == (self.size, self.mtime_ns)


class InboxScan(Struct, frozen=True):
    """What one look at an inbox found; ``problems`` are folders that could not be listed."""

    files: tuple[InboxFile, ...] = ()
    problems: tuple[str, ...] = ()

    def changed(self, rows: Mapping[str, FileEntry]) -> list[InboxFile]:
        """Return the files that are new or look otherwise than when they were taken in.

        Args:
            rows: What the ledger knows of the inbox, by path.
        """
        return [
            file for file in self.files if not file.is_unchanged_since(rows.get(str(file.path)))
        ]


def folder_tags(relative: Path) -> tuple[str, ...]:
    """The subfolders of a path as tags."""
    return tuple(dict.fromkeys(printable(part) for part in relative.parent.parts))


def excluded_folders(layout: Layout, inbox: Path) -> tuple[Path, ...]:
    """Return the folders within an inbox that are none of its business: memctl's, if it has it."""
    is_inside = inbox == layout.folder or layout.folder in inbox.parents
    return () if is_inside else (layout.folder,)


def scan_inbox(
    inbox: Path,
    exclude: Collection[Path] = (),
    *,
    towards: Path | None = None,
    left: SkipListener = lambda _path, _why: None,
) -> InboxScan:
    """Look through an inbox and its subfolders; links, pipes and devices are passed over.

    Args:
        inbox: The folder.
        exclude: Folders within it that are none of its business.
        towards: Look only into the folders on the way to this path.
        left: Called with everything that is skipped.
    """
    look = _Scanner(inbox, exclude, towards, left)
    files: list[InboxFile] = []
    for folder_files in look.folders(inbox, IgnoreRules.above(inbox)):
        files += _with_sidecars(folder_files)
    files.sort(key=lambda file: (file.mtime_ns, os.fsencode(file.path)))
    return InboxScan(tuple(files), tuple(look.problems))


class _Scanner(Struct):
    """One look at an inbox."""

    inbox: Path
    exclude: Collection[Path]
    towards: Path | None
    left: SkipListener
    problems: list[str] = field(default_factory=list)

    def folders(self, folder: Path, inherited: IgnoreRules) -> Iterator[list[InboxFile]]:
        """The files of a folder and of those in it, folder by folder."""
        if len(folder.parts) - len(self.inbox.parts) > DEEPEST_FOLDER:
            self.problems.append(f"cannot list {display_path(printable(folder))}: {TOO_DEEP}")
            return
        rules = inherited.within(folder)
        try:
            with os.scandir(folder) as entries:
                children = [entry for entry in entries if self._may_be_taken(entry, rules)]
        except OSError as error:
            self.problems.append(f"cannot list {printable(folder)}: {error.strerror}")
            return
        files: list[InboxFile] = []
        for entry in children:
            if not entry.is_dir(follow_symlinks=False):
                file = _file(entry, self.inbox)
                files += [file] if file else []
            elif self.towards is None or Path(entry.path) in self.towards.parents:
                yield from self.folders(Path(entry.path), rules)
        yield files

    def _may_be_taken(self, entry: os.DirEntry[str], rules: IgnoreRules) -> bool:
        why = inbox_skip_reason(entry, rules, self.exclude)
        if why is not None:
            self.left(Path(entry.path), why)
        return why is None


def _file(entry: os.DirEntry[str], inbox: Path) -> InboxFile | None:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:  # gone since the folder was listed
        return None
    modified = modified_ns(status)
    # On Windows st_ctime is the time of creation and says nothing about changes.  Elsewhere no
    # change goes without it, and programs do not set it to the future, unlike the other.
    newest = modified if os.name == "nt" else status.st_ctime_ns
    return InboxFile(Path(entry.path), inbox, status.st_size, modified, newest)


def _with_sidecars(files: Iterable[InboxFile]) -> list[InboxFile]:
    """Put to files what goes with them; subtitles without a recording stay on their own."""
    everything = {file.path: file for file in files}
    for owner, sidecars in by_owner(list(everything)).items():
        own = [everything.pop(sidecar) for sidecar in sidecars]
        everything[owner] = _join_sidecars(everything[owner], own)
    return list(everything.values())


def _join_sidecars(file: InboxFile, sidecars: list[InboxFile]) -> InboxFile:
    everything = [file, *sidecars]
    return replace(
        file,
        size=sum(each.size for each in everything),
        mtime_ns=max(each.mtime_ns for each in everything),
        changed_ns=max(each.changed_ns for each in everything),
        sidecars=tuple(each.path for each in sidecars),
    )
