"""The ledger: what is going on in a knowledge base, and which table versions count (HEAD).

SQLite alone: importing this module loads neither Arrow nor the engine, so that ``status`` and the
watcher's bookkeeping are cheap.  It must never know what the tables hold.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from memctl.errors import (
    CoverageLost,
    DamagedError,
    DiskRefused,
    KnowledgeBaseNotFound,
    KnowledgeBaseUnavailable,
    LockedError,
)
from memctl.paths import os_error_hint
from memctl.schema.migrations import FIRST_VERSION
from memctl.schema.table_names import TableName
from memctl.store.ledger.audit_repositories import AccessTrailRepository, AuditRepository
from memctl.store.ledger.decision_repositories import (
    ChangeRepository,
    DeletionRepository,
    ForgottenRepository,
    NameDecisionRepository,
)
from memctl.store.ledger.feedback_repositories import (
    EffectRepository,
    FeedbackRepository,
    ShareRepository,
    SummaryRepository,
    UseRepository,
    VariantRepository,
)
from memctl.store.ledger.ledger_schema import describe_missing, is_current, prepare, require_content
from memctl.store.ledger.log_repositories import (
    ComparisonRepository,
    ProvenanceRepository,
    QueryDetailRepository,
    QueryRepository,
    QueryVectorRepository,
    ReplyRepository,
    UsageRepository,
)
from memctl.store.ledger.pool_repositories import PoolRepository
from memctl.store.ledger.repository import from_text, to_text
from memctl.store.ledger.session_repositories import (
    InjectedRepository,
    ProfileRepository,
    SessionRepository,
    TurnRepository,
)
from memctl.store.ledger.skill_repositories import SkillRepository
from memctl.store.ledger.tier_repositories import (
    SavedValueRepository,
    SharedValueRepository,
    ShortTermRepository,
    WorkingRepository,
)
from memctl.store.ledger.version_repositories import (
    ChecksumRepository,
    ManifestRepository,
    SnapshotRepository,
)
from memctl.store.ledger.work_repositories import (
    AccessRepository,
    ConfirmationRepository,
    DaemonRepository,
    EventRepository,
    FileRepository,
    JobRepository,
    ScheduleRepository,
)

_log = logging.getLogger(__name__)

BUSY_SECONDS = 30.0
HEAD = "HEAD"
_SCHEMA_VERSION = "tables_schema"
_FOLDER = "folder"
ASKING_FOLDER = "asking"
"""Beside the ledger: a file for each question that a model is being asked."""


class Ledger:
    """One knowledge base's ledger; usable from several threads and processes at once.

    Calls inside ``with ledger.transaction():`` join it; every other call is its own transaction.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        obstacle: str = "",
        frozen: Fingerprint | None = None,
    ) -> None:
        self._connection = connection
        self._path = path
        self._obstacle = obstacle
        self._frozen = frozen
        self._identity = file_identity(path)
        self._mutex = threading.RLock()
        self._depth = 0
        self._is_in_doubt = False
        self.files = FileRepository(self)
        self.jobs = JobRepository(self)
        self.events = EventRepository(self)
        self.daemon = DaemonRepository(self)
        self.queries = QueryRepository(self)
        self.query_details = QueryDetailRepository(self)
        self.query_vectors = QueryVectorRepository(self)
        self.feedback = FeedbackRepository(self)
        self.feedback_effects = EffectRepository(self)
        self.summaries = SummaryRepository(self)
        self.prompt_variants = VariantRepository(self)
        self.prompt_shares = ShareRepository(self)
        self.prompt_uses = UseRepository(self)
        self.accesses = AccessRepository(self)
        self.replies = ReplyRepository(self, path.parent / ASKING_FOLDER)
        self.usage = UsageRepository(self)
        self.comparisons = ComparisonRepository(self)
        self.names = NameDecisionRepository(self)
        self.snapshots = SnapshotRepository(self)
        self.provenance = ProvenanceRepository(self)
        self.deletions = DeletionRepository(self)
        self.forgotten = ForgottenRepository(self)
        self.manifests = ManifestRepository(self)
        self.changes = ChangeRepository(self)
        self.checksums = ChecksumRepository(self)
        self.working = WorkingRepository(self)
        self.shared_values = SharedValueRepository(self)
        self.saved_values = SavedValueRepository(self)
        self.short_term = ShortTermRepository(self)
        self.sessions = SessionRepository(self)
        self.turns = TurnRepository(self)
        self.pools = PoolRepository(self)
        self.profiles = ProfileRepository(self)
        self.injected = InjectedRepository(self)
        self.skills = SkillRepository(self)
        self.access_trail = AccessTrailRepository(self)
        self.audit = AuditRepository(self)
        self.schedules = ScheduleRepository(self)
        self.confirmations = ConfirmationRepository(self)

    @classmethod
    def create(cls, path: Path) -> Ledger:
        """Make an empty ledger at ``path``, or open the one that is there."""
        with translate_sqlite_errors(path):
            return cls(_writable(path, "rwc"), path)

    @classmethod
    def open(cls, path: Path) -> Ledger:
        """Open the ledger at ``path``; to read from alone where it cannot be written.

        Raises:
            DamagedError: It is missing or is not a ledger.
            KnowledgeBaseUnavailable: A newer version of memctl has written it.
        """
        if not path.is_file():
            raise DamagedError(f"there is no ledger at {path}", "run `memctl doctor --repair`")
        with translate_sqlite_errors(path):
            why = write_obstacle(path)
            try:
                if not why:
                    return cls(_writable(path, "rw"), path)
            except sqlite3.OperationalError as error:  # a full disk has no room for its log
                if not is_refusal(error):
                    raise
                why = why_refused(error)
            connection, frozen = _readable(path, why)
            return cls(connection, path, why, frozen)

    @property
    def is_writable(self) -> bool:
        """Whether this process may write it."""
        return not self._obstacle

    def require_writable(self) -> None:
        """Raise where it cannot be written.

        Raises:
            DiskRefused: This process may only read it.
        """
        if self._obstacle:
            raise refusal_error(self._path.parent, self._obstacle)

    def require_in_place(self) -> None:
        """Raise where what was opened has gone: nothing must be written to what is there instead.

        Raises:
            KnowledgeBaseNotFound: It has been renamed or deleted, or another one stands there.
        """
        if file_identity(self._path) != self._identity:
            raise KnowledgeBaseNotFound(
                f"the knowledge base in {self._path.parent} has been renamed, deleted or replaced",
                "memctl kb list shows what there is",
            )

    def is_replaced(self) -> bool:
        """Return whether another ledger stands where the one stood that was opened."""
        return self._path.exists() and file_identity(self._path) != self._identity

    def close(self) -> None:
        """Close the file; the ledger is of no use afterwards."""
        with self._mutex:
            self._connection.close()

    def complaints(self) -> list[str]:
        """Read the whole file and return what SQLite finds wrong with it."""
        try:
            with self.reading() as connection:
                found = connection.execute("PRAGMA integrity_check(10)").fetchall()
                missing = describe_missing(connection)
        except DamagedError as error:
            return [error.message]
        return [*(str(row[0]) for row in found if row[0] != "ok"), *missing]

    def contents(self) -> Iterator[tuple[str, Iterable[tuple[Any, ...]]]]:
        """Yield the name of every table and its stored rows."""
        names = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
        with self.reading() as connection:
            for (name,) in connection.execute(names).fetchall():
                yield name, connection.execute(f"SELECT * FROM {name}")

    def rewrite(self) -> bool:
        """Write the whole file anew, so that nothing which was deleted can be read from it.

        Returns:
            Whether the log could be emptied too: not while another process is reading.

        Raises:
            LockedError: Another process is writing.
        """
        with self._mutex, translate_sqlite_errors(self._path):
            self.require_writable()
            self._connection.execute("VACUUM")
            busy, *_ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy

    # --- transactions ---

    @contextmanager
    def transaction(
        self, wait: float | None = None, *, durable: bool = True
    ) -> Iterator[sqlite3.Connection]:
        """Do all that happens inside as one durable change, or none of it.

        Args:
            wait: Seconds to wait for another process's transaction to end, if not BUSY_SECONDS.
            durable: False for what a power cut may take back: it is not waited for that it is on
                disk.  A durable change that follows makes it durable too.

        Raises:
            LockedError: It did not end.
            DiskRefused: The disk is full, or this process may only read.
        """
        with self._mutex, translate_sqlite_errors(self._path):
            if self._depth:
                yield self._connection
                return
            self.require_writable()
            self._begin(BUSY_SECONDS if wait is None else wait, durable=durable)
            self._depth += 1
            is_ending = False
            try:
                yield self._connection
                is_ending = True
                self._connection.execute("COMMIT")
                self._is_in_doubt &= not durable
            except BaseException:
                self._is_in_doubt |= is_ending
                if self._connection.in_transaction:  # SQLite itself rolls back on a full disk
                    self._connection.execute("ROLLBACK")
                raise
            finally:
                self._depth -= 1

    def settle(self) -> None:
        """Make sure that a change whose commit failed does not count.

        All of it may be in the log, and would count when the log is read again: another change is
        written over it.

        Raises:
            DiskRefused: The log cannot be written, so it is undecided whether the change counts.
        """
        if not self._is_in_doubt:
            return
        try:
            with self.transaction() as connection:
                [version] = connection.execute("PRAGMA user_version").fetchone()
                connection.execute(f"PRAGMA user_version = {version}")  # written, though the same
        except DiskRefused as error:
            message = f"{error.message}; whether the change counts shows when it is opened again"
            raise DiskRefused(message, error.hint) from error

    def _begin(self, wait: float, *, durable: bool) -> None:
        self._connection.execute(f"PRAGMA busy_timeout = {int(wait * 1000)}")
        self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Read; what is read by one statement is consistent."""
        with self._mutex, translate_sqlite_errors(self._path):
            self._refresh()
            yield self._connection

    def _refresh(self) -> None:
        """Copy the ledger again when what is read is a copy and the file has changed."""
        if self._frozen is not None and fingerprint(self._path) != self._frozen:
            previous = self._connection
            self._connection, self._frozen = _readable(self._path, self._obstacle)
            previous.close()

    # --- settings of the store itself ---

    def meta(self, key: str) -> str | None:
        """Return a setting of the store, such as ``dimension``."""
        with self.reading() as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, key: str, value: str) -> None:
        """Keep a setting of the store."""
        with self.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def follow_folder(self, before: str = "") -> None:
        """Correct the paths of files if the knowledge base has been moved; nobody may watch it.

        One that is reached by several paths has not been moved.

        Args:
            before: Where it was, if that is known; by default where it was last time.
        """
        now, noted = str(self._path.parent.absolute()), self.meta(_FOLDER)
        before = before or (json.loads(noted) if noted else now)
        is_moved = before != now and self._identity != file_identity(Path(before) / self._path.name)
        if is_moved or not noted:
            with self.transaction():
                if is_moved:
                    self.files.follow_folder(before, now)
                self.set_meta(_FOLDER, json.dumps(now))

    def schema_version(self) -> int:
        """Return the schema version of the tables that HEAD names."""
        return int(self.meta(_SCHEMA_VERSION) or FIRST_VERSION)

    def set_schema_version(self, version: int) -> None:
        """Keep it, in the very transaction that moves HEAD."""
        self.set_meta(_SCHEMA_VERSION, str(version))

    # --- HEAD ---

    def head(self, name: str = HEAD) -> dict[TableName, int]:
        """Return the version of every table that counts; empty before the first commit."""
        with self.reading() as connection:
            rows = connection.execute(
                "SELECT table_name, version FROM heads WHERE name = ?", (name,)
            ).fetchall()
        return dict(rows)

    def heads(self) -> dict[str, dict[TableName, int]]:
        """Return every named set of versions, HEAD among them."""
        with self.reading() as connection:
            rows = connection.execute("SELECT name, table_name, version FROM heads").fetchall()
        result: dict[str, dict[TableName, int]] = {}
        for name, table, version in rows:
            result.setdefault(name, {})[table] = version
        return result

    def set_head(self, versions: Mapping[TableName, int], now: datetime) -> None:
        """Make these versions HEAD, and remember since when the former ones are not."""
        with self.transaction() as connection:
            previous = self.head()
            retired = [
                (table, version, to_text(now))
                for table, version in previous.items()
                if versions.get(table) != version
            ]
            connection.executemany("INSERT OR REPLACE INTO retired VALUES (?, ?, ?)", retired)
            self.name_head(HEAD, versions)

    def name_head(self, name: str, versions: Mapping[TableName, int]) -> None:
        """Keep a set of versions under a name of its own."""
        with self.transaction() as connection:
            connection.execute("DELETE FROM heads WHERE name = ?", (name,))
            connection.executemany(
                "INSERT INTO heads VALUES (?, ?, ?)",
                [(name, table, version) for table, version in versions.items()],
            )

    def forget_head(self, name: str) -> None:
        """Drop a named set of versions; they may be pruned from now on."""
        with self.transaction() as connection:
            connection.execute("DELETE FROM heads WHERE name = ?", (name,))

    def retired_versions(self, table: TableName) -> dict[int, datetime]:
        """Return the versions of a table that were HEAD once, with when they ceased to be."""
        with self.reading() as connection:
            rows = connection.execute(
                "SELECT version, retired_at FROM retired WHERE table_name = ?", (table,)
            ).fetchall()
        return {version: from_text(at) for version, at in rows}

    def clamp_retired(self, now: datetime) -> None:
        """Let no version cease to be HEAD in the future, as when the clock was ahead for a time."""
        with self.transaction() as connection:
            connection.execute(
                "UPDATE retired SET retired_at = min(retired_at, ?)", (to_text(now),)
            )

    def forget_retired(self, table: TableName, versions: list[int]) -> None:
        """Drop versions that no longer exist."""
        with self.transaction() as connection:
            connection.executemany(
                "DELETE FROM retired WHERE table_name = ? AND version = ?",
                [(table, version) for version in versions],
            )


def _writable(path: Path, mode: str) -> sqlite3.Connection:
    connection = connect(path, f"mode={mode}", BUSY_SECONDS)
    try:
        if mode == "rw":
            require_content(connection, path)
        prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _readable(path: Path, why: str) -> tuple[sqlite3.Connection, Fingerprint | None]:
    """Open a ledger to read from alone; ``why`` it cannot be written."""
    try:
        connection, frozen = connect_read_only(path, BUSY_SECONDS)
    except OSError as error:
        raise DiskRefused(
            f"cannot read {path}: {error.strerror}", "check its permissions"
        ) from error
    try:
        require_content(connection, path)
        if not is_current(connection, path):
            raise KnowledgeBaseUnavailable(
                f"{path} was written by an older memctl and cannot be brought up to date: {why}",
                "use it once where it can be written",
            )
    except BaseException:
        connection.close()
        raise
    return connection, frozen


_REFUSALS = {
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR_WRITE,
    sqlite3.SQLITE_IOERR_FSYNC,
    sqlite3.SQLITE_IOERR_TRUNCATE,
    sqlite3.SQLITE_IOERR_SHMOPEN,
    sqlite3.SQLITE_IOERR_SHMSIZE,
    sqlite3.SQLITE_IOERR_SHMMAP,
}


@contextmanager
def translate_sqlite_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's failures into ours."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise LockedError(
                f"{path} is in use by another process", "wait for it to finish, then try again"
            ) from error
        if is_refusal(error):
            raise refusal_error(path, why_refused(error)) from error
        raise _damaged_error(path, error) from error
    except sqlite3.DatabaseError as error:
        raise _damaged_error(path, error) from error


def is_refusal(error: sqlite3.OperationalError) -> bool:
    """Return whether the disk is full or read-only for this user, as opposed to damage."""
    code = error.sqlite_errorcode
    return code in _REFUSALS or code & 0xFF in _REFUSALS


def why_refused(error: sqlite3.OperationalError) -> str:
    """Return SQLite's words; for a disk without room for its log they are "disk I/O error"."""
    is_vague = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_IOERR
    return f"{error}, perhaps no space is left" if is_vague else str(error)


