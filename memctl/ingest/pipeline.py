"""The way from sources to memories: prepare ahead, write behind.

A thread judges sources and has them worked on, in bulk by worker processes; the caller's thread
commits what is finished.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from memctl.errors import LockedError, MemctlError
from memctl.ingest.ahead import ahead
from memctl.ingest.batch import PIPELINE_VERSION, Batch
from memctl.ingest.comparing import Comparer
from memctl.ingest.crew import Crew
from memctl.ingest.known import Known
from memctl.ingest.novelty import Novelty
from memctl.ingest.perceive import Perceiver
from memctl.ingest.prepare import Limits, Preparer
from memctl.ingest.redact import redacted_outcome
from memctl.ingest.replay import Lost, wanted_back
from memctl.ingest.reprocess import wanted_again
from memctl.ingest.sources import SourceOrFailure
from memctl.ingest.tally import Tally
from memctl.ingest.work import Private, workshop
from memctl.ingest.write import Settled, rename_document, retire_documents, write
from memctl.models import BUILTIN_EMBEDDERS
from memctl.models.protocols import Embedder
from memctl.pinned import KnowledgeBaseSettings
from memctl.readers import Readers
from memctl.records import TAKEN, Compared, FileOutcome, IngestReport, Progress, ProgressListener
from memctl.redaction import without_secrets
from memctl.store.names import UPKEEP
from memctl.understand.protocol import Understander

if TYPE_CHECKING:
    from memctl.store.store import Store

Clock = Callable[[], datetime]

_log = logging.getLogger(__name__)

DEPTH = 2
"""Batches that may wait between two stages."""
MANY_MEMORIES = 1_000
"""From so many new memories on, the upkeep after them is a job worth noting in the ledger."""
MANY_SOURCES = 10_000
"""For so many sources workers are started at once."""


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
        perceiver: Perceiver | None = None,
        limits: Limits | None = None,
        comparer: Comparer | None = None,
        readers: Readers | None = None,
        private: Private | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._embedder = embedder
        self._understander = understander
        self._perceiver = perceiver
        self._comparer = comparer
        self._clock = clock
        self._limits = limits or Limits()
        self._readers = readers or Readers()
        self._private = private

    def ingest(
        self,
        sources: Iterable[SourceOrFailure],
        progress: ProgressListener | None = None,
        *,
        total: int | None = None,
        settled: Settled | None = None,
    ) -> IngestReport:
        """Take sources in; one that fails never stops the others.

        Args:
            sources: What to take in; read in a thread of its own, lazily.
            progress: Told at once that it begins, and now and then how many sources have been
                read; after each commit how many are dealt with, and after each part of a source
                too big for memory how many memories it has given.
            total: How many sources there are, where that is known.
            settled: Called within each commit with what it makes of its sources, for what must
                be noted in the ledger in the same step.

        Raises:
            IngestStopped: The store failed, or a model could not be had, after something had
                been committed.
            MemctlError, OSError: It failed before anything was.
        """
        return self._run(lambda preparer: preparer.batches(sources), progress, total, settled)

    def reprocess(
        self,
        document_ids: Sequence[str] = (),
        *,
        incomplete: bool = False,
        upgrade: bool = False,
        progress: ProgressListener | None = None,
    ) -> IngestReport:
        """Read documents again from where their files are now, and make their rows anew.

        Ids stay, and memories that somebody edited stay as they are.

        Args:
            document_ids: Which documents.
            incomplete: Whether to take all documents too of which something is missing.
            upgrade: Whether to take all documents too that were understood by another method.
            progress: Told after each commit how many are dealt with.

        Raises:
            NotFoundError: There is no document of one of the ids.
            IngestStopped: As :meth:`ingest`.
        """
        again = wanted_again(
            self._store,
            document_ids,
            incomplete=incomplete,
            method=self._method if upgrade else None,
        )
        return self._run(lambda preparer: preparer.judged(again), progress, None)

    def bring_back(
        self, lost: Sequence[Lost], progress: ProgressListener | None = None
    ) -> IngestReport:
        """Make the rows of documents anew that damage has taken, under the ids that they had.

        Args:
            lost: Which, each with where its file is.
            progress: Told after each commit how many are dealt with.

        Raises:
            IngestStopped: As :meth:`ingest`.
        """
        again = wanted_back(self._store, lost)
        return self._run(lambda preparer: preparer.judged(again), progress, len(lost))

    def compare(self) -> Compared:
        """Compare what still waits to be compared with what is known; see ``Comparer``."""
        return self._comparer.run() if self._comparer is not None else Compared()

    def rename(self, document_id: str, source: str) -> None:
        """Note that the same content is found under another name now."""
        name = without_secrets(source) if self._settings.redact else source
        with self._store.write() as transaction:
            rename_document(transaction, document_id, name)

    def retire(self, document_ids: Sequence[str]) -> None:
        """Mark live documents as gone, as their files are; what was known becomes history."""
        with self._store.write() as transaction:
            retire_documents(transaction, document_ids, self._clock())

    # --- inside ---

    def _method(self, namespace: str) -> str:
        """How documents of a namespace are understood."""
        private = self._private
        if private is not None and namespace in private.namespaces:
            return private.understander.method
        return self._understander.method

    def _crew(self, total: int | None) -> Crew:
        from memctl.understand import BuiltinUnderstander

        made = workshop(
            self._settings,
            self._embedder,
            self._understander,
            self._perceiver,
            self._readers,
            self._private,
        )
        builtin = isinstance(self._understander, BuiltinUnderstander)
        hires = builtin and self._perceiver is None and self._embedder.id in BUILTIN_EMBEDDERS
        settings = self._settings if hires else None
        is_bulk = total is not None and total >= MANY_SOURCES
        hire_after = 0.0 if is_bulk else self._limits.hire_after
        # What a model says of importance, it says of the whole; nothing is added to that.
        weigh = Novelty(self._store) if builtin else None
        return Crew(made, settings, hire_after, weigh)

    def _run(
        self,
        batches: Callable[[Preparer], Generator[Batch, None, None]],
        progress: ProgressListener | None,
        total: int | None,
        settled: Settled | None = None,
    ) -> IngestReport:
        tally = Tally()
        try:
            self._commit(batches, tally, progress, total, settled)
            tally.facts = self._compare(tally, progress, total)
            self._tidy(tally)
        except (MemctlError, OSError) as error:
            if not tally.ingested:
                raise
            raise IngestStopped(error, tally.report()) from error
        return tally.report()

    def _commit(
        self,
        batches: Callable[[Preparer], Generator[Batch, None, None]],
        tally: Tally,
        progress: ProgressListener | None,
        total: int | None,
        settled: Settled | None,
    ) -> None:
        def noted(outcomes: Sequence[FileOutcome]) -> None:
            """Put the receipts of what is taken in into its commit, with what else is to be."""
            self._note(item for item in outcomes if item.outcome in TAKEN)
            if settled is not None:
                settled(self._told_of(outcomes))

        known, crew = Known(self._store), self._crew(total)
        preparer = Preparer(known, crew, self._clock, self._limits)

        def tell() -> None:
            """Say how far the reading is, which is ahead of what is committed."""
            if progress is not None:
                note = f"{preparer.read:,} read" if preparer.read else "reading"
                progress(Progress(tally.done, total, "documents", note))

        tell()
        prepared = ahead(batches(preparer), DEPTH, tell)
        # Closed from last to first: the thread may be waiting for a worker or for a commit.
        with closing(prepared), closing(known), closing(crew):
            for batch in prepared:
                parts = _told(batch, prepared, progress, Progress(tally.done, total, "documents"))
                outcomes = self._told_of(write(self._store, batch, parts, known, noted))
                self._note(item for item in outcomes if item.outcome not in TAKEN)
                tally.add(outcomes)
                known.committed(wanted for worked in batch.worked for wanted in worked.wanted)
                if progress is not None:
                    progress(Progress(tally.done, total, "documents"))

    def _told_of(self, outcomes: Sequence[FileOutcome]) -> Sequence[FileOutcome]:
        """Return outcomes as they may be told: a reason may quote the place that cannot be read."""
        return list(map(redacted_outcome, outcomes)) if self._settings.redact else outcomes

    def _note(self, outcomes: Iterable[FileOutcome]) -> None:
        self._store.ledger.receipts.add(outcomes, self._clock(), PIPELINE_VERSION)

    def _compare(
        self, tally: Tally, progress: ProgressListener | None, total: int | None
    ) -> Compared:
        """Compare new facts, and those that have waited, with what is known."""
        if self._comparer is None:
            return Compared()
        told = Progress(tally.done, total, "documents", "comparing facts")
        return self._comparer.run(lambda: progress(told) if progress is not None else None)

    def _tidy(self, tally: Tally) -> None:
        """Index what is new, where there is enough of it; whoever writes next can do it too."""
        if not tally.ingested:
            return
        began = self._clock()
        try:
            self._store.upkeep(wait=0)
        except LockedError as error:
            _log.info("no upkeep now: %s", error.message)
            return
        if tally.memories >= MANY_MEMORIES:
            jobs = self._store.ledger.jobs
            jobs.finish(jobs.start(UPKEEP, began), "done", self._clock())


def _told(
    first: Batch,
    rest: Iterator[Batch],
    listener: ProgressListener | None,
    so_far: Progress,
) -> Iterator[Batch]:
    """The batches that continue one, each told of: a source in many parts takes its time."""
    source = first.worked[0].wanted[0].item.source.source
    memories, size = _amount(first)
    for batch in rest:
        if listener is not None:
            note = f"{memories:,} memories so far, {size / 1e6:,.0f} MB of text"
            listener(replace(so_far, note=note, source=source))
        more = _amount(batch)
        memories, size = memories + more[0], size + more[1]
        yield batch


def _amount(batch: Batch) -> tuple[int, int]:
    """How many memories a batch has, and how many bytes of text they are made of."""
    import pyarrow.compute as pc

    texts = (pc.binary_length(worked.documents["text"]) for worked in batch.worked)
    size = sum(pc.sum(lengths).as_py() or 0 for lengths in texts)
    return sum(worked.memories.num_rows for worked in batch.worked), size
