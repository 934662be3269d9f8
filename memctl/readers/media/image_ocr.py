"""Text in pictures, read by the tesseract program where it is installed, else by RapidOCR.

Only lines that tesseract itself is sure of come back: the grain of a photograph otherwise
turns into pages of stray letters.
"""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from memctl.readers.pieces import storable_text

if TYPE_CHECKING:
    from PIL.Image import Image


Word = dict[str, str]
"""A word as tesseract tells it: its text, its confidence, its block, paragraph and line."""

PROGRAM = "tesseract"
SECONDS = 60.0
"""An image that takes longer than this is left unread."""

_LANGUAGES = 4
_NOT_LANGUAGES = {"osd", "equ", "snum"}
_LINE_CONFIDENCE = 65.0
"""Mean confidence, of 100, from which on a line counts as text."""
_MODE_AS_IS, _MODE_WITH_ROTATION = "3", "1"
"""Page segmentation modes; finding out which side is up takes twice the time."""
_MIN_SIZE = 24
_SMALL = 1000
_MAX_SIDE = 4000
_WORD_LEVEL = "5"
_LETTERS = re.compile(r"[^\W_]")


class Tesseract(Struct, frozen=True):
    """The program and the languages that it is to expect."""

    program: str
    languages: str = "eng"

    @classmethod
    def find(cls, program: str = PROGRAM) -> Tesseract | None:
        """The installed program with its first few languages, English first; None without one."""
        path = shutil.which(program)
        languages = _installed_languages(path) if path else ()
        return cls(path, "+".join(languages[:_LANGUAGES])) if path and languages else None

    def read(self, image: Image) -> str | None:
        """The text in the image, ``""`` where there is none; None when it could not be read.

        Raises:
            OSError, ValueError and what else Pillow raises for a damaged image.
        """
        if min(image.size) < _MIN_SIZE:
            return ""
        picture = _prepare(image)
        words = self._words(picture, _MODE_AS_IS)
        if words and _confidence(words) < _LINE_CONFIDENCE:
            words = max([words, *self._rotations(picture)], key=_confidence)
        return None if words is None else "\n".join(_sure_lines(words))

    def _rotations(self, picture: Image) -> Iterator[list[Word]]:
        """Readings of the picture turned as tesseract finds right, then turned upside down.

        Tesseract finds the right way only where there are many letters.
        """
        found = self._words(picture, _MODE_WITH_ROTATION) or []
        yield found
        if _confidence(found) < _LINE_CONFIDENCE:
            yield self._words(picture.rotate(180), _MODE_AS_IS) or []

    def _words(self, picture: Image, segmentation: str) -> list[Word] | None:
        arguments = ["stdin", "stdout", "-l", self.languages, "--psm", segmentation, "tsv"]
        buffer = io.BytesIO()
        picture.save(buffer, "PNG", compress_level=1)
        table = _run([self.program, *arguments], buffer.getvalue())
        if table is None:
            return None
        rows = csv.DictReader(io.StringIO(table), delimiter="\t", quoting=csv.QUOTE_NONE)
        return list(filter(_is_word, rows))


def _installed_languages(program: str) -> tuple[str, ...]:
    answer = _run([program, "--list-langs"])
    names = [] if answer is None else answer.split("\n")[1:]
    found = {name.strip() for name in names if re.fullmatch(r"[a-z_]{3,}\s*", name)}
    return tuple(sorted(found - _NOT_LANGUAGES, key=lambda name: (name != "eng", name)))


def _run(command: list[str], content: bytes = b"") -> str | None:
    """What the command prints, or None when it fails or takes too long."""
    # Passed on as it is, with one addition: with threads of its own tesseract 5 needs three
    # times the processor time for one page, and several files are read at once anyway.
    environment = {**os.environ, "OMP_THREAD_LIMIT": "1"}
    try:
        done = subprocess.run(
            command, input=content, capture_output=True, timeout=SECONDS, env=environment
        )
    except (subprocess.TimeoutExpired, OSError):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def _prepare(image: Image) -> Image:
    """The image in grey on white, small print enlarged, as tesseract reads it best."""
    import PIL.Image

    image = _on_white(image).convert("L")
    longest = max(image.size)
    if longest < _SMALL:
        image = image.resize((image.width * 2, image.height * 2), PIL.Image.Resampling.LANCZOS)
    elif longest > _MAX_SIDE:
        image.thumbnail((_MAX_SIDE, _MAX_SIDE))
    return image


def _sure_lines(words: list[Word]) -> Iterator[str]:
    """Lines that are surely text, with an empty line between paragraphs."""
    last: tuple[str, ...] | None = None
    for line, group in groupby(words, key=_line_of):
        text = _sure_text(list(group))
        if text and last is not None and last != line[:-1]:
            yield ""
        if text:
            yield text
            last = line[:-1]


