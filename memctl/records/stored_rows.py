"""What is stored: documents and memories, and the graph that is derived from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from memctl.swift import swift

Level = Literal["evidence", "memory", "insight"]
LEVELS: tuple[Level, ...] = ("evidence", "memory", "insight")
Metadata = Mapping[str, Any]


DocumentStatus = Literal["pending", "processing", "indexed", "failed", "superseded", "gone"]


@swift
@dataclass(frozen=True, slots=True)
class Document:
    """One row of the ``documents`` table; see ``store.schema`` for the Arrow types."""

    id: str
    root_id: str
    """The id of the source's first part; equal to ``id`` for a source of one part."""
    part: int
    external_id: str | None
    namespace: str
    source: str
    """Where it came from: the file's path or name, ``stdin``, ``text``, a URL."""
    title: str
    media_type: str
    sha256: str
    size: int
    status: DocumentStatus
    text: str
    summary: str
    entities: tuple[str, ...]
    topics: tuple[str, ...]
    keywords: tuple[str, ...]
    importance: float
    language: str
    tags: tuple[str, ...]
    links: tuple[str, ...]
    authors: tuple[str, ...]
    dates: tuple[str, ...]
    missing: tuple[str, ...]
    reader: str
    method: str
    signals: Mapping[str, float]
    pipeline_version: int
    created_at: datetime
    ingested_at: datetime
    superseded_by: str | None = None
    session_id: str | None = None
    metadata: Metadata = field(default_factory=dict)


@swift
@dataclass(frozen=True, slots=True)
class Memory:
    """One row of the ``memories`` table, without its vector."""

    id: str
    document_id: str | None
    level: Level
    type: str
    text: str
    namespace: str
    created_at: datetime
    """When it happened or was said: the source's own date."""
    valid_from: datetime
    """When it became known here; ``--as-of`` compares with it."""
    search_text: str = ""
    """What the keyword index sees: title, heading and text as analysed terms."""
    title: str = ""
    source: str = ""
    external_id: str | None = None
    start: int | None = None
    end: int | None = None
    page: int | None = None
    row: int | None = None
    time_start: float | None = None
    time_end: float | None = None
    heading: str = ""
    speaker: str | None = None
    session_id: str | None = None
    turn: int | None = None
    source_ids: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    importance: float = 0.5
    confidence: float = 1.0
    method: str = ""
    is_consolidated: bool = False
    valid_to: datetime | None = None
    superseded_by: str | None = None
    version: int = 1
    access_count: int = 0
    last_accessed_at: datetime | None = None
    expires_at: datetime | None = None
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entity:
    """One row of the ``entities`` table: a node of the graph, derived from memories."""

    id: str
    name: str
    type: str
    aliases: tuple[str, ...]
    mention_count: int
    first_seen: datetime
    last_seen: datetime


@dataclass(frozen=True, slots=True)
class Relation:
    """One row of the ``relations`` table: a typed, weighted edge between entities or memories."""

    id: str
    source_id: str
    target_id: str
    relation_type: str
    text: str
    weight: float
    confidence: float
    memory_ids: tuple[str, ...]
    valid_from: datetime
    valid_to: datetime | None = None
    metadata: Metadata = field(default_factory=dict)
