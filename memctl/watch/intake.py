"""Files of an inbox become memories, and whoever listens is told what became of each."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.errors import MemctlError
from memctl.ingest.batch_writing import OutcomeListener
from memctl.ingest.discovery.sources import Source, printable
from memctl.records import FactComparison, FileOutcome, Progress
from memctl.schema.table_names import CONSOLIDATION, WORKS_ON
from memctl.watch.reporter import EventKind, Reporter

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase
    from memctl.store.ledger.ledger import Ledger

Clock = Callable[[], datetime]

_log = logging.getLogger(__name__)

PATIENCE_SECONDS = 60.0
"""So long a consolidation that is due waits for files that have not settled yet."""


FIRST_COMPARE_SECONDS = 5.0
LONGEST_COMPARE_SECONDS = 300.0
"""So long facts that a model could not compare wait until it is tried again."""


@dataclass(slots=True)
class Schedule:
    """When a knowledge base was consolidated and tidied up last, and what is due now."""

    ledger: Ledger
    clock: Clock
    upkeep_seconds: float
    monotonic: Callable[[], float] = time.monotonic
    _tidied: float | None = None
    _due_since: float | None = None
    _written: bool = False
    _compare_at: float | None = None
    _compare_seconds: float = 0.0

    def consolidation_due(self, interval_minutes: int, *, busy: bool = False) -> bool:
        """Whether the interval has gone by since the last consolidation began; 0 is never.

        While files are about to be taken in it waits a little, so that it sees them.
        """
        if interval_minutes <= 0 or not self._interval_is_over(interval_minutes):
            self._due_since = None
            return False
        now = self.monotonic()
        self._due_since = now if self._due_since is None else self._due_since
        return not busy or now - self._due_since >= PATIENCE_SECONDS

    def _interval_is_over(self, minutes: int) -> bool:
        last = self.ledger.jobs.last(CONSOLIDATION)
        if last is None:
            return True
        ago = self.clock() - last.started_at
        # One that is still to begin was noted while the clock was ahead: that may be for years.
        return ago >= timedelta(minutes=minutes) or ago < timedelta(0)

    def comparison_due(self) -> bool:
        """Whether facts wait to be compared, and the model that does it may be tried again."""
        if self._compare_at is not None and self.monotonic() < self._compare_at:
            return False
        return self.ledger.comparisons.count() > 0

    def note_comparison(self, facts: FactComparison) -> None:
        """Note whether facts could be compared; if not, it is tried again ever more seldom."""
        if not facts.note:
            self._compare_at, self._compare_seconds = None, 0.0
            return
        _log.info("%d facts are still to be compared: %s", facts.waiting, facts.note)
        longer = min(2 * self._compare_seconds, LONGEST_COMPARE_SECONDS)
        self._compare_seconds = longer or FIRST_COMPARE_SECONDS
        self._compare_at = self.monotonic() + self._compare_seconds

    def note_write(self) -> None:
        """Note that there may be something to tidy up."""
        self._written = True

    def upkeep_due(self) -> bool:
        """Whether there is something to tidy up, and the last upkeep is some time ago."""
        if self._tidied is not None and self.monotonic() - self._tidied < self.upkeep_seconds:
            return False
        return self._written or bool(self.ledger.accesses.pending())

    def note_upkeep(self) -> None:
        """Note that all is tidy."""
        self._written, self._tidied = False, self.monotonic()


TOLD_EVERY_SECONDS = 30.0
"""How far a big file is, is said so often."""


@dataclass(slots=True)
class Intake:
    """Has sources taken in, and counts and tells of what came of them."""

    base: KnowledgeBase
    reporter: Reporter
    schedule: Schedule
    beat: Callable[[], None]
    monotonic: Callable[[], float] = time.monotonic
    dealt_with: int = 0
    """How many files have met their fate."""
    _told_at: float = 0.0
    _has_told: bool = False
    """Whether the ledger says how far a file is."""

    def ingest(
        self, sources: Sequence[Source], settled: OutcomeListener | None = None
    ) -> Sequence[FileOutcome]:
        """Take sources in; ``settled`` is told of them within their commit."""
        if not sources:
            return []
        self._told_at = self.monotonic()
        try:
            report = self.base.services.ingestor.ingest(sources, self._progress, settled=settled)
        finally:
            self._forget_progress()
        self.schedule.note_write()
        self.compared(report.facts)
        return report.outcomes

    def _progress(self, progress: Progress) -> None:
        """Show that it is alive and, from time to time, how far a big file is."""
        self.beat()
        now = self.monotonic()
        if progress.source and now - self._told_at >= TOLD_EVERY_SECONDS:
            self._told_at, self._has_told = now, True
            self._keep_progress(f"{printable(progress.source)}: {progress.note}")
            self.reporter.say("working", progress.source, progress.note)

    def _keep_progress(self, told: str) -> None:
        """Have the ledger say it, for whoever asks; one that fails says so at the commit."""
        with suppress(MemctlError):
            self.base.store.ledger.set_meta(WORKS_ON, told)

    def _forget_progress(self) -> None:
        if self._has_told:
            self._keep_progress("")
            self._has_told = False

    def compared(self, facts: FactComparison) -> None:
        """Say how new facts compare with what was known, and remember what waits."""
        if facts.updated or facts.contradicted or facts.restated:
            detail = {"added": facts.added, "updated": facts.updated}
            detail |= {"contradicted": facts.contradicted, "restated": facts.restated}
            self.reporter.say("compared", message=facts.told, detail=detail)
        self.schedule.note_comparison(facts)

    def tell(self, outcome: FileOutcome, sidecars: Sequence[Path], place: str) -> None:
        """Say what became of a file, which is at ``place`` now."""
        if outcome.outcome == "failed":
            self._failed(outcome, place)
        else:
            self._taken(self._with_sidecars(outcome, sidecars))
        self.dealt_with += 1

    def _with_sidecars(self, outcome: FileOutcome, sidecars: Sequence[Path]) -> FileOutcome:
        """Read a known recording again that has come with subtitles, which may be new."""
        if outcome.outcome != "known" or not sidecars or outcome.document_id is None:
            return outcome
        report = self.base.services.ingestor.reprocess([outcome.document_id])
        again = next((o for o in report.outcomes if o.outcome == "ingested"), None)
        return outcome if again is None else replace(again, source=outcome.source)

    def _taken(self, outcome: FileOutcome) -> None:
        kind: EventKind = outcome.outcome if outcome.outcome != "failed" else "failed"
        title, summary = ("", "") if self._is_private else (outcome.title, outcome.summary)
        detail: dict[str, object] = {"memories": outcome.memories, "title": title}
        if outcome.missing:
            detail["missing"] = list(outcome.missing)
        document = outcome.document_id
        self.reporter.say(kind, outcome.source, summary, document_id=document, detail=detail)

    @property
    def _is_private(self) -> bool:
        """Whether what is told, which may end up in a log, may have no words of a document."""
        return self.base.settings.has_private

    def _failed(self, outcome: FileOutcome, place: str) -> None:
        self.reporter.keep("failed", place, outcome.reason, outcome.hint)
        detail = {"moved_to": place, "error": outcome.error}
        self.reporter.say("failed", outcome.source, outcome.reason, outcome.hint, detail=detail)


def numbered(outcomes: Iterable[FileOutcome]) -> list[tuple[int, FileOutcome]]:
    """Each outcome with the number of its source, in order."""
    found = [(outcome.line, outcome) for outcome in outcomes]
    known = [(n, replace(outcome, line=None)) for n, outcome in found if n is not None]
    return sorted(known, key=lambda pair: pair[0])
