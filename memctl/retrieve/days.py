"""Days and months of a question, found in whichever way a memory writes them.

"19 March", "March 19th", "19.3.2026" and "2026-03-19" share no term, and terms are what keyword
search compares.  So a date of the question is one slot: as ISO 8601, which the dates of a hit are
brought to as well, and in each form that is a single term.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

from memctl.records import Hit
from memctl.retrieve.candidates import Candidate
from memctl.retrieve.question import Question, Slot
from memctl.retrieve.statistics import TermStatistics
from memctl.understand.dates import DateSpan, date_spans
from memctl.understand.terms import terms

_YEARS = range(1500, 2100)
_IN_SOME_YEAR = datetime(2024, 7, 1, tzinfo=UTC)
"""From here every day of a year is less than half a year away, and it has a 29 February."""
_DAY_OR_MONTH = re.compile(r"\d{4}-\d\d(?:-\d\d)?")
_COUNTED = re.compile(r"\bdays?\b", re.IGNORECASE)
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Asked:
    """A date in a question."""

    span: DateSpan
    has_year: bool


def dated(question: Question, statistics: TermStatistics, today: date) -> Question:
    """Return the question with each of its dates as one slot.

    Args:
        question: As it was understood.
        statistics: Of the memories asked; they tell the years in which a day without a year occurs.
        today: Its year and the years beside it are looked at as well.
    """
    found = _asked(question.text)
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
        phrases += _spoken(item.span.iso, written)
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


def day_terms(text: str, said: datetime) -> frozenset[str]:
    """Return the dates of a text as the slots of a question have them."""
    return frozenset(
        term for span in date_spans(text, said) for term in _iso_terms(span.iso, has_year=True)
    )


def days_of(hit: Hit) -> frozenset[str]:
    """Return the dates of a hit: those it mentions and its own."""
    own = _iso_terms(hit.created_at.date().isoformat(), has_year=True)
    return day_terms(f"{hit.title}\n{hit.heading}\n{hit.text}", hit.created_at).union(own)


def with_days(
    question: Question, candidates: Sequence[Candidate], hits: Sequence[Hit]
) -> list[Candidate]:
    """Return the candidates, each of which became a hit, with the question's dates they tell."""
    wanted = frozenset(term for slot in question.dates for term in slot)
    if not wanted:
        return list(candidates)
    return [
        replace(candidate, terms=candidate.terms | (wanted & days_of(hit)))
        for candidate, hit in zip(candidates, hits, strict=True)
    ]


def _asked(text: str) -> list[_Asked]:
    whole = [_Asked(span, has_year=True) for span in date_spans(text)]
    ends = {item.span.end for item in whole}
    yearless = (
        _Asked(span, has_year=False)
        for span in date_spans(text, _IN_SOME_YEAR)
        if span.end not in ends and _is_day_of_any_year(text[span.start : span.end])
    )
    return [item for item in [*whole, *yearless] if _DAY_OR_MONTH.fullmatch(item.span.iso)]


def _is_day_of_any_year(written: str) -> bool:
    """Tell it from "tomorrow" and "in 3 days", which a question does not ask for by the date."""
    return _has_digit(written) and not _COUNTED.search(written)


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _single_terms(asked: _Asked, statistics: TermStatistics, today: date) -> Iterator[str]:
    """Yield each form of a date that is one term, as far as memories have it, and its ISO form."""
    yield from _iso_terms(asked.span.iso, asked.has_year)[:1]
    for iso in _possible(asked, statistics, today):
        yield iso
        yield from (form for form in _written(iso) if form in statistics.frequencies)


def _possible(asked: _Asked, statistics: TermStatistics, today: date) -> list[str]:
    iso = asked.span.iso
    if asked.has_year:
        return [iso]
    near = range(today.year - 1, today.year + 2)
    each = (f"{year}{iso[4:]}" for year in _YEARS)
    return [
        day
        for day in each
        if int(day[:4]) in near or any(map(statistics.frequencies.get, [day, *_written(day)]))
    ]


def _iso_terms(iso: str, has_year: bool) -> list[str]:
    """Return the terms for a date: of a day also its month, and itself without a year."""
    if not _DAY_OR_MONTH.fullmatch(iso):
        return []
    if len(iso) == 7:
        return [iso]
    yearless = f"-{iso[4:]}"
    return [iso, iso[:7], yearless] if has_year else [yearless]


def _written(iso: str) -> list[str]:
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


def _spoken(iso: str, written: Sequence[str]) -> list[tuple[str, str]]:
    """Return a day or month as it is said, unless the question says it so anyway."""
    month = terms(_MONTHS[int(iso[5:7]) - 1])[0]
    beside = terms(iso[8:].lstrip("0") or iso[:4])[0]
    return [] if {month, beside} <= set(written) else [(beside, month), (month, beside)]
