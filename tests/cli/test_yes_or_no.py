"""What memctl query answers where memory says just what is asked, or nothing more."""

from __future__ import annotations

import pytest

from .conftest import Run

HOME = """The garage is rented to Otto.

Lena works at Siemens in Munich. The cellar is dry.

The boiler was repaired in March by Kranz Heating.

Otto likes tea.

Carla is not allowed to sign contracts. The roof was painted green.

Our neighbour Mila has two dogs. Mila never drives at night.

We do not eat meat. The piano was sold in 2024.
"""
ZUHAUSE = """Die Garage ist an Otto vermietet.

Lena arbeitet bei Siemens in München.

Otto trinkt gerne Tee.
"""
IN_MEMORY = {
    "Is the garage rented to Otto?": "The garage is rented to Otto.",
    "The garage is rented to Otto": "The garage is rented to Otto.",
    "Is the garage rented to Otto or to Lena?": "The garage is rented to Otto.",
    "Does Lena work at Siemens in Munich?": "Lena works at Siemens in Munich.",
    "Lena works at Siemens in Munich.": "Lena works at Siemens in Munich.",
    "Is the cellar dry?": "The cellar is dry.",
    "Did Kranz Heating repair the boiler?": "The boiler was repaired in March by Kranz Heating.",
    "Does Otto like tea?": "Otto likes tea.",
    "Was the roof painted green?": "The roof was painted green.",
    "Does Mila have two dogs?": "Our neighbour Mila has two dogs.",
    # Where it is not so, the sentence tells.
    "Is Carla allowed to sign contracts?": "Carla is not allowed to sign contracts.",
    "Isn't Carla allowed to sign contracts?": "Carla is not allowed to sign contracts.",
    "Does Mila drive at night?": "Mila never drives at night.",
    "Do we eat meat?": "We do not eat meat.",
    "Was the piano not sold in 2024?": "The piano was sold in 2024.",
    # It need not have every word.
    "Is Carla allowed to sign contracts with Siemens?": "Carla is not allowed to sign contracts.",
}
NOT_IN_MEMORY = (
    "Does Lena work at Siemens in Berlin?",
    "Is the cellar wet?",
    "Is the sauna rented to Otto?",
    "Does Mila have three cats?",
    "Does Otto like coffee?",
)
ONLY_THE_QUESTION = {
    "Why is the cellar dry?": "The cellar is dry.",
    "Who rents the garage to Otto?": "The garage is rented to Otto.",
    "Why does Otto like tea?": "Otto likes tea.",
    "When was the roof painted green?": "The roof was painted green.",
}


@pytest.fixture
def home(memctl: Run) -> Run:
    assert memctl("ingest", "-", stdin=HOME).code == 0
    return memctl


def first_quotes(memctl: Run, *questions: str) -> dict[str, str]:
    """The first sentence of each answer; "" where what is told is no sure answer."""
    answers = {question: memctl("query", question).rows[0]["answer"] for question in questions}
    return {
        question: answer["citations"][0]["quote"] if answer["found"] else ""
        for question, answer in answers.items()
    }


def test_a_sentence_that_says_just_what_is_asked_is_the_answer(home: Run) -> None:
    assert first_quotes(home, *IN_MEMORY) == IN_MEMORY


def test_a_premise_that_no_memory_has_is_not_answered(home: Run) -> None:
    assert not any(first_quotes(home, *NOT_IN_MEMORY).values())


def test_what_is_asked_in_another_language_is_answered_with_the_sentence_that_says_it(
    memctl: Run,
) -> None:
    memctl("ingest", "-", stdin=ZUHAUSE)
    expected = {
        "Ist die Garage an Otto vermietet?": "Die Garage ist an Otto vermietet.",
        "Arbeitet Lena bei Siemens in München?": "Lena arbeitet bei Siemens in München.",
        "Was trinkt Otto gerne?": "Otto trinkt gerne Tee.",
    }
    assert first_quotes(memctl, *expected) == expected


def test_where_memory_says_all_but_the_answer_nothing_else_is_taken_for_it(home: Run) -> None:
    for question, closest in ONLY_THE_QUESTION.items():
        answer = home("query", question).rows[0]["answer"]
        assert (answer["found"], answer["unsure"]) == (False, True), question
        assert closest in answer["text"]


FAQ = """ 1. Can the press print on both sides?

    Not by itself, no. The duplex unit in the store room does that.

 2. Can the press print on cloth?

    No, sorry. You have to send it to Weaver & Daughters in Leith.

 3. Is the workshop open on Sundays?

    Yes. Ring twice, the bell is old.

Keys of the workshop:

    key | who has it | what it opens
    ----+------------+--------------
    101 | Marguerite | paper store
    102 | Tobias     | darkroom
    103 | Ingrid     | roof hatch
"""


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Can the press print on cloth?", "No, sorry. You have to send it to Weaver & Daughters"),
        ("Can the press print on both sides?", "Not by itself, no. The duplex unit"),
        ("Is the workshop open on Sundays?", "Yes. Ring twice"),
        ("Who has key 102?", "102 | Tobias | darkroom [1]"),
    ],
)
def test_what_stands_under_the_same_question_or_in_its_row_is_the_answer(
    memctl: Run, question: str, answer: str
) -> None:
    memctl("ingest", "--title", "Workshop FAQ", "-", stdin=FAQ)
    found = memctl("query", question).json["answer"]
    assert not found["unsure"]
    assert found["text"].startswith(answer)
