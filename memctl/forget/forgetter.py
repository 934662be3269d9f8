"""Taking out of the tables, the ledger, the files and the history what is to be forgotten.

The commit that takes it out of the tables notes in the ledger what is still to be done; killed at
any instant, nothing has happened yet, or the next run or the next writer does the rest.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from memctl.errors import LockedError, MemctlError, NotFoundError, UsageError
from memctl.forget.erasure_plan import (
    ErasedRows,
    ErasurePlan,
    Selection,
    carry_out_erasure,
    drop_names,
    known_selection,
    plan_erasure,
    resolve_selection,
    search_pieces,
    search_sentences,
)
from memctl.forget.leftover_scan import (
    Leftover,
    find_leftovers,
    rows_of_any_version,
    texts_in_closed_namespaces,
    texts_in_other_sources,
)
from memctl.forget.leftovers import (
    RUN_AGAIN,
    STILL_READ,
    ForgetReport,
    Leftovers,
    RemainingPlace,
    kept_damaged_ledgers,
)
from memctl.forget.search_patterns import SearchPattern
from memctl.forget.source_copies import ErasedSources, SourceCopies
from memctl.forget.text_blocking import rows_naming
from memctl.ids import root_id
from memctl.ingest.discovery.sources import printable
from memctl.locking import hold_lock
from memctl.memories.reembedding import embedded_texts
from memctl.rows.references import in_portions
from memctl.rows.row_lifecycle import erase_rows, replace_rows
from memctl.rows.supersession import reinstate_without
from memctl.schema.arrow_tables import VECTOR, vector_array
from memctl.schema.declarations import OF_NAMESPACES
from memctl.schema.table_names import FORGET, TABLES, TableName
from memctl.store.file_caches import drop_vector_caches, lock_vector_caches
from memctl.store.ledger.content_tables import (
    ContentScope,
    ContentSelection,
    ErasedContent,
    has_content,
    words_beyond,
    words_of_content,
)
from memctl.store.ledger.ledger_erasure import (
    Erasure,
    erase_from_ledger,
    has_older_entries,
    preview_erasure,
)
from memctl.store.ledger.repository import from_text, to_text
from memctl.store.ledger.work_repositories import Job
from memctl.store.snapshots import ForgottenSince, Snapshots
from memctl.store.store import LEDGER_FILE
from memctl.store.tables.filter_expressions import Expr, col
from memctl.store.tables.snapshot import ScopedSnapshot, namespaces_of
from memctl.store.tables.storage import TABLES_FOLDER

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.kb_settings import Layout
    from memctl.models.protocols import Embedder
    from memctl.store.ledger.decision_repositories import ForgottenRepository
    from memctl.store.ledger.ledger import Ledger
    from memctl.store.ledger.repository import LedgerConnection
    from memctl.store.store import Store
    from memctl.store.tables.snapshot import Snapshot
    from memctl.store.tables.transaction import Transaction

SNAPSHOTS = "snapshots"
"""Whether every snapshot was to go too, in the detail of a job."""
IS_CONVERSATION = "is_conversation"
"""Whether others may say the same, and keep it, in the detail of a job."""
BY_NAME = "by_name"
"""Whether files go by what they are called, in the detail of a job."""
TRIED = "forget_tried"
"""Where the ledger keeps when a run came to its end that left something for later."""
PAUSE = timedelta(minutes=5)
"""For this long after a try, only ``memctl forget`` completes what is left."""
_WAIT_SECONDS = 30.0
_ATTEMPTS = 50
_PAUSE = 0.2
"""Seconds between attempts to empty the ledger's log, which readers may hold for an instant."""
_log = logging.getLogger(__name__)


