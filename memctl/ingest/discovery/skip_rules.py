"""Which entries of a folder are skipped, and why: the one answer for all that scan folders."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memctl.files import read_head

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

    from memctl.records import SkipReason

_BROWSERS = (".part", ".partial", ".crdownload", ".download", ".opdownload", ".filepart", ".aria2")
_TORRENTS = (".!ut", ".!qb", ".bc!")
_EDITORS = (".tmp", ".temp", ".swp", ".swo", ".swx")
PARTIAL_SUFFIXES = frozenset((*_BROWSERS, *_TORRENTS, *_EDITORS))
_SYSTEM_NAMES = frozenset(["thumbs.db", "desktop.ini"])
DEEPEST_FOLDER = 400
"""Folders within folders are looked into so deep."""
TOO_DEEP = f"it is more than {DEEPEST_FOLDER} folders deep"

SKIP_REASONS_IN_WORDS: Mapping[SkipReason, str] = {
    "hidden": "hidden",
    "unfinished": "temporary or half-downloaded, by its name",
    "system": "a file that the system keeps for itself",
    "own": "a folder of memctl's own",
    "ignored": "named in .gitignore or .memctlignore",
    "subtitles": "read with the recording beside it",
    "log": "read with the database beside it",
    "link": "a link, which is not followed",
    "pipe": "a named pipe",
    "socket": "a socket",
    "device": "a device",
    "other": "not a regular file",
}
"""What something that is left alone is."""


def is_hidden(name: str) -> bool:
    """Return whether a file or folder of that name is one that people do not mean to show."""
    return name.startswith(".")


def may_be_taken(name: str) -> bool:
    """Return whether a name is not that of a hidden, temporary or half-downloaded file."""
    return _skip_reason_by_name(name) is None


def skip_reason(entry: os.DirEntry[str], rules: IgnoreRules) -> SkipReason | None:
    """Return why an entry of a given folder is skipped; None for one that is taken.

    A folder that is taken is looked into.
    """
    return "hidden" if is_hidden(entry.name) else _skip_reason_by_kind(entry, rules)


def inbox_skip_reason(
    entry: os.DirEntry[str], rules: IgnoreRules, exclude: Collection[Path]
) -> SkipReason | None:
    """Why an entry of an inbox, where files are still being written, is left; None if it is not.

    Args:
        entry: The file or folder.
        rules: Those that hold in the folder that it is in.
        exclude: Folders that are none of the inbox's business.
    """
    if why := _skip_reason_by_name(entry.name):
        return why
    return "own" if Path(entry.path) in exclude else _skip_reason_by_kind(entry, rules)


def _skip_reason_by_name(name: str) -> SkipReason | None:
    lower = name.lower()
    if is_hidden(name):
        return "hidden"
    if lower in _SYSTEM_NAMES:
        return "system"
    is_autosave = lower.startswith("#") and lower.endswith("#")  # of Emacs
    is_backup = is_autosave or lower.startswith("~$") or lower.endswith("~")
    return "unfinished" if is_backup or Path(lower).suffix in PARTIAL_SUFFIXES else None


def _skip_reason_by_kind(entry: os.DirEntry[str], rules: IgnoreRules) -> SkipReason | None:
    is_folder = entry.is_dir(follow_symlinks=False)
    if rules.ignore(Path(entry.path), is_folder=is_folder):
        return "ignored"
    if is_folder or entry.is_file(follow_symlinks=False):
        return None
    return "link" if entry.is_symlink() else _special(entry)


def _special(entry: os.DirEntry[str]) -> SkipReason:
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except OSError:  # gone, or not to be looked at
        return "other"
    if stat.S_ISFIFO(mode):
        return "pipe"
    if stat.S_ISSOCK(mode):
        return "socket"
    return "device" if stat.S_ISBLK(mode) or stat.S_ISCHR(mode) else "other"


LARGEST_RULE_FILE = 128 * 1024
"""Bytes of a file of rules that are read."""

_FOLDERS = re.compile(r"\.[+*]")
_MOST_FOLDERS = 2
_OTHER_THAN = re.compile(r"\[\^(?!/\])")
_ASTERISK = re.compile(
    r"\[\^/\]\*"
    r"((?:\[\^/\](?!\*)|(?:\(\?!/\))?\[(?!\^/\])\^?\]?(?:\\.|[^\]\\])*\]|\\.|[^]/[()$\\])+)"
    r"(?=\[\^/\]\*)"
)
"""In the regular expression of a rule, an asterisk and what follows it up to the next one."""

RULE_FILES = (".gitignore", ".memctlignore")


class IgnoreRules(Struct, frozen=True):
    """The rules that hold in one folder: its own and those of the folders above it."""

    specs: tuple[tuple[Path, GitIgnoreSpec], ...] = ()

    @classmethod
    def above(cls, folder: Path) -> IgnoreRules:
        """The rules that a repository around ``folder`` lays down for it, without its own."""
        rules = cls()
        for parent in reversed(_repository_folders_above(folder)):
            rules = rules.within(parent)
        return rules

    def within(self, folder: Path) -> IgnoreRules:
        """These rules and those written down in ``folder``, which weigh more."""
        found = tuple((folder, spec) for name in RULE_FILES if (spec := _spec(folder / name)))
        return IgnoreRules((*self.specs, *found))

    def ignore(self, path: Path, *, is_folder: bool) -> bool:
        """Return whether the last rule that speaks about ``path`` says to leave it alone."""
        for folder, spec in reversed(self.specs):
            relative = path.relative_to(folder).as_posix() + ("/" if is_folder else "")
            verdict = spec.check_file(relative).include
            if verdict is not None:
                return verdict
        return False


def _spec(path: Path) -> GitIgnoreSpec | None:
    from pathspec import GitIgnoreSpec

    try:
        content = read_head(path, LARGEST_RULE_FILE)
    except OSError:
        return None
    *lines, cut = content.decode("utf-8", "surrogateescape").splitlines() or [""]
    spec = GitIgnoreSpec.from_lines([*lines, cut] if len(content) < LARGEST_RULE_FILE else lines)
    return GitIgnoreSpec(_in_one_pass(rule) for rule in spec.patterns if _is_quick(rule))


def _is_quick(rule: Any) -> bool:
    """Whether no more than two places of a rule stand for any folders: each more takes a hundred
    times as long where there are many."""
    return rule.regex is None or len(_FOLDERS.findall(rule.regex.pattern)) <= _MOST_FOLDERS


def _in_one_pass(rule: Any) -> Any:
    """The rule with each asterisk, but for the last of a name, standing for as little as it can.

    It matches what it did, but ``*a*a*a*a*b`` is not tried in every way that there is; and ``[!a]``
    is no slash, as in git.
    """
    if rule.regex is not None:
        within_names = _OTHER_THAN.sub("(?!/)[^", rule.regex.pattern)
        rule.regex = re.compile(_ASTERISK.sub(r"(?>[^/]*?\1)", within_names))
    return rule


def _repository_folders_above(folder: Path) -> list[Path]:
    if _is_repository(folder):
        return []
    above: list[Path] = []
    for parent in folder.parents:
        above.append(parent)
        if _is_repository(parent):
            return above
    return []


def _is_repository(folder: Path) -> bool:
    try:
        return (folder / ".git").exists()
    except OSError:  # it may not be looked into
        return False
