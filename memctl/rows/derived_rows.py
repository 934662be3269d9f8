"""Entities, links and access counts, written into the tables: they can be rebuilt or done without.

What they are ``graph.derivation`` finds out.  A new entity is written together with the documents
that name it.  The counts of one that is already there are written too; in bulk only now and then,
because looking up and rewriting rows in every commit costs more the more entities there are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from memctl.rows.references import BETWEEN_ENTITIES, in_portions
from memctl.rows.row_changes import amend_rows, append_rows, delete_rows, set_columns
from memctl.store.tables.filter_expressions import EVERYTHING, col

if TYPE_CHECKING:
    from memctl.records import Entity, Relation
    from memctl.schema.table_names import TableName
    from memctl.store.store import Store
    from memctl.store.tables.transaction import Transaction

T = TypeVar("T")

COMMITS_COUNTED_AT_ONCE = 4
"""The first commits of a run write all counts; later ones leave them to one in many."""
COMMITS_A_COUNT, A_SHARE_OF_COMMITS = 32, 4
"""From one to the next there are 32 commits, or a quarter of those before it if that is more: the
more entities there are, the more it costs, so that all together cost as much as a few of the last.
"""
MAX_KNOWN_IDS = 2_000_000
"""More ids of entities than these, some 200 MB, are not held; they are looked up instead."""


def add_up(counted: dict[str, Entity], mentions: Iterable[Entity]) -> None:
    """Add entities to those that have been counted; another spelling becomes an alias."""
    for entity in mentions:
        known = counted.get(entity.id)
        counted[entity.id] = _add_mention(known, entity) if known else entity


def _add_mention(known: Entity, more: Entity) -> Entity:
    aliases = dict.fromkeys((*known.aliases, *more.aliases, more.name))
    aliases.pop(known.name, None)
    return replace(
        known,
        aliases=tuple(aliases),
        mention_count=known.mention_count + more.mention_count,
        first_seen=min(known.first_seen, more.first_seen),
        last_seen=max(known.last_seen, more.last_seen),
    )


def add_missing(
    transaction: Transaction, entities: Mapping[str, Entity], relations: Mapping[str, Relation]
) -> int:
    """Add missing entities and relations; existing ones stay as they are.

    Returns:
        How many were added.
    """
    from memctl.schema.arrow_tables import entities_table, relations_table

    entities = _without(entities, _stored_ids(transaction, "entities", entities))
    relations = _without(relations, _stored_ids(transaction, "relations", relations))
    append_rows(transaction, "entities", entities_table(list(entities.values())))
    append_rows(transaction, "relations", relations_table(list(relations.values())))
    return len(entities) + len(relations)


def replace_entities(
    transaction: Transaction, entities: Mapping[str, Entity], relations: Mapping[str, Relation]
) -> None:
    """Put entities in the place of all that there are, and add relations that are lost.

    Relations that consolidation found cannot be derived from documents: they stay.  Those of
    entities that are gone go: another type gives a name another id.
    """
    delete_rows(transaction, "entities", EVERYTHING)
    columns = ["id", "source_id", "target_id"]
    stated = transaction.snapshot().scan("relations", BETWEEN_ENTITIES, columns).to_pylist()
    loose = [
        row["id"]
        for row in stated
        for end in (row["source_id"], row["target_id"])
        if end.startswith("e_") and end not in entities
    ]
    for some in in_portions(loose):
        delete_rows(transaction, "relations", col("id").is_in(some))
    add_missing(transaction, entities, relations)


class EntityCounts:
    """The counts of entities that a run of many commits adds to.

    What is staged by :meth:`write` counts only after :meth:`committed`.  A run that is killed loses
    the counts of the last few commits; the entities themselves are there.
    """

    def __init__(self) -> None:
        self._commits = 0
        self._due = COMMITS_A_COUNT
        """The commit that is to write the counts that wait."""
        self._known: set[str] | None = None
        """Ids of all entities, once they are worth holding."""
        self._version = 0
        """Of the entities when this run had last written them."""
        self._waiting: dict[str, Entity] = {}
        """Counts of entities that are there already, still to be written."""
        self._staged: tuple[set[str], dict[str, Entity]] = set(), {}
        """What the transaction in progress adds, and what waits when it is done."""

    def note_upkeep(self, before: int, after: int) -> None:
        """Record that upkeep has brought the entities from one version to another."""
        if before == self._version:
            self._version = after

    @property
    def is_waiting(self) -> bool:
        """Whether some counts are still to be written."""
        return bool(self._waiting)

    def write(self, transaction: Transaction, entities: Mapping[str, Entity]) -> None:
        """Add entities that are new, and count those that are not, now or in a later commit."""
        from memctl.schema.arrow_tables import entities_table

        old = self._existing_ids(transaction, entities)
        new = _without(entities, old)
        append_rows(transaction, "entities", entities_table(list(new.values())))
        waiting = dict(self._waiting)
        add_up(waiting, (entities[id_] for id_ in entities if id_ in old))
        is_due = self._commits < COMMITS_COUNTED_AT_ONCE or self._commits >= self._due
        if waiting and is_due:
            _count_up(transaction, waiting)
            waiting = {}
            self._due = self._commits + max(COMMITS_A_COUNT, self._commits // A_SHARE_OF_COMMITS)
        self._staged = set(new), waiting

    def write_waiting(self, transaction: Transaction) -> None:
        """Write all counts that wait."""
        _count_up(transaction, self._waiting)
        self._staged = set(), {}

    def note_committed(self, transaction: Transaction) -> None:
        """Record that what the transaction has written is there."""
        new, self._waiting = self._staged
        if self._known is not None:
            self._known |= new
        self._staged = set(), self._waiting
        self._version = transaction.versions["entities"]
        self._commits += 1

    def _existing_ids(self, transaction: Transaction, entities: Mapping[str, Entity]) -> set[str]:
        """Return those of some entities that are there."""
        if self._commits and transaction.versions["entities"] != self._version:
            self._known = None  # another process has written
        if self._known is None and self._commits >= COMMITS_COUNTED_AT_ONCE:
            snapshot = transaction.snapshot()
            if snapshot.count("entities") <= MAX_KNOWN_IDS:
                batches = snapshot.batches("entities", None, ["id"])
                self._known = {id_ for batch in batches for id_ in batch["id"].to_pylist()}
        if self._known is None:
            return _stored_ids(transaction, "entities", entities)
        return self._known.intersection(entities)


def _count_up(transaction: Transaction, more: Mapping[str, Entity]) -> None:
    """Add counts to entities; those deleted meanwhile stay deleted."""
    from memctl.schema.arrow_tables import entities_table, entity_rows

    stored = entity_rows(transaction.snapshot().get("entities", list(more)))
    amend_rows(
        transaction, "entities", entities_table([_add_mention(e, more[e.id]) for e in stored])
    )


def _stored_ids(transaction: Transaction, table: TableName, ids: Collection[str]) -> set[str]:
    return set(transaction.snapshot().get(table, list(ids), ["id"])["id"].to_pylist())


def _without(rows: Mapping[str, T], known: Collection[str]) -> dict[str, T]:
    return {id_: row for id_, row in rows.items() if id_ not in known}


# --- access counts --------------------------------------------------------------------------------


BOOST = 0.1
"""The share of what its importance lacks to 1 that a memory gains on a day when it is shown."""


def _boost(importance: float, last: datetime | None, now: datetime) -> float:
    """Return the importance of a memory that is shown, raised at most once a day (UTC)."""
    if last is not None and last.date() >= now.date():
        return importance
    return importance + BOOST * (1 - importance)


def fold_accesses(store: Store, *, boosts: bool = False) -> int:
    """Add logged accesses to ``access_count`` and ``last_accessed_at``; waits for no writer.

    Args:
        store: Where they are logged.
        boosts: Whether memories gain importance by being shown.

    Returns:
        How many memories were changed.

    Raises:
        LockedError: Another process is writing.
    """
    if not store.ledger.accesses.pending():
        return 0
    with store.write(0) as transaction:
        pending = {access.memory_id: access for access in store.ledger.accesses.pending()}
        columns = ["id", "access_count", "last_accessed_at", "importance"]
        found = transaction.snapshot().get("memories", list(pending), columns).to_pylist()
        rows = [(row, pending[row["id"]]) for row in found]
        gains = {
            "importance": [
                _boost(row["importance"], row["last_accessed_at"], access.last_at)
                for row, access in rows
            ]
        }
        set_columns(
            transaction,
            "memories",
            [row["id"] for row, _ in rows],
            access_count=[row["access_count"] + access.count for row, access in rows],
            last_accessed_at=[
                max(row["last_accessed_at"] or access.last_at, access.last_at)
                for row, access in rows
            ],
            **(gains if boosts else {}),
        )
        transaction.ledger(lambda _: store.ledger.accesses.clear(pending.values()))
    return len(rows)
