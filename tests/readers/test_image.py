"""Pictures: what they say about themselves, the text in them, and damage."""

from __future__ import annotations

import io
import struct
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFont
from PIL.PngImagePlugin import PngInfo

from memctl.errors import UnreadableSource
from memctl.readers import read
from memctl.readers.media import images as image_reader
from memctl.readers.media.image_ocr import Tesseract
from memctl.records import SourceText


def picture_of(*lines: str) -> Image.Image:
    image = Image.new("RGB", (1000, 120 * len(lines) + 80), "white")
    font = ImageFont.load_default(size=44)
    for number, line in enumerate(lines):
        ImageDraw.Draw(image).text((40, 40 + 120 * number), line, fill="black", font=font)
    return image


def read_one(path: Path) -> SourceText:
    (source,) = read(path)
    return source


def camera_exif(zone: str = "") -> Image.Exif:
    exif = Image.Exif()
    exif[271], exif[272] = "Canon", "Canon EOS R6"
    exif[270], exif[315] = "The new workshop from the quay", "Mara Lind"
    taken, place = exif.get_ifd(34665), exif.get_ifd(34853)
    taken[36867] = "2026:05:01 10:22:33"
    if zone:
        taken[36881] = zone
    place.update({1: "S", 2: (52.0, 22.0, 12.0), 3: "E", 4: (4.0, 53.0, 42.0)})
    return exif


