"""Files of many units: each unit is a document, remembered, changed and forgotten by itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from watched import Place, new_place

from .conftest import Run

FIRST = """\
From ann@x.org Fri May  1 10:00:00 2026
From: Ann Lee <ann@x.org>
To: Bob Ray <bob@x.org>
Subject: Crane
Date: Fri, 01 May 2026 10:00:00 +0200
Message-ID: <1@x.org>

We decided to buy the yellow crane from Demag.

"""
SECOND = """\
From bob@x.org Fri May  1 11:00:00 2026
From: Bob Ray <bob@x.org>
To: Ann Lee <ann@x.org>
Subject: Budget
Date: Fri, 01 May 2026 11:00:00 +0200
Message-ID: <2@x.org>

The budget of the workshop is 90,000 euros.

"""
THIRD = """\
From cy@x.org Sun May  3 11:00:00 2026
From: Cy Orr <cy@x.org>
Subject: Lunch
Date: Sun, 03 May 2026 11:00:00 +0200
Message-ID: <3@x.org>

Lunch is at noon on Thursday.

"""
BROKEN = "From x@x.org Sat May  2 11:00:00 2026\nno headers here\n\n"


@pytest.fixture
def box(tmp_path: Path) -> Path:
    path = tmp_path / "mail" / "box.mbox"
    path.parent.mkdir()
    path.write_text(FIRST + SECOND)
    return path


def _units(memctl: Run) -> dict[str, dict[str, str]]:
    """The live documents by the keys of the units that they are; that of the file by its name."""
    rows = [row for row in memctl("document", "list").rows if row["status"] == "indexed"]
    found = {row.get("unit") or row["source"].rpartition("/")[2]: row for row in rows}
    assert len(found) == len(rows)
    return found


def test_each_unit_is_a_document_with_its_own_author_date_and_title(memctl: Run, box: Path) -> None:
    report = memctl("ingest", str(box), "-o", "json").json
    assert (report["ingested"], report["failed"]) == (3, 0)
    units = _units(memctl)
    assert set(units) == {"box.mbox", "1@x.org", "2@x.org"}
    assert units["1@x.org"]["source"] == str(box)
    assert units["1@x.org"]["authors"] == ["Ann Lee"]
    assert units["1@x.org"]["created_at"] == "2026-05-01T08:00:00Z"
    assert units["2@x.org"]["title"] == "Budget"
    assert units["box.mbox"]["summary"] == "box.mbox holds 2 messages."
    answer = memctl("query", "what is the budget of the workshop?", "-o", "json").json["answer"]
    assert "90,000 euros" in answer["text"]
    assert answer["citations"][0]["unit"] == "2@x.org"


def test_a_file_that_grew_adds_what_is_new_and_supersedes_what_changed(
    memctl: Run, box: Path
) -> None:
    memctl("ingest", str(box))
    before = _units(memctl)
    assert memctl("ingest", str(box), "-o", "json").json["skipped"] == 1
    box.write_text(FIRST + SECOND.replace("90,000", "95,000") + THIRD)
    report = memctl("ingest", str(box), "-o", "json").json
    # The message that changed and the file itself; the first message is known.
    assert (report["ingested"], report["superseded"], report["skipped"]) == (3, 2, 1)
    after = _units(memctl)
    assert set(after) == {"box.mbox", "1@x.org", "2@x.org", "3@x.org"}
    assert after["1@x.org"]["id"] == before["1@x.org"]["id"]
    assert after["2@x.org"]["id"] != before["2@x.org"]["id"]
    hits = memctl("query", "what is the budget of the workshop?", "-o", "json").json["hits"]
    assert "90,000" not in json.dumps(hits)


def test_a_unit_that_the_file_has_no_more_ends(memctl: Run, box: Path) -> None:
    memctl("ingest", str(box))
    box.write_text(SECOND)
    memctl("ingest", str(box))
    assert set(_units(memctl)) == {"box.mbox", "2@x.org"}


def test_a_broken_unit_is_told_with_its_reason_and_the_rest_goes_in(memctl: Run, box: Path) -> None:
    box.write_text(FIRST + BROKEN + SECOND)
    done = memctl("ingest", str(box))
    assert done.code == 3
    assert "message 2, from line 10 on: it does not begin with the headers" in done.err
    assert {"1@x.org", "2@x.org"} <= set(_units(memctl))
    report = memctl("ingest", "--dry-run", str(box), "--namespace", "other", "-o", "json").json
    (failed,) = [each for each in report["outcomes"] if each["outcome"] == "failed"]
    assert failed["part_of"] == str(box)


def test_the_same_unit_in_two_files_is_one_document_until_both_are_gone(
    memctl: Run, box: Path
) -> None:
    other = box.with_name("other.mbox")
    other.write_text(SECOND + THIRD)
    memctl("ingest", str(box.parent))
    assert len(_units(memctl)) == 5
    box.unlink()
    memctl("ingest", "--sync", str(box.parent))
    assert set(_units(memctl)) == {"other.mbox", "2@x.org", "3@x.org"}


def test_a_file_that_was_moved_takes_its_units_with_it(memctl: Run, box: Path) -> None:
    memctl("ingest", str(box))
    before = _units(memctl)
    moved = box.rename(box.with_name("moved.mbox"))
    memctl("ingest", "--sync", str(box.parent))
    after = _units(memctl)
    assert set(after) == {"moved.mbox", "1@x.org", "2@x.org"}
    assert after["1@x.org"]["source"] == str(moved)
    assert after["1@x.org"]["id"] == before["1@x.org"]["id"]


def test_a_dry_run_says_of_each_unit_what_would_be_done(memctl: Run, box: Path) -> None:
    memctl("ingest", str(box))
    box.write_text(FIRST + SECOND.replace("90,000", "95,000") + THIRD)
    report = memctl("ingest", "--dry-run", str(box), "-o", "json").json
    assert (report["ingested"], report["superseded"], report["skipped"]) == (3, 2, 1)


def test_forgetting_one_unit_leaves_the_others(memctl: Run, box: Path) -> None:
    memctl("ingest", str(box))
    unit = _units(memctl)["1@x.org"]["id"]
    done = memctl("forget", "--document", unit, "--yes", "-o", "json")
    assert done.code == 0, done.err
    assert done.json["yours"] == [str(box)]
    assert set(_units(memctl)) == {"box.mbox", "2@x.org"}
    assert memctl("document", "reprocess", _units(memctl)["box.mbox"]["id"]).code == 0
    assert set(_units(memctl)) == {"box.mbox", "2@x.org"}


def test_forgetting_the_file_forgets_its_units(memctl: Run, box: Path) -> None:
    memctl("ingest", str(box))
    file = _units(memctl)["box.mbox"]["id"]
    assert memctl("forget", "--document", file, "--yes").code == 0
    assert _units(memctl) == {}


def test_units_are_read_again_from_the_text_that_is_kept(memctl: Run, box: Path) -> None:
    memctl("ingest", str(box))
    before = _units(memctl)
    done = memctl("document", "reprocess", *(row["id"] for row in before.values()))
    assert done.code == 0, done.err
    assert {key: row["id"] for key, row in _units(memctl).items()} == {
        key: row["id"] for key, row in before.items()
    }
    assert memctl("doctor").code == 0


EVENT = """\
BEGIN:VEVENT
UID:{}
SUMMARY:{}
DTSTART;TZID=Europe/Berlin:2026060{}T100000
DTEND;TZID=Europe/Berlin:2026060{}T110000
END:VEVENT
"""


def test_a_calendar_and_an_address_book_are_known_by_event_and_contact(
    memctl: Run, tmp_path: Path
) -> None:
    calendar, contacts = tmp_path / "work.ics", tmp_path / "all.vcf"
    events = EVENT.format("e1", "Dentist", 3, 3) + EVENT.format("e2", "Harbour tour", 4, 4)
    calendar.write_text(f"BEGIN:VCALENDAR\n{events}END:VCALENDAR\n")
    contacts.write_text(
        "BEGIN:VCARD\nFN:Ann Lee\nTEL:+49 40 123\nEND:VCARD\n"
        "BEGIN:VCARD\nFN:Bob Ray\nTEL:+1 555 0100\nEND:VCARD\n"
    )
    assert memctl("ingest", str(calendar), str(contacts)).code == 0
    found = _units(memctl)
    assert set(found) == {"work.ics", "e1", "e2", "all.vcf", "Ann Lee", "Bob Ray"}
    assert found["e2"]["created_at"] == "2026-06-04T08:00:00Z"
    calendar.write_text(calendar.read_text().replace("20260604T", "20260605T"))
    report = memctl("ingest", str(calendar), "-o", "json").json
    assert (report["superseded"], report["skipped"]) == (2, 1)
    answer = memctl("query", "when is the harbour tour?", "-o", "json").json["answer"]
    assert "5 June 2026" in answer["text"]
    ann = _units(memctl)["Ann Lee"]["id"]
    assert memctl("forget", "--document", ann, "--yes").code == 0
    assert {"Bob Ray", "all.vcf"} <= set(_units(memctl))
    assert "Ann Lee" not in memctl("query", "phone number of Ann Lee", "-o", "json").out.replace(
        "phone number of Ann Lee", ""
    )


def test_a_file_of_units_has_the_names_of_those_that_are_not_forgotten(
    memctl: Run, tmp_path: Path
) -> None:
    contacts = tmp_path / "all.vcf"
    contacts.write_text(
        "BEGIN:VCARD\nFN:Ann Lee\nORG:Harbour Bank\nEND:VCARD\n"
        "BEGIN:VCARD\nFN:Bob Ray\nORG:Harbour Bank\nEND:VCARD\n"
    )
    assert memctl("ingest", str(contacts)).code == 0
    units = _units(memctl)
    assert units["all.vcf"]["entities"][0] == "Harbour Bank"
    assert set(units["all.vcf"]["entities"]) == {"Harbour Bank", "Ann Lee", "Bob Ray"}
    shown = memctl("document", "show", units["all.vcf"]["id"], "-o", "json").json
    assert shown["document"]["entities"] == units["all.vcf"]["entities"]
    assert memctl("forget", "--document", units["Ann Lee"]["id"], "--yes").code == 0
    assert set(_units(memctl)["all.vcf"]["entities"]) == {"Harbour Bank", "Bob Ray"}


def test_a_file_of_units_is_found_by_the_names_that_they_have(memctl: Run, tmp_path: Path) -> None:
    ann, bob = (f"BEGIN:VCARD\nFN:{name}\nEND:VCARD\n" for name in ("Ann Lee", "Bob Ray"))
    for name, cards in (("all.vcf", ann + bob), ("ann.vcf", ann), ("bob.vcf", bob)):
        (tmp_path / name).write_text(cards)
        assert memctl("ingest", name).code == 0
    found = memctl("document", "list", "--entity", "Ann Lee", "-o", "json").json
    assert {row["title"] for row in found} == {"Ann Lee", "all.vcf", "ann.vcf"}
    names = {row["title"]: row["entities"] for row in found}
    assert names["ann.vcf"] == ["Ann Lee"]
    assert set(names["all.vcf"]) == {"Ann Lee", "Bob Ray"}
    assert memctl("document", "list", "--entity", "Cy Fox", "-o", "json").json == []


# --- the watcher ----------------------------------------------------------------------------------


def _live(place: Place) -> set[str]:
    rows = place.rows("documents", "source", "status")
    return {row["source"].rpartition("/")[2] for row in rows if row["status"] == "indexed"}


def test_the_watcher_moves_a_file_of_units_once_and_tells_of_the_broken_one(
    tmp_path: Path,
) -> None:
    place = new_place(tmp_path)
    place.drop("box.mbox", FIRST + BROKEN + SECOND)
    events = place.drain()
    assert [e.kind for e in events if e.kind in ("ingested", "failed")] == ["ingested", "failed"]
    assert [p.name for p in place.layout.processed.rglob("*.mbox")] == ["box.mbox"]
    assert _live(place) == {"box.mbox", "1@x.org", "2@x.org"}
    # Another export under the same name has one message that changed.
    place.drop("box.mbox", FIRST + SECOND.replace("90,000", "95,000"))
    place.drain()
    rows = place.rows("documents", "title", "text", "status")
    texts = [row["text"] for row in rows if (row["title"], row["status"]) == ("Budget", "indexed")]
    assert len(texts) == 1
    assert "95,000" in texts[0]


def test_a_file_none_of_whose_units_can_be_read_goes_to_failed(tmp_path: Path) -> None:
    place = new_place(tmp_path)
    place.drop("box.mbox", BROKEN)
    place.drain()
    assert place.tree(place.layout.failed) == ["box.mbox", "box.mbox.reason.json"]
    assert "headers" in (place.layout.failed / "box.mbox.reason.json").read_text()
    assert _live(place) == set()


def test_a_kept_file_of_units_takes_them_along_when_it_moves_and_goes(tmp_path: Path) -> None:
    place = new_place(tmp_path)
    vault = tmp_path / "vault"
    vault.mkdir()
    place.keep(vault)
    (vault / "box.mbox").write_text(FIRST + SECOND)
    place.drain()
    (vault / "box.mbox").rename(vault / "moved.mbox")
    place.drain()
    assert _live(place) == {"moved.mbox", "1@x.org", "2@x.org"}
    (vault / "moved.mbox").write_text(SECOND + THIRD)
    place.drain()
    assert _live(place) == {"moved.mbox", "2@x.org", "3@x.org"}
    (vault / "moved.mbox").unlink()
    place.drain()
    assert _live(place) == set()


def test_forgetting_a_unit_removes_the_copy_of_its_file(tmp_path: Path, memctl: Run) -> None:
    place = new_place(tmp_path)
    place.drop("box.mbox", FIRST + SECOND)
    place.drain()
    kb = place.layout.name
    (unit,) = [row["id"] for row in memctl("document", "list", "-k", kb).rows
               if row["title"] == "Crane"]  # fmt: skip
    assert memctl("forget", "--document", unit, "--yes", "-k", kb).code == 0
    assert list(place.layout.processed.rglob("*.mbox")) == []
    assert _live(place) == {"box.mbox", "2@x.org"}
