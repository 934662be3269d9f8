"""The table of what ``/v1`` offers: knowledge bases, and what each of them holds.

Each function does what a command does, and gives the records that ``-o json`` writes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import NotFoundError, UsageError
from memctl.identity import DEFAULT_USER
from memctl.instants import last_instant, parse_instant, require_said
from memctl.literals import (
    MAX_COMMUNITIES,
    MAX_HOPS,
    MAX_ROUNDS,
    ChunkStrategy,
    Direction,
    DocumentSort,
    Duplicates,
    Fusion,
    Headings,
    KnowledgeBaseKind,
    KnowledgeBaseScope,
    Mode,
    SessionStatus,
    Sort,
    StoredStatus,
    Verdict,
)
from memctl.operations.finding import first_with
from memctl.operations.memory_files import MemoryFileParameters, is_view_only, memory_file
from memctl.operations.operation_context import OperationContext
from memctl.plain_values import to_plain
from memctl.records import LEVELS, Filters, Level
from memctl.server.http_calls import ShapeError, run_sql
from memctl.server.http_endpoints import Endpoint, Listing, Place, Tagged, changes_in, with_kb
from memctl.validation import Rule

if TYPE_CHECKING:
    from datetime import datetime

    from memctl.graph.graph_views import GraphView
    from memctl.knowledge_base import KnowledgeBase
    from memctl.memories.memory_views import MemoryView

_MOST = 500
_KBS = "Knowledge bases to ask; by default all that are always on."
_LIMIT = "At most this many."
_OFFSET = "How many to skip."
_MAX_OFFSET = 1_000_000_000
_JOB_NUMBER = re.compile(r"[0-9]{1,18}")


# --- what limits a listing or question ------------------------------------------------------------


class FilterParameters(Struct, frozen=True, kw_only=True):
    """What a listing or question is limited to."""

    namespaces: Annotated[tuple[str, ...], Rule("Only these namespaces.")] = ()
    tags: Annotated[tuple[str, ...], Rule("Only with one of these tags.")] = ()
    types: Annotated[tuple[str, ...], Rule("Only of these types.")] = ()
    levels: Annotated[tuple[str, ...], Rule("Only evidence, memory or insight.")] = ()
    doc_types: Annotated[tuple[str, ...], Rule("Only of documents of these types.")] = ()
    since: Annotated[str | None, Rule("Only from that date on: 2026-03-01, 7d, today.")] = None
    until: Annotated[str | None, Rule("Only before that date.")] = None
    as_of: Annotated[str | None, Rule("What memctl knew on that day.")] = None
    session: Annotated[str | None, Rule("Only this conversation.")] = None
    source: Annotated[str | None, Rule("Only sources like *.pdf.")] = None
    where: Annotated[str | None, Rule("Only where a SQL condition holds.")] = None
    metadata: Annotated[
        Mapping[str, Any] | None, Rule('Only with this metadata: {"year": {"$gte": 2024}}.')
    ] = None
    entities: Annotated[tuple[str, ...], Rule("Only what has one of these names.")] = ()
    topics: Annotated[tuple[str, ...], Rule("Only on one of these topics.")] = ()
    archived: Annotated[bool, Rule("Also memories that upkeep has put away.")] = False


def filters_of(context: OperationContext, parameters: FilterParameters) -> Filters:
    """Return the filters that parameters stand for.

    Raises:
        UsageError: One cannot be used.
    """
    now = context.now
    return Filters(
        namespaces=parameters.namespaces,
        tags=tuple(tag.removeprefix("#") for tag in parameters.tags),
        types=parameters.types,
        levels=tuple(map(_level, parameters.levels)),
        since=None if parameters.since is None else parse_instant(parameters.since, now),
        until=None if parameters.until is None else parse_instant(parameters.until, now),
        as_of=None if parameters.as_of is None else last_instant(parameters.as_of, now),
        session=parameters.session,
        source=parameters.source,
        where=parameters.where,
        doc_types=parameters.doc_types,
        metadata=parameters.metadata,
        entities=parameters.entities,
        topics=parameters.topics,
        archived=parameters.archived,
    )


def _level(text: str) -> Level:
    if text not in LEVELS:
        raise UsageError(f"there is no level {text!r}", f"use {', '.join(LEVELS)}")
    return text


class PageParameters(Struct, frozen=True, kw_only=True):
    """Which rows of a listing."""

    limit: Annotated[int, Rule(_LIMIT, low=1, high=_MOST)] = 50
    offset: Annotated[int, Rule(_OFFSET, low=0, high=_MAX_OFFSET)] = 0


class FilteredPage(FilterParameters, frozen=True, kw_only=True):
    """Which rows of a listing that is limited."""

    limit: Annotated[int, Rule(_LIMIT, low=1, high=_MOST)] = 50
    offset: Annotated[int, Rule(_OFFSET, low=0, high=_MAX_OFFSET)] = 0


class MemoryPage(FilteredPage, frozen=True, kw_only=True):
    """Which memories."""

    sort: Annotated[Sort | None, Rule("What to sort by; by default the newest first.")] = None
    desc: Annotated[bool, Rule("With sort, the greatest first.")] = False


class DocumentPage(FilteredPage, frozen=True, kw_only=True):
    """Which documents."""

    sort: Annotated[
        DocumentSort | None, Rule("What to sort by; by default the latest ingested first.")
    ] = None
    desc: Annotated[bool, Rule("With sort, the greatest first.")] = False
    incomplete: Annotated[bool, Rule("Only those that lack something.")] = False


def page_of(rows: Sequence[Any], parameters: PageParameters) -> Listing:
    """Return one page of a complete list of rows."""
    end = parameters.offset + parameters.limit
    return Listing(rows[parameters.offset : end], len(rows), parameters.offset)


def _sorted_page(parameters: MemoryPage | DocumentPage) -> dict[str, Any]:
    """Return which rows of a listing are wanted, and in which order, as ``list`` takes it."""
    return {
        "limit": parameters.limit,
        "offset": parameters.offset,
        "sort": parameters.sort,
        "descending": parameters.desc,
    }


def require_knowledge_base(context: OperationContext) -> KnowledgeBase:
    """Return the one knowledge base that a path names, to read."""
    return context.reading()[0]


# --- knowledge bases ------------------------------------------------------------------------------


class KbSettings(Struct, frozen=True, kw_only=True):
    """Settings of a knowledge base that can be changed."""

    always_on: Annotated[bool | None, Rule("Whether queries ask it that name none.")] = None
    private: Annotated[bool | None, Rule("Whether it is read only if it is named.")] = None
    redact: Annotated[bool | None, Rule("Whether secrets are removed before all else.")] = None
    chunk_strategy: Annotated[ChunkStrategy | None, Rule("How text is cut.")] = None
    chunk_size: Annotated[
        int | None, Rule("Longest passage, in characters.", low=100, high=20_000)
    ] = None
    chunk_overlap: Annotated[
        int | None, Rule("Characters that passages share.", low=0, high=10_000)
    ] = None
    consolidate_interval: Annotated[
        int | None, Rule("Minutes between two consolidations; 0 for never.", low=0, high=525_600)
    ] = None
    half_life: Annotated[
        int | None, Rule("Days after which a memory counts half as recent.", low=1, high=36_500)
    ] = None
    kind: Annotated[KnowledgeBaseKind | None, Rule("What it is for.")] = None
    scope: Annotated[KnowledgeBaseScope | None, Rule("Whom it is for.")] = None
    description: Annotated[str | None, Rule("What it holds.")] = None


class NewKb(KbSettings, frozen=True, kw_only=True):
    """A knowledge base to make."""

    name: Annotated[str, Rule("1 to 64 of a-z, 0-9, - and _.")]
    embedder: Annotated[str, Rule("The model of its vectors.")] = ""


class KbChanges(KbSettings, frozen=True, kw_only=True):
    """Settings to change."""

    status: Annotated[StoredStatus | None, Rule("Whether it takes part.")] = None


class Confirmed(Struct, frozen=True, kw_only=True):
    """A deletion that has to be meant."""

    yes: Annotated[bool, Rule("Say true: it goes with all its files.")] = False


def _list_kbs(_: OperationContext, parameters: PageParameters, place: Place) -> Listing:
    return page_of([entry.row() for entry in place.calls.entries()], parameters)


def _create_kb(context: OperationContext, parameters: NewKb, place: Place) -> object:
    place.calls.require_creatable(parameters.name)
    settings = changes_in(parameters, "name", "embedder")
    context.home.create(parameters.name, embedder=parameters.embedder, **settings)
    return _with_note(context, parameters, place, parameters.name)


def _show_kb(context: OperationContext, _: object, place: Place) -> object:
    return context.home.described(place["kb"])


def _change_kb(context: OperationContext, parameters: KbChanges, place: Place) -> object:
    changes = changes_in(parameters, "status")
    if changes:
        context.home.change(place["kb"], **changes)
    if parameters.status is not None:
        context.home.set_status(place["kb"], parameters.status)
    return _with_note(context, parameters, place, place["kb"])


def _with_note(
    context: OperationContext, parameters: KbSettings, place: Place, name: str
) -> dict[str, Any]:
    """Return a knowledge base, and who can still see it where it has just been made private."""
    shown = context.home.described(name)
    if not parameters.private:
        return shown
    still = f"commands that name it with -k {name} read it, and servers that are started with that"
    here = "so does this one" if place.calls.is_served(name) else "this one has it no more"
    return {**shown, "note": f"{name} is private: {still}; {here}"}


def _delete_kb(context: OperationContext, parameters: Confirmed, place: Place) -> object:
    if not parameters.yes:
        raise UsageError(f"all of {place['kb']!r} would go for good", "add ?yes=true to agree")
    context.close()
    context.home.delete(place["kb"])
    return {"deleted": place["kb"]}


# --- memories -------------------------------------------------------------------------------------


class NewMemory(Struct, frozen=True, kw_only=True):
    """A statement to remember."""

    text: Annotated[str, Rule("The statement.")]
    type: Annotated[str | None, Rule("fact, decision, ...; by default what it says.")] = None
    namespace: Annotated[str | None, Rule("Its namespace; by default the user's.")] = None
    tags: Annotated[tuple[str, ...], Rule("Its tags.")] = ()
    importance: Annotated[
        float | None, Rule("Importance; by default as its type tells.", low=0, high=1)
    ] = None
    confidence: Annotated[float, Rule("How sure it is.", low=0, high=1)] = 1.0
    source: Annotated[str | None, Rule("Where it comes from; by default stated.")] = None
    metadata: Annotated[Mapping[str, Any] | None, Rule("Anything else to keep with it.")] = None
    session: Annotated[str | None, Rule("The conversation it belongs to.")] = None
    created_at: Annotated[str | None, Rule("When it happened; by default now.")] = None
    source_ids: Annotated[tuple[str, ...], Rule("Memories that it rests on.")] = ()
    private: Annotated[bool, Rule("Whether the agent keeps it to itself.")] = False


class MemoryChanges(Struct, frozen=True, kw_only=True):
    """What a new version of a memory says."""

    text: Annotated[str | None, Rule("Its text.")] = None
    type: Annotated[str | None, Rule("Its type.")] = None
    tags: Annotated[tuple[str, ...] | None, Rule("Its tags.")] = None
    importance: Annotated[float | None, Rule("Its importance.", low=0, high=1)] = None


def _list_memories(context: OperationContext, parameters: MemoryPage, _: Place) -> Listing:
    base, filters = require_knowledge_base(context), filters_of(context, parameters)
    rows = base.memories.list(filters, **_sorted_page(parameters))
    return Listing(with_kb(base, rows), base.memories.count(filters), parameters.offset)


def _list_insights(context: OperationContext, parameters: MemoryPage, _: Place) -> Listing:
    base, filters = require_knowledge_base(context), filters_of(context, parameters)
    rows = base.insights.list(filters, **_sorted_page(parameters))
    return Listing(with_kb(base, rows), base.insights.count(filters), parameters.offset)


def _add_memory(context: OperationContext, parameters: NewMemory, _: Place) -> object:
    at = (
        None if parameters.created_at is None else parse_instant(parameters.created_at, context.now)
    )
    return context.writing().memories.add(
        parameters.text,
        type_=parameters.type,
        namespace=parameters.namespace,
        tags=parameters.tags,
        importance=parameters.importance,
        confidence=parameters.confidence,
        source=parameters.source,
        metadata=parameters.metadata,
        session=parameters.session or context.identity.session,
        created_at=at,
        source_ids=parameters.source_ids,
        private=parameters.private,
    )


def _show_memory(context: OperationContext, _: object, place: Place) -> Tagged:
    view = require_knowledge_base(context).memories.get(place["id"])
    return Tagged(view, view.memory.id)


def _edit_memory(context: OperationContext, parameters: MemoryChanges, place: Place) -> object:
    if not changes_in(parameters):
        raise UsageError("nothing to change", "give text, type, tags or importance")
    memories = context.writing().memories
    place.matches(_newest(memories.get(place["id"])))
    return memories.edit(
        place["id"],
        parameters.text,
        type_=parameters.type,
        tags=parameters.tags,
        importance=parameters.importance,
    )


def _delete_memory(context: OperationContext, _: object, place: Place) -> object:
    memories = context.writing().memories
    view = memories.get(place["id"])
    place.matches(_newest(view))
    return {"id": view.memory.id, "deleted": memories.delete(view.memory.id)}


def _newest(view: MemoryView) -> str:
    """Return the tag of a memory's present version."""
    return view.history[-1].id if view.history else view.memory.id


