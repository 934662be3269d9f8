"""Counting what becomes of the sources of one ingest."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from memctl.records import Compared, FileOutcome, IngestReport

MOST_OUTCOMES = 1_000
"""A report keeps so many outcomes besides the failures."""


@dataclass(slots=True)
class Tally:
    """What has been done so far; it began when this was made."""

    started: float = field(default_factory=time.monotonic)
    ingested: int = 0
    skipped: int = 0
    failed: int = 0
    memories: int = 0
    incomplete: int = 0
    dropped: int = 0
    outcomes: list[FileOutcome] = field(default_factory=list)
    facts: Compared = field(default_factory=Compared)

    @property
    def done(self) -> int:
        """How many sources have met their fate."""
        return self.ingested + self.skipped + self.failed

    def add(self, outcomes: Iterable[FileOutcome]) -> None:
        """Count what became of sources, and keep it unless there is too much of it."""
        for outcome in outcomes:
            self.failed += outcome.outcome == "failed"
            self.skipped += outcome.outcome == "known"
            self.ingested += outcome.outcome in ("ingested", "superseded")
            self.memories += outcome.memories
            self.incomplete += bool(outcome.missing)
            self.dropped += outcome.dropped
            if outcome.outcome == "failed" or len(self.outcomes) - self.failed < MOST_OUTCOMES:
                self.outcomes.append(outcome)

    def report(self) -> IngestReport:
        """Return what it comes to up to now."""
        return IngestReport(
            ingested=self.ingested,
            skipped=self.skipped,
            failed=self.failed,
            memories=self.memories,
            seconds=time.monotonic() - self.started,
            outcomes=tuple(self.outcomes),
            incomplete=self.incomplete,
            dropped=self.dropped,
            facts=self.facts,
        )
