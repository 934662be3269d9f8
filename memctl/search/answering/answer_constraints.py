"""Answer constraints: what a sentence must have to answer a question, besides its subject.

Two kinds of question constrain the answer: one that asks for a value written in a way of its own,
such as a phone number, and a short one for a relation of a thing, such as who owns it.  Sentences
that are only about the thing don't answer these, however near they are.  Things that a number
tells apart, such as flat 5 and flat 6, constrain any answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, takewhile

from memctl.language.date_mentions import MONTHS, WEEKDAYS
from memctl.language.term_analysis import query_terms
from memctl.models.protocols import Embedder
from memctl.records import Hit
from memctl.search.answering.answer_type import (
    UNAMBIGUOUS_KINDS,
    RequestedValue,
    has_value,
    requested_value,
)
from memctl.search.answering.relevance import GENERIC_TERMS
from memctl.search.query.question import Question, Slot
from memctl.search.query.synonyms import similar_words

_MIN_WITH_VALUE = 0.6
"""Share of the things asked about that must be named with a value for it to be theirs."""
_MIN_WITH_RELATION = 0.5
"""Share of them that must be named with a relation."""
_MAX_OWN_WORDS = 3
"""Words of its own that a sentence may have and still continue the one before it."""
_MAX_WORDS = 5
"""A longer question says enough for a similar sentence to be its answer."""

_ASKS = re.compile(
    r"^\W*(?:(?P<who>who|wer|qui|qui[eé]n)|how much|when|where|whom|wann|wo|wem|wen|quand|où"
    r"|cu[aá]ndo|d[oó]nde|(?P<what>what(?:['’]s| is| was| are| were)|was (?:ist|war)))\b",
    re.IGNORECASE,
)
_MULTI_STEP = re.compile(
    r"\b(?:who|when|where|what|which|why|how)\b.*\b(?:who|when|where|what|which|why|how)\b"
    r"|\b(?:or|oder|ou)\b|(?:\bof\b|['’]s\b).*(?:\bof\b|['’]s\b)",
    re.IGNORECASE,
)
"""Questions for one thing by way of another; no single sentence has both."""
_STEM, _ENDING = 5, 3
"""Words with the same first five letters, or with at most three more than a stem, are forms of one
another."""
_OF = frozenset(("of", "von", "des", "der"))
_POSSESSIVE = re.compile(r"['’]s?$")
_WORD = re.compile(r"[^\W\d_]+")
_YEAR = re.compile(r"\W*(?:1\d|20)\d\d\W*")


@dataclass(frozen=True, slots=True)
class SentenceContext:
    """A sentence and what is around it, as terms."""

    text: str
    own: frozenset[str]
    before: frozenset[str]
    """Of the sentences before it that it may continue; none for a table row, which stands alone."""
    beside: frozenset[str]
    """Of its neighbours on both sides; none for a table row."""
    above: frozenset[str]
    """Of its title and headings."""
    whole: frozenset[str]
    """Of its memory."""
    is_turn: bool
    """Whether it is from a conversation, whose other turns aren't known here."""


