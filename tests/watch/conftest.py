"""What tests of the watcher start from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from watched import Place, new_place, second_file_system

from memctl.watch.reporter import WatchEvent


def kinds(events: list[WatchEvent]) -> list[str]:
    """What kinds of events there were, without those about the daemon itself."""
    about = ("started", "stopped", "serving", "left")
    return [event.kind for event in events if event.kind not in about]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return new_place(tmp_path)


@pytest.fixture
def said() -> Callable[[list[WatchEvent]], list[str]]:
    return kinds


@pytest.fixture
def stick(tmp_path: Path) -> Iterator[Path]:
    """A folder on another file system than temporary folders are on."""
    with second_file_system(tmp_path) as folder:
        yield folder
