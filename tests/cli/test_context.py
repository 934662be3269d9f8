"""memctl context: what goes into a budget, in which order, and when it says that it is in doubt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Run

SAID = (
    "Kevin: Good morning, did you sleep well?",
    "Mia: Yes, thanks! We are off to the harbour soon.",
    "Kevin: The harbour market sells fresh crabs on Saturdays.",
    "Mia: My brother repaired the old rowing boat.",
    "Kevin: I planted tomatoes behind the shed.",
    "Mia: The tram was late again today.",
    "Kevin: My sister moved to Porto in May.",
    "Mia: I paint little landscapes in the evening.",
)
IN_DOUBT = "Is Kevin a vegetarian?"
DOUBT = "though nothing known clearly bears on the question:"


@pytest.fixture
def chat(memctl: Run, tmp_path: Path) -> Run:
    """A home with one conversation."""
    put(memctl, tmp_path, SAID)
    return memctl


def put(run: Run, folder: Path, said: tuple[str, ...], session: str = "s1") -> None:
    lines = (
        {"text": text, "session_id": session, "turn": n, "created_at": "2026-03-02T10:00:00Z"}
        for n, text in enumerate(said, start=1)
    )
    (folder / "chat.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert run("ingest", "--jsonl", "chat.jsonl").code == 0


def test_several_short_turns_go_in_before_a_long_one_that_ranks_a_little_higher(
    memctl: Run, tmp_path: Path
) -> None:
    bakery = "At the bakery they had no bread left, so I walked on and "
    put(
        memctl,
        tmp_path,
        (
            "Ann: The bakery at the corner bakes rye bread on Mondays.",
            "Ann: The bakery, the bread: " + bakery + "talked with everybody in the street. " * 9,
            "Ann: The bakery has new owners.",
            "Ann: Their bread is good.",
        ),
    )
    asked = ("rye bread of the corner bakery on Mondays", "-o", "json")
    ranked = [hit["turn"] for hit in memctl("query", *asked, "--no-answer").json["hits"]]
    assert ranked == [1, 2, 3, 4]
    text = memctl("context", *asked, "--budget", "120").json["text"]
    assert "corner" in text
    assert "new owners" in text
    assert "Their bread" in text
    assert "everybody" not in text


def test_the_best_hit_is_there_even_where_others_are_shorter(memctl: Run, tmp_path: Path) -> None:
    best = "Ann: The spare key of the cabin hangs on the third hook in the boat house of my uncle."
    put(memctl, tmp_path, (best, "Ann: A key!", "Bob: The cabin.", "Ann: Spare me."))
    text = memctl("context", "Where does the spare key of the cabin hang?", "--budget", "60").out
    assert "third hook" in text


def test_what_has_nothing_of_the_question_stays_out_beside_what_answers_it(memctl: Run) -> None:
    for text in (
        "Ann Lee works at Acme.",
        "The boat is called Kestrel.",
        "The rent is 900 euros.",
        "The pelican nests on the old pier.",
    ):
        memctl("memory", "add", text)
    found = memctl("context", "what does Ann Lee do?", "-o", "json").json
    assert [each["quote"] for each in found["citations"]] == ["Ann Lee works at Acme."]


def test_what_may_not_bear_on_the_question_is_said_to_be_in_doubt_and_is_half_as_long(
    chat: Run,
) -> None:
    found = chat("context", IN_DOUBT, "--budget", "160", "-o", "json").json
    assert DOUBT in found["text"].partition("\n")[0]
    assert "Kevin" in found["text"].partition("\n")[2]
    assert 0 < found["tokens"] <= 80
    assert found["why"].startswith("in doubt: relevance 0.")
    sure = chat("context", "When did the sister of Kevin move to Porto?", "-o", "json").json
    assert DOUBT not in sure["text"]
    assert sure["why"] == ""


def test_what_is_in_doubt_is_not_given_to_a_message_that_did_not_ask_for_it(chat: Run) -> None:
    referring = "Do you remember if Kevin is a vegetarian?"
    assert DOUBT in chat("context", referring).out
    assert chat("context", "--auto", referring).out == ""


@pytest.mark.parametrize(
    "message",
    [
        "What did she say about Porto?",
        "Wann habe ich von Porto erzählt?",
        "Tu te souviens de Porto ?",
        "¿Qué dijimos sobre Porto?",
        "Che cosa abbiamo deciso per Porto?",
        "Você se lembra de Porto?",
        "Wat hebben we over Porto besloten?",
    ],
)
def test_a_message_refers_to_what_was_before_in_each_of_these_languages(
    chat: Run, message: str
) -> None:
    context = chat("context", "--auto", message, "-o", "json").json
    assert context["why"].startswith("refers to what was before")


@pytest.mark.parametrize("message", ["Hier ist mein Text über Porto", "Buy a souvenir of Porto"])
def test_words_that_only_look_as_if_they_referred_to_what_was_before_do_not(
    chat: Run, message: str
) -> None:
    context = chat("context", "--auto", message, "-o", "json").json
    assert not context["why"].startswith("refers to what was before")


def test_a_question_in_doubt_counts_as_one_without_an_answer(chat: Run) -> None:
    chat("context", IN_DOUBT)
    chat("context", "When did the sister of Kevin move to Porto?")
    [numbers] = chat("stats", "--queries", "-o", "json").json
    assert [row["question"] for row in numbers["unanswered"]] == [IN_DOUBT]
