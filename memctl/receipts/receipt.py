"""What there is to tell of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from memctl.records import OutcomeKind, Usage
from memctl.store.receipt_book import Try

ReceiptOutcome = OutcomeKind | Literal["left", "waiting", "processing", "remembered"]


@dataclass(frozen=True, slots=True)
class Content:
    """How much of a document there was to read."""

    parts: int
    """How many rows it has: more than one where it was too big to be read at once."""
    pages: int | None = None
    """The last one that something stands on."""
    seconds: float | None = None
    """Length of a recording."""
    attachments: tuple[str, ...] = ()
    """What came with a message, by its names; text in it has been read."""


@dataclass(frozen=True, slots=True)
class Memories:
    """What was made of a document, as it is now."""

    types: Mapping[str, int]
    """How many there are of each type; of one that was edited its newest version counts."""
    edited: int = 0
    superseded: int = 0
    """Those in favour of which something newer is believed."""
    expired: int = 0
    gone: int = 0
    """Those that were deleted since."""
    insights: int = 0
    """How many insights rest on one of them."""


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
    tries: tuple[Try, ...] = ()
    """Why it was taken out of its inbox before and not dealt with."""
    read_seconds: float | None = None
    """How long it took to turn it into text."""
    understand_seconds: float | None = None
    """How long it took to make memories of the text; of texts that were worked on together, its
    share by length."""
    redacted: int = 0
    """How many secrets were taken out of the text."""
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
    models: tuple[Usage, ...] = ()
    """What models have used for the document so far, its vectors excepted: many documents share
    the calls for those."""
    passages: int = 0
    """Of the document, as it is now."""
    facts: int = 0
    """Distilled memories of the document, as it is now."""
    content: Content | None = None
    memories: Memories | None = None
    same_as: str = ""
    """Where the file is that has its content already, of one that was known and if it is known."""
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
    retry: str = ""
    """The command that has a failed file tried again, once what it failed for is mended."""
