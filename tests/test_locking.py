"""Locks are the kernel's or there are none: no other kind is taken for them."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import wait_for

from memctl.cli.main import run
from memctl.config import load_config
from memctl.errors import LockedError
from memctl.home import Home
from memctl.locking import hold_lock, is_locked

COMMANDS = [
    ("memory", "add", "Bo has the keys."),
    ("watch", "--once"),
    ("kb", "rename", "notes", "diary"),
    ("kb", "set", "notes", "--on-demand"),
    ("forget", "--entity", "Ann Keller", "--yes"),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("command", "missing"),
    [*((command, errno.ENOSYS) for command in COMMANDS), (COMMANDS[0], errno.ENOLCK)],
)
def test_nothing_is_written_on_a_file_system_without_locks(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: tuple[str, ...],
    missing: int,
) -> None:
    monkeypatch.setenv("MEMCTL_HOME", str(tmp_path))
    monkeypatch.setenv("MEMCTL_KB", "notes")
    home = Home(load_config({"home": str(tmp_path)}))
    home.create("notes")
    with home.open("notes") as base:
        base.memories.add("Ann Keller has the code.")

    def refuse(*_: object) -> None:
        raise OSError(missing, os.strerror(missing))

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", refuse)
        assert run(command) == 1
    said = capsys.readouterr().err
    assert "cannot lock" in said
    assert "its file system knows no locks: keep the home on another one" in said
    with home.open("notes") as base:
        assert [row["text"] for row in base.memories.list().to_pylist()] == [
            "Ann Keller has the code."
        ]


def test_a_lock_ends_with_the_process_that_has_it(tmp_path: Path) -> None:
    path, held = tmp_path / "lock", LockedError("somebody has it")
    program = (
        "import sys, time; from pathlib import Path; from memctl.locking import acquire_lock;"
        f"lock = acquire_lock(Path({str(path)!r}), 0, lambda: KeyError());"
        "print('taken', flush=True); time.sleep(3600)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"taken\n"
        assert is_locked(path, if_unreadable=False)
        with pytest.raises(LockedError), hold_lock(path, 0, lambda: held):
            pass
        other.send_signal(signal.SIGKILL)
    wait_for(lambda: not is_locked(path, if_unreadable=False))
    with hold_lock(path, 0, lambda: held):
        assert is_locked(path, if_unreadable=False)


def test_a_lock_that_cannot_be_written_to_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    path.touch()

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("filelock.FileLock.acquire", refused)
    assert not is_locked(path, if_unreadable=True)
    with path.open() as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        assert is_locked(path, if_unreadable=False)
