"""Calendars by event and address books by contact, as programs really write them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from memctl.readers import detect_media_type, read
from memctl.records import SourceText

ZONE = "BEGIN:VTIMEZONE\nTZID:Europe/Berlin\nBEGIN:STANDARD\nDTSTART:19961027T030000\nEND:STANDARD\nEND:VTIMEZONE\n"  # fmt: skip # noqa: E501


def _calendar(tmp_path: Path, *events: str) -> list[SourceText]:
    path = tmp_path / "x.ics"
    inner = "".join(f"BEGIN:VEVENT\n{event}END:VEVENT\n" for event in events)
    lines = f"BEGIN:VCALENDAR\nVERSION:2.0\n{ZONE}{inner}END:VCALENDAR\n"
    path.write_bytes(lines.replace("\n", "\r\n").encode())
    return list(read(path))


def _contacts(tmp_path: Path, content: str | bytes) -> list[SourceText]:
    path = tmp_path / "x.vcf"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read(path))


FULL = """\
UID:crane-1@x.org
DTSTAMP:20260501T000000Z
DTSTART;TZID=Europe/Berlin:20260603T100000
DTEND;TZID=Europe/Berlin:20260603T113000
SUMMARY:Inspection of the crane
LOCATION:Harbour Street 5\\, Hamburg
ORGANIZER;CN=Ann Lee:mailto:ann@x.org
ATTENDEE;CN="Ray, Bob";PARTSTAT=ACCEPTED:mailto:bob@x.org
ATTENDEE;PARTSTAT=NEEDS-ACTION:MAILTO:cy@x.org
CATEGORIES:work,harbour
STATUS:CONFIRMED
DESCRIPTION:Bring the load table.\\n\\nThe inspector is called D
 r. Voss; he is strict.
