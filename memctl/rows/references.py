"""Which rows refer to which, as the tables declare it, and entities that nothing names any more."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memctl.schema.declarations import DECLARATIONS, Reference
from memctl.schema.table_names import TableName
from memctl.store.tables.filter_expressions import Expr, col

if TYPE_CHECKING:
    from memctl.store.tables.snapshot import Snapshot

MAX_IDS_A_CONDITION = 10_000
BETWEEN_ENTITIES = col("source_id").like_glob("e_*")
"""Of relations: those that memories state of two entities."""


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


def in_portions(items: Sequence[str], size: int = MAX_IDS_A_CONDITION) -> Iterator[list[str]]:
    """Yield ids or names, by default as many at once as one condition may have."""
    for at in range(0, len(items), size):
        yield list(items[at : at + size])


# --- entities that nothing names any more ---------------------------------------------------------

_COLUMNS = ("id", "name", "type", "aliases")

Row = Mapping[str, Any]


def names_in(snapshot: Snapshot, documents: Expr, memories: Expr) -> set[str]:
    """Return the names that some documents and memories have, and the pages they link to."""
    return {
        *_pages(snapshot, documents),
        *_entities(snapshot, "documents", documents),
        *_entities(snapshot, "memories", memories),
    }


def orphan_entities(snapshot: Snapshot, names: Collection[str] | None = None) -> Iterator[Row]:
    """Yield id, name, type and aliases of entities that no document and no memory names.

    Args:
        snapshot: The tables.
        names: Of what has changed: only entities with one of them are looked at; by default all.
    """
    if names is None:
        yield from _orphans_among(snapshot, None, set(_in_documents(snapshot, None)))
    for some in in_portions(sorted(names or ())):
        where = col("name").is_in(some) | col("aliases").has_any(some)
        rows = snapshot.scan("entities", where, _COLUMNS).to_pylist()
        yield from _orphans_among(snapshot, where, set(_in_documents(snapshot, _all_names(rows))))


def _orphans_among(snapshot: Snapshot, where: Expr | None, known: Collection[str]) -> Iterator[Row]:
    for batch in snapshot.batches("entities", where, _COLUMNS):
        bare = [row for row in batch.to_pylist() if _own(row).isdisjoint(known)]
        held = set(_in_memories(snapshot, _all_names(bare)))
        yield from (row for row in bare if _own(row).isdisjoint(held))


def _own(row: Row) -> set[str]:
    return {row["name"], *(row["aliases"] or ())}


def _all_names(rows: Iterable[Row]) -> list[str]:
    return sorted({name for row in rows for name in _own(row)})


def _in_documents(snapshot: Snapshot, names: Sequence[str] | None) -> Iterator[str]:
    """Yield the names that documents have, perhaps of some alone, and all pages they link to."""
    for where in _name_conditions(names):
        yield from _entities(snapshot, "documents", where)
    yield from _pages(snapshot, None)


def _in_memories(snapshot: Snapshot, names: Sequence[str]) -> Iterator[str]:
    for where in _name_conditions(names):
        yield from _entities(snapshot, "memories", where)


def _entities(snapshot: Snapshot, table: TableName, where: Expr | None) -> Iterator[str]:
    for batch in snapshot.batches(table, where, ["entities"]):
        yield from batch["entities"].flatten().unique().to_pylist()


def _name_conditions(names: Sequence[str] | None) -> Iterator[Expr | None]:
    if names is None:
        yield None
    for some in in_portions(names or ()):
        yield col("entities").has_any(some)


def _pages(snapshot: Snapshot, where: Expr | None) -> Iterator[str]:
    for batch in snapshot.batches("documents", where, ["links"]):
        yield from map(page_of, batch["links"].flatten().to_pylist())


def page_of(link: str) -> str:
    """Return the page that a link names, without its section and its label."""
    return link.partition("|")[0].partition("#")[0].strip()
