"""What a knowledge base offers for its upkeep: insights, vectors, snapshots, forgetting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from memctl.errors import NotFoundError, UsageError
from memctl.kb_settings import (
    merge_imported_settings,
    pin_embedder,
    portable_settings,
    save_settings,
)
from memctl.knowledge_base.resources import Resources
from memctl.records import ConsolidationReport, Filters, ProgressListener, ReembedReport, UndoReport

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.forget import ForgetReport, Selection
    from memctl.models.protocols import Embedder
    from memctl.schema.table_names import TableName
    from memctl.store.ledger.version_repositories import SnapshotEntry
    from memctl.store.snapshots import LeftOut, NamedSnapshot, Restored, Snapshots
    from memctl.store.sql import NamespaceScope
    from memctl.store.tables.snapshot import Snapshot
    from memctl.store.tables.transaction import Transaction
    from memctl.store.transfer.export_formats import ExportFormat


class Maintenance(Resources):
    """Draws insights, makes vectors anew, takes snapshots, and forgets for good."""

    def consolidate(
        self, *, dry_run: bool = False, progress: ProgressListener | None = None
    ) -> ConsolidationReport:
        """Draw insights from memories that belong together; nothing is deleted.

        The ledger notes when it was done, unless it is a dry run, which asks no model either.

        Raises:
            ConfigError: The model that is configured cannot be used as it is.
            KnowledgeBaseUnavailable: It is archived.
            LockedError: Another process is writing and does not stop.
        """
        from memctl.schema.table_names import CONSOLIDATION
        from memctl.store.ledger.ledger import job_context

        batch_size = self.config.consolidate.batch_size

        def run(job: int | None = None) -> ConsolidationReport:
            """Do it, with the models that are wanted loaded only now."""
            consolidator = self._stages.consolidator(asks_model=not dry_run)
            return consolidator.run(
                dry_run=dry_run, batch_size=batch_size, progress=progress, job=job
            )

        if dry_run:
            return run()
        self._begin_change()
        if self.config.models.understand and self.store.ledger.comparisons.count():
            self.ingestor.compare()  # what has ended is not consolidated any more
        with job_context(self.store.ledger, CONSOLIDATION, self.clock) as job:
            report = run(job.id)
            job.detail = {
                "examined": report.examined,
                "insights": len(report.insights),
                "waiting": report.waiting,
            }
        return report

    def undo_job(
        self, number: int | None = None, *, again: bool = False, dry_run: bool = False
    ) -> UndoReport:
        """Take back what a job has changed by itself, and nothing that came after it.

        Arguments and errors are those of ``Jobs.undo``.
        """
        if not dry_run:
            self._begin_change()
        return self._jobs.undo(number, again=again, dry_run=dry_run)

    def reembed(
        self, embedder: str, *, progress: ProgressListener | None = None
    ) -> ReembedReport | None:
        """Give every memory a vector of another embedder; the old ones stay on a shelf.

        Questions are answered by the old ones meanwhile.  Interrupted, it goes on where it was.

        Args:
            embedder: ``builtin``, ``endpoint/MODEL`` or ``onnx/FOLDER``.
            progress: Told how far it is.

        Returns:
            What was done; None where the vectors are from that embedder already.

        Raises:
            UsageError: There is no such embedder.
            LockedError: Another process does the same.
            ModelError: The endpoint cannot or will not do it; what was done is kept.
        """
        from memctl.models.embedders import resolve_embedder

        if embedder.startswith("endpoint"):
            self._refuse_distant("embed")
        wanted = resolve_embedder(self._stages.for_private.config, embedder)
        return self._reembed(wanted.id, wanted.dimension, progress)

    def reembed_back(self, *, progress: ProgressListener | None = None) -> ReembedReport | None:
        """Give every memory the vector back that it had before; only newer ones are embedded.

        Raises:
            NotFoundError: There are no former vectors, or they are not kept any more.
        """
        from memctl.memories.reembedding import require_shelf

        former = self.store.former()
        if former is None:
            raise NotFoundError(f"{self.name!r} has had no other embedder", "there is no way back")
        require_shelf(self.store, *former)
        return self._reembed(*former, progress)

    def drop_former_vectors(self) -> int:
        """Remove the vectors that are kept of other embedders; return how many bytes they had.

        Raises:
            LockedError: Somebody is making new ones.
        """
        from memctl.store.file_caches import drop_vector_caches, lock_vector_caches

        self._begin_change()
        with lock_vector_caches(self.layout.folder):
            return drop_vector_caches(self.layout.folder)

    def _reembed(
        self, wanted: str, dimension: int, progress: ProgressListener | None
    ) -> ReembedReport | None:
        from memctl.memories.reembedding import EmbedderTarget, reembed

        self._begin_change()
        current = self.store.embedder or self.settings.embedder
        report = None
        if (current, self.store.dimension) != (wanted, dimension):
            providers, kb = self._stages.for_private.providers, self.name
            target = EmbedderTarget(
                wanted, dimension, lambda: providers.embedder(wanted, dimension, kb)
            )
            report = reembed(self.store, current, target, progress)
        self.settings = pin_embedder(self.layout.settings, wanted, dimension)
        return report

    def create_snapshot(self, name: str) -> NamedSnapshot:
        """Give what it holds now a name, to go back to it; copies nothing and waits for nobody.

        Raises:
            UsageError: The name cannot be used, or is taken.
        """
        self._begin_change()
        return self._snapshots.create(name)

    def snapshots(self) -> list[NamedSnapshot]:
        """Return every snapshot, the oldest first."""
        return self._snapshots.all()

    def snapshot(self, name: str) -> NamedSnapshot:
        """Return one snapshot.

        Raises:
            NotFoundError: There is none of that name.
        """
        return self._snapshots.get(name)

    def restore_snapshot(self, name: str) -> Restored:
        """Make everything what it was at a snapshot; what is there now becomes one first.

        What was forgotten since stays so.

        Raises:
            NotFoundError: There is none of that name.
            DamagedError: Files of it are missing; nothing has been changed.
            LockedError: Another process is writing and does not stop.
            ModelError: Words of a document were forgotten, and what the snapshot's vectors are from
                cannot be asked for those of the rest; nothing has been changed.
        """
        self._begin_change()
        restored = self._snapshots.restore(name, self._leave_out)
        if self.store.embedder is not None:
            self.settings = pin_embedder(
                self.layout.settings, self.store.embedder, self.store.dimension
            )
        return restored

    def _leave_out(
        self, transaction: Transaction, now: Snapshot, snapshot: SnapshotEntry
    ) -> LeftOut:
        from memctl.forget.restored_snapshot import erase_forgotten
        from memctl.store.store import DIMENSION, EMBEDDER

        embedder = snapshot.pinned.get(EMBEDDER, "")
        is_same = embedder == (self.store.embedder or "")

        def made() -> Embedder:
            """Return what the snapshot's vectors are from."""
            dimension = int(snapshot.pinned[DIMENSION])
            return self._stages.for_private.providers.embedder(embedder, dimension, self.name)

        forgotten = self.store.ledger.forgotten
        return erase_forgotten(transaction, now, forgotten, None if is_same else made)

    def delete_snapshot(self, name: str) -> int:
        """Forget a snapshot; return how many bytes that freed at once, the rest upkeep frees.

        Raises:
            NotFoundError: There is none of that name.
        """
        self._begin_change()
        return self._snapshots.delete(name)

    @property
    def _snapshots(self) -> Snapshots:
        from memctl.store.snapshots import Snapshots

        return Snapshots(self.store, self.clock)

    def forget(
        self, selection: Selection | None = None, *, snapshots: bool = False, dry_run: bool = False
    ) -> ForgetReport:
        """Remove something for good: rows, vectors, index entries, files, history and logs of it.

        Then every byte that is left is searched for it, and what is found is told.

        Args:
            selection: What; None to complete only what was interrupted.
            snapshots: Delete all snapshots too, for each may hold it.
            dry_run: Say what would go, and change nothing.

        Raises:
            NotFoundError: There is nothing of the kind.
            UsageError: Nothing is selected, and nothing is to be completed.
            LockedError: Another process is writing and does not stop.
        """
        self._require_writable()
        self.query_log.flush()
        self._latest.drop()
        forgetter = self._forgetter
        if dry_run and selection is not None:
            return forgetter.preview(selection)
        is_of_snapshots = snapshots and bool(self.snapshots())
        if selection is None and not forgetter.pending() and not is_of_snapshots:
            raise UsageError("forget what?", "say --document ID, --memory ID, --entity NAME, ...")
        return forgetter.run(selection, snapshots=snapshots)


