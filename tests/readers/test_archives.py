"""Archives: each member is a document of its own kind, within bounds."""

from __future__ import annotations

import errno
import gzip
import io
import json
import tarfile
import zipfile
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from memctl.errors import OverLimit, UnreadableSource
from memctl.readers import archives, kind_of_units, read
from memctl.readers.media import recording_content

BOX = (
    "From a@x.org Fri May  1 10:00:00 2026\nFrom: Ann <a@x.org>\nSubject: Crane\n"
    "Date: Fri, 01 May 2026 10:00:00 +0000\nMessage-ID: <1@x.org>\n\nWe sell the crane.\n"
)


def _zip(members: dict[str, bytes | str]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 5, 1, 10, 0, 0)), content, 8)
    return file.getvalue()


def _tar(members: dict[str, bytes], mode: str) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(content), 1_777_630_000
            archive.addfile(info, io.BytesIO(content))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return file.getvalue()


def _units(path: Path) -> dict[str, str]:
    """What each unit says, or why it says nothing."""
    return {t.unit.key: t.unit.problem or t.text.strip() for t in read(path) if t.unit}


def test_members_are_read_by_their_own_kinds(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(
        _zip({
            "notes/a.md": "# Crane\n\nWe sell it.\n", "b.csv": "name,age\nAnn,3\nBob,4\n",
            "mail/box.mbox": BOX, "empty.txt": "", "__MACOSX/a.md": "no", ".hidden": "no",
        })
    )  # fmt: skip
    texts = {text.unit.key: text for text in read(path) if text.unit and not text.unit.is_hidden}
    assert set(texts) == {"notes/a.md", "b.csv", "mail/box.mbox!/1@x.org", "empty.txt"}
    note = texts["notes/a.md"]
    assert (note.title, note.media_type, note.reader) == ("Crane", "text/markdown", "markdown/2")
    assert note.created_at == datetime(2026, 5, 1, 10, tzinfo=UTC)
    assert note.unit
    assert note.unit.sha256 == sha256(b"# Crane\n\nWe sell it.\n").hexdigest()
    assert texts["b.csv"].media_type == "text/csv"
    assert texts["mail/box.mbox!/1@x.org"].media_type == "message/rfc822"
    empty = texts["empty.txt"].unit
    assert empty
    assert "is empty" in empty.problem


@pytest.mark.parametrize(
    ("name", "mode"), [("x.tar", "w:"), ("x.tar.gz", "w:gz"), ("x.tgz", "w:gz")]
)
def test_a_tar_is_read_packed_or_not_and_links_are_passed_over(
    tmp_path: Path, name: str, mode: str
) -> None:
    path = tmp_path / name
    path.write_bytes(
        _tar({"a/b.txt": b"We sell the crane.\n", "../c.txt": b"And the truck.\n"}, mode)
    )
    assert _units(path) == {"a/b.txt": "We sell the crane.", "../c.txt": "And the truck."}
    assert not (tmp_path.parent / "c.txt").exists()


@pytest.mark.parametrize("name", ["x.zip", "x.tar"])
def test_an_archive_that_begins_with_a_pdf_is_no_pdf(tmp_path: Path, name: str) -> None:
    pdf = (Path(__file__).parents[2] / "sample_inbox" / "fit-out budget.pdf").read_bytes()
    path = tmp_path / name
    if name == "x.tar":
        path.write_bytes(_tar({"a.pdf": pdf, "b.txt": b"We sell the crane."}, "w"))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("a.pdf", pdf)
            archive.writestr("b.txt", "We sell the crane.")
    found = _units(path)
    assert found["b.txt"] == "We sell the crane."
    assert "Fit-out" in found["a.pdf"]


def test_a_packed_file_is_the_one_document_in_it(tmp_path: Path) -> None:
    path = tmp_path / "notes.md.gz"
    path.write_bytes(gzip.compress(b"# Crane\n\nWe sell it.\n"))
    assert list(_units(path)) == ["notes.md"]


def test_an_archive_may_lie_in_an_archive_and_no_deeper(tmp_path: Path) -> None:
    inner = _zip({"a.txt": "We sell the crane.", "deep.zip": _zip({"b.txt": "Never."})})
    path = tmp_path / "x.zip"
    path.write_bytes(_zip({"inner.zip": inner, "c.txt": "And the truck."}))
    assert _units(path) == {
        "inner.zip!/a.txt": "We sell the crane.",
        "inner.zip!/deep.zip": "it is an archive that lies too deep in others",
        "c.txt": "And the truck.",
    }


def test_encrypted_and_damaged_members_say_so_and_the_others_are_read(tmp_path: Path) -> None:
    content = bytearray(_zip({"a.txt": "One two three. " * 50, "b.txt": "We sell the crane."}))
    path = tmp_path / "x.zip"
    second = content.rindex(b"PK\x01\x02")
    first = content.index(b"PK\x01\x02")
    content[first + 8] |= 1
    path.write_bytes(content)
    assert second > first
    assert _units(path) == {"a.txt": "it is encrypted", "b.txt": "We sell the crane."}
    content[first + 8] &= 0xFE
    content[45:50] = b"\xff" * 5
    path.write_bytes(content)
    found = _units(path)
    assert found["a.txt"].startswith(("it is damaged", "it cannot be unpacked"))
    assert found["b.txt"] == "We sell the crane."


def test_a_member_may_have_a_name_that_no_file_can_have(tmp_path: Path) -> None:
    path, long = tmp_path / "x.zip", f"{'n' * 300}.txt"
    path.write_bytes(_zip({f"a/{long}": "We sell the crane.", "..": "We keep the mill."}))
    assert list(_units(path).values()) == ["We sell the crane.", "We keep the mill."]


@pytest.mark.parametrize("packed", [False, True])
def test_a_disk_without_room_to_unpack_is_not_called_a_damaged_archive(
    tmp_path: Path, packed: bool
) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / ("x.tar.gz" if packed else "x.zip")
    members = {"a.txt": b"We sell the crane. " * 5_000}
    path.write_bytes(_tar(members, "w:gz") if packed else _zip(dict(members)))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            list(read(path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


DAMAGED_VIDEO = bytes.fromhex(
    "1a45dfa3a34286810142f7810142f2810442f381084282886d6174726f736b614287810442858102"
    "18538067010000000000 0ae3114d9b74c0bf"
)


def test_a_damaged_video_is_no_fault_of_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    members = {"a.txt": "We sell the crane.", "v.mkv": DAMAGED_VIDEO, "z.txt": "We keep the mill."}
    path.write_bytes(_zip(dict(members)))
    found = _units(path)
    assert (found["a.txt"], found["z.txt"]) == ("We sell the crane.", "We keep the mill.")
    assert "v.mkv is damaged or not a video" in found["v.mkv"]


def test_a_video_that_the_disk_cannot_read_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class BrokenFile(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError(errno.EIO, "Input/output error")

    path = tmp_path / "v.mkv"
    path.write_bytes(DAMAGED_VIDEO)
    monkeypatch.setattr(recording_content, "open_regular", lambda path: BrokenFile())
    with pytest.raises(OSError, match="Input/output error"):
        list(read(path))


def test_an_archive_unpacks_to_no_more_than_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(_zip({"bomb.txt": b"0" * (50 << 20)}))
    with pytest.raises(OverLimit, match="200 times its size"):
        list(read(path))
    monkeypatch.setattr(archives, "MAX_MEMBERS", 2)
    path.write_bytes(_zip({f"{n}.txt": "x" for n in range(3)}))
    with pytest.raises(OverLimit, match="more than 2 members"):
        list(read(path))


@pytest.mark.parametrize("ending", ["xlsx", "docx", "pptx", "odt", "epub", "zip"])
def test_a_damaged_file_of_zip_is_no_text(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"broken.{ending}"
    path.write_bytes(b"PK\x03\x04garbage")
    with pytest.raises(UnreadableSource, match=r"broken\.\w+ is damaged"):
        list(read(path))


def test_a_cut_off_archive_is_refused_and_office_files_are_none(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(_zip({"a.txt": "One."})[:-30])
    with pytest.raises(UnreadableSource, match="damaged or not an archive"):
        list(read(path))
    word = tmp_path / "x.docx"
    word.write_bytes(_zip({"word/document.xml": "<w/>"}))
    assert kind_of_units(word, "x.docx") is None


@pytest.mark.parametrize("folder", ["word", "xl", "ppt"])
def test_an_archive_with_a_folder_of_office_is_an_archive(tmp_path: Path, folder: str) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(_zip({f"{folder}/a.txt": "We sell the crane.", "mimetype": "text/plain"}))
    assert _units(path)[f"{folder}/a.txt"] == "We sell the crane."


def test_a_slack_export_has_the_names_of_its_users(tmp_path: Path) -> None:
    users = [{"id": "U1", "name": "ann", "profile": {"real_name": "Ann Lee"}}]
    day = [{"type": "message", "user": "U1", "ts": "1777629600.000100", "text": "We sell it."}]
    path = tmp_path / "slack.zip"
    path.write_bytes(
        _zip({"users.json": json.dumps(users), "harbour/2026-05-01.json": json.dumps(day)})
    )
    texts = {text.unit.key: text for text in read(path) if text.unit}
    found = texts["harbour/2026-05-01.json"]
    assert (found.title, found.authors) == ("#harbour 2026-05-01", ("Ann Lee",))
