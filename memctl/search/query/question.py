"""A question taken apart: its words, the terms that each may be found by, and their weights."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, KeysView, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memctl.errors import UsageError
from memctl.language.term_analysis import WORD_PUNCTUATION, terms
from memctl.language.word_lists import all_languages
from memctl.models.protocols import Embedder, WordEmbedder
from memctl.search.retrieval.term_statistics import TermStatistics

if TYPE_CHECKING:
    from memctl.search.query.time_expressions import TimeExpression

STOP_WORD_WEIGHT = 0.1
"""Weight in the question's vector of a word that keyword search drops, where 1 is the rarest.  The
built-in vectors of English stop words are short (a third of those of other words), but the stop
words of other languages have vectors as long as any, and at 0.3 they outweighed the question."""
_WORD_WEIGHT_EXPONENT = 0.75
_FEWEST_FOREIGN = 3
"""Stop words of a language that no memory is in, from which on a question may be in it."""

_HOW = frozenset(("how", "wie"))
_AFTER_HOW = frozenset(("much", "many", "long", "often", "come", "viel", "viele", "lange", "oft"))
_ASKING = frozenset(("please", "tell", "bitte", "combien", "cuánto", "cuántos", "cuánta", "quanto"))
_WHAT = frozenset(("what", "whatever", "was"))
_HAPPENING = frozenset(("happen", "happens", "happened", "passiert", "passierte", "geschah"))
_OPENING = "\"'([{“‘«„"
_VERSION = re.compile(r"[vV](\d+(?:\.\d+)*)|(\d+(?:\.\d+){2,3})")
_SHORT_VERSION = re.compile(r"\d+(?:\.\d+)+")
_SAID_VERSIONS = frozenset(("version", "release", "versión", "versione", "versão", "versie"))
"""Words behind which two numbers with a point between are a version."""

Slot = tuple[str, ...]
"""The terms that one word may be found by, one for each language asked in."""


@dataclass(frozen=True)
class Question:
    """A question as search sees it; what follows from its words is worked out once."""

    text: str
    words: tuple[str, ...]
    word_slots: tuple[tuple[Slot, ...], ...]
    """For each word its slots; a compound has several, a stop word none."""
    pairs: tuple[tuple[str, str], ...]
    """Terms that stand next to each other in the question."""
    dates: tuple[Slot, ...] = ()
    """Those of the slots that are a date; see ``days``."""
    also: tuple[str, ...] = ()
    """Terms to look for besides, which are no content: the words of its dates."""
    times: tuple[TimeExpression, ...] = ()
    """The times of the calendar that it tells, each of which is the first term of a slot."""
    phrases: tuple[tuple[str, str], ...] = ()
    """Pairs of terms that count only next to each other: its dates as they are said."""

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """The content of the question: each slot once."""
        return tuple(dict.fromkeys(slot for slots in self.word_slots for slot in slots))

    @cached_property
    def names(self) -> KeysView[Slot]:
        """What is written like a name: slots of capitalised words, the first word aside, and of
        versions."""
        named = (
            slot
            for at, slots in enumerate(self.word_slots)
            if (at and self.words[at].lstrip(_OPENING)[:1].isupper()) or version_at(self.words, at)
            for slot in slots
        )
        return dict.fromkeys(named).keys()

    @cached_property
    def terms(self) -> tuple[str, ...]:
        """Every term to look for, once."""
        own = (term for slot in self.slots for term in slot)
        return tuple(dict.fromkeys([*own, *self.also]))

    def words_between(self, begin: int, end: int) -> list[int]:
        """Return which words a part of the text, given by its offsets, goes through."""
        places, start = [], 0
        for place, word in enumerate(self.words):
            if start < end and begin < start + len(word):
                places.append(place)
            start += len(word) + 1
        return places


def version_at(words: Sequence[str], at: int) -> str:
    """Return the version that a word is, without a "v" before it; "" if it is none."""
    word = words[at].strip(WORD_PUNCTUATION)
    if found := _VERSION.fullmatch(word):
        return found[1] or found[2]
    before = words[at - 1].lower() if at else ""
    return word if before in _SAID_VERSIONS and _SHORT_VERSION.fullmatch(word) else ""


def analyze_question(text: str, languages: Sequence[str] = ("en",)) -> Question:
    """Take a question apart, to be asked of memories in these languages.

    Raises:
        UsageError: It is empty.
    """
    words = tuple(text.split())
    if not words:
        raise UsageError("the question is empty", "say what you want to know")
    own = _own_language(words, languages)
    by_language = [_terms_by_word(words, language, own) for language in languages]
    slots = tuple(_slots(found) for found in zip(*by_language, strict=True))
    pairs = (pair for found in by_language for pair in _pairs(found))
    return Question(" ".join(words), words, slots, tuple(dict.fromkeys(pairs)))


def slot_weight(slot: Slot, statistics: TermStatistics) -> float:
    """Return the idf of the term of a slot that occurs; the highest there is if none does."""
    known = [term for term in slot if statistics.frequencies.get(term)]
    return min((statistics.idf(term) for term in known), default=statistics.highest_idf)


class QuestionMeaning:
    """The vector of a question, and the model that makes it: loaded when it is first asked for.

    Args:
        question: The question.
        statistics: Of the memories asked; its rare words count more where the model can weigh.
        load: Gives the model.
    """

    def __init__(
        self, question: Question, statistics: TermStatistics, load: Callable[[], Embedder]
    ) -> None:
        self._question = question
        self._statistics = statistics
        self._load = load

    @cached_property
    def embedder(self) -> Embedder:
        """What words and sentences are judged by."""
        return self._load()

    @cached_property
    def vector(self) -> NDArray[np.float32]:
        """The question's vector."""
        return question_vector(self._question, self.embedder, self._statistics)

    def of_what_is_left(self, told: frozenset[str]) -> NDArray[np.float32] | None:
        """Return the vector of the question's content without what is told by some terms.

        None where nothing is left, or where the model cannot weigh words.
        """
        left = {
            place: _word_weight(slots, self._statistics)
            for place, slots in enumerate(_left(self._question.word_slots, told))
            if slots
        }
        if not left or not isinstance(self.embedder, WordEmbedder):
            return None
        words = [self._question.words[place] for place in left]
        return self.embedder.embed_words(words, list(left.values()))


