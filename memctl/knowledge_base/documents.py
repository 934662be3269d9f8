"""Documents of a knowledge base: ingested, listed, read again, traced, deleted; their links."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import UsageError
from memctl.identity import DEFAULT_SESSION, DEFAULT_USER, conversations_of, documents_of
from memctl.knowledge_base.resources import Part, audit_as
from memctl.literals import DocType, DocumentSort
from memctl.plain_values import require_shallow
from memctl.records import Filters, IngestReport, Metadata, ProgressListener, SkipListener

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.config import WebSettings
    from memctl.ingest.discovery.ingest_inputs import Inputs
    from memctl.ingest.discovery.sources import Labels, SourceOrFailure
    from memctl.ingest.file_versions import FileVersions
    from memctl.knowledge_base.document_revision import RevisedDocument
    from memctl.knowledge_base.resources import Resources
    from memctl.links.link_map import LinkMap
    from memctl.links.link_records import LinkExtraction, VectorRenewal
    from memctl.links.link_views import LinkedTables, PageLinks
    from memctl.memories.memory_views import DocumentView
    from memctl.provenance.file_provenance import FileProvenance
    from memctl.records import Document
    from memctl.sessions.line_intake import WritableLines

_NO_FILTERS = Filters()


def _upload_metadata(user: str | None, session: str | None, now: datetime) -> dict[str, str]:
    """Return what is noted of a document that a user has added, where one is named."""
    if user is None:
        return {}
    return {
        "uploaded_by": user,
        "upload_session": session or DEFAULT_SESSION,
        "upload_date": now.isoformat(),
    }


_SUMMED_FIELDS = (
    *("ingested", "skipped", "failed", "memories", "seconds", "outcomes", "superseded", "empty"),
    *("incomplete", "dropped"),
)
_COMPARED = ("added", "updated", "contradicted", "restated", "dropped")


def _join_reports(first: IngestReport, second: IngestReport) -> IngestReport:
    """Return the report of two parts of one ingest."""
    both = {name: getattr(first, name) + getattr(second, name) for name in _SUMMED_FIELDS}
    compared = {
        name: getattr(first.facts, name) + getattr(second.facts, name) for name in _COMPARED
    }
    return replace(first, **both, facts=replace(second.facts, **compared))


class _IngestRun(Struct, frozen=True):
    """What is ingested in one run, and how."""

    inputs: Inputs
    labels: Labels
    folders: Sequence[Path]
    """Those whose missing files are marked as gone."""
    web: WebSettings
    left_out: SkipListener | None

    def open(
        self, folder: Path
    ) -> AbstractContextManager[tuple[Iterable[SourceOrFailure], int | None]]:
        """Open the sources, with the folder of the knowledge base; see ``open_inputs``."""
        from memctl.ingest.discovery.ingest_inputs import open_inputs

        return open_inputs(self.inputs, self.labels, folder, self.left_out, self.web)


class Documents(Part):
    """The documents of one knowledge base."""

    @audit_as("ingest")
    def ingest(
        self,
        paths: Path | str | Iterable[Path | str] = (),
        *,
        text: str | None = None,
        stream: BinaryIO | None = None,
        stream_name: str = "",
        jsonl: Path | str | BinaryIO | None = None,
        namespace: str | None = None,
        tags: Iterable[str] = (),
        source: str | None = None,
        session: str | None = None,
        title: str = "",
        doc_type: DocType | None = None,
        metadata: Metadata | None = None,
        sync: bool = False,
        dry_run: bool = False,
        allow_private: bool = False,
        progress: ProgressListener | None = None,
        left_out: SkipListener | None = None,
    ) -> IngestReport:
        """Remember files, folders, pages of the web, a text, a stream or JSON lines.

        What is already known is recognised by its content.  A file that has changed supersedes
        what was remembered of it in the same namespace.  An input that fails never stops the
        others: the report says what became of each.

        Args:
            paths: Files and folders; a string that begins with ``http://`` or ``https://`` is a
                page, which is fetched.
            text: One text.
            stream: Bytes of one document, of any kind that can be read.
            stream_name: The name of the file that they are of, which tells its kind.
            jsonl: One document a line, in a file or a stream: ``text``, and optionally ``id``,
                ``namespace``, ``title``, ``created_at``, ``session_id``, ``turn``, ``tags``,
                ``metadata``, ``source``.  A line with a ``session_id`` is a turn of that
                conversation, which is one document.  One of another user's or agent's
                namespace fails.
            namespace: The namespace of the documents; by default that of the documents of the user
                who is named, else ``default``.
            tags: Tags for all of them.
            source: Where they come from, instead of the path.
            session: The conversation that they belong to.
            title: What they are called, instead of what they say themselves.
            doc_type: What they are; by default as their formats tell.
            metadata: What else is known of them; it stands above what they say themselves.
            sync: Mark the documents as gone whose files are no longer in the folders ``paths``.
            dry_run: Write nothing and ask no model; report what would become of them, and estimate
                what models would be asked.
            allow_private: Also fetch pages of this machine and of private networks.
            progress: Receives how far it is.
            left_out: Receives everything in a folder that is skipped, and why.

        Raises:
            KnowledgeBaseUnavailable: It is archived.
            LockedError: Another process is writing and does not stop.
        """
        from memctl.ingest.discovery.ingest_inputs import Inputs
        from memctl.ingest.discovery.sources import Labels

        require_shallow(metadata)
        kb, config = self._kb, self._kb.program_config
        labels = Labels(
            self._namespace_to_write(namespace, documents_of),
            tuple(tags),
            session,
            source or "",
            kb.settings.redact,
            title=title,
            doc_type=doc_type,
            agent_id=config.agent,
            metadata={**_upload_metadata(config.user, session, kb.clock()), **(metadata or {})},
        )
        inputs = Inputs.of(paths, text, stream, jsonl, stream_name)
        web = replace(config.web, allow_private=allow_private or config.web.allow_private)
        run = _IngestRun(inputs, labels, inputs.paths if sync else (), web, left_out)
        return self._preview(run, progress) if dry_run else self._ingest(run, progress)

    def _ingest(self, run: _IngestRun, progress: ProgressListener | None) -> IngestReport:
        """Remember inputs, and mark as gone what is no longer in folders."""
        from memctl.sessions.line_intake import TurnLines, WritableLines

        kb = self._kb
        kb.make_private(run.labels.namespace)
        versions = self._known_versions(run)
        turns = TurnLines(kb.conversations)
        with run.open(kb.layout.folder) as (sources, total):
            lines = WritableLines(self._with_conversations(sources), kb.program_config)
            kb.begin_change()
            report: IngestReport | None = None
            while report is None or lines.next is not None:
                if lines.next is not None:
                    self._make_private_for(lines, lines.next.namespace)
                part = turns.divert(lines.part(kb.settings.private_namespaces))
                ingestor = kb.services.ingestor
                done = ingestor.ingest(
                    part,
                    progress,
                    total=total,
                    versions=versions,
                    turns_follow=lambda: bool(turns.added or turns.changed),
                )
                report = done if report is None else _join_reports(report, done)
        if turns.added or turns.changed:
            kb.folding.change(turns.changed, kb.clock())
            report = turns.extend_report(report, kb.folding.fold(progress=progress))
            ingestor.index_rest()
        gone = ingestor.end_gone(versions, run.folders) if versions and run.folders else ()
        return replace(report, outcomes=(*report.outcomes, *gone), gone=len(gone))

    def _with_conversations(self, sources: Iterable[SourceOrFailure]) -> Iterator[SourceOrFailure]:
        """Yield sources; a file that the user imported conversations from goes on with those."""
        from memctl.ingest.discovery.sources import Source
        from memctl.sessions.imports import Imported

        kb, config = self._kb, self._kb.program_config
        place = conversations_of(config.namespaces, config.user or DEFAULT_USER)
        files = kb.store.ledger.turns.imported_files(place)
        for source in sources:
            if isinstance(source, Source) and source.path and source.source in files:
                imported = Imported(kb.services.readers, place, files[source.source])
                yield from imported.sources([source.path])
            else:
                yield source

    def _make_private_for(self, lines: WritableLines, namespace: str) -> None:
        """Make a namespace private before lines are added to it; where it can't be, they fail."""
        try:
            self._kb.make_private(namespace)
        except UsageError as error:
            lines.refuse(namespace, error)

    def _known_versions(self, run: _IngestRun) -> FileVersions | None:
        """Return what is known of files by their names; None where nothing can be."""
        from memctl.ingest.file_versions import FileVersions

        kb = self._kb
        if not run.inputs.has_names or not kb.snapshot().count("documents"):
            return None
        return FileVersions(kb.store, kb.settings, run.labels.namespace, kb.clock)

    def _preview(self, run: _IngestRun, progress: ProgressListener | None) -> IngestReport:
        """Return what would become of inputs, and of what is no longer in folders."""
        from memctl.ingest.ingest_preview import preview
        from memctl.sessions.line_intake import TurnLines, WritableLines

        kb = self._kb
        versions = self._known_versions(run)
        turns = TurnLines(kb.conversations, dry_run=True)
        with run.open(kb.layout.folder) as (sources, total):
            lines = WritableLines(self._with_conversations(sources), kb.program_config)
            return preview(
                kb.store,
                turns.divert(lines.all()),
                kb.services.estimators(),
                kb.services.readers,
                progress,
                total=total,
                versions=versions,
                folders=run.folders,
            )

    @audit_as("document reprocess")
    def reprocess(
        self,
        ids: Sequence[str] = (),
        *,
        incomplete: bool = False,
        upgrade: bool = False,
        older: bool = False,
        progress: ProgressListener | None = None,
    ) -> IngestReport:
        """Read sources again from where they are.

        Args:
            ids: Ids of documents.
            incomplete: All documents that lack something that another reading may find.
            upgrade: All documents that the configured model has not understood.
            older: All documents that an earlier version of memctl took in.
            progress: Receives how far it is.

        Raises:
            NotFoundError: There is no such document.
            UsageError: ``upgrade`` is set, and no model is configured.
        """
        from memctl.memories.memory_views import resolve

        kb = self._kb
        if upgrade and not kb.services.config.models.understand:
            if kb.program_config.models.understand:
                kb.refuse_remote_model("understand")
            raise UsageError(
                "no model is configured that understands documents",
                "set understand of [models] in the config file",
            )
        snapshot = kb.seen_snapshot()
        wanted = [resolve(snapshot, "documents", id_) for id_ in ids]
        kb.begin_change()
        # While the model is away the built-in understander must not replace its results.
        ingestor = kb.services.ingestor_that("wait")
        return ingestor.reprocess(
            wanted, incomplete=incomplete, upgrade=upgrade, older=older, progress=progress
        )

    def extract_links(self, ids: Sequence[str] = (), *, dry_run: bool = False) -> LinkExtraction:
        """Find the links of documents in their texts again; of all of them where none is named.

        Args:
            ids: Ids of documents.
            dry_run: Write nothing; report what would come of it.

        Raises:
            NotFoundError: There is no such document.
        """
        from memctl.memories.rederivation import extract_links

        wanted = self._own(ids)
        if not dry_run:
            self._kb.begin_change()
        return extract_links(self._kb.store, wanted, dry_run=dry_run)

    def renew_vectors(self, ids: Sequence[str] = (), *, dry_run: bool = False) -> VectorRenewal:
        """Embed the texts of documents again; of all documents if none is named.

        Args:
            ids: Ids of documents.
            dry_run: Embed and write nothing; report what would come of it.

        Raises:
            NotFoundError: There is no such document.
            ModelError: The embedder cannot do it; what was done is kept.
        """
        from memctl.memories.rederivation import renew_vectors

        wanted, kb = self._own(ids), self._kb
        if not dry_run:
            kb.begin_change()
        return renew_vectors(kb.store, lambda: kb.services.embedder, wanted, dry_run=dry_run)

    def _own(self, ids: Sequence[str]) -> Sequence[str]:
        return [self.get(id_).document.root_id for id_ in ids]

    def list(
        self,
        filters: Filters = _NO_FILTERS,
        *,
        incomplete: bool = False,
        limit: int | None = None,
        offset: int | None = None,
        sort: DocumentSort | None = None,
        descending: bool = False,
    ) -> pa.Table:
        """Return documents without their texts, the last ingested first unless ``sort`` is given.

        Args:
            filters: What the list is limited to.
            incomplete: Only those that lack something that another reading may find.
            limit: At most this many.
            offset: How many to skip.
            sort: What they are sorted by.
            descending: Whether the greatest comes first.
        """
        from memctl.memories.memory_views import Page, list_documents

        found = self._kb.readable(filters)
        page = Page(sort, descending, limit, offset)
        return list_documents(self._kb.snapshot(), found, incomplete=incomplete, page=page)

    def order_values(self, rows: pa.Table, sort: DocumentSort | None = None) -> pa.ChunkedArray:
        """Return what rows of ``list`` are sorted by, to put those of several together."""
        from memctl.memories.memory_views import Page

        return rows[Page(sort).order("ingested_at")[0][0]]

    def count(self, filters: Filters = _NO_FILTERS, *, incomplete: bool = False) -> int:
        """Return how many documents there are; see ``list``."""
        from memctl.memories.memory_views import count_documents

        found = self._kb.readable(filters)
        return count_documents(self._kb.snapshot(), found, incomplete=incomplete)

    def get(self, id_: str) -> DocumentView:
        """Return a document with its text and its memories.

        Raises:
            NotFoundError: There is none with that id.
        """
        from memctl.memories.memory_views import view_document

        return view_document(self._kb.seen_snapshot(), id_)

    def whole_text(self, document: Document) -> str:
        """Return the text of a long document in all of its parts; of a later part its own one."""
        from memctl.memories.memory_views import whole_text

        return whole_text(self._kb.seen_snapshot(), document)

    @audit_as("document revise")
    def revise(self, id_: str, text: str, *, dry_run: bool = False) -> RevisedDocument:
        """Write a new version of a document, and of its file where that still has its text.

        Args:
            id_: Which version of it is changed.
            text: Its new text.
            dry_run: Write nothing; only check that it may be.

        Raises:
            NotFoundError: There is none with that id.
            VersionConflict: It, or its file, has changed meanwhile.
            UsageError: Its text cannot be changed, or the new one is no other.
        """
        from memctl.knowledge_base.document_revision import revise

        return revise(self._kb, self.get(id_), text, dry_run=dry_run)

    def why_unchangeable(self, view: DocumentView) -> str:
        """Return why ``revise`` would refuse a document, in words; "" where it would not."""
        from memctl.knowledge_base.document_revision import why_unchangeable

        return why_unchangeable(view)

    @audit_as("document delete")
    def delete(self, id_: str) -> int:
        """Delete a document and its memories; return how many memories are gone.

        Raises:
            NotFoundError: There is none with that id.
        """
        document = self.get(id_).document
        self._kb.begin_change()
        return self._kb.services.editor().delete_document(document.id)

    def provenance(self, file: str) -> Sequence[FileProvenance]:
        """Return what became of a file each time it was read, the newest first.

        Where others have stored something, a user who is named sees only files that became a
        document that they may see: of the rest it is not known whose they are.

        Args:
            file: Its path, as it was given or as it is now, or the last parts of that.
        """
        from memctl.provenance.provenance_lookup import file_provenance

        kb = self._kb
        found = file_provenance(kb.layout, kb.settings, kb.store, file, kb.clock())
        snapshot = kb.seen_snapshot()
        if not kb.hides(snapshot):
            return found
        ids = sorted({each.document_id for each in found if each.document_id})
        open_ = {*snapshot.get("documents", ids, ["id"])["id"].to_pylist()}
        return [each for each in found if each.document_id in open_]

    def similar_file_names(self, file: str) -> Sequence[str]:
        """Return a few names of known files that are like an unknown one."""
        from memctl.provenance.provenance_lookup import similar_file_names

        kb = self._kb
        if kb.hides(kb.seen_snapshot()):
            return ()  # which of them are of others is not known
        return similar_file_names(kb.layout, kb.settings, kb.store, file)