def _memory_history(context: OperationContext, parameters: PageParameters, place: Place) -> Listing:
    return page_of(require_knowledge_base(context).memories.get(place["id"]).history, parameters)


# --- documents ------------------------------------------------------------------------------------


def _list_documents(context: OperationContext, parameters: DocumentPage, _: Place) -> Listing:
    base, filters = require_knowledge_base(context), filters_of(context, parameters)
    rows = base.documents.list(
        filters, incomplete=parameters.incomplete, **_sorted_page(parameters)
    )
    total = base.documents.count(filters, incomplete=parameters.incomplete)
    return Listing(with_kb(base, rows), total, parameters.offset)


def _show_document(context: OperationContext, _: object, place: Place) -> Tagged:
    view = require_knowledge_base(context).documents.get(place["id"])
    return Tagged(view, document_tag(view.document))


def document_tag(document: Any) -> str:
    """Return the tag of a document's state."""
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


class QuestionParameters(FilterParameters, frozen=True, kw_only=True):
    """A question, and how it is searched for."""

    question: Annotated[str, Rule("The question, in words.")]
    kbs: Annotated[tuple[str, ...], Rule(_KBS)] = ()
    mode: Annotated[Mode | None, Rule("How memories are found.")] = None
    hops: Annotated[int | None, Rule("How far mode graph goes.", low=1, high=MAX_HOPS)] = None
    rounds: Annotated[
        int | None, Rule("How many rounds mode agentic searches.", low=1, high=MAX_ROUNDS)
    ] = None
    communities: Annotated[
        int | None, Rule("How many communities mode graph gives.", low=0, high=MAX_COMMUNITIES)
    ] = None
    fusion: Annotated[Fusion | None, Rule("How keywords and vectors are combined.")] = None
    limit: Annotated[int | None, Rule("How many hits.", low=1, high=_MOST)] = None
    offset: Annotated[int, Rule("How many of the best hits to leave out.", low=0, high=_MOST)] = 0
    duplicates: Annotated[Duplicates | None, Rule("Which memories become one hit.")] = None
    diversity: Annotated[
        float | None, Rule("How much similarity to a better hit counts.", low=0, high=1)
    ] = None
    per_document: Annotated[
        int | None,
        Rule("At most this many hits per document; 0 means no limit.", low=0, high=_MOST),
    ] = None
    threshold: Annotated[float | None, Rule("Least relevance of a hit.", low=0, high=1)] = None
    answer: Annotated[bool, Rule("Whether to answer as well as to find.")] = True
    explain: Annotated[bool, Rule("Whether to say how the search went.")] = False
    stream: Annotated[bool, Rule("Send the answer as it is written, as events.")] = False


