"""Memories of the time that a question tells are preferred: "last May", "before the move".

The calendar's times are counted from the time of asking.  That of an event is the time of what was
found that speaks of it.  It is a preference and filters nothing, for people err about when
something was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any

from memctl.retrieve.collapse import Collapsed, ordered, raised
from memctl.retrieve.question import Question
from memctl.retrieve.surroundings import Surroundings
from memctl.understand.periods import periods

CLUE = "time"
WEIGHT = 0.5
"""In standard deviations of the candidates' scores: half of what it is worth who speaks."""
_HALVED_AFTER = 7
"""So many days outside of a time a memory is given half of that; its length, if it is longer."""
_EVENT = re.compile(
    r"(?<!\w)(?P<side>(?i:before|after|since|bevor|nachdem|vor|nach|avant|après|antes de"
    r"|después de))\s(?P<what>(?:(?:the|our|my|your|his|her|their|we|I|you|he|she|they|der|dem|die"
    r"|das|wir|ich|er|sie|le|la|les|notre|mon|ma|el|los|las|nuestr[oa]|mi)\s|l['’]|[A-Z])"
    r"[^?,;.!]+)"
)
"""An event that was once; what is done "before work" or "after a run" is done again and again."""
_BEFORE = frozenset(("before", "bevor", "vor", "avant", "antes de"))
_WHETHER = re.compile(
    r"(?:\w+:)?\W*(?:did|do|does|was|were|is|are|has|have|had|can|could|will|would)\b",
    re.IGNORECASE,
)
"""Begins a question on which of two things was first."""


@dataclass(frozen=True, slots=True)
class Told:
    """A time that a question tells."""

    text: str
    first: date
    last: date

    @property
    def is_open(self) -> bool:
        """Whether it has but one end."""
        return self.first == date.min or self.last == date.max

    def fit(self, day: date) -> float:
        """Return 1 for a day of that time, less and less for a day further from it."""
        apart = max((self.first - day).days, (day - self.last).days, 0)
        length = 0 if self.is_open else (self.last - self.first).days + 1
        return float(0.5 ** (apart / max(_HALVED_AFTER, length)))


def with_times(
    items: Sequence[Collapsed], question: Question, around: Surroundings
) -> list[Collapsed]:
    """Return the items, those of the time that the question tells raised, best first."""
    times = calendar_times(question.text, around.now.date())
    told = [*times, *_events(question, items, times)]
    if not told:
        return list(items)
    weight = WEIGHT * (around.spread or 1.0)
    return ordered(raised(item, CLUE, weight * _fit(told, item)) for item in items)


@lru_cache(maxsize=16)  # asked for by the search and by its explanation
def calendar_times(text: str, today: date) -> tuple[Told, ...]:
    """Return the times that the calendar alone tells."""
    return tuple(
        Told(text[found.start : found.end], found.first, found.last)
        for found in periods(text, today)
    )


def explained_times(question: Question, today: date) -> dict[str, Any]:
    """Return what is told of them by ``--explain``; nothing where there are none."""
    times = [
        {
            "text": told.text,
            "from": None if told.first == date.min else told.first.isoformat(),
            "to": None if told.last == date.max else told.last.isoformat(),
        }
        for told in calendar_times(question.text, today)
    ]
    return {"times": times} if times else {}


def _fit(told: Sequence[Told], item: Collapsed) -> float:
    """How well a memory's own date fits: one of the spans, and all that has but one end."""
    created = item.candidate.row["created_at"]
    if created is None:
        return 0.0
    spans = [time.fit(created.date()) for time in told if not time.is_open]
    bounds = [time.fit(created.date()) for time in told if time.is_open]
    return max(spans, default=1.0) * min(bounds, default=1.0)


# --- events --------------------------------------------------------------------------------------


def _events(
    question: Question, items: Sequence[Collapsed], times: Sequence[Told]
) -> Iterator[Told]:
    """Yield the time before or after what the question names, where a memory speaks of that."""
    match = None if _WHETHER.match(question.text) else _EVENT.search(question.text)
    if match is None or any(time.text in match[0] for time in times):
        return
    places = question.words_between(*match.span("what"))
    slots = [slot for place in places for slot in question.word_slots[place]]
    days = [
        created.date()
        for item in ordered(items)
        if all(not item.candidate.terms.isdisjoint(slot) for slot in slots)
        and (created := item.candidate.row["created_at"]) is not None
    ]
    if not slots or not days:
        return
    is_before = match["side"].lower() in _BEFORE
    first, last = (date.min, days[0]) if is_before else (days[0], date.max)
    yield Told(match[0].rstrip(), first, last)
