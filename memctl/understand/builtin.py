"""The built-in understander: rules and statistics, no model, no network, the same every time."""

from __future__ import annotations

from collections.abc import Sequence
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
        """Return one understanding for each source, in order; never raises for odd text."""
        return [self._understand(source) for source in sources]

    def _understand(self, source: SourceText) -> Understanding:
        lines = outline(source)
        language = detect(source.text)
        phrases = self._keywords(written(source, lines), language)
        marked = _tags(source)
        named = entities(source, lines)
        dated = _dates(source, lines)
        distilled = distil(source, lines)
        matter, signals = importance(_evidence(source, named, dated, distilled))
        return Understanding(
            method=METHOD,
            gist=gist(source, lines, phrases, dated, language, distilled),
            language=language,
            entities=named,
            topics=topics(source, phrases, marked, language),
            keywords=phrases,
            tags=marked,
            links=_links(source),
            dates=tuple(dict.fromkeys(span.iso for span in dated))[:_MOST_DATES],
            importance=matter,
            signals=signals,
            distilled=distilled,
        )

    def _keywords(self, text: str, language: str) -> tuple[str, ...]:
        if len(text) <= _SHORT:
            return keywords(text, language, limit=_FEW_KEYWORDS)
        return keywords(text, language, embedder=self._embedder)


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


def _evidence(
    source: SourceText,
    named: Sequence[EntityMention],
    dated: Sequence[DateSpan],
    distilled: Sequence[Distilled],
) -> Evidence:
    kinds = [part.kind for part in source.segments]
    return Evidence(
        text=source.text,
        entities=len(named),
        dates=len(dated),
        headings=kinds.count("heading"),
        tables=kinds.count("table"),
        distilled=distilled,
    )