class _CleanupResult(Struct):
    """What the steps after the commit have removed and found."""

    files: list[str] = field(default_factory=list)
    snapshots: list[str] = field(default_factory=list)
    bytes_freed: int = 0
    left: list[RemainingPlace] = field(default_factory=list)
    elsewhere: int = 0
    too_short: int = 0

    def combined_with(self, report: ForgetReport, completed: int) -> ForgetReport:
        """Return a report with this, and with how many runs before it were completed."""
        return replace(
            report,
            files=tuple(self.files),
            snapshots=tuple(self.snapshots),
            bytes_freed=self.bytes_freed,
            left=tuple(self.left),
            elsewhere=self.elsewhere,
            too_short=self.too_short,
            completed=completed,
        )


class _ErasureScope(Struct, frozen=True):
    """What is to be removed, and where it is from."""

    plan: ErasurePlan
    """Of what is known now."""
    sources: ErasedSources
    """Of what snapshots know besides, too."""
    texts: tuple[str, ...]
    """What is looked for afterwards; what only snapshots have is among it."""
    gone: frozenset[str]
    """Ids of the documents that go whole, and of memories, of all those states; of snapshots, of
    entities and relations too."""
    blocked: tuple[str, ...]
    """Documents that lose some of their words, of all those states."""
    before: datetime | None
    """What the ledger has of before that goes too."""
    content: ContentSelection
    """What the ledger has of users and agents that goes whatever it says."""
    beyond: tuple[SearchPattern, ...] = ()
    """What of it others have stored, where a user is named who may not touch that."""

    @property
    def is_conversation(self) -> bool:
        """Whether it is what was said in a conversation, not something known from any source."""
        return self.content.session is not None


class ForgetScope(Struct, frozen=True):
    """What one user may forget: what is in namespaces that are open to them."""

    user: str
    sees: Callable[[str], bool]
    """Whether a namespace is among them."""


