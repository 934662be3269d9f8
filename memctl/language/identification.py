"""Which language a text is written in, by its script and its most common words."""

from __future__ import annotations

import re
from functools import cache

from memctl.language.word_lists import listed_languages, stop_words

_SAMPLE = 4000
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_FEWEST_WORDS = 3
_LEAST_SCORE = 1.6
_LEAST_LEAD = 1.3
_LEAST_SHARE = 0.12
_CLEARLY_ENGLISH = 3
"""So many different words that only English has, and plain letters, need no further look."""

_SCRIPTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("ko", re.compile("[\uac00-\ud7af\u1100-\u11ff]")),
    ("zh", re.compile("[\u3400-\u9fff]")),
    ("th", re.compile("[\u0e00-\u0e7f]")),
    ("he", re.compile("[\u0590-\u05ff]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("hi", re.compile("[\u0900-\u097f]")),
)
_PERSIAN = re.compile("[پچژگ]")
_NON_LATIN = re.compile("[\u0370-\u03ff\u0400-\u04ff\u0590-\u06ff\u0900-\u0e7f\u1100-\u11ff"
                        "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")  # fmt: skip
_LETTERS = {
    "ß": "de", "ñ": "es", "¿": "es", "ã": "pt", "õ": "pt", "ł": "pl", "ż": "pl", "ę": "pl",
    "ř": "cs", "ě": "cs", "ů": "cs", "ğ": "tr", "ı": "tr", "ő": "hu", "ű": "hu", "ț": "ro",
    "ă": "ro", "œ": "fr", "ї": "uk", "є": "uk", "ґ": "uk", "ы": "ru", "э": "ru",
}  # fmt: skip


def identify_language(text: str) -> str:
    """Return the ISO 639-1 code of the language, or ``""`` when it cannot be told."""
    sample = text[:_SAMPLE]
    if not sample.isascii() and _NON_LATIN.search(sample):
        by_script = _by_script(sample)
        if by_script:
            return by_script
    return _by_words(sample)


def _by_script(sample: str) -> str:
    letters = sum(map(str.isalpha, sample)) or 1
    counts = {language: len(script.findall(sample)) for language, script in _SCRIPTS}
    if counts["ja"] and counts["ja"] + counts["zh"] > letters * 0.4:
        return "ja" if counts["ja"] > counts["zh"] * 0.1 else "zh"
    language, count = max(counts.items(), key=lambda pair: pair[1])
    if count <= letters * 0.4:
        return ""
    return "fa" if language == "ar" and _PERSIAN.search(sample) else language


def _by_words(sample: str) -> str:
    plain = sample.lower()
    if sample.isascii() and len(_only_english().intersection(plain.split())) >= _CLEARLY_ENGLISH:
        return "en"
    found = _WORD.findall(plain.replace("’", "'"))
    if len(found) < _FEWEST_WORDS:
        return ""
    votes = _votes()
    scores: dict[str, float] = {}
    for word in found:
        for language, weight in votes.get(word, ()):
            scores[language] = scores.get(language, 0.0) + weight
    if not sample.isascii():
        _add_letters(sample, scores)
    return _clear_winner(scores, len(found))


def _add_letters(sample: str, scores: dict[str, float]) -> None:
    for letter, language in _LETTERS.items():
        if letter in sample:
            scores[language] = scores.get(language, 0.0) + 1


def _clear_winner(scores: dict[str, float], total: int) -> str:
    if not scores:
        return ""
    language = max(scores, key=scores.__getitem__)
    score = scores.pop(language)
    runner_up = max(scores.values(), default=0.0)
    is_clear = score >= _LEAST_SCORE and score >= _LEAST_LEAD * runner_up
    return language if is_clear and score >= _LEAST_SHARE * total else ""


@cache
def _only_english() -> frozenset[str]:
    return frozenset(
        word for word, votes in _votes().items() if votes == (("en", 1.0),) and len(word) > 1
    )


@cache
def _votes() -> dict[str, tuple[tuple[str, float], ...]]:
    """For each common word the languages it speaks for, the less the more languages share it."""
    having: dict[str, list[str]] = {}
    for language in listed_languages():
        for word in stop_words(language):
            having.setdefault(word, []).append(language)
    return {
        word: tuple((language, 1.0 / len(codes)) for language in codes)
        for word, codes in having.items()
    }
