"""What must be known of rows besides the rows: names, deletions, and what jobs changed.

These are ids, instants, numbers and flags; the only texts are names.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from memctl.errors import LockedError
from memctl.schema.table_names import TableName
from memctl.store.ledger.repository import LedgerTable, Repository

if TYPE_CHECKING:
    import pyarrow as pa

# --- what jobs changed ---------------------------------------------------------------------------

Value = int | float | str | None
"""Of a column; an instant is in microseconds, a flag is 0 or 1."""

CONSOLIDATED_FLAG = "is_consolidated"
"""The column that says that consolidation has seen a memory; alone it changes nothing visible."""
_ADDED = "id"
"""The column under which a row is noted that was not there before."""
_KEPT_JOBS = 20
"""Of each kind."""
_KEPT_CHANGES = 200_000
"""Of all jobs but the latest one; some 20 MB."""


class RowChange(Struct, frozen=True):
    """What a job has changed in one row, or with which values it has added it."""

    table: TableName
    id: str
    old: Mapping[str, Value]
    """The changed columns as they were; empty for a row that was added."""
    new: Mapping[str, Value]
    """The same columns as the job left them; empty for a connection that was added."""
    is_added: bool = False


class ColumnChange(Struct, frozen=True):
    """One column of a changed row."""

    job_id: int
    table_name: TableName
    row_id: str
    column_name: str
    old: Value
    new: Value


class ChangeRepository(Repository[ColumnChange]):
    """What the latest jobs have changed, so that it can be undone."""

    table = LedgerTable("job_changes", ColumnChange, order="table_name, row_id")

    def add(self, job: int, changes: Iterable[RowChange]) -> None:
        """Record what a commit of a job changes; of several changes of a column the latest counts.

        Raises:
            LockedError: The job was undone while it ran.
        """
        with self._ledger.transaction() as connection:
            _require_standing(connection, job)
            if not self.count("job_id = ?", job):
                _trim(connection)
            rows = (row for change in changes for row in _column_changes(job, change))
            self.write(rows, "DO UPDATE SET new = excluded.new")

    def of(self, job: int) -> list[RowChange]:
        """Return what a job has changed."""
        columns: dict[tuple[TableName, str], dict[str, ColumnChange]] = {}
        for each in self.select("job_id = ?", job):
            columns.setdefault((each.table_name, each.row_id), {})[each.column_name] = each
        return [_row_change(table, id_, found) for (table, id_), found in columns.items()]

    def jobs(self) -> list[int]:
        """Return the jobs that have changed more than the consolidated flag, newest first."""
        rows = self.rows(
            "SELECT DISTINCT job_id FROM job_changes WHERE column_name != ? ORDER BY job_id DESC",
            CONSOLIDATED_FLAG,
        )
        return [job for (job,) in rows]

    def memories(self) -> set[str]:
        """Return the ids of all memories that they have changed or added."""
        found = self.rows("SELECT DISTINCT row_id FROM job_changes WHERE table_name = 'memories'")
        return {id_ for (id_,) in found}

    def later(self, job: int) -> int | None:
        """Return the newest job after one that has changed some of the same rows, if any has."""
        ((found,),) = self.rows(
            "SELECT max(later.job_id) FROM job_changes AS own JOIN job_changes AS later"
            " USING (table_name, row_id) WHERE own.job_id = ?1 AND later.job_id > ?1"
            " AND own.column_name != ?2 AND later.column_name != ?2",
            *(job, CONSOLIDATED_FLAG),
        )
        return None if found is None else int(found)

    def remove_job(self, job: int) -> None:
        """Delete what a job has changed."""
        self.delete("job_id = ?", job)

    def replace_new(self, change: RowChange, row: Mapping[str, Value]) -> None:
        """Correct what earlier jobs left in a row, after a later change to it was undone.

        Args:
            change: What the later job had changed in it.
            row: How the row stays now that this is undone.
        """
        self.execute_each(
            "UPDATE job_changes SET new = ? WHERE row_id = ? AND column_name = ? AND new IS ?",
            [(row[name], change.id, name, old) for name, old in change.old.items()],
        )


def _require_standing(connection: sqlite3.Connection, job: int) -> None:
    row = connection.execute("SELECT state FROM jobs WHERE id = ?", (job,)).fetchone()
    if row is not None and row[0] == "undone":
        raise LockedError(f"job {job} was taken back while it ran", "run it again if it is wanted")


def _trim(connection: sqlite3.Connection) -> None:
    """Delete the oldest jobs of each kind, those with very many changes, and idle ones."""
    rows = connection.execute(
        "SELECT job_id, kind, count(*), sum(column_name != ?) OR state = 'running'"
        " FROM job_changes JOIN jobs ON jobs.id = job_id GROUP BY job_id ORDER BY job_id DESC",
        (CONSOLIDATED_FLAG,),
    ).fetchall()
    jobs_of_kind: Counter[str] = Counter()
    changes = 0
    for number, (job, kind, count, matters) in enumerate(rows):
        jobs_of_kind[kind] += matters
        changes += count if number else 0
        if not matters or jobs_of_kind[kind] > _KEPT_JOBS or changes > _KEPT_CHANGES:
            connection.execute("DELETE FROM job_changes WHERE job_id = ?", (job,))


def _column_changes(job: int, change: RowChange) -> Iterable[ColumnChange]:
    if change.is_added:
        yield ColumnChange(job, change.table, change.id, _ADDED, None, change.id)
    for column, new in change.new.items():
        yield ColumnChange(job, change.table, change.id, column, change.old.get(column), new)


def _row_change(table: TableName, id_: str, columns: Mapping[str, ColumnChange]) -> RowChange:
    is_added = _ADDED in columns
    known = {name: each for name, each in columns.items() if name != _ADDED}
    old = {} if is_added else {name: each.old for name, each in known.items()}
    return RowChange(table, id_, old, {name: each.new for name, each in known.items()}, is_added)


# --- names ---------------------------------------------------------------------------------------


class NameDecision(Struct, frozen=True):
    """A user's decision on two names, each in the form in which names are compared."""

    one: str
    other: str
    same: bool
    at: datetime


