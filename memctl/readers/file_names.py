"""What a file's name says: something to show, a title, a date; whatever bytes it is made of."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time
from pathlib import PurePath

from memctl.language.date_mentions import date_spans
from memctl.paths import MAX_SHOWN_NAME, shorten_middle

TITLE_LENGTH = 200

_UNSHOWABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffd]+")
_MONTH_AND_DAY = (
    r"([-_.]?)(\d{2})\2(\d{2})(?!\d)"
    r"(?:[T _-]+(\d{2})[-:.h]?(\d{2})(?:[-:.m]?(\d{2}))?(?![\d]))?"
)
_DATE = re.compile(rf"(\d{{4}}){_MONTH_AND_DAY}")
_DATE_WITHIN = re.compile(
    rf"(?<![\dA-Za-z])((?:19|20)\d\d){_MONTH_AND_DAY.replace('(?!', '(?![A-Za-z]|', 1)}"
)
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")


def shorten(text: str, limit: int) -> str:
    """``text`` in one line of at most ``limit`` characters, an ellipsis marking what was cut."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def display_name(name: str) -> str:
    """The file's name in one printable line, for messages and titles."""
    base = name.replace("\\", "/").rstrip("/").rpartition("/")[2] or name
    line = " ".join(_UNSHOWABLE.sub(" ", base).split())
    return shorten_middle(line, MAX_SHOWN_NAME) or "a file without a readable name"


def clean_title(text: str) -> str:
    """A title found in a file as one printable line; ``""`` when nothing is left of it."""
    return shorten(_UNSHOWABLE.sub(" ", text), TITLE_LENGTH)


def title_from_name(name: str) -> str:
    """A title made of the file's name: no extension, separators as spaces, dates kept."""
    base = _UNSHOWABLE.sub(" ", name).replace("\\", "/").rstrip("/").rpartition("/")[2]
    stem = PurePath(base).stem if base else ""
    if not re.search(r"\s", stem):
        stem = re.sub(r"(?<!\d)-|-(?!\d)|_", " ", stem)
    return clean_title(stem) or display_name(name)


def date_from_name(name: str, title: str = "") -> datetime | None:
    """The date, with the time if one follows, that the file's name has; read as UTC.

    A name usually begins with it, else it stands anywhere: ``Minutes 12 March 2025.docx``.  Of a
    title it is the only day with a year, unless that is to come, as that of a wedding may be.
    """
    return _date_in_name(name) or _past_day(title)


def _past_day(title: str) -> datetime | None:
    if _YEAR.search(title) is None:
        return None
    spans = date_spans(title)
    day = spans[0].day if len(spans) == 1 else None
    moment = datetime.combine(day, time(), UTC) if day else None
    return moment if moment and moment <= datetime.now(UTC) else None


def _date_in_name(name: str) -> datetime | None:
    base = PurePath(name.replace("\0", " ")).name
    match = _DATE.match(base) or _DATE_WITHIN.search(base)
    if match is None:
        return _worded_date(name)
    year, _, month, day, hour, minute, second = match.groups()
    try:
        day_start = datetime(int(year), int(month), int(day), tzinfo=UTC)
    except ValueError:
        return None
    try:
        return day_start.replace(
            hour=int(hour or 0), minute=int(minute or 0), second=int(second or 0)
        )
    except ValueError:
        return day_start


def _worded_date(name: str) -> datetime | None:
    """The first day that a name has in words or with dots, such as ``2 May 2025``."""
    if _YEAR.search(name) is None:
        return None
    days = (span.day for span in date_spans(title_from_name(name)))
    first = next(filter(None, days), None)
    return datetime.combine(first, time(), UTC) if first else None
