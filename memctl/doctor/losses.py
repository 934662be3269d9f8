"""What could not be read anywhere, and what of it is not there after all has been tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from memctl.doctor.findings import counted
from memctl.doctor.ids import Ids
from memctl.doctor.rows import Agreement
from memctl.ids import root_id
from memctl.store.lost_rows import LostRow
from memctl.store.names import TableName
from memctl.store.repair import Loss, Step

if TYPE_CHECKING:
    from memctl.store.snapshot import Snapshot

MOST_TOLD = 5
"""Rows that are lost and named each; every other format than a table has all."""
_NOUNS: Mapping[TableName, tuple[str, str]] = {
    "documents": ("document", "documents"),
    "memories": ("memory", "memories"),
    "relations": ("relation", "relations"),
}
"""What is told of; entities all follow from documents."""

Sources = Callable[[Iterable[str]], Mapping[str, str]]
"""Gives the files that documents are from, by the ids of the documents."""


@dataclass
class Losses:
    """The rows of one knowledge base that files no longer have."""

    rows: dict[TableName, int] = field(default_factory=dict)
    """So many rows of a table could not be read."""
    named: dict[TableName, dict[str, LostRow]] = field(default_factory=dict)
    """Those that something names: an index, a file, another row."""
    again: set[str] = field(default_factory=set)
    """Documents that are read again, by the id of their first part."""
    waits: bool = False
    """Whether some could not be read yet, and may be when this is done once more."""
    _before: dict[TableName, Ids] = field(default_factory=dict)

    @classmethod
    def found(cls, losses: Mapping[TableName, Loss], snapshot: Snapshot) -> Losses:
        """Take up what reading the tables has lost; the snapshot has the rest of them."""
        agreement = Agreement(snapshot)
        rows = {table: loss.rows for table, loss in losses.items() if loss.rows}
        named = {table: {row.id: row for row in losses[table].named} for table in rows}
        return cls(rows, named, _before={table: agreement.of(table) for table in rows})

    def note(self, table: TableName, rows: Iterable[LostRow]) -> None:
        """Note rows that are not there though something says that they were."""
        for row in rows:
            self.named.setdefault(table, {}).setdefault(row.id, row)

    def documents(self) -> Set[str]:
        """Return the documents of which memories are lost, by the id of their first part."""
        rows = self.named.get("memories", {}).values()
        return {root_id(row.document_id) for row in rows if row.document_id}

    @property
    def is_all_named(self) -> bool:
        """Whether of each lost memory it is known which one it is."""
        return len(self.named.get("memories", {})) >= self.rows.get("memories", 0)

    def told(self, snapshot: Snapshot, sources: Sources, *, planned: bool) -> Iterator[Step]:
        """Yield what is lost for good of each table.

        Args:
            snapshot: The tables by now.
            sources: Where documents are from.
            planned: Whether documents are still to be read again.
        """
        hopes = planned or self.waits
        for table in _NOUNS:
            missing = self._missing(table, snapshot, hopes)
            lost = max(self._not_back(table, snapshot, hopes), len(missing))
            if not lost:
                continue
            places = sources(row.document_id or row.id for row in missing)
            rows = tuple(
                replace(row, source=row.source or places.get(row.document_id or row.id, ""))
                for row in missing
            )
            verb = "would be lost" if planned else "lost"
            told = f"{counted(lost, *_NOUNS[table])} {verb} for good: {_named(rows, lost)}"
            yield Step(table, told, lost, rows)

    def _missing(self, table: TableName, snapshot: Snapshot, hopes: bool) -> list[LostRow]:
        named = self.named.get(table, {})
        there = set(snapshot.get(table, list(named), ["id"])["id"].to_pylist()) if named else set()
        rows = [row for row in named.values() if row.id not in there]
        return [row for row in rows if not (hopes and self._comes_back(row))]

    def _comes_back(self, row: LostRow) -> bool:
        return root_id(row.document_id or row.id) in self.again

    def _not_back(self, table: TableName, snapshot: Snapshot, hopes: bool) -> int:
        """Return how many of the lost rows have not come back."""
        lost = self.rows.get(table, 0)
        if not lost or (hopes and self.again):
            return 0
        batches = snapshot.batches(table, None, ["id"])
        return lost - sum(int(self._before[table].lacks(batch["id"]).sum()) for batch in batches)


def _named(rows: tuple[LostRow, ...], lost: int) -> str:
    told = [f"{row.id} ({row.source})" if row.source else row.id for row in rows[:MOST_TOLD]]
    if len(rows) > MOST_TOLD:
        told.append(f"{len(rows) - MOST_TOLD:,} others")
    if lost > len(rows):
        told.append(f"{lost - len(rows):,} that nothing names")
    return ", ".join(told)