class Forgetter:
    """Forgets in one knowledge base.

    Args:
        layout: Where it stands.
        store: Its tables and ledger.
        embedder: Gives the embedder; called only where passages stay without some of their words.
        clock: What tells the time.
        reach: What the user may forget who is named; None where no user is.
    """

    def __init__(
        self,
        layout: Layout,
        store: Store,
        embedder: Callable[[], Embedder],
        clock: Callable[[], datetime],
        reach: ForgetScope | None = None,
    ) -> None:
        self._reach = reach
        self._layout = layout
        self._store = store
        self._embedder = embedder
        self._clock = clock
        self._snapshots = Snapshots(store, clock)
        self._copies = SourceCopies(layout, store.ledger)

    def preview(self, selection: Selection) -> ForgetReport:
        """Return what would go, without changing anything.

        Raises:
            NotFoundError: There is nothing of the kind.
        """
        now = self._store.snapshot()
        found = self._plan(now, selection)
        names = tuple(item.name for item in self._snapshots.all())
        files = tuple(printable(path) for path in self._copies.of(found.sources))
        user_files = tuple(self._copies.files_of_user(found.sources))
        others = self._said_in_other_sources(now, found)
        erased = self._erasure(found, ErasedRows(frozenset(), frozenset()), others)
        content = preview_erasure(self._store.ledger, erased)
        report = self._report(found.plan, user_files, content)
        return replace(report, files=files, snapshots=names, dry_run=True)

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
        with self._exclusive(_WAIT_SECONDS):
            pending = self.pending()
            report = ForgetReport(self._layout.name)
            if selection is not None:
                report, job = self._begin(selection, snapshots=snapshots)
                pending = [*pending, job]
            done = self._complete(pending, snapshots=snapshots)
        report = done.combined_with(report, len(pending) - (selection is not None))
        return replace(report, seconds=time.monotonic() - began)

    def complete(self) -> ForgetReport | None:
        """Complete what was cut off, before the next write.

        Returns:
            What came of it; None if there is nothing to do, another process does it, or a try
            a moment ago had to leave something.
        """
        if not self.pending() or not self._is_due():
            return None
        try:
            with self._exclusive(0):
                pending = self.pending()
                done = self._complete(pending, snapshots=False)
        except (MemctlError, OSError) as error:  # it is tried again; the writer may go on
            _log.warning("a forget that was cut off could not be completed: %s", error)
            self._note_try()
            return None
        return done.combined_with(ForgetReport(self._layout.name), len(pending))

    def pending(self) -> list[Job]:
        """Return the runs that have begun and are not complete."""
        return self._store.ledger.jobs.unfinished_jobs(FORGET)

    @contextmanager
    def _exclusive(self, wait: float) -> Iterator[None]:
        """Keep out others who forget; the kernel lets go of the lock when this process is killed.

        Raises:
            LockedError: Another process is forgetting.
            DiskRefused: The lock cannot be had.
        """
        held = LockedError("another process is forgetting", "wait for it to finish")
        with hold_lock(self._layout.forget_lock, wait, lambda: held):
            yield

    def _is_due(self) -> bool:
        tried = self._store.ledger.meta(TRIED)
        ago = self._clock() - from_text(tried) if tried else PAUSE
        return not timedelta(0) <= ago < PAUSE  # no waiting for a clock that was ahead

    def _note_try(self) -> None:
        with suppress(MemctlError):  # the disk may be what fails
            self._store.ledger.set_meta(TRIED, to_text(self._clock()))

    # --- finding out ---

    def _plan(self, now: Snapshot, selection: Selection) -> _ErasureScope:
        """Return what is to be removed, and what of it only snapshots have.

        Raises:
            NotFoundError: There is nothing of the kind.
            UsageError: A name has no letter.
        """
        if not all(map(str.strip, selection.entities)):
            raise UsageError("a name is empty", "say which name")
        ledger, scope, whole = self._store.ledger, self._scope(), now
        now = self._limit_scope(now)
        read = (self._snapshots.read(entry.name) for entry in self._snapshots.all())
        snapshots = [self._limit_scope(each) for each in read]
        deleted = self._find_deleted(selection) if selection.documents else []
        selection = resolve_selection([now, *snapshots], selection, deleted)
        plan = plan_erasure(now, known_selection(now, selection))
        sources, texts = _sources(now, plan), dict.fromkeys(plan.texts)
        gone, blocked = {*plan.parts, *plan.memories}, {*plan.redacted}
        for snapshot in snapshots:
            earlier = plan_erasure(snapshot, known_selection(snapshot, selection))
            sources |= _sources(snapshot, earlier)
            texts |= dict.fromkeys(earlier.texts)
            gone.update(earlier.parts, earlier.memories, _naming(snapshot, earlier))
            blocked.update(earlier.redacted)
        lost = sorted(set(map(root_id, selection.documents)) - sources.ids)
        found = DeletedDocuments.of(self._store, self._copies, lost)
        sources |= found.sources
        texts |= dict.fromkeys(found.texts)
        gone.update(lost, found.memories)
        content = ContentSelection(selection.session, selection.namespace, selection.before, scope)
        texts |= dict.fromkeys(search_sentences(words_of_content(ledger, content)))
        search_patterns = tuple(SearchPattern(text, is_name=plan.is_names) for text in texts)
        is_narrowed = scope or selection.namespace is not None or selection.session is not None
        before = None if is_narrowed else selection.before
        files = self._copies.older(before) if before else frozenset()
        sources = replace(
            sources, search_patterns=search_patterns, files=files, by_name=scope is None
        )
        beyond = self._stored_by_others(whole, search_patterns)
        own = [each for each in search_patterns if each not in beyond]
        if not (
            plan.memories
            or sources.ids
            or files
            or any(find_leftovers(self._store, own))
            or has_content(ledger, content)
            or (before and has_older_entries(ledger, before))
        ):
            raise _nothing_found_error(selection)
        return _ErasureScope(
            plan,
            sources,
            tuple(texts),
            frozenset(gone),
            tuple(sorted(blocked)),
            before,
            content,
            tuple(beyond),
        )

    def sees(self, namespace: str) -> bool:
        """Return whether what is in a namespace may be forgotten."""
        return self._reach is None or self._reach.sees(namespace)

    def _scope(self) -> ContentScope | None:
        """Return the rows of the ledger that the user may forget; None for all."""
        reach = self._reach
        if reach is None:
            return None
        return ContentScope.of(self._store.ledger, reach.user, reach.sees)

    def _hidden(self, snapshot: Snapshot) -> frozenset[str]:
        """Return the namespaces that are not the user's to forget."""
        if self._reach is None:
            return frozenset()
        return frozenset(n for n in namespaces_of(snapshot) if not self.sees(n))

    def _limit_scope(self, snapshot: Snapshot) -> Snapshot:
        """Return the tables without what is not the user's to forget."""
        hidden = self._hidden(snapshot)
        return ScopedSnapshot(snapshot, hidden) if hidden else snapshot

    def _stored_by_others(
        self, snapshot: Snapshot, search_patterns: Sequence[SearchPattern]
    ) -> list[SearchPattern]:
        """Return what of a text others have stored too, where a user is named: it stays theirs."""
        scope = self._scope()
        if scope is None:
            return []
        words = words_beyond(self._store.ledger, scope)
        return texts_in_closed_namespaces(snapshot, words, self._hidden(snapshot), search_patterns)

    def _find_deleted(self, selection: Selection) -> list[str]:
        """Return documents that were deleted by hand, of which the user may know."""
        deleted = deleted_documents(self._store.ledger)
        if self._reach is None:
            return deleted
        given = sorted({root_id(id_) for id_ in selection.documents}.intersection(deleted))
        if not given:
            return []
        of_them = col("root_id").is_in(given)
        rows = rows_of_any_version(self._store, "documents", of_them, ["root_id", "namespace"])
        return [row["root_id"] for row in rows if self.sees(row["namespace"])]

    # --- the commit ---

    def _begin(self, selection: Selection, *, snapshots: bool) -> tuple[ForgetReport, Job]:
        """Take it out of the tables and the ledger, and note what is to be done after that."""
        ledger = self._store.ledger
        with self._store.write() as transaction:
            found = self._plan(transaction.snapshot(), selection)
            user_files = tuple(self._copies.files_of_user(found.sources))
            gone = carry_out_erasure(transaction, found.plan, self._embedder)
            others = self._said_in_other_sources(transaction.snapshot(), found)
            erased = self._erasure(found, gone, others)
            content = ErasedContent()

            def forget(connection: LedgerConnection) -> None:
                """Strike it from the ledger, and note the job in the same step."""
                nonlocal content
                content = erase_from_ledger(connection, erased)
                detail = _detail(found) | {SNAPSHOTS: snapshots}
                ledger.jobs.start(FORGET, self._clock(), detail)

            transaction.ledger(forget)
        (job,) = ledger.jobs.recent(1, FORGET)
        return self._report(found.plan, user_files, content), job

    def _said_in_other_sources(
        self, snapshot: Snapshot, found: _ErasureScope
    ) -> list[SearchPattern]:
        """Return what other sources say as well as the conversation that goes; it is theirs."""
        if not found.is_conversation:
            return []
        gone = found.content
        turns = (
            turn
            for turn in self._store.ledger.turns.all()
            if turn.session_id != gone.session or gone.namespace not in (None, turn.namespace)
        )
        return texts_in_other_sources(snapshot, turns, found.sources.search_patterns, found.gone)

    def _erasure(
        self, found: _ErasureScope, gone: ErasedRows, others: Sequence[SearchPattern]
    ) -> Erasure:
        folder, plan = str(self._layout.folder), found.plan
        search_patterns = [each for each in found.sources.search_patterns if each not in others]
        own = [each for each in search_patterns if each not in found.beyond]

        def is_in(text: str, patterns: Sequence[SearchPattern]) -> bool:
            """Return whether a text has it, elsewhere than in where everything stands."""
            rest = text.replace(folder, "")
            return any(each.is_in(rest) for each in patterns)

        def without(text: str) -> str:
            """Return a text with blocks in place of it."""
            return folder.join(map(plan.without, text.split(folder)))

        return Erasure(
            found.gone,
            found.gone | gone.answers,
            found.blocked,
            gone.names,
            found.sources.names,
            lambda text: is_in(text, own),
            lambda text: is_in(text, search_patterns),
            without if plan.is_names else None,
            found.before,
            found.content,
        )

    def _report(
        self, plan: ErasurePlan, user_files: tuple[str, ...], content: ErasedContent
    ) -> ForgetReport:
        return ForgetReport(
            kb=self._layout.name,
            documents=len(plan.roots),
            memories=len(plan.memories),
            insights=plan.insights,
            redacted=tuple(plan.redacted),
            yours=user_files,
            pools=content.pools,
            pool_keys=content.pool_keys,
            skills=content.skills,
            entries=content.rows,
        )

    # --- after it ---

    def _complete(self, jobs: Sequence[Job], *, snapshots: bool) -> _CleanupResult:
        """Remove what the tables do not have any more from all other places, and look for it."""
        done = _CleanupResult()
        for job in jobs:
            done.files += map(printable, self._copies.remove(_sources_of(job.detail)))
        self._drop_vectors(done)
        if snapshots or any(job.detail.get(SNAPSHOTS) for job in jobs):
            for each in self._snapshots.all():
                done.bytes_freed += self._snapshots.delete(each.name)
                done.snapshots.append(each.name)
        purged = self._store.purge()
        done.bytes_freed += purged.bytes
        if purged.held:
            done.left.append(RemainingPlace(TABLES_FOLDER, STILL_READ, RUN_AGAIN))
        is_complete = not done.left
        if is_complete:
            self._forget_texts(jobs)
        self._clean_ledger(done)
        if is_complete and not done.left:
            for job in jobs:
                self._store.ledger.jobs.finish(job.id, "done", self._clock())
        else:
            self._note_try()
        for job in jobs:
            self._search(job, done, is_complete=is_complete)
        listed = {left.place for left in done.left}
        done.left += [
            left for left in kept_damaged_ledgers(self._layout) if jobs and left.place not in listed
        ]
        return done

    def _search(self, job: Job, done: _CleanupResult, *, is_complete: bool) -> None:
        """Look for what a run was about in everything that is left."""
        search_patterns = _sources_of(job.detail).search_patterns
        done.too_short += sum(each.is_too_short for each in search_patterns)
        present = self._store.snapshot()
        hidden, is_conversation = self._hidden(present), bool(job.detail.get(IS_CONVERSATION))
        sees = self._reach.sees if self._reach else None
        leftovers = Leftovers(
            self._layout, self._store, self._limit_scope(present), search_patterns, sees
        )
        others = self._stored_by_others(present, search_patterns)
        if is_conversation:
            turns = self._store.ledger.turns.all()
            theirs = texts_in_other_sources(present, turns, search_patterns)
            others += [each for each in theirs if each not in others]
        done.elsewhere += sum(not each.holds_any(others) for each in others)
        own = [each for each in search_patterns if each not in others]
        for trace in find_leftovers(self._store, own, hidden):
            if is_complete or not trace.place.startswith(LEDGER_FILE):  # it is what is to be done
                done.left.append(leftovers.of(trace))

        def is_reported(trace: Leftover) -> bool:
            """Return whether a trace of what others say too is of what the user may forget."""
            if self._reach is None:
                return leftovers.is_of_snapshot(trace)  # which may have been taken before it went
            is_row = trace.place in OF_NAMESPACES and bool(trace.ids)
            return is_row and (bool(trace.snapshots) or not is_conversation)

        if others and (self._reach or self._snapshots.all()):
            listed = {(left.place, left.why) for left in done.left}
            traces = filter(is_reported, find_leftovers(self._store, others, hidden))
            found = map(leftovers.of, traces)
            done.left += [left for left in found if (left.place, left.why) not in listed]

    def _forget_texts(self, jobs: Iterable[Job]) -> None:
        """Strike what runs are about, which only the search after this needs."""
        for job in jobs:
            counts = {"documents": len(job.detail.get("hashes", ()))}
            self._store.ledger.jobs.note(job.id, counts)

    def _drop_vectors(self, done: _CleanupResult) -> None:
        """Remove the vectors of former embedders, some of which are of what is forgotten."""
        if not (self._layout.folder / "vectors").is_dir():
            return
        try:
            with lock_vector_caches(self._layout.folder):
                done.bytes_freed += drop_vector_caches(self._layout.folder)
        except LockedError as error:
            done.left.append(RemainingPlace("vectors", error.message, RUN_AGAIN))

    def _clean_ledger(self, done: _CleanupResult) -> None:
        for attempt in range(_ATTEMPTS):
            try:
                if self._store.ledger.rewrite():
                    return
            except LockedError:
                pass
            if attempt < _ATTEMPTS - 1:
                time.sleep(_PAUSE)
        why = "another process is using it all the time, so its log could not be emptied"
        done.left.append(RemainingPlace(f"{LEDGER_FILE}-wal", why, RUN_AGAIN))