def refusal_error(path: Path, reason: str) -> DiskRefused:
    """Return the error that says why something cannot be written."""
    hint = "check the disk's space and permissions"
    if not os.access(path, os.W_OK):
        hint = os_error_hint(PermissionError(errno.EACCES, reason, str(path)))
    return DiskRefused(f"cannot write to {path}: {reason}", hint)


def _damaged_error(path: Path, error: sqlite3.Error) -> DamagedError:
    return DamagedError(f"cannot use the ledger {path}: {error}", "run `memctl doctor --repair`")


Fingerprint = tuple[tuple[int, int, int], ...]

_ATTEMPTS = 5


def write_obstacle(path: Path) -> str:
    """Return why this process may not write a ledger; empty when it may."""
    if not os.access(path.parent, os.W_OK):
        return "it is read-only for this user"
    return "" if os.access(path, os.W_OK) else f"{path.name} is read-only for this user"


def connect(path: Path, mode: str, wait: float) -> sqlite3.Connection:
    """Open a database file for use from any thread; nothing of it is read yet."""
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}",
        uri=True,
        timeout=wait,
        isolation_level=None,
        check_same_thread=False,
    )


def connect_read_only(path: Path, wait: float) -> tuple[sqlite3.Connection, Fingerprint | None]:
    """Open a ledger without writing a byte beside it.

    Returns:
        The connection and, when it is to a copy, what the file looked like when it was copied.
    """
    connection = connect(path, "mode=ro", wait)
    try:
        connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_NOTADB):
            raise
        return _copy_to_memory(path)
    return connection, None


