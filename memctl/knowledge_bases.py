"""Several knowledge bases asked at once: questions, context and SQL over all of them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self

from memctl.errors import MemctlError, NotFoundError, UsageError
from memctl.records import Context, Filters, QueryResult, Question

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.config import Mode
    from memctl.knowledge_base import KnowledgeBase
    from memctl.store.names import TableName

_NO_FILTERS = Filters()
_log = logging.getLogger(__name__)


class KnowledgeBases(Sequence["KnowledgeBase"]):
    """Knowledge bases that are open, at least one."""

    def __init__(self, members: Sequence[KnowledgeBase]) -> None:
        self._members = tuple(members)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
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
