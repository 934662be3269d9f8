"""Questions of one kind to one state of the tables: searched, answered or made context, logged."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import MemctlError, UsageError
from memctl.literals import Mode
from memctl.queries.query_log import (
    LoggedQuestion,
    details_of_one,
    joined_classes,
    result_details,
    shown_text,
)
from memctl.queries.result_cache import ResultCache
from memctl.queries.search_context import QueryOptions, SearchContext, SearchOptions
from memctl.records import Answer, Community, Context, Filters, Hit, QueryResult, Question
from memctl.store.ledger.log_repositories import QueryDetail

if TYPE_CHECKING:
    from memctl.literals import QueryKind
    from memctl.search.answering.evidence_sentences import EvidenceSentence
    from memctl.search.answering.relevance import Relevance
    from memctl.search.answering.search_outcome import SearchOutcome
    from memctl.search.searcher import Searcher

_MAX_UNASKED = 5
"""At most this many passages are put before a message that did not ask for any."""
_MIN_EXCERPTS = 20
_MIN_SHOWN = 0.001
"""Least relevance of an excerpt where something else bears on the question.  It is this low so that
what has nothing of it goes, and no question loses its evidence."""
_SHORTEST_EXCERPT = 20
"""Tokens; enough hits are searched for to use up the budget of a context."""
_RELEVANT_AS_A_WHOLE = 0.45
"""Relevance of what is found below which the last question of a message is looked for alone."""


class QuerySession(Struct, frozen=True, dict=True):
    """Asks questions of one kind, private or not, of one state of the tables."""

    search_context: SearchContext
    wanted: Mode | None

    @cached_property
    def _mode(self) -> Mode:
        return self.wanted or self.search_context.config.query.mode

    @cached_property
    def _cache(self) -> ResultCache:
        return ResultCache(self.search_context, self._mode)

    @cached_property
    def _searcher(self) -> Searcher:
        return self.search_context.searcher(self._mode)

    def ask(self, question: Question, options: QueryOptions) -> QueryResult:
        """Search for what a question asks, answer it if that is wanted, and log it."""
        started = time.monotonic()
        try:
            return self._find_cached(question, options, started) or self._ask(
                question, options, started
            )
        except MemctlError as error:
            if options.log and question.text.strip():
                self._log_failure(question.text, options, error, time.monotonic() - started)
            raise

    def _ask(self, question: Question, options: QueryOptions, started: float) -> QueryResult:
        from memctl.search.answering.search_outcome import MAX_HITS_READ

        options.require_mode(self._mode)
        began, settings = self.search_context.clock(), self.search_context.config.query
        limit = settings.limit if options.limit is None else options.limit
        search = self.search_context.search_options(
            max(options.offset + limit, MAX_HITS_READ), options
        )
        outcome = self._search_message(question.text, search)
        outcome = self._with_relevance(outcome, options.threshold)
        answer, hits, failures = None, outcome.hits_to_show, outcome.failures
        if options.answer:
            from memctl.search.answering.evidence_sentences import rank_hits

            answer, sentences, problem = self._answer(outcome.evidence, search, options)
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
            explain=self._explain(outcome, hits) if options.explain else {},
            notes=outcome.notes,
            communities=outcome.communities,
            rounds=tuple(outcome.explain.get("rounds", ())),
            total_results=len(hits),
        )
        if not options.log:
            return result
        is_answered = answer.found if answer else bool(outcome.hits) and outcome.relevance.is_near
        detail = result_details(
            self._search_details(outcome, search, limit, hits),
            result,
            options.threshold,
            failures,
            is_answered=is_answered,
        )
        if not failures:
            self._cache.save(question, options, began, result, detail, is_answered=is_answered)
        query_id = self._log(
            question.text,
            "query",
            options.filters,
            is_answered,
            result.seconds,
            detail,
            hits,
            outcome,
            answer,
        )
        return replace(result, query_id=query_id)

    def _find_cached(
        self, question: Question, options: QueryOptions, started: float
    ) -> QueryResult | None:
        """Return what the cache has for a question, and log that it was asked."""
        cached = self._cache.find(question, options)
        if cached is None:
            return None
        result = replace(
            cached.result,
            question=question.text,
            seconds=time.monotonic() - started,
            id=question.id,
            cached=True,
        )
        query_id = self._log(
            question.text,
            "query",
            options.filters,
            cached.found,
            result.seconds,
            cached.how,
            result.hits,
            answer=result.answer,
        )
        return replace(result, query_id=query_id)

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
            error=joined_classes(outcome.failures),
            kbs=len(self.search_context.targets),
            user_id=config.user,
            agent_id=config.agent,
            session_id=config.session,
        )

    def _explain(self, outcome: SearchOutcome, hits: Sequence[Hit]) -> Mapping[str, Any]:
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
        detail = QueryDetail(
            "",
            status="failed",
            top_k=config.query.limit if options.limit is None else options.limit,
            kbs=len(self.search_context.targets),
            error=type(error).__name__,
            user_id=config.user,
            agent_id=config.agent,
            session_id=config.session,
        )
        self._log(question, "query", options.filters, False, seconds, detail, ())

    def _with_relevance(self, outcome: SearchOutcome, threshold: float | None) -> SearchOutcome:
        """Return what was found with the relevance of each hit, without those below a threshold.

        Raises:
            UsageError: The threshold is not from 0 to 1.
        """
        least = self.search_context.config.query.threshold if threshold is None else threshold
        if not 0 <= least <= 1:
            raise UsageError(f"no such threshold: {least:g}", "0 to 1; 0.7 is clearly relevant")
        judged = outcome.with_relevance()
        return judged.above(least) if least else judged

    def _answer(
        self, outcome: SearchOutcome, search: SearchOptions, options: QueryOptions
    ) -> tuple[Answer, Sequence[EvidenceSentence], MemctlError | None]:
        """Return the answer of the configured model, or the built-in one where there is none.

        With it are the sentences that were judged, best first, and how the model failed.
        """
        from memctl.search.answering.evidence_sentences import rank_sentences

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
        answer, sentences = _extract(outcome, sentences)
        answer = self._with_parts(answer, outcome.asked.text, search, options)
        if problem is not None:
            answer = replace(answer, note=problem.message, hint=problem.hint)
        return answer, sentences, problem

    def _with_parts(
        self, whole: Answer, question: str, search: SearchOptions, options: QueryOptions
    ) -> Answer:
        """Return the answers of the parts of a question that asks several things.

        Each part is searched for alone, unless the answer of the whole has what all of them ask.
        """
        from memctl.search.answering.extractive_answer import join_parts, may_lack
        from memctl.search.answering.memory_need import question_parts

        parts = question_parts(question)
        if not whole.citations or not any(may_lack(each, whole) for each in parts):
            return whole
        found: list[Answer | None] = []
        for part in parts:
            outcome = self._search(part.alone, search) if part.alone else None
            if outcome is not None:
                outcome = self._with_relevance(outcome, options.threshold).evidence
            found.append(_extract(outcome)[0] if outcome is not None else None)
        return join_parts(whole, parts, found)

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
        limit = max(_MIN_EXCERPTS, budget // _SHORTEST_EXCERPT)
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
        new, insights, communities = _without_context(
            beside, hits, outcome.insights, outcome.communities
        )
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
        detail = replace(
            self._search_details(outcome, search, 0, shown),  # as many as there is room for
            status="answered" if found else "unsure" if context.text else "nothing",
            threshold=options.threshold or 0.0,
            cited=tuple(cited),
            tokens=context.tokens,
        )
        seconds = time.monotonic() - started
        query_id = self._log(
            question, "context", options.filters, found, seconds, detail, shown, outcome
        )
        return replace(context, notes=outcome.notes, why=why, query_id=query_id)

    def _log(
        self,
        question: str,
        kind: QueryKind,
        filters: Filters,
        is_answered: bool,
        seconds: float,
        detail: QueryDetail,
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
            context.clock(), text, self._mode, kind, filters, is_answered, seconds, detail, vector
        )
        gave: dict[str, list[Hit]] = {target.name: [] for target in targets}
        for hit in shown:
            gave[hit.kb].append(hit)
        recorded = [
            target.query_log.note(
                replace(
                    logged, detail=details_of_one(target.name, gave[target.name], detail, answer)
                ),
                [(hit.memory_id, hit.score) for hit in gave[target.name]],
                is_private=context.private or target.settings.private,
            )
            for target in targets
        ]
        return logged.id if any(recorded) else None


def _extract(
    outcome: SearchOutcome, sentences: Sequence[EvidenceSentence] = ()
) -> tuple[Answer, Sequence[EvidenceSentence]]:
    """Return the built-in answer, with the sentences that were judged for it."""
    from memctl.search.answering.evidence_sentences import rank_sentences
    from memctl.search.answering.extractive_answer import extract_answer, special_answer
    from memctl.search.answering.table_totals import unsure_of_rows

    answer = special_answer(outcome)
    if answer is None:
        sentences = sentences or rank_sentences(outcome)
        answer = extract_answer(outcome, sentences)
    return unsure_of_rows(outcome, answer), sentences


def _vector(outcome: SearchOutcome) -> tuple[str, bytes] | None:
    """Return the vector that a question was searched by; None where it was by words alone."""
    if outcome.mode == "keyword" or "vector" not in vars(outcome.meaning):
        return None
    vector = outcome.meaning.vector.astype("float16")
    return outcome.meaning.embedder.id, vector.tobytes()


def _without_context(
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
    hits = outcome.hits[:_MAX_UNASKED] if auto else outcome.hits
    if relevance.is_near:
        hits = tuple(hit for hit in hits if hit.relevance >= _MIN_SHOWN)
    # BM25 has taken the length into account already.
    return hits if outcome.mode == "keyword" else budget_order(hits)
