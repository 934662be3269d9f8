"""What the parts of an open knowledge base share: its files, settings, services and queries.

Knows how every change begins; never what a part does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from memctl.config import Config
from memctl.errors import KnowledgeBaseUnavailable, UsageError
from memctl.files import clear_temporaries
from memctl.kb_settings import KnowledgeBaseSettings, Layout, follow_embedder, load_settings
from memctl.queries import QueryService, QueryTarget
from memctl.queries.query_log import QueryLog
from memctl.schema.table_names import FORGET
from memctl.service_factory import ServiceFactory
from memctl.store.tables.storage import table_storage

if TYPE_CHECKING:
    from memctl.forget import ForgetReport, Forgetter
    from memctl.literals import Task
    from memctl.sessions.conversations import Conversations
    from memctl.sessions.folding import Folding
    from memctl.store.store import Store
    from memctl.store.tables.snapshot import Snapshot

Clock = Callable[[], datetime]
_log = logging.getLogger(__name__)
SETTINGS = "settings"
"""The ledger keeps a copy of kb.toml under this name."""


class Resources:
    """The files, settings and services of one open knowledge base.

    Args:
        layout: Where it stands on disk.
        settings: Its settings.
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
        self.clock = clock
        self.program_config = config
        self.services = self._services_for(settings)
        self.query_log = QueryLog(store.ledger, config.query_log, layout.name)
        self.queries = QueryService(lambda: [self.target])

    @classmethod
    def open(cls, layout: Layout, config: Config, clock: Clock) -> Resources:
        """Open the knowledge base in a folder.

        Raises:
            KnowledgeBaseUnavailable: A newer version of memctl made it.
            DamagedError: Its ledger cannot be read.
        """
        from memctl.store.store import Store

        settings = load_settings(layout.settings)
        store = Store.open(layout.folder, clock=clock, wait=config.store.wait_seconds)
        return cls(layout, _with_current_embedder(layout, settings, store), store, config, clock)

    def close(self) -> None:
        """Release its files."""
        self.queries.drop_caches()
        self.services.close()
        self.query_log.flush()
        self.store.close()

    @property
    def name(self) -> str:
        """The knowledge base's name."""
        return self.layout.name

    @property
    def settings(self) -> KnowledgeBaseSettings:
        """Its settings; assigning others makes its services anew."""
        return self.services.settings

    @settings.setter
    def settings(self, settings: KnowledgeBaseSettings) -> None:
        self.services.close()
        self.services = self._services_for(settings)

    def _services_for(self, settings: KnowledgeBaseSettings) -> ServiceFactory:
        return ServiceFactory.wanted(
            self.layout, settings, self.store, self.program_config, self.clock
        )

    @property
    def target(self) -> QueryTarget:
        """It as queries see it."""
        return QueryTarget(self.services, self.query_log, self.snapshot)

    def snapshot(self) -> Snapshot:
        """Return the tables as of the last commit, with all that has been said until now.

        Where that cannot be had, because another process is writing, it goes on without.
        """
        if self.settings.status != "archived":
            self.folding.before_reading()
        return self.store.snapshot()

    @property
    def folding(self) -> Folding:
        """What takes over into the tables what was said."""
        from memctl.sessions.folding import Folding

        services = self.services
        return Folding(self.store, lambda: services.ingestor, services.readers, self.layout.folder)

    @property
    def conversations(self) -> Conversations:
        """The conversations as the ledger has them."""
        from memctl.sessions.conversations import Conversations

        return Conversations(
            self.store.ledger,
            self.layout.media,
            self.program_config.namespaces,
            self.settings.redact,
            self.clock,
        )

    def note_settings(self) -> None:
        """Keep a copy of kb.toml in the ledger, from which a lost one can be restored.

        Does nothing where this process may only read.
        """
        text = self.layout.settings.read_text("utf-8")
        ledger = self.store.ledger
        if ledger.is_writable and ledger.meta(SETTINGS) != text:
            ledger.set_meta(SETTINGS, text)

    def refuse_remote_model(self, task: Task) -> None:
        """Refuse to send private text to a model on another machine.

        Raises:
            UsageError: The model of this task is on another machine.
        """
        from memctl.models.providers import withheld_url

        url = withheld_url(self.program_config, self.services.for_private.config, task)
        if url:
            raise UsageError(
                f"{self.name!r} is private, or has what is, and {url} is on another machine",
                f"allow that it is sent there: memctl kb set {self.name} --may-send",
            )

    def begin_change(self) -> None:
        """Refuse where nothing may be changed; clean up after processes that were killed."""
        self.require_writable()
        clear_temporaries(self.layout.half_written(reasons=False))
        table_storage(self.layout.folder).clear_temporaries()
        if report := self.complete_forgetting():
            _log.warning("%s", report.told)

    def require_writable(self) -> None:
        """Raise where nothing may be changed.

        Raises:
            KnowledgeBaseUnavailable: It is archived, or this process may only read.
        """
        if self.settings.status == "archived":
            raise KnowledgeBaseUnavailable(
                f"knowledge base {self.name!r} is archived, so it cannot be written to",
                f"memctl kb resume {self.name}",
            )
        self.store.require_writable()

    def complete_forgetting(self) -> ForgetReport | None:
        """Complete an interrupted forget; every change does so before its own.

        Returns:
            What came of it; None where there was nothing to do, or it cannot be done now.
        """
        if not self.store.ledger.jobs.unfinished(FORGET):
            return None
        self.queries.drop_caches()
        return self.forgetter.complete()

    @property
    def forgetter(self) -> Forgetter:
        """What removes things for good."""
        from memctl.forget import Forgetter

        return Forgetter(self.layout, self.store, lambda: self.services.embedder, self.clock)


class Part:
    """What can be done with one aspect of an open knowledge base.

    Args:
        resources: Its files, settings and services.
    """

    def __init__(self, resources: Resources) -> None:
        self._kb = resources


def _with_current_embedder(
    layout: Layout, settings: KnowledgeBaseSettings, store: Store
) -> KnowledgeBaseSettings:
    """Return the settings with the embedder that the vectors are from.

    The ledger decides.  A kb.toml that names the embedder before it was left by a change that was
    interrupted just after the switch, and is brought up to date.
    """
    if store.embedder is None or (settings.embedder, settings.dimension) != store.former():
        return settings
    return follow_embedder(layout.settings, settings, store.embedder, store.dimension)