def query_options(context: OperationContext, parameters: QuestionParameters) -> Any:
    """Return the options of a question."""
    from memctl.queries import QueryOptions

    return QueryOptions(
        mode=parameters.mode,
        hops=parameters.hops,
        rounds=parameters.rounds,
        communities=parameters.communities,
        fusion=parameters.fusion,
        filters=filters_of(context, parameters),
        limit=parameters.limit,
        offset=parameters.offset,
        duplicates=parameters.duplicates,
        diversity=parameters.diversity,
        per_document=parameters.per_document,
        threshold=parameters.threshold,
        answer=parameters.answer,
        explain=parameters.explain,
    )


class ContextQuestion(FilterParameters, frozen=True, kw_only=True):
    """A question to bring in what is known about it."""

    question: Annotated[str, Rule("The question or message; empty with standing alone.")] = ""
    kbs: Annotated[tuple[str, ...], Rule(_KBS)] = ()
    budget: Annotated[int, Rule("At most this many tokens.", low=16, high=100_000)] = 2000
    mode: Annotated[Mode | None, Rule("How memories are found.")] = None
    hops: Annotated[int | None, Rule("How far mode graph goes.", low=1, high=MAX_HOPS)] = None
    auto: Annotated[bool, Rule("Nothing unless the message looks like it needs memory.")] = False
    standing: Annotated[bool, Rule("First what to know without a question.")] = False
    headings: Annotated[Headings, Rule("What the parts of that are called.")] = "seed"
    threshold: Annotated[float | None, Rule("Least relevance.", low=0, high=1)] = None


