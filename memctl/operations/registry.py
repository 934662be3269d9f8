"""Every operation, declared once: tool definitions, MCP, HTTP and help are made from this list.

To add one, write its function and its dataclasses in a module beside this one, and an entry here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from memctl.errors import UsageError
from memctl.operations.finding import (
    AnswerParameters,
    AnswerReply,
    ContextParameters,
    CurrentDatetime,
    FeedbackParameters,
    FeedbackReply,
    InsightsParameters,
    NoParameters,
    PastConversations,
    PastConversationsParameters,
    RecentInsights,
    SearchParameters,
    SearchReply,
    answer,
    answer_text,
    context_block,
    context_text,
    feedback,
    get_current_datetime,
    recent_insights,
    search_knowledge_base,
    search_past_conversations,
    search_text,
)
from memctl.operations.lookup import (
    DocumentList,
    DocumentText,
    GetDocumentParameters,
    GraphSearchParameters,
    GraphSearchReply,
    ListDocumentsParameters,
    ListSessionsParameters,
    NeighborsParameters,
    NeighborsReply,
    SessionList,
    get_document,
    get_graph_neighbors,
    list_documents,
    list_sessions,
    search_knowledge_graph,
)
from memctl.operations.operation_context import OperationContext, Resource
from memctl.operations.remembering import (
    ForgetParameters,
    ForgetReply,
    MemoryReply,
    RememberParameters,
    StoreParameters,
    StoreReply,
    UpdateParameters,
    forget_memory,
    remember,
    store_important_information,
    update_memory,
)
from memctl.operations.shared_memory import (
    ReadPoolParameters,
    SharedChange,
    SharedValue,
    WritePoolParameters,
    read_shared_memory,
    write_shared_memory,
)
from memctl.records import Context
from memctl.validation import nearest

Effect = Literal["read", "write", "destructive"]


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that a caller can ask for.

    ``run`` takes the context and the parameters, and returns the result.
    """

    name: str
    description: str
    """In one line, for whoever chooses among operations, usually a model."""
    parameters: type[Any]
    """A frozen dataclass whose fields are declared with ``parameter``."""
    result: type[Any]
    """A frozen dataclass."""
    run: Callable[[OperationContext, Any], Any]
    effect: Effect = "read"
    resource: Resource | None = None
    """What its caller must have."""
    text: Callable[[Any], str] | None = None
    """Returns a result as text, where that reads better than JSON."""
    is_recall: bool = True
    """Whether its result has words from memory, which are data and no instructions."""
    failure: str = ""
    """What stands before the message of an error."""
    alias_of: str = ""
    """The operation of which this is another form, for those that may use it."""


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "search_knowledge_base",
        "Look for information in the knowledge base, past conversations and documents included.",
        SearchParameters,
        SearchReply,
        search_knowledge_base,
        resource="knowledge_base",
        text=search_text,
    ),
    Operation(
        "list_documents",
        "List the documents in the knowledge base, the latest first.",
        ListDocumentsParameters,
        DocumentList,
        list_documents,
        resource="knowledge_base",
    ),
    Operation(
        "get_document",
        "Read the text of one document, piece by piece if it is long.",
        GetDocumentParameters,
        DocumentText,
        get_document,
        resource="knowledge_base",
    ),
    Operation(
        "get_current_datetime",
        "Tell the current date and time.",
        NoParameters,
        CurrentDatetime,
        get_current_datetime,
        is_recall=False,
    ),
    Operation(
        "search_past_conversations",
        "Search what this user said, and what was stored for them, in earlier conversations.",
        PastConversationsParameters,
        PastConversations,
        search_past_conversations,
        resource="memory",
        failure="Error searching memories",
    ),
    Operation(
        "store_important_information",
        "Store something important about this user or their work for later conversations.",
        StoreParameters,
        StoreReply,
        store_important_information,
        effect="write",
        resource="memory",
        failure="Error storing information",
    ),
    Operation(
        "answer",
        "Answer a question from memory, with citations, or say that memory does not know.",
        AnswerParameters,
        AnswerReply,
        answer,
        resource="knowledge_base",
        text=answer_text,
    ),
    Operation(
        "context",
        "Get what is known about a question within a budget of tokens, to read before answering.",
        ContextParameters,
        Context,
        context_block,
        resource="memory",
        text=context_text,
    ),
    Operation(
        "feedback",
        "Say whether an answer was good or bad, by the query_id that came with it.",
        FeedbackParameters,
        FeedbackReply,
        feedback,
        effect="write",
        resource="knowledge_base",
        is_recall=False,
    ),
    Operation(
        "remember",
        "Remember one statement: a fact, decision, preference or plan.",
        RememberParameters,
        MemoryReply,
        remember,
        effect="write",
        resource="memory",
    ),
    Operation(
        "update_memory",
        "Correct a memory: write a new version of it; the old one stays in its history.",
        UpdateParameters,
        MemoryReply,
        update_memory,
        effect="write",
        resource="memory",
    ),
    Operation(
        "forget_memory",
        "Forget a memory for good; without confirm it only says what would go.",
        ForgetParameters,
        ForgetReply,
        forget_memory,
        effect="destructive",
        resource="memory",
    ),
    Operation(
        "recent_insights",
        "List what memories say together: changes, contradictions, deadlines, recurring things.",
        InsightsParameters,
        RecentInsights,
        recent_insights,
        resource="memory",
    ),
    Operation(
        "list_sessions",
        "List earlier conversations, the latest first.",
        ListSessionsParameters,
        SessionList,
        list_sessions,
        resource="memory",
    ),
    Operation(
        "read_shared_memory",
        "Read a value that agents share in a pool, or all of the pool.",
        ReadPoolParameters,
        SharedValue,
        read_shared_memory,
        resource="memory",
    ),
    Operation(
        "write_shared_memory",
        "Write a value that other agents can read into a shared pool.",
        WritePoolParameters,
        SharedChange,
        write_shared_memory,
        effect="write",
        resource="memory",
    ),
    Operation(
        "search_knowledge_graph",
        "Find people, places and things by name, and what they are connected with.",
        GraphSearchParameters,
        GraphSearchReply,
        search_knowledge_graph,
        resource="knowledge_base",
    ),
    Operation(
        "get_graph_neighbors",
        "List what is connected with a name.",
        NeighborsParameters,
        NeighborsReply,
        get_graph_neighbors,
        resource="knowledge_base",
    ),
)


def find_operation(name: str) -> Operation:
    """Return the operation of that name.

    Raises:
        UsageError: There is none.
    """
    found = {operation.name: operation for operation in OPERATIONS}
    if name not in found:
        hint = nearest(name, found) or "memctl tool list lists them"
        raise UsageError(f"there is no tool {name[:80]!r}", hint)
    return found[name]
