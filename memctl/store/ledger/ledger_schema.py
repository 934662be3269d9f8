"""The tables of the ledger, and how a ledger of an older version is brought up to date."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

from memctl.errors import DamagedError, KnowledgeBaseUnavailable

_MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
        """CREATE TABLE heads (
            name TEXT NOT NULL, table_name TEXT NOT NULL, version INTEGER NOT NULL,
            PRIMARY KEY (name, table_name)) WITHOUT ROWID""",
        """CREATE TABLE retired (
            table_name TEXT NOT NULL, version INTEGER NOT NULL, retired_at TEXT NOT NULL,
            PRIMARY KEY (table_name, version)) WITHOUT ROWID""",
        """CREATE TABLE files (
            path BLOB PRIMARY KEY, inbox BLOB NOT NULL, size INTEGER NOT NULL,
            mtime_ns INTEGER NOT NULL, state TEXT NOT NULL, sha256 TEXT, document_id TEXT,
            reason TEXT NOT NULL, hint TEXT NOT NULL,
            first_seen TEXT NOT NULL, updated_at TEXT NOT NULL) WITHOUT ROWID""",
        "CREATE INDEX files_by_state ON files (state, first_seen)",
        """CREATE TABLE jobs (
            id INTEGER PRIMARY KEY, kind TEXT NOT NULL, state TEXT NOT NULL,
            started_at TEXT NOT NULL, finished_at TEXT, detail TEXT NOT NULL)""",
        "CREATE INDEX jobs_by_kind ON jobs (kind, id)",
        """CREATE TABLE events (
            id INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL, message TEXT NOT NULL,
            hint TEXT NOT NULL, subject TEXT NOT NULL)""",
        """CREATE TABLE daemon (
            id INTEGER PRIMARY KEY CHECK (id = 1), pid INTEGER NOT NULL, host TEXT NOT NULL,
            started_at TEXT NOT NULL, heartbeat_at TEXT NOT NULL)""",
        """CREATE TABLE query_log (
            id INTEGER PRIMARY KEY, at TEXT NOT NULL, question TEXT NOT NULL, mode TEXT NOT NULL,
            hits INTEGER NOT NULL, seconds REAL NOT NULL)""",
        """CREATE TABLE access_log (
            memory_id TEXT PRIMARY KEY, count INTEGER NOT NULL, last_at TEXT NOT NULL)
            WITHOUT ROWID""",
    ),
    (
        """CREATE TABLE model_replies (
            key TEXT PRIMARY KEY, task TEXT NOT NULL, model TEXT NOT NULL, reply BLOB NOT NULL,
            at TEXT NOT NULL) WITHOUT ROWID""",
        """CREATE TABLE model_usage (
            day TEXT NOT NULL, task TEXT NOT NULL, model TEXT NOT NULL, calls INTEGER NOT NULL,
            cached INTEGER NOT NULL, failed INTEGER NOT NULL, input_tokens INTEGER NOT NULL,
            output_tokens INTEGER NOT NULL, cost REAL NOT NULL, seconds REAL NOT NULL,
            PRIMARY KEY (day, task, model)) WITHOUT ROWID""",
    ),
    (
        """CREATE TABLE comparisons (
            memory_id TEXT PRIMARY KEY, at TEXT NOT NULL) WITHOUT ROWID""",
    ),
    (
        "ALTER TABLE query_log ADD COLUMN query_id TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE query_log ADD COLUMN kind TEXT NOT NULL DEFAULT 'query'",
        "ALTER TABLE query_log ADD COLUMN found INTEGER NOT NULL DEFAULT 1",
        "ALTER TABLE query_log ADD COLUMN mean_score REAL",
        "ALTER TABLE query_log ADD COLUMN filters TEXT NOT NULL DEFAULT '{}'",
        "ALTER TABLE query_log ADD COLUMN hit_ids TEXT NOT NULL DEFAULT '[]'",
        "ALTER TABLE query_log ADD COLUMN feedback TEXT",
        "UPDATE query_log SET found = hits > 0",
    ),
    (
        """CREATE TABLE name_decisions (
            one TEXT NOT NULL, other TEXT NOT NULL, same INTEGER NOT NULL, at TEXT NOT NULL,
            PRIMARY KEY (one, other)) WITHOUT ROWID""",
    ),
    (
        """CREATE TABLE snapshots (
            name TEXT PRIMARY KEY, at TEXT NOT NULL, pinned TEXT NOT NULL) WITHOUT ROWID""",
        """CREATE TABLE snapshot_names (
            snapshot TEXT NOT NULL, one TEXT NOT NULL, other TEXT NOT NULL, same INTEGER NOT NULL,
            at TEXT NOT NULL, PRIMARY KEY (snapshot, one, other)) WITHOUT ROWID""",
        """CREATE TABLE snapshot_comparisons (
            snapshot TEXT NOT NULL, memory_id TEXT NOT NULL, at TEXT NOT NULL,
            PRIMARY KEY (snapshot, memory_id)) WITHOUT ROWID""",
        """CREATE TABLE snapshot_files (
            snapshot TEXT NOT NULL, path BLOB NOT NULL, inbox BLOB NOT NULL,
            size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, state TEXT NOT NULL, sha256 TEXT,
            document_id TEXT, reason TEXT NOT NULL, hint TEXT NOT NULL,
            first_seen TEXT NOT NULL, updated_at TEXT NOT NULL,
            PRIMARY KEY (snapshot, path)) WITHOUT ROWID""",
    ),
    (
        """CREATE TABLE receipts (
            id INTEGER PRIMARY KEY, path TEXT NOT NULL, outcome TEXT NOT NULL,
            decided_at TEXT NOT NULL, seen_at TEXT, claimed_at TEXT, moved_at TEXT,
            place TEXT NOT NULL, read_seconds REAL, reader TEXT NOT NULL,
            pipeline_version INTEGER NOT NULL, document_id TEXT, memories INTEGER NOT NULL,
            reason TEXT NOT NULL, hint TEXT NOT NULL, error TEXT NOT NULL)""",
        "CREATE INDEX receipts_by_path ON receipts (path)",
    ),
    (
        """CREATE TABLE document_usage (
            document_id TEXT NOT NULL, task TEXT NOT NULL, model TEXT NOT NULL,
            calls INTEGER NOT NULL, cached INTEGER NOT NULL, failed INTEGER NOT NULL,
            input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, cost REAL NOT NULL,
            seconds REAL NOT NULL, PRIMARY KEY (document_id, task, model)) WITHOUT ROWID""",
    ),
    (
        """CREATE TABLE tries (
            path TEXT NOT NULL, reason TEXT NOT NULL, times INTEGER NOT NULL,
            first_at TEXT NOT NULL, last_at TEXT NOT NULL, PRIMARY KEY (path, reason))
            WITHOUT ROWID""",
        "ALTER TABLE receipts ADD COLUMN tries TEXT NOT NULL DEFAULT '[]'",
        "ALTER TABLE receipts ADD COLUMN understand_seconds REAL",
        "ALTER TABLE receipts ADD COLUMN redacted INTEGER NOT NULL DEFAULT 0",
    ),
    (
        """CREATE TABLE deleted_rows (
            id TEXT PRIMARY KEY, document_id TEXT) WITHOUT ROWID""",
        "CREATE INDEX deleted_rows_by_document ON deleted_rows (document_id)",
    ),
    (
        """CREATE TABLE manifests (
            table_name TEXT NOT NULL, version INTEGER NOT NULL, content BLOB NOT NULL,
            PRIMARY KEY (table_name, version)) WITHOUT ROWID""",
    ),
    ("ALTER TABLE manifests ADD COLUMN rows INTEGER",),
    ("CREATE TABLE blocked_documents (document_id TEXT PRIMARY KEY) WITHOUT ROWID",),
    ("CREATE TABLE forgotten (id TEXT PRIMARY KEY, stays INTEGER NOT NULL) WITHOUT ROWID",),
    (
        """CREATE TABLE job_changes (
            job_id INTEGER NOT NULL, table_name TEXT NOT NULL, row_id TEXT NOT NULL,
            column_name TEXT NOT NULL, old, new,
            PRIMARY KEY (job_id, table_name, row_id, column_name)) WITHOUT ROWID""",
        "CREATE INDEX job_changes_by_row ON job_changes (row_id)",
    ),
    (
        """CREATE TABLE file_sums (
            table_name TEXT NOT NULL, path TEXT NOT NULL, size INTEGER NOT NULL,
            crc32 INTEGER NOT NULL, PRIMARY KEY (table_name, path)) WITHOUT ROWID""",
    ),
    (
        """CREATE TABLE snapshot_content (
            snapshot TEXT NOT NULL, table_name TEXT NOT NULL, row TEXT NOT NULL)""",
        "CREATE INDEX snapshot_content_by_name ON snapshot_content (snapshot, table_name)",
    ),
    (
        """CREATE TABLE sessions (
            namespace TEXT NOT NULL, session_id TEXT NOT NULL, user_id TEXT NOT NULL,
            agent_id TEXT, status TEXT NOT NULL, started_at TEXT NOT NULL, last_at TEXT NOT NULL,
            ended_at TEXT, title TEXT NOT NULL, message_count INTEGER NOT NULL,
            token_count INTEGER NOT NULL, summary TEXT NOT NULL, summarized_through INTEGER,
            PRIMARY KEY (namespace, session_id)) WITHOUT ROWID""",
        "CREATE INDEX sessions_by_name ON sessions (session_id)",
        """CREATE TABLE turns (
            namespace TEXT NOT NULL, session_id TEXT NOT NULL, turn INTEGER NOT NULL,
            at TEXT NOT NULL, sender TEXT NOT NULL, content TEXT NOT NULL,
            message_type TEXT NOT NULL, media TEXT NOT NULL, media_sha256 TEXT NOT NULL,
            external_id TEXT, memory_type TEXT NOT NULL, title TEXT NOT NULL,
            source TEXT NOT NULL, tags TEXT NOT NULL, metadata TEXT NOT NULL, agent_id TEXT,
            document_id TEXT,
            PRIMARY KEY (namespace, session_id, turn))""",
        "CREATE INDEX turns_pending ON turns (namespace, session_id, turn)"
        " WHERE document_id IS NULL",
    ),
    (
        """CREATE TABLE pools (
            pool_id TEXT PRIMARY KEY, name TEXT NOT NULL, pool_type TEXT NOT NULL,
            visibility TEXT NOT NULL, lifetime TEXT NOT NULL, owner TEXT NOT NULL,
            created_at TEXT NOT NULL, updated_at TEXT NOT NULL, version INTEGER NOT NULL,
            expires_at TEXT, retention_policy TEXT NOT NULL, access_control TEXT NOT NULL,
            data_size_bytes INTEGER NOT NULL, persist_across_executions INTEGER NOT NULL,
            run_id TEXT, session_id TEXT, last_read_at TEXT, read_count INTEGER NOT NULL,
            write_count INTEGER NOT NULL) WITHOUT ROWID""",
        """CREATE TABLE pool_keys (
            pool_id TEXT NOT NULL, key TEXT NOT NULL, value TEXT, version INTEGER NOT NULL,
            written_at TEXT NOT NULL, written_by TEXT NOT NULL, bytes INTEGER NOT NULL,
            reads INTEGER NOT NULL, session_id TEXT, PRIMARY KEY (pool_id, key)) WITHOUT ROWID""",
        """CREATE TABLE pool_versions (
            pool_id TEXT NOT NULL, version INTEGER NOT NULL, written_at TEXT NOT NULL,
            written_by TEXT NOT NULL, action TEXT NOT NULL, keys TEXT NOT NULL,
            bytes INTEGER NOT NULL, data TEXT NOT NULL, session_id TEXT,
            PRIMARY KEY (pool_id, version))""",
        """CREATE TABLE pool_events (
            id INTEGER PRIMARY KEY AUTOINCREMENT, pool_id TEXT NOT NULL, key TEXT NOT NULL,
            is_bulletin INTEGER NOT NULL, value TEXT, digest TEXT, removed INTEGER NOT NULL,
            writer TEXT NOT NULL, version INTEGER NOT NULL, written_at TEXT NOT NULL,
            session_id TEXT)""",
        "CREATE INDEX pool_events_by_pool ON pool_events (pool_id, id)",
        """CREATE TABLE pool_agents (
            pool_id TEXT NOT NULL, agent TEXT NOT NULL, reads INTEGER NOT NULL,
            writes INTEGER NOT NULL, last_read_at TEXT, last_written_at TEXT,
            last_at TEXT NOT NULL, session_id TEXT, PRIMARY KEY (pool_id, agent)) WITHOUT ROWID""",
    ),
    (
        """CREATE TABLE profiles (
            namespace TEXT NOT NULL, user_id TEXT NOT NULL, agent_id TEXT NOT NULL,
            version INTEGER NOT NULL, at TEXT NOT NULL, session_id TEXT NOT NULL,
            by TEXT NOT NULL, user_info TEXT NOT NULL, last_conversation_summary TEXT NOT NULL,
            recent_goal_and_status TEXT NOT NULL, important_context TEXT NOT NULL,
            agent_beliefs TEXT NOT NULL, agent_info TEXT NOT NULL,
            PRIMARY KEY (namespace, agent_id, version))""",
        "CREATE TABLE injected_spans (digest TEXT PRIMARY KEY, at TEXT NOT NULL)",
        "CREATE INDEX injected_spans_at ON injected_spans (at)",
    ),
    (
        """CREATE TABLE working_values (
            namespace TEXT NOT NULL, agent TEXT NOT NULL, session_id TEXT NOT NULL,
            place TEXT NOT NULL, key TEXT NOT NULL, value TEXT, bytes INTEGER NOT NULL,
            written_at TEXT NOT NULL, ttl_seconds REAL, expires_at TEXT,
            PRIMARY KEY (namespace, agent, session_id, place, key)) WITHOUT ROWID""",
        "CREATE INDEX working_values_by_end ON working_values (expires_at)",
        """CREATE TABLE working_shares (
            namespace TEXT NOT NULL, agent TEXT NOT NULL, target TEXT NOT NULL, key TEXT NOT NULL,
            session_id TEXT NOT NULL, value TEXT, bytes INTEGER NOT NULL,
            written_at TEXT NOT NULL, ttl_seconds REAL, expires_at TEXT,
            PRIMARY KEY (namespace, agent, target, key)) WITHOUT ROWID""",
        """CREATE TABLE working_saves (
            namespace TEXT NOT NULL, agent TEXT NOT NULL, name TEXT NOT NULL, place TEXT NOT NULL,
            key TEXT NOT NULL, session_id TEXT NOT NULL, value TEXT, bytes INTEGER NOT NULL,
            ttl_seconds REAL, saved_at TEXT NOT NULL,
            PRIMARY KEY (namespace, agent, name, place, key)) WITHOUT ROWID""",
        """CREATE TABLE short_term_entries (
            namespace TEXT NOT NULL, agent TEXT NOT NULL, session_id TEXT NOT NULL,
            memory_key TEXT NOT NULL, memory_value TEXT, memory_type TEXT NOT NULL,
            bytes INTEGER NOT NULL, by_person INTEGER NOT NULL, written_at TEXT NOT NULL,
            ttl_seconds REAL NOT NULL, expires_at TEXT NOT NULL, access_count INTEGER NOT NULL,
            last_accessed_at TEXT,
            PRIMARY KEY (namespace, agent, session_id, memory_key)) WITHOUT ROWID""",
        "CREATE INDEX short_term_entries_by_end ON short_term_entries (expires_at)",
    ),
    tuple(
        f"ALTER TABLE {table} ADD COLUMN user_id TEXT"
        for table in ("pools", "pool_keys", "pool_versions", "pool_events", "pool_agents")
    ),
    (
        """CREATE TABLE merged_values (
            table_name TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
            origin TEXT NOT NULL, written_at TEXT NOT NULL, namespace TEXT NOT NULL,
            session_id TEXT NOT NULL, PRIMARY KEY (table_name, key, value)) WITHOUT ROWID""",
    ),
    (
        """CREATE TABLE query_details (
            query_id TEXT PRIMARY KEY, status TEXT NOT NULL, top_k INTEGER NOT NULL,
            threshold REAL NOT NULL, confidence REAL, relevance REAL, quality REAL, score REAL,
            grounding REAL, fusion TEXT NOT NULL, reranker TEXT NOT NULL, rounds INTEGER NOT NULL,
            kbs INTEGER NOT NULL, prompt TEXT NOT NULL, error TEXT NOT NULL, cited TEXT NOT NULL,
            user_id TEXT, agent_id TEXT, session_id TEXT) WITHOUT ROWID""",
        """CREATE TABLE query_vectors (
            query_id TEXT PRIMARY KEY, embedder TEXT NOT NULL, vector BLOB NOT NULL)
            WITHOUT ROWID""",
        """CREATE TRIGGER queries_go AFTER DELETE ON query_log BEGIN
            DELETE FROM query_details WHERE query_id = old.query_id;
            DELETE FROM query_vectors WHERE query_id = old.query_id; END""",
        """CREATE TRIGGER questions_go AFTER UPDATE OF question ON query_log
            WHEN new.question = '' BEGIN
            DELETE FROM query_vectors WHERE query_id = old.query_id; END""",
        """CREATE TABLE feedback (
            feedback_id TEXT PRIMARY KEY, namespace TEXT NOT NULL, at TEXT NOT NULL,
            query_id TEXT NOT NULL, session_id TEXT, score REAL, text TEXT NOT NULL,
            example TEXT NOT NULL, task TEXT NOT NULL, example_id TEXT, user_id TEXT,
            agent_id TEXT) WITHOUT ROWID""",
        """CREATE TABLE feedback_effects (
            feedback_id TEXT NOT NULL, memory_id TEXT NOT NULL, namespace TEXT NOT NULL,
            session_id TEXT, at TEXT NOT NULL, wanted REAL NOT NULL, delta REAL NOT NULL,
            is_applied INTEGER NOT NULL, PRIMARY KEY (feedback_id, memory_id)) WITHOUT ROWID""",
        "CREATE INDEX feedback_effects_by_memory ON feedback_effects (memory_id)",
        """CREATE TABLE conversation_summaries (
            summary_id TEXT PRIMARY KEY, namespace TEXT NOT NULL, conversation_id TEXT NOT NULL,
            prompt TEXT NOT NULL, feedback_text TEXT NOT NULL, example TEXT NOT NULL,
            improvement_suggestion TEXT NOT NULL, prompt_version TEXT NOT NULL,
            reward_score REAL, conversation_summary TEXT NOT NULL, timestamp TEXT NOT NULL,
            satisfaction REAL, completion REAL, grounding REAL, messages INTEGER NOT NULL,
            memory_id TEXT, user_id TEXT, agent_id TEXT, by TEXT NOT NULL) WITHOUT ROWID""",
        "CREATE INDEX summaries_by_conversation"
        " ON conversation_summaries (namespace, conversation_id)",
        """CREATE TABLE prompt_variants (
            task TEXT NOT NULL, version TEXT NOT NULL, at TEXT NOT NULL, origin TEXT NOT NULL,
            parent TEXT NOT NULL, text TEXT NOT NULL, reason TEXT NOT NULL,
            is_retired INTEGER NOT NULL, PRIMARY KEY (task, version)) WITHOUT ROWID""",
        """CREATE TABLE prompt_shares (
            task TEXT NOT NULL, version TEXT NOT NULL, share REAL NOT NULL, at TEXT NOT NULL,
            PRIMARY KEY (task, version)) WITHOUT ROWID""",
        """CREATE TABLE prompt_uses (
            task TEXT NOT NULL, version TEXT NOT NULL, subject TEXT NOT NULL,
            namespace TEXT NOT NULL, session_id TEXT, at TEXT NOT NULL,
            PRIMARY KEY (task, version, subject)) WITHOUT ROWID""",
    ),
    (
        """CREATE TABLE skills (
            skill_id TEXT PRIMARY KEY, declared_name TEXT NOT NULL, name TEXT NOT NULL,
            slug TEXT NOT NULL, description TEXT NOT NULL, category TEXT NOT NULL,
            status TEXT NOT NULL, created_by TEXT NOT NULL, created_at TEXT NOT NULL,
            updated_at TEXT NOT NULL, active_version INTEGER NOT NULL, effectiveness REAL NOT NULL,
            execution TEXT NOT NULL, metadata TEXT NOT NULL, tags TEXT NOT NULL,
            requires TEXT NOT NULL, successor TEXT NOT NULL, source TEXT NOT NULL,
            vector TEXT NOT NULL, vector_of TEXT NOT NULL)""",
        "CREATE INDEX skills_by_slug ON skills (slug)",
        """CREATE TABLE skill_versions (
            skill_id TEXT NOT NULL, number INTEGER NOT NULL, change_type TEXT NOT NULL,
            content TEXT NOT NULL, notes TEXT NOT NULL, share INTEGER NOT NULL,
            successes INTEGER NOT NULL, failures INTEGER NOT NULL, created_at TEXT NOT NULL,
            created_by TEXT NOT NULL, PRIMARY KEY (skill_id, number))""",
        """CREATE TABLE skill_files (
            skill_id TEXT NOT NULL, number INTEGER NOT NULL, path TEXT NOT NULL,
            content TEXT NOT NULL, encoding TEXT NOT NULL, written_at TEXT NOT NULL,
            PRIMARY KEY (skill_id, number, path)) WITHOUT ROWID""",
        """CREATE TABLE skill_agents (
            skill_id TEXT NOT NULL, agent TEXT NOT NULL, since TEXT NOT NULL,
            enabled INTEGER NOT NULL, PRIMARY KEY (skill_id, agent)) WITHOUT ROWID""",
        """CREATE TABLE skill_usage (
            id INTEGER PRIMARY KEY AUTOINCREMENT, skill_id TEXT NOT NULL, version INTEGER NOT NULL,
            agent TEXT NOT NULL, task TEXT NOT NULL, success INTEGER NOT NULL, duration REAL,
            note TEXT NOT NULL, at TEXT NOT NULL, session_id TEXT, user_id TEXT)""",
        "CREATE INDEX skill_usage_by_skill ON skill_usage (skill_id, at)",
        """CREATE TABLE skill_proposals (
            proposal_id TEXT PRIMARY KEY, topic TEXT NOT NULL, name TEXT NOT NULL,
            description TEXT NOT NULL, category TEXT NOT NULL, confidence REAL NOT NULL,
            agent TEXT NOT NULL, status TEXT NOT NULL, created_at TEXT NOT NULL,
            updated_at TEXT NOT NULL, expires_at TEXT NOT NULL, requires TEXT NOT NULL,
            content TEXT NOT NULL, findings TEXT NOT NULL, reasons TEXT NOT NULL,
            reviewer TEXT NOT NULL, parent_id TEXT, skill_id TEXT, user_id TEXT)""",
        """CREATE TABLE skill_conflicts (
            conflict_id TEXT PRIMARY KEY, skill_id TEXT NOT NULL, other_id TEXT NOT NULL,
            type TEXT NOT NULL, severity TEXT NOT NULL, status TEXT NOT NULL,
            priority REAL NOT NULL, explanation TEXT NOT NULL, found_at TEXT NOT NULL,
            requirement TEXT NOT NULL, resolved_at TEXT, resolved_by TEXT)""",
        """CREATE TABLE skill_repairs (
            job INTEGER NOT NULL, skill_id TEXT NOT NULL, field TEXT NOT NULL,
            before TEXT NOT NULL, after TEXT NOT NULL, conflict_id TEXT NOT NULL, at TEXT NOT NULL,
            PRIMARY KEY (job, skill_id, field)) WITHOUT ROWID""",
    ),
    (
        """CREATE TABLE accesses (
            id INTEGER PRIMARY KEY, at TEXT NOT NULL, memory_id TEXT NOT NULL,
            query_id TEXT NOT NULL, kind TEXT NOT NULL, user TEXT NOT NULL,
            agent TEXT NOT NULL)""",
        "CREATE INDEX accesses_by_memory ON accesses (memory_id)",
        """CREATE TABLE audit (
            id INTEGER PRIMARY KEY, at TEXT NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL,
            objects TEXT NOT NULL, objects_digest TEXT NOT NULL, counts TEXT NOT NULL,
            before TEXT NOT NULL, after TEXT NOT NULL, hash TEXT NOT NULL)""",
        """CREATE TABLE job_schedules (
            job TEXT PRIMARY KEY, schedule TEXT NOT NULL, set_at TEXT NOT NULL) WITHOUT ROWID""",
        """CREATE TABLE confirmations (
            memory_id TEXT NOT NULL, source TEXT NOT NULL, at TEXT NOT NULL, job_id INTEGER,
            PRIMARY KEY (memory_id, source)) WITHOUT ROWID""",
    ),
    (  # snapshots have confirmations, too
        "INSERT INTO snapshot_content (snapshot, table_name, row)"
        " SELECT snapshots.name, 'confirmations', json_array(memory_id, source, confirmations.at,"
        " job_id) FROM snapshots JOIN confirmations ON confirmations.at <= snapshots.at",
    ),
    ("ALTER TABLE query_details ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0",),
)
VERSION = len(_MIGRATIONS)


def prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Make a ledger that is to be written durable, and give it the tables that it has not yet.

    Raises:
        KnowledgeBaseUnavailable: A newer version of memctl has written it.
    """
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    if not is_current(connection, path):
        _migrate(connection)


