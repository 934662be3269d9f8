"""What the watcher tells whoever listens: one record for each thing that happened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

EventKind = Literal[
    "started",
    "stopped",
    "serving",
    "left",
    "polling",
    "working",
    "ingested",
    "known",
    "superseded",
    "renamed",
    "gone",
    "failed",
    "put_back",
    "forgotten",
    "waiting",
    "resumed",
    "compared",
    "consolidated",
    "upkeep",
]


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One thing that happened; ``source`` is the file it is about, ``kb`` "" for the daemon."""

    at: datetime
    kind: EventKind
    kb: str = ""
    source: str = ""
    message: str = ""
    hint: str = ""
    document_id: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Turn:
    """What one look at a knowledge base, or at an inbox, came to."""

    worked: bool
    look_again_in: float | None = None
    """Seconds until something that is there may be taken; None when there is nothing."""


@dataclass(frozen=True, slots=True)
class Left:
    """What had to be left in one knowledge base, and why."""

    kb: str
    files: tuple[str, ...]
    """All that wait there, where the store failed; none where the reason names what it is about."""
    reason: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Drained:
    """What a watch that ends by itself came to."""

    dealt_with: int = 0
    """Files that were remembered or moved to ``failed/``, or followed where they stay."""
    left: tuple[Left, ...] = ()


Listener = Callable[[WatchEvent], None]
