"""Whether what a model wrote is supported by the evidence it names, as far as words can tell.

A sentence is supported when half of its content terms at least, and every number and every name
in it, stand in the evidence.  Words cannot tell a statement from its denial: this finds what was
made up, not what was misread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime

from msgspec import Struct

from memctl.language.date_mentions import date_spans
from memctl.language.identification import identify_language
from memctl.language.term_analysis import query_terms, terms
from memctl.language.word_lists import is_common_word, numerals, stop_words

MIN_SUPPORT = 0.5
"""The share of a sentence's content terms that its evidence must have."""

_NUMBER = re.compile(r"\S*\d\S*")
_PLAIN_NUMBER = re.compile(r"[\d.,:/\-]+")
_AROUND = ".,;:!?()[]{}\"'“”‘’«»*_<>%€$£~"
_REPLY = re.compile(r"^(?:yes|no|ja|nein|oui|non|sí|sì)\b[,.:;!]?\s*", re.IGNORECASE)
_CAPITALISED = re.compile(r"(?<![\w'’])[^\W\d_a-z][\w'’\-]*")
_NOUNS_WITH_CAPITALS = frozenset({"de", "lb"})
_LENGTH_OF_DAY = len("2026-05-12")
_NUMERALS = numerals("en")


class Evidence(Struct, frozen=True):
    """A text that a sentence rests on."""

    text: str
    said: datetime
    """When it was said, which decides what "tomorrow" means."""


class Support(Struct, frozen=True):
    """How far a sentence is supported."""

    share: float
    """Of its content terms, 0 to 1."""
    missing: tuple[str, ...]
    """Numbers and names that are not in the evidence."""

    @property
    def is_enough(self) -> bool:
        """Whether the evidence may be what the sentence says."""
        return self.share >= MIN_SUPPORT and not self.missing


def measure_support(
    sentence: str, evidence: Sequence[Evidence], languages: Sequence[str]
) -> Support:
    """Return how far some evidence supports a sentence.

    Args:
        sentence: One that a model wrote.
        evidence: What it rests on.
        languages: ISO 639-1 codes, by which words are compared.
    """
    sentence = _REPLY.sub("", sentence)
    known = frozenset(term for item in evidence for term in _terms_of(item, languages))
    content = query_terms(sentence, languages)
    share = sum(term in known for term in content) / len(content) if content else 1.0
    words = [*_numbers(sentence), *_names(sentence, evidence, languages)]
    missing = [word for word in words if not _stands_in(word, known, languages)]
    return Support(share, tuple(dict.fromkeys(missing)))


def _terms_of(item: Evidence, languages: Sequence[str]) -> Iterator[str]:
    """Yield the terms of a text, and its dates and small numbers written in other ways."""
    yield from query_terms(item.text, languages)
    for span in date_spans(item.text, item.said):
        yield from query_terms(_in_words(span.iso), languages)
    yield from query_terms(_in_words(item.said.date().isoformat()), languages)
    for word in item.text.lower().split():
        if word in _NUMERALS:
            yield str(_NUMERALS[word])


def _in_words(iso: str) -> str:
    try:
        if len(iso) == _LENGTH_OF_DAY:
            day = date.fromisoformat(iso)
            return f"{iso} {day.day} {day:%A %B %Y}"
        return f"{iso} {date.fromisoformat(f'{iso}-01'):%B %Y}"
    except ValueError:  # a year, a week or a quarter
        return iso


def _numbers(sentence: str) -> Iterator[str]:
    for match in _NUMBER.finditer(sentence):
        yield match.group().strip(_AROUND)


def _names(sentence: str, evidence: Iterable[Evidence], languages: Sequence[str]) -> list[str]:
    """Return the words that are names by their capitals; the first one only in English."""
    found = list(_CAPITALISED.finditer(sentence))
    first_counts = tuple(languages) in (("en",), ())
    words = [match.group() for match in found if match.start() > 0 or first_counts]
    uncommon = [word for word in words if not _is_common(word, languages)]
    if (
        uncommon
        and identify_language(" ".join(item.text for item in evidence)) in _NOUNS_WITH_CAPITALS
    ):
        return []
    return uncommon


def _is_common(word: str, languages: Iterable[str]) -> bool:
    plain = word.lower()
    return is_common_word(plain) or any(plain in stop_words(code) for code in (*languages, "en"))


def _stands_in(word: str, known: frozenset[str], languages: Sequence[str]) -> bool:
    """Return whether a word is known whole, or each part of one that is made of several."""
    for language in languages or ("",):
        *parts, whole = terms(word, language) or [""]
        if not whole or whole in known:
            return True
        if parts and not _PLAIN_NUMBER.fullmatch(word) and known.issuperset(parts):
            return True
    return False
