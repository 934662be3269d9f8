"""Operations that look things up: documents, conversations, names and how they are connected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Struct

from memctl.errors import NotFoundError
from memctl.ids import root_id
from memctl.literals import Direction, DocType, SessionStatus
from memctl.operations.finding import find_in_graphs, opened, readable_session
from memctl.operations.operation_context import OperationContext
from memctl.plain_values import plain_rows, to_plain
from memctl.records import record_like
from memctl.schema.document_types import doc_type_of
from memctl.validation import Rule

if TYPE_CHECKING:
    from memctl.graph.graph_views import NeighbourView
    from memctl.knowledge_base import KnowledgeBase
    from memctl.records import Document, Filters, Memory

_SHOWN = ("id", "part", "title", "media_type", "doc_type", "source", "created_at", "ingested_at",
          "size", "namespace")  # fmt: skip
_METADATA = ("media_type", "doc_type", "source", "created_at", "namespace", "size", "summary",
             "tags", "topics", "language", "session_id", "metadata", "superseded_by")  # fmt: skip
MAX_CHARACTERS = 20_000
_NEAR_TITLES = 3
_RELATION = "Only relations of this type, such as links_to."
_MAX_HOPS = 6


# --- documents ------------------------------------------------------------------------------------


class ListDocumentsParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``list_documents``."""

    namespace: Annotated[str | None, Rule("Only this namespace.")] = None
    doc_type: Annotated[DocType | None, Rule("Only this kind of document.")] = None
    search: Annotated[str | None, Rule("Only documents with these words in the title.")] = None
    limit: Annotated[int, Rule("At most this many.", low=1, high=200)] = 20
    offset: Annotated[int, Rule("How many to skip.", low=0, high=10**9)] = 0


class ListedDocument(Struct, frozen=True):
    """One document of a list."""

    id: str
    title: str
    doc_type: str
    date: str
    size: int
    passages: int
    kb: str
    namespace: str
    source: str


class DocumentList(Struct, frozen=True):
    """Documents, the last ingested first."""

    documents: tuple[ListedDocument, ...]
    total: int
    next_offset: int | None
    """Where the rest begins; None where this is all."""


def list_documents(context: OperationContext, parameters: ListDocumentsParameters) -> DocumentList:
    """List documents as ``memctl document list`` does, of all knowledge bases together."""
    filters = context.filters(namespace=parameters.namespace)
    found = [(base, row) for base in opened(context) for row in _rows(base, filters, parameters)]
    found.sort(key=lambda each: str(each[1]["ingested_at"]), reverse=True)
    end = parameters.offset + parameters.limit
    shown = found[parameters.offset : end]
    return DocumentList(
        documents=tuple(_listed_document(base, row) for base, row in _with_passages(shown)),
        total=len(found),
        next_offset=end if end < len(found) else None,
    )


def _rows(
    base: KnowledgeBase, filters: Filters, parameters: ListDocumentsParameters
) -> list[dict[str, Any]]:
    table = base.documents.list(filters)
    words = (parameters.search or "").casefold().split()
    return [
        row
        for row in plain_rows(table.select(_SHOWN))
        if not row["part"]
        and all(word in row["title"].casefold() for word in words)
        and parameters.doc_type in (None, _doc_type(row))
    ]


def _doc_type(row: dict[str, Any]) -> str:
    return str(row["doc_type"] or doc_type_of(row["media_type"]))


def _with_passages(
    shown: list[tuple[KnowledgeBase, dict[str, Any]]],
) -> list[tuple[KnowledgeBase, dict[str, Any]]]:
    """Give each row the number of its document's passages."""
    for base in {id(base): base for base, _ in shown}.values():
        rows = [row for owner, row in shown if owner is base]
        counts = count_passages(base, [row["id"] for row in rows])
        for row in rows:
            row["passages"] = counts[row["id"]]
    return shown


