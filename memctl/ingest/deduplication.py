"""Which sources are remembered already, and which are newer versions of something remembered."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from memctl.ids import document_id
from memctl.ingest.batches import (
    IdentifiedSource,
    WantedSource,
    exported_outcome,
    known_outcome,
)
from memctl.links.vault_files import INDEX_ID
from memctl.records import FileOutcome
from memctl.rows.supersession import LIVE_STATUSES

if TYPE_CHECKING:
    from memctl.store.store import Store
    from memctl.store.tables.filter_expressions import Expr
    from memctl.store.tables.snapshot import Snapshot

MOST_ADDED = 500_000
"""After this many new documents the store as it is then is what there was at first."""
_COLUMNS = ("id", "namespace", "external_id", "sha256", "status", "source")


class IngestClosed(Exception):
    """The ingest has ended while this thread was waiting for a commit."""


class StoredDocument(Struct, frozen=True):
    """A document in the store, by its root."""

    id: str
    sha256: str
    live: bool
    source: str


class Deferred(Struct, frozen=True):
    """A source that can be judged only when another one of this ingest has been dealt with."""

    item: IdentifiedSource


Verdict = WantedSource | FileOutcome | Deferred


class _Versions(Struct):
    """All that is stored under one key, and what the caller names as the earlier version."""

    found: list[StoredDocument] = field(default_factory=list)
    named: StoredDocument | None = None

    @property
    def live(self) -> StoredDocument | None:
        """The version that is valid, else the one that the source says it replaces."""
        return next((stored for stored in self.found if stored.live), self.named)


class Deduplicator:
    """Judges sources against the store and against what this ingest has not committed yet.

    The thread that prepares asks; the thread that writes reports what has been committed.  While
    no other process writes, what was there at first and what this ingest has added is all there
    is, so that the rows just added, which no index knows yet, are not searched again and again.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._changed = threading.Condition()
        self._pending: dict[str, tuple[str, str] | None] = {}
        self._names: set[str] = set()
        """Sources of what is on its way, the earlier versions of which are about to end."""
        self._closed = False
        self._first = store.snapshot()
        self._version = self._first.versions["documents"]
        self._added: set[str] = set()
        self._alone = True

    # --- what is on its way ---

    def note_begun(self, group: Iterable[WantedSource]) -> None:
        """Record sources that are being read; others under their keys wait for what comes of it."""
        with self._changed:
            for wanted in group:
                self._pending[wanted.item.key] = None
                self._names.add(wanted.item.source.source)

    def note_prepared(self, group: Iterable[WantedSource]) -> None:
        """Record documents that will be committed."""
        with self._changed:
            for wanted in group:
                self._pending[wanted.item.key] = (wanted.item.sha256, wanted.document_id)

    def note_committed(self, wanted: Iterable[WantedSource]) -> None:
        """Record that documents are in the store, or never will be."""
        with self._changed:
            for each in wanted:
                self._pending.pop(each.item.key, None)
                self._names.discard(each.item.source.source)
                self._added.add(each.item.key)
            self._changed.notify_all()

    def note_ended(self, keys: Iterable[str]) -> None:
        """Record documents that are in the store and are history now, by their keys."""
        with self._changed:
            self._added.update(keys)

    def is_alone(self, version: int) -> bool:
        """Return whether no other process has written documents since this ingest began.

        Args:
            version: That of the documents when the transaction began that is about to write.
        """
        with self._changed:
            self._alone = self._alone and version == self._version
            return self._alone

    def note_version(self, version: int) -> None:
        """Record the version of the documents that this ingest's own commit has made."""
        with self._changed:
            self._version = version
            if len(self._added) >= MOST_ADDED:
                first = self._store.snapshot()
                if first.versions["documents"] == version:
                    self._first, self._added = first, set()

    def note_upkeep(self, before: int, after: int) -> None:
        """Record that upkeep has brought the documents from one version to another."""
        with self._changed:
            if before == self._version:
                self._version = after

    def wait_for_commits(self) -> None:
        """Wait until all that was prepared is committed.

        Raises:
            IngestClosed: It never will be.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or not self._pending)
            if self._closed:
                raise IngestClosed

    def snapshot(self) -> Snapshot:
        """Return the store as it is now."""
        return self._store.snapshot()

    def close(self) -> None:
        """Release waiting threads."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    # --- judging ---

    def judge(self, items: Sequence[IdentifiedSource]) -> list[Verdict]:
        """Return for each source whether it is wanted, known, or has to wait for another one."""
        keys = [item.key for item in items]
        with self._changed:  # before the store is looked at, or a commit in between is missed
            pending = {key: self._pending[key] for key in keys if key in self._pending}
            names = set(self._names)
        versions = self._versions(items)
        exported = self._find_exported(items)
        verdicts: list[Verdict] = []
        taken: set[str] = set()
        for item in items:
            if item.copy_of in exported:
                verdicts.append(exported_outcome(item.source))
                continue
            if item.key in taken:
                verdicts.append(Deferred(item))
                continue
            verdict = (
                _while_pending(item, pending[item.key])
                if item.key in pending
                else _verdict(item, versions.get(item.key), names)
            )
            if not isinstance(verdict, FileOutcome):
                taken.add(item.key)  # what follows under this key is judged after it
            verdicts.append(verdict)
        return verdicts

    def _versions(self, items: Sequence[IdentifiedSource]) -> dict[str, _Versions]:
        """What is stored under each key; the first version has the key's own id."""
        keys = {item.key for item in items}
        with self._changed:
            first = self._first
            anew = keys & self._added if self._alone else keys
        versions = _stored_versions(first, [item for item in items if item.key not in anew])
        if anew:
            changed = [item for item in items if item.key in anew]
            versions |= _stored_versions(self._store.snapshot(), changed)
        if any(item.source.supersedes for item in items):
            _add_superseded(self._store.snapshot(), items, versions)
        if any(item.source.ends_namesake for item in items):
            _add_namesakes(self._store.snapshot(), items, versions)
        return versions

    def _find_exported(self, items: Sequence[IdentifiedSource]) -> set[str]:
        """Return what is still remembered of that from which some sources were exported."""
        ids = [item.copy_of for item in items if item.copy_of]
        if not ids:
            return set()
        snapshot = self._store.snapshot()
        documents = snapshot.get("documents", ids, ["id", "status"]).to_pylist()
        memories = snapshot.get("memories", ids, ["id", "valid_to"]).to_pylist()
        return {
            INDEX_ID,
            *(row["id"] for row in documents if row["status"] in LIVE_STATUSES),
            *(row["id"] for row in memories if row["valid_to"] is None),
        }


