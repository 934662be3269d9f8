"""The names of the tables and of jobs; importing them costs nothing."""

from __future__ import annotations

from typing import Literal

TableName = Literal["documents", "memories", "entities", "relations"]
TABLES: tuple[TableName, ...] = ("documents", "memories", "entities", "relations")

FORGET = "forget"
"""The kind of job that removes something for good."""
WAITS_FOR = "watch_waits_for"
"""Where the ledger keeps what the watcher waits for; "" when it does not."""
WATCH_PROGRESS = "watch_works_on"
"""Where the ledger keeps how far a big file is; "" when none is in work."""
CONSOLIDATION = "consolidation"
"""The kind of job that draws insights from memories."""
COMPARISON = "comparison"
"""The kind of job that compares new facts with what is known."""
UPKEEP = "upkeep"
"""The kind of job that keeps the tables fast."""
PROMOTION = "promotion"
"""The kind of job that makes memories of short-term entries."""
REFLECTED = "reflect/1"
"""The method of memories that say what was found on looking back; they go with what they rest on,
as insights do."""
