"""The book of the ledger on what jobs have changed by themselves, so that it can be taken back.

It has ids, instants, numbers and flags, before and after the job; never a text.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from memctl.errors import LockedError
from memctl.store.books import Connections
from memctl.store.names import TableName

Value = int | float | str | None
"""Of a column; an instant in microseconds, a flag as 0 or 1."""

LOOKED_AT = "is_consolidated"
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


class ChangeBook:
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
                (LOOKED_AT,),
            ).fetchall()
        return [row[0] for row in rows]

    def later(self, job: int) -> int | None:
        """Return the newest job after one that has changed some of the same rows, if any has."""
        with self._ledger.reading() as connection:
            (found,) = connection.execute(
                "SELECT max(later.job_id) FROM job_changes AS own JOIN job_changes AS later"
                " USING (table_name, row_id) WHERE own.job_id = ?1 AND later.job_id > ?1"
                " AND own.column_name != ?2 AND later.column_name != ?2",
                (job, LOOKED_AT),
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
        (LOOKED_AT,),
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
