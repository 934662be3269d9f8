"""What was found in statements, and its wording: a sentence that says it, then the evidence."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from memctl.consolidation import insight_wording
from memctl.consolidation.insight_drafts import Draft, importance_of
from memctl.consolidation.statements import Statement, StemWeights
from memctl.language.term_analysis import terms
from memctl.language.word_lists import words_of_all
from memctl.literals import CONTRADICTS, InsightKind
from memctl.records import Connection, Memory

METHOD = "builtin/2"
_MOST_EVIDENCE = 6
_MORE_IMPORTANT = {"contradiction": 0.3, "overdue": 0.2, "total": 0.2, "change": 0.15}
_RELATIONSHIP = {"contradiction": CONTRADICTS, "change": "follows"}


class Finding(Struct, frozen=True):
    """Something that follows from statements."""

    kind: InsightKind
    title: str
    headline: str
    """One sentence that says it."""
    evidence: tuple[Statement, ...]
    about: str
    """Stems by which it is known again."""
    strength: float
    """Log odds that it is so and worth knowing, as far as that can be estimated."""
    values: tuple[str, ...] = ()
    """The value that each of the evidence names, if it is one of values."""
    is_said_already: bool = False
    """Whether one source says all of it, so that it is a memory and no insight."""

    def draft(self) -> Draft:
        """Return it as an insight."""
        quotes = list(dict.fromkeys(each.citation for each in self.evidence if self._adds(each)))
        shown = quotes[:1] + quotes[1:][-(_MOST_EVIDENCE - 1) :]
        sources = tuple({each.memory.id: each.memory for each in self.evidence}.values())
        return Draft(
            kind=self.kind,
            about=self.about,
            title=insight_wording.capitalise(self.title),
            text=insight_wording.capitalise(f"{self.headline} {'; '.join(shown)}."),
            sources=sources,
            connections=tuple(self._connection(a, b) for a, b in pairwise(sources)),
            importance=importance_of(sources, _MORE_IMPORTANT.get(self.kind, 0.1)),
            confidence=self.confidence,
            method=METHOD,
            is_whole=False,
        )

    def _adds(self, statement: Statement) -> bool:
        """Return whether no other of the evidence quotes a statement, too."""
        return not any(
            statement.text in other.quote and len(statement.quote) < len(other.quote)
            for other in self.evidence
            if other is not statement and other.document == statement.document
        )

    @property
    def confidence(self) -> float:
        """0 to 1."""
        return round(1 / (1 + math.exp(-max(min(self.strength, 4.0), -4.0))), 3)

    def _connection(self, first: Memory, second: Memory) -> Connection:
        """Connect two memories by what they say themselves; others may be forgotten."""
        named = zip(self.evidence, self.values, strict=False)  # there may be no values
        said = {each.memory.id: value for each, value in named}
        both = [said[memory.id] for memory in (first, second) if memory.id in said]
        name = _RELATIONSHIP.get(self.kind, "same_entity")
        return Connection(first.id, second.id, name, self.confidence, " → ".join(both))


def phrase(
    statements: Sequence[Statement],
    stems: Collection[str],
    weights: StemWeights,
    *,
    whole: bool = False,
) -> str:
    """Return the words that name something best, as one of the statements has them.

    They stand together in it: at most a word without any of the stems stands between two of them.
    A single word says too little, so the part of the sentence around it is returned, or the
    ``whole`` first statement.
    """
    said, _, where = max(
        (
            (words, weight, each)
            for each in statements
            for weight, words in _phrases(each, frozenset(stems), weights)
        ),
        default=("", 0.0, statements[0]),
        key=lambda item: item[1],
    )
    if not said:
        return insight_wording.subject(statements[0].memory.title) or "it"
    if " " in said or weights.is_name(said.lower()):
        return said
    if whole:
        return insight_wording.shorten_title(statements[0].text)
    having = [each.text for each in statements if said in each.text] or [where.text]
    return min((_part_with(text, said) for text in having), key=len)


def part_around(text: str, words: str) -> str:
    """Return the part of a sentence that has some words, all of it where the part says no more."""
    if words not in text:
        return insight_wording.shorten_title(text)
    part = _part_with(text, words, _LONGEST_WHOLE_PART)
    rest = _LETTERS.findall(part.replace(words, " "))
    return part if len(rest) >= _FEWEST_BESIDE else insight_wording.shorten_title(text)


def _part_with(text: str, word: str, longest: int = 60) -> str:
    """Return the part of a sentence that has a word, up to a comma or the like on each side."""
    at = text.index(word)
    start = max((match.end() for match in _BREAK.finditer(text, 0, at)), default=0)
    stop = _BREAK.search(text, at + len(word))
    words = insight_wording.quotable(text[start : stop.start() if stop else len(text)])
    if len(words) <= longest:
        return words
    at = words.find(word)
    start = 0 if at < longest // 2 else words.find(" ", at - longest // 2) + 1
    return words[start : start + longest].rpartition(" ")[0]


def phrases(
    statements: Sequence[Statement], stems: Collection[str], weights: StemWeights
) -> list[str]:
    """Return the words that have some stems, each phrase as one of the statements has it."""
    left = frozenset(stems)
    chosen: list[str] = []
    while left and len(chosen) < _MOST_PHRASES:
        best = max(
            (item for each in statements for item in _phrases(each, left, weights)),
            default=None,
            key=lambda item: item[0],
        )
        if best is None:
            break
        chosen.append(best[1])
        left -= frozenset(terms(best[1]))
    return chosen


_LONGEST_WHOLE_PART = 90
_FEWEST_BESIDE = 2
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_BREAK = re.compile(r"[.,;:!?](?=\s|$)|\s[-–—→]\s|\n|[()]")
_MOST_PHRASES = 3
_LONGEST_PHRASE = 40
_GAP = re.compile(r"[^\S\n]*(?:[\w'’-]{1,4}[^\S\n]+){0,2}")
"""Between two words of a phrase: nothing, or one or two short words."""


def _phrases(
    statement: Statement, stems: frozenset[str], weights: StemWeights
) -> Iterator[tuple[float, str]]:
    """Yield phrases of a statement with the weight of the stems that they have."""
    text = statement.text
    places: list[tuple[int, int, frozenset[str]]] = []
    at = 0
    for word, own in statement.words:
        at = text.index(word, at)
        if own & stems and word.lower() not in words_of_all("stop_words"):
            places.append((at, at + len(word), own & stems))
        at += len(word)
    for first, (start, _, _) in enumerate(places):
        seen: frozenset[str] = frozenset()
        end = start
        for begin, stop, own in places[first:]:
            if (end > start and not _GAP.fullmatch(text, end, begin)) or (
                stop - start > _LONGEST_PHRASE
            ):
                break
            seen |= own
            end = stop
            yield weights.sum(seen) - 0.01 * (stop - start), text[start:stop]
