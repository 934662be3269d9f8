"""Paths under which other products offer the same, for programs that were written for those.

``/api/kb/always-on`` is that of a chat server with knowledge bases, ``/api/v1/ai/rag`` that of an
agent platform, and ``/agents/{agent_id}`` that of an archive of conversations and documents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from memctl.errors import NotFoundError, UsageError
from memctl.identity import DEFAULT_SESSION, DEFAULT_USER, documents_of
from memctl.literals import ChunkStrategy, DocType, Mode
from memctl.operations.lookup import count_passages
from memctl.operations.operation_context import OperationContext
from memctl.plain_values import plain_rows, to_plain
from memctl.records import Filters, IngestReport
from memctl.server.http_calls import ShapeError, caller_of, calls_of, json_reply
from memctl.server.http_endpoints import (
    Endpoint,
    Listing,
    Place,
    changes_in,
    check_arguments,
    with_kb,
)
from memctl.server.http_routes import PageParameters, require_knowledge_base
from memctl.server.http_uploads import (
    IngestParameters,
    ingest_reply,
    receive,
    take_in,
    with_arguments,
)
from memctl.validation import Rule

if TYPE_CHECKING:
    from memctl.records import Document, QueryResult

Run = Callable[[OperationContext, Any, Place], object]
_MOST = 500
_NAME = "The knowledge base."


# --- a chat server with knowledge bases -----------------------------------------------------------


class NamedText(Struct, frozen=True, kw_only=True):
    """A text for a knowledge base."""

    kb_name: Annotated[str, Rule(_NAME)]
    text: Annotated[str, Rule("The text.")]
    source: Annotated[str, Rule("Where it is from.")] = "api"


class NamedKb(Struct, frozen=True, kw_only=True):
    """A knowledge base."""

    kb_name: Annotated[str, Rule(_NAME)]


class Confirmation(Struct, frozen=True, kw_only=True):
    """The name of what is to be emptied, once more."""

    confirm: Annotated[str, Rule("The name of the knowledge base.")] = ""


def _always_on(_: OperationContext, __: object, place: Place) -> object:
    return [
        {
            "kb_name": entry.name,
            "name": entry.name,
            "interval_minutes": entry.settings.consolidate_interval,
            "active": entry.settings.status == "active",
            "created_at": entry.settings.created_at,
        }
        for entry in place.calls.entries()
        if entry.settings is not None and entry.settings.always_on
    ]


def _ingest_text(context: OperationContext, parameters: NamedText, _: Place) -> object:
    return take_in(context, IngestParameters(text=parameters.text, source=parameters.source), None)


def _consolidate(context: OperationContext, _: NamedKb, __: Place) -> object:
    return context.writing().consolidate()


def _named_memories(context: OperationContext, parameters: PageParameters, _: Place) -> object:
    base = require_knowledge_base(context)
    filters = Filters(levels=("memory", "evidence"))
    rows = base.memories.list(filters, limit=parameters.limit, offset=parameters.offset)
    found = [
        {**row, "kb_name": base.name, "summary": row["text"]}
        for row in plain_rows(with_kb(base, rows))
    ]
    return Listing(found, base.memories.count(filters), parameters.offset).plain()


def _named_insights(context: OperationContext, parameters: PageParameters, _: Place) -> object:
    base = require_knowledge_base(context)
    rows = base.insights.list(limit=parameters.limit, offset=parameters.offset)
    found = [
        {**row, "kb_name": base.name, "insight": row["text"], "memory_ids": row["source_ids"]}
        for row in plain_rows(with_kb(base, rows))
    ]
    return Listing(found, base.insights.count(), parameters.offset).plain()


def _delete_named(context: OperationContext, _: object, place: Place) -> object:
    memories = context.writing().memories
    found = memories.get(place["id"]).memory.id
    return {"id": found, "deleted": memories.delete(found)}


def _clear(context: OperationContext, parameters: Confirmation, place: Place) -> object:
    name = place["kb_name"]
    if parameters.confirm != name:
        raise UsageError(f"all memories of {name!r} would go", f'send {{"confirm": "{name}"}}')
    context.close()
    return context.home.clear(name)


# --- an agent platform ----------------------------------------------------------------------------


class RagQuestion(Struct, frozen=True, kw_only=True):
    """A question to knowledge bases."""

    query: Annotated[str, Rule("The question, in words.")]
    mode: Annotated[Mode | None, Rule("How memories are found.")] = None
    top_k: Annotated[int, Rule("How many hits.", low=1, high=_MOST)] = 10
    similarity_threshold: Annotated[
        float | None, Rule("Least relevance of a hit.", low=0, high=1)
    ] = None
    max_rounds: Annotated[
        int | None, Rule("How many rounds agentic searches at most.", low=1, high=5)
    ] = None
    knowledge_base_ids: Annotated[tuple[str, ...], Rule("Knowledge bases to ask.")] = ()
    rerank: Annotated[bool, Rule("Whether a configured model orders the hits.")] = True
    fusion: Annotated[
        Literal["rrf", "weighted", "simple"] | None, Rule("How keywords and vectors are combined.")
    ] = None


class RagKb(Struct, frozen=True, kw_only=True):
    """A knowledge base to make."""

    name: Annotated[str, Rule("1 to 64 of a-z, 0-9, - and _.")]
    embedding_model: Annotated[str, Rule("The model of its vectors.")] = ""
    embedding_provider: Annotated[
        Literal["", "builtin", "endpoint", "onnx", "openai"] | None,
        Rule("Where its vectors are from; openai is the endpoint."),
    ] = None
    chunking_strategy: Annotated[ChunkStrategy | None, Rule("How text is cut.")] = None
    chunk_size: Annotated[int | None, Rule("Characters.", low=100, high=20_000)] = None
    chunk_overlap: Annotated[int | None, Rule("Characters.", low=0, high=10_000)] = None


def _data(value: object) -> dict[str, Any]:
    return {"success": True, "data": value}


def _ask(context: OperationContext, parameters: RagQuestion, *, answer: bool) -> QueryResult:
    from memctl.queries import QueryOptions

    options = QueryOptions(
        mode=parameters.mode,
        fusion=parameters.fusion,
        limit=parameters.top_k,
        threshold=parameters.similarity_threshold,
        rounds=parameters.max_rounds,
        answer=answer,
        rerank=parameters.rerank,
    )
    return context.reading().queries.ask(parameters.query, options)


def _rag_query(context: OperationContext, parameters: RagQuestion, _: Place) -> object:
    found = _ask(context, parameters, answer=True)
    answer = found.answer
    reply: dict[str, Any] = {
        "answer": answer.text if answer else "",
        "sources": to_plain(answer.citations if answer else ()),
        "total_results": found.total_results,
    }
    if found.mode == "agentic":
        reply["rounds"] = to_plain(found.rounds)
    return _data({**reply, "query_id": found.query_id, "mode": found.mode})


def _rag_search(context: OperationContext, parameters: RagQuestion, _: Place) -> object:
    found = _ask(context, parameters, answer=False)
    return _data(
        {
            "results": found.hits,
            "total_results": found.total_results,
            "query_id": found.query_id,
            "mode": found.mode,
        }
    )


def _rag_kb(context: OperationContext, parameters: RagKb, place: Place) -> object:
    place.calls.require_creatable(parameters.name)
    context.home.create(
        parameters.name,
        embedder=_embedder_of(parameters),
        chunk_strategy=parameters.chunking_strategy,
        chunk_size=parameters.chunk_size,
        chunk_overlap=parameters.chunk_overlap,
    )
    return _data(context.home.described(parameters.name))


def _embedder_of(parameters: RagKb) -> str:
    """Return the embedder of a new knowledge base as ``--embedder`` takes it; "" for the usual."""
    provider, model = parameters.embedding_provider, parameters.embedding_model
    if provider == "openai":
        provider = "endpoint"
    if provider == model:
        return model
    return "/".join(part for part in (provider, model) if part)


def _rag_process(context: OperationContext, _: SomeKb, place: Place) -> object:
    base = context.reading().owner("documents", place["id"])
    base.documents.get(place["id"])
    return _data(base.documents.reprocess([place["id"]]))


class SomeKb(Struct, frozen=True, kw_only=True):
    """Which knowledge base."""

    knowledge_base_ids: Annotated[tuple[str, ...], Rule("Knowledge bases to look in.")] = ()


class RagUpload(Struct, frozen=True, kw_only=True):
    """A document."""

    content: Annotated[str | None, Rule("The text, where there is no file.")] = None
    title: Annotated[str | None, Rule("What it is called.")] = None
    source: Annotated[str | None, Rule("Where it comes from.")] = None
    doc_type: Annotated[DocType | None, Rule("What it is.")] = None
    metadata: Annotated[Mapping[str, Any] | None, Rule("What else is known of it.")] = None


async def _rag_upload(request: Request) -> Response:
    """Ingest a document, sent as a form or as JSON."""
    calls = calls_of(request)
    named = request.query_params.get("knowledge_base_id")
    kb = calls.require_written(named)
    upload = await receive(request, kb)
    try:
        if "knowledge_base_id" in upload.arguments:  # by now it is kept beside another one
            raise ShapeError(
                "knowledge_base_id stands in the body",
                "put it into the address: ?knowledge_base_id=NAME",
            )
        parameters: RagUpload = check_arguments(RagUpload, upload.arguments, "a document")
    except UsageError:
        upload.discard()
        raise
    changed = with_arguments(
        upload, **{**changes_in(parameters, "content"), "text": parameters.content}
    )
    return await ingest_reply(
        request,
        kb,
        caller_of(request, kb),
        changed,
        lambda report: json_reply(_data(report), 201),
    )


# --- an archive of conversations and documents ----------------------------------------------------


class AgentUpload(Struct, frozen=True, kw_only=True):
    """A document for an agent."""

    content: Annotated[str | None, Rule("The text, where there is no file.")] = None
    doc_type: Annotated[DocType, Rule("What it is.")] = "text"
    namespace: Annotated[str | None, Rule("By default the documents of the user.")] = None
    title: Annotated[str | None, Rule("By default the name of the file.")] = None
    user_id: Annotated[str | None, Rule("Whose it is; else X-Memctl-User.")] = None
    session_id: Annotated[str, Rule("The conversation it came with.")] = DEFAULT_SESSION


class AgentSearch(Struct, frozen=True, kw_only=True):
    """A search in an agent's documents."""

    query: Annotated[str, Rule("What to look for, in words.")]
    namespaces: Annotated[tuple[str, ...], Rule("By default the documents of the user.")] = ()
    doc_types: Annotated[tuple[str, ...], Rule("Only documents of these types.")] = ()
    limit: Annotated[int, Rule("At most this many results.", low=1, high=50)] = 10
    use_reranking: Annotated[bool, Rule("Whether a configured model orders them.")] = True
    user_id: Annotated[str | None, Rule("Who asks; else X-Memctl-User.")] = None
    session_id: Annotated[str, Rule("The conversation.")] = DEFAULT_SESSION


