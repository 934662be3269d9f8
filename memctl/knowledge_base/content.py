"""What a knowledge base offers to look at what is there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from memctl.errors import UsageError
from memctl.knowledge_base.resources import Resources
from memctl.records import Filters, IngestReport, JobView, Memory, ProgressListener, SkipListener

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.graph.graph_views import GraphView
    from memctl.graph.name_index import Node
    from memctl.graph.name_resolution import Decisions
    from memctl.ingest.ingest_pipeline import Ingestor
    from memctl.knowledge_base.kb_statistics import KnowledgeBaseStatistics, QueryStatistics
    from memctl.memories.memory_editing import Edit, Editor, Statement
    from memctl.memories.memory_views import DocumentView, MemoryView
    from memctl.provenance.file_provenance import FileProvenance

_NO_FILTERS = Filters()


class ContentViews(Resources):
    """Shows what is there and how it came to be; changes nothing."""

    def memories(
        self, filters: Filters = _NO_FILTERS, *, limit: int | None = None, offset: int | None = None
    ) -> pa.Table:
        """Return memories without their vectors, the newest first."""
        from memctl.memories.memory_views import list_memories

        found = self.without_private(filters)
        return list_memories(self.store.snapshot(), found, self.clock(), limit, offset)

    def memory(self, id_: str) -> MemoryView:
        """Return a memory with its evidence, versions, insights and connections.

        Raises:
            NotFoundError: There is none of that id.
        """
        from memctl.memories.memory_views import view_memory

        return view_memory(self.store.snapshot(), id_)

    def documents(
        self,
        filters: Filters = _NO_FILTERS,
        *,
        incomplete: bool = False,
        limit: int | None = None,
        offset: int | None = None,
    ) -> pa.Table:
        """Return documents without their texts, those taken in last first."""
        from memctl.memories.memory_views import list_documents

        found = self.without_private(filters)
        return list_documents(
            self.store.snapshot(), found, incomplete=incomplete, limit=limit, offset=offset
        )

    def document(self, id_: str) -> DocumentView:
        """Return a document with its text and the memories made from it.

        Raises:
            NotFoundError: There is none of that id.
        """
        from memctl.memories.memory_views import view_document

        return view_document(self.store.snapshot(), id_)

    def graph(self, filters: Filters = _NO_FILTERS) -> GraphView:
        """Return who and what is named in memories that hold now, and how it hangs together."""
        from memctl.graph.graph_views import GraphView
        from memctl.store.tables.filter_expressions import memory_filter

        where = memory_filter(self.without_private(filters), self.clock())
        return GraphView(self.name, self.store.snapshot(), where, self.name_decisions())

    def name_decisions(self) -> Decisions:
        """Return what was decided by hand on which names mean the same."""
        from memctl.graph.graph_views import decisions_of

        return decisions_of(self.store.ledger.names)

    def statistics(self) -> KnowledgeBaseStatistics:
        """Return counts, sizes and rates."""
        from memctl.knowledge_base.kb_statistics import kb_statistics

        return kb_statistics(self.name, self.store, self.clock())

    def jobs(self, *, limit: int | None = None) -> list[JobView]:
        """Return what was done by the way or took a while, the newest first."""
        return self._jobs.recent(limit)

    def receipts(self, file: str) -> list[FileProvenance]:
        """Return what became of a file each time that it was taken in, the newest first.

        Args:
            file: Its path, where it was given or is now, or the last parts of that.
        """
        from memctl.provenance.provenance_lookup import file_provenance

        return file_provenance(self.layout, self.settings, self.store, file, self.clock())

    def names_like(self, file: str) -> list[str]:
        """Return a few names of files that are like one of which nothing is known."""
        from memctl.provenance.provenance_lookup import similar_file_names

        return similar_file_names(self.layout, self.settings, self.store, file)

    def query_statistics(self) -> QueryStatistics:
        """Return what the query log says: how many questions, how fast, how well answered."""
        from memctl.knowledge_base.kb_statistics import query_statistics

        self.query_log.flush()
        return query_statistics(self.name, self.store.ledger)

    def usage(self) -> pa.Table:
        """Return what models used, by day (UTC), task and model, the latest day first."""
        from memctl.store.sql import ledger_tables

        book = "model_usage"
        table = ledger_tables(self.store.ledger, [book])[book]
        return table.sort_by([("day", "descending"), ("task", "ascending"), ("model", "ascending")])


class ContentEditing(ContentViews):
    """Changes single memories, and which names mean the same."""

    def add_memory(self, statement: Statement | str) -> Memory:
        """Remember one statement; the same one said twice is there once."""
        from memctl.memories.memory_editing import Statement

        given = Statement(statement) if isinstance(statement, str) else statement
        return self._editor.add(given)

    def edit_memory(self, id_: str, edit: Edit | str) -> Memory:
        """Write a new version of a memory, or of its text; the old one stays in its history.

        Raises:
            NotFoundError: There is none of that id.
            UsageError: It is evidence, or it has a newer version already.
        """
        from memctl.memories.memory_editing import Edit

        return self._editor.edit(id_, Edit(text=edit) if isinstance(edit, str) else edit)

    def delete_memory(self, id_: str) -> int:
        """Forget a memory, its versions and what rests on it; return how many memories are gone."""
        return self._editor.delete_memory(id_)

    def delete_document(self, id_: str) -> int:
        """Forget a document and its memories; return how many memories are gone."""
        return self._editor.delete_document(id_)

    @property
    def _editor(self) -> Editor:
        self._begin_change()
        return self._stages.editor()

    def merge_names(self, one: str, other: str) -> Node:
        """Say that two names mean the same, and return what they are together.

        Raises:
            NotFoundError: Nothing is called that.
            UsageError: They are one already.
        """
        from memctl.graph.graph_views import merge_names

        self._begin_change()
        return merge_names(self.graph(), self.store.ledger.names, self.clock(), one, other)

    def unmerge_names(self, one: str, other: str) -> tuple[Node, Node]:
        """Say that two names do not mean the same, and return what each is.

        Raises:
            NotFoundError: Nothing is called that.
            UsageError: They are two already, or cannot be told apart.
        """
        from memctl.graph.graph_views import unmerge_names

        self._begin_change()
        return unmerge_names(self.graph(), self.store.ledger.names, self.clock(), one, other)


class DocumentIngestion(Resources):
    """Takes sources in, and reads them again."""

    def ingest(
        self,
        paths: Path | str | Iterable[Path | str] = (),
        *,
        text: str | None = None,
        stream: BinaryIO | None = None,
        jsonl: Path | str | BinaryIO | None = None,
        namespace: str = "default",
        tags: Iterable[str] = (),
        source: str | None = None,
        session: str | None = None,
        dry_run: bool = False,
        progress: ProgressListener | None = None,
        left_out: SkipListener | None = None,
    ) -> IngestReport:
        """Remember files, folders, a text, a stream or JSON lines.

        What is already known is recognised by its content.  One input that fails never stops the
        others: the report says what became of each.

        Args:
            paths: Files and folders.
            text: One text.
            stream: Bytes of one document, of any kind that can be read.
            jsonl: One document a line, in a file or a stream: ``text``, and optionally ``id``,
                ``namespace``, ``title``, ``created_at``, ``session_id``, ``turn``, ``tags``,
                ``metadata``, ``source``.
            namespace: The partition that they go into.
            tags: Tags that they all get.
            source: Where they are from, instead of the path.
            session: The conversation that they are of.
            dry_run: Write nothing and ask no model; say what would become of them, and estimate
                what models would be asked.
            progress: Told how far it is.
            left_out: Told of everything in a folder that is not taken in, and why.

        Raises:
            KnowledgeBaseUnavailable: It is archived.
            LockedError: Another process is writing and does not stop.
        """
        from memctl.ingest.discovery.ingest_inputs import Inputs, open_inputs
        from memctl.ingest.discovery.sources import Labels
        from memctl.ingest.ingest_preview import preview

        labels = Labels(namespace, tuple(tags), session, source or "", self.settings.redact)
        paths = [paths] if isinstance(paths, (str, Path)) else paths
        given = Inputs(tuple(Path(path) for path in paths), text, stream, jsonl)
        with open_inputs(given, labels, self.layout.folder, left_out) as (sources, total):
            if dry_run:
                estimators, readers = self._stages.estimators(), self._stages.readers
                return preview(self.store, sources, estimators, readers, progress, total=total)
            return self._ingestor.ingest(sources, progress, total=total)

    def reprocess(
        self,
        ids: Sequence[str] = (),
        *,
        incomplete: bool = False,
        upgrade: bool = False,
        progress: ProgressListener | None = None,
    ) -> IngestReport:
        """Read sources again from where they are.

        Args:
            ids: Documents, by id.
            incomplete: All of which something is missing that another reading may find.
            upgrade: All that were not understood by the model that is configured now.
            progress: Told how far it is.

        Raises:
            NotFoundError: There is no such document.
            UsageError: They are to be upgraded, and no model is configured.
        """
        from memctl.memories.memory_views import resolve

        if upgrade and not self.config.models.understand:
            if self._program.models.understand:
                self._refuse_distant("understand")
            raise UsageError(
                "no model is configured that understands documents",
                "set understand of [models] in the config file",
            )
        snapshot = self.store.snapshot()
        wanted = [resolve(snapshot, "documents", id_) for id_ in ids]
        self._begin_change()
        # What a model has made before must not become the built-in's because it is away now.
        ingestor = self._stages.ingestor_that("wait")
        return ingestor.reprocess(wanted, incomplete=incomplete, upgrade=upgrade, progress=progress)

    @property
    def _ingestor(self) -> Ingestor:
        self._begin_change()
        return self.ingestor