def _context(context: OperationContext, parameters: ContextQuestion, _: Place) -> object:
    queries, filters = context.reading().queries, filters_of(context, parameters)
    if parameters.standing:
        return queries.standing_context(
            parameters.question,
            budget=parameters.budget,
            user=context.identity.user,
            agent=context.identity.agent,
            filters=filters,
            headings=parameters.headings,
        )
    if not any(map(str.isalnum, parameters.question)):
        raise UsageError("the question has no words", "or ask for standing")
    return queries.context(
        parameters.question,
        budget=parameters.budget,
        mode=parameters.mode,
        hops=parameters.hops,
        filters=filters,
        auto=parameters.auto,
        threshold=parameters.threshold,
    )


class Judgement(Struct, frozen=True, kw_only=True):
    """How good an answer was."""

    query_id: Annotated[str, Rule("As the answer says, or last.")]
    verdict: Annotated[Verdict, Rule("Whether it was good or bad.")]
    kbs: Annotated[tuple[str, ...], Rule(_KBS)] = ()


def _judge(context: OperationContext, parameters: Judgement, _: Place) -> object:
    noted = context.reading().feedback(parameters.query_id, parameters.verdict)
    return {"query_id": noted, "verdict": parameters.verdict}


class SomeKbs(Struct, frozen=True, kw_only=True):
    """Which knowledge bases."""

    kbs: Annotated[tuple[str, ...], Rule(_KBS)] = ()


