"""When to look: events of the file system and of the process wake the loop up early.

Events are hints.  They get lost, network shares send none, and their number is limited, so
nothing depends on them but how soon a file is seen.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver

_UNHEARD = logging.NullHandler()


class Wake:
    """What the loop sleeps on; may be rung from any thread and from a signal handler.

    A queue and not an event: `SimpleQueue.put` may be interrupted by a handler that calls it.
    """

    def __init__(self) -> None:
        self._rings: SimpleQueue[None] = SimpleQueue()

    def ring(self) -> None:
        """Wake the loop, or keep it from falling asleep."""
        self._rings.put(None)

    def sleep(self, seconds: float) -> bool:
        """Sleep until it rings, at most so long; say whether it rang."""
        try:
            self._rings.get(timeout=max(seconds, 0.0))
        except Empty:
            return False
        with contextlib.suppress(Empty):
            while True:
                self._rings.get_nowait()
        return True


class Hints:
    """Observers of folders, which ring when something moves in them."""

    def __init__(self, wake: Wake) -> None:
        self._wake = wake
        self._observer: BaseObserver | None = None
        self._folders: frozenset[Path] = frozenset()

    def follow(self, folders: Iterable[Path]) -> str:
        """Observe these folders and no others; return why that failed, or "" when it did not."""
        wanted = frozenset(folder for folder in folders if folder.is_dir())
        if wanted == self._folders:
            return ""
        self.stop()
        self._folders = wanted
        try:
            self._start(wanted)
        except OSError as error:  # the system allows no more watches, or no more open files
            self._stop_observer()
            return error.strerror or str(error)
        return ""

    def stop(self) -> None:
        """Observe nothing any more."""
        self._stop_observer()
        self._folders = frozenset()

    def _start(self, folders: Iterable[Path]) -> None:
        from watchdog.events import FileSystemEvent, FileSystemEventHandler
        from watchdog.observers import Observer

        # watchdog 7.1 logs an error for each event that comes while it stops, and Python prints
        # what no handler takes.
        logging.getLogger("watchdog").addHandler(_UNHEARD)
        wake = self._wake

        class Ringing(FileSystemEventHandler):
            """Rings for whatever may have changed a file."""

            def on_any_event(self, event: FileSystemEvent) -> None:
                """Ring, unless a file was only looked at."""
                if event.event_type not in ("opened", "closed_no_write"):
                    wake.ring()

        self._observer = Observer()
        for folder in folders:
            self._observer.schedule(Ringing(), str(folder), recursive=True)
        self._observer.start()

    def _stop_observer(self) -> None:
        observer, self._observer = self._observer, None
        if observer is not None and observer.is_alive():
            observer.stop()
            observer.join()
