"""What a job has changed by itself: found in its commit, and noted in the ledger with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from memctl.store.change_book import LOOKED_AT, RowChange, Value

if TYPE_CHECKING:
    from memctl.store.change_book import ChangeBook
    from memctl.store.names import TableName
    from memctl.store.snapshot import Snapshot
    from memctl.store.transaction import Transaction

Row = dict[str, Value]

TRACKED: Mapping[TableName, tuple[str, ...]] = {
    "memories": (LOOKED_AT, "valid_from", "valid_to", "superseded_by", "version"),
    "relations": ("valid_from", "valid_to", "weight", "confidence"),
}
"""The columns that jobs change in rows that are there; what a row says they leave as it is."""


def note_changes(
    transaction: Transaction,
    book: ChangeBook,
    job: int,
    before: Snapshot,
    after: Snapshot,
    written: Mapping[TableName, Sequence[str]],
) -> None:
    """Have it noted what a job has changed, in the very step that makes it HEAD.

    Args:
        transaction: What it has written with.
        book: Where to.
        job: Its number.
        before: The tables when the transaction began.
        after: The tables as it leaves them.
        written: The rows that it may have changed or added.
    """
    found = [
        change
        for table, ids in written.items()
        for change in _changed(table, tracked(before, table, ids), tracked(after, table, ids))
    ]
    if found:
        transaction.ledger(lambda _: book.add(job, found))


def tracked(snapshot: Snapshot, table: TableName, ids: Sequence[str]) -> dict[str, Row]:
    """Return the tracked columns of rows as the ledger keeps them, by id."""
    rows = snapshot.get(table, list(ids), ["id", *TRACKED[table]])
    for place, item in enumerate(rows.schema):
        if pa.types.is_timestamp(item.type) or pa.types.is_boolean(item.type):
            plain = rows.column(place).cast(pa.int64())
            rows = rows.set_column(place, item.name, plain)
    return {row.pop("id"): row for row in rows.to_pylist()}


def as_rows(table: TableName, rows: Mapping[str, Row], schema: pa.Schema) -> pa.Table:
    """Return what :func:`tracked` gave as rows to update a table with."""
    columns: dict[str, Any] = {"id": pa.array(rows, pa.string())}
    for name in TRACKED[table]:
        values = pa.array([row[name] for row in rows.values()])
        columns[name] = values.cast(schema.field(name).type)
    return pa.table(columns)


def _changed(
    table: TableName, before: Mapping[str, Row], after: Mapping[str, Row]
) -> list[RowChange]:
    found = []
    for id_, row in after.items():
        was = before.get(id_)
        if was is None:
            values = row if table == "memories" else {}  # of many connections, ids will do
            found.append(RowChange(table, id_, {}, values, is_added=True))
        elif was != row:
            names = [name for name, value in row.items() if was[name] != value]
            old, new = ({name: each[name] for name in names} for each in (was, row))
            found.append(RowChange(table, id_, old, new))
    return found
