"""memctl ingest on files that it has seen before: changed, copied, moved, swapped, removed."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from killed import images_of
from limited import permissions_that_hold

from .conftest import Run

Live = Callable[[], dict[str, str]]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "code.md").write_text("The door code is 4711.\n")
    return folder


@pytest.fixture
def live(memctl: Run) -> Live:
    """Return the texts of the live documents, by the names of their files."""

    def look() -> dict[str, str]:
        rows = memctl("sql", "select source, text from documents where superseded_by is null"
                             " and status = 'indexed'").rows  # fmt: skip
        assert len({row["source"] for row in rows}) == len(rows), rows
        return {Path(row["source"]).name: row["text"].strip() for row in rows}

    return look


def test_a_changed_file_supersedes_what_was_remembered_of_it(
    memctl: Run, notes: Path, live: Live
) -> None:
    memctl("ingest", str(notes))
    (notes / "code.md").write_text("The door code is 1234.\n")
    report = memctl("ingest", str(notes), "-o", "json").json
    assert (report["ingested"], report["superseded"], report["skipped"]) == (1, 1, 0)
    assert live() == {"code.md": "The door code is 1234."}
    answer = memctl("query", "what is the door code?", "-o", "json").json
    assert "4711" not in json.dumps(answer["hits"])
    again = memctl("ingest", str(notes), "-o", "json").json
    assert (again["ingested"], again["skipped"]) == (0, 1)


def test_how_it_was_is_answered_from_the_replaced_version_and_only_where_it_differs(
    memctl: Run, notes: Path
) -> None:
    memctl("ingest", str(notes))
    (notes / "code.md").write_text("The door code is 1234.\n")
    memctl("ingest", str(notes))
    answer = memctl("query", "what was the previous door code?", "-o", "json").json["answer"]
    assert answer["found"]
    assert re.fullmatch(
        r"Until [\d-]{10}: The door code is 4711\. \[1\] "
        r"Since then: The door code is 1234\. \[2\]",
        answer["text"],
    )
    (notes / "code.md").write_text("The door code is 1234. The lock is new.\n")
    memctl("ingest", str(notes))
    answer = memctl("query", "what was the previous door code?", "-o", "json").json["answer"]
    assert "4711. [1] Since then:" in answer["text"]


def test_at_first_is_how_the_oldest_version_says_it_and_before_how_the_last_one_does(
    memctl: Run, notes: Path
) -> None:
    for code in ("4711", "1234", "9090"):
        (notes / "code.md").write_text(f"The door code is {code}. The lock is new.\n")
        memctl("ingest", str(notes))
    for question, code in (
        ("What was the door code originally?", "4711"),
        ("What was the previous door code?", "1234"),
    ):
        text = memctl("query", question, "-o", "json").json["answer"]["text"]
        assert re.search(rf"Until [\d-]{{10}}: The door code is {code}\. ", text), text
        assert "No longer so" not in text


def test_a_replaced_version_beyond_the_filters_answers_nothing(memctl: Run, notes: Path) -> None:
    memctl("ingest", str(notes / "code.md"), "--tag", "draft")
    (notes / "code.md").write_text("The door code is 1234.\n")
    memctl("ingest", str(notes / "code.md"), "--tag", "final")
    asked = ("query", "what was the previous door code?", "-o", "json")
    assert "4711" in memctl(*asked).json["answer"]["text"]
    assert "4711" not in memctl(*asked, "--tag", "final").json["answer"]["text"]


def test_a_file_that_is_as_it_was_before_is_current_again(
    memctl: Run, notes: Path, live: Live
) -> None:
    for code in (4711, 1234, 4711):
        (notes / "code.md").write_text(f"The door code is {code}.\n")
        assert memctl("ingest", str(notes)).code == 0
    assert live() == {"code.md": "The door code is 4711."}


def test_the_same_path_in_another_namespace_is_another_document(memctl: Run, notes: Path) -> None:
    memctl("ingest", str(notes), "--namespace", "ann")
    (notes / "code.md").write_text("The door code is 1234.\n")
    report = memctl("ingest", str(notes), "--namespace", "bob", "-o", "json").json
    assert report["superseded"] == 0
    assert len(memctl("document", "list").rows) == 2


def test_a_file_that_goes_by_a_name_of_its_own_is_followed_too(memctl: Run, notes: Path) -> None:
    for code in (4711, 1234):
        (notes / "code.md").write_text(f"The door code is {code}.\n")
        memctl("ingest", str(notes / "code.md"), "--source", "codes")
    (row,) = memctl("document", "list").rows
    assert row["source"] == "codes"


def test_two_files_under_one_name_of_their_own_stay_two(memctl: Run, notes: Path) -> None:
    (notes / "tea.md").write_text("Ann drinks tea.\n")
    memctl("ingest", str(notes), "--source", "minutes")
    memctl("ingest", str(notes / "tea.md"), "--source", "minutes")
    assert len(memctl("document", "list").rows) == 2


def test_a_copy_outlives_its_original(memctl: Run, notes: Path, live: Live) -> None:
    shutil.copy(notes / "code.md", notes / "copy.md")
    memctl("ingest", str(notes))
    (notes / "code.md").write_text("The door code is 1234.\n")
    memctl("ingest", str(notes / "code.md"))
    expected = {"code.md": "The door code is 1234.", "copy.md": "The door code is 4711."}
    assert live() == expected
    (notes / "copy.md").unlink()
    memctl("ingest", "--sync", str(notes))
    assert live() == {"code.md": "The door code is 1234."}


def test_a_log_that_is_rotated_loses_nothing(memctl: Run, notes: Path, live: Live) -> None:
    for day in ("Monday", "Tuesday", "Wednesday"):
        for old, new in (("log.1", "log.2"), ("log", "log.1")):
            if (notes / old).exists():
                (notes / old).rename(notes / new)
        (notes / "log").write_text(f"Ann came on {day}.\n")
        memctl("ingest", str(notes))
    assert live() == {
        "code.md": "The door code is 4711.",
        "log": "Ann came on Wednesday.",
        "log.1": "Ann came on Tuesday.",
        "log.2": "Ann came on Monday.",
    }


def test_files_that_change_places_keep_both_contents(memctl: Run, notes: Path, live: Live) -> None:
    (notes / "tea.md").write_text("Ann drinks tea.\n")
    memctl("ingest", str(notes))
    (notes / "code.md").rename(notes / "x")
    (notes / "tea.md").rename(notes / "code.md")
    (notes / "x").rename(notes / "tea.md")
    memctl("ingest", str(notes))
    assert live() == {"code.md": "Ann drinks tea.", "tea.md": "The door code is 4711."}


def test_a_file_that_becomes_a_copy_of_another_ends_what_it_was(
    memctl: Run, notes: Path, live: Live
) -> None:
    (notes / "tea.md").write_text("Ann drinks tea.\n")
    memctl("ingest", str(notes))
    shutil.copy(notes / "tea.md", notes / "code.md")
    report = memctl("ingest", str(notes), "-o", "json").json
    assert (report["superseded"], report["skipped"]) == (1, 1)
    assert live() == {"tea.md": "Ann drinks tea."}


def test_records_whose_source_is_a_path_are_not_that_file(memctl: Run, notes: Path) -> None:
    source = str(notes / "code.md")
    lines = "".join(json.dumps({"text": f"Tea no. {n}.", "source": source}) + "\n" for n in "12")
    memctl("ingest", "--jsonl", "-", stdin=lines)
    memctl("ingest", "--sync", str(notes))
    (notes / "code.md").unlink()
    assert memctl("ingest", "--sync", str(notes), "-o", "json").json["gone"] == 1
    assert len(memctl("document", "list").rows) == 2


def test_what_an_inbox_took_stays_when_its_copy_elsewhere_changes(
    memctl: Run, notes: Path, tmp_path: Path
) -> None:
    memctl("kb", "create", "default")
    inbox = tmp_path / "home/kb/default/inbox"
    shutil.copy(notes / "code.md", inbox)
    memctl("watch", "--once", "-k", "default")
    memctl("ingest", str(notes))
    (notes / "code.md").write_text("The door code is 1234.\n")
    memctl("ingest", str(notes))
    assert memctl("ingest", "--sync", str(inbox), "-o", "json").json["gone"] == 0
    assert len(memctl("document", "list").rows) == 2


def test_sync_ends_what_is_gone_and_says_so(memctl: Run, notes: Path, live: Live) -> None:
    (notes / "tea.md").write_text("Ann drinks tea.\n")
    (notes.parent / "notes2").mkdir()
    (notes.parent / "notes2" / "far.md").write_text("Bob sails to Lisbon.\n")
    memctl("ingest", str(notes), str(notes.parent / "notes2"))
    shutil.rmtree(notes.parent / "notes2")
    (notes / "tea.md").unlink()
    (notes / "code.md").rename(notes / "door.md")
    tried = memctl("ingest", "--sync", str(notes), "--dry-run")
    assert tried.rows[0]["gone"] == 1
    assert tried.err == f"would end: {notes / 'tea.md'} is gone\n"
    assert len(live()) == 3
    done = memctl("ingest", "--sync", str(notes))
    assert done.code == 0
    assert done.rows[0]["gone"] == 1
    assert done.err == f"ended: {notes / 'tea.md'} is gone\n"
    assert live() == {"door.md": "The door code is 4711.", "far.md": "Bob sails to Lisbon."}
    assert memctl("ingest", "--sync", str(notes)).rows[0]["gone"] == 0


def test_sync_ends_nothing_in_a_folder_that_it_may_not_look_into(
    memctl: Run, notes: Path, live: Live
) -> None:
    (notes / "private").mkdir()
    (notes / "private" / "tea.md").write_text("Ann drinks tea.\n")
    memctl("ingest", str(notes))
    with permissions_that_hold():
        (notes / "private").chmod(0)
        done = memctl("ingest", "--sync", str(notes))
        (notes / "private").chmod(0o700)
    assert done.code == 3
    assert done.rows[0]["gone"] == 0
    assert len(live()) == 2


NOTE = """---
date: 2025-01-10
---
# Contacts

