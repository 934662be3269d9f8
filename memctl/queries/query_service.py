"""Questions put to several knowledge bases: searched for, answered or made context, and noted."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from memctl.errors import MemctlError
from memctl.queries.query_log import LoggedQuestion, shown_text, without_text
from memctl.queries.search_context import QueryOptions, SearchContext, SearchOptions
from memctl.records import Answer, Context, Filters, Hit, QueryResult, Question

if TYPE_CHECKING:
    from memctl.literals import Mode, QueryKind
    from memctl.search.answering.search_outcome import SearchOutcome
    from memctl.search.searcher import Searcher

_FEWEST_EXCERPTS = 20
_SHORTEST_EXCERPT = 20
"""Tokens; so many hits are looked for that the budget of a context is used up."""


@dataclass(frozen=True)  # without slots, for what is worked out late is kept
class QueryService:
    """Asks questions of one kind, private or not, all of the same state.

    Args:
        means: What they are searched and answered with.
        wanted: How memories are found; by default as configured.
    """

    means: SearchContext
    wanted: Mode | None

    @cached_property
    def _mode(self) -> Mode:
        return self.wanted or self.means.config.query.mode

    @cached_property
    def _searcher(self) -> Searcher:
        return self.means.searcher(self._mode)

    def ask(self, asked: Question, filters: Filters, options: QueryOptions) -> QueryResult:
        """Search for what a question asks, answer it if that is wanted, and note it."""
        from memctl.search.answering.evidence_sentences import MAX_HITS_READ

        searcher, started = self._searcher, time.monotonic()
        limit = options.get("limit") or self.means.config.query.limit
        search = self.means.search_options(filters, max(limit, MAX_HITS_READ), options)
        outcome, notes = _search_message(searcher, asked.text, self._mode, search)
        hits = outcome.listed[:limit]
        answer = self._answered(outcome, options) if options.get("answer", True) else None
        result = QueryResult(
            question=asked.text,
            hits=hits,
            insights=outcome.insights,
            answer=answer,
            mode=self._mode,
            seconds=time.monotonic() - started,
            id=asked.id,
            explain=outcome.explain if options.get("explain") else {},
            notes=notes,
            communities=outcome.communities,
        )
        if not options.get("log", True):
            return result
        found = bool(outcome.hits) and outcome.relevance.is_near
        noted = self._asked(
            asked.text, "query", filters, answer.found if answer else found, result.seconds
        )
        return replace(result, query_id=self._note(noted, hits))

    def _answered(self, outcome: SearchOutcome, options: QueryOptions) -> Answer:
        """Return the answer of the model that is configured; the built-in one where it has none."""
        from memctl.search.answering.extractive_answer import extract_answer

        try:
            answerer = self.means.answerer(outcome.hits[0].kb) if outcome.hits else None
            if answerer is None:
                return extract_answer(outcome)
            return answerer.answer(outcome, options.get("told"))
        except MemctlError as error:  # a question is answered, whatever is wrong with the model
            return replace(extract_answer(outcome), note=error.message, hint=error.hint)

    def context(self, question: str, budget: int, filters: Filters, *, auto: bool) -> Context:
        """Return evidence on a question; see ``KnowledgeBases.context``."""
        from memctl.search.answering.evidence_context import build_with_communities, token_counter
        from memctl.search.answering.memory_need import (
            extract_question,
            is_instruction,
            is_memory_needed,
            refers_back,
        )

        referring = refers_back(question) if auto else ""
        if auto and not referring and is_instruction(extract_question(question) or question):
            return Context(question, "", 0, budget, (), why="not a question")
        started = time.monotonic()
        limit = max(_FEWEST_EXCERPTS, budget // _SHORTEST_EXCERPT)
        whole: QueryOptions = {"diversity": 0.0, "per_document": 0}
        search = self.means.search_options(filters, limit, whole)
        outcome, notes = _search_message(self._searcher, question, self._mode, search)
        why = f"refers to what was before: {referring!r}" if referring else ""
        if auto and not referring:
            why = f"relevance {outcome.relevance.score:.2f}"
            if not is_memory_needed(outcome.asked, outcome.relevance):
                return Context(question, "", 0, budget, (), notes, why=why)
        count = token_counter(outcome.embedder)
        hits = _context_hits(outcome, auto=auto)
        in_doubt = bool(hits) and not outcome.relevance.is_near
        if in_doubt:
            why = f"in doubt: relevance {outcome.relevance.score:.2f}"
        context = build_with_communities(
            question,
            hits,
            outcome.insights,
            outcome.communities,
            budget,
            count,
            in_doubt=in_doubt,
        )
        cited = {citation.memory_id for citation in context.citations}
        found = bool(context.text) and not in_doubt
        noted = self._asked(question, "context", filters, found, time.monotonic() - started)
        shown = [hit for hit in (*outcome.insights, *hits) if hit.memory_id in cited]
        return replace(context, notes=notes, why=why, query_id=self._note(noted, shown))

    def _asked(
        self,
        question: str,
        kind: QueryKind,
        filters: Filters,
        found: bool,
        seconds: float,
    ) -> LoggedQuestion:
        """What there is to note of a question that was asked just now."""
        at = self.means.members[0].clock()
        return LoggedQuestion(at, question, self._mode, kind, filters, found, seconds)

    def _note(self, asked: LoggedQuestion, shown: Iterable[Hit]) -> str | None:
        """Note a question in the log of each; return its id, None where none of them logs it."""
        if self.means.private:
            asked = without_text(asked)
        else:
            asked = shown_text(asked, redact=self.means.config.query_log.redact)
        members = self.means.members
        scores: dict[str, list[tuple[str, float]]] = {member.name: [] for member in members}
        for hit in shown:
            scores[hit.kb].append((hit.memory_id, hit.score))
        noted = [member.query_log.note(asked, scores[member.name]) for member in members]
        return asked.id if any(noted) else None


def _context_hits(outcome: SearchOutcome, *, auto: bool) -> Sequence[Hit]:
    """Return the hits to fill a context with, in the order to choose them in.

    Those that are only near are for whoever asked, and not to go in front of a message unasked.
    """
    from memctl.search.answering.evidence_context import budget_order

    relevance = outcome.relevance
    if relevance.is_far or (auto and not relevance.is_near):
        return ()
    # BM25 alone has weighed the lengths already
    return outcome.hits if outcome.mode == "keyword" else budget_order(outcome.hits)


def _search_message(
    searcher: Searcher, question: str, mode: Mode, search: SearchOptions
) -> tuple[SearchOutcome, tuple[str, ...]]:
    """Search for a message; where nothing clearly bears on all of it, for its question alone.

    Returns:
        What was found, and what was done without.
    """
    from memctl.search.answering.memory_need import MIN_RELEVANCE, extract_question

    whole = _search(searcher, question, mode, search)
    score = whole[0].relevance.score
    asked = extract_question(question) if score < MIN_RELEVANCE else ""
    if not asked:
        return whole
    alone = _search(searcher, asked, mode, search)
    relevance = alone[0].relevance
    return alone if relevance.is_relevant and relevance.score > score else whole


def _search(
    searcher: Searcher, question: str, mode: Mode, search: SearchOptions
) -> tuple[SearchOutcome, tuple[str, ...]]:
    """Search, by keyword alone where no embedder can be had now; return what was done without."""
    from memctl.search.retrieval.question_vectors import EMBEDDER_UNAVAILABLE

    try:
        outcome = searcher.search(question, mode=mode, **search)
        return outcome, outcome.notes
    except EMBEDDER_UNAVAILABLE as error:
        if mode == "vector":
            raise
        found = searcher.search(question, mode="keyword", **search)
        return found, (f"found by keyword alone: {error.message}",)
