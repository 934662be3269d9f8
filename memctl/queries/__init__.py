"""Several knowledge bases asked at once: questions, context and SQL over all of them."""

from memctl.queries.knowledge_bases import KnowledgeBases
from memctl.queries.search_context import QueryOptions

__all__ = ["KnowledgeBases", "QueryOptions"]
