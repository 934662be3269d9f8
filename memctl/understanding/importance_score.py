"""How much a text matters, from 0 to 1, as the sum of named signals.

Shares are whole multiples of 1/1024, so that their sum is exact.  Nothing here is learnt: each
signal is a reason that can be shown to a person.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from memctl.records import Distilled

_STEPS = 1024

_WEIGHTS: Mapping[str, int] = {
    "base": 122,
    "triggers": 204,
    "decisions": 133,
    "commitments": 102,
    "dates": 72,
    "numbers": 72,
    "entities": 72,
    "length": 72,
    "structure": 41,
    "novelty": 134,
}
"""The most that each signal can give, in steps; together exactly 1."""

_TRIGGERS = re.compile(
    r"\b(?:remember|reminder|don['’]t forget|do not forget|important(?:ly)?|deadline|urgent(?:ly)?|"
    r"asap|critical(?:ly)?|crucial|essential|warning|mandatory|must(?:n['’]t)?|emergency|priority|"
    r"wichtig|dringend|urgente|importante)\b"
)
_TRIGGER_SIGNS = (
    "remember", "remind", "forget", "import", "deadline", "urgent", "asap", "critical", "crucial",
    "essential", "warning", "mandatory", "must", "emergency", "priority", "wichtig", "dringend",
)  # fmt: skip
_NUMBERS = re.compile(r"\d[\d.,:/-]*")


class ImportanceInputs(Struct, frozen=True):
    """What was found in a text, as far as its importance depends on it."""

    text: str
    entities: int = 0
    dates: int = 0
    headings: int = 0
    tables: int = 0
    distilled: Sequence[Distilled] = ()


def score_importance(evidence: ImportanceInputs) -> tuple[float, dict[str, float]]:
    """Return the importance and the signals that add up to it exactly."""
    shares = _shares(evidence, evidence.text[:20_000])
    signals = {name: _signal(name, share) for name, share in shares.items() if share > 0}
    return sum(signals.values()), signals


def with_novelty(signals: Mapping[str, float], novelty: float) -> tuple[float, dict[str, float]]:
    """Return importance and signals once it is known how new a text is, 0 to 1."""
    found = {**signals, "novelty": _signal("novelty", novelty)}
    return sum(found.values()), found


def _signal(name: str, share: float) -> float:
    weight = _WEIGHTS[name]
    return (weight if share >= 1 else round(weight * share) if share > 0 else 0) / _STEPS


def _triggers(sample: str) -> int:
    """Count the words that call for attention; most texts have no sign of one."""
    if not any(map(sample.__contains__, _TRIGGER_SIGNS)):
        return 0
    return len(_TRIGGERS.findall(sample))


def _shares(evidence: ImportanceInputs, sample: str) -> dict[str, float]:
    """How strong each signal is, 0 to 1 and beyond."""
    kinds = [found.type for found in evidence.distilled]
    triggers = _triggers(sample.lower()) + kinds.count("important_fact")
    return {
        "base": 1.0,
        "triggers": triggers / 2,
        "decisions": kinds.count("decision") / 1.5,
        "commitments": (kinds.count("plan") + 0.5 * kinds.count("preference")) / 2,
        "dates": evidence.dates / 3,
        "numbers": len(_NUMBERS.findall(sample[:4000])) / 8,
        "entities": evidence.entities / 5,
        "length": len(evidence.text) / 3000,
        "structure": evidence.headings / 6 + evidence.tables / 2,
    }
