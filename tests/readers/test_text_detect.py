"""What a file is: its content decides, its name helps where the content leaves it open."""

from __future__ import annotations

import codecs
import random
import zipfile
from pathlib import Path

import pytest

from memctl.errors import EmptySource, EncryptedSource, UnreadableSource
from memctl.readers import read
from memctl.readers.detection import detect_media_type
from memctl.readers.file_kinds import DOCX, FILE_KINDS, PPTX, XLSX

MP4 = b"\0\0\0\x18ftyp"

MAGIC = [
    (b"%PDF-1.7\n%\xe2\xe3", "application/pdf"),
    (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "image/png"),
    (b"\xff\xd8\xff\xe0\0\x10JFIF\0", "image/jpeg"),
    (b"GIF89a\1\0\1\0\0", "image/gif"),
    (b"RIFF\x24\0\0\0WEBPVP8 ", "image/webp"),
    (b"II*\0\x08\0\0\0", "image/tiff"),
    (b"MM\0*\0\0\0\x08", "image/tiff"),
    (b"ID3\x04\0\0\0\0\0\0", "audio/mpeg"),
    (b"\xff\xfb\x90\x64" + b"\0" * 40, "audio/mpeg"),
    (b"RIFF\x24\0\0\0WAVEfmt ", "audio/wav"),
    (b"fLaC\0\0\0\x22", "audio/flac"),
    (b"OggS\0\x02" + b"\0" * 20, "audio/ogg"),
    (MP4 + b"M4A \0\0\2\0", "audio/mp4"),
    (MP4 + b"isom\0\0\2\0", "video/mp4"),
    (MP4 + b"qt  \0\0\2\0", "video/quicktime"),
    (b"\0\0\0\x08wide\0\0\0\0mdat", "video/quicktime"),
    (b"\x1aE\xdf\xa3\x01\0\0\0\0\0\0\x1fB\x82\x84webm", "video/webm"),
    (b"\x1aE\xdf\xa3\x01\0\0\0\0\0\0\x23B\x82\x88matroska", "video/x-matroska"),
]

TEXTS = [
    ('{"a": 1}\n', "application/json"),
    ('[{"a": 1},\n {"a": 2}]', "application/json"),
    ('{"a": 1}\n{"a": 2}\n', "application/x-ndjson"),
    ("name,age\nAnn,3\nBob,4\nCy,5\n", "text/csv"),
    ("name\tage\nAnn\t3\nBob\t4\n", "text/tab-separated-values"),
    ('<?xml version="1.0"?><a>b</a>', "application/xml"),
    ('<?xml version="1.0"?>\n<!DOCTYPE html>\n<html><p>x</p></html>', "text/html"),
    ("<!doctype html><p>x</p>", "text/html"),
    ("<div><p>Hello</p></div>", "text/html"),
    ("From: a@b.c\nTo: d@e.f\nSubject: x\nDate: Fri, 1 May 2026 10:00:00 +0000\n\nHi",
     "message/rfc822"),
    ("WEBVTT\n\n00:01.000 --> 00:02.000\nHi\n", "text/vtt"),
    ("1\n00:00:01,000 --> 00:00:02,000\nHi\n", "application/x-subrip"),
    ("---\ntitle: x\n---\nHello\n", "text/markdown"),
    ("# Plan\n\nWe go.\n", "text/markdown"),
    ("---\na: 1\nb:\n  - c\n", "application/yaml"),
    ("#!/bin/sh\necho hi\n", "text/x-source"),
    ("Dear Bob, well, this is prose, as one writes it.\nIt has commas, too, here and there.\n"
     "And, as it happens, always two a line, or three.\n", "text/plain"),
    ("[2026-05-01 10:00] Ann: hello\n", "text/plain"),
]  # fmt: skip


def _file(folder: Path, content: bytes | str, name: str = "x") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(("content", "expected"), MAGIC, ids=[m for _, m in MAGIC])
@pytest.mark.parametrize("name", ["nameless", "lie.txt"])
def test_a_binary_file_is_known_by_its_first_bytes_whatever_its_name(
    tmp_path: Path, content: bytes, expected: str, name: str
) -> None:
    assert detect_media_type(_file(tmp_path, content, name)) == expected


@pytest.mark.parametrize(("content", "expected"), TEXTS)
def test_a_text_without_extension_is_known_by_what_it_looks_like(
    tmp_path: Path, content: str, expected: str
) -> None:
    assert detect_media_type(_file(tmp_path, content, "nameless")) == expected


@pytest.mark.parametrize(
    ("folder", "expected"), [("word/document.xml", DOCX), ("ppt/x.xml", PPTX), ("xl/w.xml", XLSX)]
)
def test_a_zip_file_is_the_office_format_of_its_members(
    tmp_path: Path, folder: str, expected: str
) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr(folder, "<x/>")
    assert detect_media_type(path) == expected


