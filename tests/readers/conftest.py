"""What tests of binary formats share: damage that is different each time and always the same."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memctl.errors import UnreadableSource
from memctl.readers.media.image_ocr import ModelOcr
from memctl.records import SourceText

ReadFunction = Callable[[Path, str], Iterator[SourceText]]
Survives = Callable[[ReadFunction, Path, bytes, int], None]


def headings_of(source: SourceText) -> dict[str, str]:
    """The path of headings of each segment, by its text."""
    return {source.text[s.start : s.end]: s.heading for s in source.segments}


@pytest.fixture
def without_tesseract(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine on which tesseract is not installed."""
    monkeypatch.setenv("PATH", str(tmp_path / "no-programs"))


@pytest.fixture
def without_ocr(without_tesseract: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which nothing reads pictures."""
    monkeypatch.setattr(ModelOcr, "find", lambda: None)


@pytest.fixture
def with_tesseract() -> None:
    """Skip the test where tesseract is not installed."""
    if shutil.which("tesseract") is None:
        pytest.skip("tesseract is not installed")


@pytest.fixture
def survives(without_ocr: None, capfd: pytest.CaptureFixture[str]) -> Survives:
    """Read so many damaged copies of a file: each is text or one clear error, and no noise."""

    def check(read: ReadFunction, path: Path, content: bytes, rounds: int) -> None:
        rng = random.Random(len(content))
        outcomes = set()
        for _ in range(rounds):
            path.write_bytes(_damaged(content, rng))
            outcomes.add(_outcome(read, path))
        assert "unreadable" in outcomes
        assert capfd.readouterr() == ("", "")

    return check


def _outcome(read: ReadFunction, path: Path) -> str:
    try:
        sources = list(read(path, path.name))
    except UnreadableSource as error:
        refused = error
    else:
        segments = [(segment, source) for source in sources for segment in source.segments]
        assert all(0 <= part.start < part.end <= len(whole.text) for part, whole in segments)
        return "read"
    assert path.name in refused.message
    assert "\n" not in refused.message
    assert refused.hint
    return "unreadable"


@pytest.fixture
def damaged() -> Callable[[bytes, random.Random], bytes]:
    """The function that damages bytes at random."""
    return _damaged


def _damaged(content: bytes, rng: random.Random) -> bytes:
    """The content cut short, with bytes changed, zeroed, doubled or taken out."""
    data, place = bytearray(content), rng.randrange(len(content))
    match rng.randrange(5):
        case 0:
            del data[place:]
        case 1:
            for _ in range(rng.choice((1, 3, 20, 200))):
                data[rng.randrange(len(data))] = rng.randrange(256)
        case 2:
            length = min(rng.choice((1, 16, 500)), len(data) - place)
            data[place : place + length] = bytes(length)
        case 3:
            begin = rng.randrange(len(data))
            data[place:place] = data[begin : begin + rng.choice((4, 100, 1000))]
        case _:
            del data[place : place + rng.choice((1, 7, 300))]
    return bytes(data)
