"""The connections that consolidation found between memories, for whoever takes the graph along."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from memctl.graph.index import Index
from memctl.records import Connection
from memctl.store.filters import Expr, both, col

if TYPE_CHECKING:
    from memctl.store.snapshot import Snapshot

_LABEL = 80


@dataclass(frozen=True, slots=True)
class ConnectedMemory:
    """A memory that is connected with another one."""

    id: str
    label: str
    """How its text begins."""
    level: str
    nodes: tuple[int, ...]
    """The names in it, or in what it rests on, by number."""


@dataclass(frozen=True, slots=True)
class Connections:
    """Memories, and what connects them."""

    memories: tuple[ConnectedMemory, ...] = ()
    edges: tuple[Connection, ...] = ()


NO_CONNECTIONS = Connections()


def read_connections(snapshot: Snapshot, where: Expr | None, index: Index) -> Connections:
    """Return the connections between memories for which a condition holds.

    Args:
        snapshot: Whose.
        where: What has to hold of both.
        index: Their names.
    """
    columns = ["source_id", "target_id", "relation_type", "weight"]
    table = snapshot.scan("relations", ~(col("relation_type") == "links_to"), columns)
    edges = [Connection(*row) for row in zip(*(table[c].to_pylist() for c in columns), strict=True)]
    ids = {id_ for edge in edges for id_ in (edge.source_id, edge.target_id)}
    memories = _memories(snapshot, where, index, sorted(ids))
    known = {memory.id for memory in memories}
    return Connections(
        tuple(memories),
        tuple(edge for edge in edges if edge.source_id in known and edge.target_id in known),
    )


def _memories(
    snapshot: Snapshot, where: Expr | None, index: Index, ids: list[str]
) -> list[ConnectedMemory]:
    if not ids:
        return []
    wanted = both(where, col("id").is_in(ids))
    rows = snapshot.scan("memories", wanted, ["id", "text", "level", "source_ids"]).to_pylist()
    return [
        ConnectedMemory(
            row["id"],
            row["text"][:_LABEL],
            row["level"],
            _named(index, row["id"], row["source_ids"]),
        )
        for row in sorted(rows, key=lambda row: str(row["id"]))
    ]


def _named(index: Index, id_: str, source_ids: list[str] | None) -> tuple[int, ...]:
    places = (index.at[each] for each in (id_, *(source_ids or ())) if each in index.at)
    return tuple(dict.fromkeys(node for at in places for node in index.named[at]))
