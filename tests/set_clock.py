"""A clock that tells the time that a test has set, a home by it, and local time that is UTC."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memctl.config import load_config
from memctl.home import Home

START = datetime(2026, 5, 1, 12, tzinfo=UTC)


@dataclass
class Clock:
    """Tells the time that a test has set."""

    now: datetime = START

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **amount: float) -> None:
        """Let time pass; backwards with a negative amount."""
        self.now += timedelta(**amount)


def home_at(folder: Path, clock: Clock) -> Home:
    """Make a home by a clock, with a knowledge base that consolidates only when told to."""
    made = Home(load_config({"home": str(folder)}, {}), clock)
    made.create("default", consolidate_interval=0)
    return made


@contextmanager
def utc_as_local_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have local time be UTC; what else was patched is restored at the end, too."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    try:
        yield
    finally:
        monkeypatch.undo()
        time.tzset()
