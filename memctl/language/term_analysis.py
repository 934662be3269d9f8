"""The analysis that keyword search rests on: text becomes terms, the same for records and queries.

Terms are lower case, folded and stemmed, contain no white space, and repeat as often as the text
does, in its order.  Knows nothing of indexes and ranking.
"""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain, pairwise
from typing import Any

import snowballstemmer

from memctl.language.word_lists import Language, load_language
from memctl.patterns import lazy_regex

WORD_PUNCTUATION = "\"'([{“‘«„”’»)]},;:.!?¿¡"
"""What stands around a word in a sentence."""
_CACHED_TOKENS = 200_000
_MAX_CACHED_LENGTH = 40
_MAX_TERM_LENGTH = 80

_UNSPACED = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\u1100-\u11ff\uac00-\ud7af\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\U00020000-\U0003ffff"
)
"""Scripts written without spaces, or whose words are long compounds: searched by pairs."""

_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0dff"
_LETTER = rf"(?:(?![{_UNSPACED}])[\w{_MARKS}])"


def _pieces(unspaced: str, letter: str) -> str:
    """Return the pattern of what is one piece of a token."""
    return (
        rf"(?P<unspaced>{unspaced})"
        r"|(?P<number>\d+(?:[.,:/\-]\d+)+(?![^\W\d_]))"
        rf"|(?P<word>{letter}+(?:[.'\-@&]{letter}+)*(?:\+\+|#(?!\w))?)"
    )


