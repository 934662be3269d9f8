"""Nothing leaves the machine while no endpoint is configured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLE = Path(__file__).parents[1] / "sample_inbox"
GUARD = """\
import os, sys

def guard(event, arguments):
    if event in {"socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo",
                 "socket.gethostbyname", "socket.gethostbyaddr"}:
        with open(os.environ["GUARD_LOG"], "a") as log:
            log.write(f"{event} {arguments!r}\\n")
        raise PermissionError(f"{event} is forbidden here")

sys.addaudithook(guard)
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A home of its own, a key that could be sent, and a Python that opens no connection."""
    place = tmp_path / "guard"
    place.mkdir()
    (place / "sitecustomize.py").write_text(GUARD)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMCTL_")}
    paths = [str(place), *filter(None, [kept.get("PYTHONPATH")])]
    return kept | {
        "PYTHONPATH": os.pathsep.join(paths),
        "GUARD_LOG": str(tmp_path / "attempts"),
        "MEMCTL_HOME": str(tmp_path / "home"),
        "OPENAI_API_KEY": "sk-never-sent",
    }


def python(environ: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], env=environ, capture_output=True, text=True, check=False
    )


def test_the_guard_of_these_tests_sees_a_connection(environ: dict[str, str]) -> None:
    attempt = "import socket; socket.create_connection(('127.0.0.1', 9), timeout=1)"
    done = python(environ, "-c", attempt)
    assert "is forbidden here" in done.stderr
    assert "127.0.0.1" in Path(environ["GUARD_LOG"]).read_text()


def test_without_an_endpoint_the_whole_job_is_done_without_a_connection(
    environ: dict[str, str], tmp_path: Path
) -> None:
    jobs = [
        ["ingest", str(SAMPLE)],
        ["query", "When does the lease for the Harbour Street workshop start?"],
        ["context", "the move", "--budget", "500"],
        ["consolidate"],
        ["watch", "--once"],
        ["models", "list"],
        ["models", "test"],
        ["export", "all", "--to", str(tmp_path / "all.memctl")],
    ]
    program = f"from memctl.cli.main import run\nprint([run(job) for job in {jobs}])"
    done = python(environ, "-c", program)
    codes = json.loads(done.stdout.splitlines()[-1])
    assert codes == [3, 0, 0, 0, 0, 0, 0, 0], done.stderr  # one of the files is damaged
    assert not Path(environ["GUARD_LOG"]).exists(), Path(environ["GUARD_LOG"]).read_text()
