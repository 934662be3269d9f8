"""The work on a group of sources: read, cut, understand, embed, and make finished rows.

It needs nothing of the store, so it can be done in this process or in another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from memctl.errors import BadReply
from memctl.graph.derivation import entities_of, relations_of
from memctl.ingest.batches import (
    DocumentSummary,
    PreparedDocument,
    ProcessedGroup,
    ReadFailure,
    ReadTiming,
    SeveralParts,
    SourceResult,
    WantedSource,
)
from memctl.ingest.chunking import ChunkSizes, Cut, Passage, chunk
from memctl.ingest.document_records import DocumentInputs, prepare_document
from memctl.ingest.media_enrichment import MediaEnricher
from memctl.ingest.source_reading import (
    Unreadable,
    redacted_read,
    texts_of,
    with_edit_time,
)
from memctl.kb_settings import KnowledgeBaseSettings
from memctl.literals import SESSION_READER
from memctl.models.protocols import MODEL, NOT_BY_MODEL, Embedder, Understander
from memctl.readers import Readers
from memctl.records import SourceText
from memctl.understanding.triggers import with_kept

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

UNDERSTOOD_TOGETHER = 512
CHARACTERS_TOGETHER = 4 << 20
"""At most this many documents, or this much text, are held as text at a time."""

MOST_READ_CLOSELY = 64
"""Records, such as lines of JSON, that come together and are understood as closely as files are."""

_PLACEHOLDER = DocumentSummary(0, "", "", ())

NoveltyWeighing = Callable[
    [Sequence[PreparedDocument], "NDArray[np.float32]"], Sequence[PreparedDocument]
]
"""Weighs documents by what is known already; gets them with their vectors."""


class PrivateNamespaces(Struct, frozen=True):
    """What works on private namespaces, in place of what works on all others."""

    namespaces: frozenset[str]
    understander: Understander
    enricher: MediaEnricher | None = None

    def has(self, wanted: WantedSource) -> bool:
        """Return whether a source goes into one of them."""
        return wanted.item.source.namespace in self.namespaces


class DocumentProcessor(Struct):
    """What the work is done with."""

    embedder: Embedder
    understander: Understander
    sizes: ChunkSizes
    bulk_understander: Understander | None = None
    """Understands records that come many at a time; by default as any other."""
    cut: Cut | None = None
    enricher: MediaEnricher | None = None
    readers: Readers = field(default_factory=Readers)
    redacts: bool = False
    """Whether keys and passwords are taken out of texts."""
    private: PrivateNamespaces | None = None
    reading: str = ""
    """The source that is being read, or was last."""

    def work(
        self, group: Sequence[WantedSource], now: datetime, weigh: NoveltyWeighing | None = None
    ) -> ProcessedGroup:
        """Make the rows of a group of sources; one that cannot be read has that as its result."""
        results: list[SourceResult] = []
        made: list[PreparedDocument | ReadFailure] = []
        waiting: list[tuple[WantedSource, SourceText]] = []
        readings: dict[str, ReadTiming] = {}
        lengths: dict[str, int] = {}
        characters = 0
        for wanted in group:
            began = time.perf_counter()
            self.reading = wanted.item.source.source
            read = _read(wanted, self.readers)
            if isinstance(read, SourceText):
                if wanted.item.source.path is not None:
                    seconds = time.perf_counter() - began
                    readings[wanted.document_id] = ReadTiming(read.reader, seconds)
                waiting.append((wanted, read))
                lengths[wanted.document_id] = len(read.text)
                characters += len(read.text)
                results.append(_PLACEHOLDER)
            else:
                results.append(read)
            if len(waiting) >= UNDERSTOOD_TOGETHER or characters >= CHARACTERS_TOGETHER:
                made += self._understand_timed(waiting, now, readings)
                waiting.clear()
                characters = 0
        made += self._understand_timed(waiting, now, readings)
        good = [item for item in made if isinstance(item, PreparedDocument)]
        began = time.perf_counter()
        processed = self._finish_groups(_with_summaries(results, made), good, now, weigh)
        _share(readings, lengths, time.perf_counter() - began)
        processed.readings = readings
        return processed

    def work_on_part(self, wanted: WantedSource, text: SourceText, now: datetime) -> ProcessedGroup:
        """Make the rows of one part of a source.

        Raises:
            Unreadable: What was made of it before is better.
        """
        [made] = self._prepare([(wanted, text)], now)
        if isinstance(made, ReadFailure):
            raise Unreadable(made)
        processed = self._finish_groups([_summary_of(made)], [made], now, None)
        processed.part, processed.wanted = text.part, (wanted,)
        return processed

    def _understand_timed(
        self,
        read: Sequence[tuple[WantedSource, SourceText]],
        now: datetime,
        readings: dict[str, ReadTiming],
    ) -> list[PreparedDocument | ReadFailure]:
        """Understand texts, and note how long that took with how they were read."""
        began = time.perf_counter()
        made = self._prepare(read, now)
        lengths = {wanted.document_id: len(text.text) for wanted, text in read}
        _share(readings, lengths, time.perf_counter() - began)
        return made

    def _prepare(
        self, read: Sequence[tuple[WantedSource, SourceText]], now: datetime
    ) -> list[PreparedDocument | ReadFailure]:
        """Understand texts; what is private and what is not are never given away together."""
        private = self.private
        if private is None:
            return self._prepared_alike(read, now)
        apart = [private.has(wanted) for wanted, _ in read]
        open_ = [each for each, is_apart in zip(read, apart, strict=True) if not is_apart]
        closed = [each for each, is_apart in zip(read, apart, strict=True) if is_apart]
        within = replace(self, understander=private.understander, enricher=private.enricher)
        made = iter(self._prepared_alike(open_, now))
        made_apart = iter(within._prepared_alike(closed, now))
        return [next(made_apart if is_apart else made) for is_apart in apart]

    def _prepared_alike(
        self, read: Sequence[tuple[WantedSource, SourceText]], now: datetime
    ) -> list[PreparedDocument | ReadFailure]:
        if not read:
            return []
        if self.enricher is not None:
            read = self.enricher.complete(read)
        if self.redacts:
            read = [redacted_read(each) for each in read]
        read = [(wanted, with_edit_time(wanted, text, now)) for wanted, text in read]
        understood = map(
            with_kept,
            (text for _, text in read),
            self._understander_of(read).understand(self._texts_for_understanding(read)),
        )
        return [
            _not_understood(wanted)
            if wanted.by_model and NOT_BY_MODEL in what.missing
            else prepare_document(
                DocumentInputs(wanted, text, self._passages(wanted, text), what, now)
            )
            for (wanted, text), what in zip(read, understood, strict=True)
        ]

    def _understander_of(self, read: Sequence[tuple[WantedSource, SourceText]]) -> Understander:
        """Return what understands some texts; records in bulk are understood quickly."""
        records = sum(_records(wanted, text) for wanted, text in read)
        is_bulk = records > MOST_READ_CLOSELY or all(wanted.in_bulk for wanted, _ in read)
        return self.bulk_understander if is_bulk and self.bulk_understander else self.understander

    def _texts_for_understanding(
        self, read: Sequence[tuple[WantedSource, SourceText]]
    ) -> list[SourceText]:
        """Return the texts; only a model makes use of where they came from."""
        if self.understander.method.startswith(MODEL):
            return [_with_origin(*each) for each in read]
        return [text for _, text in read]

    def _passages(self, wanted: WantedSource, text: SourceText) -> Sequence[Passage]:
        for part in wanted.stored:
            if (part.text.part, part.text.text) == (text.part, text.text) and part.passages:
                return part.passages
        return chunk(text, self.sizes, self.cut)

    def _finish_groups(
        self,
        results: list[SourceResult],
        made: Sequence[PreparedDocument],
        now: datetime,
        weigh: NoveltyWeighing | None,
    ) -> ProcessedGroup:
        from memctl.schema.arrow_tables import documents_table, memories_table

        vectors = self.embedder.embed([text for item in made for text in item.embed])
        if weigh is not None and made:
            made = weigh(made, vectors)
        memories = [memory for item in made for memory in item.memories]
        return ProcessedGroup(
            results,
            now,
            documents_table([item.document for item in made]),
            memories_table(memories, vectors),
            entities_of(made),
            relations_of(made),
        )


def load_processor(
    settings: KnowledgeBaseSettings,
    embedder: Embedder | None = None,
    understander: Understander | None = None,
    enricher: MediaEnricher | None = None,
    readers: Readers | None = None,
    private: PrivateNamespaces | None = None,
) -> DocumentProcessor:
    """What a knowledge base's settings say the work is to be done with."""
    from memctl.models import load_embedder
    from memctl.understanding.builtin_understander import BuiltinUnderstander

    embedder = embedder or load_embedder(settings.embedder)
    sizes = ChunkSizes(settings.chunk_size, settings.chunk_overlap)
    readers = readers or Readers()
    understander = understander or BuiltinUnderstander.from_settings(readers.limits)
    quick = BuiltinUnderstander() if isinstance(understander, BuiltinUnderstander) else None
    made = DocumentProcessor(embedder, understander, sizes, quick, None, enricher, readers)
    made.redacts, made.private = settings.redact, private
    if settings.chunk_strategy == "semantic":
        from memctl.ingest.chunking import semantic_cut

        made.cut = semantic_cut(sizes.size, embedder)
    return made


