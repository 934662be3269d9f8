"""Several knowledge bases asked at once: questions, context and SQL over all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypedDict, Unpack, overload

from memctl.choices import HOPS, Duplicates, Fusion, Mode
from memctl.errors import ConfigError, MemctlError, NotFoundError, UsageError
from memctl.query_log import Asked, shown_text, without_text
from memctl.records import Answer, Context, Filters, Hit, QueryResult, Question
from memctl.retrieve.latest import LatestCorpus
from memctl.store.unicode import storable

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.choices import QueryKind, Verdict
    from memctl.config import Config
    from memctl.graph.resolution import Decisions
    from memctl.knowledge_base import KnowledgeBase
    from memctl.models.protocols import Embedder
    from memctl.retrieve.model_answer import ModelAnswerer
    from memctl.retrieve.outcome import SearchOutcome
    from memctl.retrieve.rerank import Reranking
    from memctl.retrieve.search import Searcher
    from memctl.retrieve.standing import Standing
    from memctl.stages import Stages
    from memctl.store.names import TableName
    from memctl.store.snapshot import Snapshot

_FEWEST_EXCERPTS = 20
_SHORTEST_EXCERPT = 20
"""Tokens; so many hits are looked for that the budget of a context is used up."""


class AskOptions(TypedDict, total=False):
    """How a question is to be asked; what is left out is as configured."""

    mode: Mode | None
    """How memories are found: ``hybrid``, ``keyword``, ``vector``, ``graph`` or ``agentic``."""
    hops: int | None
    """So many steps at most that ``graph`` goes; 2 by default."""
    fusion: Fusion | None
    """How ``hybrid`` makes one score of those by words and by meaning."""
    filters: Filters
    """What the hits are limited to."""
    limit: int | None
    """How many hits."""
    duplicates: Duplicates | None
    """What is folded of memories that say the same: ``exact``, ``near`` or, with ``keep``, none."""
    diversity: float | None
    """0 to 1: how much it counts against a hit that it is like a better one."""
    per_document: int | None
    """So many hits of one document at most; 0 for any number."""
    answer: bool
    """Whether to answer, with citations, besides finding memories; True by default."""
    explain: bool
    """Whether to say how the search went."""
    told: Callable[[str], None] | None
    """Told an answer piece by piece while a model writes it; what it wrote is not kept then."""
    log: bool
    """Whether it is noted in the query log, as it is by default where that is on."""


def _narrowed(filters: Filters | None, namespace: str | None) -> Filters:
    given = filters or Filters()
    return given if namespace is None else replace(given, namespaces=(namespace,))


class _Search(TypedDict):
    """How a question is looked for in the mode that was chosen."""

    filters: Filters
    limit: int
    fusion: Fusion
    keyword_weight: float
    hops: int
    duplicates: Duplicates
    diversity: float
    per_document: int


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
    searcher: Searcher, question: str, mode: Mode, search: _Search
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
    searcher: Searcher, question: str, mode: Mode, search: _Search
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


class KnowledgeBases(Sequence["KnowledgeBase"]):
    """Knowledge bases that are open, at least one.

    Args:
        members: Which.
        private: Whether they are asked about what is, or may be, private.
        latest: Keeps what was worked out of them for questions; by default a new one does.
    """

    def __init__(
        self,
        members: Sequence[KnowledgeBase],
        *,
        private: bool = False,
        latest: LatestCorpus | None = None,
    ) -> None:
        self._members = tuple(members)
        self._private = private
        self._latest = latest or LatestCorpus()

    @overload
    def __getitem__(self, index: int) -> KnowledgeBase: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[KnowledgeBase]: ...
    def __getitem__(self, index: int | slice) -> KnowledgeBase | Sequence[KnowledgeBase]:
        return self._members[index]

    def __len__(self) -> int:
        return len(self._members)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the files of all."""
        self._latest.drop()
        for member in self._members:
            member.close()

    def owner(self, table: TableName, id_: str) -> KnowledgeBase:
        """Return the first that has a row whose id is, or begins with, what is given.

        Raises:
            NotFoundError: None has.
        """
        from memctl.memories.viewing import resolve

        missing: NotFoundError | None = None
        for member in self._members:
            try:
                resolve(member.store.snapshot(), table, id_)
            except NotFoundError as error:
                missing = error
            else:
                return member
        raise missing or NotFoundError(f"there is nothing {id_!r}")

    # --- asking ----------------------------------------------------------------------------------

    def query(self, question: str, **options: Unpack[AskOptions]) -> QueryResult:
        """Ask one question; see ``AskOptions`` for what else can be said.

        Raises:
            UsageError: The question is empty, or an option cannot be used.
        """
        return next(self.query_many([question], **options))

    def query_many(
        self, questions: Iterable[Question | str], **options: Unpack[AskOptions]
    ) -> Iterator[QueryResult]:
        """Ask many questions of the same state; the results come in order, as they are found.

        A question's own namespace stands in for that of the filters.

        Raises:
            UsageError: A question is empty, or an option cannot be used.
        """
        searchers: dict[bool, Searcher] = {}
        for question in questions:
            asked = Question(question) if isinstance(question, str) else question
            filters = _narrowed(options.get("filters"), asked.namespace)
            bases = self._for(filters)
            if bases._private not in searchers:
                searchers[bases._private] = bases._searcher(options.get("mode"))
            yield bases._ask(searchers[bases._private], asked, filters, options)

    def _for(self, filters: Filters) -> KnowledgeBases:
        """Return these as they are asked with some filters."""
        private = any(member.names_private(filters) for member in self)
        if private == self._private:
            return self
        return KnowledgeBases(self._members, private=private, latest=self._latest)

    def _ask(
        self, searcher: Searcher, asked: Question, filters: Filters, options: AskOptions
    ) -> QueryResult:
        from memctl.retrieve.statements import READ

        started, defaults = time.monotonic(), self._config.query
        mode = options.get("mode") or defaults.mode
        limit = options.get("limit") or defaults.limit
        search = self._search(filters, max(limit, READ), options)
        outcome, notes = _found(searcher, asked.text, mode, search)
        hits = outcome.listed[:limit]
        answer = self._answered(outcome, options) if options.get("answer", True) else None
        result = QueryResult(
            question=asked.text,
            hits=hits,
            insights=outcome.insights,
            answer=answer,
            mode=mode,
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
            asked.text, mode, "query", filters, answer.found if answer else found, result.seconds
        )
        return replace(result, query_id=self._note(noted, hits))

    def _answered(self, outcome: SearchOutcome, options: AskOptions) -> Answer:
        """Return the answer of the model that is configured; the built-in one where it has none."""
        from memctl.retrieve.answer import answer

        try:
            answerer = self._answerer(outcome.hits[0].kb) if outcome.hits else None
            if answerer is None:
                return answer(outcome)
            return answerer.answer(outcome, options.get("told"))
        except MemctlError as error:  # a question is answered, whatever is wrong with the model
            return replace(answer(outcome), note=error.message, hint=error.hint)

    def _answerer(self, name: str) -> ModelAnswerer | None:
        """Return the model that answers, if any; one knowledge base keeps its reply and cost.

        Args:
            name: Of the knowledge base: that which has the best hit.

        Raises:
            ConfigError: The settings cannot be used.
            KnowledgeBaseUnavailable: What a reply costs could not be noted.
        """
        if not self._config.models.answer:
            return None
        from memctl.prompts import load_prompt
        from memctl.retrieve.model_answer import ModelAnswerer

        payer = self._payer(name)
        payer.store.ledger.require_writable()
        chat = payer.providers.chat("answer")
        own = payer.layout.prompts if len(self) == 1 else None
        budget = self._config.query.answer_tokens
        return ModelAnswerer(chat, load_prompt("answer", own), budget) if chat else None

    def context(
        self,
        question: str,
        *,
        budget: int = 2000,
        mode: Mode | None = None,
        filters: Filters | None = None,
        auto: bool = False,
    ) -> Context:
        """Return evidence on a question, best first, with the ``[n]`` to cite it by.

        Its text is empty where nothing that is known has to do with the question; where it is in
        doubt whether anything has, it says so, and is half as long at most.

        Args:
            question: In words.
            budget: The most tokens that it may have.
            mode: How memories are found; by default as configured.
            filters: What it is limited to.
            auto: Whether it may be any message, of which most need no memory: those get a text
                only if they refer to what was before, or if what is known clearly bears on them.

        Raises:
            UsageError: The question is empty, or an option cannot be used.
        """
        narrowed = filters or Filters()
        return self._for(narrowed)._context(question, budget, mode, narrowed, auto=auto)

    def _context(
        self, question: str, budget: int, mode: Mode | None, filters: Filters, *, auto: bool
    ) -> Context:
        from memctl.retrieve.asked import question_in
        from memctl.retrieve.context import token_counter
        from memctl.retrieve.need import is_needed, is_order, refers_back
        from memctl.retrieve.part_of import build_with_communities

        referring = refers_back(question) if auto else ""
        if auto and not referring and is_order(question_in(question) or question):
            return Context(question, "", 0, budget, (), why="not a question")
        started, mode = time.monotonic(), mode or self._config.query.mode
        limit = max(_FEWEST_EXCERPTS, budget // _SHORTEST_EXCERPT)
        whole: AskOptions = {"diversity": 0.0, "per_document": 0}
        search = self._search(filters, limit, whole)
        outcome, notes = _found(self._searcher(mode), question, mode, search)
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
        noted = self._asked(question, mode, "context", filters, found, time.monotonic() - started)
        shown = [hit for hit in (*outcome.insights, *hits) if hit.memory_id in cited]
        return replace(context, notes=notes, why=why, query_id=self._note(noted, shown))

    def _search(
        self,
        filters: Filters,
        limit: int,
        options: AskOptions,
    ) -> _Search:
        settings = self._config.query
        diversity, per_document = options.get("diversity"), options.get("per_document")
        return _Search(
            filters=self.without_private(filters),
            limit=limit,
            fusion=options.get("fusion") or settings.fusion,
            keyword_weight=settings.keyword_weight,
            hops=options.get("hops") or HOPS,
            duplicates=options.get("duplicates") or settings.duplicates,
            diversity=settings.diversity if diversity is None else diversity,
            per_document=settings.per_document if per_document is None else per_document,
        )

    def _searcher(self, mode: Mode | None) -> Searcher:
        from memctl.retrieve.search import Searcher

        by_words = (mode or self._config.query.mode) == "keyword"
        embedders = {} if by_words else self._embedders()
        first = self._members[0]
        load_words = self._word_embedder if by_words else None
        snapshots = self._snapshots()
        return Searcher(
            snapshots,
            embedders,
            first.clock,
            self._reranking(),
            load_words,
            self._standing(),
            self._name_decisions,
            self._reformulated if self._config.models.answer else None,
            self._latest.of(snapshots, first.clock),
        )

    def _reranking(self) -> Reranking:
        """Return what puts the best hits first; the first knowledge base keeps what that gives.

        Raises:
            ConfigError: The settings name a model that is nowhere.
        """
        from memctl.retrieve.rerank import Reranking

        named = self._config.models.rerank
        model = self._payer(self._members[0].name).providers.reranker() if named else None
        return Reranking(model, self._config.query.rerank_hits)

    def _name_decisions(self, kb: str) -> Decisions:
        return self._member(kb).name_decisions()

    def without_private(self, filters: Filters) -> Filters:
        """Return the filters with all namespaces that they leave out for being private."""
        private = (name for member in self for name in member.settings.private_namespaces)
        return replace(filters, private=tuple(sorted(set(private))))

    def _member(self, name: str) -> KnowledgeBase:
        return next(member for member in self if member.name == name)

    def _payer(self, name: str) -> Stages:
        """Return whose models are asked and who keeps what they say: the strictest before all."""
        guarded = [member for member in self if self._private and member.settings.has_private]
        strictest = min(guarded, key=lambda member: member.settings.may_send, default=None)
        return (strictest or self._member(name)).stages(private=self._private)

    def _reformulated(self, question: str, hits: Sequence[Hit], missing: Sequence[str]) -> str:
        """Return the next query of an agentic search as the model that answers words it.

        Raises:
            MemctlError: It cannot be had, or what it costs could not be noted.
        """
        from memctl.prompts import load_prompt
        from memctl.retrieve.reformulate import ModelReformulator

        payer = self._payer(hits[0].kb)
        payer.store.ledger.require_writable()
        chat = payer.providers.chat("answer")
        own = payer.layout.prompts if len(self) == 1 else None
        model = ModelReformulator(chat, load_prompt("reformulate", own)) if chat else None
        return model.query(question, hits, missing) if model else ""

    def _standing(self) -> Standing:
        from memctl.retrieve.standing import Standing

        asked = self._config.query
        half_lives = {member.name: float(member.settings.half_life) for member in self}
        return Standing(
            asked.importance_weight, asked.confidence_weight, asked.recency_weight, half_lives
        )

    def _word_embedder(self) -> Embedder:
        """Return what keywords are judged by; no other model than the built-in one is opened."""
        from memctl.models import BUILTIN_EMBEDDER
        from memctl.retrieve.words import word_embedder

        return word_embedder(
            member.embedder for member in self if member.settings.embedder == BUILTIN_EMBEDDER
        )

    def _snapshots(self) -> dict[str, Snapshot]:
        return {member.name: member.store.snapshot() for member in self}

    def _embedders(self) -> dict[str, Embedder]:
        """Return the model that the vectors of each are from, the same object for the same model.

        One that cannot be had as things are configured fails when it is asked, for the others may
        be enough.
        """
        from memctl.models.absent import AbsentEmbedder

        made: dict[tuple[str, int], Embedder] = {}
        found: dict[str, Embedder] = {}
        for member in self:
            pinned = (member.settings.embedder, member.settings.dimension)
            if pinned not in made:
                try:
                    made[pinned] = member.embedder
                except ConfigError as error:
                    made[pinned] = AbsentEmbedder(*pinned, error)
            found[member.name] = made[pinned]
        return found

    def _asked(
        self,
        question: str,
        mode: Mode,
        kind: QueryKind,
        filters: Filters,
        found: bool,
        seconds: float,
    ) -> Asked:
        """What there is to note of a question that was asked just now."""
        at = self._members[0].clock()
        return Asked(at, question, mode, kind, filters, found, seconds)

    def _note(self, asked: Asked, shown: Iterable[Hit]) -> str | None:
        """Note a question in the log of each; return its id, None where none of them logs it."""
        if self._private:
            asked = without_text(asked)
        else:
            asked = shown_text(asked, redact=self._config.query_log.redact)
        scores: dict[str, list[tuple[str, float]]] = {member.name: [] for member in self}
        for hit in shown:
            scores[hit.kb].append((hit.memory_id, hit.score))
        noted = [member.query_log.note(asked, scores[member.name]) for member in self]
        return asked.id if any(noted) else None

    def feedback(self, query_id: str, verdict: Verdict) -> str:
        """Note how good what an earlier question gave was; return the question's id.

        Args:
            query_id: As ``QueryResult.query_id`` says, or ``last`` for the latest question.
            verdict: ``good`` or ``bad``; it takes the place of an earlier one.

        Raises:
            UsageError: No such question stands in the query log.
            KnowledgeBaseUnavailable: This process may only read, or the disk is full.
        """
        wanted = self._latest_question() if query_id == "last" else storable(query_id)
        known = [member.query_log.judge(wanted, verdict) for member in self]  # all of them
        if not any(known):
            raise UsageError(
                f"no question {query_id!r} in the query log",
                "memctl query -o json tells a question's query_id; last is the latest",
            )
        return wanted

    def _latest_question(self) -> str:
        for member in self:
            member.query_log.flush()
        latest = [entry for member in self for entry in member.store.ledger.queries.recent(1)]
        return max(latest, key=lambda entry: entry.at).query_id if latest else ""

    # --- SQL -------------------------------------------------------------------------------------

    def sql(self, statement: str, namespaces: Sequence[str] = ()) -> pa.RecordBatchReader:
        """Run one SELECT or EXPLAIN over the tables of all, and stream its rows.

        With several, every table has their rows with a column ``kb``.

        Args:
            statement: What to run.
            namespaces: There are rows of these alone; by default of all but private ones.

        Raises:
            UsageError: The statement is wrong, or isn't one that may run.
            MemctlError: It ran out of time or memory.
        """
        from memctl.store.scope import Scope
        from memctl.store.sql import run_sql

        bounds = self._config.sql
        return run_sql(
            self._snapshots(),
            statement,
            memory_limit=f"{bounds.memory_limit_mb}MB",
            timeout=bounds.timeout_seconds,
            ledgers={member.name: member.store.ledger for member in self},
            scope=Scope(self.without_private(Filters(namespaces=tuple(namespaces)))),
        )

    def cap_memory(self) -> None:
        """Bound what this whole process may take from now on, for one that runs one statement."""
        from memctl.store.sql import cap_process_memory

        cap_process_memory(2 * self._config.sql.memory_limit_mb * 1_000_000)

    @property
    def _config(self) -> Config:
        return self._payer(self._members[0].name).config