BEGIN:VALARM
ACTION:DISPLAY
DESCRIPTION:Reminder
TRIGGER:-PT15M
END:VALARM
"""


def test_an_event_says_when_where_and_with_whom(tmp_path: Path) -> None:
    (event,) = _calendar(tmp_path, FULL)
    assert event.title == "Inspection of the crane"
    assert event.authors == ("Ann Lee",)
    assert event.created_at == datetime(2026, 6, 3, 8, tzinfo=UTC)
    assert event.tags == ("work", "harbour")
    assert event.unit
    assert event.unit.key == "crane-1@x.org"
    assert event.text.startswith(
        "Inspection of the crane is on Wednesday, 3 June 2026, from 10:00 to 11:30 (Europe/Berlin),"
        " at Harbour Street 5, Hamburg.\n"
    )
    assert "crane: Ray, Bob (accepted) and cy@x.org (needs action).\n" in event.text
    assert "The inspector is called Dr. Voss; he is strict." in event.text
    assert "Reminder" not in event.text
    assert event.metadata["start"] == "2026-06-03T10:00:00+02:00"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            "DTSTART;VALUE=DATE:20260603\nDTEND;VALUE=DATE:20260604\n",
            "is on Wednesday, 3 June 2026.",
        ),
        (
            "DTSTART;VALUE=DATE:20260603\nDTEND;VALUE=DATE:20260606\n",
            "is from Wednesday, 3 June 2026 to Friday, 5 June 2026.",
        ),
        ("DTSTART:20260603T100000Z\nDURATION:PT45M\n", "3 June 2026, from 10:00 to 10:45 (UTC)."),
        ("DTSTART:20260603T100000\n", "on Wednesday, 3 June 2026, at 10:00."),
        ("DTSTART;TZID=Customized Zone 7:20260603T100000\n", "10:00 (Customized Zone 7)."),
    ],
)
def test_times_are_told_as_people_say_them(tmp_path: Path, lines: str, expected: str) -> None:
    (event,) = _calendar(tmp_path, f"UID:1\nSUMMARY:Tea\n{lines}")
    assert expected in event.text.split("\n")[0]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("RRULE:FREQ=DAILY", "every day"),
        (
            "RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TH",
            "every 2 weeks on Monday and Thursday",
        ),
        ("RRULE:FREQ=MONTHLY;BYDAY=2TU;COUNT=6", "every month on the second Tuesday, 6 times"),
        ("RRULE:FREQ=MONTHLY;BYDAY=FR;BYSETPOS=-1", "every month on the last Friday"),
        ("RRULE:FREQ=MONTHLY;BYMONTHDAY=1,-1", "every month on day 1 and the last day"),
        (
            "RRULE:FREQ=YEARLY;BYMONTH=5;UNTIL=20300501T000000Z",
            "every year in May, until Wednesday, 1 May 2030",
        ),
        ("RRULE:FREQ=HOURLY;BYHOUR=9,10", "every hour (BYHOUR=9,10)"),
        (
            "RRULE:FREQ=WEEKLY\nEXDATE;VALUE=DATE:20260610,20260617",
            "every week; not on Wednesday, 10 June 2026 and Wednesday, 17 June 2026",
        ),
        ("RRULE:FREQ=FORTNIGHTLY", "FREQ=FORTNIGHTLY"),
    ],
)
def test_recurrence_is_said_in_words_and_never_expanded(
    tmp_path: Path, rule: str, expected: str
) -> None:
    start = "UID:1\nSUMMARY:Tea\nDTSTART;VALUE=DATE:20260603\n"
    (event,) = _calendar(tmp_path, f"{start}{rule}\n")
    assert f"Tea takes place {expected}.\n" in event.text


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            "DTSTART:20260603T100000\nLOCATION:Kiel\n",
            "Tea was cancelled; it was to be on Wednesday, 3 June 2026, at 10:00, at Kiel.",
        ),
        (
            "DUE;VALUE=DATE:20260603\nRRULE:FREQ=WEEKLY\n",
            "Tea was cancelled; it was due on Wednesday, 3 June 2026;"
            " it was to take place every week.",
        ),
        ("", "Tea was cancelled."),
    ],
)
def test_a_cancelled_event_says_so_in_the_sentence_with_its_day(
    tmp_path: Path, lines: str, expected: str
) -> None:
    (event,) = _calendar(tmp_path, f"UID:1\nSUMMARY:Tea\nSTATUS:CANCELLED\n{lines}")
    assert event.text.strip() == expected
    assert event.metadata["status"] == "cancelled"


def test_a_changed_occurrence_is_a_unit_of_its_own(tmp_path: Path) -> None:
    first = "UID:1\nSUMMARY:Tea\nDTSTART:20260603T100000Z\nRRULE:FREQ=DAILY\n"
    moved = "UID:1\nRECURRENCE-ID:20260605T100000Z\nSUMMARY:Tea\nDTSTART:20260605T120000Z\n"
    keys = [each.unit.key for each in _calendar(tmp_path, first, moved) if each.unit]
    assert keys == ["1", "1 20260605T100000Z"]


def test_a_broken_event_says_why_and_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.ics"
    path.write_text(
        "BEGIN:VCALENDAR\n"
        "BEGIN:VEVENT\nUID:1\nSUMMARY:One\nDTSTART:20261340T100000Z\nEND:VEVENT\n"
        "BEGIN:VEVENT\nUID:2\nSUMMARY:Two\nDTSTART:20260603\n"
        "BEGIN:VEVENT\nUID:3\nSUMMARY:Three\nDTSTART:20260603\nEND:VEVENT\n"
        "BEGIN:VTODO\nUID:4\nSUMMARY:Four\nDUE:20260604\nEND:VTODO\n"
        "BEGIN:VEVENT\nUID:5\nSUMMARY:Five\n"
    )
    texts = list(read(path))
    problems = {each.unit.key: each.unit.problem for each in texts if each.unit}
    assert problems == {
        "1": "event from line 2 on: its DTSTART '20261340T100000Z' is no date",
        "2": "event from line 7 on: its end is missing",
        "3": "",
        "4": "",
        "5": "event from line 21 on: its end is missing",
    }
    assert "Four is due on Thursday, 4 June 2026." in texts[3].text


# --- contacts -------------------------------------------------------------------------------------


def test_a_contact_of_version_3_is_told_line_by_line(tmp_path: Path) -> None:
    (ann,) = _contacts(
        tmp_path,
        "BEGIN:VCARD\nVERSION:3.0\nUID:u1\nFN:Dr. Ann Lee\nN:Lee;Ann;;Dr.;\n"
        "ORG:Acme Inc.;Buying\nTITLE:Head of Buying\nTEL;TYPE=CELL,VOICE:+49 40 123\n"
        "EMAIL;TYPE=INTERNET;TYPE=WORK:ann@x.org\nADR;TYPE=HOME:;;Harbour St 5;Hamburg;;20457;DE\n"
        "item1.URL:https://x.org\nitem1.X-ABLabel:_$!<HomePage>!$_\nBDAY:19800512\n"
        "CATEGORIES:friends\nREV:2026-05-01T10:00:00Z\nNOTE:Likes tea\\, hates\n  coffee.\n"
        "PHOTO;ENCODING=b;TYPE=JPEG:/9j/4AAQ\n abc\nEND:VCARD\n",
    )
    assert ann.title == "Dr. Ann Lee"
    assert ann.unit
    assert ann.unit.key == "u1"
    assert ann.tags == ("friends",)
    assert ann.created_at == datetime(2026, 5, 1, 10, tzinfo=UTC)
    for line in (
        "Dr. Ann Lee is with Acme Inc., Buying.",
        "Job title of Dr. Ann Lee: Head of Buying",
        "Phone number of Dr. Ann Lee (mobile): +49 40 123",
        "E-mail address of Dr. Ann Lee (work): ann@x.org",
        "Address of Dr. Ann Lee (home): Harbour St 5, Hamburg, 20457, DE",
        "Website of Dr. Ann Lee (homepage): https://x.org",
        "Birthday of Dr. Ann Lee: 1980-05-12",
        "Likes tea, hates coffee.",
    ):
        assert f"{line}\n" in ann.text
    assert "9j" not in ann.text


def test_version_2_1_has_quoted_printable_in_its_own_encoding(tmp_path: Path) -> None:
    (lee,) = _contacts(
        tmp_path,
        b"BEGIN:VCARD\r\nVERSION:2.1\r\n"
        b"N;CHARSET=ISO-8859-1;ENCODING=QUOTED-PRINTABLE:L=E9e;J=FCrgen;;;\r\n"
        b"TEL;HOME;PREF:040 123\r\n"
        b"NOTE;ENCODING=QUOTED-PRINTABLE;CHARSET=UTF-8:Spricht Franz=C3=B6sisch =\r\n"
        b"und D=C3=A4nisch.=0D=0ATrinkt Tee.\r\nEND:VCARD\r\n",
    )
    assert lee.title == "Jürgen Lée"
    assert "Phone number of Jürgen Lée (home): 040 123\n" in lee.text
    assert "Spricht Französisch und Dänisch.\nTrinkt Tee." in lee.text


def test_version_4_has_uris_and_dates_without_a_year(tmp_path: Path) -> None:
    (bob,) = _contacts(
        tmp_path,
        "BEGIN:VCARD\nVERSION:4.0\nFN:Bob Ray\nTEL;VALUE=uri;TYPE=\"voice,work\":tel:+1-555-0100\n"
        "BDAY:--0203\nRELATED;TYPE=spouse;VALUE=text:Ann Lee\nEND:VCARD\n",
    )  # fmt: skip
    assert "Phone number of Bob Ray (work): +1-555-0100\n" in bob.text
    assert "Birthday of Bob Ray: 02-03\n" in bob.text
    assert "Related of Bob Ray (spouse): Ann Lee\n" in bob.text
    assert bob.unit
    assert bob.unit.key == "Bob Ray"


def test_a_broken_contact_says_why_and_the_others_are_read(tmp_path: Path) -> None:
    texts = _contacts(
        tmp_path,
        "BEGIN:VCARD\nFN:Ann\nBEGIN:VCARD\nFN:Bob\nEND:VCARD\nBEGIN:VCARD\nNOTE:x\nEND:VCARD\n",
    )
    assert [each.unit.problem for each in texts if each.unit] == [
        "contact from line 1 on: its end is missing",
        "",
        "contact from line 6 on: it has no name",
    ]


def test_calendars_and_contacts_are_known_by_their_first_line(tmp_path: Path) -> None:
    for opening, kind in (("VCALENDAR", "text/calendar"), ("VCARD", "text/vcard")):
        path = tmp_path / "export.txt"
        path.write_text(f"BEGIN:{opening}\nVERSION:2.0\nEND:{opening}\n")
        assert detect_media_type(path) == kind