def _nothing_found_error(selection: Selection) -> NotFoundError:
    if selection.entities:
        names = ", ".join(map(repr, selection.entities))
        return NotFoundError(f"nothing names {names}", "memctl graph show lists names")
    hint = "memctl document list shows what there is"
    return NotFoundError("there is nothing of the kind to forget", hint)


def _naming(snapshot: Snapshot, plan: ErasurePlan) -> Iterator[str]:
    """Yield the ids of what the graph of a snapshot has of the words that documents lose."""
    graph = set(TABLES).difference(("documents", "memories"))
    if plan.hidden:
        graph.discard("entities")  # another's rows may name them
    for table in graph if plan.patterns else ():
        yield from rows_naming(snapshot, table, plan.patterns, plan.hidden)


def _sources(snapshot: Snapshot, plan: ErasurePlan) -> ErasedSources:
    ids = sorted({*plan.roots, *plan.redacted, *plan.files})
    where = col("root_id").is_in(ids) & (col("part") == 0)
    rows = snapshot.scan("documents", where, ["id", "sha256", "size", "source"]).to_pylist()
    return ErasedSources(
        frozenset(row["sha256"] for row in rows),
        frozenset(row["size"] for row in rows),
        frozenset(row["source"] for row in rows),
        frozenset(row["id"] for row in rows),
    )


