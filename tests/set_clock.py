"""A clock that tells the time that a test has set."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

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
