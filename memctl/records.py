"""The values that travel between packages, all frozen; nothing here does any work.

Offsets are character offsets (Unicode code points) into the text of the document they belong
to, half open: ``document.text[start:end]``.  Times inside a recording are seconds from its start.
Instants are timezone-aware UTC datetimes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal, TypeVar

from msgspec import Struct, field
from msgspec.structs import force_setattr

from memctl.literals import DocType, InsightKind, MemoryKind, SourceType
from memctl.patterns import lazy_regex

R = TypeVar("R", bound=Struct)


def record_like(kind: type[R], source: object, **others: Any) -> R:
    """Return a record whose fields are what another one has under the same names.

    Args:
        kind: The class of the record.
        source: The other one.
        others: Fields that it does not have, or has as something else.
    """
    names = [name for name in kind.__struct_fields__ if name not in others]
    return kind(**{name: getattr(source, name) for name in names}, **others)


# --- what is stored: documents, memories, and the graph derived from them ------------------------

Level = Literal["evidence", "memory", "insight"]
LEVELS: tuple[Level, ...] = ("evidence", "memory", "insight")
Metadata = Mapping[str, Any]


DocumentStatus = Literal["pending", "processing", "indexed", "failed", "superseded", "gone"]


class Document(Struct, frozen=True):
    """One row of the ``documents`` table; see ``schema.arrow_tables`` for the Arrow types."""

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
    doc_type: DocType | None = None
    """What it is; None where a program wrote it that did not tell."""
    agent_id: str | None = None
    """The agent that added it; None where a person did."""


class Memory(Struct, frozen=True):
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
    doc_type: DocType | None = None
    """That of its document."""
    agent_id: str | None = None
    """The agent that wrote it; None where a person did."""
    source_type: SourceType | None = None
    """Who it is from; None where that is not known."""
    kind: MemoryKind | None = None
    """What it keeps; None where that is not known."""
    edited_by: str | None = None
    """Who wrote this version of it; None for the first one, and where no one was named."""
    archived_at: datetime | None = None
    """When upkeep put it away; queries leave it out until it is read by its id or restored."""


class Entity(Struct, frozen=True):
    """One row of the ``entities`` table: a node of the graph, derived from memories."""

    id: str
    name: str
    type: str
    aliases: tuple[str, ...]
    mention_count: int
    first_seen: datetime
    last_seen: datetime


class Relation(Struct, frozen=True):
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


# --- what a reader and the understanding make of a file -------------------------------------------

SegmentKind = Literal["prose", "heading", "table", "code", "turn", "caption", "properties"]


class KeptStatement(Struct, frozen=True):
    """What the speaker of a turn asks to be kept, as it is to be kept."""

    text: str
    type: str
    phrase: str
    """By which it was asked."""
    tags: tuple[str, ...] = ()
    from_previous: bool = False
    """Whether it is a turn before that is kept."""
    evidence: tuple[str, ...] = ()
    """Ids of the memories of that turn, where it is in an earlier part of its document."""
    steps: int = 1
    """How many turns before."""


class AskedTurn(Struct, frozen=True):
    """A message of a user that waits for a reply."""

    turn: int
    text: str
    """What was said, with who says it."""
    evidence: tuple[str, ...] = ()
    """Ids of its memories, where it is in an earlier part of its document."""


class Segment(Struct, frozen=True, omit_defaults=True):
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
    turn: int | None = None
    """Its number in the conversation, where that is more than the text at hand."""
    external_id: str | None = None
    type: str = ""
    """The type of its memories, where the source says it."""
    kept: KeptStatement | None = None


UNIT_MARK = "!/"
"""Stands between the source of a file and the key of a unit in it."""


def split_unit(source: str) -> tuple[str, str]:
    """Return the file that a source names, and the key of the unit in it; "" for a whole file."""
    file, mark, key = source.partition(UNIT_MARK)
    return (file, key) if mark and "." in file.rpartition("/")[2] else (source, "")


def source_name(source: str) -> str:
    """Return the name of the file that a source is, whichever system wrote its path."""
    return re.split(r"[/\\]", source.rstrip("/\\"))[-1]


_ID_OF_UNIT = lazy_regex(r"sha256-[0-9a-f]{16}(?:#\d+)?|[^@]+@[^@]+")
"""Of a message or an event in a file of many; it says nothing to a person."""


def shown_source_name(source: str) -> str:
    """Return the name by which a person knows a source: of a message in a mail box, the box's."""
    file, unit = split_unit(source)
    return source_name(file if _ID_OF_UNIT.fullmatch(unit) else source)


