"""Memories from before or after an event that a question names are preferred: "since the move".

Its time is that of what was found that speaks of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta

from memctl.retrieve.collapse import Collapsed, ordered, raised
from memctl.retrieve.question import Question
from memctl.retrieve.surroundings import Surroundings
from memctl.retrieve.times import Told
from memctl.understand.periods import periods

CLUE = "time"
WEIGHT = 0.5
"""In standard deviations of the candidates' scores: half of what it is worth who speaks."""
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


def with_events(
    items: Sequence[Collapsed], question: Question, around: Surroundings
) -> list[Collapsed]:
    """Return the items, those from before or after the question's event raised, best first."""
    told = _told(question, items, around.now.date())
    if told is None:
        return list(items)
    weight = WEIGHT * (around.spread or 1.0)
    return ordered(raised(item, CLUE, weight * _fit(told, item)) for item in items)


def _fit(told: Told, item: Collapsed) -> float:
    created = item.candidate.row["created_at"]
    return 0.0 if created is None else told.fit(created.date())


def _told(question: Question, items: Sequence[Collapsed], today: date) -> Told | None:
    """Return the time before or after what the question names, where a memory speaks of that."""
    match = None if _WHETHER.match(question.text) else _EVENT.search(question.text)
    if match is None or periods(match[0], today):
        return None
    places = question.words_between(*match.span("what"))
    slots = [slot for place in places for slot in question.word_slots[place]]
    days = [
        created.date()
        for item in ordered(items)
        if all(not item.candidate.terms.isdisjoint(slot) for slot in slots)
        and (created := item.candidate.row["created_at"]) is not None
    ]
    if not slots or not days:
        return None
    is_before = match["side"].lower() in _BEFORE
    day = timedelta(days=1)
    first, last = (date.min, days[0] - day) if is_before else (days[0] + day, date.max)
    return Told(match[0].rstrip(), first, last)
