"""The folders of knowledge bases on this disk: found, made whole, renamed, removed, swept.

Knows neither who acts nor the settings of the program.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memctl.errors import (
    DiskRefused,
    KnowledgeBaseNotFound,
    LockedError,
    MemctlError,
    UsageError,
)
from memctl.files import make_folder, sync_entry
from memctl.kb_settings import (
    KnowledgeBaseSettings,
    Layout,
    check_name,
    is_kb_name,
    load_settings,
    save_settings,
)
from memctl.knowledge_base import KnowledgeBase
from memctl.locking import hold_lock
from memctl.paths import display_path, os_error_hint, os_error_reason
from memctl.store.tables.storage import TABLES_FOLDER
from memctl.validation import nearest

if TYPE_CHECKING:
    from memctl.store.ledger.ledger import Ledger

Clock = Callable[[], datetime]
_STALE_SECONDS = 3600
_EXCLUSIVE_WAIT = 5.0
_MARKS = ("kb.toml", "ledger.sqlite", TABLES_FOLDER)
"""One of these is in the folder of every knowledge base, even of a damaged one."""
_LOCKS = {"lock", "lock.holder", "watch.lock", "kb.toml.lock"}


def own_values(settings: KnowledgeBaseSettings) -> dict[str, dict[str, Any]]:
    """Return what a knowledge base says instead of the program's settings, as objects."""
    return {name: dict(getattr(settings, name)) for name in ("models", "endpoint", "budget")}


class KnowledgeBaseEntry(Struct, frozen=True):
    """One line of the list of knowledge bases; ``problem`` says why settings are missing."""

    name: str
    folder: Path
    settings: KnowledgeBaseSettings | None
    problem: str = ""

    def row(self) -> dict[str, Any]:
        """Return it as listings show it."""
        names = KnowledgeBaseSettings.__struct_fields__
        row: dict[str, Any] = {"name": self.name, "folder": str(self.folder)}
        if self.settings is None:
            failed = {"name": self.name, "status": "error", "inbox": None, "problem": self.problem}
            return row | dict.fromkeys(names) | failed
        values = {name: getattr(self.settings, name) for name in names}
        values |= own_values(self.settings)
        derived = {"inbox": str(self.folder / "inbox"), "privacy": _privacy(self.settings)}
        return row | values | derived | {"problem": None}


def _privacy(settings: KnowledgeBaseSettings) -> str:
    """What of it is private, in words; nothing where nothing is."""
    namespaces = (" ".join(name.split()) for name in settings.private_namespaces)
    return "all" if settings.private else ", ".join(namespaces)


