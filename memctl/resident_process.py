"""``python -m memctl.resident_process``: the command line, served over a socket.

Started by ``memctl resident start`` and by commands that run for long; see ``memctl.resident``.
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

from memctl import __version__
from memctl.cli.main import OBJECTS_BETWEEN_COLLECTIONS, run
from memctl.config import load_config
from memctl.errors import LockedError, MemctlError
from memctl.locking import hold_lock
from memctl.machine import limit_malloc_caching
from memctl.resident.hosting import Host
from memctl.resident.processes import READY
from memctl.resident.protocol import FOLDER, fingerprint, greeting, identity_of, is_own_folder
from memctl.resident.server import Server


def main() -> int:
    """Serve the home that the arguments name until it is no longer needed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", required=True)
    parser.add_argument("--config", default="")
    parser.add_argument("--ready", type=int, default=-1, metavar="DESCRIPTOR")
    parser.add_argument("--lifeline", type=int, default=-1, metavar="DESCRIPTOR")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    os.umask(0o077)
    limit_malloc_caching()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    home = Path(given.home)
    folder = home / FOLDER
    flags = {"home": given.home, **({"config": given.config} if given.config else {})}
    try:
        settings = load_config(flags).resident
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_own_folder(str(folder)):
            raise MemctlError(f"{folder} is not this user's alone", f"chmod 700 {folder}")
        with hold_lock(folder / "lock", 0, lambda: LockedError("there is one already")):
            os.chdir(home)
            host = Host(home, settings.memory_mb)
            server = Server(
                folder,
                greeting(__version__, identity_of(given.home), fingerprint()),
                partial(run, host=host),
                idle_seconds=0 if given.lifeline >= 0 else 60.0 * settings.idle_minutes,
                lifeline=given.lifeline,
                settled=host.settle,
            )
            server.serve(partial(_tell, given.ready, READY))
    except (MemctlError, OSError) as error:
        _tell(given.ready, str(error))
        return 1
    return 0


def _tell(descriptor: int, text: str) -> None:
    """Write the result to the pipe of a waiting process, if there is one."""
    if descriptor >= 0:
        with suppress(OSError):
            os.write(descriptor, text.encode())
        os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main())
