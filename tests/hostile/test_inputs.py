"""Files made to do harm: each fails with a reason or is read, within bounds, and no other waits."""

from __future__ import annotations

import io
import os
import socket
import stat
import struct
import time
import wave
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import chdir, closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memctl.config import LimitSettings
from memctl.errors import UnreadableSource
from memctl.forget.leftover_scan import unpack
from memctl.ingest.discovery.sources import Source, from_paths
from memctl.ingest.source_reading import Unreadable, identify
from memctl.readers import Readers
from memctl.readers.detection import detect_media_type
from memctl.readers.pieces import PART_CHARS
from memctl.records import SourceText

if TYPE_CHECKING:
    from cli.conftest import Run

HARMLESS = b"The ferry to Texel leaves at nine."


MAX_MB, MAX_SECONDS = 400, 60
"""Memory and processor time for one file; none here needs a tenth of that time."""


@pytest.fixture(scope="module")
def readers() -> Iterator[Readers]:
    limits = LimitSettings(memory_mb=MAX_MB, processor_seconds=MAX_SECONDS, seconds=600)
    readers = Readers(limits)
    yield readers
    readers.close()


# --- what makes them -----------------------------------------------------------------------------


def pdf_of(content: bytes) -> bytes:
    """A PDF of one page whose drawing is ``content``, packed."""
    packed = zlib.compress(content, 9)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R"
        b" /Resources << /Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
        b" >> >> >>",
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n" % len(packed) + packed + b"\nendstream",
    ]
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, io.SEEK_END)
    places = []
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n" % number + body + b"\nendobj\n")
    start = out.tell()
    out.write(b"xref\n0 5\n0000000000 65535 f \n")
    out.writelines(b"%010d 00000 n \n" % place for place in places)
    out.write(b"trailer << /Size 5 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % start)
    return out.getvalue()


def zip_of(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def crowded_zip(count: int) -> bytes:
    """An archive of so many empty members, the first of which is Word's."""
    local, central = bytearray(), bytearray()
    for number in range(count):
        name = b"word/%08x" % number
        entry = struct.pack("<HHHHHIIIHH", 20, 0, 0, 0, 0, 0, 0, 0, len(name), 0)
        if not number:
            local += b"PK\x03\x04" + entry + name
        central += b"PK\x01\x02\x14\x00" + entry + struct.pack("<HHHII", 0, 0, 0, 0, 0) + name
    return bytes(local + central) + end_of_zip(count, len(central), len(local))


def end_of_zip(count: int, size: int, offset: int) -> bytes:
    most = min(count, 0xFFFF)
    return b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, most, most, size, offset, 0)


def with_end_in_end(archive: bytes) -> bytes:
    """An archive where the start of its end can be found a second time, within that end."""
    return archive[:-6] + b"PK\x05\x06" + archive[-2:]


def with_far_end(archive: bytes, *, apart: int = 0) -> bytes:
    """An archive whose end says that it lists nothing, and where another end is, which knows."""
    size, offset = struct.unpack("<II", archive[-10:-2])
    whole = archive[:-22]
    end = struct.pack("<QHHIIQQQQ", 44 + apart, 45, 45, 0, 0, size, size, size, offset)
    locator = struct.pack("<IQI", 0, len(whole), 1)
    further = b"PK\x06\x06" + end + bytes(apart) + b"PK\x06\x07" + locator
    return whole + further + end_of_zip(0, 0, 0)


def png_of(width: int, height: int) -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        sum_ = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", sum_)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    packed = zlib.compress(bytes(100_000))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")
    )