def _may_be(path: Path) -> bool:
    """Return whether something is there, or is where this user may not look."""
    try:
        return path.exists()
    except PermissionError:
        return True


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Turn what the disk or its permissions refuse into one line with a hint."""
    try:
        yield
    except OSError as error:
        there = next(each for each in (folder, *folder.parents) if _may_be(each))
        what = f"write to {display_path(folder)}"
        if there != folder:
            what = f"make {display_path(folder)} in {display_path(there)}"
        raise DiskRefused(
            f"cannot {what}: {os_error_reason(error)}",
            os_error_hint(error, "check the disk's space and permissions"),
        ) from error


@contextmanager
def open_ledger(layout: Layout) -> Iterator[Ledger]:
    """Open the ledger of a knowledge base alone, and close it."""
    from memctl.store.ledger.ledger import Ledger
    from memctl.store.store import LEDGER_FILE

    with closing(Ledger.open(layout.folder / LEDGER_FILE)) as ledger:
        yield ledger


def empty_folder(folder: Path) -> None:
    """Remove what is in a folder, and keep the folder."""
    with writing_to(folder):
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


@contextmanager
def _exclusively(layout: Layout, clock: Clock) -> Iterator[None]:
    """Keep every other process from writing to a knowledge base and watching it.

    Raises:
        LockedError: Another process does.
        DiskRefused: There is no permission to.
    """
    from memctl.store.locks import WriteLock

    watched = LockedError(
        f"{layout.name!r} is being watched",
        f"memctl kb pause {layout.name} ends that; memctl status names the process",
    )
    writing = WriteLock(layout.folder, clock).hold(_EXCLUSIVE_WAIT)
    with writing, hold_lock(layout.watch_lock, 0, lambda: watched):
        yield


class KnowledgeBaseFolders:
    """The folders of all knowledge bases: each is there whole or not at all.

    Args:
        folder: Where they are; it need not exist yet.
        clock: Returns the current time.
    """

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock

    def check(self) -> None:
        """Refuse a folder that is there and cannot be listed: it would look like an empty one.

        Raises:
            DiskRefused: Its permissions forbid it, or it is no folder.
        """
        try:
            os.scandir(self._folder).close()
        except FileNotFoundError:
            return  # made with the first knowledge base
        except OSError as error:
            raise DiskRefused(
                f"cannot list {display_path(self._folder)}: {os_error_reason(error)}",
                os_error_hint(error),
            ) from error

    def check_creatable(self) -> None:
        """Refuse a home that is not there and cannot be made; try it beside where it would be.

        Raises:
            DiskRefused: It cannot be made.
        """
        home = self._folder.parent
        if _may_be(home):
            return
        above = next(folder for folder in home.parents if _may_be(folder))
        try:
            Path(tempfile.mkdtemp(prefix=".memctl-", dir=above)).rmdir()
        except OSError as error:
            raise DiskRefused(
                f"the home {display_path(home)} cannot be made: {os_error_reason(error)}",
                "set MEMCTL_HOME to a folder that can be written to",
            ) from error

    def names(self) -> list[str]:
        """Return the names of all knowledge bases, sorted.

        These include folders that cannot be entered, and those with only tables or a ledger left.
        """
        if not self._folder.is_dir():
            return []
        found = (path.name for path in self._folder.iterdir() if is_kb_name(path.name))
        return sorted(name for name in found if self.exists(name))

    def entries(self) -> list[KnowledgeBaseEntry]:
        """Return every knowledge base; one whose settings cannot be read is among them."""
        return [self._entry(name) for name in self.names()]

    def _entry(self, name: str) -> KnowledgeBaseEntry:
        layout = Layout(self._folder / name)
        try:
            return KnowledgeBaseEntry(name, layout.folder, load_settings(layout.settings))
        except MemctlError as error:
            return KnowledgeBaseEntry(name, layout.folder, None, error.message)

    def exists(self, name: str) -> bool:
        """Return whether there is a knowledge base of that name."""
        folder = self._folder / check_name(name)
        return any(_may_be(folder / mark) for mark in _MARKS)

    def layout(self, name: str) -> Layout:
        """Return the folder of a knowledge base.

        Raises:
            UsageError: No knowledge base can have that name.
            KnowledgeBaseNotFound: There is none of that name.
        """
        if not self.exists(name):
            raise KnowledgeBaseNotFound(f"no knowledge base {name!r}", self.suggestion(name))
        return Layout(self._folder / name)

    def suggestion(self, name: str) -> str:
        """Return what to do where there is no knowledge base of a name."""
        names = self.names()
        if near := nearest(name, names):
            return near
        if names:
            return f"there are {', '.join(names[:8])}; `memctl kb list` shows them all."
        return f"create it: memctl kb create {name}"

    def make(self, name: str, settings_for: Callable[[Layout], KnowledgeBaseSettings]) -> None:
        """Make a knowledge base.

        Args:
            name: Its name, which is free.
            settings_for: Gives its settings, for where it stands until it is whole.

        Raises:
            UsageError: Another process has made one of that name.
            DiskRefused: It cannot be written.
        """
        with writing_to(self._folder):
            make_folder(self._folder.parent, mode=0o700)
            make_folder(self._folder, mode=0o700)
            self.sweep()
            self._free(name)
            made = Layout(self._folder / f".new-{secrets.token_hex(6)}")
            try:
                self._fill(made, settings_for(made))
                self._rename(made.folder, self._folder / name)
            except BaseException:
                shutil.rmtree(made.folder, ignore_errors=True)
                raise

    def _fill(self, layout: Layout, settings: KnowledgeBaseSettings) -> None:
        layout.folder.mkdir(mode=0o700)
        for folder in (layout.inbox, layout.processing, layout.processed, layout.failed):
            folder.mkdir(mode=0o700)
        KnowledgeBase.create(layout, settings, self._clock)
        save_settings(layout.settings, settings)

    def rename(self, old: str, new: str) -> None:
        """Give a knowledge base another name, which is free.

        Raises:
            LockedError: Another process is writing to it or watching it.
        """
        layout = self.layout(old)
        with _exclusively(layout, self._clock):
            self.layout(old)  # another process may have been faster
            self._rename(layout.folder, self._folder / new)
            with suppress(MemctlError), open_ledger(self.layout(new)) as ledger:
                ledger.follow_folder(str(layout.folder))  # or a watcher has a damaged one do so

    def remove(self, name: str) -> None:
        """Remove a knowledge base in one step; what is left of its files goes after that.

        Raises:
            LockedError: Another process is writing to it or watching it.
        """
        layout = self.layout(name)
        trash = self._folder / f".deleted-{secrets.token_hex(6)}"
        with _exclusively(layout, self._clock):
            self.layout(name)  # another process may have been faster
            self._rename(layout.folder, trash)
        shutil.rmtree(trash, ignore_errors=True)

    def _rename(self, old: Path, new: Path) -> None:
        with writing_to(self._folder):
            try:
                old.rename(new)
            except OSError as error:
                if new.exists() and not new.is_dir():
                    raise UsageError(
                        f"no knowledge base can be called {new.name!r}: {new} is a file",
                        "move the file away, or choose another name",
                    ) from error
                if new.exists():
                    raise UsageError(f"knowledge base {new.name!r} is there already") from error
                raise
            sync_entry(new)

    def sweep(self) -> None:
        """Remove what a crash in the middle of creating, deleting or a trial repair left behind."""
        for path in self._folder.glob(".deleted-*"):
            shutil.rmtree(path, ignore_errors=True)
        for path in (*self._folder.glob(".new-*"), *self._folder.glob(".trial-*")):
            with suppress(FileNotFoundError):  # another process has just finished it
                if self._clock().timestamp() - path.stat().st_mtime > _STALE_SECONDS:
                    shutil.rmtree(path, ignore_errors=True)

    def _free(self, name: str) -> None:
        """Remove the folder that a process waiting for the lock of a deleted one makes again."""
        with suppress(FileNotFoundError, NotADirectoryError):
            if {path.name for path in (self._folder / name).iterdir()} <= _LOCKS:
                shutil.rmtree(self._folder / name, ignore_errors=True)
