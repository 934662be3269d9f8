"""Subtitles, SubRip and WebVTT: what is said, with its times and, where it is told, the speaker."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memctl.errors import EmptySource
from memctl.readers.decoding import read_whole
from memctl.readers.names import date_from_name, shown_name, title_from_name
from memctl.readers.pieces import Piece, assemble
from memctl.readers.registry import extension_of
from memctl.records import Segment, SourceText

LARGEST = 50 * 1024 * 1024

_TIME = r"(?:(\d{1,3}):)?(\d{1,2}):(\d{2})[.,](\d{1,3})"
_CUE = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:[^\S\n].*)?$")
_VOICE = re.compile(r"<v(?:\.[\w.-]+)?\s+([^>\n]{1,80})>")
_TAG = re.compile(r"</?[^<>\n]{1,200}>|\{\\[^}\n]*\}")
_SPEAKER = re.compile(r"(?:-\s*)?([A-Z][\w.'’-]*(?: [A-Z][\w.'’-]*){0,2}):\s+(?=\S)")


@dataclass(frozen=True, slots=True)
class _Cue:
    start: float
    end: float
    lines: tuple[str, ...]


def read(path: Path, name: str) -> Iterator[SourceText]:
    """Read a subtitle file on its own."""
    pieces = list(subtitle_pieces(read_whole(path, name, LARGEST)))
    if not pieces:
        raise EmptySource(f"{shown_name(name)} holds no subtitles", "check how it was made")
    kind = "text/vtt" if extension_of(name) == ".vtt" else "application/x-subrip"
    head = SourceText(
        "", kind, "subtitles/1", title=title_from_name(name), created_at=date_from_name(name)
    )
    return assemble(head, pieces)


def read_subtitles(text: str) -> tuple[str, tuple[Segment, ...]]:
    """The words of a SubRip or WebVTT text and their segments with times, as one text.

    Nothing is raised for damaged text: what is no cue is left out.
    """
    head = SourceText("", "", "")
    parts = list(assemble(head, subtitle_pieces(text), limit=len(text) + 1))
    return (parts[0].text, parts[0].segments) if parts else ("", ())


def subtitle_pieces(text: str) -> Iterator[Piece]:
    """One piece for each cue; lines that roll on from the cue before are not repeated."""
    before: tuple[str, ...] = ()
    speaker: str | None = None
    for cue in _cues(text):
        speaker, lines = _spoken(cue.lines)
        new = tuple(line for line in lines if line not in before)
        before = lines
        if new:
            said = " ".join(new)
            yield Piece(
                f"{speaker}: {said}\n" if speaker else f"{said}\n",
                "turn" if speaker else "caption",
                time_start=cue.start,
                time_end=max(cue.start, cue.end),
                speaker=speaker,
            )


def _cues(text: str) -> Iterator[_Cue]:
    """Cues in the order of the file; a cue's lines end at a blank line or the next cue's times."""
    times: tuple[float, float] | None = None
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        match = _CUE.match(line) if "-->" in line else None
        if match is None and line.strip():
            lines.append(line.strip())
            continue
        if times:
            unnumbered = lines[:-1] if match and lines and lines[-1].isdecimal() else lines
            yield _Cue(*times, tuple(unnumbered))
        times = (_seconds(match.groups()[:4]), _seconds(match.groups()[4:])) if match else None
        lines = []
    if times:
        yield _Cue(*times, tuple(lines))


def _seconds(groups: tuple[str | None, ...]) -> float:
    hours, minutes, seconds, fraction = (group or "0" for group in groups)
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds) + int(fraction.ljust(3, "0")) / 1000


def _spoken(lines: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    """Who speaks, where a voice tag or a leading ``Name:`` tells, and the lines as plain text."""
    voice = next((match[1].strip() for line in lines if (match := _VOICE.search(line))), None)
    plain = [" ".join(html.unescape(_TAG.sub("", line)).split()) for line in lines]
    plain = [line for line in plain if line]
    if voice is None and plain and (match := _SPEAKER.match(plain[0])):
        voice = match[1].title() if match[1].isupper() and len(match[1]) > 3 else match[1]
        plain[0] = plain[0][match.end() :]
    return voice, tuple(plain)
