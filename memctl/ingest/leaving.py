"""What in a folder is left alone, and why: one answer for whoever looks through folders."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memctl.ingest.ignore import IgnoreRules
    from memctl.records import LeftOutReason

_BROWSERS = (".part", ".partial", ".crdownload", ".download", ".opdownload", ".filepart", ".aria2")
_EDITORS = (".tmp", ".temp", ".swp", ".swo", ".swx")
PARTIAL_SUFFIXES = frozenset((*_BROWSERS, *_EDITORS))
_SYSTEM_NAMES = frozenset(["thumbs.db", "desktop.ini"])
DEEPEST = 400
"""Folders within folders are looked into so deep."""
TOO_DEEP = f"it is more than {DEEPEST} folders deep"

IN_WORDS: Mapping[LeftOutReason, str] = {
    "hidden": "hidden",
    "unfinished": "temporary or half-downloaded, by its name",
    "system": "a file that the system keeps for itself",
    "own": "a folder of memctl's own",
    "ignored": "named in .gitignore or .memctlignore",
    "subtitles": "read with the recording beside it",
    "link": "a link, which is not followed",
    "pipe": "a named pipe",
    "socket": "a socket",
    "device": "a device",
    "other": "not a regular file",
}
"""What something that is left alone is."""


def is_hidden(name: str) -> bool:
    """Whether a file or folder of that name is one that people do not mean to show."""
    return name.startswith(".")


def may_be_taken(name: str) -> bool:
    """Whether a name is not that of a hidden, temporary or half-downloaded file."""
    return _why_by_name(name) is None


def why_left_out(entry: os.DirEntry[str], rules: IgnoreRules) -> LeftOutReason | None:
    """Why an entry of a folder that somebody gives is not taken; None for one that is.

    A folder that is taken is looked into.
    """
    return "hidden" if is_hidden(entry.name) else _why_by_kind(entry, rules)


def why_left_in_inbox(
    entry: os.DirEntry[str], rules: IgnoreRules, exclude: Collection[Path]
) -> LeftOutReason | None:
    """Why an entry of an inbox, where files are still being written, is left; None if it is not.

    Args:
        entry: The file or folder.
        rules: Those that hold in the folder that it is in.
        exclude: Folders that are none of the inbox's business.
    """
    if why := _why_by_name(entry.name):
        return why
    return "own" if Path(entry.path) in exclude else _why_by_kind(entry, rules)


def _why_by_name(name: str) -> LeftOutReason | None:
    lower = name.lower()
    if is_hidden(name):
        return "hidden"
    if lower in _SYSTEM_NAMES:
        return "system"
    is_backup = lower.startswith("~$") or lower.endswith("~")
    return "unfinished" if is_backup or Path(lower).suffix in PARTIAL_SUFFIXES else None


def _why_by_kind(entry: os.DirEntry[str], rules: IgnoreRules) -> LeftOutReason | None:
    is_folder = entry.is_dir(follow_symlinks=False)
    if rules.ignore(Path(entry.path), is_folder=is_folder):
        return "ignored"
    if is_folder or entry.is_file(follow_symlinks=False):
        return None
    return "link" if entry.is_symlink() else _special(entry)


def _special(entry: os.DirEntry[str]) -> LeftOutReason:
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except OSError:  # gone, or not to be looked at
        return "other"
    if stat.S_ISFIFO(mode):
        return "pipe"
    if stat.S_ISSOCK(mode):
        return "socket"
    return "device" if stat.S_ISBLK(mode) or stat.S_ISCHR(mode) else "other"
