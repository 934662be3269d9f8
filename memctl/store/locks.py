"""The lock of the one writer and the leases of readers, both kernel locks that die with a process.

A side file names the lock's holder, for the message alone: whether the lock is held is the kernel's
to say, so a side file left by a killed process does no harm.

A lease names the table versions that a reader is looking at, so that they are not pruned: a small
file for each process, which counts for as long as the process keeps it locked.  No clock that jumps
and no reused process id makes it seem over.  It is rewritten only when a reader first sees a new
HEAD, so a query costs nothing more.  A lease is a courtesy: where it cannot be written, on a
read-only mount or a full disk, reading goes on without it, and a version is kept from pruning by
its age alone.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from memctl.errors import LockedError
from memctl.files import new_temporary, save_file
from memctl.locking import hold_lock, is_locked
from memctl.schema.table_names import TableName

if TYPE_CHECKING:
    from memctl.kb_settings import Layout
    from memctl.store.tables.snapshot import Snapshot

WAIT_SECONDS = 30.0
AS_SET: Literal["as set"] = "as set"
Wait = float | None | Literal["as set"]
"""Seconds to wait for another writer: for ever with None, or as the store is set."""


class Holder(Struct, frozen=True):
    """Who holds the lock, by its own account."""

    pid: int
    host: str
    since: str


class WriteLock:
    """The lock of one knowledge base; each use takes it anew, so threads exclude each other too."""

    def __init__(self, folder: Path, clock: Callable[[], datetime]) -> None:
        self._path = folder / "lock"
        self._holder_path = folder / "lock.holder"
        self._clock = clock

    @contextmanager
    def hold(self, wait: float | None) -> Iterator[None]:
        """Hold the lock, waiting at most ``wait`` seconds for it; without a limit if None.

        Raises:
            LockedError: Another process holds it; the message names the process.
            DiskRefused: It cannot be had.
        """
        with hold_lock(self._path, wait, self._locked_error):
            try:
                self._sign()
                yield
            finally:
                with suppress(OSError):  # it may just have become read-only
                    self._holder_path.unlink(missing_ok=True)

    def writer(self) -> Holder | None:
        """Return who holds the lock now, by its own account; None if it is free."""
        return self.holder() if self.is_held() else None

    def is_held(self) -> bool:
        """Return whether the lock is held now; the kernel says so, not the signature."""
        return is_locked(self._path, if_unreadable=False)

    def holder(self) -> Holder | None:
        """Return who signed last; None if there is no readable signature."""
        try:
            return Holder(**json.loads(self._holder_path.read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def _sign(self) -> None:
        signature = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": self._clock().isoformat(),
        }
        with suppress(OSError):  # on a full disk the lock is held all the same
            save_file(self._holder_path, json.dumps(signature).encode(), durable=False)

    def _locked_error(self) -> LockedError:
        holder = self.holder()
        who = f"process {holder.pid} on {holder.host}" if holder else "another process"
        return LockedError(
            f"{who} is writing to {self._path.parent}",
            "wait for it to finish, or see `memctl status` for what it is doing",
        )


def is_watched(layout: Layout) -> bool:
    """Return whether a daemon, perhaps another user's, holds the watch lock of a knowledge base."""
    return is_locked(layout.watch_lock, if_unreadable=True)


# --- leases of readers ----------------------------------------------------------------------------


LONGEST_SECONDS = 24 * 3600.0
"""How long a lease counts where no lock tells."""

Versions = Mapping[TableName, int]


class ReaderLeases:
    """The lease of this process on one knowledge base, and those of the others."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own = _Lease(folder / f"{os.getpid()}-{secrets.token_hex(4)}.json")
        self._mutex = threading.Lock()
        self._snapshots: weakref.WeakSet[Snapshot] = weakref.WeakSet()
        self._newest: Versions | None = None
        weakref.finalize(self, self._own.give_up)  # runs at exit, too

    def add(self, snapshot: Snapshot) -> None:
        """Hold a snapshot's versions for as long as it lives."""
        with self._mutex:
            self._snapshots.add(snapshot)
            if snapshot.versions != self._newest:
                with suppress(OSError):
                    self._own.write([item.versions for item in self._snapshots])
                self._newest = snapshot.versions

    def trim(self) -> None:
        """Release the versions that no snapshot in this process uses any more."""
        with self._mutex:
            live = [item.versions for item in self._snapshots]
            if live:
                with suppress(OSError):
                    self._own.write(live)
            else:
                self._newest = None
                self._own.give_up()

    def held_versions(self) -> list[Versions]:
        """Return every set of versions that a live reader may be looking at."""
        with self._mutex:
            mine: list[Versions] = [item.versions for item in self._snapshots]
        others = [path for path in self._folder.glob("*.json") if path != self._own.path]
        return mine + [versions for path in others for versions in _versions_in(path)]

    def close(self) -> None:
        """Release the lease."""
        with self._mutex:
            self._snapshots.clear()
            self._newest = None
            self._own.give_up()


class _Lease:
    """A file that is locked from before anybody can see it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def write(self, versions: list[Versions]) -> None:
        """Replace its content atomically."""
        lease = {"pid": os.getpid(), "host": socket.gethostname(), "versions": versions}
        self.path.parent.mkdir(exist_ok=True)
        temporary, descriptor = new_temporary(self.path)
        try:
            os.write(descriptor, json.dumps(lease).encode())
            temporary.replace(self.path)
        except BaseException:
            os.close(descriptor)
            temporary.unlink(missing_ok=True)
            raise
        self._release_former(descriptor)

    def give_up(self) -> None:
        """Remove it."""
        with suppress(OSError):  # a read-only mount refuses even what is not there
            self.path.unlink()
        self._release_former(None)

    def _release_former(self, descriptor: int | None) -> None:
        former, self._descriptor = self._descriptor, descriptor
        if former is not None:
            os.close(former)


def _versions_in(path: Path) -> list[Versions]:
    """Return what a lease holds; remove it when its process is gone."""
    try:
        with path.open("rb") as file:
            if _has_owner_gone(file.fileno()):
                # One that its living process has just replaced is another file by now.
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    path.unlink()
                    return []
                return _versions_in(path)
            return list(json.load(file)["versions"])
    except FileNotFoundError:  # its reader has just closed
        return []


def _has_owner_gone(descriptor: int) -> bool:
    """Return whether the process that had locked a file is gone."""
    if sys.platform == "win32":
        return time.time() - os.fstat(descriptor).st_mtime > LONGEST_SECONDS
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
