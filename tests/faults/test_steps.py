"""Killed at each step in turn, a command that writes has done its work or has not begun it.

By default at some steps, spread over the whole length of each command; with
``MEMCTL_LONG_TESTS=1`` at every one.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from fake_endpoint import FakeEndpoint
from faults.acts import ACTS, LIKE_OTHERS, Command, Trial, fill, put, serve
from killed import Image, images_of, kill_at
from watched import new_place

IS_LONG = os.environ.get("MEMCTL_LONG_TESTS") == "1"
MOST_STEPS = 10_000 if IS_LONG else 2
SOME = [name for name in ACTS if IS_LONG or name not in LIKE_OTHERS]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a home; the ledger knows where files are, so images of it are put there."""
    folder = tmp_path_factory.mktemp("steps")
    fill(new_place(folder))
    shutil.copytree(folder / "home", folder / "filled")
    return folder


@pytest.fixture
def home(filled: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = filled / "home"
    monkeypatch.setenv("MEMCTL_HOME", str(home))
    monkeypatch.setenv("MEMCTL_WATCH_SETTLE_SECONDS", "0")
    put(filled / "filled", home)
    return home


@pytest.mark.parametrize("name", SOME)
def test_a_command_killed_at_any_step_has_done_its_work_or_can_be_run_again(
    home: Path, tmp_path: Path, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    serve(name, endpoint, monkeypatch)
    trial, images = tried(name, home, tmp_path)
    assert len(images) > 3
    for image in images[1 :: max(1, -(-len(images) // MOST_STEPS))]:
        print(image.step)
        put(image.home, home)
        trial.require_all_well()


@pytest.mark.parametrize("name", SOME if IS_LONG else ["forget a document"])
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


def tried(name: str, home: Path, folder: Path) -> tuple[Trial, list[Image]]:
    """Do an act whole, with an image at each step; what was before it is kept in ``ready``."""
    images: list[Image] = []

    def run(words: Command) -> None:
        shutil.copytree(home, folder / "ready")
        images.extend(images_of(home, folder / "images", *words))

    return Trial.of(ACTS[name], home, run), images
