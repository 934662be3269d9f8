"""Mail boxes and messages: what each says itself, apart from what it quotes and is signed with."""

from __future__ import annotations

from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path

import pytest

from memctl.ingest.chunking import ChunkSizes, chunk
from memctl.readers import detect_media_type, kind_of_units, read
from memctl.records import SourceText


def _text(tmp_path: Path, content: str | bytes, name: str = "x.eml") -> SourceText:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    (text,) = read(path)
    return text


def _said(text: SourceText) -> str:
    """What stands in passages below the headers."""
    passages = chunk(text, ChunkSizes())
    return "\n".join(text.text[p.start : p.end] for p in passages if p.kind != "properties")


HEAD = (
    "From: Ann Lee <ann@x.org>\nTo: Bob <b@x.org>\nSubject: Re: crane\n"
    "Date: Fri, 1 May 2026 10:00:00 +0000\n\n"
)

REPLIES = {
    "marked": "Yes, on Monday.\n\nOn Thu, 30 Apr 2026 at 9:00, Bob Ray <b@x.org> wrote:\n> Shall we"
    " sell the crane?\n> \n>> I hate cranes.\n",
    "marked in German": "Yes, on Monday.\n\nAm 30.04.2026 um 09:00 schrieb Bob Ray:\n>"
    " Shall we sell the crane?\n>> I hate cranes.\n",
    "introduced over two lines": "Yes, on Monday.\n\nOn Thursday, 30 April 2026, Bob Ray of Harbour"
    " Street\n<b@x.org> wrote:\n\n> Shall we sell the crane?\n> I hate cranes.\n",
    "quoted first": "Bob Ray wrote on 2026-04-30:\n> Shall we sell the crane?\n> I hate cranes.\n\n"
    "Yes, on Monday.\n",
    "as Outlook does": "Yes, on Monday.\n\n-----Original Message-----\nFrom: Bob Ray\nSent:"
    " Thursday, 9:00\nTo: Ann\nSubject: crane\n\nShall we sell the crane?\n\nI hate cranes.\n",
    "as Outlook does without a line": "Yes, on Monday.\n\nVon: Bob Ray <b@x.org>\nGesendet:"
    " Donnerstag\nAn: Ann Lee\n\nShall we sell the crane?\nI hate cranes.\n",
    "above a signature": "Yes, on Monday.\n\n-- \nAnn\nI hate cranes. Shall we sell the crane?\n",
    "above the footer of a list": "Yes, on Monday.\n\n" + "_" * 47 + "\nI hate cranes. Shall we"
    " sell the crane?\nhttps://lists.x.org/\n",
}  # fmt: skip


@pytest.mark.parametrize("body", REPLIES.values(), ids=REPLIES)
def test_what_is_quoted_or_signed_is_in_the_text_and_in_no_passage(
    tmp_path: Path, body: str
) -> None:
    text = _text(tmp_path, HEAD + body)
    assert "Shall we sell the crane?" in text.text
    assert "I hate cranes." in text.text
    assert _said(text).strip() == "Yes, on Monday."


@pytest.mark.parametrize("case", REPLIES)
def test_quotations_are_told_apart_from_signatures(tmp_path: Path, case: str) -> None:
    text = _text(tmp_path, HEAD + REPLIES[case])
    quoted = "".join(text.text[start:end] for start, end in text.quotations)
    assert ("Shall we sell the crane?" in quoted) == (not case.startswith("above"))
    assert "Yes, on Monday." not in quoted


def test_answers_between_quoted_lines_are_passages_without_them(tmp_path: Path) -> None:
    body = "> Which day?\n\nMonday.\n\n> And the price?\n\nAbout 90 euros.\n"
    said = _said(_text(tmp_path, HEAD + body))
    assert said.split() == ["Monday.", "About", "90", "euros."]


def test_a_web_body_says_nothing_of_what_its_program_marks_as_quoted(tmp_path: Path) -> None:
    message = EmailMessage()
    message["From"], message["Subject"] = "Ann <a@x.org>", "Re: crane"
    message.set_content(
        '<p>Yes, on Monday.</p><div class="gmail_quote"><div class="gmail_attr">On Thursday Bob'
        " wrote:</div><blockquote><p>Shall we sell the crane?</p></blockquote></div>"
        '<div class="gmail_signature">Ann Lee<br>Harbour Street 3, Lisbon</div>',
        subtype="html",
    )
    text = _text(tmp_path, bytes(message))
    assert "Shall we sell the crane?" in text.text
    ((start, end),) = text.quotations
    assert text.text[start:end].split("\n")[0] == "On Thursday Bob wrote:"
    assert "Lisbon" in text.text[end:]
    assert _said(text).strip() == "Yes, on Monday."


@pytest.mark.parametrize(
    "body",
    [
        "> Shall we sell the crane?\n",
        "---------- Forwarded message ---------\nFrom: Bob Ray <b@x.org>\nDate: Thu, 30 Apr 2026\n"
        "To: Ann\n\nShall we sell the crane?\n",
        "Here are 3 things:\n\nShall we sell the crane?\n\nFrom: the harbour\nTo: the sea\n",
    ],
)
def test_a_message_that_only_passes_on_says_what_it_passes_on(tmp_path: Path, body: str) -> None:
    assert "Shall we sell the crane?" in _said(_text(tmp_path, HEAD + body))


