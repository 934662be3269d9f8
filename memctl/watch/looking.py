"""Looking into the inboxes of one knowledge base: what lies there, and what stands still."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path

from memctl.files import is_being_written
from memctl.ingest.inbox import TO_READ_IT, InboxFile, Scan, not_its_own, scan
from memctl.ingest.sources import printable
from memctl.pinned import Inbox
from memctl.watch.inbox import Settling, note_mount, out_of_reach
from memctl.watch.served import Served
from memctl.watch.voice import Voice

FILES_AT_ONCE = 64
BYTES_AT_ONCE = 32 << 20
"""Files are taken in groups of at most so many, so that stopping never takes long."""

_OPEN_ELSEWHERE = "a program still has it open for writing"
_TO_CLOSE_IT = "it is taken as soon as that is closed"


@dataclass(slots=True)
class Lookout:
    """Looks into inboxes, and says once what cannot be looked into."""

    base: Served
    voice: Voice
    settle_seconds: float
    clock: Callable[[], datetime]
    monotonic: Callable[[], float] = time.monotonic
    _settling: dict[Path, Settling] = field(default_factory=dict)
    _out_of_reach: dict[Path, set[str]] = field(default_factory=dict)
    """What keeps folders of an inbox from being looked into."""

    def look(self, inbox: Inbox) -> Scan:
        """Return what lies in an inbox."""
        if problem := out_of_reach(inbox.path, self.base.store.ledger):
            found = Scan(problems=(problem,))
        else:
            note_mount(inbox.path, self.base.store.ledger)
            found = scan(inbox.path, not_its_own(self.base.layout, inbox.path))
        self._tell_of_problems(inbox, set(found.problems))
        return found

    def settled(
        self, inbox: Inbox, files: Sequence[InboxFile]
    ) -> tuple[list[InboxFile], float | None]:
        """Return the files that may be taken, and in how many seconds to look at the others."""
        if inbox.path not in self._settling:
            self._settling[inbox.path] = Settling(
                self.settle_seconds, lambda: self.clock().timestamp(), self.monotonic
            )
        ready, wait = self._settling[inbox.path].ready(files)
        return [file for file in ready if self.is_readable(file)], wait

    def is_readable(self, file: InboxFile) -> bool:
        """Whether a file and its sidecars may be read; say so if they may not."""
        if not file.obstacle:
            return True
        if file.path.exists():
            name = printable(file.path)
            self.voice.complain("failed", name, file.obstacle, TO_READ_IT)
        return False

    def is_closed(self, file: InboxFile) -> bool:
        """Whether no program has a file or a sidecar open for writing; say so if one has."""
        is_open = any(is_being_written(path) for path in (file.path, *file.sidecars))
        key = f"open {file.path}"
        if is_open:
            self.voice.complain("waiting", printable(file.path), _OPEN_ELSEWHERE, _TO_CLOSE_IT, key)
        else:
            self.voice.is_over(key)
        return not is_open

    def _tell_of_problems(self, inbox: Inbox, problems: set[str]) -> None:
        """Say once that folders cannot be looked into, and that they can again."""
        place, before = printable(inbox.path), self._out_of_reach.get(inbox.path, set())
        for problem in sorted(problems):
            self.voice.complain("waiting", place, problem, "it is looked at again later")
        for problem in before - problems:
            self.voice.is_over(problem)
        if before and not problems:
            self.voice.say("resumed", place)
        self._out_of_reach[inbox.path] = problems


def group(files: Iterable[InboxFile]) -> list[InboxFile]:
    """The first files, as many as may be taken at once and at least one."""
    taken: list[InboxFile] = []
    size = 0
    for file in islice(files, FILES_AT_ONCE):
        size += file.size
        if taken and size > BYTES_AT_ONCE:
            break
        taken.append(file)
    return taken