def _detail(found: _ErasureScope) -> dict[str, Any]:
    return {
        "texts": list(found.texts),
        "is_names": found.plan.is_names,
        IS_CONVERSATION: found.is_conversation,
        "hashes": sorted(found.sources.hashes),
        "sizes": sorted(found.sources.sizes),
        "ids": sorted(found.sources.ids),
        "files": sorted(found.sources.files),
        BY_NAME: found.sources.by_name,
    }


def _sources_of(detail: Mapping[str, Any]) -> ErasedSources:
    keys = ("hashes", "sizes", "ids", "files")
    hashes, sizes, ids, files = (frozenset(detail.get(key, ())) for key in keys)
    is_name = detail.get("is_names", False)
    search_patterns = tuple(
        SearchPattern(text, is_name=is_name) for text in detail.get("texts", ())
    )
    by_name = detail.get(BY_NAME, True)
    return ErasedSources(hashes, sizes, frozenset(), ids, search_patterns, files, by_name)


# --- a restored snapshot brings nothing back that was forgotten since -----------------------------

_COLUMNS = ("text", "summary", "source", "sha256", "size")


def deleted_documents(ledger: Ledger) -> list[str]:
    """Return the ids of documents that were deleted by hand, first parts alone."""
    return sorted(id_ for id_ in ledger.deletions.ids() if id_.startswith("d_") and "." not in id_)


