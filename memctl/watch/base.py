"""Serving one knowledge base: look at its inboxes, take in what stands still, say what happened."""

from __future__ import annotations

import errno
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from memctl.choices import After
from memctl.errors import (
    CoverageLost,
    KnowledgeBaseUnavailable,
    LockedError,
    MemctlError,
    ModelError,
)
from memctl.ingest.pipeline import IngestStopped
from memctl.ingest.reading import CHANGED
from memctl.ingest.sources import Source, printable
from memctl.ingest.write import Settled
from memctl.pinned import Inbox
from memctl.records import Compared, FileOutcome
from memctl.store.books import Event, FileEntry
from memctl.watch.claim import Claimed, Claims, Fate
from memctl.watch.inbox import InboxFile, Scan, Settling, note_mount, out_of_reach, scan
from memctl.watch.report import EventKind, Listener, WatchEvent
from memctl.watch.schedule import Schedule
from memctl.watch.served import WAITS_FOR, Served
from memctl.watch.vault import Vault, own_documents

Clock = Callable[[], datetime]

FILES_AT_ONCE = 64
BYTES_AT_ONCE = 32 << 20
"""Files are taken in groups of at most so many, so that stopping never takes long."""
LONGEST_RETRY_SECONDS = 300.0
_log = logging.getLogger(__name__)
_HOPELESS_ERRNOS = frozenset([errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO])


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """How to watch; see the settings of the same names."""

    settle_seconds: float = 2.0
    rescan_seconds: float = 30.0
    poll: bool = False
    """Whether to do without events of the file system."""
    once: bool = False
    """Whether to end when everything that is there has been dealt with."""
    upkeep_seconds: float = 300.0
    retry_seconds: float = 5.0
    """How long to wait for a store that failed; doubled each time it fails again."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What one look at a knowledge base came to."""

    worked: bool
    look_again_in: float | None = None
    """Seconds until something that is there may be taken; None when there is nothing."""