def test_a_text_that_speaks_of_pdf_is_text(tmp_path: Path) -> None:
    path = _file(tmp_path, "Über PDF: sie beginnt mit %PDF-1.7, endet mit %%EOF.\n", "a.md")
    assert detect_media_type(path) == "text/markdown"


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("été\n", "application/pdf"),
        ("HTTP/1.1 200 OK\r\nX-Name: été\r\n\r\n", "application/pdf"),
        ("From: é <a@x.org>\nSubject: é\nDate: today\n\n", "message/rfc822"),
    ],
)
def test_a_pdf_may_have_text_before_it(tmp_path: Path, before: str, expected: str) -> None:
    path = _file(tmp_path, before.encode() + b"%PDF-1.4\n" + bytes(range(256)) * 8)
    assert detect_media_type(path) == expected


def test_an_office_file_without_its_list_of_types_or_an_extension_is_one(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("_rels/.rels", "word/document.xml"):
            archive.writestr(name, "<x/>")
    assert detect_media_type(path) == DOCX
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("notes.txt", "We sell the crane.")
    with pytest.raises(UnreadableSource, match="zip archive"):
        detect_media_type(path)


def test_a_web_page_saved_as_pdf_is_a_web_page(tmp_path: Path) -> None:
    assert (
        detect_media_type(_file(tmp_path, "<!DOCTYPE html><p>404</p>", "paper.pdf")) == "text/html"
    )


def test_json_lines_under_a_json_name_are_json_lines(tmp_path: Path) -> None:
    path = _file(tmp_path, '{"a": 1}\n{"a": 2}\n{"a": 3}\n', "x.json")
    assert detect_media_type(path) == "application/x-ndjson"


def test_json_too_long_for_one_look_is_json(tmp_path: Path) -> None:
    text = "[\n" + ",\n".join(f'  {{"name": "row {n}"}}' for n in range(9000)) + "\n]\n"
    assert detect_media_type(_file(tmp_path, text, "nameless")) == "application/json"


def test_the_extension_tells_text_formats_that_look_alike_apart(tmp_path: Path) -> None:
    for name, expected in [
        ("a.py", "text/x-source"), ("a.md", "text/markdown"), ("a.rst", "text/x-rst"),
        ("a.yaml", "application/yaml"), ("a.log", "text/x-log"), ("a.csv", "text/csv"),
    ]:  # fmt: skip
        assert detect_media_type(_file(tmp_path, "a: 1\n", name)) == expected


def test_the_name_counts_and_not_the_path_of_a_claimed_file(tmp_path: Path) -> None:
    path = _file(tmp_path, "a: 1\n", "0123456789")
    assert detect_media_type(path, "settings.yaml") == "application/yaml"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "utf-8-sig", "cp1252"])
def test_text_in_other_encodings_is_text(tmp_path: Path, encoding: str) -> None:
    path = _file(tmp_path, "Wörter über Wörter\nund noch eine Zeile\n".encode(encoding), "a.txt")
    assert detect_media_type(path) == "text/plain"
    assert "Wörter über Wörter\nund noch" in next(read(path)).text


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"\x7fELF\2\1\1\0" + bytes(256), "program"),
        (b"7\x7f\x06\x82" + bytes(100), "log of an SQLite database"),
        (bytes(range(256)) * 4, "neither text nor"),
    ],
)
def test_a_binary_file_that_nobody_reads_is_refused_by_its_kind(
    tmp_path: Path, content: bytes, kind: str
) -> None:
    with pytest.raises(UnreadableSource, match=kind) as raised:
        detect_media_type(_file(tmp_path, content, "thing"))
    assert "web pages" in raised.value.hint
    assert "PDF" in raised.value.hint


@pytest.mark.parametrize(
    ("content", "what_to_do"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "docx"),
        (b"Rar!\x1a\x07" + bytes(100), "unpack it"),
        (b"PAR1" + bytes(100), "CSV"),
        (b"PK\x03\x04" + bytes(range(256)), ".zip"),
        (bytes(4) + b"ftypheic" + bytes(100), "JPEG"),
    ],
)
def test_what_another_program_can_convert_says_to_what(
    tmp_path: Path, content: bytes, what_to_do: str
) -> None:
    with pytest.raises(UnreadableSource) as raised:
        detect_media_type(_file(tmp_path, content, "thing"))
    assert what_to_do in raised.value.hint


def test_a_few_control_characters_do_not_make_a_long_western_text_binary(tmp_path: Path) -> None:
    text = "The crane of the café is sold.\n".encode("cp1252") * 20
    path = _file(tmp_path, text[:300] + b"\0\1" + text[300:], "a.txt")
    assert detect_media_type(path) == "text/plain"