class DeletedDocuments(Struct, frozen=True):
    """What is known of documents that were deleted."""

    sources: ErasedSources = field(default_factory=ErasedSources)
    texts: tuple[str, ...] = ()
    """Pieces of what they said."""
    memories: frozenset[str] = frozenset()
    """What was made of them."""

    @classmethod
    def of(cls, store: Store, copies: SourceCopies, ids: Sequence[str]) -> DeletedDocuments:
        """Find it out.

        Args:
            store: Has what earlier versions of its tables know of them, and their receipts.
            copies: The files of the knowledge base.
            ids: The documents, by their first parts.
        """
        if not ids:
            return cls()
        rows = rows_of_any_version(store, "documents", col("root_id").is_in(ids), _COLUMNS)
        of_them = col("document_id").is_in([row["id"] for row in rows])
        memories = rows_of_any_version(store, "memories", of_them, ["text"])
        kept = copies.content_of(store.ledger.provenance.places_of(ids))
        sources = ErasedSources(
            frozenset(row["sha256"] for row in rows) | kept.keys(),
            frozenset(row["size"] for row in rows) | frozenset(kept.values()),
            frozenset(row["source"] for row in rows),
            frozenset(ids),
        )
        said = [row[column] or "" for row in rows for column in ("text", "summary")]
        said += [row["text"] for row in memories]
        return cls(sources, tuple(search_pieces(said)), frozenset(row["id"] for row in memories))


