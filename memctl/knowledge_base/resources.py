"""What all that a knowledge base offers stands on: its files, settings and stages."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Self

from memctl.config import Config
from memctl.errors import KnowledgeBaseUnavailable, UsageError
from memctl.files import clear_temporaries
from memctl.kb_settings import KnowledgeBaseSettings, Layout, load_settings, pin_embedder
from memctl.queries.query_log import QueryLog
from memctl.records import Filters
from memctl.schema.table_names import FORGET
from memctl.search.retrieval.corpus_cache import CorpusCache
from memctl.service_factory import ServiceFactory

if TYPE_CHECKING:
    from memctl.consolidation.job_undo import Jobs
    from memctl.forget import ForgetReport, Forgetter
    from memctl.ingest.ingest_pipeline import Ingestor
    from memctl.literals import Task
    from memctl.models.protocols import Embedder
    from memctl.models.providers import Providers
    from memctl.store.store import Store

Clock = Callable[[], datetime]
_log = logging.getLogger(__name__)
SETTINGS = "settings"
"""Under this name the ledger has a copy of kb.toml."""


class Resources:
    """The files, settings and stages of a knowledge base, and what every change of it begins with.

    Args:
        layout: Where it stands on disk.
        settings: What is pinned for it.
        store: Its tables and ledger.
        config: Settings of the whole program.
        clock: What tells the time.
    """

    def __init__(
        self,
        layout: Layout,
        settings: KnowledgeBaseSettings,
        store: Store,
        config: Config,
        clock: Clock,
    ) -> None:
        self.layout = layout
        self.store = store
        self._program = config
        self.clock = clock
        self._stages = self._stages_for(settings)
        self.query_log = QueryLog(store.ledger, config.query_log, layout.name)
        self._latest = CorpusCache()

    @property
    def settings(self) -> KnowledgeBaseSettings:
        """What is pinned for it; with other settings, its stages are made anew."""
        return self._stages.settings

    @settings.setter
    def settings(self, settings: KnowledgeBaseSettings) -> None:
        self._stages.close()
        self._stages = self._stages_for(settings)

    def _stages_for(self, settings: KnowledgeBaseSettings) -> ServiceFactory:
        return ServiceFactory.wanted(self.layout, settings, self.store, self._program, self.clock)

    def stages(self, *, private: bool) -> ServiceFactory:
        """Return what questions are answered with, where they may be about what is private."""
        return self._stages.for_private if private else self._stages

    @property
    def config(self) -> Config:
        """The program's settings; of a private one, without models that are on other machines."""
        return self._stages.config

    def names_private(self, filters: Filters) -> bool:
        """Say whether what the filters leave is, or may be, private."""
        named = set(filters.namespaces)
        return self.settings.private or not named.isdisjoint(self.settings.private_namespaces)

    def without_private(self, filters: Filters) -> Filters:
        """Return the filters with what they leave out for being private."""
        private = {*filters.private, *self.settings.private_namespaces}
        return replace(filters, private=tuple(sorted(private)))

    @classmethod
    def create(cls, layout: Layout, settings: KnowledgeBaseSettings, clock: Clock) -> None:
        """Make the tables and the ledger of a new knowledge base in its folder."""
        from memctl.store.store import Store

        Store.create(
            layout.folder, settings.dimension, embedder=settings.embedder, clock=clock
        ).close()

    @classmethod
    def open(cls, layout: Layout, config: Config, clock: Clock) -> Self:
        """Open the knowledge base in a folder.

        Raises:
            KnowledgeBaseUnavailable: A newer version of memctl made it.
            DamagedError: Its ledger cannot be read.
        """
        from memctl.store.store import Store

        settings = load_settings(layout.settings)
        store = Store.open(layout.folder, clock=clock, wait=config.store.wait_seconds)
        return cls(layout, _caught_up(layout, settings, store), store, config, clock)

    @property
    def name(self) -> str:
        """Its name, which is that of its folder."""
        return self.layout.name

    def close(self) -> None:
        """Let go of its files."""
        self._latest.drop()
        self._stages.close()
        self.query_log.flush()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"KnowledgeBase({self.name!r}, {str(self.layout.folder)!r})"

    def note_settings(self) -> None:
        """Keep a copy of kb.toml in the ledger, from which it can be brought back when it is lost.

        Nothing is done where this process may only read.
        """
        text = self.layout.settings.read_text("utf-8")
        ledger = self.store.ledger
        if ledger.is_writable and ledger.meta(SETTINGS) != text:
            ledger.set_meta(SETTINGS, text)

    @property
    def embedder(self) -> Embedder:
        """The model that the vectors of this knowledge base are from.

        Raises:
            ConfigError: It cannot be had as things are configured, or is not the one that the
                vectors are from.
        """
        return self._stages.embedder

    @property
    def providers(self) -> Providers:
        """The models that the settings name; what they reply and cost is kept in the ledger."""
        return self._stages.providers

    @property
    def ingestor(self) -> Ingestor:
        """What takes sources in; the watcher uses it too."""
        return self._stages.ingestor

    def _refuse_distant(self, task: Task) -> None:
        """Refuse what a model on another machine would do with what is private.

        Raises:
            UsageError: It would.
        """
        from memctl.models.providers import withheld_url

        url = withheld_url(self._program, self._stages.for_private.config, task)
        if url:
            raise UsageError(
                f"{self.name!r} is private, or has what is, and {url} is on another machine",
                f"allow that it is sent there: memctl kb set {self.name} --may-send",
            )

    def _begin_change(self) -> None:
        """Refuse where nothing may be changed; see to what processes that were killed have left."""
        self._require_writable()
        clear_temporaries(self.layout.half_written(reasons=False))
        if report := self.complete_forgetting():
            _log.warning("%s", report.told)

    def _require_writable(self) -> None:
        if self.settings.status == "archived":
            raise KnowledgeBaseUnavailable(
                f"knowledge base {self.name!r} is archived, so it cannot be written to",
                f"memctl kb resume {self.name}",
            )
        self.store.require_writable()

    def complete_forgetting(self) -> ForgetReport | None:
        """Complete what was to be forgotten and was cut off; every change does so before its own.

        Returns:
            What came of it; None where there was nothing to do, or it cannot be done now.
        """
        if not self.store.ledger.jobs.unfinished(FORGET):
            return None
        self._latest.drop()
        return self._forgetter.complete()

    @property
    def _jobs(self) -> Jobs:
        from memctl.consolidation.job_undo import Jobs

        return Jobs(self.store, self.clock, self.name)

    @property
    def _forgetter(self) -> Forgetter:
        from memctl.forget import Forgetter

        return Forgetter(self.layout, self.store, lambda: self.embedder, self.clock)


def _caught_up(
    layout: Layout, settings: KnowledgeBaseSettings, store: Store
) -> KnowledgeBaseSettings:
    """Return the settings with the embedder that the vectors are from.

    What the ledger says counts.  A kb.toml that names the embedder before it is that of a change
    that was interrupted just after the switch, and is brought up to date.
    """
    if store.embedder is None or (settings.embedder, settings.dimension) != store.former():
        return settings
    try:
        return pin_embedder(layout.settings, store.embedder, store.dimension)
    except OSError:  # on a read-only mount it stays as it is
        return replace(settings, embedder=store.embedder, dimension=store.dimension)
