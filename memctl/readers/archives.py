"""Archives: each member is read by the reader of its own kind, as a document of its own.

Members are unpacked one at a time into a temporary folder. Their number, their total size and the
depth of nested archives are bounded.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO, cast

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import OverLimit, UnreadableSource
from memctl.files import open_regular
from memctl.kb_settings import MAX_FILE_NAME_BYTES
from memctl.readers.detection import detect_media_type
from memctl.readers.file_kinds import kind_of_media_type
from memctl.readers.file_names import display_name
from memctl.readers.pieces import new_document
from memctl.readers.reader_errors import PARSER_ERRORS, damage_as_unreadable, is_disk_error
from memctl.readers.units import UnitKeys, broken
from memctl.readers.zip_directory import MAX_DIRECTORY_BYTES, directory_bytes
from memctl.records import SourceText, Unit

MAX_MEMBERS = 10_000
MAX_BYTES = 2 << 30
MAX_MEMBER_BYTES = 500 << 20
MAX_RATIO = 200
"""How many times as big as an archive its members may be, from ``RATIO_FROM`` bytes on."""
RATIO_FROM = 20 << 20
DEEPEST = 2
"""An archive may lie in another one, and no deeper."""

ARCHIVES = ("application/zip", "application/x-tar", "application/gzip")
_OF_SYSTEM = ("__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini")
_BLOCK = 1 << 20
_HINT = "unpack it, and ingest what is wanted of it"


class _Member(Struct, frozen=True):
    """A file in an archive, or why it is none that can be read."""

    name: str
    changed_at: datetime | None = None
    content: IO[bytes] | None = None
    problem: str = ""


class _Budget(Struct):
    """What may still be unpacked of one file, the archives in it included."""

    name: str
    size: int
    members: int = 0
    bytes: int = 0

    def take_member(self) -> None:
        """Count a member.

        Raises:
            OverLimit: There are too many.
        """
        self.members += 1
        if self.members > MAX_MEMBERS:
            raise OverLimit(f"{self.name} has more than {MAX_MEMBERS:,} members", _HINT)

    def take(self, count: int) -> None:
        """Count bytes.

        Raises:
            OverLimit: There are too many, or far more than the archive is big.
        """
        self.bytes += count
        if self.bytes > MAX_BYTES:
            raise OverLimit(f"{self.name} unpacks to more than {MAX_BYTES >> 30} GB", _HINT)
        if self.bytes > max(RATIO_FROM, MAX_RATIO * self.size):
            what = f"unpacks to more than {MAX_RATIO} times its size"
            raise OverLimit(f"{self.name} {what}", "check where it comes from")


def read(path: Path, name: str) -> Iterator[SourceText]:
    """Yield what the members of an archive say; one that cannot be read says why.

    Raises:
        UnreadableSource: It is damaged, or unpacks to more than it may.
    """
    budget = _Budget(display_name(name), path.stat().st_size)
    with TemporaryDirectory(prefix="memctl-") as folder:
        yield from _read(path, name, Path(folder), "", 1, budget)


def _read(
    path: Path, name: str, folder: Path, prefix: str, depth: int, budget: _Budget
) -> Iterator[SourceText]:
    keys = UnitKeys()
    for number, member in enumerate(_members(path, name, folder, budget)):
        if _is_of_system(member.name):
            continue
        if _is_hidden(member.name):
            yield new_document(unit=Unit(f"{prefix}{member.name}", is_hidden=True))
            continue
        budget.take_member()
        key = keys.new(f"{prefix}{member.name}")
        if member.content is None:
            yield broken(key, member.problem, _HINT)
            continue
        own = folder / f"{depth}" / _file_name(member.name, number)
        own.parent.mkdir(exist_ok=True)
        try:
            unit = _unpack(member.content, own, key, budget)
            yield from _texts(own, member, folder, unit, depth, budget)
        except OverLimit as error:
            if error.message.startswith(budget.name):
                raise
            yield broken(key, error.message, error.hint)
        except UnreadableSource as error:
            yield broken(key, error.message, error.hint)
        except PARSER_ERRORS as error:
            if is_disk_error(error):
                raise
            yield broken(key, f"it is damaged: {error}", "make the archive anew")
        finally:
            with suppress(OSError):
                own.unlink()


def _texts(
    path: Path, member: _Member, folder: Path, unit: Unit, depth: int, budget: _Budget
) -> Iterator[SourceText]:
    """Yield what one member says, or those in it where it holds many."""
    kind = kind_of_media_type(detect_media_type(path, member.name))
    if kind.media_type in ARCHIVES:
        if depth >= DEEPEST:
            yield broken(unit.key, "it is an archive that lies too deep in others", _HINT)
            return
        inner = folder / f"inner-{depth}"
        inner.mkdir(exist_ok=True)
        yield from _read(path, member.name, inner, f"{unit.key}!/", depth + 1, budget)
        return
    is_empty = True
    for text in kind.load()(path, member.name):
        is_empty = False
        own = replace(text.unit, key=f"{unit.key}!/{text.unit.key}") if text.unit else unit
        yield replace(
            text,
            unit=own,
            media_type=text.media_type or kind.media_type,
            created_at=text.created_at or member.changed_at,
        )
    if is_empty:
        yield broken(unit.key, "it holds no text", "")


def _file_name(member: str, number: int) -> str:
    """Return what a member is called while it is read: its own name, if a file can have it."""
    name = PurePosixPath(member).name
    can_be = name not in ("", "..") and len(os.fsencode(name)) <= MAX_FILE_NAME_BYTES
    return name if can_be else str(number)


def _unpack(content: IO[bytes], path: Path, key: str, budget: _Budget) -> Unit:
    """Write a member to a file.

    Raises:
        OverLimit: It is too big.
    """
    size, digest = 0, hashlib.sha256()
    with content, path.open("wb") as file:
        while block := content.read(_BLOCK):
            size += len(block)
            budget.take(len(block))
            if size > MAX_MEMBER_BYTES:
                raise OverLimit(f"it has more than {MAX_MEMBER_BYTES >> 20} MB", _HINT)
            digest.update(block)
            file.write(block)
    return Unit(key, digest.hexdigest(), size)


def _is_of_system(name: str) -> bool:
    """Return whether a member is a note of the system that says nothing of its own."""
    parts = PurePosixPath(name).parts
    return any(part.startswith("._") or part in _OF_SYSTEM for part in parts)


def _is_hidden(name: str) -> bool:
    """Return whether a member is hidden, or in a folder that is."""
    return any(part.startswith(".") and part != ".." for part in PurePosixPath(name).parts)


# --- the formats ----------------------------------------------------------------------------------


def _members(path: Path, name: str, folder: Path, budget: _Budget) -> Iterator[_Member]:
    with open_regular(path) as file:
        head = file.read(512)
    with damage_as_unreadable(name, "an archive", tarfile.TarError):
        if head.startswith(b"PK"):
            yield from _zip_members(path, name, folder)
        elif head.startswith(b"\x1f\x8b"):
            yield from _gzip_members(path, name, folder, budget)
        else:
            yield from _tar_members(path)


def _zip_members(path: Path, name: str, folder: Path) -> Iterator[_Member]:
    if directory_bytes(path) > MAX_DIRECTORY_BYTES:
        raise OverLimit(f"{display_name(name)} lists more members than can be read", _HINT)
    with zipfile.ZipFile(path) as archive:
        with suppress(KeyError, RuntimeError, *PARSER_ERRORS):  # who is who in a Slack export
            if archive.getinfo("users.json").file_size <= _BLOCK:
                (folder / "users.json").write_bytes(archive.read("users.json")[:_BLOCK])
        for info in archive.infolist():
            if info.is_dir():
                continue
            changed_at = None
            with suppress(ValueError):
                changed_at = datetime(*info.date_time, tzinfo=UTC)
            if info.flag_bits & 1:
                yield _Member(info.filename, problem="it is encrypted")
                continue
            try:
                content = archive.open(info)
            except PARSER_ERRORS as error:
                yield _Member(info.filename, problem=f"it cannot be unpacked: {error}")
                continue
            yield _Member(info.filename, changed_at, content)


def _tar_members(path: Path) -> Iterator[_Member]:
    with tarfile.open(path, "r:") as archive:
        for info in archive:
            content = archive.extractfile(info) if info.isfile() else None
            if content is not None:
                changed_at = None
                with suppress(ValueError, OverflowError, OSError):
                    changed_at = datetime.fromtimestamp(info.mtime, UTC)
                yield _Member(info.name, changed_at, content)


def _gzip_members(path: Path, name: str, folder: Path, budget: _Budget) -> Iterator[_Member]:
    """A compressed tar gives its members, any other file itself without ``.gz``."""
    with gzip.open(path) as packed:
        is_tar = packed.read(262)[257:] == b"ustar"
    if not is_tar:
        with gzip.open(path) as packed:
            yield _Member(_without_gz(name), content=cast(IO[bytes], packed))
        return
    whole = folder / "whole.tar"
    with gzip.open(path) as packed, whole.open("wb") as file:
        while block := packed.read(_BLOCK):
            budget.take(len(block))
            file.write(block)
    budget.bytes = 0  # the members are counted themselves
    yield from _tar_members(whole)


def _without_gz(name: str) -> str:
    inner = PurePosixPath(name.replace("\\", "/")).name
    return inner[:-3] if inner.lower().endswith(".gz") and len(inner) > 3 else f"{inner} unpacked"