def count_passages(base: KnowledgeBase, ids: Sequence[str]) -> Counter[str]:
    """Return how many passages each of some documents has, in all of its parts."""
    from memctl.store.tables.filter_expressions import col

    snapshot = base.store.snapshot()
    parts = snapshot.scan("documents", col("root_id").is_in(ids), ["id"])["id"].to_pylist()
    where = col("document_id").is_in(parts) & (col("level") == "evidence")
    where = where & col("superseded_by").is_null()
    passages = snapshot.scan("memories", where, ["document_id"])
    return Counter(map(root_id, passages["document_id"].to_pylist()))


def _listed_document(base: KnowledgeBase, row: dict[str, Any]) -> ListedDocument:
    return ListedDocument(
        id=row["id"],
        title=row["title"],
        doc_type=_doc_type(row),
        date=row["created_at"],
        size=row["size"],
        passages=row["passages"],
        kb=base.name,
        namespace=row["namespace"],
        source=row["source"],
    )


# --- one document ---------------------------------------------------------------------------------

_START = Rule("From which character on.", low=0, high=10**12)
_MAX_CHARS = Rule("At most this many characters.", low=1, high=MAX_CHARACTERS)


class GetDocumentParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``get_document``."""

    document_id: Annotated[str, Rule("The id, title or source of the document.")]
    start: Annotated[int, _START] = 0
    max_chars: Annotated[int, _MAX_CHARS] = 8000


class DocumentText(Struct, frozen=True):
    """A document, and a piece of its text."""

    id: str
    title: str
    kb: str
    metadata: dict[str, Any]
    text: str
    start: int
    end: int
    length: int
    """Of the whole text, in characters."""
    has_more: bool
    note: str
    """How to get the rest, if there is any, and what holds now where this was superseded."""


def get_document(context: OperationContext, parameters: GetDocumentParameters) -> DocumentText:
    """Return a piece of a document's text, as ``memctl document show --text`` has it."""
    base, document = _find_document(context, parameters.document_id)
    text = base.documents.whole_text(document)
    length = len(text)
    start = min(parameters.start, length)
    end = min(start + parameters.max_chars, length)
    plain = to_plain(document)
    notes = []
    if document.superseded_by is not None:
        notes.append(f"superseded by {document.superseded_by}: open that for what holds now")
    if end < length:
        notes.append(f"characters {start:,} to {end:,} of {length:,}; start={end} gives the rest")
    return DocumentText(
        id=document.id,
        title=document.title,
        kb=base.name,
        metadata={key: plain[key] for key in _METADATA if plain.get(key) not in (None, [], {}, "")},
        text=text[start:end],
        start=start,
        end=end,
        length=length,
        has_more=end < length,
        note="; ".join(notes),
    )


class OpenParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``open``."""

    id: Annotated[str, Rule("The id, title or source of a document, or the id of a memory.")]
    start: Annotated[int, _START] = 0
    max_chars: Annotated[int, _MAX_CHARS] = 8000


def open_item(context: OperationContext, parameters: OpenParameters) -> DocumentText:
    """Return a piece of a document's text, or a memory with the evidence that it rests on."""
    if not parameters.id.startswith(("m_", "i_")):
        wanted = GetDocumentParameters(
            document_id=parameters.id, start=parameters.start, max_chars=parameters.max_chars
        )
        return get_document(context, wanted)
    opened(context)
    base = context.owner("memories", parameters.id)
    view = base.memories.get(parameters.id)
    memory = view.memory
    context.check_readable(base, memory.namespace, f"memory {parameters.id!r}")
    evidence = [to_plain(each) for each in view.evidence]
    metadata = {"type": memory.type, "level": memory.level, "created_at": memory.created_at}
    if memory.document_id is not None:
        metadata["document_id"] = memory.document_id
    newer = _newer(context, base, memory)
    if newer is not None:
        metadata |= {"superseded_by": newer.id, "valid_to": memory.valid_to}
    return DocumentText(
        id=memory.id,
        title=memory.title,
        kb=base.name,
        metadata=to_plain({**metadata, "tags": memory.tags, "evidence": evidence}),
        text=memory.text,
        start=0,
        end=len(memory.text),
        length=len(memory.text),
        has_more=False,
        note="" if newer is None else f"superseded by {newer.id}, which says: {newer.text}",
    )


