"""Values found in sentences, and which of them can mean the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.consolidation.statements import slots_of
from memctl.language.sentence_values import values
from memctl.language.table_amounts import is_number, number


def found(sentence: str) -> list[tuple[str, str]]:
    return [(value.kind, value.text) for value in values(sentence)]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("It starts on 1 June 2026.", [("date", "1 June 2026")]),
        ("It starts on June 1st, 2026.", [("date", "June 1st, 2026")]),
        ("Due 2026-06-01 at 9:30.", [("date", "2026-06-01"), ("time", "9:30")]),
        ("Fällig am 1. Juni 2026.", [("date", "1. Juni 2026")]),
        ("The rent is 1,200 EUR a month.", [("money", "1,200 EUR")]),
        ("It costs €1.250,50 or $5k.", [("money", "€1.250,50"), ("money", "$5k")]),
        ("5% of 12 kg", [("percent", "5%"), ("quantity", "12 kg")]),
        ("Two machines at 5 pm", [("quantity", "Two machines"), ("time", "5 pm")]),
        ("Version 2.3.1 and room 12B, call +49 30 123456", []),
        ("Fifty-two thousand pounds", [("money", "Fifty-two thousand pounds")]),
        (
            "A hundred and ten euros, ten hours",
            [("money", "A hundred and ten euros"), ("quantity", "ten hours")],
        ),
        ("It was three thousand one hundred", [("number", "three thousand one hundred")]),
        ("One in a hundred, a million thanks, two hundred and six", []),
        ("Five thousand million euros, five thousand million in all", []),
        ("Two grand pianos", [("quantity", "Two grand")]),
        ("Two grand for the organ", [("number", "Two grand")]),
        ("1,280 flat since May, 1.25 now", []),
        ("May I come?", []),
        (
            "Le total est de 12 500 € ou 1 850,00 €.",
            [("money", "12 500 €"), ("money", "1 850,00 €")],
        ),
        ("En 2024 500 € de plus", [("date", "2024"), ("money", "500 €")]),
        ("Um 8.15 Uhr, 7 Uhr oder 14h30", [("time", "8.15"), ("time", "7"), ("time", "14h30")]),
    ],
)
def test_values_are_found_by_their_form(sentence: str, expected: list[tuple[str, str]]) -> None:
    assert found(sentence) == expected


@pytest.mark.parametrize(
    "amount",
    [
        "Half a million pounds",
        "A quarter of a million dollars",
        "Three quarters of a million dollars",
        "A million and a half pounds",
        "Zero point five million dollars",
        "Zero point two five million dollars",
    ],
)
def test_a_fraction_in_words_is_no_amount(amount: str) -> None:
    assert not [value for value in values(amount) if value.kind in ("money", "number")]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("1,200 EUR", "1200 EUR"),
        ("1,200 EUR", "1.200 EUR"),
        ("€1200.00", "1,200 euros"),
        ("1 June 2026", "2026-06-01"),
        ("1 June", "June 1, 2026"),
        ("June 2026", "15 June 2026"),
        ("03/06/2026", "3 June 2026"),
        ("03/06/2026", "6 March 2026"),
        ("9:30", "9:30 pm"),
        ("14h30", "2:30 pm"),
        ("8.15 Uhr", "8:15"),
        ("12 500 €", "12.500 €"),
        ("12\u202f500,00 €", "€12,500"),
        ("17:00", "5 pm"),
        ("two machines", "2 machines"),
        ("a hundred and fifty-two pounds", "£152"),
        ("Two hundred thousand euros", "€200k"),
        ("one million two hundred thousand and five dollars", "$1,200,005"),
    ],
)
def test_values_that_may_be_the_same_agree(first: str, second: str) -> None:
    (a,), (b,) = values(first), values(second)
    assert a.agrees_with(b)
    assert b.agrees_with(a)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("1,200 EUR", "1,250 EUR"),
        ("1 June 2026", "1 June 2027"),
        ("1 June", "2 June 2026"),
        ("9:30 am", "21:30"),
        ("12 kg", "15 kg"),
        ("20 March", "20 kg"),
    ],
)
def test_values_that_cannot_be_the_same_do_not_agree(first: str, second: str) -> None:
    (a,), (b,) = values(first), values(second)
    assert not a.agrees_with(b)


@given(st.text(alphabet="0123456789.,:/-€$% aekmpJune", max_size=60))
def test_values_stand_where_they_say_in_any_text(text: str) -> None:
    for value in values(text):
        assert text[value.start : value.end] == value.text
        assert value.readings
        assert value.agrees_with(value)


@pytest.mark.parametrize(
    "written", ["1 129,50", "1.129,50", "1\u202f129,50 €", "1,129.50", "1129.5"]
)
def test_a_cell_is_a_number_however_its_thousands_are_written(written: str) -> None:
    assert is_number(written)
    assert number(written) == 1129.5


def test_a_number_with_a_letter_after_it_is_the_name_of_something() -> None:
    slots = slots_of("Sam in 14B had a yield of 385")
    assert [slot.value.text for slot in slots] == ["385"]
