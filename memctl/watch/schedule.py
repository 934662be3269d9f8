"""What is due besides files: consolidation on each knowledge base's interval, and upkeep."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from memctl.records import Compared
from memctl.store.names import CONSOLIDATION

if TYPE_CHECKING:
    from memctl.store.ledger import Ledger

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

    def note_comparison(self, facts: Compared) -> None:
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
        """Whether something was written, and the last upkeep is some time ago."""
        if not self._written:
            return False
        return self._tidied is None or self.monotonic() - self._tidied >= self.upkeep_seconds

    def note_upkeep(self) -> None:
        """Note that all is tidy."""
        self._written, self._tidied = False, self.monotonic()
