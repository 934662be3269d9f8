"""Things that a number tells apart, such as flat 5 and flat 6, or Q2 and Q3.

A number stands right behind what it numbers.  One that counts or measures stands before a unit, and
one that is a date, a time or a price is written like that; these tell nothing apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memctl.records import Hit
from memctl.understand.dates import MONTHS, WEEKDAYS
from memctl.understand.terms import query_terms

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
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
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
class Numbered:
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


NOT_NUMBERED = Numbered({}, (), is_missing=False)


def numbered(question: str, hits: Sequence[Hit], languages: tuple[str, ...]) -> Numbered:
    """Return the numbered things of a question, of which the hits tell."""
    asked = numbers_of(question, languages)
    if not asked:
        return NOT_NUMBERED
    told = numbers_of("\n".join(f"{h.title}\n{h.heading}\n{h.text}" for h in hits), languages)
    return Numbered(asked, languages, is_missing=_differ(asked, told))


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
    return frozenset(number for number in numbers if not _YEAR.fullmatch(number))
