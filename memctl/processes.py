"""Whether a process is still there."""

from __future__ import annotations

import os
import socket


def is_alive(pid: int, host: str) -> bool:
    """Say whether a process runs; one on another machine is taken to, for nobody here can tell."""
    if host != socket.gethostname() or os.name == "nt":  # on Windows signal 0 would end it
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
