"""Values that gave way to later ones when two knowledge bases became one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from memctl.store.ledger.repository import LedgerTable


@dataclass(frozen=True, slots=True)
class MergedValue:
    """A row that another one of the same key, written later, took the place of."""

    table_name: str
    key: str
    """The columns that the row is found by, as JSON."""
    value: str
    """All its columns, as JSON."""
    origin: str
    """The knowledge base that it was in."""
    written_at: datetime
    namespace: str = ""
    session_id: str = ""


MERGED_VALUES: LedgerTable[MergedValue] = LedgerTable(
    "merged_values", MergedValue, ("table_name", "key", "value"), "written_at"
)
