"""What there is to tell of a file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from memctl.records import OutcomeKind

ReceiptOutcome = OutcomeKind | Literal["left", "waiting", "processing", "remembered"]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a file at one reading of it."""

    kb: str
    path: str
    """Where it was found."""
    outcome: ReceiptOutcome
    """``left`` lies in an inbox and is never taken, ``waiting`` lies there too, ``processing`` is
    being read, ``remembered`` has a document whose reading was not noted, as records have and what
    older versions of memctl took in."""
    seen_at: datetime | None = None
    claimed_at: datetime | None = None
    decided_at: datetime | None = None
    """When it was remembered, recognised or given up."""
    moved_at: datetime | None = None
    read_seconds: float | None = None
    """How long it took to turn it into text."""
    reader: str = ""
    pipeline_version: int | None = None
    document_id: str | None = None
    document_status: str = ""
    """Empty where there is no such document any more."""
    document_source: str = ""
    """The name that the document goes by: that of another file where this one is a duplicate."""
    title: str = ""
    understood_by: str = ""
    """The method; one that begins with ``model`` has asked a model."""
    missing: tuple[str, ...] = ()
    passages: int = 0
    """Of the document, as it is now."""
    facts: int = 0
    """Distilled memories of the document, as it is now."""
    place: str = ""
    """Where it was put, by what its knowledge base is called now; empty where it was left, or
    deleted."""
    is_there: bool = False
    """Whether a file is there now: at ``place``, or at ``path`` where there is none."""
    watched_by: int | None = None
    """The process that watches the inbox of a file that waits."""
    reason: str = ""
    hint: str = ""
    error: str = ""
