"""A home with one knowledge base, and a watcher that runs until nothing is left to do."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE

from memctl.cli.main import run
from memctl.config import load_config
from memctl.doctor.doctor import Doctor
from memctl.errors import MemctlError
from memctl.home import Home
from memctl.kb_settings import Inbox, Layout
from memctl.knowledge_base import KnowledgeBase
from memctl.watch.kb_watcher import WatchOptions
from memctl.watch.reporter import WatchEvent
from memctl.watch.service import WatchedBases, WatchService

SETTLE = 0.15


@dataclass
class Place:
    """A home, the layout of its knowledge base, and what the watcher has said."""

    home: Home
    layout: Layout
    events: list[WatchEvent] = field(default_factory=list)

    def drop(self, name: str | bytes, content: str | bytes = "") -> Path:
        """Put a file into the inbox."""
        path = self.layout.inbox / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        return put_whole(path, content)

    def service(self, **options: Any) -> WatchService:
        chosen = WatchOptions(settle_seconds=SETTLE, rescan_seconds=0.2, **options)
        return WatchService(WatchedBases(self.home), chosen, self.events.append)

    def drain(self) -> list[WatchEvent]:
        """Watch once; return what was said meanwhile."""
        before = len(self.events)
        self.service(once=True).run()
        return self.events[before:]

    def set(self, **changes: Any) -> None:
        self.home.change(self.layout.name, **changes)

    def keep(self, folder: Path) -> None:
        """Watch a folder whose files stay."""
        own = Inbox(self.layout.inbox)
        self.set(inboxes=(own, Inbox(folder, "keep")))

    def open(self) -> KnowledgeBase:
        return self.home.open(self.layout.name)

    def rows(self, table: str, *columns: str) -> list[dict[str, Any]]:
        with self.open() as base:
            return base.store.snapshot().scan(table, columns=list(columns)).to_pylist()

    def damage(self) -> list[str]:
        """What a thorough doctor finds damaged."""
        found = Doctor(self.home).examine(self.layout.name, deep=True)
        return [each.message for each in found if each.verdict == "damaged"]

    def tree(self, folder: Path) -> list[str]:
        """The files below a folder."""
        return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def new_place(folder: Path) -> Place:
    """Make a home in a folder, with one knowledge base that consolidates only when told to."""
    own = {key: value for key, value in os.environ.items() if key.startswith("MEMCTL_LIMITS_")}
    home = Home(load_config({"home": str(folder / "home")}, own))
    home.create("notes", consolidate_interval=0)
    return Place(home, home.layout("notes"))


def put_whole(path: Path, content: str | bytes) -> Path:
    """Write a file that a watcher sees whole or not at all, however slowly this goes on."""
    half = path.with_name(".half")
    half.write_bytes(content.encode() if isinstance(content, str) else content)
    return half.replace(path)


def memctl(
    place: Place, *arguments: str, wait: str = "30", rescan: str = "0.1"
) -> subprocess.Popen[str]:
    """Start a command on a place; its watcher does not let files settle."""
    environment = os.environ | {
        "MEMCTL_HOME": str(place.home.config.home),
        "MEMCTL_WATCH_SETTLE_SECONDS": "0",
        "MEMCTL_WATCH_RESCAN_SECONDS": rescan,
        "MEMCTL_STORE_WAIT_SECONDS": wait,
    }
    command = [sys.executable, "-m", "memctl", *arguments]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def command(home: Path, *arguments: str) -> int:
    """Run a command in this process, or compact the tables; return its exit code."""
    if arguments[0] == "compact":
        try:
            with Home(load_config({"home": str(home)})).open(arguments[-1]) as base:
                base.store.upkeep(force=True)
        except MemctlError as error:
            print(f"error: {error.message}\nhint: {error.hint}", file=sys.stderr)
            return error.exit_code
        except OSError as error:
            print(f"error: {error}\nhint: check the disk for errors", file=sys.stderr)
            return 1
        return 0
    return run(arguments)


class Daemon:
    """A service that runs in a thread."""

    def __init__(
        self, place: Place, service: WatchService | None = None, **options: object
    ) -> None:
        self.service = service or place.service(**options)
        self.thread = threading.Thread(target=self.service.run)

    def __enter__(self) -> Daemon:
        self.thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.service.stop()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()


@contextmanager
def second_file_system(beside: Path) -> Iterator[Path]:
    """Give a folder on another file system than a folder is on; skip without one."""
    for other in (Path("/dev/shm"), Path(tempfile.gettempdir())):
        if other.is_dir() and other.stat().st_dev != beside.stat().st_dev:
            with tempfile.TemporaryDirectory(dir=other) as name:
                yield Path(name)
            return
    pytest.skip("there is no second file system")
