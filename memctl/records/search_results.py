"""What is asked, and what is found for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memctl.records.stored_rows import Level, Metadata


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
    expression over the columns of the table.  ``metadata`` is an object, or its JSON, such as
    ``{"year": {"$gte": 2024}}``, on the metadata of the documents.  ``private`` are namespaces that
    are left out unless ``namespaces`` names them.
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
    metadata: str | Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Keep metadata as JSON, so that filters can be hashed."""
        if isinstance(self.metadata, Mapping):
            object.__setattr__(self, "metadata", json.dumps(self.metadata, sort_keys=True))


@dataclass(frozen=True, slots=True)
class EndedFact:
    """A fact that does not hold any more: where it stands in its document, and what took over."""

    start: int
    end: int
    at: datetime
    """When memctl came to know that."""
    by: str
    """Id of the memory in favour of which it ended."""


@dataclass(frozen=True, slots=True)
class DuplicateHit:
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
    ended: tuple[EndedFact, ...] = ()
    """What of it does not hold any more, as offsets in its document."""
    also_in: tuple[DuplicateHit, ...] = ()
    """What says the same and was found, too."""
    more_in_document: tuple[str, ...] = ()
    """Ids of memories of its document that would be hits, had it not enough of them."""

    @property
    def document(self) -> tuple[str, str]:
        """Knowledge base and document, or memory where that belongs to none."""
        return self.kb, self.document_id or self.memory_id


@dataclass(frozen=True, slots=True)
class Citation:
    """Where a sentence of an answer stands: ``document.text[start:end] == quote``."""

    number: int
    kb: str
    memory_id: str
    document_id: str | None
    source: str
    title: str
    quote: str
    start: int | None
    end: int | None
    page: int | None
    row: int | None
    time_start: float | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Related:
    """How two names hang together, with the memories that show it."""

    name: str
    relation: str
    other: str
    memory_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Community:
    """Names that hang together around what a question is about, and what memories say of them."""

    kb: str
    score: float
    """How much of what the question and its best hits name is among them; an order, no more."""
    size: int
    members: tuple[str, ...]
    """The best connected of them."""
    seeds: tuple[str, ...]
    """Those that the question or its best hits name."""
    relations: tuple[Related, ...]
    """The strongest between members."""
    summary: str
    """The sentences in which most of them stand; no model wrote it."""
    citations: tuple[Citation, ...]
    """Of its sentences, in their order."""


@dataclass(frozen=True, slots=True)
class AnswerSentence:
    """A sentence that a model wrote, checked against the memories that it cites."""

    text: str
    citations: tuple[int, ...]
    """Numbers of the citations that it rests on."""
    unsupported: bool
    """Whether it cites nothing, or what it cites has not its words, numbers and names."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer whose every sentence is cited.

    ``found`` is False for "not in memory", and where it is unsure whether it is the answer.
    """

    text: str
    """Sentences, each followed by its ``[n]``, and by ``[unsupported]`` where it is."""
    found: bool
    method: str
    """``extractive/1``, or a model's name and prompt: ``model/llama3.1/answer/1``."""
    confidence: float
    citations: tuple[Citation, ...] = ()
    sentences: tuple[AnswerSentence, ...] = ()
    """Those of an answer that a model wrote."""
    note: str = ""
    """Why the model that is configured did not write it."""
    hint: str = ""
    """What to do about that."""
    unsure: bool = False
    """Whether the text is only what is closest, which may or may not be the answer."""


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What one question gave."""

    question: str
    hits: tuple[Hit, ...]
    insights: tuple[Hit, ...]
    """Insights that bear on the question, apart from the hits."""
    answer: Answer | None
    mode: str
    seconds: float
    id: str | None = None
    explain: Metadata = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What was done without because a model could not be had."""
    query_id: str | None = None
    """Under which it stands in the query log; None where it is not logged."""
    communities: tuple[Community, ...] = ()
    """What the names in question and hits are part of; only in the mode ``graph``."""


@dataclass(frozen=True, slots=True)
class Context:
    """Evidence within a token budget, ready to stand above a prompt."""

    question: str
    text: str
    tokens: int
    budget: int
    citations: tuple[Citation, ...]
    notes: tuple[str, ...] = ()
    """What was done without because a model could not be had."""
    why: str = ""
    """What decided, where it was left open whether the message needs memory, or whether what was
    found has to do with it."""
    query_id: str | None = None
    """Under which it stands in the query log; None where it is not logged."""