@pytest.mark.parametrize("name", ["a.mbox", "a.eml", "a"])
def test_mail_with_raw_bytes_in_it_is_mail(tmp_path: Path, name: str) -> None:
    head = b"From: Ann <a@x.org>\nSubject: Crane\nDate: Fri, 01 May 2026 10:00:00 +0000\n\n"
    opening = b"From a@x.org Fri May  1 10:00:00 2026\n" if name == "a.mbox" else b""
    path = _file(tmp_path, opening + head + bytes(range(256)) * 20, name)
    assert detect_media_type(path) == ("application/mbox" if opening else "message/rfc822")


def test_an_office_file_under_a_password_says_so(tmp_path: Path) -> None:
    content = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
    content += "EncryptedPackage".encode("utf-16-le") + bytes(100)
    with pytest.raises(EncryptedSource, match="password"):
        detect_media_type(_file(tmp_path, content, "plan.docx"))


@pytest.mark.parametrize("content", [b"", b" \n\t \r\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf  \n"])
@pytest.mark.parametrize("name", ["a.txt", "a.json", "a.pdf", "a.md", "a.csv", "a.docx", "a"])
def test_an_empty_file_of_any_name_is_an_empty_source(
    tmp_path: Path, content: bytes, name: str
) -> None:
    with pytest.raises(EmptySource, match="empty"):
        list(read(_file(tmp_path, content, name)))


MARKS = (
    b"",
    codecs.BOM_UTF8,
    codecs.BOM_UTF16_LE,
    codecs.BOM_UTF16_BE,
    codecs.BOM_UTF32_LE,
    codecs.BOM_UTF32_BE,
)


@pytest.mark.parametrize("mark", MARKS)
def test_random_bytes_are_no_text_whatever_byte_order_mark_they_have(
    tmp_path: Path, mark: bytes
) -> None:
    dice = random.Random(7)
    for length in (16, 20, 24, 31, 32, 33, 50, 64, 100, 200, 500, 1_000, 4_000):
        with pytest.raises(UnreadableSource, match="neither text nor"):
            list(read(_file(tmp_path, mark + dice.randbytes(length), "a.txt")))


@pytest.mark.parametrize("mark", MARKS)
def test_two_odd_bytes_are_no_text(tmp_path: Path, mark: bytes) -> None:
    with pytest.raises(UnreadableSource, match="neither text nor"):
        list(read(_file(tmp_path, mark + b"\x8f\xea", "a.txt")))


WORDS = (
    "Müller fährt über die Brücke.",
    "Привет, Аня подписала договор.",
    "日本語の文章です。港の事務所。",
    "港口办公室的租约",
    "안녕하세요 항구 사무실 임대",
    "مرحبا بكم في مكتب الميناء",
    "नमस्ते बंदरगाह कार्यालय",
    "Deutsch, Русский, Ελληνικά, עברית, 日本語, 한국어",
    "fine 🎉😀",
    "東京都",
)


@pytest.mark.parametrize("text", WORDS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_text_that_ends_within_a_character_is_read(
    tmp_path: Path, text: str, encoding: str
) -> None:
    whole = text.encode(encoding)
    for cut in range(3):
        (source,) = read(_file(tmp_path, whole[: len(whole) - cut], "a.txt"))
        assert source.text.startswith(text[: len(text) - 2])


@pytest.mark.parametrize("name", ["a.txt", "a.json", "a.bin", "a"])
def test_a_file_of_zero_bytes_is_not_called_empty(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnreadableSource, match="nothing but zero bytes") as caught:
        list(read(_file(tmp_path, bytes(5_000), name)))
    assert not isinstance(caught.value, EmptySource)
    assert "damaged" in caught.value.hint


@pytest.mark.parametrize("name", ["a.txt", "a.bin", "a"])
def test_a_file_that_begins_with_zero_bytes_says_so(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnreadableSource, match="begins with thousands of zero bytes") as caught:
        list(read(_file(tmp_path, bytes(200_000) + b"end", name)))
    assert "get it again" in caught.value.hint


def test_a_long_run_of_blanks_is_an_empty_source(tmp_path: Path) -> None:
    with pytest.raises(EmptySource):
        list(read(_file(tmp_path, " \n" * 100_000, "a.txt")))


def test_a_folder_and_a_missing_file_are_one_line_each(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSource, match="is a folder"):
        detect_media_type(tmp_path)
    with pytest.raises(UnreadableSource, match=r"no file nothing\.txt"):
        detect_media_type(tmp_path / "nothing.txt")


def test_every_reader_in_the_table_can_be_loaded() -> None:
    assert all(callable(reader.load()) for reader in FILE_KINDS.values())


def test_no_two_readers_claim_one_extension() -> None:
    claimed = [extension for reader in FILE_KINDS.values() for extension in reader.extensions]
    assert len(claimed) == len(set(claimed))