@dataclass(slots=True)
class BaseWatch:
    """Serves one knowledge base; one turn takes at most one group of files."""

    base: Served
    options: WatchOptions
    listener: Listener
    clock: Clock
    beat: Callable[[], None]
    monotonic: Callable[[], float] = time.monotonic
    schedule: Schedule = field(init=False)
    dealt_with: int = 0
    """How many files have met their fate."""
    _claims: Claims = field(init=False)
    _settling: dict[Path, Settling] = field(default_factory=dict)
    _vaults: dict[Path, Vault] = field(default_factory=dict)
    _recovering: bool = True
    _retry_at: float = 0.0
    _retry_seconds: float = 0.0
    _out_of_reach: dict[Path, set[str]] = field(default_factory=dict)
    """What keeps folders of an inbox from being looked into."""
    _told_to_wait: bool = True
    """Whether the ledger may say that something is waited for."""
    _complaints: dict[str, WatchEvent] = field(default_factory=dict)
    """What is wrong now, by its message or by what kind of thing it is."""

    def __post_init__(self) -> None:
        ledger = self.base.store.ledger
        self._claims = Claims(self.base.layout, ledger, self.clock)
        self.schedule = Schedule(ledger, self.clock, self.options.upkeep_seconds, self.monotonic)

    # --- the turn ---

    def turn(self) -> Turn:
        """Look at every inbox and take what may be taken; a failing store is tried again later."""
        left = self._retry_at - self.monotonic()
        if left > 0:
            return self._waiting(left)
        try:
            turn = self._turn()
        except (MemctlError, OSError) as error:
            return self._wait_after(error)
        except Exception as error:  # noqa: BLE001 - this worker ends here; the other knowledge bases go on
            _log.exception("watching %s", self.base.name)
            message = f"unexpected {type(error).__name__}: {error}"
            return self._wait_for(message, "this is a bug in memctl: please report the traceback")
        if self._retry_at:
            self._retry_at = self._retry_seconds = 0.0
            self._complaints.clear()
            self._say("resumed")
        if self._told_to_wait:
            self._note_wait("")
        return turn

    def put_back(self) -> None:
        """Return files whose ingest was interrupted to the inboxes they came from."""
        for claimed in self._left_behind():
            self._claims.put_back(claimed)
            self._say("put_back", claimed.source)

    @property
    def is_waiting(self) -> bool:
        """Whether the store has failed and is to be tried again."""
        return bool(self._retry_at)

    @property
    def complaints(self) -> list[WatchEvent]:
        """What is wrong now."""
        return list(self._complaints.values())

    def _turn(self) -> Turn:
        if self._recovering:
            self._claims.sweep()
            self._put_through(self._left_behind())
            self._recovering = False
        worked, waits = False, []
        for inbox in self.base.settings.inboxes:
            turn = self._keep(inbox) if inbox.after == "keep" else self._drain(inbox)
            worked = worked or turn.worked
            if turn.look_again_in is not None:
                waits.append(turn.look_again_in)
        if not worked:
            worked = self._do_what_is_due(busy=bool(waits))
        return Turn(worked, min(waits, default=None))

    def _do_what_is_due(self, *, busy: bool) -> bool:
        if self.schedule.consolidation_due(self.base.settings.consolidate_interval, busy=busy):
            return self._consolidated()
        if self.schedule.comparison_due():
            self._compared(self.base.ingestor.compare())
        if self.schedule.upkeep_due():
            try:
                self.base.store.upkeep()
            except LockedError as error:  # whoever writes can do it as well
                _log.info("no upkeep now: %s", error.message)
            except CoverageLost as error:
                self._rolled_back(error)
            self.schedule.note_upkeep()
        return False

    def _consolidated(self) -> bool:
        try:
            report = self.base.consolidate()
        except CoverageLost as error:
            self._rolled_back(error)
            return False
        self.schedule.note_write()
        detail = {"examined": report.examined, "insights": len(report.insights)}
        message = f"{report.examined} memories examined, {len(report.insights)} insights"
        if report.note:
            message += f"; without the model: {report.note}"
        if report.examined or report.waiting:
            self._say("consolidated", message=message, detail=detail)
        return bool(report.examined)

    def _rolled_back(self, error: CoverageLost) -> None:
        """Say that a job was undone; files go on being taken in, and it is tried when due again."""
        self._complain("failed", "", error.message, error.hint, type(error).__name__)

    def _wait_after(self, error: MemctlError | OSError) -> Turn:
        """Wait for what failed; files that a model cannot be had for wait in their inboxes."""
        cause = error.cause if isinstance(error, IngestStopped) else error
        if not isinstance(cause, ModelError):
            return self._wait_for(*_told(error), _kind_of(cause))
        with suppress(MemctlError, OSError):  # what is not put back is found when it goes on
            for claimed in self._left_behind():
                self._claims.put_back(claimed)
        return self._wait_for(cause.message, cause.hint, type(cause).__name__)

    def _wait_for(self, message: str, hint: str, key: str = "") -> Turn:
        """Leave everything as it is and try again later, ever more seldom."""
        self._complain("waiting", "", message, hint, key)
        self._note_wait(message)
        self._recovering = True
        wait = min(2 * self._retry_seconds or self.options.retry_seconds, LONGEST_RETRY_SECONDS)
        self._retry_seconds = wait
        self._retry_at = self.monotonic() + wait
        return self._waiting(wait)

    def _note_wait(self, message: str) -> None:
        """Have the ledger say what is waited for; the disk that fails may be its own."""
        with suppress(MemctlError):
            self.base.store.ledger.set_meta(WAITS_FOR, message)
            self._told_to_wait = bool(message)

    def _waiting(self, seconds: float) -> Turn:
        """One that is to end does not wait for a store that failed."""
        return Turn(False, None if self.options.once else seconds)

    # --- inboxes that are emptied ---

    def _drain(self, inbox: Inbox) -> Turn:
        found = self._look(inbox)
        ready, wait = self._settled(inbox, found.files)
        claimed = self._claims.claim(_group(ready), self._refused) if ready else []
        self._put_through(claimed)
        more = bool(claimed) and len(claimed) < len(ready)
        return Turn(bool(claimed), 0.0 if more else wait)

    def _refused(self, file: InboxFile, error: OSError) -> None:
        if error.errno in _HOPELESS_ERRNOS:
            raise error
        self._complain("failed", printable(file.path), *_told(error))

    def _left_behind(self) -> list[Claimed]:
        """Files in processing that are to be taken in; what is remembered already is sent on."""
        found = self._claims.leftovers()
        settled = [each for each in found if each.document_id]
        self._send_on(
            (each, FileOutcome(each.source, "known", document_id=each.document_id))
            for each in settled
        )
        return [each for each in found if not each.document_id]

    def _put_through(self, claimed: Sequence[Claimed]) -> None:
        """Take claimed files in, and move each to where its fate sends it."""
        sources = [
            Source(c.source, c.path, name=c.original.name, tags=c.tags, line=number)
            for number, c in enumerate(claimed)
        ]

        def of_claims(outcomes: Iterable[FileOutcome]) -> list[tuple[Claimed, FileOutcome]]:
            """Put each outcome to the file that it is of."""
            return [(claimed[number], outcome) for number, outcome in _numbered(outcomes)]

        try:
            outcomes = self._ingest(
                sources, lambda outcomes: self._claims.note_settled(of_claims(outcomes))
            )
        except IngestStopped as stopped:
            if isinstance(stopped.cause, ModelError):  # the store is well, so what is in it is done
                self._send_on(of_claims(stopped.report.outcomes))
            raise
        self._send_on(of_claims(outcomes))

    def _send_on(self, settled: Iterable[tuple[Claimed, FileOutcome]]) -> None:
        fates: list[Fate] = []
        for claimed, outcome in settled:
            if outcome.error == CHANGED:  # somebody still had it open: let it settle once more
                self._claims.put_back(claimed)
                self._say("put_back", claimed.source, outcome.reason)
            else:
                fates.append(Fate(claimed, outcome, self._after(claimed.inbox)))
        if fates:
            self._claims.send_on(fates, self._sent_on)

    def _sent_on(self, fate: Fate, place: Path | None) -> None:
        if fate.outcome.outcome == "failed":
            self._failed(fate.outcome, printable(place or fate.claimed.path))
        else:
            self._taken(self._with_sidecars(fate.outcome, fate.claimed.sidecars))

    def _after(self, path: Path) -> After:
        return next((i.after for i in self.base.settings.inboxes if i.path == path), "move")

    # --- inboxes whose files stay ---

    def _keep(self, inbox: Inbox) -> Turn:
        vault = self._vault(inbox)
        found = self._look(inbox)
        rows = vault.rows()
        changed = vault.changed(found, rows)
        ready, wait = self._settled(inbox, changed)
        group = _group(ready)
        if group:
            self._take_in_place(vault, group, rows)
        missing = self._follow(vault, found)
        if vault.is_waiting:
            wait = min(wait or self.options.settle_seconds, self.options.settle_seconds)
        more = len(group) < len(ready)
        return Turn(bool(group) or missing, 0.0 if more else wait)

    def _vault(self, inbox: Inbox) -> Vault:
        if inbox.path not in self._vaults:
            self._vaults[inbox.path] = Vault(
                inbox.path,
                self.base.store.ledger,
                self.clock,
                self.options.settle_seconds,
                self.monotonic,
            )
        return self._vaults[inbox.path]

    def _take_in_place(
        self, vault: Vault, files: Sequence[InboxFile], rows: dict[str, FileEntry]
    ) -> None:
        own = own_documents(rows)
        sources = [
            vault.source(file, own.get(str(file.path)), number) for number, file in enumerate(files)
        ]
        for number, outcome in _numbered(self._ingest(sources)):
            if outcome.error == CHANGED:
                continue
            vault.note(files[number], outcome)
            if outcome.outcome == "failed":
                self._failed(outcome, outcome.source)
            else:
                self._taken(self._with_sidecars(outcome, files[number].sidecars))
        self._let_go(vault, [str(file.path) for file in files], rows)

    def _let_go(self, vault: Vault, paths: Sequence[str], before: dict[str, FileEntry]) -> None:
        """Documents that their files turned away from, by becoming something else.

        One that another file stands for goes by that file's name, as a copy outlives its original
        and two files may change places; one without any file is gone.
        """
        now = vault.rows()
        names = {row.document_id: path for path, row in sorted(now.items(), reverse=True)}
        known = {path: before[path].document_id for path in paths if path in before}
        left = {each for path, each in known.items() if each != now[path].document_id}
        orphans = left - names.keys()
        self.base.ingestor.retire(sorted(filter(None, orphans)))
        for document_id in sorted(filter(None, left - orphans)):
            self.base.ingestor.rename(document_id, printable(Path(names[document_id])))

    def _follow(self, vault: Vault, found: Scan) -> bool:
        """Bring the memories of files that were renamed or removed up to date."""
        files = self.base.store.ledger.files
        rows = vault.rows()
        unknown = [file for file in found.files if str(file.path) not in rows]
        if any(self._is_readable(file) for file in unknown):
            return False  # one of them may be a missing one under another name
        missing = vault.missing(found, rows)
        for old, new in missing.renamed:
            name = printable(new.path)
            self.base.ingestor.rename(new.document_id or "", name)
            files.remove(old.path)
            self._say("renamed", name, f"was {printable(old.path)}", document_id=new.document_id)
        if missing.gone:
            self.base.ingestor.retire([row.document_id for row in missing.gone if row.document_id])
        for row in (*missing.gone, *missing.struck):
            files.remove(row.path)
            self._say("gone", printable(row.path), document_id=row.document_id)
        if missing.gone:
            self.schedule.note_write()
        self.dealt_with += len(missing.renamed) + len(missing.gone)
        return bool(missing.renamed or missing.gone)

    # --- both ---

    def _look(self, inbox: Inbox) -> Scan:
        layout = self.base.layout
        inside = inbox.path == layout.folder or layout.folder in inbox.path.parents
        if problem := out_of_reach(inbox.path, self.base.store.ledger):
            found = Scan(problems=(problem,))
        else:
            note_mount(inbox.path, self.base.store.ledger)
            found = scan(inbox.path, () if inside else (layout.folder,))
        self._tell_of_problems(inbox, set(found.problems))
        return found

    def _tell_of_problems(self, inbox: Inbox, problems: set[str]) -> None:
        """Say once that folders cannot be looked into, and that they can again."""
        place, before = printable(inbox.path), self._out_of_reach.get(inbox.path, set())
        for problem in sorted(problems):
            self._complain("waiting", place, problem, "it is looked at again later")
        for problem in before - problems:
            self._complaints.pop(problem, None)
        if before and not problems:
            self._say("resumed", place)
        self._out_of_reach[inbox.path] = problems

    def _settled(
        self, inbox: Inbox, files: Sequence[InboxFile]
    ) -> tuple[list[InboxFile], float | None]:
        if inbox.path not in self._settling:
            self._settling[inbox.path] = Settling(
                self.options.settle_seconds, lambda: self.clock().timestamp(), self.monotonic
            )
        ready, wait = self._settling[inbox.path].ready(files)
        return [file for file in ready if self._is_readable(file)], wait

    def _is_readable(self, file: InboxFile) -> bool:
        if all(os.access(path, os.R_OK) for path in (file.path, *file.sidecars)):
            return True
        name = printable(file.path)
        if file.path.exists():
            hint = "allow it to be read; it is left where it is"
            self._complain("failed", name, f"cannot read {name}: permission denied", hint)
        return False

    def _with_sidecars(self, outcome: FileOutcome, sidecars: Sequence[Path]) -> FileOutcome:
        """Read a known recording again that has come with subtitles, which may be new."""
        if outcome.outcome != "known" or not sidecars or outcome.document_id is None:
            return outcome
        report = self.base.ingestor.reprocess([outcome.document_id])
        again = next((o for o in report.outcomes if o.outcome == "ingested"), None)
        return outcome if again is None else replace(again, source=outcome.source)

    def _ingest(
        self, sources: Sequence[Source], settled: Settled | None = None
    ) -> Sequence[FileOutcome]:
        """Take sources in; ``settled`` is told of them within their commit."""
        if not sources:
            return []
        report = self.base.ingestor.ingest(sources, lambda _: self.beat(), settled=settled)
        self.schedule.note_write()
        self._compared(report.facts)
        return report.outcomes

    # --- saying ---

    def _compared(self, facts: Compared) -> None:
        """Say how new facts compare with what was known, and remember what waits."""
        if facts.updated or facts.contradicted or facts.restated:
            detail = {"added": facts.added, "updated": facts.updated}
            detail |= {"contradicted": facts.contradicted, "restated": facts.restated}
            self._say("compared", message=facts.told, detail=detail)
        if facts.note:
            _log.info("%d facts are still to be compared: %s", facts.waiting, facts.note)
        self.schedule.note_comparison(waits=bool(facts.note))

    def _taken(self, outcome: FileOutcome) -> None:
        self.dealt_with += 1
        kind: EventKind = outcome.outcome if outcome.outcome != "failed" else "failed"
        detail: dict[str, object] = {"memories": outcome.memories, "title": outcome.title}
        if outcome.missing:
            detail["missing"] = list(outcome.missing)
        document = outcome.document_id
        self._say(kind, outcome.source, outcome.summary, document_id=document, detail=detail)

    def _failed(self, outcome: FileOutcome, place: str) -> None:
        self.dealt_with += 1
        event = Event(self.clock(), "failed", outcome.reason, outcome.hint, place)
        self.base.store.ledger.events.add(event)
        detail = {"moved_to": place, "error": outcome.error}
        self._say("failed", outcome.source, outcome.reason, outcome.hint, detail=detail)

    def _complain(
        self, kind: EventKind, source: str, message: str, hint: str = "", key: str = ""
    ) -> None:
        """Say it once, however often it is met, even if in other words under the same key."""
        key = key or message
        if key in self._complaints:
            return
        with suppress(MemctlError):  # the ledger may be what fails
            event = Event(self.clock(), kind, message, hint, source)
            self.base.store.ledger.events.add(event)
        self._complaints[key] = self._say(kind, source, message, hint)

    def _say(
        self,
        kind: EventKind,
        source: str = "",
        message: str = "",
        hint: str = "",
        document_id: str | None = None,
        detail: Mapping[str, object] | None = None,
    ) -> WatchEvent:
        event = WatchEvent(
            self.clock(), kind, self.base.name, source, message, hint, document_id, detail or {}
        )
        self.listener(event)
        return event


def _group(files: Sequence[InboxFile]) -> list[InboxFile]:
    """The first files, as many as may be taken at once and at least one."""
    group: list[InboxFile] = []
    size = 0
    for file in files[:FILES_AT_ONCE]:
        size += file.size
        if group and size > BYTES_AT_ONCE:
            break
        group.append(file)
    return group


def _numbered(outcomes: Iterable[FileOutcome]) -> list[tuple[int, FileOutcome]]:
    """Each outcome with the number of its source, in order."""
    numbered = [(outcome.line, outcome) for outcome in outcomes]
    known = [(n, replace(outcome, line=None)) for n, outcome in numbered if n is not None]
    return sorted(known, key=lambda pair: pair[0])


def _kind_of(error: BaseException) -> str:
    """What is waited for: a disk fails in many words, which name another file each time."""
    is_disk = isinstance(error, (OSError, KnowledgeBaseUnavailable))
    return "disk" if is_disk else type(error).__name__


def _told(error: MemctlError | OSError) -> tuple[str, str]:
    if isinstance(error, MemctlError):
        return error.message, error.hint
    where = f"{printable(error.filename)}: " if error.filename else ""
    return f"{where}{error.strerror or error}", "free space or rights; it is tried again"
