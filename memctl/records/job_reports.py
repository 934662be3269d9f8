"""How far a long job is, what it came to, and what models used for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from memctl.swift import swift


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


OutcomeKind = Literal["ingested", "known", "superseded", "failed"]
WRITTEN_OUTCOMES: tuple[OutcomeKind, ...] = ("ingested", "superseded")
"""Outcomes of sources that have been written."""


@swift
@dataclass(frozen=True, slots=True)
class FileOutcome:
    """What became of one source: ``ingested``, ``known``, ``superseded``, ``failed``."""

    source: str
    outcome: OutcomeKind
    document_id: str | None = None
    memories: int = 0
    title: str = ""
    summary: str = ""
    missing: tuple[str, ...] = ()
    dropped: int = 0
    """Facts of a model that were left out, for their quotes do not stand in the document."""
    reason: str = ""
    hint: str = ""
    line: int | None = None
    """The line of a JSON lines file, from 1."""
    error: str = ""
    """What went wrong, as the name of its class; never empty for a failure, always for the rest.

    It is one of Python's own, such as ``FileNotFoundError`` or ``PermissionError``, or one of
    memctl's, such as ``EncryptedSource``, ``EmptySource`` or ``BadRecord``.
    """
    path: str | None = None
    """Where its file was read; None for what is no file of its own."""
    reader: str = ""
    """Name and version of the reader; empty where none was needed or none could read it."""
    read_seconds: float | None = None
    """How long it took to turn the file into text, where that was done in one piece."""
    understand_seconds: float | None = None
    """How long it took to make memories of the text; of texts that were worked on together, its
    share by length."""
    redacted: int = 0
    """How many secrets were taken out of the text."""


SkipReason = Literal[
    "hidden", "unfinished", "system", "own", "ignored", "subtitles", "link", "pipe", "socket",
    "device", "other",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class SkippedSource:
    """Something in a folder that is not taken in; ``subtitles`` are read with their recording."""

    source: str
    reason: SkipReason


SkipListener = Callable[[SkippedSource], None]


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one model would be asked, and cost, at a rough guess."""

    task: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float
    """In the currency of the configured prices."""


@dataclass(frozen=True, slots=True)
class FactComparison:
    """What became of new facts when they were compared with what was known."""

    added: int = 0
    """Facts that say something new."""
    updated: int = 0
    """Facts in favour of which an older one ended, or that a newer one had overtaken already."""
    contradicted: int = 0
    """Facts that cannot be true together with another one; both stay."""
    restated: int = 0
    """Facts that say again what was known; both stay."""
    dropped: int = 0
    """Verdicts of the model about memories that it had not been given to compare."""
    waiting: int = 0
    """Facts that are still to be compared."""
    note: str = ""
    """Why they wait."""
    hint: str = ""
    """What to do about that."""

    @property
    def told(self) -> str:
        """In words, such as ``3 added, 1 updated``; "" where nothing was compared."""
        kinds = ("added", "updated", "contradicted", "restated")
        return ", ".join(f"{n:,} {kind}" for kind in kinds if (n := getattr(self, kind)))


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What one ingest did, or with ``dry_run`` would do.

    ``outcomes`` keeps every failure and the first thousand others.
    """

    ingested: int
    skipped: int
    failed: int
    memories: int
    seconds: float
    outcomes: tuple[FileOutcome, ...]
    incomplete: int = 0
    """Documents that were taken in and of which something is missing."""
    dropped: int = 0
    """Facts of a model that were left out, for their quotes do not stand in their documents."""
    facts: FactComparison = field(default_factory=FactComparison)
    """How a model's facts compare with what was known; those that had waited are among them."""
    dry_run: bool = False
    estimates: tuple[Estimate, ...] = ()
    """Of a dry run: what models would be asked for."""


@dataclass(frozen=True, slots=True)
class Connection:
    """How two memories hang together."""

    source_id: str
    target_id: str
    relationship: str
    """``similar``, ``near_duplicate``, ``same_entity``, ``follows``, ``contradicts``."""
    weight: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class Insight:
    """What several memories say together."""

    id: str
    text: str
    source_ids: tuple[str, ...]
    entities: tuple[str, ...]
    connections: tuple[Connection, ...]
    importance: float
    confidence: float
    kind: str
    """``common``, ``change`` or ``contradiction``."""


@dataclass(frozen=True, slots=True)
class ConsolidationReport:
    """What one consolidation did, or with ``dry_run`` would do."""

    kb: str
    examined: int
    groups: int
    insights: tuple[Insight, ...]
    duplicates: int
    dry_run: bool
    seconds: float
    by_model: int = 0
    """Groups whose insight a model wrote."""
    dropped: int = 0
    """What a model cited without having been given it."""
    waiting: int = 0
    """Groups that are not consolidated yet, because they wait for a model."""
    note: str = ""
    """Why a model that is configured did not write, where it did not."""
    hint: str = ""
    """What to do about that."""
