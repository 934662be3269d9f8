"""Times of the calendar that a question tells: "last May", "two weeks ago", "since March".

A time is looked for as a word is: memories made in it have it, and it counts for as much as a word
that is as rare.  So it decides where the question says little else, and is one word of several
where it says much.  It filters nothing, for people err about when something was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from memctl.language.date_mentions import DateSpan, date_spans
from memctl.language.term_analysis import terms
from memctl.language.time_periods import is_time_name, periods
from memctl.language.word_lists import ENGLISH_MONTHS
from memctl.records import Hit
from memctl.search.query.question import Question, Slot
from memctl.search.retrieval.candidates import Candidate
from memctl.search.retrieval.term_statistics import TermStatistics
from memctl.store.tables.filter_expressions import Expr, col

TIME_SCORE = "keyword_time"
"""How much of the score of a hit's words is for the times that it was made in."""
LEAST_SHOWN = 0.001
"""A smaller one, of a time years away, is not told."""
_HALVED_AFTER = 3
_HALVED_AFTER_SHARE = 0.25
"""So many days outside of a time a memory is given half of that, or such a share of the time's
length, if that is more: who tells a day seldom errs by a month."""

Count = Callable[[Expr], int]
"""Counts the memories for which something holds."""


@dataclass(frozen=True, slots=True)
class TimeExpression:
    """A time that a question tells."""

    text: str
    first: date
    last: date

    @property
    def term(self) -> str:
        """The term that memories of that time have: an interval as ISO 8601 writes it."""
        return f"{self.first.isoformat()}/{self.last.isoformat()}"

    @property
    def is_open(self) -> bool:
        """Whether it has but one end."""
        return self.first == date.min or self.last == date.max

    def holds(self, day: date) -> bool:
        """Tell whether a day is of that time."""
        return self.first <= day <= self.last

    def fit(self, day: date) -> float:
        """Return 1 for a day of that time, less and less for a day further from it."""
        apart = max((self.first - day).days, (day - self.last).days, 0)
        length = 0 if self.is_open else (self.last - self.first).days + 1
        return float(0.5 ** (apart / max(_HALVED_AFTER, _HALVED_AFTER_SHARE * length)))

    @property
    def created(self) -> Expr:
        """What holds of the memories made in that time."""
        ends = []
        if self.first != date.min:
            ends.append(col("created_at") >= _midnight(self.first))
        if self.last != date.max:
            ends.append(col("created_at") < _midnight(self.last + timedelta(days=1)))
        return ends[0] if len(ends) == 1 else ends[0] & ends[1]


def recognize_times(
    question: Question, statistics: TermStatistics, today: date, count: Count
) -> tuple[Question, TermStatistics]:
    """Return the question with each time of the calendar as one slot, and how common these are.

    A time in which every memory was made is left as it is written.

    Args:
        question: As it was understood; its dates may be slots already.
        statistics: Of the memories asked.
        today: The day of asking.
        count: Counts among these memories.
    """
    told = [
        (each, found)
        for period in periods(question.text, today)
        for each in [
            TimeExpression(question.text[period.start : period.end], period.first, period.last)
        ]
        if (found := count(each.created)) < statistics.memories
    ]
    if not told:
        return question, statistics
    asked = question
    for each, _ in told:
        asked = _with_slot(asked, each)
    share = statistics.sampled / statistics.memories
    made = {each.term: max(1, round(share * found)) for each, found in told if found}
    known = replace(statistics, frequencies={**statistics.frequencies, **made})
    return replace(asked, times=tuple(each for each, _ in told)), known


def matching_times(question: Question, hit: Hit) -> frozenset[str]:
    """Return the times of the question, as terms, in which a hit was made."""
    day = hit.created_at.date()
    return frozenset(each.term for each in question.times if each.holds(day))


def explain_times(question: Question) -> dict[str, Any]:
    """Return what is told of them by ``--explain``; nothing where there are none."""
    times = [
        {
            "text": told.text,
            "from": None if told.first == date.min else told.first.isoformat(),
            "to": None if told.last == date.max else told.last.isoformat(),
        }
        for told in question.times
    ]
    return {"times": times} if times else {}