def endless_wav() -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(1)
        file.setframerate(1)
        file.writeframes(bytes(100))
    content = bytearray(out.getvalue())
    content[40:44] = struct.pack("<I", 1_000_000_000)  # what it claims to hold, in seconds
    return bytes(content)


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10 if n else "ha"}">' for n in range(10))
HOSTILE: dict[str, Callable[[], bytes]] = {
    "flate bomb.pdf": lambda: pdf_of(bytes(300_000_000)),
    "text bomb.pdf": lambda: pdf_of(b"BT /F 12 Tf (words and words) Tj ET " * 3_000_000),
    "pages without end.pdf": lambda: pdf_of(b"").replace(b"/Kids [3 0 R]", b"/Kids [2 0 R]"),
    "zip bomb.docx": lambda: zip_of({"word/document.xml": bytes(300_000_000)}),
    "zip bomb.pptx": lambda: zip_of({"ppt/presentation.xml": bytes(300_000_000)}),
    "zip bomb.xlsx": lambda: zip_of({"xl/workbook.xml": bytes(300_000_000)}),
    "crowded.docx": lambda: crowded_zip(1_000_000),
    "crowded, two ends.docx": lambda: with_end_in_end(crowded_zip(1_000_000)),
    "crowded, far end.docx": lambda: with_far_end(crowded_zip(1_000_000)),
    "crowded, farther end.docx": lambda: with_far_end(crowded_zip(1_000_000), apart=64),
    "many members.docx": lambda: crowded_zip(50_000),
    "crowded.zip": lambda: crowded_zip(1_000_000),
    "a zip.zip": lambda: zip_of({"../../../etc/passwd": b"root"}),
    "climbing.docx": lambda: zip_of({"word/../../../../tmp/out.xml": b"<a/>"}),
    "pixel bomb.png": lambda: png_of(100_000, 100_000),
    "many pixels.png": lambda: png_of(12_000, 12_000),
    "endless.wav": endless_wav,
    "deep.json": lambda: b"[" * 1_000_000 + b"]" * 1_000_000,
    "deep.jsonl": lambda: b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"\n",
    "deep.html": lambda: b"<div>" * 500_000 + b"deep",
    "deep table.html": lambda: b"<table><tr><td>" * 50_000 + b"deep",
    "deep.xml": lambda: b"<a>" * 500_000,
    "deep.yaml": lambda: b"[" * 100_000,
    "deep quotes.md": lambda: b">" * 100_000 + b" deep\n",
    "deep lists.md": lambda: b"".join(b" " * n + b"- x\n" for n in range(2_000)),
    "laughs.xml": lambda: f"<!DOCTYPE a [{LAUGHS}]><a>&l9;</a>".encode(),
    "laughs.yaml": lambda: "".join(
        f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9) if n else 'ha'}]\n" for n in range(10)
    ).encode(),
    "outside.xml": lambda: b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><a>&e;</a>',
    "wide.csv": lambda: b",".join(b"c%d" % n for n in range(1_000_000)) + b"\n1,2,3\n",
    "one cell.csv": lambda: b'a,b\n"' + b"x" * 5_000_000,
    "attributes.html": lambda: b"<p " + b" ".join(b"a%d=1" % n for n in range(300_000)) + b">text",
    "brackets.html": lambda: b"<" * 1_000_000,
    "brackets.md": lambda: b"[" * 100_000 + b"](" * 100_000,
    "parts.eml": lambda: b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(3_000)
    ),
    "paragraphs.eml": lambda: b"Subject: words\n\n" + b"Words.\n\n" * 300_000,
    "lines.ics": lambda: (
        b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20240512\nDESCRIPTION:Words\n"
        + b"that no program would leave like this\n" * 200_000
        + b"END:VEVENT\nEND:VCALENDAR\n"
    ),
    "quoted.vcf": lambda: (
        b"BEGIN:VCARD\nFN:Ann\nNOTE;ENCODING=QUOTED-PRINTABLE:Words=\n"
        + b"that are continued on the next line=\n" * 300_000
        + b".\nEND:VCARD\n"
    ),
    "year.eml": lambda: b"Date: Tue, 12 May 99999999999999999999 07:41 +0200\n\nWords.\n",
    "one line.txt": lambda: b"a" * 20_000_000,
    "one line.log": lambda: b"2024-01-01 " * 1_000_000,
    "one line.py": lambda: b"(" * 1_000_000,
    "stamps.srt": lambda: b"1\n00:00:00,000 --> 99999999999:99:99,999\nWords.\n" * 1_000,
}  # fmt: skip


REFUSED = {
    "flate bomb.pdf": "no page of it can be read",
    "text bomb.pdf": "no page of it can be read",
    "pages without end.pdf": "cyclic page references",
    "zip bomb.docx": "would unpack from",
    "zip bomb.pptx": "would unpack from",
    "zip bomb.xlsx": "would unpack from",
    "crowded.docx": "lists more members than any",
    "crowded, two ends.docx": "lists more members than any",
    "crowded, far end.docx": "lists more members than any",
    "crowded, farther end.docx": "lists more members than any",
    "many members.docx": "in 50,000 members",
    "crowded.zip": "lists more members than can be read",
    "climbing.docx": "is damaged or not a Word document",
    "pixel bomb.png": "10000000000 pixels",
    "many pixels.png": "12,000 × 12,000 pixels, too many to read",
    "deep.json": "nested deeper than 100 levels",
    "deep.jsonl": "nested deeper than 100 levels",
    "deep.xml": "nested deeper than 100 levels",
    "deep.yaml": "nested deeper than 100 levels",
    "laughs.xml": "defines entities of its own",
    "laughs.yaml": "aliases expand to too many values",
    "outside.xml": "defines entities of its own",
    "parts.eml": "parts nested too deeply",
    "stamps.srt": "holds no subtitles",
}
"""What is said of those that are refused, each by the cap that is there for it; others are read."""


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_made_to_do_harm_is_refused_or_read_within_its_bounds(
    name: str, tmp_path: Path, readers: Readers
) -> None:
    path = tmp_path / name
    path.write_bytes(HOSTILE[name]())
    began = time.process_time()
    texts, refusal = what_is_made_of(path, readers)
    assert time.process_time() - began < MAX_SECONDS, "this process reads some formats itself"
    assert all(len(text.text) <= PART_CHARS * 1.1 for text in texts)
    assert sum(len(text.text) for text in texts) <= 50_000_000
    if name in REFUSED:
        assert refusal is not None
        assert name in refusal.message
        assert REFUSED[name] in refusal.message
        assert refusal.hint
    else:
        assert refusal is None
        assert texts


