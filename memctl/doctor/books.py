"""The ledger's book of inbox files made anew, from the files that lie in ``processed/``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from memctl.doctor.findings import counted
from memctl.files import modified_ns
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


def repair_books(base: KnowledgeBase, layout: Layout, now: datetime) -> Iterator[Step]:
    """Write down what lies in ``processed/``, where the ledger was made anew and knows nothing.

    Args:
        base: The knowledge base.
        layout: Where its files are; a copy of it to try things on has none of its own.
        now: The time.
    """
    ledger = base.store.ledger
    if ledger.meta(FILES_UNKNOWN) != "1":
        return
    entries = list(_entries(layout, now))
    with ledger.transaction():
        for entry in entries:
            ledger.files.put(entry)
        Snapshots(base.store, base.clock).note_files(entries)
        ledger.set_meta(FILES_UNKNOWN, "0")
    if entries:
        yield Step("ledger", f"wrote down {counted(len(entries), 'file')} found in processed/")


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
