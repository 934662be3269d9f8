"""Files that models are to hear and see are opened in a process apart, within its bounds."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from hostile.test_apart import CRASH, FOREVER, GREEDY, SAYING
from hostile.test_inputs import endless_wav, png_of
from PIL import Image

from memctl.config import LimitSettings
from memctl.errors import OverLimit, UnreadableSource
from memctl.readers import Readers
from memctl.readers.media.clips import Clip, ClipKind
from memctl.readers.reader_process import Answer, InvalidMessage, decode_answer, encode_message

Library = Callable[[str], None]
PICTURE = '{"clip": {"content": "AAAA", "name": "a.jpg", "start": 0, "seconds": 0, "page": null}}'
SAID = {
    "no bytes": PICTURE.replace("AAAA", "not base64"),
    "a page of text": PICTURE.replace("null", '"one"'),
    "no time": PICTURE.replace('"start": 0', '"start": 1e999'),
    "half of it": PICTURE.replace('"content": "AAAA", ', ""),
    "a text instead": '{"text": {"text": "hello"}}',
}


@pytest.fixture
def pillow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    """Have the library that opens pictures run some code in processes that are started now."""

    def take_over(code: str) -> None:
        library = tmp_path / "library" / "PIL"
        library.mkdir(parents=True, exist_ok=True)
        (library / "__init__.py").write_text(code)
        monkeypatch.syspath_prepend(library.parent)

    return take_over


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    Image.new("RGB", (40, 30), "teal").save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


def seen(readers: Readers, path: Path) -> list[Clip]:
    try:
        return list(readers.clips("pages", path, path.name, "image/png"))
    finally:
        readers.close()


@pytest.mark.parametrize(
    ("code", "limits"),
    [(GREEDY, {"memory_mb": 256}), (FOREVER, {"processor_seconds": 1})],
    ids=["memory", "processor"],
)
def test_a_file_that_takes_more_than_it_may_gives_nothing_to_hear_or_see(
    pillow: Library, photo: Path, code: str, limits: dict[str, int]
) -> None:
    pillow(code)
    with pytest.raises(OverLimit):
        seen(Readers(LimitSettings(**limits)), photo)


def test_a_file_that_brings_its_reader_down_does_not_bring_down_what_asks(
    pillow: Library, photo: Path
) -> None:
    pillow(CRASH)
    with pytest.raises(UnreadableSource, match="ended the process"):
        seen(Readers(), photo)


@pytest.mark.parametrize("said", SAID.values(), ids=SAID)
def test_nothing_is_believed_of_pieces_that_a_process_gives(
    pillow: Library, photo: Path, said: str
) -> None:
    pillow(f"{SAYING}\nsay({said.encode()!r})\n")
    with pytest.raises(UnreadableSource):
        seen(Readers(LimitSettings(seconds=60)), photo)


def test_pieces_without_end_are_refused(pillow: Library, photo: Path) -> None:
    pillow(f"{SAYING.replace('    time.sleep(1000)', '')}\nwhile True: say({PICTURE.encode()!r})\n")
    with pytest.raises(UnreadableSource, match="something that no reader says"):
        seen(Readers(LimitSettings(seconds=60)), photo)


@pytest.mark.parametrize("kind", get_args(ClipKind))
@pytest.mark.parametrize(
    "content",
    [png_of(100_000, 100_000), endless_wav(), random.Random(5).randbytes(4_000), b""],
    ids=["pixel bomb", "endless sound", "noise", "nothing"],
)
def test_hostile_media_are_refused_or_cut_within_bounds(
    tmp_path: Path, kind: ClipKind, content: bytes
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    media_type = {"sounds": "audio/mpeg", "pages": "image/png", "frames": "video/mp4"}[kind]
    readers = Readers(LimitSettings(memory_mb=1024, processor_seconds=20, seconds=120))
    try:
        given = list(readers.clips(kind, path, "file", media_type, 1e9))
    except UnreadableSource:
        given = []
    finally:
        readers.close()
    assert sum(len(clip.content) for clip in given) <= 20 << 20


def test_a_piece_crosses_the_pipe_as_it_was() -> None:
    clip = Clip(b"\x00\xff" * 9, "sound.wav", 600.0, 12.5, 3)
    assert decode_answer(encode_message(Answer(clip=clip))).clip == clip
    with pytest.raises(InvalidMessage):
        decode_answer(encode_message({"clip": [clip]}))
