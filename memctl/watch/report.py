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
    "ingested",
    "known",
    "superseded",
    "renamed",
    "gone",
    "failed",
    "put_back",
    "waiting",
    "resumed",
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


Listener = Callable[[WatchEvent], None]
