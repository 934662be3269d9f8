"""Facts that ended in favour of another one, and what becomes of them when that one goes.

Nothing is deleted here.  A fact never stays ended in favour of one that is not there any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from memctl.ids import next_version_id, root_id
from memctl.rows.references import in_portions
from memctl.rows.row_changes import put_rows, revive_memories, set_columns
from memctl.store.tables.filter_expressions import col

if TYPE_CHECKING:
    from memctl.store.tables.snapshot import Snapshot
    from memctl.store.tables.transaction import Transaction

LIVE_STATUSES = ("indexed", "processing", "pending")
"""Of a document that is neither superseded nor gone."""
_COLUMNS = (
    "id", "document_id", "type", "text", "namespace", "created_at", "version", "superseded_by",
)  # fmt: skip

Row = Mapping[str, Any]


class Lineage(NamedTuple):
    """What tells a memory's next version from another one that took its place."""

    document_id: str | None
    created_at: datetime
    version: int


def lineage_of(row: Row) -> Lineage:
    """Return that of a row of ``memories``."""
    return Lineage(row["document_id"], row["created_at"], row["version"])


def is_next_version(old: Lineage, new: Lineage) -> bool:
    """Return whether one memory was made out of the other, rather than that ended in its favour."""
    if old.document_id != new.document_id or new.version <= old.version:
        return False
    return old.document_id is None or old.created_at == new.created_at


def reinstate_without(transaction: Transaction, erased: Sequence[str]) -> None:
    """Let facts hold again as if they had never ended, for what they ended in favour of is erased.

    Insights stay ended, in favour of nothing: consolidation says anew what is left to be said.

    Args:
        transaction: What to write with.
        erased: Ids of the memories that go.  Where one of them may itself have been superseded,
            its row must still be there.
    """
    _name_successors(transaction, dict.fromkeys(_insights_before(transaction, erased)))
    ended = _EndedFacts.by(transaction.snapshot(), erased)
    later = {row["id"]: ended.later(row) for row in ended.rows}
    handed = {id_: other for id_, other in later.items() if other is not None}
    _name_successors(transaction, handed)
    rest = [row for row in ended.rows if row["id"] not in handed]
    alive = of_live_documents(transaction.snapshot(), rest)
    _name_successors(transaction, {row["id"]: None for row in rest if row["id"] not in alive})
    revive_memories(transaction, [row["id"] for row in rest if row["id"] in alive])


def reinstate_after(
    transaction: Transaction,
    document_ids: Sequence[str],
    now: datetime,
    successors: Mapping[str, str | None],
) -> None:
    """Let facts hold again from now on that ended in favour of a document which is history now.

    They hold as new rows, so that what was believed meanwhile can still be seen.  One that the
    document's newer version ends just the same stays ended.

    Args:
        transaction: What to write with, when the newer versions have been written.
        document_ids: Documents that have become history, parts by their own ids.
        now: From when on.
        successors: Root ids of these documents, each with that of its newer version.
    """
    snapshot = transaction.snapshot()
    made = col("document_id").is_in(document_ids) & (col("level") == "memory")
    gone = snapshot.scan("memories", made, ["id"])["id"].to_pylist()
    ended = _EndedFacts.by(snapshot, gone)
    if not ended.rows:
        return
    said = _statements(snapshot, [new for new in successors.values() if new is not None])
    handed: dict[str, str] = {}
    for row in ended.rows:
        by = ended.by_id[row["superseded_by"]]
        newer = successors.get(root_id(by["document_id"]))
        later = ended.later(row) or said.get((newer, by["type"], by["text"]))
        if later is not None:
            handed[row["id"]] = later
    _name_successors(transaction, handed)
    rest = [row for row in ended.rows if row["id"] not in handed]
    alive = of_live_documents(snapshot, rest)
    _reinstate_anew(transaction, [row for row in rest if row["id"] in alive], now)


# --- inside --------------------------------------------------------------------------------------


def _insights_before(transaction: Transaction, erased: Sequence[str]) -> list[str]:
    """The insights that ended in favour of some that go, and do not go themselves."""
    found = _superseded_by(transaction.snapshot(), erased, "insight")
    return sorted({row["id"] for row in found}.difference(erased))


