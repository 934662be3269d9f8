"""memctl watch and status from the command line; the watcher itself has tests of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from waiting import PATIENCE

from memctl.consolidation.consolidator import Consolidator
from memctl.errors import LockedError
from memctl.ingest.ingest_pipeline import Ingestor
from memctl.store.store import Store

from .conftest import Run

SETTLED = ("MEMCTL_WATCH_SETTLE_SECONDS", "0.1")


@pytest.fixture
def notes(memctl: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A home with one knowledge base whose files settle fast."""
    monkeypatch.setenv(*SETTLED)
    memctl("kb", "create", "notes")
    return memctl


def test_once_drains_the_inbox_and_tells_each_thing_as_json_in_a_pipe(
    notes: Run, tmp_path: Path
) -> None:
    inbox = tmp_path / "home/kb/notes/inbox"
    (inbox / "plan.txt").write_text("We decided to launch Aurora on 12 May 2026.")
    (inbox / "zeros.txt").write_text("\0")
    waiting = notes("status").rows[0]
    assert (waiting["backlog"], waiting["alive"]) == (2, False)
    result = notes("watch", "--once")
    assert result.code == 0, result.err
    kinds = {event["kind"] for event in result.rows}
    assert {"ingested", "failed"} <= kinds
    assert (tmp_path / "home/kb/notes/processed/plan.txt").exists()
    (status,) = notes("status").rows
    assert (status["backlog"], status["failed"]) == (0, 1)
    assert "zero bytes" in status["last_error"]
    assert "zero bytes" in notes("status", "-o", "table").out


def test_quiet_tells_failures_alone(notes: Run, tmp_path: Path) -> None:
    inbox = tmp_path / "home/kb/notes/inbox"
    (inbox / "plan.txt").write_text("We decided to launch Aurora on 12 May 2026.")
    (inbox / "zeros.txt").write_text("\0")
    assert {event["kind"] for event in notes("watch", "--once", "-q").rows} == {"failed"}