class AgentDocuments(PageParameters, frozen=True, kw_only=True):
    """Which documents of an agent."""

    namespace: Annotated[str | None, Rule("By default the documents of the user.")] = None
    doc_type: Annotated[DocType | None, Rule("Only of this type.")] = None
    user_id: Annotated[str | None, Rule("Whose; else X-Memctl-User.")] = None


class OfUser(Struct, frozen=True, kw_only=True):
    """Whose document."""

    user_id: Annotated[str | None, Rule("Whose; else X-Memctl-User.")] = None


def _require_agent(context: OperationContext) -> None:
    """Refuse an agent that has no knowledge base, such as one that is not there.

    Raises:
        UsageError: It has none.
    """
    agent = context.identity.agent or ""
    if context.home.accounts.agent_path(agent) is None:
        raise UsageError(f"there is no agent {agent!r}", f"add it: memctl agent add {agent}")
    if "knowledge_base" not in context.resources:
        raise UsageError(f"agent {agent!r} has no knowledge base", "see memctl agent show")


def _of_agent(run: Run) -> Run:
    """Return an endpoint's function that first refuses an agent without a knowledge base."""

    def run_checked(context: OperationContext, parameters: Any, place: Place) -> object:
        """Carry it out for an agent that has one."""
        _require_agent(context)
        return run(context, parameters, place)

    return run_checked


