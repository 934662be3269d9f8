"""What a recording says about itself: duration, title, artist, comments, lyrics, by mutagen.

ID3, MP4 and Vorbis name the same things differently; the table below is where they meet.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memctl.readers.damage import told_as_damage, without_warnings
from memctl.readers.pieces import storable

LONGEST_TAG = 4_000
LONGEST_WORDS = 500_000
"""Lyrics longer than this many characters are cut; some programs keep whole transcripts there."""

_NAMES: Mapping[str, tuple[str, ...]] = {
    "title": ("TIT2", "\xa9nam", "title"),
    "subtitle": ("TIT3", "\xa9st3", "subtitle"),
    "artist": ("TPE1", "\xa9ART", "artist"),
    "album": ("TALB", "\xa9alb", "album"),
    "date": ("TDRC", "TDRL", "TYER", "\xa9day", "date", "year"),
    "genre": ("TCON", "\xa9gen", "genre"),
    "composer": ("TCOM", "\xa9wrt", "composer"),
    "comment": ("COMM", "TXXX:comment", "\xa9cmt", "comment"),
    "description": ("TXXX:description", "desc", "ldes", "description", "synopsis"),
    "words": ("USLT", "\xa9lyr", "lyrics", "unsyncedlyrics", "transcript", "TXXX:transcript"),
}


@dataclass(frozen=True, slots=True)
class Cue:
    """Words with the seconds from and to which they are heard."""

    start: float
    end: float
    text: str


@dataclass(frozen=True, slots=True)
class Recording:
    """What is known of a recording before anybody has listened to it."""

    seconds: float = 0.0
    tags: Mapping[str, str] = field(default_factory=dict)
    words: str = ""
    cues: tuple[Cue, ...] = ()


def recording_of(path: Path, name: str) -> Recording | None:
    """Read duration and tags; None for a format that mutagen doesn't know.

    Raises:
        UnreadableSource: It is of a known format and damaged.
    """
    import mutagen

    with without_warnings(), told_as_damage(name, "a recording", mutagen.MutagenError):
        file = mutagen.File(path)
        if file is None:
            return None
        seconds = float(getattr(file.info, "length", 0.0) or 0.0)
        tags = file.tags
        values = {} if tags is None else {key: _value(tags, _NAMES[key]) for key in _NAMES}
        words = values.pop("words", "")[:LONGEST_WORDS]
        told = {key: text[:LONGEST_TAG] for key, text in values.items() if text}
        return Recording(max(0.0, seconds), told, words, tuple(_synced(tags)))


def _value(tags: Any, names: Iterable[str]) -> str:
    """The first of these tags that holds text, its several values joined."""
    for name in names:
        found = tags.getall(name) if hasattr(tags, "getall") else _items(tags, name)
        texts = dict.fromkeys(text for item in found for text in _texts(item))
        if texts:
            return "; ".join(texts)
    return ""


def _items(tags: Any, name: str) -> list[Any]:
    try:
        value = tags[name]
    except (KeyError, ValueError):  # Vorbis keys are ASCII, and it says so
        return []
    return value if isinstance(value, list) else [value]


def _texts(item: Any) -> Iterator[str]:
    """The texts of an ID3 frame or of a plain value; remarks that programs leave are not text."""
    if str(getattr(item, "desc", "")).startswith(("iTun", "ID3v1", "Songs-DB")):
        return
    values = getattr(item, "text", item)
    for value in values if isinstance(values, list) else [values]:
        text = "" if isinstance(value, bytes) else storable(str(value)).strip()
        if text:
            yield text


def _synced(tags: Any) -> Iterator[Cue]:
    """Lyrics with times, which only ID3 has: each lasts until the next."""
    frames = tags.getall("SYLT") if hasattr(tags, "getall") else []
    lines = [
        (moment / 1000, text)
        for frame in frames[:1]
        if frame.format == 2  # milliseconds, not MPEG frames
        for text, moment in frame.text
    ]
    for (start, text), (end, _) in zip(
        lines, [*lines[1:], lines[-1]] if lines else [], strict=True
    ):
        if text.strip():
            yield Cue(start, max(start, end), storable(text).strip())


def subtitles_from(cues: Iterable[Cue]) -> str:
    """The cues as WebVTT, which the reader of subtitles takes."""
    out = io.StringIO()
    for cue in cues:
        lines = "\n".join(line for line in cue.text.splitlines() if line.strip())
        out.write(f"{_clock(cue.start)} --> {_clock(cue.end)}\n{lines}\n\n")
    return out.getvalue()


def _clock(seconds: float) -> str:
    whole, fraction = divmod(round(max(0.0, seconds) * 1000), 1000)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}.{fraction:03}"
