"""Entries of running notes: diaries and logs of which each line or paragraph is of its own day.

The day begins the entry, in full ("3 Feb - rang Ann", "3.2.26 rang Ann") or, below a month or in a
file named by one, as its number ("3 mon  rang Ann").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import chain, groupby, pairwise
from pathlib import PurePath

from msgspec import Struct
from msgspec.structs import replace

from memctl.language.date_mentions import (
    ENTRY_DAY,
    MONTHS,
    NUMERIC_ENTRY_DAY,
    WEEKDAYS,
    month_and_day,
    numeric_day,
)
from memctl.language.word_lists import any_of
from memctl.patterns import lazy_regex
from memctl.records import Segment, SourceText

_MONTH = any_of(MONTHS)
_ENTRY = lazy_regex(
    rf"""^[^\S\n]*(?P<item>[-*+>][^\S\n]+)?(?P<mark>\*\*|__)?
    {ENTRY_DAY}\.?
    (?:,?[ ](?P<year>(?:19|20)\d\d)\b)?
    (?(mark)[^\S\n]?[-–—:.,]?(?:\*\*|__)|(?:[^\S\n]?(?:[-–—:]|,(?=[ ]))|[^\S\n]{{2,}}|\t))
    (?![^\S\n]*[-–—]?[^\S\n]*[0-3]?\d(?:st|nd|rd|th|\.)?[ ](?:{_MONTH})\b)""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
"""A line of running notes that begins with a day, set off from what follows: ``3 Feb - rang Ann``.
What goes on with another day is a span of time."""
_NUMERIC_ENTRY = lazy_regex(
    rf"""[^\S\n]*(?P<item>[-*+>][^\S\n]+)?(?P<mark>\*\*|__)?{NUMERIC_ENTRY_DAY}
    (?(mark)[^\S\n]?[-–—:.,]?(?:\*\*|__))[.,:]?
    (?:(?P<alone>[^\S\n]*(?:\n|\Z))|[^\S\n]+(?=\S)
    (?!\d\d:\d\d:\d\d|[-–—][^\S\n]*[0-3]?\d(?:\d\d)?[-.][01]?\d[-.]))""",
    re.VERBOSE,
)
"""A line that begins with a day in numbers, and not with the second of a log or a span of time."""
_NUMBERS = lazy_regex(r"[^\S\n]*(?:[-*+>][^\S\n]+)?(?:\*\*|__)?(?P<numbers>\d+(?:\.\d+){2,})")
"""A line that begins as a day does or the number of a version or a section."""
_DAY = lazy_regex(NUMERIC_ENTRY_DAY, re.VERBOSE)
_WEEKDAY = any_of(name for name in WEEKDAYS if len(name) > 2)
_DAY_OF_MONTH = lazy_regex(
    rf"""(?P<indent>[^\S\n]*)(?:[-*+>][^\S\n]+)?
    (?:(?P<before>{_WEEKDAY})[.,]?[ ])?(?P<day>[0-3]?\d)(?:st|nd|rd|th|(?P<dot>[.)]))?
    (?:[^\S\n]+(?P<after>{_WEEKDAY})\b[.,]?)?
    (?:[^\S\n]?[-–—:]|[^\S\n])(?![^\S\n]*(?:{_MONTH})\b)[^\S\n]*(?=\S)""",
    re.IGNORECASE | re.VERBOSE,
)
"""A line that begins with the number of a day.  Those of a list have dots, but no weekdays."""
_LINE = re.compile(r"[^\n]+")
_WORD = re.compile(r"[^\W_]+")
_IS_YEAR, _TWO_DIGITS = re.compile(r"(?:19|20)\d\d"), re.compile(r"\d\d")
_LONGEST_ABOVE = len("### September 2025 ###")
_NAMES_OF_DIARIES = {
    "diary", "journal", "log", "notes", "tagebuch", "logbuch", "diario", "diário", "dagboek",
}  # fmt: skip
_YEAR = re.compile(r"(?<![\w.])(?<!\d-)(?:19|20)\d\d(?!\w|-\d|\.\d)")
_LONGEST_KEPT = timedelta(days=15 * 365)
"""Before a file was written, the earliest year in its title that may be that of its entries."""
_MIN_ENTRIES, _MIN_OF_MONTH = 2, 5
_MIN_IN_ORDER = 0.8
"""Of the lines below a month that begin with a number, if they are its days."""
_MAX_PAUSE_BEFORE_WRITING = timedelta(days=60)
"""A list of days is one of what happened, not of what is to come, if the newest is so recent."""
_NO_CALENDAR = 9000
"""A year from which on a stated day is none."""
_MAX_SECTIONS = 12
"""A larger number is seldom the first in that of a version or a section."""
_LONGEST_PAUSE, _AFTER_STATED = timedelta(days=270), timedelta(days=270)


