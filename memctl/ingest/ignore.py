"""Which files of a folder tree are left alone: ``.gitignore`` and ``.memctlignore``, as in git."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memctl.files import beginning_of

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

LARGEST = 128 * 1024
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


@dataclass(frozen=True, slots=True)
class IgnoreRules:
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
        """Whether the last rule that speaks about ``path`` says to leave it alone."""
        for folder, spec in reversed(self.specs):
            relative = path.relative_to(folder).as_posix() + ("/" if is_folder else "")
            verdict = spec.check_file(relative).include
            if verdict is not None:
                return verdict
        return False


def _spec(path: Path) -> GitIgnoreSpec | None:
    from pathspec import GitIgnoreSpec

    try:
        content = beginning_of(path, LARGEST)
    except OSError:
        return None
    *lines, cut = content.decode("utf-8", "surrogateescape").splitlines() or [""]
    spec = GitIgnoreSpec.from_lines([*lines, cut] if len(content) < LARGEST else lines)
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
