"""The book of the ledger on what jobs have changed by themselves, so that it can be taken back.

It has ids, instants, numbers and flags, before and after the job; never a text.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from memctl.errors import LockedError
from memctl.schema.table_names import TableName
from memctl.store.ledger.work_repositories import Connections, from_text, to_text

if TYPE_CHECKING:
    import pyarrow as pa

Value = int | float | str | None
"""Of a column; an instant in microseconds, a flag as 0 or 1."""

CONSOLIDATED_FLAG = "is_consolidated"
"""The column that says that a memory has been looked at; alone it changes nothing anyone sees."""
_ADDED = "id"
"""The column under which a row is noted that was not there before."""
_KEPT_JOBS = 20
"""Of each kind."""
_KEPT_CHANGES = 200_000
"""Of all jobs but the latest one; some 20 MB."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """What a job has changed in one row, or with which values it has added it."""

    table: TableName
    id: str
    old: Mapping[str, Value]
    """The columns that it has changed, as they were; of a row that it has added, none."""
    new: Mapping[str, Value]
    """The same columns as it left them; of a connection that it has added, none."""
    is_added: bool = False


class ChangeRepository:
    """What the latest jobs have changed, by their numbers in the book of jobs."""

    def __init__(self, ledger: Connections) -> None:
        self._ledger = ledger

    def add(self, job: int, changes: Iterable[RowChange]) -> None:
        """Note what a commit of a job changes; of what it has changed before, the latest counts.

        Raises:
            LockedError: The job has been taken back while it ran.
        """
        with self._ledger.transaction() as connection:
            _require_standing(connection, job)
            known = connection.execute("SELECT 1 FROM job_changes WHERE job_id = ?", (job,))
            if known.fetchone() is None:
                _trim(connection)
            connection.executemany(
                "INSERT INTO job_changes VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET new = excluded.new",
                ((job, *row) for change in changes for row in _rows(change)),
            )

    def of(self, job: int) -> list[RowChange]:
        """Return what a job has changed."""
        with self._ledger.reading() as connection:
            rows = connection.execute(
                "SELECT table_name, row_id, column_name, old, new FROM job_changes"
                " WHERE job_id = ? ORDER BY table_name, row_id",
                (job,),
            ).fetchall()
        columns: dict[tuple[TableName, str], dict[str, tuple[Value, Value]]] = {}
        for table, id_, column, old, new in rows:
            columns.setdefault((table, id_), {})[column] = (old, new)
        return [_change(table, id_, found) for (table, id_), found in columns.items()]

    def jobs(self) -> list[int]:
        """Return the jobs that have changed more than what has been looked at, newest first."""
        with self._ledger.reading() as connection:
            rows = connection.execute(
                "SELECT DISTINCT job_id FROM job_changes WHERE column_name != ?"
                " ORDER BY job_id DESC",
                (CONSOLIDATED_FLAG,),
            ).fetchall()
        return [row[0] for row in rows]

    def later(self, job: int) -> int | None:
        """Return the newest job after one that has changed some of the same rows, if any has."""
        with self._ledger.reading() as connection:
            (found,) = connection.execute(
                "SELECT max(later.job_id) FROM job_changes AS own JOIN job_changes AS later"
                " USING (table_name, row_id) WHERE own.job_id = ?1 AND later.job_id > ?1"
                " AND own.column_name != ?2 AND later.column_name != ?2",
                (job, CONSOLIDATED_FLAG),
            ).fetchone()
        return None if found is None else int(found)

    def hand_on(self, change: RowChange, row: Mapping[str, Value]) -> None:
        """Have jobs that had left a row as a later one found it know it as it stays instead.

        Args:
            change: What the later one has changed in it.
            row: How it stays when that one has been taken back.
        """
        values = [(row[name], change.id, name, old) for name, old in change.old.items()]
        with self._ledger.transaction() as connection:
            connection.executemany(
                "UPDATE job_changes SET new = ? WHERE row_id = ? AND column_name = ? AND new IS ?",
                values,
            )

    def drop(self, job: int) -> None:
        """Strike what a job has changed."""
        with self._ledger.transaction() as connection:
            connection.execute("DELETE FROM job_changes WHERE job_id = ?", (job,))


def _require_standing(connection: sqlite3.Connection, job: int) -> None:
    row = connection.execute("SELECT state FROM jobs WHERE id = ?", (job,)).fetchone()
    if row is not None and row[0] == "undone":
        raise LockedError(f"job {job} was taken back while it ran", "run it again if it is wanted")


def _trim(connection: sqlite3.Connection) -> None:
    """Strike the oldest jobs of each kind, those with very many changes, and idle ones."""
    rows = connection.execute(
        "SELECT job_id, kind, count(*), sum(column_name != ?) OR state = 'running'"
        " FROM job_changes JOIN jobs ON jobs.id = job_id GROUP BY job_id ORDER BY job_id DESC",
        (CONSOLIDATED_FLAG,),
    ).fetchall()
    of_kind: Counter[str] = Counter()
    changes = 0
    for number, (job, kind, count, matters) in enumerate(rows):
        of_kind[kind] += matters
        changes += count if number else 0
        if not matters or of_kind[kind] > _KEPT_JOBS or changes > _KEPT_CHANGES:
            connection.execute("DELETE FROM job_changes WHERE job_id = ?", (job,))


def _rows(change: RowChange) -> Iterable[tuple[TableName, str, str, Value, Value]]:
    if change.is_added:
        yield change.table, change.id, _ADDED, None, change.id
    for column, new in change.new.items():
        yield change.table, change.id, column, change.old.get(column), new


def _change(table: TableName, id_: str, columns: Mapping[str, tuple[Value, Value]]) -> RowChange:
    is_added = _ADDED in columns
    known = {name: pair for name, pair in columns.items() if name != _ADDED}
    old = {} if is_added else {name: pair[0] for name, pair in known.items()}
    return RowChange(table, id_, old, {name: pair[1] for name, pair in known.items()}, is_added)


class NameDecision(NamedTuple):
    """What somebody said of two names, each as names are compared."""

    one: str
    other: str
    same: bool
    at: datetime


class NameDecisionRepository:
    """Decisions on names by hand; a later one on the same two takes the place of an earlier one."""

    def __init__(self, ledger: Connections) -> None:
        self._ledger = ledger

    def put(self, pairs: Iterable[tuple[str, str]], now: datetime, *, same: bool) -> None:
        """Note of pairs of names that they mean the same, or that they do not."""
        ordered = map(sorted, pairs)
        self.restore(NameDecision(one, other, same, now) for one, other in ordered)

    def restore(self, decisions: Iterable[NameDecision]) -> None:
        """Bring decisions back as they were."""
        rows = [(each.one, each.other, each.same, to_text(each.at)) for each in decisions]
        with self._ledger.transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO name_decisions VALUES (?, ?, ?, ?)", rows
            )

    def all(self) -> list[NameDecision]:
        """Return all decisions, the oldest first."""
        with self._ledger.reading() as connection:
            rows = connection.execute(
                "SELECT one, other, same, at FROM name_decisions ORDER BY at, one, other"
            ).fetchall()
        return [
            NameDecision(one, other, bool(same), from_text(at)) for one, other, same, at in rows
        ]


class ForgottenRepository:
    """Rows that no snapshot may bring back, and documents that it must not bring words back to."""

    def __init__(self, ledger: Connections) -> None:
        self._ledger = ledger

    def gone(self) -> set[str]:
        """Return the ids of rows that are gone, of any table."""
        return self._ids(stays=False)

    def blocked(self) -> set[str]:
        """Return the ids of first parts of documents that stay without some of their words."""
        return self._ids(stays=True)

    def remove(self, ids: Iterable[str]) -> None:
        """Strike rows that somebody has written again."""
        with self._ledger.transaction() as connection:
            connection.executemany("DELETE FROM forgotten WHERE id = ?", [(i,) for i in ids])

    def _ids(self, *, stays: bool) -> set[str]:
        with self._ledger.reading() as connection:
            rows = connection.execute("SELECT id FROM forgotten WHERE stays = ?", (stays,))
            return {row[0] for row in rows.fetchall()}


DELETABLE: tuple[TableName, ...] = ("documents", "memories")
"""Tables of which rows are deleted by hand."""


class DeletionRepository:
    """Documents and memories that were deleted by hand though something may have them still.

    An earlier version of a table has them, or a document that stays would give them again: neither
    a repair nor another reading of the document brings them back.
    """

    def __init__(self, ledger: Connections) -> None:
        self._ledger = ledger

    def add(self, rows: Mapping[str, str | None]) -> None:
        """Note rows, each with the document that it was of, if of any."""
        with self._ledger.transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO deleted_rows VALUES (?, ?)", rows.items()
            )

    def remove(self, ids: Iterable[str]) -> None:
        """Strike rows that are there again."""
        with self._ledger.transaction() as connection:
            connection.executemany("DELETE FROM deleted_rows WHERE id = ?", [(i,) for i in ids])

    def remove_of(self, documents: Iterable[str]) -> None:
        """Strike what was of documents that are gone with all that was made of them."""
        with self._ledger.transaction() as connection:
            connection.executemany(
                "DELETE FROM deleted_rows WHERE document_id = ?", [(i,) for i in documents]
            )

    def blocked(self) -> set[str]:
        """Return the documents of which words were forgotten that their files may still have."""
        with self._ledger.reading() as connection:
            rows = connection.execute("SELECT document_id FROM blocked_documents").fetchall()
        return {row[0] for row in rows}

    def all(self) -> set[str]:
        """Return the ids of all."""
        with self._ledger.reading() as connection:
            return {row[0] for row in connection.execute("SELECT id FROM deleted_rows").fetchall()}


class Deletions:
    """What one change deletes by hand, and what it writes again of what was deleted before."""

    def __init__(self, book: DeletionRepository, forgotten: ForgottenRepository) -> None:
        self._book = book
        self._forgotten = forgotten
        self._before = book.all()
        self._gone = forgotten.gone()
        self._new: dict[str, str | None] = {}
        self._again: set[str] = set()
        self._bygone: set[str] = set()

    @property
    def returning(self) -> set[str]:
        """The documents and memories that come back with an earlier state that has them."""
        return self.ids - self._gone

    @property
    def ids(self) -> set[str]:
        """The documents and memories that must not come back."""
        return self._before.union(self._new) - self._again

    def keep(self, rows: Mapping[str, str | None]) -> None:
        """Note that rows are deleted by hand; see ``DeletionBook.add``."""
        self._new |= rows
        self._again.difference_update(rows)

    def let_go_of(self, documents: Iterable[str]) -> None:
        """Note that documents go with all that was made of them: what was of them cannot return."""
        self._bygone.update(documents)

    def written(self, table: TableName, rows: pa.Table) -> None:
        """Note rows that somebody writes: they are neither deleted nor forgotten any more."""
        if table not in DELETABLE or not (self._before or self._new or self._gone):
            return
        import pyarrow as pa
        import pyarrow.compute as pc

        known = pa.array(sorted(self.ids | self._gone), pa.string())
        self._again.update(rows["id"].filter(pc.is_in(rows["id"], known)).to_pylist())

    def note(self) -> None:
        """Write it all into the book."""
        if not (self._new or self._again or self._bygone):
            return
        self._book.remove_of(self._bygone)
        new = self._new.items()
        self._book.add({i: of for i, of in new if i not in self._again and of not in self._bygone})
        self._book.remove(self._again)
        self._forgotten.remove(self._again)
