"""The few topics a document is filed under: what its headings and its strongest phrases share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from memctl.records import SourceText
from memctl.understand.keywords import keywords
from memctl.understand.stopwords import stop_words

MOST_TOPICS = 5
_SHORT = 400
_HEADINGS_LOOKED_AT = 60
_LONGEST_TITLE = 3
_WORD = re.compile(r"[^\W_]+")
_DATE_FIRST = re.compile(r"^\s*\d{4}-\d{2}-\d{2}[\s_-]*")
_MARKS = re.compile(r"^[#\s\d.)=*_-]+|[\s#=*_:-]+$")


def topics(
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
        named = keywords(headings, language, limit=3)
        found += [phrase for phrase in named if not _is_of_long_title(phrase, source.title)]
    return _distinct([*found, *phrases])


def _headings(source: SourceText) -> Iterator[str]:
    if source.title:
        yield source.title
    headings = (part for part in source.segments if part.kind == "heading")
    for _, part in zip(range(_HEADINGS_LOOKED_AT), headings, strict=False):
        yield _MARKS.sub("", source.text[part.start : part.end])


def _is_of_long_title(phrase: str, title: str) -> bool:
    """Tell whether a phrase is a title of more than three words, or such a title cut short."""
    plain, told = (
        " ".join(_WORD.findall(text.lower())) for text in (phrase, _DATE_FIRST.sub("", title))
    )
    if len(told.split()) <= _LONGEST_TITLE:
        return False
    after = told.partition(plain)[2].split()
    cut = plain.count(" ") + 1 >= _LONGEST_TITLE and plain in told
    return cut and (not after or after[0] not in stop_words("en"))


def _distinct(found: Iterable[str]) -> tuple[str, ...]:
    chosen: list[str] = []
    taken: set[str] = set()
    for phrase in found:
        words = phrase.lower().split()
        if words and taken.isdisjoint(words):
            chosen.append(" ".join(words))
            taken.update(words)
    return tuple(chosen[:MOST_TOPICS])
