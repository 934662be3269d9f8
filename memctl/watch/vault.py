"""Keep mode: files stay where they are, and what is remembered follows them.

The ledger has a row for every file that was taken in.  A file whose size or time differs from its
row is read again and supersedes its earlier version; one that is no longer there is gone; one
that turns up elsewhere with the same content has been renamed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.ingest.inbox import InboxFile, Scan
from memctl.ingest.sources import Source, printable
from memctl.records import FileOutcome
from memctl.store.books import FileEntry

if TYPE_CHECKING:
    from memctl.store.ledger import Ledger

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class Missing:
    """Rows whose files are not there any more, by what that means."""

    renamed: tuple[tuple[FileEntry, FileEntry], ...] = ()
    """The old row, and that of the file which has the content now."""
    gone: tuple[FileEntry, ...] = ()
    struck: tuple[FileEntry, ...] = ()
    """Rows without a document of their own."""


@dataclass(slots=True)
class Vault:
    """One inbox whose files are kept."""

    inbox: Path
    ledger: Ledger
    clock: Clock
    settle_seconds: float
    monotonic: Callable[[], float] = time.monotonic
    _missing_since: dict[str, float] = field(default_factory=dict)

    def rows(self) -> dict[str, FileEntry]:
        """What the ledger knows of this inbox, by path."""
        return self.rows_of(self.ledger, self.inbox)

    @staticmethod
    def rows_of(ledger: Ledger, inbox: Path) -> dict[str, FileEntry]:
        """What a ledger knows of an inbox, by path."""
        return {row.path: row for row in ledger.files.entries(["done", "failed"], str(inbox))}

    @staticmethod
    def changed(scan: Scan, rows: dict[str, FileEntry]) -> list[InboxFile]:
        """The files that are new or look otherwise than when they were taken in."""
        return [file for file in scan.files if not file.is_as(rows.get(str(file.path)))]

    @staticmethod
    def source(file: InboxFile, supersedes: str | None, number: int) -> Source:
        """The file as a source; ``number`` comes back as its outcome's line."""
        return Source(
            source=printable(file.path),
            path=file.path,
            name=file.path.name,
            tags=file.tags,
            line=number,
            supersedes=supersedes,
        )

    def entry(self, file: InboxFile, outcome: FileOutcome) -> FileEntry:
        """Return the row of a file; after a failure its earlier version still stands for it."""
        now = self.clock()
        known = self.ledger.files.get(str(file.path))
        earlier = known.document_id if known else None
        return FileEntry(
            path=str(file.path),
            inbox=str(self.inbox),
            size=file.size,
            mtime_ns=file.mtime_ns,
            state="failed" if outcome.outcome == "failed" else "done",
            first_seen=known.first_seen if known else now,
            updated_at=now,
            document_id=outcome.document_id or earlier,
            reason=outcome.reason,
            hint=outcome.hint,
        )

    def note(self, entries: Iterable[FileEntry]) -> None:
        """Write down in one step what became of some files."""
        with self.ledger.transaction():
            for entry in entries:
                self.ledger.files.put(entry)

    def missing(self, scan: Scan, rows: dict[str, FileEntry]) -> Missing:
        """Tell what became of files that two looks, some seconds apart, did not find.

        Nothing is said while a folder cannot be listed.
        """
        if scan.problems:
            self._missing_since = {}
            return Missing()
        there = {str(file.path) for file in scan.files}
        there |= {str(sidecar) for file in scan.files for sidecar in file.sidecars}
        away = [row for path, row in rows.items() if path not in there]
        now = self.monotonic()
        since = self._missing_since
        self._missing_since = {row.path: since.get(row.path, now) for row in away}
        ripe = [r for r in away if now - self._missing_since[r.path] >= self.settle_seconds]
        return _sorted_out(ripe, [row for path, row in rows.items() if path in there])

    @property
    def is_waiting(self) -> bool:
        """Whether a file is missing whose fate the next look decides."""
        return bool(self._missing_since)


def own_documents(rows: dict[str, FileEntry]) -> dict[str, str]:
    """The documents that stand for one file alone, by its path."""
    shares = Counter(row.document_id for row in rows.values())
    return {
        path: row.document_id
        for path, row in rows.items()
        if row.document_id and shares[row.document_id] == 1
    }


def _sorted_out(missing: Sequence[FileEntry], there: Sequence[FileEntry]) -> Missing:
    successors = {row.document_id: row for row in there if row.document_id}
    left = Counter(row.document_id for row in missing)
    renamed, gone, struck = [], [], []
    for row in missing:
        left[row.document_id] -= 1
        if row.document_id is None:
            struck.append(row)
        elif row.document_id in successors:
            renamed.append((row, successors[row.document_id]))
        elif left[row.document_id]:
            struck.append(row)
        else:
            gone.append(row)
    return Missing(tuple(renamed), tuple(gone), tuple(struck))