# --- boxes ----------------------------------------------------------------------------------------


def _message(
    number: int, body: str, separator: str = "From a@x.org Fri May  1 10:00:00 2026"
) -> str:
    return (
        f"{separator}\nFrom: Ann <a@x.org>\nSubject: Letter {number}\n"
        f"Message-ID: <{number}@x.org>\n"
        f"Date: Fri, {number} May 2026 10:00:00 +0000\n\n{body}\n\n"
    )


def test_a_box_gives_one_unit_for_each_message(tmp_path: Path) -> None:
    path = tmp_path / "box.mbox"
    path.write_text(
        _message(1, "One.\n>From the harbour.\nFrom here on it rains.")
        + _message(2, "Two.", separator="From - Fri May  1 10:00:00 2026")
        + _message(2, "Two again.")
        + _message(3, "Three.").replace("Message-ID: <3@x.org>\n", "")
    )
    texts = list(read(path))
    keys = [text.unit.key for text in texts if text.unit]
    assert keys[:3] == ["1@x.org", "2@x.org", "2@x.org#2"]
    assert keys[3].startswith("sha256-")
    assert [text.title for text in texts] == ["Letter 1", "Letter 2", "Letter 2", "Letter 3"]
    assert texts[3].created_at == datetime(2026, 5, 3, 10, tzinfo=UTC)
    assert "\nFrom the harbour.\nFrom here on it rains." in texts[0].text
    assert {text.media_type for text in texts} == {"message/rfc822"}


def test_a_box_without_an_extension_is_recognised_and_one_message_is_none(tmp_path: Path) -> None:
    box = tmp_path / "Inbox"
    box.write_text(_message(1, "One.") + _message(2, "Two."))
    assert detect_media_type(box) == "application/mbox"
    kind = kind_of_units(box, "Inbox")
    assert kind is not None
    assert kind.units == "messages"
    single = tmp_path / "x.eml"
    single.write_text(_message(1, "One."))
    assert kind_of_units(single, "x.eml") is None
    note = tmp_path / "note.txt"
    note.write_text("From here to eternity 1953\nwas a film.\n")
    assert detect_media_type(note) == "text/plain"


def test_a_message_that_cannot_be_read_says_why_and_the_next_one_is_read(tmp_path: Path) -> None:
    nested = "".join(
        f'Content-Type: multipart/mixed; boundary="b{n}"\n\n--b{n}\n' for n in range(1200)
    )
    path = tmp_path / "box.mbox"
    path.write_text(
        _message(1, "One.")
        + "From a@x.org Fri May  1 10:00:00 2026\nno header\n\n"
        + f"From a@x.org Fri May  1 10:00:00 2026\nFrom: a@x.org\n{nested}\n\n"
        + _message(2, "Two.")
    )
    units = [text.unit for text in read(path) if text.unit]
    assert [bool(unit.problem) for unit in units] == [False, True, True, False]
    assert "message 2, from line 9 on" in units[1].problem
    assert "nested too deeply" in units[2].problem


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_headers_of_raw_bytes_are_read_in_their_encoding(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.eml"
    mail = (
        "From: Jörg Jäger <j@x.org>\nSubject: Grüße aus Köln\nDate: Fri, 01 May 2026 10:00:00 +0000"
    )
    path.write_bytes(f"{mail}\n\nWe sell the crane.\n".encode(encoding))
    (text,) = read(path)
    assert (text.title, text.authors) == ("Grüße aus Köln", ("Jörg Jäger",))


@pytest.mark.parametrize(
    ("charset", "subject"),
    [
        ("windows-1251", "Счёт за ремонт крыши"),
        ("koi8-r", "Счёт за ремонт крыши"),
        ("iso-8859-7", "Λογαριασμός για τη στέγη"),
        ("iso-8859-2", "Účet za opravu střechy"),
    ],
)
def test_raw_headers_are_in_the_encoding_that_the_text_declares(
    tmp_path: Path, charset: str, subject: str
) -> None:
    head, body = f"Subject: {subject}\n", f"Content-Type: text/plain; charset={charset}\n\nYes.\n"
    kinds = [
        f"{head}{body}",
        f'{head}Content-Type: multipart/mixed; boundary="b"\n\n--b\n{body}\n--b--\n',
        f"Subject: Fwd\nContent-Type: multipart/mixed; boundary=b\n\n"
        f"--b\nContent-Type: text/plain; charset=cp437\n\nSee below.\n"
        f"--b\nContent-Type: message/rfc822\n\n{head}{body}\n--b--\n",
    ]
    for number, mail in enumerate(kinds):
        path = tmp_path / f"{number}.eml"
        path.write_bytes(f"From: Ann <a@x.org>\n{mail}".encode(charset))
        (text,) = read(path)
        assert f"Subject: {subject}\n" in text.text
        assert text.title == (subject if number < 2 else "Fwd")


def test_a_maildir_is_read_message_by_message(tmp_path: Path) -> None:
    path = tmp_path / "cur" / "1714557600.M1P2.host:2,S"
    path.parent.mkdir()
    path.write_text(HEAD + "Yes, on Monday.\n")
    assert detect_media_type(path) == "message/rfc822"
    (text,) = read(path)
    assert (text.title, text.authors) == ("Re: crane", ("Ann Lee",))
