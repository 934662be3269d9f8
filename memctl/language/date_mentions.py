"""The dates that a text mentions, as ISO 8601, and their positions.

A day without a year is given one only when the date of the text is known; a relative day such as
"tomorrow" is resolved only then, and only where it can mean one day alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import cache, lru_cache

from msgspec import Struct

from memctl.language.word_lists import (
    all_languages,
    any_of,
    load_language,
    month_numbers,
    weekday_numbers,
    words_of_all,
)
from memctl.patterns import lazy_regex

MONTHS, WEEKDAYS = month_numbers(), weekday_numbers()
_LONGEST_DAY = 60
"""Characters within which a heading begins with a day."""
_ENTRY_START = lazy_regex(
    r"\W*(?:(?:last )?(?:written|edited|updated|changed|revised|looked at)(?: again)?(?: on)?\W+)?"
    r"(?:(?P<weekday>[^\W\d_]+)[.,]?\s+)?",
    re.IGNORECASE,
)
_VERSION = lazy_regex(r"\W*v?\d+(?:\.\d+)+\W+")
"""What a change log gives a day to."""
_RELATIVE = {
    "today": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1,
    "the day after tomorrow": 2, "the day before yesterday": -2,
}  # fmt: skip

_OTHER_LANGUAGES = tuple(each for each in all_languages() if each.code != "en")
_DAYS_BY_WORD = {
    word: int(distance)
    for language in _OTHER_LANGUAGES
    for days in (language.days, language.days_ahead)
    for distance, words in days.items()
    for word in words
    if word not in words_of_all("stop_words")  # such as the French "hier"
}
"""Days relative to today in other languages than English."""
_NEXT_BEFORE, _NEXT_AFTER = words_of_all("next_before"), words_of_all("next_after")
_LAST_BEFORE = {word for each in _OTHER_LANGUAGES for word in each.steps.get("-1", ())}
_LAST_AFTER = words_of_all("last_after")
_BY_WEEKDAY = rf"""
      (?P<before_weekday>{any_of(_NEXT_BEFORE | _LAST_BEFORE)})\s(?P<weekday>{any_of(WEEKDAYS)})\b
    | (?P<weekday_first>{any_of(WEEKDAYS)})\s
        (?P<after_weekday>{any_of(_NEXT_AFTER | _LAST_AFTER)})\b
    """

_MONTH = any_of(MONTHS)
ENTRY_DAY = rf"""(?:(?:{any_of(WEEKDAYS)})[.,]?[ ])?
    (?:(?P<day>[0-3]?\d)(?:st|nd|rd|th|\.)?[ ](?P<month>{_MONTH})
      |(?P<us_month>{_MONTH})[ ](?P<us_day>[0-3]?\d)(?:st|nd|rd|th)?)\b"""
"""The pattern, verbose, of the day that an entry of running notes begins with, but for its year."""
NUMERIC_ENTRY_DAY = r"""(?:
      (?P<iso_year>(?:19|20)\d\d)-(?P<iso_month>[01]\d)-(?P<iso_day>[0-3]\d)
    | (?P<dot_day>[0-3]?\d)\.(?P<dot_month>[01]?\d)\.(?P<dot_year>(?:20)?\d\d))(?![\w-]|\.\d)"""
"""The same of a day in numbers with its year: ``2026-06-11``, ``11.6.2026`` or ``11.6.26``."""
_SHORT_DATE = r"""
      (?P<short_day>[0-3]\d)\.(?P<short_month>[01]\d)\.(?P<short_year>[0-4]\d)(?![\w-]|[.,:]\d)
    | (?:(?<=\b[aA]m\s)|(?<=\bvom\s)|(?<=\bzum\s)|(?<=\bbis\s)|(?<=\bde[mn]\s)|(?<=\b[aA]b\s)
        |(?<=\bseit\s))
        (?P<near_day>[0-3]?\d)\.(?P<near_month>[01]?\d)\.(?P<near_year>[0-4]\d)(?![\w-]|[.,:]\d)