def _with_slot(question: Question, told: TimeExpression) -> Question:
    """Return the question with one slot in the place of those of the words that tell a time."""
    start = question.text.index(told.text)
    at = question.words_between(start, start + len(told.text))
    slots = list(question.word_slots)
    dates = [slot for place in at for slot in slots[place] if slot in question.dates]
    slot: Slot = tuple(dict.fromkeys([told.term, *_time_terms(question, at, dates)]))
    written = [term for place in at for old in slots[place] for term in old]
    for place in at:
        slots[place] = ()
    slots[at[-1]] = (slot,)
    return replace(
        question,
        word_slots=tuple(slots),
        also=tuple(dict.fromkeys([*question.also, *written])),
        dates=tuple(slot if old in dates else old for old in question.dates),
    )


def _time_terms(question: Question, at: Sequence[int], dates: Sequence[Slot]) -> Iterator[str]:
    """Yield the terms by which a memory itself may tell that time: its date, or its name."""
    for slot in dates:
        yield from slot
    for place in at:
        if is_time_name(question.words[place]):
            for slot in question.word_slots[place]:
                yield from slot


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time.min, UTC)


_YEARS = range(1500, 2100)
_IN_SOME_YEAR = datetime(2024, 7, 1, tzinfo=UTC)
"""From here every day of a year is less than half a year away, and it has a 29 February."""
_DAY_OR_MONTH = re.compile(r"\d{4}-\d\d(?:-\d\d)?")
_COUNTED = re.compile(r"\bdays?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _QuestionDate:
    """A date in a question."""

    span: DateSpan
    has_year: bool


def recognize_dates(question: Question, statistics: TermStatistics, today: date) -> Question:
    """Return the question with each of its dates as one slot.

    Args:
        question: As it was understood.
        statistics: Of the memories asked; they tell the years in which a day without a year occurs.
        today: Its year and the years beside it are looked at as well.
    """
    found = _question_dates(question.text)
    if not found:
        return question
    slots, also = list(question.word_slots), [*question.also]
    dates: list[Slot] = []
    phrases: list[tuple[str, str]] = []
    for item in found:
        at = question.words_between(item.span.start, item.span.end)
        slot = tuple(dict.fromkeys(_single_terms(item, statistics, today)))
        written = [term for place in at for old in slots[place] for term in old]
        also += written
        phrases += _spoken_forms(item.span.iso, written)
        for place in at:
            slots[place] = ()
        slots[next((p for p in at if _has_digit(question.words[p])), at[0])] = (slot,)
        dates.append(slot)
    return replace(
        question,
        word_slots=tuple(slots),
        also=tuple(dict.fromkeys(also)),
        phrases=tuple(dict.fromkeys(phrases)),
        dates=tuple(dates),
    )


def date_terms(text: str, said: datetime) -> frozenset[str]:
    """Return the dates of a text as the slots of a question have them."""
    return frozenset(
        term for span in date_spans(text, said) for term in _iso_terms(span.iso, has_year=True)
    )


def hit_dates(hit: Hit) -> frozenset[str]:
    """Return the dates of a hit: those it mentions and its own."""
    own = _iso_terms(hit.created_at.date().isoformat(), has_year=True)
    return date_terms(f"{hit.title}\n{hit.heading}\n{hit.text}", hit.created_at).union(own)


def add_date_terms(
    question: Question, candidates: Sequence[Candidate], hits: Sequence[Hit]
) -> list[Candidate]:
    """Return the candidates, each of which became a hit, with the question's dates they tell."""
    wanted = frozenset(term for slot in question.dates for term in slot)
    if not wanted:
        return list(candidates)
    return [
        replace(candidate, terms=candidate.terms | (wanted & hit_dates(hit)))
        for candidate, hit in zip(candidates, hits, strict=True)
    ]


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
    """Tell it from "tomorrow" and "in 3 days", which a question does not ask for by the date."""
    return _has_digit(written) and not _COUNTED.search(written)


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _single_terms(asked: _QuestionDate, statistics: TermStatistics, today: date) -> Iterator[str]:
    """Yield each form of a date that is one term, as far as memories have it, and its ISO form."""
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
    """Return the terms for a date: of a day also its month, and itself without a year."""
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
    """Return a day or month as it is said, unless the question says it so anyway."""
    month = terms(ENGLISH_MONTHS[int(iso[5:7]) - 1])[0]
    beside = terms(iso[8:].lstrip("0") or iso[:4])[0]
    return [] if {month, beside} <= set(written) else [(beside, month), (month, beside)]
