"""Starting, asking and stopping the resident process of a home."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from memctl.errors import MemctlError
from memctl.resident.client import ask_process
from memctl.resident.hosting import resident_bytes
from memctl.resident.protocol import FOLDER, fingerprint, is_available

if TYPE_CHECKING:
    from memctl.config import Config

MODULE = "memctl.resident_process"
READY = "ready"
"""What the process says at its pipe when it can be asked; anything else is why it cannot."""
_ASKING_SECONDS = 5.0


class ResidentStatus(Struct, frozen=True):
    """The resident process of a home."""

    running: bool
    pid: int | None = None
    version: str = ""
    started_at: datetime | None = None
    commands: int = 0
    """How many it was asked to carry out."""
    refused: int = 0
    """How many of them it left to their callers."""
    memory_mb: int = 0
    usable: bool = False
    """Whether commands of this version and installation go through it."""


def resident_status(home: Path, version: str) -> ResidentStatus:
    """Return what the process of a home says of itself."""
    found = ask_process(str(home / FOLDER), "status", _ASKING_SECONDS)
    if found is None:
        return ResidentStatus(running=False)
    return ResidentStatus(
        running=True,
        pid=found["pid"],
        version=found["version"],
        started_at=datetime.fromtimestamp(found["started_at"], UTC),
        commands=found["commands"],
        refused=found["refused"],
        memory_mb=resident_bytes(found["pid"]) >> 20,
        usable=(found["version"], found["settings"]) == (version, fingerprint()),
    )


def start(config: Config) -> bool:
    """Start the process of a home, if it isn't running; it goes on after this one.

    Returns:
        Whether it was started.

    Raises:
        MemctlError: It did not start.
    """
    require_available()
    ready, tells = os.pipe()
    try:
        child = _start(config, "--ready", tells)
    finally:
        os.close(tells)
    with os.fdopen(ready, "rb") as source:
        said = source.read().decode("utf-8", "replace").strip()
    if said == READY:
        child.returncode = 0  # it goes on, and is not waited for
        return True
    child.wait()
    if resident_status(config.home, "").running:
        return False
    raise MemctlError(f"the resident process did not start: {said}", "commands work without it")


def stop(home: Path) -> bool:
    """Stop the process of a home after what it carries out; tell whether there was one to stop."""
    return ask_process(str(home / FOLDER), "stop", _ASKING_SECONDS) is not None


@contextmanager
def resident_beside(config: Config) -> Iterator[None]:
    """Have a resident process for as long as the block lasts, unless there is one already.

    For commands that run for long.  It ends with this process, however that ends.  Where it cannot
    be had, there is none.
    """
    if not is_available() or not config.resident.enabled:
        yield
        return
    lifeline, end = os.pipe()
    try:
        child = _start(config, "--lifeline", lifeline)
    except BaseException:
        os.close(end)
        raise
    finally:
        os.close(lifeline)
    try:
        yield
    finally:
        os.close(end)
        child.wait()


def require_available() -> None:
    """Refuse where the system has no such sockets.

    Raises:
        MemctlError: It has none.
    """
    if not is_available():
        raise MemctlError("there is no resident process on this system", "commands work without it")


def _start(config: Config, option: str, pipe: int) -> subprocess.Popen[bytes]:
    flags = [*(["-O"] * sys.flags.optimize), *(["-I"] if sys.flags.isolated else [])]
    named = ["--config", str(config.path)] if config.path.exists() else []
    return subprocess.Popen(
        [
            *(sys.executable, *flags, "-m", MODULE, "--home", str(config.home), *named),
            *(option, str(pipe)),
        ],
        cwd=Path(__file__).parents[2],  # -m looks there first: this memctl, and nothing else
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(pipe,),
        start_new_session=True,  # Ctrl-C is for the process that started it
    )
