"""What follows from notes of several days, one kind after another, in a real store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from memctl.records import Memory

Note = Callable[..., Memory]
OTHERS = ("Bake the bread at 240 degrees.", "The cat sleeps on the stove.", "Read about moss.")


@pytest.fixture
def told(base: Any, note: Note) -> Callable[..., dict[str, str]]:
    """Adds notes among others and returns the insights on them, by kind."""

    def tell(*notes: Memory) -> dict[str, str]:
        others = [note(text, "2024-01-01", f"other{n}.md") for n, text in enumerate(OTHERS)]
        base.add(*notes, *others)
        return {item.kind: item.text for item in base.consolidator().run().insights}

    return tell


def fact(note: Note, text: str, day: str, source: str, **more: Any) -> Memory:
    return note(text, day, source, type_="fact", **more)


def rows(note: Note) -> list[Memory]:
    """A table of what was spent, as the reader of tables gives it."""
    lines = (
        "date: 2024-02-20; what: licence; category: rights; amount: 640.00",
        "date: 2024-03-02; what: timber; category: set; amount: 1,212.40",
        "date: 2024-05-02; what: paint; category: set; amount: 388.10",
    )
    table = note("\n".join(lines), "2024-06-01", "spring tour.csv")
    return [replace(table, row=1, title="spring tour")]


def test_a_table_that_comes_to_more_than_a_budget_is_told_with_both(
    told: Callable[..., dict[str, str]], note: Note
) -> None:
    budget = fact(note, "The budget for the spring tour is £2,000.", "2024-01-15", "plan.md")
    text = told(*rows(note), budget)["total"]
    days = "20 February → 2 May 2024"
    assert f"3 entries come to 2,240.50 ({days}), over the budget of £2,000 by 240.50. " in text
    assert "“The budget for the spring tour is £2,000” (plan.md, 15 January 2024)" in text


def test_a_category_has_a_limit_of_its_own(told: Callable[..., dict[str, str]], note: Note) -> None:
    limit = fact(note, "The set must stay under 1,400.", "2024-01-15", "plan.md")
    assert "Spring tour, set: 2 entries come to 1,600.50 " in told(*rows(note), limit)["total"]


def test_a_table_within_its_budget_is_not_told(
    told: Callable[..., dict[str, str]], note: Note
) -> None:
    budget = fact(note, "The budget for the spring tour is £2,500.", "2024-01-15", "plan.md")
    assert "total" not in told(*rows(note), budget)


def test_what_happens_on_three_days_is_told_with_what_is_the_same(
    told: Callable[..., dict[str, str]], note: Note
) -> None:
    texts = (
        ("The dimmer rack tripped again when the fog machine came on.", "2024-01-15"),
        ("The dimmer rack tripped in scene three, fog machine running.", "2024-03-09"),
        ("Blackout, the dimmer rack is out again because of the fog machine.", "2024-05-18"),
    )
    text = told(*(fact(note, said, day, f"{day}.md") for said, day in texts))["recurring"]
    assert text.startswith("Dimmer rack fog machine: told of on 3 days (15 January 2024, 9 March")


def test_what_was_promised_and_is_still_missing_is_overdue_until_it_comes(
    told: Callable[..., dict[str, str]], base: Any, note: Note
) -> None:
    promise = "Milly promised to send the programme proofs by 20 March."
    text = told(
        fact(note, promise, "2024-03-09", "call.md"),
        fact(note, "Still no programme proofs from the printer.", "2024-03-26", "chat.md"),
    )["overdue"]
    assert "spoken of on 9 March 2024 and still open on 26 March 2024. " in text
    assert promise.rstrip(".") in text


def test_what_has_come_is_not_overdue(told: Callable[..., dict[str, str]], note: Note) -> None:
    texts = (
        ("Milly promised to send the programme proofs by 20 March.", "2024-03-09"),
        ("Still no programme proofs from the printer.", "2024-03-26"),
        ("The programme proofs arrived this morning.", "2024-03-28"),
    )
    assert "overdue" not in told(*(fact(note, said, day, f"{day}.md") for said, day in texts))


def test_a_day_that_passed_without_a_word_is_overdue(
    told: Callable[..., dict[str, str]], note: Note
) -> None:
    insurance = "The van insurance with Towergate runs out on 31 July 2024."
    text = told(
        fact(note, insurance, "2024-04-02", "insurance.md"),
        fact(note, "The stage floor was painted black.", "2024-09-12", "later.md"),
    )["overdue"]
    assert "31 July 2024 has passed with no later word on it (as of 12 September 2024)" in text


def test_names_of_different_documents_that_somebody_ties_are_a_connection(
    told: Callable[..., dict[str, str]], note: Note
) -> None:
    text = told(
        fact(note, "The secretary of the club is Gwen Pryce.", "2024-02-01", "club.md"),
        fact(note, "The lamps came from Tom Skelhorn at Stagelight.", "2024-06-26", "mail.eml"),
        fact(
            note, "Gwen Pryce's nephew Tom Skelhorn will run the lights.", "2024-05-30", "diary.md",
            entities=["Gwen Pryce", "Tom Skelhorn"],
        ),
    )["connection"]  # fmt: skip
    assert text.startswith("Gwen Pryce and Tom Skelhorn, known from club.md and mail.eml, are ")


@pytest.mark.parametrize(
    "text",
    [
        "2024-03-09 19:42:11 WARN dimmer[2] channel={} overcurrent",
        "See /usr/share/doc/dimmer/{} for the list of channels.",
        "def channel_{}(dimmer): return overcurrent",
        "dimmer version 1.{}.4 fixes the overcurrent of the channel",
    ],
)
def test_machines_tell_nothing(told: Callable[..., dict[str, str]], note: Note, text: str) -> None:
    numbers = zip((14, 16, 19), ("2024-01-15", "2024-03-09", "2024-05-18"), strict=True)
    assert told(*(fact(note, text.format(n), day, f"{n}.md") for n, day in numbers)) == {}