"""
"""A day whose year has two digits, unlike the version 3.11.25: ``03.03.25``, ``am 3.3.25``."""
_WEEKDAY = "|".join(name for names in load_language("en").weekdays for name in names)
_YEAR = r"(?:1[5-9]|20)\d\d"
_WEEK = r"(?:calendar\s)?(?:weeks?|KW|Kalenderwoche|semaine|semana|settimana)"
_DIGITS = lazy_regex(r"\d\d*")
"""Runs of digits; a pattern that begins with a repetition is looked for half as fast."""
_MAX_BEFORE_DIGITS_LENGTH = 24
"""No date has more before its first digit: "fourth quarter of ", "septiembre. de "."""
_MAX_AFTER_DIGITS_LENGTH = 48
"""No date has more after its first run of digits, nor looks further to see that it has ended."""
_YEAR_DIGITS = 4
_CENTURIES = ("15", "16", "17", "18", "19", "20")
_AFTER_DAY = lazy_regex(r"(?:st|nd|rd|th|er|[º°.])?\s(?:(?:of|de)\s)?([^\W\d_]++)\b", re.IGNORECASE)
_BEFORE_DAY = lazy_regex(r"\b([^\W\d_]++)\.?\s$")
_SHORT_YEAR = lazy_regex(r"\d\d?\.\d\d?\.\d\d(?!\d)")
_BESIDE_DAY = frozenset({*MONTHS, "days"})
_MAX_MONTH_LENGTH = max(map(len, MONTHS)) + 2
_RELATIVE_HINT = lazy_regex(
    r"\b(?:to(?:day|night|morrow)|yesterday|"
    r"(?:next|last|this) (?:[mtwfs][a-z]{2,5}day|mon|tue|wed|thu|fri|sat|sun|week|month|year))\b"
)
_RELATIVE_ELSEWHERE = lazy_regex(
    rf"(?<!\w)(?:{any_of(_DAYS_BY_WORD)}|{any_of(_NEXT_BEFORE | _NEXT_AFTER)}"
    rf"|{any_of(_LAST_BEFORE | _LAST_AFTER)})(?!\w)"
)
_RELATIVE_WORDS = ("today", "tonight", "tomorrow", "yesterday", "next ", "last ", "this ")

_SLASHED = lazy_regex(r"(?<![\w.,/-])(\d\d?)/(\d\d?)/(?:19|20)\d\d(?!\d)")
_MONTHS = 12
_DAY_WORDS = lazy_regex(r"\d+(?:st|nd|rd|th|er|[年月日])?|[^\W\d_]+")
_BETWEEN_DAYS = frozenset(("the", "of", "de", "den", "der", "le", "w"))
_NUMBERS_OF_A_DAY = 3
_QUARTERS = {"first": "1", "second": "2", "third": "3", "fourth": "4"}
_HALF_YEAR = 183


@cache
def _pattern() -> re.Pattern[str]:
    """Compiled when it is first needed: that takes longer than all else a question needs."""
    return re.compile(
        rf"""(?<![\w.,/-])(?:
      (?P<iso>{_YEAR}[-/](?:0[1-9]|1[0-2])[-/][0-3]\d)(?![\d-])
    | (?P<cjk_year>{_YEAR})年(?:(?P<cjk_month>\d\d?)月(?:(?P<cjk_day>\d\d?)日)?)?
    | (?P<dot_day>[0-3]?\d)\.\s?(?P<dot_month>[01]?\d)\.\s?(?P<dot_year>{_YEAR})
    | {_SHORT_DATE}
    | (?P<slash_a>\d\d?)/(?P<slash_b>\d\d?)/(?P<slash_year>{_YEAR})
    | (?P<day>[0-3]?\d)(?:st|nd|rd|th|er|[º°.])?\s(?:of\s|de\s)?(?P<month>{_MONTH})\b\.?
        (?:,?\s(?:de\s)?(?P<year>{_YEAR})\b)?
    | (?P<us_month>{_MONTH})\.?\s(?P<us_day>[0-3]?\d)(?:st|nd|rd|th)?\b(?![:.]\d)
        (?:,?\s(?P<us_year>{_YEAR})\b)?
    | (?P<only_month>{_MONTH})\.?,?\s(?:of\s|de\s)?(?P<only_year>{_YEAR})\b
    | (?:Q(?P<quarter>[1-4])[\s/-]?|(?P<quarter_name>first|second|third|fourth)\squarter\sof\s)
        (?P<quarter_year>{_YEAR})\b
    | (?P<year_quarter>{_YEAR}[\s-]?Q[1-4])\b
    | (?P<iso_week>{_YEAR}-?W(?:0[1-9]|[1-4]\d|5[0-3]))\b
    | {_WEEK}\s?(?P<week>[0-5]?\d)(?:\s?/\s?|,?\s(?:of\s|in\s)?)(?P<week_year>{_YEAR})\b
    | (?P<first_day>[0-3]?\d)\.\s?[-–]\s?(?P<last_day>[0-3]?\d)\.\s?(?P<span_month>[01]?\d)\.
        \s?(?P<span_year>{_YEAR})
    | (?P<iso_month>{_YEAR}-(?:0[1-9]|1[0-2]))(?![\d-])
    | (?:in|since|of|from|until|till|by|before|after|during|year|early|mid|late|seit|bis|en|depuis
        |im)
        [\s-](?P<bare_year>{_YEAR})\b(?![-–/.,]?\d|-?[WQ]\d)
    | (?P<relative>the\sday\safter\stomorrow|the\sday\sbefore\syesterday
        |today|tonight|tomorrow|yesterday)\b
    | (?<!la\s)(?<!esta\s)(?<!guten\s)(?<!heute\s)(?<!gestern\s)(?<!jeden\s)
        (?P<day_word>(?-i:morgen)|{any_of(_DAYS_BY_WORD.keys() - {"morgen"})})(?![\w-])
    | {_BY_WEEKDAY}
    | (?P<which>next|last|this)\s(?P<unit>{_WEEKDAY}|week|month|year)\b
    | (?:in\s(?P<in_days>\d{{1,3}})\sdays|(?P<days_ago>\d{{1,3}})\sdays\sago)\b
    )""",
        re.VERBOSE | re.IGNORECASE,
    )


class DateSpan(Struct, frozen=True):
    """``text[start:end]`` means ``iso``: a day, month, week, quarter (2026-Q3) or year."""

    start: int
    end: int
    iso: str

    @property
    def day(self) -> date | None:
        """The day that it means; None for anything longer."""
        return date.fromisoformat(self.iso) if len(self.iso) == len("2026-06-11") else None


def date_spans(
    text: str, written_on: datetime | None = None, *, is_day_first: bool | None = None
) -> list[DateSpan]:
    """Return the dates in a text.

    Args:
        text: May hold dates.
        written_on: When it was written or said, if that is known.
        is_day_first: Whether the day is before the month in days with slashes; by default the text
            tells, see ``is_day_before_month``.
    """
    if is_day_first is None and "/" in text:
        is_day_first = is_day_before_month(text)
    if written_on is not None and _may_be_relative(text.lower()):
        return list(_spans(_pattern().finditer(text), written_on.date(), is_day_first))
    return list(_spans(_near_digits(text), written_on.date() if written_on else None, is_day_first))


def has_passed(text: str, written_on: datetime, today: date) -> bool:
    """Return whether a text has dates, each of them a day before today."""
    days = [span.day for span in date_spans(text, written_on)]
    return bool(days) and all(day is not None and day < today for day in days)


def is_day_before_month(text: str) -> bool | None:
    """Return in which order days with slashes are written; None if none tells or they disagree.

    ``24/11/2026`` tells of the others of its text, too.
    """
    orders = {
        first > second
        for first, second in (map(int, groups) for groups in _SLASHED.findall(text))
        if first <= _MONTHS < second or second <= _MONTHS < first
    }
    return orders.pop() if len(orders) == 1 else None


@lru_cache(maxsize=256)
def leading_day(text: str) -> datetime | None:
    """The day that an entry of running notes begins with, a weekday before it or not.

    ``2026-06-11 Halle`` and ``Fri 19 December 2025: last day``, not ``Move on 4 July 2026``.
    """
    before, version = _ENTRY_START.match(text), _VERSION.match(text)
    begins = {groups.end() for groups in (before, version) if groups}
    if before and before["weekday"] and before["weekday"].lower() not in WEEKDAYS:
        begins = {before.start("weekday")}  # a word that may be the month
    for span in date_spans(text[:_LONGEST_DAY]):
        if span.start in begins and span.day:
            return datetime.combine(span.day, time(), UTC)
    return None


def month_and_day(entry: re.Match[str]) -> tuple[int, int]:
    """Return the numbers of the month and the day in a match of a pattern with ``ENTRY_DAY``."""
    return MONTHS[(entry["month"] or entry["us_month"]).lower()], int(
        entry["day"] or entry["us_day"]
    )


def numeric_day(entry: re.Match[str]) -> date | None:
    """Return the day in a match of a pattern with ``NUMERIC_ENTRY_DAY``; None if there is none."""
    year = int(entry["iso_year"] or entry["dot_year"])
    month, day = int(entry["iso_month"] or entry["dot_month"]), entry["iso_day"] or entry["dot_day"]
    try:
        return date(year if year >= 1000 else 2000 + year, month, int(day))
    except ValueError:
        return None


def lone_day(line: str) -> datetime | None:
    """Return the day of a line that says nothing else; None of any other line."""
    return leading_day(line) if is_mere_day(line) else None


def is_mere_day(heading: str) -> bool:
    """Return whether a heading says nothing but the day, as that of a daily note may."""
    words = _DAY_WORDS.findall(heading.casefold())
    weekdays = sum(word in WEEKDAYS for word in words)
    months = sum(word in MONTHS for word in words)
    numbers = sum(word[0].isdigit() for word in words)
    others = sum(word not in _BETWEEN_DAYS for word in words) - weekdays - months - numbers
    is_dated = numbers >= _NUMBERS_OF_A_DAY or (months and numbers)
    return bool(words) and not others and bool(weekdays or is_dated)


def _may_be_relative(text: str) -> bool:
    """Return whether a text, in lower case, may name a day relative to today."""
    if any(map(text.__contains__, _RELATIVE_WORDS)) and _RELATIVE_HINT.search(text) is not None:
        return True
    return _RELATIVE_ELSEWHERE.search(text) is not None


def _may_be_in_date(text: str, digits: re.Match[str]) -> bool:
    """Return whether a run of digits is a year, or stands beside a month or before "days".

    Every date that is not relative to today has such a run.
    """
    start, end = digits.span()
    if end - start == _YEAR_DIGITS and text.startswith(_CENTURIES, start):
        return True
    if _SHORT_YEAR.match(text, start):
        return True
    after = _AFTER_DAY.match(text, end)
    if after and after[1].lower() in _BESIDE_DAY:
        return True
    before = _BEFORE_DAY.search(text, max(0, start - _MAX_MONTH_LENGTH), start)
    return before is not None and before[1].lower() in MONTHS


def _near_digits(text: str) -> Iterator[re.Match[str]]:
    """Yield what the pattern finds, tried only where a date with digits may begin.

    Trying it at every character costs more than everything else done with a short text.
    """
    position = 0
    for digits in _DIGITS.finditer(text):
        start = max(position, digits.start() - _MAX_BEFORE_DIGITS_LENGTH)
        end = digits.end() + _MAX_AFTER_DIGITS_LENGTH
        if digits.start() < position or not _may_be_in_date(text, digits):
            continue
        while start <= digits.start():
            groups = _pattern().search(text, start, end)
            if groups is None or groups.start() > digits.start():
                break
            yield groups
            start = position = groups.end()


def _spans(
    matches: Iterable[re.Match[str]], written_on: date | None, is_day_first: bool | None
) -> Iterator[DateSpan]:
    for match in matches:
        if match["us_month"] == "may":
            continue
        if match["first_day"]:
            yield from _ends(match)
            continue
        iso = _resolve(match, written_on, is_day_first)
        if iso:
            start = match.start("bare_year") if match["bare_year"] else match.start()
            yield DateSpan(start, match.end(), iso)


def _ends(match: re.Match[str]) -> Iterator[DateSpan]:
    """Yield the first and the last day of a span such as ``3.-5.7.2026``; none of 5.-3.7.2026."""
    if int(match["first_day"]) > int(match["last_day"]):
        return
    year, month = match["span_year"], match["span_month"]
    places = (match.span("first_day"), (match.start("last_day"), match.end()))
    for day, place in zip((match["first_day"], match["last_day"]), places, strict=True):
        if iso := _day(year, month, day):
            yield DateSpan(*place, iso)


def _resolve(match: re.Match[str], written_on: date | None, is_day_first: bool | None) -> str:
    groups = {name: value for name, value in match.groupdict().items() if value}
    return _absolute(groups, written_on, is_day_first) or (
        _relative(groups, written_on) if written_on else ""
    )


def _absolute(groups: dict[str, str], written_on: date | None, is_day_first: bool | None) -> str:
    match groups:
        case {"iso": written}:
            return _day(written[:4], written[5:7], written[8:])
        case {"iso_month": written}:
            return written
        case {"bare_year": year}:
            return year
        case {"dot_day": day, "dot_month": month, "dot_year": year}:
            return _day(year, month, day)
        case {"short_day": day, "short_month": month, "short_year": year}:
            return _day(f"20{year}", month, day)
        case {"near_day": day, "near_month": month, "near_year": year}:
            return _day(f"20{year}", month, day)
        case {"slash_a": first, "slash_b": second, "slash_year": year}:
            return _format_slashed(int(first), int(second), year, is_day_first)
        case {"only_month": month, "only_year": year}:
            return f"{year}-{MONTHS[month.lower()]:02}"
        case {"quarter_year": year}:
            return f"{year}-Q{groups.get('quarter') or _QUARTERS[groups['quarter_name'].lower()]}"
        case {"year_quarter": written}:
            return f"{written[:4]}-Q{written[-1]}"
        case {"iso_week": written}:
            return _week(written[:4], written[-2:])
        case {"week": number, "week_year": year}:
            return _week(year, number)
        case {"cjk_year": year}:
            return _chinese(year, groups.get("cjk_month"), groups.get("cjk_day"))
    return _named_month(groups, written_on)


def _named_month(groups: dict[str, str], written_on: date | None) -> str:
    day = groups.get("day") or groups.get("us_day")
    if not day:
        return ""
    month = str(MONTHS[(groups.get("month") or groups["us_month"]).lower()])
    year = groups.get("year") or groups.get("us_year")
    return _day(year, month, day) if year else _nearest(int(month), int(day), written_on)


def _day(year: str, month: str, day: str) -> str:
    try:
        return date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return ""


def _week(year: str, number: str) -> str:
    try:
        date.fromisocalendar(int(year), int(number), 1)
    except ValueError:
        return ""
    return f"{year}-W{int(number):02}"


def _format_slashed(first: int, second: int, year: str, is_day_first: bool | None) -> str:
    """Return a day with slashes, unless it isn't known which of the two is the month."""
    if first > _MONTHS or first == second or (is_day_first and second <= _MONTHS):
        return _day(year, str(second), str(first))
    is_known = second > _MONTHS or is_day_first is False
    return _day(year, str(first), str(second)) if is_known else ""


