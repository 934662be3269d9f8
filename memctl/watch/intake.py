"""Files of an inbox become memories, and whoever listens is told what became of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from memctl.errors import MemctlError
from memctl.ingest.sources import Source, printable
from memctl.ingest.write import Settled
from memctl.records import Compared, FileOutcome, Progress
from memctl.store.names import WORKS_ON
from memctl.watch.report import EventKind
from memctl.watch.schedule import Schedule
from memctl.watch.served import Served
from memctl.watch.voice import Voice

TOLD_EVERY_SECONDS = 30.0
"""How far a big file is, is said so often."""


@dataclass(slots=True)
class Intake:
    """Has sources taken in, and counts and tells of what came of them."""

    base: Served
    voice: Voice
    schedule: Schedule
    beat: Callable[[], None]
    monotonic: Callable[[], float] = time.monotonic
    dealt_with: int = 0
    """How many files have met their fate."""
    _told_at: float = 0.0
    _has_told: bool = False
    """Whether the ledger says how far a file is."""

    def ingest(
        self, sources: Sequence[Source], settled: Settled | None = None
    ) -> Sequence[FileOutcome]:
        """Take sources in; ``settled`` is told of them within their commit."""
        if not sources:
            return []
        self._told_at = self.monotonic()
        try:
            report = self.base.ingestor.ingest(sources, self._progress, settled=settled)
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
            self.voice.say("working", progress.source, progress.note)

    def _keep_progress(self, told: str) -> None:
        """Have the ledger say it, for whoever asks; one that fails says so at the commit."""
        with suppress(MemctlError):
            self.base.store.ledger.set_meta(WORKS_ON, told)

    def _forget_progress(self) -> None:
        if self._has_told:
            self._keep_progress("")
            self._has_told = False

    def compared(self, facts: Compared) -> None:
        """Say how new facts compare with what was known, and remember what waits."""
        if facts.updated or facts.contradicted or facts.restated:
            detail = {"added": facts.added, "updated": facts.updated}
            detail |= {"contradicted": facts.contradicted, "restated": facts.restated}
            self.voice.say("compared", message=facts.told, detail=detail)
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
        report = self.base.ingestor.reprocess([outcome.document_id])
        again = next((o for o in report.outcomes if o.outcome == "ingested"), None)
        return outcome if again is None else replace(again, source=outcome.source)

    def _taken(self, outcome: FileOutcome) -> None:
        kind: EventKind = outcome.outcome if outcome.outcome != "failed" else "failed"
        title, summary = ("", "") if self._is_private else (outcome.title, outcome.summary)
        detail: dict[str, object] = {"memories": outcome.memories, "title": title}
        if outcome.missing:
            detail["missing"] = list(outcome.missing)
        document = outcome.document_id
        self.voice.say(kind, outcome.source, summary, document_id=document, detail=detail)

    @property
    def _is_private(self) -> bool:
        """Whether what is told, which may end up in a log, may have no words of a document."""
        return self.base.settings.has_private

    def _failed(self, outcome: FileOutcome, place: str) -> None:
        self.voice.keep("failed", place, outcome.reason, outcome.hint)
        detail = {"moved_to": place, "error": outcome.error}
        self.voice.say("failed", outcome.source, outcome.reason, outcome.hint, detail=detail)


def numbered(outcomes: Iterable[FileOutcome]) -> list[tuple[int, FileOutcome]]:
    """Each outcome with the number of its source, in order."""
    found = [(outcome.line, outcome) for outcome in outcomes]
    known = [(n, replace(outcome, line=None)) for n, outcome in found if n is not None]
    return sorted(known, key=lambda pair: pair[0])
