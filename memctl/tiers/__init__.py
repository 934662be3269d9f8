"""Memory tiers: values by key for minutes, hours or for good, and the router over them.

Knows what lasts how long and who may read it; never how a question is answered.
"""

from memctl.tiers.promotion import PromotedEntry, PromotionReport
from memctl.tiers.router import Router, TierHit, TierStatistics, TierValue
from memctl.tiers.short_term import ShortTermMemory
from memctl.tiers.working_memory import WorkingMemory

__all__ = [
    "PromotedEntry",
    "PromotionReport",
    "Router",
    "ShortTermMemory",
    "TierHit",
    "TierStatistics",
    "TierValue",
    "WorkingMemory",
]