class Unit(Struct, frozen=True):
    """One of many in a file, each a document of its own: a message, an event, a conversation."""

    key: str
    """Its own id or name; no two units of a file have the same."""
    sha256: str = ""
    """Of its bytes, where it is a file within the file."""
    size: int = 0
    problem: str = ""
    """Why it cannot be read; it has no text then."""
    hint: str = ""
    is_hidden: bool = False
    """Whether it is left out because it is hidden, as such files in folders are."""


class SourceText(Struct, frozen=True):
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
    quotations: tuple[tuple[int, int], ...] = ()
    """Where a message quotes others, each quotation by itself."""
    origin: Metadata = field(default_factory=dict)
    """What is known of it that no reader sees, for a model: file, speaker, session, turn, date."""
    asked: AskedTurn | None = None
    """What an earlier part of a conversation ends with, where it waits for a reply."""
    document_id: str = ""
    """The document that it becomes, for the account of what a model uses; "" for that of none."""
    redacted: int = 0
    """How many secrets were taken out of the text."""
    unit: Unit | None = None
    """What it is the text of, in a file of many; the parts of one unit follow each other."""


class EntityMention(Struct, frozen=True):
    """An entity named in a document: a person, place, organization, product, thing."""

    name: str
    type: str = "other"
    count: int = 1


class Distilled(Struct, frozen=True):
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
    tags: tuple[str, ...] = ()
    """Those that it has besides the tags of its document."""
    evidence: tuple[str, ...] = ()
    """Ids of the memories that it rests on in earlier parts of its document."""


class Understanding(Struct, frozen=True):
    """What was understood of one document."""

    method: str
    """Which method made it, such as ``builtin/1``, so that a better one can redo it."""
    gist: str
    language: str
    """ISO 639-1 code, or "" when it is unknown."""
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
    """What could not be done as configured: ``model understanding``."""
    dropped: int = 0
    """Facts that were left out because their quotes are not in the document."""


# --- how far a job is, what it came to, and what models used for it -------------------------------


class Progress(Struct, frozen=True):
    """How far a long job is; ``total`` is None where it cannot be known."""

    done: int
    total: int | None
    unit: str
    note: str = ""
    source: str = ""
    """The source being read, where a single one has many parts."""
    reading: str = ""
    """The source that is being read, or was last."""


ProgressListener = Callable[[Progress], None]


class Usage(Struct, frozen=True):
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
    """How long the answers took, summed over calls even where they ran at the same time."""


OutcomeKind = Literal["ingested", "known", "superseded", "empty", "failed", "gone"]
WRITTEN_OUTCOMES: tuple[OutcomeKind, ...] = ("ingested", "superseded")
"""Outcomes of sources that have been written."""


