"""Every reader on damaged files, for a bounded time: only refusals come out, and nothing hangs.

The same damage each time; ``MEMCTL_LONG_TESTS=1`` makes it last ten minutes with damage that is
new, and ``MEMCTL_FUZZ_SEED`` repeats one run.
"""

from __future__ import annotations

import gzip
import io
import os
import random
import sqlite3
import tarfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import av
import pytest
from hostile.test_inputs import TEXTS, pdf_of, png_of, zip_of
from long_form import IS_LONG
from PIL import Image
from readers.test_media import SRT, sound_file, video_file
from timeless import BITEXACT, timeless

from memctl.config import LimitSettings
from memctl.errors import UnreadableSource
from memctl.readers import Readers
from memctl.readers.file_kinds import FILE_KINDS, kind_by_extension
from memctl.readers.media.clips import ClipKind

SAMPLE = Path(__file__).parents[2] / "sample_inbox"
SECONDS, MAX_FILES = (600.0, 1_000_000) if IS_LONG else (18.0, 900)
SEED = os.environ.get("MEMCTL_FUZZ_SEED") or (str(random.randrange(1 << 32)) if IS_LONG else "5")
MAX_BYTES = 200_000
INTERESTING = [b"\0", b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x1b[2J", b"\n", b"%", b"<", b"{", b"["]
WORDS = b"The ferry leaves at nine."
KINDS: dict[str, list[ClipKind]] = {
    "image": ["pages"],
    "audio": ["sounds"],
    "video": ["sounds", "frames"],
}


def office_files() -> Iterator[tuple[str, bytes]]:
    """Small files of the three Office formats, as their own libraries write them."""
    import docx
    import openpyxl
    import pptx

    made = {"fuzz.docx": docx.Document(), "fuzz.pptx": pptx.Presentation()}
    made["fuzz.docx"].add_paragraph("The ferry leaves at nine.")
    made["fuzz.pptx"].slides.add_slide(made["fuzz.pptx"].slide_layouts[0])
    made["fuzz.xlsx"] = openpyxl.Workbook()
    made["fuzz.xlsx"].active.append(["ferry", 9])
    for name, document in made.items():
        out = io.BytesIO()
        document.save(out)
        yield name, timeless(out.getvalue())


def pictures() -> Iterator[tuple[str, bytes]]:
    """A small picture in every format, with all that a camera notes where it can have that."""
    picture, exif = Image.new("RGB", (60, 40), "teal"), Image.Exif()
    exif.update({0x010E: "The ferry", 0x0132: "2024:01:02 03:04:05", 0x013B: "Ann"})
    exif.get_ifd(0x8825).update({1: "N", 2: (52.0, 1.0, 2.0), 3: "E", 4: (4.0, 5.0, 6.0)})
    noted, several = {"exif": exif}, {"save_all": True, "append_images": [picture.rotate(90)]}
    formats = {"jpg": noted, "webp": noted, "png": noted, "tiff": several, "gif": several}
    for extension, options in formats.items():
        out = io.BytesIO()
        picture.save(out, {"jpg": "jpeg"}.get(extension, extension), **options)
        yield f"picture.{extension}", out.getvalue()


def recordings(folder: Path) -> Iterator[tuple[str, bytes]]:
    """A second of sound, or of a film, in every container."""
    codecs = {"wav": "pcm_s16le", "flac": "flac", "mp3": "mp3", "m4a": "aac", "ogg": "flac"}
    for extension, codec in codecs.items():
        path = folder / f"sound.{extension}"
        yield path.name, sound_file(path, codec, title="The ferry", artist="Ann").read_bytes()
    for extension in ("mp4", "mkv", "mov"):
        srt = SRT if extension == "mkv" else ""
        film = video_file(folder / f"film.{extension}", "ferry", srt=srt, sound=True)
        yield film.name, film.read_bytes()
    film = folder / "film.webm"
    with av.open(str(film), "w", options=BITEXACT) as target:
        video = target.add_stream("libvpx", rate=1)
        video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
        target.mux(video.encode(av.VideoFrame(64, 48, "yuv420p")))
        target.mux(video.encode(None))
    yield film.name, film.read_bytes()


def open_formats(folder: Path) -> Iterator[tuple[str, bytes]]:
    """A book, OpenDocument files, rich text, a notebook and a database, each a small one."""
    kinds = {"epub": "epub+zip"}
    kinds |= {
        e: f"vnd.oasis.opendocument.{k}" for e, k in (("odt", "text"), ("ods", "spreadsheet"))
    }
    for extension, kind in kinds.items():
        members = {"mimetype": f"application/{kind}".encode(), "content.xml": b"<a>ferry</a>"}
        yield f"file.{extension}", timeless(zip_of(members))
    yield "file.rtf", rb"{\rtf1\ansi{\info{\title Ferry}} The {\b ferry} leaves.\par}"
    yield "file.ipynb", b'{"cells": [{"cell_type": "code", "source": "ferry = 1"}]}'
    with closing(sqlite3.connect(folder / "file.sqlite")) as database, database:
        database.execute("CREATE TABLE ferries (name TEXT)")
        database.execute("INSERT INTO ferries VALUES ('Ann')")
    yield "file.sqlite", (folder / "file.sqlite").read_bytes()


def units() -> Iterator[tuple[str, bytes]]:
    """Small files of many units."""
    yield "a.mbox", b"From x@y Sat May  2 11:00:00 2026\nSubject: a\n\n" + WORDS + b"\n"
    event = b"BEGIN:VEVENT\nUID:1\nSUMMARY:" + WORDS + b"\nDTSTART:20260301T090000Z\nEND:VEVENT\n"
    yield "a.ics", b"BEGIN:VCALENDAR\nVERSION:2.0\n" + event + b"END:VCALENDAR\n"
    yield "a.vcf", b"BEGIN:VCARD\nVERSION:3.0\nFN:Ann\nNOTE:" + WORDS + b"\nEND:VCARD\n"
    yield "a.zip", timeless(zip_of({"a.txt": WORDS}))
    yield "a.gz", gzip.compress(WORDS, mtime=0)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        member = tarfile.TarInfo("a.txt")
        member.size = len(WORDS)
        archive.addfile(member, io.BytesIO(WORDS))
    yield "a.tar", packed.getvalue()


def samples(folder: Path) -> list[tuple[str, bytes]]:
    """A file of every format at least."""
    files = [path for path in sorted(SAMPLE.iterdir()) if path.is_file()]
    found = [(path.name, path.read_bytes()) for path in files]
    found += [(name, text.replace(b"%s", WORDS)) for name, text in TEXTS.items()]
    found += units()
    found += [("page.pdf", pdf_of(b"BT /F 12 Tf (ferry) Tj ET")), ("dot.png", png_of(20, 20))]
    found += [("empty.docx", timeless(zip_of({"word/document.xml": b"<a/>"}))), *office_files()]
    found += [*pictures(), *recordings(folder), *open_formats(folder)]
    return [(name, content) for name, content in found if len(content) <= MAX_BYTES]


def damaged(content: bytes, chance: random.Random) -> bytes:
    """The content with a few of the things done to it that break parsers."""
    made = bytearray(content)
    for _ in range(chance.randint(1, 8)):
        place = chance.randrange(len(made) + 1)
        length = chance.choice([1, 2, 4, 16, 200])
        change = chance.randrange(6)
        if change == 0:
            made[place : place + length] = chance.randbytes(length)
        elif change == 1:
            made[place:place] = chance.choice(INTERESTING) * chance.choice([1, 3, 300])
        elif change == 2:
            del made[place : place + length]
        elif change == 3:
            made[place:place] = made[place : place + length] * chance.choice([2, 50])
        elif change == 4 and place < len(made):
            made[place] ^= 1 << chance.randrange(8)
        elif change == 5 and chance.random() < 0.2:
            del made[place:]
    return bytes(made)


def without_ocr(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no text in pictures read: that would take most of the time."""
    monkeypatch.setenv("PATH", "")
    (library / "rapidocr").mkdir(parents=True)
    (library / "rapidocr" / "__init__.py").touch()
    monkeypatch.syspath_prepend(library)


def test_damaged_files_of_every_kind_are_refused_or_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_ocr(tmp_path / "library", monkeypatch)
    print(f"MEMCTL_FUZZ_SEED={SEED}")
    everything, chance = samples(tmp_path), random.Random(int(SEED))
    of_extensions = {kind for kind in FILE_KINDS.values() if kind.extensions}
    assert {kind_by_extension(name) for name, _ in everything} == of_extensions
    readers = Readers(LimitSettings(memory_mb=1024, seconds=600, processor_seconds=120))
    ends, count = time.monotonic() + SECONDS, 0
    while count < MAX_FILES and (time.monotonic() < ends or count < len(everything)):
        name, content = everything[count % len(everything)]
        path = tmp_path / name
        path.write_bytes(damaged(content, chance))
        problem = problem_of(readers, path)
        assert not problem, f"{problem}; MEMCTL_FUZZ_SEED={SEED}, file {count}: {path}"
        path.unlink()
        count += 1
    readers.close()
    print(f"{count} files")


def test_what_models_are_to_see_and_hear_of_damaged_files_is_refused_or_cut_out(
    tmp_path: Path,
) -> None:
    media = [*pictures(), *recordings(tmp_path)]
    chance = random.Random(int(SEED))
    readers = Readers(LimitSettings(memory_mb=1024, seconds=600, processor_seconds=120))
    ends, count = time.monotonic() + SECONDS / 3, 0
    while count < MAX_FILES and (time.monotonic() < ends or count < len(media)):
        name, content = media[count % len(media)]
        path = tmp_path / name
        path.write_bytes(damaged(content, chance))
        reader = kind_by_extension(name)
        assert reader is not None
        for kind in KINDS[reader.media_type.split("/")[0]]:
            problem = problem_of_clips(readers, kind, path, reader.media_type)
            assert not problem, f"{problem}; MEMCTL_FUZZ_SEED={SEED}, file {count}: {path}"
        path.unlink()
        count += 1
    readers.close()
    print(f"{count} files")


def problem_of(readers: Readers, path: Path) -> str:
    """What went wrong in a way that it may not; a refusal with a reason is as it should be."""
    try:
        for text in readers.read(path):
            text.text.encode()
            if any(not 0 <= s.start < s.end <= len(text.text) for s in text.segments):
                return "a segment lies outside of its text"
    except UnreadableSource as error:
        return unjust(error)
    return ""


def problem_of_clips(readers: Readers, kind: ClipKind, path: Path, media_type: str) -> str:
    """What went wrong in a way that it may not where pieces are cut out for a model."""
    try:
        clips = list(readers.clips(kind, path, path.name, media_type, 10.0))
    except UnreadableSource as error:
        return unjust(error)
    return "" if all(clip.content for clip in clips) else "a piece is empty"


def unjust(error: UnreadableSource) -> str:
    """What a refusal says that is none: the reader broke, or took too long."""
    died = "ended the process" in error.message or "no reader says" in error.message
    late = "was not read within" in error.message or "processor time" in error.message
    return error.message if died or late or not error.message else ""
