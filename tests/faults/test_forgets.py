"""A forget that is killed is completed by whatever writes next, and by the watcher."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults.acts import NOTES_KB, SECRET, Command, files_with, fill, home_at, put, with_ids
from killed import Image, images_of
from long_form import IS_LONG
from watched import Place, command, new_place

from memctl.schema.table_names import FORGET

MAX_STEPS = 10_000 if IS_LONG else 2
WRITERS: dict[str, Command] = {
    "memory add": ("memory", "add", "The spare key is with Ida.", *NOTES_KB),
    "ingest": ("ingest", "--text", "Dora Finch sends a letter.", *NOTES_KB),
    "watch": ("watch", "--once"),
}


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Image]]:
    """A home, and how a forget leaves it that is killed after its commit, at each step."""
    folder = tmp_path_factory.mktemp("forgets")
    fill(new_place(folder))
    home = folder / "home"
    words = with_ids(("forget", "--document", "@keys", "--snapshots", "--yes", *NOTES_KB), home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMCTL_HOME", str(home))
        images = images_of(home, folder / "images", *words)
    pending = []
    for image in images:
        put(image.home, home)
        with home_at(home).open("notes") as base:
            if base.store.ledger.jobs.unfinished_jobs(FORGET):
                pending.append(image)
    return home, pending


@pytest.mark.parametrize("writer", WRITERS)
def test_a_forget_that_is_killed_at_any_step_is_completed_by_who_writes_next(
    killed: tuple[Path, list[Image]], monkeypatch: pytest.MonkeyPatch, writer: str
) -> None:
    home, images = killed
    monkeypatch.setenv("MEMCTL_HOME", str(home))
    monkeypatch.setenv("MEMCTL_WATCH_SETTLE_SECONDS", "0")
    assert len(images) > 3
    first = 0 if IS_LONG else list(WRITERS).index(writer)  # each gets others
    for image in images[first :: max(1, -(-len(images) // MAX_STEPS))]:
        put(image.home, home)
        assert command(home, *WRITERS[writer]) == 0, image.step
        with home_at(home).open("notes") as base:
            assert base.store.ledger.jobs.unfinished_jobs(FORGET) == [], image.step
            assert base.snapshots.list() == [], image.step
        assert files_with(SECRET, home / "kb") == [], image.step


def test_the_watcher_says_that_it_has_completed_a_forget(
    killed: tuple[Path, list[Image]], tmp_path: Path
) -> None:
    home, images = killed
    put(images[len(images) // 2].home, home)
    place = Place(home_at(home), home_at(home).layout("notes"))
    (event,) = [event for event in place.drain() if event.kind == "forgotten"]
    assert event.message == "completed 1 forget that had been cut off"


def test_a_forget_that_somebody_is_at_is_left_to_them(
    killed: tuple[Path, list[Image]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from filelock import FileLock

    home, images = killed
    put(images[0].home, home)
    monkeypatch.setenv("MEMCTL_HOME", str(home))
    with FileLock(home_at(home).layout("notes").forget_lock, thread_local=False):
        assert command(home, *WRITERS["memory add"]) == 0
    with home_at(home).open("notes") as base:
        assert len(base.store.ledger.jobs.unfinished_jobs(FORGET)) == 1


def test_a_forget_with_leftovers_is_not_retried_by_every_writer(
    killed: tuple[Path, list[Image]], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, images = killed
    put(images[0].home, home)
    monkeypatch.setenv("MEMCTL_HOME", str(home))
    monkeypatch.setattr("memctl.store.store._READERS_ARE_ASKED", 1)
    with home_at(home).open("notes") as reader:
        snapshot = reader.store.snapshot()  # with what was there before the tables are rewritten
        assert command(home, *WRITERS["memory add"]) == 0
        assert snapshot.count("documents")
        with home_at(home).open("notes") as base:
            versions = base.store.ledger.head()
            assert len(base.store.ledger.jobs.unfinished_jobs(FORGET)) == 1
            assert base.erasure.complete() is None
            assert base.store.ledger.head() == versions
    assert command(home, "forget", *NOTES_KB) == 0
    assert files_with(SECRET, home / "kb") == []
