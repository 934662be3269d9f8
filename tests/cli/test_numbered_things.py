"""What memctl query answers about things that only a number tells apart."""

from __future__ import annotations

import pytest

from .conftest import Run

HOME = """The door code of flat 4 is 7731.

The door code of flat 5 is 2290.

Room 12 is the archive. Room 14 is the kitchen.

Ana keeps 6 spare keys and 18 lamps.

Parcel P55 weighs 300 grams. Parcel P56 weighs 410 grams. Shelf 57 is empty.

Revenue in Q2 was 3 million euros.

Otto lived in Kiel 5 years ago. He pays 400 euros rent.

Floors 1 to 3 have carpets.

The dentist is at Elm Road 12.
"""
TOLD = {
    "What is the door code of flat 4?": "The door code of flat 4 is 7731.",
    "What is the door code of flat 5?": "The door code of flat 5 is 2290.",
    "What is room 12?": "Room 12 is the archive.",
    "What does parcel P56 weigh?": "Parcel P56 weighs 410 grams.",
    "What was the revenue in Q2?": "Revenue in Q2 was 3 million euros.",
    "Do floors 1 to 3 have carpets?": "Floors 1 to 3 have carpets.",
    "Who is at Elm Road 12?": "The dentist is at Elm Road 12.",
    # What counts or measures tells nothing apart.
    "Where did Otto live 5 years ago?": "Otto lived in Kiel 5 years ago.",
    "Where did Otto live 6 years ago?": "Otto lived in Kiel 5 years ago.",
}
OF_OTHERS = (
    "What is the door code of flat 6?",
    "What is the door code of flat 12?",
    "What is room 5?",
    "What is room number 18?",
    "What does parcel P57 weigh?",
    "What was the revenue in Q3?",
    "What was the revenue in Q4?",
    "Does floor 4 have carpets?",
    "Who is at Elm Road 14?",
    "Who is at Elm Road 5?",
)


@pytest.fixture
def home(memctl: Run) -> Run:
    assert memctl("ingest", "-", stdin=HOME).code == 0
    return memctl


def test_the_item_with_the_number_asked_for_is_the_answer(home: Run) -> None:
    answers = {question: home("query", question).rows[0]["answer"] for question in TOLD}
    quotes = {
        question: answer["citations"][0]["quote"] if answer["found"] else answer["text"]
        for question, answer in answers.items()
    }
    assert quotes == TOLD


def test_what_has_another_number_is_no_sure_answer(home: Run) -> None:
    for question in OF_OTHERS:
        answer = home("query", question).rows[0]["answer"]
        assert not answer["found"], (question, answer["text"])


def test_a_record_is_not_answered_with_one_whose_number_begins_alike(memctl: Run) -> None:
    records = "\n\n".join(f"Record number {n}: the parcel is blue." for n in range(40, 60))
    memctl("ingest", "-", stdin=f"{records}\n\nThe tower is 500 years old.\n")
    assert not memctl("query", "What is record number 500?").rows[0]["answer"]["found"]
    assert memctl("query", "What is record number 50?").rows[0]["answer"]["found"]


def test_a_number_of_a_date_or_of_another_thing_is_not_that_of_the_thing(memctl: Run) -> None:
    notes = "\n\n".join(
        f"Van {n} was serviced on {day} May 2026 by fitter F{n} and cost £{price}."
        for n, day, price in ((3, 4, "3.50"), (44, 3, "12.50"), (123, 12, "9.50"), (12, 9, "5.50"))
    )
    memctl("ingest", "-", stdin=notes)
    for question, number in (("who serviced van 3", 3), ("what did van 12 cost", 12)):
        answer = memctl("query", question).rows[0]["answer"]
        assert answer["found"]
        assert [each["quote"].split(" was ")[0] for each in answer["citations"]] == [
            f"Van {number}"
        ]
    assert not memctl("query", "what did van 9 cost").rows[0]["answer"]["found"]
