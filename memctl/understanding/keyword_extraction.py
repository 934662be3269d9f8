"""The phrases that say what a text is about.

Candidates are runs of words between stop words (as in RAKE: Rose et al., 2010), scored by how
often their words come and how early, and chosen one after another so that they differ (maximal
marginal relevance: Carbonell and Goldstein, 1998).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from math import log

from memctl.language.word_lists import VERBS, WEAK_WORDS, load_language, stop_words
from memctl.records import SourceText

MAX_KEYWORDS = 10
_SCANNED = 60_000
_CANDIDATES = 60
_MAX_PHRASE_LENGTH = 3
_BY_LENGTH: tuple[float, ...] = (
    1.0,
    *(float(1 / length**0.6) for length in range(1, _MAX_PHRASE_LENGTH + 1)),
)
_LONG_WORD = 9
_LENGTH_WEIGHTS = tuple(length / _LONG_WORD + 0.4 for length in range(_LONG_WORD + 1))
"""What a word counts for by its length."""
_LOG_OF_2 = log(2)
_EARLY = 20
"""Phrases within this many tokens from the start lose nothing for their place."""
_REMEMBERED = 100_000
_TOKEN = re.compile(r"[^\W_]+(?:['’.\-][^\W_]+)*|[^\w\s]|\n")
_ASCII_TOKEN = re.compile(r"[A-Za-z0-9]+(?:['.\-][A-Za-z0-9]+)*|[^\w\s]|\n")
"""The same where all is ASCII, found a quarter faster."""
_URL = re.compile(r"(?:https?://|www\.)\S+")

_DATE = re.compile(r"(?:\d{4}-\d{2}-\d{2}|\d{1,2}\.\d{1,2}\.\d{2,4})(?!\w)")

_DROPPED = WEAK_WORDS | VERBS
"""Words of no weight, and forms that end a phrase instead of standing in it."""


Words = tuple[str, ...]
_Place = tuple[int, int]
"""Where the run ends that a phrase begins, and where it starts, in tokens."""
_Ranked = tuple[float, int, int, Words]
"""What a phrase counts for, negative so that the best comes first; its place; its words."""


def extract_keywords(text: str, language: str, *, limit: int = MAX_KEYWORDS) -> tuple[str, ...]:
    """Return the phrases that say what a text is about, the most telling first."""
    tokens = _tokens(text[:_SCANNED])
    ranked = _rank(tokens, _content_words(language or "en"))
    return tuple(_phrase_text(tokens, phrase) for phrase in _different(ranked, limit))


def _tokens(text: str) -> list[str]:
    """Words and marks, and a line end after the last one."""
    if "://" in text or "www." in text:
        text = _URL.sub("\n", text)
    return [*(_ASCII_TOKEN if text.isascii() else _TOKEN).findall(text), "\n"]


def _phrase_text(tokens: Sequence[str], phrase: _Ranked) -> str:
    """A phrase as it was written."""
    _, _, start, words = phrase
    return " ".join(tokens[start : start + len(words)])


def _phrases(plain: Sequence[str]) -> tuple[dict[Words, int], dict[Words, _Place]]:
    """How often each run of words between others comes, and where it comes first."""
    counts: dict[Words, int] = {}
    places: dict[Words, _Place] = {}
    start = 0
    while start < len(plain):  # the last one carries nothing
        end = plain.index("", start)
        if end > start:
            words = tuple(plain[start : min(end, start + _MAX_PHRASE_LENGTH)])
            if words in counts:
                counts[words] += 1
            else:
                counts[words] = 1
                places[words] = end, start
        start = end + 1
    return counts, places


class _ContentWords(dict[str, str]):
    """Each token in lower case where it may be part of a phrase, else ``""``; bounded."""

    def __init__(self, language: str) -> None:
        super().__init__()
        weak = load_language(language).weak_words
        self._dropped = _DROPPED | weak | stop_words("en") | stop_words(language)

    def __missing__(self, token: str) -> str:
        if len(self) >= _REMEMBERED:
            self.clear()
        plain = token.lower().replace("’", "'")
        return self.setdefault(token, plain if self._is_content_word(token, plain) else "")

    def _is_content_word(self, token: str, plain: str) -> bool:
        if len(token) < 2 or not token[0].isalnum():
            return token.isalpha() and not token.isascii()
        if _DATE.match(token):
            return False
        return plain not in self._dropped and not token.isdigit() and "'" not in plain[-3:]


@cache
def _content_words(language: str) -> _ContentWords:
    return _ContentWords(language)


def _rank(tokens: Sequence[str], carriers: Mapping[str, str]) -> list[_Ranked]:
    """The runs of words between stop words, weak words and marks, the most telling first."""
    counts, places = _phrases(list(map(carriers.__getitem__, tokens)))
    of_words: dict[str, int] = {}
    for phrase, count in counts.items():
        for word in phrase:
            of_words[word] = of_words.get(word, 0) + count
    ranked: list[_Ranked] = []
    for phrase, (position, start) in places.items():
        score = _score(phrase, counts[phrase], of_words)
        if position > _EARLY:
            score /= 1.0 + 0.15 * log(position / _EARLY)
        found = -score, position, start, phrase
        if tokens[start][0].isupper() and not _phrase_text(tokens, found).isupper():
            found = -score * 1.25, position, start, phrase
        ranked.append(found)
    ranked.sort()
    return ranked[:_CANDIDATES]


def _score(phrase: Words, times: int, counts: Mapping[str, int]) -> float:
    """What a phrase counts for that comes this many times, and its words this often."""
    weight = 0.0
    for word in phrase:
        count = counts[word]
        length_weight = (
            _LENGTH_WEIGHTS[len(word)] if len(word) < _LONG_WORD else _LENGTH_WEIGHTS[_LONG_WORD]
        )
        weight += length_weight * (_LOG_OF_2 if count == 1 else log(1 + count))
    weight *= _BY_LENGTH[len(phrase)]
    return weight if times == 1 else weight * (1 + log(times))


def _different(ranked: Sequence[_Ranked], limit: int) -> list[_Ranked]:
    """Take the best that share at most half of their words with one already taken."""
    chosen: list[_Ranked] = []
    taken: set[str] = set()
    for phrase in ranked:
        words = phrase[-1]
        if taken.isdisjoint(words) or not any(_alike(words, other[-1]) for other in chosen):
            chosen.append(phrase)
            taken.update(words)
            if len(chosen) == limit:
                break
    return chosen


def _alike(some: Words, other: Words) -> bool:
    shared = len(set(some) & set(other))
    return 2 * shared > min(len(some), len(other))


MAX_TOPICS = 5
_SHORT = 400
_HEADINGS_LOOKED_AT = 60
_MAX_TITLE_LENGTH = 3
_WORD = re.compile(r"[^\W_]+")
_DATE_FIRST = re.compile(r"^\s*\d{4}-\d{2}-\d{2}[\s_-]*")
_MARKS = re.compile(r"^[#\s\d.)=*_-]+|[\s#=*_:-]+$")


def choose_topics(
    source: SourceText, phrases: Sequence[str], tags: Sequence[str], language: str = ""
) -> tuple[str, ...]:
    """Return a short list of topics, lower case, tags first; short texts have few or none.

    Args:
        source: The document.
        phrases: Its keywords, best first.
        tags: Its tags.
        language: Its language, "" when unknown.
    """
    found = [tag.replace("-", " ").replace("_", " ") for tag in tags[:3]]
    if len(source.text) < _SHORT and not source.segments:
        return _distinct([*found, *phrases[:2]])
    headings = "\n".join(_headings(source))
    if headings:
        named = extract_keywords(headings, language, limit=3)
        found += [phrase for phrase in named if not _is_of_long_title(phrase, source.title)]
    return _distinct([*found, *phrases])


def _headings(source: SourceText) -> Iterator[str]:
    if source.title:
        yield source.title
    headings = (part for part in source.segments if part.kind == "heading")
    for _, part in zip(range(_HEADINGS_LOOKED_AT), headings, strict=False):
        yield _MARKS.sub("", source.text[part.start : part.end])


def _is_of_long_title(phrase: str, title: str) -> bool:
    """Return whether a phrase is a title of more than three words, or such a title cut short."""
    plain, named = (
        " ".join(_WORD.findall(text.lower())) for text in (phrase, _DATE_FIRST.sub("", title))
    )
    if len(named.split()) <= _MAX_TITLE_LENGTH:
        return False
    after = named.partition(plain)[2].split()
    cut = plain.count(" ") + 1 >= _MAX_TITLE_LENGTH and plain in named
    return cut and (not after or after[0] not in stop_words("en"))


def _distinct(found: Iterable[str]) -> tuple[str, ...]:
    chosen: list[str] = []
    taken: set[str] = set()
    for phrase in found:
        words = phrase.lower().split()
        if words and taken.isdisjoint(words):
            chosen.append(" ".join(words))
            taken.update(words)
    return tuple(chosen[:MAX_TOPICS])
