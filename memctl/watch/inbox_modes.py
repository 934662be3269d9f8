"""What becomes of the files of an inbox: in one mode they are moved away, in the other they stay.

Where they stay, what is remembered follows them as they change, move and vanish.
"""

from __future__ import annotations

import errno
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from memctl.errors import MemctlError, ModelError
from memctl.identity import DEFAULT_NAMESPACE
from memctl.ingest.discovery.inbox_scan import InboxFile, InboxScan
from memctl.ingest.discovery.sources import Source, printable
from memctl.ingest.file_units import wholly_remembered
from memctl.ingest.file_versions import InboxVersions
from memctl.ingest.ingest_pipeline import IngestStopped
from memctl.ingest.source_reading import CHANGED
from memctl.kb_settings import Inbox
from memctl.literals import After
from memctl.records import FileOutcome
from memctl.store.ledger.work_repositories import FileEntry
from memctl.watch.claims import STOPPED, ClaimedFile, ClaimResult, Claims
from memctl.watch.inbox_scanner import InboxScanner, take_batch
from memctl.watch.intake import Intake, with_numbers
from memctl.watch.reporter import Reporter, TurnResult, error_message

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase
    from memctl.store.ledger.ledger import Ledger

_HOPELESS_ERRNOS = frozenset([errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO])

_WRITTEN_MEANWHILE = "it was written to while it was taken in"


