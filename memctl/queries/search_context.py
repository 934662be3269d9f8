"""What a question is searched and answered with: tables, models and settings of its targets.

Knows no knowledge base as a whole, only what a query needs of one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypedDict

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import ConfigError, UsageError
from memctl.literals import DEFAULT_HOPS, Duplicates, Fusion, Mode
from memctl.records import Filters

if TYPE_CHECKING:
    from memctl.config import Config
    from memctl.graph.name_resolution import Decisions
    from memctl.kb_settings import KnowledgeBaseSettings
    from memctl.models.chat_model import ChatModel
    from memctl.models.protocols import Embedder
    from memctl.prompts import Prompt
    from memctl.queries.query_log import QueryLog
    from memctl.records import Hit
    from memctl.search.answering.model_answer import ModelAnswerer
    from memctl.search.ranking.reranking import Reranking
    from memctl.search.ranking.scoring_context import Priors
    from memctl.search.retrieval.corpus import Corpus
    from memctl.search.search_plan import SearchDepth
    from memctl.search.searcher import Searcher
    from memctl.search.term_statistics import Sources
    from memctl.service_factory import ServiceFactory
    from memctl.store.store import Store
    from memctl.store.tables.snapshot import Snapshot

NO_FILTERS = Filters()
_MODE_OPTIONS: Mapping[str, Mode] = {"hops": "graph", "communities": "graph", "rounds": "agentic"}
"""Options that mean something to one mode alone."""
_LEAST = {"hops": 1, "rounds": 1, "communities": 0, "limit": 1, "offset": 0}
"""The lowest value of options that are numbers."""


class QueryOptions(Struct, frozen=True, kw_only=True):
    """How a question is asked; None leaves it as configured."""

    mode: Mode | None = None
    """How memories are found: ``hybrid``, ``keyword``, ``vector``, ``graph`` or ``agentic``."""
    hops: int | None = None
    """How many steps ``graph`` goes at most; 2 by default."""
    rounds: int | None = None
    """How many rounds ``agentic`` searches at most."""
    communities: int | None = None
    """How many communities ``graph`` returns at most."""
    fusion: Fusion | None = None
    """How ``hybrid`` combines keyword and vector scores."""
    filters: Filters = NO_FILTERS
    """What the hits are limited to."""
    limit: int | None = None
    """How many hits."""
    offset: int = 0
    """How many of the best hits are left out."""
    duplicates: Duplicates | None = None
    """Which duplicates are folded: ``exact``, ``near``, or ``keep`` for none."""
    diversity: float | None = None
    """0 to 1: how much a hit loses for being like a better one."""
    per_document: int | None = None
    """At most this many hits per document; 0 means no limit."""
    threshold: float | None = None
    """Least relevance of a hit, 0 to 1; 0 for all."""
    answer: bool = True
    """Whether to answer, with citations, as well as to find memories."""
    explain: bool = False
    """Whether to report how the search went."""
    on_token: Callable[[str], None] | None = None
    """Receives the answer piece by piece while a model writes it; that reply isn't cached."""
    log: bool = True
    """Whether the query log records the question, where it is enabled."""
    rerank: bool = True
    """Whether a model that is configured for it reorders the hits."""

    def __post_init__(self) -> None:
        """Refuse numbers with which nothing can be found.

        Raises:
            UsageError: One is too low.
        """
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise UsageError(f"{name} must be at least {least}, not {value}")

    def require_mode(self, mode: Mode) -> None:
        """Refuse what means nothing to the mode that a question is asked in.

        Raises:
            UsageError: Something does.
        """
        for name, meant in _MODE_OPTIONS.items():
            if getattr(self, name) and mode != meant:
                raise UsageError(f"{name} means nothing to mode {mode}", f"ask in mode {meant}")


class SearchOptions(TypedDict):
    """How a question is searched for once its mode is chosen."""

    filters: Filters
    limit: int
    fusion: Fusion
    keyword_weight: float
    hops: int
    duplicates: Duplicates
    diversity: float
    per_document: int
    depth: SearchDepth


