"""What a sentence must have to answer a question, besides being about the same things.

Two kinds of question tell: one that asks for what is written in a way of its own, such as a phone
number, and a short one for a relation of a thing, such as who owns it.  Of such a question the
sentences that are only about the thing are no answers, however near they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, takewhile

from memctl.language.date_mentions import MONTHS, WEEKDAYS
from memctl.language.term_analysis import query_terms
from memctl.records import Hit
from memctl.search.answering.answer_type import (
    UNAMBIGUOUS_KINDS,
    RequestedValue,
    has_value,
    requested_value,
)
from memctl.search.answering.relevance import GENERIC_TERMS
from memctl.search.query.question import Question, QuestionMeaning, Slot
from memctl.search.query.synonyms import similar_words
from memctl.search.retrieval.candidates import Candidate

_BOUND = 0.6
"""Share of the things asked about that must be spoken of with a value for it to be theirs."""
_RELATED = 0.5
"""Share of them that must be spoken of with a relation."""
_SUBJECT = 3
"""Words of its own that a sentence may have and still go on about the one before it."""
_MOST_WORDS = 5
"""Longer questions say enough for what is like them to be taken for an answer."""

_ASKS = re.compile(
    r"^\W*(?:(?P<who>who|wer|qui|qui[eé]n)|how much|when|where|whom|wann|wo|wem|wen|quand|où"
    r"|cu[aá]ndo|d[oó]nde|(?P<what>what(?:['’]s| is| was| are| were)|was (?:ist|war)))\b",
    re.IGNORECASE,
)
_IN_STEPS = re.compile(
    r"\b(?:who|when|where|what|which|why|how)\b.*\b(?:who|when|where|what|which|why|how)\b"
    r"|\b(?:or|oder|ou)\b|(?:\bof\b|['’]s\b).*(?:\bof\b|['’]s\b)",
    re.IGNORECASE,
)
"""Such questions are of things found by other things, which no one sentence speaks of."""
_STEM, _ENDING = 5, 3
"""Letters by which words are taken for forms of one another: of a stem, and of an ending."""
_OF = frozenset(("of", "von", "des", "der"))
_POSSESSIVE = re.compile(r"['’]s?$")
_WORD = re.compile(r"[^\W\d_]+")
_YEAR = re.compile(r"\W*(?:1\d|20)\d\d\W*")


@dataclass(frozen=True, slots=True)
class SentenceContext:
    """A sentence and what stands around it, as terms."""

    text: str
    own: frozenset[str]
    before: frozenset[str]
    """Of the sentences before it that it may go on about; none for a row, which stands alone."""
    beside: frozenset[str]
    """Of its neighbours on both sides; none for a row."""
    above: frozenset[str]
    """Of its title and headings."""
    whole: frozenset[str]
    """Of the memory that it is in."""
    is_turn: bool
    """Whether it is said in a conversation, of which the other turns are not here."""


@dataclass(frozen=True, slots=True)
class AnswerConstraints:
    """What a sentence must have; by default nothing."""

    exact: RequestedValue | None = None
    naming: frozenset[str] = frozenset()
    """The terms of what names the thing asked for: "phone" and "number"."""
    words: tuple[str, ...] = ()
    """Those of the question for the relation that is asked for."""
    relation: frozenset[str] = frozenset()
    """Their terms."""
    kin: frozenset[str] = frozenset()
    """Other terms for the relation."""
    things: tuple[Slot, ...] = ()
    """Of what it is asked."""
    names: tuple[Slot, ...] = ()
    """Those of the things that are names or dates."""

    @property
    def may_be_told_otherwise(self) -> bool:
        """Whether a sentence may have it without being seen to: "for 150" is a price as well, and a
        relation has other words."""
        return self.exact is None or self.exact.kind not in UNAMBIGUOUS_KINDS

    def is_met_by(self, sentence: SentenceContext) -> bool:
        """Tell whether a sentence has it."""
        if self.exact is not None and self.exact.kind == "number":
            counted = sentence.is_turn or len(self.things) > _MOST_WORDS
            return counted or has_value("number", sentence.text)
        if self.exact is not None:
            return has_value(self.exact.kind, sentence.text) and self._is_bound(sentence)
        return not self.relation or self._is_related(sentence)

    def _is_related(self, sentence: SentenceContext) -> bool:
        """Tell whether a sentence speaks of the relation, and in that of the things."""
        near = sentence.own | sentence.beside | sentence.above
        if _share(self.names, near) < _RELATED:
            return False
        if not self.relation.isdisjoint(sentence.own):
            return _share(self.things, sentence.whole) >= _RELATED
        told = not near.isdisjoint(self.relation | self.kin)
        return told and _share(self.things, near) >= _RELATED

    def _is_bound(self, sentence: SentenceContext) -> bool:
        """Tell whether the value in a sentence is that of the things asked about."""
        if len(self.things) > _MOST_WORDS:
            return True
        near = sentence.own | sentence.before | sentence.above
        if _share(self.things, near) < _BOUND:
            return False
        if _share(self.things, sentence.own):
            return True
        known = sentence.above.union(self.naming)
        own = [term for term in sentence.own - known if not any(map(str.isdigit, term))]
        return len(own) <= _SUBJECT


NO_CONSTRAINTS = AnswerConstraints()


def is_multi_step(question: str) -> bool:
    """Tell whether a question asks of things that are told by other things."""
    return _IN_STEPS.search(question) is not None


def derive_constraints(
    question: Question, hits: Sequence[Hit], languages: Sequence[str]
) -> AnswerConstraints:
    """Return what the sentences of the hits must have, in the words of the question."""
    exact = requested_value(question.text)
    if exact is not None:
        naming = frozenset(query_terms(exact.name, languages))
        things = tuple(slot for slot in question.slots if naming.isdisjoint(slot))
        return AnswerConstraints(exact, naming, things=things)
    return _related(question, hits, languages)


def allow_synonyms(
    demand: AnswerConstraints,
    hits: Sequence[Hit],
    meaning: QuestionMeaning,
    languages: Sequence[str],
) -> AnswerConstraints:
    """Return the demand as one that the hits may also meet with words of the same meaning."""
    kin = " ".join(chain(*similar_words(demand.words, hits, meaning)))
    return replace(demand, kin=demand.kin.union(query_terms(kin, languages)))


def add_value_terms(
    demand: AnswerConstraints, candidates: Sequence[Candidate], hits: Sequence[Hit]
) -> list[Candidate]:
    """Return the candidates, each of which became a hit, as having the name of what they have: a
    price is told by figures alone."""
    exact = demand.exact
    if exact is None:
        return list(candidates)
    return [
        replace(candidate, terms=candidate.terms | demand.naming)
        if has_value(exact.kind, hit.text)
        else candidate
        for candidate, hit in zip(candidates, hits, strict=True)
    ]


def _share(slots: Sequence[Slot], found: frozenset[str]) -> float:
    covered = sum(not found.isdisjoint(slot) for slot in slots)
    return covered / len(slots) if slots else 1.0


# --- relations -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of the question that is content."""

    place: int
    slot: Slot
    plain: str
    """In small letters; empty for a number."""
    is_name: bool


