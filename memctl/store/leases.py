"""Which versions readers are looking at, told to the one who prunes: a small file a process.

A lease is rewritten only when a reader first sees a new HEAD, so a query costs nothing more.  It is
a courtesy: where it cannot be written, on a read-only mount or a full disk, reading goes on
without, and a version is kept from pruning by its age alone.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from memctl.files import save_file
from memctl.store.names import TableName
from memctl.store.snapshot import Snapshot

LONGEST = timedelta(hours=24)
"""A lease this old belongs to a process that has been killed, whatever runs under its number."""

Versions = Mapping[TableName, int]


class Leases:
    """The lease of this process on one knowledge base, and those of the others."""

    def __init__(self, folder: Path, clock: Callable[[], datetime]) -> None:
        self._folder = folder
        self._path = folder / f"{os.getpid()}-{secrets.token_hex(4)}.json"
        self._clock = clock
        self._mutex = threading.Lock()
        self._snapshots: weakref.WeakSet[Snapshot] = weakref.WeakSet()
        self._newest: Versions | None = None
        weakref.finalize(self, _give_up, self._path)  # runs at exit, too

    def add(self, snapshot: Snapshot) -> None:
        """Hold a snapshot's versions for as long as it lives."""
        with self._mutex:
            self._snapshots.add(snapshot)
            if snapshot.versions != self._newest:
                with suppress(OSError):
                    self._write([item.versions for item in self._snapshots])
                self._newest = snapshot.versions

    def held(self, now: datetime) -> list[Versions]:
        """Return every set of versions that a live reader may be looking at."""
        with self._mutex:
            mine: list[Versions] = [item.versions for item in self._snapshots]
        others = [path for path in self._folder.glob("*.json") if path != self._path]
        return mine + [versions for path in others for versions in _versions_in(path, now)]

    def close(self) -> None:
        """Give the lease up."""
        with self._mutex:
            self._snapshots.clear()
            self._newest = None
            _give_up(self._path)

    def _write(self, versions: list[Versions]) -> None:
        lease = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": self._clock().isoformat(),
            "versions": versions,
        }
        self._folder.mkdir(exist_ok=True)
        save_file(self._path, json.dumps(lease).encode(), durable=False)


def _give_up(path: Path) -> None:
    with suppress(OSError):  # a read-only mount refuses even what is not there
        path.unlink()


def _versions_in(path: Path, now: datetime) -> list[Versions]:
    """Return what a lease holds; take it away when its process is gone."""
    try:
        lease = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:  # its reader has just closed
        return []
    if _is_over(lease, now):
        path.unlink(missing_ok=True)
        return []
    return list(lease["versions"])


def _is_over(lease: Mapping[str, Any], now: datetime) -> bool:
    if now - datetime.fromisoformat(lease["since"]) > LONGEST:
        return True
    return lease["host"] == socket.gethostname() and not _is_alive(int(lease["pid"]))


def _is_alive(pid: int) -> bool:
    if os.name == "nt":  # where signal 0 would end the process; its lease ends by its age
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
