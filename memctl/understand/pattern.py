"""What a sentence pattern is, and the pieces that patterns are put together from."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memctl.understand.stopwords import words

NAME = r"[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)?"
MONTH = (
    r"(?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
DAY = r"(?i:(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
WHEN = (
    rf"\b(?i:{DAY}s?|tomorrow|{MONTH} \d{{1,2}}(?:st|nd|rd|th)?|\d{{1,2}}(?:st|nd|rd|th)?"
    rf"(?: of)? {MONTH}|(?:in|by|before|until|since|from|of|end of|early|late|mid) {MONTH}\b|"
    r"the \d{1,2}(?:st|nd|rd|th)|the (?:first|second|third|fourth|last) (?:week|day|of)|"
    r"(?:next|this|the following|coming) (?:week(?:end)?|month|year|spring|summer|autumn|fall|"
    r"winter|semester|term)|at (?:easter|christmas)|\d{4}-\d\d-\d\d|(?:in|by|until|since) 20\d\d|"
    r"by the end of|this (?:afternoon|evening|morning))\b"
)


@dataclass(frozen=True, slots=True)
class Pattern:
    """``regex`` found in a sentence makes it a statement of ``type``."""

    type: str
    name: str
    words: frozenset[str]
    """Any sentence that ``regex`` finds has one of these words, in lower case."""
    regex: re.Pattern[str]
    confidence: float
    importance: float


def pattern(
    type_: str, name: str, having: str, regex: str, confidence: float, importance: float
) -> Pattern:
    """Make a pattern; ``having`` lists the words of which any match has one."""
    return Pattern(type_, name, words(having), re.compile(regex), confidence, importance)