_PIECE = lazy_regex(_pieces(f"[{_UNSPACED}]+", _LETTER))
_ASCII_PIECE = lazy_regex(_pieces("(?!)", r"\w"))
"""The same for what needs no ranges of scripts, which take 8 ms to compile."""
_CLOSING = ".,;:!?"
"""Marks that end a token without being part of it."""
_INVISIBLE = lazy_regex("[\u00ad\u200b-\u200f\u2060\ufeff]")
_APOSTROPHES = str.maketrans("\u2018\u2019\u02bc\u2010\u2011", "'''--")
_CLITIC = lazy_regex(r"'(?:s|ll|re|ve|d|m)$")
_ELISION = lazy_regex(r"^(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|un|dell|all|nell|sull|dall|quest)'")
_PARTS = lazy_regex(rf"[A-Z]+(?![a-z])|[A-Z]?(?:(?![A-Z\d_])[\w{_MARKS}])+|\d+|[^\W\d_]+")
_ORDINAL = lazy_regex(r"(\d+)(?:st|nd|rd|th)$")
_UNDIVIDED = lazy_regex(r"[^\W\d_]{1,3}\d+|\d+[^\W\d_]{1,3}|[a-z][A-Z][a-z]+")
"""Such as Q3, 5km and iPhone."""
_PROGRAMMING_NAME = lazy_regex(r"[A-Za-z](?:#|\+\+)")
_ISO_DATE = lazy_regex(r"(\d{4})-(\d\d)-\d\d$")
_THOUSANDS = lazy_regex(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?$")
_NAMES_LIKE_STOP_WORDS = frozenset({"IT", "US", "WHO", "Will"})
_ALWAYS_DROPPED = frozenset({"http", "https", "www"})


def terms(text: str, language: str = "") -> list[str]:
    """Return the search terms of a text.

    Words are lower-cased, stripped of accents and stemmed by ``language`` (ISO 639-1; English
    where it is empty or has no stemmer); stop words are dropped.  Identifiers and compounds give
    their parts and themselves whole; Chinese, Japanese, Korean and Thai give pairs of characters;
    numbers and dates stay as written, and an ISO date gives its month and year too.
    """
    known = _vocabulary(language)
    return list(chain.from_iterable(map(known.__getitem__, text.split())))


def query_terms(text: str, languages: Iterable[str] = ("",)) -> list[str]:
    """Return the terms of a question asked of records in several languages, each term once."""
    return list(dict.fromkeys(term for language in languages for term in terms(text, language)))


def plain_form(word: str) -> str:
    """Return a word in small letters without accents, neither stemmed nor taken apart."""
    return _fold(unicodedata.normalize("NFKC", word).lower())


class _Vocabulary(dict[str, tuple[str, ...]]):
    """The terms of every white-space-separated token seen, computed once and bounded in number."""

    def __init__(self, language: Language) -> None:
        super().__init__()
        self._language = language
        self._stop_words = language.stop_words
        self._stems: dict[str, str] = {}

    def __missing__(self, token: str) -> tuple[str, ...]:
        found = tuple(self._analyse(token))
        if len(token) <= _MAX_CACHED_LENGTH:
            if len(self) >= _CACHED_TOKENS:
                self.clear()
            self[token] = found
        return found

    def _analyse(self, token: str) -> Iterator[str]:
        plain = token.rstrip(_CLOSING)
        if plain.isascii():
            if plain.isalpha():  # one word, as most tokens are
                yield from self._word(plain)
                return
        else:
            plain = unicodedata.normalize("NFKC", token).translate(_APOSTROPHES)
            plain = _INVISIBLE.sub("", plain)
        pattern = _ASCII_PIECE if plain.isascii() else _PIECE
        for match in pattern.finditer(plain):
            piece = match.group()
            if match.lastgroup == "unspaced":
                yield from _pairs(piece)
            elif match.lastgroup == "number":
                yield from _number(piece)
            else:
                yield from self._word(piece)

    def _word(self, piece: str) -> Iterator[str]:
        if piece in _NAMES_LIKE_STOP_WORDS:
            yield piece.lower()
            return
        word = self._without_clitics(piece)
        if word.isalpha() and (word.islower() or word[1:].islower() or word.isupper()):
            yield from self._plain(word.lower())
        else:
            yield from self._compound(word)

    def _without_clitics(self, piece: str) -> str:
        if "'" not in piece:
            return piece
        if piece.lower() in self._stop_words:
            return ""
        word = _CLITIC.sub("", piece)
        if self._language.elides:
            word = _ELISION.sub("", word.lower())
        return word.replace("'", "")

    def _plain(self, word: str) -> Iterator[str]:
        if word not in self._stop_words and word not in _ALWAYS_DROPPED:
            yield self._stem(word)

    def _compound(self, word: str) -> Iterator[str]:
        if not _PROGRAMMING_NAME.fullmatch(word):
            word = word.rstrip("+#")
        ordinal = _ORDINAL.fullmatch(word.lower())
        if ordinal:
            yield ordinal.group(1)
            return
        parts = _PARTS.findall(word)
        if len(parts) > 1 and not _UNDIVIDED.fullmatch(word):
            for part in parts:
                if len(part) > 1 or part.isdigit():
                    yield from self._plain(part.lower())
        yield from self._whole(_fold(word.lower().replace("-", "").strip("_.")))

    def _whole(self, word: str) -> Iterator[str]:
        if word.isalpha():
            yield from self._plain(word)
        elif word:
            yield word[:_MAX_TERM_LENGTH]

    def _stem(self, word: str) -> str:
        stem = self._stems.get(word)
        if stem is None:
            if len(self._stems) >= _CACHED_TOKENS:
                self._stems.clear()
            stem = self._stems[word] = _stemmed(word[:_MAX_TERM_LENGTH], self._language)
        return stem


@cache
def _vocabulary(code: str) -> _Vocabulary:
    language = load_language(code)
    is_known = language.stemmer or language.stop_words
    return _Vocabulary(language) if is_known else _vocabulary("en")


def _stemmed(word: str, language: Language) -> str:
    if language.code == "en":
        word = _fold(word)
    stemmer = _STEMMERS.of(language)
    return _fold(stemmer.stemWord(word) if stemmer else word) or word


class _Stemmers(threading.local):
    """A stemmer for each language, of each thread's own: it keeps the word that it works on."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def of(self, language: Language) -> Any:
        """Return the stemmer of a language, None where it has none."""
        name = language.stemmer
        if name not in self._made:
            self._made[name] = snowballstemmer.stemmer(name) if name else None
        return self._made[name]


_STEMMERS = _Stemmers()


def _fold(word: str) -> str:
    """Strip accents from Latin, Greek and Cyrillic letters; other scripts need their marks."""
    if word.isascii():
        return word
    decomposed = unicodedata.normalize("NFD", word)
    kept = (char for char in decomposed if not "\u0300" <= char <= "\u036f")
    folded = unicodedata.normalize("NFC", "".join(kept))
    return folded.replace("ß", "ss").replace("ø", "o").replace("ł", "l").replace("æ", "ae")


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for first, second in pairwise(run):
        yield first + second


def _number(written: str) -> Iterator[str]:
    date = _ISO_DATE.fullmatch(written)
    if date:
        yield date.group(1)
        yield f"{date.group(1)}-{date.group(2)}"
    yield (written.replace(",", "") if _THOUSANDS.fullmatch(written) else written)[
        :_MAX_TERM_LENGTH
    ]


TITLE_WEIGHT = 2
"""How often a title counts: a passage rarely repeats what it is about."""


def passage_terms(title: str, heading: str, text: str, language: str = "") -> list[str]:
    """Return the terms that find a passage; joined by spaces they are its search text."""
    whole = embedding_text(title, heading, text)
    missing = [title] * (TITLE_WEIGHT - 1)
    return terms("\n".join([*missing, whole]), language)


def embedding_text(title: str, heading: str, text: str) -> str:
    """Return the text whose vector stands for the passage.

    A title or heading that the text begins with anyway is not said twice.
    """
    if not title and not heading:
        return text
    parts = [text]
    for above in (heading.strip(), title.strip()):
        if above and not parts[0].casefold().startswith(above.casefold()):
            parts.insert(0, above)
    return "\n".join(parts)