@pytest.mark.usefixtures("with_tesseract")
@pytest.mark.parametrize("extension", ["png", "jpg", "gif", "webp", "tiff"])
def test_the_text_in_a_picture_is_read(tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"open_day.{extension}"
    picture_of("Open day on 20 June 2026", "Entry 5 euros").save(path)
    source = read_one(path)
    assert "Open day on 20 June 2026\n" in source.text
    assert "Entry 5 euros" in source.text
    assert source.missing == ()
    assert [segment.kind for segment in source.segments] == ["prose"]


@pytest.mark.usefixtures("with_tesseract")
def test_a_picture_that_lies_on_its_head_is_turned(tmp_path: Path) -> None:
    lines = ["The roaster arrives in June", "and stands by the window", "of the new workshop"]
    picture_of(*lines).rotate(180).save(tmp_path / "a.png")
    assert "The roaster arrives in June" in read_one(tmp_path / "a.png").text


@pytest.mark.usefixtures("with_tesseract")
def test_grain_is_not_taken_for_text(tmp_path: Path) -> None:
    Image.effect_noise((600, 400), 80).save(tmp_path / "grain.png")
    assert [s.kind for s in read_one(tmp_path / "grain.png").segments] == ["properties"]


@pytest.mark.usefixtures("with_tesseract")
def test_text_on_a_transparent_ground_is_read(tmp_path: Path) -> None:
    image = Image.new("RGBA", (900, 200), (0, 0, 0, 0))
    font = ImageFont.load_default(size=44)
    ImageDraw.Draw(image).text((40, 60), "Harbour Roastery", fill="black", font=font)
    image.save(tmp_path / "logo.png")
    assert "Harbour Roastery" in read_one(tmp_path / "logo.png").text


@pytest.mark.usefixtures("with_tesseract")
def test_pages_of_a_tiff_are_numbered(tmp_path: Path) -> None:
    first, second = picture_of("The first page"), picture_of("The second page")
    first.save(tmp_path / "fax.tiff", save_all=True, append_images=[second])
    source = read_one(tmp_path / "fax.tiff")
    assert [s.page for s in source.segments if s.kind == "prose"] == [1, 2]


@pytest.mark.usefixtures("with_tesseract")
def test_an_animation_says_the_same_thing_once_and_few_frames_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []
    monkeypatch.setattr(
        Tesseract, "read", lambda self, image: reads.append(image.size) or "The same"
    )
    frames = [Image.new("L", (200, 100), shade) for shade in range(0, 240, 6)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert read_one(tmp_path / "a.gif").text.count("The same") == 1
    assert 2 <= len(reads) <= image_reader.ANIMATION_FRAMES


@pytest.mark.usefixtures("without_ocr")
def test_without_ocr_a_picture_is_kept_and_says_what_is_missing(tmp_path: Path) -> None:
    picture_of("Open day").save(tmp_path / "2026-06-20_open-day.png")
    source = read_one(tmp_path / "2026-06-20_open-day.png")
    assert source.missing == ("image text",)
    assert source.title == "2026-06-20 open day"
    assert "open day" in source.text
    assert source.created_at == datetime(2026, 6, 20, tzinfo=UTC)


@pytest.mark.usefixtures("without_ocr")
def test_a_photo_tells_when_where_and_with_what_it_was_taken(tmp_path: Path) -> None:
    picture_of("x").save(tmp_path / "IMG_1.jpg", exif=camera_exif())
    source = read_one(tmp_path / "IMG_1.jpg")
    assert "taken 2026-05-01 10:22 at -52.37, 4.895 with Canon EOS R6 by Mara Lind" in source.text
    assert "The new workshop from the quay" in source.text
    assert source.created_at == datetime(2026, 5, 1, 10, 22, 33, tzinfo=UTC)
    assert source.authors == ("Mara Lind",)
    assert (source.metadata["latitude"], source.metadata["longitude"]) == (-52.37, 4.895)


@pytest.mark.usefixtures("without_ocr")
def test_a_camera_that_names_its_time_zone_is_believed(tmp_path: Path) -> None:
    picture_of("x").save(tmp_path / "a.jpg", exif=camera_exif(zone="+02:00"))
    assert read_one(tmp_path / "a.jpg").created_at == datetime(2026, 5, 1, 8, 22, 33, tzinfo=UTC)


@pytest.mark.usefixtures("without_ocr")
def test_a_description_that_the_camera_wrote_is_left_out(tmp_path: Path) -> None:
    exif = camera_exif()
    exif[270] = "OLYMPUS DIGITAL CAMERA         "
    picture_of("x").save(tmp_path / "a.jpg", exif=exif)
    assert "OLYMPUS" not in read_one(tmp_path / "a.jpg").text


@pytest.mark.usefixtures("without_ocr")
def test_text_chunks_of_a_png_are_read(tmp_path: Path) -> None:
    info = PngInfo()
    info.add_text("Title", "Floor plan")
    info.add_text("Author", "Jon Oak")
    info.add_itxt("Description", "Where the roaster stands")
    picture_of("x").save(tmp_path / "a.png", pnginfo=info)
    source = read_one(tmp_path / "a.png")
    assert (source.title, source.authors) == ("Floor plan", ("Jon Oak",))
    assert "Where the roaster stands" in source.text


def test_a_small_file_that_claims_to_be_huge_is_refused_before_it_is_decoded(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, side in (("bomb.png", 60_000), ("large.png", 12_000)):
        (tmp_path / name).write_bytes(png_that_claims(side))
        with pytest.raises(UnreadableSource, match=name):
            list(read(tmp_path / name))
    assert capfd.readouterr() == ("", "")


def png_that_claims(side: int) -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        checksum = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    data = zlib.compress(bytes(1000))
    return b"".join(
        [b"\x89PNG\r\n\x1a\n", chunk(b"IHDR", header), chunk(b"IDAT", data), chunk(b"IEND", b"")]
    )


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_mutated_pictures_are_read_or_refused_in_one_line(
    tmp_path: Path, survives: Any, kind: str
) -> None:
    out = io.BytesIO()
    extra = {} if kind == "GIF" else {"exif": camera_exif()}
    picture_of("Open day").resize((250, 50)).save(out, kind, **extra)
    survives(image_reader.read, tmp_path / f"a.{kind.lower()}", out.getvalue(), 80)


def test_what_is_no_picture_is_said_in_words(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n broken")
    with pytest.raises(UnreadableSource) as caught:
        read_one(path)
    assert caught.value.message == "a.png is damaged or not an image: cannot identify image file"
