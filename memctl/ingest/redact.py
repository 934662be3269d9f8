"""Documents lose what looks like a key or a password before anything is made of them.

The text that is cut, understood, sent and stored is the one without; places in it are those of
the text that is stored.  The file itself stays as it is.  An id that the caller gives loses them
before the document is looked up by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from memctl.ingest.batch import Wanted
from memctl.ingest.sources import Source
from memctl.records import FileOutcome, Segment, SourceText
from memctl.redaction import (
    MARK,
    distinct_without_secrets,
    redacted_with,
    without_secrets,
)

Read = tuple[Wanted, SourceText]


def redacted_read(read: Read) -> Read:
    """Return a document, with what its caller says of it, without what looks like a secret."""
    wanted, text = read
    source = wanted.item.source
    clean = _source(source)
    if clean != source:
        wanted = replace(wanted, item=replace(wanted.item, source=clean))
    return wanted, redacted_text(text)


def _source(source: Source) -> Source:
    """Return a source with what is said of it; its namespace and where its file is stay."""
    return replace(
        source,
        source=without_secrets(source.source),
        name=source.name and without_secrets(source.name),
        title=without_secrets(source.title),
        session_id=source.session_id and distinct_without_secrets(source.session_id),
        speaker=source.speaker and without_secrets(source.speaker),
        tags=_each(source.tags),
        metadata=_without(source.metadata),
    )


def redacted_text(text: SourceText) -> SourceText:
    """Return what was read of a document without secrets, its segments where they are then."""
    places = [place for segment in text.segments for place in (segment.start, segment.end)]
    clean, moved = redacted_with(text.text, places)
    segments = text.segments
    if clean != text.text:
        starts, ends = moved[::2], moved[1::2]
        segments = tuple(
            replace(segment, start=start, end=end)
            for segment, start, end in zip(segments, starts, ends, strict=True)
            if start < end
        )
    segments = tuple(map(_segment, segments))
    return replace(
        text,
        text=clean,
        redacted=clean.count(MARK) - text.text.count(MARK),
        segments=segments,
        title=without_secrets(text.title),
        authors=_each(text.authors),
        tags=_each(text.tags),
        links=_each(text.links),
        metadata=_without(text.metadata),
    )


def redacted_outcome(outcome: FileOutcome) -> FileOutcome:
    """Return what became of a source; why it failed is without what looks like a secret."""
    if outcome.outcome != "failed":
        return outcome
    reason, hint = without_secrets(outcome.reason), without_secrets(outcome.hint)
    return replace(outcome, reason=reason, hint=hint)


def _segment(segment: Segment) -> Segment:
    """Return a segment without secrets in what stands above it and in who says it."""
    heading = " > ".join(map(without_secrets, segment.heading.split(" > ")))
    speaker = segment.speaker and without_secrets(segment.speaker)
    if (heading, speaker) == (segment.heading, segment.speaker):
        return segment
    return replace(segment, heading=heading, speaker=speaker)


def _each(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(without_secrets, texts))


def _without(value: Any) -> Any:
    """Return metadata without secrets; a value is looked at together with its name."""
    return _named("", value)


def _named(key: str, value: Any) -> Any:
    """Return what stands below a key: the items of a list, and a ``value``, go by its name too."""
    if isinstance(value, Mapping):
        return {
            distinct_without_secrets(own): _named(key if own == "value" else own, item)
            for own, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_named(key, item) for item in value]
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return value
    prefix = f"{key}: " if key else ""
    clean = without_secrets(f"{prefix}{value}").removeprefix(prefix)
    return value if clean == str(value) else clean
