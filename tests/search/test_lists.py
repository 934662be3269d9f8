"""Questions for what is on a list, answered by its items as they are written."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memctl.records import Answer
from memctl.search.answering.extractive_answer import extract_answer

from .conftest import MemoryOf, Shelf

SNAGS = "kitchen - door catches on the handle\nhall light flickers\nback door: bar loose"
PACKING = "# Packing list Skye\n\n- [x] tent\n- [ ] stove\n- [ ] head torches"
HOUSE = "# House\n\n## Shopping\n\n- oat milk\n- bin bags"
JOBS = (
    "## Jobs for the weekend\n\n1. clear gutter\n2. fix gate latch\n\nSee snag list for the rest."
)
ROWS = "name: Ann Lee; phone: 555 1234; role: chair\nname: Bob Ray; phone: 555 98; role: clerk"


@pytest.fixture
def lists(shelf: Shelf, memory_of: MemoryOf) -> Shelf:
    """Notes with lists, and one that mentions them all."""
    house = {"document_id": "d_house", "title": "House", "source": "house.md"}
    shelf.put(
        [
            memory_of("snags", SNAGS, title="snag list", source="snag list.txt"),
            memory_of("pack", PACKING, title="Packing list Skye", source="packing.md"),
            memory_of("shop", HOUSE, **house, heading="House > Shopping"),
            memory_of("jobs", JOBS, **house, heading="House > Jobs for the weekend",
                      start=100, end=100 + len(JOBS)),
            memory_of("people", ROWS, title="people", source="people.csv"),
            memory_of("note", "Went through the snag list, the packing list and the shopping list "
                      "with Ann. What's on the agenda is up to her."),
            memory_of("lease", "The lease starts on 1 June.\nThe rent is 1,450 euros.",
                      title="Lease"),
        ]
    )  # fmt: skip
    return shelf


def ask(shelf: Shelf, question: str) -> Answer:
    return extract_answer(shelf.searcher().search(question))


@pytest.mark.parametrize(
    ("question", "items"),
    [
        ("What's on the snag list?", ["kitchen - door", "hall light", "back door"]),
        ("Who's on the snag list?", ["kitchen - door", "hall light", "back door"]),
        ("snag list", ["kitchen - door", "hall light", "back door"]),
        ("show me the shopping list", ["oat milk", "bin bags"]),
        ("What jobs are there for the weekend?", ["clear gutter", "fix gate latch"]),
        ("what's on the packing list for Skye?", ["[x] tent", "stove", "head torches"]),
        ("What is still on the Skye packing list?", ["stove", "head torches"]),
        ("Qu'est-ce qu'il y a sur la shopping list ?", ["oat milk", "bin bags"]),
        ("montre-moi la snag list", ["kitchen - door", "hall light", "back door"]),
        ("what's in people?", ["name: Ann Lee", "name: Bob Ray"]),
    ],
)
def test_the_items_are_given_as_they_are_written(
    lists: Shelf, question: str, items: list[str]
) -> None:
    given = ask(lists, question)
    assert given.found
    lines = given.text.splitlines()
    assert len(lines) == len(items)
    assert all(line.startswith(item) for line, item in zip(lines, items, strict=True))
    assert all(item.removeprefix("[x] ") in given.citations[0].quote for item in items)


def test_a_list_of_a_longer_name_is_named(lists: Shelf) -> None:
    given = ask(lists, "What's on the packing list?")
    assert given.text.startswith("Packing list Skye (2026-01-01):\n[x] tent [1]\n")


def test_of_two_lists_the_newer_is_given_and_the_other_named(
    lists: Shelf, memory_of: MemoryOf
) -> None:
    later = datetime(2026, 3, 1, tzinfo=UTC)
    lists.put([memory_of("new", "chimney\nporch", title="Snag list", created_at=later)])
    given = ask(lists, "what's on the snag list")
    assert given.text.splitlines() == [
        "Snag list (2026-03-01):",
        "chimney [1]",
        "porch [1]",
        "Older, or of a like name: snag list (2026-01-01).",
    ]


def test_the_list_of_the_time_that_is_asked_for_is_given(lists: Shelf, memory_of: MemoryOf) -> None:
    texts = {"May 2024": "- port\n- sherry", "May 2025": "- gin\n- rum"}
    lists.put(
        [memory_of(f"wine{time[-4:]}", text, title=f"Wine list {time}")
         for time, text in texts.items()]
    )  # fmt: skip
    assert ask(lists, "What's on the wine list for May 2024?").text.startswith("port [1]")
    assert ask(lists, "What's on the wine list for June 2023?").method != "list/1"


def test_of_two_sections_of_that_name_the_newer_is_given(lists: Shelf, memory_of: MemoryOf) -> None:
    diary = {"document_id": "d_diary", "title": "Diary", "source": "diary.md"}
    days = ((3, "- ring Ann\n- paint"), (9, "- buy tar\n- fix the\n  outer gate"))
    lists.put(
        [memory_of(f"day{day}", text, **diary, heading=f"{day} May 2025 > To do", start=100 * day,
                   end=100 * day + len(text), created_at=datetime(2025, 5, day, tzinfo=UTC))
         for day, text in days]
    )  # fmt: skip
    lines = ask(lists, "what's on my to-do list?").text.splitlines()
    assert lines[:3] == ["To do (2025-05-09):", "buy tar [1]", "fix the outer gate [1]"]


def test_a_list_of_which_all_is_done_has_nothing_left(lists: Shelf, memory_of: MemoryOf) -> None:
    lists.put([memory_of("done", "- [x] hops\n- [x] malt", title="Brewing")])
    assert ask(lists, "what is left on the brewing list?").text == "Nothing is left on Brewing. [1]"


def test_of_a_long_list_it_is_said_how_many_more_there_are(
    lists: Shelf, memory_of: MemoryOf
) -> None:
    lists.put([memory_of("long", "\n".join(f"- book {n}" for n in range(50)), title="Reading")])
    lines = ask(lists, "what's on my reading list?").text.splitlines()
    assert lines[-2:] == ["book 19 [1]", "30 more in Reading."]


@pytest.mark.parametrize(
    "question",
    [
        "What's in the lease?",
        "What's on the guest list?",
        "where is the snag list?",
        "who's on people?",
    ],
)
def test_prose_is_no_list_and_other_questions_ask_for_none(lists: Shelf, question: str) -> None:
    assert ask(lists, question).method != "list/1"
