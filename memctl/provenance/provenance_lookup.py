"""All that is known of one file in one knowledge base, the latest first."""

from __future__ import annotations

import glob
import json
import os
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict, replace

from memctl.formatting import format_count
from memctl.ingest.discovery.inbox_scan import (
    ALLOW_READING_HINT,
    InboxFile,
    excluded_folders,
    scan_inbox,
)
from memctl.ingest.discovery.skip_rules import SKIP_REASONS_IN_WORDS, TOO_DEEP
from memctl.ingest.discovery.sources import path_of, printable
from memctl.ingest.file_units import UNREAD
from memctl.literals import LISTING_READER
from memctl.paths import display_path
from memctl.provenance.file_provenance import (
    ContentCounts,
    FileProvenance,
    FileReference,
    MemoryCounts,
)
from memctl.readers.file_kinds import UNIT_NAMES
from memctl.readers.media.subtitles import SIDECARS
from memctl.records import WRITTEN_OUTCOMES
from memctl.rows.supersession import is_next_version, lineage_of
from memctl.schema.table_names import WAITS_FOR
from memctl.store.locks import is_watched
from memctl.store.tables.filter_expressions import col

if TYPE_CHECKING:
    from datetime import datetime

    import pyarrow as pa

    from memctl.kb_settings import Inbox, KnowledgeBaseSettings, Layout
    from memctl.provenance.file_provenance import FileOutcomeKind
    from memctl.records import SkipReason
    from memctl.store.ledger.ledger import Ledger
    from memctl.store.ledger.log_repositories import ProvenanceEntry
    from memctl.store.ledger.work_repositories import FileEntry
    from memctl.store.store import Store
    from memctl.store.tables.snapshot import Snapshot

_COLUMNS = (
    "id", "root_id", "part", "source", "title", "status", "reader", "method", "pipeline_version",
    "ingested_at", "missing", "namespace", "metadata",
)  # fmt: skip


def file_provenance(
    layout: Layout, settings: KnowledgeBaseSettings, store: Store, file: str, now: datetime
) -> list[FileProvenance]:
    """Return what became of a file, the newest first.

    Args:
        layout: Where the knowledge base stands.
        settings: Its settings.
        store: Its tables and ledger.
        file: A path, or the last parts of one.
        now: The time.
    """
    reference = FileReference.of(file)
    entries = store.ledger.provenance.of(
        printable(reference.path), reference.name, reference.within(layout)
    )
    ids = {entry.document_id for entry in entries if entry.document_id}
    documents = DocumentOutcomes(layout, settings, store, ids, now)
    noted = _latest_counts(entries)
    return [
        *PendingFiles(layout, settings, store.ledger).receipts(reference),
        *(
            documents.complete(_provenance(layout, entry), noted.get(entry.document_id or ""))
            for entry in entries
        ),
        *documents.unnoted_files(reference),
    ]


def _latest_counts(entries: Sequence[ProvenanceEntry]) -> dict[str, int]:
    """Return how many memories were made of each document when it was read last."""
    return {
        entry.document_id or "": entry.memories
        for entry in reversed(entries)
        if entry.outcome in WRITTEN_OUTCOMES
    }


def _provenance(layout: Layout, entry: ProvenanceEntry) -> FileProvenance:
    place = layout.current_place(path_of(entry.place)) if entry.place else path_of(entry.path)
    is_there = place.is_file()
    return FileProvenance(
        layout.name,
        **asdict(entry)
        | {
            "memories": None,  # what became of them since belongs to the document
            "place": printable(place) if entry.place else "",
            "is_there": is_there,
            "retry": _retry(layout, entry, place) if entry.outcome == "failed" and is_there else "",
        },
    )


def _retry(layout: Layout, entry: ProvenanceEntry, place: Path) -> str:
    """Return the command that has a failed file tried again; one of an inbox goes back there."""
    if not entry.place:
        return f"memctl ingest {shlex.quote(printable(place))}"
    inbox = path_of(entry.path).parent
    back = inbox if inbox.is_dir() else layout.inbox
    return f"mv {shlex.quote(printable(place))} {shlex.quote(printable(back))}"


MAX_NAMES = 3
"""At most this many names are returned."""
_COMPARED = 20_000
"""At most this many are compared: comparing letter by letter takes its time."""
_SHORTEST_PART = 3


