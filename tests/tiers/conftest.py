"""A knowledge base with a clock that tests set, and the command line on a home of its own."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memctl.cli.main import accept_any_text, run
from memctl.config import load_config
from memctl.home import Home
from memctl.knowledge_base import KnowledgeBase


@dataclass
class Clock:
    """Tells the time that a test has set."""

    now: datetime = datetime(2026, 5, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **amount: float) -> None:
        """Let time pass; backwards with a negative amount."""
        self.now += timedelta(**amount)


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


@dataclass(frozen=True)
class Result:
    """What one command gave."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as one JSON document."""
        return json.loads(self.out)

    @property
    def rows(self) -> list[Any]:
        """Standard output as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Result]


@pytest.fixture
def memctl(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Run:
    """Run a command as in a pipe, with ``stdin`` as standard input."""
    monkeypatch.setenv("MEMCTL_HOME", str(home.config.home))
    for name in ("KB", "USER", "AGENT", "SESSION"):
        monkeypatch.delenv(f"MEMCTL_{name}", raising=False)

    def command(*arguments: str, stdin: str | bytes = "") -> Result:
        content = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), "utf-8"))
        for stream in (sys.stdout, sys.stderr):
            accept_any_text(stream)
        code = run(arguments)
        out, err = capsysbinary.readouterr()
        return Result(code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))

    return command


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
