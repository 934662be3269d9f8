"""Pools that several processes use at once, one of them killed or reading through a pipe."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memctl.config import load_config
from memctl.home import Home

Run = Callable[..., Any]
PROCESSES, INCREMENTS = 8, 4
PATIENCE = 300
INCREMENT = f"""
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from memctl.cli.main import run

def command(*words):
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()) as err:
        code = run(["pool", *words, "--as", sys.argv[1]])
    assert code == 0 or "is at version" in err.getvalue(), err.getvalue()
    return code, out.getvalue()

conflicts = 0
for _ in range({INCREMENTS}):
    while True:
        _, out = command("read", "counting", "n", "--with-version")
        seen = json.loads(out)
        code, _ = command(
            "write", "counting", "n", str(seen["value"] + 1), "--if-version", str(seen["version"])
        )
        if code == 0:
            break
        conflicts += 1
print(conflicts)
"""


def test_eight_processes_that_count_with_if_version_lose_nothing(memctl: Run) -> None:
    memctl("pool", "create", "counting", "--access", '{"public_write": true}')
    memctl("pool", "write", "counting", "n", "0")
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", INCREMENT, f"agent{number}"], stdout=subprocess.PIPE, text=True
        )
        for number in range(PROCESSES)
    ]
    for worker in workers:
        worker.communicate(timeout=PATIENCE)
        assert worker.returncode == 0
    assert memctl("pool", "read", "counting", "n").out == f"{PROCESSES * INCREMENTS}\n"
    found = memctl("pool", "stats", "counting", "-o", "json").json
    assert found["version"] == found["write_count"] == PROCESSES * INCREMENTS + 1
    writes = {use["agent"]: use["writes"] for use in found["by_agent"]}
    assert writes.pop("default_user") == 1
    assert writes == {f"agent{number}": INCREMENTS for number in range(PROCESSES)}


@contextmanager
def watching(*words: str) -> Iterator[subprocess.Popen[str]]:
    """Follow a pool in a process of its own; with ``--after`` it first tells what was written."""
    process = subprocess.Popen(
        [sys.executable, "-m", "memctl", "pool", "watch", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_bulletin_shows_up_in_a_watch_within_a_second(memctl: Run, home: Path) -> None:
    memctl("pool", "write", "default", "agent_bulletin.first", "1")
    opened = Home(load_config({"home": str(home)})).open("default")
    with opened as base, watching("default", "--after", "0", "--bulletins") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["key"] == "agent_bulletin.first"
        base.pools.acting_as("agent1").write("default", "other", 1)
        delays = []
        for _ in range(3):  # the machine may be busy with something else for a moment
            sent = time.monotonic()
            base.pools.acting_as("agent1").write("default", "agent_bulletin.mood", {"is": "good"})
            event = json.loads(process.stdout.readline())
            delays.append(time.monotonic() - sent)
        assert min(delays) < 1
        del event["id"], event["written_at"]
        assert event == {
            "event": "memory_pool_key_write", "kb": "default", "pool_id": "default",
            "key": "agent_bulletin.mood", "is_bulletin": True, "value": {"is": "good"},
            "digest": None, "removed": False, "writer": "agent1", "version": 5,
        }  # fmt: skip


def test_a_watch_ends_quietly_when_its_reader_has_gone(memctl: Run) -> None:
    memctl("pool", "create", "piped")
    memctl("pool", "write", "piped", "a", "1")
    with watching("piped", "--after", "0") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(PATIENCE) == 0
        assert process.stderr.read() == ""


def test_a_watch_ends_with_its_pool_or_with_the_right_to_read_it(memctl: Run) -> None:
    for pool, words in (
        ("deleted", ("pool", "delete", "deleted", "--yes")),
        ("taken-back", ("pool", "revoke", "taken-back", "bob")),
    ):
        memctl("pool", "create", pool)
        memctl("pool", "grant", pool, "bob")
        memctl("pool", "write", pool, "a", "1")
        with watching(pool, "--after", "0", "--as", "bob") as process:
            assert process.stdout is not None
            process.stdout.readline()
            assert memctl(*words).code == 0
            assert process.wait(PATIENCE) == 1


KILLED = """
import os, sys
from memctl.config import load_config
from memctl.home import Home

with Home(load_config({})).open("default") as base:
    pools = base.pools.acting_as("ann")
    number = 0
    while True:
        number += 1
        pools.merge("torn", {"a": number, "b": {"c": number}, "agent_bulletin": {"d": number}})
        if number == 5:
            print("going", flush=True)
"""


@pytest.mark.parametrize("writes", [5, 17, 60])
def test_a_writer_that_is_killed_leaves_all_or_nothing_of_a_write(
    memctl: Run, home: Path, writes: int
) -> None:
    memctl("pool", "delete", "torn", "--yes", "--as", "ann")
    assert memctl("pool", "create", "torn", "--as", "ann").code == 0
    script = KILLED.replace("number == 5", f"number == {writes}")
    writer = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "going\n"
    os.kill(writer.pid, signal.SIGKILL)
    writer.communicate()
    found = memctl("pool", "read", "torn", "--with-version", "-o", "json", "--as", "ann").json
    number = found["value"]["a"]
    assert found["value"] == {"a": number, "b": {"c": number}, "agent_bulletin": {"d": number}}
    assert found["version"] == number >= writes
    newest = memctl("pool", "history", "torn", "-o", "json", "--as", "ann").json[0]
    assert newest["version"] == number
    with Home(load_config({"home": str(home)})).open("default") as base:
        events = base.pools.acting_as("ann").events("torn", after=0)
        assert events[-1].version == number
        assert base.store.ledger.complaints() == []
    assert memctl("pool", "write", "torn", "a", "0", "--as", "ann").code == 0
