"""``KnowledgeBase`` and ``KnowledgeBases``: one or several, as every surface talks to them.

They compose parts and do no work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, overload

from memctl.errors import NotFoundError, UsageError
from memctl.knowledge_base.caller_work import CallerWork
from memctl.knowledge_base.documents import Documents, Links
from memctl.knowledge_base.feedback_parts import JudgementResult, Judgements, Prompts, judge_in
from memctl.knowledge_base.maintenance import (
    Erasure,
    Jobs,
    Snapshots,
    Statistics,
    Transfer,
    Vectors,
)
from memctl.knowledge_base.memories import Insights, Memories, NameGraph
from memctl.knowledge_base.resources import Clock, Resources, query_service
from memctl.knowledge_base.sessions import Sessions
from memctl.knowledge_base.skills import SkillGraph
from memctl.knowledge_base.tiers import SharedPools, Tiers

if TYPE_CHECKING:
    from memctl.config import Config
    from memctl.feedback.judging import Judgement
    from memctl.kb_settings import KnowledgeBaseSettings, Layout
    from memctl.knowledge_base.warm_state import WarmState
    from memctl.schema.table_names import TableName
    from memctl.service_factory import ServiceFactory
    from memctl.store.store import Store


class KnowledgeBase:
    """An open knowledge base; close it, or use it in a ``with`` statement.

    Its parts: ``documents``, ``links``, ``memories``, ``insights``, ``graph``, ``sessions``,
    ``pools``, ``tiers``, ``skills``, ``judgements``, ``prompts``, ``queries``, ``jobs``,
    ``snapshots``, ``vectors``, ``transfer``, ``erasure`` and ``statistics``.  What is called most
    also stands on the object itself: ``ingest``, ``query``, ``query_many``, ``context``,
    ``feedback``, ``sql``, ``consolidate``, ``forget``, ``export``, ``router``.

    Args:
        resources: Its files, settings and services.
    """

    def __init__(self, resources: Resources) -> None:
        self.resources = resources
        self.documents = Documents(resources)
        self.links = Links(lambda: [resources])
        self.memories = Memories(resources)
        self.insights = Insights(resources)
        self.graph = NameGraph(resources)
        self.sessions = Sessions(resources)
        self.queries = resources.queries
        self.jobs = Jobs(resources)
        self.snapshots = Snapshots(resources)
        self.vectors = Vectors(resources)
        self.transfer = Transfer(resources)
        self.erasure = Erasure(resources)
        self.statistics = Statistics(resources)
        self.pools = SharedPools(resources)
        self.tiers = Tiers(resources)
        self.skills = SkillGraph(resources)
        self.work = CallerWork(resources)
        self.ingest = self.documents.ingest
        self.query = self.queries.query
        self.query_many = self.queries.query_many
        self.context = self.queries.context
        self.feedback = self.queries.feedback
        self.sql = self.queries.sql
        self.consolidate = self.insights.consolidate
        self.forget = self.erasure.forget
        self.export = self.transfer.export
        self.router = self.tiers.router
        self.judgements = Judgements(resources)
        self.prompts = Prompts(resources)

    @classmethod
    def create(cls, layout: Layout, settings: KnowledgeBaseSettings, clock: Clock) -> None:
        """Make the tables and the ledger of a new knowledge base in its folder."""
        from memctl.store.store import Store

        Store.create(
            layout.folder, settings.dimension, embedder=settings.embedder, clock=clock
        ).close()

    @classmethod
    def open(
        cls, layout: Layout, config: Config, clock: Clock, warm: WarmState | None = None
    ) -> Self:
        """Open the knowledge base in a folder.

        Args:
            layout: Where it stands on disk.
            config: Settings of the whole program.
            clock: Returns the current time.
            warm: Keeps its store open for the next time.

        Raises:
            KnowledgeBaseUnavailable: A newer version of memctl made it.
            DamagedError: Its ledger cannot be read.
        """
        return cls(Resources.open(layout, config, clock, warm))

    def close(self) -> None:
        """Release its files."""
        self.resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"KnowledgeBase({self.name!r}, {str(self.layout.folder)!r})"

    @property
    def name(self) -> str:
        """Its name, which is that of its folder."""
        return self.layout.name

    @property
    def layout(self) -> Layout:
        """Where it stands on disk."""
        return self.resources.layout

    @property
    def settings(self) -> KnowledgeBaseSettings:
        """Its settings."""
        return self.resources.settings

    @property
    def store(self) -> Store:
        """Its tables and ledger."""
        return self.resources.store

    @property
    def services(self) -> ServiceFactory:
        """Its models and what works with them: ``embedder``, ``providers``, ``ingestor``."""
        return self.resources.services

    @property
    def clock(self) -> Clock:
        """Returns the current time."""
        return self.resources.clock

    def note_settings(self) -> None:
        """Keep a copy of kb.toml in the ledger, from which a lost one can be restored."""
        self.resources.note_settings()


class Agent:
    """An agent in one conversation of a user; close it, or use it in a ``with`` statement.

    It needs a model of its own for replies alone.

    Args:
        base: Where the conversation is kept, opened for the user and by the agent.
        session_id: The conversation, which is begun where it is not there; by default a new one.
    """

    def __init__(self, base: KnowledgeBase, session_id: str | None = None) -> None:
        self.base = base
        self.session = base.sessions.get_or_start(session_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the knowledge base; the conversation can go on later."""
        self.base.close()

    def process_message(self, message: str, sender: str = "user") -> Mapping[str, Any]:
        """Add a message, and tell what of it is kept; see ``Sessions.process``."""
        from memctl.sessions.conversations import Message

        statement = self.base.sessions.process(
            self.session, Message(sender=sender, content=message)
        )
        self.base.sessions.compress_now_or_later(self.session)
        return statement

    def prompt(self, message: str, system: str = "") -> Sequence[Mapping[str, str]]:
        """Return the messages that prepare a model for a new one; see ``Sessions.prompt``."""
        session = self.base.sessions.get(self.session.session_id, namespace=self.session.namespace)
        return self.base.sessions.prompt(session, message, system)

    def end(self) -> None:
        """Record that the conversation is over; see ``Sessions.end``."""
        self.session = self.base.sessions.end(self.session)


