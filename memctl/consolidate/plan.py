"""What some batches have found out, and how it becomes rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from memctl.choices import CONTRADICTS
from memctl.consolidate.known import KnownInsight
from memctl.consolidate.synthesis import Draft
from memctl.ids import insight_id, relation_id
from memctl.records import Connection, Insight, Memory, Relation
from memctl.store.schema import memories_table, relations_table
from memctl.understand.passage import passage_for_embedding, passage_terms

if TYPE_CHECKING:
    from memctl.models.protocols import Embedder
    from memctl.store.names import TableName
    from memctl.store.store import Transaction

_MOST_TOPICS = 8


@dataclass
class Plan:
    """What one transaction is going to write."""

    examined: list[str] = field(default_factory=list)
    insights: dict[str, Memory] = field(default_factory=dict)
    superseded: dict[str, str] = field(default_factory=dict)
    """Ids of insights that end, and what takes their place."""
    connections: dict[str, Connection] = field(default_factory=dict)
    """By the id of the relation."""

    @property
    def touched(self) -> list[str]:
        """The memories that are marked, ended, or what an insight rests on."""
        sources = (source for insight in self.insights.values() for source in insight.source_ids)
        return sorted({*self.examined, *self.superseded, *sources})

    @property
    def written(self) -> Mapping[TableName, Sequence[str]]:
        """The rows that are changed or added."""
        memories = [*self.examined, *self.superseded, *self.insights]
        return {"memories": memories, "relations": list(self.connections)}

    def connect(self, connections: Iterable[Connection]) -> None:
        """Have these connections stored."""
        for item in connections:
            key = relation_id(item.source_id, item.relationship, item.target_id)
            self.connections[key] = item

    def supersede(self, old: str, new: str) -> None:
        """Let one insight take another's place; one that was never written just goes."""
        if self.insights.pop(old, None) is None:
            self.superseded[old] = new


def insight_memory(draft: Draft, sources: Sequence[Memory], version: int, now: datetime) -> Memory:
    """Return the row of an insight; ``sources`` are the memories that it rests on."""
    newest = max(memory.created_at for memory in sources)
    return Memory(
        id=insight_id(draft.kind, list(draft.source_ids)),
        document_id=None,
        level="insight",
        type="insight",
        text=draft.text,
        namespace=sources[0].namespace,
        created_at=newest,
        valid_from=now,
        search_text=" ".join(passage_terms(draft.title, "", draft.text)),
        title=draft.title,
        source_ids=draft.source_ids,
        entities=draft.entities,
        topics=_most_common(topic for memory in sources for topic in memory.topics),
        keywords=_most_common(word for memory in sources for word in memory.keywords),
        tags=tuple(sorted(set.intersection(*(set(memory.tags) for memory in sources)))),
        importance=draft.importance,
        confidence=draft.confidence,
        method=draft.method,
        is_consolidated=True,
        version=version,
        metadata=_metadata(draft),
    )


def _most_common(items: Iterable[str]) -> tuple[str, ...]:
    """What two sources say at least, in most first; what only one says is its own."""
    counts = Counter(items)
    shared = [item for item in counts if counts[item] > 1]
    return tuple(sorted(shared, key=lambda item: (-counts[item], item))[:_MOST_TOPICS])


def _metadata(draft: Draft) -> dict[str, object]:
    connections = [
        {
            "from": item.source_id,
            "to": item.target_id,
            "relationship": item.relationship,
            "weight": item.weight,
            **({"text": item.text} if item.text else {}),
        }
        for item in draft.connections
    ]
    return {
        "kind": draft.kind,
        "about": draft.about,
        "whole": draft.is_whole,
        "connections": connections,
    }


def insight_record(draft: Draft, memory: Memory) -> Insight:
    """Return the insight as reports show it."""
    return Insight(
        id=memory.id,
        text=memory.text,
        source_ids=memory.source_ids,
        entities=memory.entities,
        connections=draft.connections,
        importance=memory.importance,
        confidence=memory.confidence,
        kind=draft.kind,
    )


