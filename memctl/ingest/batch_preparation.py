"""Sources become batches of rows, in order; nothing is written here.

A batch ends when it is worth a commit.  A source in many parts is a run of batches of its own.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from memctl.errors import ModelError
from memctl.ingest.batches import (
    Batch,
    IdentifiedSource,
    ProcessedGroup,
    ReadFailure,
    SeveralParts,
    WantedSource,
    failed_outcome,
)
from memctl.ingest.deduplication import Deduplicator, Deferred
from memctl.ingest.discovery.sources import Source, SourceOrFailure
from memctl.ingest.document_processing import MOST_READ_CLOSELY
from memctl.ingest.file_units import Unpacking, kind_of, of_other_files
from memctl.ingest.file_versions import FileVersions, with_earlier
from memctl.ingest.source_reading import Unreadable, identify, texts_of
from memctl.ingest.worker_pool import WorkerDied, WorkerPool
from memctl.records import FileOutcome

T = TypeVar("T")

JUDGED_TOGETHER = 1024
"""Sources that are judged by one look at the store."""
WORKED_TOGETHER = 1024
BYTES_TOGETHER = 1 << 20
"""One group has at most this many sources, or this many bytes."""
READ_TOGETHER = 4
"""Files in a group, which one process works on and which is committed as a whole: the model reads
each of them for a second or so."""


class IngestLimits(Struct, frozen=True):
    """When a batch is worth a commit, and after how many seconds of work workers are started."""

    documents: int = 20_000
    memories: int = 25_000
    bytes: int = 32 << 20
    seconds: float = 4.0
    start_workers_after: float = 0.3
    together: int | None = None
    """Work on this many sources as one group instead of the usual number."""


class _Filling(Struct):
    """A batch that is being filled."""

    limits: IngestLimits
    batch: Batch = field(default_factory=Batch)
    documents: int = 0
    memories: int = 0
    bytes: int = 0
    since: float = field(default_factory=time.monotonic)

    def add(self, processed: ProcessedGroup) -> None:
        """Put what was worked on into the batch."""
        self.batch.groups.append(processed)
        self.documents += processed.documents.num_rows
        self.memories += processed.memories.num_rows
        self.bytes += processed.documents.nbytes

    @property
    def is_full(self) -> bool:
        """Whether any of the limits has been reached."""
        return (
            self.documents + len(self.batch.outcomes) >= self.limits.documents
            or self.memories >= self.limits.memories
            or self.bytes >= self.limits.bytes
            or time.monotonic() - self.since >= self.limits.seconds
        )

    def take(self) -> Iterator[Batch]:
        """Give the batch away if there is anything in it, and begin another one."""
        batch = self.batch
        self.batch, self.documents, self.memories, self.bytes = Batch(), 0, 0, 0
        self.since = time.monotonic()
        if batch.groups or batch.outcomes:
            yield batch


class Preparer:
    """Judges sources, has them worked on, and makes batches of the rows."""

    def __init__(
        self,
        known: Deduplicator,
        pool: WorkerPool,
        clock: Callable[[], datetime],
        limits: IngestLimits,
        versions: FileVersions | None = None,
    ) -> None:
        self._known = known
        self._versions = versions
        self._worker_pool = pool
        self._clock = clock
        self._limits = limits
        self._filling = _Filling(limits)
        self._flying: deque[Future[list[ProcessedGroup]]] = deque()
        self._records = 0
        """How many records have been worked on, or begun with."""
        self.read = 0
        """How many sources have been worked on, committed or not."""

    def batches(self, sources: Iterable[SourceOrFailure]) -> Generator[Batch, None, None]:
        """Turn sources into batches.

        Raises:
            ModelError: A model cannot be had; all that was made before has been given.
        """
        yield from self._flush_before_failure(self._batches(sources))

    def _batches(self, sources: Iterable[SourceOrFailure]) -> Generator[Batch, None, None]:
        for group in grouped(sources, JUDGED_TOGETHER):
            yield from self._group(self._identify(group))
        yield from self._collect(0)
        yield from self._filling.take()

    def judged(self, judged: Iterable[WantedSource | FileOutcome]) -> Generator[Batch, None, None]:
        """Turn sources that are judged already into batches.

        Raises:
            ModelError: As :meth:`batches`.
        """
        yield from self._flush_before_failure(self._batches_of(judged))

    def _batches_of(
        self, judged: Iterable[WantedSource | FileOutcome]
    ) -> Generator[Batch, None, None]:
        for group in grouped(judged, JUDGED_TOGETHER):
            self._filling.batch.outcomes.extend(x for x in group if isinstance(x, FileOutcome))
            yield from self._work_on([x for x in group if isinstance(x, WantedSource)])
        yield from self._collect(0)
        yield from self._filling.take()

    def _flush_before_failure(
        self, batches: Generator[Batch, None, None]
    ) -> Generator[Batch, None, None]:
        """Give what is finished before a model that cannot be had ends it all."""
        try:
            yield from batches
        except ModelError:
            yield from self._filling.take()  # empty in the middle of a source in parts
            raise

    # --- judging ---

    def _identify(self, group: Sequence[SourceOrFailure]) -> list[IdentifiedSource]:
        identified: list[IdentifiedSource] = []
        for source in group:
            if isinstance(source, FileOutcome):
                self._filling.batch.outcomes.append(source)
                continue
            try:
                identified.append(identify(source))
            except Unreadable as error:
                self._fail(source, error.why)
        return identified

    def _group(
        self, items: list[IdentifiedSource], known: set[str] | None = None
    ) -> Generator[Batch, None, None]:
        """Judge sources and work on them; ``known`` gets the documents that are there already."""
        while items:
            verdicts = self._known.judge(items)
            outcomes = [verdict for verdict in verdicts if isinstance(verdict, FileOutcome)]
            self._filling.batch.outcomes.extend(outcomes)
            if known is not None:
                known.update(item.document_id for item in outcomes if item.document_id)
            yield from self._work_on([x for x in verdicts if isinstance(x, WantedSource)])
            later = [verdict.item for verdict in verdicts if isinstance(verdict, Deferred)]
            if len(later) == len(items):  # all depend on what is not finished yet
                yield from self._caught_up()
            items = later

    def _caught_up(self) -> Generator[Batch, None, None]:
        """Finish what is in work; where nothing is, have it committed."""
        if self._flying:
            yield from self._collect(0)
        else:
            yield from self._filling.take()
            self._known.wait_for_commits()

    # --- working ---

    def _work_on(self, wanted: Sequence[WantedSource]) -> Generator[Batch, None, None]:
        kinds = [kind_of(each) for each in wanted]
        single = [each for each, kind in zip(wanted, kinds, strict=True) if kind is None]
        yield from self._submit(with_earlier(self._known.snapshot(), single, self._versions))
        for each, kind in zip(wanted, kinds, strict=True):
            if kind is not None:
                yield from self._unpack(Unpacking(each, kind, self._worker_pool.readers))

    def _unpack(self, file: Unpacking) -> Generator[Batch, None, None]:
        """Work on the units of a file, and then on the document that says what it holds."""
        known: set[str] = set()
        source = file.wanted.item.source
        try:
            for items, failures in file.groups():
                self._filling.batch.outcomes.extend(failures)
                yield from self._group(items, known)
        except Unreadable as error:
            self._fail(source, error.why)
            return
        if not file.count:
            self._fail(source, file.failure)
            return
        if known:  # by which files they go is seen once they are committed
            yield from self._collect(0)
            yield from self._filling.take()
            self._known.wait_for_commits()
        snapshot = self._known.snapshot()
        shared = of_other_files(snapshot, known, file.prefix)
        ended = file.ended(snapshot) if file.is_followed else []
        yield from self._submit([file.listing(shared, ended)])

    def _submit(self, wanted: Sequence[WantedSource]) -> Generator[Batch, None, None]:
        self._records += sum(each.is_record for each in wanted)
        if self._records > MOST_READ_CLOSELY:
            wanted = [replace(each, in_bulk=True) if each.is_record else each for each in wanted]
        for group in _portions(wanted, self._limits.together or WORKED_TOGETHER):
            self._known.note_begun(group)
            self._flying.append(self._worker_pool.submit(group, self._clock()))
            yield from self._collect(self._worker_pool.capacity)

    def _collect(self, still_flying: int) -> Generator[Batch, None, None]:
        """Put groups that are done into the batch, until no more than this many are in work."""
        while len(self._flying) > still_flying:
            for processed in self._flying.popleft().result():
                yield from self._receive(processed)
            if self._filling.is_full:  # what is done need not wait for what takes long
                yield from self._filling.take()

    def _receive(self, processed: ProcessedGroup) -> Generator[Batch, None, None]:
        in_parts: list[WantedSource] = []
        self._known.note_prepared([wanted for wanted, _ in processed.ingested()])
        for wanted, result in zip(processed.wanted, processed.results, strict=True):
            if isinstance(result, ReadFailure):
                self._known.note_committed([wanted])
                self._fail(wanted.item.source, result)
            elif isinstance(result, SeveralParts):
                in_parts.append(wanted)
        self._filling.add(processed)
        self.read += len(processed.wanted) - len(in_parts)
        for wanted in in_parts:
            yield from self._filling.take()
            yield from self._in_parts(wanted)
            self.read += 1

    def _in_parts(self, wanted: WantedSource) -> Generator[Batch, None, None]:
        """One batch for each part; an error half-way makes the final one a failure."""
        final = Batch()
        try:
            for processed in self._parts_worked(wanted):
                yield Batch(groups=[processed], last=False)
        except Unreadable as error:
            final.failure = failed_outcome(wanted.item.source, error.why)
        except WorkerDied as error:
            why = ReadFailure(error.message, "the file may be damaged", "WorkerDied")
            final.failure = failed_outcome(wanted.item.source, why)
        if final.failure is not None:
            self._known.note_committed([wanted])
        yield final

    def _parts_worked(self, wanted: WantedSource) -> Iterator[ProcessedGroup]:
        """The parts of a source in order, several in work at once."""
        flying: deque[Future[ProcessedGroup]] = deque()
        for text in texts_of(wanted, self._worker_pool.readers):
            flying.append(self._worker_pool.submit_part(wanted, text, self._clock()))
            while len(flying) > self._worker_pool.capacity:
                yield flying.popleft().result()
        while flying:
            yield flying.popleft().result()

    def _fail(self, source: Source, why: ReadFailure) -> None:
        self._filling.batch.outcomes.append(failed_outcome(source, why))


def _portions(wanted: Sequence[WantedSource], most: int) -> Iterator[list[WantedSource]]:
    """Groups of sources that are worked on together: not many, and not much."""
    portion: list[WantedSource] = []
    size = files = 0
    for each in wanted:
        is_full = len(portion) >= most or files >= READ_TOGETHER
        if portion and (is_full or size + each.item.size > BYTES_TOGETHER):
            yield portion
            portion, size, files = [], 0, 0
        portion.append(each)
        size += each.item.size
        files += each.item.source.path is not None or bool(each.item.source.texts)
    if portion:
        yield portion


def grouped(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the items in lists of that many, the last one of what is left."""
    stream = iter(items)
    while group := list(itertools.islice(stream, size)):
        yield group