def _read(wanted: WantedSource, readers: Readers) -> SourceText | ReadFailure | SeveralParts:
    stream = texts_of(wanted, readers)
    try:
        first = next(stream)
        return first if next(stream, None) is None else SeveralParts()
    except Unreadable as error:
        return error.why
    finally:
        stream.close()


def _share(readings: dict[str, ReadTiming], lengths: Mapping[str, int], seconds: float) -> None:
    """Share out how long texts took to be worked on together, to those that are files."""
    whole = sum(lengths.values())
    for id_, length in lengths.items():
        if reading := readings.get(id_):
            share = seconds * (length / whole if whole else 1 / len(lengths))
            readings[id_] = reading._replace(understand_seconds=reading.understand_seconds + share)


def _records(wanted: WantedSource, text: SourceText) -> int:
    """Return how many records a text is; one that was read from a file is none."""
    if text.reader == SESSION_READER:
        return len(text.segments)
    return int(wanted.is_record)


def _with_origin(wanted: WantedSource, text: SourceText) -> SourceText:
    """The text with what is known of it from where it came from, and the document it becomes."""
    source = wanted.item.source
    name = source.name or (source.path.name if source.path else "")
    known = {
        "file": name,
        "speaker": source.speaker,
        "session": source.session_id,
        "turn": source.turn,
        "date": source.created_at.date().isoformat() if source.created_at else None,
        "tags": list(source.tags),
    }
    origin = {key: value for key, value in known.items() if value not in (None, "", [])}
    return replace(text, origin=origin, document_id=wanted.document_id)


def _with_summaries(
    results: Sequence[SourceResult], made: Sequence[PreparedDocument | ReadFailure]
) -> list[SourceResult]:
    """Return the results, with summaries of the documents made, which have the same order."""
    rest = iter(made)
    return [
        _result(next(rest)) if isinstance(result, DocumentSummary) else result for result in results
    ]


def _result(item: PreparedDocument | ReadFailure) -> DocumentSummary | ReadFailure:
    return item if isinstance(item, ReadFailure) else _summary_of(item)


def _not_understood(wanted: WantedSource) -> ReadFailure:
    """Why nothing is made of a document that is better understood already."""
    reason = f"{wanted.item.source.source}: the model makes nothing of it now"
    hint = "it stays as a model understood it before"
    return ReadFailure(reason, hint, BadReply.__name__)


def _summary_of(item: PreparedDocument) -> DocumentSummary:
    document = item.document
    said = (document.title, document.summary, document.missing, item.dropped, item.redacted)
    return DocumentSummary(len(item.memories), *said)
