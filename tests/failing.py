"""Commands of which writes fail: one write, all from one on, or the process is killed at one.

A server process is started with a small library in front of all others, which counts the writes
below a folder and makes a chosen one fail.  It forks a child for every command, so that nothing is
imported or read twice; it runs no command itself, because the engine's threads do not survive a
fork.  What a kill leaves is seen without one, too: a child that stops at each write has its home
copied there by the server.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import importlib
import io
import json
import os
import pkgutil
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Literal

SOURCE = Path(__file__).with_suffix(".c")
How = Literal["once", "from then on", "killed"]
OF_TESTS = ("MEMCTL_SEED", "MEMCTL_LONG_TESTS", "MEMCTL_SWEEP_EVERY")
"""Variables that are not for commands."""
MODES: dict[How, int] = {"once": 1, "from then on": 2, "killed": 3}
STOPPED = 4


@dataclass(frozen=True)
class Fault:
    """Which write fails, and how."""

    number: int
    how: How = "once"
    error: int = errno.ENOSPC


NO_FAULT = Fault(-1)


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    """Its exit code; negative if a signal ended it."""
    calls: tuple[str, ...]
    """The writes, each with its path; empty if it was killed."""
    error: str
    """What it wrote to standard error."""


class FailingCommands:
    """Runs commands with faults, each in a process of its own."""

    def __init__(self, folder: Path) -> None:
        library = folder / "failing.so"
        build = ["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE), "-ldl"]
        subprocess.run(build, check=True)
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(library)],
            env=os.environ | {"LD_PRELOAD": str(library), "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, home: Path, words: tuple[str, ...], fault: Fault = NO_FAULT) -> Outcome:
        """Run a command on a home."""
        return self._run(home, words, MODES[fault.how], fault)

    def images(
        self, home: Path, words: tuple[str, ...], folder: Path, every: int = 1
    ) -> list[tuple[Path, str]]:
        """Run a command on a home; return what a kill at each write would have left of it.

        The homes are put into a folder.  Returned with each is the write, of ``every`` so many one.
        """
        folder.mkdir()
        outcome = self._run(home, words, STOPPED, NO_FAULT, folder, every)
        assert outcome.code in (0, 3), outcome.error
        return [*zip(sorted(folder.iterdir()), outcome.calls[::every], strict=True)]

    def _run(
        self,
        home: Path,
        words: tuple[str, ...],
        mode: int,
        fault: Fault,
        images: Path | None = None,
        every: int = 1,
    ) -> Outcome:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        variables = {
            key: value
            for key, value in os.environ.items()
            if key.startswith("MEMCTL_") and key not in OF_TESTS
        }
        request = {
            "given": [str(home), words, mode, fault.number, fault.error, variables],
            "home": str(home),
            "images": images and str(images),
            "every": every,
        }
        print(json.dumps(request), file=self._process.stdin, flush=True)
        code, calls, error = json.loads(self._process.stdout.readline())
        return Outcome(code, tuple(calls), error)

    def close(self) -> None:
        self._process.communicate()


# --- in the server -------------------------------------------------------------------------------


def _serve(library: ctypes.CDLL) -> None:
    os.environ["LANCE_LOG"] = "error"
    warm_up()
    warnings.filterwarnings("ignore", message="lance is not fork-safe")
    library.counted.restype, library.call_at.restype = ctypes.c_long, ctypes.c_char_p
    gc.freeze()  # a child that collects would have all of this copied
    for line in sys.stdin:
        print(json.dumps(_forked(library, **json.loads(line))), flush=True)


def warm_up() -> None:
    """Do once what every command would have to do again; none of it starts a thread."""
    import memctl

    for module in pkgutil.walk_packages(memctl.__path__, "memctl."):
        if not module.name.endswith("__main__"):
            with suppress(ImportError):  # of packages that are not installed
                importlib.import_module(module.name)
    for name in ("lance", "numpy.ma", "watched"):
        importlib.import_module(name)
    from memctl.cli.main import run
    from memctl.models import BUILTIN_EMBEDDER, load_embedder

    with redirect_stdout(io.StringIO()):
        run(["--version"])
    load_embedder(BUILTIN_EMBEDDER).embed(["Ann Keller signed the lease."])


def _forked(
    library: ctypes.CDLL, given: list[Any], home: str, images: str | None, every: int
) -> list[Any]:
    with tempfile.TemporaryFile("w+") as answer:
        child = os.fork()
        if not child:
            try:
                json.dump(_run(library, *given), answer)
            except Exception:  # noqa: BLE001 - the test tells of it
                json.dump([1, [], f"unexpected: {traceback.format_exc()}"], answer)
            finally:
                answer.flush()
                os._exit(0)
        status = _ended(child, home, images, every)
        if os.WIFSIGNALED(status):
            return [-os.WTERMSIG(status), [], ""]
        answer.seek(0)
        found: list[Any] = json.load(answer)
        return found


def _ended(child: int, home: str, images: str | None, every: int) -> int:
    """Wait for the end of a child; where it stops before, copy its home, every so many times."""
    for number in count():
        _, status = os.waitpid(child, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            return status
        if number % every == 0:
            shutil.copytree(home, f"{images}/{number:05}", symlinks=True)
        os.kill(child, signal.SIGCONT)
    raise AssertionError


def _run(
    library: ctypes.CDLL,
    home: str,
    words: list[str],
    how: int,
    number: int,
    error: int,
    variables: dict[str, str],
) -> tuple[int, list[str], str]:
    from watched import command

    os.environ.update(variables)
    said = io.StringIO()
    library.arm(home.encode(), how, ctypes.c_long(number), error)
    with redirect_stderr(said), redirect_stdout(io.StringIO()):
        code = command(Path(home), *words)
    calls = [library.call_at(ctypes.c_long(each)).decode() for each in range(library.counted())]
    return code, calls, said.getvalue()


if __name__ == "__main__":
    _serve(ctypes.CDLL(sys.argv[1]))
