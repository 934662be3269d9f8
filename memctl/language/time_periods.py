"""The times that a question names, from the day of asking: "last May", "two weeks ago".

What a text means by such words is up to ``date_mentions``.  A question looks back, so "in May" is
the last May, and it may leave one end open: "since March", "before Christmas".
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from functools import cache, partial
from itertools import chain

from msgspec import Struct

from memctl.language.date_mentions import MONTHS, WEEKDAYS, DateSpan, date_spans
from memctl.language.term_analysis import WORD_PUNCTUATION
from memctl.language.word_lists import all_languages, any_of, numbered_words, words_of_all
from memctl.patterns import lazy_regex


class Period(Struct, frozen=True):
    """``question[start:end]`` means the days from ``first`` to ``last``, both of them included."""

    start: int
    end: int
    first: date
    last: date
    is_limit: bool = False
    """Whether words say what it is a limit of: "since May", "between March and May"."""

    @property
    def is_open(self) -> bool:
        """Whether it has but one end."""
        return self.first == date.min or self.last == date.max


def _by_word(kind: str) -> dict[str, str]:
    """Words of all languages with what they mean, for a field that is a mapping."""
    return {
        word: meaning
        for language in all_languages()
        for meaning, words in getattr(language, kind).items()
        for word in words
    }


_UNITS, _DAYS, _HOLIDAYS = _by_word("units"), _by_word("days"), _by_word("holidays")
_BOUNDS, _STEPS = _by_word("bounds"), _by_word("steps")
_PARTS = _by_word("parts")
_NUMBERS = numbered_words("numbers", 1)
_SEASONS = {word: 3 * number for word, number in numbered_words("seasons", 1).items()}
"""The first month of each season by its names."""
_NAMES = {*MONTHS, *WEEKDAYS, *_SEASONS, *(word for day in _HOLIDAYS for word in day.split())}
_YEAR = r"(?:1[5-9]|20)\d\d"


_SPANS = {
    kind: [word for language in all_languages() for word in language.spans.get(kind, ())]
    for kind in ("from", "and", "to")
}
_UNIT, _NUMBER, _MONTH = any_of(_UNITS), rf"\d{{1,3}}|{any_of(_NUMBERS)}", any_of(MONTHS)
_SEASON, _WEEKDAY, _BOUND = any_of(_SEASONS), any_of(WEEKDAYS), any_of(_BOUNDS)
_PART = any_of(_PARTS)
_NUMBERED_WEEK = (
    rf"(?:calendar\s)?(?:{any_of(unit for unit, meaning in _UNITS.items() if meaning == 'week')})"
    r"|KW|Kalenderwoche"
)
_WEEKEND = any_of(unit for unit, meaning in _UNITS.items() if meaning == "weekend")
_DIGIT = lazy_regex(r"\d")
_PART_OF_YEAR = lazy_regex(r"[QH][1-4]", re.IGNORECASE)
_MONTHS_IN_A_YEAR = 12
_MAX_YEARS_BETWEEN = 9
"""From one 29 February to the next there may be eight years."""
_MIDWEEK = 2
"""Monday and Tuesday are nearer to the weekend before them."""
_MAX_WORDS_BEFORE_LENGTH = 60
_LONG_UNIT = any_of(unit for unit in _UNITS if not unit.isalpha())
_OPTIONAL_ARTICLE = rf"(?:(?:{any_of(words_of_all('articles'))})\s|l['’])?"
_IN_BEFORE = lazy_regex(
    rf"\b(?:in|of|for|during|by|im|au|en|{any_of(words_of_all('within'))})\s(?P<the>{_OPTIONAL_ARTICLE})$",
    re.IGNORECASE,
)
_BY_BEFORE = lazy_regex(rf"(?<![\w-])by\s{_OPTIONAL_ARTICLE}$", re.IGNORECASE)
_COUNTED_AFTER = lazy_regex(
    rf"\s(?:(?:of|after|into|de|du|del|der|van)\s(?!{_YEAR})|times\b|(?:{_MONTH})\b)",
    re.IGNORECASE,
)
"""What tells that a week is none of the calendar: "week 20 of pregnancy", "the week 12 March"."""
_BOUND_BEFORE = lazy_regex(rf"(?<![\w-])({_BOUND})\s{_OPTIONAL_ARTICLE}$", re.IGNORECASE)
_WEEK_BEFORE = lazy_regex(
    rf"\b(?:w/c|{any_of(words_of_all('week_of'))})\s(?:{_WEEKDAY})?,?\s?{_OPTIONAL_ARTICLE}$",
    re.IGNORECASE,
)
_PART_BEFORE = lazy_regex(rf"(?<![\w-])({_PART})[\s-]{_OPTIONAL_ARTICLE}$", re.IGNORECASE)
_MONTH_NAME = lazy_regex(rf"(?<![^\W\d])(?:{_MONTH})(?![^\W\d])", re.IGNORECASE)
_STEP_IN = lazy_regex(
    rf"(?<![\w-])(?:{any_of(_STEPS)}|{any_of(words_of_all('ago'))})(?![\w-])", re.IGNORECASE
)
_NUMBERED_PART = lazy_regex(r"(?<![^\W\d])[QH][1-4](?!\w)", re.IGNORECASE)
_YEAR_IN = lazy_regex(rf"(?<!\d){_YEAR}(?!\d)")
_HYPHEN_AFTER_PART = lazy_regex(rf"(?<![\w-])({_PART})-(?=\w)", re.IGNORECASE)
_PHRASE_END = lazy_regex(r"\s*(?:[?.!,;:)]|$)")
_DAY = timedelta(days=1)
_DAYS_IN = {"day": 1, "week": 7, "weekend": 7, "month": 30, "year": 365}
_MONTHS_IN_A_SEASON = 3
_ISO = lazy_regex(r"(?P<year>\d{4})(?:-W(?P<week>\d\d)|-Q(?P<quarter>\d)|-(?P<month>\d\d)"
                  r"(?:-(?P<day>\d\d))?)?")  # fmt: skip


_WORD = lazy_regex(r"[^\W\d_]+")


def _longest_words(*names: Iterable[str]) -> frozenset[str]:
    return frozenset(max(_WORD.findall(name), key=len) for name in chain(*names))


_TIME_WORDS = _longest_words(_UNITS, _DAYS, _SEASONS, _HOLIDAYS, MONTHS, WEEKDAYS)
_MONTH_WORDS = _longest_words(MONTHS)
"""The longest word of every name; a question without any of them names no time, or no month."""


@cache
def _pattern() -> re.Pattern[str]:
    """Compiled when it is first needed: that takes longer than all else a question needs."""
    return re.compile(
        rf"""(?<![\w-])(?:(?P<bound>{_BOUND})\s{_OPTIONAL_ARTICLE})?
        (?:(?P<part>(?!(?:{_LONG_UNIT})(?![\w-]))(?:{_PART}))[\s-]{_OPTIONAL_ARTICLE}
            |(?P<within>{any_of(words_of_all("within"))})\s{_OPTIONAL_ARTICLE})?(?:
      (?P<shift>{any_of(_DAYS)})
    | (?P<ago>{_NUMBER})\s(?P<ago_unit>{_UNIT})\s(?:{any_of(words_of_all("ago"))})
    | (?:{any_of(words_of_all("ago_before"))})\s(?P<since_n>{_NUMBER})\s(?P<since_unit>{_UNIT})
    | (?:{any_of(words_of_all("lately"))})\s
        (?P<lately>{_NUMBER})\s(?P<lately_unit>{_UNIT})
    | (?P<step>{any_of(_STEPS)})\s(?P<what>{_UNIT}|{_SEASON}|{_WEEKDAY}|{_MONTH})
    | (?P<what_was>{_UNIT}|{_SEASON}|{_MONTH})\s(?:{any_of(words_of_all("last_after"))})
    | (?:(?P<side_unit>day|week|month)\s(?P<side>before|after)\s)?
        (?P<feast>{any_of(_HOLIDAYS)})(?:\s(?P<feast_year>{_YEAR}))?
    | (?P<season>{_SEASON})\s(?:of\s|de\s|del\s)?(?P<season_year>{_YEAR})
    | (?P<alone>{_MONTH}|{_SEASON})(?!\s?\.?\s?(?:of\s|de\s)?\d)
    )(?![\w-])""",
        re.VERBOSE | re.IGNORECASE,
    )


@cache
def _span_pattern() -> re.Pattern[str]:
    day = r"\d{1,2}(?:st|nd|rd|th|\.)?(?!\d)"
    end = (
        rf"{_YEAR}(?:-\d\d){{0,2}}(?!\d)"
        rf"|(?:{day}(?:\s(?:of\s|de\s)?(?:{_MONTH}))?|(?:{_MONTH})\.?(?:\s{day})?)(?![^\W\d])"
        rf"(?:,?\s(?:de\s|del\s)?{_YEAR})?"
    )
    return re.compile(
        rf"""(?<![\w-])(?:(?P<from>{any_of(_SPANS["from"])})\s{_OPTIONAL_ARTICLE})?
        (?P<first>{end})(?:\s?[-–]\s?|\s(?:(?P<and>{any_of(_SPANS["and"])})|{any_of(_SPANS["to"])})\s{_OPTIONAL_ARTICLE})
        (?P<last>{end})(?![\w-])""",
        re.VERBOSE | re.IGNORECASE,
    )


def periods(question: str, today: date) -> list[Period]:
    """Return the times that a question names, as far as they are days of the calendar."""
    words, years = frozenset(_WORD.findall(question.lower())), len(_YEAR_IN.findall(question))
    has_name, has_month = not _TIME_WORDS.isdisjoint(words), not _MONTH_WORDS.isdisjoint(words)
    if has_name or years:
        question = _HYPHEN_AFTER_PART.sub(r"\1 ", question)  # no date stands behind a hyphen
    named = [
        *(_relative_periods(question, today) if has_name else ()),
        *_dated_periods(question),
        *(_bounded_days(question, today) if has_month else ()),
    ]
    if _DIGIT.search(question):
        named += _numbered_periods(question, today)
    named.sort(key=lambda each: each.start - each.end)
    found: list[Period] = []
    for period in (*(_spans(question, today) if has_month or years > 1 else ()), *named):
        place = bisect_left(found, period.start, key=lambda each: each.start)
        is_free = place == len(found) or period.end <= found[place].start
        if is_free and (not place or found[place - 1].end <= period.start):
            found.insert(place, period)
    return found


@cache
def _numbered_pattern() -> re.Pattern[str]:
    day, month, link = r"\d{1,2}", r"\d{1,2}", rf"\s?(?:[-–]|{any_of(_SPANS['to'])})\s?"
    unit, year = rf"(?:{_NUMBERED_WEEK})\s?|[QH]", r"(?:\s?[/-]\s?|,?\s(?:(?:of|de)\s)?)"
    return re.compile(
        rf"""(?<![\w./-])(?:
      (?P<dot>(?P<d1>{day})\.(?:\s?(?P<m1>{month})\.(?:\s?(?P<y1>{_YEAR}))?)?{link}
        (?P<d2>{day})\.\s?(?P<m2>{month})\.(?:\s?(?P<y2>{_YEAR}))?)(?![\d.]*\d)
    | (?P<slash>(?P<a1>{day})/(?P<b1>{month})(?:/(?P<s1>{_YEAR}))?{link}
        (?P<a2>{day})/(?P<b2>{month})(?:/(?P<s2>{_YEAR}))?)(?![\w/])
    | (?P<part>{_PART})[\s-]{_OPTIONAL_ARTICLE}(?P<part_year>{_YEAR})(?![\w-])
    | (?:(?P<from>{any_of(_SPANS["from"])})\s{_OPTIONAL_ARTICLE})?
        (?P<unit>{unit})(?P<number>[0-5]?\d)(?:{year}(?P<year>{_YEAR}))?
        (?P<until>(?:\s?[-–]\s?|\s(?:(?P<and>{any_of(_SPANS["and"])})|{any_of(_SPANS["to"])})\s{_OPTIONAL_ARTICLE})
          (?P<again>{unit})?(?P<last>[0-5]?\d)(?:{year}(?P<last_year>{_YEAR}))?(?![\w/-]|\.\d))?
        (?![\w/-]|\.\d)
    | (?:{_WEEKEND})\s(?:of|around|vom|um|am|du|autour|del|de|van|op)\s{_OPTIONAL_ARTICLE}
        (?=\S*\d|(?:{_MONTH})\b)(?P<weekend>)
    )""",
        re.VERBOSE | re.IGNORECASE,
    )


def _numbered_periods(question: str, today: date) -> Iterator[Period]:
    """Yield the times that are given in figures: "3.-5.7.", "KW 12", "Q3", "mid 2025"."""
    matches = list(_numbered_pattern().finditer(question))
    has_weekend = any(match["weekend"] is not None for match in matches)
    said = datetime.combine(today, time(), UTC)
    dates = {span.start: span for span in date_spans(question, said)} if has_weekend else {}
    for match in matches:
        try:
            if match["weekend"] is not None:
                yield from _weekend_of(match, dates.get(match.end()), today)
            elif match["unit"]:
                yield from _numbered_units(match, today)
            elif days := _numbered_days(match, today):
                yield Period(match.start(), match.end(), *days)
        except ValueError:  # a day or a week that no calendar has
            continue


def _numbered_days(match: re.Match[str], today: date) -> Days | None:
    if match["part"]:
        return _part(match["part"], days_of_iso(match["part_year"]))
    if match["dot"]:
        ends = ((match["d1"], match["m1"] or match["m2"]), (match["d2"], match["m2"]))
        years = match["y1"], match["y2"]
    else:
        ends = ((match["a1"], match["b1"]), (match["a2"], match["b2"]))
        years = match["s1"], match["s2"]
        firsts, seconds = (max(int(end[at]) for end in ends) for at in (0, 1))
        if (firsts > _MONTHS_IN_A_YEAR) == (seconds > _MONTHS_IN_A_YEAR):
            return None  # nothing tells which of the two is the month
        if seconds > _MONTHS_IN_A_YEAR:
            ends = ((ends[0][1], ends[0][0]), (ends[1][1], ends[1][0]))
    first, last = ((int(month), int(day)) for day, month in ends)
    if first > last and first[0] == last[0] and not all(years):
        return None  # "5.-3.7." may be anything

    def day_of(year: int, month_and_day: tuple[int, int]) -> Days:
        return (date(year, *month_and_day),) * 2

    return _yearly_span(
        partial(day_of, month_and_day=first),
        partial(day_of, month_and_day=last),
        years,
        today,
        ends_next_year=first > last,
    )


def _numbered_units(match: re.Match[str], today: date) -> Iterator[Period]:
    """Yield the weeks, quarters or halves of a year that are given by their numbers."""
    question, start, end = match.string, match.start("unit"), match.end()
    ends = [(match["unit"], match["number"], match["year"])]
    if match["until"]:
        if match["again"] or match["last_year"] or _PHRASE_END.match(question, end):
            last_unit = match["again"] or match["unit"]
            ends.append((last_unit, match["last"], match["last_year"]))
        else:
            end = match.start("until")  # "in week 10 to 12 people"
    if not _is_of_calendar(match, end):
        return
    days_in = [partial(_unit_of_year, unit, int(number)) for unit, number, _ in ends]
    years = ends[0][2], ends[-1][2]
    if len(ends) > 1 and match["and"] and not match["from"]:
        second = match.start("again" if match["again"] else "last")
        places = ((start, match.start("until")), (second, end))
        for (begin, stop), each, year in zip(places, days_in, years, strict=True):
            yield Period(begin, stop, *_latest_of(each, year or years[1], today))
        return
    is_turned = int(ends[0][1]) > int(ends[-1][1])
    days = _yearly_span(days_in[0], days_in[-1], years, today, ends_next_year=is_turned)
    if days is None:
        return
    if by := _before(question, start, _BY_BEFORE):
        yield Period(by.start(), end, date.min, days[1])
    else:
        first, days = _narrow(question, start, days)
        yield Period(min(first, match.start()), end, *days)


def _is_of_calendar(match: re.Match[str], end: int) -> bool:
    """Return whether a numbered week or quarter is one of the calendar, as words beside it tell.

    A product may be called Q3, too, and weeks be counted from anything.
    """
    question, start = match.string, match.start("unit")
    if _COUNTED_AFTER.match(question, end):
        return False
    if match["from"] or match["year"] or match["last_year"]:
        return True
    if within := _before(question, start, _IN_BEFORE):
        return not within["the"] or _is_week(match["unit"])
    return any(_before(question, start, each) for each in (_PART_BEFORE, _BOUND_BEFORE))


def _is_week(unit: str) -> bool:
    return unit.strip().upper() not in ("Q", "H")


def _unit_of_year(unit: str, number: int, year: int) -> Days:
    """Return the days of a week, quarter or half of a year.

    Raises:
        ValueError: The year has none of that number.
    """
    if _is_week(unit):
        return days_of_iso(f"{year}-W{number:02}")
    size = 3 if unit in "Qq" else 6
    if not 0 < number * size <= _MONTHS_IN_A_YEAR:
        raise ValueError(f"no year has {unit}{number}")
    return _months(year, number * size - size + 1, size)


def _yearly_span(
    first_in: Callable[[int], Days],
    last_in: Callable[[int], Days],
    years: tuple[str | None, str | None],
    today: date,
    *,
    ends_next_year: bool,
) -> Days | None:
    """Return the days from one time to another, of which either may lack its year.

    Args:
        first_in: The days of the first one in a year.
        last_in: Those of the last one.
        years: What the two state.
        today: The day of asking.
        ends_next_year: Whether the last one is in the year after the first, if one lacks its year.
    """
    first_year, last_year = years
    if first_year and not last_year:
        last_year = str(int(first_year) + ends_next_year)

    def between(year: int) -> Days:
        begin = int(first_year) if first_year else year - ends_next_year
        return first_in(begin)[0], last_in(year)[1]

    days = _latest_of(between, last_year, today)
    return days if days[0] <= days[1] else None


def _latest_of(days_in: Callable[[int], Days], year: str | None, today: date) -> Days:
    """Return days of a given year, or of the last year in which they exist and have begun.

    Raises:
        ValueError: No year of the calendar has them.
    """
    if year:
        return days_in(int(year))
    for number in range(today.year + 1, today.year - _MAX_YEARS_BETWEEN, -1):
        try:
            days = days_in(number)
        except ValueError:  # not every year has 29 February, or a week 53
            continue
        if days[0] <= today:
            return days
    raise ValueError("no year has these days")


def _weekend_of(match: re.Match[str], span: DateSpan | None, today: date) -> Iterator[Period]:
    """Yield the weekend that a day is of, or that is nearest to it."""
    day = span.day if span else None
    if span is None or day is None:
        return
    if day > today and not _YEAR_IN.search(match.string, span.start, span.end):
        day = day.replace(year=day.year - 1)
    monday = day - day.weekday() * _DAY
    saturday = monday + (-2 if day.weekday() < _MIDWEEK else 5) * _DAY
    yield Period(match.start(), span.end, saturday, saturday + _DAY)


def _dated_periods(question: str) -> Iterator[Period]:
    """Yield the dates in full, each with the words before it that bound or narrow it."""
    for span in date_spans(question):
        days = days_of_iso(span.iso)
        if days[0] == days[1] and (week := _before(question, span.start, _WEEK_BEFORE)):
            monday = days[0] - days[0].weekday() * _DAY
            yield Period(week.start(), span.end, monday, monday + 6 * _DAY)
        else:
            start, narrowed = _narrow(question, span.start, days)
            yield Period(start, span.end, *narrowed)


def _narrow(question: str, start: int, days: Days) -> tuple[int, Days]:
    """Return some days as the words before them narrow or bound them, and where these begin."""
    if part := _before(question, start, _PART_BEFORE):
        start, days = part.start(), _part(part[1], days)
    if bound := _before(question, start, _BOUND_BEFORE):
        start, days = bound.start(), _bound(bound[1], days, part[1] if part else None)
    return start, days


def _bounded_days(question: str, today: date) -> Iterator[Period]:
    """Yield the days without a year that have one end, each in the last year that has begun it."""
    whole = {span.end for span in date_spans(question)}
    for span in date_spans(question, datetime.combine(today, time.min, UTC)):
        bound = _before(question, span.start, _BOUND_BEFORE)
        if bound and span.day and span.end not in whole and _DIGIT.search(question, span.start):
            written = question[span.start : span.end]
            if _MONTH_NAME.search(written) and (days := _latest_in_year(written, today)):
                yield Period(bound.start(), span.end, *_bound(bound[1], days))


def _latest_in_year(written: str, today: date) -> Days | None:
    """Return a day of the last year in which it has begun."""
    found = (_in_year(written, today.year - back) for back in range(_MAX_YEARS_BETWEEN))
    return next((days for days in found if days and days[0] <= today), None)


def _before(question: str, end: int, pattern: re.Pattern[str]) -> re.Match[str] | None:
    """Return a match that ends at a place; no words before a time are further from it."""
    return pattern.search(question, max(0, end - _MAX_WORDS_BEFORE_LENGTH), end)


def _spans(question: str, today: date) -> Iterator[Period]:
    """Yield the times that are given by both ends: "between March and May", "3-10 May 2025"."""
    for match in _span_pattern().finditer(question):
        if match["and"] and not match["from"]:
            continue  # "in March and May" are two times
        may_count = _MONTH_NAME.search(match["last"]) is None and "-" not in match["last"]
        if may_count and not _PHRASE_END.match(question, match.end()):
            continue  # "in May to 3 charities"
        try:
            days = _between(match["first"], match["last"], today, is_said=bool(match["from"]))
        except ValueError:  # a day that no calendar has
            continue
        if days is not None:
            yield Period(match.start(), match.end(), *days, is_limit=bool(match["from"]))


def _between(first: str, last: str, today: date, *, is_said: bool) -> Days | None:
    """Return the days from one end to the other; the month or year that one lacks, both have.

    Args:
        first: The first day, month or year.
        last: The last one.
        today: The day of asking.
        is_said: Whether a word such as "between" says that it is a span.
    """
    months = [_MONTH_NAME.search(each) for each in (first, last)]
    years = [_YEAR_IN.search(each) for each in (first, last)]
    if months[1] and not months[0] and not years[0]:
        first = f"{first} {months[1][0]}"
    elif months[0] and not months[1] and not years[1]:
        last = f"{months[0][0]} {last}"
    elif not any(months) and None in years:
        return None
    if not (is_said or any(years)) and not all(_is_month(each[0]) for each in months if each):
        return None
    end_years = [int(years[1][0])] if years[1] else []
    if not end_years:
        end_years = (
            [int(years[0][0]) + n for n in (0, 1)] if years[0] else [today.year, today.year - 1]
        )
    for year in end_years:
        begin, end = _in_year(first, year), _in_year(last, year)
        if begin and end and begin > end and begin[0].month != end[1].month and not years[0]:
            begin = _in_year(first, year - 1)
        if begin and end and begin <= end and (any(years) or begin[0] <= today):
            return begin[0], end[1]
    return None


def _in_year(written: str, year: int) -> Days | None:
    """Return the days of a date, in a year if it states none; a year is all of its days."""
    if _YEAR_IN.fullmatch(written):
        return days_of_iso(written)
    spans = date_spans(written if _YEAR_IN.search(written) else f"{written} {year}")
    return days_of_iso(spans[0].iso) if len(spans) == 1 else None


def lacks_year(written: str) -> bool:
    """Return whether a time names a month, quarter or half of a year, but not which year it is.

    "Last March" counts from today instead.
    """
    if _YEAR_IN.search(written) or _STEP_IN.search(written):
        return False
    return any(each.search(written) for each in (_MONTH_NAME, _NUMBERED_PART))


def is_time_name(word: str) -> bool:
    """Return whether a word names a time, such as "May"; "yesterday" counts from today instead."""
    plain = word.strip(WORD_PUNCTUATION).lower()
    is_written = re.fullmatch(_YEAR, plain) or _PART_OF_YEAR.fullmatch(plain)
    return plain in _NAMES or is_written is not None


_AMBIGUOUS_DAYS = {word for word in _DAYS if word in words_of_all("stop_words")}
"""Words for days that are other words in another language: "hier" is here in German."""


def _names_a_day(word: str, question: str) -> bool:
    """Return whether the words around such a word are of a language in which it is a day."""
    around = set(_WORD.findall(question.lower())) - {word}
    counts = {each.code: len(around & each.stop_words) for each in all_languages()}
    own = [each.code for each in all_languages() if word in chain(*each.days.values())]
    other = [each.code for each in all_languages() if word in each.stop_words]
    return max(map(counts.__getitem__, own)) >= max(map(counts.__getitem__, other))


def _relative_periods(question: str, today: date) -> Iterator[Period]:
    for match in _pattern().finditer(question):
        day = (match["shift"] or "").lower()
        if day in _AMBIGUOUS_DAYS and not _names_a_day(day, question):
            continue
        try:
            days = _days(match, today)
        except (OverflowError, ValueError):  # a time that no calendar has
            continue
        if days is not None:
            yield Period(
                match.start(),
                match.end(),
                *_bound(match["bound"], _part(match["part"], days), match["part"]),
            )


Days = tuple[date, date]


def _part(part: str | None, days: Days) -> Days:
    """Return the part of some days that a word means; parts that are not exact overlap."""
    if part is None or date.min in days or date.max in days:
        return days
    first, last = days
    third, half = (last - first) / 3, (last - first) / 2
    match _PARTS[part.lower()]:
        case "around":
            return (first - 2 * _DAY, last + 2 * _DAY) if first == last else days
        case "early":
            return first, first + third
        case "mid":
            return first + third, last - third
        case "late":
            return last - third, last
        case "first half" | "second half" as half_year if days == days_of_iso(f"{first.year}"):
            return _months(first.year, 1 if half_year == "first half" else 7, 6)
        case "first half":
            return first, first + half
        case "second half":
            return last - half, last
        case "first week":
            return first, first + 6 * _DAY
        case "last week":
            return last - 6 * _DAY, last
    return days


def _bound(bound: str | None, days: Days, part: str | None = None) -> Days:
    """Return the days up to some days or from them on; before the end of May is in May, too."""
    match _BOUNDS.get(bound.lower()) if bound else None:
        case "since":
            return days[0], date.max
        case "before" if part and _PARTS[part.lower()] == "late":
            return date.min, days[1]
        case "before":
            return date.min, days[0] - _DAY
        case "by":
            return date.min, days[1]
        case "after":
            return days[1] + _DAY, date.max
    return days


def _days(match: re.Match[str], today: date) -> Days | None:
    found = {name: value.lower() for name, value in match.groupdict().items() if value}
    match found:
        case {"shift": word}:
            day = today + int(_DAYS[word]) * _DAY
            return day, day
        case {"ago": number, "ago_unit": unit} if _UNITS[unit] == "weekend":
            return _shifted_period(-_number(number), unit, today)
        case {"ago": number, "ago_unit": unit} | {"since_n": number, "since_unit": unit}:
            return _ago(_number(number), _UNITS[unit], today)
        case {"lately": number, "lately_unit": unit}:
            return today - _number(number) * _DAYS_IN[_UNITS[unit]] * _DAY, today
        case {"step": step, "what": what}:
            return _shifted_period(int(_STEPS[step]), what, today)
        case {"what_was": what}:
            return _shifted_period(-1, what, today)
        case {"feast": feast}:
            return _relative_to_feast(
                found, _feast(_HOLIDAYS[feast], found.get("feast_year"), today)
            )
        case {"season": season, "season_year": year}:
            return _months(int(year), _SEASONS[season], _MONTHS_IN_A_SEASON)
        case {"alone": name} if _is_date(match, name):
            return _latest(name, today)
    return None


def _is_date(match: re.Match[str], name: str) -> bool:
    """Return whether a name by itself is a time: "in May" is, the verb "may" is not."""
    stands_in_time = match["bound"] or match["within"] or match["part"]
    return bool(stands_in_time) and (name in _SEASONS or _is_month(match["alone"]))


def _is_month(name: str) -> bool:
    """Return whether a name of a month is written as one: the verb "may" is not."""
    return name[:1].isupper() or len(name) > len("sept")


def _number(written: str) -> int:
    return _NUMBERS[written] if written in _NUMBERS else int(written)


def _ago(number: int, unit: str, today: date) -> Days:
    day = today - number * _DAYS_IN[unit] * _DAY
    if unit == "year":
        return date(today.year - number, 1, 1), date(today.year - number, 12, 31)
    about = (_DAYS_IN[unit] // 2) * _DAY
    return day - about, day + about


def _shifted_period(step: int, what: str, today: date) -> Days:
    if what in WEEKDAYS:
        back = (today.weekday() - WEEKDAYS[what]) % 7
        day = today - (back or 7 * -step) * _DAY
        return day, day
    if what not in _UNITS:
        latest = _latest(what, today)
        return _latest(what, latest[0] - _DAY) if step and latest[1] >= today else latest
    match _UNITS[what]:
        case "day":
            return today + step * _DAY, today + step * _DAY
        case "week" | "weekend" as unit:
            monday = today + (7 * step - today.weekday()) * _DAY
            return monday + 5 * _DAY * (unit == "weekend"), monday + 6 * _DAY
        case "month":
            return _months(today.year, today.month + step, 1)
    return _months(today.year + step, 1, 12)


def _latest(name: str, today: date) -> Days:
    """The last month or season of that name that has begun."""
    first, count = (_SEASONS[name], _MONTHS_IN_A_SEASON) if name in _SEASONS else (MONTHS[name], 1)
    days = _months(today.year, first, count)
    return days if days[0] <= today else _months(today.year - 1, first, count)


def _feast(day: str, year: str | None, today: date) -> Days:
    if year:
        return _days_of_feast(day, int(year))
    days = _days_of_feast(day, today.year)
    return days if days[0] <= today else _days_of_feast(day, today.year - 1)


def _days_of_feast(day: str, year: int) -> Days:
    if day != "easter":
        return days_of_iso(f"{year}-{day}")
    sunday = _easter_sunday(year)
    return sunday - 2 * _DAY, sunday + _DAY


def _easter_sunday(year: int) -> date:
    """Return the day by the Gregorian calendar (Meeus, Astronomical Algorithms, chapter 8)."""
    century, in_century = divmod(year, 100)
    shift = century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15
    moon = (19 * (year % 19) + shift) % 30
    weekday = (32 + 2 * (century % 4) + 2 * (in_century // 4) - moon - in_century % 4) % 7
    late = (year % 19 + 11 * moon + 22 * weekday) // 451
    month, day = divmod(moon + weekday - 7 * late + 114, 31)
    return date(year, month, day + 1)


def _relative_to_feast(groups: Mapping[str, str], days: Days) -> Days:
    """The day, week or month before a day, or after it."""
    if "side" not in groups:
        return days
    length = _DAYS_IN[groups["side_unit"]] * _DAY
    if groups["side"] == "before":
        return days[0] - length, days[0] - _DAY
    return days[1] + _DAY, days[1] + length


def _months(year: int, first: int, count: int) -> Days:
    """Return a span of months of a year; months below 1 and above 12 are of the years beside it."""
    begin, end = year * 12 + first - 1, year * 12 + first - 1 + count
    return (
        date(begin // 12, begin % 12 + 1, 1),
        date(end // 12, end % 12 + 1, 1) - _DAY,
    )


def days_of_iso(iso: str) -> Days:
    """The days of a date as ``date_mentions`` writes them: a year, quarter, month, week or day."""
    found = _ISO.fullmatch(iso)
    if found is None:
        raise ValueError(f"{iso!r} is no date")
    year = int(found["year"])
    if found["week"]:
        monday = date.fromisocalendar(year, int(found["week"]), 1)
        return monday, monday + 6 * _DAY
    if found["quarter"]:
        return _months(year, 3 * int(found["quarter"]) - 2, 3)
    if found["day"]:
        day = date.fromisoformat(iso)
        return day, day
    return _months(year, int(found["month"]), 1) if found["month"] else _months(year, 1, 12)
