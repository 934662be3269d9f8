"""What several texts call the thing that they share: a name or phrase in their own words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memctl.understand.stopwords import stop_words
from memctl.understand.terms import terms

_RUN = re.compile(r"[^\W_][\w'’&.-]*(?<![.'’&-])")
_BREAK = re.compile(r"[.!?;:,()\[\]\"“”|\n]")
_LONGEST = 4
_WEAK = "new now first last next please remember note notes said says today good great"
_WEAK_EDGES = frozenset(_WEAK.split())


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that several texts share."""

    text: str
    """As most of them write it."""
    stems: frozenset[str]
    texts: int
    """How many of them."""
    is_name: bool


def shared_phrases(texts: Sequence[str], anchors: Iterable[str]) -> list[Phrase]:
    """Return phrases that stand in two texts or more and contain an anchor's stem, best first.

    The best is in most texts; among those it is a name, then the longer.
    """
    stems = frozenset(anchors)
    forms: dict[str, Counter[str]] = {}
    holders: dict[str, set[int]] = {}
    for number, text in enumerate(texts):
        for phrase in _candidates(text, stems):
            key = " ".join(terms(phrase))
            forms.setdefault(key, Counter())[phrase] += 1
            holders.setdefault(key, set()).add(number)
    found = [
        _phrase(key, forms[key], len(numbers)) for key, numbers in holders.items()
        if key and len(numbers) > 1
    ]  # fmt: skip
    return sorted(found, key=_rank, reverse=True)


def _rank(phrase: Phrase) -> tuple[float, str]:
    length = 0.6 + 0.4 * min(len(phrase.stems), 3)
    return (phrase.texts * length * (1.5 if phrase.is_name else 1.0), phrase.text)


def _phrase(key: str, forms: Counter[str], texts: int) -> Phrase:
    written, _ = max(forms.items(), key=lambda item: (item[1], item[0]))
    words = written.split()
    is_name = all(word[:1].isupper() or len(word) < 4 for word in words)
    return Phrase(written, frozenset(key.split()), texts, is_name)


def _candidates(text: str, stems: frozenset[str]) -> set[str]:
    found = set()
    for run in _BREAK.split(text):
        words = _RUN.findall(run)
        usable = [_can_stand_at_edge(word) for word in words]
        hits = [bool(stems.intersection(terms(word))) for word in words]
        for start in range(len(words)):
            for end in range(start + 1, min(start + _LONGEST, len(words)) + 1):
                if usable[start] and usable[end - 1] and any(hits[start:end]):
                    found.add(" ".join(words[start:end]))
    return found


def _can_stand_at_edge(word: str) -> bool:
    lower = word.lower()
    return (
        lower not in stop_words("en")
        and lower not in _WEAK_EDGES
        and len(word) > 1
        and not word[0].isdigit()
    )