def _related(
    question: Question, hits: Sequence[Hit], languages: Sequence[str]
) -> AnswerConstraints:
    asks = _ASKS.match(question.text)
    words = list(_content(question, hits))
    if asks is None or len(words) > _MOST_WORDS or is_multi_step(question.text):
        return NO_CONSTRAINTS
    relation = _relation(
        asks, question, [word for word in words if word.plain and not word.is_name]
    )
    if not relation or not all(GENERIC_TERMS.isdisjoint(word.slot) for word in relation):
        return NO_CONSTRAINTS
    things = [word for word in words if word not in relation]
    return AnswerConstraints(
        words=tuple(word.plain for word in relation),
        relation=frozenset(term for word in relation for term in word.slot),
        kin=frozenset(query_terms(" ".join(_alike(relation, hits)), languages)),
        things=tuple(word.slot for word in things),
        names=tuple(word.slot for word in things if word.is_name or asks["what"]),
    )


def _relation(asks: re.Match[str], question: Question, words: Sequence[_Word]) -> list[_Word]:
    """Return the words that say in which relation to the things stands what is asked for."""
    if asks["what"]:
        return _head(question, words)
    if asks["who"] and words and words[0].place == 1:
        return [word for word in words if word.place == 1]
    return list(words)


def _head(question: Question, words: Sequence[_Word]) -> list[_Word]:
    """Return what is asked of a thing: "salary" in "what is the salary of Ann"."""
    lower = [word.lower() for word in question.words]
    whose = any(_POSSESSIVE.search(word) for word in lower[2:-1])
    last = len(lower) - 1 if whose else -1
    head = next((place - 1 for place, word in enumerate(lower) if word in _OF), last)
    return [word for word in words if word.place == head]


