"""Jobs that put away what is not used: access counts, rot, expiry, duplicates, old sessions.

Nothing is deleted but what its owner gave an end to; the rest is archived or ends in favour of
something newer, and ``memctl job undo`` takes it back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memctl.formatting import format_count
from memctl.literals import LEARNING
from memctl.memories.importance_decay import (
    COLUMNS,
    IMPORTANT,
    Decay,
    is_distilled,
    is_stated,
    staleness,
)
from memctl.records import Filters
from memctl.rows.derived_rows import fold_accesses
from memctl.rows.row_changes import archive_memories, supersede_memories
from memctl.rows.row_lifecycle import erase_rows
from memctl.rows.supersession import LIVE_STATUSES
from memctl.store.tables.coverage import require_found
from memctl.store.tables.filter_expressions import col, memory_filter
from memctl.store.tables.transaction import record_changes
from memctl.upkeep.upkeep_job import Outcome, UpkeepContext

if TYPE_CHECKING:
    from memctl.schema.table_names import TableName
    from memctl.store.ledger.session_repositories import Session
    from memctl.store.tables.snapshot import Snapshot
    from memctl.store.tables.transaction import Transaction

FEW = 20
"""This many memories may be archived in one run even in a small knowledge base."""
_EVERYTHING = Filters()


def fold_access_counts(context: UpkeepContext) -> Outcome:
    """Add how often memories were shown to their rows."""
    store = context.base.store
    context.base.resources.query_log.flush()
    pending = store.ledger.accesses.pending()
    if context.options.dry_run:
        return Outcome({"memories": len(pending)}, [each.memory_id for each in pending])
    boosts = context.config.tiers.boost_on_use
    return Outcome({"memories": fold_accesses(store, boosts=boosts)})


# --- rot -----------------------------------------------------------------------------------------


class StaleMemory(Struct, frozen=True):
    """A memory that has not been used for so long that it is archived."""

    id: str
    staleness: float
    idle_days: float
    importance: float
    is_orphan: bool
    """Whether what it was drawn from is gone or history."""
    nights: int
    """For how many whole days it has been stale; 0 for an orphan."""


def stale_memories(
    snapshot: Snapshot, decay: Decay, now: datetime, threshold: float
) -> list[StaleMemory]:
    """Return the distilled memories that are stale, the stalest first.

    Evidence, stated memories, important facts, decisions and what living insights rest on are never
    among them.

    Args:
        snapshot: Where they are.
        decay: How importance fades.
        now: The time.
        threshold: The least staleness.
    """
    holds = memory_filter(_EVERYTHING, now)
    columns = [*COLUMNS, "document_id", "source_ids"]
    found = snapshot.scan("memories", holds & (col("level") == "memory"), columns).to_pylist()
    rows = [row for row in found if _can_go_stale(row)]
    if not rows:
        return []
    insights = snapshot.scan("memories", holds & (col("level") == "insight"), ["source_ids"])
    drawn_on = {id_ for sources in insights["source_ids"].to_pylist() for id_ in sources}
    valid = _ValidSources.of(snapshot, rows)
    stale = []
    for row in rows:
        if row["id"] in drawn_on:
            continue
        idle, importance = decay.idle_days(row, now), decay.importance(row, now)
        is_orphan = not valid.support(row)
        score = 1.0 if is_orphan else staleness(idle, decay.half_life, importance)
        if score >= threshold:
            nights = 0 if is_orphan else _days_stale(row, decay, now, threshold)
            stale.append(StaleMemory(row["id"], score, idle, importance, is_orphan, nights))
    return sorted(stale, key=lambda each: (-each.staleness, each.id))


def _days_stale(row: Mapping[str, Any], decay: Decay, now: datetime, threshold: float) -> int:
    """Return how many whole days ago a memory was stale already."""

    def is_stale(days: int) -> bool:
        """Return whether it was stale so many days ago."""
        at = now - timedelta(days=days)
        score = staleness(decay.idle_days(row, at), decay.half_life, decay.importance(row, at))
        return score >= threshold

    whole_days = range(1, int(decay.idle_days(row, now)) + 1)
    return bisect_left(whole_days, True, key=lambda days: not is_stale(days))


def _can_go_stale(row: Mapping[str, Any]) -> bool:
    if is_stated(row) or row["importance"] >= IMPORTANT:
        return False
    return is_distilled(row) or row["type"] == LEARNING


class _ValidSources(Struct, frozen=True):
    """The documents and memories that others were drawn from and that still hold."""

    documents: frozenset[str]
    memories: frozenset[str]

    @classmethod
    def of(cls, snapshot: Snapshot, rows: Iterable[Mapping[str, Any]]) -> _ValidSources:
        """Look up the sources of rows."""
        documents, sources = set[str](), set[str]()
        for row in rows:
            documents.update(filter(None, [row["document_id"]]))
            sources.update(row["source_ids"])
        known = snapshot.get("documents", sorted(documents), ["id", "status"]).to_pylist()
        valid = snapshot.get("memories", sorted(sources), ["id", "valid_to"]).to_pylist()
        return cls(
            frozenset(row["id"] for row in known if row["status"] in LIVE_STATUSES),
            frozenset(row["id"] for row in valid if row["valid_to"] is None),
        )

    def support(self, row: Mapping[str, Any]) -> bool:
        """Return whether anything that a memory was drawn from still holds."""
        document, sources = row["document_id"], row["source_ids"]
        if document is not None and document not in self.documents:
            return False
        return not sources or not self.memories.isdisjoint(sources)


def archive_stale(context: UpkeepContext) -> Outcome:
    """Archive stale memories; where too many became stale at once, they wait until asked for."""
    base, settings = context.base, context.config.upkeep
    if settings.archive_from >= 1:
        return Outcome({"archived": 0, "withheld": 0})
    decay = base.resources.services.decay()
    snapshot = base.store.snapshot()
    stale = stale_memories(snapshot, decay, context.now, settings.archive_from)
    holding = snapshot.count("memories", memory_filter(_EVERYTHING, context.now))
    withheld: list[str] = []
    ids = [each.id for each in stale]
    if not context.options.force:
        ids, withheld = _limited_per_night(stale, settings.most_archived, holding)
    counts = {"archived": len(ids), "withheld": len(withheld)}
    warning = hint = ""
    if withheld:
        share = len(withheld) / holding
        warning = (
            f"{len(withheld):,} memories of {base.name} became stale at once, {share:.0%} of it:"
            " they are not archived"
        )
        hint = f"memctl upkeep run rot -k {base.name} --force archives them"
    if not ids or context.options.dry_run:
        return Outcome(counts, ids or withheld, warning=warning, hint=hint)
    with base.store.write() as transaction:
        before = transaction.snapshot()
        again = stale_memories(before, decay, context.now, settings.archive_from)
        wanted = frozenset(ids)
        ids = [each.id for each in again if each.id in wanted]
        archive_memories(transaction, ids, context.now)
        note_changes(transaction, context, before, ids, "rot")
    return Outcome(counts | {"archived": len(ids)}, ids, warning=warning, hint=hint)


def _limited_per_night(
    stale: Sequence[StaleMemory], most_archived: float, holding: int
) -> tuple[list[str], list[str]]:
    """Return the ids to archive, and those held back because too many became stale at once.

    Each night is processed separately, the earliest first, so that a machine that was asleep gets
    the same result as one that was running.
    """
    nights: dict[int, list[str]] = {}
    for each in stale:
        nights.setdefault(each.nights, []).append(each.id)
    archived: list[str] = []
    withheld: list[str] = []
    for night in sorted(nights, reverse=True):
        ids = nights[night]
        most = max(FEW, int(most_archived * (holding - len(archived))))
        (archived if len(ids) <= most else withheld).extend(ids)
    return archived, withheld


def note_changes(
    transaction: Transaction,
    context: UpkeepContext,
    before: Snapshot,
    ids: Sequence[str],
    what: str,
    ending: Sequence[str] = (),
) -> None:
    """Record under a job what it has changed or added, after a look that all is still found."""
    after = transaction.snapshot()
    require_found(before, after, ids, what, ending)
    if context.job is not None:
        written: dict[TableName, Sequence[str]] = {"memories": ids}
        changes = context.base.store.ledger.changes
        record_changes(transaction, changes, context.job, before, after, written)


# --- expiry --------------------------------------------------------------------------------------


def remove_expired_memories(context: UpkeepContext) -> Outcome:
    """Delete memories that were given an end, once a grace after it has gone by."""
    store, grace = context.base.store, timedelta(days=context.config.upkeep.expiry_grace_days)
    over = ~col("expires_at").is_null() & (col("expires_at") <= context.now - grace)
    ids = _ids(store.snapshot(), over)
    if not ids or context.options.dry_run:
        return Outcome({"removed": len(ids)}, ids)
    with store.write() as transaction:
        ids = _ids(transaction.snapshot(), over)
        erased = erase_rows(transaction, "memories", ids)
        transaction.deletions.keep(dict.fromkeys(erased.ids["memories"]))
    return Outcome({"removed": len(ids)}, ids)


def _ids(snapshot: Snapshot, where: Any) -> list[str]:
    ids: list[str] = snapshot.scan("memories", where, ["id"], (("id", "asc"),))["id"].to_pylist()
    return ids


# --- duplicates ----------------------------------------------------------------------------------


def merge_duplicates(context: UpkeepContext) -> Outcome:
    """Find distilled memories that say nearly the same; on request the older one of two ends.

    Consolidation finds which are alike, so what it has not looked at yet is not among them.
    """
    from memctl.consolidation.memory_pool import count_waiting

    store = context.base.store
    pairs, waiting = _duplicates(store.snapshot()), count_waiting(store.snapshot(), context.now)
    kb = context.base.name
    note, (have, them) = "", ("has", "it") if waiting == 1 else ("have", "them")
    if waiting:
        count = format_count(waiting, "memory", "memories")
        todo = f"to compare {them}: memctl consolidate -k {kb}"
        note = f"{count} of {kb} {have} not been compared yet; {todo}"
    counts = {"pairs": len(pairs), "merged": 0}
    if not pairs or not context.options.merge or context.options.dry_run:
        merged = len(pairs) if context.options.merge else 0
        return Outcome(counts | {"merged": merged}, list(pairs), note=note)
    with store.write() as transaction:
        before = transaction.snapshot()
        pairs = _duplicates(before)
        supersede_memories(transaction, pairs, context.now)
        ids = [*pairs, *dict.fromkeys(pairs.values())]
        note_changes(transaction, context, before, ids, "duplicates", [*pairs])
    return Outcome({"pairs": len(pairs), "merged": len(pairs)}, list(pairs), note=note)


def _duplicates(snapshot: Snapshot) -> dict[str, str]:
    """Return the ids of older memories, each with that of the newest one that says the same."""
    near = (col("relation_type") == "near_duplicate") & col("valid_to").is_null()
    ties = snapshot.scan("relations", near, ["source_id", "target_id"]).to_pylist()
    named = sorted({tie[end] for tie in ties for end in ("source_id", "target_id")})
    wanted = [*COLUMNS, "namespace", "created_at", "valid_to", "archived_at", "expires_at"]
    rows = {
        row["id"]: row
        for row in snapshot.get("memories", named, wanted).to_pylist()
        if is_distilled(row) and row["valid_to"] is None and row["archived_at"] is None
    }
    newer: dict[str, str] = {}
    for tie in ties:
        ends = [rows[tie[end]] for end in ("source_id", "target_id") if tie[end] in rows]
        if len(ends) < 2 or ends[0]["namespace"] != ends[1]["namespace"]:
            continue
        old, new = sorted(ends, key=_age)
        known = newer.get(old["id"])
        if known is None or _age(rows[known]) < _age(new):
            newer[old["id"]] = new["id"]
    return {old: _last(newer, new) for old, new in newer.items()}


def _age(row: Mapping[str, Any]) -> tuple[datetime, str]:
    return row["created_at"], row["id"]


def _last(newer: Mapping[str, str], id_: str) -> str:
    """Follow a chain to its end; it goes from older to newer ones and so has one."""
    while id_ in newer:
        id_ = newer[id_]
    return id_


# --- old conversations ---------------------------------------------------------------------------


def prune_sessions(context: UpkeepContext) -> Outcome:
    """Summarise conversations that have not gone on, and archive their messages."""
    base, days = context.base, context.config.upkeep.prune_sessions_days
    nothing = {"sessions": 0, "archived": 0}
    if days <= 0:
        return Outcome(nothing)
    over = context.now - timedelta(days=days)
    old = [each for each in base.store.ledger.sessions.all() if _is_old(each, over)]
    if not old or context.options.dry_run:
        return Outcome(nothing | {"sessions": len(old)})
    base.sessions.fold()
    with base.store.write() as transaction:
        before = transaction.snapshot()
        ids = _messages_of(before, old)
        archive_memories(transaction, ids, context.now)
        note_changes(transaction, context, before, ids, "prune")
    for session in old:  # last, for a run that was cut off finds what is not archived yet
        base.sessions.archive(session)
    return Outcome({"sessions": len(old), "archived": len(ids)}, ids)


def _is_old(session: Session, over: datetime) -> bool:
    return session.last_at < over and session.status != "archived"


def _messages_of(snapshot: Snapshot, sessions: Iterable[Session]) -> list[str]:
    ids: list[str] = []
    for session in sessions:
        same = (col("session_id") == session.session_id) & (col("namespace") == session.namespace)
        messages = same & (col("level") == "evidence") & ~col("turn").is_null()
        ids += _ids(snapshot, messages & col("valid_to").is_null() & col("archived_at").is_null())
    return ids
