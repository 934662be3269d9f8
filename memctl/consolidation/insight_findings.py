"""What was found in statements, and its wording: a sentence that says it, then the evidence."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from memctl.consolidation import insight_wording
from memctl.consolidation.insight_drafts import Draft, importance_of
from memctl.consolidation.statements import Statement, StemWeights
from memctl.language.term_analysis import terms
from memctl.language.word_lists import words_of_all
from memctl.literals import CONTRADICTS
from memctl.records import Connection, Memory

METHOD = "builtin/2"
_MOST_EVIDENCE = 6
_MOST_WORDS = 6
_MORE_IMPORTANT = {"contradiction": 0.3, "overdue": 0.2, "total": 0.2, "change": 0.15}
_RELATIONSHIP = {"contradiction": CONTRADICTS, "change": "follows"}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that follows from statements."""

    kind: str
    title: str
    headline: str
    """One sentence that says it."""
    evidence: tuple[Statement, ...]
    about: str
    """Stems by which it is known again."""
    strength: float
    """Log odds that it is so and worth knowing, as far as that can be told."""
    values: tuple[str, ...] = ()
    """The value that each of the evidence names, if it is one of values."""

    def draft(self) -> Draft:
        """Return it as an insight."""
        quotes = list(dict.fromkeys(each.cited for each in self.evidence))
        shown = quotes[:1] + quotes[1:][-(_MOST_EVIDENCE - 1) :]
        sources = tuple({each.memory.id: each.memory for each in self.evidence}.values())
        return Draft(
            kind=self.kind,
            about=self.about,
            title=insight_wording.capitalised(self.title),
            text=insight_wording.capitalised(f"{self.headline} {'; '.join(shown)}."),
            sources=sources,
            connections=tuple(self._connection(a, b) for a, b in pairwise(sources)),
            importance=importance_of(sources, _MORE_IMPORTANT.get(self.kind, 0.1)),
            confidence=self.confidence,
            method=METHOD,
            is_whole=False,
        )

    @property
    def confidence(self) -> float:
        """0 to 1."""
        return round(1 / (1 + math.exp(-max(min(self.strength, 4.0), -4.0))), 3)

    def _connection(self, first: Memory, second: Memory) -> Connection:
        """Say what the two say, and nothing that only others say: those can be forgotten."""
        named = zip(self.evidence, self.values, strict=False)  # there may be no values
        said = {each.memory.id: value for each, value in named}
        both = [said[memory.id] for memory in (first, second) if memory.id in said]
        name = _RELATIONSHIP.get(self.kind, "same_entity")
        return Connection(first.id, second.id, name, self.confidence, " → ".join(both))


def subject(
    statement: Statement, other: Statement, shared: Collection[str], weights: StemWeights
) -> str:
    """Return the words for what two statements are about: those that both share, else a title."""
    words = words_of(statement, shared, weights)
    titles = [each.memory.title for each in (statement, other) if each.memory.title]
    if sum(map(len, words)) >= 8 or not titles:
        return " ".join(words) or "Two statements"
    return f"{titles[0]}, {' '.join(words)}" if words else titles[0]


@cache
def _stop_words() -> frozenset[str]:
    return words_of_all("stop_words")


def words_of(statement: Statement, stems: Collection[str], weights: StemWeights) -> list[str]:
    """Return the words of a statement that have some stems, the weightiest, in its order."""
    found: dict[str, str] = {}
    for word, own in statement.words:
        is_new = word.casefold() not in map(str.casefold, found.values())
        if is_new and own & frozenset(stems) and word.lower() not in _stop_words():
            found[" ".join(sorted(own))] = word
    best = sorted(found, key=lambda key: -weights.sum(terms(found[key])))[:_MOST_WORDS]
    return [word for key, word in found.items() if key in best]
