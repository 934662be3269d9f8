"""Text in pictures, read by RapidOCR: the network that the ocr extra brings, weights included.

It stands in where no tesseract is installed.  The weights are named one by one, for RapidOCR
would fetch from the network what it does not find; here nothing is ever fetched.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from memctl.readers.pieces import storable

if TYPE_CHECKING:
    from PIL.Image import Image

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
_SURE = 0.8
"""Confidence, of 1, from which on a line counts as text."""
_SMALLEST = 24


class _Found(NamedTuple):
    """A run of text with the top, bottom and left of where it stands, in pixels."""

    top: float
    bottom: float
    left: float
    text: str


@dataclass(frozen=True, slots=True)
class ModelOcr:
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

        if min(image.size) < _SMALLEST:
            return ""
        pixels = numpy.asarray(_on_white(image))[:, :, ::-1]  # it expects blue first
        try:
            seen = self.engine(pixels)
        except ONNXRuntimeError:
            return None
        return "\n".join(_lines(_found(seen)))


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
    return image.convert("RGB")


def _found(seen: Any) -> list[_Found]:
    """What it is sure of, from top to bottom."""
    if seen.txts is None or seen.boxes is None:
        return []
    found = [
        _Found(
            min(float(y) for _, y in box),
            max(float(y) for _, y in box),
            min(float(x) for x, _ in box),
            storable(text).strip(),
        )
        for box, text, score in zip(seen.boxes, seen.txts, seen.scores, strict=True)
        if score >= _SURE and sum(map(str.isalnum, text)) >= 2
    ]
    return sorted(found)


def _lines(found: list[_Found]) -> Iterator[str]:
    """Runs that stand side by side make a line; an empty line parts those far from each other."""
    row: list[_Found] = []
    for run in found:
        if row and run.top > _middle(row[0]):
            yield _joined(row)
            if run.top - max(part.bottom for part in row) > run.bottom - run.top:
                yield ""
            row = []
        row.append(run)
    if row:
        yield _joined(row)


def _middle(run: _Found) -> float:
    return (run.top + run.bottom) / 2


def _joined(row: list[_Found]) -> str:
    return " ".join(part.text for part in sorted(row, key=lambda part: part.left))
