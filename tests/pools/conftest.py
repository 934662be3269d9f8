"""Pools on a ledger with a clock that tests set, and the command line on a home of its own."""

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
from memctl.pools import Pools
from memctl.store.ledger.ledger import Ledger


@dataclass
class Clock:
    """Tells the time that a test has set."""

    now: datetime = datetime(2026, 5, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **amount: float) -> None:
        """Let time pass; backwards with a negative amount."""
        self.now += timedelta(**amount)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger.create(tmp_path / "ledger.sqlite")
    yield made
    made.close()


@pytest.fixture
def acting_as(ledger: Ledger, clock: Clock) -> Callable[..., Pools]:
    """Return the pools as an agent sees them."""
    return lambda agent, **options: Pools(ledger, clock, agent, **options)


@pytest.fixture
def ann(acting_as: Callable[..., Pools]) -> Pools:
    return acting_as("ann")


@pytest.fixture
def bob(acting_as: Callable[..., Pools]) -> Pools:
    return acting_as("bob")


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


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One home for all tests of a module; each uses pools of its own."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def memctl(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Callable[..., Result]:
    """Run a command as in a pipe, with ``stdin`` as standard input."""
    monkeypatch.setenv("MEMCTL_HOME", str(home))
    for name in ("KB", "USER", "AGENT", "SESSION"):
        monkeypatch.delenv(f"MEMCTL_{name}", raising=False)

    def command(*arguments: str, stdin: str | bytes = "") -> Result:
        content = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), "utf-8"))
        for stream in (sys.stdout, sys.stderr):
            accept_any_text(stream)
        code = run(arguments)
        out, err = capsysbinary.readouterr()
        return Result(code, out.decode("utf-8", "replace"), err.decode())

    return command
