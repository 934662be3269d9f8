"""Everything that only reads works where nothing can be written; what writes says so in a line."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_endpoint import FakeEndpoint
from limited import LIMITED, needs_permissions
from waiting import PATIENCE

from .conftest import Run

pytestmark = needs_permissions

Limited = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def limited(memctl, tmp_path: Path) -> Iterator[Limited]:
    """Run a command by a user who may not write to the home, in which there is one memory."""
    memctl("ingest", "--text", "The door code is 4711.")
    folders = [tmp_path / "home", *(tmp_path / "home").rglob("*")]
    for path in folders:
        path.chmod(0o500 if path.is_dir() else 0o400)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*LIMITED, sys.executable, "-m", "memctl", *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False
        )

    yield run
    for path in folders:
        path.chmod(0o700)


@pytest.mark.parametrize(
    "command",
    ["query code", "memory list", "kb list", "sql 'select text from memories'", "export memories"],
)
def test_reading_needs_no_permission_to_write(limited: Limited, command: str) -> None:
    done = limited(*shlex.split(command))
    assert (done.returncode, done.stderr) == (0, "")
    assert "4711" in done.stdout or command == "kb list"


def test_a_question_that_cannot_be_noted_is_answered_all_the_same(limited: Limited) -> None:
    done = limited("query", "what is the door code?", "-v")
    assert done.returncode == 0
    assert "4711" in done.stdout
    assert '"query_id": null' in done.stdout
    assert done.stderr.count("questions are not logged") == 1
    assert limited("query", "--feedback", "q_nope", "good").returncode == 1


def test_no_model_is_asked_where_its_cost_cannot_be_noted(
    limited: Limited, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in endpoint.settings(answer="m").items():
        monkeypatch.setenv(name, value)
    done = limited("query", "what is the door code?")
    assert done.returncode == 0
    assert "4711" in done.stdout
    assert "note: answered without the model: " in done.stderr
    assert endpoint.asked == []


@pytest.mark.parametrize(
    "command",
    ["ingest --text more", "memory add more", "consolidate", "kb create other", "kb pause default",
     "kb rename default other", "kb delete default --yes"],
)  # fmt: skip
def test_writing_without_permission_fails_in_one_line(limited: Limited, command: str) -> None:
    done = limited(*command.split())
    assert done.returncode == 1
    error, hint = done.stderr.splitlines()
    assert error.startswith("error: cannot")
    assert "permission" in hint


def test_a_home_that_cannot_be_made_is_one_line(limited: Limited, tmp_path: Path) -> None:
    done = limited("--home", str(tmp_path / "home" / "below"), "ingest", "--text", "more")
    assert done.returncode == 1
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["error", "hint"]


@pytest.mark.parametrize("where", ["lance/memories.lance/data/*", "ledger.sqlite", "kb.toml"])
def test_what_may_not_be_read_is_not_taken_for_lost(
    memctl: Run, limited: Limited, tmp_path: Path, where: str
) -> None:
    folder = tmp_path / "home" / "kb" / "default"
    closed = list(folder.glob(where))
    assert closed
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o700)
    for path in closed:
        path.chmod(0o000)
    asked, seen = limited("query", "door code"), limited("doctor")
    assert "4711" not in asked.stdout
    assert "--repair" not in asked.stderr
    (row,) = [json.loads(line) for line in seen.stdout.splitlines() if '"damaged"' in line]
    assert "Permission denied" in row["message"]
    assert "chmod u+r" in row["hint"]
    for command in (["--repair", "--yes"], ["--repair", "--dry-run"]):
        done = limited("doctor", *command)
        assert done.returncode == 1
        assert "chmod u+r" in done.stderr
    for path in closed:
        path.chmod(0o600)
    assert memctl("doctor").code == 0
    assert "4711" in memctl("query", "door code").out
