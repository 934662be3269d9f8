"""When recurring work is due: at a time of day, of the week or of the month, or at
intervals.

Times are local wall-clock times.  Knows nothing of what the work is, and reads no clock.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta

from msgspec import Struct

from memctl.errors import UsageError
from memctl.patterns import lazy_regex

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_AT = lazy_regex(r"(?:(?P<day>[a-z]{3}|[1-9]\d?)\s+)?(?P<hour>\d{1,2}):(?P<minute>\d\d)", re.ASCII)
_EVERY = lazy_regex(r"(?P<count>[1-9]\d{0,4})\s*(?P<unit>min|m|h|d|w)", re.ASCII)
_UNITS = {"m": 60, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_OFF = "off"
_LAST_DAY = 28
"""Of the month, that every month has."""
_HINT = "such as 04:00, sun 05:00, 1 03:00 for the first of each month, or every 6h"
RETRY_AFTER = timedelta(minutes=10)
"""How long failed work waits until it is tried again."""


class Schedule(Struct, frozen=True):
    """When something is due; never, where nothing is given."""

    at: time | None = None
    """The local time of day."""
    weekday: int | None = None
    """Only on this day of the week, 0 for Monday."""
    day: int | None = None
    """Only on this day of the month."""
    every: timedelta | None = None
    """Instead of a time of day, this long after it began last."""

    def __str__(self) -> str:
        """Return it as :func:`parse_schedule` reads it."""
        if self.every is not None:
            return f"every {_interval_text(self.every)}"
        if self.at is None:
            return _OFF
        day = f"{_DAYS[self.weekday]} " if self.weekday is not None else ""
        return f"{f'{self.day} ' if self.day else day}{self.at:%H:%M}"

    @property
    def is_off(self) -> bool:
        """Whether it is never due."""
        return self.at is None and self.every is None

    def is_due(self, last: datetime | None, now: datetime, since: datetime) -> bool:
        """Return whether it is due; what was missed is due once, however often it was.

        Args:
            last: When it began last; None if it never did.
            now: The time.
            since: When it was first to be looked after; nothing was missed before.
        """
        if self.is_off:
            return False
        if last is not None and last > now:
            return True  # noted while the clock was ahead, perhaps by years
        if self.every is not None:
            return last is None or now - last >= self.every
        return self.latest(now) > (since if last is None else last)

    def latest(self, now: datetime) -> datetime:
        """Return the latest instant, now or before, that a time of day names."""
        day = now.astimezone().date()
        while True:
            instant = self._on(day.year, day.month, day.day)
            if instant is not None and instant <= now:
                return instant
            day -= timedelta(days=1)

    def following(self, last: datetime | None, now: datetime, since: datetime) -> datetime | None:
        """Return when it is due next: now, if it is; None if never."""
        if self.is_off:
            return None
        if self.is_due(last, now, since):
            return now
        if self.every is not None:
            return (last or now) + self.every
        day = now.astimezone().date()
        while True:
            instant = self._on(day.year, day.month, day.day)
            if instant is not None and instant > now:
                return instant
            day += timedelta(days=1)

    def _on(self, year: int, month: int, day: int) -> datetime | None:
        """Return the instant on a day; None if that is not one of its days.

        A time that the clock skips in spring becomes the instant that it jumps to; of a time that
        occurs twice in autumn, the first counts.
        """
        assert self.at is not None
        local = datetime(year, month, day, self.at.hour, self.at.minute)  # noqa: DTZ001 - local
        if self.weekday is not None and local.weekday() != self.weekday:
            return None
        if self.day is not None and local.day != self.day:
            return None
        return local.astimezone(UTC)


OFF = Schedule()


def daily(text: str) -> Schedule:
    """Return the schedule of a local time of day, such as ``04:00``."""
    return Schedule(at=time.fromisoformat(text))


def parse_schedule(text: str) -> Schedule:
    """Return the schedule that a text names.

    Args:
        text: ``04:00``, ``sun 05:00``, ``1 03:00``, ``every 6h`` or ``off``.

    Raises:
        UsageError: It names none.
    """
    said = " ".join(text.lower().split())
    if said == _OFF:
        return OFF
    if said.startswith("every "):
        return Schedule(every=parse_interval(said.removeprefix("every ")))
    found = _AT.fullmatch(said)
    if found is None:
        raise UsageError(f"{text[:40]!r} is no schedule", _HINT)
    hour, minute, day = int(found["hour"]), int(found["minute"]), found["day"]
    if hour > 23 or minute > 59:
        raise UsageError(f"{text[:40]!r} is no time of day", "from 00:00 to 23:59")
    at = time(hour, minute)
    if day is None:
        return Schedule(at=at)
    if day.isdigit():
        if int(day) > _LAST_DAY:
            raise UsageError(
                f"not every month has a day {day}", f"from 1 to {_LAST_DAY}, such as 1 03:00"
            )
        return Schedule(at=at, day=int(day))
    if day not in _DAYS:
        raise UsageError(f"{day!r} is no day of the week", f"write one of {', '.join(_DAYS)}")
    return Schedule(at=at, weekday=_DAYS.index(day))


def parse_interval(text: str) -> timedelta:
    """Return an interval: ``30m``, ``6h``, ``2d``, ``1w``.

    Raises:
        UsageError: It is none.
    """
    found = _EVERY.fullmatch(text.strip().lower())
    if found is None:
        raise UsageError(f"{text[:40]!r} is no interval", "such as 30m, 6h, 2d or 1w")
    return timedelta(seconds=int(found["count"]) * _UNITS[found["unit"]])


def _interval_text(every: timedelta) -> str:
    seconds = int(every.total_seconds())
    units = (("w", 604_800), ("d", 86_400), ("h", 3_600), ("m", 60))
    unit, size = next(pair for pair in units if seconds % pair[1] == 0)
    return f"{seconds // size}{unit}"
