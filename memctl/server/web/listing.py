"""Rows of several knowledge bases as one list with pages, and the filters that lists share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from memctl.operations.finding import opened
from memctl.operations.operation_context import OperationContext, Unavailable
from memctl.plain_values import plain_rows
from memctl.records import LEVELS, Filters
from memctl.server.web.pages import PAGE_ROWS, PageRequest

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.knowledge_base import KnowledgeBase

Fetch = Callable[["KnowledgeBase", int, int], "pa.Table"]
"""Returns rows of a knowledge base: at most how many, after how many."""
Row = dict[str, Any]
FILTER_FIELDS = ("level", "type", "tag", "namespace", "session", "since", "until", "as_of",
                 "source", "doc_type", "importance")  # fmt: skip


class RowList(Struct, frozen=True):
    """One page of a list."""

    rows: tuple[Row, ...]
    total: int | None
    """How many there are; None where that is not counted."""
    offset: int
    next_offset: int | None
    """Where the next page begins; None for the last one."""

    @property
    def previous_offset(self) -> int:
        """Where the page before begins."""
        return max(0, self.offset - PAGE_ROWS)


def bases_of(context: OperationContext) -> list[KnowledgeBase]:
    """Return the knowledge bases that are read; none where there is none yet."""
    try:
        return list(opened(context))
    except Unavailable:
        return []


def collect_rows(
    context: OperationContext,
    fetch: Fetch,
    key: Callable[[Row], Any],
    offset: int,
    *,
    count: Callable[[KnowledgeBase], int] | None = None,
    limit: int = PAGE_ROWS,
) -> RowList:
    """Return a page of the rows of all knowledge bases that are read, each with its ``kb``.

    Args:
        context: For whom.
        fetch: Returns sorted rows of one of them.
        key: What rows of several are sorted by, the greatest first.
        offset: How many to skip.
        count: Returns how many rows one has.
        limit: At most this many.
    """
    bases = bases_of(context)
    rows: list[Row] = []
    for base in bases:
        skipped, wanted = (offset, limit + 1) if len(bases) == 1 else (0, offset + limit + 1)
        rows += [{"kb": base.name, **row} for row in plain_rows(fetch(base, wanted, skipped))]
    if len(bases) > 1:
        rows.sort(key=key, reverse=True)
        rows = rows[offset:]
    return RowList(
        tuple(rows[:limit]),
        None if count is None else sum(map(count, bases)),
        offset,
        offset + limit if len(rows) > limit else None,
    )


def filters_of(context: OperationContext, parameters: PageRequest) -> Filters:
    """Return the filters that the fields of a form stand for.

    Raises:
        UsageError: One of them cannot be read, or names another user's namespace.
    """
    base = context.filters(
        namespace=parameters.text("namespace") or None,
        tags=parameters.texts("tag"),
        types=parameters.texts("type"),
        since=parameters.text("since") or None,
        until=parameters.text("until") or None,
    )
    level = parameters.text("level")
    return replace(
        base,
        levels=(level,) if level in LEVELS else (),
        as_of=parameters.instant("as_of"),
        session=parameters.text("session") or None,
        source=parameters.text("source") or None,
        doc_types=parameters.texts("doc_type"),
        least_importance=parameters.share("importance"),
    )


def filter_fields(parameters: PageRequest) -> Mapping[str, str]:
    """Return the fields of a list's form as they were filled in."""
    return {name: parameters.text(name) for name in FILTER_FIELDS}
