"""The present instant, and dates as people write them: 2026-03-01, 2026-03, 7d, today."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from memctl.errors import UsageError
from memctl.patterns import lazy_regex

_AGO = lazy_regex(r"(\d{1,5})\s*(h|d|w|m|y)", re.ASCII)
_HOURS = {"h": 1, "d": 24, "w": 168, "m": 730, "y": 8766}
_PART = lazy_regex(r"(\d{4})(?:-(\d{2}))?", re.ASCII)
_DAY = lazy_regex(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_DAYS = {"today": 0, "yesterday": 1, "tomorrow": -1}
_DURATION = lazy_regex(r"(\d{1,11})\s*(s|min|h|d|w|m|y)?", re.ASCII)
_SECONDS = {"s": 1, "min": 60} | {unit: hours * 3600 for unit, hours in _HOURS.items()}
_CLOCKS_APART = timedelta(days=1)
_DATE_HINT = "write 2026-03-01, 2026-03-01T09:30, 2026-03, 7d, 24h, today or yesterday"


def utc_now() -> datetime:
    """Return the present instant."""
    return datetime.now(UTC)


def parse_instant(text: str, now: datetime) -> datetime:
    """Return the instant that a user means; a day or a month is its beginning, in UTC.

    Raises:
        UsageError: It is no date.
    """
    word = text.strip().lower()
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if word == "now":
        return now
    if word in _DAYS:
        return midnight - timedelta(days=_DAYS[word])
    try:
        if match := _AGO.fullmatch(word):
            return now - timedelta(hours=int(match[1]) * _HOURS[match[2]])
        if match := _PART.fullmatch(word):
            return datetime(int(match[1]), int(match[2] or 1), 1, tzinfo=UTC)
        found = datetime.fromisoformat(text.strip())
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(f"{text!r} is no date", _DATE_HINT) from None


def is_ahead(at: datetime, now: datetime) -> bool:
    """Return whether an instant is so far ahead of now that no two clocks are so far apart."""
    aware = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    return aware - now > _CLOCKS_APART


def require_said(at: datetime, now: datetime) -> None:
    """Refuse a time at which nothing can have been said: until then it would be the latest word.

    Raises:
        UsageError: It is more than a day ahead.
    """
    if is_ahead(at, now):
        what = f"{at:%Y-%m-%d} is yet to come, so nothing was said then"
        raise UsageError(what, "leave out the time of a message that is said now")


def parse_expiry(ttl: str | None, expires: str | None, now: datetime) -> datetime | None:
    """Return until when something holds; None where neither a time to live nor a date is given.

    Raises:
        UsageError: Both are given, or one cannot be read.
    """
    if ttl is None:
        return None if expires is None else parse_instant(expires, now)
    if expires is not None:
        raise UsageError("--ttl and --expires do not go together", "leave out one of them")
    match = _AGO.fullmatch(ttl.strip().lower())
    if match is None:
        raise UsageError(f"{ttl!r} is no time to live", "write 24h, 7d, 2w, 3m or 1y")
    try:
        return now + timedelta(hours=int(match[1]) * _HOURS[match[2]])
    except OverflowError:
        raise UsageError(f"{ttl!r} is too long", "leave --ttl out for ever") from None


def parse_seconds(text: str) -> int:
    """Return how many seconds a duration like ``7d`` has; a number alone is of seconds.

    Raises:
        UsageError: It is none.
    """
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise UsageError(f"{text!r} is no duration", "write 90s, 45min, 24h, 7d, 2w, 3m or 1y")
    return int(match[1]) * _SECONDS[match[2] or "s"]


def parse_end(text: str, now: datetime) -> datetime:
    """Return the instant when something ends: a date, or a duration from now on.

    Raises:
        UsageError: It is neither.
    """
    if not _DURATION.fullmatch(text.strip().lower()) or text.strip().isdigit():
        return parse_instant(text, now)
    try:
        return now + timedelta(seconds=parse_seconds(text))
    except OverflowError:
        raise UsageError(f"{text!r} is too long", "leave it out for no end") from None


def last_instant(text: str, now: datetime) -> datetime:
    """Return the end of the day, month or year that is named: until then a thing was known in it.

    Raises:
        UsageError: It is no date.
    """
    begin = parse_instant(text, now)
    word = text.strip().lower()
    part = _PART.fullmatch(word)
    if part is not None:
        days = 31 if part[2] else 366
    elif word in _DAYS or _DAY.fullmatch(word):
        days = 1
    else:
        return begin
    try:
        after = begin + timedelta(days=days)
    except OverflowError:  # there is no day after it
        return begin
    if part is not None:
        after = after.replace(day=1)
    return after - timedelta(microseconds=1)