Ann Miller's phone number is {}.
The gate code is 4711.

| item | price |
|---|---|
| rope | {} |
"""


def test_what_an_edit_changed_is_of_when_it_was_made_and_the_rest_of_its_day(
    memctl: Run, notes: Path
) -> None:
    note = notes / "contacts.md"

    def edited(phone: str, price: str, day: str) -> dict[str, str]:
        """Write the note, and return the days of its passages by their first words."""
        note.write_text(NOTE.format(phone, price))
        moment = datetime.fromisoformat(f"{day}T12:00Z").timestamp()
        os.utime(note, (moment, moment))
        assert memctl("ingest", str(notes)).code == 0
        found = memctl("memory", "list", "--level", "evidence", "-o", "json").json
        return {
            text.replace("# Contacts\n\n", "")[:8]: row["created_at"][:10]
            for row in found
            if row["title"] == "Contacts"
            for text in row["text"].split("\n")
        }

    edited("555-0111", "3", "2025-01-12")
    (notes / "call.md").write_text(
        "---\ndate: 2025-03-01\n---\nAnn Miller's phone number is 555-0222. The gate code is 9999."
    )
    first = edited("555-0333", "3", "2025-06-01")
    assert (first["Ann Mill"], first["The gate"]) == ("2025-06-01", "2025-01-10")
    assert first["| rope |"] == "2025-01-10"
    later = edited("555-0333", "4", "2025-07-01")
    assert (later["Ann Mill"], later["The gate"]) == ("2025-06-01", "2025-01-10")
    assert later["| rope |"] == "2025-07-01"
    (again,) = {
        row["id"] for row in memctl("document", "list", "-o", "json").json
        if row["title"] == "Contacts" and row["status"] == "indexed"
    }  # fmt: skip
    assert memctl("document", "reprocess", again).code == 0
    for question, said in (("Ann Miller's phone number", "555-0333"), ("the gate code", "9999")):
        answer = memctl("query", f"What is {question}?", "-o", "json").json["answer"]
        assert answer["text"].partition(" Earlier")[0].count(said) == 1, answer


def test_an_edited_row_leaves_the_others_of_a_table_of_their_day(memctl: Run, notes: Path) -> None:
    note = notes / "prices.md"
    table = "# Prices of 4 May 2019\n\n| item | price |\n|---|---|\n| saw | {} |\n| drill | {} |\n"

    def edited(saw: str, drill: str, day: str) -> str:
        """Write the table, and return the day of its passage."""
        note.write_text(table.format(saw, drill))
        moment = datetime.fromisoformat(f"{day}T12:00Z").timestamp()
        os.utime(note, (moment, moment))
        assert memctl("ingest", str(notes)).code == 0
        found = memctl("memory", "list", "--level", "evidence", "-o", "json").json
        (own,) = [row for row in found if "| saw |" in row["text"]]
        return str(own["created_at"][:10])

    assert edited("19 EUR", "99 EUR", "2025-06-01") == "2019-05-04"
    assert edited("19 EUR", "89 EUR", "2026-06-01") == "2019-05-04"
    assert edited("17 EUR", "85 EUR", "2026-07-01") == "2026-07-01"


def test_an_edit_is_not_of_the_future_nor_of_before_the_day_of_its_text(
    memctl: Run, notes: Path
) -> None:
    note = notes / "contacts.md"
    now = datetime.now(UTC).date().isoformat()
    for year, phone, expected in ((2999, "1", now), (1999, "2", "2025-01-10")):
        note.write_text(NOTE.format("0", "3"))
        memctl("ingest", str(notes))
        note.write_text(NOTE.format(phone, "3"))
        os.utime(note, (datetime(year, 1, 1, tzinfo=UTC).timestamp(),) * 2)
        assert memctl("ingest", str(notes)).code == 0
        rows = memctl("memory", "list", "--level", "evidence", "-o", "json").json
        (day,) = {row["created_at"][:10] for row in rows if f"number is {phone}." in row["text"]}
        assert day == expected


@pytest.mark.parametrize("path", ["code.md", "nowhere", "-"])
def test_sync_takes_folders_alone(memctl: Run, notes: Path, path: str) -> None:
    place = path if path == "-" else str(notes / path)
    done = memctl("ingest", "--sync", place)
    assert done.code == 2
    assert "--sync takes folders" in done.err


def test_killed_at_any_step_one_version_holds(
    memctl: Run, notes: Path, live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (notes / "tea.md").write_text("Ann drinks tea.\n")
    memctl("ingest", str(notes))
    (notes / "code.md").write_text("The door code is 1234.\n")
    (notes / "tea.md").unlink()
    images = images_of(tmp_path / "home", tmp_path / "images", "ingest", "--sync", str(notes))
    assert len(images) > 10
    found = []
    for image in images:
        monkeypatch.setenv("MEMCTL_HOME", str(image.home))
        found.append(live())
    codes = [each["code.md"] for each in found]
    assert codes == sorted(codes, reverse=True)
    assert set(codes) == {"The door code is 4711.", "The door code is 1234."}
    assert all("1234" in each["code.md"] for each in found if "tea.md" not in each)
    assert "tea.md" in found[0]
    memctl("ingest", "--sync", str(notes))
    assert live() == {"code.md": "The door code is 1234."}
