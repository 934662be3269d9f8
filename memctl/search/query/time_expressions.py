"""Dates and calendar periods in a question, each of which becomes one slot.

"19 March", "March 19th", "19.3.2026" and "2026-03-19" share no term, and keyword search compares
terms.  So a date is a slot: as ISO 8601, which the dates of a hit are converted to as well, and in
each written form that is a single term.

A period ("last May", "two weeks ago", "since March") is searched for like a word: memories made in
it have it, and it weighs as much as a word that is as rare.  So it decides where the question says
little else, and is one word among several where it says much.  It filters nothing, because people
misremember when something was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memctl.language.date_mentions import DateSpan, date_spans
from memctl.language.term_analysis import terms
from memctl.language.time_periods import days_of_iso, is_time_name, lacks_year, periods
from memctl.language.word_lists import ENGLISH_MONTHS
from memctl.records import Hit
from memctl.search.query.question import Question, Slot, TimeExpression
from memctl.search.term_statistics import TermStatistics
from memctl.store.tables.filter_expressions import Expr, col

_YEARS = range(1500, 2100)
_IN_SOME_YEAR = datetime(2024, 7, 1, tzinfo=UTC)
"""From here every day of a year is less than half a year away, and it has a 29 February."""
_DAY_OR_MONTH = re.compile(r"\d{4}-\d\d(?:-\d\d)?")
_COUNTED = re.compile(r"\bdays?\b", re.IGNORECASE)

Count = Callable[[Expr], int]
"""Counts the memories for which a condition holds."""


# --- dates ---------------------------------------------------------------------------------------


class _QuestionDate(Struct, frozen=True):
    span: DateSpan
    has_year: bool


def recognize_dates(question: Question, statistics: TermStatistics, today: date) -> Question:
    """Return the question with each of its dates as one slot.

    Args:
        question: The analyzed question.
        statistics: Of the memories searched; they tell in which years a day without a year occurs.
        today: For a day without a year, this year and its neighbours are always searched.
    """
    found = _question_dates(question.text)
    if not found:
        return question
    slots, extra_terms = list(question.word_slots), [*question.extra_terms]
    dates: list[Slot] = []
    phrases: list[tuple[str, str]] = []
    for item in found:
        at = question.words_between(item.span.start, item.span.end)
        slot = tuple(dict.fromkeys(_date_forms(item, statistics, today)))
        written = [term for place in at for old in slots[place] for term in old]
        extra_terms += written
        phrases += _spoken_forms(item.span.iso, written)
        for place in at:
            slots[place] = ()
        slots[next((p for p in at if _has_digit(question.words[p])), at[0])] = (slot,)
        dates.append(slot)
    return replace(
        question,
        word_slots=tuple(slots),
        extra_terms=tuple(dict.fromkeys(extra_terms)),
        phrases=tuple(dict.fromkeys(phrases)),
        dates=tuple(dates),
    )


def date_terms(text: str, said: datetime) -> frozenset[str]:
    """Return the dates in a text, as the terms that a question's date slots have.

    Args:
        text: The text.
        said: When it was written, for dates such as "tomorrow".
    """
    return frozenset(
        term for span in date_spans(text, said) for term in _iso_terms(span.iso, has_year=True)
    )


def hit_dates(hit: Hit) -> frozenset[str]:
    """Return the dates of a hit as terms: those it mentions, and its own."""
    own = _iso_terms(hit.created_at.date().isoformat(), has_year=True)
    return date_terms(f"{hit.title}\n{hit.heading}\n{hit.text}", hit.created_at).union(own)


def _question_dates(text: str) -> list[_QuestionDate]:
    whole = [_QuestionDate(span, has_year=True) for span in date_spans(text)]
    ends = {item.span.end for item in whole}
    yearless = (
        _QuestionDate(span, has_year=False)
        for span in date_spans(text, _IN_SOME_YEAR)
        if span.end not in ends and _is_day_of_any_year(text[span.start : span.end])
    )
    return [item for item in [*whole, *yearless] if _DAY_OR_MONTH.fullmatch(item.span.iso)]


def _is_day_of_any_year(written: str) -> bool:
    """Return whether a day is named, such as "19 March", and not counted, such as "in 3 days"."""
    return _has_digit(written) and not _COUNTED.search(written)


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _date_forms(asked: _QuestionDate, statistics: TermStatistics, today: date) -> Iterator[str]:
    """Yield the ISO form of a date, and each single-term form that memories have."""
    yield from _iso_terms(asked.span.iso, asked.has_year)[:1]
    for iso in _candidate_dates(asked, statistics, today):
        yield iso
        yield from (form for form in _numeric_forms(iso) if form in statistics.frequencies)


def _candidate_dates(asked: _QuestionDate, statistics: TermStatistics, today: date) -> list[str]:
    iso = asked.span.iso
    if asked.has_year:
        return [iso]
    near = range(today.year - 1, today.year + 2)
    each = (f"{year}{iso[4:]}" for year in _YEARS)
    return [
        day
        for day in each
        if int(day[:4]) in near or any(map(statistics.frequencies.get, [day, *_numeric_forms(day)]))
    ]


def _iso_terms(iso: str, has_year: bool) -> list[str]:
    """Return the terms for a date: for a day also its month, and the day without its year."""
    if not _DAY_OR_MONTH.fullmatch(iso):
        return []
    if len(iso) == 7:
        return [iso]
    yearless = f"-{iso[4:]}"
    return [iso, iso[:7], yearless] if has_year else [yearless]


def _numeric_forms(iso: str) -> list[str]:
    """Return a day in figures, as people write it: 19.3.2026, 19/03/2026, 3/19/2026."""
    if len(iso) == 7:
        return []
    year, month, day = iso.split("-")
    short_month, short_day = month.lstrip("0"), day.lstrip("0")
    return [
        f"{first}{mark}{second}{mark}{year}"
        for first, second, marks in (
            (day, month, "./-"),
            (short_day, short_month, "./-"),
            (month, day, "/"),
            (short_month, short_day, "/"),
        )
        for mark in marks
    ]


def _spoken_forms(iso: str, written: Sequence[str]) -> list[tuple[str, str]]:
    """Return a day or month as it is spoken, unless the question already has it like that."""
    month = terms(ENGLISH_MONTHS[int(iso[5:7]) - 1])[0]
    beside = terms(iso[8:].lstrip("0") or iso[:4])[0]
    return [] if {month, beside} <= set(written) else [(beside, month), (month, beside)]


# --- what is to come, and what should have been ---------------------------------------------------

_ASKS_FOR_COMING = re.compile(
    r"\b(?:upcoming|forthcoming|coming up|(?:the|my|our|his|her|their|its)"
    r" next(?! (?:to|door|of|day|week|weekend|month|year|morning|night)\b)|(?:when|what|which|who)"
    r"(?:['’]s| is| are)? next|next(?=\W*$)|(?:nächste[rns]?|prochaine?s?|próxim[oa]s?"
    r"|prossim[oaie]|volgende) (?!woche|monat|jahr|semaine|mois|année|semana|mes|año))\b",
    re.IGNORECASE,
)
_ASKS_FOR_OVERDUE = re.compile(
    r"\b(?:over ?due|past due|überfällig\w*|en retard|scadut[oaie]|vencid[oa]s?)\b", re.IGNORECASE
)


def asks_for_coming(question: str) -> bool:
    """Return whether a question asks for what is to come from the day of asking on."""
    return _ASKS_FOR_COMING.search(question) is not None


def asks_for_overdue(question: str) -> bool:
    """Return whether a question asks for what should have been done before the day of asking."""
    return _ASKS_FOR_OVERDUE.search(question) is not None


# --- periods -------------------------------------------------------------------------------------


def recognize_times(
    question: Question, statistics: TermStatistics, today: date, count: Count
) -> tuple[Question, TermStatistics]:
    """Return the question with each calendar period as one slot, and how common these are.

    A period in which every memory was made stays as it is written.

    Args:
        question: The analyzed question; its dates may be slots already.
        statistics: Of the memories searched.
        today: The day of asking.
        count: Counts among these memories.
    """
    named = tuple(
        TimeExpression(
            question.text[period.start : period.end],
            period.first,
            period.last,
            is_limit=period.is_limit or period.is_open,
        )
        for period in periods(question.text, today)
    )
    question = replace(question, periods=named)
    found = [
        (each, made)
        for each in named
        if (made := count(created_within(each))) < statistics.memories
    ]
    if not found:
        return question, statistics
    timed = question
    for each, _ in found:
        timed = _with_slot(timed, each)
    share = statistics.sampled / statistics.memories
    sampled = {each.term: max(1, round(share * made)) for each, made in found if made}
    known = replace(statistics, frequencies={**statistics.frequencies, **sampled})
    return replace(timed, times=tuple(each for each, _ in found)), known


def years_meant(
    question: str, period: TimeExpression, times: Sequence[str]
) -> list[TimeExpression]:
    """Return a period that lacks its year in each of the years that have such times, in order.

    It is returned as it is if it has a year, or no time lies in it.

    Args:
        question: Its text, with the period.
        period: The one that it names.
        times: In ISO 8601, "" for none.
    """
    if period.is_open or not lacks_year(period.text):
        return [period]
    years = sorted({days_of_iso(iso)[0].year for iso in times if iso})
    found = [
        TimeExpression(period.text, each.first, each.last)
        for year in years
        for each in periods(question, date(year, 12, 31))
        if question[each.start : each.end] == period.text and each.first <= period.first
    ]
    with_times = [each for each in found if any(each.covers(iso) for iso in times)]
    return with_times or [period]


def created_within(period: TimeExpression) -> Expr:
    """Return the condition that holds for the memories made in a period."""
    ends = []
    if period.first != date.min:
        ends.append(col("created_at") >= _midnight(period.first))
    if period.last != date.max:
        ends.append(col("created_at") < _midnight(period.last + timedelta(days=1)))
    return ends[0] if len(ends) == 1 else ends[0] & ends[1]


def matching_times(question: Question, hit: Hit) -> frozenset[str]:
    """Return the periods of the question, as terms, in which a hit was made."""
    day = hit.created_at.date()
    return frozenset(each.term for each in question.times if each.contains(day))


def explain_times(question: Question) -> dict[str, Any]:
    """Return the periods for ``--explain``; nothing where there are none."""
    times = [
        {
            "text": each.text,
            "from": None if each.first == date.min else each.first.isoformat(),
            "to": None if each.last == date.max else each.last.isoformat(),
        }
        for each in question.times
    ]
    return {"times": times} if times else {}


def _with_slot(question: Question, period: TimeExpression) -> Question:
    """Return the question with one slot in place of the words that name a period."""
    start = question.text.index(period.text)
    at = question.words_between(start, start + len(period.text))
    slots = list(question.word_slots)
    dates = [slot for place in at for slot in slots[place] if slot in question.dates]
    slot: Slot = tuple(dict.fromkeys([period.term, *_naming_terms(question, at, dates)]))
    written = [term for place in at for old in slots[place] for term in old]
    for place in at:
        slots[place] = ()
    slots[at[-1]] = (slot,)
    return replace(
        question,
        word_slots=tuple(slots),
        extra_terms=tuple(dict.fromkeys([*question.extra_terms, *written])),
        dates=tuple(slot if old in dates else old for old in question.dates),
    )


def _naming_terms(question: Question, at: Sequence[int], dates: Sequence[Slot]) -> Iterator[str]:
    """Yield the terms by which a memory itself may name that period: its date, or its name."""
    for slot in dates:
        yield from slot
    for place in at:
        if is_time_name(question.words[place]):
            for slot in question.word_slots[place]:
                yield from slot


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time.min, UTC)
