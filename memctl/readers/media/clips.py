"""Clips of a file for a model to hear or see, small enough to be sent.

Making them decodes the file, so it is done in an isolated process; see ``Readers.clips``.  Cutting
sound needs PyAV, which comes with the media extra; without it a recording is sent whole or not at
all.
"""

from __future__ import annotations

import io
import wave
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from memctl.errors import MissingReader, OverLimit, UnreadableSource
from memctl.files import open_regular, read_regular
from memctl.readers.file_kinds import kind_of_media_type
from memctl.readers.file_names import display_name
from memctl.readers.reader_errors import damage_as_unreadable

ClipKind = Literal["sounds", "pages", "frames"]

MAX_PAGES = 12
MAX_HOURS = 24
"""The longest sound: a small file can decode into years of silence."""
MAX_CLIPS = 1_000


class Clip(Struct, frozen=True):
    """A part of a recording, a picture or a video as a file of its own."""

    content: bytes
    name: str
    """Whose ending says what it is."""
    start: float = 0.0
    """Seconds into the whole."""
    seconds: float = 0.0
    """How long it is; 0 where that is not known, and of pictures."""
    page: int | None = None


def make_clips(
    kind: ClipKind, path: Path, name: str, media_type: str, seconds: float
) -> Iterator[Clip]:
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


def recording_seconds(metadata: Mapping[str, Any]) -> float:
    """Return the seconds that a document's recording lasts; 0 where that is not known."""
    length = metadata.get("duration")
    return float(length) if isinstance(length, (int, float)) else 0.0


def _sounds(path: Path, name: str, media_type: str, seconds: float) -> Iterator[Clip]:
    if seconds > MAX_HOURS * 3600:
        raise _too_long(name)
    for sound in audio_segments(path, name, media_type, seconds):
        if sound.start >= MAX_HOURS * 3600:
            raise _too_long(name)
        yield sound


def _too_long(name: str) -> OverLimit:
    return OverLimit(
        f"{display_name(name)} lasts longer than {MAX_HOURS} hours", "cut it into shorter ones"
    )


def _pages(path: Path, name: str) -> Iterator[Clip]:
    from memctl.models.remote_models import jpeg_of
    from memctl.readers.media.images import image_pages

    for page, image in image_pages(path, name, MAX_PAGES):
        yield Clip(jpeg_of(image), "page.jpg", page=page)


def _frames(path: Path, name: str, media_type: str) -> Iterator[Clip]:
    from memctl.models.remote_models import jpeg_of
    from memctl.readers.media.recording_content import key_frames

    for moment, image in key_frames(path, name, kind_of_media_type(media_type).container):
        yield Clip(jpeg_of(image), "frame.jpg", moment)


MAX_BYTES = 20 << 20
MAX_SECONDS = 600.0
"""Servers take some 25 MB at once, and some of them no more than a quarter of an hour."""

_RATE = 16_000


def audio_segments(path: Path, name: str, media_type: str, seconds: float) -> Iterator[Clip]:
    """Yield a recording as it is where it is small, else its sound in stretches of ten minutes.

    Args:
        path: Where it is.
        name: What it is called.
        media_type: What it is.
        seconds: Its length, 0 where that is not known.

    Raises:
        MissingReader: It must be cut, which needs the media extra.
        UnreadableSource: It is damaged, or has no sound.
    """
    kind = kind_of_media_type(media_type)
    is_small = path.stat().st_size <= MAX_BYTES and seconds <= MAX_SECONDS
    can_cut = find_spec("av") is not None
    if kind.upload_suffix and is_small and not (can_cut and kind.family == "video"):
        yield Clip(read_regular(path), f"sound.{kind.upload_suffix}", 0.0, seconds)
        return
    if not can_cut:
        raise MissingReader(
            f"{display_name(name)} is too big, or of a kind that cannot be sent as it is",
            "pip install av; with it, the sound is taken out and cut",
        )
    yield from _cut_clips(path, name, kind.container or kind.upload_suffix)


def _cut_clips(path: Path, name: str, format_: str) -> Iterator[Clip]:
    import av

    at_once = int(MAX_SECONDS * _RATE)
    start, taken = 0, bytearray()
    with (
        open_regular(path) as file,
        damage_as_unreadable(name, "a recording", av.FFmpegError),
        av.open(file, "r", format=format_, metadata_errors="replace") as source,
    ):
        if not source.streams.audio:
            raise UnreadableSource(f"{display_name(name)} has no sound")
        for samples in _samples(source):
            taken += samples
            while len(taken) >= 2 * at_once:
                yield _as_wav(start, taken[: 2 * at_once])
                del taken[: 2 * at_once]
                start += at_once
    if taken:
        yield _as_wav(start, taken)


def _samples(source: Any) -> Iterator[bytes]:
    """The first track as 16-bit samples of one channel; what cannot be decoded is left out."""
    import av

    resampler = av.AudioResampler(format="s16", layout="mono", rate=_RATE)
    for packet in source.demux(source.streams.audio[0]):
        try:
            frames = packet.decode()
        except av.InvalidDataError:
            continue
        for frame in frames:
            for plain in resampler.resample(frame):
                yield plain.to_ndarray().tobytes()
    for plain in resampler.resample(None):
        yield plain.to_ndarray().tobytes()


def _as_wav(start: int, samples: bytes | bytearray) -> Clip:
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(_RATE)
        file.writeframes(samples)
    return Clip(content.getvalue(), "sound.wav", start / _RATE, len(samples) / 2 / _RATE)