def _newer(context: OperationContext, base: KnowledgeBase, memory: Memory) -> Memory | None:
    """Return what holds in place of a memory that was superseded; None for one that was not."""
    seen, found = {memory.id}, memory
    while found.superseded_by is not None and found.superseded_by not in seen:
        seen.add(found.superseded_by)
        try:
            newer = base.memories.get(found.superseded_by).memory
        except NotFoundError:  # it was forgotten
            break
        if not context.reads(base, newer.namespace):
            break
        found = newer
    return None if found is memory else found


def _find_document(context: OperationContext, reference: str) -> tuple[KnowledgeBase, Document]:
    """Return the document with an id, a title or a source, and its knowledge base.

    Raises:
        NotFoundError: There is none that is open to this caller.
    """
    what = f"document {reference!r}"
    bases = opened(context)
    id_, base = reference, None
    try:
        base = bases.owner("documents", reference)
    except NotFoundError:
        titles = _by_title_or_source(context)
        if reference.casefold() not in titles:
            near = _near_titles(reference, titles)
            raise NotFoundError(f"there is no {what}", near) from None
        base, id_ = titles[reference.casefold()]
    document = base.documents.get(id_).document
    context.check_readable(base, document.namespace, what)
    return base, document


def _by_title_or_source(context: OperationContext) -> dict[str, tuple[KnowledgeBase, str]]:
    """Return the open documents by title and source, the last ingested where several have one."""
    found: dict[str, tuple[KnowledgeBase, str]] = {}
    listed = [
        (base, row)
        for base in opened(context)
        for row in plain_rows(
            base.documents.list(context.filters()).select(["root_id", "title", "source"])
        )
    ]
    for key in ("title", "source"):
        for base, row in listed:
            found.setdefault(row[key].casefold(), (base, row["root_id"]))
    return found


