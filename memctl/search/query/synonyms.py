"""Synonyms: other words for words that no memory has, such as "choice" for "choose".

They are sought among the words of the best hits alone, by the vectors of single words, so that a
memory isn't passed over because it says the same with a noun.  A name is sought among the speakers
there: "Muhammad" may spell himself "Muhhamed".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches

import numpy as np
from msgspec.structs import replace

from memctl.language.term_analysis import query_terms
from memctl.models.protocols import Embedder, WordEmbedder
from memctl.models.vector_math import normalize_rows
from memctl.records import Hit
from memctl.search.query.question import Question, Slot
from memctl.search.term_statistics import TermStatistics
from memctl.understanding.text_outline import speaker_of

_MIN_COSINE = 0.48
"""Of two words that count as synonyms."""
_MAX_HITS = 5
_SPELLING_RATIO = 0.8
_SHORTEST_NAME = 3
_VOWELS = re.compile(r"[aeiouyáàâäãåéèêëíìîïóòôöõúùûü]")
_SAME_SOUND = str.maketrans("cqzw", "kksv")
_DOUBLED = re.compile(r"(.)\1+")
_WORD = re.compile(r"[^\W\d_]{3,}")

Synonyms = Mapping[Slot, frozenset[str]]
"""The terms that stand for a slot that no memory has."""


def find_synonyms(
    question: Question,
    statistics: TermStatistics,
    load_words: Callable[[], Embedder],
    languages: Sequence[str],
    hits: Sequence[Hit],
) -> Synonyms:
    """Return synonyms for the question's unknown words from the best hits, for names from speakers.

    Args:
        question: The question.
        statistics: Of the memories searched; they tell which words are unknown.
        load_words: Returns what has the vectors of words; called only where words are compared.
        languages: Those of the memories.
        hits: The hits, best first.
    """
    unknown = dict(_unknown_words(question, statistics))
    names = {slot: word for slot, word in unknown.items() if slot in question.names}
    others = {slot: word for slot, word in unknown.items() if slot not in names}
    near = similar_words(list(others.values()), hits[:_MAX_HITS], load_words)
    found = {
        slot: frozenset(query_terms(" ".join(words), languages))
        for slot, words in zip(others, near, strict=True)
    }
    speakers = _speaker_names(hits, languages) if names else {}
    found |= {
        slot: frozenset(
            term for name in similar_spellings(word, speakers) for term in speakers[name]
        )
        for slot, word in names.items()
    }
    return {slot: terms for slot, terms in found.items() if terms}


def similar_spellings(word: str, names: Collection[str]) -> list[str]:
    """Return the names, in lower case, that a word is nearly spelled or pronounced like."""
    if len(word) <= _SHORTEST_NAME:
        return []
    near = get_close_matches(word, names, n=1, cutoff=_SPELLING_RATIO)
    sound = _consonants(word)
    same = [name for name in names if len(sound) >= _SHORTEST_NAME and _consonants(name) == sound]
    return [name for name in dict.fromkeys([*near, *same]) if name[0] == word[0]]


def _consonants(name: str) -> str:
    """Return the consonants of a name without repetition, which all its transcriptions share."""
    consonants = name[0] + _VOWELS.sub("", name[1:]).translate(_SAME_SOUND)
    return _DOUBLED.sub(r"\1", consonants)


def similar_words(
    words: Sequence[str], hits: Sequence[Hit], load_words: Callable[[], Embedder]
) -> list[list[str]]:
    """Return for each word those of the hits with nearly the same meaning; none where unknown."""
    there = _words(hits) if words else []
    if not there or not isinstance(embedder := load_words(), WordEmbedder):
        return [[] for _ in words]
    near = normalize_rows(embedder.embed(list(words))) @ normalize_rows(embedder.embed(there)).T
    return [
        [there[at] for at in np.flatnonzero(row >= _MIN_COSINE) if not _is_ending(there[at], word)]
        for word, row in zip(words, near, strict=True)
    ]


def _is_ending(other: str, word: str) -> bool:
    """Return whether a word is the end of another, whose vector then contains its own.

    A wildcat is no cat, and a xylophone no phone.
    """
    return len(other) < len(word) and word.casefold().endswith(other.casefold())


def add_synonyms(question: Question, synonyms: Synonyms) -> Question:
    """Return the question with the synonyms of each slot among its terms."""
    if not synonyms:
        return question
    slots = tuple(
        tuple((*slot, *sorted(synonyms.get(slot, ()))) for slot in found)
        for found in question.word_slots
    )
    return replace(question, word_slots=slots)


def _unknown_words(question: Question, statistics: TermStatistics) -> Iterator[tuple[Slot, str]]:
    for word, slots in zip(question.words, question.word_slots, strict=True):
        plain = _WORD.findall(word.lower())
        if len(slots) != 1 or len(plain) != 1:
            continue
        if not any(statistics.frequencies.get(term) for term in slots[0]):
            yield slots[0], plain[0]


def _speaker_names(hits: Iterable[Hit], languages: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the words in the names of the hits' speakers, with the terms of each."""
    names = (speaker_of(hit.text) or "" for hit in hits if hit.type == "turn")
    words = {word for name in names for word in _WORD.findall(name.lower())}
    return {word: tuple(query_terms(word, languages)) for word in sorted(words)}


def _words(hits: Iterable[Hit]) -> list[str]:
    texts = (f"{hit.title}\n{hit.heading}\n{hit.text}" for hit in hits)
    return sorted({word for text in texts for word in _WORD.findall(text.lower())})
