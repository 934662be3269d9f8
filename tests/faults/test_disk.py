"""A disk that is full, read-only or away makes the watcher wait, say so once, and go on by itself.

What needs a file system of its own mounts a small one in memory, which only root may.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from fake_endpoint import FakeEndpoint
from faults import acts
from faults.acts import ACTS
from limited import permissions_that_hold
from long_form import IS_LONG
from waiting import wait_for
from watched import Daemon, Place, new_place, put_whole

from memctl.errors import DamagedError, DiskRefused
from memctl.kb_settings import Inbox
from memctl.store.tables import transaction
from memctl.watch.watch_status import watch_status

pytestmark = pytest.mark.usefixtures("quick_reading")

FREE = range(0, 1 << 20, 1 << 16) if IS_LONG else (1 << 15, 1 << 17)
"""How many bytes a disk has left."""
CRAMPED = ("ingest", "consolidate", "forget a document", "snapshot restore", "doctor --rebuild")


def mount(folder: Path, *options: str) -> None:
    subprocess.run(["mount", *options, str(folder)], check=True, capture_output=True)


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of 24 MB."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            mount(folder, "-t", "tmpfs", "-o", "size=24m,mode=0755", "tmpfs")
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("only root may mount a file system")
        try:
            yield folder
        finally:
            subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def cramped(small_disk: Path) -> Place:
    return new_place(small_disk)


def fill(disk: Path, but: int = 0) -> Path:
    """Take up all the space there is, but for so many bytes."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        with suppress(OSError):
            while True:
                file.write(bytes(4096))
        file.truncate(max(file.tell() - but, 0))
    return ballast


@contextmanager
def read_only(disk: Path) -> Iterator[None]:
    """Have nothing be opened for writing on a disk; what is open stays so, or it would be busy."""

    def is_remounted() -> bool:
        """Return whether it could be: it is busy while the watcher has just opened something."""
        command = ["mount", "-o", "remount,bind,ro", str(disk)]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0

    mount(disk, "--bind", str(disk))
    try:
        wait_for(is_remounted)
        yield
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


@contextmanager
def elsewhere(disk: Path) -> Iterator[Path]:
    """Have a disk mounted at a second place, too, so that it is whole when it comes back."""
    with tempfile.TemporaryDirectory() as name:
        mount(Path(name), "--bind", str(disk))
        try:
            yield Path(name)
        finally:
            subprocess.run(["umount", "-l", name], check=True)


