"""The lock of the one writer: a kernel lock that dies with its process.

A side file names the holder, for the message alone: whether the lock is held is the kernel's to
say, so a side file left by a killed process does no harm.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from memctl.errors import LockedError
from memctl.files import save_file
from memctl.locking import hold_lock, is_locked

if TYPE_CHECKING:
    from memctl.kb_settings import Layout

WAIT_SECONDS = 30.0
AS_SET: Literal["as set"] = "as set"
Wait = float | None | Literal["as set"]
"""Seconds to wait for another writer: for ever with None, or as the store is set."""


@dataclass(frozen=True, slots=True)
class Holder:
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
    def held(self, wait: float | None) -> Iterator[None]:
        """Hold the lock; wait at most so many seconds for it, for ever with None.

        Raises:
            LockedError: Somebody else holds it; the message names the process.
            DiskRefused: It cannot be had.
        """
        with hold_lock(self._path, wait, self._locked):
            try:
                self._sign()
                yield
            finally:
                with suppress(OSError):  # it may just have become read-only
                    self._holder_path.unlink(missing_ok=True)

    def writer(self) -> Holder | None:
        """Return who holds the lock now, by its own account; None when nobody does."""
        return self.holder() if self.is_held() else None

    def is_held(self) -> bool:
        """Tell whether somebody holds the lock now; the kernel says so, not the signature."""
        return is_locked(self._path, out_of_reach=False)

    def holder(self) -> Holder | None:
        """Return who signed last; None when nobody has or the signature cannot be read."""
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

    def _locked(self) -> LockedError:
        holder = self.holder()
        who = f"process {holder.pid} on {holder.host}" if holder else "another process"
        return LockedError(
            f"{who} is writing to {self._path.parent}",
            "wait for it to finish, or see `memctl status` for what it is doing",
        )


def is_watched(layout: Layout) -> bool:
    """Whether a daemon, perhaps somebody else's, holds the watch lock of a knowledge base."""
    return is_locked(layout.watch_lock, out_of_reach=True)
