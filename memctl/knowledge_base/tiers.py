"""Memory tiers of a knowledge base: routers, promotion to long-term memory, and shared pools."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memctl.errors import MemctlError
from memctl.identity import (
    DEFAULT_USER,
    Identity,
    conversations_of,
    readable_by,
    require_seen,
)
from memctl.knowledge_base.documents import Documents
from memctl.knowledge_base.resources import Part
from memctl.literals import Tier
from memctl.records import Filters, Hit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memctl.pools import Pools
    from memctl.store.ledger.pool_repositories import Pool
    from memctl.tiers import PromotionReport, Router, TierStatistics
    from memctl.tiers.long_term import LongTermMemory
    from memctl.tiers.promotion import Promoter
    from memctl.tiers.router import TierHit


def _pool_hit(kb: str, hit: TierHit, pool: Pool, key: str) -> Hit:
    return Hit(
        rank=hit.rank,
        score=hit.score,
        kb=kb,
        memory_id="",
        document_id=None,
        external_id=None,
        source=f"pool {pool.pool_id}, key {key}",
        title=pool.name,
        text=hit.text,
        start=None,
        end=None,
        page=None,
        row=None,
        time_start=None,
        time_end=None,
        heading="",
        level="evidence",
        type="shared",
        namespace="",
        session_id=pool.session_id,
        turn=None,
        tags=(),
        source_ids=(),
        importance=0.0,
        created_at=pool.updated_at,
        legs={"vector": hit.score},
        similarity=hit.score,
        agent_id=pool.owner,
    )


class Tiers(Part):
    """The memory tiers of one knowledge base; its pools are the shared one."""

    def router(
        self,
        agent: str | None = None,
        session: str | None = None,
        user: str | None = None,
        *,
        filters: Filters | None = None,
        counts_reads: bool = True,
    ) -> Router:
        """Return the tiers as an agent sees them in one session.

        What is left out is as for every command, of the environment.

        Args:
            agent: Its name.
            session: The session; where none is named, values are those of the default session.
            user: For whom; what is kept belongs to the conversations of that user.
            filters: What a search of memories is limited to; by default what that user reads.
            counts_reads: Whether readings are counted, which decides what becomes a memory.

        Raises:
            UsageError: A name cannot be one.
            AccessRefused: The user is another one than the one that is named for all.
        """
        from memctl.tiers.router import Router, RouterParts

        kb = self._kb
        config = kb.program_config
        identity = Identity.of(config, user=user, agent=agent, session=session)
        namespace = conversations_of(config.namespaces, identity.user)
        require_seen(config, namespace)
        is_writable = kb.settings.status != "archived" and kb.store.ledger.is_writable
        parts = RouterParts(
            ledger=kb.store.ledger,
            clock=kb.clock,
            settings=config.tiers,
            redacts=kb.settings.redact,
            require_writable=kb.require_writable,
            counts_reads=counts_reads and is_writable,
            long_term=self._long_term,
            search=lambda query, limit, user: self._search(query, limit, user, filters),
            embedder=lambda: kb.services.embedder,
            pools=SharedPools(kb).acting_as,
            promote=lambda name: self.promote(name, namespace=namespace, at_once=True),
            count_memories=self._count_memories,
            private_namespaces=frozenset(kb.settings.private_namespaces),
        )
        return Router(parts, identity, namespace)

    def promote(
        self,
        session: str | None = None,
        *,
        namespace: str | None = None,
        at_once: bool = False,
        dry_run: bool = False,
    ) -> PromotionReport:
        """Make memories of short-term entries that are over, and remove those read too seldom.

        The ledger records when that was done, and memctl job undo takes the memories back.

        Args:
            session: Of this session alone.
            namespace: Of this namespace alone; by default that of the conversations of the user
                who is named, else of all.
            at_once: Also those that were read often enough and are not over yet.
            dry_run: Only say what would be done.

        Raises:
            KnowledgeBaseUnavailable: It is archived.
            LockedError: Another process is writing and does not stop.
        """
        from memctl.schema.table_names import PROMOTION
        from memctl.store.ledger.ledger import job_context

        config = self._kb.program_config
        if namespace is None and config.user is not None:
            namespace = conversations_of(config.namespaces, config.user)
        if dry_run:
            return self._promoter.run(session, namespace=namespace, at_once=at_once, dry_run=True)
        self._kb.begin_change()
        with job_context(self._kb.store.ledger, PROMOTION, self._kb.clock) as job:
            report = self._promoter.run(session, namespace=namespace, at_once=at_once, job=job.id)
            job.detail = {
                "promoted": len(report.promoted),
                "replaced": report.replaced,
                "removed": report.removed,
                "withheld": report.withheld,
                "working_removed": report.working_removed,
            }
        return report

    def has_work(self) -> bool:
        """Return whether any tier has something that a promotion would look at."""
        return self._promoter.has_work()

    def find_in_pools(self, question: str, limit: int) -> list[Hit]:
        """Return values of pools that the caller may read, the nearest in meaning first.

        A hit's source names pool and key; it is no memory, so it has no id.
        """
        pools = {pool.pool_id: pool for pool in SharedPools(self._kb).acting_as().list()}
        searched: tuple[Tier, ...] = ("shared",)
        found = self.router().semantic_search(question, limit, tiers=searched)
        return [
            _pool_hit(self._kb.name, each, pools[pool_id], key)
            for each in found
            for pool_id, _, key in [(each.key or "").partition("/")]
            if pool_id in pools
        ]

    # --- inside ----------------------------------------------------------------------------------

    @property
    def _long_term(self) -> LongTermMemory:
        from memctl.tiers.long_term import LongTermMemory

        kb = self._kb
        return LongTermMemory(kb.store, kb.services.editor, kb.clock)

    @property
    def _promoter(self) -> Promoter:
        from memctl.tiers.promotion import Promoter

        kb, settings = self._kb, self._kb.program_config.tiers
        return Promoter(
            kb.name,
            kb.store.ledger,
            self._long_term,
            kb.clock,
            reads=settings.promote_reads,
            near=settings.near_duplicate,
            is_private=self._is_private,
        )

    def _is_private(self, namespace: str, session: str) -> bool:
        """Return whether what was kept in a session must not become a memory of an open base."""
        kb = self._kb
        if kb.settings.private or not kb.settings.private_namespaces:
            return False
        found = (each.namespace for each in kb.store.ledger.sessions.find_by_name(session))
        return not {namespace, *found}.isdisjoint(kb.settings.private_namespaces)

    def _search(
        self, query: str, limit: int, user: str | None, filters: Filters | None
    ) -> Sequence[Hit]:
        config = self._kb.program_config
        if filters is None:
            readable = readable_by(config.namespaces, user, config.agent) if user else ()
            filters = Filters(namespaces=readable)
        found = self._kb.queries.query(query, filters=filters, limit=limit, answer=False, log=False)
        return found.hits

    def _count_memories(self, user: str | None) -> TierStatistics:
        """Count the memories of a user, or of all without private namespaces."""
        import pyarrow.compute as pc

        from memctl.store.tables.filter_expressions import memory_filter
        from memctl.tiers.router import SOON, TierStatistics

        kb, now = self._kb, self._kb.clock()
        config = kb.program_config
        readable = readable_by(config.namespaces, user, config.agent) if user else ()
        filters = Filters(namespaces=readable, agent=config.agent)
        condition = memory_filter(kb.settings.without_private(filters), now)
        rows = kb.snapshot().scan("memories", condition, ["text", "valid_from", "expires_at"])
        ending = pc.sum(pc.less_equal(rows["expires_at"], now + SOON)).as_py()
        return TierStatistics(
            "long_term",
            rows.num_rows,
            pc.sum(pc.binary_length(rows["text"])).as_py() or 0,
            pc.min(rows["valid_from"]).as_py(),
            ending or 0,
        )


class EndedPools(Struct, frozen=True):
    """What became of the pools of a run, or of a conversation."""

    deleted: tuple[str, ...]
    kept: tuple[str, ...]
    """Those that persist across executions."""
    documents: tuple[str, ...]
    """Ids of the documents that they were archived as."""


class SharedPools(Part):
    """The pools of one knowledge base."""

    def acting_as(self, agent: str | None = None) -> Pools:
        """Return the pools as an agent sees them; what it may not do is refused there.

        Args:
            agent: Its name, or that of a user; by default whom the environment names, an agent
                before a user.
        """
        from memctl.pools import Pools

        kb, config = self._kb, self._kb.program_config
        return Pools(
            kb.store.ledger,
            kb.clock,
            agent or config.agent or config.user or DEFAULT_USER,
            user=config.user or DEFAULT_USER,
            redact=kb.settings.redact,
            require_writable=kb.require_writable,
        )

    def ending(
        self, *, run: str | None = None, session: str | None = None, agent: str | None = None
    ) -> Sequence[Pool]:
        """Return the pools that ``end`` would delete."""
        return self.acting_as(agent).require_endable(run_id=run, session_id=session)

    def end(
        self,
        *,
        run: str | None = None,
        session: str | None = None,
        agent: str | None = None,
        archive: bool = False,
    ) -> EndedPools:
        """Delete the pools of a run of a workflow, or of a conversation.

        Those that persist across executions stay.

        Args:
            run: The run.
            session: The conversation.
            agent: Who asks; it must own all that go.
            archive: Keep what each pool holds as a document, unless it is empty or has
                expired.

        Raises:
            NotFoundError: No pool belongs to it.
            AccessRefused: Another agent owns one of them; nothing has been done.
            VersionConflict: One that was being archived was written to; nothing was deleted.
            MemctlError: What a pool holds could not be remembered; nothing has been deleted.
        """
        pools = self.acting_as(agent)
        ending = pools.require_endable(run_id=run, session_id=session)
        documents = [self._archive(pools, pool) for pool in ending] if archive else []
        kept = pools.of(run_id=run, session_id=session)
        pools.release(ending, unchanged=archive)
        deleted = tuple(pool.pool_id for pool in ending)
        return EndedPools(
            deleted,
            tuple(pool.pool_id for pool in kept if pool.pool_id not in deleted),
            tuple(id_ for id_ in documents if id_),
        )

    def _archive(self, pools: Pools, pool: Pool) -> str | None:
        if pool.expires_at is not None and pool.expires_at <= self._kb.clock():
            return None  # what has expired is not to be read
        data = pools.read(pool.pool_id).value
        if not data:
            return None
        report = Documents(self._kb).ingest(
            text=_as_text(pool, data), source=f"pool:{pool.pool_id}", session=pool.session_id
        )
        outcome = report.outcomes[0]
        if outcome.document_id is None:
            raise MemctlError(
                f"pool {pool.pool_id!r} could not be archived: {outcome.reason}", outcome.hint
            )
        return outcome.document_id


def _as_text(pool: Pool, data: dict[str, Any]) -> str:
    """Return what a pool holds as a document: a section for each step, a line for each value."""
    from memctl.pools.pool_values import leaf_values

    title = f"Run {pool.run_id}: {pool.name}" if pool.run_id else pool.name
    parts = [f"# {title}"]
    for step, value in data.items():
        parts.append(f"## {step}")
        parts += [
            f"{path}: {_shown_value(leaf)}" if path else _shown_value(leaf)
            for path, leaf in leaf_values(value)
        ]
    return "\n\n".join(parts) + "\n"


def _shown_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