def _statistics(context: OperationContext, _: SomeKbs, __: Place) -> object:
    return [base.statistics.content() for base in context.reading()]


class SqlParameters(Struct, frozen=True, kw_only=True):
    """A statement of SQL."""

    statement: Annotated[str, Rule("One SELECT or EXPLAIN.")]
    kbs: Annotated[tuple[str, ...], Rule(_KBS)] = ()
    namespaces: Annotated[tuple[str, ...], Rule("Only rows of these namespaces.")] = ()


def _sql(context: OperationContext, parameters: SqlParameters, _: Place) -> Listing:
    rows = run_sql(context, parameters.statement, parameters.namespaces)
    return Listing(rows, rows.num_rows)


# --- graph ----------------------------------------------------------------------------------------


class GraphParameters(Struct, frozen=True, kw_only=True):
    """Of which part of the graph."""

    namespaces: Annotated[tuple[str, ...], Rule("Only names in these namespaces.")] = ()


class NeighbourParameters(GraphParameters, frozen=True, kw_only=True):
    """What is near a name."""

    name: Annotated[str, Rule("The name.")]
    hops: Annotated[int, Rule("At most this many steps.", low=1, high=6)] = 1
    relation: Annotated[str | None, Rule("Only relations of this type.")] = None
    direction: Annotated[
        Direction, Rule("Only relations that lead away from the name, or to it.")
    ] = "both"
    limit: Annotated[int, Rule(_LIMIT, low=1, high=_MOST)] = 50


