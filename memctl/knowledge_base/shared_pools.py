"""Shared pools of a knowledge base, and what becomes of them when a run of a workflow ends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memctl.errors import MemctlError
from memctl.identity import DEFAULT_USER
from memctl.knowledge_base.documents import Documents
from memctl.knowledge_base.resources import Part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memctl.pools import Pools
    from memctl.store.ledger.pool_repositories import Pool


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
        return self.acting_as(agent).to_end(run_id=run, session_id=session)

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
        ending = pools.to_end(run_id=run, session_id=session)
        documents = [self._archived(pools, pool) for pool in ending] if archive else []
        kept = pools.of(run_id=run, session_id=session)
        pools.release(ending, unchanged=archive)
        deleted = tuple(pool.pool_id for pool in ending)
        return EndedPools(
            deleted,
            tuple(pool.pool_id for pool in kept if pool.pool_id not in deleted),
            tuple(id_ for id_ in documents if id_),
        )

    def _archived(self, pools: Pools, pool: Pool) -> str | None:
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
    from memctl.pools.pool_values import leaves

    title = f"Run {pool.run_id}: {pool.name}" if pool.run_id else pool.name
    parts = [f"# {title}"]
    for step, value in data.items():
        parts.append(f"## {step}")
        parts += [
            f"{path}: {_shown_value(leaf)}" if path else _shown_value(leaf)
            for path, leaf in leaves(value)
        ]
    return "\n\n".join(parts) + "\n"


def _shown_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
