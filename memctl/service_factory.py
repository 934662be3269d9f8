"""Builds the stages of one knowledge base from its settings and those of the program.

Private contents get stages of their own, which use no model on another machine and cache no reply.

Knows which model or built-in way each stage gets; does none of their work, and opens nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from memctl.config import Config
from memctl.errors import ConfigError
from memctl.kb_settings import KnowledgeBaseSettings, Layout, check_overlap

if TYPE_CHECKING:
    from memctl.consolidation.consolidator import Consolidator
    from memctl.consolidation.model_insights import InsightWriter
    from memctl.ingest.document_processing import PrivateNamespaces
    from memctl.ingest.fact_comparison import FactComparer
    from memctl.ingest.ingest_pipeline import Ingestor
    from memctl.ingest.ingest_preview import Estimator, Estimators
    from memctl.ingest.media_enrichment import MediaEnricher
    from memctl.ingest.worker_pool import WaitingWorkers
    from memctl.literals import Purpose, Task, WhenUnavailable
    from memctl.memories.importance_decay import Decay
    from memctl.memories.memory_editing import Editor
    from memctl.models.caller_model import CallerExchange
    from memctl.models.chat_model import ChatModel, ChatModels
    from memctl.models.protocols import Embedder, Understander
    from memctl.models.providers import Providers
    from memctl.prompts import Prompt
    from memctl.readers import Readers
    from memctl.store.store import Store
    from memctl.understanding.builtin_understander import BuiltinUnderstander

_ROUNDS = 2
"""Documents in a row that each slot of an endpoint gets before there may be a commit."""


class ServiceFactory(Struct, dict=True):
    """Makes the services of a knowledge base when they are first needed."""

    layout: Layout
    settings: KnowledgeBaseSettings
    """The knowledge base's settings; other settings need other services."""
    store: Store
    config: Config
    """The program's settings; of a private one, without models that are on other machines."""
    clock: Callable[[], datetime]
    exchange: CallerExchange | None = None
    """Where the caller's replies lie, who then stands in for the models that chat."""

    def for_caller(self, exchange: CallerExchange) -> ServiceFactory:
        """Return services in which the caller is the model; close them after use."""
        from memctl.models.caller_model import CALLER

        models = replace(self.config.models, understand=CALLER, consolidate=CALLER)
        return replace(self, config=replace(self.config, models=models), exchange=exchange)

    @classmethod
    def from_settings(
        cls,
        layout: Layout,
        settings: KnowledgeBaseSettings,
        store: Store,
        config: Config,
        clock: Callable[[], datetime],
    ) -> ServiceFactory:
        """Return the stages that settings want, of a private one without distant models."""
        if settings.private and not settings.may_send:
            from memctl.models.providers import without_remote_models

            config = without_remote_models(config)
        return cls(layout, settings, store, config, clock)

    @cached_property
    def for_private(self) -> ServiceFactory:
        """The stages of private namespaces; these where it has none, or is private itself."""
        if self.settings.private or not self.settings.private_namespaces:
            return self
        settings, config = replace(self.settings, private=True), self.config
        if self.exchange is not None:  # nothing private is handed out
            models = replace(config.models, understand="", consolidate="")
            config = replace(config, models=models)
        return ServiceFactory.from_settings(self.layout, settings, self.store, config, self.clock)

    @cached_property
    def providers(self) -> Providers:
        """The models that the settings name; what they reply and cost is kept in the ledger."""
        from memctl.models.call_accounting import Keeping, ModelAccount
        from memctl.models.providers import Providers

        ledger = self.store.ledger
        keeping: Keeping = "redacted" if self.settings.redact else "all"
        if self.settings.private:
            keeping = "nothing"
        budget = self.config.budget
        account = ModelAccount(ledger.replies, ledger.usage, budget, self.clock, keeping)
        if self.exchange is not None:
            from memctl.models.caller_model import CallerProviders

            return CallerProviders(self.config, account, self.exchange)
        return Providers(self.config, account)

    @cached_property
    def embedder(self) -> Embedder:
        """The model that the vectors are from, those of private namespaces among them.

        Raises:
            ConfigError: It is not available with these settings, or did not make the vectors.
        """
        if self.for_private is not self:
            return self.for_private.embedder
        from memctl.models import BUILTIN_EMBEDDER, load_embedder

        wanted = self.settings.embedder
        if wanted != (self.store.embedder or wanted):
            raise self._of_another_embedder(wanted, self.settings.dimension)
        if wanted == BUILTIN_EMBEDDER:  # spares those that have no endpoint its settings
            found: Embedder = load_embedder(wanted)
        else:
            found = self.providers.embedder(wanted, self.settings.dimension, self.layout.name)
        if found.dimension != self.store.dimension:
            raise self._of_another_embedder(wanted, found.dimension)
        return found

    def _of_another_embedder(self, wanted: str, dimension: int) -> ConfigError:
        name, made, its = self.layout.name, self.store.embedder or wanted, self.store.dimension
        return ConfigError(
            f"{name!r} is set to {wanted} with {dimension} dimensions, but its vectors are"
            f" from {made} with {its}",
            f"make new ones: memctl kb reembed {name} --embedder {wanted}",
        )

    @property
    def _settings_of_agent(self) -> KnowledgeBaseSettings:
        """The settings with passages as the file of the agent that is named says.

        Raises:
            ConfigError: They would share all that they have with their neighbours.
        """
        chunks: dict[str, Any] = dict(self.config.agent_chunks)
        settings = replace(self.settings, **chunks)
        place = f"agent {self.config.agent} in knowledge base {settings.name}"
        check_overlap(settings.chunk_size, settings.chunk_overlap, place)
        return settings

    @cached_property
    def ingestor(self) -> Ingestor:
        """What takes sources in, and waits for models or not, as configured."""
        return self.ingestor_that(self.config.models.when_unavailable)

    def ingestor_that(self, when_unavailable: WhenUnavailable) -> Ingestor:
        """Return an ingestor that waits for models, or does without them while they are away."""
        from memctl.ingest.batch_preparation import IngestLimits
        from memctl.ingest.ingest_pipeline import Ingestor

        # A call takes seconds: small groups, so that what is paid for is soon committed.
        models = self.config.models
        is_slow = bool(models.understand or models.transcribe or models.image)
        together = _ROUNDS * self.config.endpoint.concurrency if is_slow else None
        return Ingestor(
            self.store,
            self._settings_of_agent,
            self.embedder,
            self._understander(when_unavailable),
            self.clock,
            enricher=self._enricher(self.readers),
            private=self._private(when_unavailable),
            limits=IngestLimits(together=together),
            comparer=self._comparer(),
            readers=self.readers,
            boosts_used=self.config.tiers.boost_on_use,
            workers=self._workers,
        )

    def _private(self, when_unavailable: WhenUnavailable) -> PrivateNamespaces | None:
        """Return what works on private namespaces, where there are any."""
        from memctl.ingest.document_processing import PrivateNamespaces

        stages = self.for_private
        if stages is self:
            return None
        return PrivateNamespaces(
            frozenset(self.settings.private_namespaces),
            stages._understander(when_unavailable),
            stages._enricher(self.readers),
        )

    @cached_property
    def readers(self) -> Readers:
        """What reads files, in processes that end when the stages are closed."""
        from memctl.readers import Readers

        return Readers(self.config.limits)

    @cached_property
    def _workers(self) -> WaitingWorkers:
        """The workers of the last ingest in bulk, for what follows it."""
        from memctl.ingest.worker_pool import WaitingWorkers

        return WaitingWorkers()

    def close(self) -> None:
        """End the processes that wait for work."""
        if "readers" in vars(self):
            self.readers.close()
        if "_workers" in vars(self):
            self._workers.close()

    def _understander(self, when_unavailable: WhenUnavailable) -> Understander:
        """Return what turns text into structure: a model where one is configured for it.

        Raises:
            ConfigError: One is, but no endpoint, or its prompt or key cannot be read.
        """
        builtin = self._builtin_understander()
        model = self.providers.chat("understand") if self.config.models.understand else None
        if model is None:
            return builtin
        from memctl.understanding.model_understander import ModelUnderstander

        prompt = self.prompt("understand")
        at_once, most = self.config.endpoint.concurrency, self.config.models.most_windows
        return ModelUnderstander(model, prompt, builtin, at_once, most, when_unavailable)

    def _comparer(self) -> FactComparer | None:
        """Return what compares new facts with what is known; None where no model understands.

        Raises:
            ConfigError: As :meth:`_understander`.
        """
        if not self.config.models.understand:
            return None
        from memctl.ingest.fact_comparison import FactComparer

        models = self._chats("understand", "compare")
        prompt = self.prompt("compare")
        at_once = self.config.endpoint.concurrency
        return FactComparer(self.store, models, prompt, at_once, self.clock) if models else None

    def _enricher(self, readers: Readers) -> MediaEnricher | None:
        """Return what looks at pictures and listens to recordings; None where no model does."""
        if not self.config.models.transcribe and not self.config.models.image:
            return None
        from memctl.ingest.media_enrichment import MediaEnricher

        prompt = self.prompt("image")
        return MediaEnricher(
            self.providers.transcriber(),
            self.providers.image_reader(prompt.text, prompt.id),
            self.config.endpoint.concurrency,
            readers,
        )

    def estimators(self) -> Estimators:
        """Return what tells beforehand what models would be asked by an ingest."""
        from memctl.ingest.ingest_preview import Estimators

        private = self.for_private
        usual = self._estimator
        namespaces = frozenset(self.settings.private_namespaces)
        return Estimators(usual, usual if private is self else private._estimator, namespaces)

    @property
    def _estimator(self) -> Estimator:
        from memctl.ingest.ingest_preview import Estimator, plan_of

        return Estimator(plan_of(self.config, self._settings_of_agent, self.layout.prompts))

    def consolidator(self, *, asks_model: bool) -> Consolidator:
        """Return what draws insights.

        Args:
            asks_model: Whether the model that is configured, if any, may be asked.

        Raises:
            ConfigError: It may, but no endpoint is configured, or its prompt or key cannot be read.
        """
        from memctl.consolidation.consolidator import Consolidator
        from memctl.consolidation.memory_grouping import Thresholds

        return Consolidator(
            self.store,
            self.embedder,
            self.clock,
            kb=self.layout.name,
            thresholds=Thresholds(near_duplicate=self.config.consolidate.near_duplicate),
            writer=self._insight_writer() if asks_model else None,
        )

    def _insight_writer(self) -> InsightWriter | None:
        if not self.config.models.consolidate:
            return None
        from memctl.consolidation.model_insights import InsightWriter

        chats = self._chats("consolidate")
        prompt = self.prompt("consolidate")
        waits = self.config.models.when_unavailable == "wait"
        return InsightWriter(chats, prompt, waits=waits) if chats else None

    def answering_model(self, namespace: str) -> ChatModel | None:
        """Return the model that answers what is of a namespace; None where none may.

        Raises:
            ConfigError: It has no endpoint, or its key cannot be read.
        """
        chats = self._chats("answer")
        return None if chats is None else chats.of(namespace)

    def _chats(self, task: Task, purpose: Purpose | None = None) -> ChatModels | None:
        """Return the model for a task, with that for private namespaces; None without any."""
        from memctl.models.chat_model import ChatModels

        usual = self.providers.chat(task, purpose)
        if usual is None or self.for_private is self:
            return ChatModels(usual) if usual else None
        private = self.for_private.providers.chat(task, purpose)
        return ChatModels(usual, private, frozenset(self.settings.private_namespaces))

    def prompt(self, name: str, key: str = "") -> Prompt:
        """Return the instructions for a task: the variant in use, else as a file or as shipped.

        Args:
            name: The task.
            key: The conversation or question, where several variants share them; without one it
                is the variant that is used most.

        Raises:
            ConfigError: There is none of that name, or the knowledge base's own cannot be read.
        """
        from memctl.prompts import Prompt, choose_variant, guarded, load_prompt

        ledger, own = self.store.ledger, load_prompt(name, self.layout.prompts)
        if shares := ledger.prompt_shares.of(name):
            files = {each.version: each for each in (load_prompt(name), own)}
            kept = {
                each.version: Prompt(name, each.version, each.text)
                for each in ledger.prompt_variants.of(name)
                if not each.is_retired
            }
            there = {version: share for version, share in shares.items() if version in files | kept}
            if version := choose_variant(there, key):
                return guarded(kept[version]) if version in kept else files[version]
        return own

    def decay(self, ids: Collection[str] | None = None) -> Decay:
        """Return how importance fades, with the confirmations of learnings.

        Args:
            ids: The memories that it is asked of; None for all.
        """
        from memctl.memories.importance_decay import Decay

        known = self.store.ledger.confirmations
        return Decay(
            self.settings.half_life,
            self.config.upkeep.importance_floor,
            known.by_memory() if ids is None else known.of(ids),
        )

    def editor(self, *, asks_model: bool = True) -> Editor:
        """Return what changes single memories and documents.

        Args:
            asks_model: Whether a model may be asked to understand what is stated.
        """
        from memctl.memories.memory_editing import Editor

        return Editor(
            self.store,
            lambda: self.embedder,
            self.clock,
            self.prompt_understander if asks_model else lambda _: self._builtin_understander(),
            redacts=self.settings.redact,
        )

    def _builtin_understander(self) -> BuiltinUnderstander:
        from memctl.understanding.builtin_understander import BuiltinUnderstander

        return BuiltinUnderstander.from_settings(self.config.limits, self.config.triggers)

    def feedback_model(self, purpose: Purpose) -> tuple[ChatModel, Prompt] | None:
        """Return the model that looks back at conversations, with its instructions.

        It is the one that answers, else the one that understands; None if there is neither.
        """
        tasks: tuple[Task, ...] = ("answer", "understand")
        found = (self.providers.chat(task, purpose) for task in tasks)
        chat = next((each for each in found if each is not None), None)
        return (chat, self.prompt(purpose)) if chat else None

    def prompt_understander(self, namespace: str) -> Understander:
        """Return what understands a text of a namespace at once; it never waits for a model."""
        is_private = namespace in self.settings.private_namespaces
        services = self.for_private if is_private else self
        return services._understander("builtin")
