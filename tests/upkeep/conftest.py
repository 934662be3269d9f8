"""A knowledge base with a clock that tests move by days, and the command line on its home."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from command_line import Run, runner
from set_clock import START, Clock, home_at, utc_as_local_time

from memctl.home import Home
from memctl.knowledge_base import KnowledgeBase
from memctl.memories.memory_editing import write_memories
from memctl.records import Memory

__all__ = ["START", "Clock", "Run", "distil"]


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Local time is UTC, so that 04:00 is the same everywhere."""
    with utc_as_local_time(monkeypatch):
        yield


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def home(tmp_path: Path, clock: Clock) -> Home:
    return home_at(tmp_path / "home", clock)


@pytest.fixture
def kb(home: Home) -> Iterator[KnowledgeBase]:
    with home.open("default") as base:
        yield base


@pytest.fixture
def memctl(
    home: Home,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> Run:
    """Run a command as in a pipe, at the time that the clock tells."""
    monkeypatch.setattr("memctl.instants.utc_now", clock)
    return runner(home.config.home, monkeypatch, capsysbinary)


def distil(
    base: KnowledgeBase, *texts: str, importance: float = 0.0, **values: Any
) -> Sequence[str]:
    """Store gists as a reader would have drawn them; return their ids."""
    now, editor = base.clock(), base.services.editor()
    memories = [
        Memory(
            id=f"m_{zlib.crc32(f'{text} {importance}'.encode()):024x}",
            document_id=None,
            level="memory",
            type="gist",
            text=text,
            namespace="default",
            created_at=now,
            valid_from=now,
            source="notes.md",
            importance=importance,
            method="builtin",
        )
        for text in texts
    ]
    from msgspec.structs import replace

    memories = [replace(each, **values) for each in memories]
    with base.store.write() as transaction:
        write_memories(transaction, [editor.prepare(each) for each in memories], {}, now)
    return [each.id for each in memories]
