"""Forgetting: what is to go is taken out of the tables, the ledger, the files and the history.

The commit that takes it out of the tables notes in the ledger what is still to be done; killed at
any instant, nothing has happened yet, or the next run does the rest.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memctl.errors import LockedError, NotFoundError
from memctl.files import open_regular
from memctl.ingest.sources import printable
from memctl.memories.forgetting import Plan, Selection, carry_out, plan
from memctl.pinned import reason_path
from memctl.readers.sidecars import by_recording
from memctl.store.books import Job
from memctl.store.erasing import Erased, erase
from memctl.store.filters import col
from memctl.store.names import FORGET
from memctl.store.shelf import drop_shelves, shelving
from memctl.store.snapshots import Snapshots
from memctl.store.traces import Trace, is_too_short, traces

if TYPE_CHECKING:
    import sqlite3

    from memctl.models.protocols import Embedder
    from memctl.pinned import Layout
    from memctl.store.snapshot import Snapshot
    from memctl.store.store import Store

__all__ = ["ForgetReport", "Forgetter", "Left", "Selection"]

SNAPSHOTS = "snapshots"
"""Whether every snapshot was to go too, in the detail of a job."""
_ATTEMPTS = 50
_PAUSE = 0.2
"""Seconds between attempts to empty the ledger's log, which readers may hold for an instant."""
_READ = "another process may be reading an earlier state"
_AGAIN = "when that has ended, run memctl forget to complete it"


@dataclass(frozen=True, slots=True)
class Left:
    """A place where some of what was to be forgotten still is."""

    place: str
    why: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """What was forgotten, or would be."""

    kb: str
    documents: int = 0
    memories: int = 0
    """Insights among them."""
    insights: int = 0
    redacted: tuple[str, ...] = ()
    """Documents that stay and have lost some of their text."""
    files: tuple[str, ...] = ()
    """Files below the knowledge base's folder that are gone."""
    yours: tuple[str, ...] = ()
    """Files elsewhere, or in an inbox that keeps its files, that are left alone."""
    snapshots: tuple[str, ...] = ()
    """Snapshots that were deleted; in a dry run, those that would have to be."""
    bytes_freed: int = 0
    left: tuple[Left, ...] = ()
    too_short: int = 0
    """So many texts were looked for in tables and the ledger alone: other bytes have something
    so short by chance."""
    completed: int = 0
    """Interrupted runs before this one that were completed by it."""
    dry_run: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Sources:
    """The sources of documents that go, or lose some of their text."""

    hashes: frozenset[str]
    sizes: frozenset[int]
    names: frozenset[str]
    """What they go by."""
    ids: frozenset[str]


@dataclass(slots=True)
class _Done:
    """What has come of the steps after the commit."""

    files: list[str] = field(default_factory=list)
    snapshots: list[str] = field(default_factory=list)
    bytes_freed: int = 0
    left: list[Left] = field(default_factory=list)
    too_short: int = 0


