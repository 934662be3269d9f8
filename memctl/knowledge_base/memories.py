"""Memories of a knowledge base, the insights drawn from them, and the graph of names in them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from typing import TYPE_CHECKING

from msgspec.structs import asdict, replace

from memctl.errors import AccessRefused, KnowledgeBaseUnavailable, LockedError, UsageError
from memctl.identity import conversations_of, private_namespace
from memctl.ids import private_agent
from memctl.knowledge_base.resources import Part, audit_as
from memctl.literals import LEARNING, STATED, InsightKind, MemoryKind, Sort, SourceType
from memctl.plain_values import require_shallow
from memctl.records import ConsolidationReport, Filters, Memory, Metadata, ProgressListener

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.config import Config
    from memctl.graph.graph_views import GraphView
    from memctl.graph.name_index import NameIndex, Node
    from memctl.graph.name_resolution import Decisions
    from memctl.memories.memory_editing import Statement
    from memctl.memories.memory_views import MemoryView
    from memctl.models.protocols import Embedder
    from memctl.store.ledger.audit_repositories import AccessEntry

_NO_FILTERS = Filters()


def _kept_namespace(config: Config, named: str | None, metadata: Metadata | None) -> str:
    """Return where the agent that is named keeps what it keeps to itself.

    Raises:
        UsageError: No agent is named, or another namespace is, or it is to be shared.
    """
    if (metadata or {}).get("share"):
        raise UsageError("what is private is not shared", "leave out one of the two")
    if config.agent is None:
        raise UsageError(
            "no agent is named who could keep it to itself",
            "name one with MEMCTL_AGENT, or over HTTP with X-Memctl-Agent",
        )
    namespace = private_namespace(config.namespaces, config.agent, config.user)
    if named not in (None, namespace):
        raise UsageError(f"what is private is kept in {namespace!r}", "leave the namespace out")
    return namespace


class Memories(Part):
    """The memories of one knowledge base."""

    @audit_as("memory add")
    def add(
        self,
        text: str,
        *,
        type_: str | None = None,
        namespace: str | None = None,
        tags: Sequence[str] = (),
        importance: float | None = None,
        confidence: float = 1.0,
        source: str | None = None,
        session: str | None = None,
        created_at: datetime | None = None,
        expires_at: datetime | None = None,
        source_ids: Sequence[str] = (),
        metadata: Metadata | None = None,
        dry_run: bool = False,
        source_type: SourceType | None = None,
        kind: MemoryKind | None = None,
        private: bool = False,
    ) -> Memory:
        """Remember one statement; the same one stated twice is stored once.

        Names, topics and keywords are read from its text, and so are ``#tags`` and a label such as
        ``important:``, which it is kept without.

        Args:
            text: The statement.
            type_: Such as ``fact``, ``decision`` or ``plan``; by default what its text says.
            namespace: Its namespace; by default that of the conversations of the user who is named,
                else ``default``.
            tags: Its tags.
            importance: From 0 to 1; by default as its type tells.
            confidence: How sure it is, from 0 to 1.
            source: Where it comes from, such as ``chat``; by default ``stated``.
            session: The conversation that it belongs to.
            created_at: When it happened; now by default.
            expires_at: From when on it no longer holds; never by default.
            source_ids: Memories that it rests on.
            metadata: Anything else, as JSON has it.
            dry_run: Write nothing; return what it would be.
            source_type: Who it is from; by default the agent that is named, else a person.
            kind: What it keeps; by default as its type tells.
            private: Whether the agent that is named keeps it to itself.

        Raises:
            UsageError: The text is empty, a value cannot be used, or it can't be private.
            NotFoundError: It names evidence that does not exist.
        """
        from memctl.memories.memory_editing import Statement
        from memctl.understanding.triggers import stated_text

        require_shallow(metadata)
        config = self._kb.program_config
        if private:
            namespace = _kept_namespace(config, namespace, metadata)
        namespace = self._namespace_to_write(namespace, conversations_of)
        if not dry_run:
            self._kb.begin_change()
            source_ids = self._resolve(source_ids)
        stated = stated_text(text, config.triggers)
        statement = Statement(
            text=stated.text,
            type=stated.type if type_ is None else type_,
            namespace=namespace,
            tags=tuple(dict.fromkeys((*tags, *stated.tags))),
            importance=importance,
            confidence=confidence,
            source=source or STATED,
            session_id=session,
            created_at=created_at,
            expires_at=expires_at,
            source_ids=tuple(source_ids),
            metadata=metadata or {},
            agent_id=config.agent,
            source_type=source_type,
            kind=kind,
        )
        if dry_run:
            return self._kb.services.editor().add(statement, dry_run=True)
        return self._add(statement)

    def _add(self, statement: Statement) -> Memory:
        """Remember a statement; a learning that is known already is confirmed."""
        began = self._kb.clock()
        if private_agent(statement.namespace) is not None:
            self._kb.services.editor().add(statement, dry_run=True)  # before any setting changes
            self._kb.make_private(statement.namespace)
        memory = self._kb.services.editor().add(statement)
        if memory.type == LEARNING and memory.valid_from < began:
            self.confirm(memory.id)
        return memory

    def _resolve(self, ids: Sequence[str]) -> Sequence[str]:
        """Return the full ids of memories.

        Raises:
            NotFoundError: One of them does not exist.
        """
        from memctl.memories.memory_views import resolve

        if not ids:
            return ids
        snapshot = self._kb.seen_snapshot()
        return [resolve(snapshot, "memories", each) for each in ids]

    @audit_as("memory edit")
    def edit(
        self,
        id_: str,
        text: str | None = None,
        *,
        type_: str | None = None,
        tags: Sequence[str] | None = None,
        importance: float | None = None,
        dry_run: bool = False,
        editor: str | None = None,
    ) -> Memory:
        """Write a new version of a memory; the old one stays in its history.

        Args:
            id_: Its id.
            text: What it says now; None leaves it as it was, here and below.
            type_: Its type.
            tags: Its tags.
            importance: From 0 to 1.
            dry_run: Write nothing; return what the new version would be.
            editor: Who writes it; by default the agent that is named, else the user.

        Raises:
            NotFoundError: There is none with that id.
            UsageError: It is evidence, or it has a newer version already.
        """
        from memctl.memories.memory_editing import Edit

        memory = self._view(id_).memory
        if not dry_run:
            self._kb.begin_change()
        config = self._kb.program_config
        editor = editor or config.agent or config.user
        edit = Edit(text, type_, None if tags is None else tuple(tags), importance, editor)
        return self._kb.services.editor().edit(memory.id, edit, dry_run=dry_run)

    @audit_as("memory delete")
    def delete(self, id_: str) -> int:
        """Delete a memory, its versions and what rests on it; return how many memories are gone.

        Raises:
            NotFoundError: There is none with that id.
        """
        memory = self._view(id_).memory
        self._kb.begin_change()
        return self._kb.services.editor().delete_memory(memory.id)

    def get(self, id_: str) -> MemoryView:
        """Return a memory with its evidence, versions, insights and connections.

        Raises:
            NotFoundError: There is none with that id.
        """
        view = self._view(id_)
        kb, memory, now = self._kb, view.memory, self._kb.clock()
        is_private = kb.settings.private or memory.namespace in kb.settings.private_namespaces
        kb.query_log.note_shown(memory.id, now, is_private=is_private)
        if memory.archived_at is not None:
            with suppress(KnowledgeBaseUnavailable, AccessRefused, LockedError):
                self.restore(memory.id)
        return view

    def _view(self, id_: str) -> MemoryView:
        """Return a memory as ``get`` does, without counting it as read."""
        from memctl.memories.memory_views import relevance, view_memory

        kb, now = self._kb, self._kb.clock()
        view = view_memory(kb.seen_snapshot(), id_)
        memory, half_life = self._with_pending_accesses(view.memory), kb.settings.half_life
        decay = kb.services.decay([memory.id])
        return replace(
            view,
            memory=memory,
            relevance=relevance(
                memory.importance, memory.confidence, memory.created_at, now, half_life
            ),
            current_importance=decay.importance(asdict(memory), now),
            confirmations=len(decay.confirmations.get(memory.id, ())),
        )

    def _with_pending_accesses(self, memory: Memory) -> Memory:
        """Return a memory with the accesses that upkeep has yet to add to its row."""
        found = self._kb.store.ledger.accesses.select("memory_id = ?", memory.id)
        for each in found:
            last = max(memory.last_accessed_at or each.last_at, each.last_at)
            count = memory.access_count + each.count
            memory = replace(memory, access_count=count, last_accessed_at=last)
        return memory

    def accesses(self, id_: str, limit: int | None = None) -> Sequence[AccessEntry]:
        """Return who read a memory, the latest first; a user who is named, their own readings.

        Raises:
            NotFoundError: There is none with that id.
        """
        memory = self._view(id_).memory
        self._kb.query_log.flush()
        user = self._kb.program_config.user
        found = self._kb.store.ledger.access_trail.of(memory.id)
        known = [each for each in found if user is None or each.user == user]
        return known[:limit]

    @audit_as("memory restore")
    def restore(self, id_: str) -> Memory:
        """Bring back a memory that was archived; return it.

        Raises:
            NotFoundError: There is none with that id.
            UsageError: It is not archived.
        """
        from memctl.rows.row_changes import restore_memories

        memory = self._view(id_).memory
        if memory.archived_at is None:
            raise UsageError(
                f"memory {memory.id} is not archived", "memctl memory list --archived shows which"
            )
        self._kb.begin_change()
        now = self._kb.clock()
        with self._kb.store.write() as transaction:
            restore_memories(transaction, [memory.id], now)
        return replace(memory, archived_at=None, last_accessed_at=now)

    @audit_as("memory confirm")
    def confirm(self, id_: str, source: str | None = None) -> int:
        """Record that a learning was confirmed; return how often it has been.

        One that was archived comes back.

        Args:
            id_: Its id.
            source: Who confirms it; by default who acts.  Each counts once.

        Raises:
            NotFoundError: There is none with that id.
            UsageError: It is not a learning.
        """
        from memctl.store.ledger.work_repositories import Confirmation

        memory = self._view(id_).memory
        if memory.type != LEARNING:
            raise UsageError(
                f"memory {memory.id} is a {memory.type}, and only learnings are confirmed",
                "memctl memory list --type learning",
            )
        self._kb.begin_change()
        ledger, now = self._kb.store.ledger, self._kb.clock()
        with ledger.transaction():
            ledger.confirmations.add([Confirmation(memory.id, source or ledger.audit.actor, now)])
            self._kb.audit("memory confirm", memory.id)
        if memory.archived_at is not None:
            self.restore(memory.id)
        return len(ledger.confirmations.of([memory.id])[memory.id])

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
            limit: At most this many.
            offset: How many to skip.
            sort: What they are sorted by.
            descending: Whether the greatest comes first.
        """
        from memctl.memories.memory_views import Page, list_memories

        kb = self._kb
        page = Page(sort, descending, limit, offset)
        decay = kb.services.decay()
        accesses = kb.store.ledger.accesses.pending()
        found = kb.readable(filters)
        return list_memories(kb.snapshot(), found, kb.clock(), decay, page, accesses)

    def order_values(self, rows: pa.Table, sort: Sort | None = None) -> pa.ChunkedArray:
        """Return what rows of ``list`` are sorted by, to put those of several together."""
        from memctl.memories.memory_views import memory_order_values

        return memory_order_values(rows, sort, self._kb.clock(), self._kb.services.decay())

    def count(self, filters: Filters = _NO_FILTERS) -> int:
        """Return how many memories there are; see ``list``."""
        from memctl.memories.memory_views import count_memories

        kb = self._kb
        return count_memories(kb.snapshot(), kb.readable(filters), kb.clock())

    def count_by_day(
        self, filters: Filters = _NO_FILTERS, *, known: bool = False
    ) -> Mapping[date, int]:
        """Return how many memories there are of each day (UTC).

        Args:
            filters: What they are limited to.
            known: Whether the day is that on which they became known here, not their own.
        """
        from memctl.memories.memory_views import count_by_day

        kb, column = self._kb, "valid_from" if known else "created_at"
        return count_by_day(kb.snapshot(), kb.readable(filters), kb.clock(), column)


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
        kind: InsightKind | None = None,
    ) -> pa.Table:
        """Return insights, all or those of one kind, the newest first.

        The other arguments are those of ``Memories.list``.
        """
        memories = Memories(self._kb)
        insights = replace(filters, levels=("insight",))
        if kind is None:
            return memories.list(
                insights, limit=limit, offset=offset, sort=sort, descending=descending
            )
        every = memories.list(insights, sort=sort, descending=descending)
        kinds = (json.loads(each).get("kind") for each in every["metadata"].to_pylist())
        return every.filter([each == kind for each in kinds]).slice(offset or 0, limit)

    def count(self, filters: Filters = _NO_FILTERS) -> int:
        """Return how many insights there are; see ``list``."""
        return Memories(self._kb).count(replace(filters, levels=("insight",)))

    def consolidate(
        self,
        *,
        dry_run: bool = False,
        again: bool = False,
        progress: ProgressListener | None = None,
    ) -> ConsolidationReport:
        """Draw insights from memories that belong together; nothing is deleted.

        The ledger records when that was done.

        Args:
            dry_run: Write nothing and ask no model; report what would be drawn.
            again: Look at what has been looked at before, too, so that insights come back that
                were taken back or deleted.
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
                dry_run=dry_run, again=again, batch_size=batch_size, progress=progress, job=job
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
        with suppress(LockedError):  # every row that was looked at has left the indexes
            self._kb.store.upkeep(wait=0)
        return report


class NameGraph(Part):
    """The names in the memories of one knowledge base, and how they are connected."""

    def view(self, filters: Filters = _NO_FILTERS) -> GraphView:
        """Return the graph of the names in memories that hold now.

        Args:
            filters: What the memories are limited to.
        """
        from memctl.graph.graph_views import GraphView, WordComparison
        from memctl.graph.page_names import read_aliases
        from memctl.search.retrieval.corpus import Corpus
        from memctl.store.tables.filter_expressions import document_filter

        kb, snapshot, readable = self._kb, self._kb.snapshot(), self._kb.readable(filters)
        corpus = Corpus({kb.name: snapshot}, kb.clock)
        scope = corpus.scope(readable)

        def read_index(decisions: Decisions) -> NameIndex:
            """Read the names, from disk where a search or a look at the graph has before."""
            return corpus.graph(kb.name, readable, scope, decisions, evidence_only=True)

        view = GraphView(
            kb.name,
            snapshot,
            scope.where,
            self.name_decisions(),
            read_index,
            (),
            aliases=read_aliases(snapshot, document_filter(readable)),
            words=WordComparison(
                corpus.languages(readable), self._word_embedder, self._has_word_vectors
            ),
        )
        return self._with_skills(view) if kb.store.ledger.skills.count() else view

    def addresses(self) -> Mapping[str, Sequence[str]]:
        """Return the e-mail addresses on contact cards, by whom they are of."""
        from memctl.graph.page_names import read_addresses
        from memctl.store.tables.filter_expressions import document_filter

        kb = self._kb
        return read_addresses(kb.snapshot(), document_filter(kb.readable(_NO_FILTERS)))

    def _word_embedder(self) -> Embedder:
        """Return what compares words; only the built-in model is ever loaded."""
        from memctl.search.retrieval.question_vectors import word_embedder

        is_builtin = self._has_word_vectors
        return word_embedder([self._kb.services.embedder] if is_builtin else ())

    @property
    def _has_word_vectors(self) -> bool:
        from memctl.models import BUILTIN_EMBEDDER

        return self._kb.settings.embedder == BUILTIN_EMBEDDER

    def _with_skills(self, view: GraphView) -> GraphView:
        """Return the graph with every skill, and what skills are connected with."""
        from memctl.knowledge_base.skills import SkillGraph

        skills = SkillGraph(self._kb).acting_as()
        edges = [
            ((each.name, "skill"), each.relation, (each.other, each.other_type))
            for each in skills.edges()
        ]
        return replace(view, edges=edges, things=[(name, "skill") for name in skills.names()])

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
        ledger, now = self._kb.store.ledger, self._kb.clock()
        node = merge_names(self.view(), ledger.names, now, one, other)
        self._kb.audit("graph merge", one, other)
        return node

    def unmerge_names(self, one: str, other: str) -> tuple[Node, Node]:
        """Decide that two names do not mean the same; return what each is.

        Raises:
            NotFoundError: Nothing has that name.
            UsageError: They are two already, or cannot be distinguished.
        """
        from memctl.graph.graph_views import unmerge_names

        self._kb.begin_change()
        ledger, now = self._kb.store.ledger, self._kb.clock()
        nodes = unmerge_names(self.view(), ledger.names, now, one, other)
        self._kb.audit("graph unmerge", one, other)
        return nodes
