"""The day that a statement begins with is a date to look for, not words."""

from __future__ import annotations

import pytest

from memctl.understanding.text_outline import spoken_text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("7 January 2024: Emi: I like impressionism.", "Emi: I like impressionism."),
        ("Plan (3 March 2024): we paint the hull.", "Plan: we paint the hull."),
        ("We paint it on 3 March 2024: all of us.", "We paint it on 3 March 2024: all of us."),
    ],
)
def test_a_statement_is_found_without_the_day_before_it(text: str, words: str) -> None:
    assert spoken_text(text, "memory", None) == words


def test_evidence_keeps_its_dates() -> None:
    said = "7 January 2024: rain."
    assert spoken_text(said, "evidence", None) == said
