"""Whose the folders are, who may look into them, and that nobody is let in from elsewhere."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from limited import LIMITED, needs_permissions
from waiting import PATIENCE, wait_for

from memctl.config import load_config
from memctl.doctor.doctor import Doctor
from memctl.home import Home

from .conftest import Run

pytestmark = pytest.mark.skipif(os.name == "nt", reason="folders have no such modes there")


PROGRAM = """
import io, json, os, sys
from contextlib import redirect_stderr, redirect_stdout
from memctl.cli.main import main

addresses = []
sys.addaudithook(lambda event, given: addresses.append(event) if event == "socket.bind" else None)
done = []
for command in sys.argv[2:]:
    os.umask(int(sys.argv[1]))
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main(command.split())
        except SystemExit as end:
            done.append([end.code, out, err])
for each in done:
    each[1:] = (stream.buffer.getvalue().decode() for stream in each[1:])
print(json.dumps([done, addresses]))
"""
"""Runs commands one after the other, and tells of sockets that got an address."""

Done = tuple[int, str, str]


def run_all(*commands: str, umask: int = 0o022, limited: bool = False) -> dict[str, Done]:
    """Run commands in a process of their own; what each ended with, said and complained of."""
    start = [*(LIMITED if limited else []), sys.executable, "-c", PROGRAM, str(umask)]
    done = subprocess.run([*start, *commands], capture_output=True, timeout=PATIENCE, check=True)
    results, addresses = json.loads(done.stdout)
    assert addresses == []
    return {name: tuple(each) for name, each in zip(commands, results, strict=True)}


def home_in(folder: Path) -> Home:
    return Home(load_config({"home": str(folder)}, {}))


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_what_is_made_is_closed_to_others_whatever_the_umask_and_nobody_can_connect(
    tmp_path: Path, umask: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "new" / "home"
    monkeypatch.setenv("MEMCTL_HOME", str(home))
    monkeypatch.setenv("MEMCTL_WATCH_SETTLE_SECONDS", "0")
    done = run_all(
        "ingest --text tea",
        "watch --once",
        "query tea",
        "consolidate",
        "snapshot create one",
        f"export all --to {home / 'all.memctl'}",
        f"graph export --to {home / 'graph.graphml'}",
        "config init",
        "doctor",
        umask=umask,
    )
    assert [code for code, _, _ in done.values()] == [0] * len(done)
    made = [home, *home.rglob("*")]
    assert [path for path in made if path.stat().st_mode & 0o077] == []


def test_a_home_made_from_python_is_closed_to_others(tmp_path: Path) -> None:
    before = os.umask(0o000)
    try:
        home_in(tmp_path / "new" / "home").create("notes")
    finally:
        os.umask(before)
    top = tmp_path / "new" / "home"
    assert {oct(path.stat().st_mode & 0o777) for path in (top, top / "kb")} == {"0o700"}


def test_a_home_that_others_may_enter_or_that_is_anothers_is_told(
    memctl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memctl("ingest", "--text", "I prefer tea.")
    home = tmp_path / "home"
    home.chmod(0o755)
    (home / "kb").chmod(0o777)
    found = memctl("doctor", "-o", "json")
    warnings = {row["subject"]: row for row in found.json if row["verdict"] == "warning"}
    assert found.code == 0
    assert warnings["home"]["message"] == "other people may look into it (mode 0755)"
    assert warnings["home"]["hint"] == f"chmod 700 {home}"
    assert warnings["kb"]["message"] == "other people may change it (mode 0777)"

    home.chmod(0o700)
    (home / "kb").chmod(0o700)
    link = tmp_path / "link"
    link.symlink_to(home)
    monkeypatch.setattr("os.geteuid", lambda: 4321)
    doctor = Doctor(home_in(link))
    rows = [*doctor.machine(tmp_path / "none.toml"), *doctor.examine("default")]
    folders = [row for row in rows if row.layer == "folders"]
    assert f"{link} is a link to {home}" in {row.message for row in folders if row.verdict == "ok"}
    others = [row.subject for row in folders if row.verdict == "warning"]
    assert others == ["home", "kb", "default"]


@pytest.fixture
def shut(memctl: Run, tmp_path: Path) -> Iterator[None]:
    """Two knowledge bases, one of which cannot be entered."""
    memctl("ingest", "--text", "The door code is 4711.")
    memctl("kb", "create", "diary")
    diary = tmp_path / "home" / "kb" / "diary"
    diary.chmod(0o000)
    yield
    diary.chmod(0o700)


@pytest.mark.usefixtures("shut")
@needs_permissions
def test_a_knowledge_base_that_cannot_be_entered_is_told_by_every_command() -> None:
    all_of_them = ("query code", "status", "stats", "memory list")
    by_name = ("query code -k diary", "kb show diary", "kb delete diary --yes")
    others = ("kb list", "watch --once", "doctor", "doctor --repair", "doctor --repair -k diary")
    done = run_all(*all_of_them, *by_name, *others, limited=True)
    for command in all_of_them:
        code, _, said = done[command]
        assert code == 0
        assert "warning: diary is left out: " in said
        assert "Permission denied" in said
    for command in (*by_name, "doctor --repair -k diary"):
        code, _, said = done[command]
        assert code > 0
        assert "Permission denied" in said
        assert said.count("\n") == 2, "a line and a hint"
    assert '"name": "diary"' in done["kb list"][1]
    assert '"kind": "waiting", "kb": "diary"' in done["watch --once"][1]
    code, _, said = done["doctor --repair"]
    assert code == 1
    assert "error: diary could not be put right, and the others were" in said
    code, report, _ = done["doctor"]
    assert code == 12
    assert "cannot be entered: Permission denied" in report
    assert '"kb": "default", "layer": "citations"' in report


LISTENING = {"/proc/{}/net/tcp": "0A", "/proc/{}/net/tcp6": "0A", "/proc/{}/net/udp": "07"}
"""Where the kernel lists sockets, and in which state one of these lets others in."""


def open_doors(process: int) -> list[str]:
    """The sockets of a process, and of those it has started, to which others may connect."""
    inodes: set[str] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.getpgid(int(folder.name)) == process:
                links = [str(each.readlink()) for each in (folder / "fd").iterdir()]
                inodes |= {link.strip("socket:[]") for link in links if link.startswith("socket:")}
        except OSError:  # it has just ended
            continue
    found = []
    for place, state in LISTENING.items():
        listed = Path(place.format(process))  # there is none of IPv6 where the kernel has none
        for line in listed.read_text("ascii").splitlines()[1:] if listed.exists() else ():
            fields = line.split()
            if fields[3] == state and fields[9] in inodes:
                found.append(line)
    return found


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the kernel lists no sockets")
def test_watching_lets_nobody_connect(memctl: Run, tmp_path: Path) -> None:
    memctl("kb", "create", "notes")
    home = tmp_path / "home"
    (home / "kb" / "notes" / "inbox" / "note.txt").write_text("We decided to keep the boat.")
    watch = subprocess.Popen(
        [sys.executable, "-m", "memctl", "watch"],
        env=os.environ | {"MEMCTL_WATCH_SETTLE_SECONDS": "0"},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    doors: list[str] = []

    def is_done() -> bool:
        doors.extend(open_doors(watch.pid))
        return (home / "kb" / "notes" / "processed" / "note.txt").exists()

    try:
        wait_for(is_done)
        assert not doors
    finally:
        watch.send_signal(signal.SIGINT)
        watch.wait(PATIENCE)


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the kernel lists no sockets")
def test_serve_alone_opens_a_port_and_to_this_machine_alone(memctl: Run) -> None:
    memctl("kb", "create", "notes")
    server = subprocess.Popen(
        [sys.executable, "-m", "memctl", "serve", "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert server.stderr is not None
        assert "http://127.0.0.1:" in server.stderr.readline()
        (door,) = open_doors(server.pid)
        assert door.split()[1].startswith("0100007F:"), "127.0.0.1"
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=PATIENCE)
    assert server.returncode == 0
