"""What questions to several knowledge bases are answered with, and which of them pays for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from memctl.errors import ConfigError
from memctl.literals import DEFAULT_HOPS, Duplicates, Fusion, Mode
from memctl.records import Filters

if TYPE_CHECKING:
    from memctl.config import Config
    from memctl.graph.name_resolution import Decisions
    from memctl.knowledge_base import KnowledgeBase
    from memctl.models.chat_model import ChatModel
    from memctl.models.protocols import Embedder
    from memctl.prompts import Prompt
    from memctl.records import Hit
    from memctl.search.answering.model_answer import ModelAnswerer
    from memctl.search.ranking.reranking import Reranking
    from memctl.search.ranking.scoring_context import Priors
    from memctl.search.retrieval.corpus_cache import CorpusCache
    from memctl.search.searcher import Searcher
    from memctl.service_factory import ServiceFactory
    from memctl.store.tables.snapshot import Snapshot


@dataclass(frozen=True)
class SearchContext:
    """What questions of one kind, private or not, are searched and answered with.

    Args:
        members: The knowledge bases that are asked, at least one.
        private: Whether they are asked about what is, or may be, private.
        latest: Keeps what was worked out of them for questions.
    """

    members: Sequence[KnowledgeBase]
    private: bool
    latest: CorpusCache

    @property
    def config(self) -> Config:
        """The settings of the program; for what is private, without models of other machines."""
        return self._payer(self.members[0].name).config

    def without_private(self, filters: Filters) -> Filters:
        """Return the filters with all namespaces that they leave out for being private."""
        for member in self.members:
            filters = member.without_private(filters)
        return filters

    def search_options(self, filters: Filters, limit: int, options: QueryOptions) -> SearchOptions:
        """Return how a question is looked for, as it is asked and otherwise as configured."""
        settings = self.config.query
        diversity, per_document = options.get("diversity"), options.get("per_document")
        return SearchOptions(
            filters=self.without_private(filters),
            limit=limit,
            fusion=options.get("fusion") or settings.fusion,
            keyword_weight=settings.keyword_weight,
            hops=options.get("hops") or DEFAULT_HOPS,
            duplicates=options.get("duplicates") or settings.duplicates,
            diversity=settings.diversity if diversity is None else diversity,
            per_document=settings.per_document if per_document is None else per_document,
        )

    def searcher(self, mode: Mode) -> Searcher:
        """Return what searches the members as they are now; by keyword it opens no other model."""
        from memctl.search.searcher import Searcher

        by_words = mode == "keyword"
        embedders = {} if by_words else self._embedders()
        first = self.members[0]
        load_words = self._word_embedder if by_words else None
        snapshots = self.snapshots()
        return Searcher(
            snapshots,
            embedders,
            first.clock,
            self._reranking(),
            load_words,
            self._standing(),
            self._name_decisions,
            self._reformulated if self.config.models.answer else None,
            self.latest.of(snapshots, first.clock),
        )

    def snapshots(self) -> dict[str, Snapshot]:
        """Return the members as they are now, by their names."""
        return {member.name: member.store.snapshot() for member in self.members}

    def _embedders(self) -> dict[str, Embedder]:
        """Return the model that the vectors of each are from, the same object for the same model.

        One that cannot be had as things are configured fails when it is asked, for the others may
        be enough.
        """
        from memctl.models.embedders import AbsentEmbedder

        made: dict[tuple[str, int], Embedder] = {}
        found: dict[str, Embedder] = {}
        for member in self.members:
            pinned = (member.settings.embedder, member.settings.dimension)
            if pinned not in made:
                try:
                    made[pinned] = member.embedder
                except ConfigError as error:
                    made[pinned] = AbsentEmbedder(*pinned, error)
            found[member.name] = made[pinned]
        return found

    def _word_embedder(self) -> Embedder:
        """Return what keywords are judged by; no other model than the built-in one is opened."""
        from memctl.models import BUILTIN_EMBEDDER
        from memctl.search.retrieval.word_vectors import word_embedder

        return word_embedder(
            member.embedder
            for member in self.members
            if member.settings.embedder == BUILTIN_EMBEDDER
        )

    def _reranking(self) -> Reranking:
        """Return what puts the best hits first; the first knowledge base keeps what that gives.

        Raises:
            ConfigError: The settings name a model that is nowhere.
        """
        from memctl.search.ranking.reranking import Reranking

        named = self.config.models.rerank
        model = self._payer(self.members[0].name).providers.reranker() if named else None
        return Reranking(model, self.config.query.rerank_hits)

    def _standing(self) -> Priors:
        from memctl.search.ranking.scoring_context import Priors

        asked = self.config.query
        half_lives = {member.name: float(member.settings.half_life) for member in self.members}
        return Priors(
            asked.importance_weight, asked.confidence_weight, asked.recency_weight, half_lives
        )

    def _name_decisions(self, kb: str) -> Decisions:
        return self._member(kb).name_decisions()

    def answerer(self, name: str) -> ModelAnswerer | None:
        """Return the model that answers, if any; one knowledge base keeps its reply and cost.

        Args:
            name: Of the knowledge base: that which has the best hit.

        Raises:
            ConfigError: The settings cannot be used.
            KnowledgeBaseUnavailable: What a reply costs could not be noted.
        """
        if not self.config.models.answer:
            return None
        from memctl.search.answering.model_answer import ModelAnswerer

        model = self._chat(name, "answer")
        return ModelAnswerer(*model, self.config.query.answer_tokens) if model else None

    def _reformulated(self, question: str, hits: Sequence[Hit], missing: Sequence[str]) -> str:
        """Return the next query of an agentic search as the model that answers words it.

        Raises:
            MemctlError: It cannot be had, or what it costs could not be noted.
        """
        from memctl.search.agentic_search import ModelReformulator

        model = self._chat(hits[0].kb, "reformulate")
        return ModelReformulator(*model).query(question, hits, missing) if model else ""

    def _chat(self, name: str, prompt: str) -> tuple[ChatModel, Prompt] | None:
        """Return the model that answers for a knowledge base, if any, and what it is told."""
        from memctl.prompts import load_prompt

        payer = self._payer(name)
        payer.store.ledger.require_writable()
        chat = payer.providers.chat("answer")
        own = payer.layout.prompts if len(self.members) == 1 else None
        return (chat, load_prompt(prompt, own)) if chat else None

    def _payer(self, name: str) -> ServiceFactory:
        """Return whose models are asked and who keeps what they say: the strictest before all."""
        guarded = [
            member for member in self.members if self.private and member.settings.has_private
        ]
        strictest = min(guarded, key=lambda member: member.settings.may_send, default=None)
        return (strictest or self._member(name)).stages(private=self.private)

    def _member(self, name: str) -> KnowledgeBase:
        return next(member for member in self.members if member.name == name)


class QueryOptions(TypedDict, total=False):
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


class SearchOptions(TypedDict):
    """How a question is looked for in the mode that was chosen."""

    filters: Filters
    limit: int
    fusion: Fusion
    keyword_weight: float
    hops: int
    duplicates: Duplicates
    diversity: float
    per_document: int
