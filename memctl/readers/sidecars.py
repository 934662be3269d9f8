"""Which subtitle file beside a recording holds its words; what is in it, others read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath

from memctl.readers.registry import by_extension

SIDECARS = (".srt", ".vtt")


def find_sidecar(path: Path, name: str) -> Path | None:
    """The subtitle file that belongs to a recording: ``talk.srt``, ``talk.en.srt`` and the like.

    It stands beside ``path`` and goes by the stem of ``path`` or of ``name``.  Without a language
    in its name it comes first, then English, then the others by name.
    """
    stems = {PurePath(path.name).stem, PurePath(name).stem, path.name, PurePath(name).name}
    try:
        beside = [p for p in path.parent.iterdir() if p.suffix.lower() in SIDECARS]
    except OSError:
        return None
    ranked = ((_language_rank(p.stem, stems), p.name, p) for p in beside)
    found = [entry for entry in ranked if entry[0] is not None and entry[2].is_file()]
    return min(found)[2] if found else None


def sidecars_among(files: Sequence[Path]) -> frozenset[Path]:
    """Those files of one folder that are read with a recording among them."""
    if not any(path.suffix.lower() in SIDECARS for path in files):
        return frozenset()
    found = (find_sidecar(path, path.name) for path in files if _is_recording(path.name))
    return frozenset(path for path in found if path is not None)


def _is_recording(name: str) -> bool:
    reader = by_extension(name)
    return reader is not None and reader.media_type.startswith(("audio/", "video/"))


def _language_rank(stem: str, stems: Iterable[str]) -> int | None:
    """0 for no language, 1 for English, 2 for another; None for another recording's file."""
    if stem in stems:
        return 0
    base, _, language = stem.rpartition(".")
    if base not in stems or not re.fullmatch(r"[A-Za-z]{2,3}([-_]\w+)?", language):
        return None
    return 1 if language.lower().startswith("en") else 2