def _alike(relation: Sequence[_Word], hits: Iterable[Hit]) -> list[str]:
    """Return the words of the hits that begin alike, as "supplier" and "supplies" do."""
    stems = [term for word in relation for term in word.slot]
    there = {word.lower() for hit in hits for word in _WORD.findall(_text(hit))}
    return sorted(word for word in there if any(_begin_alike(stem, word) for stem in stems))


def _begin_alike(stem: str, word: str) -> bool:
    pairs = zip(stem, word, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return shared >= _STEM or (shared == len(stem) and len(word) - shared <= _ENDING)


def _content(question: Question, hits: Sequence[Hit]) -> Iterator[_Word]:
    written_large = _capitalised(hits)
    for place, (word, slots) in enumerate(zip(question.words, question.word_slots, strict=True)):
        plain = next(iter(_WORD.findall(word.lower())), "")
        for slot in slots if not _YEAR.fullmatch(word) else ():
            is_name = plain in written_large or slot in question.names or slot in question.dates
            yield _Word(place, slot, plain, is_name)


def _capitalised(hits: Iterable[Hit]) -> frozenset[str]:
    """Return the words that the hits write with a capital letter alone."""
    found = {word for hit in hits for word in _WORD.findall(_text(hit))}
    small = {word for word in found if word.islower()}
    return frozenset(word.lower() for word in found if word.istitle()) - small


def _text(hit: Hit) -> str:
    return f"{hit.title}\n{hit.heading}\n{hit.text}"


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
_NO_NAMES = frozenset(
    query_terms(
        " ".join((*MONTHS, *WEEKDAYS))
        + " top last first next past previous least most about around nearly almost exactly just"
        " roughly spring summer autumn fall winter christmas easter cost costs pay paid weigh"
        " weighs total price worth age aged letzten nächsten ersten etwa kostet",
        ("", "en", "de"),
    )
)
"""Behind these a number counts, or is a day."""

Numbers = Mapping[str, frozenset[str]]
"""The numbers that stand behind each word, as a term; or behind letters, as they are."""


@dataclass(frozen=True, slots=True)
class NumberedThings:
    """The numbered things that a question is about, and whether a memory has them."""

    asked: Numbers
    languages: tuple[str, ...]
    is_missing: bool
    """Whether the hits have such things by other numbers alone."""

    def is_another(self, told: str) -> bool:
        """Tell whether a text is about such things of other numbers, or cannot be of these."""
        if not self.asked:
            return False
        return self.is_missing or _differ(self.asked, numbers_of(told, self.languages))


NO_NUMBERED_THINGS = NumberedThings({}, (), is_missing=False)


def find_numbered_things(
    question: str, hits: Sequence[Hit], languages: tuple[str, ...]
) -> NumberedThings:
    """Return the numbered things of a question, of which the hits tell."""
    asked = numbers_of(question, languages)
    if not asked:
        return NO_NUMBERED_THINGS
    told = numbers_of("\n".join(f"{h.title}\n{h.heading}\n{h.text}" for h in hits), languages)
    return NumberedThings(asked, languages, is_missing=_differ(asked, told))


def numbers_of(text: str, languages: Sequence[str]) -> Numbers:
    """Return the numbers that tell things apart in a text, by what they stand behind."""
    found: dict[str, frozenset[str]] = {}
    for match in _NUMBERED.finditer(text):
        for term in query_terms(match["word"], languages):
            if term not in _NO_NAMES:
                found[term] = found.get(term, frozenset()) | _each(match["numbers"])
    for match in _LETTERED.finditer(text):
        letters = f"{match['word'].lower()}#"
        found[letters] = found.get(letters, frozenset()) | _each(match["numbers"])
    return {word: numbers for word, numbers in found.items() if numbers}


def _differ(asked: Numbers, told: Numbers) -> bool:
    """Tell whether something asked for is told of, but by none of the numbers asked for."""
    return any(word in told and told[word].isdisjoint(asked[word]) for word in asked)


def _each(written: str) -> frozenset[str]:
    """Return the numbers of a list, with those between the ends of a range."""
    numbers = {found.lower() for found in re.findall(r"\d+[a-zA-Z]?", written)}
    for low, high in _RANGE.findall(written):
        if 0 <= int(high) - int(low) <= _LONGEST_RANGE:
            numbers.update(map(str, range(int(low), int(high) + 1)))
    return frozenset(number for number in numbers if not _PLAUSIBLE_YEAR.fullmatch(number))
