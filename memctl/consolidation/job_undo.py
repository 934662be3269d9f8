"""Taking back what a job has changed by itself, and nothing that came after it.

Rows are put back as far as they are still as the job left them.  What it added goes, unless
something rests on it by now; what it ended holds again, if what that rests on still does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from msgspec import Struct, field

from memctl.consolidation.known_insights import valid_memories
from memctl.errors import NotFoundError, UsageError
from memctl.rows.row_changes import amend_rows, restore_memories
from memctl.rows.row_lifecycle import erase_rows
from memctl.rows.supersession import of_live_documents
from memctl.schema.table_names import UPKEEP
from memctl.store.ledger.decision_repositories import CONSOLIDATED_FLAG
from memctl.store.tables.coverage import require_found
from memctl.store.tables.filter_expressions import col
from memctl.store.tables.transaction import TRACKED_COLUMNS, rows_from_tracked, tracked_values

if TYPE_CHECKING:
    from memctl.schema.table_names import TableName
    from memctl.store.ledger.decision_repositories import RowChange, Value
    from memctl.store.ledger.work_repositories import Job
    from memctl.store.store import Store
    from memctl.store.tables.snapshot import Snapshot
    from memctl.store.tables.transaction import TrackedRow, Transaction

_UNDOING = "taking a job back"
_HINT = "memctl job list shows which jobs can be taken back"


class JobView(Struct, frozen=True):
    """A job as it is shown."""

    id: int
    kb: str
    kind: str
    state: str
    """``running``, ``done``, ``failed``, ``abandoned`` (it was cut off) or ``undone``."""
    started_at: datetime
    finished_at: datetime | None
    detail: Mapping[str, int] = field(default_factory=dict)
    """What it came to."""
    error: str = ""
    can_be_undone: bool = False


class UndoReport(Struct, frozen=True):
    """What taking a job back came to, or with ``dry_run`` would come to."""

    kb: str
    job: int
    kind: str
    started_at: datetime
    removed: tuple[str, ...]
    """Ids of the insights, memories and documents that it had made."""
    disconnected: int
    """How many connections between memories it had made."""
    restored: tuple[str, ...]
    """Ids of the rows that are again as they were before it."""
    kept: tuple[str, ...]
    """Ids of the rows that stay as they are, because something else changed them since."""
    waiting: int
    """How many memories the next consolidation looks at again."""
    dry_run: bool


class Jobs:
    """The jobs of one knowledge base, and the way back from them.

    Args:
        store: Its tables and ledger.
        clock: What tells the time.
        kb: Its name.
    """

    def __init__(self, store: Store, clock: Callable[[], datetime], kb: str) -> None:
        self._store = store
        self._ledger = store.ledger
        self._clock = clock
        self._kb = kb

    def recent(self, limit: int | None) -> list[JobView]:
        """Return jobs, the newest first, or all of them."""
        known = set(self.undoable())
        found = self._ledger.jobs.recent(-1 if limit is None else limit)
        return [self._view(job, job.id in known) for job in found]

    def undo(
        self,
        number: int | None = None,
        *,
        again: bool = False,
        dry_run: bool = False,
        taken_back: Collection[int] = (),
    ) -> UndoReport:
        """Take a job back, as one commit.

        Args:
            number: Which; by default the latest that can be taken back.
            again: Whether the next consolidation is to look again at what this one looked at.
            dry_run: Say what would come of it, and change nothing.
            taken_back: On a dry run, later jobs that would be taken back before it.

        Raises:
            NotFoundError: There is no such job, or none that can be taken back.
            UsageError: It cannot be taken back, or not before a later one.
            LockedError: Another process kept writing.
            CoverageLost: Memories would not have been found any more; it was rolled back.
        """
        if dry_run:
            job = self._undoable_job(number, taken_back)
            made = self._plan(self._store.snapshot(), job, again=again)
            return self._report(job, made, dry_run=True)
        with self._store.write() as transaction:
            job = self._undoable_job(number)  # nothing is added to its changes while this writes
            before = transaction.snapshot()
            made = self._plan(before, job, again=again)
            going = made.write(transaction, self._clock())
            ids, after = [*made.rows["memories"]], transaction.snapshot()
            require_found(before, after, ids, _UNDOING, made.ending, going)

            def note(_: object) -> None:
                """Record that it has been taken back."""
                self._ledger.changes.remove_job(job.id)
                self._ledger.confirmations.remove_job(job.id)
                for change, row in made.stuck:
                    self._ledger.changes.replace_new(change, row)
                self._ledger.jobs.undo(job.id, self._clock())

            transaction.ledger(note)
        return self._report(job, made, dry_run=False)

    # --- inside ---

    def _view(self, job: Job, can_be_undone: bool) -> JobView:
        return JobView(
            id=job.id,
            kb=self._kb,
            kind=job.kind,
            state=job.state,
            started_at=job.started_at,
            finished_at=job.finished_at,
            detail={name: value for name, value in job.detail.items() if type(value) is int},
            error=str(job.detail.get("error", "")),
            can_be_undone=can_be_undone,
        )

    def undoable(self) -> list[int]:
        """Return the jobs that can be taken back, newest first."""
        known = {*self._ledger.changes.jobs(), *self._ledger.confirmations.jobs()}
        return sorted(known, reverse=True)

    def of_night(self, number: int | None = None, others: Iterable[int] = ()) -> list[int]:
        """Return the jobs of one night that can be taken back, newest first.

        A night goes from noon to noon, local time.

        Args:
            number: A job of that night; by default the latest that can be taken back.
            others: Jobs that can be taken back, too, though not by this.

        Raises:
            NotFoundError: There is no such job, or none that can be taken back.
        """
        known = sorted({*self.undoable(), *others}, reverse=True)
        found = [self._ledger.jobs.find(each) for each in known]
        jobs = [job for job in found if job is not None]
        if number is not None:
            chosen = self._ledger.jobs.find(number)
            if chosen is None:
                raise NotFoundError(f"{self._kb} has no job {number}", _HINT)
        elif jobs:
            chosen = jobs[0]
        else:
            raise NotFoundError(f"{self._kb} has no job that can be taken back", _HINT)
        night = _run_date(chosen)
        return [job.id for job in jobs if _run_date(job) == night]

    def _undoable_job(self, number: int | None, taken_back: Collection[int] = ()) -> Job:
        known = self.undoable()
        if number is None and not known:
            raise NotFoundError(f"{self._kb} has no job that can be taken back", _HINT)
        job = self._ledger.jobs.find(known[0] if number is None else number)
        if job is None:
            raise NotFoundError(f"{self._kb} has no job {number}", _HINT)
        if job.id not in known:
            raise UsageError(f"job {job.id} cannot be taken back: {_refusal_reason(job)}", _HINT)
        later = self._ledger.changes.later(job.id)
        if later and later not in taken_back:
            raise UsageError(
                f"job {later} has changed some of what job {job.id} did",
                f"take that one back first: memctl job undo {later}",
            )
        return job

    def _plan(self, snapshot: Snapshot, job: Job, *, again: bool) -> _UndoPlan:
        changes = self._ledger.changes.of(job.id)
        return _UndoPlanner(snapshot, changes, self._clock()).plan(again=again)

    def _report(self, job: Job, made: _UndoPlan, *, dry_run: bool) -> UndoReport:
        return UndoReport(
            kb=self._kb,
            job=job.id,
            kind=job.kind,
            started_at=job.started_at,
            removed=tuple(made.rows_to_delete["memories"]),
            disconnected=len(made.rows_to_delete["relations"]),
            restored=tuple(made.restored),
            kept=tuple(made.kept),
            waiting=made.waiting,
            dry_run=dry_run,
        )


def _run_date(job: Job) -> date:
    return (job.started_at.astimezone() + timedelta(hours=12)).date()


def _refusal_reason(job: Job) -> str:
    if job.state == "undone":
        return "it has been already"
    if job.kind == UPKEEP:
        return f"a job of the kind {job.kind} changes nothing that anyone sees"
    return "it changed nothing, or what it changed is not known any more"


class _UndoPlan(Struct):
    """What one transaction is going to write."""

    rows_to_delete: dict[TableName, list[str]]
    """The rows that the job had added."""
    rows: dict[TableName, dict[str, TrackedRow]]
    """Rows as they are to be."""
    restored: list[str] = field(default_factory=list)
    ending: list[str] = field(default_factory=list)
    """Insights of before that the job had made anew, and that end again."""
    kept: list[str] = field(default_factory=list)
    unarchived: list[str] = field(default_factory=list)
    """Memories that the job had archived."""
    stuck: list[tuple[RowChange, TrackedRow]] = field(default_factory=list)
    """Rows that stay as the job left them, though they have not changed since, and their values."""
    waiting: int = 0

    def write(self, transaction: Transaction, now: datetime) -> Mapping[TableName, list[str]]:
        """Write it; what goes must not come back with a repair.

        A memory that had been archived counts as used now, or the next night would archive it
        again.

        Returns:
            The rows that go: what the job had added, and the names and connections of that alone.
        """
        for table in TRACKED_COLUMNS:
            if self.rows[table]:
                schema = transaction.snapshot().schema(table)
                amend_rows(transaction, table, rows_from_tracked(table, self.rows[table], schema))
        restore_memories(transaction, self.unarchived, now)
        going = {table: list(ids) for table, ids in self.rows_to_delete.items()}
        for table, ids in self.rows_to_delete.items():
            erased = erase_rows(transaction, table, ids, reconsider=False)
            going["relations"] += erased.ids.get("relations", ())
            going.setdefault("entities", []).extend(row["id"] for row in erased.orphans)
        transaction.deletions.keep(dict.fromkeys(self.rows_to_delete["memories"]))
        return going


class _UndoPlanner:
    """Finds out what can be put back.

    Args:
        snapshot: The tables as they are.
        changes: What the job has changed.
        now: The time.
    """

    def __init__(self, snapshot: Snapshot, changes: Sequence[RowChange], now: datetime) -> None:
        self._snapshot = snapshot
        self._now = now
        self._current = {
            table: tracked_values(
                snapshot, table, [each.id for each in changes if each.table == table]
            )
            for table in TRACKED_COLUMNS
        }
        self._standing = [each for each in changes if each.id in self._current[each.table]]
        self._successors = self._existing_ids(
            each.new.get("superseded_by") for each in self._standing
        )
        """The memories in favour of which others ended, as far as they have not been deleted."""

    def plan(self, *, again: bool) -> _UndoPlan:
        """Find it out."""
        plan = _UndoPlan(
            {table: [] for table in TRACKED_COLUMNS}, {table: {} for table in TRACKED_COLUMNS}
        )
        intact: list[RowChange] = []
        for each in self._standing:
            if self._is_unchanged_since(each):
                intact.append(each)
            else:
                plan.kept.append(each.id)
        added = [each for each in intact if each.is_added]
        used = self._used_ids({each.id for each in added if each.table == "memories"})
        for each in added:
            (plan.kept if each.id in used else plan.rows_to_delete[each.table]).append(each.id)
        self._restore(plan, [each for each in intact if set(each.old) - {CONSOLIDATED_FLAG}])
        self._mark(plan, looked_at=0 if again else 1)
        return plan

    def _is_unchanged_since(self, change: RowChange) -> bool:
        """Return whether a row is as the job left it, but for the mark that it was looked at.

        With a memory that is deleted goes its name in those that ended in favour of it.
        """
        row = self._current[change.table][change.id]
        left = {name: value for name, value in change.new.items() if name != CONSOLIDATED_FLAG}
        if "superseded_by" in left and left["superseded_by"] not in self._successors:
            left["superseded_by"] = None
        return all(row[name] == value for name, value in left.items())

    def _existing_ids(self, ids: Iterable[Value]) -> set[Value]:
        """Those of some memories that are there."""
        wanted = sorted({str(id_) for id_ in ids if id_ is not None})
        return set(self._snapshot.get("memories", wanted, ["id"])["id"].to_pylist())

    def _used_ids(self, ids: set[str]) -> set[str]:
        """Those of some memories that others rest on by now."""
        if not ids:
            return set()
        resting = col("source_ids").has_any(sorted(ids)) & ~col("id").is_in(sorted(ids))
        rows = self._snapshot.scan("memories", resting, ["source_ids"])["source_ids"]
        return ids.intersection(id_ for sources in rows.to_pylist() for id_ in sources)

    def _restore(self, plan: _UndoPlan, changed: Sequence[RowChange]) -> None:
        """Put rows back, but for those that would hold again on nothing that holds."""
        again = [each.id for each in changed if _becomes_valid(each)]
        grounded = self._grounded_ids(again)
        going = set(plan.rows_to_delete["memories"])
        staying = {each.id for each in self._standing if each.is_added} - going
        for each in changed:
            successor = each.new.get("superseded_by")
            row = dict(self._current[each.table][each.id])
            if successor in staying or (_becomes_valid(each) and each.id not in grounded):
                plan.kept.append(each.id)
                plan.stuck.append((each, row))
                if successor not in going:
                    continue
                row["superseded_by"] = None
            else:
                row |= {
                    name: value for name, value in each.old.items() if name != CONSOLIDATED_FLAG
                }
                plan.restored.append(each.id)
                if each.old.get("archived_at", 0) is None:
                    plan.unarchived.append(each.id)
                if row.get("valid_to") is not None:
                    plan.ending.append(each.id)
            plan.rows[each.table][each.id] = row
        self._without_lost_successors(plan, going)

    def _without_lost_successors(self, plan: _UndoPlan, going: set[str]) -> None:
        """Let no row that is put back name what is not there any more."""
        rows = plan.rows["memories"].values()
        there = self._existing_ids(row["superseded_by"] for row in rows) - going
        for row in rows:
            if row["superseded_by"] not in there:
                row["superseded_by"] = None

    def _grounded_ids(self, ids: Sequence[str]) -> set[str]:
        """Those that rest on memories that hold, or on no document that is history."""
        columns = ["id", "level", "source_ids", "document_id"]
        rows = self._snapshot.get("memories", ids, columns).to_pylist()
        insights = [row for row in rows if row["level"] == "insight"]
        sources = valid_memories(self._snapshot, _sources(insights), self._now)
        facts = [row for row in rows if row["level"] != "insight"]
        borne = {row["id"] for row in insights if sources.issuperset(row["source_ids"])}
        borne |= {row["id"] for row in facts if row["document_id"] is None}
        of_documents = [row for row in facts if row["document_id"] is not None]
        return borne | of_live_documents(self._snapshot, of_documents)

    def _mark(self, plan: _UndoPlan, *, looked_at: int) -> None:
        """Mark each memory as the job found it: looked at, or left for the next job."""
        for each in self._standing:
            if CONSOLIDATED_FLAG not in each.old:
                continue
            row = plan.rows["memories"].get(each.id, self._current["memories"][each.id])
            if row[CONSOLIDATED_FLAG] == each.new[CONSOLIDATED_FLAG] != looked_at:
                plan.rows["memories"][each.id] = {**row, CONSOLIDATED_FLAG: looked_at}
                plan.waiting += not looked_at


def _becomes_valid(change: RowChange) -> bool:
    return change.table == "memories" and change.old.get("valid_to", 0) is None


def _sources(rows: Iterable[Mapping[str, list[str]]]) -> set[str]:
    return {id_ for row in rows for id_ in row["source_ids"]}