class MoveMode(Struct):
    """Empties the inboxes of one knowledge base."""

    base: KnowledgeBase
    reporter: Reporter
    scanner: InboxScanner
    intake: Intake
    claims: Claims

    def turn(self, inbox: Inbox) -> TurnResult:
        """Take the first files of an inbox that no longer change and that no process writes to.

        Once moved, a file would go on growing where it is not looked at any more.
        """
        found = self.scanner.look(inbox)
        ready, wait = self.scanner.ready_files(inbox, found.files)
        files = take_batch(file for file in ready if self.scanner.is_closed(file))
        claimed = self.claims.claim(files, self._complain_refused) if files else []
        self._process(claimed)
        if ready and not files:
            wait = min(wait or self.scanner.settle_seconds, self.scanner.settle_seconds)
        more = bool(claimed) and len(claimed) < len(ready)
        return TurnResult(bool(claimed), 0.0 if more else wait)

    def recover(self) -> None:
        """Take in what a daemon that was killed, or a failure of the store, has left half-way."""
        self.claims.sweep()
        self.claims.note_cut_off()
        self._process(self._unfinished_files())

    def put_back(self) -> None:
        """Return files whose ingest was interrupted to the inboxes they came from."""
        with suppress(MemctlError):  # the ledger may be what fails
            self.claims.note_try(STOPPED)
        for claimed in self._unfinished_files():
            self.claims.put_back(claimed)
            self.reporter.say("put_back", claimed.source)

    def note_try(self, reason: str) -> None:
        """Record why files that are in processing were not dealt with."""
        self.claims.note_try(reason)

    def let_wait(self) -> None:
        """Return them without a word, for they are taken again as soon as may be."""
        for claimed in self._unfinished_files():
            self.claims.put_back(claimed)

    def _complain_refused(self, file: InboxFile, error: OSError) -> None:
        if error.errno in _HOPELESS_ERRNOS:
            raise error
        self.reporter.complain("failed", printable(file.path), *error_message(error))

    def _unfinished_files(self) -> list[ClaimedFile]:
        """Files in processing that are to be taken in; what is remembered already is sent on."""
        found = self.claims.leftovers()
        settled = [each for each in found if each.document_id]
        self._send_on(
            (
                (each, FileOutcome(each.source, "known", document_id=each.document_id))
                for each in settled
            ),
            {each.source for each in settled},  # what was left out of them is not known any more
        )
        return [each for each in found if not each.document_id]

    def _process(self, claimed: Sequence[ClaimedFile]) -> None:
        """Take claimed files in, and move each to where its result sends it."""
        sources = [
            Source(c.source, c.path, name=c.original.name, tags=c.tags, line=number)
            for number, c in enumerate(claimed)
        ]

        originals = {
            source.place: printable(each.original)
            for source, each in zip(sources, claimed, strict=True)
            if source.place
        }
        versions = InboxVersions(
            self.base.store, self.base.settings, DEFAULT_NAMESPACE, self.base.clock, originals
        )

        def of_claims(outcomes: Iterable[FileOutcome]) -> list[tuple[ClaimedFile, FileOutcome]]:
            """Put each outcome to the file that it is of."""
            return [(claimed[number], outcome) for number, outcome in with_numbers(outcomes)]

        sent: set[Path] = set()
        seen: list[FileOutcome] = []
        failure: MemctlError | OSError | None = None

        def send_on(outcomes: Sequence[FileOutcome]) -> None:
            """Move files that are done while others are read; nothing more once that fails."""
            nonlocal failure
            seen.extend(outcomes)
            done = [each for each in of_claims(outcomes) if not _is_read_again(*each)]
            if failure is not None:
                return
            sent.update(each.path for each, _ in done)
            try:
                self._send_on(done, _partly_read(seen))
            except (MemctlError, OSError) as error:
                failure = error

        def send_rest(outcomes: Sequence[FileOutcome]) -> None:
            """Move the other files."""
            if failure is not None:
                raise failure
            rest = [each for each in of_claims(outcomes) if each[0].path not in sent]
            self._send_on(rest, _partly_read(outcomes))

        try:
            outcomes = self.intake.ingest(
                sources,
                lambda outcomes: self.claims.note_settled(of_claims(outcomes)),
                send_on,
                versions,
            )
        except IngestStopped as stopped:
            if isinstance(stopped.cause, ModelError):  # the store is well, so what is in it is done
                send_rest(stopped.report.outcomes)
            raise
        send_rest(outcomes)

    def _send_on(
        self, outcomes: Iterable[tuple[ClaimedFile, FileOutcome]], partly_read: Collection[str]
    ) -> None:
        results: list[ClaimResult] = []
        outcomes = list(outcomes)
        whole = self._wholly_remembered(outcomes)
        for claimed, outcome in outcomes:
            if outcome.error == CHANGED or claimed.has_changed:  # let it settle once more
                why = outcome.reason if outcome.error == CHANGED else _WRITTEN_MEANWHILE
                self.claims.note_try(why, [claimed])
                self.claims.put_back(claimed)
                self.reporter.say("put_back", claimed.source, why)
            else:
                is_whole = claimed.source not in partly_read and _is_whole(claimed, outcome, whole)
                after = self._after(claimed.inbox)
                results.append(ClaimResult(claimed, outcome, after if is_whole else "move"))
        if results:
            self.claims.send_on(results, self._report_moved)

    def _wholly_remembered(self, outcomes: Iterable[tuple[ClaimedFile, FileOutcome]]) -> set[str]:
        """Return the documents that have all that is in their files, where these may be deleted."""
        ids = {
            outcome.document_id
            for claimed, outcome in outcomes
            if outcome.document_id and self._after(claimed.inbox) == "delete"
        }
        return wholly_remembered(self.base.store.snapshot(), ids) if ids else set()

    def _report_moved(self, result: ClaimResult, place: Path | None) -> None:
        claimed = result.claimed
        self.intake.tell(result.outcome, claimed.sidecars, printable(place or claimed.path))

    def _after(self, path: Path) -> After:
        return next((i.after for i in self.base.settings.inboxes if i.path == path), "move")


def _is_read_again(claimed: ClaimedFile, outcome: FileOutcome) -> bool:
    """Return whether a file is read once more after the others, for what has come with it."""
    return outcome.outcome == "known" and bool(claimed.sidecars)


def _partly_read(outcomes: Iterable[FileOutcome]) -> set[str]:
    """Return the files that have a part which could not be read."""
    return {each.part_of for each in outcomes if each.part_of and each.outcome == "failed"}


