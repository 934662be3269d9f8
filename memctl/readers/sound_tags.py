"""What a recording says about itself: duration, title, artist, comments, lyrics, by tinytag.

ID3, MP4 and Vorbis name the same things differently, and so does tinytag where it has no field
for them; the table below is where they meet.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.files import open_regular
from memctl.readers.damage import told_as_damage, without_warnings
from memctl.readers.pieces import storable

if TYPE_CHECKING:
    from tinytag import TinyTag

LONGEST_TAG = 4_000
LONGEST_WORDS = 500_000
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
    """Read duration and tags; None for a format that tinytag doesn't know.

    Raises:
        UnreadableSource: It is of a known format and damaged.
    """
    from tinytag import TinyTag, TinyTagException, UnsupportedFormatError

    with (
        without_warnings(),
        told_as_damage(name, "a recording", TinyTagException),
        open_regular(path) as file,
    ):
        try:
            # Only the bytes are handed over: by the name it would take anything for an mp3.
            found = TinyTag.get(file_obj=file)
        except UnsupportedFormatError:
            return None
        if found.duration is None and not str(found.mime_type).startswith("audio/ogg"):
            raise ValueError("no sound is found in it")
        return _recording(found)


def _recording(found: TinyTag) -> Recording:
    told = {key: _value(found, names)[:LONGEST_TAG] for key, names in _NAMES.items()}
    lyrics = [text for name in _LYRICS for text in _texts(found, name)]
    timed = [text for text in lyrics if _TIMED_LINE.match(text)]
    return Recording(
        seconds=max(0.0, found.duration or 0.0),
        tags={key: text for key, text in told.items() if text},
        words=next((text for text in lyrics if text not in timed), "")[:LONGEST_WORDS],
        cues=tuple(_timed_cues(timed[0][:LONGEST_WORDS])) if timed else (),
    )


def _value(found: TinyTag, names: Iterable[str]) -> str:
    """The first of these tags that holds text, its several values joined."""
    return next((told for name in names if (told := "; ".join(_texts(found, name)))), "")


def _texts(found: TinyTag, name: str) -> list[str]:
    """The values of a tag: tinytag keeps the first in a field where it has one for it."""
    values = [getattr(found, name, None), *found.other.get(name, ())]
    texts = (storable(value).strip() for value in values if isinstance(value, str))
    return list(dict.fromkeys(text for text in texts if text))


def _timed_cues(lyrics: str) -> Iterator[Cue]:
    """Lyrics with times in the LRC format, as tinytag gives those of ID3: each until the next."""
    matches = filter(None, map(_TIMED_LINE.match, lyrics.splitlines()))
    lines = [(int(match[1]) * 60 + float(match[2]), match[3].strip()) for match in matches]
    for (start, text), (end, _) in pairwise([*lines, *lines[-1:]]):
        if text:
            yield Cue(start, max(start, end), text)


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
