"""Accesses from the ledger's log are written into the rows of the memories, in batches.

A query only adds to the log; upkeep calls this, so that no query ever writes a table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memctl.rows.row_changes import set_columns

if TYPE_CHECKING:
    from memctl.store.store import Store


def fold_accesses(store: Store) -> int:
    """Add logged accesses to ``access_count`` and ``last_accessed_at``; waits for no writer.

    Returns:
        How many memories were changed.

    Raises:
        LockedError: Another process is writing.
    """
    if not store.ledger.accesses.pending():
        return 0
    with store.write(0) as transaction:
        pending = {access.memory_id: access for access in store.ledger.accesses.pending()}
        columns = ["id", "access_count", "last_accessed_at"]
        found = transaction.snapshot().get("memories", list(pending), columns).to_pylist()
        rows = [(row, pending[row["id"]]) for row in found]
        set_columns(
            transaction,
            "memories",
            [row["id"] for row, _ in rows],
            access_count=[row["access_count"] + access.count for row, access in rows],
            last_accessed_at=[
                max(row["last_accessed_at"] or access.last_at, access.last_at)
                for row, access in rows
            ],
        )
        transaction.ledger(lambda _: store.ledger.accesses.clear(pending.values()))
    return len(rows)