def test_text_lines_can_be_asked_for(
    notes: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_LOG_FORMAT", "text")
    (tmp_path / "home/kb/notes/inbox/plan.txt").write_text("We decided to launch on 12 May 2026.")
    assert "ingested  notes  plan.txt  " in notes("watch", "--once").out


def test_a_paused_one_is_not_watched(notes: Run) -> None:
    notes("kb", "pause", "notes")
    result = notes("watch", "--once", "-k", "notes")
    assert result.code == 1
    assert "memctl kb resume notes" in result.err


@contextmanager
def watching(folder: Path, until: str) -> Iterator[subprocess.Popen[str]]:
    """Run the daemon, and go on once it has told of an event of some kind."""
    daemon = subprocess.Popen(
        [sys.executable, "-m", "memctl", "watch"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "MEMCTL_HOME": str(folder / "home")},
    )  # fmt: skip
    try:
        assert daemon.stdout is not None
        for line in daemon.stdout:
            if json.loads(line)["kind"] == until:
                break
        yield daemon
    finally:
        daemon.kill()
        daemon.wait()


def test_a_daemon_is_seen_keeps_others_out_and_stops_cleanly(notes: Run, tmp_path: Path) -> None:
    with watching(tmp_path, until="serving") as daemon:
        (status,) = notes("status").rows
        assert (status["alive"], status["pid"]) == (True, daemon.pid)
        second = notes("watch", "--once")
        assert second.code == 11
        assert str(daemon.pid) in second.err
        assert notes("kb", "delete", "notes", "--yes").code == 11
        daemon.send_signal(signal.SIGTERM)
        _, err = daemon.communicate(timeout=PATIENCE)
        assert (daemon.returncode, err) == (0, "")
    assert not notes("status").rows[0]["alive"]


def test_stopping_while_files_move_is_quiet(notes: Run, tmp_path: Path) -> None:
    moving = tmp_path / "home/kb/notes/inbox/.moving"
    moving.touch()
    with watching(tmp_path, until="started") as daemon:
        moving.rename(tmp_path / "moved")
        daemon.send_signal(signal.SIGTERM)
        _, err = daemon.communicate(timeout=PATIENCE)
        assert (daemon.returncode, err) == (0, "")


def test_status_shows_a_knowledge_base_that_is_named_twice_once(notes: Run) -> None:
    assert [row["kb"] for row in notes("status", "-k", "notes", "-k", "notes").rows] == ["notes"]


# --- consolidation -------------------------------------------------------------------------------

_JOBS = "select state, detail from jobs where kind = 'consolidation'"


def test_status_tells_of_a_consolidation_whoever_asked_for_it(notes: Run) -> None:
    notes("ingest", "--text", "We decided to launch Aurora on 12 May 2026.", "-k", "notes")
    notes("consolidate", "--dry-run")
    assert notes("status").rows[0]["last_consolidation"] is None
    (report,) = notes("consolidate", "-o", "json").json
    assert notes("status").rows[0]["last_consolidation"] is not None
    (job,) = notes("sql", _JOBS).rows
    assert job["state"] == "done"
    examined = report["examined"]
    assert json.loads(job["detail"]) == {"examined": examined, "insights": 0, "waiting": 0}


def test_the_watch_notes_a_consolidation_once_and_counts_those_asked_for(
    notes: Run, tmp_path: Path
) -> None:
    inbox = tmp_path / "home/kb/notes/inbox"
    (inbox / "plan.txt").write_text("We decided to launch Aurora on 12 May 2026.")
    assert "consolidated" in {event["kind"] for event in notes("watch", "--once").rows}
    assert len(notes("sql", _JOBS).rows) == 1
    notes("consolidate")
    (inbox / "more.txt").write_text("We decided to launch Borealis on 13 May 2026.")
    assert "consolidated" not in {event["kind"] for event in notes("watch", "--once").rows}
    assert len(notes("sql", _JOBS).rows) == 2


def test_a_consolidation_that_fails_is_not_called_the_last_one(
    notes: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_: object, **__: object) -> None:
        raise LockedError("process 1 is writing")

    monkeypatch.setattr(Consolidator, "run", locked)
    assert notes("consolidate").code == 11
    assert [job["state"] for job in notes("sql", _JOBS).rows] == ["failed"]
    assert notes("status").rows[0]["last_consolidation"] is None


# --- what has to wait ----------------------------------------------------------------------------

_ON_A_SMALL_DISK = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
from memctl.cli.main import main
main(["watch", "--once"])
"""


@pytest.mark.usefixtures("quick_reading")
@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are POSIX")
def test_once_says_which_files_a_full_disk_made_wait_and_why(notes: Run, tmp_path: Path) -> None:
    inbox = tmp_path / "home/kb/notes/inbox"
    words = " ".join(f"The pump number {n} costs {7 * n} euros." for n in range(8_000))
    (inbox / "large.txt").write_text(words)

    def watch() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", _ON_A_SMALL_DISK]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False
        )

    done = watch()
    assert done.returncode == 1
    assert done.stderr.startswith("error: notes: 1 file left waiting (large.txt): ")
    assert "File too large" in done.stderr
    assert "hint: " in done.stderr
    assert [path.name for path in inbox.iterdir()] == ["large.txt"]

    notes("kb", "create", "work")
    (tmp_path / "home/kb/work/inbox/small.txt").write_text("We sail on Friday.")
    done = watch()
    assert done.returncode == 3
    assert done.stderr.count("error: ") == 1
    assert "(large.txt)" in done.stderr
    assert (tmp_path / "home/kb/work/processed/small.txt").exists()
    assert notes("watch", "--once").code == 0
    assert (tmp_path / "home/kb/notes/processed/large.txt").exists()


def test_once_says_that_a_locked_store_made_files_wait(
    notes: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_: object, **__: object) -> None:
        raise LockedError("process 1 is writing", "wait for it to finish")

    for name in "abcde":
        (tmp_path / f"home/kb/notes/inbox/{name}.txt").write_text(f"This is {name}.")
    with monkeypatch.context() as patch:
        patch.setattr(Ingestor, "ingest", locked)
        result = notes("watch", "--once", "-q")
    assert result.code == 1
    assert result.err == (
        "error: notes: 5 files left waiting (a.txt, b.txt, c.txt and 2 more): "
        "process 1 is writing\nhint: wait for it to finish\n"
    )
    result = notes("watch", "--once")
    assert (result.code, result.err) == (0, "")


def test_once_says_which_file_it_may_not_read(
    notes: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = tmp_path / "home/kb/notes/inbox"
    for name in ("secret.txt", "plan.txt"):
        (inbox / name).write_text(f"This is {name}.")
    access = os.access
    monkeypatch.setattr(os, "access", lambda p, mode: p != inbox / "secret.txt" and access(p, mode))
    result = notes("watch", "--once")
    assert result.code == 3
    assert result.err.startswith(f"error: notes: cannot read {inbox}/secret.txt: permission denied")
    assert (inbox / "secret.txt").exists()


def test_once_is_done_when_only_the_upkeep_has_to_wait(
    notes: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_: object, **__: object) -> None:
        raise LockedError("process 1 is writing")

    (tmp_path / "home/kb/notes/inbox/plan.txt").write_text("We sail on Friday.")
    monkeypatch.setattr(Store, "upkeep", locked)
    assert notes("watch", "--once").code == 0
    assert (tmp_path / "home/kb/notes/processed/plan.txt").exists()
