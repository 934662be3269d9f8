"""Files move from folder to folder, also across file systems, and never over another one."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import secrets
import shutil
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from memctl.files import open_regular, save_file, sync_folder
from memctl.pinned import LONGEST_NAME, reason_path

_NUMBERS = range(1, 1_000_000)
_ROOM = 64
_UNKNOWN = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
"""What a system or a file system says that cannot refuse by itself to replace a file."""
_HALF_COPY = re.compile(r"\.[0-9a-f]{16}\.part")


def move_file(source: Path, target: Path) -> None:
    """Move a file to a path that is free, by copy, fsync and delete where renaming cannot do it.

    A copy is durable before the original goes.  That of a new name is the caller's to see to, who
    may have moved many.

    Raises:
        OSError: It could not be moved; it is then still at ``source``.
    """
    try:
        rename_to_free(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy_over(source, target)


def rename_to_free(source: Path, target: Path) -> None:
    """Rename a file unless something has the new name, which the system sees to in the same step.

    Where it cannot, somebody else's file of that very moment may be replaced.

    Raises:
        FileExistsError: Something has that name.
        OSError: It could not be renamed.
    """
    code = _rename_unless_taken(source, target)
    if code == errno.EEXIST or (code in _UNKNOWN and os.path.lexists(target)):
        raise FileExistsError(errno.EEXIST, "there is another file by now", str(target))
    if code in _UNKNOWN:
        source.rename(target)
    elif code:
        raise OSError(code, os.strerror(code), str(source), None, str(target))


def _rename_unless_taken(source: Path, target: Path) -> int:
    """Have the system do it; return 0, or the number of the error."""
    if sys.platform == "win32":
        return errno.ENOSYS  # Python's own never replaces anything there
    sys.audit("os.rename", source, target, -1, -1)  # as Python's own does
    libc = ctypes.CDLL(None, use_errno=True)
    old, new = os.fsencode(source), os.fsencode(target)
    try:
        if sys.platform == "darwin":
            failed = libc.renamex_np(old, new, 4)  # RENAME_EXCL
        else:
            failed = libc.renameat2(-100, old, -100, new, 1)  # AT_FDCWD, RENAME_NOREPLACE
    except AttributeError:  # a library of before 2018, or of another system
        return errno.ENOSYS
    return ctypes.get_errno() if failed else 0


def _copy_over(source: Path, target: Path) -> None:
    temporary = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with open_regular(source) as reader, temporary.open("xb") as writer:
            before = os.fstat(reader.fileno())
            shutil.copyfileobj(reader, writer, 1 << 20)
            writer.flush()
            os.fsync(writer.fileno())
        shutil.copystat(source, temporary, follow_symlinks=False)
        if _signature(before) != _signature(source.lstat()):
            raise OSError(errno.EBUSY, "it changed while it was being copied", str(source))
        rename_to_free(temporary, target)
        sync_folder(target.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    try:
        source.unlink()
    except BaseException:
        target.unlink(missing_ok=True)
        raise


def is_half_copy(name: str) -> bool:
    """Whether a process that was killed may have left this while moving a file from elsewhere."""
    return _HALF_COPY.fullmatch(name) is not None


def _signature(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def free_place(
    folder: Path, relative: Path, sidecars: Sequence[Path], taken: Collection[Path] = ()
) -> dict[Path, Path]:
    """Where a file and its sidecars can go below ``folder``, under names not in use there.

    Args:
        folder: Where to.
        relative: The path that the file would have below it.
        sidecars: Names of what goes with it.
        taken: Places that are spoken for.

    Returns:
        A target for each sidecar, and under ``relative`` that of the file itself.  All get the
        same suffix, so that they still belong together.
    """
    names = (relative, *sidecars)
    parent = _free_parent(folder, relative.parent, taken)
    if len(os.fsencode(parent)) + max(len(os.fsencode(path.name)) for path in names) > _longest():
        parent = folder
    for number in _NUMBERS:
        places = {path: parent / _numbered(path.name, relative.stem, number) for path in names}
        if not any(place in taken or os.path.lexists(place) for place in places.values()):
            return places
    raise OSError(errno.EEXIST, "no free name is left", str(parent / relative.name))


def _free_parent(folder: Path, relative: Path, taken: Collection[Path]) -> Path:
    """The folder of that path, numbered where a file has the name of one on the way."""
    parent = folder
    for name in relative.parts:
        places = (parent / _numbered(name, name, number) for number in _NUMBERS)
        parent = next(
            place
            for place in places
            if place not in taken and (os.path.isdir(place) or not os.path.lexists(place))  # noqa: PTH112 - may be too long
        )
    return parent


def _longest() -> int:
    """How many bytes a path may have, with room for a number or for what is written beside it."""
    most = os.pathconf("/", "PC_PATH_MAX") if hasattr(os, "pathconf") else 32_767
    return most - _ROOM


def _numbered(name: str, stem: str, number: int) -> str:
    """``talk.en.srt`` as ``talk-2.en.srt``, if the stem that it shares is ``talk``."""
    if number == 1:
        return name
    rest = name.removeprefix(stem)
    suffix = f"-{number}{rest}"
    room = LONGEST_NAME - len(os.fsencode(suffix))
    return os.fsdecode(os.fsencode(stem)[: max(room, 1)]) + suffix


def save_reason(failed: Path, reason: Mapping[str, Any]) -> None:
    """Write down beside a failed file why it is there."""
    text = json.dumps(dict(reason), ensure_ascii=False, indent=2) + "\n"
    save_file(reason_path(failed), text.encode("utf-8", "replace"))
