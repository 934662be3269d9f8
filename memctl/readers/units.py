"""What files of many units share: keys that are each unit's own, and units that are broken."""

from __future__ import annotations

import hashlib
from pathlib import Path

from memctl.errors import UnreadableSource
from memctl.files import open_regular
from memctl.readers.detection import detect_media_type
from memctl.readers.file_kinds import FILE_KINDS, FileKind, extension_of
from memctl.readers.pieces import new_document, storable_text
from memctl.records import SourceText, Unit

_KEY_LENGTH = 300


class UnitKeys:
    """Gives each unit of a file a key of its own: the id it has, or one made of its content."""

    def __init__(self) -> None:
        self._given: dict[str, int] = {}

    def new(self, own: str, content: bytes | str | None = None) -> str:
        """Return a key.

        Args:
            own: The id that the unit has; empty where it has none.
            content: What one is made of then.
        """
        key = " ".join(storable_text(own).split())[:_KEY_LENGTH]
        if not key:
            raw = content.encode("utf-8", "replace") if isinstance(content, str) else content or b""
            key = f"sha256-{hashlib.sha256(raw).hexdigest()[:16]}"
        number = self._given[key] = self._given.get(key, 0) + 1
        return key if number == 1 else f"{key}#{number}"


def broken(key: str, problem: str, hint: str) -> SourceText:
    """Return what stands for a unit that cannot be read."""
    return new_document(unit=Unit(key, problem=problem, hint=hint))


_SUFFIXES = frozenset(
    extension for kind in FILE_KINDS.values() if kind.units for extension in kind.extensions
)
_OTHERS = frozenset((".json",))
"""Suffixes that say nothing of whether there are units."""
_OPENINGS = (b"From ", b"BEGIN:V", b"PK\x03\x04", b"\x1f\x8b")


def kind_of_units(path: Path, name: str) -> FileKind | None:
    """Return the kind of a file that holds many units; None for one that is a document itself."""
    try:
        if extension_of(name) not in _SUFFIXES | _OTHERS and not _may_have_units(path):
            return None
        kind = FILE_KINDS[detect_media_type(path, name)]
    except (UnreadableSource, OSError):
        return None  # its reader says why
    return kind if kind.units else None


def _may_have_units(path: Path) -> bool:
    with open_regular(path) as file:
        return file.read(8).startswith(_OPENINGS)