def fingerprint(path: Path) -> Fingerprint:
    """Return what tells one state of a ledger's files from another."""
    return tuple(_state(item) for item in (path, _log_of(path)))


def file_identity(path: Path) -> tuple[int, int]:
    """Return the device and inode of the file at a path; zeros if there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return (0, 0)
    return (found.st_dev, found.st_ino)


def _state(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return (0, 0, 0)
    return (found.st_ino, found.st_size, found.st_mtime_ns)


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _copy_to_memory(path: Path) -> tuple[sqlite3.Connection, Fingerprint]:
    """Copy a ledger into memory, again if another process wrote to it meanwhile."""
    for _ in range(_ATTEMPTS):
        before = fingerprint(path)
        connection = _in_memory(path)
        if fingerprint(path) == before:
            return connection, before
        connection.close()
    raise LockedError(f"{path} kept changing while it was read", "try again in a moment")


def _in_memory(path: Path) -> sqlite3.Connection:
    if _state(_log_of(path))[1]:  # what it holds must not be lost, so it is read along
        with tempfile.TemporaryDirectory(prefix="memctl-") as folder:
            copy = Path(folder) / path.name
            for item in (path, _log_of(path)):
                shutil.copyfile(item, copy.with_name(item.name))
            return _load_into_memory(copy, "mode=rw")
    return _load_into_memory(path, "mode=ro&immutable=1")


def _load_into_memory(path: Path, mode: str) -> sqlite3.Connection:
    result = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    try:
        with closing(connect(path, mode, 0.0)) as source:
            source.backup(result)
        result.execute("PRAGMA query_only = 1")
    except BaseException:
        result.close()
        raise
    return result


class JobContext(Struct):
    """A job that is in the ledger and runs."""

    id: int
    detail: Mapping[str, int | str] = field(default_factory=dict)
    """What it comes to; noted at its end, also where it fails."""


@contextmanager
def job_context(ledger: Ledger, kind: str, clock: Callable[[], datetime]) -> Iterator[JobContext]:
    """Record what is done inside as a job, whether a schedule or a user started it."""
    job = JobContext(ledger.jobs.start(kind, clock()))
    try:
        with ledger.audit.action(f"job {kind}", f"job {job.id}", is_job=True):
            yield job
    except CoverageLost as error:
        ledger.jobs.fail(job.id, clock(), error.message, error.hint)
        raise
    except BaseException:
        with suppress(DiskRefused):  # which would hide why the job failed
            ledger.jobs.finish(job.id, "failed", clock(), job.detail or None)
        raise
    try:
        ledger.jobs.finish(job.id, "done", clock(), job.detail)
    except DiskRefused as error:  # what the job was for is done all the same
        _log.warning("cannot note that the job %d is done: %s", job.id, error.message)
