"""Questions to one or several knowledge bases: options, search context, service and query log."""

from memctl.queries.query_service import QueryService
from memctl.queries.search_context import QueryOptions, QueryTarget

__all__ = ["QueryOptions", "QueryService", "QueryTarget"]