async def _agent_upload(request: Request) -> Response:
    calls = calls_of(request)
    kb = calls.require_written(None)
    upload = await receive(request, kb)

    def reply_of(report: IngestReport) -> Response:
        """Reply with what became of the one document."""
        outcome = report.outcomes[0]
        id_ = outcome.document_id or ""

        def look_up(context: OperationContext) -> tuple[Document, int]:
            """Return the document, and how many passages it has."""
            base = require_knowledge_base(context)
            return base.documents.get(id_).document, count_passages(base, [id_])[id_]

        document, passages = calls.carry_out(caller, look_up)
        return json_reply(
            {
                "document_id": document.id,
                "title": document.title or None,
                "doc_type": document.doc_type,
                "namespace": document.namespace,
                "chunks_created": passages,
                "outcome": outcome.outcome,
            }
        )

    try:
        parameters = check_arguments(AgentUpload, upload.arguments, "a document")
        if (parameters.content is None) == (not upload.file):
            what = "a document is a file or content, and not both"
            raise UsageError(what if upload.file else "neither file nor content", "send one")
        caller = caller_of(request, kb)
        caller = replace(caller, user=parameters.user_id or caller.user, session=None)
        await calls.in_thread(lambda: calls.carry_out(caller, _require_agent))
    except BaseException:
        upload.discard()
        raise
    title = parameters.title or upload.file
    changed = with_arguments(
        upload,
        text=parameters.content,
        doc_type=_doc_type_of(parameters, upload.file, upload.arguments),
        namespace=parameters.namespace,
        title=title or None,
        source=title or None,
        metadata={"upload_session": parameters.session_id},
    )
    return await ingest_reply(request, kb, caller, changed, reply_of)


