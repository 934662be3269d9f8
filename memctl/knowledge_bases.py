"""Several knowledge bases asked at once: questions, context and SQL over all of them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self, overload

from memctl.errors import NotFoundError
from memctl.records import Filters

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.config import Config
    from memctl.knowledge_base import KnowledgeBase
    from memctl.store.names import TableName

_NO_FILTERS = Filters()
_log = logging.getLogger(__name__)


class KnowledgeBases(Sequence["KnowledgeBase"]):
    """Knowledge bases that are open, at least one."""

    def __init__(self, members: Sequence[KnowledgeBase]) -> None:
        self._members = tuple(members)

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the files of all."""
        for member in self._members:
            member.close()

    def owner(self, table: TableName, id_: str) -> KnowledgeBase:
        """Return the first that has a row whose id is, or begins with, what is given.

        Raises:
            NotFoundError: None has.
        """
        from memctl.memories.viewing import resolve

        missing: NotFoundError | None = None
        for member in self._members:
            try:
                resolve(member.store.snapshot(), table, id_)
            except NotFoundError as error:
                missing = error
            else:
                return member
        raise missing or NotFoundError(f"there is nothing {id_!r}")

    # --- SQL -------------------------------------------------------------------------------------

    def sql(self, statement: str) -> pa.RecordBatchReader:
        """Run one SELECT or EXPLAIN over the tables of all, and stream its rows.

        With several, every table has their rows with a column ``kb``.

        Raises:
            UsageError: The statement is wrong, or isn't one that may run.
            MemctlError: It ran out of time or memory.
        """
        from memctl.store.ledger_tables import ledger_tables
        from memctl.store.sql import run_sql

        bounds = self._config.sql
        return run_sql(
            {member.name: member.store.snapshot() for member in self},
            statement,
            memory_limit=f"{bounds.memory_limit_mb}MB",
            timeout=bounds.timeout_seconds,
            ledgers={m.name: ledger_tables(m.store.ledger, statement) for m in self},
        )

    def cap_memory(self) -> None:
        """Bound what this whole process may take from now on, for one that runs one statement."""
        from memctl.store.sql import cap_process_memory

        cap_process_memory(2 * self._config.sql.memory_limit_mb * 1_000_000)

    @property
    def _config(self) -> Config:
        return self._members[0].config