def require_content(connection: sqlite3.Connection, path: Path) -> None:
    """Raise where there is nothing in the file.

    Raises:
        DamagedError: It is so.
    """
    if not _version(connection):
        raise DamagedError(f"{path} is empty", "run `memctl doctor --repair`")


def is_current(connection: sqlite3.Connection, path: Path) -> bool:
    """Return whether a ledger has all tables; an older one lacks some.

    Raises:
        KnowledgeBaseUnavailable: A newer version of memctl has written it.
    """
    found = _version(connection)
    if found > VERSION:
        raise KnowledgeBaseUnavailable(
            f"{path} was written by a newer memctl (ledger {found}, this one knows {VERSION})",
            "upgrade memctl: update its checkout and run `pip install .` in it",
        )
    return found == VERSION


def describe_missing(connection: sqlite3.Connection) -> list[str]:
    """Return tables and columns that a ledger of this version has, and this one lacks."""
    there = _columns(connection)
    found = []
    for table, columns in _current_columns().items():
        if table not in there:
            found.append(f"it has no table {table}")
        elif missing := columns - there[table]:
            found.append(f"its table {table} has no {', '.join(sorted(missing))}")
    return found


@contextmanager
def empty_ledger() -> Iterator[sqlite3.Connection]:
    """Give a ledger in memory, with all tables and without rows."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        for statements in _MIGRATIONS:
            for statement in statements:
                fresh.execute(statement)
        yield fresh


def _migrate(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Looked at again, for another process may have migrated while this one waited.
        for statements in _MIGRATIONS[_version(connection) :]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


@cache
def _current_columns() -> dict[str, set[str]]:
    with empty_ledger() as fresh:
        return _columns(fresh)


def _columns(connection: sqlite3.Connection) -> dict[str, set[str]]:
    """Return the columns of every table."""
    named = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    pairs = [(row[0], f"PRAGMA table_info({row[0]})") for row in named if row[0].isidentifier()]
    return {name: {row[1] for row in connection.execute(ask)} for name, ask in pairs}
