"""Inboxes that are emptied: files are claimed, taken in, and moved to where they belong then."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.errors import MemctlError, ModelError
from memctl.ingest.discovery.inbox_scan import InboxFile
from memctl.ingest.discovery.sources import Source, printable
from memctl.ingest.ingest_pipeline import IngestStopped
from memctl.ingest.source_reading import CHANGED
from memctl.kb_settings import Inbox
from memctl.literals import After
from memctl.records import FileOutcome
from memctl.watch.claims import STOPPED, ClaimedFile, ClaimResult, Claims
from memctl.watch.inbox_scanner import InboxScanner, take_batch
from memctl.watch.intake import Intake, numbered
from memctl.watch.reporter import Reporter, TurnResult, error_message

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase

_HOPELESS_ERRNOS = frozenset([errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO])

_WRITTEN_TO = "it was written to while it was taken in"


@dataclass(slots=True)
class MoveMode:
    """Empties the inboxes of one knowledge base."""

    base: KnowledgeBase
    reporter: Reporter
    scanner: InboxScanner
    intake: Intake
    claims: Claims

    def turn(self, inbox: Inbox) -> TurnResult:
        """Take the first files of an inbox that stand still and that nobody writes to.

        Once moved, a file would go on growing where nobody looks at it any more.
        """
        found = self.scanner.look(inbox)
        ready, wait = self.scanner.settled(inbox, found.files)
        files = take_batch(file for file in ready if self.scanner.is_closed(file))
        claimed = self.claims.claim(files, self._refused) if files else []
        self._put_through(claimed)
        if ready and not files:
            wait = min(wait or self.scanner.settle_seconds, self.scanner.settle_seconds)
        more = bool(claimed) and len(claimed) < len(ready)
        return TurnResult(bool(claimed), 0.0 if more else wait)

    def recover(self) -> None:
        """Take in what a daemon that was killed, or a failure of the store, has left half-way."""
        self.claims.sweep()
        self.claims.note_cut_off()
        self._put_through(self._left_behind())

    def put_back(self) -> None:
        """Return files whose ingest was interrupted to the inboxes they came from."""
        with suppress(MemctlError):  # the ledger may be what fails
            self.claims.note_try(STOPPED)
        for claimed in self._left_behind():
            self.claims.put_back(claimed)
            self.reporter.say("put_back", claimed.source)

    def note_try(self, reason: str) -> None:
        """Note why files that are in processing were not dealt with."""
        self.claims.note_try(reason)

    def let_wait(self) -> None:
        """Return them without a word, for they are taken again as soon as may be."""
        for claimed in self._left_behind():
            self.claims.put_back(claimed)

    def _refused(self, file: InboxFile, error: OSError) -> None:
        if error.errno in _HOPELESS_ERRNOS:
            raise error
        self.reporter.complain("failed", printable(file.path), *error_message(error))

    def _left_behind(self) -> list[ClaimedFile]:
        """Files in processing that are to be taken in; what is remembered already is sent on."""
        found = self.claims.leftovers()
        settled = [each for each in found if each.document_id]
        self._send_on(
            (each, FileOutcome(each.source, "known", document_id=each.document_id))
            for each in settled
        )
        return [each for each in found if not each.document_id]

    def _put_through(self, claimed: Sequence[ClaimedFile]) -> None:
        """Take claimed files in, and move each to where its fate sends it."""
        sources = [
            Source(c.source, c.path, name=c.original.name, tags=c.tags, line=number)
            for number, c in enumerate(claimed)
        ]

        def of_claims(outcomes: Iterable[FileOutcome]) -> list[tuple[ClaimedFile, FileOutcome]]:
            """Put each outcome to the file that it is of."""
            return [(claimed[number], outcome) for number, outcome in numbered(outcomes)]

        try:
            outcomes = self.intake.ingest(
                sources, lambda outcomes: self.claims.note_settled(of_claims(outcomes))
            )
        except IngestStopped as stopped:
            if isinstance(stopped.cause, ModelError):  # the store is well, so what is in it is done
                self._send_on(of_claims(stopped.report.outcomes))
            raise
        self._send_on(of_claims(outcomes))

    def _send_on(self, settled: Iterable[tuple[ClaimedFile, FileOutcome]]) -> None:
        fates: list[ClaimResult] = []
        for claimed, outcome in settled:
            if outcome.error == CHANGED or claimed.has_changed:  # let it settle once more
                why = outcome.reason if outcome.error == CHANGED else _WRITTEN_TO
                self.claims.note_try(why, [claimed])
                self.claims.put_back(claimed)
                self.reporter.say("put_back", claimed.source, why)
            else:
                fates.append(ClaimResult(claimed, outcome, self._after(claimed.inbox)))
        if fates:
            self.claims.send_on(fates, self._sent_on)

    def _sent_on(self, fate: ClaimResult, place: Path | None) -> None:
        claimed = fate.claimed
        self.intake.tell(fate.outcome, claimed.sidecars, printable(place or claimed.path))

    def _after(self, path: Path) -> After:
        return next((i.after for i in self.base.settings.inboxes if i.path == path), "move")
