"""Killed at each step in turn, a command that writes has done its work or has not begun it.

By default every second command at some steps, by chance; with ``MEMCTL_LONG_TESTS=1`` every command
at every step.  The seed is printed with a failure, and ``MEMCTL_SEED`` sets
it.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from command_tree import commands
from fake_endpoint import FakeEndpoint
from faults.acts import (
    ACTS,
    ELSEWHERE,
    LIKE_OTHERS,
    NOTES_KB,
    READING,
    Command,
    Trial,
    made_ready,
    put,
    serve,
    with_ids,
)
from killed import Image, images_of, kill_at
from long_form import IS_LONG
from watched import command

from memctl.files import is_temporary

MAX_STEPS, MAX_OF_WATCH = (10_000, 10_000) if IS_LONG else (1, 4)
OWN = [name for name in ACTS if name not in LIKE_OTHERS]
PAIRS = [tuple(OWN[place : place + 2]) for place in range(0, len(OWN), 2)]
TRIED = [(name,) for name in ACTS] if IS_LONG else [*PAIRS, LIKE_OTHERS]
"""Acts of which one is tried, by chance."""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a home; the ledger knows where files are, so images of it are put there."""
    return made_ready(tmp_path_factory.mktemp("steps"))


@pytest.fixture
def home(filled: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = filled / "home"
    monkeypatch.setenv("MEMCTL_HOME", str(home))
    monkeypatch.setenv("MEMCTL_WATCH_SETTLE_SECONDS", "0")
    put(filled / "filled", home)
    return home


def test_every_command_is_tried_or_writes_nothing_that_is_remembered() -> None:
    done = [" ".join(act.command) for act in ACTS.values()]
    tried = {name for name in commands() if any(f"{each} ".startswith(f"{name} ") for each in done)}
    assert tried.isdisjoint(READING | ELSEWHERE)
    assert tried | READING | ELSEWHERE == commands().keys()


@pytest.mark.parametrize("names", TRIED, ids=lambda names: " or ".join(names[:2]))
def test_a_command_killed_at_any_step_has_done_its_work_or_can_be_run_again(
    home: Path,
    tmp_path: Path,
    endpoint: FakeEndpoint,
    monkeypatch: pytest.MonkeyPatch,
    dice: random.Random,
    names: tuple[str, ...],
) -> None:
    name = dice.choice(names)
    serve(name, endpoint, monkeypatch)
    trial, images = tried(name, home, tmp_path)
    assert len(images) > 2
    if name in ("consolidate", "job undo"):  # which have insights to write and to take back
        assert "'insight'" in repr(trial.before) + repr(trial.after)
    for image in some(images, MAX_OF_WATCH if name == "watch" else MAX_STEPS, dice):
        print(name, image.step)
        put(image.home, home)
        trial.require_all_well()


def some(images: list[Image], most: int, dice: random.Random) -> Iterator[Image]:
    """Choose one image out of each of so many parts of about one length."""
    parts = min(most, len(images))
    edges = [number * len(images) // parts for number in range(parts + 1)]
    for start, end in pairwise(edges):
        yield images[dice.randrange(start, end)]


@pytest.mark.parametrize("name", [*ACTS] if IS_LONG else ["forget a document"])
def test_a_command_is_killed_where_its_image_was_taken(
    home: Path, tmp_path: Path, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    serve(name, endpoint, monkeypatch)
    trial, images = tried(name, home, tmp_path)
    half = len(images) // 2
    put(tmp_path / "ready", home)
    kill_at(half, home, tmp_path / "killed", *trial.words)
    found = trial.state()
    trial.require_all_well()
    put(images[half].home, home)
    assert trial.state() == found


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("doctor --repair, no manifest", ("doctor", "--repair", *NOTES_KB)),
        ("kb set", ("ingest", "--text", "tea", *NOTES_KB)),
        ("memory add", ("document", "delete", "@keys", "--yes", *NOTES_KB)),
        ("watch", ("watch", "--once")),
    ],
)
def test_half_written_files_of_a_killed_process_are_removed_at_the_next_start(
    home: Path, tmp_path: Path, name: str, start: Command
) -> None:
    _, images = tried(name, home, tmp_path)
    left = {kind(path): image for image in images for path in half_written(image.home)}
    assert left
    for written, image in left.items():
        put(image.home, home)
        assert command(home, *with_ids(start, home)) == 0
        assert half_written(home) == [], written


def half_written(home: Path) -> list[Path]:
    return [path for path in home.rglob(".*") if is_temporary(path.name, "")]


def kind(temporary: Path) -> tuple[str, str]:
    """What of, and where, leaving out what differs from file to file."""
    return temporary.parent.name, temporary.name.strip(".0123456789").partition(".")[0]


def tried(name: str, home: Path, folder: Path) -> tuple[Trial, list[Image]]:
    """Do an act whole, with an image at each step; what was before it is kept in ``ready``."""
    images: list[Image] = []

    def run(words: Command) -> None:
        shutil.copytree(home, folder / "ready")
        images.extend(images_of(home, folder / "images", *words))

    return Trial.of(ACTS[name], home, run), images
