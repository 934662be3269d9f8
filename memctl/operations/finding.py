"""Operations that find and answer: passages, conversations, answers, context, insights, the time.

Each asks as ``memctl query``, ``context`` or ``insight list`` do; limits are those of the caller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import KnowledgeBaseNotFound, NotFoundError
from memctl.formatting import format_count
from memctl.language.inline_tags import without_wikilinks
from memctl.literals import Mode, Verdict
from memctl.operations.operation_context import (
    NO_KNOWLEDGE_BASE,
    NOTHING_YET,
    OperationContext,
    SearchType,
    Unavailable,
)
from memctl.plain_values import plain_rows
from memctl.records import Citation, Context, Level, record_like
from memctl.validation import Rule

if TYPE_CHECKING:
    from memctl.graph.graph_views import GraphView
    from memctl.graph.name_index import Node
    from memctl.knowledge_base import KnowledgeBase, KnowledgeBases
    from memctl.records import Filters, Hit
    from memctl.store.ledger.session_repositories import Session

FoundT = TypeVar("FoundT")

_MOST = 50
_MAX_TOKENS = 20_000
_SINCE = "Only from that date on: 2026-03-01, 7d, today."
_UNTIL = "Only before that date."
_NAMESPACE = "Only this namespace."
_TAGS = "Only with one of these tags."
RERANK = "Whether a configured model orders the hits."


# --- passages -------------------------------------------------------------------------------------


class SearchParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``search_knowledge_base``."""

    query: Annotated[str, Rule("What to look for, in words.")]
    search_type: Annotated[SearchType, Rule("Where: past conversations, documents, or all.")] = (
        "all"
    )
    limit: Annotated[int, Rule("At most this many results.", low=1, high=_MOST)] = 5


class FoundPassage(Struct, frozen=True):
    """One result of a search, best first."""

    number: int
    title: str
    text: str
    source: str
    date: datetime
    session_id: str | None
    relevance: float
    """How near its meaning is to the query, 0 to 1; unlike a score, the same in every search."""
    kb: str
    memory_id: str
    document_id: str | None
    level: Level
    type: str
    namespace: str


class SearchReply(Struct, frozen=True):
    """What a search found."""

    query: str
    search_type: str
    results_count: int
    results: tuple[FoundPassage, ...]


def search_knowledge_base(context: OperationContext, parameters: SearchParameters) -> SearchReply:
    """Search as ``memctl query --no-answer`` does, in the namespaces of the search type."""
    hits = _hits(
        context, parameters.query, context.filters(parameters.search_type), parameters.limit
    )
    results = tuple(found_passage(number, hit) for number, hit in enumerate(hits, start=1))
    return SearchReply(parameters.query, parameters.search_type, len(results), results)


def search_text(reply: SearchReply) -> str:
    """Return what was found as text, numbered for citing."""
    if not reply.results:
        return f"Nothing was found for {reply.query!r}."
    paragraphs = [
        f"{format_count(reply.results_count, 'result')} for {reply.query!r}; cite them by [n]."
    ]
    for found in reply.results:
        name = found.title or (f"session {found.session_id}" if found.session_id else found.source)
        paragraphs.append(
            f"[{found.number}] {name} ({found.date:%Y-%m-%d})\n{found.text}\n"
            f"source: {found.source}, relevance {found.relevance:.2f}"
        )
    return "\n\n".join(paragraphs)


def opened(context: OperationContext, otherwise: str = NOTHING_YET) -> KnowledgeBases:
    """Return the knowledge bases to read.

    Args:
        context: For whom.
        otherwise: What is said where there is none at all, and no agent is named.

    Raises:
        Unavailable: There is none at all.
    """
    try:
        return context.reading()
    except KnowledgeBaseNotFound as error:
        message = NO_KNOWLEDGE_BASE if context.identity.agent else otherwise
        raise Unavailable(message, error.hint) from error


