"""How well a skill does: effectiveness, health, and whether one version beats another.

Formulas alone; nothing is read or written.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime

from memctl.literals import Severity

SEVERITY_WEIGHTS: Mapping[Severity, int] = {"low": 1, "medium": 2, "high": 4, "critical": 8}
NEUTRAL_USES = 3
"""Uses, half of them successful, that are assumed before the first."""
RECENCY_DAYS = 30.0
"""After this many days without use, half of the recency is left."""
FADING, FADING_DAYS, LEAST_EFFECTIVENESS = 0.9, 30, 0.1
CLEAR_DIFFERENCE = 0.05
"""A difference that chance gives less often than this counts as one."""
_DAY = 86_400
_MOST_CONFLICTS = 8


def success_share(successes: int, failures: int) -> float:
    """Return the share of uses that went well, with a few neutral ones."""
    return (successes + NEUTRAL_USES / 2) / (successes + failures + NEUTRAL_USES)


def effectiveness(successes: int, failures: int, last_use: datetime, now: datetime) -> float:
    """Return the share of successes, less a tenth for each 30 days without use; at least 0.1."""
    share = success_share(successes, failures)
    periods = max(0, (now - last_use).days // FADING_DAYS)
    return min(share, max(LEAST_EFFECTIVENESS, share * math.pow(FADING, periods)))


def health(
    successes: int, failures: int, last_use: datetime, severities: Iterable[Severity], now: datetime
) -> float:
    """Return 0 to 1: half by success, three tenths by recency, a fifth by open conflicts.

    Args:
        successes: Of all versions.
        failures: Of all versions.
        last_use: The latest use; of a skill that was never used, when it was made.
        severities: Of its open conflicts.
        now: The present instant.
    """
    days = max(0.0, (now - last_use).total_seconds() / _DAY)
    weight = min(sum(SEVERITY_WEIGHTS[each] for each in severities), _MOST_CONFLICTS)
    return (
        0.5 * success_share(successes, failures)
        + 0.3 * math.pow(0.5, days / RECENCY_DAYS)
        + 0.2 * (1 - weight / _MOST_CONFLICTS)
    )


def conflict_priority(severity: Severity, uses: int) -> float:
    """Return how pressing a conflict is, by the uses of both skills in the last 30 days."""
    return SEVERITY_WEIGHTS[severity] * (1 + math.log2(1 + uses))


def chance_of_difference(one: tuple[int, int], other: tuple[int, int]) -> float:
    """Return how likely chance alone makes two versions differ as much (Fisher's exact test).

    Args:
        one: Successes and failures of one version.
        other: Those of another.
    """
    (a, b), (c, d) = one, other
    successes, total, drawn = a + c, a + b + c + d, a + b
    if not drawn or drawn == total:
        return 1.0
    logs = [_log_ways(successes, k, total, drawn) for k in _possible(successes, total, drawn)]
    seen = _log_ways(successes, a, total, drawn) + 1e-9
    return min(1.0, math.fsum(math.exp(each) for each in logs if each <= seen))


def _possible(successes: int, total: int, drawn: int) -> range:
    return range(max(0, drawn - (total - successes)), min(drawn, successes) + 1)


def _log_ways(successes: int, k: int, total: int, drawn: int) -> float:
    """The logarithm of the hypergeometric probability of k successes."""
    return (
        _log_choose(successes, k)
        + _log_choose(total - successes, drawn - k)
        - _log_choose(total, drawn)
    )


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