def known_insight(draft: Draft, memory: Memory) -> KnownInsight:
    """Return the insight as the run remembers it."""
    return KnownInsight(
        id=memory.id,
        kind=draft.kind,
        about=draft.about,
        text=memory.text,
        namespace=memory.namespace,
        source_ids=frozenset(memory.source_ids),
        version=memory.version,
        is_whole=draft.is_whole,
    )


# --- writing -------------------------------------------------------------------------------------


def write(transaction: Transaction, plan: Plan, embedder: Embedder, now: datetime) -> None:
    """Write a plan: insights, what they replace, connections, and the marks."""
    plan = _standing(transaction, plan)
    made = list(plan.insights.values())
    if made:
        texts = [passage_for_embedding(memory.title, "", memory.text) for memory in made]
        transaction.upsert("memories", memories_table(made, embedder.embed(texts)))
    end_insights(transaction, plan.superseded, now)
    if plan.connections:
        rows = [_relation(id_, item, now) for id_, item in _untold(transaction, plan)]
        transaction.upsert("relations", relations_table(rows))
    mark_consolidated(transaction, plan.examined, True)


def _standing(transaction: Transaction, plan: Plan) -> Plan:
    """The plan without what rests on a memory which somebody has deleted meanwhile.

    What else that was to rest on is not marked, so that the next run looks at it again.
    """
    sources = {id_ for memory in plan.insights.values() for id_ in memory.source_ids}
    ends = {id_ for item in plan.connections.values() for id_ in (item.source_id, item.target_id)}
    found = transaction.snapshot().get("memories", sorted(sources | ends), ["id"])
    gone = (sources | ends) - {*found["id"].to_pylist(), *plan.insights}
    if not gone:
        return plan
    lost = {id_: m for id_, m in plan.insights.items() if not gone.isdisjoint(m.source_ids)}
    again = {id_ for memory in lost.values() for id_ in memory.source_ids}
    return Plan(
        [id_ for id_ in plan.examined if id_ not in again],
        {id_: memory for id_, memory in plan.insights.items() if id_ not in lost},
        {old: new for old, new in plan.superseded.items() if new not in lost},
        {
            id_: item
            for id_, item in plan.connections.items()
            if gone.isdisjoint((item.source_id, item.target_id))
        },
    )


def _untold(transaction: Transaction, plan: Plan) -> list[tuple[str, Connection]]:
    """The connections without contradictions that were noted before, which have no direction."""
    twins = {
        id_: (id_, relation_id(item.target_id, item.relationship, item.source_id))
        for id_, item in plan.connections.items()
        if item.relationship == CONTRADICTS
    }
    ids = [twin for both in twins.values() for twin in both]
    told = set(transaction.snapshot().get("relations", ids, ["id"])["id"].to_pylist())
    return [
        (id_, item) for id_, item in plan.connections.items() if told.isdisjoint(twins.get(id_, ()))
    ]


def end_insights(
    transaction: Transaction, superseded: dict[str, str] | dict[str, None], now: datetime
) -> None:
    """Let insights end now; each names what takes its place, if anything does."""
    if superseded:
        rows = {
            "id": pa.array(superseded.keys(), pa.string()),
            "valid_to": pa.array([now] * len(superseded), pa.timestamp("us", tz="UTC")),
            "superseded_by": pa.array(superseded.values(), pa.string()),
        }
        transaction.update("memories", pa.table(rows))


def mark_consolidated(transaction: Transaction, ids: Sequence[str], done: bool) -> None:
    """Say of memories that they have been looked at, or that they are to be again."""
    if ids:
        rows = {"id": pa.array(ids, pa.string()), "is_consolidated": pa.array([done] * len(ids))}
        transaction.update("memories", pa.table(rows))


def _relation(id_: str, item: Connection, now: datetime) -> Relation:
    return Relation(
        id=id_,
        source_id=item.source_id,
        target_id=item.target_id,
        relation_type=item.relationship,
        text=item.text,
        weight=item.weight,
        confidence=min(1.0, item.weight),
        memory_ids=(item.source_id, item.target_id),
        valid_from=now,
    )