@dataclass(frozen=True, slots=True)
class AnswerConstraints:
    """What a sentence must have; by default nothing."""

    value: RequestedValue | None = None
    naming: frozenset[str] = frozenset()
    """The terms of the value's name: "phone" and "number"."""
    words: tuple[str, ...] = ()
    """The words of the question for the relation asked for."""
    relation: frozenset[str] = frozenset()
    """Their terms."""
    synonyms: frozenset[str] = frozenset()
    """Other terms for the relation."""
    things: tuple[Slot, ...] = ()
    """What the value or the relation is asked of."""
    names: tuple[Slot, ...] = ()
    """Those of the things that are names or dates."""

    @property
    def may_be_met_unseen(self) -> bool:
        """Whether a sentence may meet them in words that aren't recognized: "for 150" is a price,
        too, and a relation can be said in other words."""
        return self.value is None or self.value.kind not in UNAMBIGUOUS_KINDS

    def are_met_by(self, sentence: SentenceContext) -> bool:
        """Tell whether a sentence meets them."""
        if self.value is not None and self.value.kind == "number":
            counted = sentence.is_turn or len(self.things) > _MAX_WORDS
            return counted or has_value("number", sentence.text)
        if self.value is not None:
            return has_value(self.value.kind, sentence.text) and self._is_value_theirs(sentence)
        return not self.relation or self._has_relation(sentence)

    def _has_relation(self, sentence: SentenceContext) -> bool:
        """Tell whether a sentence speaks of the relation, and in it of the things."""
        near = sentence.own | sentence.beside | sentence.above
        if _share(self.names, near) < _MIN_WITH_RELATION:
            return False
        if not self.relation.isdisjoint(sentence.own):
            return _share(self.things, sentence.whole) >= _MIN_WITH_RELATION
        is_near = not near.isdisjoint(self.relation | self.synonyms)
        return is_near and _share(self.things, near) >= _MIN_WITH_RELATION

    def _is_value_theirs(self, sentence: SentenceContext) -> bool:
        """Tell whether the value in a sentence is that of the things asked about."""
        if len(self.things) > _MAX_WORDS:
            return True
        near = sentence.own | sentence.before | sentence.above
        if _share(self.things, near) < _MIN_WITH_VALUE:
            return False
        if _share(self.things, sentence.own):
            return True
        known = sentence.above.union(self.naming)
        own = [term for term in sentence.own - known if not any(map(str.isdigit, term))]
        return len(own) <= _MAX_OWN_WORDS


NO_CONSTRAINTS = AnswerConstraints()


def is_multi_step(question: str) -> bool:
    """Tell whether a question asks for one thing by way of another."""
    return _MULTI_STEP.search(question) is not None


def derive_constraints(
    question: Question, hits: Sequence[Hit], languages: Sequence[str]
) -> AnswerConstraints:
    """Return what a sentence of the hits must have, in the words of the question."""
    value = requested_value(question.text)
    if value is not None:
        naming = frozenset(query_terms(value.name, languages))
        things = tuple(slot for slot in question.slots if naming.isdisjoint(slot))
        return AnswerConstraints(value, naming, things=things)
    return _relation_constraints(question, hits, languages)


def allow_synonyms(
    constraints: AnswerConstraints,
    hits: Sequence[Hit],
    load_words: Callable[[], Embedder],
    languages: Sequence[str],
) -> AnswerConstraints:
    """Return the constraints as also met by words of the hits with the same meaning."""
    similar = " ".join(chain(*similar_words(constraints.words, hits, load_words)))
    synonyms = constraints.synonyms.union(query_terms(similar, languages))
    return replace(constraints, synonyms=synonyms)


def _share(slots: Sequence[Slot], found: frozenset[str]) -> float:
    covered = sum(not found.isdisjoint(slot) for slot in slots)
    return covered / len(slots) if slots else 1.0


# --- relations -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Word:
    """A content word of the question."""

    place: int
    slot: Slot
    plain: str
    """In lower case; "" for a number."""
    is_name: bool


def _relation_constraints(
    question: Question, hits: Sequence[Hit], languages: Sequence[str]
) -> AnswerConstraints:
    asks = _ASKS.match(question.text)
    words = list(_content_words(question, hits))
    if asks is None or len(words) > _MAX_WORDS or is_multi_step(question.text):
        return NO_CONSTRAINTS
    nouns_and_verbs = [word for word in words if word.plain and not word.is_name]
    relation = _relation(asks, question, nouns_and_verbs)
    if not relation or not all(GENERIC_TERMS.isdisjoint(word.slot) for word in relation):
        return NO_CONSTRAINTS
    things = [word for word in words if word not in relation]
    return AnswerConstraints(
        words=tuple(word.plain for word in relation),
        relation=frozenset(term for word in relation for term in word.slot),
        synonyms=frozenset(query_terms(" ".join(_word_forms(relation, hits)), languages)),
        things=tuple(word.slot for word in things),
        names=tuple(word.slot for word in things if word.is_name or asks["what"]),
    )


