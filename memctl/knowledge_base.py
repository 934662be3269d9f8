"""``KnowledgeBase``: the one object that every surface talks to, and the composition root.

It wires the stages of ingest, retrieval, consolidation and export together and does no work
itself.  ``KnowledgeBases`` asks several at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Self, Unpack

from memctl.config import Config
from memctl.errors import KnowledgeBaseUnavailable, NotFoundError, UsageError
from memctl.knowledge_bases import AskOptions, KnowledgeBases
from memctl.pinned import (
    KnowledgeBaseSettings,
    Layout,
    load_settings,
    pin_embedder,
    portable,
    save_settings,
    with_imported,
)
from memctl.query_log import QueryLog
from memctl.records import (
    ConsolidationReport,
    Context,
    Filters,
    IngestReport,
    LeftOutListener,
    Memory,
    ProgressListener,
    QueryResult,
    Question,
    ReembedReport,
)
from memctl.retrieve.latest import LatestCorpus
from memctl.stages import Stages
from memctl.store.names import FORGET

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.choices import Mode, Task, Verdict
    from memctl.forget import ForgetReport, Forgetter, Selection
    from memctl.graph.index import Node
    from memctl.graph.resolution import Decisions
    from memctl.graph.views import GraphView
    from memctl.ingest.pipeline import Ingestor
    from memctl.memories.editing import Edit, Editor, Statement
    from memctl.memories.viewing import DocumentView, MemoryView
    from memctl.models.protocols import Embedder
    from memctl.models.providers import Providers
    from memctl.query_statistics import QueryStatistics
    from memctl.receipts.receipt import Receipt
    from memctl.statistics import Statistics
    from memctl.store.formats import ExportFormat
    from memctl.store.names import TableName
    from memctl.store.scope import Scope
    from memctl.store.snapshots import NamedSnapshot, Restored, Snapshots
    from memctl.store.store import Store

Clock = Callable[[], datetime]
_log = logging.getLogger(__name__)
SETTINGS = "settings"
"""Under this name the ledger has a copy of kb.toml."""
_NO_FILTERS = Filters()


class KnowledgeBase:
    """A knowledge base that is open; close it, or use it in a ``with`` statement.

    Args:
        layout: Where it stands on disk.
        settings: What is pinned for it.
        store: Its tables and ledger.
        config: Settings of the whole program.
        clock: What tells the time.
    """

    def __init__(
        self,
        layout: Layout,
        settings: KnowledgeBaseSettings,
        store: Store,
        config: Config,
        clock: Clock,
    ) -> None:
        self.layout = layout
        self.store = store
        self._program = config
        self.clock = clock
        self._stages = self._stages_for(settings)
        self.query_log = QueryLog(store.ledger, config.query_log, layout.name)
        self._latest = LatestCorpus()

    @property
    def settings(self) -> KnowledgeBaseSettings:
        """What is pinned for it; with other settings, its stages are made anew."""
        return self._stages.settings

    @settings.setter
    def settings(self, settings: KnowledgeBaseSettings) -> None:
        self._stages.close()
        self._stages = self._stages_for(settings)

    def _stages_for(self, settings: KnowledgeBaseSettings) -> Stages:
        return Stages.wanted(self.layout, settings, self.store, self._program, self.clock)

    def stages(self, *, private: bool) -> Stages:
        """Return what questions are answered with, where they may be about what is private."""
        return self._stages.of_private if private else self._stages

    def names_private(self, filters: Filters) -> bool:
        """Say whether what the filters leave is, or may be, private."""
        named = set(filters.namespaces)
        return self.settings.private or not named.isdisjoint(self.settings.private_namespaces)

    def _open(self, filters: Filters) -> Filters:
        """Return the filters with what they leave out for being private."""
        return self._alone.without_private(filters)

    @property
    def config(self) -> Config:
        """The program's settings; of a private one, without models that are on other machines."""
        return self._stages.config

    @classmethod
    def create(cls, layout: Layout, settings: KnowledgeBaseSettings, clock: Clock) -> None:
        """Make the tables and the ledger of a new knowledge base in its folder."""
        from memctl.store.store import Store

        Store.create(
            layout.folder, settings.dimension, embedder=settings.embedder, clock=clock
        ).close()

    @classmethod
    def open(cls, layout: Layout, config: Config, clock: Clock) -> KnowledgeBase:
        """Open the knowledge base in a folder.

        Raises:
            KnowledgeBaseUnavailable: A newer version of memctl made it.
            DamagedError: Its ledger cannot be read.
        """
        from memctl.store.store import Store

        settings = load_settings(layout.settings)
        store = Store.open(layout.folder, clock=clock, wait=config.store.wait_seconds)
        return cls(layout, _caught_up(layout, settings, store), store, config, clock)

    @property
    def name(self) -> str:
        """Its name, which is that of its folder."""
        return self.layout.name

    def close(self) -> None:
        """Let go of its files."""
        self._latest.drop()
        self._stages.close()
        self.query_log.flush()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"KnowledgeBase({self.name!r}, {str(self.layout.folder)!r})"

    def note_settings(self) -> None:
        """Keep a copy of kb.toml in the ledger, from which it can be brought back when it is lost.

        Nothing is done where this process may only read.
        """
        text = self.layout.settings.read_text("utf-8")
        ledger = self.store.ledger
        if ledger.is_writable and ledger.meta(SETTINGS) != text:
            ledger.set_meta(SETTINGS, text)

    # --- taking in -------------------------------------------------------------------------------

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
        left_out: LeftOutListener | None = None,
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
        from memctl.ingest.given import Given, opened
        from memctl.ingest.preview import preview
        from memctl.ingest.sources import Labels

        labels = Labels(namespace, tuple(tags), session, source or "", self.settings.redact)
        paths = [paths] if isinstance(paths, (str, Path)) else paths
        given = Given(tuple(Path(path) for path in paths), text, stream, jsonl)
        with opened(given, labels, self.layout.folder, left_out) as (sources, total):
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
        from memctl.memories.viewing import resolve

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

    def _refuse_distant(self, task: Task) -> None:
        """Refuse what a model on another machine would do with what is private.

        Raises:
            UsageError: It would.
        """
        from memctl.models.confined import withheld

        url = withheld(self._program, self._stages.of_private.config, task)
        if url:
            raise UsageError(
                f"{self.name!r} is private, or has what is, and {url} is on another machine",
                f"allow that it is sent there: memctl kb set {self.name} --may-send",
            )

    @property
    def embedder(self) -> Embedder:
        """The model that the vectors of this knowledge base are from.

        Raises:
            ConfigError: It cannot be had as things are configured, or is not the one that the
                vectors are from.
        """
        return self._stages.embedder

    @property
    def providers(self) -> Providers:
        """The models that the settings name; what they reply and cost is kept in the ledger."""
        return self._stages.providers

    @property
    def ingestor(self) -> Ingestor:
        """What takes sources in; the watcher uses it too."""
        return self._stages.ingestor

    @property
    def _ingestor(self) -> Ingestor:
        self._begin_change()
        return self.ingestor

    def _begin_change(self) -> None:
        """Refuse where nothing may be changed; complete what a forget that was cut off has left."""
        self._require_writable()
        if report := self.complete_forgetting():
            _log.warning("%s", report.told)

    def _require_writable(self) -> None:
        if self.settings.status == "archived":
            raise KnowledgeBaseUnavailable(
                f"knowledge base {self.name!r} is archived, so it cannot be written to",
                f"memctl kb resume {self.name}",
            )
        self.store.require_writable()

    # --- asking ----------------------------------------------------------------------------------

    @property
    def _alone(self) -> KnowledgeBases:
        """It, to be asked as several are."""
        return KnowledgeBases([self], latest=self._latest)

    def query(self, question: str, **options: Unpack[AskOptions]) -> QueryResult:
        """Ask one question; see ``KnowledgeBases.query``."""
        return self._alone.query(question, **options)

    def query_many(
        self, questions: Iterable[Question | str], **options: Unpack[AskOptions]
    ) -> Iterator[QueryResult]:
        """Ask many questions; see ``KnowledgeBases.query_many``."""
        return self._alone.query_many(questions, **options)

    def context(
        self,
        question: str,
        *,
        budget: int = 2000,
        mode: Mode | None = None,
        filters: Filters | None = None,
        auto: bool = False,
    ) -> Context:
        """Return evidence on a question within a token budget; see ``KnowledgeBases.context``."""
        return self._alone.context(question, budget=budget, mode=mode, filters=filters, auto=auto)

    def feedback(self, query_id: str, verdict: Verdict) -> str:
        """Note how good what a question gave was; see ``KnowledgeBases.feedback``."""
        return self._alone.feedback(query_id, verdict)

    # --- thinking --------------------------------------------------------------------------------

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
        from memctl.consolidate.job import noted

        batch_size = self.config.consolidate.batch_size

        def run() -> ConsolidationReport:
            """Do it, with the models that are wanted loaded only now."""
            consolidator = self._stages.consolidator(asks_model=not dry_run)
            return consolidator.run(dry_run=dry_run, batch_size=batch_size, progress=progress)

        if dry_run:
            return run()
        self._begin_change()
        if self.config.models.understand and self.store.ledger.comparisons.count():
            self.ingestor.compare()  # what has ended is not consolidated any more
        return noted(self.store.ledger, self.clock, run)

    # --- changing the embedder -------------------------------------------------------------------

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
        from memctl.models.choosing import chosen_embedder

        if embedder.startswith("endpoint"):
            self._refuse_distant("embed")
        wanted = chosen_embedder(self._stages.of_private.config, embedder)
        return self._reembed(wanted.id, wanted.dimension, progress)

    def reembed_back(self, *, progress: ProgressListener | None = None) -> ReembedReport | None:
        """Give every memory the vector back that it had before; only newer ones are embedded.

        Raises:
            NotFoundError: There are no former vectors, or they are not kept any more.
        """
        from memctl.memories.reembed import require_shelf

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
        from memctl.store.shelf import drop_shelves, shelving

        self._begin_change()
        with shelving(self.layout.folder):
            return drop_shelves(self.layout.folder)

    def _reembed(
        self, wanted: str, dimension: int, progress: ProgressListener | None
    ) -> ReembedReport | None:
        from memctl.memories.reembed import Target, reembed

        self._begin_change()
        current = self.store.embedder or self.settings.embedder
        report = None
        if (current, self.store.dimension) != (wanted, dimension):
            providers, kb = self._stages.of_private.providers, self.name
            target = Target(wanted, dimension, lambda: providers.embedder(wanted, dimension, kb))
            report = reembed(self.store, current, target, progress)
        self.settings = pin_embedder(self.layout.settings, wanted, dimension)
        return report

    # --- snapshots -------------------------------------------------------------------------------

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

        Raises:
            NotFoundError: There is none of that name.
            DamagedError: Files of it are missing; nothing has been changed.
            LockedError: Another process is writing and does not stop.
        """
        self._begin_change()
        restored = self._snapshots.restore(name)
        if self.store.embedder is not None:
            self.settings = pin_embedder(
                self.layout.settings, self.store.embedder, self.store.dimension
            )
        return restored

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

    # --- looking ---------------------------------------------------------------------------------

    def memories(
        self, filters: Filters = _NO_FILTERS, *, limit: int | None = None, offset: int | None = None
    ) -> pa.Table:
        """Return memories without their vectors, the newest first."""
        from memctl.memories.viewing import list_memories

        found = self._open(filters)
        return list_memories(self.store.snapshot(), found, self.clock(), limit, offset)

    def memory(self, id_: str) -> MemoryView:
        """Return a memory with its evidence, versions, insights and connections.

        Raises:
            NotFoundError: There is none of that id.
        """
        from memctl.memories.viewing import view_memory

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
        from memctl.memories.viewing import list_documents

        found = self._open(filters)
        return list_documents(
            self.store.snapshot(), found, incomplete=incomplete, limit=limit, offset=offset
        )

    def document(self, id_: str) -> DocumentView:
        """Return a document with its text and the memories made from it.

        Raises:
            NotFoundError: There is none of that id.
        """
        from memctl.memories.viewing import view_document

        return view_document(self.store.snapshot(), id_)

    def graph(self, filters: Filters = _NO_FILTERS) -> GraphView:
        """Return who and what is named in memories that hold now, and how it hangs together."""
        from memctl.graph.views import GraphView
        from memctl.store.filters import memory_filter

        where = memory_filter(self._open(filters), self.clock())
        return GraphView(self.name, self.store.snapshot(), where, self.name_decisions())

    def name_decisions(self) -> Decisions:
        """Return what was decided by hand on which names mean the same."""
        from memctl.graph.deciding import decisions_of

        return decisions_of(self.store.ledger.names)

    def merge_names(self, one: str, other: str) -> Node:
        """Say that two names mean the same, and return what they are together.

        Raises:
            NotFoundError: Nothing is called that.
            UsageError: They are one already.
        """
        from memctl.graph.deciding import merge

        self._begin_change()
        return merge(self.graph(), self.store.ledger.names, self.clock(), one, other)

    def unmerge_names(self, one: str, other: str) -> tuple[Node, Node]:
        """Say that two names do not mean the same, and return what each is.

        Raises:
            NotFoundError: Nothing is called that.
            UsageError: They are two already, or cannot be told apart.
        """
        from memctl.graph.deciding import unmerge

        self._begin_change()
        return unmerge(self.graph(), self.store.ledger.names, self.clock(), one, other)

    def statistics(self) -> Statistics:
        """Return counts, sizes and rates."""
        from memctl.statistics import statistics

        return statistics(self.name, self.store, self.clock())

    def receipts(self, file: str) -> list[Receipt]:
        """Return what became of a file each time that it was taken in, the newest first.

        Args:
            file: Its path, where it was given or is now, or the last parts of that.
        """
        from memctl.receipts.telling import receipts

        return receipts(self.layout, self.settings, self.store, file, self.clock())

    def names_like(self, file: str) -> list[str]:
        """Return a few names of files that are like one of which nothing is known."""
        from memctl.receipts.near import names_like

        return names_like(self.layout, self.settings, self.store, file)

    def query_statistics(self) -> QueryStatistics:
        """Return what the query log says: how many questions, how fast, how well answered."""
        from memctl.query_statistics import query_statistics

        self.query_log.flush()
        return query_statistics(self.name, self.store.ledger)

    def usage(self) -> pa.Table:
        """Return what models used, by day (UTC), task and model, the latest day first."""
        from memctl.store.ledger_tables import ledger_tables

        book = "model_usage"
        table = ledger_tables(self.store.ledger, [book])[book]
        return table.sort_by([("day", "descending"), ("task", "ascending"), ("model", "ascending")])

    # --- changing --------------------------------------------------------------------------------

    @property
    def _editor(self) -> Editor:
        self._begin_change()
        return self._stages.editor()

    def add_memory(self, statement: Statement | str) -> Memory:
        """Remember one statement; the same one said twice is there once."""
        from memctl.memories.editing import Statement

        given = Statement(statement) if isinstance(statement, str) else statement
        return self._editor.add(given)

    def edit_memory(self, id_: str, edit: Edit | str) -> Memory:
        """Write a new version of a memory, or of its text; the old one stays in its history.

        Raises:
            NotFoundError: There is none of that id.
            UsageError: It is evidence, or it has a newer version already.
        """
        from memctl.memories.editing import Edit

        return self._editor.edit(id_, Edit(text=edit) if isinstance(edit, str) else edit)

    def delete_memory(self, id_: str) -> int:
        """Forget a memory, its versions and what rests on it; return how many memories are gone."""
        return self._editor.delete_memory(id_)

    def delete_document(self, id_: str) -> int:
        """Forget a document and its memories; return how many memories are gone."""
        return self._editor.delete_document(id_)

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

    @property
    def _forgetter(self) -> Forgetter:
        from memctl.forget import Forgetter

        return Forgetter(self.layout, self.store, lambda: self.embedder, self.clock)

    def complete_forgetting(self) -> ForgetReport | None:
        """Complete what was to be forgotten and was cut off; every change does so before its own.

        Returns:
            What came of it; None where there was nothing to do, or it cannot be done now.
        """
        if not self.store.ledger.jobs.unfinished(FORGET):
            return None
        self._latest.drop()
        return self._forgetter.complete()

    # --- going out and coming back ---------------------------------------------------------------

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

        return Scope(self._open(Filters(namespaces=tuple(namespaces))))

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

    def sql(self, statement: str, namespaces: Sequence[str] = ()) -> pa.RecordBatchReader:
        """Run one SELECT or EXPLAIN; see ``KnowledgeBases.sql``."""
        return self._alone.sql(statement, namespaces)


def _caught_up(
    layout: Layout, settings: KnowledgeBaseSettings, store: Store
) -> KnowledgeBaseSettings:
    """Return the settings with the embedder that the vectors are from.

    What the ledger says counts.  A kb.toml that names the embedder before it is that of a change
    that was interrupted just after the switch, and is brought up to date.
    """
    if store.embedder is None or (settings.embedder, settings.dimension) != store.former():
        return settings
    try:
        return pin_embedder(layout.settings, store.embedder, store.dimension)
    except OSError:  # on a read-only mount it stays as it is
        return replace(settings, embedder=store.embedder, dimension=store.dimension)