class Transfer(Resources):
    """Writes what is there to a file, and brings it back."""

    def export(self, table: TableName) -> pa.RecordBatchReader:
        """Return a table as a stream of Arrow batches, vectors included as float32.

        What is of private namespaces is left out.
        """
        from memctl.store.transfer.exports import export_batches

        snapshot = self.store.snapshot()
        return export_batches(snapshot, table, self._scope(()).of(snapshot, table))

    def export_to(
        self,
        sink: Path | BinaryIO,
        table: TableName | Literal["all"] = "all",
        *,
        format_: ExportFormat | None = None,
        namespaces: Sequence[str] = (),
        progress: ProgressListener | None = None,
    ) -> int:
        """Write a table, or an archive of all of them, and return how many rows it has.

        Args:
            sink: A path, written in one step, or a binary file, which need not be seekable.
            table: A table, or ``all`` for what ``import_from`` brings back.
            format_: Of a table; by default what the path's ending says, else JSON lines.
            namespaces: Of a table, only what is of these; by default of all but private ones.
            progress: Told how far it is.
        """
        from memctl.store.transfer.exports import export_all, export_table

        snapshot = self.store.snapshot()
        if table != "all":
            where = self._scope(namespaces).of(snapshot, table)
            return export_table(snapshot, table, sink, format_, where, progress=progress)
        self.query_log.flush()
        return export_all(
            snapshot,
            sink,
            embedder=self.settings.embedder,
            now=self.clock(),
            ledger=self.store.ledger,
            settings=portable_settings(self.settings),
            progress=progress,
        )

    def _scope(self, namespaces: Sequence[str]) -> NamespaceScope:
        from memctl.store.sql import NamespaceScope

        return NamespaceScope(self.without_private(Filters(namespaces=tuple(namespaces))))

    def import_from(
        self, source: Path | BinaryIO, *, progress: ProgressListener | None = None
    ) -> int:
        """Bring an export of all tables back, all or nothing, and return how many rows it has.

        What was private where it comes from is so here, and its secrets are redacted as there;
        its other settings hold where none were made here.

        Raises:
            UsageError: It is no export, is of another model, or this is not empty.
            ConfigError: It has a setting that cannot be used.
            DamagedError: The export ends too early or cannot be read.
        """
        from memctl.store.transfer.exports import import_all

        self._begin_change()
        rows = import_all(
            self.store,
            source,
            embedder=self.settings.embedder,
            now=self.clock(),
            told=lambda manifest: self._settle(manifest.settings),
            progress=progress,
        )
        if self.settings.has_private:
            self.store.ledger.queries.forget_texts()
        return rows

    def _settle(self, imported: Mapping[str, Any]) -> None:
        """Take over the settings of an export, whoever made it."""
        settled = merge_imported_settings(self.settings, imported)
        if settled != self.settings:
            save_settings(self.layout.settings, settled)
            self.settings = settled