class QueryTarget(Struct, frozen=True):
    """One knowledge base as a query sees it.

    Args:
        services: Its settings and the models they name.
        query_log: Where questions are recorded.
        snapshot: Returns its tables as they are now.
    """

    services: ServiceFactory
    query_log: QueryLog
    snapshot: Callable[[], Snapshot]

    @property
    def name(self) -> str:
        """The knowledge base's name."""
        return self.services.layout.name

    @property
    def store(self) -> Store:
        """Its tables and its ledger."""
        return self.services.store

    @property
    def settings(self) -> KnowledgeBaseSettings:
        """Its settings."""
        return self.services.settings


class SearchContext(Struct, frozen=True):
    """What questions of one kind, private or not, are searched and answered with.

    Args:
        targets: The knowledge bases to search, at least one.
        private: Whether the questions are about what is, or may be, private.
        corpora: Caches what queries compute about the tables.
        reranks: Whether a model that is configured for it reorders what is found.
        before_model: Called before a model is asked to answer or to rerank, which may take long.
    """

    targets: Sequence[QueryTarget]
    private: bool
    corpora: CorpusCache
    reranks: bool = True
    before_model: Callable[[], None] | None = None

    @property
    def config(self) -> Config:
        """The program's settings; for private questions without models on other machines."""
        return self._payer(self.targets[0].name).config

    @property
    def clock(self) -> Callable[[], datetime]:
        """What tells the time."""
        return self.targets[0].services.clock

    def without_private(self, filters: Filters) -> Filters:
        """Return the filters with the private namespaces of all targets left out."""
        for target in self.targets:
            filters = target.settings.without_private(filters)
        return replace(filters, agent=None)  # what is open to all agents is computed once

    def search_options(self, limit: int, options: QueryOptions) -> SearchOptions:
        """Return how to search: as asked, and otherwise as configured."""
        settings = self.config.query
        diversity, per_document = options.diversity, options.per_document
        return SearchOptions(
            filters=self.without_private(options.filters),
            limit=limit,
            fusion=options.fusion or settings.fusion,
            keyword_weight=settings.keyword_weight,
            hops=DEFAULT_HOPS if options.hops is None else options.hops,
            duplicates=options.duplicates or settings.duplicates,
            diversity=settings.diversity if diversity is None else diversity,
            per_document=settings.per_document if per_document is None else per_document,
            depth=self._depth(options),
        )

    def _depth(self, options: QueryOptions) -> SearchDepth:
        from memctl.search.search_plan import SearchDepth

        settings, communities = self.config.query, options.communities
        return SearchDepth(
            rounds=settings.rounds if options.rounds is None else options.rounds,
            relevant_hits=settings.relevant_hits,
            mean_relevance=settings.mean_relevance,
            graph_seeds=settings.graph_seeds,
            seed_distance=settings.seed_distance,
            communities=settings.communities if communities is None else communities,
        )

    def searcher(self, mode: Mode) -> Searcher:
        """Return a searcher of the current state; keyword search loads only the built-in model."""
        from memctl.search.searcher import Searcher

        by_words = mode == "keyword"
        snapshots = self.snapshots()
        return Searcher(
            snapshots,
            {} if by_words else self._embedders(),
            self.clock,
            self._reranking(),
            self._word_embedder if by_words else None,
            self._priors(),
            self._name_decisions,
            self._reformulate if self.config.models.answer else None,
            self.corpora.of(snapshots, self.clock),
        )

    def snapshots(self) -> dict[str, Snapshot]:
        """Return the current state of each target by its name."""
        return {target.name: target.snapshot() for target in self.targets}

    def _embedders(self) -> dict[str, Embedder]:
        """Return the embedder of each target, one object for each model.

        An embedder that the configuration rules out fails only when it is used: the other targets
        may be enough.
        """
        loaded: dict[tuple[str, int], Embedder] = {}
        found: dict[str, Embedder] = {}
        for target in self.targets:
            key = (target.settings.embedder, target.settings.dimension)
            if key not in loaded:
                try:
                    loaded[key] = target.services.embedder
                except ConfigError as error:
                    from memctl.models.providers import AbsentEmbedder

                    loaded[key] = AbsentEmbedder(*key, error)
            found[target.name] = loaded[key]
        return found

    def _word_embedder(self) -> Embedder:
        """Return the embedder that compares keywords; only the built-in model is ever loaded."""
        from memctl.models import BUILTIN_EMBEDDER
        from memctl.search.retrieval.question_vectors import word_embedder

        return word_embedder(
            target.services.embedder
            for target in self.targets
            if target.settings.embedder == BUILTIN_EMBEDDER
        )

    def _reranking(self) -> Reranking:
        """Return the reranker; the first target caches its scores.

        Raises:
            ConfigError: The settings name a model that doesn't exist.
        """
        from memctl.search.ranking.reranking import Reranking

        hits = self.config.query.rerank_hits
        named = self.config.models.rerank if self.reranks and hits > 1 else ""
        model = self._paying(self.targets[0].name).providers.reranker() if named else None
        return Reranking(model, hits)

    def _priors(self) -> Priors:
        from memctl.search.ranking.scoring_context import Priors

        query = self.config.query
        half_lives = {target.name: float(target.settings.half_life) for target in self.targets}
        return Priors(
            query.importance_weight, query.confidence_weight, query.recency_weight, half_lives
        )

    def _name_decisions(self, kb: str) -> Decisions:
        from memctl.graph.graph_views import decisions_of

        return decisions_of(self._target(kb).store.ledger.names)

    def answerer(self, name: str, question: str) -> ModelAnswerer | None:
        """Return the model that answers, if any.

        Args:
            name: The knowledge base of the best hit; it caches the reply and bears its cost.
            question: What is asked.

        Raises:
            ConfigError: The settings cannot be used.
            KnowledgeBaseUnavailable: The cost of a reply could not be recorded.
        """
        if not self.config.models.answer:
            return None
        from memctl.search.answering.model_answer import ModelAnswerer

        model = self._chat(name, "answer", question)
        return ModelAnswerer(*model, self.config.query.answer_tokens) if model else None

    def _reformulate(self, question: str, hits: Sequence[Hit], missing: Sequence[str]) -> str:
        """Have the model word the next query of an agentic search.

        Raises:
            MemctlError: The model isn't available, or its cost could not be recorded.
        """
        from memctl.search.agentic_search import reformulate_by_model

        model = self._chat(hits[0].kb, "reformulate", question)
        return reformulate_by_model(*model, question, hits, missing) if model else ""

    def _chat(self, name: str, prompt: str, question: str) -> tuple[ChatModel, Prompt] | None:
        """Return the chat model that answers for a knowledge base, if any, with its prompt."""
        from memctl.prompts import load_prompt

        payer = self._paying(name)
        payer.store.ledger.require_writable()
        chat = payer.providers.chat("answer")
        if chat is None:
            return None
        alone = len(self.targets) == 1  # else the prompts of one would speak for all
        key = self.config.session or question
        return chat, payer.prompt(prompt, key) if alone else load_prompt(prompt)

    def _paying(self, name: str) -> ServiceFactory:
        if self.before_model is not None:
            self.before_model()
        return self._payer(name)

    def _payer(self, name: str) -> ServiceFactory:
        """Return whose models are called and whose ledger records it: the strictest first."""
        guarded = [
            target for target in self.targets if self.private and target.settings.has_private
        ]
        strictest = min(guarded, key=lambda target: target.settings.may_send, default=None)
        services = (strictest or self._target(name)).services
        return services.for_private if self.private else services

    def _target(self, name: str) -> QueryTarget:
        return next(target for target in self.targets if target.name == name)


class CorpusCache:
    """The corpus that was searched last, kept until one of its tables changes."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._corpus: Corpus | None = None

    def of(self, snapshots: Sources, clock: Callable[[], datetime]) -> Corpus:
        """Return the corpus of some snapshots: the last one where the tables are the same.

        Between questions it does not keep table versions from being pruned; see ``Corpus``.
        """
        from memctl.search.retrieval.corpus import Corpus

        with self._mutex:
            if self._corpus is None or not self._corpus.is_of(snapshots):
                self._corpus = Corpus(snapshots, clock)
            return self._corpus

    def drop(self) -> None:
        """Forget the last corpus."""
        with self._mutex:
            self._corpus = None
