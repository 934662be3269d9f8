"""What several texts call the thing that they share: a name or phrase in their own words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain

from memctl.understand.stopwords import stop_words
from memctl.understand.terms import terms

_RUN = re.compile(r"[^\W_][\w'’&.-]*(?<![.'’&-])")
_BREAK = re.compile(
    r"[.!?;:,()\[\]\"“”|\n/]|\b\d[\w.,:%-]*(?:\s+(?:kg|km|g|m|l|ml|h|min|eur)\b)?", re.I
)
_LONGEST = 4
_WEAK = """new now first last next please remember note notes said says today good great along
    across around near behind beside since until via per within without toward towards many much
    lot lots thing things really very also even still yet get got make made go went come came
    january february march april may june july august september october november december monday
    tuesday wednesday thursday friday saturday sunday"""
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


def shared_phrases(
    texts: Sequence[str], anchors: frozenset[str], unfit: Collection[str] = ()
) -> list[Phrase]:
    """Return what two texts or more have in common that can stand as a title, best first.

    That is a name, or several words in a row that carry content; every word that carries content
    is an anchor.  The best is in most texts; among those it is a name, then the longer.

    Args:
        texts: One for each document.
        anchors: Stems that say something: what many other documents share too says nothing.
        unfit: Case-folded names that are no topic, such as who is speaking.
    """
    forms: dict[str, Counter[str]] = {}
    holders: dict[str, set[int]] = {}
    for number, text in enumerate(texts):
        for phrase, key in _candidates(text, anchors):
            if phrase.casefold() not in unfit:
                forms.setdefault(key, Counter())[phrase] += 1
                holders.setdefault(key, set()).add(number)
    shared = (key for key, numbers in holders.items() if len(numbers) > 1)
    found = [_phrase(key, forms[key], len(holders[key])) for key in shared]
    return sorted((item for item in found if _is_title(item)), key=_rank, reverse=True)


def _rank(phrase: Phrase) -> tuple[float, str]:
    length = 0.6 + 0.4 * min(len(phrase.stems), 3)
    return (phrase.texts * length * (1.5 if phrase.is_name else 1.0), phrase.text)


def _is_title(phrase: Phrase) -> bool:
    words = phrase.text.split()
    if phrase.is_name:
        return len(phrase.text) > 2
    return (
        len(words) > 1
        and len(phrase.stems) > 1
        and not any(word.lower() in stop_words("en") for word in words)
    )


def _phrase(key: str, forms: Counter[str], texts: int) -> Phrase:
    written, _ = max(forms.items(), key=lambda item: (item[1], item[0]))
    words = written.split()
    small = [word for word in words if not word[:1].isupper()]
    is_name = len(small) < len(words) and all(word in stop_words("en") for word in small)
    return Phrase(written, frozenset(key.split()), texts, is_name)


def _candidates(text: str, anchors: frozenset[str]) -> set[tuple[str, str]]:
    """Runs of words whose content is all anchors, each with its stems."""
    found = set()
    for run in _BREAK.split(text):
        words = _RUN.findall(run)
        stems = [terms(word) for word in words]
        fits = [anchors.issuperset(own) for own in stems]
        edges = [bool(own) and _can_stand_at_edge(w) for w, own in zip(words, stems, strict=True)]
        for start in range(len(words)):
            for end in range(start + 1, min(start + _LONGEST, len(words)) + 1):
                if not (edges[start] and fits[end - 1]):
                    break
                if edges[end - 1]:
                    phrase = _joined(words[start:end], begins=start == 0)
                    found.add((phrase, " ".join(chain.from_iterable(stems[start:end]))))
    return found


def _joined(words: Sequence[str], *, begins: bool) -> str:
    """A capital at the beginning of a sentence makes no name, unless the next word has one too."""
    first = words[0]
    named = len(words) > 1 and words[1][:1].isupper()
    if begins and not named and first[1:].islower():
        return " ".join((first.lower(), *words[1:]))
    return " ".join(words)


def _can_stand_at_edge(word: str) -> bool:
    lower = word.lower()
    return (
        lower not in stop_words("en")
        and lower not in _WEAK_EDGES
        and len(word) > 1
        and not word[0].isdigit()
    )


def words_with(text: str, stems: Collection[str]) -> list[str]:
    """Return the words of a text that have one of these stems, in its order, each once."""
    found: dict[str, str] = {}
    for word in _RUN.findall(text):
        for stem in terms(word):
            if stem in stems:
                found.setdefault(stem, word)
    return list(found.values())
