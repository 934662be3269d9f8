"""Documents that are remembered are found again, to be read by a better reader or understander."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.errors import ChangedSource, NotFoundError, UsageError
from memctl.ids import root_id
from memctl.ingest.batch import Identified, Wanted
from memctl.ingest.reading import RECORD_READER, Unreadable, identify
from memctl.ingest.rows import as_given
from memctl.ingest.sources import Source
from memctl.ingest.stored import REDACTED, stored_parts
from memctl.records import Document, FileOutcome
from memctl.understand.protocol import BY_MODEL, MODEL, NOT_BY_MODEL

if TYPE_CHECKING:
    from memctl.store.snapshot import Snapshot
    from memctl.store.store import Store

_AT_ONCE = 256


def wanted_again(
    store: Store,
    document_ids: Sequence[str],
    *,
    incomplete: bool,
    method: Callable[[str], str] | None = None,
) -> Iterator[Wanted | FileOutcome]:
    """Say of each document where to read it again; a failed outcome where that cannot be.

    Args:
        store: Where the documents are.
        document_ids: Ids of documents or of their parts.
        incomplete: Whether to take all live documents too of which something is missing that
            another reading may find.
        method: Take all live documents too that were understood by another method than this
            gives for their namespace.

    Raises:
        NotFoundError: There is no document of one of the ids.
    """
    snapshot = store.snapshot()
    roots = dict.fromkeys(root_id(identifier) for identifier in document_ids)
    if incomplete:
        roots |= dict.fromkeys(_incomplete(snapshot))
    upgraded = set(_understood_otherwise(snapshot, method)) if method is not None else set()
    roots |= dict.fromkeys(sorted(upgraded))
    places = {entry.document_id: entry.path for entry in store.ledger.files.entries(["done"])}
    ids = list(roots)
    for at in range(0, len(ids), _AT_ONCE):
        for document in _documents(snapshot, ids[at : at + _AT_ONCE]):
            yield wanted(
                snapshot, document, places.get(document.id), upgrades=document.id in upgraded
            )


def _incomplete(snapshot: Snapshot) -> Iterator[str]:
    """Documents of which something is missing that another reading may find."""
    from memctl.readers.structured import KEPT_AS_TEXT
    from memctl.store.filters import col

    live = col("status") == "indexed"
    for batch in snapshot.batches("documents", live, ["root_id", "missing"]):
        for row in batch.to_pylist():
            if not all(what.endswith(KEPT_AS_TEXT) for what in row["missing"]):
                yield row["root_id"]


def _understood_otherwise(snapshot: Snapshot, method: Callable[[str], str]) -> Iterator[str]:
    from memctl.store.filters import col

    live = col("status") == "indexed"
    for batch in snapshot.batches("documents", live, ["root_id", "namespace", "method"]):
        for row in batch.to_pylist():
            if row["method"] != method(row["namespace"]):
                yield row["root_id"]


def _documents(snapshot: Snapshot, ids: list[str]) -> list[Document]:
    from memctl.store.schema import document_rows

    documents = document_rows(snapshot.get("documents", ids))
    if unknown := set(ids) - {document.id for document in documents}:
        raise NotFoundError(f"no document {min(unknown)}", "memctl document list shows them")
    return documents


def wanted(
    snapshot: Snapshot, document: Document, place: str | None, *, upgrades: bool
) -> Wanted | FileOutcome:
    """Say where to read a document again.

    Args:
        snapshot: Where its rows are.
        document: Which one.
        place: Where its file is now, if that is known.
        upgrades: Whether its text as it is remembered will do where there is no file.
    """
    if document.status != "indexed":
        why, hint = f"it is {document.status}", "only live documents are read again"
        return _failed(document, why, hint, UsageError.__name__)
    if document.reader == RECORD_READER:
        source = _record(snapshot, document)
        item = Identified(source, document.sha256, document.size, document.id)
        return _again(item, document)
    if document.metadata.get(REDACTED):
        return from_memory(snapshot, document)
    path = Path(place or document.source)
    if not path.is_file() and (upgrades or _lacks_a_model_alone(document)):
        return from_memory(snapshot, document)
    if not path.is_file():
        why, hint = "its file is no longer there", "put it back, or ingest it anew"
        return _failed(document, why, hint, FileNotFoundError.__name__)
    return _from_file(document, path.resolve() if path.is_symlink() else path)


def _lacks_a_model_alone(document: Document) -> bool:
    return bool(document.missing) and BY_MODEL.issuperset(document.missing)


def _again(item: Identified, document: Document) -> Wanted:
    by_model = document.method.startswith(MODEL) and NOT_BY_MODEL not in document.missing
    return Wanted(item, document.id, redo=True, by_model=by_model)


def from_memory(snapshot: Snapshot, document: Document) -> Wanted:
    """The document with its text as it is stored: it needs no file to be understood again."""
    item = Identified(_source(document), document.sha256, document.size, document.id)
    return replace(_again(item, document), stored=stored_parts(snapshot, document))


def _source(document: Document) -> Source:
    return Source(
        source=document.source,
        name=Path(document.source).name,
        external_id=document.external_id,
        namespace=document.namespace,
        session_id=_given_session(document),
        tags=document.tags,
    )


def _from_file(document: Document, path: Path) -> Wanted | FileOutcome:
    """Read a file that has what it had; whoever made an export may have named any file as it."""
    if path.stat().st_size != document.size or not document.size:
        return _changed(document, path)
    try:
        item = identify(replace(_source(document), path=path))
    except Unreadable as error:
        return _failed(document, error.reason, error.hint, error.error)
    if item.sha256 != document.sha256:
        return _changed(document, path)
    return _again(item, document)


def _changed(document: Document, path: Path) -> FileOutcome:
    why, hint = f"{path} has changed since", "ingest it as a newer version"
    return _failed(document, why, hint, ChangedSource.__name__)


def _record(snapshot: Snapshot, document: Document) -> Source:
    """The record as it was given; its turn and speaker stand with its passages."""
    from memctl.store.filters import col

    where = (col("document_id") == document.id) & (col("level") == "evidence")
    rows = snapshot.scan("memories", where, ["turn", "speaker", "type"], limit=1).to_pylist()
    first = rows[0] if rows else {}
    return Source(
        source=document.source,
        text=document.text,
        external_id=document.external_id,
        namespace=document.namespace,
        title=document.title,
        created_at=document.created_at,
        session_id=_given_session(document),
        turn=first.get("turn"),
        speaker=first.get("speaker"),
        type=first.get("type") or "",
        tags=document.tags,
        metadata=as_given(document.metadata),
    )


def _given_session(document: Document) -> str | None:
    """The session that was given; that of a chat log is the log itself."""
    return None if document.session_id == document.id else document.session_id


def _failed(document: Document, reason: str, hint: str, error: str) -> FileOutcome:
    return FileOutcome(
        document.source,
        "failed",
        document_id=document.id,
        reason=f"{document.source}: {reason}",
        hint=hint,
        error=error,
    )
