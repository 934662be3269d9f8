"""What a question asks for is in the answer, or else it is said that it is not in memory."""

from __future__ import annotations

import pytest

from memctl.search.answering.answer_constraints import NO_CONSTRAINTS
from memctl.search.answering.answer_type import has_value, requested_value
from memctl.search.answering.extractive_answer import NOT_FOUND, UNSURE, extract_answer
from memctl.search.answering.relevance import ANSWER_THRESHOLD
from memctl.search.searcher import Searcher

from .conftest import MemoryOf, Shelf

SHOP = {
    "about": "The shop was established in 1974 by the baker Emil Hauser. "
    "It stands at Mill Lane 8. About 41 percent of the buyers are students.",
    "staff": "name: Judith Arnold; role: manager; phone: 0715 220 914; email: judith@shop.example\n"
    "name: Kemal Yildiz; role: baker; phone: 0715 330 118\n"
    "name: Anton Berg; role: driver; email: anton@shop.example",
    "oven": "The big oven was delivered by Medtronix; it cost 38,000 euros. "
    "The fridge must stay below 8 degrees.",
    "door": "Anton painted the door green in May.",
    "letter": "Please send us the new contract.\n\nKind regards,\nEva Brandt\nQuayside Estates\n"
    "Telephone +47 55 01 22 90",
    "chat": "Kemal: I talked to Cafe Nord, they take 40 loaves a week from July.",
    "wall": "The wall was moved last year. The price was 900 euros, with paint.",
}


@pytest.fixture
def shop(shelf: Shelf, memory_of: MemoryOf) -> Searcher:
    shelf.put([memory_of(id, text) for id, text in SHOP.items()])
    return shelf.searcher()


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("What is Judith Arnold's phone number?", "0715 220 914"),
        ("What is the phone number of the baker?", "0715 330 118"),
        ("what is eva brandt's telephone number", "+47 55 01 22 90"),
        ("What is Anton Berg's e-mail address?", "anton@shop.example"),
        ("What did the big oven cost?", "38,000 euros"),
        ("What was the price of the oven?", "38,000 euros"),
        ("What was the price of the wall?", "900 euros"),
        ("What percentage of the buyers are students?", "41 percent"),
        ("What is the address of the shop?", "Mill Lane 8"),
        ("How old is the shop?", "1974"),
        ("Who established the shop?", "Emil Hauser"),
        ("Who founded the shop?", "Emil Hauser"),
        ("Who delivered the oven?", "Medtronix"),
        ("How many loaves does Cafe Nord take?", "40 loaves"),
    ],
)
def test_the_sentence_that_has_what_is_asked_for_is_the_answer(
    shop: Searcher, question: str, told: str
) -> None:
    given = extract_answer(shop.search(question))
    assert given.found
    assert told in given.citations[0].quote


@pytest.mark.parametrize(
    "question",
    [
        "What is Anton Berg's phone number?",
        "What is the e-mail address of Kemal Yildiz?",
        "What is the phone number of Cafe Nord?",
        "Cafe Nord phone number",
        "What percentage of the loaves is sold?",
        "What is the address of Medtronix?",
    ],
)
def test_what_would_be_seen_if_it_stood_there_is_not_in_memory(
    shop: Searcher, question: str
) -> None:
    outcome = shop.search(question)
    given = extract_answer(outcome)
    assert (given.text, given.found, given.unsure) == (NOT_FOUND, False, False)
    assert given.confidence < ANSWER_THRESHOLD
    assert outcome.hits


@pytest.mark.parametrize(
    "question",
    [
        "who owns cafe nord",
        "Who owns Cafe Nord?",
        "When did Cafe Nord open?",
        "What was the price of the fridge?",
        "How much did the door cost?",
        "How old is Anton Berg?",
        "What is the birthday of Anton Berg?",
        "Who painted the fridge?",
        "Where does Emil Hauser live?",
    ],
)
def test_a_sentence_that_is_only_about_the_thing_is_no_answer_but_the_closest(
    shop: Searcher, question: str
) -> None:
    given = extract_answer(shop.search(question))
    assert given.text.startswith(f"{UNSURE} ")
    assert (given.found, given.unsure) == (False, True)
    assert given.confidence < ANSWER_THRESHOLD
    assert given.citations


