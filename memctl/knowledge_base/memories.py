"""Memories of a knowledge base, the insights drawn from them, and the graph of names in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from memctl.identity import conversations_of, require_seen
from memctl.knowledge_base.resources import Part
from memctl.literals import MemoryKind, Sort, SourceType
from memctl.records import ConsolidationReport, Filters, Memory, ProgressListener

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.graph.graph_views import GraphView
    from memctl.graph.name_index import Node
    from memctl.graph.name_resolution import Decisions
    from memctl.memories.memory_views import MemoryView

_NO_FILTERS = Filters()


class Memories(Part):
    """The memories of one knowledge base."""

    def add(
        self,
        text: str,
        *,
        type_: str | None = None,
        namespace: str | None = None,
        tags: Sequence[str] = (),
        importance: float | None = None,
        session: str | None = None,
        created_at: datetime | None = None,
        expires_at: datetime | None = None,
        source_ids: Sequence[str] = (),
        source_type: SourceType | None = None,
        kind: MemoryKind | None = None,
    ) -> Memory:
        """Remember one statement; the same one stated twice is stored once.

        Names, topics, keywords and ``#tags`` are read from its text.

        Args:
            text: The statement.
            type_: ``fact``, ``observation``, ``reflection``, ``decision``, ``plan``,
                ``tool_output``, ``conversation_summary``, ...; by default what it says.
            namespace: Its namespace; by default that of the conversations of the user who is named,
                else ``default``.
            tags: Its tags.
            importance: From 0 to 1; by default as its type tells.
            session: The conversation that it belongs to.
            created_at: When it happened; now by default.
            expires_at: From when on it no longer holds; never by default.
            source_ids: Memories that it rests on.
            source_type: Who it is from; by default the agent that is named, else a person.
            kind: What it keeps; by default as its type tells.

        Raises:
            UsageError: The text is empty, or a value cannot be used.
            NotFoundError: It names evidence that does not exist.
        """
        from memctl.memories.memory_editing import Statement

        config = self._kb.program_config
        if namespace is None:
            namespace = conversations_of(config.namespaces, config.user) if config.user else None
        namespace = namespace or "default"
        require_seen(config, namespace)
        self._kb.begin_change()
        statement = Statement(
            text=text,
            type=type_,
            namespace=namespace,
            tags=tuple(tags),
            importance=importance,
            session_id=session,
            created_at=created_at,
            expires_at=expires_at,
            source_ids=tuple(source_ids),
            agent_id=config.agent,
            source_type=source_type,
            kind=kind,
        )
        return self._kb.services.editor().add(statement)

    def edit(
        self,
        id_: str,
        text: str | None = None,
        *,
        type_: str | None = None,
        tags: Sequence[str] | None = None,
        importance: float | None = None,
        editor: str | None = None,
    ) -> Memory:
        """Write a new version of a memory; the old one stays in its history.

        Args:
            id_: Its id.
            text: What it says now; None leaves it as it was, here and below.
            type_: Its type.
            tags: Its tags.
            importance: From 0 to 1.
            editor: Who writes it; by default the agent that is named, else the user.

        Raises:
            NotFoundError: There is none with that id.
            UsageError: It is evidence, or it has a newer version already.
        """
        from memctl.memories.memory_editing import Edit

        self.get(id_)  # only what its user may see
        self._kb.begin_change()
        config = self._kb.program_config
        editor = editor or config.agent or config.user
        edit = Edit(text, type_, None if tags is None else tuple(tags), importance, editor)
        return self._kb.services.editor().edit(id_, edit)

    def delete(self, id_: str) -> int:
        """Delete a memory, its versions and what rests on it; return how many memories are gone.

        Raises:
            NotFoundError: There is none with that id.
        """
        self.get(id_)  # only what its user may see
        self._kb.begin_change()
        return self._kb.services.editor().delete_memory(id_)

    def get(self, id_: str) -> MemoryView:
        """Return a memory with its evidence, versions, insights and connections.

        Raises:
            NotFoundError: There is none with that id.
        """
        from memctl.memories.memory_views import relevance, view_memory

        view = view_memory(self._kb.snapshot(), id_)
        self._kb.require_seen(view.memory.namespace, f"memory {id_!r}")
        memory, now, half_life = view.memory, self._kb.clock(), self._kb.settings.half_life
        score = relevance(memory.importance, memory.confidence, memory.created_at, now, half_life)
        return replace(view, relevance=score)

    def list(
        self,
        filters: Filters = _NO_FILTERS,
        *,
        limit: int | None = None,
        offset: int | None = None,
        sort: Sort | None = None,
        descending: bool = False,
    ) -> pa.Table:
        """Return memories without their vectors, the newest first unless ``sort`` is given.

        Args:
            filters: What the list is limited to.
            limit: At most so many.
            offset: How many to skip.
            sort: What they are sorted by.
            descending: Whether the greatest comes first.
        """
        from memctl.memories.memory_views import Page, list_memories

        kb = self._kb
        page = Page(sort, descending, limit, offset)
        half_life = kb.settings.half_life
        return list_memories(kb.snapshot(), kb.readable(filters), kb.clock(), half_life, page)


class Insights(Part):
    """What consolidation draws from the memories of one knowledge base."""

    def list(
        self,
        filters: Filters = _NO_FILTERS,
        *,
        limit: int | None = None,
        offset: int | None = None,
        sort: Sort | None = None,
        descending: bool = False,
    ) -> pa.Table:
        """Return insights, the newest first; the arguments are those of ``Memories.list``."""
        insights = replace(filters, levels=("insight",))
        return Memories(self._kb).list(
            insights, limit=limit, offset=offset, sort=sort, descending=descending
        )

    def consolidate(
        self, *, dry_run: bool = False, progress: ProgressListener | None = None
    ) -> ConsolidationReport:
        """Draw insights from memories that belong together; nothing is deleted.

        The ledger records when that was done.

        Args:
            dry_run: Write nothing and ask no model; report what would be drawn.
            progress: Receives how far it is.

        Raises:
            ConfigError: The configured model cannot be used as it is.
            KnowledgeBaseUnavailable: It is archived.
            LockedError: Another process is writing and does not stop.
        """
        from memctl.schema.table_names import CONSOLIDATION
        from memctl.store.ledger.ledger import job_context

        services, ledger = self._kb.services, self._kb.store.ledger
        batch_size = services.config.consolidate.batch_size

        def run(job: int | None = None) -> ConsolidationReport:
            """Consolidate; only now are the models loaded."""
            return services.consolidator(asks_model=not dry_run).run(
                dry_run=dry_run, batch_size=batch_size, progress=progress, job=job
            )

        if dry_run:
            return run()
        self._kb.begin_change()
        if services.config.models.understand and ledger.comparisons.count():
            services.ingestor.compare()  # what it ends is not consolidated any more
        with job_context(ledger, CONSOLIDATION, self._kb.clock) as job:
            report = run(job.id)
            job.detail = {
                "examined": report.examined,
                "insights": len(report.insights),
                "waiting": report.waiting,
            }
        return report


class NameGraph(Part):
    """The names in the memories of one knowledge base, and how they are connected."""

    def view(self, filters: Filters = _NO_FILTERS) -> GraphView:
        """Return the graph of the names in memories that hold now.

        Args:
            filters: What the memories are limited to.
        """
        from memctl.graph.graph_views import GraphView
        from memctl.store.tables.filter_expressions import memory_filter
        from memctl.store.tables.metadata_filters import metadata_condition

        kb, snapshot = self._kb, self._kb.snapshot()
        where = memory_filter(kb.readable(filters), kb.clock())
        where &= metadata_condition(filters, "memories", [snapshot])
        return GraphView(kb.name, snapshot, where, self.name_decisions())

    def name_decisions(self) -> Decisions:
        """Return the user's decisions on which names mean the same."""
        from memctl.graph.graph_views import decisions_of

        return decisions_of(self._kb.store.ledger.names)

    def merge_names(self, one: str, other: str) -> Node:
        """Decide that two names mean the same; return what they are together.

        Raises:
            NotFoundError: Nothing has that name.
            UsageError: They are one already.
        """
        from memctl.graph.graph_views import merge_names

        self._kb.begin_change()
        return merge_names(self.view(), self._kb.store.ledger.names, self._kb.clock(), one, other)

    def unmerge_names(self, one: str, other: str) -> tuple[Node, Node]:
        """Decide that two names do not mean the same; return what each is.

        Raises:
            NotFoundError: Nothing has that name.
            UsageError: They are two already, or cannot be told apart.
        """
        from memctl.graph.graph_views import unmerge_names

        self._kb.begin_change()
        return unmerge_names(self.view(), self._kb.store.ledger.names, self._kb.clock(), one, other)
