"""Questions to one or several knowledge bases: searched, answered or made context, and logged."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import MsgspecError, Struct, msgpack
from msgspec.structs import replace

from memctl.errors import MemctlError, UsageError
from memctl.identity import DEFAULT_USER, conversations_of, readable_by, within_reach
from memctl.ids import storable
from memctl.literals import Duplicates, Fusion, Headings, Mode, Verdict
from memctl.queries.query_log import LoggedQuestion, shown_text, unknown_question
from memctl.queries.search_context import (
    NO_FILTERS,
    CorpusCache,
    QueryOptions,
    QueryTarget,
    SearchContext,
    SearchOptions,
)
from memctl.records import Answer, Community, Context, Filters, Hit, QueryResult, Question
from memctl.store.ledger.log_repositories import QueryDetail

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.literals import QueryKind, QueryStatus
    from memctl.search.answering.evidence_sentences import EvidenceSentence
    from memctl.search.answering.relevance import Relevance
    from memctl.search.answering.search_outcome import SearchOutcome
    from memctl.search.searcher import Searcher
    from memctl.store.tables.snapshot import Snapshot

_MOST_UNASKED = 5
"""At most this many passages are put before a message that did not ask for any."""
_FEWEST_EXCERPTS = 20
_LEAST_SHOWN = 0.001
"""Least relevance of an excerpt where something else bears on the question.  In both piles, with
1,500 and 4,000 tokens, no question loses its evidence; at 0.003 one of 89 does."""
_SHORTEST_EXCERPT = 20
"""Tokens; enough hits are searched for to use up the budget of a context."""
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
        """Ask many questions of the same state; results come in order, as they are found.

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
        sessions: dict[bool, _QuerySession] = {}
        for each in questions:
            question = Question(each) if isinstance(each, str) else each
            filters = options.filters
            if question.namespace is not None:
                filters = replace(filters, namespaces=(question.namespace,))
            filters = self._within_reach(filters)
            private = self._allows_private(filters)
            if private not in sessions:
                context = self._context(private=private, reranks=options.rerank)
                sessions[private] = _QuerySession(context, options.mode)
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
        session = _QuerySession(self._context(private=self._allows_private(filters)), mode)
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

        targets = [target for target in self._targets() if not target.settings.private]
        if not targets:
            return Context(question, "", 0, budget, (), why="standing")
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
        found = (target.store.ledger.profiles.shown(place, agent) for target in targets)
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
        if not question:
            return standing
        session = _QuerySession(self._context(private=self._allows_private(filters)), None)
        room = budget - standing.tokens
        options = QueryOptions(filters=filters, diversity=0.0, per_document=0)
        bearing = session.context(question, room, options, auto=False, beside=standing)
        return joined_contexts(standing, bearing, estimate_tokens)

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


_RELEVANT_AS_A_WHOLE = 0.45
"""Relevance of what is found below which the last question of a message is looked for alone."""


_MOST_KEPT = 50
"""Results that are kept, the latest ones."""
_ANSWERING_PACKAGES = ("memctl.queries", "memctl.search", "memctl.understanding", "memctl.language")
"""Whose code decides what a question is given."""


class _KeptResult(Struct, frozen=True):
    """What a question was given, with what its log says."""

    at: datetime
    until: datetime | None
    """When something of what was searched ends; None where nothing does."""
    result: QueryResult
    """Without the question itself."""
    how: QueryDetail
    found: bool

    def holds_at(self, now: datetime, longest: timedelta) -> bool:
        """Return whether it is no older than it may be, and what it is from has not ended."""
        is_fresh = self.at <= now < self.at + longest
        return is_fresh and (self.until is None or now < self.until)


