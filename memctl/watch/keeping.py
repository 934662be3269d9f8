"""Inboxes whose files stay: what is remembered follows them as they change, move and vanish."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from memctl.ingest.inbox import InboxFile, Scan
from memctl.ingest.reading import CHANGED
from memctl.ingest.sources import printable
from memctl.pinned import Inbox
from memctl.store.books import FileEntry
from memctl.watch.intake import Intake, numbered
from memctl.watch.looking import Lookout, group
from memctl.watch.report import Turn
from memctl.watch.served import Served
from memctl.watch.vault import Vault, own_documents
from memctl.watch.voice import Voice

Rows = Mapping[str, FileEntry]
"""What the ledger knows of the files of an inbox, by path."""


@dataclass(slots=True)
class Keeper:
    """Follows the inboxes of one knowledge base whose files stay."""

    base: Served
    voice: Voice
    lookout: Lookout
    intake: Intake
    settle_seconds: float
    clock: Callable[[], datetime]
    monotonic: Callable[[], float] = time.monotonic
    _vaults: dict[Path, Vault] = field(default_factory=dict)

    def turn(self, inbox: Inbox) -> Turn:
        """Take the first files of an inbox that are new or have changed, and follow the others."""
        vault = self._vault(inbox)
        found = self.lookout.look(inbox)
        rows = vault.rows()
        changed = vault.changed(found, rows)
        ready, wait = self.lookout.settled(inbox, changed)
        files = group(ready)
        if files:
            self._take_in_place(vault, files, rows)
        missing = self._follow(vault, found)
        if vault.is_waiting:
            wait = min(wait or self.settle_seconds, self.settle_seconds)
        more = len(files) < len(ready)
        return Turn(bool(files) or missing, 0.0 if more else wait)

    def _vault(self, inbox: Inbox) -> Vault:
        if inbox.path not in self._vaults:
            self._vaults[inbox.path] = Vault(
                inbox.path,
                self.base.store.ledger,
                self.clock,
                self.settle_seconds,
                self.monotonic,
            )
        return self._vaults[inbox.path]

    def _take_in_place(
        self, vault: Vault, files: Sequence[InboxFile], rows: dict[str, FileEntry]
    ) -> None:
        """Take files in, let go of what they were before, and only then note what they are.

        Killed before it is noted, all of it is done again; noted first, nothing would say any more
        what they were before.
        """
        own = own_documents(rows)
        sources = [
            vault.source(file, own.get(str(file.path)), number) for number, file in enumerate(files)
        ]
        outcomes = [
            (files[number], outcome)
            for number, outcome in numbered(self.intake.ingest(sources))
            if outcome.error != CHANGED
        ]
        ended = {own.get(str(file.path)) for file, what in outcomes if what.outcome == "superseded"}
        # What another file of the group has just ended holds again once it is taken anew.
        outcomes = [each for each in outcomes if each[1].document_id not in ended - {None}]
        entries = [vault.entry(file, outcome) for file, outcome in outcomes]
        self._let_go(entries, rows)
        vault.note(entries)
        for file, outcome in outcomes:
            self.intake.tell(outcome, file.sidecars, outcome.source)

    def _let_go(self, entries: Sequence[FileEntry], before: Rows) -> None:
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
            self.base.ingestor.retire(orphans)
        for document_id in sorted(filter(None, left & names.keys())):
            self.base.ingestor.rename(document_id, printable(Path(names[document_id])))

    def _follow(self, vault: Vault, found: Scan) -> bool:
        """Bring the memories of files that were renamed or removed up to date."""
        files = self.base.store.ledger.files
        rows = vault.rows()
        unknown = [file for file in found.files if str(file.path) not in rows]
        if any(self.lookout.is_readable(file) for file in unknown):
            return False  # one of them may be a missing one under another name
        missing = vault.missing(found, rows)
        for old, new in missing.renamed:
            name = printable(new.path)
            self.base.ingestor.rename(new.document_id or "", name)
            files.remove(old.path)
            said = f"was {printable(old.path)}"
            self.voice.say("renamed", name, said, document_id=new.document_id)
        if missing.gone:
            self.base.ingestor.retire([row.document_id for row in missing.gone if row.document_id])
        for row in (*missing.gone, *missing.struck):
            files.remove(row.path)
            self.voice.say("gone", printable(row.path), document_id=row.document_id)
        if missing.gone:
            self.intake.schedule.note_write()
        self.intake.dealt_with += len(missing.renamed) + len(missing.gone)
        return bool(missing.renamed or missing.gone)
