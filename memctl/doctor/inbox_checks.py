"""Files on their way: those in ``processing/`` and in ``failed/``, against the ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from msgspec.structs import replace

from memctl.doctor.findings import Examination, Finding, ok, warning
from memctl.doctor.row_checks import CrossReferences
from memctl.files import modified_ns
from memctl.formatting import format_count
from memctl.ids import root_id
from memctl.ingest.discovery.inbox_scan import folder_tags
from memctl.ingest.discovery.sources import Source, printable, sidecars_among, walk
from memctl.ingest.source_reading import Unreadable, identify
from memctl.kb_settings import REASON_SUFFIX, Layout, reason_path
from memctl.knowledge_base import KnowledgeBase
from memctl.records import FileOutcome
from memctl.store.ledger.work_repositories import FileEntry
from memctl.store.locks import is_watched
from memctl.store.snapshots import Snapshots
from memctl.store.store_repair import FILES_UNKNOWN, Step
from memctl.watch.claims import claim_name
from memctl.watch.reporter import polled_folders


def check_inboxes(examination: Examination) -> Iterator[Finding]:
    """Look for files that no process works on, and for failed ones that do not say why."""
    yield from _check_processing(examination)
    yield from _check_failed(examination)
    yield from _check_events(examination)


def _check_processing(examination: Examination) -> Iterator[Finding]:
    folder = examination.layout.processing
    claimed = {
        claim_name(entry.path) for entry in examination.ledger.files.entries(["claimed", "indexed"])
    }
    there = sorted(folder.iterdir()) if folder.is_dir() else []
    unclaimed = [path for path in there if path.name.partition("-")[0] not in claimed]
    if is_watched(examination.layout):
        yield ok("inbox", "processing", f"{format_count(len(there), 'file')} being taken in")
    elif unclaimed:
        amount = f"{format_count(len(unclaimed), 'file')} that no process has claimed"
        hint = "memctl watch takes them in"
        yield warning("inbox", "processing", f"{amount}: {printable(unclaimed[0].name)}", hint)
    elif there:
        amount = f"{format_count(len(there), 'file')} claimed by a process that is gone"
        yield warning("inbox", "processing", amount, "memctl watch takes them in")
    else:
        yield ok("inbox", "processing", "empty")


def _check_events(examination: Examination) -> Iterator[Finding]:
    """Report folders that the watcher only scans from time to time."""
    polled = polled_folders(examination.ledger) if is_watched(examination.layout) else ()
    for each in polled:
        hint = "sysctl fs.inotify shows the limits; what they forbid is tried again by itself"
        yield (
            warning("inbox", "events", each, hint)
            if "limit" in each
            else ok("inbox", "events", each)
        )


def _check_failed(examination: Examination) -> Iterator[Finding]:
    folder = examination.layout.failed
    files = [
        path
        for path in (sorted(folder.rglob("*")) if folder.is_dir() else [])
        if path.is_file() and not path.name.endswith(REASON_SUFFIX)
    ]
    silent = [path for path in files if not reason_path(path).exists()]
    folders: dict[Path, list[Path]] = defaultdict(list)
    for path in files:
        folders[path.parent].append(path)
    beside = {path.parent for path in silent}  # what goes with another file has none
    sidecars = frozenset[Path]().union(*(sidecars_among(folders[each]) for each in beside))
    silent = [path for path in silent if path not in sidecars]
    if silent:
        message = (
            f"{format_count(len(silent), 'file')} without a reason: {printable(silent[0].name)}"
        )
        yield warning("inbox", "failed", message, "move them back into the inbox to try again")
    else:
        yield ok("inbox", "failed", f"{format_count(len(files), 'file')}, each with its reason")


def inbox_source(layout: Layout, entry: FileEntry) -> Source | None:
    """Return a file that was ingested as the source that it was; None where it is gone."""
    path = layout.current_place(Path(entry.path))
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


def repair_file_entries(
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
    agreement = CrossReferences(base.store.snapshot())
    unknown = agreement.unknown(entries)
    traces = {root_id(id_) for id_ in agreement.orphans()}
    deleted = {e.path for e in unknown if is_whole and e.document_id not in traces}
    repaired = [replace(e, document_id=None) if e.path in deleted else e for e in entries]
    with ledger.transaction():
        for entry in repaired:
            ledger.files.save(entry)
        Snapshots(base.store, base.clock).note_files(entries)
        ledger.set_meta(FILES_UNKNOWN, "0")
    if entries:
        yield Step("ledger", f"wrote down {format_count(len(entries), 'file')} found in processed/")
    if deleted:
        message = f"{format_count(len(deleted), 'file')} in processed/ without a document"
        yield Step("ledger", f"left {message} as deleted; memctl ingest FILE takes one in again")
    elif unknown and not is_whole:
        message = "documents are missing, and nothing says any more which of them you had deleted"
        yield Step("ledger", f"{message}: all that lie in processed/ are read again")


def _entries(layout: Layout, now: datetime) -> Iterator[FileEntry]:
    """Yield what a watcher would have written of each file, without knowing when."""
    for path in walk(layout.processed):
        if isinstance(path, FileOutcome):
            continue
        status = path.stat()
        size, changed = status.st_size, modified_ns(status)
        entry = FileEntry(str(path), str(layout.inbox), size, changed, "done", now, now)
        source = inbox_source(layout, entry)
        try:
            key = identify(source).key if source is not None else None
        except Unreadable:
            continue
        yield replace(entry, document_id=key)