def similar_file_names(
    layout: Layout, settings: KnowledgeBaseSettings, store: Store, file: str
) -> list[str]:
    """Return names that are like that of a file, the most alike first.

    Names in private namespaces, or that may be in one, are left out.

    Args:
        layout: Where the knowledge base stands.
        settings: Its settings.
        store: Its tables and ledger.
        file: The name, or a path.
    """
    wanted = PurePath(file).name.casefold()
    names: dict[str, str] = {}
    for name in _names(layout, settings, store):
        last = PurePath(name).name
        names.setdefault(last.casefold(), last)
        if len(names) >= _COMPARED:
            break
    parts = [each for each in names if _is_part(wanted, each) or _is_part(each, wanted)]
    parts.sort(key=lambda each: abs(len(each) - len(wanted)))
    alike = get_close_matches(wanted, names, MAX_NAMES)
    return [names[each] for each in dict.fromkeys([*alike, *parts])][:MAX_NAMES]


def _is_part(one: str, other: str) -> bool:
    return len(one) >= _SHORTEST_PART and one in other


def _names(layout: Layout, settings: KnowledgeBaseSettings, store: Store) -> Iterator[str]:
    """Yield what lies in inboxes, what documents go by and, if nothing is private, all files."""
    for inbox in settings.inboxes:
        for file in scan_inbox(inbox.path, excluded_folders(layout, inbox.path)).files:
            yield printable(file.path)
    private = settings.private_namespaces
    if not private:
        yield from store.ledger.provenance.paths()
    for row in store.snapshot().each_row("documents", col("part") == 0, ["source", "namespace"]):
        if row["namespace"] not in private:
            yield row["source"]


_EVENTS = 1_000
_NO_WATCH = "no watch is running"
_BY_NAME = ("hidden", "unfinished", "system")
_NO_FILES = ("pipe", "socket", "device", "other")


class PendingFiles:
    """Tells of the files of one knowledge base that are on their way.

    Args:
        layout: Where it stands.
        settings: Its settings.
        ledger: What is going on in it.
    """

    def __init__(self, layout: Layout, settings: KnowledgeBaseSettings, ledger: Ledger) -> None:
        self._layout = layout
        self._settings = settings
        self._ledger = ledger

    def receipts(self, reference: FileReference) -> Iterator[FileProvenance]:
        """Yield what there is to tell of the files that may be meant."""
        for entry in self._ledger.files.entries(["claimed"]):
            path = Path(entry.path)
            if reference.matches(path):
                ends = {"seen_at": entry.first_seen, "claimed_at": entry.updated_at}
                place = self._claimed_place(path.name)
                yield self._receipt(path, "processing", hint=self._goes_on(), place=place, **ends)
        for inbox, path in reference.in_inboxes(self._layout, self._settings):
            if os.path.lexists(path) and (path.is_symlink() or not path.is_dir()):
                yield from self._in_inbox(inbox, path)

    def _claimed_place(self, name: str) -> str:
        """Return where a file of some name is while it is taken in; nothing if several may be it.

        Each has a folder of its own in ``processing/``.
        """
        places = list(self._layout.processing.glob(f"*/{glob.escape(name)}"))
        return printable(places[0]) if len(places) == 1 else ""

    def _goes_on(self) -> str:
        """Return a hint at who goes on with what a process that is gone has claimed."""
        return "" if is_watched(self._layout) else f"{_NO_WATCH}: {self._watch} takes it up again"

    @property
    def _watch(self) -> str:
        which = "" if self._settings.always_on else f" -k {self._layout.name}"
        return f"memctl watch{which}"

    def _in_inbox(self, inbox: Inbox, path: Path) -> Iterator[FileProvenance]:
        """Return what the watcher makes of a file, by scanning the inbox as it does."""
        left: dict[Path, SkipReason] = {}
        exclude = excluded_folders(self._layout, inbox.path)
        found = scan_inbox(inbox.path, exclude, towards=path, left=left.__setitem__)
        for place in (path, *path.parents):
            if place in left:
                yield self._skipped_receipt(path, place, left[place])
                return
        for file in found.files:
            if path in file.sidecars:
                yield self._sidecar(path, file.path)
            elif path == file.path:
                yield from self._file_receipts(inbox, file)
        if found.problems and path not in (file.path for file in found.files):
            reason = found.problems[0]
            what_to_do = "move it further up" if TOO_DEEP in reason else "allow it to be listed"
            hint = f"{what_to_do}; it is looked at again then"
            yield self._receipt(path, "waiting", reason=reason, hint=hint)

    def _skipped_receipt(self, path: Path, place: Path, reason: SkipReason) -> FileProvenance:
        what = "it" if place == path else f"its folder {display_path(printable(place))}"
        hint = _how_to_include(path, reason, "it" if place == path else "that folder")
        return self._receipt(
            path, "left", reason=f"{what} is {SKIP_REASONS_IN_WORDS[reason]}", hint=hint
        )

    def _sidecar(self, path: Path, owner: Path) -> FileProvenance:
        why: SkipReason = "subtitles" if path.suffix.lower() in SIDECARS else "log"
        reason = f"it is {SKIP_REASONS_IN_WORDS[why]}, {display_path(printable(owner.name))}"
        return self._receipt(path, "left", reason=reason, hint="memctl why tells of that one")

    def _file_receipts(self, inbox: Inbox, file: InboxFile) -> Iterator[FileProvenance]:
        row = self._ledger.files.find(str(file.path)) if inbox.after == "keep" else None
        if file.is_unchanged_since(row):
            return
        changed = "it has changed since it was read" if row else ""
        reason, hint, pid = self._why_waiting(file)
        yield self._receipt(
            file.path, "waiting", reason=reason or changed, hint=hint, watched_by=pid
        )

    def _why_waiting(self, file: InboxFile) -> tuple[str, str, int | None]:
        """Return why a file has not been taken yet, who will, and which process that is."""
        name, status = self._layout.name, self._settings.status
        if status != "active":
            return f"knowledge base {name!r} is {status}", f"memctl kb resume {name}", None
        if not is_watched(self._layout):
            return (*self._problem(file, f"{_NO_WATCH}: {self._watch} takes it in"), None)
        daemon = self._ledger.daemon.current()
        pid = daemon.pid if daemon else None
        who = f"process {pid}" if pid else "another process"
        if waits_for := self._ledger.meta(WAITS_FOR):
            hint = f"{who} watches its inbox, and goes on by itself when it can"
            return waits_for, hint, pid
        hint = f"{who} watches its inbox, and takes it once it stands still"
        return (*self._problem(file, hint), pid)

    def _problem(self, file: InboxFile, hint: str) -> tuple[str, str]:
        """What the watcher has, or would have, against a file as it is now, and what to do."""
        if file.obstacle:
            return file.obstacle, ALLOW_READING_HINT
        path = printable(file.path)
        for event in self._ledger.events.recent(_EVENTS):
            if event.subject == path and event.at.timestamp() * 1e9 > file.changed_ns:
                return event.message, event.hint or hint
        return "", hint

    def _receipt(self, path: Path, outcome: FileOutcomeKind, **values: Any) -> FileProvenance:
        is_there = outcome != "processing" or bool(values.get("place"))
        name = printable(path)
        tries = self._ledger.provenance.attempts(name)
        return FileProvenance(
            self._layout.name, name, outcome, is_there=is_there, tries=tries, **values
        )


