"""Dates as files write them become aware UTC datetimes; one without a zone is taken as UTC."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from email.utils import parsedate_to_datetime

_MONTHS = {
    month: number
    for number, month in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}
_LONGEST = 100
_EPOCH = re.compile(r"[1-9]\d{8,9}(?:\.\d+)?$|[1-9]\d{11,12}$")
_YEAR_FIRST = re.compile(r"(\d{4})[-/.](\d{1,2})(?:[-/.](\d{1,2}))?$")
_MONTH_FIRST = re.compile(r"([A-Za-z]{3,9})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})$")
_DAY_FIRST = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?\.?\s+([A-Za-z]{3,9})\.?,?\s+(\d{4})$")


def in_utc(moment: datetime) -> datetime | None:
    """The moment as an aware UTC datetime; None where that falls outside years 1 to 9999."""
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return None


def parse_date(value: object) -> datetime | None:
    """A date in ISO 8601, RFC 2822 or written out in English; None for anything else."""
    if isinstance(value, datetime):
        return in_utc(value)
    if isinstance(value, date):
        return datetime.combine(value, time(), UTC)
    text = str(value).strip() if isinstance(value, str) else ""
    if not 4 < len(text) <= _LONGEST:
        return None
    return _iso(text) or _written_out(text) or _header(text)


def parse_moment(value: object) -> datetime | None:
    """As :func:`parse_date`, and seconds or milliseconds since 1970 too, as programs write them."""
    text = str(value) if isinstance(value, int | float | str) else ""
    if not _EPOCH.match(text):
        return parse_date(value)
    seconds = float(text) if len(text.partition(".")[0]) <= 10 else float(text) / 1000
    return datetime.fromtimestamp(seconds, UTC)


def _iso(text: str) -> datetime | None:
    try:
        return in_utc(datetime.fromisoformat(text))
    except ValueError:
        pass
    match = _YEAR_FIRST.match(text)
    return _day(match[1], match[2], match[3] or "1") if match else None


def _written_out(text: str) -> datetime | None:
    if match := _MONTH_FIRST.match(text):
        return _day(match[3], match[1], match[2])
    if match := _DAY_FIRST.match(text):
        return _day(match[3], match[2], match[1])
    return None


def _day(year: str, month: str, day: str) -> datetime | None:
    number = int(month) if month.isdecimal() else _MONTHS.get(month[:3].lower(), 0)
    try:
        return datetime(int(year), number, int(day), tzinfo=UTC)
    except ValueError:
        return None


def _header(text: str) -> datetime | None:
    try:
        return in_utc(parsedate_to_datetime(text))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
