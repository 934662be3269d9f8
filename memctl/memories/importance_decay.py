"""How the importance of memories fades while they are not used, computed when read.

Nothing is rewritten: what a row holds is the base value, so that it cannot drift, and a memory
that is used again counts as it did.  Knows rows; never who asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from memctl.literals import LEARNING, STATED

if TYPE_CHECKING:
    from memctl.store.ledger.work_repositories import Confirmation

IMPORTANT = 0.8
"""Memories of this importance and above are never archived."""
PERMANENT_TYPES = ("important_fact", "important_information", "memories", "decision")
"""Types of memories that were asked to be kept: they neither fade nor are archived."""
CONFIRMATION = 0.1
"""The share of what its importance lacks to 1 that a learning gains by a confirmation."""
COLUMNS = (
    "id", "level", "type", "method", "source_type", "importance", "valid_from", "last_accessed_at",
)  # fmt: skip
"""What has to be known of a memory to work out its importance."""
_SECONDS_A_DAY = 86_400
_PROMOTED = "promoted"


def decay_importance(base: float, idle_days: float, half_life: float, floor: float) -> float:
    """Return what is left of an importance after a time without use.

    It is floor + (base - floor) x 0.5 ^ (idle days / half-life); below the floor it stays.
    """
    if base <= floor:
        return base
    return float(floor + (base - floor) * 0.5 ** (max(idle_days, 0.0) / half_life))


def staleness(idle_days: float, half_life: float, importance: float) -> float:
    """Return how stale a memory is, from 0 to 1: the longer unused and less important, the more.

    It is (1 - 0.5 ^ (idle days / half-life)) x (1 - importance).
    """
    return float((1 - 0.5 ** (max(idle_days, 0.0) / half_life)) * (1 - importance))


def raise_by_confirmations(base: float, times: int) -> float:
    """Return the importance of a learning that was confirmed this often."""
    return float(1 - (1 - base) * (1 - CONFIRMATION) ** times)


def is_stated(row: Mapping[str, Any]) -> bool:
    """Return whether a person or an agent said so in these words."""
    is_promoted = row["method"] == _PROMOTED and row["source_type"] == "user"
    return bool(is_promoted or row["method"] == STATED)


def is_distilled(row: Mapping[str, Any]) -> bool:
    """Return whether a memory was distilled, and not asked to be kept."""
    is_permanent = row["type"] in PERMANENT_TYPES or is_stated(row)
    return row["level"] == "memory" and not is_permanent


class Decay(Struct, frozen=True):
    """How importance fades in one knowledge base."""

    half_life: float
    """Days without use after which what is above the floor has halved."""
    floor: float
    """Importance never fades below it."""
    confirmations: Mapping[str, list[Confirmation]] = field(default_factory=dict)
    """Those of learnings, by the id of the memory."""

    def importance(self, row: Mapping[str, Any], now: datetime) -> float:
        """Return the importance of a memory as it is now.

        Args:
            row: Its ``COLUMNS``.
            now: The time.
        """
        base: float = row["importance"]
        known = self.confirmations.get(row["id"], [])
        if row["type"] == LEARNING:
            base = raise_by_confirmations(base, len(known))
        elif not is_distilled(row):
            return base
        return decay_importance(base, self.idle_days(row, now), self.half_life, self.floor)

    def idle_days(self, row: Mapping[str, Any], now: datetime) -> float:
        """Return for how many days a memory was neither shown nor confirmed."""
        used = [row["last_accessed_at"] or row["valid_from"], row["valid_from"]]
        used += [each.at for each in self.confirmations.get(row["id"], [])]
        return float(max(0.0, (now - max(used)).total_seconds() / _SECONDS_A_DAY))
