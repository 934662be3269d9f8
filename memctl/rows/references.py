"""Which rows refer to which, as the tables declare it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from memctl.schema.declarations import DECLARATIONS, Reference
from memctl.schema.table_names import TableName
from memctl.store.tables.filter_expressions import Expr, col

if TYPE_CHECKING:
    from memctl.store.tables.snapshot import Snapshot

MAX_IDS_A_CONDITION = 10_000


def references_to(target: TableName) -> Iterator[tuple[TableName, Reference]]:
    """Yield the columns that refer to rows of a table, each with the table that it is of."""
    for table, declaration in DECLARATIONS.items():
        for reference in declaration.references_to(target):
            yield table, reference


def referring_rows(
    snapshot: Snapshot,
    table: TableName,
    reference: Reference,
    ids: Collection[str],
    where: Expr | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield id and column of the rows that refer to some ids; one may come several times.

    Args:
        snapshot: The tables.
        table: Where the column is.
        reference: The column.
        ids: What it refers to.
        where: Only rows for which this holds.
    """
    column = col(reference.column)
    for some in in_portions(sorted(ids)):
        named = column.has_any(some) if reference.is_list else column.is_in(some)
        condition = named if where is None else named & where
        yield from snapshot.scan(table, condition, ["id", reference.column]).to_pylist()


def in_portions(items: Sequence[str]) -> Iterator[list[str]]:
    """Yield ids or names, as many at once as one condition may have."""
    for at in range(0, len(items), MAX_IDS_A_CONDITION):
        yield list(items[at : at + MAX_IDS_A_CONDITION])