def _how_to_include(path: Path, reason: SkipReason, what: str) -> str:
    """Return how to have a file remembered that an inbox skips for what it, or a folder, is."""
    name = shlex.quote(printable(path))
    if reason in _BY_NAME:
        return f"give {what} another name, or take it in as it is: memctl ingest {name}"
    if reason == "ignored":
        return f"change that rule, or take it in as it is: memctl ingest {name}"
    if reason == "link":
        return f"put what it leads to there, or take that in: memctl ingest {name}"
    return "put a regular file there" if reason in _NO_FILES else ""


class DocumentOutcomes:
    """The documents that files became, as they are now.

    Args:
        layout: Where the knowledge base stands.
        settings: Its settings.
        store: Its tables and ledger.
        ids: Of the documents.
        now: The time.
    """

    def __init__(
        self,
        layout: Layout,
        settings: KnowledgeBaseSettings,
        store: Store,
        ids: Iterable[str],
        now: datetime,
    ) -> None:
        self._layout = layout
        self._private = settings.private_namespaces
        self._files, self._usage = store.ledger.files, store.ledger.usage
        self._snapshot = store.snapshot()
        self._now = now
        self._found = self._read(sorted(ids))

    def complete(self, receipt: FileProvenance, first: int | None = None) -> FileProvenance:
        """Add to a receipt what is known of its document, if that is still there.

        Args:
            receipt: The receipt.
            first: How many memories were made of it; None where that was not noted.
        """
        id_ = receipt.document_id or ""
        found = self._found.get(id_)
        if found is None:
            return receipt
        made: MemoryTally = found["made"]
        return replace(
            receipt,
            document_status=found["status"],
            document_source=found["source"],
            title="" if found["namespace"] in self._private else found["title"] or "",
            understood_by=found["method"],
            missing=(*(found["missing"] or ()), *_unread_units(found)),
            models=found["models"],
            passages=made.level(id_, "evidence"),
            facts=made.level(id_, "memory"),
            content=replace(made.content(id_, found["metadata"]), holds=_units(found)),
            memories=made.memories(id_, first),
            same_as=self._place(id_, found["source"]) if receipt.outcome == "known" else "",
            reader=found["reader"] if receipt.outcome == "remembered" else receipt.reader,
        )

    def _place(self, id_: str, source: str) -> str:
        """Return where the file is that a document was made from, else what it goes by."""
        entry = self._files.of_documents([id_]).get(id_)
        return printable(self._layout.current_place(Path(entry.path))) if entry else source

    def unnoted_files(self, reference: FileReference) -> list[FileProvenance]:
        """Return the documents of a file whose reading was not noted, the newest first."""
        import pyarrow as pa
        import pyarrow.compute as pc

        names = self._snapshot.scan("documents", col("part") == 0, ["id", "source"])
        within = reference.within(self._layout).removeprefix(
            f"{self._layout.processed.name}{os.sep}"
        )
        meant = pa.array(
            [printable(reference.path), reference.name, within or reference.name], pa.string()
        )
        is_same = pc.or_(
            pc.is_in(names["source"], meant), pc.ends_with(names["source"], f"/{reference.name}")
        )
        ids = [id_ for id_ in names.filter(is_same)["id"].to_pylist() if id_ not in self._found]
        self._found |= self._read(ids)
        entries = self._files.of_documents(ids)
        found = [self._unnoted_receipt(id_, entries.get(id_)) for id_ in ids]
        found.sort(key=lambda receipt: str(receipt.decided_at), reverse=True)
        return [self.complete(receipt) for receipt in found]

    def _unnoted_receipt(self, id_: str, entry: FileEntry | None) -> FileProvenance:
        row = self._found[id_]
        place = self._layout.current_place(Path(entry.path)) if entry else path_of(row["source"])
        return FileProvenance(
            self._layout.name,
            row["source"],
            "remembered",
            decided_at=row["ingested_at"],
            pipeline_version=row["pipeline_version"],
            document_id=id_,
            place=printable(place) if entry else "",
            is_there=place.is_absolute() and place.is_file(),
        )

    def _read(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return documents by id, with what was made of them in all their parts."""
        if not ids:
            return {}
        parts = self._snapshot.scan("documents", col("root_id").is_in(ids), _COLUMNS).to_pylist()
        used = self._usage.of_documents(ids)
        made = MemoryTally(self._snapshot, {row["id"]: row["root_id"] for row in parts}, self._now)
        return {
            row["id"]: row | {"models": tuple(used.get(row["id"], ())), "made": made}
            for row in parts
            if row["id"] == row["root_id"]
        }


_MEMORY_COLUMNS = (
    "id", "document_id", "level", "type", "created_at", "version", "superseded_by", "expires_at",
    "page",
)  # fmt: skip

Row = Mapping[str, Any]


class MemoryTally:
    """The memories of some documents.

    Args:
        snapshot: Where they are.
        roots: The documents of each part, by the part's id.
        now: The time.
    """

    def __init__(self, snapshot: Snapshot, roots: Mapping[str, str], now: datetime) -> None:
        self._roots = roots
        self._now = now
        where = col("document_id").is_in(list(roots))
        table = snapshot.scan("memories", where, _MEMORY_COLUMNS)
        self._parts = Counter(roots.values())
        self._counts = self._count_memories(table)
        self._originals = self._counted_originals(table)
        self._last_pages = self._furthest(table)
        self._changed = self._histories(table)
        self._insights = self._insights_by_document(snapshot, table)

    def level(self, root: str, level: str) -> int:
        """Return how many memories of a level a document has."""
        return sum(number for (at, _), number in self._counts[root].items() if at == level)

    def content(self, root: str, metadata: str | None) -> ContentCounts:
        """Return how much of a document there was to read.

        Args:
            root: Its id.
            metadata: What else its reader found, as JSON.
        """
        found = json.loads(metadata or "{}")
        length, listed = found.get("duration"), found.get("attachments")
        return ContentCounts(
            parts=self._parts[root],
            pages=self._last_pages.get(root),
            seconds=float(length) if isinstance(length, (int, float)) else None,
            attachments=tuple(_attachment_names(listed if isinstance(listed, list) else [])),
        )

    def memories(self, root: str, noted: int | None) -> MemoryCounts:
        """Return what was made of a document.

        Args:
            root: Its id.
            noted: How many memories were made of it; None where that was not noted.
        """
        types: Counter[str] = Counter()
        for (_, type_), number in sorted(self._counts[root].items()):
            types[type_] += number
        heads = self._changed[root]
        ends = [row["expires_at"] for row in heads if row["expires_at"] is not None]
        return MemoryCounts(
            types={type_: number for type_, number in types.items() if number},
            edited=sum(row["version"] > 1 for row in heads),
            superseded=sum(row["superseded_by"] is not None for row in heads),
            expired=sum(end <= self._now for end in ends),
            gone=max(0, (noted or 0) - self._originals[root]),
            insights=self._insights[root],
        )

    # --- inside ---

    def _count_memories(self, table: pa.Table) -> defaultdict[str, Counter[tuple[str, str]]]:
        """Count by level and type, of a memory that was edited its newest version alone."""
        found: defaultdict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        groups = table.group_by(["document_id", "level", "type"]).aggregate([("id", "count")])
        for row in groups.to_pylist():
            found[self._roots[row["document_id"]]][row["level"], row["type"]] += row["id_count"]
        for row in self._former(table):
            found[self._roots[row["document_id"]]][row["level"], row["type"]] -= 1
        return found

    def _counted_originals(self, table: pa.Table) -> Counter[str]:
        import pyarrow.compute as pc

        first = table.filter(pc.equal(table["version"], 1))["document_id"]
        groups = first.value_counts().to_pylist()
        found: Counter[str] = Counter()
        for group in groups:
            found[self._roots[group["values"]]] += group["counts"]
        return found

    def _furthest(self, table: pa.Table) -> dict[str, int]:
        """Return the last page of each document that has pages."""
        found: dict[str, int] = {}
        for group in table.group_by("document_id").aggregate([("page", "max")]).to_pylist():
            if (page := group["page_max"]) is not None:
                root = self._roots[group["document_id"]]
                found[root] = max(page, found.get(root, 0))
        return found

    def _histories(self, table: pa.Table) -> defaultdict[str, list[Row]]:
        """Return the memories that something has happened to, but for former versions."""
        former = {row["id"] for row in self._former(table)}
        found: defaultdict[str, list[Row]] = defaultdict(list)
        for row in _rows_with_history(table):
            if row["id"] not in former:
                found[self._roots[row["document_id"]]].append(row)
        return found

    def _former(self, table: pa.Table) -> list[Row]:
        """Return the versions of memories that a later one was made out of."""
        rows = {row["id"]: row for row in _rows_with_history(table)}
        return [
            row
            for row in rows.values()
            if (later := rows.get(row["superseded_by"] or "")) is not None
            and is_next_version(lineage_of(row), lineage_of(later))
        ]

    def _insights_by_document(self, snapshot: Snapshot, table: pa.Table) -> Counter[str]:
        """Count the insights that hold and rest on memories of each document."""
        import pyarrow.compute as pc

        where = (col("level") == "insight") & col("valid_to").is_null()
        found: Counter[str] = Counter()
        for batch in snapshot.batches("memories", where, ["source_ids"]):
            sources = batch.column("source_ids")
            flat = pc.list_flatten(sources)
            parents = pc.list_parent_indices(sources)
            at = pc.index_in(flat, value_set=table["id"].combine_chunks())
            of = table["document_id"].combine_chunks().take(at).to_pylist()
            pairs = zip(parents.to_pylist(), of, strict=True)
            found.update(root for _, root in {(n, self._roots[id_]) for n, id_ in pairs if id_})
        return found


def _rows_with_history(table: pa.Table) -> Sequence[Row]:
    """Return the memories that have a history, or an end."""
    import pyarrow.compute as pc

    is_touched = pc.or_(
        pc.greater(table["version"], 1),
        pc.or_(pc.is_valid(table["superseded_by"]), pc.is_valid(table["expires_at"])),
    )
    rows: list[Row] = table.filter(is_touched).to_pylist()
    return rows


def _units(found: Mapping[str, Any]) -> dict[str, int]:
    """Return how many units of a file of many are remembered, by what they are called."""
    if found["reader"] != LISTING_READER:
        return {}
    metadata = json.loads(found["metadata"] or "{}")
    return {name: metadata[name] for name in UNIT_NAMES if name in metadata}


def _unread_units(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield how many units of a file of many could not be read."""
    for name in _units(found):
        if unread := json.loads(found["metadata"]).get(UNREAD):
            yield format_count(unread, name.removesuffix("s"))


def _attachment_names(attachments: Iterable[Any]) -> Iterator[str]:
    for each in attachments:
        if isinstance(each, Mapping) and each.get("name"):
            yield str(each["name"])
