"""What happens again: the same kind of event on three days or more."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations

from memctl.consolidation import insight_wording
from memctl.consolidation.insight_findings import Finding, words_of
from memctl.consolidation.statements import Statement, StemWeights

_AGAIN = re.compile(
    r"\b(?:again|once more|another|(?:second|third|fourth|fifth|2nd|3rd|4th) time|"
    r"as (?:always|usual)|"
    r"each time|every time|always|keeps?|wieder|erneut|schon wieder|encore|de nouveau|otra vez|"
    r"de nuevo|di nuovo|ancora)\b",
    re.IGNORECASE,
)
_FEWEST_DAYS = 3
_MOST_STATEMENTS = 7
"""What more statements share is a subject, no event."""
_MOST_HOLDERS = 40
"""Statements that may have one of the two words."""
_WEIGHT_OF_TWO = 2.0
"""Least weight of the two words that all of them share."""
_MOST_STEMS = 24


def find_recurrences(found: Sequence[Statement], weights: StemWeights) -> list[Finding]:
    """Return what the sources tell of on three days or more, with what was the same each time."""
    counts = Counter(stem for each in found for stem in each.stems)
    fit = {stem for stem, count in counts.items() if _FEWEST_DAYS <= count <= _MOST_HOLDERS}
    holders: dict[tuple[str, frozenset[str]], list[Statement]] = defaultdict(list)
    for each in found:
        if each.is_row or each.topic or not each.is_dated or len(each.stems) > _MOST_STEMS:
            continue
        for two in combinations(sorted(each.stems & fit), 2):
            holders[each.memory.namespace, frozenset(two)].append(each)
    findings: dict[frozenset[int], Finding] = {}
    for (_, shared), told in holders.items():
        finding = _finding(shared, told, weights)
        key = frozenset(map(id, told))
        if finding and (key not in findings or finding.strength > findings[key].strength):
            findings[key] = finding
    return list(findings.values())


def _finding(
    two: frozenset[str], told: Sequence[Statement], weights: StemWeights
) -> Finding | None:
    days = sorted({each.day for each in told})
    documents = {each.document for each in told}
    if len(days) < _FEWEST_DAYS or len(documents) < 2 or len(told) > _MOST_STATEMENTS:
        return None
    again = sum(bool(_AGAIN.search(each.text)) for each in told)
    kept = sum(each.is_kept for each in told)
    if weights.sum(two) < _WEIGHT_OF_TWO or not again or kept < 2 or _is_name(two, told):
        return None
    shared = frozenset.intersection(*(each.stems for each in told))
    ordered = sorted(told, key=lambda each: each.day)
    title = " ".join(words_of(ordered[0], shared, weights))
    times = insight_wording.listed([insight_wording.day(day) for day in days])
    return Finding(
        kind="recurring",
        title=title,
        headline=f"{title}: told of on {len(days)} days ({times}).",
        evidence=tuple(ordered),
        about=" ".join(sorted(shared)),
        strength=0.3 * (len(days) - _FEWEST_DAYS) + 0.3 * again + 0.4 * (len(shared) - 2) - 0.2,
    )


def _is_name(two: frozenset[str], told: Sequence[Statement]) -> bool:
    """Tell whether what they share is written as a name: then it is no event, but who or what."""
    words = [word for each in told for word, own in each.words[1:] if own & two]
    return sum(word[:1].isupper() for word in words) > 0.6 * len(words)
