"""Which files of a folder tree are left alone: ``.gitignore`` and ``.memctlignore``, as in git."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

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
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    return GitIgnoreSpec.from_lines(text.splitlines())


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