class Forgetter:
    """Forgets in one knowledge base.

    Args:
        layout: Where it stands.
        store: Its tables and ledger.
        embedder: Gives the embedder; called only where passages stay without some of their words.
        clock: What tells the time.
    """

    def __init__(
        self,
        layout: Layout,
        store: Store,
        embedder: Callable[[], Embedder],
        clock: Callable[[], datetime],
    ) -> None:
        self._layout = layout
        self._store = store
        self._embedder = embedder
        self._clock = clock
        self._snapshots = Snapshots(store, clock)

    def preview(self, selection: Selection) -> ForgetReport:
        """Say what would go, without changing anything.

        Raises:
            NotFoundError: There is nothing of the kind.
        """
        snapshot = self._store.snapshot()
        made = _planned(snapshot, selection)
        sources = _sources(snapshot, made)
        names = tuple(item.name for item in self._snapshots.all())
        files = tuple(printable(path) for path in self._copies(sources))
        return self._report(made, files, self._yours(sources), names, dry_run=True)

    def run(self, selection: Selection | None, *, snapshots: bool = False) -> ForgetReport:
        """Forget, and complete what was interrupted before.

        Args:
            selection: What; None only to complete.
            snapshots: Whether to delete every snapshot too, for each may hold it.

        Raises:
            NotFoundError: There is nothing of the kind.
            LockedError: Another process kept writing; nothing is forgotten, or the next run
                completes it.
        """
        began = time.monotonic()
        pending = self.pending()
        report = ForgetReport(self._layout.name)
        if selection is not None:
            report, job = self._begin(selection, snapshots=snapshots)
            pending = [*pending, job]
        done = self._complete(pending, snapshots=snapshots)
        return ForgetReport(
            kb=report.kb,
            documents=report.documents,
            memories=report.memories,
            insights=report.insights,
            redacted=report.redacted,
            files=tuple(done.files),
            yours=report.yours,
            snapshots=tuple(done.snapshots),
            bytes_freed=done.bytes_freed,
            left=tuple(done.left),
            too_short=done.too_short,
            completed=len(pending) - (selection is not None),
            seconds=time.monotonic() - began,
        )

    def pending(self) -> list[Job]:
        """Return the runs that have begun and are not complete."""
        return self._store.ledger.jobs.unfinished(FORGET)

    # --- the commit ---

    def _begin(self, selection: Selection, *, snapshots: bool) -> tuple[ForgetReport, Job]:
        """Take it out of the tables and the ledger, and note what is to be done after that."""
        ledger = self._store.ledger
        with self._store.write() as transaction:
            before = transaction.snapshot()
            made = _planned(before, selection)
            sources = _sources(before, made)
            report = self._report(made, (), self._yours(sources), ())
            names = carry_out(transaction, made, self._embedder)
            erased = Erased(made.parts, frozenset(made.memories), names, sources.names, made.says)

            def forget(connection: sqlite3.Connection) -> None:
                """Strike it from the ledger, and note the job in the same step."""
                erase(connection, erased)
                detail = _detail(made, sources) | {SNAPSHOTS: snapshots}
                ledger.jobs.start(FORGET, self._clock(), detail)

            transaction.ledger(forget)
        (job,) = ledger.jobs.recent(1, FORGET)
        return report, job

    def _report(
        self,
        made: Plan,
        files: tuple[str, ...],
        yours: Iterable[str],
        snapshots: tuple[str, ...],
        *,
        dry_run: bool = False,
    ) -> ForgetReport:
        return ForgetReport(
            kb=self._layout.name,
            documents=len(made.roots),
            memories=len(made.memories),
            insights=made.insights,
            redacted=tuple(made.redacted),
            files=files,
            yours=tuple(yours),
            snapshots=snapshots,
            dry_run=dry_run,
        )

    # --- after it ---

    def _complete(self, jobs: Sequence[Job], *, snapshots: bool) -> _Done:
        """Remove what the tables do not have any more from all other places, and look for it."""
        done = _Done()
        for job in jobs:
            self._remove_files(_sources_of(job.detail), done)
        self._drop_vectors(done)
        if snapshots or any(job.detail.get(SNAPSHOTS) for job in jobs):
            for each in self._snapshots.all():
                done.bytes_freed += self._snapshots.delete(each.name)
                done.snapshots.append(each.name)
        purged = self._store.purge()
        done.bytes_freed += purged.bytes
        if purged.held:
            done.left.append(Left("lance", _READ, _AGAIN))
        is_complete = not done.left
        if is_complete:
            self._forget_texts(jobs)
        self._clean_ledger(done)
        if is_complete and not done.left:
            for job in jobs:
                self._store.ledger.jobs.finish(job.id, "done", self._clock())
        for job in jobs:
            texts, is_names = job.detail.get("texts", ()), job.detail.get("is_names", False)
            done.too_short += sum(map(is_too_short, texts))
            for trace in traces(self._store, texts, whole_words=is_names):
                if is_complete or not trace.place.startswith("ledger.sqlite"):
                    done.left.append(_left(trace))
        return done

    def _forget_texts(self, jobs: Iterable[Job]) -> None:
        """Strike what runs are about, which only the search after this needs."""
        for job in jobs:
            counts = {"documents": len(job.detail.get("hashes", ()))}
            self._store.ledger.jobs.note(job.id, counts)

    def _drop_vectors(self, done: _Done) -> None:
        """Remove the vectors of former embedders, some of which are of what is forgotten."""
        if not (self._layout.folder / "vectors").is_dir():
            return
        try:
            with shelving(self._layout.folder):
                done.bytes_freed += drop_shelves(self._layout.folder)
        except LockedError as error:
            done.left.append(Left("vectors", error.message, _AGAIN))

    def _clean_ledger(self, done: _Done) -> None:
        for attempt in range(_ATTEMPTS):
            try:
                if self._store.ledger.rewrite():
                    return
            except LockedError:
                pass
            if attempt < _ATTEMPTS - 1:
                time.sleep(_PAUSE)
        why = "another process is using it all the time, so its log could not be emptied"
        done.left.append(Left("ledger.sqlite-wal", why, "stop that, then run memctl forget"))

    # --- files ---

    def _remove_files(self, sources: _Sources, done: _Done) -> None:
        for path in self._copies(sources):
            path.unlink(missing_ok=True)
            done.files.append(printable(path))
            self._store.ledger.files.remove(str(path))

    def _copies(self, sources: _Sources) -> list[Path]:
        """Return the files in processed/ and failed/ with the bytes of the documents.

        One that another document was made from, as in another namespace, is not among them.
        """
        entries = self._store.ledger.files.entries(["done"])
        others = {e.path for e in entries if e.document_id and e.document_id not in sources.ids}
        found: list[Path] = []
        for folder in (self._layout.processed, self._layout.failed):
            for path in sorted(folder.rglob("*")):
                if str(path) not in others and _is_copy(path, sources):
                    beside = [each for each in path.parent.iterdir() if each.is_file()]
                    reason = reason_path(path)
                    found += [path, *by_recording(beside).get(path, ())]
                    found += [reason] if reason in beside else []
        return list(dict.fromkeys(found))

    def _yours(self, sources: _Sources) -> list[str]:
        """Return files that somebody else owns: given as paths, or kept in inboxes."""
        ours = (self._layout.processed, self._layout.failed, self._layout.processing)
        entries = self._store.ledger.files.entries(["done"])
        kept = [Path(entry.path) for entry in entries if entry.document_id in sources.ids]
        given = [Path(name) for name in sources.names if Path(name).is_absolute()]
        return sorted(
            {
                printable(path)
                for path in (*kept, *given)
                if path.is_file() and set(ours).isdisjoint(path.parents)
            }
        )


