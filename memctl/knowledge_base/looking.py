"""What a knowledge base offers to look at what is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memctl.knowledge_base.opened import Opened
from memctl.records import Filters, JobView

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.graph.resolution import Decisions
    from memctl.graph.views import GraphView
    from memctl.memories.viewing import DocumentView, MemoryView
    from memctl.query_statistics import QueryStatistics
    from memctl.receipts.receipt import Receipt
    from memctl.statistics import Statistics

_NO_FILTERS = Filters()


class Looking(Opened):
    """Shows what is there and how it came to be; changes nothing."""

    def memories(
        self, filters: Filters = _NO_FILTERS, *, limit: int | None = None, offset: int | None = None
    ) -> pa.Table:
        """Return memories without their vectors, the newest first."""
        from memctl.memories.viewing import list_memories

        found = self.without_private(filters)
        return list_memories(self.store.snapshot(), found, self.clock(), limit, offset)

    def memory(self, id_: str) -> MemoryView:
        """Return a memory with its evidence, versions, insights and connections.

        Raises:
            NotFoundError: There is none of that id.
        """
        from memctl.memories.viewing import view_memory

        return view_memory(self.store.snapshot(), id_)

    def documents(
        self,
        filters: Filters = _NO_FILTERS,
        *,
        incomplete: bool = False,
        limit: int | None = None,
        offset: int | None = None,
    ) -> pa.Table:
        """Return documents without their texts, those taken in last first."""
        from memctl.memories.viewing import list_documents

        found = self.without_private(filters)
        return list_documents(
            self.store.snapshot(), found, incomplete=incomplete, limit=limit, offset=offset
        )

    def document(self, id_: str) -> DocumentView:
        """Return a document with its text and the memories made from it.

        Raises:
            NotFoundError: There is none of that id.
        """
        from memctl.memories.viewing import view_document

        return view_document(self.store.snapshot(), id_)

    def graph(self, filters: Filters = _NO_FILTERS) -> GraphView:
        """Return who and what is named in memories that hold now, and how it hangs together."""
        from memctl.graph.views import GraphView
        from memctl.store.filters import memory_filter

        where = memory_filter(self.without_private(filters), self.clock())
        return GraphView(self.name, self.store.snapshot(), where, self.name_decisions())

    def name_decisions(self) -> Decisions:
        """Return what was decided by hand on which names mean the same."""
        from memctl.graph.deciding import decisions_of

        return decisions_of(self.store.ledger.names)

    def statistics(self) -> Statistics:
        """Return counts, sizes and rates."""
        from memctl.statistics import statistics

        return statistics(self.name, self.store, self.clock())

    def jobs(self, *, limit: int | None = None) -> list[JobView]:
        """Return what was done by the way or took a while, the newest first."""
        return self._jobs.recent(limit)

    def receipts(self, file: str) -> list[Receipt]:
        """Return what became of a file each time that it was taken in, the newest first.

        Args:
            file: Its path, where it was given or is now, or the last parts of that.
        """
        from memctl.receipts.telling import receipts

        return receipts(self.layout, self.settings, self.store, file, self.clock())

    def names_like(self, file: str) -> list[str]:
        """Return a few names of files that are like one of which nothing is known."""
        from memctl.receipts.near import names_like

        return names_like(self.layout, self.settings, self.store, file)

    def query_statistics(self) -> QueryStatistics:
        """Return what the query log says: how many questions, how fast, how well answered."""
        from memctl.query_statistics import query_statistics

        self.query_log.flush()
        return query_statistics(self.name, self.store.ledger)

    def usage(self) -> pa.Table:
        """Return what models used, by day (UTC), task and model, the latest day first."""
        from memctl.store.ledger_tables import ledger_tables

        book = "model_usage"
        table = ledger_tables(self.store.ledger, [book])[book]
        return table.sort_by([("day", "descending"), ("task", "ascending"), ("model", "ascending")])