def first_with(
    bases: Iterable[KnowledgeBase], find: Callable[[KnowledgeBase], FoundT], otherwise: str
) -> tuple[KnowledgeBase, FoundT]:
    """Return the first knowledge base in which something is found, and what was found.

    Args:
        bases: Where to look.
        find: Returns it, or raises NotFoundError.
        otherwise: What is said where there is no knowledge base.

    Raises:
        NotFoundError: None has it.
    """
    missing: NotFoundError | None = None
    for base in bases:
        try:
            return base, find(base)
        except NotFoundError as error:
            missing = missing or error
    raise missing or NotFoundError(otherwise)


def find_in_graphs(
    context: OperationContext, bases: Sequence[KnowledgeBase] | KnowledgeBases, name: str
) -> tuple[KnowledgeBase, GraphView, Node]:
    """Return the node that a name means, with the first knowledge base that has it, and its graph.

    A part of a name will do if no node has exactly that name and only one name contains it.

    Raises:
        NotFoundError: There is none.
    """
    views: dict[str, GraphView] = {}

    def find(base: KnowledgeBase) -> Node:
        """Return the node that is called that."""
        views[base.name] = base.graph.view(context.filters())
        return views[base.name].find(name)[0]

    try:
        base, node = first_with(bases, find, f"nothing in the graph is called {name!r}")
    except NotFoundError:
        found = [(base, node) for base in bases for node in views[base.name].named_with(name)]
        if len({node.id for _, node in found}) != 1:
            raise
        base, node = found[0]
    return base, views[base.name], node


def readable_session(
    context: OperationContext,
    bases: Iterable[KnowledgeBase],
    id_: str,
    namespace: str | None = None,
) -> tuple[KnowledgeBase, Session]:
    """Return a conversation that the caller may read, and the knowledge base that has it.

    Raises:
        NotFoundError: None has it, or it is not the caller's to read.
    """
    user = context.identity.user
    base, session = first_with(
        bases,
        lambda base: base.sessions.get(id_, namespace=namespace, user=user),
        f"there is no conversation {id_!r}",
    )
    context.check_readable(base, session.namespace, f"conversation {id_!r}")
    return base, session


def _hits(context: OperationContext, query: str, filters: Filters, limit: int) -> tuple[Hit, ...]:
    found = opened(context, NO_KNOWLEDGE_BASE).query(
        query, filters=filters, limit=limit, answer=False
    )
    return without_unrelated(query, found.hits)


_UNRELATED = 0.02
"""Relevance below which a hit clearly has nothing to do with a query."""
_FAINT, _UNLIKE = 0.15, 0.12
"""Relevance and similarity below both of which a hit hasn't either, if it shares no word with it.

Of the first five hits of 159 questions on two folders of files and a chat, both rules take 5 of 290
that are evidence, and no question loses all of its own; 48 of 150 questions of another set get
nothing, and so do made-up words where little is known.  With 0.03, a question loses its evidence;
without the similarity, questions in other words than the memories lose theirs."""