def _is_word(row: Word) -> bool:
    return row.get("level") == _WORD_LEVEL and bool((row.get("text") or "").strip())


def _line_of(row: Word) -> tuple[str, ...]:
    return row["page_num"], row["block_num"], row["par_num"], row["line_num"]


def _confidence(words: list[Word]) -> float:
    return sum(float(word["conf"]) for word in words) / len(words) if words else 0.0


def _sure_text(words: list[Word]) -> str:
    text = " ".join(word["text"].strip() for word in words)
    return (
        text if _confidence(words) >= _LINE_CONFIDENCE and len(_LETTERS.findall(text)) >= 2 else ""
    )


_WEIGHTS: Mapping[str, str] = {
    "Det.model_path": "*_det_*.onnx",
    "Cls.model_path": "*_cls_*.onnx",
    "Rec.model_path": "*_rec_*.onnx",
}
_OPTIONS: Mapping[str, object] = {
    "Global.log_level": "critical",
    # Several files are read at once anyway.
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
}
_MODEL_CONFIDENCE = 0.8
"""Confidence, of 1, from which on a line counts as text."""


class _TextRun(NamedTuple):
    """A run of text with the top, bottom and left of where it stands, in pixels."""

    top: float
    bottom: float
    left: float
    text: str


class ModelOcr(Struct, frozen=True):
    """The loaded network."""

    engine: Any

    @classmethod
    def find(cls) -> ModelOcr | None:
        """The network of the ocr extra, None where it or its weights are not installed."""
        engine = _engine()
        return None if engine is None else cls(engine)

    def read(self, image: Image) -> str | None:
        """The text in the image, ``""`` where there is none; None when it could not be read.

        Raises:
            OSError, ValueError and what else Pillow raises for a damaged image.
        """
        import numpy
        from rapidocr.inference_engine.onnxruntime.main import ONNXRuntimeError

        if min(image.size) < _MIN_SIZE:
            return ""
        pixels = numpy.asarray(_on_white(image).convert("RGB"))[:, :, ::-1]  # it expects blue first
        try:
            seen = self.engine(pixels)
        except ONNXRuntimeError:
            return None
        return "\n".join(_run_lines(_confident_runs(seen)))


@cache
def _engine() -> Any:
    """Loaded once in a process: it takes as long as reading a picture."""
    package = find_spec("rapidocr")
    if package is None or package.origin is None or find_spec("onnxruntime") is None:
        return None
    folder = Path(package.origin).parent / "models"
    weights = {option: next(folder.glob(name), None) for option, name in _WEIGHTS.items()}
    if None in weights.values():
        return None
    # onnxruntime 1.31 writes an id of the device to the disk when it is imported without this.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    from rapidocr import RapidOCR

    return RapidOCR(params={**_OPTIONS, **{key: str(path) for key, path in weights.items()}})


def _on_white(image: Image) -> Image:
    import PIL.Image

    if image.has_transparency_data:
        image = image.convert("RGBA")
        image = PIL.Image.alpha_composite(PIL.Image.new("RGBA", image.size, "white"), image)
    return image


def _confident_runs(seen: Any) -> list[_TextRun]:
    """What it is sure of, from top to bottom."""
    if seen.txts is None or seen.boxes is None:
        return []
    found = [
        _TextRun(
            min(float(y) for _, y in box),
            max(float(y) for _, y in box),
            min(float(x) for x, _ in box),
            storable_text(text).strip(),
        )
        for box, text, score in zip(seen.boxes, seen.txts, seen.scores, strict=True)
        if score >= _MODEL_CONFIDENCE and sum(map(str.isalnum, text)) >= 2
    ]
    return sorted(found)


def _run_lines(runs: list[_TextRun]) -> Iterator[str]:
    """Runs that stand side by side make a line; an empty line parts those far from each other."""
    row: list[_TextRun] = []
    for run in runs:
        if row and run.top > _middle(row[0]):
            yield _join(row)
            if run.top - max(part.bottom for part in row) > run.bottom - run.top:
                yield ""
            row = []
        row.append(run)
    if row:
        yield _join(row)


def _middle(run: _TextRun) -> float:
    return (run.top + run.bottom) / 2


def _join(row: list[_TextRun]) -> str:
    return " ".join(part.text for part in sorted(row, key=lambda part: part.left))


Ocr = Tesseract | ModelOcr
"""What reads the text in pictures."""


def find_ocr() -> Ocr | None:
    """Tesseract, else the network of the ocr extra; None where neither is installed."""
    return Tesseract.find() or ModelOcr.find()
