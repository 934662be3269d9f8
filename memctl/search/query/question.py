"""A question as search sees it: its words, and the terms that each word can be found by.

Knows no memories: how common a term is, and what the words mean, others find out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, KeysView, Sequence
from datetime import date
from functools import cached_property
from itertools import pairwise, zip_longest

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import UsageError
from memctl.language.term_analysis import WORD_PUNCTUATION, terms
from memctl.language.time_periods import days_of_iso
from memctl.language.word_lists import all_languages
from memctl.patterns import lazy_regex

_MIN_FOREIGN = 3
"""Fewest stop words of a language that no memory is in, for a question to be in it."""
_HOW = frozenset(("how", "wie"))
_AFTER_HOW = frozenset(
    ("much", "many", "long", "often", "come", "viel", "viele", "lange", "oft", "hoch", "teuer")
)
_ASKING_WORDS = frozenset(
    ("please", "tell", "bitte", "combien", "cuánto", "cuántos", "cuánta", "quanto")
)
_WHAT = frozenset(("what", "whatever", "was"))
_HAPPENING = frozenset(("happen", "happens", "happened", "passiert", "passierte", "geschah"))
_INVERTED = lazy_regex(
    r"-(?:t-)?(?:je|tu|il|elle|on|nous|vous|ils|elles|ce)(?=\W*$)", re.IGNORECASE
)
"""What a French verb is joined with in a question: ``achetons-nous``, ``a-t-on``."""
_OPENING = "\"'([{“‘«„"
_VERSION = lazy_regex(r"[vV](\d+(?:\.\d+)*)|(\d+(?:\.\d+){2,3})")
_SHORT_VERSION = lazy_regex(r"\d+(?:\.\d+)+")
_VERSION_WORDS = frozenset(("version", "release", "versión", "versione", "versão", "versie"))
"""After these words, two numbers with a point between them are a version."""
_IS_RELEASED = lazy_regex(
    r"(?:(?:be|been|get|got) )?"
    r"(?:released?|published|shipped|tagged|(?:come|came|go|went) out|out)\b"
)
"""Follows a version: "when was 2.4 released"."""
_HALVED_AFTER_DAYS = 3
_HALVED_AFTER_SHARE = 0.25
"""The fit of a day is halved every 3 days outside of a period, or every quarter of the period's
length where that is more: someone who names a day is seldom wrong by a month."""

Slot = tuple[str, ...]
"""The terms that one word can be found by, one for each language searched."""


class TimeExpression(Struct, frozen=True):
    """A calendar period named in a question, such as "last May"."""

    text: str
    first: date
    last: date
    is_limit: bool = False
    """Whether it bounds what is asked for, as "since May" does and "in May" does not."""

    @property
    def term(self) -> str:
        """The term that memories of that period count as having: an ISO 8601 interval."""
        return f"{self.first.isoformat()}/{self.last.isoformat()}"

    @property
    def is_open(self) -> bool:
        """Whether it lacks a beginning or an end, as "since May" does."""
        return self.first == date.min or self.last == date.max

    def contains(self, day: date) -> bool:
        """Return whether a day lies within the period."""
        return self.first <= day <= self.last

    @property
    def in_words(self) -> str:
        """Which time it is: "of 2026-03", "since 2026-03-01", "from 2026-01-01 to 2026-03-31"."""
        first, last = self.first.isoformat(), self.last.isoformat()
        if self.is_open:
            return f"until {last}" if self.first == date.min else f"since {first}"
        for length in (4, 7, 10):
            if days_of_iso(first[:length]) == (self.first, self.last):
                return f"of {first[:length]}"
        return f"from {first} to {last}"

    def covers(self, iso: str) -> bool | None:
        """Return whether a day, month or year lies within the period; None if a part of it does."""
        if not iso:
            return False
        first, last = days_of_iso(iso)
        if self.contains(first) and self.contains(last):
            return True
        return None if first <= self.last and last >= self.first else False

    def gaps(self, times: Sequence[str]) -> list[str]:
        """Return, in words, in which month of the period some times begin or end.

        Args:
            times: In ISO 8601; "" for none.
        """
        days = [days_of_iso(iso) for iso in times if iso]
        if self.is_open or not days:
            return []
        first, last = f"{min(days)[0]:%Y-%m}", f"{max(end for _, end in days):%Y-%m}"
        begins = [f"begins in {first}"] if first > f"{self.first:%Y-%m}" else []
        return begins + ([f"ends in {last}"] if last < f"{self.last:%Y-%m}" else [])

    def fit(self, day: date) -> float:
        """Return 1 for a day within the period, falling towards 0 with the distance from it."""
        distance = max((self.first - day).days, (day - self.last).days, 0)
        length = 0 if self.is_open else (self.last - self.first).days + 1
        return float(0.5 ** (distance / max(_HALVED_AFTER_DAYS, _HALVED_AFTER_SHARE * length)))


class OtherName(Struct, frozen=True):
    """What somebody is called whom a question calls by another name."""

    asked: str
    """What the question says."""
    places: tuple[int, ...]
    """Which of the question's words that are."""
    name: str
    written: tuple[str, ...]
    """What means nobody else: the name, or single words of it."""
    terms: tuple[str, ...]
    """Of what is written, in each language, those that the question does not have; of several words
    with a space between them."""

    def is_in(self, text: str) -> bool:
        """Return whether a text has it; a single word has to be written with the same letters."""
        return any(
            re.search(rf"(?<!\w){re.escape(each)}(?!\w)", text, re.IGNORECASE * (" " in each))
            for each in self.written
        )

    def instead(self, question: str) -> str:
        """Return the question with this name in the place of the one that it has."""
        asked = rf"(?<!\w){re.escape(self.asked)}(?P<owned>['’]s?)?(?!\w)"
        return re.sub(asked, lambda found: self.name + ("'s" if found["owned"] else ""), question)


