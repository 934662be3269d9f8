"""Jobs, snapshots, vectors, exports, erasure and statistics of a knowledge base."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from msgspec.structs import replace

from memctl.errors import AccessRefused, NotFoundError, UsageError
from memctl.identity import readable_by, require_seen
from memctl.kb_settings import (
    follow_embedder,
    merge_imported_settings,
    portable_settings,
    save_settings,
)
from memctl.knowledge_base.memories import NameGraph
from memctl.knowledge_base.resources import Part, audit_as
from memctl.knowledge_base.skills import SkillGraph
from memctl.paths import display_path
from memctl.records import Filters, ProgressListener
from memctl.schema.table_names import TABLES
from memctl.store.ledger.audit_repositories import actor_of

if TYPE_CHECKING:
    from datetime import datetime

    import pyarrow as pa

    from memctl.consolidation.job_undo import Jobs as UndoableJobs
    from memctl.consolidation.job_undo import JobView, UndoReport
    from memctl.forget import ForgetReport, Forgetter, Selection
    from memctl.graph.graph_views import GraphView
    from memctl.knowledge_base.kb_statistics import (
        KnowledgeBaseStatistics,
        MemoryUseStatistics,
        QueryStatistics,
        SimilarQuestion,
    )
    from memctl.links.markdown_vault import WrittenVault
    from memctl.literals import ExportFormat, QuerySplit
    from memctl.memories.reembedding import ReembedReport
    from memctl.models.protocols import Embedder
    from memctl.schema.table_names import TableName
    from memctl.store.ledger.audit_repositories import AuditEntry
    from memctl.store.ledger.content_tables import ContentOwner
    from memctl.store.ledger.version_repositories import SnapshotEntry
    from memctl.store.ledger.work_repositories import Job
    from memctl.store.snapshots import ForgottenSince, NamedSnapshot, RestoreResult
    from memctl.store.snapshots import Snapshots as StoredSnapshots
    from memctl.store.sql import NamespaceScope
    from memctl.store.tables.snapshot import Snapshot
    from memctl.store.tables.transaction import Transaction


class Jobs(Part):
    """The jobs that a knowledge base has run automatically."""

    @audit_as("job undo")
    def undo(
        self, number: int | None = None, *, again: bool = False, dry_run: bool = False
    ) -> UndoReport:
        """Take back what a job has changed, and nothing that came after it.

        Args:
            number: Which; by default the latest that can be taken back.
            again: Whether the next consolidation looks again at what this one looked at.
            dry_run: Report what would come of it, and change nothing.

        Raises:
            NotFoundError: There is no such job, or none that can be taken back.
            UsageError: It cannot be taken back, or not before a later one.
            AccessRefused: There is something of another user than the one who is named.
            LockedError: Another process kept writing.
            CoverageLost: Memories would not have been found any more; it was rolled back.
        """
        self._kb.require_sole("a job")
        if not dry_run:
            self._kb.begin_change()
        if number is None:
            number = max(self._undoable(), default=None)
        return self._undo(number, again=again, dry_run=dry_run)

    @audit_as("job undo")
    def undo_night(
        self, number: int | None = None, *, again: bool = False, dry_run: bool = False
    ) -> Sequence[UndoReport]:
        """Take back all jobs of one night (local time, noon to noon), the newest first.

        Args:
            number: A job of that night; by default the latest that can be taken back.
            again: As for ``undo``.
            dry_run: Report what would come of it, and change nothing.

        Raises:
            NotFoundError: There is no such job, or none that can be taken back.
            UsageError: One cannot be taken back before a later one, of another night.
            AccessRefused: There is something of another user than the one who is named.
            LockedError: Another process kept writing.
        """
        self._kb.require_sole("a job")
        if not dry_run:
            self._kb.begin_change()
        night = self._jobs.of_night(number, self._of_skills())
        taken_back = night if dry_run else ()
        return [
            self._undo(each, again=again, dry_run=dry_run, job_ids=taken_back) for each in night
        ]

    def _undo(
        self,
        number: int | None,
        *,
        again: bool,
        dry_run: bool,
        job_ids: Collection[int] = (),
    ) -> UndoReport:
        """Take one job back by what it has changed: skills, pages, or rows of the tables."""
        ledger = self._kb.store.ledger
        job = None if number is None else ledger.jobs.find(number)
        if job is not None and job.id in self._of_skills():
            return self._undo_of_skills(job, dry_run=dry_run)
        if job is not None:
            changes = ledger.changes.of(job.id)
            pages = [each.id for each in changes if each.table == "documents"]
            if pages:
                return self._undo_pages(job, pages, dry_run=dry_run)
        return self._jobs.undo(number, again=again, dry_run=dry_run, taken_back=job_ids)

    @property
    def _jobs(self) -> UndoableJobs:
        from memctl.consolidation.job_undo import Jobs as UndoableJobs

        return UndoableJobs(self._kb.store, self._kb.clock, self._kb.name)

    def _of_skills(self) -> Sequence[int]:
        """Return the jobs that have changed skills, and can be taken back."""
        return self._kb.store.ledger.skills.repairs.jobs()

    def _undoable(self) -> set[int]:
        return {*self._jobs.undoable(), *self._of_skills()}

    def _undo_of_skills(self, job: Job, *, dry_run: bool) -> UndoReport:
        from memctl.skills.skill_conflicts import SkillConflicts

        conflicts = SkillConflicts(SkillGraph(self._kb).acting_as())
        restored, kept = conflicts.undo(job, dry_run=dry_run)
        return self._undone(job, restored=restored, kept=kept, dry_run=dry_run)

    def _undo_pages(self, job: Job, pages: Sequence[str], *, dry_run: bool) -> UndoReport:
        """Delete the documents that a job wrote; killed half-way, it is done by doing it again."""
        ledger = self._kb.store.ledger
        if not dry_run:
            there = self._kb.snapshot().get("documents", pages, ["id"])["id"].to_pylist()
            for page in there:
                self._kb.services.editor().delete_document(page)
            with ledger.transaction():
                ledger.changes.remove_job(job.id)
                ledger.jobs.undo(job.id, self._kb.clock())
        return self._undone(job, removed=pages, dry_run=dry_run)

    def _undone(
        self,
        job: Job,
        *,
        removed: Sequence[str] = (),
        restored: Sequence[str] = (),
        kept: Sequence[str] = (),
        dry_run: bool,
    ) -> UndoReport:
        from memctl.consolidation.job_undo import UndoReport

        return UndoReport(
            kb=self._kb.name,
            job=job.id,
            kind=job.kind,
            started_at=job.started_at,
            removed=tuple(removed),
            disconnected=0,
            restored=tuple(restored),
            kept=tuple(kept),
            waiting=0,
            dry_run=dry_run,
        )

    def list(self, *, limit: int | None = None) -> Sequence[JobView]:
        """Return jobs, the newest first.

        Args:
            limit: At most this many.
        """
        of_skills = set(self._of_skills())
        found = self._jobs.recent(limit)
        return [replace(e, can_be_undone=True) if e.id in of_skills else e for e in found]


class Snapshots(Part):
    """The named snapshots of a knowledge base."""

    @audit_as("snapshot create")
    def create(self, name: str) -> NamedSnapshot:
        """Name the current state, to go back to it; copies nothing and does not wait.

        Raises:
            UsageError: The name cannot be used, or is taken.
        """
        self._kb.begin_change()
        made = self._stored_snapshots.create(name)
        self._kb.audit("snapshot create", name)
        return made

    def create_before(self, what: str) -> NamedSnapshot:
        """Name the current state for going back to it after something, such as ``clear``."""
        return self.create(self._stored_snapshots.free_name(what))

    def get(self, name: str) -> NamedSnapshot:
        """Return one snapshot.

        Raises:
            NotFoundError: There is none with that name.
        """
        return self._stored_snapshots.get(name)

    @audit_as("snapshot restore")
    def restore(self, name: str) -> RestoreResult:
        """Go back to a snapshot; the state until now becomes a snapshot first.

        What has been forgotten since stays forgotten.

        Raises:
            NotFoundError: There is none with that name.
            AccessRefused: It, or the state until now, has something of another user than the one
                who is named.
            DamagedError: Files of it are missing; nothing has been changed.
            LockedError: Another process is writing and does not stop.
            ModelError: Words of a document were forgotten, and the embedder of the snapshot is not
                available to embed the rest anew; nothing has been changed.
        """
        kb = self._kb
        kb.require_sole(f"the snapshot {name!r}")
        kb.begin_change()
        restored = self._stored_snapshots.restore(name, self._erase_forgotten)
        if kb.store.embedder is not None:
            kb.settings = follow_embedder(
                kb.layout.settings, kb.settings, kb.store.embedder, kb.store.dimension
            )
        return restored

    def _erase_forgotten(
        self, transaction: Transaction, now: Snapshot, snapshot: SnapshotEntry
    ) -> ForgottenSince:
        from memctl.forget.forgetter import erase_forgotten
        from memctl.store.store import DIMENSION, EMBEDDER

        kb, name = self._kb, snapshot.pinned.get(EMBEDDER, "")

        def embedder() -> Embedder:
            """Return the embedder of the snapshot."""
            dimension = int(snapshot.pinned[DIMENSION])
            return kb.services.for_private.providers.embedder(name, dimension, kb.name)

        is_same = name == (kb.store.embedder or "")
        forgotten = kb.store.ledger.forgotten
        return erase_forgotten(transaction, now, forgotten, None if is_same else embedder)

    @audit_as("snapshot delete")
    def delete(self, name: str) -> int:
        """Delete a snapshot; return how many bytes that freed at once, upkeep frees the rest.

        Raises:
            NotFoundError: There is none with that name.
            AccessRefused: There is something of another user than the one who is named.
        """
        self._kb.require_sole(f"the snapshot {name!r}")
        self._kb.begin_change()
        freed = self._stored_snapshots.delete(name)
        self._kb.audit("snapshot delete", name)
        return freed

    def list(self) -> Sequence[NamedSnapshot]:
        """Return every snapshot, the oldest first."""
        return self._stored_snapshots.all()

    @property
    def _stored_snapshots(self) -> StoredSnapshots:
        from memctl.store.snapshots import Snapshots

        return Snapshots(self._kb.store, self._kb.clock)


class Vectors(Part):
    """The vectors of a knowledge base and the embedder that they are from."""

    @audit_as("reembed")
    def reembed(
        self, embedder: str, *, progress: ProgressListener | None = None
    ) -> ReembedReport | None:
        """Give every memory a vector of another embedder; the old vectors are kept in a cache.

        Meanwhile the old ones answer questions.  An interrupted run continues where it was.

        Args:
            embedder: ``builtin``, ``endpoint/MODEL`` or ``onnx/FOLDER``.
            progress: Receives how far it is.

        Returns:
            What was done; None where the vectors are from that embedder already.

        Raises:
            UsageError: There is no such embedder.
            LockedError: Another process does the same.
            ModelError: The endpoint cannot or will not do it; what was done is kept.
        """
        from memctl.models.providers import resolve_embedder

        if embedder.startswith("endpoint"):
            self._kb.refuse_remote_model("embed")
        wanted = resolve_embedder(self._kb.services.for_private.config, embedder)
        return self._reembed(wanted.id, wanted.dimension, progress)

    @audit_as("reembed")
    def restore_former(self, *, progress: ProgressListener | None = None) -> ReembedReport | None:
        """Give every memory its former vector back; only newer memories are embedded.

        Raises:
            NotFoundError: There are no former vectors, or they are not kept any more.
        """
        from memctl.memories.reembedding import require_cached_vectors

        store = self._kb.store
        embedder = store.former_embedder()
        if embedder is None:
            raise NotFoundError(
                f"{self._kb.name!r} has had no other embedder", "there is no way back"
            )
        require_cached_vectors(store, *embedder)
        return self._reembed(*embedder, progress)

    def drop_former(self) -> int:
        """Delete the cached vectors of other embedders; return how many bytes they took.

        Raises:
            LockedError: Another process is making new ones.
        """
        from memctl.store.file_caches import drop_vector_caches, lock_vector_caches

        self._kb.begin_change()
        with lock_vector_caches(self._kb.layout.folder):
            return drop_vector_caches(self._kb.layout.folder)

    def _reembed(
        self, model: str, dimension: int, progress: ProgressListener | None
    ) -> ReembedReport | None:
        from memctl.memories.reembedding import EmbedderTarget, reembed

        kb, store = self._kb, self._kb.store
        kb.begin_change()
        current = store.embedder or kb.settings.embedder
        report = None
        if (current, store.dimension) != (model, dimension):
            providers = kb.services.for_private.providers
            target = EmbedderTarget(
                model, dimension, lambda: providers.embedder(model, dimension, kb.name)
            )
            report = reembed(store, current, target, progress)
        kb.settings = follow_embedder(kb.layout.settings, kb.settings, model, dimension)
        return report


class Transfer(Part):
    """Exports of a knowledge base, and their import."""

    def export(self, table: TableName) -> pa.RecordBatchReader:
        """Return a table as a stream of Arrow batches, with vectors as float32.

        Rows of private namespaces are left out.
        """
        from memctl.store.transfer.exports import export_batches

        snapshot = self._kb.snapshot()
        return export_batches(snapshot, table, self._scope(()).of(snapshot, table))

    def export_to(
        self,
        sink: Path | BinaryIO,
        table: str = "all",
        *,
        format_: ExportFormat | None = None,
        namespaces: Sequence[str] = (),
        progress: ProgressListener | None = None,
    ) -> int:
        """Write a table, or an archive of all of them; return how many rows it has.

        Args:
            sink: A path, written in one step, or a binary file, which need not be seekable.
            table: A table, or a table of the ledger with what users and agents have stored, or
                ``all`` for what ``import_from`` reads.
            format_: The format of a table; by default what the path's suffix says, else JSON lines.
            namespaces: Limits a table to these; by default all but private ones.
            progress: Receives how far it is.

        Raises:
            UsageError: There is no such table; or all are asked for, and a user is named, who reads
                only some rows.
            AccessRefused: A namespace is another user's.
        """
        from memctl.pools import readable_pools
        from memctl.store.ledger.content_tables import CONTENT_TABLES
        from memctl.store.sql import ledger_tables, of_pools
        from memctl.store.transfer.exports import export_all, export_rows, export_table

        kb, snapshot = self._kb, self._kb.snapshot()
        stored = [declared.name for declared in CONTENT_TABLES]
        agent, ledger = kb.program_config.agent, kb.store.ledger
        pools = readable_pools(ledger, agent)
        for name in TABLES:
            if name == table:
                where = self._scope(namespaces).of(snapshot, name)
                return export_table(snapshot, name, sink, format_, where, progress=progress)
        if table in stored:
            kept = ledger_tables(kb.store.ledger, [table], kb.clock())
            within = self._scope(namespaces).of_ledger(snapshot, kept)
            rows = of_pools(within, pools)[table]
            return export_rows(rows.to_reader(), rows.num_rows, sink, format_, progress=progress)
        if table != "all":
            known = ", ".join((*TABLES, *stored))
            raise UsageError(f"there is no table {table!r} to export", f"use all, {known}")
        if kb.program_config.user is not None:
            raise UsageError(
                "all tables are of all users",
                "name one table",
            )
        kb.require_nothing_hidden("name one table")
        if pools is not None and len(pools) < len(ledger.pools.all()):
            raise AccessRefused(
                f"there are pools that agent {agent!r} may not read", "name one table"
            )
        kb.query_log.flush()
        return export_all(
            snapshot,
            sink,
            embedder=kb.settings.embedder,
            now=kb.clock(),
            ledger=kb.store.ledger,
            settings=portable_settings(kb.settings),
            media=kb.layout.media,
            progress=progress,
        )

    def export_markdown(
        self,
        folder: Path,
        *,
        namespaces: Sequence[str] = (),
        dry_run: bool = False,
        progress: ProgressListener | None = None,
    ) -> WrittenVault:
        """Write documents and insights as Markdown notes with links between them.

        What has not changed since the last time is left alone; files of what is not known any more
        are removed, unless they were edited.

        Args:
            folder: Where to; it is made where it is not there.
            namespaces: Limits them to these; by default all but private ones.
            dry_run: Write and remove nothing; report what would be.
            progress: Receives how far it is.

        Raises:
            UsageError: It is no folder, or one that memctl keeps its own files in.
            AccessRefused: A namespace is another user's.
        """
        from memctl.graph.page_names import read_pages
        from memctl.links.markdown_vault import write_vault
        from memctl.store.tables.filter_expressions import document_filter, memory_filter

        kb = self._kb
        if folder.resolve().is_relative_to(kb.program_config.home.resolve()):
            raise UsageError(
                f"{display_path(folder)} is a folder of memctl's own", "name another folder"
            )
        filters, snapshot = kb.readable(Filters(namespaces=tuple(namespaces))), kb.snapshot()
        return write_vault(
            folder,
            kb.name,
            snapshot,
            read_pages(kb.name, snapshot, document_filter(filters)),
            memory_filter(filters, kb.clock()),
            dry_run=dry_run,
            progress=progress,
        )

    def _scope(self, namespaces: Sequence[str]) -> NamespaceScope:
        from memctl.store.sql import NamespaceScope

        filters = Filters(namespaces=tuple(namespaces))
        return NamespaceScope(self._kb.readable(filters), self._kb.program_config.user)

    @audit_as("import")
    def import_from(
        self, source: Path | BinaryIO, *, progress: ProgressListener | None = None
    ) -> int:
        """Import an export of all tables, all or nothing; return how many rows it has.

        What was private or redacted where it comes from is so here; its other settings apply where
        none were made here.

        Args:
            source: The export.
            progress: Receives how far it is.

        Raises:
            UsageError: It is no export, has another embedder, or this is not empty.
            ConfigError: It has a setting that cannot be used.
            DamagedError: The export ends too early or cannot be read.
        """
        from memctl.store.transfer.exports import import_all

        kb = self._kb
        kb.begin_change()
        rows = import_all(
            kb.store,
            source,
            embedder=kb.settings.embedder,
            now=kb.clock(),
            on_manifest=lambda manifest: self._merge_settings(manifest.settings),
            media=kb.layout.media,
            progress=progress,
        )
        if kb.settings.has_private:
            kb.store.ledger.queries.forget_texts()
        return rows

    def _merge_settings(self, imported: Mapping[str, Any]) -> None:
        """Take over the settings of an export."""
        merged = merge_imported_settings(self._kb.settings, imported)
        if merged != self._kb.settings:
            save_settings(self._kb.layout.settings, merged)
            self._kb.settings = merged


class Erasure(Part):
    """Removes things from a knowledge base for good."""

    @audit_as("forget")
    def forget(
        self, selection: Selection | None = None, *, snapshots: bool = False, dry_run: bool = False
    ) -> ForgetReport:
        """Remove something for good: rows, vectors, index entries, files, history and logs of it.

        Then every byte that is left is searched for it, and what is found is reported.

        Args:
            selection: What; None only completes what was interrupted.
            snapshots: Delete all snapshots too, for each may hold it.
            dry_run: Report what would go, and change nothing.

        Raises:
            NotFoundError: Nothing matches the selection.
            AccessRefused: Its namespace is another user's than the one who is named, or all
                snapshots are to go, which have what others have stored.
            UsageError: Nothing is selected, nothing is to be completed, and there is no snapshot.
            LockedError: Another process is writing and does not stop.
        """
        kb = self._kb
        kb.require_writable()
        if selection is not None and selection.namespace is not None:
            require_seen(kb.program_config, selection.namespace)
        if snapshots:
            kb.require_sole("a snapshot")
        kb.query_log.flush()
        kb.queries.drop_caches()
        forgetter = kb.forgetter if selection is None else self._forgetter(selection)
        going = [each.name for each in Snapshots(kb).list()] if snapshots else []
        if selection is None and not forgetter.pending() and not going:
            if snapshots:
                raise UsageError(f"there is no snapshot of {kb.name}", "nothing has to be deleted")
            raise UsageError("forget what?", "say --document ID, --memory ID, --entity NAME, ...")
        if dry_run:
            return self._preview(forgetter, selection, going)
        if selection is not None:
            kb.conversations.drop_media(
                selection.session,
                selection.namespace,
                selection.before,
                forgetter.sees,
            )
        others = self._joined_names(selection) if selection is not None else ()
        report = forgetter.run(selection, snapshots=snapshots)
        if selection is not None and selection.before is not None:
            kb.folding.recover_lost()
        joined = tuple(filter(self._has_name, others))
        documents = self._documents_naming(joined)
        return replace(report, joined=joined, joined_documents=tuple(documents))

    def _preview(
        self, forgetter: Forgetter, selection: Selection | None, snapshots: Sequence[str]
    ) -> ForgetReport:
        """Return what would go; without a selection, what would be completed, and snapshots."""
        from memctl.forget import ForgetReport

        if selection is None:
            return ForgetReport(
                self._kb.name,
                snapshots=tuple(snapshots),
                completed=len(forgetter.pending()),
                dry_run=True,
            )
        report = forgetter.preview(selection)
        others = self._joined_names(selection)
        going = self._documents_naming(selection.entities) if selection.whole else ()
        named = (id_ for id_ in self._documents_naming(others) if id_ not in going)
        return replace(report, joined=tuple(others), joined_documents=tuple(named))

    def _joined_names(self, selection: Selection) -> Sequence[str]:
        """Return the other names, and addresses, that are taken for those of a selection.

        The graph takes them so, or they are short forms that stand for nobody else.
        """
        from memctl.graph.derivation import PAGE
        from memctl.graph.entity_names import has_words, short_forms

        names = [name.casefold() for name in selection.entities]
        if not names:
            return ()
        graph, found = NameGraph(self._kb), dict[str, str]()
        view = graph.view()
        for name in selection.entities:
            with suppress(NotFoundError):
                nodes = view.find(name)
                for node in nodes:
                    if node.type == PAGE and len(nodes) > 1:  # only its page is called so, too
                        continue
                    for other in (node.name, *node.aliases):
                        if node.type != PAGE or view.find(other) == (node,):
                            found.setdefault(other.casefold(), other)
        types = {node.name.casefold(): node.type for node in view.graph.nodes}
        shared = {
            form
            for name, type_ in types.items()
            if name not in (*found, *names)
            for form in short_forms(name, type_)
        }
        for name in selection.entities:
            for form in short_forms(name, types.get(name.casefold(), "other")):
                if form not in shared and self._stands_alone(form, selection.entities, view):
                    found.setdefault(form.casefold(), form)
        for title, addresses in graph.addresses().items():
            if title.casefold() in (*found, *names):
                found |= {each.casefold(): each for each in addresses}
        return [
            name
            for folded, name in found.items()
            if not any(each in folded for each in names) and has_words(name)
        ]

    def _stands_alone(self, form: str, names: Sequence[str], view: GraphView) -> bool:
        """Return whether a short form of a name stands in a memory other than in the name."""
        import pyarrow.compute as pc

        from memctl.forget.search_patterns import SearchPattern
        from memctl.forget.text_blocking import block_text

        short = SearchPattern(form, is_name=True)
        patterns = [SearchPattern(name, is_name=True).pattern for name in names]
        texts = view.snapshot.scan("memories", view.where, ["text"])["text"]
        having = texts.filter(pc.match_substring_regex(texts, short.in_tables))
        return any(short.is_in(block_text(text, patterns)) for text in having.to_pylist())

    def _has_name(self, name: str) -> bool:
        """Return whether there is something to forget by a name."""
        return self._preview_of_names([name]) is not None

    def _documents_naming(self, names: Sequence[str]) -> Sequence[str]:
        """Return the documents that have one of some names."""
        found = self._preview_of_names(names) if names else None
        return found.redacted if found else ()

    def _preview_of_names(self, names: Sequence[str]) -> ForgetReport | None:
        """Return what would go with some names; None if nothing has them."""
        from memctl.forget import Selection

        selection = Selection(entities=tuple(names))
        with suppress(NotFoundError):
            return self._forgetter(selection).preview(selection)
        return None

    def _forgetter(self, selection: Selection) -> Forgetter:
        """Return what forgets a selection: of an id all that may be seen, else what is read."""
        kb, config = self._kb, self._kb.program_config
        by_place = selection.namespace is not None or selection.session is not None
        if config.user is None or by_place or not (selection.entities or selection.before):
            return kb.forgetter
        readable = readable_by(config.namespaces, config.user, config.agent)
        return kb.forgetter_of(lambda namespace: namespace in readable)

    def count_owned(self, owner: ContentOwner) -> Mapping[str, int]:
        """Return how much there is of an owner, by table; tables without any are left out."""
        from memctl.memories.memory_editing import owned_rows
        from memctl.store.ledger.content_tables import count_content

        kb, where = self._kb, owned_rows(owner)
        snapshot, tables = kb.snapshot(), ("documents", "memories")
        counts = {name: snapshot.count(name, where) for name in tables}  # type: ignore[arg-type]
        counts |= count_content(kb.store.ledger, owner)
        return {name: number for name, number in counts.items() if number}

    @audit_as("clear")
    def clear(self, owner: ContentOwner) -> Mapping[str, int]:
        """Delete everything of an owner; return how much that was, as ``owned`` does.

        What snapshots, earlier versions and files have of it stays; ``forget`` removes that too.

        Raises:
            AccessRefused: It is everything, and something is of another user than the one who is
                named.
        """
        kb = self._kb
        if owner.namespaces is None:
            kb.require_sole("a knowledge base")
        found = self.count_owned(owner)
        kb.begin_change()
        kb.query_log.flush()
        kb.queries.drop_caches()
        kb.services.editor().clear(owner)
        return found

    @audit_as("forget")
    def complete(self) -> ForgetReport | None:
        """Complete an interrupted forget; every change does so before its own.

        Returns:
            What came of it; None where there was nothing to do, or it cannot be done now.
        """
        return self._kb.complete_forgetting()


class Statistics(Part):
    """A knowledge base in numbers."""

    def content(self) -> KnowledgeBaseStatistics:
        """Return counts, sizes and rates."""
        from memctl.knowledge_base.kb_statistics import kb_statistics

        kb = self._kb
        is_open = kb.query_log.is_open
        return kb_statistics(
            kb.name, kb.store, kb.snapshot(), kb.clock(), is_open, self._readable()
        )

    def _readable(self) -> Collection[str]:
        """Return the namespaces that the user reads; none where no user is named."""
        config = self._kb.program_config
        return readable_by(config.namespaces, config.user, config.agent) if config.user else ()

    def namespaces(self) -> Mapping[str, int]:
        """Return how many memories each namespace has; one of documents alone has none."""
        snapshot, counts = self._kb.snapshot(), Counter[str]()
        for batch in snapshot.batches("memories", None, ["namespace"]):
            counts.update(batch["namespace"].to_pylist())
        for batch in snapshot.batches("documents", None, ["namespace"]):
            counts.update(dict.fromkeys(batch["namespace"].to_pylist(), 0))
        return counts

    def queries(self, by: QuerySplit | None = None) -> QueryStatistics:
        """Return what the query log says: how many questions, how fast, how well answered.

        Args:
            by: What else the numbers are split by.
        """
        from memctl.knowledge_base.kb_statistics import query_statistics

        self._kb.query_log.flush()
        kb = self._kb
        return query_statistics(kb.name, kb.store.ledger, kb.query_log.is_open, by)

    def similar(self, text: str, limit: int) -> Sequence[SimilarQuestion]:
        """Return questions that were asked before and mean much the same, the nearest first."""
        from memctl.knowledge_base.kb_statistics import similar_questions

        self._kb.query_log.flush()
        ledger, embedder = self._kb.store.ledger, self._kb.services.embedder
        is_open = self._kb.query_log.is_open
        return similar_questions(self._kb.name, ledger, embedder, text, limit, is_open)

    def memory_use(self, limit: int = 20) -> MemoryUseStatistics:
        """Return which memories were shown most, and how many never were.

        Args:
            limit: How many of each kind are named.
        """
        from memctl.knowledge_base.kb_statistics import memory_use_statistics

        self._kb.query_log.flush()
        filters = self._kb.readable(Filters())
        return memory_use_statistics(
            self._kb.name, self._kb.store.ledger, self._kb.snapshot(), filters, self._kb.clock(),
            limit,
        )  # fmt: skip

    def audit(
        self,
        since: datetime | None = None,
        actor: str | None = None,
        about: str | None = None,
        *,
        limit: int | None = None,
    ) -> Sequence[AuditEntry]:
        """Return who changed what, the newest first.

        Args:
            since: Only from then on.
            actor: Only of this user or agent; ``owner`` where no one was named, ``watch`` for what
                ran by itself.
            about: Only about an id, or a beginning of one.
            limit: At most this many.

        Raises:
            AccessRefused: A user is named, who sees their own changes alone, and this is another.
        """
        user, found = self._kb.program_config.user, self._kb.store.ledger.audit
        if user is not None:
            own = actor_of(user, None)
            if actor not in (None, user, own):
                raise AccessRefused(f"{user} sees their own changes alone", f"--actor {user}")
            actor = own
        return found.search(since, actor, about, -1 if limit is None else limit)

    def model_usage(self) -> pa.Table:
        """Return what models used by day (UTC), task and model, the latest day first."""
        from memctl.store.sql import ledger_tables

        name = "model_usage"
        table = ledger_tables(self._kb.store.ledger, [name])[name]
        return table.sort_by([("day", "descending"), ("task", "ascending"), ("model", "ascending")])
