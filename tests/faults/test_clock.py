"""A clock that jumps, and a system without a watch left for another folder, stop nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from waiting import PATIENCE, wait_for
from watched import SETTLE, Daemon, Place, memctl

from memctl.doctor.doctor import Doctor
from memctl.home import Home
from memctl.ingest.discovery.inbox_scan import scan_inbox
from memctl.store.store import Store
from memctl.watch.inbox_scanner import StabilityTracker
from memctl.watch.kb_watcher import WatchOptions
from memctl.watch.service import WatchedBases, WatchService
from memctl.watch.watch_status import watch_status

YEAR = timedelta(days=366)


class Clock:
    """The time, as somebody has set it."""

    def __init__(self) -> None:
        self.ahead = timedelta(0)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@pytest.mark.parametrize("way", [YEAR, -YEAR], ids=["ahead", "back"])
def test_a_file_is_taken_only_when_it_stands_still_though_the_clock_jumps(
    tmp_path: Path, way: timedelta
) -> None:
    clock, looked_at, now = Clock(), 0.0, datetime.now(UTC)
    settling = StabilityTracker(2.0, lambda: (now + clock.ahead).timestamp(), lambda: looked_at)
    (tmp_path / "a.txt").write_text("half of ")
    assert settling.ready(scan_inbox(tmp_path).files)[0] == []
    clock.ahead, looked_at = way, 1.0
    assert settling.ready(scan_inbox(tmp_path).files)[0] == [], "it has stood still for one second"
    (tmp_path / "b.txt").write_text("begun at the old time")
    clock.ahead, looked_at = timedelta(0), 1.5
    assert settling.ready(scan_inbox(tmp_path).files)[0] == []
    looked_at = 3.6
    names = [file.path.name for file in settling.ready(scan_inbox(tmp_path).files)[0]]
    assert names == ["a.txt", "b.txt"]


def test_the_watcher_goes_on_while_the_clock_jumps_back_and_forth(place: Place) -> None:
    clock = Clock()
    place.set(consolidate_interval=60)
    options = WatchOptions(settle_seconds=SETTLE, rescan_seconds=0.2, poll=True)
    service = WatchService(WatchedBases(place.home), options, place.events.append, clock)
    with Daemon(place, service):
        for number, ahead in enumerate([timedelta(0), YEAR, timedelta(0), -YEAR, YEAR], start=1):
            clock.ahead = ahead
            place.drop(f"{number}.txt", f"Letter {number} of the harbour.")
            wait_for(lambda: len(place.tree(place.layout.processed)) == number)  # noqa: B023
    assert [event.kind for event in place.events].count("ingested") == 5
    assert place.tree(place.layout.failed) == []
    assert place.damage() == []


def test_a_consolidation_noted_in_the_future_is_not_waited_for(place: Place) -> None:
    place.set(consolidate_interval=60)
    with place.open() as base:
        jobs = base.store.ledger.jobs
        jobs.finish(jobs.start("consolidation", datetime.now(UTC) + YEAR), "done", base.clock())
    place.drop("a.txt", "Ann sails to Lisbon.")
    place.drain()
    with place.open() as base:
        last = base.store.ledger.jobs.last("consolidation")
    assert last is not None
    assert last.started_at < datetime.now(UTC)


def test_versions_that_ceased_to_count_in_the_future_are_pruned_all_the_same(
    tmp_path: Path,
) -> None:
    clock = Clock()
    clock.ahead = YEAR
    with Store.create(tmp_path / "kb", 8, clock=clock) as store:
        path = store.folder / "lance" / "memories.lance"
        for _ in range(3):
            touch(store)
        clock.ahead = timedelta(0)
        store.prune()
        clock.ahead = timedelta(hours=2)
        assert store.prune().versions >= 2
        assert len(list((path / "_versions").glob("*.manifest"))) == 1


def test_what_ended_while_the_clock_was_ahead_is_history_when_it_is_right_again(
    place: Place, tmp_path: Path
) -> None:
    clock, vault = Clock(), tmp_path / "vault"
    vault.mkdir()
    place.keep(vault)
    options = WatchOptions(settle_seconds=0.0, poll=True, once=True)
    for text in ("Ann sails to Lisbon on Monday.", "Ann sails to Porto on Monday."):
        (vault / "a.txt").write_text(text)
        home = Home(place.home.config, clock)
        WatchService(WatchedBases(home), options, place.events.append, clock).run()
        clock.ahead = YEAR
    with place.open() as base:
        hits = base.query("Where does Ann sail on Monday?").hits
    assert hits
    assert not any("Lisbon" in hit.text for hit in hits)


@pytest.mark.parametrize("way", [YEAR, -YEAR], ids=["ahead", "back"])
def test_what_a_reader_looks_at_is_not_pruned_though_the_clock_jumps(
    tmp_path: Path, way: timedelta
) -> None:
    clock = Clock()
    with Store.create(tmp_path / "kb", 8, clock=clock) as store:
        with Store.open(store.folder, clock=clock) as reader:
            held = reader.snapshot()
            touch(store)
            clock.ahead = way
            touch(store)
            for _ in range(2):  # a clock that went back is noticed by the first
                clock.ahead += timedelta(hours=2)
                store.prune()
            assert held.dataset("memories").count_rows() == 0, "its files are still there"
            assert held.versions["memories"] in versions(store)
        store.prune()
        assert held.versions["memories"] not in versions(store)


def test_a_lease_ends_with_its_process_though_another_one_gets_its_number(tmp_path: Path) -> None:
    clock = Clock()
    with Store.create(tmp_path / "kb", 8, clock=clock) as store:
        before = store.ledger.head()
        lease = store.folder / "readers" / f"{os.getpid()}-0123abcd.json"
        lease.parent.mkdir()
        lease.write_text(json.dumps({"pid": os.getpid(), "versions": [before]}))
        touch(store)
        clock.ahead = timedelta(hours=2)
        store.prune()
        assert not lease.exists()
        assert before["memories"] not in versions(store)


def touch(store: Store) -> None:
    """Commit a change."""
    with store.write() as transaction:
        transaction.dataset("memories").update_config({"touched": "yes"})


def versions(store: Store) -> set[int]:
    """The versions of the memories that are still on disk."""
    return {item["version"] for item in store.snapshot().dataset("memories").versions()}


LIMITED = """
import os, sys
limit, *command = sys.argv[1:]
with open("/proc/sys/user/max_inotify_watches", "w") as file:
    file.write(limit)
