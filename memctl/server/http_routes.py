"""The table of what ``/v1`` offers: knowledge bases, and what each of them holds.

Each function does what a command does, and gives the records that ``-o json`` writes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from memctl.errors import AccessRefused, NotFoundError, UsageError
from memctl.identity import DEFAULT_USER
from memctl.instants import last_instant, parse_instant
from memctl.literals import (
    ChunkStrategy,
    DocumentSort,
    Duplicates,
    Fusion,
    Headings,
    KnowledgeBaseKind,
    KnowledgeBaseScope,
    Mode,
    Sort,
    StoredStatus,
    Verdict,
)
from memctl.operations.finding import first_with
from memctl.operations.memory_files import MemoryFileParameters, memory_file, only_views
from memctl.operations.operation_context import OperationContext
from memctl.operations.parameters import parameter
from memctl.records import LEVELS, Filters, Level
from memctl.server.http_endpoints import Endpoint, Listing, Place, Tagged, changes_in, with_kb

if TYPE_CHECKING:
    from memctl.graph.graph_views import GraphView
    from memctl.knowledge_base import KnowledgeBase
    from memctl.memories.memory_views import MemoryView

_MOST = 500
_KBS = "Knowledge bases to ask; by default all that are always on."
_LIMIT = "At most this many."
_OFFSET = "How many to skip."
_FARTHEST = 1_000_000_000
_JOB_NUMBER = re.compile(r"[0-9]{1,18}")


# --- what limits a listing or question ------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterParameters:
    """What a listing or question is limited to."""

    namespaces: tuple[str, ...] = parameter("Only these namespaces.", default=())
    tags: tuple[str, ...] = parameter("Only with one of these tags.", default=())
    types: tuple[str, ...] = parameter("Only of these types.", default=())
    levels: tuple[str, ...] = parameter("Only evidence, memory or insight.", default=())
    doc_types: tuple[str, ...] = parameter("Only of documents of these types.", default=())
    since: str | None = parameter("Only from that date on: 2026-03-01, 7d, today.", default=None)
    until: str | None = parameter("Only before that date.", default=None)
    as_of: str | None = parameter("What memctl knew on that day.", default=None)
    session: str | None = parameter("Only this conversation.", default=None)
    source: str | None = parameter("Only sources like *.pdf.", default=None)
    where: str | None = parameter("Only where a SQL condition holds.", default=None)
    metadata: Mapping[str, Any] | None = parameter(
        'Only with this metadata: {"year": {"$gte": 2024}}.', default=None
    )


def filters_of(context: OperationContext, asked: FilterParameters) -> Filters:
    """Return the filters that parameters stand for.

    Raises:
        UsageError: One cannot be used.
    """
    now = context.now
    return Filters(
        namespaces=asked.namespaces,
        tags=tuple(tag.removeprefix("#") for tag in asked.tags),
        types=asked.types,
        levels=tuple(map(_level, asked.levels)),
        since=None if asked.since is None else parse_instant(asked.since, now),
        until=None if asked.until is None else parse_instant(asked.until, now),
        as_of=None if asked.as_of is None else last_instant(asked.as_of, now),
        session=asked.session,
        source=asked.source,
        where=asked.where,
        doc_types=asked.doc_types,
        metadata=asked.metadata,
    )


def _level(text: str) -> Level:
    if text not in LEVELS:
        raise UsageError(f"there is no level {text!r}", f"use {', '.join(LEVELS)}")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class PageParameters:
    """Which rows of a listing."""

    limit: int = parameter(_LIMIT, default=50, low=1, high=_MOST)
    offset: int = parameter(_OFFSET, default=0, low=0, high=_FARTHEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilteredPage(FilterParameters):
    """Which rows of a listing that is limited."""

    limit: int = parameter(_LIMIT, default=50, low=1, high=_MOST)
    offset: int = parameter(_OFFSET, default=0, low=0, high=_FARTHEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPage(FilteredPage):
    """Which memories."""

    sort: Sort | None = parameter("What to sort by; by default the newest first.", default=None)
    desc: bool = parameter("With sort, the greatest first.", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPage(FilteredPage):
    """Which documents."""

    sort: DocumentSort | None = parameter(
        "What to sort by; by default the latest ingested first.", default=None
    )
    desc: bool = parameter("With sort, the greatest first.", default=False)
    incomplete: bool = parameter("Only those that lack something.", default=False)


def page_of(rows: Sequence[Any], asked: PageParameters) -> Listing:
    """Return a page of rows that are all there."""
    end = asked.offset + asked.limit
    return Listing(rows[asked.offset : end], len(rows), asked.offset)


def reading(context: OperationContext) -> KnowledgeBase:
    """Return the one knowledge base that a path names, to read."""
    return context.reading()[0]


# --- knowledge bases ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class KbSettings:
    """Settings of a knowledge base that can be changed."""

    always_on: bool | None = parameter("Whether queries ask it that name none.", default=None)
    private: bool | None = parameter("Whether it is read only if it is named.", default=None)
    redact: bool | None = parameter("Whether secrets are removed before all else.", default=None)
    chunk_strategy: ChunkStrategy | None = parameter("How text is cut.", default=None)
    chunk_size: int | None = parameter(
        "Longest passage, in characters.", default=None, low=100, high=20_000
    )
    chunk_overlap: int | None = parameter(
        "Characters that passages share.", default=None, low=0, high=10_000
    )
    consolidate_interval: int | None = parameter(
        "Minutes between two consolidations; 0 for never.", default=None, low=0, high=525_600
    )
    half_life: int | None = parameter(
        "Days after which a memory counts half as recent.", default=None, low=1, high=36_500
    )
    kind: KnowledgeBaseKind | None = parameter("What it is for.", default=None)
    scope: KnowledgeBaseScope | None = parameter("Whom it is for.", default=None)
    description: str | None = parameter("What it holds.", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKb(KbSettings):
    """A knowledge base to make."""

    name: str = parameter("1 to 64 of a-z, 0-9, - and _.")
    embedder: str = parameter("The model of its vectors.", default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class KbChanges(KbSettings):
    """Settings to change."""

    status: StoredStatus | None = parameter("Whether it takes part.", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """A deletion that has to be meant."""

    yes: bool = parameter("Say true: it goes with all its files.", default=False)


def _list_kbs(_: OperationContext, asked: PageParameters, place: Place) -> Listing:
    return page_of([entry.row() for entry in place.calls.entries()], asked)


def _create_kb(context: OperationContext, asked: NewKb, place: Place) -> object:
    if not place.calls.may_create(asked.name):
        raise AccessRefused(f"this server does not serve {asked.name!r}", "name it with -k")
    settings = changes_in(asked, "name", "embedder")
    context.home.create(asked.name, embedder=asked.embedder, **settings)
    return _with_note(context, asked, place, asked.name)


def _show_kb(context: OperationContext, _: object, place: Place) -> object:
    return context.home.described(place["kb"])


def _change_kb(context: OperationContext, asked: KbChanges, place: Place) -> object:
    changes = changes_in(asked, "status")
    if changes:
        context.home.change(place["kb"], **changes)
    if asked.status is not None:
        context.home.set_status(place["kb"], asked.status)
    return _with_note(context, asked, place, place["kb"])


def _with_note(
    context: OperationContext, asked: KbSettings, place: Place, name: str
) -> dict[str, Any]:
    """Return a knowledge base, and who can still see it where it has just been made private."""
    shown = context.home.described(name)
    if not asked.private:
        return shown
    still = f"commands that name it with -k {name} read it, and servers that are started with that"
    here = "so does this one" if place.calls.is_served(name) else "this one has it no more"
    return {**shown, "note": f"{name} is private: {still}; {here}"}


def _delete_kb(context: OperationContext, asked: Confirmed, place: Place) -> object:
    if not asked.yes:
        raise UsageError(f"all of {place['kb']!r} would go for good", "add ?yes=true to agree")
    context.close()
    context.home.delete(place["kb"])
    return {"deleted": place["kb"]}


# --- memories -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """A statement to remember."""

    text: str = parameter("The statement.")
    type: str | None = parameter("fact, decision, ...; by default what it says.", default=None)
    namespace: str | None = parameter("Its namespace; by default the user's.", default=None)
    tags: tuple[str, ...] = parameter("Its tags.", default=())
    importance: float | None = parameter(
        "Importance; by default as its type tells.", default=None, low=0, high=1
    )
    session: str | None = parameter("The conversation it belongs to.", default=None)
    created_at: str | None = parameter("When it happened; by default now.", default=None)
    source_ids: tuple[str, ...] = parameter("Memories that it rests on.", default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChanges:
    """What a new version of a memory says."""

    text: str | None = parameter("Its text.", default=None)
    type: str | None = parameter("Its type.", default=None)
    tags: tuple[str, ...] | None = parameter("Its tags.", default=None)
    importance: float | None = parameter("Its importance.", default=None, low=0, high=1)


def _list_memories(context: OperationContext, asked: MemoryPage, _: Place) -> Listing:
    base, filters = reading(context), filters_of(context, asked)
    rows = base.memories.list(
        filters, limit=asked.limit, offset=asked.offset, sort=asked.sort, descending=asked.desc
    )
    return Listing(with_kb(base, rows), base.memories.count(filters), asked.offset)


def _list_insights(context: OperationContext, asked: MemoryPage, _: Place) -> Listing:
    base, filters = reading(context), filters_of(context, asked)
    rows = base.insights.list(
        filters, limit=asked.limit, offset=asked.offset, sort=asked.sort, descending=asked.desc
    )
    return Listing(with_kb(base, rows), base.insights.count(filters), asked.offset)


def _add_memory(context: OperationContext, asked: NewMemory, _: Place) -> object:
    at = None if asked.created_at is None else parse_instant(asked.created_at, context.now)
    return context.writing().memories.add(
        asked.text,
        type_=asked.type,
        namespace=asked.namespace,
        tags=asked.tags,
        importance=asked.importance,
        session=asked.session or context.identity.session,
        created_at=at,
        source_ids=asked.source_ids,
    )


def _show_memory(context: OperationContext, _: object, place: Place) -> Tagged:
    view = reading(context).memories.get(place["id"])
    return Tagged(view, view.memory.id)


def _edit_memory(context: OperationContext, asked: MemoryChanges, place: Place) -> object:
    if not changes_in(asked):
        raise UsageError("nothing to change", "give text, type, tags or importance")
    memories = context.writing().memories
    place.matches(_newest(memories.get(place["id"])))
    return memories.edit(
        place["id"], asked.text, type_=asked.type, tags=asked.tags, importance=asked.importance
    )


def _delete_memory(context: OperationContext, _: object, place: Place) -> object:
    memories = context.writing().memories
    view = memories.get(place["id"])
    place.matches(_newest(view))
    return {"id": view.memory.id, "deleted": memories.delete(view.memory.id)}


def _newest(view: MemoryView) -> str:
    """Return what tells the present version of a memory from earlier ones."""
    return view.history[-1].id if view.history else view.memory.id


def _memory_history(context: OperationContext, asked: PageParameters, place: Place) -> Listing:
    return page_of(reading(context).memories.get(place["id"]).history, asked)


# --- documents ------------------------------------------------------------------------------------


def _list_documents(context: OperationContext, asked: DocumentPage, _: Place) -> Listing:
    base, filters = reading(context), filters_of(context, asked)
    rows = base.documents.list(
        filters,
        incomplete=asked.incomplete,
        limit=asked.limit,
        offset=asked.offset,
        sort=asked.sort,
        descending=asked.desc,
    )
    total = base.documents.count(filters, incomplete=asked.incomplete)
    return Listing(with_kb(base, rows), total, asked.offset)


def _show_document(context: OperationContext, _: object, place: Place) -> Tagged:
    view = reading(context).documents.get(place["id"])
    return Tagged(view, document_tag(view.document))


def document_tag(document: Any) -> str:
    """Return what tells one state of a document from another."""
    return f"{document.id}-{document.ingested_at:%Y%m%d%H%M%S%f}"


def _delete_document(context: OperationContext, _: object, place: Place) -> object:
    documents = context.writing().documents
    document = documents.get(place["id"]).document
    place.matches(document_tag(document))
    return {"id": document.id, "deleted": documents.delete(document.id)}


def _reprocess_document(context: OperationContext, _: object, place: Place) -> object:
    documents = context.writing().documents
    place.matches(document_tag(documents.get(place["id"]).document))
    return documents.reprocess([place["id"]])


# --- questions ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionParameters(FilterParameters):
    """A question, and how it is searched for."""

    question: str = parameter("The question, in words.")
    kbs: tuple[str, ...] = parameter(_KBS, default=())
    mode: Mode | None = parameter("How memories are found.", default=None)
    hops: int | None = parameter("How far mode graph goes.", default=None, low=1, high=6)
    fusion: Fusion | None = parameter("How keywords and vectors are combined.", default=None)
    limit: int | None = parameter("How many hits.", default=None, low=1, high=_MOST)
    duplicates: Duplicates | None = parameter("Which memories become one hit.", default=None)
    diversity: float | None = parameter(
        "How much similarity to a better hit counts.", default=None, low=0, high=1
    )
    per_document: int | None = parameter(
        "At most this many hits per document; 0 means no limit.", default=None, low=0, high=_MOST
    )
    threshold: float | None = parameter("Least relevance of a hit.", default=None, low=0, high=1)
    answer: bool = parameter("Whether to answer as well as to find.", default=True)
    explain: bool = parameter("Whether to say how the search went.", default=False)
    stream: bool = parameter("Send the answer as it is written, as events.", default=False)


def query_options(context: OperationContext, asked: QuestionParameters) -> Any:
    """Return the options of a question."""
    from memctl.queries import QueryOptions

    return QueryOptions(
        mode=asked.mode,
        hops=asked.hops,
        fusion=asked.fusion,
        filters=filters_of(context, asked),
        limit=asked.limit,
        duplicates=asked.duplicates,
        diversity=asked.diversity,
        per_document=asked.per_document,
        threshold=asked.threshold,
        answer=asked.answer,
        explain=asked.explain,
    )


def _query(context: OperationContext, asked: QuestionParameters, _: Place) -> object:
    return context.reading().queries.ask(asked.question, query_options(context, asked))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextQuestion(FilterParameters):
    """A question to bring in what is known about it."""

    question: str = parameter("The question or message; empty with standing alone.", default="")
    kbs: tuple[str, ...] = parameter(_KBS, default=())
    budget: int = parameter("At most this many tokens.", default=2000, low=16, high=100_000)
    mode: Mode | None = parameter("How memories are found.", default=None)
    auto: bool = parameter("Nothing unless the message looks like it needs memory.", default=False)
    standing: bool = parameter("First what to know without a question.", default=False)
    headings: Headings = parameter("What the parts of that are called.", default="seed")
    threshold: float | None = parameter("Least relevance.", default=None, low=0, high=1)


def _context(context: OperationContext, asked: ContextQuestion, _: Place) -> object:
    queries, filters = context.reading().queries, filters_of(context, asked)
    if asked.standing:
        return queries.standing_context(
            asked.question,
            budget=asked.budget,
            user=context.identity.user,
            agent=context.identity.agent,
            filters=filters,
            headings=asked.headings,
        )
    if not any(map(str.isalnum, asked.question)):
        raise UsageError("the question has no words", "or ask for standing")
    return queries.context(
        asked.question,
        budget=asked.budget,
        mode=asked.mode,
        filters=filters,
        auto=asked.auto,
        threshold=asked.threshold,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How good an answer was."""

    query_id: str = parameter("As the answer says, or last.")
    verdict: Verdict = parameter("Whether it was good or bad.")
    kbs: tuple[str, ...] = parameter(_KBS, default=())


