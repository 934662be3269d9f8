"""What changed or does not agree: pairs of statements on one thing, put together into series.

A pair is judged by what both say alike and where they differ.  Its weights are those of a logistic
regression on the labelled worlds of ``tests/training`` (``fit_changes.py`` there prints them).
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memctl.consolidation import insight_wording
from memctl.consolidation.insight_findings import Finding, subject
from memctl.consolidation.statements import Slot, Statement, StemWeights
from memctl.models import BUILTIN_EMBEDDER, load_embedder

_CHANGE = re.compile(
    r"\b(?:now|new|newly|moved?|moves|changed?|changes|postponed|instead|updated?|raised|increas\w+|"
    r"reduced|lowered|dropped|drop|no longer|any ?more|rescheduled|corrected|correction|delayed|"
    r"brought forward|(?:goes|went|came|is|come|put) (?:up|down)|rises|rose|as of|from now on|"
    r"since then|replaced|"
    r"slips?|slipped|pushed|cancelled|called off|in the end|after all|finally|final|back|stopped?|"
    r"rather than|revised|extended|shifted|upped|taken over|takes over|"
    r"statt|jetzt|nun|nicht mehr|neu|verschoben|doch|erst|ab sofort|steigt|"
    r"maintenant|finalement|désormais|au lieu|repoussé|plus de|décal\w+|"
    r"ahora|ya no|en vez|al final|nuevo|pasa a|invece|ora|adesso|alla fine|non più)\b|->|→",
    re.IGNORECASE,
)
_UNSURE = re.compile(r"\b(?:if|maybe|perhaps|might|could|would|e\.g\.|for example|option)\b", re.I)
_MOST_SHARING = 40
"""Statements that may share a stem for it still to bring two of them together."""
_LEAST_SHARED = 0.8
"""Weight of what two statements share, in documents that one stem tells apart (natural log)."""
_NUMERIC = ("money", "percent", "quantity", "number")
_LEAST_BARE = 10.0
"""A smaller number without a unit mostly counts something, or is a place in a list."""
_RATIO = 2.5
"""A value that changes becomes at most so many times as large or as small."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Two values of one thing."""

    earlier: Slot
    later: Slot
    head: frozenset[str]
    """Stems near both."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two statements on one thing that differ; ``earlier`` is the one said first, if known."""

    earlier: Statement
    later: Statement
    difference: Difference | None
    """Where they differ in a value."""
    score: float
    """Log odds that the later replaces or contradicts the earlier."""

    @property
    def shared(self) -> frozenset[str]:
        """The stems that both have."""
        return self.earlier.stems & self.later.stems


WEIGHTS = {
    "cosine": 2.3, "weightiest": 1.2, "of_shorter": 1.8, "number": 1.4, "date": 1.1, "head": 0.6,
    "cue": 1.3, "length": 1.1, "bias": -6.8,
}  # fmt: skip


def differing_pairs(found: Sequence[Statement], weights: StemWeights) -> list[Pair]:
    """Return pairs of statements of different documents or days, the likeliest change first."""
    candidates = list(_candidates(found, weights))
    places = sorted({at for pair in candidates for at in pair})
    row = {at: number for number, at in enumerate(places)}
    vectors = load_embedder(BUILTIN_EMBEDDER).embed([found[at].text for at in places])
    pairs = []
    for a, b in candidates:
        first, second = found[a], found[b]
        difference = _difference(first, second, weights)
        cosine = float(vectors[row[a]] @ vectors[row[b]])
        seen = features(first, second, difference, cosine, weights)
        score = WEIGHTS["bias"] + sum(WEIGHTS[name] * value for name, value in seen.items())
        pairs.append(Pair(first, second, difference, score))
    return sorted(pairs, key=lambda p: (-p.score, p.earlier.text, p.later.text))


def features(
    first: Statement,
    second: Statement,
    difference: Difference | None,
    cosine: float,
    weights: StemWeights,
) -> dict[str, float]:
    """Return what a pair is judged by."""
    shared = first.stems & second.stems
    both, one, other = map(weights.sum, (shared, first.stems, second.stems))
    kind = difference.later.value.kind if difference else ""
    return {
        "cosine": cosine,
        "weightiest": min(weights.most(shared), 3.0),
        "of_shorter": both / (min(one, other) + 1),
        "number": float(kind in _NUMERIC),
        "date": float(kind in ("date", "time")),
        "head": min(weights.sum(difference.head), 3.0) if difference else 0.0,
        "cue": float(bool(_CHANGE.search(second.text))),
        "length": -abs(math.log(len(first.text) / len(second.text))),
    }


def _candidates(found: Sequence[Statement], weights: StemWeights) -> Iterator[tuple[int, int]]:
    """Yield pairs of places that share what says enough, the earlier one first."""
    holders: dict[str, list[int]] = defaultdict(list)
    for at, each in enumerate(found):
        for stem in each.stems:
            holders[stem].append(at)
    pairs = {
        (a, b)
        for places in holders.values()
        if 1 < len(places) <= _MOST_SHARING
        for n, b in enumerate(places)
        for a in places[:n]
    }
    for a, b in sorted(pairs):
        first, second = found[a], found[b]
        if first.memory.namespace != second.memory.namespace:
            continue
        if first.document == second.document and first.day == second.day:
            continue
        if first.text.casefold() == second.text.casefold():
            continue
        if first.topic and second.topic and first.topic != second.topic:
            continue
        if weights.sum(first.stems & second.stems) < _LEAST_SHARED:
            continue
        if first.is_row and second.is_row and first.stems != second.stems:
            continue
        yield (b, a) if second.precedes(first) else (a, b)


