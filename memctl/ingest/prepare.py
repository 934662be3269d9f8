"""Sources become batches of rows, in order; nothing is written here.

A batch ends when it is worth a commit.  A source in many parts is a run of batches of its own.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from memctl.ingest.batch import Batch, Identified, Prepared, Wanted, failed_outcome
from memctl.ingest.chunking import ChunkSizes, Cut, chunk
from memctl.ingest.known import Known, Later
from memctl.ingest.reading import Unreadable, identify, parts
from memctl.ingest.rows import Parts, prepared
from memctl.ingest.sources import Source, SourceOrFailure
from memctl.records import FileOutcome, SourceText
from memctl.understand.protocol import Understander

T = TypeVar("T")

GROUP = 1024
"""So many sources are judged by one look at the store."""
UNDERSTOOD_TOGETHER = 256
CHARACTERS_TOGETHER = 4 << 20
"""So many documents, or so much text, are understood by one call."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a batch is worth a commit."""

    documents: int = 8_192
    memories: int = 10_000
    characters: int = 16 << 20
    seconds: float = 2.0


@dataclass(slots=True)
class _Filling:
    """A batch that is being filled."""

    limits: Limits
    batch: Batch = field(default_factory=Batch)
    memories: int = 0
    characters: int = 0
    since: float = field(default_factory=time.monotonic)

    def add(self, items: Iterable[Prepared]) -> None:
        for item in items:
            self.batch.prepared.append(item)
            self.memories += len(item.memories)
            self.characters += len(item.document.text)

    @property
    def is_full(self) -> bool:
        handled = len(self.batch.prepared) + len(self.batch.outcomes)
        return (
            handled >= self.limits.documents
            or self.memories >= self.limits.memories
            or self.characters >= self.limits.characters
            or (handled > 0 and self.is_overdue)
        )

    @property
    def is_overdue(self) -> bool:
        return time.monotonic() - self.since >= self.limits.seconds

    def take(self) -> Iterator[Batch]:
        """Give the batch away if there is anything in it, and begin another one."""
        batch = self.batch
        self.batch, self.memories, self.characters = Batch(), 0, 0
        self.since = time.monotonic()
        if batch.prepared or batch.outcomes:
            yield batch


@dataclass(slots=True)
class _Waiting:
    """Documents that are read and wait to be understood together."""

    read: list[tuple[Wanted, SourceText]] = field(default_factory=list)
    characters: int = 0

    def add(self, wanted: Wanted, text: SourceText) -> None:
        self.read.append((wanted, text))
        self.characters += len(text.text)

    @property
    def is_enough(self) -> bool:
        return len(self.read) >= UNDERSTOOD_TOGETHER or self.characters >= CHARACTERS_TOGETHER

    def take(self) -> list[tuple[Wanted, SourceText]]:
        read, self.read, self.characters = self.read, [], 0
        return read


class Preparer:
    """Reads, cuts and understands sources."""

    def __init__(
        self,
        known: Known,
        understander: Understander,
        sizes: ChunkSizes,
        cut: Cut | None,
        clock: Callable[[], datetime],
        limits: Limits,
    ) -> None:
        self._known = known
        self._understander = understander
        self._sizes = sizes
        self._cut = cut
        self._clock = clock
        self._filling = _Filling(limits)

    def batches(self, sources: Iterable[SourceOrFailure]) -> Generator[Batch, None, None]:
        """Turn sources into batches."""
        for group in _grouped(sources, GROUP):
            yield from self._group(self._identified(group))
        yield from self._filling.take()

    def judged(self, judged: Iterable[Wanted | FileOutcome]) -> Generator[Batch, None, None]:
        """Turn sources that somebody has judged already into batches."""
        for group in _grouped(judged, GROUP):
            self._filling.batch.outcomes.extend(x for x in group if isinstance(x, FileOutcome))
            yield from self._wanted([x for x in group if isinstance(x, Wanted)])
        yield from self._filling.take()

    # --- judging ---

    def _identified(self, group: Sequence[SourceOrFailure]) -> list[Identified]:
        identified: list[Identified] = []
        for source in group:
            if isinstance(source, FileOutcome):
                self._filling.batch.outcomes.append(source)
                continue
            try:
                identified.append(identify(source))
            except Unreadable as error:
                self._fail(source, error)
        return identified

    def _group(self, items: list[Identified]) -> Generator[Batch, None, None]:
        while items:
            verdicts = self._known.judge(items)
            outcomes = (verdict for verdict in verdicts if isinstance(verdict, FileOutcome))
            self._filling.batch.outcomes.extend(outcomes)
            yield from self._wanted([x for x in verdicts if isinstance(x, Wanted)])
            later = [verdict.item for verdict in verdicts if isinstance(verdict, Later)]
            if len(later) == len(items):  # all depend on what is not committed yet
                yield from self._filling.take()
                self._known.wait_for_commits()
            items = later

    # --- reading and understanding ---

    def _wanted(self, wanted: Sequence[Wanted]) -> Generator[Batch, None, None]:
        waiting = _Waiting()
        for each in wanted:
            try:
                stream = parts(each.item)
                first, second = next(stream), next(stream, None)
            except Unreadable as error:
                self._fail(each.item.source, error)
                continue
            if second is None:
                waiting.add(each, first)
                if waiting.is_enough or self._filling.is_overdue:
                    yield from self._understood(waiting)
            else:
                yield from self._understood(waiting)
                yield from self._filling.take()
                yield from self._in_parts(each, itertools.chain((first, second), stream))
        yield from self._understood(waiting)

    def _understood(self, waiting: _Waiting) -> Generator[Batch, None, None]:
        """Put what waits into the batch, and give that away when it is full."""
        read = waiting.take()
        self._filling.add(self._rows(read))
        for each, _ in read:
            self._known.prepared(each)
        if self._filling.is_full:
            yield from self._filling.take()

    def _rows(self, read: Sequence[tuple[Wanted, SourceText]]) -> list[Prepared]:
        understood = self._understander.understand([text for _, text in read])
        now = self._clock()
        return [
            prepared(Parts(wanted, text, chunk(text, self._sizes, self._cut), what, now))
            for (wanted, text), what in zip(read, understood, strict=True)
        ]

    def _in_parts(
        self, wanted: Wanted, stream: Iterable[SourceText]
    ) -> Generator[Batch, None, None]:
        """One batch for each part; an error half-way makes the final one a failure."""
        self._known.prepared(wanted)
        final = Batch()
        try:
            for text in stream:
                yield Batch(prepared=self._rows([(wanted, text)]), last=False)
        except Unreadable as error:
            final.failure = _failed(wanted.item.source, error)
        yield final

    def _fail(self, source: Source, error: Unreadable) -> None:
        self._filling.batch.outcomes.append(_failed(source, error))


def _failed(source: Source, error: Unreadable) -> FileOutcome:
    return failed_outcome(source, error.reason, error.hint, error.error)


def _grouped(items: Iterable[T], size: int) -> Iterator[list[T]]:
    stream = iter(items)
    while group := list(itertools.islice(stream, size)):
        yield group
