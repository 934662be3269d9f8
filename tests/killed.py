"""What a command leaves that is killed: an image of the home before each thing it does to it.

Whatever a process has handed to the system stays when the process is killed, so a folder as it
stands at an instant is what SIGKILL at that instant leaves.  A child runs the real command once
and puts every such state aside, which costs far less than to be killed and started at each; it can
be killed at one of them, too.  It is forked by a server that has everything imported.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, Literal, NoReturn

from failing import warm_up
from waiting import PATIENCE

Moment = Literal["before", "after"]
WRITTEN_IN_PLACE = ("ledger.sqlite", "lock", "keys", "vectors")
"""How the names of files begin that images cannot share with the home."""


@dataclass(frozen=True)
class Image:
    """A home as a command leaves it that is killed."""

    home: Path

    @property
    def step(self) -> str:
        """Its number, and what the command was about to do."""
        return self.home.name


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    """Its exit code; negative if a signal ended it."""
    said: str


def images_of(home: Path, folder: Path, *arguments: str) -> list[Image]:
    """Run a command on a home, and return what a kill would have left at each step of it.

    Args:
        home: Is changed.
        folder: Where the images go; on the file system of the home.
        arguments: The command; see :func:`watched.command`.
    """
    folder.mkdir()
    done = _child(_run_before_a_camera, str(home), str(folder), -1, *arguments)
    assert done.code in (0, 3), done.said
    return [Image(path) for path in sorted(folder.iterdir())]


def kill_at(step: int, home: Path, folder: Path, *arguments: str) -> None:
    """Run a command on a home and have it killed at a step of it."""
    folder.mkdir()
    done = _child(_run_before_a_camera, str(home), str(folder), step, *arguments)
    assert done.code == -signal.SIGKILL, done.said


def kill_at_call(
    module: str, name: str, moment: Moment, home: Path, *arguments: str, skip: int = 0
) -> None:
    """Run a command on a home and have it killed where it calls a function.

    Args:
        module: What has the function, or its class.
        name: Of the function in the module.
        moment: Whether it dies before or after the call.
        home: Is changed.
        arguments: The command; see :func:`watched.command`.
        skip: How many calls it survives.
    """
    done = _child(_run_until_a_call, str(home), module, name, moment, skip, *arguments)
    assert done.code == -signal.SIGKILL, done.said


def _child(work: Callable[..., int], *given: str | int) -> Ended:
    with tempfile.NamedTemporaryFile("r") as said:
        request = {
            "work": work.__name__,
            "given": given,
            "said": said.name,
            "beside": str(Path.cwd()),
            "variables": dict(os.environ),
        }
        server = _server(os.environ.get("PYTHONPATH", ""))
        print(json.dumps(request), file=server.stdin, flush=True)
        assert server.stdout is not None
        return Ended(int(server.stdout.readline()), said.read())


@cache
def _server(_path: str) -> subprocess.Popen[str]:
    """Start what forks the children, once for each copy of the package that they may import."""
    server = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(server.communicate)
    return server


# --- in the server -------------------------------------------------------------------------------


def _serve() -> None:
    """Fork a child for each request; no command runs here, as threads do not survive a fork."""
    os.environ["LANCE_LOG"] = "error"
    warm_up()
    warnings.filterwarnings("ignore", message="lance is not fork-safe")
    gc.freeze()  # a child that collects would have all of this copied
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _answer(**json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _answer(
    work: str, given: list[Any], said: str, beside: str, variables: dict[str, str]
) -> NoReturn:
    code = 1
    signal.alarm(int(PATIENCE))
    try:
        with Path(said).open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        os.chdir(beside)
        os.environ.clear()
        os.environ.update(variables)
        time.tzset()
        code = globals()[work](*given)
    except Exception:  # noqa: BLE001  # is told by who asked
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


# --- in the child --------------------------------------------------------------------------------

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")


class Camera:
    """Takes an image whenever something is about to be done to a home that has changed.

    Args:
        home: Of what.
        folder: Where the images go.
        fatal: At which one the process is killed instead.
    """

    def __init__(self, home: Path, folder: Path, fatal: int) -> None:
        self.turn = threading.RLock()
        self._home = home
        self._folder = folder
        self._fatal = fatal
        self._taken = 0
        self._last: list[tuple[Any, ...]] = []
        self._own = threading.local()

    def look(self, step: str) -> None:
        """Take one, if there is something new to see."""
        if getattr(self._own, "is_looking", False):
            return
        with self.turn:
            self._own.is_looking = True
            now = self._state()
            if now != self._last:
                self._take(step.replace("/", "_"))
                self._last = now
            self._own.is_looking = False

    def heard(self, event: str, given: tuple[Any, ...]) -> None:
        """Look before Python changes a folder."""
        if event == "open":
            path, _, flags = given
            if isinstance(path, str) and path.startswith(str(self._home)) and flags & WRITING:
                self.look(f"opening {Path(path).name}")
        elif event in CHANGES:
            self.look(f"{event} {Path(os.fsdecode(given[0])).name}")

    def look_before(self, statement: str) -> None:
        """Look before the ledger changes."""
        if statement.startswith(("COMMIT", "VACUUM", "PRAGMA wal_checkpoint")):
            self.look(statement)

    def watch(self, owner: Any, *names: str) -> None:
        """Look before the engine changes a table, which it does without telling Python."""
        for name in names:
            setattr(owner, name, self._looking(name, getattr(owner, name)))

    def _looking(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            with self.turn:  # two changes at once could not be told apart
                self.look(name)
                return original(*given, **named)

        return call

    def _state(self) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        for root, folders, names in os.walk(self._home):
            found += [(root, name) for name in folders]
            for name in names:
                status = os.lstat(f"{root}/{name}")
                found.append((root, name, status.st_ino, status.st_size, status.st_mtime_ns))
        return sorted(found)

    def _take(self, step: str) -> None:
        if self._taken == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        image = self._folder / f"{self._taken:04} before {step}"
        shutil.copytree(self._home, image, copy_function=_copied, symlinks=True)
        self._taken += 1


def _copied(source: str, target: str) -> str:
    if Path(source).name.startswith(WRITTEN_IN_PLACE):
        return shutil.copy2(source, target)
    os.link(source, target, follow_symlinks=False)
    return target


def _run_before_a_camera(home: str, folder: str, fatal: int, *arguments: str) -> int:
    import lance
    from lance.dataset import DatasetOptimizer, LanceDataset, MergeInsertBuilder, Tags
    from watched import command

    from memctl.store.ledger import ledger

    os.fsync = lambda _: None  # what a killed process has written stays without it
    camera, connect = Camera(Path(home), Path(folder), fatal), ledger.connect
    camera.watch(lance, "write_dataset")
    camera.watch(LanceDataset, "delete", "restore", "add_columns", "drop_columns")
    camera.watch(LanceDataset, "create_scalar_index", "create_index", "drop_index")
    camera.watch(LanceDataset, "cleanup_old_versions")
    camera.watch(DatasetOptimizer, "compact_files", "optimize_indices")
    camera.watch(MergeInsertBuilder, "execute")
    camera.watch(Tags, "create", "update", "delete")

    def connected(path: Path, mode: str, wait: float) -> sqlite3.Connection:
        connection = connect(path, mode, wait)
        connection.set_trace_callback(camera.look_before)
        return connection

    ledger.connect = connected
    sys.addaudithook(camera.heard)
    code = command(Path(home), *arguments)
    camera.look("the end")
    return code


def _run_until_a_call(
    home: str, module: str, name: str, moment: Moment, skip: int, *arguments: str
) -> int:
    from watched import command

    owner = import_module(module)
    *path, attribute = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    original, survived = getattr(owner, attribute), count()

    def killed(*given: Any, **named: Any) -> Any:
        is_fatal = next(survived) >= skip
        if is_fatal and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*given, **named)
        if is_fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, attribute, killed)
    return command(Path(home), *arguments)


if __name__ == "__main__":
    _serve()
