"""What forgetting came to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Left:
    """A place where some of what was to be forgotten still is."""

    place: str
    why: str
    hint: str = ""
    """What to do about it."""


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """What was forgotten, or would be."""

    kb: str
    documents: int = 0
    memories: int = 0
    """Insights among them."""
    insights: int = 0
    redacted: tuple[str, ...] = ()
    """Documents that stay and have lost some of their text."""
    files: tuple[str, ...] = ()
    """Files below the knowledge base's folder that are gone."""
    yours: tuple[str, ...] = ()
    """Files elsewhere, or in an inbox that keeps its files, that are left alone."""
    snapshots: tuple[str, ...] = ()
    """Snapshots that were deleted; in a dry run, those that would have to be."""
    bytes_freed: int = 0
    left: tuple[Left, ...] = ()
    too_short: int = 0
    """So many texts were looked for in tables and the ledger alone: other bytes have something
    so short by chance."""
    completed: int = 0
    """Interrupted runs before this one that were completed by it."""
    dry_run: bool = False
    seconds: float = 0.0

    @property
    def told(self) -> str:
        """What was completed, in a few words."""
        forgets = "1 forget" if self.completed == 1 else f"{self.completed} forgets"
        told = f"completed {forgets} that had been cut off"
        places = len({left.place for left in self.left})
        return f"{told}; some of it is left in {places} places" if places else told
