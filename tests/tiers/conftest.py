"""A knowledge base with a clock that tests set, and the command line on a home of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_line import Run, runner
from set_clock import Clock

from memctl.config import load_config
from memctl.home import Home
from memctl.knowledge_base import KnowledgeBase

__all__ = ["Clock", "Run"]


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, clock: Clock) -> Home:
    folder = tmp_path_factory.mktemp("tiers")
    made = Home(load_config({"home": str(folder)}, {}), clock)
    made.create("notes")
    return made


@pytest.fixture
def kb(home: Home) -> Iterator[KnowledgeBase]:
    """The knowledge base of the module, with nothing in working and short-term memory."""
    with home.open("notes") as base:
        for name in ("working_values", "working_shares", "working_saves", "short_term_entries"):
            with base.store.ledger.transaction() as connection:
                connection.execute(f"DELETE FROM {name}")
        yield base


@pytest.fixture
def memctl(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Run:
    """Run a command as in a pipe, with ``stdin`` as standard input."""
    return runner(home.config.home, monkeypatch, capsysbinary)


@pytest.fixture
def files_with() -> Callable[[Path, str], list[Path]]:
    """Return the files below a folder that have a text in their bytes."""

    def found(folder: Path, text: str) -> list[Path]:
        return [
            path
            for path in folder.rglob("*")
            if path.is_file() and text.encode() in path.read_bytes()
        ]

    return found