def _difference(first: Statement, second: Statement, weights: StemWeights) -> Difference | None:
    """Return the two values that most likely are of the same thing, unless they agree."""
    best: tuple[float, Difference] | None = None
    for mine in first.slots:
        for theirs in second.slots:
            if not _comparable(mine, theirs):
                continue
            head = mine.near & theirs.near
            has_unit = mine.value.kind != "quantity" and bool(mine.value.unit)
            if not head and not (has_unit and mine.value.unit == theirs.value.unit):
                continue
            worth = weights.sum(head) + (mine.value.unit == theirs.value.unit)
            if best is None or worth > best[0]:
                best = (worth, Difference(mine, theirs, head))
    if best is None or best[1].earlier.value.agrees_with(best[1].later.value):
        return None
    return best[1]


def _comparable(first: Slot, second: Slot) -> bool:
    a, b = first.value, second.value
    if a.kind not in _NUMERIC or b.kind not in _NUMERIC:
        return a.kind == b.kind
    if a.kind != b.kind and "number" not in (a.kind, b.kind):
        return False
    if a.unit and b.unit and a.unit != b.unit:
        return False
    if a.kind == b.kind == "number" and (a.readings[0][0] or 0.0) < _LEAST_BARE:
        return False
    x, y = a.readings[-1][0] or 0.0, b.readings[-1][0] or 0.0
    return max(x, y) >= 3 and min(x, y) > 0 and max(x, y) / min(x, y) <= _RATIO


_LEAST_SCORE = -1.3
"""Of the pairs from here on about every third is labelled as one, and some others could be."""
_LEAST_WITHOUT_VALUES = 0.0
_LEAST_UNORDERED = 0.3
"""Two sources that say something on one day mostly speak of two things."""
_MOST_IN_SERIES = 6


def find_changes(found: Sequence[Statement], weights: StemWeights) -> list[Finding]:
    """Return what changed over time, and what does not agree."""
    distilled = {each.document for each in found if each.is_kept}
    pairs = [
        pair
        for pair in differing_pairs(found, weights)
        if (
            pair.earlier.is_kept
            or pair.later.is_kept
            or not {pair.earlier.document, pair.later.document} & distilled
        )
        and pair.score >= _least_score(pair)
        and (pair.difference or _CHANGE.search(pair.later.text))
        and not (_UNSURE.search(pair.earlier.text) and _UNSURE.search(pair.later.text))
    ]
    return [_finding(series, weights) for series in _series(pairs)]


def _least_score(pair: Pair) -> float:
    if not pair.earlier.precedes(pair.later):
        has_unit = pair.difference is not None and pair.difference.later.value.kind != "number"
        return _LEAST_UNORDERED if has_unit else math.inf
    return _LEAST_SCORE if pair.difference else _LEAST_WITHOUT_VALUES


def _series(pairs: Sequence[Pair]) -> list[list[Pair]]:
    """Put the pairs together that are on the same value, each statement in one series only."""
    told: set[int] = set()
    series = []
    for seed in pairs:
        if id(seed.earlier) in told or id(seed.later) in told:
            continue
        chain = [seed, *(pair for pair in pairs if _is_same_value(pair, seed))]
        told |= {id(each) for pair in chain for each in (pair.earlier, pair.later)}
        series.append(chain)
    return series


def _is_same_value(pair: Pair, seed: Pair) -> bool:
    """Tell whether a pair sets another value against one of the seed's two."""
    if pair is seed or pair.difference is None or seed.difference is None:
        return False
    ends = {id(seed.earlier): seed.difference.earlier, id(seed.later): seed.difference.later}
    is_at_end = (
        ends.get(id(pair.earlier)) == pair.difference.earlier
        or ends.get(id(pair.later)) == pair.difference.later
    )
    return is_at_end and bool(pair.difference.head & seed.difference.head)


def _finding(series: Sequence[Pair], weights: StemWeights) -> Finding:
    best = series[0]
    is_ordered = all(pair.earlier.precedes(pair.later) for pair in series)
    said = _in_order(series)
    about = subject(best.later, best.earlier, best.shared, weights)
    texts = [slot.value.text for _, slot in said if slot is not None]
    if not texts:
        head = "is not as it was any more" if is_ordered else "two sources differ"
    elif is_ordered:
        days = insight_wording.day_after_day([each.day for each, _ in said])
        head = f"went from {' to '.join(texts)} ({days})"
    else:
        head = f"{' or '.join(texts)}, the sources do not agree"
    stems = (best.difference and best.difference.head) or best.shared
    slot = best.difference.later.value.kind if best.difference else "state"
    return Finding(
        kind="change" if is_ordered else "contradiction",
        title=about,
        headline=f"{about}: {head}.",
        evidence=tuple(each for each, _ in said),
        about=" ".join([slot, *sorted(stems)]),
        strength=best.score + 0.3 * (len(said) - 2),
        values=tuple(texts) if len(texts) == len(said) else (),
    )


def _in_order(series: Sequence[Pair]) -> list[tuple[Statement, Slot | None]]:
    """Return the statements by day, each with its value, without those that repeat a value."""
    found: list[tuple[Statement, Slot | None]] = []
    for number, pair in enumerate(series):
        what = pair.difference
        for each in (
            (pair.earlier, what.earlier if what else None),
            (pair.later, what.later if what else None),
        ):
            if number == 0 or each[0].day not in {statement.day for statement, _ in found}:
                found.append(each)
    ordered: list[tuple[Statement, Slot | None]] = []
    for statement, slot in sorted(found, key=lambda item: item[0].day):
        last = ordered[-1][1] if ordered else None
        if slot is None or last is None or not slot.value.agrees_with(last.value):
            ordered.append((statement, slot))
    return ordered[:1] + ordered[1:][-(_MOST_IN_SERIES - 1) :]
