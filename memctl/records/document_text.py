"""What a reader makes of a file: text with positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from memctl.records.stored_rows import Metadata
from memctl.swift import swift

SegmentKind = Literal["prose", "heading", "table", "code", "turn", "caption", "properties"]


@swift
@dataclass(frozen=True, slots=True)
class Segment:
    """A run of a document's text that one locator describes; segments are in order, disjoint.

    ``page`` counts from 1; ``row`` is the 1-based number of the first data row (header not
    counted); ``time_start``/``time_end`` are seconds; ``heading`` is the path of headings above,
    joined by " > ".  A chunker may join small neighbouring segments and split large prose ones,
    but never splits a ``table`` segment (a row or group of rows with its header) that fits.
    """

    start: int
    end: int
    kind: SegmentKind = "prose"
    heading: str = ""
    page: int | None = None
    row: int | None = None
    time_start: float | None = None
    time_end: float | None = None
    speaker: str | None = None
    said_at: datetime | None = None


@swift
@dataclass(frozen=True, slots=True)
class SourceText:
    """What a reader got out of one source, or out of one part of a source too big for memory.

    Most readers yield exactly one.  A streaming reader (CSV, JSON lines, logs, huge text) yields
    parts of bounded size, numbered from 0; each part has its own text and offsets.
    """

    text: str
    media_type: str
    reader: str
    """Name and version of the reader, such as ``pdf/1``."""
    segments: tuple[Segment, ...] = ()
    title: str = ""
    authors: tuple[str, ...] = ()
    created_at: datetime | None = None
    """The source's own date (front matter, e-mail header, EXIF), not the file's mtime."""
    tags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    """Targets of ``[[wikilinks]]``."""
    metadata: Metadata = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    """What could not be read now: ``transcript``, ``image text``; empty when all was read."""
    part: int = 0
    share: float = 1.0
    """How much of the whole source this part is, about."""
    origin: Metadata = field(default_factory=dict)
    """What is known of it that no reader sees, for a model: file, speaker, session, turn, date."""
    document_id: str = ""
    """The document that it becomes, for the account of what a model uses; "" for that of none."""
    redacted: int = 0
    """How many secrets were taken out of the text."""


@dataclass(frozen=True, slots=True)
class EntityMention:
    """An entity named in a document: a person, place, organization, product, thing."""

    name: str
    type: str = "other"
    count: int = 1


@dataclass(frozen=True, slots=True)
class Distilled:
    """A statement worth remembering on its own, with where it stands in the document."""

    text: str
    type: str
    """fact, important_fact, decision, preference, plan or observation."""
    start: int
    end: int
    importance: float
    confidence: float
    reason: str
    """The signal that made it: ``trigger: remember``, ``pattern: we decided``, ``model: ...``."""
    subject: str = ""
    relation: str = ""
    object: str = ""
    """Who or what, how, and what it says, where the method can tell them apart."""


@swift
@dataclass(frozen=True, slots=True)
class Understanding:
    """What was understood of one document."""

    method: str
    """Which method made it, such as ``builtin/1``, so that a better one can redo it."""
    gist: str
    language: str
    """ISO 639-1 code, or "" when it cannot be told."""
    entities: tuple[EntityMention, ...]
    topics: tuple[str, ...]
    keywords: tuple[str, ...]
    tags: tuple[str, ...]
    links: tuple[str, ...]
    dates: tuple[str, ...]
    """ISO 8601 dates (or months, years) that the text mentions."""
    importance: float
    """0 to 1."""
    signals: Mapping[str, float]
    """What the importance is made of: signal name to its share; they add up to ``importance``."""
    distilled: tuple[Distilled, ...]
    reason: str = ""
    """Why it matters as much as it does, where the method can say it in words."""
    missing: tuple[str, ...] = ()
    """What of it was not done as it should be: ``model understanding``."""
    dropped: int = 0
    """Facts that were left out, for their quotes do not stand in the document."""
