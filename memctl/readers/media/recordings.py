"""Sound and video become what is said in them, as far as there is a text of it.

Words come from a subtitle file beside the recording, from subtitles or lyrics inside it, and from
text on the screen; nothing here listens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

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
from memctl.readers.text_files.headed_text import prose_pieces
from memctl.records import SourceText

TRANSCRIPT = "transcript"
MAX_SIDECAR_BYTES = 50 * 1024 * 1024

_TAG_NAMES = ("subtitle", "artist", "album", "date", "genre", "composer", "comment", "description")
_FULL_DATE = re.compile(r"\d{4}-\d\d-\d\d")


class _Contents(Struct, frozen=True):
    """Everything found in one recording and beside it."""

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
    contents = _read_contents(path, name)
    spoken = list(_spoken_pieces(contents))
    summary = _summary(contents, name)
    pieces = [Piece(summary + "\n", "properties"), *spoken, *_screen(contents)]
    if len(pieces) > 1 and "\n" not in summary:
        del pieces[0]  # its title says as much
    missing = () if spoken or not contents.footage.has_sound else (TRANSCRIPT,)
    yield from assemble(_head(contents, name, missing), pieces)


def _read_contents(path: Path, name: str) -> _Contents:
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
    return _Contents(
        media_type,
        recording or RecordingTags(),
        footage or VideoContent(),
        find_sidecar(path, name),
    )


# --- words ---------------------------------------------------------------------------------------


def _spoken_pieces(contents: _Contents) -> Iterator[Piece]:
    """What is said, from the best source that has any words."""
    recording = contents.recording
    sources = (
        lambda: _sidecar_pieces(contents.sidecar),
        lambda: cue_pieces(contents.footage.cues),
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
        return list(subtitle_pieces(read_whole(sidecar, sidecar.name, MAX_SIDECAR_BYTES)))
    except (UnreadableSource, OSError):
        return []


def _screen(contents: _Contents) -> Iterator[Piece]:
    for cue in contents.footage.screen:
        lines = "\n".join(cue.lines)
        text = f"\nOn screen: {lines}\n"
        yield Piece(text, "caption", time_start=cue.start, time_end=cue.end)


# --- what it is ----------------------------------------------------------------------------------


def _title(contents: _Contents, name: str) -> str:
    return plausible_title(contents.tag("title")) or title_from_name(name)


def _summary(contents: _Contents, name: str) -> str:
    """What the recording is: ``Sound recording “Site visit”, 2 min 31 s.`` and its tags."""
    kind = "Video" if contents.media_type.startswith("video/") else "Sound recording"
    length = f", {duration_text(contents.seconds)}" if contents.seconds else ""
    lines = [f"{kind} “{_title(contents, name)}”{length}."]
    tags = ((key, clean_title(contents.tag(key))) for key in _TAG_NAMES)
    lines += [f"{key.capitalize()}: {text}" for key, text in tags if text]
    named = title_from_name(name)
    if named.casefold() != _title(contents, name).casefold():
        lines.append(f"File: {named}")
    return "\n".join(lines)


def duration_text(seconds: float) -> str:
    """A length of time as one says it: ``1 h 2 min``, ``2 min 31 s``, ``8 s``."""
    whole = max(1, round(seconds))
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _created_at(contents: _Contents, name: str) -> datetime | None:
    """The day it was recorded; a year alone is no date."""
    for key in ("date", "creation_time"):
        if _FULL_DATE.match(contents.tag(key)) and (
            moment := plausible_date(parse_date(contents.tag(key)))
        ):
            return moment
    return date_from_name(name)


def _head(contents: _Contents, name: str, missing: tuple[str, ...]) -> SourceText:
    artist = clean_title(contents.tag("artist"))
    facts: dict[str, Any] = {
        key: text for key in _TAG_NAMES if (text := clean_title(contents.tag(key)))
    }
    if contents.seconds:
        facts["duration"] = round(contents.seconds, 2)
    if contents.footage.width:
        facts |= {"width": contents.footage.width, "height": contents.footage.height}
    if contents.sidecar:
        facts["subtitles"] = display_name(contents.sidecar.name)
    return new_document(
        title=_title(contents, name),
        authors=(artist,) if artist else (),
        created_at=_created_at(contents, name),
        metadata=facts,
        missing=missing,
    )
