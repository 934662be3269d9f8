"""The text of a document, changed: a new version in its place, and in its file where there is one.

The id of a document stands for one text of it, so that a change to a document that has changed
since it was read is refused.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import MemctlError, UsageError, VersionConflict
from memctl.files import read_regular, save_file
from memctl.ids import root_id
from memctl.ingest.discovery.ingest_inputs import Inputs, open_inputs
from memctl.ingest.discovery.sources import Labels, Source, path_of
from memctl.ingest.file_versions import FileVersions
from memctl.literals import RECORD_READER
from memctl.paths import display_path
from memctl.rows.supersession import LIVE_STATUSES

if TYPE_CHECKING:
    from memctl.knowledge_base.resources import Resources
    from memctl.memories.memory_views import DocumentView
    from memctl.records import Document, IngestReport

_TEXT_TYPES = ("text/plain", "text/markdown")


class RevisedDocument(Struct, frozen=True):
    """A document with another text."""

    document_id: str | None
    """The new version; None for a dry run."""
    supersedes: str
    """The version before."""
    title: str
    file: str
    """The file that has the new text, too; "" where there is none."""
    kb: str
    dry_run: bool


def why_unchangeable(view: DocumentView) -> str:
    """Return why the text of a document cannot be changed here; "" where it can."""
    document = view.document
    if view.parts > 1 or document.part:
        return "it is too long to be changed as a whole"
    if document.session_id is not None and document.doc_type == "conversation":
        return "a conversation stays as it was held"
    if "://" in document.source:
        return "a page of the web stays as it was read"
    if document.reader != RECORD_READER and document.media_type not in _TEXT_TYPES:
        return f"it is no text but {document.media_type}"
    return ""


def revise(kb: Resources, view: DocumentView, text: str, *, dry_run: bool) -> RevisedDocument:
    """Write a new version of a document.

    Raises:
        VersionConflict: There is a newer version of it.
        UsageError: Its text cannot be changed, or the new one is no other.
    """
    document = view.document
    if document.superseded_by or document.status not in LIVE_STATUSES:
        newer = document.superseded_by or "none"
        raise VersionConflict(
            f"document {document.id} has changed meanwhile; the version that holds now: {newer}",
            "read that one, and change it",
        )
    if reason := why_unchangeable(view):
        raise UsageError(f"the text of {document.id} cannot be changed: {reason}")
    if not text.strip() or text == document.text:
        raise UsageError("the text is empty or as it was", "delete the document instead")
    file = _file_of(document)
    done = RevisedDocument(
        None, document.id, document.title, "" if file is None else str(file), kb.name, dry_run
    )
    if dry_run:
        return done
    kb.begin_change()
    report = _in_place(kb, document, text) if file is None else _in_file(kb, document, file, text)
    outcome = report.outcomes[0]
    if outcome.document_id is None:
        raise MemctlError(outcome.reason, outcome.hint)
    if file is None and outcome.outcome == "known":
        raise UsageError(f"that is the text of document {outcome.document_id} already")
    return replace(done, document_id=outcome.document_id)


def _file_of(document: Document) -> Path | None:
    """Return the file that a document was read from, if it still says the same; None if it is gone.

    Raises:
        VersionConflict: The file says something else by now.
    """
    file = path_of(document.source)
    if document.reader == RECORD_READER or not file.is_absolute() or not file.is_file():
        return None
    if _text_in(file) != document.text:
        raise VersionConflict(
            f"{display_path(file)} says something else than what was read of it",
            f"take it in first: memctl ingest {display_path(file)}",
        )
    return file


def _text_in(file: Path) -> str:
    return read_regular(file).decode("utf-8", "replace").replace("\r\n", "\n")


def _in_file(kb: Resources, document: Document, file: Path, text: str) -> IngestReport:
    """Write the file, and take it in as any file that has changed."""
    ends = "\r\n" if b"\r\n" in read_regular(file) else "\n"
    save_file(file, text.replace("\n", ends).encode())
    labels = _labels(kb, document)
    versions = FileVersions(kb.store, kb.settings, document.namespace, kb.clock)
    with open_inputs(Inputs.of(file), labels, kb.layout.folder) as (sources, total):
        return kb.services.ingestor.ingest(sources, total=total, versions=versions)


def _in_place(kb: Resources, document: Document, text: str) -> IngestReport:
    """Take a text in as the newer version of a document that has no file."""
    inputs = (
        Inputs(text=text)
        if document.reader == RECORD_READER
        else Inputs(stream=io.BytesIO(text.encode()), stream_name=Path(document.source).name)
    )
    with open_inputs(inputs, _labels(kb, document), kb.layout.folder) as (found, total):
        sources = (
            replace(
                each,
                source=document.source,
                external_id=document.external_id,
                created_at=document.created_at,
                supersedes=None if document.external_id else root_id(document.id),
            )
            if isinstance(each, Source)
            else each
            for each in found
        )
        return kb.services.ingestor.ingest(sources, total=total)


def _labels(kb: Resources, document: Document) -> Labels:
    """Return what is said of the new version besides its text; a file says it itself."""
    agent = kb.program_config.agent
    if document.reader != RECORD_READER:
        return Labels(document.namespace, agent_id=agent, redacts=kb.settings.redact)
    return Labels(
        document.namespace,
        document.tags,
        document.session_id,
        document.source,
        kb.settings.redact,
        title=document.title,
        doc_type=document.doc_type,
        agent_id=agent,
        metadata=document.metadata,
    )
