"""A date of a question is found in whichever way it is written, and no other date is."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memctl.records import Answer
from memctl.search.answering.extractive_answer import extract_answer

from .conftest import MemoryOf, Shelf

FORMS = ["19 March", "March 19th", "the 19th of March 2026", "19.3.2026", "19.03.2026",
         "2026-03-19", "19 March 2026", "March 19, 2026", "19. März 2026"]  # fmt: skip
WRITTEN = ["19 March 2026", "2026-03-19", "19.3.2026", "19/03/2026", "March 19th", "19. März 2026"]


def ask(shelf: Shelf, question: str) -> Answer:
    return extract_answer(shelf.searcher().search(question))


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("asked", FORMS)
def test_a_day_is_found_however_it_is_asked_for_and_written(
    shelf: Shelf, memory_of: MemoryOf, asked: str, written: str
) -> None:
    shelf.put([memory_of("x", f"The delivery of {written} was wet.")])
    shelf.put([memory_of(str(n), f"The delivery of {n} March 2026 was dry.") for n in (9, 18, 29)])
    given = ask(shelf, f"How was the delivery of {asked}?")
    assert given.text.startswith(f"The delivery of {written} was wet. [1]")


@pytest.mark.parametrize("asked", FORMS)
def test_a_row_of_a_table_is_found_by_its_day(
    shelf: Shelf, memory_of: MemoryOf, asked: str
) -> None:
    rows = [f"date: 2026-03-{day}; supplier: Santos; status: fine" for day in (12, 26)]
    rows.insert(1, "date: 2026-03-19; supplier: Santos; status: returned")
    shelf.put([memory_of("orders", "\n".join(rows), title="Orders")])
    given = ask(shelf, f"What happened with the order of {asked}?")
    assert given.text == f"{rows[1]} [1]"


def test_a_date_in_figures_is_not_found_by_its_parts(shelf: Shelf, memory_of: MemoryOf) -> None:
    shelf.put([memory_of("right", "The coffee of 10.01.2024 was good, and so was the walk.")])
    shelf.put([memory_of("wrong", "The coffee in January cost 10 euros, January 10 of them.")])
    shelf.put([memory_of("said", "The coffee of January 10th 2024 was good, and the walk too.")])
    hits = shelf.searcher().search("How was the coffee of 10.01.2024?", mode="keyword").hits
    assert [hit.memory_id for hit in hits][-1] == "m_wrong"


def test_a_month_is_found_in_the_days_of_it(shelf: Shelf, memory_of: MemoryOf) -> None:
    shelf.put([memory_of("a", "Fire drill: 2026-03-19 at ten; all met outside.")])
    shelf.put([memory_of("b", "Fire drill: 2025-10-02 at noon; all met outside.")])
    assert "2026-03-19" in ask(shelf, "When was the fire drill in March 2026?").text


@pytest.mark.parametrize("asked", ["20 March", "2026-03-20", "19 April 2026", "19 March 2025"])
def test_a_question_about_another_day_is_not_answered(
    shelf: Shelf, memory_of: MemoryOf, asked: str
) -> None:
    shelf.put([memory_of("x", "On 19 March 2026 the freezer raised an alarm.")])
    assert not ask(shelf, f"What happened on {asked}?").found
    assert ask(shelf, "What happened on 19 March 2026?").found


@pytest.mark.parametrize(
    "question",
    [
        "What happened on 2026-03-19?",
        "What was going on on 19 March 2026?",
        "19 March 2026 - what was on that day?",
    ],
)
def test_what_happened_on_a_day_is_told_from_every_memory_of_it(
    shelf: Shelf, memory_of: MemoryOf, question: str
) -> None:
    shelf.put(
        [
            memory_of("alarm", "On 19 March 2026 the freezer raised an alarm."),
            memory_of("yeast", "The yeast moved to the lower shelf (19.3.2026)."),
            memory_of("other", "On 18 March 2026 the visitors came."),
        ]
    )
    given = ask(shelf, question)
    assert {citation.memory_id for citation in given.citations} == {"m_alarm", "m_yeast"}


def test_a_turn_is_of_the_day_on_which_it_was_said(shelf: Shelf, memory_of: MemoryOf) -> None:
    said = datetime(2026, 1, 5, 18, tzinfo=UTC)
    text = "Ann: I watched the football game with my brother."
    shelf.put([memory_of("x", text, type="turn", session_id="s", created_at=said)])
    assert ask(shelf, "What did Ann watch with her brother on 5 January 2026?").found


def test_the_day_an_answer_names_counts_from_when_it_was_said(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    said = datetime(2026, 3, 20, tzinfo=UTC)
    shelf.put([memory_of("x", "The freezer raised an alarm yesterday.", created_at=said)])
    shelf.put([memory_of("y", "The freezer raised an alarm today.", created_at=said)])
    given = ask(shelf, "What happened on 19 March 2026?")
    assert [citation.memory_id for citation in given.citations] == ["m_x"]


def test_being_of_the_month_that_is_asked_about_makes_nothing_an_answer(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    texts = (
        "The van goes to Rob on Friday, he wants it for the fair.",
        "The van and the two trailers stand in the yard at Hill Farm.",
        "Signed for the new van on its bonnet, four payments of 900.",
    )
    november = datetime(2026, 11, 9, tzinfo=UTC)
    shelf.put([memory_of(str(n), t, created_at=november) for n, t in enumerate(texts)])
    assert not ask(shelf, "What was stolen out of the van in November 2026?").found
