"""The built-in understander: the reading model with rules and statistics, all on this machine.

Without the reading model it is a hundred times as fast, and finds names by rules and no statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from memctl.language.date_mentions import DateSpan, date_spans
from memctl.language.identification import identify_language
from memctl.language.inline_tags import find_hashtags, find_wikilinks, without_inline_tags
from memctl.records import Distilled, EntityMention, SourceText, Understanding
from memctl.understanding.entity_extraction import (
    extract_entities,
    with_contact,
    with_small_names,
    without_zones,
)
from memctl.understanding.gist_writing import gist
from memctl.understanding.importance_score import ImportanceInputs, score_importance
from memctl.understanding.keyword_extraction import MAX_KEYWORDS, choose_topics, extract_keywords
from memctl.understanding.sentence_reading import ReadLine, names, read_lines, statements
from memctl.understanding.text_outline import Line, body_text, code_spans, text_outline
from memctl.understanding.triggers import DEFAULT_TRIGGERS

if TYPE_CHECKING:
    from memctl.config import LimitSettings, TriggerSettings
    from memctl.models.task_encoder import TaskEncoder

METHOD = "builtin/2"
QUICK_METHOD = "builtin-quick/2"
_SHORT = 600
_FEW_KEYWORDS = 5
_MAX_DATES = 60
_DATED = 300_000


class _Draft(Struct):
    """What is known of a document so far."""

    source: SourceText
    lines: list[Line]
    language: str = ""
    keywords: tuple[str, ...] = ()
    entities: tuple[EntityMention, ...] = ()
    dates: Sequence[DateSpan] = ()
    read: Sequence[ReadLine] = ()
    distilled: tuple[Distilled, ...] = ()


class BuiltinUnderstander:
    """Understands documents.

    Args:
        encoder: The reading model, which finds statements and names.
        triggers: Phrases by which a user says that something is to be kept.
    """

    def __init__(
        self,
        encoder: TaskEncoder | None = None,
        triggers: TriggerSettings = DEFAULT_TRIGGERS,
    ) -> None:
        self._encoder = encoder
        self._triggers = triggers

    @classmethod
    def from_settings(
        cls, limits: LimitSettings, triggers: TriggerSettings = DEFAULT_TRIGGERS
    ) -> BuiltinUnderstander:
        """Return one with the reading model, or without it where the settings say so.

        Args:
            limits: Say whether sentences are read closely.
            triggers: Phrases by which a user says that something is to be kept.
        """
        from memctl.models.task_encoder import load_task_encoder

        return cls(encoder=load_task_encoder() if limits.read_closely else None, triggers=triggers)

    @property
    def method(self) -> str:
        """Name and version, stored with every record it makes."""
        return METHOD if self._encoder else QUICK_METHOD

    def understand(self, sources: Sequence[SourceText]) -> list[Understanding]:
        """Return one understanding for each source, in order; never raises for odd text.

        It goes stage by stage: all sources through one, which is faster than one through all.
        """
        drafts = [_Draft(source, text_outline(source)) for source in sources]
        for draft in drafts:
            draft.language = identify_language(draft.source.text)
        for draft in drafts:
            text = _without_tags(draft.source, body_text(draft.source, draft.lines))
            limit = _FEW_KEYWORDS if len(text) <= _SHORT else MAX_KEYWORDS
            draft.keywords = extract_keywords(text, draft.language, limit=limit)
        for draft in drafts:
            self._find_names(draft)
        for draft in drafts:
            draft.dates = _dates(draft.source, draft.lines)
        return [_understanding(draft, self.method) for draft in drafts]

    def _find_names(self, draft: _Draft) -> None:
        draft.entities = extract_entities(draft.source, draft.lines, draft.language)
        if self._encoder is not None:
            draft.read = read_lines(draft.source, draft.lines, self._encoder, self._triggers)
            draft.entities = names(draft.read, draft.entities, draft.language)
            draft.distilled = statements(draft.source, draft.read, draft.language)
        draft.entities = with_contact(draft.entities, draft.source)
        draft.entities = without_zones(draft.entities, draft.source.text)
        if draft.language == "en":
            draft.entities = with_small_names(draft.entities, draft.source.text, draft.lines)


def _understanding(draft: _Draft, method: str) -> Understanding:
    source, lines, language = draft.source, draft.lines, draft.language
    marked = _tags(source)
    importance, signals = score_importance(_evidence(draft))
    return Understanding(
        method=method,
        gist=_without_tags(
            source,
            gist(
                source,
                lines,
                draft.read,
                draft.dates,
                [*(each.name for each in draft.entities), *draft.keywords],
                language,
            ),
        ),
        language=language,
        entities=draft.entities,
        topics=choose_topics(source, draft.keywords, marked, language),
        keywords=draft.keywords,
        tags=marked,
        links=_links(source),
        dates=tuple(dict.fromkeys(span.iso for span in draft.dates))[:_MAX_DATES],
        importance=importance,
        signals=signals,
        distilled=draft.distilled,
    )


def _without_tags(source: SourceText, text: str) -> str:
    """Return what is said in a text of turns without their tags, which are of single memories."""
    has_turns = any(part.kind == "turn" for part in source.segments)
    if not has_turns:
        return text
    return "\n\n".join(map(without_inline_tags, text.split("\n\n")))


def _tags(source: SourceText) -> tuple[str, ...]:
    if "#" not in source.text and "@" not in source.text:
        return source.tags
    turns = [(part.start, part.end) for part in source.segments if part.kind == "turn"]
    return _union(source.tags, find_hashtags(source.text, [*code_spans(source), *turns]))


def _links(source: SourceText) -> tuple[str, ...]:
    return _union(source.links, find_wikilinks(source.text, code_spans(source)))


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
        for span in date_spans(
            source.text[line.start : line.end], line.said_at or source.created_at
        )
    ]


def _evidence(draft: _Draft) -> ImportanceInputs:
    kinds = [part.kind for part in draft.source.segments]
    return ImportanceInputs(
        text=draft.source.text,
        entities=len(draft.entities),
        dates=len(draft.dates),
        headings=kinds.count("heading"),
        tables=kinds.count("table"),
        distilled=draft.distilled,
    )
