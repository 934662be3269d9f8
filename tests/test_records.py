"""What records say of themselves."""

from __future__ import annotations

import pytest

from memctl.records import shown_source_name


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("/home/ann/notes/roof.md", "roof.md"),
        ("C:\\Users\\ann\\roof.md", "roof.md"),
        ("/home/ann/2026.mbox!/CAF1@example.org", "2026.mbox"),
        ("/home/ann/2026.mbox!/sha256-99198bc9e8757bdb", "2026.mbox"),
        ("/home/ann/box.zip!/plans/roof.md", "roof.md"),
        ("", ""),
    ],
)
def test_a_source_is_shown_by_a_name_that_says_something(source: str, shown: str) -> None:
    assert shown_source_name(source) == shown
