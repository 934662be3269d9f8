"""The same text remembered twice is one hit, which names where else it stands.

Copies have the same text, white space and case aside, under the same heading; what was said has
the same time, too, and where a question tells a time, all have the same day.  Near ones differ in
a few words, but in no number: their resemblance is measured after Broder, "On the resemblance and
containment of documents" (1997), as the share of runs of words that both have.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from memctl.errors import UsageError
from memctl.literals import Duplicates
from memctl.search.query.time_expressions import TIME_SCORE as IN_TIME
from memctl.search.ranking.event_signal import EVENT_SIGNAL as TIME
from memctl.search.ranking.scored_candidates import FoldedDuplicate, ScoredCandidate
from memctl.search.retrieval.candidates import Candidate, Key, Sources

DUPLICATES: tuple[Duplicates, ...] = get_args(Duplicates)

NEAR = 0.8
"""The least resemblance of near copies; one word changed in the middle of thirty gives 0.8."""
_RUN = 3
"""Words; Broder takes runs of ten of whole web pages."""
_ENDING = 3
"""So many terms at the end of two texts are compared first.  Search terms begin with the title, so
shorter texts are copies only under the same one, without which they say little."""
_OF_TITLE = 6
"""So many characters of search terms are for each of the title's at most: it counts twice, and a
compound gives its parts and itself."""
_COLUMNS = ("text", "heading")
_WORD = re.compile(r"\w+")

_Kind = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class _Text:
    """What a memory says, as far as others may say the same."""

    words: str
    """Without the differences of white space and case."""
    kind: _Kind
    """What copies share besides: level, where it matters the time, and heading."""


def parse_duplicates(name: str) -> Duplicates:
    """Return what is done with duplicates, by its name.

    Raises:
        UsageError: There is no such thing.
    """
    for duplicates in DUPLICATES:
        if duplicates == name:
            return duplicates
    raise UsageError(f"unknown duplicates {name!r}", f"use one of: {', '.join(DUPLICATES)}")


def fold_duplicates(
    items: Sequence[ScoredCandidate], sources: Sources, duplicates: Duplicates
) -> list[ScoredCandidate]:
    """Return the items, each copy folded into the first that says the same.

    Args:
        items: Best first.
        sources: Have the texts.
        duplicates: Which are folded: ``exact`` ones, ``near`` ones too, or none (``keep``).
    """
    if duplicates == "keep":
        return list(items)
    by_day = any(TIME in item.legs or IN_TIME in item.legs for item in items)
    kinds = {item.candidate.key: _kind(item.candidate, by_day) for item in items}
    suspects = list(items) if duplicates == "near" else _with_same_ending(items, kinds)
    texts = _texts(sources, [item.candidate for item in suspects], kinds)
    if not texts:
        return list(items)
    first = _Near() if duplicates == "near" else _Exact()
    kept: dict[Key, ScoredCandidate] = {}
    for item in items:
        text = texts.get(item.candidate.key)
        key, likeness = first.said(item.candidate.key, text) if text else (item.candidate.key, 1.0)
        kept[key] = _joined(kept[key], item, likeness) if key in kept else item
    return list(kept.values())


def _joined(first: ScoredCandidate, copy: ScoredCandidate, likeness: float) -> ScoredCandidate:
    copies = (*first.copies, FoldedDuplicate(copy.candidate, likeness), *copy.copies)
    return replace(first, copies=tuple(sorted(copies, key=lambda copy: -copy.likeness)))


def _kind(candidate: Candidate, by_day: bool) -> _Kind:
    if candidate.type == "turn":
        return candidate.level, candidate.row["created_at"]
    return candidate.level, candidate.row["created_at"].date() if by_day else None


def _with_same_ending(
    items: Iterable[ScoredCandidate], kinds: Mapping[Key, _Kind]
) -> list[ScoredCandidate]:
    """Return the items whose search terms end as those of another: no others can be copies.

    Most differ already in this, and so need not be read.
    """
    endings: dict[_Kind, list[ScoredCandidate]] = {}
    for item in items:
        candidate = item.candidate
        terms = candidate.row["search_text"].rsplit(" ", _ENDING)[-_ENDING:]
        endings.setdefault((*kinds[candidate.key], *terms), []).append(item)
    return [
        item
        for alike in endings.values()
        for item in alike
        if any(_may_say_the_same(item, other) for other in alike if other is not item)
    ]


def _may_say_the_same(one: ScoredCandidate, other: ScoredCandidate) -> bool:
    """Tell whether the search terms of two end the same, as far as no title can reach."""
    left, right = (item.candidate.row["search_text"] for item in (one, other))
    common = max(_below_title(one), _below_title(other))
    fits = common <= min(len(left), len(right))
    return fits and bool(left.endswith(right[len(right) - common :]))


def _below_title(item: ScoredCandidate) -> int:
    """Return how many characters at the end of the search terms cannot be the title's."""
    row = item.candidate.row
    of_title = _OF_TITLE * (len(row["title"]) + 1) if row["title"] else 0
    return max(0, len(row["search_text"]) - of_title)


def _texts(
    sources: Sources, candidates: Sequence[Candidate], kinds: Mapping[Key, _Kind]
) -> dict[Key, _Text]:
    found: dict[Key, _Text] = {}
    for kb in dict.fromkeys(each.key[0] for each in candidates):
        own = [each for each in candidates if each.key[0] == kb]
        rows = sources[kb].rows("memories", [each.number for each in own], _COLUMNS).to_pylist()
        for each, row in zip(own, rows, strict=True):
            words, heading = (_plain(row[column]) for column in _COLUMNS)
            found[each.key] = _Text(words, (*kinds[each.key], heading))
    return found


def _plain(text: str | None) -> str:
    return " ".join((text or "").split()).casefold()


class _Exact:
    """Knows who said something first, in the same words."""

    def __init__(self) -> None:
        self._first: dict[_Text, Key] = {}

    def said(self, key: Key, text: _Text) -> tuple[Key, float]:
        """Return who said it first, perhaps the one who says it now."""
        return self._first.setdefault(text, key), 1.0


class _Near:
    """Knows who said something first, in nearly the same words with the same numbers."""

    def __init__(self) -> None:
        self._first: dict[Hashable, list[tuple[Key, frozenset[tuple[str, ...]]]]] = {}

    def said(self, key: Key, text: _Text) -> tuple[Key, float]:
        """Return who said it first, perhaps the one who says it now, and how alike the two are."""
        words = _WORD.findall(text.words)
        numbers = frozenset(word for word in words if any(map(str.isdigit, word)))
        before = self._first.setdefault((text.kind, numbers), [])
        runs = frozenset(_runs(words))
        alike = ((_resemblance(runs, theirs), who) for who, theirs in before)
        likeness, who = max(alike, default=(0.0, key), key=lambda pair: pair[0])
        if likeness >= NEAR:
            return who, likeness
        before.append((key, runs))
        return key, 1.0


def _runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield all runs of so many words; all words where they are fewer."""
    for start in range(max(1, len(words) - _RUN + 1)):
        yield tuple(words[start : start + _RUN])


def _resemblance(some: frozenset[tuple[str, ...]], others: frozenset[tuple[str, ...]]) -> float:
    return len(some & others) / len(some | others)