def erase_forgotten(
    transaction: Transaction,
    now: Snapshot,
    forgotten: ForgottenRepository,
    embedder: Callable[[], Embedder] | None,
) -> ForgottenSince:
    """Take out of a snapshot that is being restored what was forgotten since.

    Documents that have lost some of their words stay as they are now, or away.

    Args:
        transaction: In which it is being restored.
        now: The state before.
        forgotten: Says what was forgotten.
        embedder: Gives what the snapshot's vectors are from; None where those of now are, too.

    Raises:
        ModelError: Vectors of what stays as it is cannot be made.
    """
    documents = memories = 0
    for ids in in_portions(sorted(forgotten.gone_ids())):
        first = col("id").is_in(ids) & (col("part") == 0)
        documents += transaction.snapshot().count("documents", first)
        for table in TABLES:
            there = transaction.snapshot().get(table, ids, ["id"])["id"].to_pylist()
            erased = erase_rows(transaction, table, there, drop_orphans=False)
            memories += erased.counts.get("memories", 0)
    redacted: list[str] = []
    for ids in in_portions(sorted(forgotten.blocked_ids())):
        first = col("id").is_in(ids) & (col("part") == 0)
        roots = sorted(transaction.snapshot().scan("documents", first, ["id"])["id"].to_pylist())
        _keep(transaction, now, roots, embedder)
        redacted += roots
    if documents or memories or redacted:
        drop_names(transaction)
    return ForgottenSince(documents, memories, tuple(redacted))


def _keep(
    transaction: Transaction,
    now: Snapshot,
    roots: Sequence[str],
    embedder: Callable[[], Embedder] | None,
) -> None:
    """Have documents, and what was made of them, be what they are now."""
    then = transaction.snapshot()
    of_documents = col("root_id").is_in(roots)
    documents, had = now.scan("documents", of_documents), _ids(then, "documents", of_documents)
    of_them = col("document_id").is_in(sorted({*documents["id"].to_pylist(), *had}))
    memories, had_memories = now.scan("memories", of_them), _ids(then, "memories", of_them)
    replace_rows(transaction, "documents", had, documents)
    if embedder is not None:
        memories = _with_vectors_of(memories, embedder())
    replace_rows(transaction, "memories", had_memories, memories)
    successors = {id_ for id_ in memories["superseded_by"].to_pylist() if id_ is not None}
    there = transaction.snapshot().get("memories", sorted(successors), ["id"])["id"].to_pylist()
    reinstate_without(transaction, sorted(successors.difference(there)))


def _ids(snapshot: Snapshot, table: TableName, where: Expr) -> list[str]:
    ids: list[str] = snapshot.scan(table, where, ["id"])["id"].to_pylist()
    return ids


def _with_vectors_of(memories: pa.Table, embedder: Embedder) -> pa.Table:
    """Return memories with vectors of another embedder."""
    vectors = vector_array(embedder.embed(embedded_texts(memories)))
    return memories.set_column(memories.schema.get_field_index(VECTOR), VECTOR, vectors)