K = TypeVar("K")
V = TypeVar("V")
_MAX_LIMITS = 8
"""What is made is kept for this many limits, such as those of different users."""


class Links:
    """What links the documents of one or several knowledge bases, kept in memory while it holds.

    Args:
        resources: The knowledge bases whose documents are looked at; links lead to no others.
    """

    def __init__(self, resources: Callable[[], Sequence[Resources]]) -> None:
        self._resources = resources
        self._tables: dict[tuple[str, Filters], LinkedTables] = {}
        self._maps: dict[Filters, tuple[tuple[LinkedTables, ...], LinkMap]] = {}

    def view(self, filters: Filters = _NO_FILTERS) -> PageLinks:
        """Return the links between documents as they are now.

        Args:
            filters: What the documents are limited to.
        """
        from memctl.links.link_map import LinkMap
        from memctl.links.link_views import PageLinks

        tables = tuple(self._current(base, filters) for base in self._resources())
        known = self._maps.get(filters)
        if known is None or known[0] != tables:
            pages = [page for each in tables for page in each.pages]
            known = _keep(self._maps, filters, (tables, LinkMap(pages)))
        return PageLinks(known[1], {each.kb: each for each in tables})

    def _current(self, base: Resources, filters: Filters) -> LinkedTables:
        from memctl.links.link_views import LinkedTables

        snapshot, readable = base.snapshot(), base.readable(filters)
        key = base.name, readable
        known = self._tables.get(key)
        if known is None or known.snapshot.versions != snapshot.versions:
            made = LinkedTables(base.name, snapshot, readable, base.clock)
            known = _keep(self._tables, key, made)
        known.snapshot = snapshot  # which is held while it is read from
        known.vectors_are = base.settings.embedder, base.settings.dimension
        return known


def _keep(cache: dict[K, V], key: K, value: V) -> V:
    """Keep the latest values, of at most this many keys."""
    cache.pop(key, None)
    cache[key] = value
    while len(cache) > _MAX_LIMITS:
        cache.pop(next(iter(cache)))
    return value