class NameDecisionRepository(Repository[NameDecision]):
    """Decisions by hand on names; a later one on the same two replaces an earlier one."""

    table = LedgerTable("name_decisions", NameDecision, ("one", "other"), "at, one, other")

    def put(self, pairs: Iterable[tuple[str, str]], now: datetime, *, same: bool) -> None:
        """Record that pairs of names mean the same, or that they do not."""
        ordered = map(sorted, pairs)
        self.write(NameDecision(one, other, same, now) for one, other in ordered)


# --- what must not come back ---------------------------------------------------------------------

DELETABLE: tuple[TableName, ...] = ("documents", "memories")
"""Tables of which rows are deleted by hand."""


class ForgottenRow(Struct, frozen=True):
    """A row that snapshots still have and must not bring back; only its id is known."""

    id: str
    stays: bool
    """Whether it is a document that stays, but without some of its words."""


class ForgottenRepository(Repository[ForgottenRow]):
    """What was forgotten while there were snapshots; kept as long as there is one."""

    table = LedgerTable("forgotten", ForgottenRow, ("id",))

    def gone_ids(self) -> set[str]:
        """Return the ids of rows that are gone, of any table."""
        return {each.id for each in self.select("NOT stays")}

    def blocked_ids(self) -> set[str]:
        """Return the ids of first parts of documents that stay without some of their words."""
        return {each.id for each in self.select("stays")}


class DeletedRow(Struct, frozen=True):
    """A row that was deleted by hand, with the document that it was of, if it was of any."""

    id: str
    document_id: str | None


class DeletionRepository(Repository[DeletedRow]):
    """Documents and memories that were deleted by hand and that something else may still have.

    An earlier version of a table has them, or a remaining document would yield them again; neither
    a repair nor reading the document again brings them back.
    """

    table = LedgerTable("deleted_rows", DeletedRow, ("id",))

    def blocked_documents(self) -> set[str]:
        """Return the documents whose files may still have words that were forgotten."""
        return {id_ for (id_,) in self.rows("SELECT document_id FROM blocked_documents")}

    def ids(self) -> set[str]:
        """Return the ids of all deleted rows."""
        return {id_ for (id_,) in self.rows("SELECT id FROM deleted_rows")}


class Deletions:
    """What one transaction deletes by hand, and what it writes again after a deletion."""

    def __init__(self, repository: DeletionRepository, forgotten: ForgottenRepository) -> None:
        self._repository = repository
        self._forgotten = forgotten
        self._before = repository.ids()
        self._gone_ids = forgotten.gone_ids()
        self._new: dict[str, str | None] = {}
        self._again: set[str] = set()
        self._removed_documents: set[str] = set()

    @property
    def returning_ids(self) -> set[str]:
        """The documents and memories that come back with an earlier state that has them."""
        return self.ids - self._gone_ids

    @property
    def ids(self) -> set[str]:
        """The documents and memories that must not come back."""
        return self._before.union(self._new) - self._again

    def keep(self, rows: Mapping[str, str | None]) -> None:
        """Record rows that are deleted by hand, each with the document that it was of."""
        self._new |= rows
        self._again.difference_update(rows)

    def remove_documents(self, documents: Iterable[str]) -> None:
        """Record documents that go with everything made of them, so that nothing can come back."""
        self._removed_documents.update(documents)

    def record_written(self, table: TableName, rows: pa.Table) -> None:
        """Record rows that are written: they are neither deleted nor forgotten any more."""
        if table not in DELETABLE or not (self._before or self._new or self._gone_ids):
            return
        import pyarrow as pa
        import pyarrow.compute as pc

        known = pa.array(sorted(self.ids | self._gone_ids), pa.string())
        self._again.update(rows["id"].filter(pc.is_in(rows["id"], known)).to_pylist())

    def note(self) -> None:
        """Write it all to the ledger."""
        if not (self._new or self._again or self._removed_documents):
            return
        self._repository.delete_each("document_id", self._removed_documents)
        self._repository.write(
            DeletedRow(id_, document)
            for id_, document in self._new.items()
            if id_ not in self._again and document not in self._removed_documents
        )
        self._repository.delete_each("id", self._again)
        self._forgotten.delete_each("id", self._again)
