"""Work that takes a while noted as a job: when it began, how it ended and what it came to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from memctl.errors import CoverageLost

if TYPE_CHECKING:
    from memctl.store.ledger import Ledger


@dataclass
class Noted:
    """A job that is in the ledger and runs."""

    id: int
    detail: Mapping[str, int] = field(default_factory=dict)
    """What it comes to; noted at its end."""


@contextmanager
def noted(ledger: Ledger, kind: str, clock: Callable[[], datetime]) -> Iterator[Noted]:
    """Note what is done inside as a job, whoever wanted it."""
    job = Noted(ledger.jobs.start(kind, clock()))
    try:
        yield job
    except CoverageLost as error:
        ledger.jobs.fail(job.id, clock(), error.message, error.hint)
        raise
    except BaseException:
        ledger.jobs.finish(job.id, "failed", clock())
        raise
    ledger.jobs.finish(job.id, "done", clock(), job.detail)
