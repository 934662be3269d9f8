"""memctl watch and status from the command line; the watcher itself has tests of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memctl.consolidate.consolidator import Consolidator
from memctl.errors import LockedError

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
    (inbox / "empty.txt").write_text("")
    waiting = notes("status").rows[0]
    assert (waiting["backlog"], waiting["alive"]) == (2, False)
    result = notes("watch", "--once")
    assert result.code == 0, result.err
    kinds = {event["kind"] for event in result.rows}
    assert {"ingested", "failed"} <= kinds
    assert (tmp_path / "home/kb/notes/processed/plan.txt").exists()
    (status,) = notes("status").rows
    assert (status["backlog"], status["failed"]) == (0, 1)
    assert "empty" in status["last_error"]
    assert "empty" in notes("status", "-o", "table").out


def test_quiet_tells_failures_alone(notes: Run, tmp_path: Path) -> None:
    inbox = tmp_path / "home/kb/notes/inbox"
    (inbox / "plan.txt").write_text("We decided to launch Aurora on 12 May 2026.")
    (inbox / "empty.txt").write_text("")
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


def test_a_daemon_is_seen_keeps_others_out_and_stops_cleanly(notes: Run, tmp_path: Path) -> None:
    daemon = subprocess.Popen(
        [sys.executable, "-m", "memctl", "watch"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "MEMCTL_HOME": str(tmp_path / "home")},
    )  # fmt: skip
    try:
        assert daemon.stdout is not None
        for line in daemon.stdout:
            if json.loads(line)["kind"] == "serving":
                break
        (status,) = notes("status").rows
        assert (status["alive"], status["pid"]) == (True, daemon.pid)
        second = notes("watch", "--once")
        assert second.code == 11
        assert str(daemon.pid) in second.err
        assert notes("kb", "delete", "notes", "--yes").code == 11
        daemon.send_signal(signal.SIGTERM)
        _, err = daemon.communicate(timeout=30)
        assert (daemon.returncode, err) == (0, "")
    finally:
        daemon.kill()
        daemon.wait()
    assert not notes("status").rows[0]["alive"]


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
    assert json.loads(job["detail"]) == {"examined": report["examined"], "insights": 0}


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