def _doc_type_of(
    parameters: AgentUpload, file: str, arguments: Mapping[str, Any]
) -> DocType | None:
    """Return the type of an upload; None, for a file without one, means by its format."""
    return parameters.doc_type if "doc_type" in arguments or not file else None


@_of_agent
def _agent_search(context: OperationContext, parameters: AgentSearch, _: Place) -> object:
    from memctl.queries import QueryOptions

    own = _own_documents(context)
    filters = Filters(namespaces=parameters.namespaces or (own,), doc_types=parameters.doc_types)
    options = QueryOptions(
        filters=filters, limit=parameters.limit, answer=False, rerank=parameters.use_reranking
    )
    hits = context.reading().queries.ask(parameters.query, options).hits
    results = [
        {
            "document_id": hit.document_id,
            "title": hit.title or None,
            "content": hit.text,
            "score": hit.relevance,
            "metadata": hit.metadata,
        }
        for hit in hits
    ]
    return {"query": parameters.query, "results": results, "total_results": len(results)}


@_of_agent
def _agent_documents(context: OperationContext, parameters: AgentDocuments, _: Place) -> object:
    filters = Filters(
        namespaces=(parameters.namespace or _own_documents(context),),
        doc_types=() if parameters.doc_type is None else (parameters.doc_type,),
    )
    bases, end = context.reading(), parameters.offset + parameters.limit
    found = [
        row
        for base in bases
        for row in plain_rows(with_kb(base, base.documents.list(filters, limit=end)))
    ]
    found.sort(key=lambda row: str(row["ingested_at"]), reverse=True)
    total = sum(base.documents.count(filters) for base in bases)
    return Listing(found[parameters.offset : end], total, parameters.offset).plain()