class _MonthContext(Struct, frozen=True):
    """The month and year that the lines above, or the name of the file, say."""

    month: int | None = None
    year: int | None = None


class _Entry(Struct, frozen=True):
    """An entry by its day."""

    segment: int
    """The number of the segment in which it begins."""
    start: int
    month: int
    day: int
    year: int | None
    is_item: bool = False
    weekday: int | None = None
    indent: int = 0


def with_entry_days(
    text: SourceText, document_date: datetime | None, modified: datetime | None, name: str = ""
) -> SourceText:
    """Return a text of which each entry of running notes has the day that it begins with.

    A day without a year is the latest one by which the next entry, or the text, was written.

    Args:
        text: A source's, or a part of it.
        document_date: The day that it says it is of.
        modified: When its file was written last.
        name: Its file's.
    """
    by = [modified] if modified else []
    if document_date and document_date.year < _NO_CALENDAR:
        by.append(document_date + _AFTER_STATED)
    if not by:
        return text
    written_on = until = min(by)
    if modified and (named := _end_of_year(text, name)) and modified - named < _LONGEST_KEPT:
        until = min(until, named)
    found: Sequence[tuple[_Entry, date | None]] = (
        _entries_by_date(text, until.date())
        or _entries_by_numbers(text, written_on.date())
        or _entries_by_day(text, name, written_on.date())
    )
    starts: dict[int, list[tuple[int, datetime | None]]] = {}
    for entry, day in found:
        moment = datetime.combine(day, time(), UTC) if day else None
        starts.setdefault(entry.segment, []).append((entry.start, moment))
    segments = chain.from_iterable(
        _split(segment, starts[number], text.text) if number in starts else (segment,)
        for number, segment in enumerate(text.segments)
    )
    return replace(text, segments=tuple(segments)) if found else text


def _lines(text: SourceText, above: _MonthContext) -> Iterator[tuple[int, int, int, _MonthContext]]:
    """Yield the lines of prose, each with its segment's number, and what stands above it."""
    for number, segment in enumerate(text.segments):
        if segment.kind not in ("prose", "heading"):
            continue
        for line in _LINE.finditer(text.text, segment.start, segment.end):
            is_short = line.end() - line.start() <= _LONGEST_ABOVE
            if is_short and (said := _month_or_year(line.group())):
                above = _after(above, said)
            elif segment.kind == "prose":
                yield number, line.start(), segment.end, above


def _after(above: _MonthContext, said: _MonthContext) -> _MonthContext:
    """Return what stands above from a line on; a January without a year follows a December."""
    if said.month is None or said.year is not None or above.year is None:
        return said
    has_turned = above.month is not None and said.month < above.month
    return _MonthContext(said.month, above.year + has_turned)


def _month_or_year(line: str, *, is_name: bool = False) -> _MonthContext | None:
    """Return the month and year that a line says, if it says nothing else.

    In the name of a file, two digits after the month are a year.
    """
    words = _WORD.findall(line)
    month = next((MONTHS[word.lower()] for word in words if word.lower() in MONTHS), None)
    year = next((int(word) for word in words if _IS_YEAR.fullmatch(word)), None)
    if is_name and month and len(words) == 2 and _TWO_DIGITS.fullmatch(words[1]):
        year = 2000 + int(words[1])
    says_else = len(words) != (month is not None) + (year is not None)
    return None if says_else or not (month or year) else _MonthContext(month, year)


def _month_of_name(name: str) -> _MonthContext:
    """Return the month by which a file is named: ``2025-03.txt``, ``diary july 25.md``."""
    stem = PurePath(name).stem
    if found := re.fullmatch(r"((?:19|20)\d\d)[-_. ]?(0[1-9]|1[0-2])", stem):
        return _MonthContext(int(found[2]), int(found[1]))
    words = [word for word in _WORD.findall(stem) if word.lower() not in _NAMES_OF_DIARIES]
    return _month_or_year(" ".join(words), is_name=True) or _MonthContext()


