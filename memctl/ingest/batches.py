"""The values that travel through the pipeline, from a source to a commit."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field

from memctl.errors import EmptySource
from memctl.ingest.chunking import Passage
from memctl.ingest.discovery.sources import Source
from memctl.records import (
    WRITTEN_OUTCOMES,
    Document,
    Entity,
    EntityMention,
    FactComparison,
    FileOutcome,
    IngestReport,
    Memory,
    Relation,
    SourceText,
)

if TYPE_CHECKING:
    import pyarrow as pa

PIPELINE_VERSION = 2
"""Raised when the same text would be turned into other rows; `reprocess --older` redoes them.

Nothing does so by itself.
"""


class IdentifiedSource(Struct, frozen=True):
    """A source whose content is known by its hash."""

    source: Source
    sha256: str
    size: int
    key: str
    """Id of the first version of the document; all later ones are found by the same key."""
    mtime_ns: int = 0
    copy_of: str = ""
    """Id of what it was exported from, where it is a note of an exported vault and unchanged."""

    @property
    def modified_at(self) -> datetime | None:
        """When its file was written last, if that is known."""
        try:
            return datetime.fromtimestamp(self.mtime_ns / 1e9, UTC) if self.mtime_ns else None
        except (ValueError, OverflowError, OSError):
            return None


class StoredPart(Struct, frozen=True):
    """A part of a document as it is remembered."""

    text: SourceText
    passages: tuple[Passage, ...]


class EarlierVersion(Struct, frozen=True):
    """What a source said before: what it still says goes on being of the day that it was of."""

    text: str
    dated: tuple[tuple[str, datetime], ...] = ()
    """Passages that are of another day than the document, each with that day."""
    is_certain: bool = True
    """Whether it is one, and not only what was once dropped under the same name."""


class WantedSource(Struct, frozen=True):
    """A source that is to be read, with the document it will be."""

    item: IdentifiedSource
    document_id: str
    replaces: str | None = None
    """Root id of the live document that it is a newer version of."""
    redo: bool = False
    """Whether the rows of the document itself are there and are made anew."""
    adds: bool = False
    """Whether it is a further part of a document whose earlier parts stay as they are."""
    by_model: bool = False
    """Whether a model has understood it, so that no other understanding may take its place."""
    stored: tuple[StoredPart, ...] = ()
    """Its parts as they are remembered, where there is no file to read again."""
    lost_parts: tuple[str, ...] = ()
    """Ids of parts of it that are not there, though memories of them are."""
    ends: tuple[str, ...] = ()
    """Ids of documents that end with it: units that a file of many has no more."""
    earlier: EarlierVersion | None = None
    """What it said before; what was made of it itself, where it is made anew."""
    in_bulk: bool = False
    """Whether it comes with so many records that they are not read closely."""

    @property
    def is_record(self) -> bool:
        """Whether it is a record, such as a line of JSON, and neither a file nor given as texts."""
        return self.item.source.path is None and not self.item.source.texts


class PreparedDocument(Struct, frozen=True):
    """A document, or one part of one, with its rows; ``embed`` has the text of each vector."""

    document: Document
    memories: tuple[Memory, ...]
    embed: tuple[str, ...]
    mentions: tuple[EntityMention, ...] = ()
    dropped: int = 0
    redacted: int = 0


class DocumentSummary(Struct, frozen=True):
    """What there is to tell of a document that was read."""

    memories: int
    title: str
    summary: str
    missing: tuple[str, ...]
    dropped: int = 0
    redacted: int = 0


class ReadFailure(Struct, frozen=True):
    """Why a source could not be read."""

    reason: str
    hint: str
    error: str


class SeveralParts(Struct, frozen=True):
    """A source too big to be read at once; nothing of it is in the rows."""


SourceResult = DocumentSummary | ReadFailure | SeveralParts


class ReadTiming(NamedTuple):
    """How a file was turned into text, and that into memories."""

    reader: str
    seconds: float
    understand_seconds: float = 0.0
    """Its share, by length, of what the texts took that were worked on together."""


class ProcessedGroup(Struct):
    """What was made of a group of sources: finished rows, and the result of each source."""

    results: list[SourceResult]
    now: datetime
    """When it was made, which is when it becomes known."""
    documents: pa.Table
    memories: pa.Table
    entities: dict[str, Entity] = field(default_factory=dict)
    relations: list[Relation] = field(default_factory=list)
    part: int = 0
    """Which part of a single source this is."""
    wanted: tuple[WantedSource, ...] = ()
    """The sources, in the order of ``results``."""
    readings: dict[str, ReadTiming] = field(default_factory=dict)
    """Of sources that are files, by the id of the document."""

    def ingested(self) -> list[tuple[WantedSource, DocumentSummary]]:
        """The sources whose rows these are."""
        pairs = zip(self.wanted, self.results, strict=True)
        return [(wanted, result) for wanted, result in pairs if isinstance(result, DocumentSummary)]


class Batch(Struct):
    """What is committed together: rows, and outcomes of sources that need no writing.

    A source in many parts comes as several batches of which only the final one is ``last``;
    they are one commit.  ``failure`` on such a batch means that all of them are to be dropped.
    """

    groups: list[ProcessedGroup] = field(default_factory=list)
    outcomes: list[FileOutcome] = field(default_factory=list)
    last: bool = True
    failure: FileOutcome | None = None


def known_outcome(source: Source, document_id: str) -> FileOutcome:
    """The outcome of a source whose content is remembered already."""
    return FileOutcome(
        source.source,
        "known",
        document_id=document_id,
        line=source.line,
        path=source.place,
        part_of=source.part_of,
    )


def exported_outcome(source: Source) -> FileOutcome:
    """The outcome of a note that was exported from what is remembered; it stands for nothing."""
    return FileOutcome(source.source, "known", line=source.line, path=source.place)


def failed_outcome(source: Source, why: ReadFailure) -> FileOutcome:
    """The outcome of a source that could not be taken in, or that has nothing in it."""
    is_empty = why.error == EmptySource.__name__
    return FileOutcome(
        source.source,
        "empty" if is_empty else "failed",
        reason=why.reason,
        hint=why.hint,
        line=source.line,
        error="" if is_empty else why.error,
        path=source.place,
        part_of=source.part_of,
    )


def ingested_outcome(
    wanted: WantedSource, taken: DocumentSummary, reading: ReadTiming | None
) -> FileOutcome:
    """The outcome of a source whose rows are written."""
    source = wanted.item.source
    return FileOutcome(
        source.source,
        "superseded" if wanted.replaces else "ingested",
        document_id=wanted.document_id,
        memories=taken.memories,
        title=taken.title,
        summary=taken.summary,
        missing=taken.missing,
        dropped=taken.dropped,
        line=source.line,
        path=source.place,
        reader=reading.reader if reading else "",
        read_seconds=reading.seconds if reading else None,
        understand_seconds=reading.understand_seconds if reading else None,
        redacted=taken.redacted,
        part_of=source.part_of,
    )


MOST_OUTCOMES = 1_000
"""A report keeps this many outcomes besides the failures, and as many of units of files."""


class IngestCounters(Struct):
    """What has been done so far; it began when this was made."""

    started: float = field(default_factory=time.monotonic)
    ingested: int = 0
    skipped: int = 0
    failed: int = 0
    superseded: int = 0
    gone: int = 0
    empty: int = 0
    memories: int = 0
    incomplete: int = 0
    dropped: int = 0
    units: int = 0
    """How many of them are units of files, which are no sources of their own."""
    outcomes: list[FileOutcome] = field(default_factory=list)
    facts: FactComparison = field(default_factory=FactComparison)
    _kept: Counter[str] = field(default_factory=Counter)

    @property
    def done(self) -> int:
        """How many sources have met their result."""
        return self.ingested + self.skipped + self.empty + self.failed - self.units

    def add(self, outcomes: Iterable[FileOutcome]) -> None:
        """Count what became of sources, and keep it unless there is too much of it."""
        for outcome in outcomes:
            self.failed += outcome.outcome == "failed"
            self.skipped += outcome.outcome == "known"
            self.ingested += outcome.outcome in WRITTEN_OUTCOMES
            self.superseded += outcome.outcome == "superseded"
            self.empty += outcome.outcome == "empty"
            self.gone += outcome.outcome == "gone"
            self.memories += outcome.memories
            self.incomplete += bool(outcome.missing)
            self.dropped += outcome.dropped
            self.units += bool(outcome.part_of)
            if self._is_kept(outcome):
                self.outcomes.append(outcome)

    def _is_kept(self, outcome: FileOutcome) -> bool:
        """Return whether there is room for an outcome; units of a file leave some for others."""
        if outcome.outcome == "failed":
            return True
        kind = "unit" if outcome.part_of else "source"
        self._kept[kind] += 1
        return self._kept[kind] <= MOST_OUTCOMES

    def report(self) -> IngestReport:
        """Return what it comes to up to now."""
        return IngestReport(
            ingested=self.ingested,
            skipped=self.skipped,
            failed=self.failed,
            superseded=self.superseded,
            gone=self.gone,
            empty=self.empty,
            memories=self.memories,
            seconds=time.monotonic() - self.started,
            outcomes=tuple(self.outcomes),
            incomplete=self.incomplete,
            dropped=self.dropped,
            facts=self.facts,
        )
