"""What stands in a video file beside its sound: embedded subtitles and text on the screen.

Needs PyAV, which comes with the media extra; without it there is nothing to be had here.  The
format is always named and the bytes are handed over, so that no file can make FFmpeg take it for
a playlist and open other files or addresses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from memctl.files import open_regular
from memctl.readers.damage import DAMAGE, told_as_damage
from memctl.readers.ocr import find_ocr
from memctl.readers.pieces import storable
from memctl.readers.sound_tags import Cue

KEY_FRAMES = 12
"""So many frames of a video are looked at, evenly spread."""

SECONDS_A_FRAME = 5
MOST_PIXELS = 40_000_000
MOST_CUES = 100_000

_MICROSECONDS = 1_000_000
_OVERRIDE = re.compile(r"\{\\[^}]*\}")
_ENGLISH = ("eng", "en")


@dataclass(frozen=True, slots=True)
class Footage:
    """What a video file holds; ``has_sound`` tells whether there could be words to hear."""

    seconds: float = 0.0
    width: int = 0
    height: int = 0
    has_sound: bool = True
    tags: Mapping[str, str] = field(default_factory=dict)
    cues: tuple[Cue, ...] = ()
    screen: tuple[Cue, ...] = ()


def footage_of(path: Path, name: str, container: str) -> Footage | None:
    """Look into a file of the container format ``matroska`` or ``mp4``; None without PyAV.

    Raises:
        UnreadableSource: It is damaged.
    """
    if find_spec("av") is None:
        return None
    import av

    with (
        open_regular(path) as file,
        told_as_damage(name, "a video", av.FFmpegError),
        av.open(file, "r", format=container, metadata_errors="replace") as source,
    ):
        video = _picture_stream(source)
        return Footage(
            seconds=max(0.0, (source.duration or 0) / _MICROSECONDS),
            width=video.codec_context.width if video else 0,
            height=video.codec_context.height if video else 0,
            has_sound=bool(source.streams.audio),
            tags={key.lower(): storable(value) for key, value in source.metadata.items()},
            cues=tuple(_cues(source)),
            screen=tuple(_screen_texts(source, video)) if video else (),
        )


def key_frames(path: Path, name: str, container: str) -> Iterator[tuple[float, Any]]:
    """Yield frames of a video with their seconds, evenly spread; none without PyAV.

    Args:
        path: Where it is.
        name: What it is called.
        container: As for ``footage_of``.

    Raises:
        UnreadableSource: It is damaged.
    """
    if find_spec("av") is None:
        return
    import av

    with (
        open_regular(path) as file,
        told_as_damage(name, "a video", av.FFmpegError),
        av.open(file, "r", format=container, metadata_errors="replace") as source,
    ):
        video = _picture_stream(source)
        if video and 0 < video.codec_context.width * video.codec_context.height <= MOST_PIXELS:
            yield from _key_frames(source, video)


def _picture_stream(source: Any) -> Any:
    """The first stream of moving pictures; covers are streams of one picture."""
    moving = (s for s in source.streams.video if "attached_pic" not in str(s.disposition))
    return next((stream for stream in moving if stream.codec_context is not None), None)


# --- subtitles -----------------------------------------------------------------------------------


def _cues(source: Any) -> Iterator[Cue]:
    """The cues of one track of subtitles: English if there is one, else the first."""
    tracks = sorted(
        (stream for stream in source.streams.subtitles if stream.codec_context is not None),
        key=lambda stream: stream.language not in _ENGLISH,
    )
    count = 0
    for packet in source.demux(tracks[0]) if tracks else ():
        for text in _packet_texts(packet):
            start = float((packet.pts or 0) * packet.time_base)
            yield Cue(start, start + float((packet.duration or 0) * packet.time_base), text)
            count += 1
        if count >= MOST_CUES:
            return


def _packet_texts(packet: Any) -> Iterator[str]:
    """The text of a packet; subtitles that are pictures have none."""
    if packet.pts is None:
        return
    for line in packet.decode():
        dialogue = getattr(line, "dialogue", b"") or b""
        text = _OVERRIDE.sub("", storable(dialogue.decode("utf-8", "replace"))).strip()
        if text:
            yield text.replace("\\N", "\n")


# --- text on the screen --------------------------------------------------------------------------


def _screen_texts(source: Any, video: Any) -> Iterator[Cue]:
    """Lines that come up on the screen, each where it is first seen."""
    ocr = find_ocr()
    pixels = video.codec_context.width * video.codec_context.height
    if ocr is None or not 0 < pixels <= MOST_PIXELS:
        return
    seen: set[str] = set()
    for moment, image in _key_frames(source, video):
        lines = (ocr.read(image) or "").splitlines()
        new = [line for line in lines if line and line.casefold() not in seen]
        seen.update(line.casefold() for line in new)
        if new:
            yield Cue(moment, moment, "\n".join(new))


def _key_frames(source: Any, video: Any) -> Iterator[tuple[float, Any]]:
    """Frames that stand on their own, near evenly spread moments, with their seconds."""
    from av import FFmpegError

    seconds = (source.duration or 0) / _MICROSECONDS
    count = max(1, min(KEY_FRAMES, int(seconds / SECONDS_A_FRAME) + 1))
    video.codec_context.skip_frame = "NONKEY"
    failures: tuple[type[Exception], ...] = (*DAMAGE, FFmpegError)
    last: float | None = None
    for number in range(count):
        try:
            source.seek(int((number + 0.5) / count * seconds * _MICROSECONDS))
            frame = next(source.decode(video), None)
            moment = float(frame.time or 0.0) if frame is not None else last
            if frame is not None and moment is not None and moment != last:
                yield moment, frame.to_image()
                last = moment
        except failures:
            continue  # the file's end may be missing, or no frame can be found from here
