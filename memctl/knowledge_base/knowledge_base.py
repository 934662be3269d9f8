"""``KnowledgeBase``: the one object that every surface talks to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Unpack

from memctl.knowledge_base.content import ContentEditing, DocumentIngestion
from memctl.knowledge_base.maintenance import Maintenance, Transfer
from memctl.queries import KnowledgeBases, QueryOptions
from memctl.records import Context, Filters, QueryResult, Question

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.literals import Mode, Verdict


class KnowledgeBase(DocumentIngestion, ContentEditing, Maintenance, Transfer):
    """A knowledge base that is open; close it, or use it in a ``with`` statement."""

    def query(self, question: str, **options: Unpack[QueryOptions]) -> QueryResult:
        """Ask one question; see ``KnowledgeBases.query``."""
        return self._alone.query(question, **options)

    def query_many(
        self, questions: Iterable[Question | str], **options: Unpack[QueryOptions]
    ) -> Iterator[QueryResult]:
        """Ask many questions; see ``KnowledgeBases.query_many``."""
        return self._alone.query_many(questions, **options)

    def context(
        self,
        question: str,
        *,
        budget: int = 2000,
        mode: Mode | None = None,
        filters: Filters | None = None,
        auto: bool = False,
    ) -> Context:
        """Return evidence on a question within a token budget; see ``KnowledgeBases.context``."""
        return self._alone.context(question, budget=budget, mode=mode, filters=filters, auto=auto)

    def feedback(self, query_id: str, verdict: Verdict) -> str:
        """Note how good what a question gave was; see ``KnowledgeBases.feedback``."""
        return self._alone.feedback(query_id, verdict)

    def sql(self, statement: str, namespaces: Sequence[str] = ()) -> pa.RecordBatchReader:
        """Run one SELECT or EXPLAIN; see ``KnowledgeBases.sql``."""
        return self._alone.sql(statement, namespaces)

    @property
    def _alone(self) -> KnowledgeBases:
        """It, to be asked as several are."""
        return KnowledgeBases([self], latest=self._latest)
