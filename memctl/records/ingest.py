"""What became of sources that were to be taken in, or would become of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from memctl.swift import swift

OutcomeKind = Literal["ingested", "known", "superseded", "failed"]
TAKEN: tuple[OutcomeKind, ...] = ("ingested", "superseded")
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


LeftOutReason = Literal[
    "hidden", "unfinished", "system", "own", "ignored", "subtitles", "link", "pipe", "socket",
    "device", "other",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something in a folder that is not taken in; ``subtitles`` are read with their recording."""

    source: str
    reason: LeftOutReason


LeftOutListener = Callable[[LeftOut], None]


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
class Compared:
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
    facts: Compared = field(default_factory=Compared)
    """How a model's facts compare with what was known; those that had waited are among them."""
    dry_run: bool = False
    estimates: tuple[Estimate, ...] = ()
    """Of a dry run: what models would be asked for."""