@contextmanager
def closed_at_the_end(descriptor: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(descriptor)


def kinds(place: Place) -> list[str]:
    return [event.kind for event in place.events]


def require_all_remembered(place: Place, names: list[str]) -> None:
    assert place.tree(place.layout.processed) == sorted(names)
    assert place.tree(place.layout.inbox) == place.tree(place.layout.processing) == []
    assert place.tree(place.layout.failed) == []
    assert sorted(row["source"] for row in place.rows("documents", "source")) == sorted(names)
    assert place.damage() == []


@pytest.mark.parametrize("free", [0, *FREE[1:]])
def test_a_full_disk_is_waited_for_and_nothing_is_lost(
    small_disk: Path, cramped: Place, free: int
) -> None:
    names = [f"{number}.txt" for number in range(30)]

    def is_done() -> bool:
        return len(cramped.tree(cramped.layout.processed)) == len(names)

    def said(kind: str) -> int:
        return kinds(cramped).count(kind)

    with Daemon(cramped, poll=True, retry_seconds=0.1):
        wait_for(lambda: "started" in kinds(cramped))
        for name in names[:10]:
            cramped.drop(name, f"Letter {name} is about the harbour. " * 50)
        wait_for(lambda: len(cramped.tree(cramped.layout.processed)) == 10)
        for name in names[10:]:
            cramped.drop(name, f"Letter {name} is about the harbour. " * 50)
        ballast = fill(small_disk, free)
        wait_for(lambda: "waiting" in kinds(cramped) or is_done())
        assert free or not is_done()
        with cramped.open() as base:
            problems = watch_status(base).problems
            assert is_done() or any("space" in problem for problem in problems)
        ballast.unlink()
        wait_for(lambda: is_done() and said("waiting") == said("resumed"))
    assert said("waiting") <= 1
    require_all_remembered(cramped, names)


def test_a_file_too_big_for_the_disk_keeps_none_of_it_while_it_waits(
    small_disk: Path, cramped: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "ROWS_HELD", 200)
    cramped.drop("small.txt", "Ann sails to Lisbon.")
    cramped.drain()
    lines = (f"Crane {number} stands at berth {number % 101}.\n\n" for number in range(30_000))
    cramped.drop("big.txt", "".join(lines))
    ballast = fill(small_disk, 2 << 20)
    before = shutil.disk_usage(small_disk).free
    with Daemon(cramped, poll=True, retry_seconds=3600.0):
        wait_for(lambda: "waiting" in kinds(cramped))
        assert shutil.disk_usage(small_disk).free > before - (1 << 19)
    ballast.unlink()
    cramped.drain()
    assert cramped.tree(cramped.layout.processed) == ["big.txt", "small.txt"]
    parts = cramped.rows("documents", "text")
    assert sum(row["text"].count("Crane ") for row in parts) == 30_000
    assert cramped.damage() == []


@pytest.mark.parametrize("name", [each for each in ACTS if each != "watch"] if IS_LONG else CRAMPED)
def test_a_command_that_runs_out_of_space_has_done_its_work_or_can_be_run_again(
    small_disk: Path,
    tmp_path: Path,
    endpoint: FakeEndpoint,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    home, ready = small_disk / "home", tmp_path / "ready"
    monkeypatch.setenv("MEMCTL_HOME", str(home))
    monkeypatch.setenv("MEMCTL_WATCH_SETTLE_SECONDS", "0")
    acts.serve(name, endpoint, monkeypatch)
    acts.fill(new_place(small_disk))

    def run(words: acts.Command) -> None:
        shutil.copytree(home, ready)
        assert acts.command(home, *words) in (0, 3)

    trial, codes = acts.Trial.of(ACTS[name], home, run), []
    for size in FREE:
        acts.put(ready, home)
        ballast = fill(small_disk, size)
        capsys.readouterr()
        codes.append(acts.command(home, *trial.words))
        err = capsys.readouterr().err
        ballast.unlink()
        print(size, err)
        assert "unexpected" not in err
        trial.require_all_well()
    assert any(codes) or name not in CRAMPED, "there was room enough"


def test_a_disk_that_turns_read_only_is_waited_for(small_disk: Path, cramped: Place) -> None:
    inbox = os.open(cramped.layout.inbox, os.O_RDONLY)  # what is open can still be written to
    with Daemon(cramped, poll=True, retry_seconds=0.1), closed_at_the_end(inbox):
        wait_for(lambda: "started" in kinds(cramped))
        cramped.drop("a.txt", "Ann sails to Lisbon.")
        wait_for(lambda: cramped.tree(cramped.layout.processed) == ["a.txt"])
        cramped.drop(".b.txt", "Bo stays at home.")
        with read_only(small_disk):
            os.rename(".b.txt", "b.txt", src_dir_fd=inbox, dst_dir_fd=inbox)
            wait_for(lambda: "waiting" in kinds(cramped))
            with cramped.open() as base:
                assert any("read-only" in text for text in watch_status(base).problems)
        wait_for(lambda: len(cramped.tree(cramped.layout.processed)) == 2)
    assert kinds(cramped).count("waiting") == 1
    require_all_remembered(cramped, ["a.txt", "b.txt"])


def test_a_disk_that_is_full_at_the_start_is_waited_for(small_disk: Path, cramped: Place) -> None:
    cramped.drop("a.txt", "Ann sails to Lisbon.")
    ballast = fill(small_disk)
    with Daemon(cramped, poll=True, retry_seconds=0.1):
        wait_for(lambda: {"started", "waiting"} <= set(kinds(cramped)))
        with cramped.open() as base:
            assert any("space" in problem for problem in watch_status(base).problems)
        ballast.unlink()
        wait_for(lambda: cramped.tree(cramped.layout.processed) == ["a.txt"])
        with cramped.open() as base:
            assert watch_status(base).pid == os.getpid()
    assert kinds(cramped).count("waiting") == 1
    assert "resumed" in kinds(cramped)
    require_all_remembered(cramped, ["a.txt"])


def test_a_home_that_is_read_only_at_the_start_is_waited_for(
    small_disk: Path, cramped: Place
) -> None:
    cramped.drop("a.txt", "Ann sails to Lisbon.")
    other = new_place(small_disk / "other")
    with ExitStack() as daemon:
        with read_only(small_disk):
            daemon.enter_context(Daemon(cramped, poll=True))
            wait_for(lambda: {"started", "waiting"} <= set(kinds(cramped)))
            with cramped.open() as base:
                assert any("read-only" in text for text in watch_status(base).problems)
            with pytest.raises(DiskRefused, match="read-only"):
                other.drain()  # which is not to wait
        wait_for(lambda: cramped.tree(cramped.layout.processed) == ["a.txt"])
    assert kinds(cramped).count("waiting") == 1
    assert "resumed" in kinds(cramped)
    require_all_remembered(cramped, ["a.txt"])


def test_a_damaged_knowledge_base_does_not_keep_the_watcher_from_the_others(place: Place) -> None:
    place.home.create("broken")
    ledger = place.home.layout("broken").folder / "ledger.sqlite"
    ledger.write_bytes(b"nothing of the kind")
    place.drop("a.txt", "Ann sails to Lisbon.")
    left = place.service(once=True).run().left
    assert place.tree(place.layout.processed) == ["a.txt"]
    assert [each.kb for each in left] == ["broken"]
    place.home.change("notes", always_on=False)
    with pytest.raises(DamagedError):
        place.service().run()


def test_files_of_a_share_that_is_not_mounted_are_not_gone(place: Place, small_disk: Path) -> None:
    (small_disk / "a.txt").write_text("Ann sails to Lisbon.")
    place.keep(small_disk)
    with elsewhere(small_disk) as share, Daemon(place, poll=True):
        wait_for(lambda: "ingested" in kinds(place))
        subprocess.run(["umount", "-l", str(small_disk)], check=True)  # it may be looked into now
        wait_for(lambda: "waiting" in kinds(place))
        with place.open() as base:
            assert any("nothing is mounted" in text for text in watch_status(base).problems)
        mount(small_disk, "--bind", str(share))
        wait_for(lambda: "resumed" in kinds(place))
        put_whole(small_disk / "b.txt", "Bo stays at home.")
        wait_for(lambda: kinds(place).count("ingested") == 2)
    assert "gone" not in kinds(place)
    assert {row["status"] for row in place.rows("documents", "status")} == {"indexed"}


def test_an_inbox_that_vanishes_is_reported_once_and_looked_into_when_it_is_back(
    place: Place, tmp_path: Path
) -> None:
    share = tmp_path / "share"
    share.mkdir()
    place.set(inboxes=(Inbox(place.layout.inbox), Inbox(share)))

    def missing() -> int:
        """How often it was told; of a file that is still being written something else is told."""
        waits = [each for each in place.events if each.kind == "waiting"]
        return sum("no folder" in each.message for each in waits)

    with Daemon(place, poll=True):
        wait_for(lambda: "started" in kinds(place))
        for round_ in (1, 2):
            share.rmdir()
            wait_for(lambda: missing() == round_)  # noqa: B023 - it is waited for
            place.drop(f"{round_}.txt", f"The other inbox goes on, for the {round_}. time.")
            wait_for(lambda: kinds(place).count("ingested") == 2 * round_ - 1)  # noqa: B023
            with place.open() as base:
                assert watch_status(base).problems == (f"no folder {share}",)
            share.mkdir()
            wait_for(lambda: kinds(place).count("resumed") == round_)  # noqa: B023
            put_whole(share / f"{round_}.txt", f"From the share, for the {round_}. time.")
            wait_for(lambda: kinds(place).count("ingested") == 2 * round_)  # noqa: B023
    assert missing() == 2


def test_a_permission_that_is_lost_is_waited_for(place: Place) -> None:
    with permissions_that_hold(), Daemon(place, poll=True, retry_seconds=0.1):
        wait_for(lambda: "started" in kinds(place))
        place.layout.processing.mkdir(exist_ok=True)
        place.layout.processing.chmod(0o500)
        place.drop("a.txt", "Ann sails to Lisbon.")
        wait_for(lambda: "waiting" in kinds(place))
        assert place.tree(place.layout.inbox) == ["a.txt"]
        place.layout.processing.chmod(0o700)
        wait_for(lambda: place.tree(place.layout.processed) == ["a.txt"])
    assert kinds(place).count("waiting") == 1
    assert "resumed" in kinds(place)


def test_an_inbox_that_may_not_be_listed_any_more_is_waited_for(place: Place) -> None:
    place.drop("b.txt", "Bo stays at home.")
    place.layout.inbox.chmod(0)
    with permissions_that_hold(), Daemon(place, poll=True), place.open() as base:
        wait_for(lambda: {"started", "waiting"} <= set(kinds(place)))
        (problem,) = watch_status(base).problems
        assert "cannot list" in problem
        place.layout.inbox.chmod(0o700)
        wait_for(lambda: place.tree(place.layout.processed) == ["b.txt"])
        assert watch_status(base).problems == ()
    assert kinds(place).count("waiting") == 1
