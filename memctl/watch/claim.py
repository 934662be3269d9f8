"""A file is claimed by renaming it into ``processing/``, and leaves it when its fate is known.

Each claim has a folder of its own there, named after the path that the file came from, so that
names stay as they are and sidecars stay beside their recording.  The ledger is written before
each step; ids are made from content, so a step that is done twice changes nothing.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.choices import After
from memctl.files import is_temporary
from memctl.ingest.sources import is_hidden, printable
from memctl.pinned import Layout
from memctl.readers.sidecars import SIDECARS
from memctl.records import FileOutcome
from memctl.store.books import FileEntry
from memctl.watch.inbox import InboxFile, folder_tags
from memctl.watch.moving import REASON_SUFFIX, free_place, is_half_copy, move_file, save_reason

if TYPE_CHECKING:
    from memctl.store.ledger import Ledger

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class Claimed:
    """A file in ``processing/``, with the path in the inbox that it came from."""

    path: Path
    original: Path
    inbox: Path
    size: int
    mtime_ns: int
    sidecars: tuple[Path, ...] = ()

    @property
    def relative(self) -> Path:
        """The path it had within the inbox."""
        return self.original.relative_to(self.inbox)

    @property
    def source(self) -> str:
        """The name it is remembered by."""
        return printable(self.relative.as_posix())

    @property
    def tags(self) -> tuple[str, ...]:
        """The subfolders that it lay in."""
        return folder_tags(self.relative)


class Claims:
    """The files of one knowledge base on their way through ``processing/``."""

    def __init__(self, layout: Layout, ledger: Ledger, clock: Clock) -> None:
        self._layout = layout
        self._ledger = ledger
        self._clock = clock
        self._began = clock()

    def claim(self, file: InboxFile) -> Claimed | None:
        """Take a file out of its inbox; None when it is not there any more.

        Raises:
            OSError: It could not be moved; it is still in the inbox.
        """
        self._note(file)
        folder = self._free_folder(file.path)
        folder.mkdir(parents=True)
        claimed = Claimed(
            folder / file.path.name,
            file.path,
            file.inbox,
            file.size,
            file.mtime_ns,
            tuple(folder / sidecar.name for sidecar in file.sidecars),
        )
        try:
            for sidecar in file.sidecars:
                move_file(sidecar, folder / sidecar.name)
            move_file(file.path, claimed.path)
        except OSError as error:
            self.put_back(claimed)
            if isinstance(error, FileNotFoundError):
                return None
            raise
        return claimed

    def leftovers(self) -> list[Claimed]:
        """Files that a daemon which was killed, or a failure of the store, left in processing."""
        entries = {claim_name(e.path): e for e in self._ledger.files.entries(["claimed"])}
        found: list[Claimed] = []
        met: set[str] = set()
        for folder in _folders(self._layout.processing):
            token = folder.name.partition("-")[0]
            claimed = self._leftover(folder, entries.get(token) if token not in met else None)
            if claimed is not None:
                found.append(claimed)
                met.add(token)
        for token in entries.keys() - met:  # claimed in the book alone, or moved on already
            self._ledger.files.remove(entries[token].path)
        self._check_moved()
        return [*found, *self._loose()]

    def sweep(self) -> None:
        """Remove what a daemon which was killed left of reasons that it was writing.

        Those are older than this daemon's claim to the knowledge base; nothing else is touched.
        """
        for path in self._layout.failed.rglob(f".*{REASON_SUFFIX}.*"):
            if is_temporary(path.name, REASON_SUFFIX):
                status = path.lstat()
                if stat.S_ISREG(status.st_mode) and status.st_mtime < self._began.timestamp():
                    path.unlink()

    def put_back(self, claimed: Claimed) -> None:
        """Return a file to the inbox that it came from, under another name if need be."""
        present = [path for path in (claimed.path, *claimed.sidecars) if os.path.lexists(path)]
        if present:
            parent = claimed.original.parent
            parent.mkdir(parents=True, exist_ok=True)
            first, *others = (Path(path.name) for path in present)
            places = free_place(parent, first, others)
            for path in reversed(present):
                move_file(path, places[Path(path.name)])
        self._ledger.files.remove(str(claimed.original))
        self._drop_folder(claimed)

    def finish(self, claimed: Claimed, after: After, outcome: FileOutcome) -> Path | None:
        """Move a file that is remembered to ``processed/``, or delete it; return where it is."""
        if after == "delete":
            for path in (*claimed.sidecars, claimed.path):
                path.unlink(missing_ok=True)
            self._ledger.files.remove(str(claimed.original))
            self._drop_folder(claimed)
            return None
        return self._move_on(claimed, self._layout.processed, outcome)

    def fail(self, claimed: Claimed, outcome: FileOutcome) -> Path:
        """Move a file that could not be taken in to ``failed/``, with its reason beside it."""
        return self._move_on(claimed, self._layout.failed, outcome)

    # --- inside ---

    def _note(self, file: InboxFile) -> None:
        now = self._clock()
        self._ledger.files.put(
            FileEntry(
                path=str(file.path),
                inbox=str(file.inbox),
                size=file.size,
                mtime_ns=file.mtime_ns,
                state="claimed",
                first_seen=now,
                updated_at=now,
            )
        )

    def _free_folder(self, original: Path) -> Path:
        token, number = claim_name(original), 1
        folder = self._layout.processing / token
        while folder.exists():
            number += 1
            folder = self._layout.processing / f"{token}-{number}"
        return folder

    def _leftover(self, folder: Path, entry: FileEntry | None) -> Claimed | None:
        for path in folder.iterdir():
            if is_half_copy(path.name):  # the whole file is where it came from
                path.unlink()
        files = sorted(path for path in folder.iterdir() if path.is_file())
        if not files:
            folder.rmdir()
            return None
        main = _main(files, Path(entry.path).name if entry else None)
        inbox = Path(entry.inbox) if entry else self._layout.inbox
        original = Path(entry.path) if entry else inbox / (main or files[0]).name
        status = (main or files[0]).stat()
        claimed = Claimed(
            main or folder / original.name,
            original,
            inbox,
            entry.size if entry else status.st_size,
            entry.mtime_ns if entry else status.st_mtime_ns,
            tuple(path for path in files if path != main),
        )
        if main is None:  # killed between a sidecar and its recording
            self.put_back(claimed)
            return None
        return claimed

    def _loose(self) -> list[Claimed]:
        """Files that somebody put into processing by hand."""
        found: list[Claimed] = []
        for path in _children(self._layout.processing):
            if path.is_file() and not path.is_symlink() and not is_hidden(path.name):
                status, inbox = path.stat(), self._layout.inbox
                original = inbox / path.name
                found.append(Claimed(path, original, inbox, status.st_size, status.st_mtime_ns))
        return found

    def _check_moved(self) -> None:
        """Correct what was written down just before files were moved out of processing."""
        for entry in self._ledger.files.entries(["indexed", "failed"]):
            if not os.path.lexists(entry.path):
                self._ledger.files.remove(entry.path)
            elif entry.state == "indexed":
                self._ledger.files.move(entry.path, "done", self._clock())

    def _move_on(self, claimed: Claimed, folder: Path, outcome: FileOutcome) -> Path:
        relative = claimed.relative
        (folder / relative.parent).mkdir(parents=True, exist_ok=True)
        sidecars = [Path(path.name) for path in claimed.sidecars]
        places = free_place(folder, relative, sidecars)
        target = places[relative]
        self._ledger.files.put(self._moved_entry(claimed, target, outcome))
        if outcome.outcome == "failed":
            save_reason(target, reason_of(outcome, printable(claimed.original), self._clock()))
        for path in claimed.sidecars:
            move_file(path, places[Path(path.name)])
        move_file(claimed.path, target)
        with self._ledger.transaction():
            self._ledger.files.remove(str(claimed.original))
            if outcome.outcome != "failed":
                self._ledger.files.move(str(target), "done", self._clock())
        self._drop_folder(claimed)
        return target

    def _moved_entry(self, claimed: Claimed, target: Path, outcome: FileOutcome) -> FileEntry:
        now = self._clock()
        return FileEntry(
            path=str(target),
            inbox=str(claimed.inbox),
            size=claimed.size,
            mtime_ns=claimed.mtime_ns,
            state="failed" if outcome.outcome == "failed" else "indexed",
            first_seen=now,
            updated_at=now,
            document_id=outcome.document_id,
            reason=outcome.reason,
            hint=outcome.hint,
        )

    def _drop_folder(self, claimed: Claimed) -> None:
        folder = claimed.path.parent
        if folder.parent == self._layout.processing and not any(folder.iterdir()):
            folder.rmdir()


def reason_of(outcome: FileOutcome, source: str, now: datetime) -> dict[str, str]:
    """Why a file failed, as it is written beside it."""
    return {
        "source": source,
        "message": outcome.reason,
        "hint": outcome.hint,
        "error": outcome.error,
        "at": now.isoformat(),
    }


def claim_name(original: str | Path) -> str:
    """Return how the names begin of folders in ``processing/`` for files from this path."""
    return hashlib.sha256(os.fsencode(original)).hexdigest()[:16]


def _children(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _folders(processing: Path) -> list[Path]:
    return [path for path in _children(processing) if path.is_dir() and not path.is_symlink()]


def _main(files: Sequence[Path], name: str | None) -> Path | None:
    """The file that was claimed, among its sidecars."""
    if name is not None:
        return next((path for path in files if path.name == name), None)
    others = [path for path in files if path.suffix.lower() not in SIDECARS]
    return (others or list(files))[0]