os.execv(sys.executable, [sys.executable, "-m", "memctl", *command])
"""


@pytest.mark.parametrize("limit", [0, 4], ids=["at the start", "halfway"])
def test_without_a_watch_left_it_says_so_once_and_looks_from_time_to_time(
    place: Place, limit: int
) -> None:
    apart = ["unshare", "--user", "--map-root-user"]
    try:
        subprocess.run([*apart, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no user namespace can be made here")
    for number in range(2):
        place.drop(f"{number}/a.txt", f"Letter {number} of the harbour.")
    environment = os.environ | {
        "MEMCTL_HOME": str(place.home.config.home),
        "MEMCTL_WATCH_SETTLE_SECONDS": "0.1",
        "MEMCTL_WATCH_RESCAN_SECONDS": "0.3",
    }
    command = [*apart, sys.executable, "-c", LIMITED, str(limit), "watch"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        wait_for(lambda: len(place.tree(place.layout.processed)) == 2)
        for number in range(2, 8):
            place.drop(f"{number}/a.txt", f"Letter {number} of the harbour.")
        wait_for(lambda: len(place.tree(place.layout.processed)) == 8)
        with place.open() as base:
            wait_for(lambda: any("watch limit" in event for event in watch_status(base).polled))
        warned = [
            each.message for each in Doctor(place.home).examine("notes") if each.verdict != "ok"
        ]
        process.send_signal(signal.SIGTERM)
        out = process.communicate(timeout=PATIENCE)[0]
    assert process.returncode == 0
    (event,) = [line for line in map(json.loads, out.splitlines()) if line["kind"] == "polling"]
    assert "inotify watch limit reached" in event["message"]
    assert any("inotify watch limit reached" in message for message in warned)
    with place.open() as base:
        assert watch_status(base).polled == (), "nobody watches it now"


@pytest.mark.skipif(sys.platform != "linux", reason="what overflows is the queue of Linux")
def test_a_file_is_seen_though_so_much_happened_that_events_were_lost(place: Place) -> None:
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text("ascii"))
    if most > 50_000:
        pytest.skip("the queue is too long to overflow it here")
    with memctl(place, "watch", rescan="3600") as daemon:
        assert daemon.stdout is not None
        daemon.stdout.readline()
        place.drop("a.txt", "Ann sails to Lisbon.")
        wait_for(lambda: place.tree(place.layout.processed) == ["a.txt"])
        daemon.send_signal(signal.SIGSTOP)
        for _ in range(most // 2 + 1):
            place.drop(".hidden").unlink()
        place.drop("new/b.txt", "Bo stays at home.")
        daemon.send_signal(signal.SIGCONT)
        wait_for(lambda: "new/b.txt" in place.tree(place.layout.processed))
        place.drop("new/c.txt", "Cleo arrives on Friday.")
        wait_for(lambda: "new/c.txt" in place.tree(place.layout.processed))
        daemon.send_signal(signal.SIGTERM)
        daemon.communicate(timeout=PATIENCE)
    assert daemon.returncode == 0
