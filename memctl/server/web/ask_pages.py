"""Ask: a question, its answer with citations, and whether it was good."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, get_args

from msgspec import Struct

from memctl.errors import UsageError
from memctl.literals import Mode, Verdict
from memctl.operations.finding import FeedbackParameters, feedback, opened
from memctl.operations.operation_context import OperationContext
from memctl.plain_values import plain_rows
from memctl.queries import QueryOptions
from memctl.server.web.listing import bases_of, filter_fields, filters_of
from memctl.server.web.pages import ChangeResult, Page, PageRequest, address

if TYPE_CHECKING:
    from memctl.records import Answer, QueryResult

_RECENT = 6
_NEWEST_INSIGHTS = 3
_LONGEST_QUESTION = 20_000
_CITED = re.compile(r"\[(\d+(?:, ?\d+)*)\]")


def start(context: OperationContext, parameters: PageRequest) -> Page:
    """Show where to ask, what was asked lately, and what is newly known."""
    bases = bases_of(context)
    questions = [
        (entry.at, entry.question)
        for base in bases
        if not base.settings.has_private
        for entry in base.store.ledger.queries.recent(3 * _RECENT)
        if entry.question and entry.found and base.resources.query_log.is_open(entry)
    ]
    questions.sort(reverse=True)
    insights = [
        {"kb": base.name, **row}
        for base in bases
        for row in plain_rows(base.insights.list(context.filters(), limit=_NEWEST_INSIGHTS))
    ]
    insights.sort(key=lambda row: str(row["created_at"]), reverse=True)
    data = {
        "kbs": [base.name for base in bases],
        "recent_questions": list(dict.fromkeys(text for _, text in questions))[:_RECENT],
        "insights": insights[:_NEWEST_INSIGHTS],
        "is_empty": not any(base.store.snapshot().count("documents") for base in bases),
    }
    return _page("", None, parameters, data)


def ask(context: OperationContext, parameters: PageRequest) -> Page:
    """Answer a question as ``memctl query`` does.

    Raises:
        UsageError: There is no question.
    """
    question = parameters.text("question")
    if not any(map(str.isalnum, question)):
        raise UsageError("there is no question", "write one, in words")
    if len(question) > _LONGEST_QUESTION:
        raise UsageError(f"a question has at most {_LONGEST_QUESTION:,} characters")
    mode: Mode | None = parameters.choice("mode", Mode, None)
    options = QueryOptions(mode=mode, filters=filters_of(context, parameters))
    result = opened(context).queries.ask(question, options)
    return _page(question, result, parameters, result)


def _page(question: str, result: QueryResult | None, parameters: PageRequest, data: object) -> Page:
    shown = {
        "question": question,
        "result": result,
        "answer": None if result is None or result.answer is None else answer_view(result.answer),
        "fields": {**filter_fields(parameters), "mode": parameters.text("mode")},
        "modes": get_args(Mode),
    }
    return Page("ask.html", question or "Ask", data, shown)


class AnswerPiece(Struct, frozen=True):
    """A run of an answer's text, or the numbers of what it cites there."""

    text: str
    numbers: tuple[int, ...] = ()


class AnswerView(Struct, frozen=True):
    """An answer as it is shown."""

    pieces: tuple[AnswerPiece, ...]
    state: str
    """``sure``, ``unsure`` or ``missing``."""


def answer_view(answer: Answer) -> AnswerView:
    """Return an answer with its citations apart from its words."""
    known = {citation.number for citation in answer.citations}
    state = "sure" if answer.found else "unsure" if answer.unsure else "missing"
    return AnswerView(tuple(_pieces(answer.text, known)), state)


def _pieces(text: str, known: set[int]) -> Iterator[AnswerPiece]:
    end = 0
    for found in _CITED.finditer(text):
        numbers = tuple(int(each) for each in found[1].split(","))
        if known.issuperset(numbers):
            yield AnswerPiece(text[end : found.start()].rstrip(" "))
            yield AnswerPiece("", numbers)
            end = found.end()
    yield AnswerPiece(text[end:])


def judge(context: OperationContext, parameters: PageRequest) -> ChangeResult:
    """Record whether an answer was good, as ``memctl query --feedback`` does."""
    verdict: Verdict = parameters.choice("verdict", Verdict, "bad")
    judgement = FeedbackParameters(query_id=parameters.text("query_id"), verdict=verdict)
    return ChangeResult(address("/", kb=parameters.kbs), feedback(context, judgement), "judged")
