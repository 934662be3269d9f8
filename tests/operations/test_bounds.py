"""Results of tools are bounded, whatever they hold."""

from __future__ import annotations

import json

import pytest

from memctl.operations.tool_calls import MAX_CHARACTERS, bounded, cut_text


@pytest.mark.parametrize(
    "value",
    [
        {"id": "d_1", "text": "x" * 10_000_000},
        {"rows": [{"text": "word " * 2_000}] * 200},
        {"rows": [{"name": f"n{number}"} for number in range(100_000)]},
        {"deep": {"rows": [{"texts": ["y" * 50_000] * 3}]}, "n": 1},
    ],
)
def test_a_result_of_megabytes_is_cut_with_a_note(value: dict[str, object]) -> None:
    found = bounded(value)
    assert len(json.dumps(found, ensure_ascii=False)) <= MAX_CHARACTERS + 200
    assert "cut to 25,000 characters" in found["note"]
    assert found.keys() >= value.keys()


def test_a_result_that_fits_is_left_as_it_is() -> None:
    value = {"rows": [1, 2, 3], "text": "short"}
    assert bounded(value) is value


def test_a_long_text_is_cut_with_a_note() -> None:
    assert cut_text("short") == "short"
    assert len(cut_text("z" * 10_000_000)) < MAX_CHARACTERS + 200
