"""Which subtitle files beside a recording belong to it; what is in them, others read.

A subtitle file belongs to a recording when it has its name, with or without the ending, and after
that at most a language and what subtitles of films are marked with: ``talk.srt``,
``talk.mp4.srt``, ``talk.en-GB.vtt``, ``talk.en.sdh.srt``.  Any other word may be a name of its own:
``talk.part two.srt`` is not one of ``talk.mp4``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path, PurePath

from memctl.readers.registry import by_extension

SIDECARS = (".srt", ".vtt")

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


def sidecars_among(files: Sequence[Path]) -> frozenset[Path]:
    """The subtitle files that belong to a recording, among the files of one folder."""
    return frozenset(chain.from_iterable(by_recording(files).values()))


def _is_recording(name: str) -> bool:
    reader = by_extension(name)
    return reader is not None and reader.media_type.startswith(("audio/", "video/"))


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
