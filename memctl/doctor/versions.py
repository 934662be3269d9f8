"""Memories that were edited, and their later versions: the id of a version says of which it is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memctl.ids import stated_memory_id
from memctl.store.filters import col

if TYPE_CHECKING:
    from memctl.store.snapshot import Snapshot
    from memctl.store.transaction import Transaction

_KIN = ("id", "document_id", "created_at", "version")
_COLUMNS = (*_KIN, "namespace", "type", "text", "valid_from")

Row = Mapping[str, Any]


def unended(snapshot: Snapshot) -> dict[str, Row]:
    """Return memories that hold beside their own next version, each with that version."""
    later: dict[tuple[str | None, datetime, int], list[Row]] = {}
    for row in snapshot.scan("memories", col("version") > 1, list(_COLUMNS)).to_pylist():
        if row["id"].startswith("m_"):
            place = (row["document_id"], row["created_at"], row["version"] - 1)
            later.setdefault(place, []).append(row)
    found: dict[str, Row] = {}
    held = col("superseded_by").is_null() & (col("level") == "memory")
    for batch in snapshot.batches("memories", held, list(_KIN)) if later else ():
        for row in batch.to_pylist():
            for new in later.get((row["document_id"], row["created_at"], row["version"]), ()):
                if _is_next(row["id"], new):
                    found[row["id"]] = new
    return found


def _is_next(old: str, new: Row) -> bool:
    salt = f"{old}/{new['version']}"
    made = stated_memory_id(new["namespace"], new["type"], new["text"], salt=salt)
    return bool(made == new["id"])


def end(transaction: Transaction, pairs: Mapping[str, Row]) -> None:
    """Let memories end where their next versions begin."""
    import pyarrow as pa

    columns = {
        "id": pa.array(pairs.keys(), pa.string()),
        "valid_to": pa.array(
            [row["valid_from"] for row in pairs.values()], pa.timestamp("us", tz="UTC")
        ),
        "superseded_by": pa.array([row["id"] for row in pairs.values()], pa.string()),
    }
    transaction.update("memories", pa.table(columns))
