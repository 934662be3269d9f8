"""The ledger's book of inbox files made anew, from the files that lie in ``processed/``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from memctl.doctor.findings import counted
from memctl.doctor.rows import Agreement
from memctl.files import modified_ns
from memctl.ids import root_id
from memctl.ingest.inbox import folder_tags
from memctl.ingest.reading import Unreadable, identify
from memctl.ingest.sources import Source, printable, walk
from memctl.knowledge_base import KnowledgeBase
from memctl.pinned import Layout
from memctl.records import FileOutcome
from memctl.store.books import FileEntry
from memctl.store.repair import FILES_UNKNOWN, Step
from memctl.store.snapshots import Snapshots


def source_of(layout: Layout, entry: FileEntry) -> Source | None:
    """Return a file that was ingested as the source that it was; None where it is gone."""
    path = layout.found_here(Path(entry.path))
    if not path.is_file():
        return None
    if path.is_relative_to(layout.processed):
        relative = path.relative_to(layout.processed)
        name = printable(relative.as_posix())
    else:  # of an inbox whose files stay
        inbox = Path(entry.inbox)
        relative = path.relative_to(inbox) if path.is_relative_to(inbox) else Path(path.name)
        name = printable(path)
    return Source(name, path, name=path.name, tags=folder_tags(relative))


def repair_books(
    base: KnowledgeBase, layout: Layout, now: datetime, *, is_whole: bool
) -> Iterator[Step]:
    """Write down what lies in ``processed/``, where the ledger was made anew and knows nothing.

    Where no document can have been lost, one that has left no trace was deleted by hand: its file
    is noted as one that became nothing, so that it is not read again.

    Args:
        base: The knowledge base.
        layout: Where its files are; a copy of it to try things on has none of its own.
        now: The time.
        is_whole: Whether all rows of its documents could be read.
    """
    ledger = base.store.ledger
    if ledger.meta(FILES_UNKNOWN) != "1":
        return
    entries = list(_entries(layout, now))
    agreement = Agreement(base.store.snapshot())
    unknown = agreement.unknown(entries)
    traces = {root_id(id_) for id_ in agreement.orphans()}
    deleted = {e.path for e in unknown if is_whole and e.document_id not in traces}
    kept = [replace(e, document_id=None) if e.path in deleted else e for e in entries]
    with ledger.transaction():
        for entry in kept:
            ledger.files.put(entry)
        Snapshots(base.store, base.clock).note_files(entries)
        ledger.set_meta(FILES_UNKNOWN, "0")
    if entries:
        yield Step("ledger", f"wrote down {counted(len(entries), 'file')} found in processed/")
    if deleted:
        told = f"{counted(len(deleted), 'file')} in processed/ without a document"
        yield Step("ledger", f"left {told} as deleted; memctl ingest FILE takes one in again")
    elif unknown and not is_whole:
        told = "documents are missing, and nothing says any more which of them you had deleted"
        yield Step("ledger", f"{told}: all that lie in processed/ are read again")


def _entries(layout: Layout, now: datetime) -> Iterator[FileEntry]:
    """Yield what a watcher would have written of each file, without knowing when."""
    for path in walk(layout.processed):
        if isinstance(path, FileOutcome):
            continue
        status = path.stat()
        size, changed = status.st_size, modified_ns(status)
        entry = FileEntry(str(path), str(layout.inbox), size, changed, "done", now, now)
        source = source_of(layout, entry)
        try:
            key = identify(source).key if source is not None else None
        except Unreadable:
            continue
        yield replace(entry, document_id=key)
