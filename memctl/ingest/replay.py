"""Documents that damage has taken are read again from their files, under the ids that they had."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memctl.errors import ChangedSource
from memctl.ids import document_id
from memctl.ingest.batch import Identified, NotRead, Wanted, failed_outcome
from memctl.ingest.reading import Unreadable, identify
from memctl.ingest.reprocess import from_memory, wanted
from memctl.ingest.sources import Source
from memctl.paths import shown
from memctl.records import FileOutcome

if TYPE_CHECKING:
    from memctl.store.store import Store

MOST_GENERATIONS = 64
"""So many versions under one key are tried to tell which one a file is."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A document of which rows are missing."""

    document_id: str
    """That of its first part."""
    source: Source | None = None
    """Where its file is; None where that is not known."""
    parts: tuple[str, ...] = ()
    """Ids of its parts of which memories are there, though they themselves are not."""


def wanted_back(store: Store, lost: Sequence[Lost]) -> Iterator[Wanted | FileOutcome]:
    """Say of each document where to read it; a failed outcome where that cannot be.

    One that is still there itself is read as a reprocessing does, or from its own text where its
    file is another by now.
    """
    from memctl.store.schema import document_rows

    snapshot = store.snapshot()
    rows = snapshot.get("documents", [each.document_id for each in lost])
    there = {document.id: document for document in document_rows(rows)}
    for each in lost:
        document = there.get(each.document_id)
        if document is None:
            yield _from_file(each)
            continue
        place = str(each.source.path) if each.source is not None else None
        again = wanted(snapshot, document, place, upgrades=True)
        if isinstance(again, FileOutcome) and again.error == ChangedSource.__name__:
            again = from_memory(snapshot, document)
        yield replace(again, lost_parts=each.parts) if isinstance(again, Wanted) else again


def _from_file(lost: Lost) -> Wanted | FileOutcome:
    if lost.source is None:
        reason = f"{lost.document_id}: there is no file of it"
        why = NotRead(reason, "ingest it again", FileNotFoundError.__name__)
        return failed_outcome(Source(lost.document_id), why)
    try:
        item = identify(lost.source)
    except Unreadable as error:
        return failed_outcome(lost.source, NotRead(error.reason, error.hint, error.error))
    if not is_file_of(item, lost.document_id):
        reason = f"{shown(lost.source.source)} has changed since"
        why = NotRead(reason, "ingest it as a newer version", ChangedSource.__name__)
        return failed_outcome(lost.source, why)
    parts = (lost.document_id, *lost.parts)
    return Wanted(item, lost.document_id, redo=True, lost_parts=parts)


def is_file_of(item: Identified, document: str) -> bool:
    """Tell whether a document was made from this very content."""
    namespace = item.source.namespace
    made = (
        document_id(namespace, item.sha256, generation=number) for number in range(MOST_GENERATIONS)
    )
    return document in made
