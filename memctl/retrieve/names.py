"""The names in a passage, as the terms that would find them elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from memctl.retrieve.candidates import Candidate
from memctl.understand.terms import terms

_LONGEST = 6
_IN_BRACKETS = re.compile(r"\s*\([^)]*\)")

Phrase = tuple[str, ...]


def phrases_of(candidate: Candidate, languages: Sequence[str]) -> dict[Phrase, None]:
    """Return the names in a passage and its title, each as terms that stand side by side."""
    named = dict.fromkeys(title_phrases(candidate, languages))
    for name in candidate.row["entities"] or ():
        named |= dict.fromkeys(_phrases(name, tuple(languages)))
    return named


def title_phrases(candidate: Candidate, languages: Sequence[str]) -> tuple[Phrase, ...]:
    """Return a passage's title, without what stands in brackets, as a name in each language."""
    return _title_phrases(candidate.row["title"] or "", tuple(languages))


def spaced(phrase: Iterable[str]) -> str:
    """Return terms as they are looked for in others that stand side by side, spaces around."""
    return f" {' '.join(phrase)} "


@lru_cache(maxsize=20_000)
def _title_phrases(title: str, languages: tuple[str, ...]) -> tuple[Phrase, ...]:
    return _phrases(_IN_BRACKETS.sub("", title), languages)


@lru_cache(maxsize=20_000)
def _phrases(name: str, languages: tuple[str, ...]) -> tuple[Phrase, ...]:
    found = dict.fromkeys(tuple(terms(name, language)) for language in languages)
    return tuple(phrase for phrase in found if 0 < len(phrase) <= _LONGEST)
