"""Questions put to several knowledge bases: searched for, answered or made context, and noted."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from memctl.errors import MemctlError
from memctl.knowledge_bases.means import Means
from memctl.knowledge_bases.options import AskOptions, SearchOptions
from memctl.query_log import Asked, shown_text, without_text
from memctl.records import Answer, Context, Filters, Hit, QueryResult, Question

if TYPE_CHECKING:
    from memctl.choices import Mode, QueryKind
    from memctl.retrieve.outcome import SearchOutcome
    from memctl.retrieve.search import Searcher

_FEWEST_EXCERPTS = 20
_SHORTEST_EXCERPT = 20
"""Tokens; so many hits are looked for that the budget of a context is used up."""


@dataclass(frozen=True)  # without slots, for what is worked out late is kept
class Asker:
    """Asks questions of one kind, private or not, all of the same state.

    Args:
        means: What they are searched and answered with.
        wanted: How memories are found; by default as configured.
    """

    means: Means
    wanted: Mode | None

    @cached_property
    def _mode(self) -> Mode:
        return self.wanted or self.means.config.query.mode

    @cached_property
    def _searcher(self) -> Searcher:
        return self.means.searcher(self._mode)

    def ask(self, asked: Question, filters: Filters, options: AskOptions) -> QueryResult:
        """Search for what a question asks, answer it if that is wanted, and note it."""
        from memctl.retrieve.statements import READ

        searcher, started = self._searcher, time.monotonic()
        limit = options.get("limit") or self.means.config.query.limit
        search = self.means.search_options(filters, max(limit, READ), options)
        outcome, notes = _found(searcher, asked.text, self._mode, search)
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

    def _answered(self, outcome: SearchOutcome, options: AskOptions) -> Answer:
        """Return the answer of the model that is configured; the built-in one where it has none."""
        from memctl.retrieve.answer import answer

        try:
            answerer = self.means.answerer(outcome.hits[0].kb) if outcome.hits else None
            if answerer is None:
                return answer(outcome)
            return answerer.answer(outcome, options.get("told"))
        except MemctlError as error:  # a question is answered, whatever is wrong with the model
            return replace(answer(outcome), note=error.message, hint=error.hint)

    def context(self, question: str, budget: int, filters: Filters, *, auto: bool) -> Context:
        """Return evidence on a question; see ``KnowledgeBases.context``."""
        from memctl.retrieve.asked import question_in
        from memctl.retrieve.context import token_counter
        from memctl.retrieve.need import is_needed, is_order, refers_back
        from memctl.retrieve.part_of import build_with_communities

        referring = refers_back(question) if auto else ""
        if auto and not referring and is_order(question_in(question) or question):
            return Context(question, "", 0, budget, (), why="not a question")
        started = time.monotonic()
        limit = max(_FEWEST_EXCERPTS, budget // _SHORTEST_EXCERPT)
        whole: AskOptions = {"diversity": 0.0, "per_document": 0}
        search = self.means.search_options(filters, limit, whole)
        outcome, notes = _found(self._searcher, question, self._mode, search)
        why = f"refers to what was before: {referring!r}" if referring else ""
        if auto and not referring:
            why = f"relevance {outcome.relevance.score:.2f}"
            if not is_needed(outcome.asked, outcome.relevance):
                return Context(question, "", 0, budget, (), notes, why=why)
        count = token_counter(outcome.embedder)
        hits = _worth_showing(outcome, auto=auto)
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
    ) -> Asked:
        """What there is to note of a question that was asked just now."""
        at = self.means.members[0].clock()
        return Asked(at, question, self._mode, kind, filters, found, seconds)

    def _note(self, asked: Asked, shown: Iterable[Hit]) -> str | None:
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


def _worth_showing(outcome: SearchOutcome, *, auto: bool) -> Sequence[Hit]:
    """Return the hits to fill a context with, in the order to choose them in.

    Those that are only near are for whoever asked, and not to go in front of a message unasked.
    """
    from memctl.retrieve.worth import by_worth

    relevance = outcome.relevance
    if relevance.is_far or (auto and not relevance.is_near):
        return ()
    # BM25 alone has weighed the lengths already
    return outcome.hits if outcome.mode == "keyword" else by_worth(outcome.hits)


def _found(
    searcher: Searcher, question: str, mode: Mode, search: SearchOptions
) -> tuple[SearchOutcome, tuple[str, ...]]:
    """Search for a message; where nothing clearly bears on all of it, for its question alone.

    Returns:
        What was found, and what was done without.
    """
    from memctl.retrieve.asked import question_in
    from memctl.retrieve.need import LEAST_RELEVANCE

    whole = _searched(searcher, question, mode, search)
    score = whole[0].relevance.score
    asked = question_in(question) if score < LEAST_RELEVANCE else ""
    if not asked:
        return whole
    alone = _searched(searcher, asked, mode, search)
    relevance = alone[0].relevance
    return alone if relevance.is_relevant and relevance.score > score else whole


def _searched(
    searcher: Searcher, question: str, mode: Mode, search: SearchOptions
) -> tuple[SearchOutcome, tuple[str, ...]]:
    """Search, by keyword alone where no embedder can be had now; return what was done without."""
    from memctl.retrieve.comparing import AWAY

    try:
        outcome = searcher.search(question, mode=mode, **search)
        return outcome, outcome.notes
    except AWAY as error:
        if mode == "vector":
            raise
        found = searcher.search(question, mode="keyword", **search)
        return found, (f"found by keyword alone: {error.message}",)