def test_a_relation_is_told_with_another_word_for_it(shelf: Shelf, memory_of: MemoryOf) -> None:
    shelf.put([memory_of("x", "The owner of Cafe Nord is Sigrid Dahl.")])
    shelf.put([memory_of("y", "Cafe Nord pays within ten days.")])
    assert "Sigrid Dahl" in extract_answer(shelf.searcher().search("Who owns Cafe Nord?")).text


@pytest.mark.parametrize(
    "question",
    [
        "Who is the spouse of the director of the film Ravens?",
        "Who was born first, Ada Holm or Eva Brandt?",
        "When was the shop established where Kemal works?",
        "Who suggests a walk?",
        "Tell me about Ravens",
    ],
)
def test_a_question_in_steps_or_for_nothing_in_particular_demands_nothing(
    shop: Searcher, question: str
) -> None:
    assert shop.search(question).constraints == NO_CONSTRAINTS


@pytest.mark.parametrize(
    ("question", "kind", "name"),
    [
        ("what is Jonas's phone number", "phone", "phone number"),
        ("Wie ist die Telefonnummer von Jonas?", "phone", "Telefonnummer"),
        ("What is Ana's email?", "e-mail", "email"),
        ("Which email address does Ana use?", "e-mail", "email address"),
        ("What is the website of Optika?", "link", "website"),
        ("What percentage of it is damaged?", "percentage", "percentage"),
        ("What is the price a kilo?", "price", "price"),
        ("How much did the car cost?", "price", "cost"),
        ("Was kostet der Abzug?", "price", "kostet"),
        ("Quel est le prix du four ?", "price", "prix"),
        ("How old is Ines?", "age", "old"),
        ("What is the address of the hall?", "address", "address"),
        ("How many came?", "number", "How many"),
    ],
)
def test_what_is_written_in_a_way_of_its_own_is_known_by_its_name(
    question: str, kind: str, name: str
) -> None:
    asked = requested_value(question)
    assert asked is not None
    assert (asked.kind, asked.name) == (kind, name)


@pytest.mark.parametrize(
    "question",
    [
        "What email did Eva send?",
        "What did Eva say in her e-mail?",
        "What phone does Dan have?",
        "What is the name of the phone?",
        "Who knows the price of the flue?",
        "What does she say that power came at the price of?",
        "How much time did he spend on the road?",
        "What is the IP address of the server?",
    ],
)
def test_a_thing_that_is_only_mentioned_is_not_asked_for(question: str) -> None:
    assert requested_value(question) is None


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("phone", "Telephone +47 55 01 22 90", True),
        ("phone", "You can call the plumber at 314159.", True),
        ("phone", "phone: 040 555 1207", True),
        ("phone", "date: 2026-03-19", False),
        ("phone", "chip: 977200009123456", False),
        ("phone", "the deposit of 4,350 euros", False),
        ("phone", "permit number BF-2026-0417", False),
        ("e-mail", "write to ann.lee@mail.example", True),
        ("e-mail", "Ann Lee is @ann there", False),
        ("link", "see www.shop.example", True),
        ("link", "It ended. Then it began", False),
        ("percentage", "threshold_percent: 85", True),
        ("percentage", "12.8 % moisture", True),
        ("percentage", "85 of them", False),
        ("price", "it cost £14,300", True),
        ("price", "price_per_kg_eur: 6.9", True),
        ("price", "Children come in free.", True),
        ("price", "In 2024 we bought it.", False),
        ("age", "she is 13 years old", True),
        ("age", "born: 2017-06-14", True),
        ("age", "13 chairs", False),
        ("address", "the hall at Elm Road 7", True),
        ("address", "the hall at noon", False),
    ],
)
def test_what_is_written_in_a_way_of_its_own_is_known_by_its_looks(
    kind: str, text: str, expected: bool
) -> None:
    assert has_value(kind, text) is expected  # type: ignore[arg-type]
