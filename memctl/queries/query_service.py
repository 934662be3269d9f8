"""Questions to one or several knowledge bases: searched, answered or made context, and logged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memctl.identity import DEFAULT_USER, conversations_of, readable_by, within_reach
from memctl.ids import storable
from memctl.literals import Duplicates, Fusion, Headings, Mode, Verdict
from memctl.queries.query_log import unknown_question
from memctl.queries.query_session import QuerySession
from memctl.queries.search_context import (
    NO_FILTERS,
    CorpusCache,
    QueryOptions,
    QueryTarget,
    SearchContext,
)
from memctl.records import Context, Filters, QueryResult, Question

if TYPE_CHECKING:
    import pyarrow as pa

_DEFAULTS = QueryOptions()


class QueryService:
    """What can be asked of some knowledge bases.

    Args:
        targets: Returns the knowledge bases to ask as they are now, at least one.
        corpora: What earlier queries have computed about their tables, if there were any.
        before_model: Called before a model is asked to answer or to rerank, which may take long.
    """

    def __init__(
        self,
        targets: Callable[[], Sequence[QueryTarget]],
        corpora: CorpusCache | None = None,
        before_model: Callable[[], None] | None = None,
    ) -> None:
        self._targets = targets
        self._corpora = corpora or CorpusCache()
        self._before_model = before_model

    def drop_caches(self) -> None:
        """Release what earlier queries have computed about the tables."""
        self._corpora.drop()

    def query(
        self,
        question: str,
        *,
        mode: Mode | None = None,
        hops: int | None = None,
        rounds: int | None = None,
        communities: int | None = None,
        fusion: Fusion | None = None,
        filters: Filters = NO_FILTERS,
        limit: int | None = None,
        offset: int = 0,
        duplicates: Duplicates | None = None,
        diversity: float | None = None,
        per_document: int | None = None,
        threshold: float | None = None,
        answer: bool = True,
        explain: bool = False,
        on_token: Callable[[str], None] | None = None,
        log: bool = True,
    ) -> QueryResult:
        """Ask one question; what isn't given is as configured.

        Args:
            question: In words.
            mode: ``hybrid``, ``keyword``, ``vector``, ``graph`` or ``agentic``.
            hops: How many steps ``graph`` goes at most; 2 by default.
            rounds: How many rounds ``agentic`` searches at most; 3 by default.
            communities: How many communities ``graph`` returns at most; 3 by default.
            fusion: How ``hybrid`` combines keyword and vector scores.
            filters: What the hits are limited to.
            limit: How many hits.
            offset: How many of the best hits are left out; the answer is drawn from them, too.
            duplicates: Which duplicates are folded: ``exact``, ``near``, or ``keep`` for none.
            diversity: 0 to 1: how much a hit loses for being like a better one.
            per_document: At most this many hits per document; 0 means no limit.
            threshold: Least relevance of a hit, 0 to 1; 0.7 keeps what is clearly relevant.
            answer: Whether to answer, with citations, as well as to find memories.
            explain: Whether to report how the search went.
            on_token: Receives the answer piece by piece while a model writes it.
            log: Whether the query log records the question, where it is enabled.

        Raises:
            UsageError: The question is empty, or an option cannot be used.
        """
        options = QueryOptions(
            mode=mode,
            hops=hops,
            rounds=rounds,
            communities=communities,
            fusion=fusion,
            filters=filters,
            limit=limit,
            offset=offset,
            duplicates=duplicates,
            diversity=diversity,
            per_document=per_document,
            threshold=threshold,
            answer=answer,
            explain=explain,
            on_token=on_token,
            log=log,
        )
        return self.ask(question, options)

    def query_many(
        self,
        questions: Iterable[Question | str],
        *,
        mode: Mode | None = None,
        filters: Filters = NO_FILTERS,
        limit: int | None = None,
        answer: bool = True,
        explain: bool = False,
        log: bool = True,
    ) -> Iterator[QueryResult]:
        """Ask many questions of one snapshot; results come in order, as soon as they are ready.

        A question's own namespace replaces those of the filters.  Arguments and errors are those of
        ``query``.
        """
        options = QueryOptions(
            mode=mode, filters=filters, limit=limit, answer=answer, explain=explain, log=log
        )
        return self.ask_many(questions, options)

    def ask(self, question: str, options: QueryOptions = _DEFAULTS) -> QueryResult:
        """Ask one question; errors are those of ``query``."""
        return next(self.ask_many([question], options))

    def ask_many(
        self, questions: Iterable[Question | str], options: QueryOptions = _DEFAULTS
    ) -> Iterator[QueryResult]:
        """Ask many questions of the same state; see ``query_many``."""
        sessions: dict[bool, QuerySession] = {}
        for each in questions:
            question = Question(each) if isinstance(each, str) else each
            filters = options.filters
            if question.namespace is not None:
                filters = replace(filters, namespaces=(question.namespace,))
            filters = self._within_reach(filters)
            private = self._allows_private(filters)
            if private not in sessions:
                context = self._context(private=private, reranks=options.rerank)
                sessions[private] = QuerySession(context, options.mode)
            yield sessions[private].ask(question, replace(options, filters=filters))

    def context(
        self,
        question: str,
        *,
        budget: int = 2000,
        mode: Mode | None = None,
        hops: int | None = None,
        filters: Filters = NO_FILTERS,
        auto: bool = False,
        threshold: float | None = None,
    ) -> Context:
        """Return evidence on a question, best first, with the ``[n]`` to cite it by.

        Its text is empty where nothing known bears on the question; where that is in doubt it says
        so, and is at most half as long.

        Args:
            question: In words.
            budget: At most this many tokens.
            mode: How memories are found; by default as configured.
            hops: How many steps ``graph`` goes at most; 2 by default.
            filters: What it is limited to.
            auto: Whether it may be any message, most of which need no memory: those get a text only
                if they refer to what came before, or if something known clearly bears on them.
            threshold: Least relevance of what is shown, 0 to 1.

        Raises:
            UsageError: The question is empty, or an option cannot be used.
        """
        filters = self._within_reach(filters)
        session = QuerySession(self._context(private=self._allows_private(filters)), mode)
        options = QueryOptions(
            hops=hops, filters=filters, diversity=0.0, per_document=0, threshold=threshold
        )
        return session.context(question, budget, options, auto=auto)

    def standing_context(
        self,
        question: str = "",
        *,
        budget: int = 1000,
        user: str | None = None,
        agent: str | None = None,
        filters: Filters = NO_FILTERS,
        headings: Headings = "seed",
    ) -> Context:
        """Return what to know without a question: profile, what is important, what changed.

        It is the same while nothing that is known changes.  Private knowledge bases are left out.

        Args:
            question: What comes after it bears on this, with its own share of the budget.
            budget: At most this many tokens.
            user: Whose profile stands above it.
            agent: The agent that knows it.
            filters: What it is limited to.
            headings: What its parts are called.
        """
        from memctl.models.protocols import estimate_tokens
        from memctl.queries.standing_context import joined_contexts, standing_context

        every = self._targets()
        targets = [target for target in every if not target.settings.private]
        notes = tuple(
            f"{target.name} is private, and left out where nothing is asked"
            for target in every
            if target.settings.private
        )
        if not targets:
            return Context(question, "", 0, budget, (), notes, why="standing")
        context = SearchContext(targets, private=False, corpora=self._corpora)
        namespaces = context.config.namespaces
        if user is not None and not filters.namespaces:
            filters = replace(
                filters, namespaces=readable_by(namespaces, user, context.config.agent)
            )
        place = conversations_of(namespaces, user or context.config.user or DEFAULT_USER)
        agent = agent or context.config.agent or ""
        filters = self._within_reach(filters)
        is_shown = not any(place in target.settings.private_namespaces for target in targets)
        found = (target.store.ledger.profiles.profile_to_show(place, agent) for target in targets)
        profiles = [profile for profile in found if profile is not None and is_shown]
        standing = standing_context(
            context.snapshots(),
            {target.name: target.services.decay() for target in targets},
            context.without_private(filters),
            max(profiles, key=lambda profile: profile.at, default=None),
            budget // 2 if question else budget,
            estimate_tokens,
            context.clock(),
            headings,
        )
        standing = replace(standing, notes=notes)
        if not question:
            return standing
        session = QuerySession(self._context(private=self._allows_private(filters)), None)
        room = budget - standing.tokens
        options = QueryOptions(filters=filters, diversity=0.0, per_document=0)
        bearing = session.context(question, room, options, auto=False, beside=standing)
        joined = joined_contexts(standing, bearing, estimate_tokens)
        return replace(joined, notes=tuple(dict.fromkeys((*notes, *joined.notes))))

    def feedback(self, query_id: str, verdict: Verdict, score: float | None = None) -> str:
        """Record how good the result of an earlier question was; return the question's id.

        Args:
            query_id: As ``QueryResult.query_id`` says, or ``last`` for the latest question.
            verdict: ``good`` or ``bad``; it replaces an earlier one.
            score: From 0 to 1; by default 1 for ``good`` and 0 for ``bad``.

        Raises:
            NotFoundError: No such question stands in the query log.
            KnowledgeBaseUnavailable: This process may only read, or the disk is full.
        """
        wanted = self.latest_question() if query_id == "last" else storable(query_id)
        known = [
            target.query_log.judge(wanted, verdict, score) for target in self._targets()
        ]  # all
        if not any(known):
            raise unknown_question(query_id)
        return wanted

    def sql(self, statement: str, namespaces: Sequence[str] = ()) -> pa.RecordBatchReader:
        """Run one SELECT or EXPLAIN over the tables of all, and stream its rows.

        With several knowledge bases every table has the rows of all, with a column ``kb``.

        Args:
            statement: What to run.
            namespaces: Limits the rows to these; by default all but private ones.

        Raises:
            UsageError: The statement is wrong, or is not one that may run.
            MemctlError: It ran out of time or memory.
        """
        from memctl.pools import readable_pools
        from memctl.store.sql import NamespaceScope, run_sql

        context = self._context(private=False)
        filters = self._within_reach(Filters(namespaces=tuple(namespaces)))
        bounds = context.config.sql
        return run_sql(
            context.snapshots(),
            statement,
            memory_limit=f"{bounds.memory_limit_mb}MB",
            timeout=bounds.timeout_seconds,
            ledgers={target.name: target.store.ledger for target in context.targets},
            scope=NamespaceScope(context.without_private(filters), context.config.user),
            now=context.clock(),
            pools={
                target.name: readable_pools(target.store.ledger, context.config.agent)
                for target in context.targets
            },
        )

    def capped_memory(self) -> AbstractContextManager[None]:
        """Limit the memory of this whole process, while it runs a single statement."""
        from memctl.store.sql import capped_process_memory

        limit = self._context(private=False).config.sql.memory_limit_mb
        return capped_process_memory(2 * limit * 1_000_000)

    def _within_reach(self, filters: Filters) -> Filters:
        """Return filters limited to what the user who asks may read.

        Raises:
            AccessRefused: They name a namespace of another user.
        """
        return within_reach(filters, self._context(private=False).config)

    def _allows_private(self, filters: Filters) -> bool:
        return any(target.settings.allows_private(filters) for target in self._targets())

    def _context(self, *, private: bool, reranks: bool = True) -> SearchContext:
        targets = self._targets()
        return SearchContext(targets, private, self._corpora, reranks, self._before_model)

    def latest_question(self) -> str:
        """Return the id of the question that was asked last; "" where none is noted."""
        targets = self._targets()
        for target in targets:
            target.query_log.flush()
        latest = [
            next(filter(target.query_log.is_open, target.store.ledger.queries.recent(-1)), None)
            for target in targets
        ]
        known = [entry for entry in latest if entry is not None]
        return max(known, key=lambda entry: entry.at).query_id if known else ""
