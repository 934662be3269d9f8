"""The way from sources to memories: prepare ahead, write behind.

A thread judges sources and has them worked on, in bulk by worker processes; the caller's thread
commits what is finished.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from queue import Empty, Full, Queue
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from memctl.errors import LockedError, MemctlError
from memctl.ingest.batch_preparation import IngestLimits, Preparer
from memctl.ingest.batch_writing import (
    OutcomeListener,
    rename_document,
    write_batch,
)
from memctl.ingest.batches import (
    PIPELINE_VERSION,
    Batch,
    IngestCounters,
    PreparedDocument,
    WantedSource,
)
from memctl.ingest.deduplication import Deduplicator
from memctl.ingest.discovery.sources import SourceOrFailure
from memctl.ingest.document_processing import PrivateNamespaces, load_processor
from memctl.ingest.fact_comparison import FactComparer
from memctl.ingest.file_units import units_of
from memctl.ingest.file_versions import FileVersions
from memctl.ingest.media_enrichment import MediaEnricher
from memctl.ingest.reprocessing import LostDocument, documents_to_recover, documents_to_reprocess
from memctl.ingest.source_reading import redacted_outcome
from memctl.ingest.worker_pool import WEIGHED_AT_MOST, WaitingWorkers, WorkerPool
from memctl.kb_settings import KnowledgeBaseSettings
from memctl.models import BUILTIN_EMBEDDER
from memctl.models.protocols import Embedder, Understander
from memctl.readers import Readers
from memctl.records import (
    WRITTEN_OUTCOMES,
    FactComparison,
    FileOutcome,
    IngestReport,
    Progress,
    ProgressListener,
)
from memctl.redaction import redact_secrets
from memctl.rows.derived_rows import EntityCounts, fold_accesses
from memctl.rows.row_lifecycle import retire_documents
from memctl.schema.table_names import UPKEEP
from memctl.understanding.importance_score import with_novelty

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memctl.store.store import Store
    from memctl.store.tables.snapshot import Snapshot


Clock = Callable[[], datetime]

_log = logging.getLogger(__name__)

DEPTH = 2
"""Batches that may wait between two stages."""
MANY_MEMORIES = 1_000
"""From this many new memories on, the upkeep after them is a job worth noting in the ledger."""
UPKEEP_MEMORIES = 100_000
"""After this many new memories a run that goes on has upkeep too, and again each time that it has
doubled them: queries are fast meanwhile, and after a run that is interrupted."""
MANY_SOURCES = 10_000
"""For this many sources workers are started at once."""


class IngestStopped(MemctlError):
    """The store, or a model, failed half-way; ``report`` says what had been committed by then."""

    def __init__(self, cause: Exception, report: IngestReport) -> None:
        done = f"{report.ingested} documents were ingested before"
        message = cause.message if isinstance(cause, MemctlError) else str(cause)
        hint = cause.hint if isinstance(cause, MemctlError) else "check the disk, then run it again"
        super().__init__(f"{message}; {done}", hint)
        self.cause = cause
        self.report = report
        if isinstance(cause, MemctlError):
            self.exit_code = cause.exit_code


class Ingestor:
    """Turns sources into documents and memories of one knowledge base."""

    def __init__(
        self,
        store: Store,
        settings: KnowledgeBaseSettings,
        embedder: Embedder,
        understander: Understander,
        clock: Clock,
        *,
        enricher: MediaEnricher | None = None,
        limits: IngestLimits | None = None,
        comparer: FactComparer | None = None,
        readers: Readers | None = None,
        private: PrivateNamespaces | None = None,
        boosts_used: bool = False,
        workers: WaitingWorkers | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._embedder = embedder
        self._understander = understander
        self._enricher = enricher
        self._comparer = comparer
        self._clock = clock
        self._limits = limits or IngestLimits()
        self._readers = readers or Readers()
        self._private = private
        self._boosts_used = boosts_used
        self._workers = workers
        self._not_indexed = 0
        """Memories of runs whose indexing was left to the next one."""

    def ingest(
        self,
        sources: Iterable[SourceOrFailure],
        progress: ProgressListener | None = None,
        *,
        total: int | None = None,
        on_commit: OutcomeListener | None = None,
        on_done: OutcomeListener | None = None,
        versions: FileVersions | None = None,
        turns_follow: Callable[[], bool] | None = None,
    ) -> IngestReport:
        """Take sources in; one that fails never stops the others.

        Args:
            sources: What to take in; read in a thread of its own, lazily.
            progress: Called at once when it begins, and now and then with how many sources were
                read; after each commit how many are dealt with, and after each part of a source
                too big for memory how many memories it has given.
            total: How many sources there are, where that is known.
            on_commit: Called within each commit with what it makes of its sources, for what must
                be recorded in the ledger in the same step.
            on_done: Called after each commit with what has become of sources, failed ones too.
            versions: Finds what the files were before; that ends in favour of what they are now.
            turns_follow: Tells, when all is read, whether the caller takes turns over next.

        Raises:
            IngestStopped: The store failed, or a model could not be had, after something had
                been committed.
            MemctlError, OSError: It failed before anything was.
        """
        return self._run(
            lambda preparer: preparer.batches(sources),
            progress,
            total,
            on_commit,
            versions,
            turns_follow,
            on_done,
        )

    def add_parts(
        self,
        parts: Sequence[WantedSource],
        on_commit: OutcomeListener,
        progress: ProgressListener | None = None,
        *,
        turns_follow: Callable[[], bool] | None = None,
    ) -> IngestReport:
        """Add further parts to documents, whose earlier parts stay as they are.

        Args:
            parts: Which, each under an id that no part has yet.
            on_commit: Called within each commit with what it makes of its parts; when it raises,
                nothing of the commit stays.
            progress: As for :meth:`ingest`.
            turns_follow: As for :meth:`ingest`.

        Raises:
            IngestStopped: As :meth:`ingest`.
        """
        return self._run(
            lambda preparer: preparer.judged(parts),
            progress,
            len(parts),
            on_commit,
            turns_follow=turns_follow,
        )

    def reprocess(
        self,
        document_ids: Sequence[str] = (),
        *,
        incomplete: bool = False,
        upgrade: bool = False,
        older: bool = False,
        progress: ProgressListener | None = None,
    ) -> IngestReport:
        """Read documents again from where their files are now, and make their rows anew.

        Ids stay, and edited memories stay as they are.

        Args:
            document_ids: Which documents.
            incomplete: Whether to take all documents too of which something is missing.
            upgrade: Whether to take all documents too that were understood by another method.
            older: Whether to take all documents too that an earlier version made the rows of.
            progress: Called after each commit with how many are done.

        Raises:
            NotFoundError: There is no document of one of the ids.
            IngestStopped: As :meth:`ingest`.
        """
        again = documents_to_reprocess(
            self._store,
            document_ids,
            incomplete=incomplete,
            older=older,
            method=self._method if upgrade else None,
        )
        return self._run(lambda preparer: preparer.judged(again), progress, None)

    def understand(self, document_id: str) -> IngestReport:
        """Understand a document again, from its text as it is remembered if its file is gone.

        Raises:
            NotFoundError: There is no such document.
            IngestStopped: As :meth:`ingest`.
        """
        again = documents_to_reprocess(self._store, [document_id], incomplete=False, from_text=True)
        return self._run(lambda preparer: preparer.judged(again), None, 1)

    def asking(self, document_id: str) -> None:
        """Have a model asked about a document whose reply is to come later; nothing is written.

        Raises:
            ModelUnavailable: It is asked, and there is no reply yet.
            NotFoundError: There is no such document.
        """
        again = documents_to_reprocess(self._store, [document_id], incomplete=False, from_text=True)
        known, pool = Deduplicator(self._store), self._worker_pool(None)
        with closing(known), closing(pool):
            for _ in Preparer(known, pool, self._clock, self._limits).judged(again):
                pass

    def bring_back(self, lost: Sequence[LostDocument]) -> IngestReport:
        """Make the rows of documents anew that damage has taken, under the ids that they had.

        Args:
            lost: Which, each with where its file is.

        Raises:
            IngestStopped: As :meth:`ingest`.
        """
        again = documents_to_recover(self._store, lost)
        return self._run(lambda preparer: preparer.judged(again), None, len(lost))

    def index_rest(self) -> None:
        """Index what runs left to a later one, if that one has not come."""
        if self._not_indexed:
            self._index()

    def compare(self) -> FactComparison:
        """Compare what still waits to be compared with what is known; see ``FactComparer``."""
        return self._comparer.run() if self._comparer is not None else FactComparison()

    def rename(self, document_id: str, source: str) -> None:
        """Record that the same content is found under another name now."""
        name = redact_secrets(source) if self._settings.redact else source
        with self._store.write() as transaction:
            rename_document(transaction, document_id, name)

    def retire(self, document_ids: Sequence[str]) -> None:
        """Mark live documents as gone, as their files are; what was known becomes history."""
        with self._store.write() as transaction:
            units = units_of(transaction.snapshot(), document_ids)
            retire_documents(transaction, [*document_ids, *units], self._clock())

    def end_gone(self, versions: FileVersions, folders: Sequence[Path]) -> tuple[FileOutcome, ...]:
        """Mark the documents as gone whose files are no longer in some folders; return which.

        One that another file still has the content of goes by that file's name.
        """
        with self._store.write() as transaction:
            found = versions.gone(transaction.snapshot(), folders)
            if found.gone:
                ids = [item.document_id for item in found.gone if item.document_id]
                ids += units_of(transaction.snapshot(), ids)
                retire_documents(transaction, ids, self._clock())
            for document_id, source in found.renamed.items():
                rename_document(transaction, document_id, source)
        return found.gone

    # --- inside ---

    def _method(self, namespace: str) -> str:
        """How documents of a namespace are understood."""
        private = self._private
        if private is not None and namespace in private.namespaces:
            return private.understander.method
        return self._understander.method

    def _worker_pool(self, total: int | None) -> WorkerPool:
        from memctl.understanding.builtin_understander import BuiltinUnderstander

        made = load_processor(
            self._settings,
            self._embedder,
            self._understander,
            self._enricher,
            self._readers,
            self._private,
        )
        builtin = isinstance(self._understander, BuiltinUnderstander)
        may_start_workers = (
            builtin and self._enricher is None and self._embedder.id == BUILTIN_EMBEDDER
        )
        settings = self._settings if may_start_workers else None
        is_bulk = total is not None and total >= MANY_SOURCES
        start_workers_after = 0.0 if is_bulk else self._limits.start_workers_after
        # What a model says of importance, it says of the whole; nothing is added to that.
        few = total is None or total <= WEIGHED_AT_MOST
        weigh = NoveltyScorer(self._store) if builtin and few else None
        return WorkerPool(made, settings, start_workers_after, weigh, self._workers)

    def _run(
        self,
        batches: Callable[[Preparer], Generator[Batch, None, None]],
        progress: ProgressListener | None,
        total: int | None,
        on_commit: OutcomeListener | None = None,
        versions: FileVersions | None = None,
        turns_follow: Callable[[], bool] | None = None,
        on_done: OutcomeListener | None = None,
    ) -> IngestReport:
        counters = IngestCounters()
        try:
            self._commit(batches, counters, progress, total, on_commit, versions, on_done)
            counters.facts = self._compare(counters, progress, total)
            self._not_indexed += counters.memories
            # A second index would leave the first behind, for readers, and takes as long again.
            is_last = turns_follow is None or not turns_follow()
            if is_last and (counters.ingested or self._not_indexed):
                self._index()
        except (MemctlError, OSError) as error:
            self._not_indexed = 0  # no later run belongs to this one; the next writer indexes
            if not counters.ingested:
                raise
            raise IngestStopped(error, counters.report()) from error
        return counters.report()

    def _commit(
        self,
        batches: Callable[[Preparer], Generator[Batch, None, None]],
        counters: IngestCounters,
        progress: ProgressListener | None,
        total: int | None,
        on_commit: OutcomeListener | None,
        versions: FileVersions | None,
        on_done: OutcomeListener | None,
    ) -> None:
        def record_receipts(outcomes: Sequence[FileOutcome]) -> None:
            """Put the receipts of what is taken in into its commit, with what else is to be."""
            self._note(item for item in outcomes if item.outcome in WRITTEN_OUTCOMES)
            if on_commit is not None:
                on_commit(self._redacted_outcomes(outcomes))

        known, pool, counts = Deduplicator(self._store), self._worker_pool(total), EntityCounts()
        preparer = Preparer(known, pool, self._clock, self._limits, versions)

        part: Progress | None = None

        def tell_part(state: Progress) -> None:
            """Report how far a source in many parts is; that holds until its next part is there."""
            nonlocal part
            part = state
            tell()

        def tell() -> None:
            """Report how far the reading is, which is ahead of the commits."""
            if progress is not None and part is not None:
                progress(part)
            elif progress is not None:
                name = pool.reading.rsplit("/", 1)[-1]
                note = f"{preparer.read:,} read" if preparer.read else "reading"
                note = f"{note} {name}".rstrip()
                progress(Progress(counters.done, total, "documents", note, reading=pool.reading))

        due = UPKEEP_MEMORIES
        prepared = prefetch(batches(preparer), DEPTH, tell)
        # Closed from last to first: the thread may be waiting for a worker or for a commit.
        with closing(prepared), closing(known), closing(pool):
            tell()
            for batch in prepared:
                so_far = Progress(counters.done, total, "documents")
                parts = _with_progress(batch, prepared, tell_part, so_far)
                written = write_batch(
                    self._store, batch, parts, known, counts, record_receipts, versions
                )
                part = None
                outcomes = self._redacted_outcomes(written)
                self._note(item for item in outcomes if item.outcome not in WRITTEN_OUTCOMES)
                counters.add(outcomes)
                known.note_committed(
                    wanted for processed in batch.groups for wanted in processed.wanted
                )
                if on_done is not None:
                    on_done(outcomes)
                if progress is not None:
                    done = Progress(counters.done, total, "documents", reading=pool.reading)
                    progress(done)
                if counters.memories >= due:
                    due = 2 * counters.memories
                    self._improve(known, counts)
            pool.release()
            if counts.is_waiting:
                with self._store.write() as transaction:
                    counts.write_waiting(transaction)
                counts.note_committed(transaction)

    def _improve(self, known: Deduplicator, counts: EntityCounts) -> None:
        """Index what is new while the run goes on, unless another process is writing."""
        try:
            done = self._store.upkeep(wait=0)
        except LockedError as error:
            _log.info("no upkeep now: %s", error.message)
            return
        known.note_upkeep(done.before["documents"], done.after["documents"])
        counts.note_upkeep(done.before["entities"], done.after["entities"])

    def _redacted_outcomes(self, outcomes: Sequence[FileOutcome]) -> Sequence[FileOutcome]:
        """Return outcomes without secrets: a reason may quote the place that cannot be read."""
        return list(map(redacted_outcome, outcomes)) if self._settings.redact else outcomes

    def _note(self, outcomes: Iterable[FileOutcome]) -> None:
        self._store.ledger.provenance.add(outcomes, self._clock(), PIPELINE_VERSION)

    def _compare(
        self, counters: IngestCounters, progress: ProgressListener | None, total: int | None
    ) -> FactComparison:
        """Compare new facts, and those that have waited, with what is known."""
        if self._comparer is None:
            return FactComparison()
        state = Progress(counters.done, total, "documents", "comparing facts")
        return self._comparer.run(lambda: progress(state) if progress is not None else None)

    def _index(self) -> None:
        """Index what is new, if there is enough of it; otherwise the next writer does."""
        began = self._clock()
        is_bulk = self._not_indexed >= MANY_MEMORIES
        self._not_indexed = 0
        if is_bulk and self._workers is not None:
            self._workers.close()  # indexes take as much memory as workers do
        try:
            with self._store.ledger.audit.action("access counts", is_job=True):
                fold_accesses(self._store, boosts=self._boosts_used)
            self._store.upkeep(wait=0)
        except LockedError as error:
            _log.info("no upkeep now: %s", error.message)
            return
        if is_bulk:
            jobs = self._store.ledger.jobs
            jobs.finish(jobs.start(UPKEEP, began), "done", self._clock())


def _with_progress(
    first: Batch,
    rest: Iterator[Batch],
    listener: ProgressListener,
    so_far: Progress,
) -> Iterator[Batch]:
    """Yield the batches that continue one, with progress: a source in many parts takes its time.

    Of one that is all there is, the progress is that of its text.
    """
    item = first.groups[0].wanted[0].item
    memories, size = _amount(first)

    def tell() -> None:
        """Report how much of the source is there."""
        note = f"{memories:,} memories so far, {size / 1e6:,.0f} MB of text"
        state = replace(so_far, note=note, source=item.source.source)
        if so_far.total == 1:
            total = max(1, item.size // 1000)
            done = min(size // 1000, total)
            state = replace(state, done=done, total=total, unit="kB of text")
        listener(state)

    tell()
    for batch in rest:
        more = _amount(batch)
        memories, size = memories + more[0], size + more[1]
        tell()
        yield batch


def _amount(batch: Batch) -> tuple[int, int]:
    """How many memories a batch has, and how many bytes of text they are made of."""
    import pyarrow.compute as pc

    texts = (pc.binary_length(processed.documents["text"]) for processed in batch.groups)
    size = sum(pc.sum(lengths).as_py() or 0 for lengths in texts)
    return sum(processed.memories.num_rows for processed in batch.groups), size


T = TypeVar("T")

_QUEUE_SECONDS = 0.1
_MEANWHILE_SECONDS = 0.5
_FAREWELL_SECONDS = 1.0
"""A thread that goes on for longer writes nothing; it ends with the text that it is at."""


class _End:
    """What the worker puts last: nothing more comes, and why if it was an error."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def prefetch(
    items: Generator[T, None, None], depth: int, meanwhile: Callable[[], None]
) -> Generator[T, None, None]:
    """Give what ``items`` gives, worked out by a thread up to ``depth`` items in advance.

    While the caller waits for an item, ``meanwhile`` is called now and then, in its thread.
    An error in ``items`` is raised here.  Closing this generator stops the thread, which closes
    ``items``, and waits for that, though not until a long text that is being read has been.
    """
    queue: Queue[T | _End] = Queue(maxsize=depth)
    stop = threading.Event()
    thread = threading.Thread(target=_fill_queue, args=(items, queue, stop), daemon=True)
    thread.start()
    try:
        yield from _receive(queue, meanwhile)
    finally:
        stop.set()
        thread.join(_FAREWELL_SECONDS)


