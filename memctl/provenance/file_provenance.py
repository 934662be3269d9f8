"""What there is to tell of a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal

from msgspec import Struct

from memctl.ingest.discovery.inbox_scan import excluded_folders
from memctl.ingest.discovery.sources import absolute, is_url, path_of, plain_url, printable
from memctl.kb_settings import Inbox, KnowledgeBaseSettings, Layout
from memctl.paths import expand_path
from memctl.records import OutcomeKind, Usage
from memctl.store.ledger.log_repositories import Attempt

FileOutcomeKind = OutcomeKind | Literal["left", "waiting", "processing", "remembered"]


class ContentCounts(Struct, frozen=True):
    """How much of a document there was to read."""

    parts: int
    """How many rows it has: more than one where it was too big to be read at once."""
    pages: int | None = None
    """The last one that something stands on."""
    seconds: float | None = None
    """Length of a recording."""
    attachments: tuple[str, ...] = ()
    """What came with a message, by its names; text in it has been read."""
    holds: Mapping[str, int] = {}
    """Of a file of many, such as an archive: how many are remembered, by what they are called."""


class MemoryCounts(Struct, frozen=True):
    """What was made of a document, as it is now."""

    types: Mapping[str, int]
    """How many there are of each type; of one that was edited its newest version counts."""
    edited: int = 0
    superseded: int = 0
    """Those in favour of which something newer is believed."""
    expired: int = 0
    gone: int = 0
    """Those that were deleted since."""
    insights: int = 0
    """How many insights rest on one of them."""


class FileProvenance(Struct, frozen=True):
    """What became of a file at one reading of it."""

    kb: str
    path: str
    """Where it was found."""
    outcome: FileOutcomeKind
    """``left`` lies in an inbox and is never taken, ``waiting`` lies there too, ``processing`` is
    being read, ``remembered`` has a document whose reading was not noted, as records have and what
    older versions of memctl took in."""
    seen_at: datetime | None = None
    claimed_at: datetime | None = None
    decided_at: datetime | None = None
    """When it was remembered, recognised or given up."""
    moved_at: datetime | None = None
    tries: tuple[Attempt, ...] = ()
    """Why it was taken out of its inbox before and not dealt with."""
    read_seconds: float | None = None
    """How long it took to turn it into text."""
    understand_seconds: float | None = None
    """How long it took to make memories of the text; of texts that were worked on together, its
    share by length."""
    redacted: int = 0
    """How many secrets were taken out of the text."""
    reader: str = ""
    pipeline_version: int | None = None
    document_id: str | None = None
    document_status: str = ""
    """Empty where there is no such document any more."""
    document_source: str = ""
    """The name that the document goes by: that of another file where this one is a duplicate."""
    title: str = ""
    understood_by: str = ""
    """The method; one that begins with ``model`` has asked a model."""
    missing: tuple[str, ...] = ()
    models: tuple[Usage, ...] = ()
    """What models have used for the document so far, its vectors excepted: many documents share
    the calls for those."""
    passages: int = 0
    """Of the document, as it is now."""
    facts: int = 0
    """Distilled memories of the document, as it is now."""
    content: ContentCounts | None = None
    memories: MemoryCounts | None = None
    same_as: str = ""
    """Where the file is that has its content already, of one that was known and if it is known."""
    place: str = ""
    """Where it was put, by what its knowledge base is called now; empty where it was left, or
    deleted."""
    is_there: bool = False
    """Whether a file is there now: at ``place``, or at ``path`` where there is none."""
    watched_by: int | None = None
    """The process that watches the inbox of a file that waits."""
    reason: str = ""
    hint: str = ""
    error: str = ""
    retry: str = ""
    """The command that has a failed file tried again, once the reason of the failure is gone."""


class FileReference(Struct, frozen=True):
    """A file that is asked about, in one knowledge base."""

    path: Path
    """Where it is, or was, if what was given is a path."""
    name: str
    """What was given, as it is written down."""

    @classmethod
    def of(cls, file: str) -> FileReference:
        """Return the file that a name or a path means."""
        if is_url(file):
            return cls(absolute(Path(file)), plain_url(file).partition("://")[2])
        given = path_of(printable(expand_path(file)))
        return cls(absolute(given), printable(given))

    def matches(self, path: Path) -> bool:
        """Return whether a file matches the reference: its path, or its name."""
        return path == self.path or printable(path).endswith(f"{os.sep}{self.name}")

    def within(self, layout: Layout) -> str:
        """Return the path from the folder of a knowledge base on, "" where it is not in there."""
        for path in (self.path, _resolve(self.path)):
            if path.is_relative_to(layout.folder):
                return printable(path.relative_to(layout.folder))
        return ""

    def in_inboxes(
        self, layout: Layout, settings: KnowledgeBaseSettings
    ) -> Iterator[tuple[Inbox, Path]]:
        """Yield what lies in an inbox and may be it, with that inbox."""
        for inbox in settings.inboxes:
            for path in dict.fromkeys(
                self._in_inbox(inbox.path, excluded_folders(layout, inbox.path))
            ):
                yield inbox, path

    def _in_inbox(self, inbox: Path, exclude: tuple[Path, ...]) -> Iterator[Path]:
        as_it_is = Path(os.path.realpath(inbox)), _resolve(self.path)
        for root, path in ((inbox, self.path), as_it_is):
            if root in path.parents:
                yield inbox / path.relative_to(root)
                return
        if not os.path.lexists(self.path):  # it is a name, so any file of that name is meant
            yield from filter(self.matches, _files(inbox, exclude))


def _resolve(path: Path) -> Path:
    """Return the path without links in it, but for the last part: a link is asked about itself."""
    return Path(os.path.realpath(path.parent), path.name)


def _files(folder: Path, exclude: tuple[Path, ...]) -> Iterator[Path]:
    """Yield everything in a folder and those below it that is no folder; links are not followed."""
    for place, folders, files in os.walk(folder):
        within = Path(place)
        yield from (within / name for name in files)
        yield from (within / name for name in folders if (within / name).is_symlink())
        folders[:] = [name for name in folders if within / name not in exclude]
