"""Paths in words for people: how one is shown, why the system refuses it, and what to do then."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from pathlib import Path

from memctl.patterns import lazy_regex

MAX_SHOWN_NAME = 120
"""A longer name of a file or folder is shown without its middle."""

_LONGEST_PATH = 480
_LONG_NAME = lazy_regex(rf"[^/\\]{{{MAX_SHOWN_NAME + 1},}}")
_DEVICE_NAME = lazy_regex(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)
_NEXT_STEPS: Mapping[int, str] = {
    errno.EACCES: "check its permissions",
    errno.EPERM: "check its permissions",
    errno.EROFS: "choose a place that can be written to",
    errno.EIO: "check the disk for errors",
    errno.ENOSPC: "free some space on the disk",
    errno.EDQUOT: "free some space on the disk",
    errno.ENAMETOOLONG: "give a shorter name",
    errno.ELOOP: "a link there leads back to itself; name the file or folder that is meant",
    errno.ENOTDIR: "a part of that path is a file; check it for a typo",
    errno.ENOENT: "check the path for a typo",
    errno.EISDIR: "that is a folder; name a file",
    errno.EEXIST: "something else has that name; move it away or choose another",
}


def is_device_name(name: str) -> bool:
    """Return whether Windows keeps the name of a file for a device: ``con``, ``nul.txt``."""
    return _DEVICE_NAME.fullmatch(name) is not None


def expand_path(text: str) -> Path:
    """Return the path that a user wrote, with ``~`` read as a shell reads it."""
    try:
        return Path(text).expanduser()
    except RuntimeError:  # ~nobody, which a shell leaves as it is
        return Path(text)


def display_path(path: str | os.PathLike[str]) -> str:
    """Return the path for a message; a name too long to read has its middle cut out."""
    names = _LONG_NAME.sub(lambda name: shorten_middle(name[0], MAX_SHOWN_NAME), os.fspath(path))
    return shorten_middle(names, _LONGEST_PATH)


def shorten_middle(text: str, limit: int) -> str:
    """Return at most ``limit`` characters of ``text``, its beginning and its end."""
    if len(text) <= limit:
        return text
    kept = limit - 1
    return f"{text[: kept - kept // 2]}…{text[-(kept // 2) :]}"


def os_error_reason(error: OSError) -> str:
    """Return what the system says, without number and path."""
    return error.strerror or str(error)


def os_error_message(error: OSError) -> str:
    """Return what the system says and of which file, as one line."""
    where = f"{display_path(str(error.filename))}: " if error.filename else ""
    return f"{where}{os_error_reason(error)}"


def os_error_hint(error: OSError, otherwise: str = "") -> str:
    """Return a hint for what the system says, or ``otherwise`` where there is none."""
    hint = _NEXT_STEPS.get(error.errno or 0, otherwise)
    is_forbidden = error.errno in (errno.EACCES, errno.EPERM)
    belongs = _whose(Path(os.fsdecode(error.filename))) if is_forbidden and error.filename else ""
    return f"{hint}; {belongs}" if belongs else hint


def _whose(path: Path) -> str:
    """Return to which other user a path belongs, or the folder that it would be in."""
    for each in (path, *path.parents):
        try:
            user_id, owner = each.stat().st_uid, each.owner()
        except OSError:  # it is not there, or may not be looked at
            continue
        except (KeyError, NotImplementedError):
            return ""
        is_other = hasattr(os, "geteuid") and user_id not in (os.geteuid(), 0)
        return f"{display_path(each)} belongs to the user {owner}" if is_other else ""
    return ""
