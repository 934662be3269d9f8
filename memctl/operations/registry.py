"""Every operation, declared once: tool definitions, MCP, HTTP and help are made from this list.

To add one, write its function, its parameters and its result in a module beside this one, and an
entry here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Literal, get_type_hints

from msgspec import Struct

from memctl.errors import UsageError
from memctl.literals import Resource
from memctl.operations.adding_documents import (
    add_document,
    link_mention,
    process_document,
    revise_document,
)
from memctl.operations.agent_skills import (
    discover_skills,
    get_skill_context,
    list_skills,
    propose_skill,
    read_skill_file,
    record_skill_outcome,
    skill_text,
)
from memctl.operations.finding import (
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
from memctl.operations.judging_answers import (
    enrich,
    get_prompt,
    give_feedback,
    list_feedback,
    list_prompts,
    reflect,
)
from memctl.operations.knowledge import (
    consolidate_memory,
    memory_stats,
    query_knowledge_base,
    search_documents,
    search_knowledge,
    search_memory,
)
from memctl.operations.lookup import (
    get_document,
    get_graph_neighbors,
    list_documents,
    list_sessions,
    search_knowledge_graph,
)
from memctl.operations.memory_files import is_view_only, memory_file, memory_file_text
from memctl.operations.operation_context import OperationContext
from memctl.operations.page_links import (
    backlinks,
    check_links,
    embed_document,
    extract_links,
    missing_links,
    page_links,
    related_pages,
    unlinked_mentions,
)
from memctl.operations.remembering import (
    forget_memory,
    remember,
    store_important_information,
    update_memory,
)
from memctl.operations.shared_memory import (
    consolidate_memory_tiers,
    create_memory_pool,
    delete_memory_pool,
    grant_memory_pool,
    list_memory_pools,
    memory_pool_stats,
    memory_tier_stats,
    read_memory_tier,
    read_shared_memory,
    search_memory_tiers,
    write_memory_tier,
    write_shared_memory,
)
from memctl.operations.understanding_work import list_work, next_work, submit_work, work_text
from memctl.operations.upkeep_tools import (
    add_learning,
    audit_trail,
    confirm_learning,
    daily_summary,
    list_upkeep_jobs,
    query_learnings,
    restore_memory,
    run_upkeep_job,
    upkeep_report,
)
from memctl.validation import nearest

Effect = Literal["read", "write", "destructive"]


class Operation(Struct, frozen=True):
    """One thing that a caller can ask for.

    ``run`` takes the context and the parameters, and returns the result.  Its annotations say what
    both are.
    """

    name: str
    description: str
    """One line, for choosing among operations, usually by a model."""
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
    """The operation that this one is an alias of, for callers that may use that one."""
    topic: str = ""
    """The set that it belongs to, for servers that offer some; by default that of its module."""
    is_idempotent: bool = True
    """Whether a second call with the same arguments changes nothing more."""
    only_reads: Callable[[Any], bool] | None = None
    """Tells of parameters whether it only reads with them; by default as ``effect`` says."""

    @property
    def parameters(self) -> type[Any]:
        """A frozen record whose fields are annotated with a ``Rule``."""
        return _records_of(self.run)[0]

    @property
    def result(self) -> type[Any]:
        """A record."""
        return _records_of(self.run)[1]

    def effect_of(self, parameters: object) -> Effect:
        """Return what it does with some parameters."""
        return (
            "read" if self.only_reads is not None and self.only_reads(parameters) else self.effect
        )

    @property
    def toolset(self) -> str:
        """The set that it belongs to."""
        return self.topic or self.run.__module__.rpartition(".")[2]


@cache
def _records_of(run: Callable[..., Any]) -> tuple[type[Any], type[Any]]:
    """Return the records of the parameters and of the result that a function is annotated with."""
    _, parameters, result = get_type_hints(run).values()
    return parameters, result


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "search_knowledge_base",
        "Look for information in the knowledge base, past conversations and documents included.",
        search_knowledge_base,
        resource="knowledge_base",
        text=search_text,
        topic="documents",
    ),
    Operation(
        "list_documents",
        "List the documents in the knowledge base, the latest first.",
        list_documents,
        resource="knowledge_base",
        topic="documents",
    ),
    Operation(
        "get_document",
        "Read the text of one document, piece by piece if it is long.",
        get_document,
        resource="knowledge_base",
        topic="documents",
    ),
    Operation(
        "get_current_datetime",
        "Tell the current date and time.",
        get_current_datetime,
        is_recall=False,
    ),
    Operation(
        "search_past_conversations",
        "Search what this user said, and what was stored for them, in earlier conversations.",
        search_past_conversations,
        resource="memory",
        failure="Error searching memories",
    ),
    Operation(
        "store_important_information",
        "Store something important about this user or their work for later conversations.",
        store_important_information,
        effect="write",
        resource="memory",
        failure="Error storing information",
    ),
    Operation(
        "answer",
        "Answer a question from memory, with citations, or say that memory does not know.",
        answer,
        resource="knowledge_base",
        text=answer_text,
    ),
    Operation(
        "context",
        "Get what is known about a question within a budget of tokens, to read before answering.",
        context_block,
        resource="memory",
        text=context_text,
    ),
    Operation(
        "feedback",
        "Say whether an answer was good or bad, by the query_id that came with it.",
        feedback,
        effect="write",
        resource="knowledge_base",
        is_recall=False,
    ),
    Operation(
        "remember",
        "Remember one statement: a fact, decision, preference or plan.",
        remember,
        effect="write",
        resource="memory",
    ),
    Operation(
        "update_memory",
        "Correct a memory: write a new version of it; the old one stays in its history.",
        update_memory,
        effect="write",
        resource="memory",
    ),
    Operation(
        "forget_memory",
        "Forget a memory for good; without confirm it only says what would go.",
        forget_memory,
        effect="destructive",
        resource="memory",
    ),
    Operation(
        "recent_insights",
        "List what memories say together: changes, contradictions, deadlines, recurring things.",
        recent_insights,
        resource="memory",
    ),
    Operation(
        "list_sessions",
        "List earlier conversations, the latest first.",
        list_sessions,
        resource="memory",
    ),
    Operation(
        "read_shared_memory",
        "Read a value that agents share in a pool, or all of the pool.",
        read_shared_memory,
        resource="memory",
        topic="pools",
    ),
    Operation(
        "write_shared_memory",
        "Write a value that other agents can read into a shared pool.",
        write_shared_memory,
        effect="write",
        resource="memory",
        topic="pools",
        is_idempotent=False,
    ),
    Operation(
        "search_knowledge_graph",
        "Find people, places and things by name, and what they are connected with.",
        search_knowledge_graph,
        resource="knowledge_base",
        topic="graph",
    ),
    Operation(
        "get_graph_neighbors",
        "List what is connected with a name.",
        get_graph_neighbors,
        resource="knowledge_base",
        topic="graph",
    ),
    Operation(
        "list_memory_pools",
        "List the shared pools that may be read.",
        list_memory_pools,
        resource="memory",
        topic="pools",
    ),
    Operation(
        "memory_pool_stats",
        "Tell how big a shared pool is, and which agents read and write it.",
        memory_pool_stats,
        resource="memory",
        topic="pools",
    ),
    Operation(
        "create_memory_pool",
        "Make a pool of values that several agents share.",
        create_memory_pool,
        effect="write",
        resource="memory",
        is_recall=False,
        topic="pools",
    ),
    Operation(
        "grant_memory_pool",
        "Let another agent read or write a shared pool that you own, or no more.",
        grant_memory_pool,
        effect="write",
        resource="memory",
        is_recall=False,
        topic="pools",
    ),
    Operation(
        "delete_memory_pool",
        "Delete a shared pool with its history; only its owner may.",
        delete_memory_pool,
        effect="destructive",
        resource="memory",
        is_recall=False,
        topic="pools",
    ),
    Operation(
        "read_memory_tier",
        "Read a value that you keep by key, from working memory, short-term, shared or long-term.",
        read_memory_tier,
        resource="memory",
        topic="tiers",
    ),
    Operation(
        "write_memory_tier",
        "Keep a value by key for minutes, for hours or for good.",
        write_memory_tier,
        effect="write",
        resource="memory",
        topic="tiers",
    ),
    Operation(
        "search_memory_tiers",
        "Find by meaning what short-term entries, memories and shared pools of one knowledge base"
        " say, the one that is written to; search_knowledge_base asks all.",
        search_memory_tiers,
        resource="memory",
        topic="tiers",
    ),
    Operation(
        "consolidate_memory_tiers",
        "Make memories of the short-term entries of a conversation that were read often.",
        consolidate_memory_tiers,
        effect="write",
        resource="memory",
        topic="tiers",
    ),
    Operation(
        "memory_tier_stats",
        "Count what working memory, short-term and long-term memory and shared pools hold.",
        memory_tier_stats,
        resource="memory",
        is_recall=False,
        topic="tiers",
    ),
    Operation(
        "query_knowledge_base",
        "Answer a question from one or several knowledge bases, with citations.",
        query_knowledge_base,
        resource="knowledge_base",
        text=answer_text,
    ),
    Operation(
        "search_documents",
        "Find passages of documents.",
        search_documents,
        resource="knowledge_base",
        text=search_text,
        topic="documents",
    ),
    Operation(
        "search_memory",
        "Find facts, decisions and insights.",
        search_memory,
        resource="memory",
        text=search_text,
    ),
    Operation(
        "search_knowledge",
        "Find passages of documents and memories together.",
        search_knowledge,
        resource="knowledge_base",
        text=search_text,
    ),
    Operation(
        "memory_stats",
        "Count what the knowledge bases hold.",
        memory_stats,
        resource="knowledge_base",
        topic="upkeep",
    ),
    Operation(
        "consolidate_memory",
        "Draw insights from memories that belong together; nothing is deleted.",
        consolidate_memory,
        effect="write",
        resource="memory",
        topic="upkeep",
        is_idempotent=False,
    ),
    Operation(
        "add_document",
        "Take in a document: its text, or a file of an allowed folder.",
        add_document,
        effect="write",
        resource="knowledge_base",
    ),
    Operation(
        "process_document",
        "Read a document again from where it is.",
        process_document,
        effect="write",
        resource="knowledge_base",
    ),
    Operation(
        "revise_document",
        "Change the text of a document; refused if it has changed since it was read.",
        revise_document,
        effect="write",
        resource="knowledge_base",
        is_recall=False,
        topic="documents",
    ),
    Operation(
        "link_mention",
        "Make a link of a place where a document names another one without a link.",
        link_mention,
        effect="write",
        resource="knowledge_base",
        topic="page_links",
    ),
    Operation(
        "list_work",
        "List what waits for understanding: documents, facts to compare, groups, answers.",
        list_work,
        resource="knowledge_base",
        topic="work",
    ),
    Operation(
        "next_work",
        "Get one thing to understand, with instructions and the shape of the reply.",
        next_work,
        resource="knowledge_base",
        text=work_text,
        is_recall=False,
        topic="work",
    ),
    Operation(
        "submit_work",
        "Reply to what next_work gave; quotes are checked against the text.",
        submit_work,
        effect="write",
        resource="knowledge_base",
        is_recall=False,
        topic="work",
    ),
    Operation(
        "discover_skills",
        "Find skills for what is to be done; read one with get_skill_context before using it.",
        discover_skills,
        resource="knowledge_base",
        topic="skills",
    ),
    Operation(
        "get_skill_context",
        "Read a skill: its text, what it requires, conflicts, and what is known of the task.",
        get_skill_context,
        resource="knowledge_base",
        text=skill_text,
        topic="skills",
    ),
    Operation(
        "read_skill_file",
        "Read a file that came with a skill, such as a reference or a script.",
        read_skill_file,
        resource="knowledge_base",
        topic="skills",
    ),
    Operation(
        "list_skills",
        "List skills by category and status.",
        list_skills,
        resource="knowledge_base",
        topic="skills",
    ),
    Operation(
        "propose_skill",
        "Propose a skill that is missing; a person reviews it before it can be used.",
        propose_skill,
        effect="write",
        resource="knowledge_base",
        topic="skills",
        is_idempotent=False,
    ),
    Operation(
        "record_skill_outcome",
        "Say how the use of a skill went, and what is to be learned from it.",
        record_skill_outcome,
        effect="write",
        resource="knowledge_base",
        is_recall=False,
        topic="skills",
        is_idempotent=False,
    ),
    Operation(
        "give_feedback",
        "Judge an answer or a conversation: a score, words, and what it should have been.",
        give_feedback,
        effect="write",
        resource="memory",
        is_recall=False,
        is_idempotent=False,
    ),
    Operation(
        "list_feedback",
        "List how answers and conversations were judged, the latest first.",
        list_feedback,
        resource="memory",
    ),
    Operation(
        "reflect",
        "Look back: what went badly, what memory lacks, and what could be done about it.",
        reflect,
        effect="write",
        resource="memory",
        is_idempotent=False,
    ),
    Operation(
        "get_prompt",
        "Get the version of a prompt that a conversation uses.",
        get_prompt,
        effect="write",
        resource="memory",
        is_recall=False,
    ),
    Operation(
        "list_prompts",
        "List the versions of prompts, with how often they are used and how well they do.",
        list_prompts,
        resource="memory",
        is_recall=False,
    ),
    Operation(
        "enrich",
        "Ask a program of the user's about something, and keep what it says as documents.",
        enrich,
        effect="write",
        resource="knowledge_base",
        is_idempotent=False,
    ),
    Operation(
        "page_links",
        "List where a document links to, and which of its links lead nowhere.",
        page_links,
        resource="knowledge_base",
    ),
    Operation(
        "backlinks",
        "List the documents that link to a document.",
        backlinks,
        resource="knowledge_base",
    ),
    Operation(
        "unlinked_mentions",
        "List the documents that name a document without linking to it, with the places.",
        unlinked_mentions,
        resource="knowledge_base",
    ),
    Operation(
        "related_pages",
        "List the documents that are about the same as a document, by meaning.",
        related_pages,
        resource="knowledge_base",
    ),
    Operation(
        "missing_links",
        "List the names that links between documents use and no document has.",
        missing_links,
        resource="knowledge_base",
    ),
    Operation(
        "check_links",
        "Look for broken and ambiguous links between documents, and notes without any.",
        check_links,
        resource="knowledge_base",
    ),
    Operation(
        "extract_links",
        "Find the links of a document in its text again.",
        extract_links,
        effect="write",
        resource="knowledge_base",
        is_recall=False,
    ),
    Operation(
        "embed_document",
        "Make the vectors of a document anew from its text.",
        embed_document,
        effect="write",
        resource="knowledge_base",
        is_recall=False,
    ),
    Operation(
        "memory",
        "Keep files below /memories: view, create, str_replace, insert, delete or rename them.",
        memory_file,
        effect="destructive",
        resource="memory",
        text=memory_file_text,
        only_reads=is_view_only,
        is_idempotent=False,
    ),
    Operation(
        "query_learnings",
        "List lessons from experience, the most important or nearest first.",
        query_learnings,
        resource="memory",
    ),
    Operation(
        "add_learning",
        "Store a lesson from experience; one that is there is confirmed by it.",
        add_learning,
        effect="write",
        resource="memory",
        is_idempotent=False,
    ),
    Operation(
        "confirm_learning",
        "Say that a learning proved right again.",
        confirm_learning,
        effect="write",
        resource="memory",
        is_recall=False,
    ),
    Operation(
        "restore_memory",
        "Bring back a memory that upkeep has archived.",
        restore_memory,
        effect="write",
        resource="memory",
    ),
    Operation(
        "list_upkeep_jobs",
        "List what runs by itself: when it runs, when it ran last, what it did.",
        list_upkeep_jobs,
        resource="knowledge_base",
        is_recall=False,
    ),
    Operation(
        "run_upkeep_job",
        "Run one job of upkeep now.",
        run_upkeep_job,
        effect="write",
        resource="knowledge_base",
        is_recall=False,
        is_idempotent=False,
    ),
    Operation(
        "upkeep_report",
        "List memories to look at: stale, contradicted, judged bad.",
        upkeep_report,
        resource="memory",
    ),
    Operation(
        "daily_summary",
        "Summarise one day: documents, decisions, contradictions, open questions.",
        daily_summary,
        resource="knowledge_base",
    ),
    Operation(
        "audit_trail",
        "List who changed what, the latest first.",
        audit_trail,
        resource="knowledge_base",
        is_recall=False,
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
