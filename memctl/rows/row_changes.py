"""Rows are added, changed and removed: the one place that calls a transaction's own methods.

Nothing here looks at what refers to a row; ``row_lifecycle`` does.  But for the relations that
memories state: one holds as long as a memory that states it, whatever ends or revives that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memctl.rows.references import BETWEEN_ENTITIES, in_portions
from memctl.store.tables.filter_expressions import col

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.schema.table_names import TableName
    from memctl.store.tables.filter_expressions import Expr
    from memctl.store.tables.transaction import Transaction


def append_rows(transaction: Transaction, table: TableName, rows: pa.Table) -> None:
    """Add rows whose ids are new, for which the caller vouches."""
    transaction.append(table, rows)


def put_rows(transaction: Transaction, table: TableName, rows: pa.Table) -> None:
    """Add rows, in place of those that have the same ids."""
    transaction.upsert(table, rows)


def amend_rows(transaction: Transaction, table: TableName, rows: pa.Table) -> None:
    """Give existing rows other values in the columns that are given beside ``id``."""
    transaction.update(table, rows)
    if table == "memories" and "valid_to" in rows.column_names:
        _follow_memories(transaction, rows["id"].to_pylist())


def set_columns(
    transaction: Transaction, table: TableName, ids: Collection[str], **columns: Any
) -> None:
    """Give existing rows other values.

    Args:
        transaction: What to write with.
        table: Where they are.
        ids: Which rows.
        columns: For each column a value for all of the rows, or a list with one for each.
    """
    import pyarrow as pa

    if ids:
        values = {
            name: value if isinstance(value, list) else [value] * len(ids)
            for name, value in columns.items()
        }
        amend_rows(transaction, table, pa.table({"id": list(ids), **values}))


def mark_consolidated(transaction: Transaction, ids: Collection[str], *, done: bool) -> None:
    """Mark memories as consolidated, or as to be looked at again."""
    set_columns(transaction, "memories", ids, is_consolidated=done)


def delete_rows(transaction: Transaction, table: TableName, where: Expr) -> int:
    """Remove rows whatever refers to them, and return how many; see ``erase_rows``."""
    return transaction.delete(table, where)


def supersede_memories(
    transaction: Transaction, successors: Mapping[str, str] | Mapping[str, None], now: datetime
) -> None:
    """End memories now, each in favour of another one, or of none."""
    set_columns(
        transaction,
        "memories",
        successors.keys(),
        valid_to=now,
        superseded_by=list(successors.values()),
    )


def archive_memories(transaction: Transaction, ids: Collection[str], now: datetime) -> None:
    """Put memories away: they hold on, and queries leave them out."""
    set_columns(transaction, "memories", ids, archived_at=now)


def restore_memories(transaction: Transaction, ids: Collection[str], now: datetime) -> None:
    """Bring memories back that were put away; they count as used now."""
    import pyarrow as pa

    at = pa.scalar(now, pa.timestamp("us", "UTC"))
    set_columns(transaction, "memories", ids, archived_at=None, last_accessed_at=at)


def revive_memories(transaction: Transaction, ids: Collection[str]) -> None:
    """Make memories current again as if they had never ended; consolidation looks at them again."""
    set_columns(
        transaction, "memories", ids, valid_to=None, superseded_by=None, is_consolidated=False
    )


# --- relations that memories state ---------------------------------------------------------------


def _follow_memories(transaction: Transaction, ids: Sequence[str]) -> None:
    """Have the relations between entities that memories state hold as long as one of those."""
    snapshot = transaction.snapshot()
    for some in in_portions(sorted(ids)):
        where = BETWEEN_ENTITIES & col("memory_ids").has_any(some)
        rows = snapshot.scan("relations", where, ["id", "memory_ids", "valid_to"]).to_pylist()
        if not rows:
            continue
        named = sorted({id_ for row in rows for id_ in row["memory_ids"]})
        found = snapshot.get("memories", named, ["id", "valid_to"]).to_pylist()
        ends = {row["id"]: row["valid_to"] for row in found}
        last = {row["id"]: last_end([ends.get(id_) for id_ in row["memory_ids"]]) for row in rows}
        moved = [row["id"] for row in rows if last[row["id"]] != row["valid_to"]]
        set_columns(transaction, "relations", moved, valid_to=[last[id_] for id_ in moved])


def last_end(ends: Sequence[datetime | None]) -> datetime | None:
    """Return when the last of some memories ended; None while one holds."""
    known = [end for end in ends if end is not None]
    return max(known) if known and len(known) == len(ends) else None
