"""Consolidation: memories not looked at yet become insights, on their own or with what is known.

Nothing is deleted.  What batches find is written in one transaction together with the mark that
their memories have been looked at, so a run can stop anywhere and the next one goes on; an
insight's id comes from what it rests on, so nothing is reported twice.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memctl.consolidation.bridges import find_bridges
from memctl.consolidation.changes import (
    find_changes,
    find_given_up,
    find_replaced,
    find_resettled,
    find_successions,
)
from memctl.consolidation.followups import find_clashes, find_open
from memctl.consolidation.insight_findings import Finding
from memctl.consolidation.insight_plan import (
    InsightPlan,
    InsightPlanner,
    write_plan,
)
from memctl.consolidation.known_insights import INSIGHT_COLUMNS, KnownInsights, valid_memories
from memctl.consolidation.memory_grouping import Thresholds
from memctl.consolidation.memory_pool import load_pool
from memctl.consolidation.payments import find_payments
from memctl.consolidation.recurrences import find_recurrences
from memctl.consolidation.statements import StemWeights, read_statements
from memctl.consolidation.totals import (
    find_new_prices,
    find_outdated_entries,
    find_rates,
    find_totals,
    find_years,
)
from memctl.records import ConsolidationReport, Progress, ProgressListener
from memctl.rows.row_changes import mark_consolidated, supersede_memories
from memctl.schema.table_names import CONSOLIDATION
from memctl.store.tables.coverage import require_found
from memctl.store.tables.filter_expressions import col
from memctl.store.tables.transaction import record_changes

if TYPE_CHECKING:
    from memctl.consolidation.insight_drafts import Draft
    from memctl.consolidation.model_insights import InsightWriter
    from memctl.consolidation.statements import Statement
    from memctl.models.protocols import Embedder
    from memctl.schema.table_names import TableName
    from memctl.store.store import Snapshot, Store

Clock = Callable[[], datetime]

_FINDERS = (
    find_changes, find_successions, find_resettled, find_given_up,
    find_replaced, find_years, find_rates, find_new_prices,
    find_outdated_entries, find_recurrences,
)  # fmt: skip
_FINDERS_OF_TODAY = (find_payments, find_open, find_clashes, find_totals)
"""What they find depends on the day on which they look."""
_ALWAYS, _DOCUMENTS_EACH, _MOST = 3, 4, 16
"""Insights that are always made, documents for one more, and the most of all."""
LEAST_STRENGTH = 0.0
_MAY_BE_RELATED = ("person", "organization", "other")
_MOST_OF_A_SOURCE = 3
_SECONDS_A_COMMIT = 5.0
"""Batches that take no longer than this together are written together: a commit of twenty
memories costs as much as finding out what connects them."""


class Consolidator:
    """Consolidates one knowledge base."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        clock: Clock,
        *,
        kb: str = "",
        thresholds: Thresholds | None = None,
        writer: InsightWriter | None = None,
        seconds_a_commit: float = _SECONDS_A_COMMIT,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._clock = clock
        self._kb = kb
        self._thresholds = thresholds or Thresholds()
        self._writer = writer
        self._seconds_a_commit = seconds_a_commit

    def run(
        self,
        *,
        dry_run: bool = False,
        again: bool = False,
        batch_size: int = 20,
        progress: ProgressListener | None = None,
        job: int | None = None,
    ) -> ConsolidationReport:
        """Consolidate what has not been looked at, oldest first.

        Args:
            dry_run: Find out everything, ask no model and write nothing.
            again: Look at what has been looked at before, too, so that insights come back that
                were taken back or deleted.
            batch_size: How many memories are looked at together.
            progress: Called after every batch, with memories.
            job: Its number in the ledger, under which what it changes is noted.

        Raises:
            LockedError: Another process kept writing.
            CoverageLost: Memories would not have been found any more; what was about to be
                written was rolled back.
        """
        started, now = time.monotonic(), self._clock()
        known = self._current_insights(now, dry_run, job)
        snapshot = self._store.snapshot()
        pool = load_pool(snapshot, now, again=again)
        writer = None if dry_run else self._writer
        planner = InsightPlanner(snapshot, pool, known, self._thresholds, now, writer)
        examined = 0
        for plan, is_last in self._plans(planner, pool.fresh, max(batch_size, 1), progress):
            if is_last and not (writer and writer.waiting):
                removed = self._store.ledger.deletions.ids()
                planner.add_drafts(plan, find_insights(snapshot, now), removed)
            examined += len(plan.examined)
            if not dry_run and (plan.examined or plan.insights):
                self._write(plan, now, job)
        report = ConsolidationReport(
            kb=self._kb,
            examined=examined,
            groups=planner.groups,
            insights=tuple(planner.insights.values()),
            duplicates=len(planner.duplicates),
            dry_run=dry_run,
            seconds=time.monotonic() - started,
        )
        return report if writer is None else _with_model(report, writer)

    def ask(self, batch_size: int = 20) -> None:
        """Ask the model about every group that has no insight yet, and write nothing."""
        now = self._clock()
        snapshot = self._store.snapshot()
        pool = load_pool(snapshot, now)
        known = self._current_insights(now, True, None)
        planner = InsightPlanner(snapshot, pool, known, self._thresholds, now, self._writer)
        for _ in self._plans(planner, pool.fresh, max(batch_size, 1), None):
            pass

    def _plans(
        self,
        planner: InsightPlanner,
        fresh: list[int],
        size: int,
        progress: ProgressListener | None,
    ) -> Iterator[tuple[InsightPlan, bool]]:
        """Plan batch after batch; hand out what has come together when it is worth a commit.

        With each comes whether it is the last one, which there always is if anything is fresh.
        """
        plan, since = InsightPlan(), time.monotonic()
        for at in range(0, len(fresh), size):
            planner.add_batch(plan, fresh[at : at + size])
            if progress is not None:
                progress(Progress(min(at + size, len(fresh)), len(fresh), "memories"))
            is_last = at + size >= len(fresh)
            if is_last or (plan.examined and time.monotonic() - since >= self._seconds_a_commit):
                yield plan, is_last
                plan, since = InsightPlan(), time.monotonic()

    def _write(self, plan: InsightPlan, now: datetime, job: int | None) -> None:
        with self._store.write() as transaction:
            before = transaction.snapshot()
            write_plan(transaction, plan, self._embedder, now)
            after = transaction.snapshot()
            require_found(before, after, plan.touched_ids, CONSOLIDATION, plan.superseded)
            if job is not None:
                changes = self._store.ledger.changes
                record_changes(transaction, changes, job, before, after, plan.written_ids)

    def _current_insights(self, now: datetime, dry_run: bool, job: int | None) -> KnownInsights:
        """Read the valid insights; end those that rest on something no longer valid.

        Their other sources are looked at again, so that what still holds becomes an insight again.
        """
        snapshot = self._store.snapshot()
        valid = (col("level") == "insight") & col("valid_to").is_null()
        known = KnownInsights.of_rows(snapshot.scan("memories", valid, INSIGHT_COLUMNS))
        alive = valid_memories(
            snapshot, {source for item in known for source in item.source_ids}, now
        )
        stale = [item for item in known if not item.source_ids <= alive]
        again = sorted({source for item in stale for source in item.source_ids & alive})
        if stale and not dry_run:
            ending = dict.fromkeys([item.id for item in stale])
            with self._store.write() as transaction:
                before = transaction.snapshot()
                supersede_memories(transaction, ending, now)
                mark_consolidated(transaction, again, done=False)
                after = transaction.snapshot()
                require_found(before, after, again, CONSOLIDATION, ending)
                if job is not None:
                    written: dict[TableName, list[str]] = {"memories": [*ending, *again]}
                    changes = self._store.ledger.changes
                    record_changes(transaction, changes, job, before, after, written)
        for item in stale:
            known.remove(item.id)
        return known


