"""Sound and video become what is said in them, as far as somebody has written it down.

Words come from a subtitle file beside the recording, from subtitles or lyrics inside it, and from
text on the screen; nothing here listens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from memctl.errors import UnreadableSource
from memctl.files import open_regular
from memctl.readers.detection import media_type_by_magic
from memctl.readers.document_properties import parse_date, plausible_date, plausible_title
from memctl.readers.file_kinds import FILE_KINDS
from memctl.readers.file_names import clean_title, date_from_name, display_name, title_from_name
from memctl.readers.media.recording_content import (
    RecordingTags,
    VideoContent,
    read_recording_tags,
    read_video,
)
from memctl.readers.media.subtitles import cue_pieces, find_sidecar, subtitle_pieces
from memctl.readers.pieces import Piece, assemble, new_document
from memctl.readers.reader_errors import damage_as_unreadable
from memctl.readers.text_files.decoding import read_whole
from memctl.readers.text_files.plain_text import prose_pieces
from memctl.records import SourceText

TRANSCRIPT = "transcript"
LARGEST_SIDECAR = 50 * 1024 * 1024

_TOLD = ("subtitle", "artist", "album", "date", "genre", "composer", "comment", "description")
_FULL_DATE = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class _Heard:
    """Everything that was found of one recording."""

    media_type: str
    recording: RecordingTags
    footage: VideoContent
    sidecar: Path | None

    @property
    def seconds(self) -> float:
        """Its length; 0 where that is not known."""
        return self.recording.seconds or self.footage.seconds

    def tag(self, key: str) -> str:
        """A tag of the sound or else of the container; "" where there is none."""
        return self.recording.tags.get(key) or self.footage.tags.get(key, "")


def read(path: Path, name: str) -> Iterator[SourceText]:
    """Yield one document: what the recording is, then its words with their times.

    Raises:
        UnreadableSource: It is damaged, or neither sound nor video.
    """
    heard = _look_into(path, name)
    spoken = list(_spoken(heard))
    summary = _summary(heard, name)
    pieces = [Piece(summary + "\n", "properties"), *spoken, *_screen(heard)]
    if len(pieces) > 1 and "\n" not in summary:
        del pieces[0]  # its title says as much
    missing = () if spoken or not heard.footage.has_sound else (TRANSCRIPT,)
    yield from assemble(_head(heard, name, missing), pieces)


def _look_into(path: Path, name: str) -> _Heard:
    with open_regular(path) as file, damage_as_unreadable(name, "a recording"):
        media_type = media_type_by_magic(file.read(1024))
    kind = FILE_KINDS.get(media_type)
    container = kind.container if kind else ""
    recording = read_recording_tags(path, name)
    footage = read_video(path, name, container) if container else None
    if recording is None and footage is None and not container:
        raise UnreadableSource(
            f"{display_name(name)} is neither sound nor video that can be read",
            "check that it plays, or convert it to mp3 or mp4",
        )
    return _Heard(
        media_type,
        recording or RecordingTags(),
        footage or VideoContent(),
        find_sidecar(path, name),
    )


# --- words ---------------------------------------------------------------------------------------


def _spoken(heard: _Heard) -> Iterator[Piece]:
    """What is said, from the best source that has any words."""
    recording = heard.recording
    sources = (
        lambda: _sidecar_pieces(heard.sidecar),
        lambda: cue_pieces(heard.footage.cues),
        lambda: cue_pieces(recording.cues),
        lambda: prose_pieces(recording.words + "\n") if recording.words else (),
    )
    for source in sources:
        if pieces := list(source()):
            yield Piece("\n")
            yield from pieces
            return


def _sidecar_pieces(sidecar: Path | None) -> list[Piece]:
    """Its cues; none when it cannot be read, since the recording can still be found by name."""
    if sidecar is None:
        return []
    try:
        return list(subtitle_pieces(read_whole(sidecar, sidecar.name, LARGEST_SIDECAR)))
    except (UnreadableSource, OSError):
        return []


def _screen(heard: _Heard) -> Iterator[Piece]:
    for cue in heard.footage.screen:
        lines = "\n".join(cue.lines)
        text = f"\nOn screen: {lines}\n"
        yield Piece(text, "caption", time_start=cue.start, time_end=cue.end)


# --- what it is ----------------------------------------------------------------------------------


def _title(heard: _Heard, name: str) -> str:
    return plausible_title(heard.tag("title")) or title_from_name(name)


def _summary(heard: _Heard, name: str) -> str:
    """What the recording is: ``Sound recording “Site visit”, 2 min 31 s.`` and its tags."""
    kind = "Video" if heard.media_type.startswith("video/") else "Sound recording"
    length = f", {duration_text(heard.seconds)}" if heard.seconds else ""
    lines = [f"{kind} “{_title(heard, name)}”{length}."]
    told = ((key, clean_title(heard.tag(key))) for key in _TOLD)
    lines += [f"{key.capitalize()}: {text}" for key, text in told if text]
    named = title_from_name(name)
    if named.casefold() != _title(heard, name).casefold():
        lines.append(f"File: {named}")
    return "\n".join(lines)


def duration_text(seconds: float) -> str:
    """A length of time as one says it: ``1 h 2 min``, ``2 min 31 s``, ``8 s``."""
    whole = max(1, round(seconds))
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _created_at(heard: _Heard, name: str) -> datetime | None:
    """The day it was recorded; a year alone is no date."""
    for key in ("date", "creation_time"):
        if _FULL_DATE.match(heard.tag(key)) and (
            moment := plausible_date(parse_date(heard.tag(key)))
        ):
            return moment
    return date_from_name(name)


def _head(heard: _Heard, name: str, missing: tuple[str, ...]) -> SourceText:
    artist = clean_title(heard.tag("artist"))
    facts: dict[str, Any] = {key: text for key in _TOLD if (text := clean_title(heard.tag(key)))}
    if heard.seconds:
        facts["duration"] = round(heard.seconds, 2)
    if heard.footage.width:
        facts |= {"width": heard.footage.width, "height": heard.footage.height}
    if heard.sidecar:
        facts["subtitles"] = display_name(heard.sidecar.name)
    return new_document(
        title=_title(heard, name),
        authors=(artist,) if artist else (),
        created_at=_created_at(heard, name),
        metadata=facts,
        missing=missing,
    )