# --- entries that begin with the day and the month -----------------------------------------------


def _entries_by_date(text: SourceText, written_on: date) -> list[tuple[_Entry, date]]:
    entries = [
        _Entry(
            number,
            start,
            *month_and_day(found),
            int(found["year"]) if found["year"] else above.year,
            is_item=bool(found["item"]),
        )
        for number, start, end, above in _lines(text, _MonthContext())
        if (found := _ENTRY.match(text.text, start, end))
        and (text.segments[number].said_at is None or found["year"])
    ]
    return list(zip(entries, days, strict=True)) if (days := _days_of(entries, written_on)) else []


def _entries_by_numbers(text: SourceText, written_on: date) -> list[tuple[_Entry, date | None]]:
    """Return the entries whose days are in numbers, if they go one way in time.

    A day that is still to come is not that of its entry.  A day alone on its line begins an entry
    among others, but may by itself be a value below its name.
    """
    found: list[tuple[_Entry, date]] = []
    has_short_years, has_other_numbers, with_text = False, False, 0
    for number, start, end, _ in _lines(text, _MonthContext()):
        line = _NUMERIC_ENTRY.match(text.text, start, end)
        if line is None:
            numbers = _NUMBERS.match(text.text, start, end)
            is_day = numbers is None or _is_day(numbers["numbers"])
            has_other_numbers = has_other_numbers or not is_day
            continue
        if (day := numeric_day(line)) is None:
            return []
        with_text += line["alone"] is None
        has_short_years = has_short_years or len(line["dot_year"] or "") == len("26")
        entry = _Entry(number, start, day.month, day.day, day.year, is_item=bool(line["item"]))
        found.append((entry, day))
    days = [day for _, day in found]
    past = [day for day in days if day <= written_on]
    if with_text < _MIN_ENTRIES:
        return []
    if len(past) < max(_MIN_ENTRIES, len(days) / 2) or sorted(days) not in (days, days[::-1]):
        return []
    if has_short_years and (has_other_numbers or not _are_no_versions(days, written_on)):
        return []
    may_be_plan = any(entry.is_item for entry, _ in found)
    if may_be_plan and written_on - max(past) > _MAX_PAUSE_BEFORE_WRITING:
        return []
    return [(entry, day if day <= written_on else None) for entry, day in found]


def _is_day(numbers: str) -> bool:
    """Return whether numbers with dots between them can be a day."""
    found = _DAY.fullmatch(numbers)
    return found is not None and numeric_day(found) is not None


def _are_no_versions(days: Sequence[date], written_on: date) -> bool:
    """Return whether days with short years are no numbers of versions or sections.

    Those are far apart as days, have small numbers first, and go one way; days that do are of the
    time in which the text was written.
    """
    if any(abs(b - a) > _LONGEST_PAUSE for a, b in pairwise(days)):
        return False
    numbers = [(day.day, day.month, day.year) for day in days]
    go_one_way = sorted(numbers) in (numbers, numbers[::-1])
    is_recent = max(days).year >= written_on.year - 1
    return any(day.day > _MAX_SECTIONS for day in days) and (is_recent or not go_one_way)


def _end_of_year(text: SourceText, name: str) -> datetime | None:
    """Return the last day of the only year in the title, the first line and the file's name."""
    first = text.text.lstrip()[:200].partition("\n")[0]
    years = set(_YEAR.findall(f"{text.title}\n{first}\n{name.replace('_', ' ')}"))
    return datetime(int(years.pop()), 12, 31, tzinfo=UTC) if len(years) == 1 else None


def _days_of(entries: Sequence[_Entry], written_on: date) -> list[date]:
    """Return the days of entries that go back in time from one end to the other; else none."""
    if len(entries) < _MIN_ENTRIES:
        return []
    newest_last = _in_order(entries, written_on)
    newest_first = _in_order(entries[::-1], written_on)[::-1]
    found = max(filter(None, (newest_last, newest_first)), key=min, default=[])
    may_be_plan = any(entry.is_item for entry in entries)
    return (
        []
        if may_be_plan and found and written_on - max(found) > _MAX_PAUSE_BEFORE_WRITING
        else found
    )


