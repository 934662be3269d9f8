"""What happened at a time, for questions that name nothing but the time.

The statements made in the period are given in order: the weightiest of them, a few of each
document, each quoted from the passage it stands in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec import Struct

from memctl.language.date_mentions import leading_day
from memctl.language.term_analysis import query_terms
from memctl.records import Answer, Hit
from memctl.search.answering.evidence_parts import asks_what_happened, speech_start
from memctl.search.answering.excerpts import HitExcerpt, cite, plain_quote
from memctl.search.answering.search_outcome import SearchOutcome
from memctl.search.query.question import TimeExpression

METHOD = "period/1"
_MOST, _MOST_OF_A_DOCUMENT = 7, 2
_FEWEST = 2
_CONFIDENCE = 0.75
_GENERAL = frozenset(
    query_terms(
        "thing things happen happens happened happening event events do did doing done go going "
        "went on place take took taken up we i you they else anything everything important main "
        "passiert geschehen los gemacht passé pasó successo gebeurd"
    )
)
"""Terms that ask for whatever happened."""


class _Happening(Struct, frozen=True):
    """A statement, quoted from its passage."""

    made_at: datetime
    importance: float
    excerpt: HitExcerpt


def period_answer(outcome: SearchOutcome) -> Answer | None:
    """Return what is known of the time that a question asks about; None for other questions.

    None too where fewer than two statements were made then.
    """
    period = _asked_period(outcome)
    if period is None:
        return None
    shown = _weightiest(list(_happenings(outcome.load_statements_of(period))), period)
    if len(shown) < _FEWEST:
        return None
    is_day = period.first == period.last
    lines = [
        f"{_origin(item, with_day=not is_day)}{plain_quote(item.excerpt.text)} [{number}]"
        for number, item in enumerate(shown, start=1)
    ]
    return Answer(
        "\n".join(lines),
        found=True,
        method=METHOD,
        confidence=_CONFIDENCE,
        citations=tuple(cite(number, item.excerpt) for number, item in enumerate(shown, start=1)),
    )


def _origin(item: _Happening, *, with_day: bool) -> str:
    """Return what stands before a statement: its day, and what its document is called.

    The title often names what a statement is about; that of a diary's page only names the day.
    """
    title = item.excerpt.hit.title
    parts = [item.made_at.date().isoformat()] if with_day else []
    if title and leading_day(title) is None:
        parts.append(title)
    return f"{', '.join(parts)}: " if parts else ""


def _asked_period(outcome: SearchOutcome) -> TimeExpression | None:
    """Return the one period that a question for what happened names, if it names nothing else."""
    question = outcome.asked
    if not asks_what_happened(question.text) or len(question.times) != 1:
        return None
    period = question.times[0]
    others = [
        slot
        for slot in question.slots
        if period.term not in slot and slot not in question.dates and _GENERAL.isdisjoint(slot)
    ]
    return None if others or period.is_open else period


def _happenings(statements: Sequence[tuple[Hit, Hit]]) -> Iterator[_Happening]:
    for statement, passage in statements:
        if statement.start is None or statement.end is None or passage.start is None:
            continue
        start = max(statement.start - passage.start, 0)
        end = min(statement.end - passage.start, len(passage.text))
        if start < end:
            start += speech_start(passage.text[start:end])
            yield _Happening(
                statement.created_at, statement.importance, HitExcerpt(passage, start, end)
            )


def _weightiest(found: Sequence[_Happening], period: TimeExpression) -> list[_Happening]:
    """Return the weightiest in the order of time; many of a document only where there is no other.

    A single day is mostly described by one document: the page of a diary, or a conversation.
    """
    per_document = _MOST if period.first == period.last else _MOST_OF_A_DOCUMENT
    of_document: Counter[tuple[str, str]] = Counter()
    chosen: list[_Happening] = []
    for item in sorted(found, key=lambda item: -item.importance):
        document = item.excerpt.hit.document
        if of_document[document] < per_document and not _is_within(item, chosen):
            of_document[document] += 1
            chosen.append(item)
        if len(chosen) == _MOST:
            break
    return sorted(chosen, key=lambda item: (item.made_at, item.excerpt.group, item.excerpt.offset,
                                            item.excerpt.start))  # fmt: skip


def _is_within(item: _Happening, others: Sequence[_Happening]) -> bool:
    """Tell whether a statement repeats another one, as copies of a document do."""
    return any(item.excerpt.text in other.excerpt.text for other in others)