TEXTS = {
    "a.txt": b"%s", "a.md": b"# %s\n\n%s", "a.rst": b"%s\n====\n",
    "a.adoc": b"== %s\n\n%s::\n  %s\n", "a.org": b"* %s\n:PROPERTIES:\n:END:\n%s\n",
    "a.py": b"x = '%s'\n",
    "a.log": b"2024-01-01 12:00:00 %s\n", "a.json": b'{"a": "%s"}', "a.jsonl": b'{"text": "%s"}\n',
    "a.yaml": b"a: '%s'\n", "a.csv": b"a,b\n%s,2\n", "a.tsv": b"a\tb\n%s\t2\n",
    "a.xml": b"<a>%s</a>", "a.html": b"<p>%s</p>", "a.eml": b"Subject: %s\n\n%s\n",
    "a.srt": b"1\n00:00:01,000 --> 00:00:02,000\n%s\n",
    "a.vtt": b"WEBVTT\n\n00:01.000 --> 00:02.000\n%s\n",
}  # fmt: skip
BROKEN = {
    "invalid UTF-8": b"caf\xc3 \xff\xfe\xfa \xed\xa0\x80 \xf4\x90\x80\x80 x",
    "controls": b"a\x01\x02 b\x1b[31m\x1b]0;title\x07 c\x7f \xc2\x9b31m d",
    "marks": "a \u202egnp.exe\u202c \u2066b\u2069 \u200f c \ufeff".encode(),
}


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("name", TEXTS)
def test_bytes_that_are_no_text_are_read_or_refused_in_every_text_format(
    name: str, what: str, tmp_path: Path, readers: Readers
) -> None:
    path = tmp_path / name
    path.write_bytes(TEXTS[name].replace(b"%s", BROKEN[what]) + b"\n")
    texts, refusal = what_is_made_of(path, readers)
    assert texts or refusal is not None
    for text in texts:
        text.text.encode()  # whatever is read can be stored
        assert all(0 <= s.start < s.end <= len(text.text) for s in text.segments)


def what_is_made_of(
    path: Path, readers: Readers
) -> tuple[list[SourceText], UnreadableSource | None]:
    """The texts of a file, or why it is refused; any other error is one of the test."""
    try:
        return list(readers.read(path)), None
    except UnreadableSource as error:
        return [], error


# --- what is no regular file ---------------------------------------------------------------------


@pytest.fixture
def special(tmp_path: Path) -> Iterator[Path]:
    """A folder with a link to a secret, a link to a device, a pipe that nobody writes, a socket."""
    folder = tmp_path / "drop"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("The door code is 4711.")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "endless.txt").symlink_to("/dev/zero")
    (folder / "up").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe.txt")
    with closing(socket.socket(socket.AF_UNIX)) as listening:
        with chdir(folder):  # an address has 107 bytes
            listening.bind("socket.txt")
        (folder / "fine.txt").write_bytes(HARMLESS)
        yield folder


def test_what_is_no_regular_file_is_not_read_from_a_folder(memctl: Run, special: Path) -> None:
    done = memctl("ingest", str(special), "-o", "json")
    assert (done.code, done.json["ingested"]) == (0, 1)
    assert [row["title"] for row in memctl("document", "list").rows] == ["fine"]


def test_anything_but_a_regular_file_stays_in_an_inbox(
    memctl: Run, special: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_WATCH_SETTLE_SECONDS", "0")
    memctl("kb", "create", "drop", "--inbox", str(special))
    assert memctl("watch", "--once").code == 0
    assert [row["title"] for row in memctl("document", "list").rows] == ["fine"]
    assert stat.S_ISFIFO((special / "pipe.txt").lstat().st_mode)
    assert (special / "link.txt").is_symlink()


@pytest.mark.parametrize("name", ["link.txt", "endless.txt", "pipe.txt", "socket.txt"])
def test_a_file_that_is_swapped_for_something_else_after_it_was_found_is_not_opened(
    name: str, special: Path
) -> None:
    found = next(each for each in from_paths([special / "fine.txt"]) if isinstance(each, Source))
    (special / name).rename(special / "fine.txt")
    with pytest.raises(Unreadable, match="it is no regular file"):
        identify(found)
    with pytest.raises(UnreadableSource):
        detect_media_type(special / "fine.txt")


def test_a_link_that_is_named_is_followed(memctl: Run, special: Path) -> None:
    done = memctl("ingest", str(special / "link.txt"), "-o", "json")
    assert done.json["ingested"] == 1
    (row,) = memctl("document", "list").rows
    assert row["source"] == str(special / "link.txt")
    assert memctl("document", "reprocess", row["id"]).code == 0


def test_a_search_for_what_is_forgotten_lists_no_crowded_archive(tmp_path: Path) -> None:
    path = tmp_path / "crowded.zip"
    for count, is_listed in ((10, True), (100_000, False)):
        path.write_bytes(crowded_zip(count))
        assert any(b"".join(part) for part in unpack(path)) is is_listed
