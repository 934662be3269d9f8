"""The network that reads pictures where there is no tesseract program."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

from memctl.readers import read
from memctl.readers.media import image_ocr
from memctl.readers.media.image_ocr import ModelOcr, find_ocr

pytest.importorskip("rapidocr")

pytestmark = pytest.mark.usefixtures("without_tesseract")


def plan(mode: str, ground: object) -> Image.Image:
    """Two lines, the second one in two columns far from each other."""
    image = Image.new(mode, (640, 280), ground)
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(size=36)
    draw.text((30, 30), "Opening plan 2026", fill="black", font=font)
    draw.text((30, 190), "Budget", fill="black", font=font)
    draw.text((430, 190), "48,500", fill="black", font=font)
    return image


def test_the_text_in_a_picture_is_read_line_by_line(tmp_path: Path) -> None:
    plan("RGBA", (0, 0, 0, 0)).save(tmp_path / "plan.png")
    (source,) = read(tmp_path / "plan.png")
    assert "Opening plan 2026\n\nBudget 48,500" in source.text
    assert source.missing == ()


def test_grain_and_empty_pictures_have_no_text() -> None:
    ocr = find_ocr()
    assert ocr is not None
    assert ocr.read(Image.effect_noise((300, 200), 80)) == ""
    assert ocr.read(Image.new("RGB", (300, 200), "white")) == ""
    assert ocr.read(Image.new("RGB", (3, 200), "white")) == ""


def test_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    image_ocr._engine.cache_clear()
    ocr = ModelOcr.find()
    assert ocr is not None
    assert ocr.read(plan("RGB", "white"))


def test_it_is_not_there_where_its_weights_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_ocr, "_WEIGHTS", {"Det.model_path": "no-such-*.onnx"})
    image_ocr._engine.cache_clear()
    assert ModelOcr.find() is None
    image_ocr._engine.cache_clear()


def test_reading_text_does_not_load_it(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Plan\n\nWe open in June.\n")
    program = (
        "import sys; from pathlib import Path; from memctl.readers import read;"
        f"list(read(Path({str(tmp_path / 'a.md')!r})));"
        "sys.exit('onnxruntime' in sys.modules or 'rapidocr' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