def _chinese(year: str, month: str | None, day: str | None) -> str:
    if month is None:
        return year
    whole = _day(year, month, day or "1")
    return whole if day else whole[:7]


def _nearest(month: int, day: int, written_on: date | None) -> str:
    """The occurrence of a yearly day that is less than half a year from when it was said."""
    if written_on is None:
        return ""
    for year in (written_on.year - 1, written_on.year, written_on.year + 1):
        written = _day(str(year), str(month), str(day))
        if written and abs((date.fromisoformat(written) - written_on).days) < _HALF_YEAR:
            return written
    return ""


def _relative(groups: dict[str, str], written_on: date) -> str:
    try:
        match groups:
            case {"relative": name}:
                return _shift(written_on, _RELATIVE[" ".join(name.lower().split())])
            case {"day_word": name}:
                return _shift(written_on, _DAYS_BY_WORD[" ".join(name.lower().split())])
            case {"before_weekday": which, "weekday": name}:
                return _weekday_by_words(which.lower() in _LAST_BEFORE, name, written_on)
            case {"after_weekday": which, "weekday_first": name}:
                return _weekday_by_words(which.lower() in _LAST_AFTER, name, written_on)
            case {"in_days": days}:
                return _shift(written_on, int(days))
            case {"days_ago": days}:
                return _shift(written_on, -int(days))
            case {"which": which, "unit": unit}:
                return _unit(which.lower(), unit.lower(), written_on)
    except OverflowError:
        pass
    return ""


def _shift(written_on: date, days: int) -> str:
    return (written_on + timedelta(days)).isoformat()


def _unit(which: str, unit: str, written_on: date) -> str:
    step = {"last": -1, "this": 0, "next": 1}[which]
    if unit == "year":
        return str(written_on.year + step)
    if unit == "month":
        month = written_on.year * 12 + written_on.month - 1 + step
        return f"{month // 12}-{month % 12 + 1:02}"
    if unit == "week":
        year, week, _ = (written_on + timedelta(7 * step)).isocalendar()
        return f"{year}-W{week:02}"
    return _weekday(which, WEEKDAYS[unit], written_on)


def _weekday_by_words(is_last: bool, name: str, written_on: date) -> str:
    return _weekday("last" if is_last else "next", WEEKDAYS[name.lower()], written_on)


def _weekday(which: str, weekday: int, written_on: date) -> str:
    """A weekday; "next Friday" said on a Tuesday may mean either of two days and is left out."""
    ahead = weekday - written_on.weekday()
    if which == "this":
        return _shift(written_on, ahead) if ahead >= 0 else ""
    if which == "last":
        return _shift(written_on, ahead - 7) if ahead >= 0 else ""
    return _shift(written_on, ahead + 7) if ahead <= 0 else ""
