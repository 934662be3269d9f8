"""How far a long job is, what it came to, and what models used for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long job is; ``total`` is None where it cannot be known."""

    done: int
    total: int | None
    unit: str
    note: str = ""
    source: str = ""
    """What is in work, where it is a single source in many parts."""


ProgressListener = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class ReembedReport:
    """What a change of the embedder came to."""

    embedder: str
    dimension: int
    memories: int
    """How many have a vector of it now."""
    embedded: int
    """How many texts were embedded for it; the others were there from before."""
    seconds: float


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as it is shown."""

    id: int
    kb: str
    kind: str
    state: str
    """``running``, ``done``, ``failed``, ``abandoned`` (it was cut off) or ``undone``."""
    started_at: datetime
    finished_at: datetime | None
    detail: Mapping[str, int] = field(default_factory=dict)
    """What it came to."""
    error: str = ""
    can_be_undone: bool = False


@dataclass(frozen=True, slots=True)
class UndoReport:
    """What taking a job back came to, or with ``dry_run`` would come to."""

    kb: str
    job: int
    kind: str
    started_at: datetime
    removed: tuple[str, ...]
    """Ids of the insights that it had made."""
    disconnected: int
    """How many connections between memories it had made."""
    restored: tuple[str, ...]
    """Ids of the rows that are again as they were before it."""
    kept: tuple[str, ...]
    """Ids of the rows that stay as they are, for what they are now rests on more than the job."""
    waiting: int
    """How many memories the next consolidation looks at again."""
    dry_run: bool


@dataclass(frozen=True, slots=True)
class Usage:
    """What one model used for one task: in one call, on one day, or for one document."""

    task: str
    model: str
    calls: int = 0
    """Calls that were sent and answered."""
    cached: int = 0
    """Calls that were not sent, because the reply was known."""
    failed: int = 0
    """Calls that were sent and failed, retries not counted."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    """In the currency of the configured prices."""
    seconds: float = 0.0
    """How long it took to answer, calls that were made at once one after the other."""
