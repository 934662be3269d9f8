"""What needs a look: memories that are not used, that lost their source or that were judged bad."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from memctl.literals import CONTRADICTS, LEARNING
from memctl.memories.importance_decay import COLUMNS
from memctl.records import Filters
from memctl.store.tables.filter_expressions import col, memory_filter
from memctl.upkeep.learnings import NOT_JUDGED, judgements, quality_of
from memctl.upkeep.tidying import stale_memories

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase

Why = Literal["stale", "source gone", "contradicted", "judged bad", "low quality"]
LOW_QUALITY = 0.4
"""Quality below which a learning is listed."""
_LONG_UNREAD = 0.7
"""Staleness from which a memory is listed, before it is archived."""


class DoubtfulEntry(Struct, frozen=True):
    """One memory that should be looked at, and why."""

    id: str
    kb: str
    type: str
    text: str
    why: Why
    quality: float
    staleness: float
    idle_days: float
    namespace: str


def doubtful_entries(base: KnowledgeBase, now: datetime) -> list[DoubtfulEntry]:
    """Return the memories that should be looked at, the worst first; each once."""
    resources = base.resources
    resources.query_log.flush()
    snapshot, decay = resources.snapshot(), resources.services.decay()
    judged = judgements(base.store.ledger)
    stale = {each.id: each for each in stale_memories(snapshot, decay, now, _LONG_UNREAD)}
    reasons: dict[str, Why] = {}
    for id_, each in stale.items():
        reasons[id_] = "source gone" if each.is_orphan else "stale"
    for tie in snapshot.scan(
        "relations",
        (col("relation_type") == CONTRADICTS) & col("valid_to").is_null(),
        ["source_id", "target_id"],
    ).to_pylist():
        for end in ("source_id", "target_id"):
            reasons.setdefault(tie[end], "contradicted")
    for id_, verdicts in judged.items():
        if verdicts.bad > verdicts.good:
            reasons.setdefault(id_, "judged bad")
    holds = memory_filter(resources.readable(Filters()), now)
    columns = [*COLUMNS, "text", "confidence", "source_ids", "namespace"]
    named = col("id").is_in(sorted(reasons)) | (col("type") == LEARNING)
    found = []
    for row in snapshot.scan("memories", holds & named, columns).to_pylist():
        quality = quality_of(row, decay, judged.get(row["id"], NOT_JUDGED), now)
        why = reasons.get(row["id"])
        if why is None and quality < LOW_QUALITY:
            why = "low quality"
        if why is not None:
            known = stale.get(row["id"])
            found.append(
                DoubtfulEntry(
                    id=row["id"],
                    kb=base.name,
                    type=row["type"],
                    text=row["text"],
                    why=why,
                    quality=quality,
                    staleness=known.staleness if known else 0.0,
                    idle_days=decay.idle_days(row, now),
                    namespace=row["namespace"],
                )
            )
    return sorted(found, key=lambda each: (each.quality, -each.staleness, each.id))
