"""Snapshots: commits that have a name and can be restored.

Making one copies no table.  It names versions, which no upkeep prunes while they have a name, and
keeps the few rows of the ledger that belong to them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from memctl.errors import DamagedError, DiskRefused, LockedError, NotFoundError, UsageError
from memctl.kb_settings import check_name
from memctl.schema.table_names import TableName
from memctl.store.ledger.ledger import HEAD
from memctl.store.ledger.version_repositories import SnapshotEntry
from memctl.store.locks import AS_SET, Wait
from memctl.store.store import (
    DIMENSION,
    EMBEDDER,
    EMBEDDER_SINCE,
    FORMER_DIMENSION,
    FORMER_EMBEDDER,
)
from memctl.store.tables.checksums import Verifier
from memctl.store.tables.engine import Datasets
from memctl.store.tables.inspection import damaged_files, version_entries
from memctl.store.tables.snapshot import Snapshot
from memctl.store.tables.snapshot_tags import write_tag
from memctl.store.tables.transaction import Transaction
from memctl.store.tables.upkeep import VECTOR_ROWS

if TYPE_CHECKING:
    import sqlite3

    from memctl.store.ledger.work_repositories import FileEntry
    from memctl.store.store import Store

_log = logging.getLogger(__name__)

Versions = Mapping[TableName, int]

_SNAPSHOT_SETTINGS = (EMBEDDER, DIMENSION, VECTOR_ROWS)
"""What the ledger knows of the tables themselves."""


class NamedSnapshot(Struct, frozen=True):
    """A snapshot as it is shown."""

    name: str
    created_at: datetime
    documents: int | None
    """Rows, those of earlier versions among them; None where they cannot be read any more."""
    memories: int | None
    own_bytes: int | None
    """Size on disk of the files that only this snapshot needs."""
    embedder: str
    """Id of the embedder that made its vectors."""
    problem: str = ""
    """Why it cannot be restored; empty where it can."""


class RestoreResult(Struct, frozen=True):
    """The result of restoring a snapshot."""

    name: str
    saved_as: str
    """The snapshot of the state before, to go back to."""
    documents: int
    memories: int
    forgotten_documents: int = 0
    forgotten_memories: int = 0
    """How many of its rows have been forgotten since, and are left out."""
    redacted: tuple[str, ...] = ()
    """Documents that stay as they are now, because words of them have been forgotten since."""


class ForgottenSince(Struct, frozen=True):
    """What has been forgotten since a snapshot was made, and does not come back with it."""

    documents: int = 0
    memories: int = 0
    redacted: tuple[str, ...] = ()


LeavesOut = Callable[[Transaction, Snapshot, SnapshotEntry], ForgottenSince]
"""Gets a transaction in which a snapshot is restored, the state before, and what is noted of the
snapshot; takes out what was forgotten since."""


class Snapshots:
    """The snapshots of one knowledge base.

    Args:
        store: Its tables and ledger.
        clock: What tells the time.
    """

    def __init__(self, store: Store, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._ledger = store.ledger
        self._clock = clock
        self._datasets = Datasets.of(store.folder)

    def create(self, name: str) -> NamedSnapshot:
        """Give the last commit a name, without waiting for a writer.

        Raises:
            UsageError: The name cannot be used, or is taken.
        """
        check_name(name, "a snapshot")
        self._ledger.require_in_place()
        with self._ledger.transaction():
            if self._ledger.snapshots.find(name) is not None:
                raise UsageError(f"snapshot {name!r} is there already", "choose another name")
            versions = self._ledger.head()
            self._name(name, versions)
        self._tag(name, versions)
        return self.get(name)

    def all(self) -> list[NamedSnapshot]:
        """Return every snapshot, the oldest first."""
        heads = self._ledger.heads()
        return [self._describe(e, heads) for e in self._ledger.snapshots.all() if e.name in heads]

    def get(self, name: str) -> NamedSnapshot:
        """Return the snapshot with a name.

        Raises:
            NotFoundError: There is none.
        """
        return self._describe(self._entry(name), self._ledger.heads())

    def read(self, name: str) -> Snapshot:
        """Return the tables as they were at a snapshot.

        Raises:
            NotFoundError: There is none of that name.
        """
        entry = self._entry(name)
        dimension = int(entry.pinned[DIMENSION])
        return Snapshot(self._datasets, self._ledger.head(name), dimension)

    def delete(self, name: str) -> int:
        """Delete a snapshot and the files that only it needed, unless they may still be read.

        Returns:
            How many bytes were freed at once; upkeep frees the rest.

        Raises:
            NotFoundError: There is none of that name.
        """
        self._entry(name)
        with self._ledger.transaction():
            self._ledger.forget_head(name)
            self._ledger.snapshots.remove(name)
        with suppress(LockedError):  # the process that writes can do it as well
            return self._store.prune(wait=0).bytes
        return 0

    def restore(self, name: str, leave_out: LeavesOut, wait: Wait = AS_SET) -> RestoreResult:
        """Restore a snapshot as a commit of its own; the present state gets a name first.

        Args:
            name: Of the snapshot, which stays.
            leave_out: Takes out what was forgotten since.
            wait: Seconds to wait for a writer, None for ever; by default as the store does.

        Raises:
            NotFoundError: There is none of that name.
            DamagedError: Files of it are missing or damaged; nothing has been changed.
            LockedError: Another process kept writing.
        """
        self._entry(name)
        verifier = Verifier(self._datasets, self._ledger, reads_rows=True)
        _require_none(verifier.damaged_files(self._ledger.head(name)), name)
        with self._store.write(wait) as transaction:
            entry = self._entry(name)  # it may have been deleted while this waited
            versions, before = self._ledger.head(name), transaction.versions
            _require_none(verifier.damaged_files(versions), name)
            saved, former = self.free_name("restore"), transaction.snapshot()
            transaction.restore(versions, int(entry.pinned[DIMENSION]))
            left_out = leave_out(transaction, former, entry)
            snapshot = transaction.snapshot()
            counts = snapshot.count("documents"), snapshot.count("memories")
            since = snapshot.versions["memories"]

            def give_back(_: sqlite3.Connection) -> None:
                """Name what was there before, and have the ledger say what belongs to this."""
                self._name(saved, before)
                self._ledger.snapshots.give_back(name)
                self._set_embedder(entry.pinned, since)

            transaction.ledger(give_back)
        self._store.switch_embedder()
        self._tag(saved, before)
        return RestoreResult(
            name, saved, *counts, left_out.documents, left_out.memories, left_out.redacted
        )

    def note_files(self, entries: Sequence[FileEntry]) -> None:
        """Record which files each snapshot knew, where the ledger that did is lost.

        Raises:
            DamagedError: Its documents cannot be read.
        """
        for name, versions in self._ledger.heads().items():
            if name != HEAD:
                documents = self._datasets.at("documents", versions["documents"])
                known = set(documents.to_table(columns=["id"])["id"].to_pylist())
                paths = [entry.path for entry in entries if entry.document_id in known]
                self._ledger.snapshots.note_files(name, paths)

    # --- inside ---

    def _entry(self, name: str) -> SnapshotEntry:
        entry = self._ledger.snapshots.find(name)
        if entry is None:
            known = ", ".join(item.name for item in self._ledger.snapshots.all())
            hint = f"there are {known}" if known else "make one: memctl snapshot create NAME"
            raise NotFoundError(f"no snapshot {name!r}", hint)
        return entry

    def _name(self, name: str, versions: Versions) -> None:
        values = {key: self._ledger.meta(key) for key in _SNAPSHOT_SETTINGS}
        known = {key: value for key, value in values.items() if value is not None}
        with self._ledger.transaction():
            self._ledger.name_head(name, versions)
            self._ledger.snapshots.add(name, self._clock(), known)

    def _set_embedder(self, settings: Mapping[str, str], since: int) -> None:
        """Record in the ledger which embedder the vectors are from, and which one before."""
        now = (self._ledger.meta(EMBEDDER), self._ledger.meta(DIMENSION))
        changes = {VECTOR_ROWS: "0"} | dict(settings)
        if now != (settings.get(EMBEDDER), settings[DIMENSION]):
            former = {FORMER_EMBEDDER: now[0] or "", FORMER_DIMENSION: now[1] or ""}
            changes |= former | {EMBEDDER_SINCE: str(since)}
        for key, value in changes.items():
            self._ledger.set_meta(key, value)

    def free_name(self, before: str) -> str:
        """Return a name for the state before something, such as ``restore``, happens now."""
        taken = {entry.name for entry in self._ledger.snapshots.all()}
        name = stem = f"before-{before}-{self._clock():%Y%m%d-%H%M%S}"
        number = 1
        while name in taken:
            number += 1
            name = f"{stem}-{number}"
        return name

    def _tag(self, name: str, versions: Versions) -> None:
        """Tag the versions, so that LanceDB's own tools do not prune them.

        The ledger has named the snapshot by then, so it exists without tags, too.
        """
        settings = self._entry(name).pinned
        try:
            for table, version in versions.items():
                write_tag(self._datasets, table, name, version, settings)
        except (DiskRefused, OSError) as error:
            _log.warning("snapshot %s has no tags, run `memctl doctor --repair`: %s", name, error)

    def _describe(self, entry: SnapshotEntry, heads: Mapping[str, Versions]) -> NamedSnapshot:
        embedder = entry.pinned.get(EMBEDDER, "")
        try:
            versions = heads[entry.name]
            files = self._files(versions)
            documents = self._datasets.at("documents", versions["documents"]).count_rows()
            memories = self._datasets.at("memories", versions["memories"]).count_rows()
            _require_none(damaged_files(self._datasets, versions), entry.name)
        except DamagedError as error:
            return NamedSnapshot(
                entry.name, entry.at, None, None, None, embedder, problem=error.message
            )
        others = {
            path
            for name in heads
            if name != entry.name
            for path in self._readable_files(heads[name])
        }
        own = sum(size for path, size in files.items() if path not in others)
        return NamedSnapshot(entry.name, entry.at, documents, memories, own, embedder)

    def _readable_files(self, versions: Versions) -> Mapping[str, int]:
        """Return the files of versions; none where they cannot be read."""
        try:
            return self._files(versions)
        except DamagedError:
            return {}

    def _files(self, versions: Versions) -> dict[str, int]:
        """Return the files that versions are made of, each with its size in bytes."""
        return {
            self._datasets.files(table).file_uri(path): size
            for table, version in versions.items()
            for path, size in version_entries(self._datasets.at(table, version))
        }


def _require_none(ids: Sequence[str], name: str) -> None:
    """Refuse a snapshot that has lost files.

    Raises:
        DamagedError: Some are.
    """
    if ids:
        raise DamagedError(
            f"{len(ids)} files of the snapshot {name!r} are missing or damaged, {ids[0]} first",
            "nothing has been changed; memctl snapshot list shows the others",
        )
