"""What the parts of an open knowledge base share: its files, settings, services and queries.

Knows how every change begins; never what a part does.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from msgspec.structs import replace

from memctl.accounts import Accounts
from memctl.config import Config, NamespaceSettings, with_own_settings
from memctl.errors import (
    AccessRefused,
    DiskRefused,
    KnowledgeBaseUnavailable,
    UsageError,
)
from memctl.files import clear_temporaries
from memctl.identity import DEFAULT_NAMESPACE, may_see, require_seen, within_reach
from memctl.ids import private_agent
from memctl.kb_settings import (
    KnowledgeBaseSettings,
    Layout,
    follow_embedder,
    load_settings,
    save_settings,
    settings_lock,
)
from memctl.literals import AccessLevel
from memctl.paths import display_path, os_error_hint, os_error_reason
from memctl.queries import QueryService, QueryTarget
from memctl.queries.query_log import QueryLog
from memctl.records import Filters
from memctl.schema.table_names import FORGET
from memctl.service_factory import ServiceFactory
from memctl.store.ledger.audit_repositories import actor_of
from memctl.store.ledger.work_repositories import ACCESS, Event
from memctl.store.tables.storage import table_storage

if TYPE_CHECKING:
    from memctl.feedback.conversation_records import ConversationRecords
    from memctl.forget import ForgetReport, Forgetter
    from memctl.knowledge_base.warm_state import WarmState
    from memctl.literals import Purpose, Task
    from memctl.models.chat_model import ChatModel
    from memctl.prompts import Prompt
    from memctl.sessions.conversations import Conversations
    from memctl.sessions.folding import Folding
    from memctl.sessions.profiles import Profiles
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
        clock: Returns the current time.
        warm: Where the store is from and stays open; None where it is closed in the end.
    """

    def __init__(
        self,
        layout: Layout,
        settings: KnowledgeBaseSettings,
        store: Store,
        config: Config,
        clock: Clock,
        warm: WarmState | None = None,
    ) -> None:
        self.layout = layout
        self.store = store
        self.clock = clock
        self.program_config = config
        self.warm = warm
        self.services = self._services_for(settings)
        self.query_log = QueryLog(store.ledger, config, layout.name)
        self.queries = query_service(lambda: [self.target], [store], warm)
        store.ledger.audit.actor = actor_of(config.user, config.agent)

    @classmethod
    def open(
        cls, layout: Layout, config: Config, clock: Clock, warm: WarmState | None = None
    ) -> Resources:
        """Open the knowledge base in a folder.

        Raises:
            KnowledgeBaseUnavailable: A newer version of memctl made it.
            AccessRefused: It is granted to other agents than the one that is named.
            DamagedError: Its ledger cannot be read.
        """
        from memctl.store.store import Store

        settings = load_settings(layout.settings)
        config = _with_own_models(config, settings, str(layout.settings))
        open_store = Store.open if warm is None else warm.open
        store = open_store(layout.folder, clock=clock, wait=config.store.wait_seconds)
        settings = _with_current_embedder(layout, settings, store)
        opened = cls(layout, settings, store, config, clock, warm)
        try:
            opened.require_access("read")
        except AccessRefused:
            opened.close()
            raise
        return opened

    def close(self) -> None:
        """Release its files."""
        self.services.close()
        self.query_log.flush()
        if self.warm is not None:
            self.warm.give_back(self.store)
        else:
            self.queries.drop_caches()
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
        return ServiceFactory.from_settings(
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
        # Asked here first: folding imports all of ingest, which takes 50 ms.
        if self.settings.status != "archived" and self.store.ledger.turns.has_pending():
            self.folding.before_reading()
        return self.store.snapshot()

    def seen_snapshot(self) -> Snapshot:
        """Return the tables as ``snapshot`` does, without what is another user's or agent's."""
        from memctl.store.tables.snapshot import ScopedSnapshot

        snapshot = self.snapshot()
        hidden = self._hidden_namespaces(snapshot)
        if self.program_config.user is None and not hidden:
            return snapshot
        return ScopedSnapshot(snapshot, hidden)

    def _hidden_namespaces(self, snapshot: Snapshot) -> set[str]:
        """Return the namespaces that are another user's or agent's."""
        from memctl.store.tables.snapshot import namespaces_of

        config = self.program_config
        if config.user is None and config.agent is None:
            return set()
        return {each for each in namespaces_of(snapshot) if not may_see(config, each)}

    def hides(self, snapshot: Snapshot) -> bool:
        """Return whether something is left out of what ``seen_snapshot`` gives."""
        from memctl.store.tables.snapshot import ScopedSnapshot

        return isinstance(snapshot, ScopedSnapshot) and bool(snapshot.hidden)

    def require_nothing_hidden(self, hint: str) -> None:
        """Refuse an agent what shows everything, where other agents keep something to themselves.

        Raises:
            AccessRefused: They do.
        """
        if self.hides(self.seen_snapshot()):
            agent = self.program_config.agent
            raise AccessRefused(
                f"there is what other agents than {agent!r} keep to themselves", hint
            )

    @property
    def folding(self) -> Folding:
        """What takes over into the tables what was said."""
        from memctl.sessions.folding import Folding

        services = self.services
        return Folding(
            self.store,
            lambda: services.ingestor,
            services.readers,
            self.layout.folder,
            self.program_config.triggers,
        )

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

    @property
    def profiles(self) -> Profiles:
        """What is known of each user in short."""
        from memctl.sessions.profiles import Profiles

        return Profiles(
            self.store.ledger,
            self.program_config.namespaces,
            self.snapshot,
            self.clock,
            self._profile_model,
            self.conversations.clean,
        )

    @property
    def records(self) -> ConversationRecords:
        """What became of conversations."""
        from memctl.feedback.conversation_records import ConversationRecords

        services = self.services
        return ConversationRecords(
            self.store.ledger,
            self.program_config.feedback,
            self.clock,
            lambda: services.editor(asks_model=False),
            lambda namespace: self.feedback_model(namespace, "feedback"),
            self.conversations.clean,
        )

    def feedback_model(self, namespace: str, purpose: Purpose) -> tuple[ChatModel, Prompt] | None:
        """Return the model that looks back at what is of a namespace; None where there is none."""
        is_private = self.settings.allows_private(Filters(namespaces=(namespace,)))
        services = self.services.for_private if is_private else self.services
        return services.feedback_model(purpose)

    def _profile_model(self, namespace: str) -> tuple[ChatModel, Prompt] | None:
        is_private = self.settings.allows_private(Filters(namespaces=(namespace,)))
        services = self.services.for_private if is_private else self.services
        chat = services.providers.chat("understand")
        return (chat, services.prompt("profile")) if chat else None

    def note_settings(self) -> None:
        """Keep a copy of kb.toml in the ledger, from which a lost one can be restored.

        Does nothing where this process may only read.
        """
        text = self.layout.settings.read_text("utf-8")
        ledger = self.store.ledger
        if ledger.is_writable and ledger.meta(SETTINGS) != text:
            ledger.set_meta(SETTINGS, text)

    def readable(self, filters: Filters) -> Filters:
        """Return filters limited to what may be read: the user's own, and nothing private unnamed.

        Raises:
            AccessRefused: They name a namespace of another user.
        """
        found = self.settings.without_private(within_reach(filters, self.program_config))
        return replace(found, agent=None)  # what is open to all agents is computed once

    def make_private(self, namespace: str) -> None:
        """Make the namespace of what an agent keeps to itself private; does nothing to any other.

        Raises:
            UsageError: Its vectors would be had from another machine.
            LockedError: Another process keeps changing the settings.
            DiskRefused: They cannot be written.
        """
        if private_agent(namespace) is None or namespace in self.settings.private_namespaces:
            return
        path = self.layout.settings
        with settings_lock(path):
            stored = load_settings(path)
            private = tuple(sorted({*stored.private_namespaces, namespace}))
            stored = replace(stored, private_namespaces=private)
            refuse_distant(self.program_config, stored)
            try:
                save_settings(path, stored)
            except OSError as error:
                raise DiskRefused(
                    f"cannot write {display_path(path)}: {os_error_reason(error)}",
                    os_error_hint(error),
                ) from error
        self.settings = replace(self.settings, private_namespaces=private)

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
            _log.warning("%s", report.summary)

    def require_access(self, level: AccessLevel) -> None:
        """Record the access of an agent to what is granted to some, and refuse it to others.

        Raises:
            AccessRefused: The agent that is named may not do it.
        """
        agent, settings = self.program_config.agent, self.settings
        if agent is None or not settings.grants:
            return
        teams = Accounts(self.program_config).teams_of(agent)
        is_allowed = settings.allows(agent, teams, level)
        verb = "write to" if level == "write" else level
        verdict = "may" if is_allowed else "was refused to"
        event = Event(self.clock(), ACCESS, f"agent {agent} {verdict} {level}", subject=agent)
        if self.store.ledger.is_writable:
            self.store.ledger.events.add(event)
        if not is_allowed:
            raise AccessRefused(
                f"agent {agent!r} may not {verb} knowledge base {self.name!r}",
                f"grant it: memctl kb grant {self.name} --agent {agent} {level}",
            )

    def audit(self, action: str, *objects: str) -> None:
        """Record in the audit trail what was changed, where no table was.

        What was done has not failed where it cannot be noted.
        """
        try:
            self.store.ledger.audit.add(self.clock(), action, objects)
        except DiskRefused as error:
            _log.warning("%s is not in the audit trail: %s", action, error)

    def require_writable(self) -> None:
        """Raise where nothing may be changed.

        Raises:
            KnowledgeBaseUnavailable: It is archived, or this process may only read.
            AccessRefused: The agent that is named may only read it.
        """
        self.require_access("write")
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
        if not self.store.ledger.jobs.unfinished_jobs(FORGET):
            return None
        self.queries.drop_caches()
        return self.forgetter.complete()

    @property
    def forgetter(self) -> Forgetter:
        """What removes things for good, of what its user may see."""
        return self.forgetter_of(lambda namespace: may_see(self.program_config, namespace))

    def forgetter_of(self, sees: Callable[[str], bool]) -> Forgetter:
        """Return what removes things for good, where a user is named, of some namespaces alone."""
        from memctl.forget import ForgetScope, Forgetter

        config, owner = self.program_config, self.program_config.user
        if owner is None and self._hidden_namespaces(self.store.snapshot()):
            owner = config.agent
        reach = None if owner is None else ForgetScope(owner, sees)
        return Forgetter(self.layout, self.store, lambda: self.services.embedder, self.clock, reach)

    def require_sole(self, what: str) -> None:
        """Refuse who acts what touches everything, where there is something of others.

        Raises:
            AccessRefused: There is something of another user, or that another agent keeps to
                itself.
        """
        from memctl.store.ledger.content_tables import content_namespaces
        from memctl.store.tables.snapshot import namespaces_of

        config = self.program_config
        if config.user is None and config.agent is None:
            return
        namespaces = namespaces_of(self.store.snapshot()) | content_namespaces(self.store.ledger)
        if all(may_see(config, namespace) for namespace in namespaces):
            return
        if config.user is None:
            raise AccessRefused(
                f"{what} has what other agents than {config.agent!r} keep to themselves"
            )
        raise AccessRefused(f"{what} is of all users, not of {config.user!r} alone")


def refuse_distant(config: Config, settings: KnowledgeBaseSettings) -> None:
    """Refuse a private namespace of which vectors would be had from another machine.

    Raises:
        UsageError: They would.
    """
    if not settings.private_namespaces or settings.may_send:
        return
    from memctl.models import ENDPOINT
    from memctl.models.providers import endpoint_url, without_remote_models

    if settings.embedder.startswith(ENDPOINT) and not endpoint_url(
        without_remote_models(config), "embed"
    ):
        raise UsageError(
            f"the vectors of {settings.name!r} are from {settings.embedder} on another machine,"
            " which would be sent the texts of its private namespaces too",
            f"memctl kb reembed {settings.name} --embedder builtin, or add --may-send",
        )


class Part:
    """What can be done with one aspect of an open knowledge base.

    Args:
        resources: Its files, settings and services.
    """

    def __init__(self, resources: Resources) -> None:
        self._kb = resources

    def _namespace_to_write(
        self, named: str | None, own: Callable[[NamespaceSettings, str | None], str]
    ) -> str:
        """Return the namespace to write to.

        Args:
            named: The one that the caller names.
            own: Gives that of the acting user where none is named.

        Raises:
            AccessRefused: It is another user's.
        """
        config = self._kb.program_config
        namespace = own(config.namespaces, config.user) if named is None else named
        require_seen(config, namespace or DEFAULT_NAMESPACE)
        return namespace or DEFAULT_NAMESPACE


_P = ParamSpec("_P")
_R = TypeVar("_R")


def audit_as(
    action: str,
) -> Callable[[Callable[Concatenate[Any, _P], _R]], Callable[Concatenate[Any, _P], _R]]:
    """Have the audit trail call by a name what a method of a part writes."""

    def decorate(
        method: Callable[Concatenate[Any, _P], _R],
    ) -> Callable[Concatenate[Any, _P], _R]:
        """Return the method within the action."""

        @functools.wraps(method)
        def run(part: Any, /, *arguments: _P.args, **named: _P.kwargs) -> _R:
            """Call the method within the action."""
            with part._kb.store.ledger.audit.action(action):
                return method(part, *arguments, **named)

        return run

    return decorate


def query_service(
    targets: Callable[[], Sequence[QueryTarget]], stores: Sequence[Store], warm: WarmState | None
) -> QueryService:
    """Return what can be asked of some knowledge bases, with what a warm process keeps of them."""
    if warm is None:
        return QueryService(targets)
    return QueryService(targets, warm.corpora(stores), warm.before_model)


def _with_own_models(config: Config, settings: KnowledgeBaseSettings, place: str) -> Config:
    """Return the settings with the models of the agent that is named, else of the knowledge base.

    Raises:
        ConfigError: What the knowledge base says cannot be used.
    """
    config = with_own_settings(config, settings, place)
    own: dict[str, Any] = dict(config.agent_models)
    return replace(config, models=replace(config.models, **own)) if own else config


def _with_current_embedder(
    layout: Layout, settings: KnowledgeBaseSettings, store: Store
) -> KnowledgeBaseSettings:
    """Return the settings with the embedder that the vectors are from.

    The ledger decides.  A kb.toml that names the embedder before it was left by a change that was
    interrupted just after the switch, and is brought up to date.
    """
    if store.embedder is None or (settings.embedder, settings.dimension) != store.former_embedder():
        return settings
    return follow_embedder(layout.settings, settings, store.embedder, store.dimension)
