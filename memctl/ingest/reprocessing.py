"""Documents that are remembered are found again, to be read by a better reader or understander."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import ChangedSource, NotFoundError, UsageError
from memctl.ids import document_id, root_id
from memctl.ingest.batches import (
    PIPELINE_VERSION,
    IdentifiedSource,
    ReadFailure,
    StoredPart,
    WantedSource,
    failed_outcome,
)
from memctl.ingest.chunking import Passage
from memctl.ingest.discovery.sources import Source
from memctl.ingest.document_records import BESIDE_THE_TALK, TRIGGERING, original_metadata
from memctl.ingest.file_units import SHARED
from memctl.ingest.source_reading import Unreadable, identify
from memctl.literals import DATED_BY_FILE, QUOTED, RECORD_READER, SESSION_READER
from memctl.models.protocols import BY_MODEL, MODEL, NOT_BY_MODEL
from memctl.paths import display_path
from memctl.records import UNIT_MARK, AskedTurn, Document, FileOutcome, Segment, SourceText

if TYPE_CHECKING:
    from memctl.store.store import Store
    from memctl.store.tables.snapshot import Snapshot


_AT_ONCE = 256
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


def documents_to_reprocess(
    store: Store,
    document_ids: Sequence[str],
    *,
    incomplete: bool,
    older: bool = False,
    method: Callable[[str], str] | None = None,
    from_text: bool = False,
) -> Iterator[WantedSource | FileOutcome]:
    """Return for each document where to read it again, or a failed outcome.

    Args:
        store: Where the documents are.
        document_ids: Ids of documents or of their parts.
        incomplete: Whether to take all live documents too of which something is missing that
            another reading may find.
        older: Whether to take all live documents too that an earlier version made the rows of.
        method: Take all live documents too that were understood by another method than this
            gives for their namespace.
        from_text: Whether the text as it is remembered will do where there is no file.

    Raises:
        NotFoundError: There is no document of one of the ids.
    """
    snapshot = store.snapshot()
    roots = dict.fromkeys(root_id(identifier) for identifier in document_ids)
    if incomplete:
        roots |= dict.fromkeys(_incomplete(snapshot))
    upgraded = set(_understood_otherwise(snapshot, method)) if method is not None else set()
    if older:
        upgraded |= older_documents(snapshot)
    roots |= dict.fromkeys(sorted(upgraded))
    places = {entry.document_id: entry.path for entry in store.ledger.files.entries(["done"])}
    ids = list(roots)
    for at in range(0, len(ids), _AT_ONCE):
        for document in _documents(snapshot, ids[at : at + _AT_ONCE]):
            upgrades = from_text or document.id in upgraded
            yield wanted_source(snapshot, document, places.get(document.id), upgrades=upgrades)


def _incomplete(snapshot: Snapshot) -> Iterator[str]:
    """Documents of which something is missing that another reading may find."""
    from memctl.store.tables.filter_expressions import col

    live = col("status") == "indexed"
    for batch in snapshot.batches("documents", live, ["root_id", "missing"]):
        for row in batch.to_pylist():
            if not all(map(_is_final, row["missing"])):
                yield row["root_id"]


def older_documents(snapshot: Snapshot) -> set[str]:
    """Return the live documents whose rows would be others if this version made them."""
    from memctl.store.tables.filter_expressions import col

    is_older = (col("status") == "indexed") & (col("pipeline_version") < PIPELINE_VERSION)
    return set(snapshot.scan("documents", is_older, ["root_id"])["root_id"].to_pylist())


def _understood_otherwise(snapshot: Snapshot, method: Callable[[str], str]) -> Iterator[str]:
    from memctl.store.tables.filter_expressions import col

    live = col("status") == "indexed"
    for batch in snapshot.batches("documents", live, ["root_id", "namespace", "method"]):
        for row in batch.to_pylist():
            if row["method"] != method(row["namespace"]):
                yield row["root_id"]


def _documents(snapshot: Snapshot, ids: list[str]) -> list[Document]:
    from memctl.schema.arrow_tables import document_rows

    documents = document_rows(snapshot.get("documents", ids))
    if unknown := set(ids) - {document.id for document in documents}:
        raise NotFoundError(f"no document {min(unknown)}", "memctl document list shows them")
    return documents


def wanted_source(
    snapshot: Snapshot, document: Document, place: str | None, *, upgrades: bool
) -> WantedSource | FileOutcome:
    """Return where to read a document again.

    Args:
        snapshot: Where its rows are.
        document: Which one.
        place: Where its file is now, if that is known.
        upgrades: Whether its text as it is remembered will do where there is no file.
    """
    if document.status != "indexed":
        why, hint = f"it is {document.status}", "only live documents are read again"
        return _failure(document, ReadFailure(why, hint, UsageError.__name__))
    if document.reader == RECORD_READER:
        source = _record(snapshot, document)
        item = IdentifiedSource(source, document.sha256, document.size, document.id)
        return _again(item, document)
    if document.metadata.get(REDACTED) or document.reader == SESSION_READER:
        return from_stored_text(snapshot, document)
    path = Path(place or document.source)
    if not path.is_absolute():  # it was sent or fetched: no file of it has ever been here
        return _from_sent_text(snapshot, document, upgrades=upgrades)
    if not path.is_file() and (
        upgrades or _lacks_a_model_alone(document) or UNIT_MARK in document.source
    ):
        return from_stored_text(snapshot, document)
    if not path.is_file():
        why, hint = "its file is no longer there", "put it back, or ingest it anew"
        return _failure(document, ReadFailure(why, hint, FileNotFoundError.__name__))
    return _from_file(document, path.resolve() if path.is_symlink() else path)


def _from_sent_text(
    snapshot: Snapshot, document: Document, *, upgrades: bool
) -> WantedSource | FileOutcome:
    """Understand what was sent or fetched from its text, unless only its bytes have the rest."""
    lost = [what for what in document.missing if what not in BY_MODEL and not _is_final(what)]
    if lost and not upgrades:
        why = f"it lacks {', '.join(lost)}, and what is sent is not kept as a file"
        return _failure(document, ReadFailure(why, "ingest it anew", FileNotFoundError.__name__))
    return from_stored_text(snapshot, document)


def _is_final(missing: str) -> bool:
    """Return whether no other reading finds what is missing."""
    from memctl.readers.data_files.structured_data import KEPT_AS_TEXT

    return missing.endswith(KEPT_AS_TEXT)


def _lacks_a_model_alone(document: Document) -> bool:
    return bool(document.missing) and BY_MODEL.issuperset(document.missing)


def _again(item: IdentifiedSource, document: Document) -> WantedSource:
    by_model = document.method.startswith(MODEL) and NOT_BY_MODEL not in document.missing
    return WantedSource(item, document.id, redo=True, by_model=by_model)


def from_stored_text(snapshot: Snapshot, document: Document) -> WantedSource:
    """The document with its text as it is stored: it needs no file to be understood again."""
    item = IdentifiedSource(
        _source(document),
        document.sha256,
        document.size,
        document.id,
        (document.created_at - _EPOCH) // _MICROSECOND * 1000 if _is_dated_by_file(document) else 0,
    )
    return replace(_again(item, document), stored=stored_parts(snapshot, document))


def _is_dated_by_file(document: Document) -> bool:
    """Return whether a document is of the day on which its file was written, for want of another.

    Its text does not state that day.
    """
    written = document.created_at.isoformat(timespec="seconds")
    return document.metadata.get(DATED_BY_FILE) == written


def _source(document: Document) -> Source:
    return Source(
        source=document.source,
        name="" if document.reader == SESSION_READER else Path(document.source).name,
        external_id=document.external_id,
        namespace=document.namespace,
        session_id=_given_session(document),
        tags=document.tags,
        **_caller_fields(document),
    )


def _caller_fields(document: Document) -> dict[str, Any]:
    """What its caller said of a document, which its file does not say again.

    What it is was found by an earlier reading, too, which had the same bytes before it.
    """
    kept = original_metadata(document.metadata)
    return {
        "title": str(kept.get("title") or ""),
        "doc_type": document.doc_type,
        "agent_id": document.agent_id,
        "metadata": {key: value for key, value in kept.items() if key != SHARED},
    }


def _from_file(document: Document, path: Path) -> WantedSource | FileOutcome:
    """Read a file that has not changed; an export of unknown origin may have named any file."""
    if path.stat().st_size != document.size or not document.size:
        return _changed_file(document, path)
    try:
        item = identify(replace(_source(document), path=path))
    except Unreadable as error:
        return _failure(document, error.why)
    if item.sha256 != document.sha256:
        return _changed_file(document, path)
    return _again(item, document)


def _changed_file(document: Document, path: Path) -> FileOutcome:
    why, hint = f"{path} has changed since", "ingest it as a newer version"
    return _failure(document, ReadFailure(why, hint, ChangedSource.__name__))


def _record(snapshot: Snapshot, document: Document) -> Source:
    """The record as it was given; its turn and speaker stand with its passages."""
    from memctl.store.tables.filter_expressions import col

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
        metadata=original_metadata(document.metadata),
        doc_type=document.doc_type,
        agent_id=document.agent_id,
    )


def _given_session(document: Document) -> str | None:
    """The session that was given; that of a chat log is the log itself."""
    return None if document.session_id == document.id else document.session_id


def _failure(document: Document, why: ReadFailure) -> FileOutcome:
    return FileOutcome(
        document.source,
        "failed",
        document_id=document.id,
        reason=f"{document.source}: {why.reason}",
        hint=why.hint,
        error=why.error,
    )


PASSAGE_COLUMNS = (
    "id", "document_id", "start", "end", "heading", "page", "row", "time_start", "time_end",
    "speaker", "created_at", "turn", "external_id", "type",
)  # fmt: skip


REDACTED = "redacted"
"""In the metadata of a document of which something was forgotten: its file has it still."""


def stored_parts(snapshot: Snapshot, document: Document) -> tuple[StoredPart, ...]:
    """Return the parts of a document, in order, with the passages that they were cut into."""
    from memctl.schema.arrow_tables import document_rows
    from memctl.store.tables.filter_expressions import col

    rows = snapshot.scan("documents", col("root_id") == document.root_id)
    parts = sorted(document_rows(rows), key=lambda part: part.part)
    ids = [part.id for part in parts]
    where = col("document_id").is_in(ids) & (col("level") == "evidence")
    found = snapshot.scan("memories", where, list(PASSAGE_COLUMNS)).to_pylist()
    stored: list[StoredPart] = []
    asked: AskedTurn | None = None
    for part in parts:
        own = [row for row in found if row["document_id"] == part.id]
        made = stored_part(part, own)
        stored.append(replace(made, text=replace(made.text, asked=asked)))
        if part.reader == SESSION_READER:
            asked = _asked_at_the_end(part.text, own, asked)
    return tuple(stored)


def _asked_at_the_end(
    text: str, rows: Sequence[Mapping[str, Any]], before: AskedTurn | None
) -> AskedTurn | None:
    """Return the message of a user that a part of a conversation ends with."""
    said = [
        row for row in rows if row["turn"] is not None and row["speaker"] not in BESIDE_THE_TALK
    ]
    if not said:
        return before
    last = max(row["turn"] for row in said)
    spoken = sorted((row for row in said if row["turn"] == last), key=lambda row: row["start"])
    if spoken[0]["speaker"] not in TRIGGERING:
        return None
    words = text[spoken[0]["start"] : spoken[-1]["end"]]
    ids = tuple(row["id"] for row in spoken)
    return AskedTurn(last, f"{spoken[0]['speaker']}: {words}", ids)


def stored_part(document: Document, rows: Sequence[Mapping[str, Any]]) -> StoredPart:
    """Return one part of a document as it was understood, by the ``PASSAGE_COLUMNS`` of it."""
    own = [row for row in rows if row["type"] != QUOTED]
    quotations = sorted((row["start"], row["end"]) for row in rows if row["type"] == QUOTED)
    ordered = sorted(own, key=lambda row: (row["start"], row["end"]))
    passages = tuple(
        _passage(row, document.created_at, is_said=document.reader == SESSION_READER)
        for row in ordered
    )
    text = replace(_stored_text(document, passages), quotations=tuple(quotations))
    return StoredPart(text, passages)


def _stored_text(document: Document, passages: Sequence[Passage]) -> SourceText:
    return SourceText(
        text=document.text,
        media_type=document.media_type,
        reader=document.reader,
        segments=tuple(_segments(passages)),
        title=document.title,
        authors=document.authors,
        created_at=None if _is_dated_by_file(document) else document.created_at,
        tags=document.tags,
        links=document.links,
        metadata=original_metadata(document.metadata),
        missing=tuple(what for what in document.missing if what not in BY_MODEL),
        part=document.part,
    )


def _passage(row: Mapping[str, Any], written: datetime, *, is_said: bool) -> Passage:
    return Passage(
        row["start"],
        row["end"],
        "prose" if row["turn"] is None else "turn",
        row["heading"],
        row["page"],
        row["row"],
        row["time_start"],
        row["time_end"],
        row["speaker"],
        None if row["created_at"] == written else row["created_at"],
        *((row["turn"], row["external_id"], row["type"]) if is_said else ()),
    )


def _segments(passages: Sequence[Passage]) -> list[Segment]:
    """The passages without what each repeats of the one before it."""
    found: list[Segment] = []
    reached = 0
    for passage in passages:
        start, reached = max(passage.start, reached), max(passage.end, reached)
        found.append(replace(passage, start=start, end=reached))
    return found


MOST_GENERATIONS = 64
"""At most this many versions under one key are tried to find which one a file is."""


class LostDocument(Struct, frozen=True):
    """A document of which rows are missing."""

    document_id: str
    """That of its first part."""
    source: Source | None = None
    """Where its file is; None where that is not known."""
    parts: tuple[str, ...] = ()
    """Ids of its parts of which memories are there, though they themselves are not."""


def documents_to_recover(
    store: Store, lost: Sequence[LostDocument]
) -> Iterator[WantedSource | FileOutcome]:
    """Return for each document where to read it, or a failed outcome.

    One that is still there itself is read as a reprocessing does, or from its own text where its
    file is another by now.
    """
    from memctl.schema.arrow_tables import document_rows

    snapshot = store.snapshot()
    rows = snapshot.get("documents", [each.document_id for each in lost])
    there = {document.id: document for document in document_rows(rows)}
    for each in lost:
        document = there.get(each.document_id)
        if document is None:
            yield _lost_from_file(each)
            continue
        place = str(each.source.path) if each.source is not None else None
        again = wanted_source(snapshot, document, place, upgrades=True)
        if isinstance(again, FileOutcome) and again.error == ChangedSource.__name__:
            again = from_stored_text(snapshot, document)
        yield replace(again, lost_parts=each.parts) if isinstance(again, WantedSource) else again


def _lost_from_file(lost: LostDocument) -> WantedSource | FileOutcome:
    if lost.source is None:
        reason = f"{lost.document_id}: there is no file of it"
        why = ReadFailure(reason, "ingest it again", FileNotFoundError.__name__)
        return failed_outcome(Source(lost.document_id), why)
    try:
        item = identify(lost.source)
    except Unreadable as error:
        return failed_outcome(lost.source, error.why)
    if not is_file_of(item, lost.document_id):
        reason = f"{display_path(lost.source.source)} has changed since"
        why = ReadFailure(reason, "ingest it as a newer version", ChangedSource.__name__)
        return failed_outcome(lost.source, why)
    parts = (lost.document_id, *lost.parts)
    return WantedSource(item, lost.document_id, redo=True, lost_parts=parts)


def is_file_of(item: IdentifiedSource, document: str) -> bool:
    """Return whether a document was made from this very content."""
    namespace = item.source.namespace
    made = (
        document_id(namespace, item.sha256, generation=number) for number in range(MOST_GENERATIONS)
    )
    return document in made
