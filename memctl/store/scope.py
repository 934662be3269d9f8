"""What of each table is of the namespaces that are meant, in tables that know no namespace too."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from memctl.records import Filters
from memctl.store.filters import Expr, col, namespace_filter

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.store.names import TableName
    from memctl.store.snapshot import Snapshot

_NAMED_IN: Mapping[TableName, tuple[str, ...]] = {
    "documents": ("entities", "links"),
    "memories": ("entities",),
}


class Scope:
    """The namespaces that are meant.

    Args:
        filters: Of which only those on the namespace count.
    """

    def __init__(self, filters: Filters) -> None:
        self._within = namespace_filter(filters)

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return self._within is None

    def of(self, snapshot: Snapshot, table: TableName) -> Expr | None:
        """Return the condition on the rows of a table; None where there is none.

        An entity is meant if a row that is meant names it, a relation if nothing that it stands
        between or rests on is left out.
        """
        within = self._within
        if within is None or table in ("documents", "memories"):
            return within
        left_out = _unnamed(snapshot, within) if table == "entities" else _tied(snapshot, within)
        return ~col("id").is_in(sorted(left_out))

    def of_ledger(
        self, snapshot: Snapshot, tables: Mapping[str, pa.Table]
    ) -> Mapping[str, pa.Table]:
        """Return tables of the ledger, in which only a file's document tells its namespace.

        A file of no document, and what is noted of a file, may be of any, and are left out.
        """
        if self._within is None or not tables["files"].num_rows + tables["events"].num_rows:
            return tables
        import pyarrow as pa
        import pyarrow.compute as pc

        ids = snapshot.scan("documents", self._within, ["id"])["id"].to_pylist()
        meant = pa.array(ids, pa.string())
        files, events = tables["files"], tables["events"]
        is_of_file = pc.match_substring(events["subject"], os.sep)
        return {
            **tables,
            "files": files.filter(pc.is_in(files["document_id"], meant)),
            "events": events.filter(pc.invert(is_of_file)),
        }


def _unnamed(snapshot: Snapshot, within: Expr) -> Iterator[str]:
    """The entities that no row names for which a condition holds."""
    named = _names(snapshot, within)
    for row in _rows(snapshot, "entities", None, ("id", "name", "aliases")):
        if named.isdisjoint((row["name"], *(row["aliases"] or ()))):
            yield row["id"]


def _names(snapshot: Snapshot, within: Expr) -> set[str]:
    names: set[str] = set()
    for table, columns in _NAMED_IN.items():
        for row in _rows(snapshot, table, within, columns):
            names.update(name for column in columns for name in row[column] or ())
    return names


def _tied(snapshot: Snapshot, within: Expr) -> Iterator[str]:
    """The relations that have to do with a row for which a condition does not hold."""
    left_out = {
        row["id"]
        for table in ("documents", "memories")
        for row in _rows(snapshot, table, ~within, ("id",))
    }
    for row in _rows(snapshot, "relations", None, ("id", "source_id", "target_id", "memory_ids")):
        ends = (row["source_id"], row["target_id"], *(row["memory_ids"] or ()))
        if not left_out.isdisjoint(ends):
            yield row["id"]


def _rows(
    snapshot: Snapshot, table: TableName, where: Expr | None, columns: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    for batch in snapshot.batches(table, where, columns):
        yield from batch.to_pylist()