@_of_agent
def _agent_document(context: OperationContext, _: OfUser, place: Place) -> object:
    base = context.reading().owner("documents", place["doc_id"])
    view = base.documents.get(place["doc_id"])
    _check_own(context, view.document.namespace, place["doc_id"])
    return view


@_of_agent
def _delete_agent_document(context: OperationContext, _: OfUser, place: Place) -> object:
    base = context.reading().owner("documents", place["doc_id"])
    document = base.documents.get(place["doc_id"]).document
    _check_own(context, document.namespace, place["doc_id"])
    return {"document_id": document.id, "deleted": base.documents.delete(document.id)}


def _own_documents(context: OperationContext) -> str:
    return documents_of(context.home.config.namespaces, context.identity.user or DEFAULT_USER)


def _check_own(context: OperationContext, namespace: str, id_: str) -> None:
    """Treat a document that is not of the user as if it were not there.

    Raises:
        NotFoundError: It is not.
    """
    if namespace not in (_own_documents(context), context.home.config.namespaces.shared):
        raise NotFoundError(f"there is no document {id_!r}")


# --- the tables -----------------------------------------------------------------------------------

_A, _B, _E = "/api/kb/always-on", "/api/v1/ai/rag", "/agents/{agent_id}"
ALIASES: tuple[Endpoint, ...] = (
    Endpoint("GET", _A, "List always-on knowledge bases.", _always_on, of_home=True),
    Endpoint("POST", f"{_A}/ingest", "Remember a text.", _ingest_text, NamedText, "write"),
    Endpoint("POST", f"{_A}/consolidate", "Draw insights.", _consolidate, NamedKb, "write"),
    Endpoint(
        "GET", f"{_A}/{{kb_name}}/memories", "List memories.", _named_memories, PageParameters
    ),
    Endpoint(
        "GET", f"{_A}/{{kb_name}}/insights", "List insights.", _named_insights, PageParameters
    ),
    Endpoint(
        "DELETE", f"{_A}/{{kb_name}}/memory/{{id}}", "Delete a memory.", _delete_named,
        effect="destructive",
    ),
    Endpoint(
        "POST", f"{_A}/{{kb_name}}/clear", "Delete all memories.", _clear, Confirmation,
        "destructive",
    ),
    Endpoint("GET", f"{_B}/query", "Answer a question.", _rag_query, RagQuestion),
    Endpoint("POST", f"{_B}/query", "Answer a question.", _rag_query, RagQuestion),
    Endpoint("GET", f"{_B}/search", "Search documents.", _rag_search, RagQuestion),
    Endpoint("POST", f"{_B}/search", "Search documents.", _rag_search, RagQuestion),
    Endpoint(
        "POST", f"{_B}/knowledge_bases", "Make a knowledge base.", _rag_kb, RagKb, "write", 201,
        of_home=True,
    ),
    Endpoint(
        "POST", f"{_B}/documents/{{id}}/process", "Read a document again.", _rag_process, SomeKb,
        "write",
    ),
    Endpoint("POST", f"{_E}/documents/search", "Search documents.", _agent_search, AgentSearch),
    Endpoint("POST", f"{_E}/search", "Search documents.", _agent_search, AgentSearch),
    Endpoint("GET", f"{_E}/documents", "List documents.", _agent_documents, AgentDocuments),
    Endpoint("GET", f"{_E}/documents/{{doc_id}}", "Show a document.", _agent_document, OfUser),
    Endpoint(
        "DELETE", f"{_E}/documents/{{doc_id}}", "Delete a document.", _delete_agent_document,
        OfUser, "destructive",
    ),
)  # fmt: skip


def alias_routes() -> Sequence[BaseRoute]:
    """Return the routes of uploads, which are no JSON."""
    return (
        Route(f"{_B}/documents", _rag_upload, methods=["POST"]),
        Route(f"{_E}/documents/", _agent_upload, methods=["POST"]),
        Route(f"{_E}/documents", _agent_upload, methods=["POST"]),
    )