class _QuerySession(Struct, frozen=True, dict=True):
    """Asks questions of one kind, private or not, of one state of the tables."""

    search_context: SearchContext
    wanted: Mode | None

    @cached_property
    def _mode(self) -> Mode:
        return self.wanted or self.search_context.config.query.mode

    @cached_property
    def _searcher(self) -> Searcher:
        return self.search_context.searcher(self._mode)

    def ask(self, question: Question, options: QueryOptions) -> QueryResult:
        """Search for what a question asks, answer it if that is wanted, and log it."""
        started = time.monotonic()
        try:
            return self._again(question, options, started) or self._ask(question, options, started)
        except MemctlError as error:
            if options.log and question.text.strip():
                self._log_failure(question.text, options, error, time.monotonic() - started)
            raise

    def _ask(self, question: Question, options: QueryOptions, started: float) -> QueryResult:
        from memctl.search.answering.search_outcome import MAX_HITS_READ

        options.require_mode(self._mode)
        began, settings = self._now, self.search_context.config.query
        limit = settings.limit if options.limit is None else options.limit
        search = self.search_context.search_options(
            max(options.offset + limit, MAX_HITS_READ), options
        )
        outcome = self._search_message(question.text, search)
        outcome = self._with_relevance(outcome, options.threshold)
        answer, hits, failures = None, outcome.listed, outcome.failures
        if options.answer:
            from memctl.search.answering.evidence_sentences import rank_hits

            answer, sentences, problem = self._answer(outcome.evidence, options, search)
            failures += (type(problem).__name__,) if problem else ()
            is_ordered = options.rerank and bool(self.search_context.config.models.rerank)
            if not is_ordered and outcome.selected is None:
                citations = answer.citations if answer.found else ()
                hits = rank_hits(hits, sentences, (each.memory_id for each in citations))
        hits = self._searcher.with_document_metadata(hits[options.offset : options.offset + limit])
        result = QueryResult(
            question=question.text,
            hits=hits,
            insights=outcome.insights,
            answer=answer,
            mode=self._mode,
            seconds=time.monotonic() - started,
            id=question.id,
            explain=self._explained(outcome, hits) if options.explain else {},
            notes=outcome.notes,
            communities=outcome.communities,
            rounds=tuple(outcome.explain.get("rounds", ())),
            total_results=len(hits),
        )
        if not options.log:
            return result
        found = answer.found if answer else bool(outcome.hits) and outcome.relevance.is_near
        how = replace(
            self._search_details(outcome, search, limit, hits),
            error=_joined(failures),
            status=_status(answer, found=found),
            threshold=options.threshold or 0.0,
            confidence=answer.confidence if answer else None,
            grounding=_grounding(answer),
            prompt=_prompt_of(answer),
            cited=tuple(each.memory_id for each in answer.citations) if answer else (),
            tokens=_tokens_of(result),
        )
        if not failures:
            self._keep(question, options, began, result, how, found=found)
        query_id = self._log(
            question.text,
            "query",
            options.filters,
            found,
            result.seconds,
            how,
            hits,
            outcome,
            answer,
        )
        return replace(result, query_id=query_id)

    # --- what was asked before ---

    @property
    def _now(self) -> datetime:
        return self.search_context.clock()

    def _again(
        self, question: Question, options: QueryOptions, started: float
    ) -> QueryResult | None:
        """Return what the same question was given a short while ago; None where it was not."""
        kept = self._kept_results(options).get(self._key_of(question, options))
        if kept is None:
            return None
        result = replace(
            kept.result,
            question=question.text,
            seconds=time.monotonic() - started,
            id=question.id,
            cached=True,
        )
        query_id = self._log(
            question.text,
            "query",
            options.filters,
            kept.found,
            result.seconds,
            kept.how,
            result.hits,
            answer=result.answer,
        )
        return replace(result, query_id=query_id)

    def _keep(
        self,
        question: Question,
        options: QueryOptions,
        began: datetime,
        result: QueryResult,
        how: QueryDetail,
        *,
        found: bool,
    ) -> None:
        """Keep what a question was given, on disk until the next commit, with a few others.

        The question itself is not kept, so neither are rounds of searches, which repeat its words,
        nor what is given to a question with a secret in it.
        """
        has_secret = shown_text(question.text, redact=True) != question.text
        if has_secret or result.rounds or not self._may_keep(options):
            return
        snapshot, name = self._kept_place
        if snapshot.derived is None:
            return
        known = self._kept_results(options)
        known[self._key_of(question, options)] = _KeptResult(
            began, _first_end(snapshot, began), replace(result, question=""), how, found
        )
        latest = sorted(known.items(), key=lambda item: item[1].at)[-_MOST_KEPT:]
        snapshot.derived.write("results", name, msgpack.encode(dict(latest)))

    def _kept_results(self, options: QueryOptions) -> dict[str, _KeptResult]:
        """Return what may be given again, by question."""
        if not self._may_keep(options):
            return {}
        snapshot, name = self._kept_place
        content = snapshot.derived.read("results", name) if snapshot.derived else None
        if not content:
            return {}
        try:
            kept = msgpack.decode(content, type=dict[str, _KeptResult])
        except MsgspecError:  # other code wrote it
            return {}
        longest, now = timedelta(minutes=self.search_context.config.query.cache_minutes), self._now
        return {key: each for key, each in kept.items() if each.holds_at(now, longest)}

    def _may_keep(self, options: QueryOptions) -> bool:
        """Return whether what a question is given is kept: never if it is about what is private.

        Nor if several knowledge bases are asked: what one of them forgets would stay in another.
        """
        context = self.search_context
        is_plain = options.log and not options.explain and options.on_token is None
        is_open = not context.private and len(context.targets) == 1
        return is_plain and is_open and bool(context.config.query.cache_minutes)

    @cached_property
    def _kept_place(self) -> tuple[Snapshot, str]:
        """The tables that results are kept of, and by what name."""
        from memctl.store.file_caches import code_digest

        (snapshot,) = self.search_context.snapshots().values()
        return snapshot, json.dumps([code_digest(*_ANSWERING_PACKAGES), snapshot.state])

    def _key_of(self, question: Question, options: QueryOptions) -> str:
        """Tell a question from any other one, and from itself where something is set otherwise."""
        context = self.search_context
        settings = context.targets[0].settings
        asked = (self._mode, self._now.date(), question.text, options, context.config, settings)
        return hashlib.sha256(repr(asked).encode()).hexdigest()

    def _search_message(self, message: str, search: SearchOptions) -> SearchOutcome:
        """Search for a message; where nothing clearly bears on all of it, for its question alone.

        A question that only the sentences before it say the subject of is never searched for alone.
        """
        whole = self._search(message, search)
        score = whole.relevance.score
        if score >= _RELEVANT_AS_A_WHOLE:
            return whole
        from memctl.search.answering.memory_need import extract_question, has_own_subject

        asked = extract_question(message)
        if not has_own_subject(asked):
            return whole
        alone = self._search(asked, search)
        relevance = alone.relevance
        return alone if relevance.is_relevant and relevance.score > score else whole

    def _search(self, question: str, search: SearchOptions) -> SearchOutcome:
        """Search; by keyword alone while the embedder is unavailable, and note that."""
        from memctl.search.retrieval.question_vectors import EMBEDDER_UNAVAILABLE

        searcher = self._searcher
        try:
            return searcher.search(question, mode=self._mode, **search)
        except EMBEDDER_UNAVAILABLE as error:
            if self._mode == "vector":
                raise
            found = searcher.search(question, mode="keyword", **search)
            note = f"found by keyword alone: {error.message}"
            return replace(found, notes=(note,), failures=(type(error).__name__,))

    def _search_details(
        self, outcome: SearchOutcome, search: SearchOptions, limit: int, hits: Sequence[Hit]
    ) -> QueryDetail:
        """Return how a question was asked, but for what its answer tells."""
        config, is_fused = self.search_context.config, self._mode in ("hybrid", "agentic")
        return QueryDetail(
            "",
            status="nothing",
            top_k=limit,
            relevance=max((hit.relevance for hit in hits), default=None),
            fusion=search["fusion"] if is_fused else "",
            reranker=config.models.rerank if is_fused and self.search_context.reranks else "",
            rounds=max(1, len(outcome.explain.get("rounds", ()))),
            error=_joined(outcome.failures),
            kbs=len(self.search_context.targets),
            user_id=config.user,
            agent_id=config.agent,
            session_id=config.session,
        )

    def _explained(self, outcome: SearchOutcome, hits: Sequence[Hit]) -> Mapping[str, Any]:
        """Return how the search went, with what judgements did to the importance of hits."""
        changed: dict[str, float] = {}
        for target in self.search_context.targets:
            ids = [hit.memory_id for hit in hits if hit.kb == target.name]
            changed |= target.store.ledger.feedback_effects.sums(ids) if ids else {}
        return {**outcome.explain, **({"feedback": changed} if changed else {})}

    def _log_failure(
        self, question: str, options: QueryOptions, error: MemctlError, seconds: float
    ) -> None:
        """Record a question that could not be asked, with the class of what went wrong."""
        config = self.search_context.config
        how = QueryDetail(
            "",
            status="failed",
            top_k=config.query.limit if options.limit is None else options.limit,
            kbs=len(self.search_context.targets),
            error=type(error).__name__,
            user_id=config.user,
            agent_id=config.agent,
            session_id=config.session,
        )
        self._log(question, "query", options.filters, False, seconds, how, ())

    def _with_relevance(self, outcome: SearchOutcome, threshold: float | None) -> SearchOutcome:
        """Return what was found with the relevance of each hit, without those below a threshold.

        Raises:
            UsageError: The threshold is not from 0 to 1.
        """
        least = self.search_context.config.query.threshold if threshold is None else threshold
        if not 0 <= least <= 1:
            raise UsageError(f"no such threshold: {least:g}", "0 to 1; 0.7 is clearly relevant")
        judged = outcome.judged()
        return judged.above(least) if least else judged

    def _answer(
        self, outcome: SearchOutcome, options: QueryOptions, search: SearchOptions
    ) -> tuple[Answer, Sequence[EvidenceSentence], MemctlError | None]:
        """Return the answer of the configured model, or the built-in one where there is none.

        With it are the sentences that were judged, best first, and how the model failed.
        """
        from memctl.search.answering.evidence_sentences import rank_sentences
        from memctl.search.answering.extractive_answer import extract_answer, special_answer
        from memctl.search.answering.table_totals import unsure_of_rows

        sentences: Sequence[EvidenceSentence] = ()
        problem: MemctlError | None = None
        try:
            best = outcome.hits[0].kb if outcome.hits else None
            asked = outcome.asked.text
            answerer = self.search_context.answerer(best, asked) if best else None
            if answerer is not None:
                sentences = rank_sentences(outcome)
                return answerer.answer(outcome, sentences, options.on_token), sentences, None
        except MemctlError as error:  # a question is answered, whatever is wrong with the model
            problem = error
        answer = special_answer(outcome)
        if answer is None:
            sentences = sentences or rank_sentences(outcome)
            answer = extract_answer(outcome, sentences)
            answer = self._answer_in_two_steps(outcome, options, search) or answer
        answer = unsure_of_rows(outcome, answer)
        if problem is not None:
            answer = replace(answer, note=problem.message, hint=problem.hint)
        return answer, sentences, problem

    def _answer_in_two_steps(
        self, outcome: SearchOutcome, options: QueryOptions, search: SearchOptions
    ) -> Answer | None:
        """Find out whom or what a question describes, and then answer the question about that.

        Returns None where it describes nothing, or either step gives no sure answer.
        """
        from memctl.search.answering.extractive_answer import (
            answer_of_two_steps,
            extract_answer,
            only_new_name,
        )
        from memctl.search.query.subject_questions import described_thing

        def answer(question: str) -> Answer:
            found = self._with_relevance(self._search(question, search), options.threshold)
            return extract_answer(found.evidence)

        described = described_thing(outcome.asked.text)
        if described is None:
            return None
        first = answer(described.question)
        name = only_new_name(first, described.question)
        second = answer(described.question_about(name)) if name else None
        return answer_of_two_steps(first, second) if second is not None and second.found else None

    def context(
        self,
        question: str,
        budget: int,
        options: QueryOptions,
        *,
        auto: bool,
        beside: Context | None = None,
    ) -> Context:
        """Return evidence on a question; see ``QueryService.context``.

        What stands ``beside`` it is left out.
        """
        from memctl.search.answering.evidence_context import build_with_communities, token_counter
        from memctl.search.answering.memory_need import (
            extract_question,
            is_instruction,
            is_memory_needed,
            refers_back,
            without_reference,
        )

        options.require_mode(self._mode)
        settings = self.search_context.config.auto_context
        referring = refers_back(question, settings)
        about = without_reference(question, settings) if referring else question
        if auto and not referring and is_instruction(extract_question(question) or question):
            return Context(question, "", 0, budget, (), why="not a question")
        started = time.monotonic()
        limit = max(_FEWEST_EXCERPTS, budget // _SHORTEST_EXCERPT)
        search = self.search_context.search_options(limit, options)
        outcome = self._search_message(about, search)
        why = f"refers to what was before: {referring!r}" if auto and referring else ""
        if auto and not referring:
            why = f"relevance {outcome.relevance.score:.2f}"
            least = self.search_context.config.context.least_relevance
            if not is_memory_needed(outcome.asked, outcome.relevance, least):
                return Context(question, "", 0, budget, (), outcome.notes, why=why)
        relevance = outcome.relevance
        outcome = self._with_relevance(outcome, options.threshold)
        count = token_counter(outcome.embedder)
        hits = _context_hits(outcome, relevance, auto=auto)
        in_doubt = bool(hits) and not relevance.is_near
        new, insights, communities = _not_shown(beside, hits, outcome.insights, outcome.communities)
        if in_doubt:
            why = f"in doubt: relevance {relevance.score:.2f}"
        context = build_with_communities(
            question,
            new,
            insights,
            communities,
            budget,
            count,
            in_doubt=in_doubt,
        )
        cited = {citation.memory_id for citation in context.citations}
        is_known = bool(context.text) or (bool(hits) and not new)
        found = is_known and not in_doubt
        shown = [hit for hit in (*outcome.insights, *hits) if hit.memory_id in cited]
        how = replace(
            self._search_details(outcome, search, 0, shown),  # as many as there is room for
            status="answered" if found else "unsure" if context.text else "nothing",
            threshold=options.threshold or 0.0,
            cited=tuple(cited),
            tokens=context.tokens,
        )
        seconds = time.monotonic() - started
        query_id = self._log(
            question, "context", options.filters, found, seconds, how, shown, outcome
        )
        return replace(context, notes=outcome.notes, why=why, query_id=query_id)

    def _log(
        self,
        question: str,
        kind: QueryKind,
        filters: Filters,
        found: bool,
        seconds: float,
        how: QueryDetail,
        shown: Iterable[Hit],
        outcome: SearchOutcome | None = None,
        answer: Answer | None = None,
    ) -> str | None:
        """Record a question in the log of each target; return its id, None if none records it.

        Of one that is, or may be, about what is private, neither text nor vector is kept.
        """
        context, targets = self.search_context, self.search_context.targets
        text, vector = "", None
        if not context.private:
            text = shown_text(question, redact=context.config.query_log.redact)
            vector = _vector(outcome) if outcome else None
        logged = LoggedQuestion(
            context.clock(), text, self._mode, kind, filters, found, seconds, how, vector
        )
        gave: dict[str, list[Hit]] = {target.name: [] for target in targets}
        for hit in shown:
            gave[hit.kb].append(hit)
        recorded = [
            target.query_log.note(
                replace(logged, detail=_given_by(target.name, gave[target.name], how, answer)),
                [(hit.memory_id, hit.score) for hit in gave[target.name]],
                is_private=context.private or target.settings.private,
            )
            for target in targets
        ]
        return logged.id if any(recorded) else None


def _first_end(snapshot: Snapshot, now: datetime) -> datetime | None:
    """Return when the next of all memories expires or ends; None if none does."""
    import pyarrow.compute as pc

    from memctl.store.tables.filter_expressions import col

    ends = [
        pc.min(snapshot.scan("memories", col(name) > now, [name])[name]).as_py()
        for name in ("expires_at", "valid_to")
    ]
    return min((end for end in ends if end is not None), default=None)


def _given_by(kb: str, hits: Sequence[Hit], how: QueryDetail, answer: Answer | None) -> QueryDetail:
    """Return how a question was asked and what one of the knowledge bases gave, which has hits."""
    if how.kbs < 2 or how.status == "failed":
        return how
    is_cited = answer is not None and any(each.kb == kb for each in answer.citations)
    if not hits and not is_cited:
        return replace(how, status="nothing", confidence=None, relevance=None)
    return replace(how, relevance=max((hit.relevance for hit in hits), default=None))


def _joined(classes: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(classes))


def _status(answer: Answer | None, *, found: bool) -> QueryStatus:
    if found:
        return "answered"
    return "unsure" if answer is not None and answer.unsure else "nothing"


def _grounding(answer: Answer | None) -> float | None:
    """Return the share of an answer's sentences that are supported; the built-in way quotes."""
    if answer is None or not answer.found:
        return None
    if not answer.sentences:
        return 1.0
    return sum(not each.unsupported for each in answer.sentences) / len(answer.sentences)


def _tokens_of(result: QueryResult) -> int:
    """Return about how many tokens the hits and the answer have."""
    from memctl.models.protocols import estimate_tokens

    texts = [hit.text for hit in result.hits]
    return estimate_tokens("\n".join([*texts, result.answer.text if result.answer else ""]))


def _prompt_of(answer: Answer | None) -> str:
    """Return the version of the prompt by which a model answered, such as ``answer/1``."""
    if answer is None or not answer.method.startswith("model/"):
        return ""
    return "/".join(answer.method.rsplit("/", 2)[1:])


def _vector(outcome: SearchOutcome) -> tuple[str, bytes] | None:
    """Return the vector that a question was searched by; None where it was by words alone."""
    if outcome.mode == "keyword" or "vector" not in vars(outcome.meaning):
        return None
    vector = outcome.meaning.vector.astype("float16")
    return outcome.meaning.embedder.id, vector.tobytes()


def _not_shown(
    beside: Context | None,
    hits: Sequence[Hit],
    insights: Sequence[Hit],
    communities: Sequence[Community],
) -> tuple[Sequence[Hit], Sequence[Hit], Sequence[Community]]:
    """Return what does not stand in a context already: hits, insights, communities."""
    if beside is None:
        return hits, insights, communities
    from memctl.understanding.triggers import plain_words

    ids = {each.memory_id for each in beside.citations}
    words = f" {plain_words(beside.text)} "

    def is_new(id_: str, text: str) -> bool:
        """Return whether a memory is not shown, nor its words by another one."""
        return id_ not in ids and f" {plain_words(text)} " not in words

    return (
        [hit for hit in hits if is_new(hit.memory_id, hit.text)],
        [hit for hit in insights if is_new(hit.memory_id, hit.text)],
        [
            replace(
                each, citations=tuple(c for c in each.citations if is_new(c.memory_id, c.quote))
            )
            for each in communities
        ],
    )


def _context_hits(outcome: SearchOutcome, relevance: Relevance, *, auto: bool) -> Sequence[Hit]:
    """Return the hits that may fill a context, best first.

    Hits that are merely near the question help the person who asked, but are not put unasked before
    a message.
    """
    from memctl.search.answering.evidence_context import budget_order

    if relevance.is_far or (auto and not relevance.is_near):
        return ()
    hits = outcome.hits[:_MOST_UNASKED] if auto else outcome.hits
    if relevance.is_near:
        hits = tuple(hit for hit in hits if hit.relevance >= _LEAST_SHOWN)
    # BM25 has taken the length into account already.
    return hits if outcome.mode == "keyword" else budget_order(hits)
