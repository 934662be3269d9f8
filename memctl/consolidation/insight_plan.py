"""What some batches have found out, and how it becomes rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, get_args

from msgspec import Struct, field

from memctl.consolidation.insight_drafts import Draft, Group, Tie, says_the_same
from memctl.consolidation.known_insights import KnownInsight, KnownInsights
from memctl.consolidation.memory_grouping import (
    Link,
    Links,
    Thresholds,
    groups,
    links_within,
    neighbourhood,
)
from memctl.consolidation.memory_pool import Pool
from memctl.ids import insight_id, relation_id
from memctl.language.sentence_values import ValueKind
from memctl.language.term_analysis import embedding_text, passage_terms
from memctl.literals import CONTRADICTS
from memctl.records import Connection, Insight, Memory, Relation
from memctl.rows.row_changes import mark_consolidated, put_rows, supersede_memories
from memctl.schema.arrow_tables import memories_table, memory_rows, relations_table
from memctl.schema.document_types import memory_kind

if TYPE_CHECKING:
    from memctl.consolidation.model_insights import InsightWriter
    from memctl.models.protocols import Embedder
    from memctl.schema.table_names import TableName
    from memctl.store.store import Snapshot, Transaction

_MOST_TOPICS = 8


class InsightPlan(Struct):
    """What one transaction is going to write."""

    examined: list[str] = field(default_factory=list)
    insights: dict[str, Memory] = field(default_factory=dict)
    superseded: dict[str, str] = field(default_factory=dict)
    """Ids of insights that end, and what takes their place."""
    connections: dict[str, Connection] = field(default_factory=dict)
    """By the id of the relation."""

    @property
    def touched_ids(self) -> list[str]:
        """The memories that are marked, ended, or what an insight rests on."""
        sources = (source for insight in self.insights.values() for source in insight.source_ids)
        return sorted({*self.examined, *self.superseded, *sources})

    @property
    def written_ids(self) -> Mapping[TableName, Sequence[str]]:
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


def _draft_id(draft: Draft) -> str:
    kind = draft.kind if draft.is_whole else f"{draft.kind} {draft.about}"
    return insight_id(kind, list(draft.source_ids))


def insight_memory(draft: Draft, version: int, now: datetime) -> Memory:
    """Return the row of an insight."""
    sources = draft.sources
    newest = max(memory.created_at for memory in sources)
    return Memory(
        id=_draft_id(draft),
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
        source_type="system",
        kind=memory_kind("insight"),
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


def write_plan(
    transaction: Transaction, plan: InsightPlan, embedder: Embedder, now: datetime
) -> None:
    """Write a plan: insights, what they replace, connections, and the marks."""
    plan = _without_lost_sources(transaction, plan)
    made = list(plan.insights.values())
    if made:
        texts = [embedding_text(memory.title, "", memory.text) for memory in made]
        put_rows(transaction, "memories", memories_table(made, embedder.embed(texts)))
    supersede_memories(transaction, plan.superseded, now)
    if plan.connections:
        rows = [_relation(id_, item, now) for id_, item in _new_connections(transaction, plan)]
        put_rows(transaction, "relations", relations_table(rows))
    mark_consolidated(transaction, plan.examined, done=True)


def _without_lost_sources(transaction: Transaction, plan: InsightPlan) -> InsightPlan:
    """Return the plan without what rests on a memory that was deleted meanwhile.

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
    return InsightPlan(
        [id_ for id_ in plan.examined if id_ not in again],
        {id_: memory for id_, memory in plan.insights.items() if id_ not in lost},
        {old: new for old, new in plan.superseded.items() if new not in lost},
        {
            id_: item
            for id_, item in plan.connections.items()
            if gone.isdisjoint((item.source_id, item.target_id))
        },
    )