class PathParameters(GraphParameters, frozen=True, kw_only=True):
    """How two names are connected."""

    name: Annotated[str, Rule("One name.")]
    other: Annotated[str, Rule("The other.")]


class GraphQuestion(GraphParameters, frozen=True, kw_only=True):
    """Which names."""

    q: Annotated[str, Rule("A question, or some words.")]
    type: Annotated[str | None, Rule("Only names of this type: person, page, ...")] = None
    relation: Annotated[str | None, Rule("Only relations of this type.")] = None
    limit: Annotated[int, Rule(_LIMIT, low=1, high=_MOST)] = 10


def _view(context: OperationContext, parameters: GraphParameters) -> GraphView:
    return require_knowledge_base(context).graph.view(Filters(namespaces=parameters.namespaces))


def _graph(context: OperationContext, parameters: GraphParameters, _: Place) -> object:
    return _view(context, parameters).overview()


def _neighbours(context: OperationContext, parameters: NeighbourParameters, _: Place) -> Listing:
    view = _view(context, parameters)
    node = view.meant_by(parameters.name)[0]
    rows = view.neighbours(
        node.id,
        parameters.hops,
        parameters.limit,
        relation=parameters.relation,
        direction=parameters.direction,
    )
    return Listing(rows, len(rows), about={"name": node.name, "id": node.id})


def _graph_path(context: OperationContext, parameters: PathParameters, _: Place) -> Listing:
    steps = _view(context, parameters).path(parameters.name, parameters.other)
    return Listing(steps, len(steps))


def _graph_search(context: OperationContext, parameters: GraphQuestion, _: Place) -> Listing:
    rows = _view(context, parameters).search(
        parameters.q, parameters.limit, relation=parameters.relation, type_=parameters.type
    )
    return Listing(rows, len(rows))


# --- jobs, sessions -------------------------------------------------------------------------------


class UndoParameters(Struct, frozen=True, kw_only=True):
    """How to take a job back."""

    again: Annotated[bool, Rule("Let the next consolidation look at the same again.")] = False
    dry_run: Annotated[bool, Rule("Only say what would be done.")] = False


def _jobs(context: OperationContext, parameters: PageParameters, _: Place) -> Listing:
    return page_of(require_knowledge_base(context).jobs.list(), parameters)


def _undo(context: OperationContext, parameters: UndoParameters, place: Place) -> object:
    jobs = context.writing().jobs
    number = place["number"]
    if not _JOB_NUMBER.fullmatch(number):
        raise NotFoundError(f"there is no job {number[:40]!r}", "list the jobs")
    return jobs.undo(int(number), again=parameters.again, dry_run=parameters.dry_run)


class NewSession(Struct, frozen=True, kw_only=True):
    """A conversation to begin."""

    id: Annotated[str | None, Rule("Its id; by default one is made.")] = None
    title: Annotated[str, Rule("What it is called.")] = ""
    namespace: Annotated[str | None, Rule("Where it goes; by default the user's.")] = None
    kbs: Annotated[tuple[str, ...], Rule("The knowledge base to begin it in.")] = ()