def _with_model(report: ConsolidationReport, writer: InsightWriter) -> ConsolidationReport:
    problem = writer.problem
    return replace(
        report,
        by_model=writer.written,
        dropped=writer.dropped,
        waiting=writer.waiting,
        note=problem.message if problem else "",
        hint=problem.hint if problem else "",
    )


# --- without a model -----------------------------------------------------------------------------


def find_insights(snapshot: Snapshot, now: datetime) -> list[Draft]:
    """Return what follows from the statements of a knowledge base, what matters most first."""
    found = read_statements(snapshot, now)
    weights = StemWeights(found)
    findings = [finding for find in _FINDERS for finding in find(found, weights)]
    findings += [
        finding for find in _FINDERS_OF_TODAY for finding in find(found, weights, now.date())
    ]
    findings += find_bridges(found, weights, _names(snapshot, found))
    findings = [finding for finding in findings if finding.strength >= LEAST_STRENGTH]
    room = min(_ALWAYS + len({each.document for each in found}) // _DOCUMENTS_EACH, _MOST)
    said_already = sum(finding.is_said_already for finding in findings)
    best = _best(findings, room + said_already)  # nothing else is told of what these are about
    return [finding.draft() for finding in best if not finding.is_said_already][:room]


def _names(snapshot: Snapshot, found: Sequence[Statement]) -> set[str]:
    """Return the names of people and organisations, and of what may be either."""
    known = snapshot.scan("entities", columns=["name", "type"]).to_pylist()
    others = {each["name"] for each in known if each["type"] not in _MAY_BE_RELATED}
    return {name for each in found for name in each.memory.entities} - others


def _best(findings: list[Finding], room: int) -> list[Finding]:
    """Return the strongest findings; none repeats another, and no source has too many."""
    stated: set[tuple[str, str]] = set()
    titles: set[str] = set()
    of_source: Counter[str] = Counter()
    of_kind: Counter[str] = Counter()
    best: list[Finding] = []
    for finding in sorted(findings, key=lambda each: (-each.strength, each.headline)):
        said = {(each.document, each.text) for each in finding.evidence}
        documents = {each.document for each in finding.evidence}
        is_repeated = finding.title.casefold() in titles
        if is_repeated or len(said & stated) > len(said) / 2 or of_kind[finding.kind] > room / 2:
            continue
        if any(of_source[each] >= _MOST_OF_A_SOURCE for each in documents):
            continue
        stated |= said
        titles.add(finding.title.casefold())
        of_source.update(documents)
        of_kind[finding.kind] += 1
        best.append(finding)
        if len(best) == room:
            break
    return best
