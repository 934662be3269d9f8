"""The few topics a document is filed under: what its headings and its strongest phrases share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from memctl.records import SourceText
from memctl.understand.keywords import keywords

MOST_TOPICS = 5
_SHORT = 400
_HEADINGS_LOOKED_AT = 60
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
        return _distinct([*found, *(phrase for phrase in phrases[:2])])
    headings = "\n".join(_headings(source))
    if headings:
        found += keywords(headings, language, limit=3)
    return _distinct([*found, *phrases])


def _headings(source: SourceText) -> Iterator[str]:
    if source.title:
        yield source.title
    headings = (part for part in source.segments if part.kind == "heading")
    for _, part in zip(range(_HEADINGS_LOOKED_AT), headings, strict=False):
        yield _MARKS.sub("", source.text[part.start : part.end])


def _distinct(found: Iterable[str]) -> tuple[str, ...]:
    chosen: list[str] = []
    for phrase in found:
        topic = " ".join(phrase.lower().split())
        own = set(topic.split())
        if topic and not any(own & set(other.split()) for other in chosen):
            chosen.append(topic)
    return tuple(chosen[:MOST_TOPICS])
