"""Names and dates, whatever people and machines make of them."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.readers import read
from memctl.readers.document_properties import parse_date, parse_timestamp
from memctl.readers.file_names import date_from_name, date_from_title, display_name, title_from_name


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("meeting_notes-final.md", "meeting notes final"),
        ("2026-05-01-harbour.md", "2026-05-01 harbour"),
        ("My Trip.txt", "My Trip"),
        (".bashrc", ".bashrc"),
        ("a/b/c_d.txt", "c d"),
        ("line\nbreak\x07.txt", "line break"),
        ("x" * 300 + ".txt", "x" * 199 + "…"),
        ("caf\udce9.txt", "caf"),
        ("\udce9\udcff", "a file without a readable name"),
    ],
)
def test_a_title_made_of_a_name_is_one_printable_line(name: str, title: str) -> None:
    assert title_from_name(name) == title


@given(st.text(st.characters(exclude_categories=()), max_size=400))
def test_any_name_can_be_shown_and_stored(name: str) -> None:
    for text in (display_name(name), title_from_name(name)):
        assert text
        assert "\n" not in text
        assert len(text) <= 200
        text.encode("utf-8")
    date_from_name(name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("2026-05-01-notes.md", datetime(2026, 5, 1, tzinfo=UTC)),
        ("20260501 notes.md", datetime(2026, 5, 1, tzinfo=UTC)),
        ("2026-05-01 14-30 call.txt", datetime(2026, 5, 1, 14, 30, tzinfo=UTC)),
        ("20260501_143059.txt", datetime(2026, 5, 1, tzinfo=UTC)),
        ("2026-13-01.md", None),
        ("notes-2026-05-01.md", datetime(2026, 5, 1, tzinfo=UTC)),
        ("Newsletter 2026-05-01.pdf", datetime(2026, 5, 1, tzinfo=UTC)),
        ("IMG_20260501_143059.jpg", datetime(2026, 5, 1, 14, 30, 59, tzinfo=UTC)),
        ("Minutes 1 May 2026.docx", datetime(2026, 5, 1, tzinfo=UTC)),
        ("Scan 01.05.2026.pdf", datetime(2026, 5, 1, tzinfo=UTC)),
        ("Protokoll vom 1. Mai 2026.odt", datetime(2026, 5, 1, tzinfo=UTC)),
        ("budget 2026.xlsx", None),
        ("sha20260501abc.txt", None),
        ("123456789012.txt", None),
    ],
)
def test_a_date_in_a_name_is_the_sources_date(name: str, expected: datetime | None) -> None:
    found = date_from_name(name)
    if name == "20260501_143059.txt":
        assert found is not None
        assert found.date() == expected.date()  # type: ignore[union-attr]
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-05-01", datetime(2026, 5, 1, tzinfo=UTC)),
        ("2026-05-01T10:00:00+02:00", datetime(2026, 5, 1, 8, tzinfo=UTC)),
        ("2026-05-01T10:00:00Z", datetime(2026, 5, 1, 10, tzinfo=UTC)),
        ("2026/5/1", datetime(2026, 5, 1, tzinfo=UTC)),
        ("May 1, 2026", datetime(2026, 5, 1, tzinfo=UTC)),
        ("1st May 2026", datetime(2026, 5, 1, tzinfo=UTC)),
        ("2026-05", datetime(2026, 5, 1, tzinfo=UTC)),
        ("Fri, 01 May 2026 10:00:00 -0500", datetime(2026, 5, 1, 15, tzinfo=UTC)),
        ("0001-01-01T00:00:00+14:00", None),
        ("next week", None),
        ("May 45, 2026", None),
    ],
)
def test_a_date_is_read_as_an_aware_utc_instant(text: str, expected: datetime | None) -> None:
    assert parse_date(text) == expected


def test_seconds_and_milliseconds_since_1970_are_moments() -> None:
    assert (
        parse_timestamp(1777629600)
        == parse_timestamp("1777629600000")
        == parse_date("2026-05-01T10Z")
    )


@given(st.text(max_size=60))
def test_no_text_breaks_the_reading_of_dates(text: str) -> None:
    for moment in (
        parse_date(text),
        parse_timestamp(text),
        date_from_name(text),
        date_from_title(text),
    ):
        assert moment is None or moment.utcoffset() is not None


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="names there are always Unicode")
def test_a_file_whose_name_is_not_utf8_is_read_under_a_clean_title(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9 notes.txt"))
    path.write_text("hello")
    [source] = read(path)
    assert source.title == "caf notes"
