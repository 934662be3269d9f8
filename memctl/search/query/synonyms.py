"""Other words for a word of the question that no memory has: "choose" is told by "choice".

Looked for among the words of the best hits only, by the vectors of single words, so that a memory
is not passed over because it says the same thing with a noun; a name, among those who speak there,
for "Muhammad" may spell himself "Muhhamed".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches

import numpy as np

from memctl.language.term_analysis import query_terms
from memctl.models.protocols import WordEmbedder
from memctl.models.vector_math import normalize_rows
from memctl.records import Hit
from memctl.search.query.question import Question, QuestionMeaning, Slot
from memctl.search.retrieval.candidates import Candidate
from memctl.search.retrieval.term_statistics import TermStatistics
from memctl.understanding.text_outline import speaker_of

SYNONYM_COSINE = 0.48
"""Cosine of two words that are taken for one another."""
_LOOKED_AT = 5
_AS_WRITTEN = 0.8
_SHORTEST_NAME = 3
_VOWELS = re.compile(r"[aeiouyáàâäãåéèêëíìîïóòôöõúùûü]")
_SOUNDS_LIKE = str.maketrans("cqzw", "kksv")
_DOUBLED = re.compile(r"(.)\1+")
_WORD = re.compile(r"[^\W\d_]{3,}")

Synonyms = Mapping[Slot, frozenset[str]]
"""The terms that stand for a slot which itself is nowhere."""


def find_synonyms(
    question: Question,
    statistics: TermStatistics,
    meaning: QuestionMeaning,
    languages: Sequence[str],
    hits: Sequence[Hit],
) -> Synonyms:
    """Return what the best hits have for the question's unknown words, for names who speaks."""
    unknown = dict(_unknown(question, statistics))
    names = {slot: word for slot, word in unknown.items() if slot in question.names}
    lost = {slot: word for slot, word in unknown.items() if slot not in names}
    near = similar_words(list(lost.values()), hits[:_LOOKED_AT], meaning)
    found = {
        slot: frozenset(query_terms(" ".join(words), languages))
        for slot, words in zip(lost, near, strict=True)
    }
    speakers = _speakers(hits, languages) if names else {}
    found |= {
        slot: frozenset(
            term for name in similar_spellings(word, speakers) for term in speakers[name]
        )
        for slot, word in names.items()
    }
    return {slot: terms for slot, terms in found.items() if terms}


def similar_spellings(word: str, names: Collection[str]) -> list[str]:
    """Return the names that a word is nearly the same as, all in lower case.

    The nearest by its letters, and those that sound alike: with other vowels, or letters doubled.
    """
    if len(word) <= _SHORTEST_NAME:
        return []
    near = get_close_matches(word, names, n=1, cutoff=_AS_WRITTEN)
    sound = _sound(word)
    alike = [name for name in names if len(sound) >= _SHORTEST_NAME and _sound(name) == sound]
    return [name for name in dict.fromkeys([*near, *alike]) if name[0] == word[0]]


def _sound(name: str) -> str:
    """What stays of a name however it is transcribed: its consonants, each once in a row."""
    consonants = name[0] + _VOWELS.sub("", name[1:]).translate(_SOUNDS_LIKE)
    return _DOUBLED.sub(r"\1", consonants)


def similar_words(
    words: Sequence[str], hits: Sequence[Hit], meaning: QuestionMeaning
) -> list[list[str]]:
    """Return for each word those of the hits that mean nearly the same, none if that is unknown."""
    there = _words(hits) if words else []
    if not there or not isinstance(embedder := meaning.embedder, WordEmbedder):
        return [[] for _ in words]
    near = normalize_rows(embedder.embed(list(words))) @ normalize_rows(embedder.embed(there)).T
    return [
        [
            there[at]
            for at in np.flatnonzero(row >= SYNONYM_COSINE)
            if not _is_end_of(there[at], word)
        ]
        for word, row in zip(words, near, strict=True)
    ]


def _is_end_of(other: str, word: str) -> bool:
    """Tell a word that ends another one, whose vector is then a part of that one's.

    A wildcat is no cat, and a xylophone no phone.
    """
    return len(other) < len(word) and word.casefold().endswith(other.casefold())


def add_synonyms(question: Question, kin: Synonyms) -> Question:
    """Return the question with each slot also found by its kin."""
    if not kin:
        return question
    slots = tuple(
        tuple((*slot, *sorted(kin.get(slot, ()))) for slot in found)
        for found in question.word_slots
    )
    return replace(question, word_slots=slots)


def add_synonym_terms(
    candidates: Sequence[Candidate], hits: Sequence[Hit], kin: Synonyms, languages: Sequence[str]
) -> list[Candidate]:
    """Return the candidates, each of which became a hit, with the kin that their hits have."""
    wanted = frozenset[str]().union(*kin.values())
    if not wanted:
        return list(candidates)
    return [
        replace(candidate, terms=candidate.terms | wanted.intersection(_terms(hit, languages)))
        for candidate, hit in zip(candidates, hits, strict=True)
    ]


def _unknown(question: Question, statistics: TermStatistics) -> Iterator[tuple[Slot, str]]:
    for word, slots in zip(question.words, question.word_slots, strict=True):
        plain = _WORD.findall(word.lower())
        if len(slots) != 1 or len(plain) != 1:
            continue
        if not any(statistics.frequencies.get(term) for term in slots[0]):
            yield slots[0], plain[0]


def _speakers(hits: Iterable[Hit], languages: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the words of the names of who speaks in the hits, and the terms for each."""
    said = (speaker_of(hit.text) or "" for hit in hits if hit.type == "turn")
    words = {word for name in said for word in _WORD.findall(name.lower())}
    return {word: tuple(query_terms(word, languages)) for word in sorted(words)}


def _words(hits: Iterable[Hit]) -> list[str]:
    return sorted({word for hit in hits for word in _WORD.findall(_text(hit).lower())})


def _terms(hit: Hit, languages: Sequence[str]) -> list[str]:
    return query_terms(_text(hit), languages)


def _text(hit: Hit) -> str:
    return f"{hit.title}\n{hit.heading}\n{hit.text}"
