"""Words by what they are for: those of each language, and English lists that tell names apart.

Every language has one file in ``languages``; adding that file adds the language.  A list of words
is an array of lines there, in lower case and with accents; what a language lacks is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct, field

_WORDS_OR_REST = re.compile(r"\w+|\W+")
_FOLDER = Path(__file__).parent
_LANGUAGES = _FOLDER / "languages"


class Language(Struct, frozen=True):
    """The words of a language; empty where it has no file or none of that kind."""

    code: str
    """ISO 639-1."""
    name: str = ""
    stemmer: str = ""
    """The name of its Snowball algorithm."""
    elides: bool = False
    """Whether articles and pronouns lose their vowel before another one: ``l'eau``."""
    capitalises_nouns: bool = False
    """Whether a capital makes no name of a word."""
    joins_words: bool = False
    """Whether words are joined to one: ``Haustürschlüssel``."""
    stop_words: frozenset[str] = frozenset()
    """Words that are common in running text and carry grammar rather than meaning."""
    weak_words: frozenset[str] = frozenset()
    """Words of greetings, and verbs, that carry no keyword and begin no name."""
    abbreviations: frozenset[str] = frozenset()
    """Words whose dot does not end a sentence."""
    abbreviations_before_lower_case: frozenset[str] = frozenset()
    """Words whose dot ends a sentence only before a capital."""
    abbreviations_before_numbers: frozenset[str] = frozenset()
    """Words whose dot does not end a sentence before a number; those that end so, after a dash."""
    words_after_ordinals: frozenset[str] = frozenset()
    """Words before which the dot after a number makes it an ordinal: ``14. bis``, ``3. Stock``."""
    unfinished_words: frozenset[str] = frozenset()
    """Words that end no line of a finished sentence."""
    linking_words: frozenset[str] = frozenset()
    """Words that begin no sentence in small letters."""
    calendar_source: str = ""
    months: tuple[tuple[str, ...], ...] = ()
    """The names of the months, from January on."""
    weekdays: tuple[tuple[str, ...], ...] = ()
    """The names of the weekdays, from Monday on."""
    units: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Words for ``day``, ``week``, ``month``, ``year`` and ``weekend``."""
    numbers: tuple[tuple[str, ...], ...] = ()
    """Words for one, two, three, ..."""
    seasons: tuple[tuple[str, ...], ...] = ()
    """The names of the seasons, from spring on."""
    days: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Words for days by their distance from today: ``"-1"`` is yesterday."""
    days_ahead: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The same of days to come: ``"1"`` is tomorrow."""
    next_before: tuple[str, ...] = ()
    """Words before a weekday that make it the next one."""
    next_after: tuple[str, ...] = ()
    """Words after a weekday that make it the next one: ``mardi prochain``."""
    holidays: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The names of holidays by month and day, ``12-25``, and of ``easter``."""
    bounds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Words for ``since``, ``before`` and ``after``."""
    steps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Words before a period that say which: ``"-1"`` the last, ``"0"`` this one."""
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Words before a period for a part of it, ``early`` or ``last week``, or ``around`` it."""
    spans: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Words ``from``, ``to`` and ``and`` of a period that is given by its two ends."""
    last_after: tuple[str, ...] = ()
    """Words after a period that make it the last one: ``année dernière``."""
    articles: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    week_of: tuple[str, ...] = ()
    """Prepositions before a period in which something happens."""
    ago: tuple[str, ...] = ()
    """Words after a length of time that make it a time ago."""
    ago_before: tuple[str, ...] = ()
    """Words before a length of time that make it a time ago."""
    lately: tuple[str, ...] = ()
    """Words before a length of time that ends today: ``last`` three weeks."""
    keeping: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What users ask with for something to be kept: ``requests`` before a colon or a clause, which
    ``that`` begins, or before ``this``; ``labels`` before a colon alone, and ``please``; and
    ``replies``, which say nothing of their own that could be kept."""
    introducing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What people say of themselves with: their ``name``, their ``home`` and their ``work``.

    Such a sentence may begin with an ``opening``, or ``self``, its speaker.  A word of ``doubt`` in
    it tells that others say it, or nobody."""
    stating: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Words before a colon by the type of statement that follows: ``decision``, ``preference``."""
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Words for ``birthday``, ``phone``, ``number`` and ``address``, which readers of contacts
    write in English."""
    short_forms: tuple[tuple[str, ...], ...] = ()
    """What people write in notes for a word, after the word: ``password``, ``pw``.

    Nothing that also means something else: the ``ph`` of a pool, ``Dr``, a ``temp``.
    """
    stating_outright: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The same of words inside a statement: ``we have decided``."""
    opposites: tuple[tuple[str, str], ...] = ()
    """Pairs of words of which each tells what the other one is not: ``import`` and ``export``.

    A word may be several, ``starts|started``."""
    opposite_modifiers: tuple[tuple[str, str], ...] = ()
    """The same of words that are opposites only before the same noun, ``left`` and ``right``."""


@cache
def load_language(code: str) -> Language:
    """Return a language by its code; one that is not listed has no words."""
    path = _LANGUAGES / f"{code}.json"
    if not code.isalpha() or not path.is_file():
        return Language(code)
    read = _read(path)
    kinds = Language.__annotations__
    return Language(code, **{key: _value(kinds[key], value) for key, value in read.items()})


@cache
def all_languages() -> tuple[Language, ...]:
    """Return every language that has a file, in the order of their codes."""
    return tuple(load_language(path.stem) for path in sorted(_LANGUAGES.glob("*.json")))


def stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language; empty for one that is not listed."""
    return load_language(language).stop_words


