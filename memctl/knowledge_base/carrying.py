"""What a knowledge base offers to carry what it holds out and back in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from memctl.knowledge_base.opened import Opened
from memctl.pinned import portable, save_settings, with_imported
from memctl.records import Filters, ProgressListener

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.store.formats import ExportFormat
    from memctl.store.names import TableName
    from memctl.store.scope import Scope


class Carrying(Opened):
    """Writes what is there to a file, and brings it back."""

    def export(self, table: TableName) -> pa.RecordBatchReader:
        """Return a table as a stream of Arrow batches, vectors included as float32.

        What is of private namespaces is left out.
        """
        from memctl.store.transfer import export_batches

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
        from memctl.store.transfer import export_all, export_table

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
            settings=portable(self.settings),
            progress=progress,
        )

    def _scope(self, namespaces: Sequence[str]) -> Scope:
        from memctl.store.scope import Scope

        return Scope(self.without_private(Filters(namespaces=tuple(namespaces))))

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
        from memctl.store.transfer import import_all

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
        settled = with_imported(self.settings, imported)
        if settled != self.settings:
            save_settings(self.layout.settings, settled)
            self.settings = settled
