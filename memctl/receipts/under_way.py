"""Files that lie in an inbox, or were taken out of one, and have not met their fate yet."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memctl.ingest.inbox import TO_READ_IT, InboxFile, not_its_own, scan
from memctl.ingest.leaving import IN_WORDS, TOO_DEEP
from memctl.ingest.sources import printable
from memctl.paths import shown
from memctl.receipts.receipt import Receipt
from memctl.store.lock import is_watched
from memctl.store.names import WAITS_FOR

if TYPE_CHECKING:
    from memctl.pinned import Inbox, KnowledgeBaseSettings, Layout
    from memctl.receipts.asked import Asked
    from memctl.receipts.receipt import ReceiptOutcome
    from memctl.records import LeftOutReason
    from memctl.store.ledger import Ledger

_EVENTS = 1_000
_NO_WATCH = "no watch is running"
_BY_NAME = ("hidden", "unfinished", "system")
_NO_FILES = ("pipe", "socket", "device", "other")


class UnderWay:
    """Tells of the files of one knowledge base that are on their way.

    Args:
        layout: Where it stands.
        settings: What is pinned for it.
        ledger: What is going on in it.
    """

    def __init__(self, layout: Layout, settings: KnowledgeBaseSettings, ledger: Ledger) -> None:
        self._layout = layout
        self._settings = settings
        self._ledger = ledger

    def receipts(self, asked: Asked) -> Iterator[Receipt]:
        """Yield what there is to tell of the files that may be meant."""
        for entry in self._ledger.files.entries(["claimed"]):
            path = Path(entry.path)
            if asked.means(path):
                ends = {"seen_at": entry.first_seen, "claimed_at": entry.updated_at}
                yield self._receipt(path, "processing", hint=self._goes_on(), **ends)
        for inbox, path in asked.in_inboxes(self._layout, self._settings):
            if os.path.lexists(path) and (path.is_symlink() or not path.is_dir()):
                yield from self._in_inbox(inbox, path)

    def _goes_on(self) -> str:
        """Say who goes on with what has been claimed, where whoever claimed it is gone."""
        return "" if is_watched(self._layout) else f"{_NO_WATCH}: {self._watch} takes it up again"

    @property
    def _watch(self) -> str:
        which = "" if self._settings.always_on else f" -k {self._layout.name}"
        return f"memctl watch{which}"

    def _in_inbox(self, inbox: Inbox, path: Path) -> Iterator[Receipt]:
        """Say what the watcher makes of a file, by looking at the inbox as it does."""
        left: dict[Path, LeftOutReason] = {}
        exclude = not_its_own(self._layout, inbox.path)
        found = scan(inbox.path, exclude, towards=path, left=left.__setitem__)
        for place in (path, *path.parents):
            if place in left:
                yield self._left(path, place, left[place])
                return
        for file in found.files:
            if path in file.sidecars:
                yield self._sidecar(path, file.path)
            elif path == file.path:
                yield from self._taken_or_waiting(inbox, file)
        if found.problems and path not in (file.path for file in found.files):
            reason = found.problems[0]
            what_to_do = "move it further up" if TOO_DEEP in reason else "allow it to be listed"
            hint = f"{what_to_do}; it is looked at again then"
            yield self._receipt(path, "waiting", reason=reason, hint=hint)

    def _left(self, path: Path, place: Path, why: LeftOutReason) -> Receipt:
        what = "it" if place == path else f"its folder {shown(printable(place))}"
        hint = _way_in(path, why, "it" if place == path else "that folder")
        return self._receipt(path, "left", reason=f"{what} is {IN_WORDS[why]}", hint=hint)

    def _sidecar(self, path: Path, recording: Path) -> Receipt:
        reason = f"it is read with the recording beside it, {shown(printable(recording.name))}"
        return self._receipt(path, "left", reason=reason, hint="memctl why tells of that one")

    def _taken_or_waiting(self, inbox: Inbox, file: InboxFile) -> Iterator[Receipt]:
        row = self._ledger.files.get(str(file.path)) if inbox.after == "keep" else None
        if file.is_as(row):
            return
        changed = "it has changed since it was read" if row else ""
        reason, hint, pid = self._prospect(file)
        yield self._receipt(
            file.path, "waiting", reason=reason or changed, hint=hint, watched_by=pid
        )

    def _prospect(self, file: InboxFile) -> tuple[str, str, int | None]:
        """Say why a file has not been taken yet, who will, and which process that is."""
        name, status = self._layout.name, self._settings.status
        if status != "active":
            return f"knowledge base {name!r} is {status}", f"memctl kb resume {name}", None
        if not is_watched(self._layout):
            return (*self._trouble(file, f"{_NO_WATCH}: {self._watch} takes it in"), None)
        daemon = self._ledger.daemon.get()
        pid = daemon.pid if daemon else None
        who = f"process {pid}" if pid else "another process"
        if waits_for := self._ledger.meta(WAITS_FOR):
            hint = f"{who} watches its inbox, and goes on by itself when it can"
            return waits_for, hint, pid
        hint = f"{who} watches its inbox, and takes it once it stands still"
        return (*self._trouble(file, hint), pid)

    def _trouble(self, file: InboxFile, hint: str) -> tuple[str, str]:
        """What the watcher has, or would have, against a file as it is now, and what to do."""
        if file.obstacle:
            return file.obstacle, TO_READ_IT
        path = printable(file.path)
        for event in self._ledger.events.recent(_EVENTS):
            if event.subject == path and event.at.timestamp() * 1e9 > file.changed_ns:
                return event.message, event.hint or hint
        return "", hint

    def _receipt(self, path: Path, outcome: ReceiptOutcome, **told: Any) -> Receipt:
        is_there = outcome != "processing"
        name = printable(path)
        tries = self._ledger.receipts.tries(name)
        return Receipt(self._layout.name, name, outcome, is_there=is_there, tries=tries, **told)


def _way_in(path: Path, why: LeftOutReason, what: str) -> str:
    """Say how to have a file remembered that is left in an inbox for what it, or a folder, is."""
    name = shlex.quote(printable(path))
    if why in _BY_NAME:
        return f"give {what} another name, or take it in as it is: memctl ingest {name}"
    if why == "ignored":
        return f"change that rule, or take it in as it is: memctl ingest {name}"
    if why == "link":
        return f"put what it leads to there, or take that in: memctl ingest {name}"
    return "put a regular file there" if why in _NO_FILES else ""
