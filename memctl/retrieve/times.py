"""Times of the calendar that a question tells: "last May", "two weeks ago", "since March".

A time is looked for as a word is: memories made in it have it, and it counts for as much as a word
that is as rare.  So it decides where the question says little else, and is one word of several
where it says much.  It filters nothing, for people err about when something was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from memctl.records import Hit
from memctl.retrieve.question import Question, Slot
from memctl.retrieve.statistics import TermStatistics
from memctl.store.filters import Expr, col
from memctl.understand.periods import names_a_time, periods

LEG = "keyword_time"
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
class Told:
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


def timed(
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
        for each in [Told(question.text[period.start : period.end], period.first, period.last)]
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


def times_of(question: Question, hit: Hit) -> frozenset[str]:
    """Return the times of the question, as terms, in which a hit was made."""
    day = hit.created_at.date()
    return frozenset(each.term for each in question.times if each.holds(day))


def explained_times(question: Question) -> dict[str, Any]:
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


def _with_slot(question: Question, told: Told) -> Question:
    """Return the question with one slot in the place of those of the words that tell a time."""
    start = question.text.index(told.text)
    at = question.words_between(start, start + len(told.text))
    slots = list(question.word_slots)
    dates = [slot for place in at for slot in slots[place] if slot in question.dates]
    slot: Slot = tuple(dict.fromkeys([told.term, *_named(question, at, dates)]))
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


def _named(question: Question, at: Sequence[int], dates: Sequence[Slot]) -> Iterator[str]:
    """Yield the terms by which a memory itself may tell that time: its date, or its name."""
    for slot in dates:
        yield from slot
    for place in at:
        if names_a_time(question.words[place]):
            for slot in question.word_slots[place]:
                yield from slot


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time.min, UTC)
