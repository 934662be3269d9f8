"""What a model may hear or see of a file: pieces of it that are small enough to be sent.

Making them decodes the file, so it is done in a process apart; see ``Readers.clips``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from memctl.errors import OverLimit
from memctl.readers.names import shown_name

ClipKind = Literal["sounds", "pages", "frames"]
CLIP_KINDS: tuple[ClipKind, ...] = get_args(ClipKind)

MOST_PAGES = 12
MOST_HOURS = 24
"""Of sound: a small file can claim, and be decoded into, years of silence."""
MOST_CLIPS = 1_000


@dataclass(frozen=True, slots=True)
class Clip:
    """A piece of a recording, a picture or a video as a file of its own."""

    content: bytes
    name: str
    """Whose ending says what it is."""
    start: float = 0.0
    """Seconds into the whole."""
    seconds: float = 0.0
    """How long it is; 0 where that is not known, and of pictures."""
    page: int | None = None


def clips(kind: ClipKind, path: Path, name: str, media_type: str, seconds: float) -> Iterator[Clip]:
    """Yield the stretches of a recording, the pages of a picture or some frames of a video.

    Args:
        kind: Which of those.
        path: Where the file is.
        name: What it is called.
        media_type: What it is.
        seconds: The length of a recording, 0 where that is not known.

    Raises:
        UnreadableSource: It is damaged, or more than is taken.
    """
    if kind == "sounds":
        yield from _sounds(path, name, media_type, seconds)
    elif kind == "pages":
        yield from _pages(path, name)
    else:
        yield from _frames(path, name, media_type)


def length_of(metadata: Mapping[str, Any]) -> float:
    """Return the seconds that a document's recording lasts; 0 where that is not known."""
    length = metadata.get("duration")
    return float(length) if isinstance(length, (int, float)) else 0.0


def _sounds(path: Path, name: str, media_type: str, seconds: float) -> Iterator[Clip]:
    from memctl.readers.sound import sounds_of

    if seconds > MOST_HOURS * 3600:
        raise _too_long(name)
    for sound in sounds_of(path, name, media_type, seconds):
        if sound.start >= MOST_HOURS * 3600:
            raise _too_long(name)
        yield Clip(sound.content, sound.name, sound.start, sound.seconds)


def _too_long(name: str) -> OverLimit:
    return OverLimit(
        f"{shown_name(name)} lasts longer than {MOST_HOURS} hours", "cut it into shorter ones"
    )


def _pages(path: Path, name: str) -> Iterator[Clip]:
    from memctl.models.image_reader import jpeg_of
    from memctl.readers.image import pages_of

    for page, image in pages_of(path, name, MOST_PAGES):
        yield Clip(jpeg_of(image), "page.jpg", page=page)


def _frames(path: Path, name: str, media_type: str) -> Iterator[Clip]:
    from memctl.models.image_reader import jpeg_of
    from memctl.readers.footage import key_frames
    from memctl.readers.media import CONTAINERS

    for moment, image in key_frames(path, name, CONTAINERS[media_type]):
        yield Clip(jpeg_of(image), "frame.jpg", moment)