def word_set(text: str) -> frozenset[str]:
    """Return the set of the words of a list written as running text."""
    return frozenset(text.split())


@cache
def month_numbers() -> Mapping[str, int]:
    """Return the numbers of the months, from 1, by their names in all languages."""
    return numbered_words("months", 1)


@cache
def weekday_numbers() -> Mapping[str, int]:
    """Return the numbers of the weekdays, from 0 for Monday, by their names in all languages."""
    return numbered_words("weekdays", 0)


def numerals(code: str) -> dict[str, int]:
    """Return the words for one, two, three, ... in a language, one for each number."""
    return {names[0]: number for number, names in enumerate(load_language(code).numbers, 1)}


def numbered_words(kind: str, first: int) -> dict[str, int]:
    """Return the places, counted from ``first``, of the words of one kind in all languages."""
    return {
        name: number
        for language in all_languages()
        for number, names in enumerate(getattr(language, kind), first)
        for name in names
    }


@cache
def phrases_of_all(kind: str, key: str) -> tuple[str, ...]:
    """Return the phrases under a key of a field that maps keys to phrases, in all languages."""
    found = (getattr(language, kind).get(key, ()) for language in all_languages())
    return tuple(dict.fromkeys(phrase for phrases in found for phrase in phrases))


@cache
def english_labels(language: str) -> Mapping[str, tuple[str, ...]]:
    """Return the English labels of contacts by the words for them in a language."""
    found: dict[str, list[str]] = {}
    for label, words in load_language(language).labels.items():
        for word in words:
            found.setdefault(word, []).append(label)
    return {word: tuple(labels) for word, labels in found.items()}


@cache
def short_forms(language: str) -> Mapping[str, tuple[str, ...]]:
    """Return what is written for a word in short, and the word for each of its short forms."""
    found: dict[str, tuple[str, ...]] = {}
    for group in load_language(language).short_forms:
        for word in group:
            found[word] = (*found.get(word, ()), *(each for each in group if each != word))
    return found


def with_english_labels(question: str, language: str) -> str:
    """Return a question in a language with its words for labels of contacts in English."""
    known = english_labels(language)
    words = (known.get(word.lower(), (word,))[0] for word in _WORDS_OR_REST.findall(question))
    return "".join(words)


def any_phrase(phrases: Iterable[str]) -> str:
    """Return a regular expression for any of some phrases, with either apostrophe."""
    return any_of(phrases).replace("'", "['’]").replace(r"\ ", r"\s+")


def any_of(words: Iterable[str]) -> str:
    """Return a regular expression for any of some words, the longest first.

    Words are grouped by their first letter: a plain alternative of hundreds tries each of them.
    """
    groups: dict[str, list[str]] = {}
    for word in sorted(words, key=len, reverse=True):
        groups.setdefault(word[0], []).append(re.escape(word[1:]))
    return "|".join(f"{re.escape(first)}(?:{'|'.join(rest)})" for first, rest in groups.items())


@cache
def words_of_all(kind: str) -> frozenset[str]:
    """Return the words of one kind, which is the name of a field, in all languages."""
    return frozenset[str]().union(*(getattr(language, kind) for language in all_languages()))


def _read(path: Path) -> Any:
    return json.loads(path.read_bytes())


def _value(kind: str, value: Any) -> Any:
    if kind == "frozenset[str]":
        return word_set(" ".join(value))
    if isinstance(value, dict):
        return {key: tuple(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return tuple(tuple(inner) if isinstance(inner, list) else inner for inner in value)
    return value


def _english(lists: Mapping[str, list[str]], *names: str) -> Iterator[frozenset[str]]:
    return (word_set(" ".join(lists[name])) for name in names)


ENGLISH_MONTHS = tuple(names[0].capitalize() for names in load_language("en").months)
ENGLISH_WEEKDAYS = tuple(names[0].capitalize() for names in load_language("en").weekdays)

_LISTS = _read(_FOLDER / "english_words.json")
COMMON_WORDS, WEAK_WORDS, VERBS = _english(_LISTS, "common_words", "weak_words", "verbs")
"""Words that a capital alone makes no name of; that carry no keyword; that are seldom nouns."""


def is_common_word(word: str) -> bool:
    """Return whether a capital alone makes no name of a word, or of its singular."""
    plain = word.lower()
    return plain in COMMON_WORDS or plain.removesuffix("s") in COMMON_WORDS


class Names(Struct, frozen=True):
    """Names that are known as such, in many languages."""

    given: frozenset[str]
    """Given names of people."""
    given_also_words: frozenset[str]
    """Those of them that English also uses without naming anybody: Mark, Rose."""
    places: frozenset[str]
    """Countries and large cities, also those of several words."""


@cache
def known_names() -> Names:
    """Return the lists of names, which ``tests/training/name_lists.py`` makes."""
    listed = _read(_FOLDER / "names.json")
    given, given_also_words, places = (
        word_set(" ".join((*listed[name], *_LISTS[name])))
        for name in ("given_names", "given_names_also_words", "places")
    )
    several = (*listed["places_of_several_words"], *_LISTS["places_of_several_words"])
    return Names(given | given_also_words, given_also_words, places.union(several))


PLACE_ENDS, PLACE_STARTS = _english(_LISTS, "place_ends", "place_starts")
ORGANISATION_ENDS, TITLES, BARE_TITLES = _english(
    _LISTS, "organisation_ends", "titles", "bare_titles"
)
"""Words that end an organisation's name; titles before a person's name; titles that are no words
otherwise."""

NOT_ALONE, NOT_ENTITIES = _english(_LISTS, "not_alone", "not_entities")
"""Words that name nothing alone or before a number; that are written with a capital, or stand
alone, so often that they name nothing."""