def _is_whole(claimed: ClaimedFile, outcome: FileOutcome, whole: Collection[str]) -> bool:
    """Return whether nothing is lost with a file.

    A scan or a table's head is no empty file.  A note that was exported stands for no document,
    and subtitles that come with a known recording may be new.
    """
    if outcome.missing:
        return False
    if outcome.outcome == "empty":
        return claimed.size == 0
    if outcome.outcome == "known" and (claimed.sidecars or not outcome.document_id):
        return False
    return not outcome.document_id or outcome.document_id in whole


# --- files that stay ------------------------------------------------------------------------------

Clock = Callable[[], datetime]


class MissingFiles(Struct, frozen=True):
    """Rows whose files are not there any more, by what that means."""

    renamed: tuple[tuple[FileEntry, FileEntry], ...] = ()
    """The old row, and that of the file which has the content now."""
    gone: tuple[FileEntry, ...] = ()
    without_document: tuple[FileEntry, ...] = ()
    """Rows without a document of their own."""


class KeptInbox(Struct):
    """One inbox whose files are kept."""

    inbox: Path
    ledger: Ledger
    clock: Clock
    settle_seconds: float
    monotonic: Callable[[], float] = time.monotonic
    _missing_since: dict[str, float] = field(default_factory=dict)

    def rows(self) -> dict[str, FileEntry]:
        """What the ledger knows of this inbox, by path."""
        return self.ledger.files.files_kept_in(str(self.inbox))

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
        known = self.ledger.files.find(str(file.path))
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
                self.ledger.files.save(entry)

    def missing(self, scan: InboxScan, rows: dict[str, FileEntry]) -> MissingFiles:
        """Find out what became of files that two scans, some seconds apart, did not find.

        Nothing is said while a folder cannot be listed.
        """
        if scan.problems:
            self._missing_since = {}
            return MissingFiles()
        there = {str(file.path) for file in scan.files}
        there |= {str(sidecar) for file in scan.files for sidecar in file.sidecars}
        away = [row for path, row in rows.items() if path not in there]
        now = self.monotonic()
        since = self._missing_since
        self._missing_since = {row.path: since.get(row.path, now) for row in away}
        due = [r for r in away if now - self._missing_since[r.path] >= self.settle_seconds]
        return _classify_missing(due, [row for path, row in rows.items() if path in there])

    @property
    def is_waiting(self) -> bool:
        """Whether a file is missing that the next scan decides about."""
        return bool(self._missing_since)


def sole_documents(rows: dict[str, FileEntry]) -> dict[str, str]:
    """The documents that stand for one file alone, by its path."""
    shares = Counter(row.document_id for row in rows.values())
    return {
        path: row.document_id
        for path, row in rows.items()
        if row.document_id and shares[row.document_id] == 1
    }


def _classify_missing(missing: Sequence[FileEntry], entries: Sequence[FileEntry]) -> MissingFiles:
    successors = {row.document_id: row for row in entries if row.document_id}
    left = Counter(row.document_id for row in missing)
    renamed, gone, without_document = [], [], []
    for row in missing:
        left[row.document_id] -= 1
        if row.document_id is None:
            without_document.append(row)
        elif row.document_id in successors:
            renamed.append((row, successors[row.document_id]))
        elif left[row.document_id]:
            without_document.append(row)
        else:
            gone.append(row)
    return MissingFiles(tuple(renamed), tuple(gone), tuple(without_document))


Rows = Mapping[str, FileEntry]
"""What the ledger knows of the files of an inbox, by path."""