def _new_connections(transaction: Transaction, plan: InsightPlan) -> list[tuple[str, Connection]]:
    """The connections without contradictions that were noted before, which have no direction."""
    twins = {
        id_: (id_, relation_id(item.target_id, item.relationship, item.source_id))
        for id_, item in plan.connections.items()
        if item.relationship == CONTRADICTS
    }
    ids = [twin for both in twins.values() for twin in both]
    stored = set(transaction.snapshot().get("relations", ids, ["id"])["id"].to_pylist())
    return [
        (id_, item)
        for id_, item in plan.connections.items()
        if stored.isdisjoint(twins.get(id_, ()))
    ]


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


_COLUMNS = (
    "id", "document_id", "level", "type", "text", "namespace", "created_at", "valid_from", "title",
    "source", "external_id", "heading", "speaker", "session_id", "entities", "topics", "keywords",
    "tags", "importance",
)  # fmt: skip


_KINDS_OF_VALUE_FINDINGS = {"change", "contradiction"}


class InsightPlanner:
    """Plans batches one after another and remembers what the earlier ones found."""

    def __init__(
        self,
        snapshot: Snapshot,
        pool: Pool,
        known: KnownInsights,
        thresholds: Thresholds,
        now: datetime,
        writer: InsightWriter | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._pool = pool
        self._known_insights = known
        self._thresholds = thresholds
        self._now = now
        self._writer = writer
        self._links = Links(pool, thresholds)
        self._waiting = set(pool.fresh)
        self.insights: dict[str, Insight] = {}
        self.duplicates: set[tuple[str, str]] = set()
        self.groups = 0
        """What an insight was drawn from."""

    def add_batch(self, plan: InsightPlan, batch: Sequence[int]) -> None:
        """Look at some rows of the pool and add to a plan what there is to write."""
        seeds = [row for row in batch if row in self._waiting]
        if not seeds:
            return
        self._add_duplicates(plan, seeds)
        if self._writer is not None:
            self._add_groups(plan, seeds, self._writer)
        self._mark_examined(plan, seeds)

    def add_drafts(
        self, plan: InsightPlan, drafts: Sequence[Draft], removed: Collection[str]
    ) -> None:
        """Add insights that were found without a model, unless a model has found them.

        Those of the ids ``removed`` were taken back or deleted: they are only added again if this
        run looks at one of their documents.
        """
        fresh = self._fresh_documents() if any(_draft_id(d) in removed for d in drafts) else set()
        for draft in drafts:
            documents = {memory.document_id or memory.id for memory in draft.sources}
            if _draft_id(draft) in removed and documents.isdisjoint(fresh):
                continue
            about = self._known_insights.resting_on(draft.source_ids)
            if not any(k.is_whole and k.source_ids >= set(draft.source_ids) for k in about):
                self.groups += 1
                self._add_insight(plan, draft)

    def _fresh_documents(self) -> set[str]:
        """Return the documents that this run looks at, and the memories that have none."""
        ids = [self._pool.ids[row] for row in self._pool.fresh]
        rows = self._snapshot.get("memories", ids, ["id", "document_id"]).to_pylist()
        return {row["document_id"] or row["id"] for row in rows}

    def _add_duplicates(self, plan: InsightPlan, seeds: Sequence[int]) -> None:
        links = {
            link: None
            for seed in seeds
            for link in self._links.of(seed)[: self._thresholds.neighbours]
        }
        memories = self._read_memories({row for link in links for row in (link.first, link.second)})
        for link in links:
            first, second = memories[link.first], memories[link.second]
            least = self._thresholds.near_duplicate
            if says_the_same(first.text, second.text, link.cosine, least):
                weight = round(min(link.cosine, 1.0), 3)
                plan.connect([Connection(first.id, second.id, "near_duplicate", weight, "")])
                self.duplicates.add((first.id, second.id))

    def _add_groups(self, plan: InsightPlan, seeds: Sequence[int], writer: InsightWriter) -> None:
        around = neighbourhood(self._links, seeds)
        found = [
            self._with_known(rows)
            for rows in groups(around, self._thresholds)
            if not set(seeds).isdisjoint(rows)
        ]
        memories = self._read_memories({row for rows in found for row in rows})
        for rows in found:
            if not self._waiting.isdisjoint(rows):
                group = self._group(rows, memories)
                drafts = writer.tell(group, group.connections(self._thresholds.near_duplicate))
                if drafts is None:  # it is looked at again in the next run
                    self._waiting.difference_update(rows)
                    continue
                for draft in drafts:
                    self.groups += 1
                    self._add_insight(plan, draft)
                self._mark_examined(plan, rows)

    def _read_memories(self, rows: set[int]) -> dict[int, Memory]:
        ids = [self._pool.ids[row] for row in sorted(rows)]
        memories = memory_rows(self._snapshot.get("memories", ids, _COLUMNS)) if ids else []
        return {self._pool.row_of[memory.id]: memory for memory in memories}

    def _mark_examined(self, plan: InsightPlan, rows: Iterable[int]) -> None:
        for row in sorted(self._waiting.intersection(rows)):
            self._waiting.discard(row)
            plan.examined.append(self._pool.ids[row])

    def _with_known(self, rows: Sequence[int]) -> list[int]:
        """Add what the insights rest on that are about this group already, newest first."""
        ids = {self._pool.ids[row] for row in rows}
        more: set[int] = set()
        for known in self._known_insights.resting_on(ids):
            common = len(known.source_ids & ids)
            if known.is_whole and 2 * common >= min(len(ids), len(known.source_ids)):
                row_of = self._pool.row_of
                more.update(row_of[id_] for id_ in known.source_ids if id_ in row_of)
        room = self._thresholds.group_size - len(rows)
        added = sorted(more.difference(rows), reverse=True)[: max(room, 0)]
        return sorted([*rows, *added])

    def _group(self, rows: Sequence[int], memories: Mapping[int, Memory]) -> Group:
        place = {row: number for number, row in enumerate(rows)}
        return Group(
            members=tuple(memories[row] for row in rows),
            ties=tuple(_tie(link, place) for link in links_within(self._links, place)),
        )

    def _add_insight(self, plan: InsightPlan, draft: Draft) -> None:
        before = self._restated_insights(draft)
        if any(known.source_ids >= set(draft.source_ids) for known in before):
            return
        namespace = draft.sources[0].namespace
        alike = self._known_insights.about(namespace, draft.family, draft.about)
        if any(known.text == draft.text for known in alike):
            return
        version = 1 + max((known.version for known in before), default=0)
        memory = insight_memory(draft, version, self._now)
        for known in before:
            self._replace(plan, known, memory)
        plan.insights[memory.id] = memory
        plan.connect(draft.connections)
        self.insights[memory.id] = insight_record(draft, memory)
        self._known_insights.add(known_insight(draft, memory))

    def _replace(self, plan: InsightPlan, known: KnownInsight, by: Memory) -> None:
        plan.supersede(known.id, by.id)
        self._known_insights.remove(known.id)
        self.insights.pop(known.id, None)

    def _restated_insights(self, draft: Draft) -> list[KnownInsight]:
        """Return the valid insights that this one says again or brings up to date."""
        sources = set(draft.source_ids)
        return [
            known for known in self._known_insights.resting_on(sources) if _same_thing(known, draft)
        ]


def _same_thing(known: KnownInsight, draft: Draft) -> bool:
    common = known.source_ids.intersection(draft.source_ids)
    if known.is_whole != draft.is_whole:
        return False
    if draft.is_whole:
        return 2 * len(common) >= min(len(known.source_ids), len(draft.source_ids))
    before, after = set(known.about.split()), set(draft.about.split())
    is_one_kind = known.kind == draft.kind or {known.kind, draft.kind} == _KINDS_OF_VALUE_FINDINGS
    if not is_one_kind or (before != after and before & after <= set(get_args(ValueKind))):
        return False
    return 2 * len(before & after) >= min(len(before), len(after)) > 0


def _tie(link: Link, place: dict[int, int]) -> Tie:
    first, second = place[link.first], place[link.second]
    return Tie(first, second, link.weight, link.cosine, link.names > 0)
