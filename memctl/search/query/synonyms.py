"""Other words for those of a question: synonyms, and what the people that it names are called too.

Synonyms are for words that no memory has, such as "choice" for "choose".

They are sought among the words of the best hits alone, by the vectors of single words, so that a
memory isn't passed over because it says the same with a noun.  A name is sought among the speakers
there: "Muhammad" may spell himself "Muhhamed".  What else somebody is called memories have to state
in so many words, "Nickname of Ann Lee: Dot", or the front matter of a page, in its ``aliases``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from msgspec.structs import replace

from memctl.graph.entity_names import (
    is_written_as_name,
    name_key,
    parse_person,
    stated_names,
)
from memctl.graph.page_names import read_other_titles
from memctl.language.term_analysis import WORD_PUNCTUATION, plain_form, query_terms, terms
from memctl.language.word_lists import is_common_word
from memctl.models.protocols import Embedder, WordEmbedder
from memctl.models.vector_math import normalize_rows
from memctl.records import Hit
from memctl.search.query.question import OtherName, Question, Slot
from memctl.search.term_statistics import Sources, TermStatistics
from memctl.store.file_caches import code_digest, kept_or_made
from memctl.store.tables.filter_expressions import Expr, col
from memctl.understanding.text_outline import speaker_of

if TYPE_CHECKING:
    from memctl.store.tables.snapshot import Snapshot

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
    there = _words_in(hits) if words else []
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


def _words_in(hits: Iterable[Hit]) -> list[str]:
    texts = (f"{hit.title}\n{hit.heading}\n{hit.text}" for hit in hits)
    return sorted({word for text in texts for word in _WORD.findall(text.lower())})


# --- what people are called too ------------------------------------------------------------------

_STATING = "nickname nicknamed aka known calls"
_POSSESSIVE = re.compile(r"['’]s?$")
_NAMING_MODULES = tuple(
    f"memctl.{name}" for name in ("graph.page_names", "graph.entity_names", "search.query.synonyms")
)
"""Whose code decides which titles are names."""
_OtherTitles = tuple[tuple[str, str, str], ...]
_TITLES_READ: WeakKeyDictionary[Snapshot, _OtherTitles] = WeakKeyDictionary()
"""Of snapshots that questions are asked of: reading the file again takes 2 ms of each question."""
_MOST_NAMES = 8
"""Words of a question that are looked up as names; of a pasted text the first."""
_MOST_STATEMENTS = 30
"""Memories read for what the people in a question are called too."""


def find_other_names(
    question: Question, sources: Sources, where: Expr | None, languages: Sequence[str]
) -> tuple[OtherName, ...]:
    """Return what those whom a question names are called too, as memories and front matter say.

    What may mean somebody else as well is left out: what two people are called, or what is also in
    the name of another person.

    Args:
        question: The question.
        sources: Snapshots by the name of their knowledge base.
        where: The condition that holds for the memories searched.
        languages: Those of the memories.
    """
    words = [_plain_word(word) for word in question.words]
    named = _possible_names(question, words)[:_MOST_NAMES]
    asked = {term for at in named for slot in question.word_slots[at] for term in slot}
    if not asked:
        return ()
    wanted = (*sorted(asked), *query_terms(_STATING, ("en",)))
    stated: dict[tuple[str, str], None] = {}
    for source in sources.values():
        numbers = source.keyword_rows(wanted, where, _MOST_STATEMENTS)
        for text in source.rows("memories", numbers, ("text",))["text"].to_pylist():
            stated |= dict.fromkeys(stated_names(text))
        stated |= dict.fromkeys(_titles_with({words[at] for at in named}, source, where))
    bearers: dict[str, set[str]] = {}
    for full, also in stated:
        for name in (also, *full.split()):
            bearers.setdefault(plain_form(name), set()).add(plain_form(full))
    shared = {name for name, people in bearers.items() if len(people) > 1}
    found: list[OtherName] = []
    for full, also in stated:
        if plain_form(also) not in shared:
            found += _other_names(question, words, full, also, shared, sources, languages)
    return tuple(found)


def _titles_with(
    words: set[str], source: Snapshot, where: Expr | None
) -> Iterator[tuple[str, str]]:
    """Yield titles, each with another name of its document, of which a question has a word.

    Only documents count of which a memory that is searched is.
    """
    near = [
        (document, title, also)
        for document, title, also in _read_titles(source)
        if not words.isdisjoint(_words(f"{title} {also}"))
    ]
    if near and where is not None:
        within = where & col("document_id").is_in(sorted({document for document, _, _ in near}))
        seen = set(source.scan("memories", within, ["document_id"])["document_id"].to_pylist())
        near = [each for each in near if each[0] in seen]
    yield from ((title, also) for _, title, also in near)


def _read_titles(source: Snapshot) -> _OtherTitles:
    """Return documents with their titles and other names, which are read once after a commit."""

    def read() -> _OtherTitles:
        """Return what front matter says, as far as it is written as names."""
        return tuple(
            (document, title, also)
            for document, title, names in read_other_titles(source)
            for also in names
            if is_written_as_name(title) and is_written_as_name(also) and not is_common_word(also)
        )

    known = _TITLES_READ.get(source)
    if known is None:
        state = json.dumps([source.state_of("documents"), code_digest(*_NAMING_MODULES)])
        known = kept_or_made(source.derived, "aliases", state, _OtherTitles, read)
        _TITLES_READ[source] = known
    return known


def _other_names(
    question: Question,
    words: Sequence[str],
    full: str,
    also: str,
    shared: Collection[str],
    sources: Sources,
    languages: Sequence[str],
) -> Iterator[OtherName]:
    """Yield the name that a question does not have of two that mean the same."""
    own_words = {plain_form(word) for word in full.split()}.difference(shared)
    whole, nick = _places(words, _words(full)), _places(words, _words(also))
    if not (whole or nick or own_words.intersection(words)):
        return
    shared = _words_of_others(full, also, sources).union(shared)
    if shared.issuperset(_words(also)):
        return
    own = [
        word
        for word in full.split()
        if plain_form(word) not in shared and len(word) > 1 and not is_common_word(word)
    ]
    if nick and not whole:
        yield _other_name(question, nick, full, own or [full], languages)
    for places in [whole] if whole else [_places(words, _words(word)) for word in own]:
        is_in_both = set(_words(also)).issuperset(words[at] for at in places)  # "Callum B"
        if places and not nick and not is_in_both and not is_common_word(also):
            yield _other_name(question, places, also, [also], languages)


def _other_name(
    question: Question,
    places: Sequence[int],
    name: str,
    written: Sequence[str],
    languages: Sequence[str],
) -> OtherName:
    asked = " ".join(question.words[at] for at in places).strip(WORD_PUNCTUATION)
    found = (" ".join(terms(each, code)) for each in written for code in languages)
    return OtherName(
        _POSSESSIVE.sub("", asked),
        tuple(places),
        name,
        tuple(written),
        tuple(dict.fromkeys(each for each in found if each and each not in question.terms)),
    )


def _words_of_others(full: str, also: str, sources: Sources) -> frozenset[str]:
    """Return the words of two names of a person that another person's name has as well."""
    own = {*_words(full), *_words(also)}
    parts = [col("name").like_glob(f"*{word}*") for word in (*full.split(), *also.split())]
    found: set[str] = set()
    for source in sources.values():
        rows = source.scan("entities", reduce(or_, parts), ("name", "type"))
        for name, type_ in zip(rows["name"].to_pylist(), rows["type"].to_pylist(), strict=True):
            person = parse_person(name_key(name, type_), type_)
            if person and person.is_full and not own.issuperset(_words(name)):
                found.update(own.intersection(_words(name)))
    person = parse_person(name_key(full), "person")
    return frozenset((*found, person.honorific) if person else found)


def _places(words: Sequence[str], name: Sequence[str]) -> tuple[int, ...]:
    """Return where a name stands in a question; nothing where it does not."""
    starts = range(len(words) - len(name) + 1)
    start = next((at for at in starts if list(words[at : at + len(name)]) == list(name)), None)
    return () if start is None else tuple(range(start, start + len(name)))


def _words(name: str) -> list[str]:
    return [_plain_word(word) for word in name.split()]


def _possible_names(question: Question, words: Sequence[str]) -> list[int]:
    """Return the places of the words that may be names; of a question in small letters, of all."""
    content = [
        at
        for at, word in enumerate(words)
        if question.word_slots[at] and word[:1].isalpha() and not is_common_word(word)
    ]
    written = [at for at in content if question.words[at].lstrip(WORD_PUNCTUATION)[:1].isupper()]
    return written or content


def _plain_word(word: str) -> str:
    return plain_form(_POSSESSIVE.sub("", word.strip(WORD_PUNCTUATION)))
