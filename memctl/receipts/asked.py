"""Which file is meant: by its path, then or now, or by the last parts of one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memctl.ingest.inbox import not_its_own
from memctl.ingest.sources import absolute, path_of, printable
from memctl.paths import expanded
from memctl.pinned import Inbox, KnowledgeBaseSettings, Layout


@dataclass(frozen=True, slots=True)
class Asked:
    """A file that somebody asks about, in one knowledge base."""

    path: Path
    """Where it is, or was, if what was given is a path."""
    name: str
    """What was given, as it is written down."""

    @classmethod
    def of(cls, file: str) -> Asked:
        """Say what is meant by what was given."""
        given = path_of(printable(expanded(file)))
        return cls(absolute(given), printable(given))

    def means(self, path: Path) -> bool:
        """Tell whether a file is the one that is meant, or one of those of that name."""
        return path == self.path or printable(path).endswith(f"{os.sep}{self.name}")

    def within(self, layout: Layout) -> str:
        """Return the path from the folder of a knowledge base on, "" where it is not in there."""
        for path in (self.path, _resolved(self.path)):
            if path.is_relative_to(layout.folder):
                return printable(path.relative_to(layout.folder))
        return ""

    def in_inboxes(
        self, layout: Layout, settings: KnowledgeBaseSettings
    ) -> Iterator[tuple[Inbox, Path]]:
        """Yield what lies in an inbox and may be it, with that inbox."""
        for inbox in settings.inboxes:
            for path in dict.fromkeys(self._in_inbox(inbox.path, not_its_own(layout, inbox.path))):
                yield inbox, path

    def _in_inbox(self, inbox: Path, exclude: tuple[Path, ...]) -> Iterator[Path]:
        as_it_is = Path(os.path.realpath(inbox)), _resolved(self.path)
        for root, path in ((inbox, self.path), as_it_is):
            if root in path.parents:
                yield inbox / path.relative_to(root)
                return
        if not os.path.lexists(self.path):  # it is a name, so any file of that name is meant
            yield from filter(self.means, _files(inbox, exclude))


def _resolved(path: Path) -> Path:
    """Return the path without links in it, but for the last part: a link is asked about itself."""
    return Path(os.path.realpath(path.parent), path.name)


def _files(folder: Path, exclude: tuple[Path, ...]) -> Iterator[Path]:
    """Yield everything in a folder and those below it that is no folder; links are not followed."""
    for place, folders, files in os.walk(folder):
        within = Path(place)
        yield from (within / name for name in files)
        yield from (within / name for name in folders if (within / name).is_symlink())
        folders[:] = [name for name in folders if within / name not in exclude]
