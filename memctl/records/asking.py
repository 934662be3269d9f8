"""What is asked, and what is found for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from memctl.records.terms import Level


@dataclass(frozen=True, slots=True)
class Question:
    """One of many questions; a namespace of its own stands in for that of the filters."""

    text: str
    id: str | None = None
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class Filters:
    """What a query or a listing is limited to; an empty field does not limit.

    ``since`` is inclusive and ``until`` exclusive, both on ``created_at``.  ``as_of`` shows what
    was known at that instant; without it only what is valid now is shown.  ``source`` is a glob on
    the source, matched against the whole and against its last part.  ``where`` is a SQL boolean
    expression over the columns of the table.  ``private`` are namespaces that are left out unless
    ``namespaces`` names them.
    """

    namespaces: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    levels: tuple[Level, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    as_of: datetime | None = None
    session: str | None = None
    source: str | None = None
    where: str | None = None
    private: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ended:
    """A fact that does not hold any more: where it stands in its document, and what took over."""

    start: int
    end: int
    at: datetime
    """When memctl came to know that."""
    by: str
    """Id of the memory in favour of which it ended."""


@dataclass(frozen=True, slots=True)
class Copy:
    """Where else the text of a hit stands."""

    kb: str
    memory_id: str
    document_id: str | None
    external_id: str | None
    source: str
    title: str
    namespace: str
    start: int | None
    end: int | None
    page: int | None
    row: int | None
    time_start: float | None
    created_at: datetime
    likeness: float
    """1 for the same text; less where a few words differ."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One thing found, best first; ``score`` is comparable within one result only."""

    rank: int
    score: float
    kb: str
    memory_id: str
    document_id: str | None
    external_id: str | None
    source: str
    title: str
    text: str
    start: int | None
    end: int | None
    page: int | None
    row: int | None
    time_start: float | None
    time_end: float | None
    heading: str
    level: Level
    type: str
    namespace: str
    session_id: str | None
    turn: int | None
    tags: tuple[str, ...]
    source_ids: tuple[str, ...]
    importance: float
    created_at: datetime
    legs: Mapping[str, float] = field(default_factory=dict)
    """What each leg and each step gave, for ``--explain``."""
    ended: tuple[Ended, ...] = ()
    """What of it does not hold any more, as offsets in its document."""
    also_in: tuple[Copy, ...] = ()
    """What says the same and was found, too."""
    more_in_document: tuple[str, ...] = ()
    """Ids of memories of its document that would be hits, had it not enough of them."""

    @property
    def document(self) -> tuple[str, str]:
        """Knowledge base and document, or memory where that belongs to none."""
        return self.kb, self.document_id or self.memory_id
