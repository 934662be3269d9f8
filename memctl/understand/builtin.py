"""The built-in understander: rules and statistics, no model, no network, the same every time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memctl.records import Distilled, EntityMention, SourceText, Understanding
from memctl.understand.dates import DateSpan, date_spans
from memctl.understand.distil import distil
from memctl.understand.entities import entities
from memctl.understand.gist import gist
from memctl.understand.importance import Evidence, importance
from memctl.understand.keywords import keywords
from memctl.understand.language import detect
from memctl.understand.marks import links, tags
from memctl.understand.outline import Line, code_spans, outline, written
from memctl.understand.topics import topics

if TYPE_CHECKING:
    from memctl.models.protocols import Embedder

METHOD = "builtin/1"
_SHORT = 600
_FEW_KEYWORDS = 5
_MOST_DATES = 60
_DATED = 300_000


@dataclass(slots=True)
class _Draft:
    """What is known of a document so far."""

    source: SourceText
    lines: list[Line]
    language: str = ""
    keywords: tuple[str, ...] = ()
    entities: tuple[EntityMention, ...] = ()
    dates: Sequence[DateSpan] = ()
    distilled: tuple[Distilled, ...] = ()


class BuiltinUnderstander:
    """Understands documents by rules and statistics.

    Args:
        embedder: Weighs keywords of longer texts by meaning where one is given.
    """

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder

    @property
    def method(self) -> str:
        """Name and version, stored with every record it makes."""
        return METHOD

    def understand(self, sources: Sequence[SourceText]) -> list[Understanding]:
        """Return one understanding for each source, in order; never raises for odd text.

        It goes stage by stage: all sources through one, which is faster than one through all.
        """
        drafts = [_Draft(source, outline(source)) for source in sources]
        for draft in drafts:
            draft.language = detect(draft.source.text)
        for draft in drafts:
            text = written(draft.source, draft.lines)
            draft.keywords = self._keywords(text, draft.language)
        for draft in drafts:
            draft.entities = entities(draft.source, draft.lines)
        for draft in drafts:
            draft.dates = _dates(draft.source, draft.lines)
        for draft in drafts:
            draft.distilled = distil(draft.source, draft.lines)
        return [_understanding(draft) for draft in drafts]

    def _keywords(self, text: str, language: str) -> tuple[str, ...]:
        if len(text) <= _SHORT:
            return keywords(text, language, limit=_FEW_KEYWORDS)
        return keywords(text, language, embedder=self._embedder)


def _understanding(draft: _Draft) -> Understanding:
    source, lines, language = draft.source, draft.lines, draft.language
    marked = _tags(source)
    matter, signals = importance(_evidence(draft))
    return Understanding(
        method=METHOD,
        gist=gist(source, lines, draft.keywords, draft.dates, language, draft.distilled),
        language=language,
        entities=draft.entities,
        topics=topics(source, draft.keywords, marked, language),
        keywords=draft.keywords,
        tags=marked,
        links=_links(source),
        dates=tuple(dict.fromkeys(span.iso for span in draft.dates))[:_MOST_DATES],
        importance=matter,
        signals=signals,
        distilled=draft.distilled,
    )


def _tags(source: SourceText) -> tuple[str, ...]:
    if "#" not in source.text:
        return source.tags
    return _union(source.tags, tags(source.text, code_spans(source)))


def _links(source: SourceText) -> tuple[str, ...]:
    if "[[" not in source.text:
        return source.links
    return _union(source.links, links(source.text, code_spans(source)))


def _union(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))


def _dates(source: SourceText, lines: Sequence[Line]) -> list[DateSpan]:
    """The dates of a document; in a conversation relative to when each turn was said."""
    if not any(part.said_at for part in source.segments):
        return date_spans(source.text[:_DATED], source.created_at)
    return [
        DateSpan(line.start + span.start, line.start + span.end, span.iso)
        for line in lines
        if line.end <= _DATED
        for span in date_spans(source.text[line.start : line.end], line.said_at)
    ]


def _evidence(draft: _Draft) -> Evidence:
    kinds = [part.kind for part in draft.source.segments]
    return Evidence(
        text=draft.source.text,
        entities=len(draft.entities),
        dates=len(draft.dates),
        headings=kinds.count("heading"),
        tables=kinds.count("table"),
        distilled=draft.distilled,
    )