class KnowledgeBases(Sequence[KnowledgeBase]):
    """Open knowledge bases, at least one; ``queries`` asks all of them.

    Args:
        members: The knowledge bases.
    """

    def __init__(self, members: Sequence[KnowledgeBase]) -> None:
        self._members = tuple(members)
        stores = [member.store for member in self._members]
        self._warm = self._members[0].resources.warm
        self.queries = query_service(
            lambda: [member.resources.target for member in self._members], stores, self._warm
        )
        self.links = Links(lambda: [member.resources for member in self._members])
        self.query = self.queries.query
        self.query_many = self.queries.query_many
        self.context = self.queries.context
        self.feedback = self.queries.feedback
        self.sql = self.queries.sql

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

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the files of all."""
        if self._warm is None:
            self.queries.drop_caches()
        for member in self._members:
            member.close()

    def judge(self, target: str, judgement: Judgement) -> JudgementResult:
        """Record a judgement of an answer or a conversation.

        Args:
            target: The id of a question, ``last`` for the latest one, or a conversation.
            judgement: What is said.

        Raises:
            UsageError: It says nothing, the score is none, or nothing of that name is noted.
        """
        latest = self.queries.latest_question() if target == "last" else ""
        parts = [member.judgements for member in self._members]
        return judge_in(parts, latest, target, judgement)

    def owner(self, table: TableName, id_: str) -> KnowledgeBase:
        """Return the first that has a row whose id is, or begins with, what is given.

        Raises:
            NotFoundError: None has.
            UsageError: Several ids begin so.
        """
        from memctl.memories.memory_views import resolve

        missing: NotFoundError | None = None
        found: dict[str, KnowledgeBase] = {}
        for member in self._members:
            try:
                found.setdefault(resolve(member.resources.seen_snapshot(), table, id_), member)
            except NotFoundError as error:
                missing = error
            if id_ in found:
                return member
        if len(found) > 1:
            such = ", ".join(f"{each} of {member.name}" for each, member in found.items())
            raise UsageError(f"several ids start with {id_!r}", f"such as {such}")
        if found:
            return next(iter(found.values()))
        raise missing or NotFoundError(f"there is nothing {id_!r}")
