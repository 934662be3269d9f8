"""What happens again: the same kind of event on three days or more."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import date
from itertools import combinations, pairwise

from memctl.consolidation import insight_wording
from memctl.consolidation.insight_findings import Finding, phrases
from memctl.consolidation.statements import Statement, StemWeights, relatedness
from memctl.language.term_analysis import terms
from memctl.language.word_lists import word_set

_AGAIN = re.compile(
    r"\b(?:again|once more|another|(?:second|third|fourth|fifth|2nd|3rd|4th) time|"
    r"as (?:always|usual)|"
    r"each time|every time|always|keeps? (?:on )?\w+ing|wieder|erneut|schon wieder|encore|"
    r"de nouveau|otra vez|de nuevo|di nuovo|ancora)\b",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(
    r"(?:(?<!\w)(?:can|will|may|must|[Cc]ould|[Ww]ould|[Ss]hall|[Ss]hould|[Mm]ight|kann|könnte|wird|"
    r"würde|peut|pourrait|puede|podría|può|potrebbe)|['’](?:ll|d))\b"
)
"""Before a verb of what has not happened: "then we can talk about it again".  Will and May are
names."""
_CONDITION = re.compile(r"\b(?:if|unless|falls)\b", re.IGNORECASE)
_OF_NOUN = re.compile(r"\b(?:an?|the|my|your|our|his|her|its|their)\s+$", re.IGNORECASE)
"""Before what is no auxiliary but a noun: "the can", "his will"."""
_HAPPENED = re.compile(
    r"(?<!\bbe )(?<!\bget )(?<!\bhave )(?<!\bbeen )"
    r"\b(?:\w{2,}ed|was|were|did|had|went|came|broke|fell|got)\b",
    re.IGNORECASE,
)
"""A past verb, which no auxiliary before it goes with."""
_CLAUSE_END = re.compile(r"[,.;:!?](?=\s|$)|\s[-–—]\s")
_FEWEST_DAYS = 3
_MOST_DAYS = 6
"""What is mentioned on more days is a subject, not an event."""
_MOST_HOLDERS = 40
"""Statements that may have one of the two words."""
_WEIGHT_OF_TWO = 0.5
"""Least weight of the two words that all of them share, where a rare word has 1."""
_MOST_STEMS = 30
_USUAL_SHARED = 1.3
"""Weight of what nearly all share, where a rare word has 1."""
_LEAST_RELATED = 1.2
"""Things that only share their words are less related than this."""
_SAME_WORDING = 0.7
"""Share of common words of a sentence and the same one in another version of its document."""
_WORDS = re.compile(r"[^\W\d_][\w'’-]*")
_ENDING = re.compile(r"(?<=..)(?:['’]s|s['’]|ies|es|ed|ing|s|y|e)$")
_CURRENCIES = word_set("eur euro usd dollar gbp pound chf franc jpy")
_APART = 400
"""Days from one time to the next, after which it is not the same thing that happens again."""


def find_recurrences(found: Sequence[Statement], weights: StemWeights) -> list[Finding]:
    """Return what the sources tell of on three days or more, with what was the same each time."""
    events = [
        each
        for each in found
        if not (each.is_row or each.topic or each.is_question)
        and each.is_dated
        and len(each.around) <= _MOST_STEMS
    ]
    counts = Counter(stem for each in events for stem in each.around)
    fit = {stem for stem, count in counts.items() if _FEWEST_DAYS <= count <= _MOST_HOLDERS}
    least = _WEIGHT_OF_TWO * weights.rare
    holders: dict[tuple[str, frozenset[str]], list[Statement]] = defaultdict(list)
    for each in events:
        for two in combinations(sorted(each.around & fit), 2):
            if not each.stems.isdisjoint(two) and weights.sum(two) >= least:
                holders[each.memory.namespace, frozenset(two)].append(each)
    findings: dict[frozenset[int], Finding] = {}
    for (_, shared), statements in holders.items():
        finding = _recurrence_finding(shared, statements, weights)
        key = frozenset(map(id, finding.evidence)) if finding else frozenset()
        if finding and (key not in findings or finding.strength > findings[key].strength):
            findings[key] = finding
    likely = [each for each in findings.values() if each.strength > 0]
    return [each for each in likely if _is_one_event(each.evidence)]


def _is_one_event(times: Sequence[Statement]) -> bool:
    """Return whether what happened each time is like what happened the time before."""
    return all(relatedness(one, other) >= _LEAST_RELATED for one, other in pairwise(times))


def _recurrence_finding(
    two: frozenset[str], statements: Sequence[Statement], weights: StemWeights
) -> Finding | None:
    days = sorted({each.day for each in statements})
    if not _FEWEST_DAYS <= len(days) <= _MOST_DAYS:
        return None
    if any((b - a).days > _APART for a, b in pairwise(days)):
        return None
    times = _one_a_day(statements, two, weights)
    if any(map(_restates, *zip(*combinations(times, 2), strict=True))):
        return None
    if len({each.document for each in times}) < 2:
        return None
    again = sum(_has_happened_again(each.quote) for each in times)
    kept = sum(each.is_kept for each in times)
    if not again or kept < 2 or _is_name(two, times):
        return None
    shared = _same_words(frozenset.intersection(*(each.around for each in times)), times)
    if not two <= shared:
        return None
    most = frozenset(
        stem
        for stem, count in Counter(stem for each in times for stem in each.around).items()
        if count >= max(_FEWEST_DAYS, len(times) - 1)
    )
    words = insight_wording.join_items(
        [insight_wording.quote(each) for each in phrases(times, shared, weights)]
    )
    when = insight_wording.join_items([insight_wording.day(day) for day in days])
    return Finding(
        kind="recurring",
        title=words.replace("“", "").replace("”", ""),
        headline=f"It happened on {len(days)} days ({when}), each time with {words}.",
        evidence=tuple(times),
        about=" ".join(sorted(shared)),
        strength=0.4 * (len(days) - _FEWEST_DAYS)
        + 0.4 * again
        + 1.4 * (min(weights.sum(most) / weights.rare, 2 * _USUAL_SHARED) - _USUAL_SHARED)
        + 0.3 * (kept - len(times))
        + 0.4,
    )


def _has_happened_again(text: str) -> bool:
    """Return whether a text says that something happened again, not that it may."""
    return any(
        not _is_supposed(_CLAUSE_END.split(text[: said.start()])[-1])
        for said in _AGAIN.finditer(text)
    )


def _is_supposed(clause: str) -> bool:
    """Return whether what a clause says before "again" may happen."""
    return _CONDITION.search(clause) is not None or any(
        not _OF_NOUN.search(clause[: modal.start()]) and not _HAPPENED.search(clause, modal.end())
        for modal in _SUPPOSED.finditer(clause)
    )


def _one_a_day(
    statements: Sequence[Statement], two: frozenset[str], weights: StemWeights
) -> list[Statement]:
    """Return for each day the statement that says most, oldest first."""
    daily: dict[date, list[Statement]] = defaultdict(list)
    for each in statements:
        daily[each.day].append(each)
    common = Counter(stem for each in statements for stem in each.around)
    shared = {stem for stem, count in common.items() if count > 1}

    def worth(each: Statement) -> tuple[float, float]:
        """How much of the two words is in a statement, and of what others have around it."""
        return weights.sum(each.stems & two), weights.sum(each.around & shared)

    return [max(daily[day], key=worth) for day in sorted(daily)]


def _restates(one: Statement, other: Statement) -> bool:
    """Return whether two statements have the same words, as in two versions of one plan."""
    return len(one.stems & other.stems) > _SAME_WORDING * len(one.stems | other.stems)


def _same_words(stems: frozenset[str], times: Sequence[Statement]) -> frozenset[str]:
    """Return the stems that stand for one word each time; "customs" is no form of "customers".

    Currencies are no words of what happens.
    """
    return frozenset(
        stem
        for stem in stems
        if set.intersection(*(_bare_words(stem, each) for each in times)) - _CURRENCIES
    )


def _bare_words(stem: str, statement: Statement) -> set[str]:
    """Return the words with a stem in a quote, without endings."""
    words = _WORDS.findall(statement.quote or statement.text)
    language = statement.language
    return {_without_ending(word) for word in words if stem in terms(word, language)}


def _without_ending(word: str) -> str:
    """Return a word without the ending of a plural, a possessive or a verb."""
    return _ENDING.sub("", word.casefold())


def _is_name(two: frozenset[str], statements: Sequence[Statement]) -> bool:
    """Return whether what they share is written as a name: then it is no event, but who or what."""
    words = [word for each in statements for word, own in each.words[1:] if own & two]
    return sum(word[:1].isupper() for word in words) > 0.6 * len(words)