def _judge(context: OperationContext, asked: Judgement, _: Place) -> object:
    noted = context.reading().feedback(asked.query_id, asked.verdict)
    return {"query_id": noted, "verdict": asked.verdict}


@dataclass(frozen=True, slots=True, kw_only=True)
class SomeKbs:
    """Which knowledge bases."""

    kbs: tuple[str, ...] = parameter(_KBS, default=())


def _statistics(context: OperationContext, _: SomeKbs, __: Place) -> object:
    return [base.statistics.content() for base in context.reading()]


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlParameters:
    """A statement of SQL."""

    statement: str = parameter("One SELECT or EXPLAIN.")
    kbs: tuple[str, ...] = parameter(_KBS, default=())
    namespaces: tuple[str, ...] = parameter("Only rows of these namespaces.", default=())


def _sql(context: OperationContext, asked: SqlParameters, place: Place) -> Listing:
    rows = place.calls.sql(context, asked.statement, asked.namespaces)
    return Listing(rows, rows.num_rows)


# --- graph ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphParameters:
    """Of which part of the graph."""

    namespaces: tuple[str, ...] = parameter("Only names in these namespaces.", default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourParameters(GraphParameters):
    """What is near a name."""

    name: str = parameter("The name.")
    hops: int = parameter("At most this many steps.", default=1, low=1, high=6)
    relation: str | None = parameter("Only relations of this type.", default=None)
    direction: Literal["in", "out", "both"] = parameter(
        "Only relations that lead away from the name, or to it.", default="both"
    )
    limit: int = parameter(_LIMIT, default=50, low=1, high=_MOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class PathParameters(GraphParameters):
    """How two names are connected."""

    name: str = parameter("One name.")
    other: str = parameter("The other.")


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphQuestion(GraphParameters):
    """Which names."""

    q: str = parameter("A question, or some words.")
    relation: str | None = parameter("Only relations of this type.", default=None)
    limit: int = parameter(_LIMIT, default=10, low=1, high=_MOST)


def _view(context: OperationContext, asked: GraphParameters) -> GraphView:
    return reading(context).graph.view(Filters(namespaces=asked.namespaces))


def _graph(context: OperationContext, asked: GraphParameters, _: Place) -> object:
    return _view(context, asked).overview()


def _neighbours(context: OperationContext, asked: NeighbourParameters, _: Place) -> Listing:
    rows = _view(context, asked).neighbours(
        asked.name, asked.hops, asked.limit, relation=asked.relation, direction=asked.direction
    )
    return Listing(rows, len(rows))


def _graph_path(context: OperationContext, asked: PathParameters, _: Place) -> Listing:
    steps = _view(context, asked).path(asked.name, asked.other)
    return Listing(steps, len(steps))


def _graph_search(context: OperationContext, asked: GraphQuestion, _: Place) -> Listing:
    rows = _view(context, asked).search(asked.q, asked.limit, relation=asked.relation)
    return Listing(rows, len(rows))


# --- jobs, sessions -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoParameters:
    """How to take a job back."""

    again: bool = parameter("Let the next consolidation look at the same again.", default=False)
    dry_run: bool = parameter("Only say what would be done.", default=False)


def _jobs(context: OperationContext, asked: PageParameters, _: Place) -> Listing:
    return page_of(reading(context).jobs.list(), asked)


def _undo(context: OperationContext, asked: UndoParameters, place: Place) -> object:
    jobs = context.writing().jobs
    number = place["number"]
    if not _JOB_NUMBER.fullmatch(number):
        raise NotFoundError(f"there is no job {number[:40]!r}", "list the jobs")
    return jobs.undo(int(number), again=asked.again, dry_run=asked.dry_run)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSession:
    """A conversation to begin."""

    id: str | None = parameter("Its id; by default one is made.", default=None)
    title: str = parameter("What it is called.", default="")
    namespace: str | None = parameter("Where it goes; by default the user's.", default=None)
    kbs: tuple[str, ...] = parameter("The knowledge base to begin it in.", default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPage(PageParameters):
    """Which conversations."""

    status: Literal["open", "ended", "archived"] | None = parameter(
        "Only of this status.", default=None
    )
    namespaces: tuple[str, ...] = parameter("Only these namespaces.", default=())
    kbs: tuple[str, ...] = parameter(_KBS, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSession:
    """Which part of a conversation."""

    last: int | None = parameter("Only the last messages.", default=None, low=1)
    namespace: str | None = parameter("Its namespace, where several have one.", default=None)
    kbs: tuple[str, ...] = parameter(_KBS, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """A message to add to a conversation."""

    content: str = parameter("What is said.")
    sender: Literal["user", "agent", "system", "tool"] = parameter("Who says it.", default="user")
    turn: int | None = parameter("Its number, where the caller counts.", default=None, low=0)
    namespace: str | None = parameter("Its namespace, where several have one.", default=None)
    kbs: tuple[str, ...] = parameter(_KBS, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnd:
    """Which conversation ends."""

    namespace: str | None = parameter("Its namespace, where several have one.", default=None)
    kbs: tuple[str, ...] = parameter(_KBS, default=())


def _sessions(context: OperationContext, asked: SessionPage, _: Place) -> Listing:
    rows = [
        record_in(base, each)
        for base in context.reading()
        for each in base.sessions.list(
            user=context.identity.user, namespaces=asked.namespaces, status=asked.status
        )
    ]
    return page_of(rows, asked)


def record_in(base: KnowledgeBase, record: object) -> dict[str, Any]:
    """Return a record with the name of its knowledge base in front, as listings have it."""
    from memctl.plain_values import to_plain

    return {"kb": base.name, **to_plain(record)}


def _start_session(context: OperationContext, asked: NewSession, _: Place) -> object:
    return context.writing().sessions.start(asked.id, namespace=asked.namespace, title=asked.title)


def _find_session(context: OperationContext, place: Place, namespace: str | None) -> Any:
    """Return a conversation with the knowledge base that has it.

    Raises:
        NotFoundError: None has.
    """
    return first_with(
        context.reading(),
        lambda base: base.sessions.get(place["id"], namespace=namespace),
        f"there is no conversation {place['id']!r}",
    )


def _show_session(context: OperationContext, asked: OneSession, place: Place) -> object:
    from memctl.plain_values import to_plain

    base, session = _find_session(context, place, asked.namespace)
    turns = base.sessions.turns(session, last=asked.last)
    return {**to_plain(session), "turns": [to_plain(turn) for turn in turns]}


def _say(context: OperationContext, asked: NewMessage, place: Place) -> object:
    from memctl.plain_values import to_plain
    from memctl.sessions.conversations import Message

    base, session = _find_session(context, place, asked.namespace)
    message = Message(sender=asked.sender, content=asked.content, turn=asked.turn)
    turn = base.sessions.say(session, message)[0]
    kept = base.sessions.kept(turn)
    base.sessions.compress_due(session)
    return {**to_plain(turn), **kept}


def _end_session(context: OperationContext, asked: SessionEnd, place: Place) -> object:
    base, session = _find_session(context, place, asked.namespace)
    return base.sessions.end(session)


def _profile(context: OperationContext, _: object, __: Place) -> object:
    identity = context.identity
    return reading(context).sessions.profile(identity.user or DEFAULT_USER, identity.agent)


def _memory_file(context: OperationContext, asked: MemoryFileParameters, _: Place) -> object:
    return memory_file(context, asked)


# --- the table ------------------------------------------------------------------------------------

_KB, _MEMORY, _DOCUMENT = "/v1/kbs/{kb}", "/v1/kbs/{kb}/memories", "/v1/kbs/{kb}/documents"
ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "/v1/kbs", "List knowledge bases.", _list_kbs, PageParameters, of_home=True),
    Endpoint(
        "POST", "/v1/kbs", "Make a knowledge base.", _create_kb, NewKb, "write", 201, of_home=True
    ),
    Endpoint("GET", _KB, "Show a knowledge base.", _show_kb),
    Endpoint("PATCH", _KB, "Change settings.", _change_kb, KbChanges, "write"),
    Endpoint("DELETE", _KB, "Remove a knowledge base.", _delete_kb, Confirmed, "destructive"),
    Endpoint("GET", f"{_KB}/jobs", "List jobs.", _jobs, PageParameters),
    Endpoint(
        "POST", f"{_KB}/jobs/{{number}}/undo", "Take a job back.", _undo, UndoParameters,
        "write",
    ),
    Endpoint(
        "GET", _MEMORY, "List memories.", _list_memories, MemoryPage,
        operation="search_knowledge_base",
    ),
    Endpoint(
        "POST", _MEMORY, "Remember a statement.", _add_memory, NewMemory, "write", 201, "remember"
    ),
    Endpoint(
        "GET", f"{_MEMORY}/{{id}}", "Show a memory.", _show_memory,
        operation="search_knowledge_base",
    ),
    Endpoint(
        "PATCH", f"{_MEMORY}/{{id}}", "Write a new version of a memory.", _edit_memory,
        MemoryChanges, "write", operation="update_memory",
    ),
    Endpoint(
        "DELETE", f"{_MEMORY}/{{id}}", "Delete a memory.", _delete_memory, effect="destructive",
        operation="forget_memory",
    ),
    Endpoint(
        "GET", f"{_MEMORY}/{{id}}/history", "List the versions of a memory.", _memory_history,
        PageParameters, operation="search_knowledge_base",
    ),
    Endpoint(
        "GET", f"{_KB}/insights", "List insights.", _list_insights, MemoryPage,
        operation="recent_insights",
    ),
    Endpoint(
        "GET", _DOCUMENT, "List documents.", _list_documents, DocumentPage,
        operation="list_documents",
    ),
    Endpoint(
        "GET", f"{_DOCUMENT}/{{id}}", "Show a document.", _show_document, operation="get_document"
    ),
    Endpoint(
        "DELETE", f"{_DOCUMENT}/{{id}}", "Delete a document.", _delete_document,
        effect="destructive",
    ),
    Endpoint(
        "POST", f"{_DOCUMENT}/{{id}}/reprocess", "Read a document again.", _reprocess_document,
        effect="write",
    ),
    Endpoint(
        "POST", "/v1/context", "Get what is known about a question.", _context, ContextQuestion,
        operation="context",
    ),
    Endpoint(
        "POST", "/v1/feedback", "Judge an answer.", _judge, Judgement, "write",
        operation="feedback",
    ),
    Endpoint("GET", "/v1/stats", "Count what is remembered.", _statistics, SomeKbs),
    Endpoint("POST", "/v1/sql", "Run SQL.", _sql, SqlParameters),
    Endpoint("GET", f"{_KB}/graph", "Show the graph of names.", _graph, GraphParameters),
    Endpoint(
        "GET", f"{_KB}/graph/neighbors", "List what is near a name.", _neighbours,
        NeighbourParameters, operation="get_graph_neighbors",
    ),
    Endpoint(
        "GET", f"{_KB}/graph/path", "Show how two names are connected.", _graph_path,
        PathParameters, operation="get_graph_neighbors",
    ),
    Endpoint(
        "GET", f"{_KB}/graph/search", "Find names.", _graph_search, GraphQuestion,
        operation="search_knowledge_graph",
    ),
    Endpoint(
        "GET", "/v1/sessions", "List conversations.", _sessions, SessionPage,
        operation="list_sessions",
    ),
    Endpoint("POST", "/v1/sessions", "Begin a conversation.", _start_session, NewSession,
        "write", 201),
    Endpoint(
        "GET", "/v1/sessions/{id}", "Show a conversation.", _show_session, OneSession,
        operation="list_sessions",
    ),
    Endpoint(
        "POST", "/v1/sessions/{id}/messages", "Add a message.", _say, NewMessage, "write", 201
    ),
    Endpoint(
        "POST", "/v1/sessions/{id}/end", "End a conversation.", _end_session, SessionEnd, "write"
    ),
    Endpoint("GET", f"{_KB}/profile", "Show what is known of the user.", _profile),
    Endpoint(
        "POST", "/v1/memory", "Keep files below /memories, as a model does.", _memory_file,
        MemoryFileParameters, "write", operation="memory", only_reads=only_views,
    ),
)  # fmt: skip
"""What is offered beside ``/v1/query``, uploads and streams, which have routes of their own."""