def without_unrelated(query: str, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits but those that clearly have nothing to do with their query.

    The best one may be what is asked for in another language, in which it has none of the words.
    """
    related = [hit for hit in hits if hit.relevance >= _UNRELATED]
    best = related[0] if related else None
    return tuple(
        hit
        for hit in related
        if not _is_faint(hit) or (hit is best and _is_in_another_language(query, hit.text))
    )


def _is_faint(hit: Hit) -> bool:
    shares_no_word = not hit.legs.get("keyword") and "vector" in hit.legs
    return shares_no_word and hit.relevance < _FAINT and hit.similarity < _UNLIKE


def _is_in_another_language(query: str, text: str) -> bool:
    """Return whether a text is surely in another language than a query, or than English.

    A query is often too short to tell; and what the built-in model, which is English, makes of
    other languages means little.
    """
    from memctl.language.identification import identify_language

    language = identify_language(text)
    return language not in ("", "en", identify_language(query))


def found_passage(number: int, hit: Hit) -> FoundPassage:
    """Return a hit as a numbered passage that a model can cite."""
    return record_like(
        FoundPassage,
        hit,
        number=number,
        text=without_wikilinks(hit.text),
        date=hit.created_at,
        relevance=_similarity(hit),
    )


def _similarity(hit: Hit) -> float:
    """Return the cosine of query and passage; 0 where no vectors were compared."""
    return round(min(1.0, max(0.0, hit.legs.get("vector", 0.0))), 3)


# --- conversations --------------------------------------------------------------------------------


class PastConversationsParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``search_past_conversations``."""

    query: Annotated[str, Rule("What to look for, in words.")]
    max_results: Annotated[int, Rule("At most this many results.", low=1, high=_MOST)] = 5
    time_window_days: Annotated[
        int | None, Rule("At most this many days ago; by default at any time.", low=1, high=36_500)
    ] = None


class RecalledMemory(Struct, frozen=True):
    """Something that was said or stored before."""

    text: str
    timestamp: datetime | None
    memory_type: str
    similarity: float


class PastConversations(Struct, frozen=True):
    """What was found in past conversations."""

    success: bool
    query: str
    results_count: int
    results: tuple[RecalledMemory, ...]


def search_past_conversations(
    context: OperationContext, parameters: PastConversationsParameters
) -> PastConversations:
    """Search what the user and agents have said, and what was stored for the user."""
    with context.for_user() as limited:
        filters = limited.filters("conversations")
        if parameters.time_window_days is not None:
            filters = replace(
                filters, since=context.now - timedelta(days=parameters.time_window_days)
            )
        hits = _hits(limited, parameters.query, filters, parameters.max_results)
    results = tuple(
        RecalledMemory(without_wikilinks(hit.text), hit.created_at, hit.type, _similarity(hit))
        for hit in hits
    )
    return PastConversations(True, parameters.query, len(results), results)


# --- answers and context --------------------------------------------------------------------------


class AnswerParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``answer``."""

    question: Annotated[str, Rule("The question, in words.")]
    mode: Annotated[Mode | None, Rule("How memories are found.")] = None
    top_k: Annotated[int, Rule("How many hits are searched.", low=1, high=_MOST)] = 10
    since: Annotated[str | None, Rule(_SINCE)] = None
    until: Annotated[str | None, Rule(_UNTIL)] = None
    namespace: Annotated[str | None, Rule(_NAMESPACE)] = None
    tags: Annotated[tuple[str, ...], Rule(_TAGS)] = ()
    rerank: Annotated[bool, Rule(RERANK)] = True


class AnswerReply(Struct, frozen=True):
    """An answer, or what is closest to one."""

    question: str
    answer: str
    found: bool
    unsure: bool
    confidence: float
    citations: tuple[Citation, ...]
    method: str
    notes: tuple[str, ...]
    query_id: str | None


def answer(context: OperationContext, parameters: AnswerParameters) -> AnswerReply:
    """Answer as ``memctl query`` does."""
    from memctl.queries import QueryOptions

    filters = context.filters(
        namespace=parameters.namespace,
        tags=parameters.tags,
        since=parameters.since,
        until=parameters.until,
    )
    options = QueryOptions(
        mode=parameters.mode, filters=filters, limit=parameters.top_k, rerank=parameters.rerank
    )
    result = opened(context).queries.ask(parameters.question, options)
    found = result.answer
    assert found is not None  # which was asked for
    return record_like(
        AnswerReply,
        found,
        question=parameters.question,
        answer=found.text,
        notes=(*result.notes, *([found.note] if found.note else ())),
        query_id=result.query_id,
    )


def answer_text(reply: AnswerReply) -> str:
    """Return an answer with its sources as text."""
    sources = (
        f"[{cited.number}] {cited.title or cited.source} ({cited.created_at:%Y-%m-%d}):"
        f" {cited.quote}"
        for cited in reply.citations
    )
    unsure = "It is unsure whether this is the answer; it is what is closest:\n"
    return "\n".join([f"{unsure if reply.unsure else ''}{reply.answer}", *sources])


# --- recall -----------------------------------------------------------------------------------

_RECALLED, _RECALLED_PERHAPS = 5, 3
"""Most passages, and most where none of them surely has to do with the question."""
_MAX_QUOTED = 900
"""Characters of a passage; the rest can be opened."""
_RELEVANT, _PERHAPS = 0.7, 0.1
"""Relevance from which a passage has to do with the question, and from which it may have."""


class RecallParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``recall``."""

    question: Annotated[str, Rule("The question, in words.")]
    since: Annotated[str | None, Rule(_SINCE)] = None
    until: Annotated[str | None, Rule(_UNTIL)] = None
    namespace: Annotated[str | None, Rule(_NAMESPACE)] = None
    tags: Annotated[tuple[str, ...], Rule(_TAGS)] = ()


class RecalledPassage(Struct, frozen=True):
    """A passage to answer from and to cite."""

    number: int
    id: str
    quote: str
    title: str
    source: str
    date: datetime
    relevance: float
    """0 to 1: how likely it has to do with the question."""
    type: str
    kb: str
    document_id: str | None
    session_id: str | None


class RecallReply(Struct, frozen=True):
    """The passages closest to a question, for the caller to answer from."""

    question: str
    found: bool
    """Whether any of them has to do with it."""
    citations: tuple[RecalledPassage, ...]
    query_id: str | None


def recall(context: OperationContext, parameters: RecallParameters) -> RecallReply:
    """Return the passages that ``memctl query --no-answer`` finds, but none that is irrelevant.

    Of passages that conflict the newest comes first, as in answers.

    Who asks is a model that reads better than the built-in one; ``answer`` has that one's answer.
    """
    from memctl.search.answering.states_over_time import newest_first

    filters = context.filters(
        namespace=parameters.namespace,
        tags=parameters.tags,
        since=parameters.since,
        until=parameters.until,
    )
    bases = opened(context)
    result = bases.query(parameters.question, filters=filters, limit=_RECALLED, answer=False)
    found = any(hit.relevance >= _RELEVANT for hit in result.hits)
    relevant = _text_before_headers(newest_first(parameters.question, result.hits))
    shown = relevant if found else relevant[:_RECALLED_PERHAPS]
    return RecallReply(
        question=parameters.question,
        found=found,
        citations=tuple(
            _recalled_passage(number, hit) for number, hit in enumerate(shown, start=1)
        ),
        query_id=result.query_id,
    )


def _text_before_headers(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits that may be relevant, those that are a mail's header lines alone last.

    A header has the names and the subject of a question, and no answer.  It says what its mail is
    about, so passages of that mail are as relevant as it is.
    """
    from memctl.search.answering.evidence_parts import is_mail_header

    headers = {hit.memory_id: hit for hit in hits if is_mail_header(hit.text)}
    about: dict[str | None, float] = {}
    for each in headers.values():
        if each.document_id is not None:
            about[each.document_id] = max(about.get(each.document_id, 0.0), each.relevance)
    relevant = [
        hit for hit in hits if max(hit.relevance, about.get(hit.document_id, 0.0)) >= _PERHAPS
    ]
    return sorted(relevant, key=lambda hit: hit.memory_id in headers)


def _recalled_passage(number: int, hit: Hit) -> RecalledPassage:
    return record_like(
        RecalledPassage,
        hit,
        number=number,
        id=hit.memory_id,
        quote=_cut(without_wikilinks(hit.text)),
        date=hit.created_at,
        relevance=round(hit.relevance, 2),
    )


def _cut(text: str) -> str:
    if len(text) <= _MAX_QUOTED:
        return text
    return f"{text[:_MAX_QUOTED].rsplit(maxsplit=1)[0]} ..."


def recall_text(reply: RecallReply) -> str:
    """Return the passages as text, numbered for citing."""
    if not reply.citations:
        return "Memory has nothing on that."
    paragraphs = [] if reply.found else ["Perhaps none of these has to do with it:"]
    days = Counter(cited.date.date() for cited in reply.citations)
    for cited in reply.citations:
        name = cited.title or cited.source.rsplit("/", 1)[-1]
        shown = "%Y-%m-%d" if days[cited.date.date()] == 1 else "%Y-%m-%d %H:%M:%S"
        paragraphs.append(
            f"[{cited.number}] {name} ({cited.date:{shown}}, {cited.id}):\n{cited.quote}"
        )
    return "\n\n".join(paragraphs)


class ContextParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``context``."""

    question: Annotated[str, Rule("The question or message that needs context.")]
    budget: Annotated[int, Rule("At most this many tokens.", low=16, high=_MAX_TOKENS)] = 2000
    auto: Annotated[bool, Rule("Whether it is any message, most of which need no memory.")] = False
    namespace: Annotated[str | None, Rule(_NAMESPACE)] = None
    tags: Annotated[tuple[str, ...], Rule(_TAGS)] = ()


def context_block(context: OperationContext, parameters: ContextParameters) -> Context:
    """Return evidence within a budget, as ``memctl context`` does."""
    filters = context.filters(namespace=parameters.namespace, tags=parameters.tags)
    bases = opened(context)
    return bases.context(
        parameters.question, budget=parameters.budget, filters=filters, auto=parameters.auto
    )


def context_text(context: Context) -> str:
    """Return a context's text."""
    return context.text or "Nothing in memory has to do with that."


class FeedbackParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``feedback``."""

    query_id: Annotated[str, Rule("The query_id of the answer; last is the latest.")]
    verdict: Annotated[Verdict, Rule("How good it was.")]
    dry_run: Annotated[bool, Rule("Note nothing.")] = False


class FeedbackReply(Struct, frozen=True):
    """What was noted."""

    query_id: str
    verdict: str
    dry_run: bool


def feedback(context: OperationContext, parameters: FeedbackParameters) -> FeedbackReply:
    """Record how good an earlier answer was, as ``memctl query --feedback`` does."""
    bases = opened(context)
    id_ = (
        parameters.query_id
        if parameters.dry_run
        else bases.feedback(parameters.query_id, parameters.verdict)
    )
    return FeedbackReply(id_, parameters.verdict, parameters.dry_run)


# --- insights and the time ------------------------------------------------------------------------


class InsightsParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``recent_insights``."""

    limit: Annotated[int, Rule("At most this many.", low=1, high=200)] = 10
    since: Annotated[str | None, Rule(_SINCE)] = None


class RecentInsight(Struct, frozen=True):
    """What several memories say together."""

    kb: str
    id: str
    text: str
    date: str
    importance: float
    source_ids: tuple[str, ...]


class RecentInsights(Struct, frozen=True):
    """Insights, the newest first."""

    insights: tuple[RecentInsight, ...]


def recent_insights(context: OperationContext, parameters: InsightsParameters) -> RecentInsights:
    """List insights as ``memctl insight list`` does, of all knowledge bases together."""
    filters = context.filters(since=parameters.since)
    rows = [
        RecentInsight(
            kb=base.name,
            id=row["id"],
            text=row["text"],
            date=row["created_at"],
            importance=row["importance"],
            source_ids=tuple(row["source_ids"]),
        )
        for base in opened(context)
        for row in plain_rows(base.insights.list(filters, limit=parameters.limit))
    ]
    rows.sort(key=lambda row: row.date, reverse=True)
    return RecentInsights(tuple(rows[: parameters.limit]))


class NoParameters(Struct, frozen=True):
    """Of an operation that takes none."""


class CurrentDatetime(Struct, frozen=True):
    """The present instant, where this machine is."""

    datetime: str
    timezone: str
    weekday: str


def get_current_datetime(context: OperationContext, _: NoParameters) -> CurrentDatetime:
    """Return the present instant in the zone of this machine."""
    now = context.now.astimezone()
    return CurrentDatetime(now.isoformat(timespec="seconds"), str(now.tzinfo), f"{now:%A}")