class FileOutcome(Struct, frozen=True):
    """What became of one source.

    ``superseded`` replaces an earlier version; ``empty`` has nothing in it, and is skipped.
    """

    source: str
    outcome: OutcomeKind
    document_id: str | None = None
    memories: int = 0
    title: str = ""
    summary: str = ""
    missing: tuple[str, ...] = ()
    dropped: int = 0
    """Facts of a model that were left out because their quotes are not in the document."""
    reason: str = ""
    hint: str = ""
    line: int | None = None
    """The line of a JSON lines file, from 1."""
    error: str = ""
    """What went wrong, as the name of its class; never empty for a failure, always for the rest.

    It is one of Python's own, such as ``FileNotFoundError`` or ``PermissionError``, or one of
    memctl's, such as ``EncryptedSource``, ``UnreadableSource`` or ``BadRecord``.
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
    part_of: str = ""
    """The file of many that it is a unit of; empty for what is a source of its own."""


SkipReason = Literal[
    "hidden", "unfinished", "system", "own", "ignored", "subtitles", "log", "link", "pipe",
    "socket", "device", "other",
]  # fmt: skip


class SkippedSource(Struct, frozen=True):
    """Something in a folder that is not taken in by itself; ``subtitles`` are read with their
    recording, and a ``log`` with its database."""

    source: str
    reason: SkipReason


SkipListener = Callable[[SkippedSource], None]


class Estimate(Struct, frozen=True):
    """What one model would be asked, and cost, at a rough guess."""

    task: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float
    """In the currency of the configured prices."""


class FactComparison(Struct, frozen=True):
    """What became of new facts when they were compared with what was known."""

    added: int = 0
    """Facts that say something new."""
    updated: int = 0
    """Facts that ended an older one, or that a newer one had already replaced."""
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
    def summary(self) -> str:
        """The counts in words, such as ``3 added, 1 updated``; "" where nothing was compared."""
        kinds = ("added", "updated", "contradicted", "restated")
        return ", ".join(f"{n:,} {kind}" for kind in kinds if (n := getattr(self, kind)))


class IngestReport(Struct, frozen=True):
    """What one ingest did, or with ``dry_run`` would do.

    ``outcomes`` keeps every failure and the first thousand others.
    """

    ingested: int
    skipped: int
    failed: int
    memories: int
    seconds: float
    outcomes: tuple[FileOutcome, ...]
    superseded: int = 0
    """Of those that were ingested: newer versions of what was remembered."""
    gone: int = 0
    """Documents that ended because their files are not there any more."""
    empty: int = 0
    """Sources with nothing in them, which were skipped."""
    incomplete: int = 0
    """Documents that were ingested with something missing."""
    dropped: int = 0
    """Facts of a model that were left out because their quotes are not in their documents."""
    facts: FactComparison = field(default_factory=FactComparison)
    """How a model's facts compare with what was known; those that had waited are among them."""
    dry_run: bool = False
    estimates: tuple[Estimate, ...] = ()
    """Of a dry run: what models would be asked for."""
    sessions: tuple[str, ...] = ()
    """The conversations whose messages came as lines or were imported."""


class Connection(Struct, frozen=True):
    """How two memories are connected."""

    source_id: str
    target_id: str
    relationship: str
    """``similar``, ``near_duplicate``, ``same_entity``, ``follows``, ``contradicts``."""
    weight: float
    text: str = ""


class Insight(Struct, frozen=True):
    """What several memories say together."""

    id: str
    text: str
    source_ids: tuple[str, ...]
    entities: tuple[str, ...]
    connections: tuple[Connection, ...]
    importance: float
    confidence: float
    kind: InsightKind


class ConsolidationReport(Struct, frozen=True):
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


# --- what is asked, and what is found for it ------------------------------------------------------


class Question(Struct, frozen=True):
    """One of many questions; a namespace of its own stands in for that of the filters."""

    text: str
    id: str | None = None
    namespace: str | None = None


