"""Which two sentences contradict each other; wrong alarms weigh more than missed ones."""

from __future__ import annotations

import pytest

from memctl.consolidation.sentence_claims import Conflict, claims, conflict


def between(
    first: str, second: str, speakers: tuple[str | None, str | None] = (None, None)
) -> Conflict | None:
    earlier, later = claims(first, speakers[0]), claims(second, speakers[1])
    found = (conflict(a, b) for a in earlier for b in later)
    return next((known for known in found if known), None)


@pytest.mark.parametrize(
    ("first", "second", "difference"),
    [
        ("The lease starts on 1 June 2026.", "Lease start: 15 June 2026", "date"),
        (
            "The lease for the Harbour Street workshop starts on 1 June 2026.",
            "Landlord confirmed the lease starts 15 June, not 1 June.",
            "date",
        ),
        ("The lease starts on 1 June 2026.", "The lease has moved to 15 June 2026.", "date"),
        (
            "Deadline for the permit application is 1 May.",
            "The permit application is due by 8 May.",
            "date",
        ),
        ("The shop opens at 8:00.", "The shop opens at 9:00 every day.", "time"),
        ("The rent is 1,200 EUR a month.", "Rent: 1.250 EUR", "money"),
        (
            "The lease starts on 1 June and the rent is 1,200 EUR a month.",
            "The rent goes up to 1,250 EUR from 2027.",
            "money",
        ),
        ("The roaster holds 15 kg.", "The roaster holds 12 kg of beans.", "quantity"),
        ("The deposit is two months rent.", "The deposit is three months rent.", "quantity"),
        ("The supplier is Rossi Coffee.", "Our supplier is Bianchi.", "name"),
        (
            "The workshop has a loading dock on Harbour Street.",
            "The workshop has no loading dock on Harbour Street.",
            "negation",
        ),
    ],
)
def test_two_sentences_that_cannot_both_hold_are_found(
    first: str, second: str, difference: str
) -> None:
    found = between(first, second)
    assert found is not None
    assert found.difference == difference


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The rent is 1,200 EUR a month.", "Rent: 1200 EUR"),
        ("The rent is 1,200 EUR a month.", "Maybe the rent is 1,250 EUR."),
        ("The rent is 1,200 EUR a month.", "Is the rent 1,250 EUR?"),
        ("The rent is 1,200 EUR a month.", "The deposit is 2,400 EUR."),
        ("The lease for Mill Lane starts on 1 June.", "The lease for Elm Road starts on 15 June."),
        ("The price of flour is 2 EUR.", "The price of sugar is 3 EUR."),
        ("The lease starts on 1 June.", "The lease ends on 31 May."),
        ("The lease starts in June 2026.", "The lease starts on 15 June 2026."),
        ("On 3 March I ran 5 km.", "On 10 March I ran 8 km."),
        ("The team meeting is on 3 March at 9:00.", "The team meeting is on 10 March at 9:00."),
        ("Anna's flight leaves at 9:00.", "Ben's flight leaves at 10:00."),
        ("We sold 12 bags in March.", "We sold 15 bags in April."),
        ("The grinder costs 900 EUR.", "The espresso machine costs 950 EUR."),
        ("The shop opens at 8:00.", "The shop closes at 18:00."),
        ("Dinner is at 7 pm tonight.", "Dinner is at 8 pm tonight."),
        ("The city population was 30,000 in 1990.", "The city population was 45,000 in 2010."),
        ("The roaster holds about 15 kg.", "The roaster holds 12 kg."),
        ("I start work at 9:00.", "I start work at 10:00."),
        ("The sky is blue.", "The invoice is due on 3 May."),
    ],
)  # fmt: skip
def test_two_sentences_that_can_both_hold_are_left_alone(first: str, second: str) -> None:
    assert between(first, second) is None
    assert between(second, first) is None


def test_i_is_somebody_else_when_somebody_else_speaks() -> None:
    first, second = "My rent is 900 EUR a month.", "My rent is 950 EUR a month."
    assert between(first, second, ("Ann", "Ann")) is not None
    assert between(first, second, ("Ann", "Ben")) is None


def test_a_sentence_that_says_it_replaces_is_a_change() -> None:
    found = between("The lease starts on 1 June.", "The lease start moved from 1 June to 15 June.")
    assert found is not None
    assert (found.first, found.second, found.is_change) == ("1 June", "15 June", True)
