"""What commands in the resident process share, and which of them it leaves to their callers."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

from memctl.config import Config
from memctl.knowledge_base.warm_state import WarmState
from memctl.resident.protocol import identity_of
from memctl.resident.server import CommandDeclined


class Host:
    """The resident process as a command sees it.

    Args:
        home: The folder of all knowledge bases that it serves.
        memory_mb: Above this much memory it drops its caches; with still more it ends.
    """

    def __init__(self, home: Path, memory_mb: int) -> None:
        self.warm = WarmState(self.leave_to_caller)
        self._home = identity_of(str(home))
        self._memory_bytes = memory_mb << 20

    def require_suited(self, config: Config) -> None:
        """Leave a command to its caller that is about another home.

        Raises:
            CommandDeclined: It is.
        """
        if not config.resident.enabled:
            raise CommandDeclined
        try:
            is_same = identity_of(str(config.home)) == self._home
        except OSError:
            is_same = False
        if not is_same:
            raise CommandDeclined

    def leave_to_caller(self) -> None:
        """Have a command carried out by its caller.

        Raises:
            CommandDeclined: Always.
        """
        raise CommandDeclined

    def settle(self) -> bool:
        """Free memory after a command, where it takes too much; tell whether to go on."""
        if resident_bytes() <= self._memory_bytes:
            return True
        self.warm.drop()
        gc.collect()
        return resident_bytes() <= self._memory_bytes


def resident_bytes(pid: int | str = "self") -> int:
    """Return how much memory a process takes; 0 where the system does not say."""
    if sys.platform != "linux":
        return 0
    import os

    pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