class Filters(Struct, frozen=True):
    """What a query or a listing is limited to; an empty field does not limit.

    ``since`` is inclusive and ``until`` exclusive, both on ``created_at``.  ``as_of`` shows what
    was known at that instant; without it only what is valid now is shown.  ``source`` is a glob on
    the source, matched against the whole and against its last part.  ``where`` is a SQL boolean
    expression over the columns of the table.  ``metadata`` is an object, or its JSON, such as
    ``{"year": {"$gte": 2024}}``, on the metadata of the documents.  ``doc_types`` are
    types of documents; a memory of no document has none.  ``entities`` are names, in any of the
    spellings that are known of them, and ``topics`` are words; one of each is enough.  ``private``
    are namespaces that are left
    out unless ``namespaces`` names them.  ``agent`` is who asks, whose own private memories are
    not left out.
    """

    namespaces: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    levels: tuple[Level, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    as_of: datetime | None = None
    session: str | None = None
    other_sessions: bool = False
    """Whether everything but that of ``session`` is meant."""
    source: str | None = None
    where: str | None = None
    private: tuple[str, ...] = ()
    metadata: str | Mapping[str, Any] | None = None
    doc_types: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    archived: bool = False
    """Whether archived memories are shown too."""
    least_importance: float | None = None
    agent: str | None = None

    def __post_init__(self) -> None:
        """Keep metadata as JSON, so that filters can be hashed."""
        if isinstance(self.metadata, Mapping):
            force_setattr(self, "metadata", json.dumps(self.metadata, sort_keys=True))


class EndedFact(Struct, frozen=True):
    """A fact that no longer holds: where it is in its document, and what replaced it."""

    start: int
    end: int
    at: datetime
    """When memctl came to know that."""
    by: str
    """Id of the memory that replaced it."""


class DuplicateHit(Struct, frozen=True):
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


class Hit(Struct, frozen=True):
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
    """What each retriever and each step contributed, for ``--explain``."""
    ended: tuple[EndedFact, ...] = ()
    """What no longer holds in it, as offsets in its document."""
    also_in: tuple[DuplicateHit, ...] = ()
    """Other memories that were found and say the same."""
    more_in_document: tuple[str, ...] = ()
    """Ids of further memories of its document, beyond the limit of hits per document."""
    relevance: float = 0.0
    """How relevant it is to the question, 0 to 1, in whatever result; from 0.7 on clearly."""
    similarity: float = 0.0
    """The cosine of its vector with the question's, 0 to 1."""
    doc_type: str | None = None
    """What its document is; None where it has none, or its type is not stored."""
    agent_id: str | None = None
    """The agent that wrote it."""
    metadata: Metadata = field(default_factory=dict)
    """That of its document; empty where it has none."""

    @property
    def document(self) -> tuple[str, str]:
        """Knowledge base and document, or memory where that belongs to none."""
        return self.kb, self.document_id or self.memory_id


class Citation(Struct, frozen=True):
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


class Related(Struct, frozen=True):
    """How two names are connected, with the memories that show it."""

    name: str
    relation: str
    other: str
    memory_ids: tuple[str, ...]


class Community(Struct, frozen=True):
    """Connected names that a question is about, and what memories say of them."""

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


class AnswerSentence(Struct, frozen=True):
    """A sentence that a model wrote, checked against the memories that it cites."""

    text: str
    citations: tuple[int, ...]
    """Numbers of the citations that it rests on."""
    unsupported: bool
    """Whether it cites nothing, or the cited text lacks its words, numbers or names."""


class Answer(Struct, frozen=True):
    """An answer whose every sentence is cited.

    ``found`` is False for "not in memory", and where it is unsure whether it is the answer.
    """

    text: str
    """Sentences, each followed by its ``[n]``, and by ``[unsupported]`` where it is."""
    found: bool
    method: str
    """``extractive/2``, or a model's name and prompt: ``model/llama3.1/answer/1``."""
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


class QueryResult(Struct, frozen=True):
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
    """What had to be left out because a model was not available."""
    query_id: str | None = None
    """Its id in the query log; None if it is not logged."""
    communities: tuple[Community, ...] = ()
    """What the names in question and hits are part of; only in the mode ``graph``."""
    rounds: tuple[Metadata, ...] = ()
    """The searches that were made one after the other; only in the mode ``agentic``."""
    total_results: int = 0
    """How many hits it has."""
    cached: bool = False
    """Whether it is what the same question was given before."""


class Context(Struct, frozen=True):
    """Evidence within a token budget, ready to stand above a prompt."""

    question: str
    text: str
    tokens: int
    budget: int
    citations: tuple[Citation, ...]
    notes: tuple[str, ...] = ()
    """What had to be left out because a model was not available."""
    why: str = ""
    """What decided whether the message needs memory, or whether what was found bears on it, where
    that was in doubt."""
    query_id: str | None = None
    """Its id in the query log; None if it is not logged."""
