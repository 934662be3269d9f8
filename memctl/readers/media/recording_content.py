"""What a recording says about itself, and what a video holds beside its sound.

Duration, tags and lyrics come from tinytag.  ID3, MP4 and Vorbis name the same things differently,
and so does tinytag where it has no field for them; a table here brings them together.  Embedded
subtitles and text on the screen need PyAV, which comes with the media extra.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from memctl.files import open_regular
from memctl.readers.media.image_ocr import find_ocr
from memctl.readers.media.subtitles import Cue, make_cue
from memctl.readers.pieces import storable_text
from memctl.readers.reader_errors import PARSER_ERRORS, damage_as_unreadable, without_warnings

if TYPE_CHECKING:
    from tinytag import TinyTag

MAX_TAG_LENGTH = 4_000
MAX_WORDS_LENGTH = 500_000
"""Lyrics longer than this many characters are cut; some programs keep whole transcripts there."""

_NAMES: Mapping[str, tuple[str, ...]] = {
    "title": ("title",),
    "subtitle": ("tit3", "\xa9st3", "subtitle"),
    "artist": ("artist",),
    "album": ("album",),
    "date": ("year", "tdrl", "_year"),
    "genre": ("genre",),
    "composer": ("composer",),
    "comment": ("comment", "_comment"),
    "description": ("description", "ldes", "synopsis"),
}
_LYRICS = ("lyrics", "transcript")
_TIMED_LINE = re.compile(r"\[(\d+):(\d\d(?:\.\d+)?)\](.*)")


class RecordingTags(Struct, frozen=True):
    """What is known of a recording before it is transcribed."""

    seconds: float = 0.0
    tags: Mapping[str, str] = field(default_factory=dict)
    words: str = ""
    cues: tuple[Cue, ...] = ()


def read_recording_tags(path: Path, name: str) -> RecordingTags | None:
    """Read duration and tags; None for a format that tinytag doesn't know.

    Raises:
        UnreadableSource: It is of a known format and damaged.
    """
    from tinytag import TinyTag, TinyTagException, UnsupportedFormatError

    with (
        without_warnings(),
        damage_as_unreadable(name, "a recording", TinyTagException),
        open_regular(path) as file,
    ):
        try:
            # Only the bytes are handed over: by the name it would take anything for an mp3.
            tags = TinyTag.get(file_obj=file)
        except UnsupportedFormatError:
            return None
        if tags.duration is None and not str(tags.mime_type).startswith("audio/ogg"):
            raise ValueError("no sound is found in it")
        return _recording(tags)


def _recording(tags: TinyTag) -> RecordingTags:
    values = {key: _value(tags, names)[:MAX_TAG_LENGTH] for key, names in _NAMES.items()}
    lyrics = [text for name in _LYRICS for text in _texts(tags, name)]
    timed = [text for text in lyrics if _TIMED_LINE.match(text)]
    return RecordingTags(
        seconds=max(0.0, tags.duration or 0.0),
        tags={key: text for key, text in values.items() if text},
        words=next((text for text in lyrics if text not in timed), "")[:MAX_WORDS_LENGTH],
        cues=tuple(_timed_cues(timed[0][:MAX_WORDS_LENGTH])) if timed else (),
    )


def _value(tags: TinyTag, names: Iterable[str]) -> str:
    """The first of these tags that holds text, its several values joined."""
    return next((values for name in names if (values := "; ".join(_texts(tags, name)))), "")


def _texts(tags: TinyTag, name: str) -> list[str]:
    """The values of a tag: tinytag keeps the first in a field where it has one for it."""
    values = [getattr(tags, name, None), *tags.other.get(name, ())]
    texts = (storable_text(value).strip() for value in values if isinstance(value, str))
    return list(dict.fromkeys(text for text in texts if text))


def _timed_cues(lyrics: str) -> Iterator[Cue]:
    """Lyrics with times in the LRC format, as tinytag gives those of ID3: each until the next."""
    matches = filter(None, map(_TIMED_LINE.match, lyrics.splitlines()))
    lines = [(int(match[1]) * 60 + float(match[2]), match[3].strip()) for match in matches]
    for (start, text), (end, _) in pairwise([*lines, *lines[-1:]]):
        if text:
            yield make_cue(start, max(start, end), text)


KEY_FRAMES = 12
"""Frames of a video that are examined, evenly spread."""

SECONDS_A_FRAME = 5
MAX_PIXELS = 40_000_000
MAX_CUES = 100_000

_MICROSECONDS = 1_000_000
_OVERRIDE = re.compile(r"\{\\[^}]*\}")
_ENGLISH = ("eng", "en")


class VideoContent(Struct, frozen=True):
    """What a video file holds; ``has_sound`` tells whether there could be words to hear."""

    seconds: float = 0.0
    width: int = 0
    height: int = 0
    has_sound: bool = True
    tags: Mapping[str, str] = field(default_factory=dict)
    cues: tuple[Cue, ...] = ()
    screen: tuple[Cue, ...] = ()


@contextmanager
def _open_container(path: Path, name: str, container: str) -> Iterator[Any]:
    """Open a video; the format is always named and the bytes are handed over, so that no file can
    make FFmpeg take it for a playlist and open other files or addresses."""
    import av

    with (
        open_regular(path) as file,
        damage_as_unreadable(name, "a video", av.FFmpegError),
        av.open(file, "r", format=container, metadata_errors="replace") as source,
    ):
        yield source


def read_video(path: Path, name: str, container: str) -> VideoContent | None:
    """Look into a file of the container format ``matroska`` or ``mp4``; None without PyAV.

    Raises:
        UnreadableSource: It is damaged.
    """
    if find_spec("av") is None:
        return None
    with _open_container(path, name, container) as source:
        video = _picture_stream(source)
        return VideoContent(
            seconds=max(0.0, (source.duration or 0) / _MICROSECONDS),
            width=video.codec_context.width if video else 0,
            height=video.codec_context.height if video else 0,
            has_sound=bool(source.streams.audio),
            tags={key.lower(): storable_text(value) for key, value in source.metadata.items()},
            cues=tuple(_subtitle_cues(source)),
            screen=tuple(_screen_texts(source, video)) if video else (),
        )


def key_frames(path: Path, name: str, container: str) -> Iterator[tuple[float, Any]]:
    """Yield frames of a video with their seconds, evenly spread; none without PyAV.

    Args:
        path: Where it is.
        name: What it is called.
        container: As for ``read_video``.

    Raises:
        UnreadableSource: It is damaged.
    """
    if find_spec("av") is None:
        return
    with _open_container(path, name, container) as source:
        video = _picture_stream(source)
        if video and 0 < video.codec_context.width * video.codec_context.height <= MAX_PIXELS:
            yield from _key_frames(source, video)


def _picture_stream(source: Any) -> Any:
    """The first stream of moving pictures; covers are streams of one picture."""
    moving = (s for s in source.streams.video if "attached_pic" not in str(s.disposition))
    return next((stream for stream in moving if stream.codec_context is not None), None)


# --- subtitles -----------------------------------------------------------------------------------


def _subtitle_cues(source: Any) -> Iterator[Cue]:
    """The cues of one track of subtitles: English if there is one, else the first."""
    tracks = sorted(
        (stream for stream in source.streams.subtitles if stream.codec_context is not None),
        key=lambda stream: stream.language not in _ENGLISH,
    )
    count = 0
    for packet in source.demux(tracks[0]) if tracks else ():
        for text in _packet_texts(packet):
            start = float((packet.pts or 0) * packet.time_base)
            end = start + float((packet.duration or 0) * packet.time_base)
            yield make_cue(start, end, text)
            count += 1
        if count >= MAX_CUES:
            return


def _packet_texts(packet: Any) -> Iterator[str]:
    """The text of a packet; subtitles that are pictures have none."""
    if packet.pts is None:
        return
    for line in packet.decode():
        dialogue = getattr(line, "dialogue", b"") or b""
        text = _OVERRIDE.sub("", storable_text(dialogue.decode("utf-8", "replace"))).strip()
        if text:
            yield text.replace("\\N", "\n")


# --- text on the screen --------------------------------------------------------------------------


def _screen_texts(source: Any, video: Any) -> Iterator[Cue]:
    """Lines that come up on the screen, each where it is first seen."""
    ocr = find_ocr()
    pixels = video.codec_context.width * video.codec_context.height
    if ocr is None or not 0 < pixels <= MAX_PIXELS:
        return
    seen: set[str] = set()
    for moment, image in _key_frames(source, video):
        lines = (ocr.read(image) or "").splitlines()
        new = [line for line in lines if line and line.casefold() not in seen]
        seen.update(line.casefold() for line in new)
        if new:
            yield Cue(moment, moment, tuple(new))


def _key_frames(source: Any, video: Any) -> Iterator[tuple[float, Any]]:
    """Frames that stand on their own, near evenly spread moments, with their seconds."""
    from av import FFmpegError

    seconds = (source.duration or 0) / _MICROSECONDS
    count = max(1, min(KEY_FRAMES, int(seconds / SECONDS_A_FRAME) + 1))
    video.codec_context.skip_frame = "NONKEY"
    failures: tuple[type[Exception], ...] = (*PARSER_ERRORS, FFmpegError)
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
