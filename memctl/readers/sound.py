"""The sound of a recording, in pieces that are small enough to be sent somewhere.

Needs PyAV, which comes with the media extra, to cut; without it a recording goes whole or not at
all.
"""

from __future__ import annotations

import io
import wave
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from memctl.errors import MissingReader, UnreadableSource
from memctl.files import open_regular, read_regular
from memctl.readers.damage import told_as_damage
from memctl.readers.media import CONTAINERS
from memctl.readers.names import shown_name

MOST_BYTES = 20 << 20
MOST_SECONDS = 600.0
"""Servers take some 25 MB at once, and some of them no more than a quarter of an hour."""

_WHOLE = {
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "audio/flac": "flac",
    "audio/ogg": "ogg",
    "audio/mp4": "m4a",
    "video/mp4": "mp4",
    "video/webm": "webm",
}
"""What servers read as it is, with the name's ending that tells them so."""

_FORMATS = {
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "audio/flac": "flac",
    "audio/ogg": "ogg",
    **CONTAINERS,
}
_RATE = 16_000


@dataclass(frozen=True, slots=True)
class Sound:
    """A stretch of a recording as a file of its own."""

    start: float
    """Seconds into the recording."""
    seconds: float
    """How long it is; 0 where that is not known."""
    name: str
    content: bytes


def sounds_of(path: Path, name: str, media_type: str, seconds: float) -> Iterator[Sound]:
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
    ending = _WHOLE.get(media_type)
    is_small = path.stat().st_size <= MOST_BYTES and seconds <= MOST_SECONDS
    can_cut = find_spec("av") is not None
    if ending and is_small and not (can_cut and media_type.startswith("video/")):
        yield Sound(0.0, seconds, f"sound.{ending}", read_regular(path))
        return
    if not can_cut:
        raise MissingReader(
            f"{shown_name(name)} is too big, or of a kind that cannot be sent as it is",
            "pip install 'memctl[media]' takes its sound out and cuts it",
        )
    yield from _cut(path, name, _FORMATS[media_type])


def _cut(path: Path, name: str, format_: str) -> Iterator[Sound]:
    import av

    at_once = int(MOST_SECONDS * _RATE)
    start, taken = 0, bytearray()
    with (
        open_regular(path) as file,
        told_as_damage(name, "a recording", av.FFmpegError),
        av.open(file, "r", format=format_, metadata_errors="replace") as source,
    ):
        if not source.streams.audio:
            raise UnreadableSource(f"{shown_name(name)} has no sound")
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


def _as_wav(start: int, samples: bytes | bytearray) -> Sound:
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(_RATE)
        file.writeframes(samples)
    return Sound(start / _RATE, len(samples) / 2 / _RATE, "sound.wav", content.getvalue())
