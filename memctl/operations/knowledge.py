"""Operations on knowledge bases by name: asked, searched, counted and consolidated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from memctl.literals import Mode
from memctl.operations.finding import (
    RERANK,
    AnswerParameters,
    AnswerReply,
    SearchReply,
    answer,
    found_passage,
    opened,
    without_unrelated,
)
from memctl.operations.operation_context import OperationContext
from memctl.operations.parameters import parse_names
from memctl.plain_values import to_plain
from memctl.records import Level, record_like
from memctl.validation import Rule

_KB = "A knowledge base, or a list of them; by default all that may be read."
_SINCE = "Only from that date on: 2026-03-01, 7d, today."
_MOST = 50


class QueryParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``query_knowledge_base``."""

    question: Annotated[str, Rule("The question, in words.")]
    knowledge_base: Annotated[Any, Rule(_KB)] = None
    mode: Annotated[Mode | None, Rule("How memories are found.")] = None
    top_k: Annotated[int, Rule("How many hits are searched.", low=1, high=_MOST)] = 10
    since: Annotated[str | None, Rule(_SINCE)] = None
    until: Annotated[str | None, Rule("Only before that date.")] = None
    namespace: Annotated[str | None, Rule("Only this namespace.")] = None
    tags: Annotated[tuple[str, ...], Rule("Only with one of these tags.")] = ()
    rerank: Annotated[bool, Rule(RERANK)] = True


def query_knowledge_base(context: OperationContext, parameters: QueryParameters) -> AnswerReply:
    """Answer as ``memctl query -k NAME`` does."""
    with context.limited_to(parse_names(parameters.knowledge_base, "knowledge_base")) as limited:
        return answer(limited, record_like(AnswerParameters, parameters))


class FindParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``search_documents``, ``search_memory`` and ``search_knowledge``."""

    query: Annotated[str, Rule("What to look for, in words.")]
    knowledge_base: Annotated[Any, Rule(_KB)] = None
    mode: Annotated[Mode | None, Rule("How memories are found.")] = None
    top_k: Annotated[int, Rule("At most this many results.", low=1, high=_MOST)] = 10
    since: Annotated[str | None, Rule(_SINCE)] = None
    until: Annotated[str | None, Rule("Only before that date.")] = None
    tags: Annotated[tuple[str, ...], Rule("Only with one of these tags.")] = ()
    rerank: Annotated[bool, Rule(RERANK)] = True


def search_documents(context: OperationContext, parameters: FindParameters) -> SearchReply:
    """Find passages of documents, verbatim."""
    return _find_documents(context, parameters, "documents", ("evidence",))


def search_memory(context: OperationContext, parameters: FindParameters) -> SearchReply:
    """Find what was understood and stated: facts, decisions, insights."""
    return _find_documents(context, parameters, "all", ("memory", "insight"))


def search_knowledge(context: OperationContext, parameters: FindParameters) -> SearchReply:
    """Find passages and memories together."""
    return _find_documents(context, parameters, "all", ())


def _find_documents(
    context: OperationContext,
    parameters: FindParameters,
    search_type: Literal["documents", "all"],
    levels: tuple[Level, ...],
) -> SearchReply:
    from memctl.queries import QueryOptions

    with context.limited_to(parse_names(parameters.knowledge_base, "knowledge_base")) as limited:
        filters = limited.filters(
            search_type, tags=parameters.tags, since=parameters.since, until=parameters.until
        )
        options = QueryOptions(
            mode=parameters.mode,
            filters=replace(filters, levels=levels),
            limit=parameters.top_k,
            answer=False,
            rerank=parameters.rerank,
        )
        hits = opened(limited).queries.ask(parameters.query, options).hits
    related = without_unrelated(parameters.query, hits)
    results = tuple(found_passage(number, hit) for number, hit in enumerate(related, start=1))
    return SearchReply(parameters.query, search_type, len(results), results)


class NoKnowledgeBaseParameters(Struct, frozen=True):
    """Of ``memory_stats``, which takes none."""


class KnowledgeBaseCounts(Struct, frozen=True):
    """One knowledge base in numbers."""

    kb: str
    statistics: Mapping[str, Any]


class MemoryStatistics(Struct, frozen=True):
    """The knowledge bases that may be read, in numbers."""

    knowledge_bases: tuple[KnowledgeBaseCounts, ...]


def memory_stats(context: OperationContext, _: NoKnowledgeBaseParameters) -> MemoryStatistics:
    """Count as ``memctl stats`` does; of a user, only what is open to that user is named."""
    user = context.identity.user
    return MemoryStatistics(
        tuple(
            KnowledgeBaseCounts(
                base.name,
                to_plain(base.statistics.content())
                if user is None
                else {
                    name: count
                    for name, count in base.statistics.namespaces().items()
                    if context.reads(base, name)
                },
            )
            for base in opened(context)
        )
    )


class ConsolidateParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``consolidate_memory``."""

    knowledge_base: Annotated[str | None, Rule("Which; by default the one written to.")] = None
    dry_run: Annotated[bool, Rule("Write nothing; only say what would be drawn.")] = False


class ConsolidationReply(Struct, frozen=True):
    """What memories say together that is new."""

    kb: str
    examined: int
    insights: tuple[str, ...]
    waiting: int
    dry_run: bool


def consolidate_memory(
    context: OperationContext, parameters: ConsolidateParameters
) -> ConsolidationReply:
    """Draw insights as ``memctl consolidate`` does."""
    names = () if parameters.knowledge_base is None else (parameters.knowledge_base,)
    with context.limited_to(names) as limited:
        base = limited.reading_existing()
        report = base.insights.consolidate(dry_run=parameters.dry_run, progress=limited.progress)
        # What is drawn may be of other users, or quote documents.
        is_open = limited.identity.user is None and "knowledge_base" in limited.resources
        texts = tuple(each.text for each in report.insights) if is_open else ()
        return ConsolidationReply(
            base.name, report.examined, texts, report.waiting, parameters.dry_run
        )