class SessionPage(PageParameters, frozen=True, kw_only=True):
    """Which conversations."""

    status: Annotated[SessionStatus | None, Rule("Only of this status.")] = None
    namespaces: Annotated[tuple[str, ...], Rule("Only these namespaces.")] = ()
    kbs: Annotated[tuple[str, ...], Rule(_KBS)] = ()


class OneSession(Struct, frozen=True, kw_only=True):
    """Which part of a conversation."""

    last: Annotated[int | None, Rule("Only the last messages.", low=1)] = None
    namespace: Annotated[str | None, Rule("Its namespace, where several have one.")] = None
    kbs: Annotated[tuple[str, ...], Rule(_KBS)] = ()


class NewMessage(Struct, frozen=True, kw_only=True):
    """A message to add to a conversation."""

    content: Annotated[str, Rule("What is said.")]
    sender: Annotated[Literal["user", "agent", "system", "tool"], Rule("Who says it.")] = "user"
    at: Annotated[str | None, Rule("When it was said; by default now.")] = None
    turn: Annotated[int | None, Rule("Its number, where the caller counts.", low=0)] = None
    namespace: Annotated[str | None, Rule("Its namespace, where several have one.")] = None
    kbs: Annotated[tuple[str, ...], Rule(_KBS)] = ()


class SessionEnd(Struct, frozen=True, kw_only=True):
    """Which conversation ends."""

    namespace: Annotated[str | None, Rule("Its namespace, where several have one.")] = None
    kbs: Annotated[tuple[str, ...], Rule(_KBS)] = ()


def _sessions(context: OperationContext, parameters: SessionPage, _: Place) -> Listing:
    from memctl.store.ledger.session_repositories import Session

    found = [
        (base.name, each)
        for base in context.reading()
        for each in base.sessions.list(
            user=context.identity.user, namespaces=parameters.namespaces, status=parameters.status
        )
    ]
    found.sort(key=lambda pair: pair[1].last_at, reverse=True)
    page = page_of([{"kb": name, **to_plain(each)} for name, each in found], parameters)
    return replace(page, record=Session, leading=("kb",))


def _start_session(context: OperationContext, parameters: NewSession, _: Place) -> object:
    return context.writing().sessions.start(
        parameters.id, namespace=parameters.namespace, title=parameters.title
    )


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


def _show_session(context: OperationContext, parameters: OneSession, place: Place) -> object:
    base, session = _find_session(context, place, parameters.namespace)
    turns = base.sessions.turns(session, last=parameters.last)
    return {**to_plain(session), "turns": [to_plain(turn) for turn in turns]}


def _say(context: OperationContext, parameters: NewMessage, place: Place) -> object:
    from memctl.sessions.conversations import Message

    base, session = _find_session(context, place, parameters.namespace)
    message = Message(
        sender=parameters.sender,
        content=parameters.content,
        at=None if parameters.at is None else _said_at(parameters.at, context.now),
        turn=parameters.turn,
    )
    turn = base.sessions.say(session, message)[0]
    statement = base.sessions.captured(turn)
    base.sessions.compress_now_or_later(session)
    return {**to_plain(turn), **statement}


def _said_at(text: str, now: datetime) -> datetime:
    """Return when a message was said.

    Raises:
        ShapeError: It is no date, or one to come.
    """
    try:
        at = parse_instant(text, now)
        require_said(at, now)
    except UsageError as error:
        raise ShapeError(error.message, error.hint) from None
    return at


def _end_session(context: OperationContext, parameters: SessionEnd, place: Place) -> object:
    base, session = _find_session(context, place, parameters.namespace)
    return base.sessions.end(session)


def _profile(context: OperationContext, _: object, __: Place) -> object:
    identity = context.identity
    return require_knowledge_base(context).sessions.profile(
        identity.user or DEFAULT_USER, identity.agent
    )


def _memory_file(context: OperationContext, parameters: MemoryFileParameters, _: Place) -> object:
    return memory_file(context, parameters)


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
        MemoryFileParameters, "write", operation="memory", only_reads=is_view_only,
    ),
)  # fmt: skip
"""What is offered beside ``/v1/query``, uploads and streams, which have routes of their own."""
