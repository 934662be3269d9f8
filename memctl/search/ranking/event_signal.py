"""Memories from before or after an event that a question names are preferred: "since the move".

Its time is that of what was found that speaks of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta

from memctl.language.time_periods import periods
from memctl.search.query.question import Question
from memctl.search.query.time_expressions import TimeExpression
from memctl.search.ranking.scored_candidates import ScoredCandidate, boost_score, sort_by_score
from memctl.search.ranking.scoring_context import ScoringContext

EVENT_SIGNAL = "time"
EVENT_WEIGHT = 0.5
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


def boost_event_period(
    items: Sequence[ScoredCandidate], question: Question, around: ScoringContext
) -> list[ScoredCandidate]:
    """Return the items, those from before or after the question's event raised, best first."""
    told = _event_period(question, items, around.now.date())
    if told is None:
        return list(items)
    weight = EVENT_WEIGHT * (around.spread or 1.0)
    return sort_by_score(
        boost_score(item, EVENT_SIGNAL, weight * _fit(told, item)) for item in items
    )


def _fit(told: TimeExpression, item: ScoredCandidate) -> float:
    created = item.candidate.row["created_at"]
    return 0.0 if created is None else told.fit(created.date())


def _event_period(
    question: Question, items: Sequence[ScoredCandidate], today: date
) -> TimeExpression | None:
    """Return the time before or after what the question names, where a memory speaks of that."""
    match = None if _WHETHER.match(question.text) else _EVENT.search(question.text)
    if match is None or periods(match[0], today):
        return None
    places = question.words_between(*match.span("what"))
    slots = [slot for place in places for slot in question.word_slots[place]]
    days = [
        created.date()
        for item in sort_by_score(items)
        if all(not item.candidate.terms.isdisjoint(slot) for slot in slots)
        and (created := item.candidate.row["created_at"]) is not None
    ]
    if not slots or not days:
        return None
    is_before = match["side"].lower() in _BEFORE
    day = timedelta(days=1)
    first, last = (date.min, days[0] - day) if is_before else (days[0] + day, date.max)
    return TimeExpression(match[0].rstrip(), first, last)
