"""The life of stored rows: they are superseded, retired, revived, replaced, erased.

What then becomes of the rows that refer to them follows from the references that the tables
declare.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from memctl.rows.references import (
    in_portions,
    names_in,
    orphan_entities,
    references_to,
    referring_rows,
)
from memctl.rows.row_changes import delete_rows, mark_consolidated, put_rows, set_columns
from memctl.rows.supersession import LIVE_STATUSES, reinstate_after, reinstate_without
from memctl.schema.arrow_tables import metadata_to_json
from memctl.schema.table_names import REFLECTED
from memctl.store.tables.filter_expressions import col

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.records import DocumentStatus
    from memctl.schema.declarations import Reference
    from memctl.schema.table_names import TableName
    from memctl.store.tables.snapshot import Snapshot
    from memctl.store.tables.transaction import Transaction

RowsToErase = dict["TableName", set[str]]
"""Ids of rows that are to be erased, by table."""


WITHOUT_MEMORIES = "without_memories"
"""In the metadata of a document that stays though all its memories were deleted by hand.

Reading it again gives it memories, and takes this out.
"""


# --- ending --------------------------------------------------------------------------------------


def supersede_documents(
    transaction: Transaction, successors: Mapping[str, str], now: datetime
) -> list[str]:
    """Make documents history, each in favour of a newer version.

    What had ended in favour of them is left; see ``reinstate_after``, which has to follow.

    Args:
        transaction: What to write with.
        successors: Root ids of the documents, each with the id of its newer version.
        now: From when on they are history.

    Returns:
        Their ids, those of their parts among them.
    """
    return _end_documents(transaction, successors, "superseded", now)


def retire_documents(transaction: Transaction, document_ids: Sequence[str], now: datetime) -> None:
    """Mark live documents as gone; what had ended in favour of what they say holds again."""
    found = transaction.snapshot().get("documents", document_ids, ["id", "status"]).to_pylist()
    live = [row["id"] for row in found if row["status"] in LIVE_STATUSES]
    if live:
        gone: dict[str, str | None] = dict.fromkeys(live)
        reinstate_after(transaction, _end_documents(transaction, gone, "gone", now), now, gone)


def _end_documents(
    transaction: Transaction,
    successors: Mapping[str, str] | Mapping[str, str | None],
    status: DocumentStatus,
    now: datetime,
) -> list[str]:
    """Give documents a status, and an end to the rows that are of them."""
    where = col("root_id").is_in(list(successors))
    found = transaction.snapshot().scan("documents", where, ["id", "root_id"]).to_pylist()
    ids = [row["id"] for row in found]
    newer = [successors[row["root_id"]] for row in found]
    set_columns(transaction, "documents", ids, status=status, superseded_by=newer)
    for table, reference in references_to("documents"):
        if reference.on_retire == "end":
            snapshot, holds = transaction.snapshot(), col("valid_to").is_null()
            rows = referring_rows(snapshot, table, reference, ids, holds)
            set_columns(transaction, table, [row["id"] for row in rows], valid_to=now)
    return ids


# --- erasing -------------------------------------------------------------------------------------


class RemovedRows(Struct, frozen=True):
    """What is gone."""

    ids: Mapping[TableName, Collection[str]] = field(default_factory=dict)
    """Of the rows that were to go and all that went with them, by table."""
    counts: Mapping[TableName, int] = field(default_factory=dict)
    orphans: Sequence[Mapping[str, Any]] = ()
    """Entities that nothing names any more: name, type and aliases of each."""


def dependent_rows(snapshot: Snapshot, table: TableName, ids: Iterable[str]) -> RowsToErase:
    """Return rows together with all that go when they are erased."""
    rows_to_erase: RowsToErase = {table: set(ids)}
    fresh: RowsToErase = {table: set(ids)}
    while fresh:
        found: RowsToErase = {}
        for target, some in fresh.items():
            for referring, reference in references_to(target):
                going = _dependents(snapshot, referring, reference, some, rows_to_erase)
                found.setdefault(referring, set()).update(going)
        fresh = {name: rows - rows_to_erase.get(name, set()) for name, rows in found.items()}
        fresh = {name: rows for name, rows in fresh.items() if rows}
        for name, rows in fresh.items():
            rows_to_erase.setdefault(name, set()).update(rows)
    return rows_to_erase


def erase_rows(
    transaction: Transaction,
    table: TableName,
    ids: Iterable[str],
    *,
    reconsider: bool = True,
    drop_orphans: bool = True,
) -> RemovedRows:
    """Remove rows, and what cannot be without them.

    Rows that stay lose what they say of those that go, memories that had ended in favour of one
    hold again, and entities that nothing names any more go too.

    Args:
        transaction: What to write with.
        table: Where they are.
        ids: Which rows; those that are not there any more count as going, too.
        reconsider: Whether consolidation is to look again at what insights rested on that go.
        drop_orphans: Whether to look for entities that nothing names any more.
    """
    ids, snapshot = set(ids), transaction.snapshot()
    if not ids:
        return RemovedRows()
    rows_to_erase = dependent_rows(snapshot, table, ids)
    names = _names_of(snapshot, rows_to_erase) if drop_orphans else set()
    if reconsider:
        mark_consolidated(transaction, _sources_of_insights(snapshot, rows_to_erase), done=False)
    for target in list(rows_to_erase):
        for referring, reference in references_to(target):
            _clear_reference(transaction, referring, reference, target, rows_to_erase)
    counts: dict[TableName, int] = {}
    for name, rows in rows_to_erase.items():
        for some in in_portions(sorted(rows)):
            number = delete_rows(transaction, name, col("id").is_in(some))
            counts[name] = counts.get(name, 0) + number
    orphans = drop_orphan_entities(transaction, names) if names else []
    return RemovedRows(rows_to_erase, counts, orphans)


def mark_without_memories(transaction: Transaction, documents: Iterable[str | None]) -> None:
    """Mark the documents that have no memory left, so that they do not count as damage.

    Args:
        transaction: What has deleted memories of theirs by hand.
        documents: Their ids; None for a memory that was of no document.
    """
    ids, snapshot = sorted({id_ for id_ in documents if id_ is not None}), transaction.snapshot()
    kept = snapshot.scan("memories", col("document_id").is_in(ids), ["document_id"])
    bare = sorted(set(ids).difference(kept["document_id"].to_pylist()))
    mark_documents(transaction, bare, WITHOUT_MEMORIES)


def mark_documents(transaction: Transaction, ids: Sequence[str], mark: str) -> None:
    """Set a mark in the metadata of documents."""
    rows = transaction.snapshot().get("documents", ids, ["id", "metadata"]).to_pylist()
    metadata = [with_mark(row["metadata"], mark) for row in rows]
    set_columns(transaction, "documents", [row["id"] for row in rows], metadata=metadata)


def with_mark(metadata: str | None, mark: str) -> str:
    """Return the metadata of a row with a mark, as its column has them."""
    return metadata_to_json({**json.loads(metadata or "{}"), mark: True})


def drop_orphan_entities(
    transaction: Transaction, names: Collection[str] | None = None
) -> list[Mapping[str, Any]]:
    """Erase entities that nothing names any more; return name, type and aliases of each.

    Args:
        transaction: What to write with, when all else has been written.
        names: Of what has changed: only entities with one of them are looked at; by default all.
    """
    orphans = {row["id"]: row for row in orphan_entities(transaction.snapshot(), names)}
    erase_rows(transaction, "entities", orphans, drop_orphans=False)
    return [*orphans.values()]


def replace_rows(
    transaction: Transaction, table: TableName, old: Collection[str], rows: pa.Table
) -> None:
    """Put rows in the place of others; of those, the ones that do not come back are erased."""
    again = set(rows["id"].to_pylist())
    erase_rows(transaction, table, set(old) - again)
    for some in in_portions(sorted(again.intersection(old))):
        delete_rows(transaction, table, col("id").is_in(some))
    put_rows(transaction, table, rows)


def erase_missing(transaction: Transaction, table: TableName, ids: Iterable[str]) -> RemovedRows:
    """Erase rows that were deleted to be rewritten, except those that were."""
    missing, snapshot = set(ids), transaction.snapshot()
    missing.difference_update(snapshot.get(table, sorted(missing), ["id"])["id"].to_pylist())
    return erase_rows(transaction, table, missing)


# --- inside --------------------------------------------------------------------------------------


def _dependents(
    snapshot: Snapshot,
    table: TableName,
    reference: Reference,
    ids: set[str],
    rows_to_erase: RowsToErase,
) -> set[str]:
    """Return the rows of a table that go with rows that they refer to."""
    match reference.on_erase:
        case "erase":
            rows = referring_rows(snapshot, table, reference, ids)
            return {row["id"] for row in rows}
        case "erase_if_insight":
            derived = (col("level") == "insight") | (col("method") == REFLECTED)
            rows = referring_rows(snapshot, table, reference, ids, derived)
            return {row["id"] for row in rows}
        case "erase_if_last":
            going = set[str]().union(*(rows_to_erase.get(target, ()) for target in reference.to))
            rows = referring_rows(snapshot, table, reference, ids)
            return {row["id"] for row in rows if going.issuperset(row[reference.column])}
    return set()


def _clear_reference(
    transaction: Transaction,
    table: TableName,
    reference: Reference,
    target: TableName,
    rows_to_erase: RowsToErase,
) -> None:
    """Have rows that stay refer to none of those that go."""
    gone, column = rows_to_erase[target], reference.column
    if reference.on_erase == "revive":
        reinstate_without(transaction, sorted(gone))
        return
    if reference.on_erase == "erase":
        return
    rows = {
        row["id"]: row[column]
        for row in referring_rows(transaction.snapshot(), table, reference, gone)
        if row["id"] not in rows_to_erase.get(table, ())
    }
    left = [
        [id_ for id_ in value if id_ not in gone] if reference.is_list else None
        for value in rows.values()
    ]
    set_columns(transaction, table, rows.keys(), **{column: left})


def _names_of(snapshot: Snapshot, rows_to_erase: RowsToErase) -> set[str]:
    """Return what the documents and memories that go name."""
    found: set[str] = set()
    nothing = col("id").is_in([])
    for some in in_portions(sorted(rows_to_erase.get("documents", ()))):
        found |= names_in(snapshot, col("id").is_in(some), nothing)
    for some in in_portions(sorted(rows_to_erase.get("memories", ()))):
        found |= names_in(snapshot, nothing, col("id").is_in(some))
    return found


def _sources_of_insights(snapshot: Snapshot, rows_to_erase: RowsToErase) -> list[str]:
    """Return what the insights that go rest on, as far as that stays."""
    memories, sources = rows_to_erase.get("memories", set()), set[str]()
    for some in in_portions(sorted(memories)):
        where = col("id").is_in(some) & (col("level") == "insight")
        for row in snapshot.scan("memories", where, ["source_ids"]).to_pylist():
            sources.update(row["source_ids"])
    return sorted(sources - memories)
