"""What a file's name says: something to show, a title, a date; whatever bytes it is made of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
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
_OLDEST_AGE = timedelta(days=15 * 365)


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


def date_from_name(name: str) -> datetime | None:
    """The date, with the time if one follows, that the file's name has; read as UTC.

    A name usually begins with it, else it stands anywhere: ``Minutes 12 March 2025.docx``.
    """
    base = PurePath(name.replace("\0", " ")).name
    match = _DATE.match(base) or _DATE_WITHIN.search(base)
    if match is None:
        return next(_worded_dates(title_from_name(name)), None)
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


def date_from_title(title: str) -> datetime | None:
    """The only day with a year in a title; read as UTC.

    Unless it is to come, as that of a wedding may be, or so long ago that it is what the text is
    about.
    """
    days = list(_worded_dates(title))
    now = datetime.now(UTC)
    return days[0] if len(days) == 1 and now - _OLDEST_AGE <= days[0] <= now else None


def _worded_dates(text: str) -> Iterator[datetime]:
    """The days that a text has in words or with dots, such as ``2 May 2025``."""
    for span in date_spans(text) if _YEAR.search(text) else ():
        if span.day:
            yield datetime.combine(span.day, time(), UTC)