def _relation(asks: re.Match[str], question: Question, words: Sequence[_Word]) -> list[_Word]:
    """Return the words for the relation between the things and what is asked for."""
    if asks["what"]:
        return _head(question, words)
    if asks["who"] and words and words[0].place == 1:
        return [word for word in words if word.place == 1]
    return list(words)


def _head(question: Question, words: Sequence[_Word]) -> list[_Word]:
    """Return what is asked of a thing: "salary" in "what is the salary of Ann"."""
    lower = [word.lower() for word in question.words]
    is_possessive = any(_POSSESSIVE.search(word) for word in lower[2:-1])
    last = len(lower) - 1 if is_possessive else -1
    head = next((place - 1 for place, word in enumerate(lower) if word in _OF), last)
    return [word for word in words if word.place == head]


def _word_forms(relation: Sequence[_Word], hits: Iterable[Hit]) -> list[str]:
    """Return the words of the hits that begin alike, as "supplier" and "supplies" do."""
    stems = [term for word in relation for term in word.slot]
    there = {word.lower() for hit in hits for word in _WORD.findall(_text(hit))}
    return sorted(word for word in there if any(_begin_alike(stem, word) for stem in stems))


def _begin_alike(stem: str, word: str) -> bool:
    pairs = zip(stem, word, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return shared >= _STEM or (shared == len(stem) and len(word) - shared <= _ENDING)


def _content_words(question: Question, hits: Sequence[Hit]) -> Iterator[_Word]:
    capitalised = _capitalised_words(hits)
    for place, (word, slots) in enumerate(zip(question.words, question.word_slots, strict=True)):
        plain = next(iter(_WORD.findall(word.lower())), "")
        for slot in slots if not _YEAR.fullmatch(word) else ():
            is_name = plain in capitalised or slot in question.names or slot in question.dates
            yield _Word(place, slot, plain, is_name)


def _capitalised_words(hits: Iterable[Hit]) -> frozenset[str]:
    """Return the words that the hits only write with a capital letter, in lower case."""
    found = {word for hit in hits for word in _WORD.findall(_text(hit))}
    small = {word for word in found if word.islower()}
    return frozenset(word.lower() for word in found if word.istitle()) - small


def _text(hit: Hit) -> str:
    return f"{hit.title}\n{hit.heading}\n{hit.text}"


# --- numbered things -----------------------------------------------------------------------------

_UNITS = (
    r"%|[€$£¥°²]|(?:k?m|cm|mm|k?g|mg|l|ml|[kmgt]b|k?wh?|h|min|sec|am|pm|a\.m|p\.m|eur|usd|gbp|chf"
    r"|euros?|dollars?|pounds?|cents?|percent|per cent|prozent|degrees?|grad|o['’]clock|uhr|times?"
    r"|mal|(?:second|minute|hour|day|night|week|month|year|decade)s?|(?:mile|met(?:er|re)|kilo\w*"
    r"|gram|lit(?:er|re)|inche?|foot|feet|word|sentence|line|page|point|item|step|thing|people"
    r"|person)s?|sekunden?|minuten?|stunden?|tagen?|wochen?|monaten?|jahren?|liter|gramm|personen"
    r"|jours?|heures?|semaines?|mois|ans?|ann[ée]es?|d[ií]as?|horas?|semanas?|mes(?:es)?|años?"
    r"|thousand|million|billion|hundred|dozen)\b"
)
_NUMBERED = re.compile(
    r"(?<![^\W\d_])(?P<word>[^\W\d_]{2,})"
    r"(?:\s+(?:number|no|nr|num|nummer|num[eé]ro|número))?\.?:?[ \t]+#?"
    r"(?P<numbers>\d{1,6}[a-z]?(?:(?:,|\s(?:and|or|to|und|oder|bis|et|ou|y|o)\b|\s?[-–/&])"
    r"\s?\d{1,6}[a-z]?)*)"
    rf"(?![\w€$£%]|[.,:/-]\d)(?!\s?(?:{_UNITS}))",
    re.IGNORECASE,
)
_LETTERED = re.compile(r"(?<![\w.-])(?P<word>[^\W\d_]{1,4})-?(?P<numbers>\d{1,6})(?![\w.-]\w)\b")
_PLAUSIBLE_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_RANGE = re.compile(r"(\d+)\s?(?:[-–]|to|bis)\s?(\d+)")
_LONGEST_RANGE = 1000
_COUNTING_WORDS = frozenset(
    query_terms(
        " ".join((*MONTHS, *WEEKDAYS))
        + " top last first next past previous least most about around nearly almost exactly just"
        " roughly spring summer autumn fall winter christmas easter cost costs pay paid weigh"
        " weighs total price worth age aged letzten nächsten ersten etwa kostet",
        ("", "en", "de"),
    )
)
"""After these a number counts something, or is a day."""

Numbers = Mapping[str, frozenset[str]]
"""The numbers that follow each word, given as a term, or each letter, as in "Q3"."""


@dataclass(frozen=True, slots=True)
class NumberedThings:
    """The things in a question that a number tells apart, such as flat 5 and flat 6, or Q2 and Q3.

    The number directly follows what it numbers.  One that counts or measures precedes a unit, and
    dates, times and prices are written as such; these tell nothing apart.
    """

    asked: Numbers
    languages: tuple[str, ...]
    are_missing: bool
    """Whether the hits have such things with other numbers only."""

    def are_others_in(self, text: str) -> bool:
        """Tell whether a text is about such things, but not the numbers asked for."""
        if not self.asked:
            return False
        return self.are_missing or _differ(self.asked, _numbers_in(text, self.languages))


def find_numbered_things(
    question: str, hits: Sequence[Hit], languages: tuple[str, ...]
) -> NumberedThings:
    """Return the numbered things in a question, and whether the hits have them."""
    asked = _numbers_in(question, languages)
    there = _numbers_in("\n".join(map(_text, hits)), languages) if asked else {}
    return NumberedThings(asked, languages, are_missing=_differ(asked, there))


def _numbers_in(text: str, languages: Sequence[str]) -> Numbers:
    """Return the numbers that tell things apart in a text, by what they follow."""
    found: dict[str, frozenset[str]] = {}
    for match in _NUMBERED.finditer(text):
        for term in query_terms(match["word"], languages):
            if term not in _COUNTING_WORDS:
                found[term] = found.get(term, frozenset()) | _parse_numbers(match["numbers"])
    for match in _LETTERED.finditer(text):
        letters = f"{match['word'].lower()}#"
        found[letters] = found.get(letters, frozenset()) | _parse_numbers(match["numbers"])
    return {word: numbers for word, numbers in found.items() if numbers}


def _differ(asked: Numbers, there: Numbers) -> bool:
    """Tell whether something asked for is there, but with none of the numbers asked for."""
    return any(word in there and there[word].isdisjoint(asked[word]) for word in asked)


def _parse_numbers(written: str) -> frozenset[str]:
    """Return the numbers of a list, with those between the ends of a range."""
    numbers = {found.lower() for found in re.findall(r"\d+[a-zA-Z]?", written)}
    for low, high in _RANGE.findall(written):
        if 0 <= int(high) - int(low) <= _LONGEST_RANGE:
            numbers.update(map(str, range(int(low), int(high) + 1)))
    return frozenset(number for number in numbers if not _PLAUSIBLE_YEAR.fullmatch(number))
