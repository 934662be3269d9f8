"""Subtitles, SubRip and WebVTT: what is said, when, and by whom where that is given.

A subtitle file belongs to a recording when it has its name, with or without the ending, and after
that at most a language and a usual mark: ``talk.srt``, ``talk.mp4.srt``, ``talk.en-GB.vtt``,
``talk.en.sdh.srt``.  Any other word may be part of another name: ``talk.part two.srt`` does not
belong to ``talk.mp4``.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath

from msgspec import Struct

from memctl.errors import EmptySource
from memctl.readers.file_kinds import FILE_KINDS, kind_by_extension
from memctl.readers.file_names import display_name
from memctl.readers.pieces import Piece, assemble, named_document
from memctl.readers.text_files.decoding import read_whole
from memctl.records import SourceText

MAX_BYTES = 50 * 1024 * 1024

_TIME = r"(?:(\d{1,3}):)?(\d{1,2}):(\d{2})[.,](\d{1,3})"
_CUE = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:[^\S\n].*)?$")
_VOICE = re.compile(r"<v(?:\.[\w.-]+)?\s+([^>\n]{1,80})>")
_TAG = re.compile(r"</?[^<>\n]{1,200}>|\{\\[^}\n]*\}")
_SPEAKER = re.compile(r"(?:-\s*)?([A-Z][\w.'’-]*(?: [A-Z][\w.'’-]*){0,2}):\s+(?=\S)")


class Cue(Struct, frozen=True):
    """Words with the seconds from and to which they are heard."""

    start: float
    end: float
    lines: tuple[str, ...]


def read(path: Path, name: str) -> Iterator[SourceText]:
    """Read a subtitle file on its own."""
    pieces = list(subtitle_pieces(read_whole(path, name, MAX_BYTES)))
    if not pieces:
        raise EmptySource(f"{display_name(name)} holds no subtitles", "check how it was made")
    head = named_document(name)
    return assemble(head, pieces)


def make_cue(start: float, end: float, text: str) -> Cue:
    """Return a cue of some text, its times in whole milliseconds."""
    lines = tuple(line.strip() for line in text.splitlines() if line.strip())
    return Cue(round(max(0.0, start), 3), round(max(0.0, end), 3), lines)


def subtitle_pieces(text: str) -> Iterator[Piece]:
    """The cues of a SubRip or WebVTT text; see :func:`cue_pieces`."""
    return cue_pieces(_cues(text))


def cue_pieces(cues: Iterable[Cue]) -> Iterator[Piece]:
    """One piece for each cue; lines that roll on from the cue before are not repeated."""
    before: tuple[str, ...] = ()
    speaker: str | None = None
    for cue in cues:
        speaker, lines = _split_speaker(cue.lines)
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


def _cues(text: str) -> Iterator[Cue]:
    """Cues in the order of the file; a cue's lines end at a blank line or the next cue's times."""
    times: tuple[float, float] | None = None
    lines: list[str] = []
    for line in text.split("\n"):
        match = _CUE.match(line) if "-->" in line else None
        if match is None and line.strip():
            lines.append(line.strip())
            continue
        if times:
            unnumbered = lines[:-1] if match and lines and lines[-1].isdecimal() else lines
            yield Cue(*times, tuple(unnumbered))
        times = (_seconds(match.groups()[:4]), _seconds(match.groups()[4:])) if match else None
        lines = []
    if times:
        yield Cue(*times, tuple(lines))


def _seconds(groups: tuple[str | None, ...]) -> float:
    hours, minutes, seconds, fraction = (group or "0" for group in groups)
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds) + int(fraction.ljust(3, "0")) / 1000


def _split_speaker(lines: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    """Who speaks, where a voice tag or a leading ``Name:`` tells, and the lines as plain text."""
    voice = next((match[1].strip() for line in lines if (match := _VOICE.search(line))), None)
    plain = [" ".join(html.unescape(_TAG.sub("", line)).split()) for line in lines]
    plain = [line for line in plain if line]
    if voice is None and plain and (match := _SPEAKER.match(plain[0])):
        voice = match[1].title() if match[1].isupper() and len(match[1]) > 3 else match[1]
        plain[0] = plain[0][match.end() :]
    return voice, tuple(plain)


SIDECARS = frozenset(suffix for kind in FILE_KINDS.values() for suffix in kind.sidecars)
"""The suffixes of subtitle files."""

_LANGUAGE = re.compile(r"[A-Za-z]{2,3}([-_]\w+)*")
_MARKS = frozenset(("cc", "default", "forced", "sdh"))


def find_sidecar(path: Path, name: str) -> Path | None:
    """The subtitle file beside ``path`` to read with a recording.

    It goes by the name of ``path`` or by ``name``.  Without a language in its name it comes first,
    then English, then the others by name; what is marked as forced, a few lines only, comes last.
    """
    names = {PurePath(path.name).stem, PurePath(name).stem, path.name, PurePath(name).name}
    try:
        beside = [p for p in path.parent.iterdir() if p.suffix.lower() in SIDECARS]
    except OSError:
        return None
    ranked = [
        (rank, p.name, p) for p in beside for wanted, rank in _owners(p.name) if wanted in names
    ]
    return next((p for _, _, p in sorted(ranked) if p.is_file()), None)


def by_recording(files: Sequence[Path]) -> dict[Path, tuple[Path, ...]]:
    """Which subtitle files belong to which recording, among the files of one folder.

    Each belongs to one: that whose name it shares the most of, or the first of those of one name.
    """
    subtitles = [path for path in files if path.suffix.lower() in SIDECARS]
    if not subtitles:
        return {}
    recordings: dict[str, Path] = {}
    for path in sorted(files):
        if _is_recording(path.name):
            recordings.setdefault(path.stem, path)
            recordings[path.name] = path
    found: dict[Path, tuple[Path, ...]] = {}
    for subtitle in sorted(subtitles):
        owners = (recordings[name] for name, _ in _owners(subtitle.name) if name in recordings)
        if (owner := next(owners, None)) is not None:
            found[owner] = (*found.get(owner, ()), subtitle)
    return found


def _is_recording(name: str) -> bool:
    kind = kind_by_extension(name)
    return kind is not None and bool(kind.sidecars)


def _owners(subtitle: str) -> Iterator[tuple[str, int]]:
    """The names of recordings that it would belong to, the longest first, each with a rank.

    The rank is 0 for no language, 1 for English, 2 for another, 3 for subtitles that are forced.
    """
    name = PurePath(subtitle).stem
    yield name, 0
    rest, _, last = name.rpartition(".")
    forced = 3 if last.lower() == "forced" else 0
    if last.lower() in _MARKS:
        yield rest, forced
        rest, _, last = rest.rpartition(".")
    if _LANGUAGE.fullmatch(last):
        yield rest, forced or (1 if last.lower().startswith("en") else 2)
