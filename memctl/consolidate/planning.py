"""From a batch of memories to what is to be written about it; reads, and writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from memctl.consolidate.grouping import Link, Links, Thresholds, groups, neighbourhood
from memctl.consolidate.known import KnownInsight, KnownInsights
from memctl.consolidate.plan import Plan, insight_memory, insight_record, known_insight
from memctl.consolidate.pool import Pool
from memctl.consolidate.synthesis import Draft, Group, Pair, Synthesis, Synthesizer
from memctl.records import Insight, Memory
from memctl.store.schema import memory_rows
from memctl.understand.terms import terms

if TYPE_CHECKING:
    from memctl.consolidate.model_insights import InsightWriter
    from memctl.store.store import Snapshot

_COLUMNS = (
    "id", "document_id", "level", "type", "text", "namespace", "created_at", "valid_from", "title",
    "source", "external_id", "heading", "speaker", "session_id", "entities", "topics", "keywords",
    "tags", "importance",
)  # fmt: skip
_WIDEST = 3
"""An insight on one thing rests on this many times the size of a group at most."""


class Planner:
    """Plans batches one after another and remembers what the earlier ones found."""

    def __init__(
        self,
        snapshot: Snapshot,
        pool: Pool,
        known: KnownInsights,
        thresholds: Thresholds,
        synthesizer: Synthesizer,
        now: datetime,
        writer: InsightWriter | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._pool = pool
        self._known = known
        self._thresholds = thresholds
        self._synthesizer = synthesizer
        self._now = now
        self._writer = writer
        self._links = Links(pool, thresholds)
        self._waiting = set(pool.fresh)
        self.insights: dict[str, Insight] = {}
        self.duplicates: set[tuple[str, str]] = set()
        self.groups = 0

    def add_batch(self, plan: Plan, batch: Sequence[int]) -> None:
        """Look at some rows of the pool and add to a plan what there is to write."""
        seeds = [row for row in batch if row in self._waiting]
        if not seeds:
            return
        around = neighbourhood(self._links, seeds)
        found = [
            self._with_known(rows)
            for rows in groups(around, self._thresholds)
            if not set(seeds).isdisjoint(rows)
        ]
        memories = self._read({row for rows in found for row in rows})
        for rows in found:
            if not self._waiting.isdisjoint(rows):
                if self._add_group(plan, self._group(rows, memories)):
                    self._examined(plan, rows)
                else:  # it is looked at again in the next run
                    self._waiting.difference_update(rows)
        self._examined(plan, seeds)

    def _read(self, rows: set[int]) -> dict[int, Memory]:
        ids = [self._pool.ids[row] for row in sorted(rows)]
        memories = memory_rows(self._snapshot.get("memories", ids, _COLUMNS)) if ids else []
        return {self._pool.row_of[memory.id]: memory for memory in memories}

    def _examined(self, plan: Plan, rows: Iterable[int]) -> None:
        for row in sorted(self._waiting.intersection(rows)):
            self._waiting.discard(row)
            plan.examined.append(self._pool.ids[row])

    def _add_group(self, plan: Plan, group: Group) -> bool:
        """Add what a group gives; say False, and add nothing, where it waits for a model."""
        found = self._synthesizer.synthesize(group)
        wider = self._widened(group, found)
        if wider is not None:
            group, found = wider, self._synthesizer.synthesize(wider)
        if self._writer is not None:
            rewritten = self._writer.rewritten(group, found)
            if rewritten is None:
                return False
            found = rewritten
        duplicates = [c for c in found.connections if c.relationship == "near_duplicate"]
        self.duplicates.update((c.source_id, c.target_id) for c in duplicates)
        plan.connect(found.connections if found.drafts else duplicates)
        self.groups += bool(found.drafts)
        for draft in found.drafts:
            self._add_insight(plan, draft, group)
        return True

    def _widened(self, group: Group, found: Synthesis) -> Group | None:
        """The group with what another insight on the very same thing rests on, if there is one."""
        namespace = group.members[0].namespace
        row_of = self._pool.row_of
        rows = {row_of[memory.id] for memory in group.members}
        more = {
            row_of[id_]
            for draft in found.drafts
            if draft.is_whole
            for known in self._known.about(namespace, draft.family, draft.about)
            for id_ in known.source_ids
            if id_ in row_of
        } - rows
        if not more or len(rows) + len(more) > _WIDEST * self._thresholds.group_size:
            return None
        wider = sorted(rows | more)
        return self._group(wider, self._read(set(wider)))

    def _with_known(self, rows: Sequence[int]) -> list[int]:
        """Add what the insights rest on that are about this group already, newest first."""
        ids = {self._pool.ids[row] for row in rows}
        more: set[int] = set()
        for known in self._known.resting_on(ids):
            common = len(known.source_ids & ids)
            if known.is_whole and 2 * common >= min(len(ids), len(known.source_ids)):
                row_of = self._pool.row_of
                more.update(row_of[id_] for id_ in known.source_ids if id_ in row_of)
        room = self._thresholds.group_size - len(rows)
        added = sorted(more.difference(rows), reverse=True)[: max(room, 0)]
        return sorted([*rows, *added])

    def _group(self, rows: Sequence[int], memories: Mapping[int, Memory]) -> Group:
        place = {row: number for number, row in enumerate(rows)}
        inside = {
            (link.first, link.second): link
            for row in rows
            for link in self._links.of(row)
            if link.first in place and link.second in place
        }
        names = self._pool.names.shared(rows)
        words = self._pool.words.shared(rows)
        return Group(
            members=tuple(memories[row] for row in rows),
            pairs=tuple(_pair(inside[key], place) for key in sorted(inside)),
            anchors=frozenset({stem for name in names for stem in terms(name)} | words),
        )

    def _add_insight(self, plan: Plan, draft: Draft, group: Group) -> None:
        sources = [memory for memory in group.members if memory.id in draft.source_ids]
        before = self._told_before(draft)
        if any(known.source_ids >= set(draft.source_ids) for known in before):
            return
        if any(known.text == draft.text for known in self._alike(draft, group)):
            return
        version = 1 + max((known.version for known in before), default=0)
        memory = insight_memory(draft, sources, version, self._now)
        for known in before:
            self._replace(plan, known, memory)
        plan.insights[memory.id] = memory
        self.insights[memory.id] = insight_record(draft, memory)
        self._known.add(known_insight(draft, memory))

    def _replace(self, plan: Plan, known: KnownInsight, by: Memory) -> None:
        plan.supersede(known.id, by.id)
        self._known.remove(known.id)
        self.insights.pop(known.id, None)

    def _alike(self, draft: Draft, group: Group) -> list[KnownInsight]:
        """Insights on the same thing, which may say it from other memories of the same sources."""
        return self._known.about(group.members[0].namespace, draft.family, draft.about)

    def _told_before(self, draft: Draft) -> list[KnownInsight]:
        """The valid insights that this one says again or brings up to date."""
        sources = set(draft.source_ids)
        return [known for known in self._known.resting_on(sources) if _same_thing(known, draft)]


def _same_thing(known: KnownInsight, draft: Draft) -> bool:
    common = known.source_ids.intersection(draft.source_ids)
    if known.is_whole != draft.is_whole:
        return False
    if draft.is_whole:
        return 2 * len(common) >= min(len(known.source_ids), len(draft.source_ids))
    before, after = known.about.split(), draft.about.split()
    return before[:1] == after[:1] and bool(set(before[1:]) & set(after[1:]))


def _pair(link: Link, place: dict[int, int]) -> Pair:
    first, second = place[link.first], place[link.second]
    return Pair(first, second, link.weight, link.cosine, link.names > 0)
