"""What is made of what was found: results, answers and context, and what they rest on."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from memctl.records.asking import Hit
from memctl.records.terms import Metadata


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