class Question(Struct, frozen=True, dict=True):
    """A question, analyzed; the properties derived from its words are computed once."""

    text: str
    words: tuple[str, ...]
    word_slots: tuple[tuple[Slot, ...], ...]
    """The slots of each word: several for a compound, none for a stop word."""
    pairs: tuple[tuple[str, str], ...]
    """Terms that are neighbours in the question."""
    dates: tuple[Slot, ...] = ()
    """Those of the slots that are a date."""
    extra_terms: tuple[str, ...] = ()
    """Terms to search for that aren't content: the words that its dates are written in."""
    times: tuple[TimeExpression, ...] = ()
    """The calendar periods it names; the term of each is the first of a slot."""
    periods: tuple[TimeExpression, ...] = ()
    """The same with those in which every memory was made, which tell none apart."""
    phrases: tuple[tuple[str, str], ...] = ()
    """Pairs of terms that count only as neighbours: spoken forms of its dates."""
    other_names: tuple[OtherName, ...] = ()
    """What those whom it names are called elsewhere; their terms are in the slots of the names."""

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """The content of the question: each slot once."""
        return tuple(dict.fromkeys(slot for slots in self.word_slots for slot in slots))

    @cached_property
    def names(self) -> KeysView[Slot]:
        """The slots of versions and of capitalised words other than the first."""
        named = (
            slot
            for at, slots in enumerate(self.word_slots)
            if (at and self.words[at].lstrip(_OPENING)[:1].isupper()) or version_at(self.words, at)
            for slot in slots
        )
        return dict.fromkeys(named).keys()

    @cached_property
    def terms(self) -> tuple[str, ...]:
        """Every term to search for, once."""
        own = (term for slot in self.slots for term in slot)
        return tuple(dict.fromkeys([*own, *self.extra_terms]))

    def words_between(self, begin: int, end: int) -> list[int]:
        """Return the positions of the words that overlap ``text[begin:end]``."""
        positions, start = [], 0
        for position, word in enumerate(self.words):
            if start < end and begin < start + len(word):
                positions.append(position)
            start += len(word) + 1
        return positions


def version_at(words: Sequence[str], at: int) -> str:
    """Return the version number that a word is, without its "v"; "" if it is none."""
    word = words[at].strip(WORD_PUNCTUATION)
    if found := _VERSION.fullmatch(word):
        return found[1] or found[2]
    if not _SHORT_VERSION.fullmatch(word):
        return ""
    before = words[at - 1].lower() if at else ""
    after = " ".join(words[at + 1 : at + 3]).lower()
    return word if before in _VERSION_WORDS or _IS_RELEASED.match(after) else ""


def analyze_question(text: str, languages: Sequence[str] = ("en",)) -> Question:
    """Split a question into words and look up their terms in each of the languages.

    Raises:
        UsageError: The question is empty.
    """
    words = tuple(text.split())
    if not words:
        raise UsageError("the question is empty", "say what you want to know")
    own = question_language(words, languages)
    by_language = [_terms_by_word(words, language, own) for language in languages]
    slots = tuple(_slots(found) for found in zip(*by_language, strict=True))
    pairs = (pair for found in by_language for pair in _pairs(found))
    return Question(" ".join(words), words, slots, tuple(dict.fromkeys(pairs)))


def keep_known_pairs(question: Question) -> Question:
    """Return a question with only the pairs whose terms are both still searched for."""
    known = set(question.terms)
    return replace(question, pairs=tuple(filter(known.issuperset, question.pairs)))


def question_language(words: Sequence[str], languages: Sequence[str]) -> str | None:
    """Return the language that most words of a question are stop words of, if any are.

    It is one of the memories' languages unless another one has far more of them.
    """
    plain = {word.strip(WORD_PUNCTUATION).lower() for word in words}
    counts = {each.code: len(plain & each.stop_words) for each in all_languages()}
    known = max(languages, key=lambda code: counts.get(code, 0), default="")
    other = max(counts, key=counts.__getitem__)
    if counts[other] >= max(_MIN_FOREIGN, 2 * counts.get(known, 0)):
        return other
    return known if counts.get(known) else None


def _terms_by_word(words: Sequence[str], language: str, own: str | None) -> list[list[str]]:
    """Return the terms of each word; none for a stop word of the question's own language, which
    would be content in another one, though no memory has it."""
    if own == "fr":
        words = [_INVERTED.sub("", word) for word in words]
    return [
        []
        if _is_only_asking(words, at) or (own is not None and not terms(words[at], own))
        else terms(words[at], language)
        for at in range(len(words))
    ]


def _is_only_asking(words: Sequence[str], at: int) -> bool:
    """Return whether a word only belongs to the asking: "much" in "how much is the rent"."""
    word = words[at].strip(WORD_PUNCTUATION).lower()
    before = words[at - 1].strip(WORD_PUNCTUATION).lower() if at else ""
    first = words[0].strip(WORD_PUNCTUATION).lower()
    is_happening = word in _HAPPENING and first in _WHAT
    return word in _ASKING_WORDS or is_happening or (before in _HOW and word in _AFTER_HOW)


def _slots(by_language: Iterable[list[str]]) -> tuple[Slot, ...]:
    return tuple(
        tuple(dict.fromkeys(term for term in found if term is not None))
        for found in zip_longest(*by_language)
    )


def _pairs(by_word: Iterable[list[str]]) -> Iterable[tuple[str, str]]:
    return (
        (first, second)
        for first, second in pairwise([term for found in by_word for term in found])
        if first != second
    )
