"""``KnowledgeBases``: several open knowledge bases, asked together; it does no work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self, overload

from memctl.errors import NotFoundError
from memctl.knowledge_base.knowledge_base import KnowledgeBase
from memctl.queries import QueryService

if TYPE_CHECKING:
    from memctl.schema.table_names import TableName


class KnowledgeBases(Sequence[KnowledgeBase]):
    """Open knowledge bases, at least one; ``queries`` asks all of them.

    Args:
        members: Which.
    """

    def __init__(self, members: Sequence[KnowledgeBase]) -> None:
        self._members = tuple(members)
        self.queries = QueryService(lambda: [member.resources.target for member in self._members])
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
        self.queries.drop_caches()
        for member in self._members:
            member.close()

    def owner(self, table: TableName, id_: str) -> KnowledgeBase:
        """Return the first that has a row whose id is, or begins with, what is given.

        Raises:
            NotFoundError: None has.
        """
        from memctl.memories.memory_views import resolve

        missing: NotFoundError | None = None
        for member in self._members:
            try:
                resolve(member.store.snapshot(), table, id_)
            except NotFoundError as error:
                missing = error
            else:
                return member
        raise missing or NotFoundError(f"there is nothing {id_!r}")