def _add_superseded(
    snapshot: Snapshot, items: Sequence[IdentifiedSource], versions: dict[str, _Versions]
) -> None:
    """Take the live documents that callers name as earlier versions under another key."""
    named = {item.source.supersedes: item.key for item in items if item.source.supersedes}
    for row in snapshot.get("documents", list(named), _COLUMNS).to_pylist():
        stored = _stored_document(row)
        if stored.live:
            versions.setdefault(named[stored.id], _Versions()).named = stored


def _add_namesakes(
    snapshot: Snapshot, items: Sequence[IdentifiedSource], versions: dict[str, _Versions]
) -> None:
    """Take the live documents that have the sources of units as earlier versions of these."""
    from memctl.store.tables.filter_expressions import col

    named = {
        (item.source.namespace, item.source.source): item.key
        for item in items
        if item.source.ends_namesake
    }
    where = col("source").is_in(sorted({source for _, source in named})) & (col("part") == 0)
    where &= col("status").is_in(LIVE_STATUSES) & col("external_id").is_null()
    if not snapshot.count("documents"):
        return
    for row in snapshot.scan("documents", where, _COLUMNS).to_pylist():
        if (key := named.get((row["namespace"], row["source"]))) is not None:
            versions.setdefault(key, _Versions()).named = _stored_document(row)


def _stored_versions(snapshot: Snapshot, items: Sequence[IdentifiedSource]) -> dict[str, _Versions]:
    """What a snapshot has under the keys of some sources."""
    if not items or not snapshot.count("documents"):
        return {}
    versions: dict[str, _Versions] = {}
    for row in snapshot.get("documents", [item.key for item in items], _COLUMNS).to_pylist():
        versions.setdefault(row["id"], _Versions()).found.append(_stored_document(row))
    several = [
        item for item in items if item.key in versions and _may_have_more(item, versions[item.key])
    ]
    return versions | _all_versions(snapshot, several)


def _while_pending(item: IdentifiedSource, pending: tuple[str, str] | None) -> Verdict:
    """What to say of a source while another one under its key is on its way."""
    if pending is None or pending[0] != item.sha256:
        return Deferred(item)
    return known_outcome(item.source, pending[1])


def _verdict(item: IdentifiedSource, versions: _Versions | None, names: Collection[str]) -> Verdict:
    """Return whether a source is wanted or known.

    A copy of a file that has changed itself, and is among the ``names`` on their way, has to wait:
    what it is a copy of may be history then.
    """
    if versions is None:
        return WantedSource(item, item.key)
    live, source = versions.live, item.source
    if live is not None and live.sha256 == item.sha256:
        is_leaving = live.source != source.source and live.source in names
        return Deferred(item) if is_leaving else known_outcome(source, live.id)
    new_id = document_id(
        source.namespace,
        item.sha256,
        external_id=source.external_id,
        generation=len(versions.found),
    )
    return WantedSource(item, new_id, replaces=live.id if live else None)


def _may_have_more(item: IdentifiedSource, versions: _Versions) -> bool:
    first = versions.found[0]
    return not first.live or first.sha256 != item.sha256


def _all_versions(snapshot: Snapshot, items: Sequence[IdentifiedSource]) -> dict[str, _Versions]:
    if not items:
        return {}
    versions: dict[str, _Versions] = {}
    for row in snapshot.scan("documents", _same_keys(items), _COLUMNS).to_pylist():
        base = document_id(row["namespace"], row["sha256"], external_id=row["external_id"])
        versions.setdefault(base, _Versions()).found.append(_stored_document(row))
    return versions


def _same_keys(items: Sequence[IdentifiedSource]) -> Expr:
    from memctl.store.tables.filter_expressions import NOTHING, col

    named = [x.source.external_id for x in items if x.source.external_id is not None]
    hashes = [x.sha256 for x in items if x.source.external_id is None]
    condition = NOTHING
    if named:
        condition = condition | col("external_id").is_in(named)
    if hashes:
        condition = condition | (col("sha256").is_in(hashes) & col("external_id").is_null())
    return condition & (col("part") == 0)


def _stored_document(row: dict[str, str]) -> StoredDocument:
    live = row["status"] in LIVE_STATUSES
    return StoredDocument(row["id"], row["sha256"], live, row["source"])
