"""``KnowledgeBases``: what can be asked of several knowledge bases at once; it does no work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self, Unpack, overload

from memctl.errors import NotFoundError, UsageError
from memctl.queries.query_service import QueryService
from memctl.queries.search_context import QueryOptions, SearchContext
from memctl.records import Context, Filters, QueryResult, Question
from memctl.schema.storable_text import storable
from memctl.search.retrieval.corpus_cache import CorpusCache

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.knowledge_base import KnowledgeBase
    from memctl.literals import Mode, Verdict
    from memctl.schema.table_names import TableName


def _narrowed(filters: Filters | None, namespace: str | None) -> Filters:
    given = filters or Filters()
    return given if namespace is None else replace(given, namespaces=(namespace,))


class KnowledgeBases(Sequence["KnowledgeBase"]):
    """Knowledge bases that are open, at least one.

    Args:
        members: Which.
        latest: Keeps what was worked out of them for questions; by default a new one does.
    """

    def __init__(
        self, members: Sequence[KnowledgeBase], *, latest: CorpusCache | None = None
    ) -> None:
        self._members = tuple(members)
        self._latest = latest or CorpusCache()
        self._means = SearchContext(self._members, private=False, latest=self._latest)

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
        """Let go of the files of all."""
        self._latest.drop()
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

    # --- asking ----------------------------------------------------------------------------------

    def query(self, question: str, **options: Unpack[QueryOptions]) -> QueryResult:
        """Ask one question; see ``AskOptions`` for what else can be said.

        Raises:
            UsageError: The question is empty, or an option cannot be used.
        """
        return next(self.query_many([question], **options))

    def query_many(
        self, questions: Iterable[Question | str], **options: Unpack[QueryOptions]
    ) -> Iterator[QueryResult]:
        """Ask many questions of the same state; the results come in order, as they are found.

        A question's own namespace stands in for that of the filters.

        Raises:
            UsageError: A question is empty, or an option cannot be used.
        """
        askers: dict[bool, QueryService] = {}
        for question in questions:
            asked = Question(question) if isinstance(question, str) else question
            filters = _narrowed(options.get("filters"), asked.namespace)
            private = self._names_private(filters)
            if private not in askers:
                askers[private] = self._asker(options.get("mode"), private=private)
            yield askers[private].ask(asked, filters, options)

    def _names_private(self, filters: Filters) -> bool:
        return any(member.names_private(filters) for member in self)

    def _asker(self, mode: Mode | None, *, private: bool) -> QueryService:
        return QueryService(replace(self._means, private=private), mode)

    def context(
        self,
        question: str,
        *,
        budget: int = 2000,
        mode: Mode | None = None,
        filters: Filters | None = None,
        auto: bool = False,
    ) -> Context:
        """Return evidence on a question, best first, with the ``[n]`` to cite it by.

        Its text is empty where nothing that is known has to do with the question; where it is in
        doubt whether anything has, it says so, and is half as long at most.

        Args:
            question: In words.
            budget: The most tokens that it may have.
            mode: How memories are found; by default as configured.
            filters: What it is limited to.
            auto: Whether it may be any message, of which most need no memory: those get a text
                only if they refer to what was before, or if what is known clearly bears on them.

        Raises:
            UsageError: The question is empty, or an option cannot be used.
        """
        narrowed = filters or Filters()
        asker = self._asker(mode, private=self._names_private(narrowed))
        return asker.context(question, budget, narrowed, auto=auto)

    def feedback(self, query_id: str, verdict: Verdict) -> str:
        """Note how good what an earlier question gave was; return the question's id.

        Args:
            query_id: As ``QueryResult.query_id`` says, or ``last`` for the latest question.
            verdict: ``good`` or ``bad``; it takes the place of an earlier one.

        Raises:
            UsageError: No such question stands in the query log.
            KnowledgeBaseUnavailable: This process may only read, or the disk is full.
        """
        wanted = self._latest_question() if query_id == "last" else storable(query_id)
        known = [member.query_log.judge(wanted, verdict) for member in self]  # all of them
        if not any(known):
            raise UsageError(
                f"no question {query_id!r} in the query log",
                "memctl query -o json tells a question's query_id; last is the latest",
            )
        return wanted

    def _latest_question(self) -> str:
        for member in self:
            member.query_log.flush()
        latest = [entry for member in self for entry in member.store.ledger.queries.recent(1)]
        return max(latest, key=lambda entry: entry.at).query_id if latest else ""

    # --- SQL -------------------------------------------------------------------------------------

    def sql(self, statement: str, namespaces: Sequence[str] = ()) -> pa.RecordBatchReader:
        """Run one SELECT or EXPLAIN over the tables of all, and stream its rows.

        With several, every table has their rows with a column ``kb``.

        Args:
            statement: What to run.
            namespaces: There are rows of these alone; by default of all but private ones.

        Raises:
            UsageError: The statement is wrong, or isn't one that may run.
            MemctlError: It ran out of time or memory.
        """
        from memctl.store.sql import NamespaceScope, run_sql

        bounds = self._means.config.sql
        return run_sql(
            self._means.snapshots(),
            statement,
            memory_limit=f"{bounds.memory_limit_mb}MB",
            timeout=bounds.timeout_seconds,
            ledgers={member.name: member.store.ledger for member in self},
            scope=NamespaceScope(
                self._means.without_private(Filters(namespaces=tuple(namespaces)))
            ),
        )

    def cap_memory(self) -> None:
        """Bound what this whole process may take from now on, for one that runs one statement."""
        from memctl.store.sql import cap_process_memory

        cap_process_memory(2 * self._means.config.sql.memory_limit_mb * 1_000_000)