def _in_order(entries: Sequence[_Entry], written_on: date) -> list[date]:
    """Return the days of entries, the oldest first; none if they are far apart.

    What follows the last one of a stated year goes on from there; what stands before it, or all
    where none is, goes back from when the text was written.
    """
    with_year = [number for number, entry in enumerate(entries) if entry.year]
    last = with_year[-1] + 1 if with_year else len(entries)
    until = _following(entries[:last][::-1], written_on, is_later=False)[::-1]
    if not until:
        return []
    after = _following(entries[last:], until[-1], is_later=True)
    found = [*until, *after]
    return found if len(found) == len(entries) and found[-1] <= written_on else []


def _following(entries: Sequence[_Entry], near: date, *, is_later: bool) -> list[date]:
    """Return the days of entries, each the nearest to the one before; none if far apart."""
    found: list[date] = []
    for entry in entries:
        day = _day_near(entry, near, is_later=is_later)
        may_be_far = entry.year is not None or not (is_later or found)
        if day is None or (not may_be_far and abs(near - day) > _LONGEST_PAUSE):
            return []
        found.append(day)
        near = day
    return found


def _day_near(entry: _Entry, near: date, *, is_later: bool) -> date | None:
    """Return the day of an entry that is nearest to another day, on one side of it."""
    step = 1 if is_later else -1
    for year in (entry.year,) if entry.year else (near.year, near.year + step):
        found = _day_in(entry, year)
        if found and (found == near or (found > near) == is_later):
            return found
    return None


def _day_in(entry: _Entry, year: int) -> date | None:
    """Return the day of an entry in a year; None if the year has none, or another weekday."""
    try:
        found = date(year, entry.month, entry.day)
    except ValueError:
        return None
    return found if entry.weekday in (None, found.weekday()) else None


# --- entries that begin with the number of the day -----------------------------------------------


def _entries_by_day(text: SourceText, name: str, written_on: date) -> list[tuple[_Entry, date]]:
    """Return the entries below each month that are its days one after the other."""
    entries = [
        _Entry(
            number,
            start,
            above.month,
            int(found["day"]),
            above.year,
            weekday=WEEKDAYS[weekday.lower()] if weekday else None,
            indent=len(found["indent"]),
        )
        for number, start, end, above in _lines(text, _month_of_name(name))
        if above.month
        and text.segments[number].said_at is None
        and (found := _DAY_OF_MONTH.match(text.text, start, end))
        and ((weekday := found["before"] or found["after"]) or not found["dot"])
    ]
    months = groupby(entries, lambda entry: (entry.month, entry.year))
    return [pair for _, month in months for pair in _days_of_month(list(month), written_on)]


def _days_of_month(entries: Sequence[_Entry], written_on: date) -> list[tuple[_Entry, date]]:
    least = min(entry.indent for entry in entries)
    outer = [entry for entry in entries if entry.indent == least]
    kept: list[_Entry] = []
    for entry in outer:
        if not kept or entry.day > kept[-1].day:
            kept.append(entry)
    if len(kept) < max(_MIN_OF_MONTH, _MIN_IN_ORDER * len(outer)):
        return []
    year = kept[0].year
    has_weekdays = sum(entry.weekday is not None for entry in kept) >= _MIN_ENTRIES
    back = _LONGEST_KEPT.days // 365 if has_weekdays else 1
    for each in (year,) if year else range(written_on.year, written_on.year - back - 1, -1):
        days = [day for entry in kept if (day := _day_in(entry, each))]
        if len(days) == len(kept) and days[-1] <= written_on:
            return list(zip(kept, days, strict=True))
    return []


def _split(
    segment: Segment, starts: Sequence[tuple[int, datetime | None]], text: str
) -> Iterator[Segment]:
    """Yield what stands before the first entry of a segment, and each entry with its day."""
    first, whole = starts[0][0], text[segment.start : segment.end]
    if whole[: first - segment.start].strip():
        yield _trim(replace(segment, end=first), text)
    ends = [*(start for start, _ in starts[1:]), segment.end]
    for (start, moment), end in zip(starts, ends, strict=True):
        yield _trim(replace(segment, start=start, end=end, said_at=moment), text)


def _trim(segment: Segment, text: str) -> Segment:
    """Return a segment without the blanks at its ends."""
    inner = text[segment.start : segment.end]
    start = segment.start + len(inner) - len(inner.lstrip())
    return replace(segment, start=start, end=segment.start + len(inner.rstrip()))
