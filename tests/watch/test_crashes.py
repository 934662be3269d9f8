"""A daemon that is killed at any step loses nothing and does nothing twice; signals end it well."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from killed import Moment, kill_at_call
from waiting import PATIENCE, wait_for

from memctl.files import is_temporary, lock_file
from memctl.kb_settings import Inbox

pytestmark = pytest.mark.usefixtures("quick_reading")

if TYPE_CHECKING:
    from watched import Place


def watch_until(place: Place, module: str, name: str, moment: Moment, skip: int = 0) -> None:
    """Watch in a process that is killed where it calls a function."""
    home = place.home.config.home
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMCTL_HOME", str(home))
        patch.setenv("MEMCTL_WATCH_SETTLE_SECONDS", "0.05")
        kill_at_call(module, name, moment, home, "watch", "--once", skip=skip)


STEPS = [
    ("memctl.watch.claims", "Claims._note", "after", 0),
    ("memctl.watch.claims", "move_file", "before", 0),
    ("memctl.watch.claims", "move_file", "after", 0),
    ("memctl.watch.claims", "move_file", "after", 2),
    ("memctl.ingest.ingest_pipeline", "Ingestor.ingest", "before", 0),
    ("memctl.store.tables.transaction", "Transaction.commit", "before", 0),
    ("memctl.store.tables.transaction", "Transaction.commit", "after", 0),
    ("memctl.ingest.ingest_pipeline", "Ingestor.ingest", "after", 0),
    ("memctl.watch.claims", "Claims._moved_entry", "after", 0),
    ("memctl.watch.claims", "save_reason", "after", 0),
    ("memctl.watch.claims", "move_file", "after", 4),
    ("memctl.watch.claims", "move_file", "after", 5),
    ("memctl.watch.claims", "Claims._drop_folder", "before", 0),
    ("memctl.watch.claims", "Claims.note_settled", "after", 0),
    ("memctl.watch.claims", "Claims._confirm", "before", 0),
    ("memctl.watch.claims", "sync_file", "after", 1),
    ("memctl.watch.claims", "Claims._confirm", "after", 0),
]


@pytest.mark.parametrize(("module", "name", "moment", "skip"), STEPS)
def test_a_daemon_killed_at_any_step_loses_nothing_and_repeats_nothing(
    place: Place, module: str, name: str, moment: Moment, skip: int
) -> None:
    place.drop("sub/a.txt", "Ann sails to Lisbon.")
    place.drop("zeros.txt", "\0")
    place.drop("talk.srt", "1\n00:00:00,000 --> 00:00:02,000\nThe harbour is closed.\n")
    place.drop("talk.md", "Notes of the talk.")
    watch_until(place, module, name, moment, skip)
    place.drain()
    assert place.tree(place.layout.inbox) == place.tree(place.layout.processing) == []
    assert place.tree(place.layout.processed) == ["sub/a.txt", "talk.md", "talk.srt"]
    failed = [name for name in place.tree(place.layout.failed) if name != "zeros.txt.reason.json"]
    assert failed == ["zeros.txt"]
    assert (place.layout.failed / "zeros.txt.reason.json").exists()
    assert sorted(row["source"] for row in place.rows("documents", "source")) == [
        "sub/a.txt",
        "talk.md",
        "talk.srt",
    ]
    with place.open() as base:
        entries = base.store.ledger.files.entries()
    assert sorted(entry.state for entry in entries) == ["done", "done", "done", "failed"]
    assert all(Path(entry.path).exists() for entry in entries)


TURNING_AWAY = [
    ("memctl.watch.inbox_modes", "KeptInbox.note", "after", 0),
    ("memctl.ingest.ingest_pipeline", "Ingestor.ingest", "after", 0),
    ("memctl.ingest.ingest_pipeline", "Ingestor.retire", "before", 0),
    ("memctl.ingest.ingest_pipeline", "Ingestor.retire", "after", 0),
    ("memctl.ingest.ingest_pipeline", "Ingestor.rename", "after", 0),
]


@pytest.mark.parametrize(("module", "name", "moment", "skip"), TURNING_AWAY)
def test_what_a_kept_file_was_before_goes_though_the_daemon_is_killed_at_any_step(
    place: Place, tmp_path: Path, module: str, name: str, moment: Moment, skip: int
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    place.keep(vault)
    old = {"a.md": "Tea with Ann.", "b.md": "Coffee with Bo.", "c.md": "Juice.", "d.md": "Milk."}
    new = {"a.md": "Coffee with Bo.", "b.md": "Water.", "c.md": "Milk.", "d.md": "Juice."}
    for file, text in old.items():
        (vault / file).write_text(text)
    place.drain()
    for file, text in new.items():
        (vault / file).write_text(text)
        os.utime(vault / file, (1_700_000_000, 1_700_000_000))
    watch_until(place, module, name, moment, skip)
    place.drain()
    rows = place.rows("documents", "source", "text", "status")
    live = {Path(row["source"]).name: row["text"] for row in rows if row["status"] == "indexed"}
    assert live == new
    assert place.damage() == []


def test_what_was_committed_before_the_kill_is_moved_on_without_being_read_again(
    place: Place, monkeypatch: pytest.MonkeyPatch, said: Callable[..., list[str]]
) -> None:
    place.drop("sub/a.txt", "Ann sails to Lisbon.")
    watch_until(place, "memctl.store.tables.transaction", "Transaction.commit", "after")
    monkeypatch.delattr("memctl.ingest.ingest_pipeline.Ingestor.ingest")
    assert said(place.drain()) == ["known"]
    assert place.tree(place.layout.processed) == ["sub/a.txt"]
    assert place.tree(place.layout.processing) == []
    with place.open() as base:
        (entry,) = base.store.ledger.files.entries()
    assert (entry.state, entry.document_id) == ("done", place.rows("documents", "id")[0]["id"])


def test_a_half_copy_from_another_file_system_is_swept_away(place: Place, stick: Path) -> None:
    (stick / "a.txt").write_text("Ann sails to Lisbon.")
    place.set(inboxes=(Inbox(place.layout.inbox), Inbox(stick)))
    watch_until(place, "memctl.watch.claims", "shutil.copyfileobj", "after")
    assert len(place.tree(place.layout.processing)) == 1
    assert [path.name for path in stick.iterdir()] == ["a.txt"]
    place.drain()
    assert list(stick.iterdir()) == list(place.layout.processing.iterdir()) == []
    assert place.tree(place.layout.processed) == ["a.txt"]


def test_a_reason_that_was_half_written_is_swept_away_and_nothing_else(place: Place) -> None:
    place.drop("sub/zeros.txt", "\0")
    watch_until(place, "memctl.watch.claims", "save_file", "before")
    failed = place.layout.failed / "sub"
    assert list(failed.iterdir()) == []
    half = failed / ".zeros.txt.reason.json.0123456789ab.tmp"  # as replacing() names it
    half.touch()
    assert is_temporary(half.name, ".reason.json")
    others = ["half.tmp", ".a.reason.json.tmp", ".a.txt.0123456789ab.tmp", "a.txt.reason.json"]
    in_work = ".b.txt.reason.json.0123456789ab.tmp"
    for name in (*others, in_work):
        (failed / name).touch()
    with (failed / in_work).open("rb") as file:
        lock_file(file.fileno())
        place.drain()
    expected = [*others, in_work, "zeros.txt", "zeros.txt.reason.json"]
    assert place.tree(failed) == sorted(expected)


# --- the real command ----------------------------------------------------------------------------


def watch(place: Place, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "MEMCTL_HOME": str(place.home.config.home)}
    environment |= {"MEMCTL_WATCH_SETTLE_SECONDS": "0.1", "MEMCTL_WATCH_RESCAN_SECONDS": "0.5"}
    command = [sys.executable, "-m", "memctl", "watch", *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def next_event(process: subprocess.Popen[str], kind: str) -> dict[str, object]:
    assert process.stdout is not None
    for line in process.stdout:
        event = json.loads(line)
        if event["kind"] == kind:
            return dict(event)
    raise AssertionError(f"it ended without saying {kind}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_the_files_in_hand_done_or_put_back(
    place: Place, number: signal.Signals
) -> None:
    with watch(place) as process:
        next_event(process, "started")
        for n in range(200):
            place.drop(f"{n}.txt", f"File number {n}.")
        next_event(process, "ingested")
        process.send_signal(number)
        rest = process.communicate(timeout=PATIENCE)[0]
    assert process.returncode == 0
    assert json.loads(rest.splitlines()[-1])["kind"] == "stopped"
    assert place.tree(place.layout.processing) == []
    done, left = place.tree(place.layout.processed), place.tree(place.layout.inbox)
    assert len(done) + len(left) == 200
    assert len(place.rows("documents", "id")) == len(done)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no alarms")
def test_a_file_that_takes_long_is_put_back_soon_after_one_signal(place: Place) -> None:
    with watch(place) as process:
        next_event(process, "started")
        lines = (
            f"On day {n} Ann sold {n} cranes to Bob of dock {n % 977}.\n" for n in range(10**6)
        )
        place.drop("big.txt", "".join(lines))
        wait_for(lambda: place.tree(place.layout.processing))
        process.send_signal(signal.SIGTERM)
        next_event(process, "put_back")
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert place.tree(place.layout.inbox) == ["big.txt"]
    assert place.tree(place.layout.processing) == []
    assert place.rows("documents", "id") == []
    assert place.damage() == []


def test_a_second_command_for_the_same_knowledge_base_is_refused(place: Place) -> None:
    with watch(place) as first:
        next_event(first, "started")
        with watch(place) as second:
            assert second.wait(PATIENCE) == 11
        first.send_signal(signal.SIGTERM)
        first.communicate(timeout=PATIENCE)
    assert first.returncode == 0


def test_a_daemon_that_was_killed_does_not_keep_the_next_one_out(place: Place) -> None:
    with watch(place) as first:
        next_event(first, "started")
        first.kill()
        first.communicate()
    place.drop("a.txt", "Remember me.")
    with watch(place, "--once") as second:
        second.communicate(timeout=PATIENCE)
    assert second.returncode == 0
    assert place.tree(place.layout.processed) == ["a.txt"]


def test_it_survives_its_reader_going_away(place: Place) -> None:
    with watch(place) as process:
        next_event(process, "started")
        assert process.stdout is not None
        process.stdout.close()
        place.drop("a.txt", "Remember me.")
        process.wait(PATIENCE)  # it has nobody left to tell what it does
    everywhere = place.tree(place.layout.processed) + place.tree(place.layout.inbox)
    assert everywhere == ["a.txt"]
    assert place.tree(place.layout.processing) == []