def _near_titles(title: str, titles: dict[str, tuple[KnowledgeBase, str]]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(title.casefold(), titles, _NEAR_TITLES, 0.5)
    return f"near titles: {', '.join(near)}" if near else "list_documents lists all of them"


# --- conversations --------------------------------------------------------------------------------


class ListSessionsParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``list_sessions``."""

    status: Annotated[SessionStatus | None, Rule("Only those in this state.")] = None
    limit: Annotated[int, Rule("At most this many.", low=1, high=200)] = 20


class ListedSession(Struct, frozen=True):
    """One conversation of a list."""

    session_id: str
    kb: str
    title: str
    status: str
    user_id: str
    agent_id: str | None
    started_at: datetime
    last_at: datetime
    message_count: int
    summary: str


class SessionList(Struct, frozen=True):
    """Conversations, the latest first."""

    sessions: tuple[ListedSession, ...]


def list_sessions(context: OperationContext, parameters: ListSessionsParameters) -> SessionList:
    """List conversations, those of the user where one is named, of all knowledge bases together."""
    found = [
        record_like(ListedSession, session, kb=base.name)
        for base in opened(context)
        for session in base.sessions.list(
            namespaces=context.namespaces("conversations"),
            status=parameters.status,
            limit=parameters.limit,
        )
    ]
    found.sort(key=lambda each: each.last_at, reverse=True)
    return SessionList(tuple(found[: parameters.limit]))


class SessionParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``session``."""

    session_id: Annotated[str | None, Rule("Show this one, with what was said.")] = None
    limit: Annotated[int, Rule("At most this many conversations or turns.", low=1, high=200)] = 20


class SaidTurn(Struct, frozen=True):
    """One turn of a conversation."""

    turn: int
    at: datetime
    sender: str
    content: str


class SessionReply(Struct, frozen=True):
    """Conversations, or the last turns of one."""

    sessions: tuple[ListedSession, ...]
    turns: tuple[SaidTurn, ...]


def look_at_sessions(context: OperationContext, parameters: SessionParameters) -> SessionReply:
    """List conversations, or show the last turns of one.

    Raises:
        NotFoundError: There is none of that name.
    """
    if parameters.session_id is None:
        listed = list_sessions(context, ListSessionsParameters(limit=parameters.limit))
        return SessionReply(listed.sessions, ())
    base, session = readable_session(context, opened(context), parameters.session_id)
    turns = tuple(
        record_like(SaidTurn, turn) for turn in base.sessions.turns(session, last=parameters.limit)
    )
    return SessionReply((record_like(ListedSession, session, kb=base.name),), turns)


# --- the graph of names ---------------------------------------------------------------------------


class NearName(Struct, frozen=True):
    """A name that is connected with another one."""

    name: str
    type: str
    hops: int
    relation: str
    direction: Direction
    weight: float
    via: tuple[str, ...]
    memory_ids: tuple[str, ...]
    """What shows it."""


class GraphName(Struct, frozen=True):
    """A name that was found, and what it is connected with."""

    kb: str
    id: str
    name: str
    type: str
    aliases: tuple[str, ...]
    mentions: int
    relations: tuple[NearName, ...]


class GraphSearchParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``search_knowledge_graph``."""

    query: Annotated[str, Rule("A question, or names to look for.")]
    relation_type: Annotated[str | None, Rule(_RELATION)] = None
    node_type: Annotated[str | None, Rule("Only names of this type: person, page, ...")] = None
    limit: Annotated[int, Rule("At most this many names.", low=1, high=100)] = 10


class GraphSearchReply(Struct, frozen=True):
    """Names that were found."""

    query: str
    names: tuple[GraphName, ...]


def search_knowledge_graph(
    context: OperationContext, parameters: GraphSearchParameters
) -> GraphSearchReply:
    """Find names as ``memctl graph search`` does, in every knowledge base that is read."""
    names = [
        record_like(GraphName, found, kb=base.name, relations=_near(found.relations))
        for base in opened(context)
        for found in base.graph.view(context.filters()).search(
            parameters.query,
            parameters.limit,
            relation=parameters.relation_type,
            type_=parameters.node_type,
        )
    ]
    return GraphSearchReply(parameters.query, tuple(names[: parameters.limit]))


def _near(views: Iterable[NeighbourView]) -> tuple[NearName, ...]:
    return tuple(record_like(NearName, view) for view in views)


class NeighborsParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``get_graph_neighbors``."""

    name: Annotated[str, Rule("A name, an alias or the id of one.")]
    hops: Annotated[int, Rule("At most this many steps.", low=1, high=_MAX_HOPS)] = 1
    relation_type: Annotated[str | None, Rule(_RELATION)] = None
    direction: Annotated[
        Direction, Rule("Only relations that lead away from the name, or to it.")
    ] = "both"
    limit: Annotated[int, Rule("At most this many names.", low=1, high=200)] = 20


class NeighborsReply(Struct, frozen=True):
    """What is near a name."""

    kb: str
    name: str
    neighbors: tuple[NearName, ...]


def get_graph_neighbors(
    context: OperationContext, parameters: NeighborsParameters
) -> NeighborsReply:
    """List what is near a name as ``memctl graph neighbors`` does, where that name is first found.

    Raises:
        NotFoundError: Nothing is called that.
    """

    base, view, node = find_in_graphs(context, opened(context), parameters.name)
    near = view.neighbours(
        node.id,
        parameters.hops,
        parameters.limit,
        relation=parameters.relation_type,
        direction=parameters.direction,
    )
    return NeighborsReply(base.name, node.name, _near(near))
