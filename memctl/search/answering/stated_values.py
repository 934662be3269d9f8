"""Values in a sentence: the dates, days and numbers in it, which are what an update changes."""

from __future__ import annotations

import re

from memctl.language.word_lists import all_languages, month_numbers

_MONTHS = "|".join(sorted(month_numbers(), key=len, reverse=True))
_WEEKDAYS = "|".join(f"{names[0]}s?" for each in all_languages() for names in each.weekdays)
_DATE = (
    r"(?:1\d|20)\d\d-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}"
    rf"|(?:{_MONTHS})\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? (?:1\d|20)\d\d)?"
    rf"|\d{{1,2}}(?:st|nd|rd|th|\.)? (?:of )?(?:{_MONTHS})(?:,? (?:1\d|20)\d\d)?"
    r"|(?:1\d|20)\d\d(?:-\d\d)?"
)
_ABSOLUTE_DATE = re.compile(rf"\b(?:{_DATE})\b", re.IGNORECASE)
_VALUE = re.compile(rf"\b(?:{_DATE}|\d[\d.,:/]*\d|\d|{_MONTHS}|{_WEEKDAYS})\b", re.IGNORECASE)
_RELATIVE = re.compile(
    rf"\b(?:{_WEEKDAYS}|today|tomorrow|yesterday|tonight|weekend|now"
    r"|(?:last|next|this) (?:week|month|year|night)|(?:days?|weeks?|months?|years?) ago"
    r"|heute|morgen|gestern|demain|aujourd'hui|hier|mañana|ayer|hoy)\b",
    re.IGNORECASE,
)
_ASKS_WHEN = re.compile(
    r"\b(?:when|since when|(?:what|which) (?:\w+ )?(?:date|day|time|year|month|week)|wann|quand"
    r"|cu[aá]ndo|quando)\b",
    re.IGNORECASE,
)


def asks_when(question: str) -> bool:
    """Tell whether a question asks for a time."""
    return _ASKS_WHEN.search(question) is not None


def has_date(sentence: str) -> bool:
    """Tell whether a sentence names an absolute date, unlike "last week"."""
    return _ABSOLUTE_DATE.search(sentence) is not None


def has_relative_time(sentence: str) -> bool:
    """Tell whether a sentence names a time relative to when it was said."""
    return _RELATIVE.search(sentence) is not None


def stated_values(sentence: str) -> frozenset[str]:
    """Return the dates, days and numbers in a sentence, which are what an update changes."""
    return frozenset(" ".join(found.lower().split()) for found in _VALUE.findall(sentence))