def _superseded_by(snapshot: Snapshot, ids: Sequence[str], level: str) -> list[dict[str, Any]]:
    """Return the memories of a level that ended in favour of some."""
    found: list[dict[str, Any]] = []
    for some in in_portions(ids):
        where = col("superseded_by").is_in(some) & (col("level") == level)
        found += snapshot.scan("memories", where, _COLUMNS).to_pylist()
    return found


class _EndedFacts(Struct, frozen=True):
    """Facts that ended in favour of memories which go, and those memories."""

    rows: list[dict[str, Any]]
    by_id: dict[str, dict[str, Any]]
    """The memories being removed that still exist."""
    gone: frozenset[str]

    @classmethod
    def by(cls, snapshot: Snapshot, gone: Sequence[str]) -> _EndedFacts:
        """Find what ended in favour of these, their own earlier versions aside."""
        found = _superseded_by(snapshot, gone, "memory")
        if not found:
            return cls([], {}, frozenset())
        rows = snapshot.get("memories", gone, _COLUMNS).to_pylist()
        ended = cls([], {row["id"]: row for row in rows}, frozenset(gone))
        ended.rows.extend(row for row in found if ended._is_of_another(row))
        return ended

    def _is_of_another(self, row: Row) -> bool:
        by = self.by_id.get(row["superseded_by"])
        return row["id"] not in self.gone and (
            by is None or not is_next_version(lineage_of(row), lineage_of(by))
        )

    def later(self, row: Row) -> str | None:
        """Return what has taken the place of what took this one's, if that does not go too."""
        by: str | None = row["superseded_by"]
        seen: set[str] = set()
        while by is not None and by in self.gone and by not in seen:
            seen.add(by)
            by = self.by_id[by]["superseded_by"] if by in self.by_id else None
        return None if by in seen else by


def _statements(snapshot: Snapshot, roots: Sequence[str]) -> dict[tuple[str | None, str, str], str]:
    """What documents state, by root id, type and words."""
    if not roots:
        return {}
    parts = snapshot.scan("documents", col("root_id").is_in(roots), ["id"])["id"].to_pylist()
    where = col("document_id").is_in(parts) & (col("level") == "memory")
    rows = snapshot.scan("memories", where, ["id", "document_id", "type", "text"]).to_pylist()
    return {(root_id(row["document_id"]), row["type"], row["text"]): row["id"] for row in rows}


def of_live_documents(snapshot: Snapshot, rows: Iterable[Row]) -> set[str]:
    """Those whose documents are neither superseded nor gone."""
    documents = {row["id"]: row["document_id"] for row in rows}
    found = snapshot.get("documents", sorted(set(documents.values())), ["id", "status"])
    live = {row["id"] for row in found.to_pylist() if row["status"] in LIVE_STATUSES}
    return {id_ for id_, document in documents.items() if document in live}


def _name_successors(transaction: Transaction, successors: Mapping[str, str | None]) -> None:
    """Set what memories ended in favour of, without changing when."""
    newer = list(successors.values())
    set_columns(transaction, "memories", successors.keys(), superseded_by=newer)


def _reinstate_anew(transaction: Transaction, rows: Sequence[Row], now: datetime) -> None:
    """Write ended memories once more, as versions that hold from now on."""
    from memctl.schema.arrow_tables import with_column

    if not rows:
        return
    found = transaction.snapshot().get("memories", [row["id"] for row in rows])
    ids = [
        next_version_id(row["id"], row["version"] + 1, row["namespace"], row["type"], row["text"])
        for row in rows
    ]
    count = len(rows)
    changed: dict[str, Sequence[Any]] = {
        "id": ids,
        "version": [row["version"] + 1 for row in rows],
        "valid_from": [now] * count,
        "valid_to": [None] * count,
        "superseded_by": [None] * count,
        "is_consolidated": [False] * count,
    }
    for name, values in changed.items():
        found = with_column(found, name, values)
    put_rows(transaction, "memories", found)
    _name_successors(transaction, {row["id"]: new for row, new in zip(rows, ids, strict=True)})
