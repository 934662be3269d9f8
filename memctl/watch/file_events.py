"""When to look: events of the file system and of the process wake the loop up early.

Events are hints.  They get lost, network shares send none, and their number is limited, so
nothing depends on them but how soon a file is seen.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from memctl.paths import os_error_reason

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver

_RETRY_SECONDS = 300.0
"""How long after the system has refused watches it is asked again."""
_EXHAUSTED = frozenset([errno.ENOSPC, errno.EMFILE, errno.ENOMEM])
_NULL_HANDLER = logging.NullHandler()


class WakeSignal:
    """What the loop sleeps on; may be rung from any thread and from a signal handler.

    A queue and not an event: `SimpleQueue.put` may be interrupted by a handler that calls it.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[None] = SimpleQueue()

    def notify(self) -> None:
        """Wake the loop, or keep it from falling asleep."""
        self._calls.put(None)

    def sleep(self, seconds: float) -> bool:
        """Sleep until notified, at most this long; say whether it was."""
        try:
            self._calls.get(timeout=max(seconds, 0.0))
        except Empty:
            return False
        with contextlib.suppress(Empty):
            while True:
                self._calls.get_nowait()
        return True


class FileEvents:
    """Observers of folders, which notify when something moves in them."""

    def __init__(self, wake: WakeSignal, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wake = wake
        self._monotonic = monotonic
        self._observer: BaseObserver | None = None
        self._folders: frozenset[Path] = frozenset()
        self._silent: dict[Path, str] = {}
        self._again_at = 0.0

    @property
    def silent(self) -> dict[Path, str]:
        """Folders that send no events though they should, and why."""
        return {folder: why for folder, why in self._silent.copy().items() if folder.is_dir()}

    def follow(self, folders: Iterable[Path]) -> None:
        """Observe these folders, with all below them, and no others.

        What the system allows no watch for is tried again from time to time.
        """
        wanted = frozenset(folder for folder in folders if folder.is_dir())
        is_due = bool(self.silent) and self._monotonic() >= self._again_at
        if wanted != self._folders or is_due:
            self.stop()
            self._folders = wanted
            self._again_at = self._monotonic() + _RETRY_SECONDS
            self._start(wanted)

    def stop(self) -> None:
        """Observe nothing any more."""
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.stop()
            observer.join()
        self._folders, self._silent = frozenset(), {}

    def _start(self, folders: Iterable[Path]) -> None:
        from watchdog.events import FileSystemEvent, FileSystemEventHandler

        # watchdog 7.1 logs an error for each event that comes while it stops, and Python prints
        # what no handler takes.
        logging.getLogger("watchdog").addHandler(_NULL_HANDLER)
        wake = self._wake

        class ChangeHandler(FileSystemEventHandler):
            """Rings for whatever may have changed a file."""

            def on_any_event(self, event: FileSystemEvent) -> None:
                """Ring, unless a file was only looked at."""
                if event.event_type not in ("opened", "closed_no_write"):
                    wake.notify()

        try:
            observer = _observer(self._silent)
        except OSError as error:  # the system allows no more instances, or no more open files
            self._silent |= dict.fromkeys(folders, os_error_reason(error))
            return
        observer.start()
        self._observer = observer
        for folder in folders:
            try:
                observer.schedule(ChangeHandler(), str(folder), recursive=True)
            except OSError as error:
                self._silent[folder] = os_error_reason(error)


def _observer(silent: dict[Path, str]) -> BaseObserver:
    """Return what observes folders here; it notes those that it gets no watch for.

    Raises:
        OSError: The system allows none.
    """
    if sys.platform != "linux":
        from watchdog.observers import Observer

        return Observer()
    from watchdog.observers.api import BaseObserver
    from watchdog.observers.inotify import InotifyEmitter
    from watchdog.observers.inotify_c import (
        CallbackId,
        InotifyFD,
        Mask,
        WatchCallback,
        WatchDescriptor,
    )

    # watchdog 7.1 warns where it adds a folder twice, as it does with one that appears with files
    # in it: once for the folder and once for what was in it by then.
    warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning, re.escape(__name__))

    class Watches(InotifyFD):
        """Notes what watchdog 7.1 passes over: subfolders beyond the system's limit."""

        def add_callback(
            self, path: bytes, mask: Mask, callback: WatchCallback, id_: CallbackId
        ) -> WatchDescriptor:
            """Watch a folder."""
            try:
                return super().add_callback(path, mask, callback, id_)
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    silent[Path(os.fsdecode(path))] = os_error_reason(error)
                raise

    class Observer(BaseObserver):
        """Observes with watches of its own."""

        def __init__(self) -> None:
            self._fd = Watches()
            self._fd.start()
            super().__init__(InotifyEmitter, inotify_fd=self._fd)

        def on_thread_stop(self) -> None:
            """End the watches, too."""
            super().on_thread_stop()
            self._fd.stop()
            self._fd.join()

    return Observer()


MOUNTS = Path("/proc/self/mountinfo")
"""What Linux has mounted; elsewhere nothing is known."""

_REMOTE = frozenset(
    (
        "9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "drvfs", "fuse", "gfs2",
        "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "prl_fs",
        "pvfs2", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs",
    )
)  # fmt: skip
_ESCAPED = re.compile(r"\\([0-7]{3})")


def share_type(folder: Path, mounts: Path | None = None) -> str:
    """Return the type of the network share that a folder is on; "" where it is on none.

    A file system of a program (``fuse.sshfs``) counts as one, for most of those are, but for one
    on a disk of this machine (``fuseblk``).
    """
    try:
        lines = os.fsdecode((mounts or MOUNTS).read_bytes()).splitlines()
    except OSError:
        return ""
    place = Path(os.path.realpath(folder))
    around: tuple[int, str] = (0, "")
    for line in lines:
        about, _, system = line.partition(" - ")
        point = Path(_ESCAPED.sub(lambda found: chr(int(found[1], 8)), about.split(" ")[4]))
        if point == place or point in place.parents:
            depth = len(point.parts)
            if depth >= around[0]:  # what is mounted over another one is listed after it
                around = depth, system.split(" ")[0]
    kind = around[1]
    return kind if kind in _REMOTE or kind.startswith("fuse.") else ""
