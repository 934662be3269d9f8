"""The ledger keeps what is going on, for several threads and processes, across versions."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from waiting import PATIENCE

from memctl.errors import DamagedError, KnowledgeBaseUnavailable, LockedError
from memctl.store.ledger import ledger as ledger_module
from memctl.store.ledger import ledger_schema
from memctl.store.ledger.ledger import Ledger
from memctl.store.ledger.ledger_schema import VERSION
from memctl.store.ledger.log_repositories import QueryEntry
from memctl.store.ledger.repository import from_text, to_text
from memctl.store.ledger.work_repositories import (
    MAX_EVENTS,
    Access,
    DaemonEntry,
    Event,
    FileEntry,
)

NOW = datetime(2025, 6, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    made = Ledger.create(path)
    yield made
    made.close()


# --- opening -------------------------------------------------------------------------------------


def test_a_ledger_opens_again_with_what_was_written(ledger: Ledger, path: Path) -> None:
    ledger.set_meta("note", "kept")
    again = Ledger.open(path)
    assert again.meta("note") == "kept"
    assert again.meta("other") is None
    again.close()


def test_using_the_ledger_loads_no_engine(path: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom memctl.store.ledger.ledger import Ledger\n"
        f"Ledger.create(Path({str(path)!r})).files.entries()\n"
        "print({'lance', 'lancedb', 'pyarrow', 'numpy', 'duckdb'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr


def test_a_missing_ledger_is_damage_and_is_not_made(path: Path) -> None:
    with pytest.raises(DamagedError) as caught:
        Ledger.open(path)
    assert caught.value.hint
    assert not path.exists()


@pytest.mark.parametrize("content", [b"not a database, but long enough to look at" * 99, b"x", b""])
def test_a_file_that_is_no_ledger_is_damage(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(DamagedError):
        Ledger.open(path)
    assert path.read_bytes() == content


def test_a_torn_ledger_is_damage(ledger: Ledger, path: Path) -> None:
    for number in range(200):
        ledger.set_meta(f"key {number}", "x" * 500)
    ledger.close()
    data = bytearray(path.read_bytes())
    data[4096:] = bytes(len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(DamagedError):
        Ledger.open(path).meta("key 100")


def test_a_ledger_from_a_newer_version_is_refused(ledger: Ledger, path: Path) -> None:
    ledger.close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    with pytest.raises(KnowledgeBaseUnavailable, match="newer") as caught:
        Ledger.open(path)
    assert "upgrade" in caught.value.hint


def test_an_older_ledger_is_migrated_with_its_rows(
    ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.set_meta("note", "kept")
    ledger.close()
    more = (*ledger_schema._MIGRATIONS, ("CREATE TABLE later (x)", "INSERT INTO later VALUES (1)"))
    monkeypatch.setattr(ledger_schema, "_MIGRATIONS", more)
    monkeypatch.setattr(ledger_schema, "VERSION", len(more))
    for _ in range(2):
        migrated = Ledger.open(path)
        with migrated.reading() as connection:
            assert connection.execute("SELECT x FROM later").fetchall() == [(1,)]
        assert migrated.meta("note") == "kept"
        migrated.close()


def test_a_migration_that_fails_leaves_the_ledger_as_it_was(
    ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.close()
    broken = (*ledger_schema._MIGRATIONS, ("CREATE TABLE later (x)", "CREATE TABLE meta (x)"))
    with monkeypatch.context() as patch:
        patch.setattr(ledger_schema, "_MIGRATIONS", broken)
        patch.setattr(ledger_schema, "VERSION", len(broken))
        with pytest.raises(DamagedError):
            Ledger.open(path)
    Ledger.open(path).close()


def test_an_empty_ledger_to_compare_with_is_made_once(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ledger.complaints() == []
    monkeypatch.delattr(ledger_schema, "empty_ledger")
    assert ledger.complaints() == []


def test_a_ledger_that_may_not_be_written_says_so(ledger: Ledger, path: Path) -> None:
    with ledger.reading() as connection:
        connection.execute("PRAGMA query_only = 1")
    with pytest.raises(KnowledgeBaseUnavailable):
        ledger.set_meta("note", "x")


# --- transactions --------------------------------------------------------------------------------


def test_nested_calls_join_the_transaction_and_fall_with_it(ledger: Ledger) -> None:
    def change() -> None:
        ledger.set_meta("note", "lost")
        with ledger.transaction():
            ledger.set_head({"memories": 7}, NOW)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), ledger.transaction():
        change()
    assert (ledger.meta("note"), ledger.head()) == (None, {})
    with ledger.transaction():
        ledger.set_meta("note", "kept")
    assert ledger.meta("note") == "kept"


def test_threads_do_not_get_into_each_others_transactions(ledger: Ledger) -> None:
    def work(number: int) -> None:
        for _ in range(20):
            with ledger.transaction():
                count = int(ledger.meta("count") or 0)
                ledger.set_meta("count", str(count + 1))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.meta("count") == "80"


def test_a_ledger_that_stays_busy_is_locked(
    ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "BUSY_SECONDS", 0.05)
    other = Ledger.open(path)
    with ledger.transaction(), pytest.raises(LockedError):
        other.set_meta("note", "x")
    other.set_meta("note", "x")
    other.close()


def test_an_own_waiting_time_of_a_transaction_does_not_change_the_next_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "BUSY_SECONDS", PATIENCE)
    ledger = Ledger.create(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    with pytest.raises(LockedError), ledger.transaction(wait=0.05):
        pass
    assert time.monotonic() - began < ledger_module.BUSY_SECONDS / 3
    with ledger.reading() as connection:
        patience = connection.execute("PRAGMA busy_timeout").fetchone()[0]
    assert patience == ledger_module.BUSY_SECONDS * 1000
    other.execute("ROLLBACK")
    other.close()
    ledger.close()


def _write_beyond_what_fits(ledger: Ledger) -> None:
    with ledger.transaction() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 1}")
        for number in range(100):
            ledger.set_meta(f"key {number}", "x" * 5000)


def test_a_commit_that_fails_leaves_no_transaction_open(ledger: Ledger) -> None:
    """SQLite rolls back by itself when the disk is full; the next transaction must not notice."""
    with pytest.raises(KnowledgeBaseUnavailable, match="full"):
        _write_beyond_what_fits(ledger)
    assert ledger.meta("key 0") is None
    with ledger.reading() as connection:
        connection.execute("PRAGMA max_page_count = 1000000")
    ledger.set_meta("note", "kept")
    assert ledger.meta("note") == "kept"


# --- HEAD ----------------------------------------------------------------------------------------


def test_head_names_versions_and_remembers_former_ones(ledger: Ledger) -> None:
    assert ledger.head() == {}
    ledger.set_head({"memories": 1, "documents": 1}, NOW)
    ledger.set_head({"memories": 2, "documents": 1}, LATER)
    assert ledger.head() == {"memories": 2, "documents": 1}
    assert ledger.retired_versions("memories") == {1: LATER}
    assert ledger.retired_versions("documents") == {}
    ledger.name_head("before", {"memories": 1})
    assert ledger.heads() == {
        "HEAD": {"memories": 2, "documents": 1},
        "before": {"memories": 1},
    }
    ledger.forget_head("before")
    ledger.forget_retired("memories", [1])
    assert (ledger.head("before"), ledger.retired_versions("memories")) == ({}, {})


@given(instant=st.datetimes(timezones=st.timezones()), other=st.datetimes(timezones=st.just(UTC)))
def test_instants_keep_their_order_as_text(instant: datetime, other: datetime) -> None:
    try:
        instant.astimezone(UTC)
    except OverflowError:
        return
    assert from_text(to_text(instant)) == instant.astimezone(UTC)
    assert (to_text(instant) < to_text(other)) == (instant.astimezone(UTC) < other)


# --- books ---------------------------------------------------------------------------------------


def entry(path: str = "/in/a.md", **changes: object) -> FileEntry:
    values = {
        "path": path,
        "inbox": "/in",
        "size": 10,
        "mtime_ns": 1_750_000_000_000_000_001,
        "state": "seen",
        "first_seen": NOW,
        "updated_at": NOW,
    }
    return FileEntry(**values | changes)  # type: ignore[arg-type]


def test_a_file_goes_through_its_steps(ledger: Ledger) -> None:
    files = ledger.files
    files.save(entry())
    files.save(entry("/in/b.md", first_seen=LATER))
    files.move("/in/a.md", "indexed", LATER, document_id="d_1")
    files.move("/in/a.md", "done", LATER)
    assert files.find("/in/a.md") == entry(state="done", document_id="d_1", updated_at=LATER)
    assert files.counts() == {"done": 1, "seen": 1}
    assert [item.path for item in files.entries()] == ["/in/a.md", "/in/b.md"]
    assert [item.path for item in files.entries(["seen", "failed"])] == ["/in/b.md"]
    assert files.entries(inbox="/other") == []
    files.remove("/in/b.md")
    assert files.find("/in/b.md") is None


@given(path=st.binary(min_size=1, max_size=50).map(os.fsdecode))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_path_can_be_in_the_book(ledger: Ledger, path: str) -> None:
    ledger.files.save(entry(path, inbox=path))
    assert ledger.files.find(path) == entry(path, inbox=path)
    assert path in [item.path for item in ledger.files.entries(inbox=path)]


def test_jobs_are_started_finished_and_abandoned(ledger: Ledger) -> None:
    jobs = ledger.jobs
    first = jobs.start("ingest", NOW, {"files": 3})
    second = jobs.start("consolidate", NOW)
    jobs.finish(first, "done", LATER)
    done = jobs.last("ingest")
    assert done is not None
    assert (done.state, done.finished_at, done.detail) == ("done", LATER, {"files": 3})
    assert jobs.last("ingest", "failed") is None
    assert [job.id for job in jobs.recent()] == [second, first]
    assert jobs.abandon(LATER) == 1
    left = jobs.last("consolidate")
    assert left is not None
    assert (left.state, left.detail) == ("abandoned", {})


def test_events_fall_off_the_end(ledger: Ledger) -> None:
    with ledger.transaction():
        for number in range(MAX_EVENTS + 5):
            ledger.events.add(Event(NOW, "error", f"event {number}", subject="caf\udce9.md"))
    events = ledger.events.recent(MAX_EVENTS * 2, "error")
    assert len(events) == MAX_EVENTS
    assert events[0] == Event(NOW, "error", f"event {MAX_EVENTS + 4}", subject="caf?.md")
    assert ledger.events.recent(kind="other") == []


def test_there_is_one_daemon_at_most(ledger: Ledger) -> None:
    daemon = ledger.daemon
    assert daemon.current() is None
    daemon.register(10, "here", NOW)
    daemon.register(11, "here", NOW)
    daemon.beat(10, LATER)
    daemon.clear(10)
    assert daemon.current() == DaemonEntry(11, "here", NOW, NOW)
    daemon.beat(11, LATER)
    assert daemon.current() == DaemonEntry(11, "here", NOW, LATER)
    daemon.clear(11)
    assert daemon.current() is None


def test_questions_are_logged_newest_first(ledger: Ledger) -> None:
    asked = [QueryEntry(NOW, f"why {n}?", "hybrid", n, 0.25) for n in range(3)]
    for question in asked:
        ledger.queries.add(question)
    assert ledger.queries.recent(2) == [asked[2], asked[1]]


def test_the_log_keeps_the_newest_questions(ledger: Ledger) -> None:
    for number in range(5):
        ledger.queries.add(QueryEntry(NOW, f"why {number}?", "hybrid", 1, 0.25), keep=3)
    assert [entry.question for entry in ledger.queries.recent()] == ["why 4?", "why 3?", "why 2?"]


def test_questions_of_an_older_ledger_are_brought_up_to_date(path: Path) -> None:
    with closing(sqlite3.connect(path)) as old:
        for statements in ledger_schema._MIGRATIONS[:3]:
            for statement in statements:
                old.execute(statement)
        asked = "INSERT INTO query_log (at, question, mode, hits, seconds) VALUES (?, ?, ?, ?, ?)"
        old.execute(asked, (to_text(NOW), "who?", "hybrid", 3, 0.5))
        old.execute(asked, (to_text(NOW), "why?", "hybrid", 0, 0.5))
        old.execute("PRAGMA user_version = 3")
        old.commit()
    with closing(Ledger.open(path)) as ledger:
        assert ledger.queries.recent() == [
            QueryEntry(NOW, "why?", "hybrid", 0, 0.5, found=False),
            QueryEntry(NOW, "who?", "hybrid", 3, 0.5, found=True),
        ]


def test_a_transaction_that_is_not_durable_leaves_the_next_one_durable(ledger: Ledger) -> None:
    with ledger.transaction(durable=False) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (1,)
    with ledger.transaction() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


def test_accesses_add_up_until_they_are_written_to_the_memories(ledger: Ledger) -> None:
    accesses = ledger.accesses
    accesses.add(["m_1", "m_2"], NOW)
    accesses.add(["m_1"], LATER)
    pending = accesses.pending()
    assert pending == [Access("m_1", 2, LATER), Access("m_2", 1, NOW)]
    accesses.add(["m_1"], LATER)
    accesses.clear(pending)
    assert accesses.pending() == [Access("m_1", 1, LATER)]