def question_vector(
    question: Question, embedder: Embedder, statistics: TermStatistics
) -> NDArray[np.float32]:
    """Return the question's vector, its rare words counting more where the embedder can weigh."""
    if not isinstance(embedder, WordEmbedder) or not statistics.sampled:
        plain: NDArray[np.float32] = embedder.embed([question.text])[0]
        return plain
    weights = [_word_weight(slots, statistics) for slots in question.word_slots]
    return embedder.embed_words(question.words, weights)


def _left(word_slots: Iterable[Sequence[Slot]], told: frozenset[str]) -> Iterable[tuple[Slot, ...]]:
    return (tuple(slot for slot in slots if told.isdisjoint(slot)) for slots in word_slots)


def _word_weight(slots: tuple[Slot, ...], statistics: TermStatistics) -> float:
    if not slots:
        return STOP_WORD_WEIGHT
    rarest = max(slot_weight(slot, statistics) for slot in slots)
    return float((rarest / statistics.highest_idf) ** _WORD_WEIGHT_EXPONENT)


def _own_language(words: Sequence[str], languages: Sequence[str]) -> str | None:
    """Return the language that most words of a question are stop words of, if any are.

    It is one of the memories' languages unless another one has far more of them.
    """
    plain = {word.strip(WORD_PUNCTUATION).lower() for word in words}
    counts = {each.code: len(plain & each.stop_words) for each in all_languages()}
    known = max(languages, key=lambda code: counts.get(code, 0), default="")
    other = max(counts, key=counts.__getitem__)
    if counts[other] >= max(_FEWEST_FOREIGN, 2 * counts.get(known, 0)):
        return other
    return known if counts.get(known) else None


def _terms_by_word(words: Sequence[str], language: str, own: str | None) -> list[list[str]]:
    """Return each word's terms; none for what says nothing in the question's own language, which
    as a word of another language would be content that no record has."""
    return [
        []
        if _only_asks(words, at) or (own is not None and not terms(words[at], own))
        else terms(words[at], language)
        for at in range(len(words))
    ]


def _only_asks(words: Sequence[str], at: int) -> bool:
    """Tell whether a word belongs to the asking: records of a rent never say "much", nor those
    of what happened that it did."""
    word = words[at].strip(WORD_PUNCTUATION).lower()
    before = words[at - 1].strip(WORD_PUNCTUATION).lower() if at else ""
    first = words[0].strip(WORD_PUNCTUATION).lower()
    happening = word in _HAPPENING and first in _WHAT
    return word in _ASKING or happening or (before in _HOW and word in _AFTER_HOW)


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
