"""Which versions readers are looking at, told to the one who prunes: a small file a process.

A lease counts for as long as its process keeps the file locked, which the kernel sees to: no clock
that jumps and no process that took over a number makes it seem over, and it ends with its process.
It is rewritten only when a reader first sees a new HEAD, so a query costs nothing more.  It is a
courtesy: where it cannot be written, on a read-only mount or a full disk, reading goes on without,
and a version is kept from pruning by its age alone.
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
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from memctl.files import new_temporary
from memctl.schema.table_names import TableName
from memctl.store.tables.snapshot import Snapshot

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

    def held(self) -> list[Versions]:
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
        self._let_go_of_former(descriptor)

    def give_up(self) -> None:
        """Remove it."""
        with suppress(OSError):  # a read-only mount refuses even what is not there
            self.path.unlink()
        self._let_go_of_former(None)

    def _let_go_of_former(self, descriptor: int | None) -> None:
        former, self._descriptor = self._descriptor, descriptor
        if former is not None:
            os.close(former)


def _versions_in(path: Path) -> list[Versions]:
    """Return what a lease holds; remove it when its process is gone."""
    try:
        with path.open("rb") as file:
            if _is_over(file.fileno()):
                # One that its living process has just replaced is another file by now.
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    path.unlink()
                    return []
                return _versions_in(path)
            return list(json.load(file)["versions"])
    except FileNotFoundError:  # its reader has just closed
        return []


def _is_over(descriptor: int) -> bool:
    """Whether the process that had locked a file is gone."""
    if sys.platform == "win32":
        return time.time() - os.fstat(descriptor).st_mtime > LONGEST_SECONDS
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
