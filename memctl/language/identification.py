"""Which language a text is written in.

The classifier is py3langid (Lui and Baldwin, 2012: langid.py).  Of 12,700 messages in 32 languages,
12 to 160 characters each, from the translations of programs, it names 86 % rightly and 0.4 %
wrongly at the confidence asked for here; counting stop words named 41 % rightly and 2 % wrongly.
Loading it takes half a second and 75 MB, so plain English is recognised without it.
"""

from __future__ import annotations

import io
import lzma
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from memctl.language.word_lists import COMMON_WORDS, all_languages, stop_words

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

_SAMPLE = 400
"""Characters that are looked at."""
_CONFIDENCE = 0.6
_MIN_WORDS = 3
_MIN_ENGLISH_WORDS, _MIN_ENGLISH_SHARE = 2, 0.05
"""Stop words that no other language has, from which on a text is English."""
_MIN_STOP_WORD_SHARE = 0.15
"""The share of stop words from which on a text is English if no other language has as many."""
_COMMON_SHARE = 0.6
"""The share of common English words from which on a text in ASCII is English."""
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")
_FURTHER_LANGUAGES = (
    "af az be bg bn bs cy eo fa gl he hr is ja ka kk km kn ko la lb lo lv mk ml mn mr ms mt my pa"
    " ps si sk sl so sq sw te th tl ur uz vi zh"
)
"""Languages that are recognised although no words of theirs are listed."""


def identify_language(text: str) -> str:
    """Return the ISO 639-1 code of the language, or ``""`` when it is unclear."""
    sample = text[:_SAMPLE]
    if _is_plain_english(sample):
        return "en"
    if sum(map(str.isalpha, sample)) < _MIN_WORDS:
        return ""
    language, confidence = _classifier().classify(sample)
    return str(language) if confidence >= _CONFIDENCE else ""


def _is_plain_english(sample: str) -> bool:
    """Recognise English by its words: 90 % of the messages measured, and 0.3 % of the others."""
    words = sample.lower().split()
    only_english = _only_english_words()
    if len(only_english.intersection(words)) >= _MIN_ENGLISH_WORDS:
        return sum(map(only_english.__contains__, words)) >= _MIN_ENGLISH_SHARE * len(words)
    if not sample.isascii():
        return False
    if len(words) >= _MIN_WORDS and _has_most_stop_words(words):
        return True
    words = _WORD.findall(sample.lower())
    common = sum(word in COMMON_WORDS or word in stop_words("en") for word in words)
    return len(words) >= _MIN_WORDS and common >= _COMMON_SHARE * len(words)


def _has_most_stop_words(words: Sequence[str]) -> bool:
    """Return whether words are stop words of English more often than of any other language."""
    languages = _languages_by_stop_word()
    counts = Counter(code for word in words for code in languages.get(word, ()))
    english = counts.pop("en", 0)
    is_english = english > max(counts.values(), default=0)
    return is_english and english >= _MIN_STOP_WORD_SHARE * len(words)


@cache
def _languages_by_stop_word() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for language in all_languages():
        for word in language.stop_words:
            found.setdefault(word, []).append(language.code)
    return found


@cache
def _only_english_words() -> frozenset[str]:
    """Return the stop words that no other language has, single letters left out."""
    others = (each.stop_words for each in all_languages() if each.code != "en")
    words = stop_words("en").difference(*others)
    return frozenset(word for word in words if len(word) > 1)


@cache
def _classifier() -> LanguageIdentifier:
    """Return the classifier with its weights of the languages that are recognised, no others."""
    import numpy as np
    from py3langid.langid import MODEL_DIR, MODEL_FILE, LanguageIdentifier

    # py3langid 0.4 unpacks its model into a temporary file, which fails where the disk is full.
    with lzma.open(MODEL_DIR / MODEL_FILE) as packed:
        model = np.load(io.BytesIO(packed.read()), allow_pickle=False)
    recognised = {language.code for language in all_languages()} | {*_FURTHER_LANGUAGES.split()}
    codes: list[str] = model["classes"].tolist()
    kept = [at for at, code in enumerate(codes) if code in recognised]
    return LanguageIdentifier(  # the items of a memoryview are plain integers, fast to look up
        model["ptc"][:, kept],
        model["pc"][kept],
        [codes[at] for at in kept],
        memoryview(model["nextmove"]),
        model["out_feat"].tolist(),
        norm_probs=True,
        tk_row=memoryview(model["nextmove_row"]),
    )