def _planned(snapshot: Snapshot, selection: Selection) -> Plan:
    made = plan(snapshot, selection)
    if made.is_empty:
        raise NotFoundError(
            "there is nothing of the kind to forget", "memctl document list shows what there is"
        )
    return made


def _sources(snapshot: Snapshot, made: Plan) -> _Sources:
    ids = sorted({*made.roots, *made.redacted})
    where = col("root_id").is_in(ids) & (col("part") == 0)
    rows = snapshot.scan("documents", where, ["id", "sha256", "size", "source"]).to_pylist()
    return _Sources(
        frozenset(row["sha256"] for row in rows),
        frozenset(row["size"] for row in rows),
        frozenset(row["source"] for row in rows),
        frozenset(row["id"] for row in rows),
    )


def _detail(made: Plan, sources: _Sources) -> dict[str, Any]:
    return {
        "texts": list(made.texts),
        "is_names": made.is_names,
        "hashes": sorted(sources.hashes),
        "sizes": sorted(sources.sizes),
        "ids": sorted(sources.ids),
    }


def _sources_of(detail: Mapping[str, Any]) -> _Sources:
    hashes, sizes, ids = (frozenset(detail.get(key, ())) for key in ("hashes", "sizes", "ids"))
    return _Sources(hashes, sizes, frozenset(), ids)


def _is_copy(path: Path, sources: _Sources) -> bool:
    if path.is_symlink() or not path.is_file() or path.stat().st_size not in sources.sizes:
        return False
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest() in sources.hashes


def _left(trace: Trace) -> Left:
    """Say why a text is still somewhere, and what to do about it."""
    if trace.snapshots:
        names = ", ".join(trace.snapshots)
        return Left(trace.place, f"the snapshot {names} has it", "add --snapshots to delete those")
    if trace.ids and trace.is_present:
        named = ", ".join(trace.ids)
        return Left(trace.place, f"others say it too: {named}", "forget those as well, if need be")
    if trace.ids:
        return Left(trace.place, _READ, _AGAIN)
    return Left(trace.place, "the file has it", "it belongs to something else, or is yours")
