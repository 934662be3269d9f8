"""Files of an inbox become memories, and listeners hear what became of each."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import MemctlError
from memctl.formatting import format_count
from memctl.ingest.batch_writing import OutcomeListener
from memctl.ingest.discovery.sources import Source, printable
from memctl.records import FileOutcome, Progress
from memctl.schema.table_names import WATCH_PROGRESS
from memctl.sessions.imports import is_chat_log
from memctl.watch.reporter import EventKind, Reporter
from memctl.watch.scheduled_jobs import JobContext

if TYPE_CHECKING:
    from memctl.ingest.file_versions import FileVersions
    from memctl.knowledge_base import KnowledgeBase

PROGRESS_SECONDS = 30.0
"""The progress of a big file is reported this often."""
_STATUS_SECONDS = 2.0
"""What is being read is noted this often, for `memctl status`."""
_MOST_PARTS = 20
"""At most this many parts of a file are named that could not be read."""


class Intake(Struct):
    """Has sources taken in, and counts and tells of what came of them."""

    base: KnowledgeBase
    reporter: Reporter
    jobs: JobContext
    beat: Callable[[], None]
    monotonic: Callable[[], float] = time.monotonic
    dealt_with: int = 0
    """How many files are done."""
    _reported_at: float = 0.0
    _noted_at: float = 0.0
    _has_progress: bool = True
    """Whether the ledger may say how far a file is."""

    def ingest(
        self,
        sources: Sequence[Source],
        on_commit: OutcomeListener | None = None,
        on_done: OutcomeListener | None = None,
        versions: FileVersions | None = None,
    ) -> Sequence[FileOutcome]:
        """Take sources in.

        Args:
            sources: Which.
            on_commit: Called with what becomes of some within their commit.
            on_done: Called with what has become of some after their commit.
            versions: Finds what they were before, which ends in the same commit.
        """
        logs = [each for each in sources if each.path is not None and is_chat_log(each.path)]
        logged = self._take_logs(logs, on_commit) if logs else []
        if on_done is not None and logged:
            on_done(logged)
        sources = [each for each in sources if each not in logs]
        if not sources:
            return logged
        self._reported_at = self._noted_at = self.monotonic()
        try:
            report = self.base.services.ingestor.ingest(
                sources,
                self._progress,
                total=len(sources),
                on_commit=on_commit,
                on_done=on_done,
                versions=versions,
            )
        finally:
            self.forget_progress()
        self.jobs.schedule.note_write()
        self.jobs.report_comparison(report.facts)
        self._report_failed_parts(report.outcomes)
        return [*logged, *report.outcomes]

    def _take_logs(
        self, logs: Sequence[Source], on_commit: OutcomeListener | None
    ) -> list[FileOutcome]:
        """Take the messages of chat logs that are new; a log that has grown comes again."""
        outcomes = [self._ingest_log(each) for each in logs]
        if on_commit is not None:
            with self.base.store.ledger.transaction():
                on_commit(outcomes)
        self.jobs.schedule.note_write()
        return outcomes

    def _ingest_log(self, log: Source) -> FileOutcome:
        """Take one; it stands for no document, for a conversation outlives its log."""
        assert log.path is not None
        report = self.base.sessions.import_files([log.path], is_growing=True)
        bad = [each for each in report.outcomes if each.outcome == "failed"]
        if bad and not report.ingested and not report.skipped:
            return replace(bad[0], source=log.source, line=log.line, path=log.place)
        lines = f"{len(bad)} lines that are no messages"
        return FileOutcome(
            log.source,
            "ingested" if report.ingested else "known",
            memories=report.memories,
            missing=(lines,) if bad else (),
            line=log.line,
            path=log.place,
        )

    def _progress(self, progress: Progress) -> None:
        """Show that it is alive and, from time to time, what it is reading and how far that is."""
        self.beat()
        now = self.monotonic()
        source, note = progress.source, progress.note
        if not source and progress.reading:
            files = format_count(progress.total or 0, "file")
            source, note = progress.reading, f"reading it, {progress.done:,} of {files} done"
        if source and now - self._reported_at >= PROGRESS_SECONDS:
            self._reported_at = now
            self._keep_progress(f"{printable(source)}: {note}")
            self.reporter.say("working", source, note)
        elif source and now - self._noted_at >= _STATUS_SECONDS:
            self._keep_progress(f"{printable(source)}: {note}")

    def _keep_progress(self, progress: str) -> None:
        """Have the ledger say how far it is; a ledger that fails says so at the commit."""
        self._noted_at, self._has_progress = self.monotonic(), bool(progress)
        with suppress(MemctlError):
            self.base.store.ledger.set_meta(WATCH_PROGRESS, progress)

    def forget_progress(self) -> None:
        """Have the ledger say no more how far it is, or a watcher that was killed."""
        if self._has_progress:
            self._keep_progress("")

    def tell(self, outcome: FileOutcome, sidecars: Sequence[Path], place: str) -> None:
        """Report what became of a file, which is at ``place`` now."""
        if outcome.outcome == "failed":
            self._report_failed(outcome, place)
        else:
            self._report_taken(self._with_sidecars(outcome, sidecars))
        self.dealt_with += 1

    def _with_sidecars(self, outcome: FileOutcome, sidecars: Sequence[Path]) -> FileOutcome:
        """Read a known recording again that has come with subtitles, which may be new."""
        if outcome.outcome != "known" or not sidecars or outcome.document_id is None:
            return outcome
        report = self.base.services.ingestor.reprocess([outcome.document_id])
        again = next((o for o in report.outcomes if o.outcome == "ingested"), None)
        return outcome if again is None else replace(again, source=outcome.source)

    def _report_taken(self, outcome: FileOutcome) -> None:
        kind: EventKind = outcome.outcome if outcome.outcome != "failed" else "failed"
        title, summary = ("", "") if self._is_private else (outcome.title, outcome.summary)
        message = outcome.reason if outcome.outcome == "empty" else summary
        detail: dict[str, object] = {"memories": outcome.memories, "title": title}
        if outcome.missing:
            detail["missing"] = list(outcome.missing)
        document = outcome.document_id
        self.reporter.say(kind, outcome.source, message, document_id=document, detail=detail)

    @property
    def _is_private(self) -> bool:
        """Whether events, which may end up in a log, must have no words of a document."""
        return self.base.settings.has_private

    def _report_failed_parts(self, outcomes: Iterable[FileOutcome]) -> None:
        """Report the parts of files that could not be read: the first of each file, and how many.

        A small file can be made to have a hundred thousand of them.
        """
        parts = [each for each in outcomes if each.part_of and each.outcome == "failed"]
        counts: Counter[str] = Counter()
        for part in parts:
            counts[part.part_of] += 1
            if counts[part.part_of] <= _MOST_PARTS:
                self._report_failed(part, part.source)
        for source, count in counts.items():
            if count > _MOST_PARTS:
                more = f"{format_count(count - _MOST_PARTS, 'more part')} could not be read"
                self._report_failed(FileOutcome(source, "failed", reason=more), source)

    def _report_failed(self, outcome: FileOutcome, place: str) -> None:
        self.reporter.keep("failed", place, outcome.reason, outcome.hint)
        detail = {"moved_to": place, "error": outcome.error}
        self.reporter.say("failed", outcome.source, outcome.reason, outcome.hint, detail=detail)


def with_numbers(outcomes: Iterable[FileOutcome]) -> list[tuple[int, FileOutcome]]:
    """Each outcome with the number of its source, in order."""
    found = [(outcome.line, outcome) for outcome in outcomes]
    known = [(n, replace(outcome, line=None)) for n, outcome in found if n is not None]
    return sorted(known, key=lambda pair: pair[0])