def _receive(queue: Queue[T | _End], meanwhile: Callable[[], None]) -> Iterator[T]:
    while True:
        try:
            item = queue.get(timeout=_MEANWHILE_SECONDS)
        except Empty:
            meanwhile()
            continue
        if isinstance(item, _End):
            if item.error is not None:
                raise item.error
            return
        yield item


def _fill_queue(
    items: Generator[T, None, None], queue: Queue[T | _End], stop: threading.Event
) -> None:
    end = _End()
    try:
        for item in items:
            if not _put(queue, item, stop):
                return
    except BaseException as error:  # noqa: BLE001 - a thread ends here; its error goes on
        end = _End(error)
    finally:
        items.close()
    _put(queue, end, stop)


def _put(queue: Queue[T | _End], item: T | _End, stop: threading.Event) -> bool:
    """Put an item as soon as there is room; False if it is no longer wanted."""
    while not stop.is_set():
        try:
            queue.put(item, timeout=_QUEUE_SECONDS)
        except Full:
            continue
        return True
    return False


PASSAGES_LOOKED_AT = 2
"""Only this many passages of a document are compared: each costs a search."""
ROWS_LOOKED_AT = 500_000
"""No more vectors than that are compared in all, which takes half a second."""


class NoveltyScorer:
    """Weighs documents by how unlike they are to what is known in a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __call__(
        self, made: Sequence[PreparedDocument], vectors: NDArray[np.float32]
    ) -> Sequence[PreparedDocument]:
        """Return the documents with ``novelty`` among the signals of their importance."""
        snapshot = self._store.snapshot()
        known = snapshot.count("memories")
        if not known or len(made) * PASSAGES_LOOKED_AT * known > ROWS_LOOKED_AT:
            return made
        weighed: list[PreparedDocument] = []
        at = 0
        for item in made:
            own = vectors[at : at + min(len(item.memories), PASSAGES_LOOKED_AT)]
            at += len(item.memories)
            weighed.append(_with_novelty_score(item, 1 - _similarity_to_known(snapshot, own)))
        return weighed


def _similarity_to_known(snapshot: Snapshot, vectors: NDArray[np.float32]) -> float:
    """The mean cosine of vectors with the nearest known memory, from 0 to 1."""
    found = [snapshot.nearest(vector, limit=1, columns=["id"])["_distance"] for vector in vectors]
    cosines = [1 - column[0].as_py() for column in found if len(column)]
    mean = sum(cosines) / len(cosines) if cosines else 0.0
    return min(max(mean, 0.0), 1.0)


def _with_novelty_score(item: PreparedDocument, novelty: float) -> PreparedDocument:
    importance, signals = with_novelty(item.document.signals, novelty)
    document = replace(item.document, importance=importance, signals=signals)
    memories = tuple(
        replace(memory, importance=importance) if memory.level == "evidence" else memory
        for memory in item.memories
    )
    return replace(item, document=document, memories=memories)