class KeepMode(Struct):
    """Follows the inboxes of one knowledge base whose files stay."""

    base: KnowledgeBase
    reporter: Reporter
    scanner: InboxScanner
    intake: Intake
    settle_seconds: float
    clock: Callable[[], datetime]
    monotonic: Callable[[], float] = time.monotonic
    _vaults: dict[Path, KeptInbox] = field(default_factory=dict)

    def turn(self, inbox: Inbox) -> TurnResult:
        """Take the first files of an inbox that are new or have changed, and follow the others."""
        vault = self._kept_inbox(inbox)
        found = self.scanner.look(inbox)
        rows = vault.rows()
        changed = found.changed(rows)
        ready, wait = self.scanner.ready_files(inbox, changed)
        files = take_batch(ready)
        if files:
            self._take_in_place(vault, files, rows)
        missing = self._follow(vault, found)
        if vault.is_waiting:
            wait = min(wait or self.settle_seconds, self.settle_seconds)
        more = len(files) < len(ready)
        return TurnResult(bool(files) or missing, 0.0 if more else wait)

    def _kept_inbox(self, inbox: Inbox) -> KeptInbox:
        if inbox.path not in self._vaults:
            self._vaults[inbox.path] = KeptInbox(
                inbox.path,
                self.base.store.ledger,
                self.clock,
                self.settle_seconds,
                self.monotonic,
            )
        return self._vaults[inbox.path]

    def _take_in_place(
        self, vault: KeptInbox, files: Sequence[InboxFile], rows: dict[str, FileEntry]
    ) -> None:
        """Take files in, let go of what they were before, and only then note what they are.

        Killed before it is noted, all of it is done again; noted first, nothing would say any more
        what they were before.
        """
        own = sole_documents(rows)
        sources = [
            vault.source(file, own.get(str(file.path)), number) for number, file in enumerate(files)
        ]
        outcomes = [
            (files[number], outcome)
            for number, outcome in with_numbers(self.intake.ingest(sources))
            if outcome.error != CHANGED
        ]
        ended = {own.get(str(file.path)) for file, what in outcomes if what.outcome == "superseded"}
        # What another file of the group has just ended holds again once it is taken anew.
        outcomes = [each for each in outcomes if each[1].document_id not in ended - {None}]
        entries = [vault.entry(file, outcome) for file, outcome in outcomes]
        self._forget_documents(entries, rows)
        vault.note(entries)
        for file, outcome in outcomes:
            self.intake.tell(outcome, file.sidecars, outcome.source)

    def _forget_documents(self, entries: Sequence[FileEntry], before: Rows) -> None:
        """Documents that their files turned away from, by becoming something else.

        One that another file stands for goes by that file's name, as a copy outlives its original
        and two files may change places; one without any file is gone.
        """
        now = {**before, **{entry.path: entry for entry in entries}}
        names = {row.document_id: path for path, row in sorted(now.items(), reverse=True)}
        known = [before[entry.path] for entry in entries if entry.path in before]
        left = {row.document_id for row in known if row.document_id != now[row.path].document_id}
        orphans = sorted(filter(None, left - names.keys()))
        if orphans:
            self.base.services.ingestor.retire(orphans)
        for document_id in sorted(filter(None, left & names.keys())):
            self.base.services.ingestor.rename(document_id, printable(Path(names[document_id])))

    def _follow(self, vault: KeptInbox, scan: InboxScan) -> bool:
        """Bring the memories of files that were renamed or removed up to date."""
        files = self.base.store.ledger.files
        rows = vault.rows()
        unknown = [file for file in scan.files if str(file.path) not in rows]
        if any(self.scanner.is_readable(file) for file in unknown):
            return False  # one of them may be a missing one under another name
        missing = vault.missing(scan, rows)
        for old, new in missing.renamed:
            name = printable(new.path)
            self.base.services.ingestor.rename(new.document_id or "", name)
            files.remove(old.path)
            said = f"was {printable(old.path)}"
            self.reporter.say("renamed", name, said, document_id=new.document_id)
        if missing.gone:
            self.base.services.ingestor.retire(
                [row.document_id for row in missing.gone if row.document_id]
            )
        for row in (*missing.gone, *missing.without_document):
            files.remove(row.path)
            self.reporter.say("gone", printable(row.path), document_id=row.document_id)
        if missing.gone:
            self.intake.jobs.schedule.note_write()
        self.intake.dealt_with += len(missing.renamed) + len(missing.gone)
        return bool(missing.renamed or missing.gone)
