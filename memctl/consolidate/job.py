"""What the ledger knows of consolidations: when each began, how it ended and what it came to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from memctl.errors import CoverageLost
from memctl.records import ConsolidationReport

if TYPE_CHECKING:
    from memctl.store.ledger import Ledger

CONSOLIDATION = "consolidation"
"""The kind of job."""


def noted(
    ledger: Ledger, clock: Callable[[], datetime], run: Callable[[], ConsolidationReport]
) -> ConsolidationReport:
    """Consolidate, and note it as a job, whoever wanted it: the schedule and the status read it."""
    job = ledger.jobs.start(CONSOLIDATION, clock())
    try:
        report = run()
    except CoverageLost as error:
        ledger.jobs.fail(job, clock(), error.message, error.hint)
        raise
    except BaseException:
        ledger.jobs.finish(job, "failed", clock())
        raise
    detail = {
        "examined": report.examined,
        "insights": len(report.insights),
        "waiting": report.waiting,
    }
    ledger.jobs.finish(job, "done", clock(), detail)
    return report
