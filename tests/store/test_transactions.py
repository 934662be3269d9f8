"""A change happens as a whole or not at all, for everybody who looks."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from waiting import PATIENCE

from memctl.errors import DamagedError, DiskRefused, LockedError, UsageError
from memctl.schema.arrow_tables import documents_table, memory_rows
from memctl.store.ledger.ledger import Ledger
from memctl.store.store import Store, Transaction
from memctl.store.tables.filter_expressions import EVERYTHING, col, where

Run = Callable[[str], subprocess.CompletedProcess[str]]

# What the programs below begin with: a store in another process, and rows for it.
PRELUDE = """
import os, sys
from datetime import UTC, datetime
from pathlib import Path
import numpy as np
from memctl.records import Memory
from memctl.schema.arrow_tables import memories_table
from memctl.store.store import Store

NOW = datetime(2025, 6, 1, tzinfo=UTC)
folder = Path(sys.argv[1])

def rows(names):
    memories = [
        Memory(id=name, document_id=None, level="memory", type="fact", text="from another process",
               namespace="default", created_at=NOW, valid_from=NOW, search_text="other")
        for name in names
    ]
    return memories_table(memories, np.ones((len(memories), 8)))
"""


def ids(store: Store) -> list[str]:
    return sorted(store.snapshot().scan("memories", columns=["id"])["id"].to_pylist())


# --- what a transaction does ---------------------------------------------------------------------


def test_a_transaction_sees_its_own_writes_and_nobody_else_does(store: Store, rows_of) -> None:
    with store.write() as transaction:
        transaction.append("memories", rows_of([1, 2]))
        assert transaction.snapshot().count("memories") == 2
        assert store.snapshot().count("memories") == 0
    assert ids(store) == ["m_1", "m_2"]


def test_a_snapshot_stays_as_it_was(store: Store, rows_of) -> None:
    with store.write() as transaction:
        transaction.append("memories", rows_of([1]))
    before = store.snapshot()
    with store.write() as transaction:
        transaction.delete("memories", EVERYTHING)
    assert before.count("memories") == 1
    assert store.snapshot().count("memories") == 0


def test_an_error_in_the_block_undoes_all_of_it(store: Store, rows_of, document_of) -> None:
    with store.write() as transaction:
        transaction.append("memories", rows_of([1]))

    def change(transaction: Transaction) -> None:
        transaction.append("documents", documents_table([document_of()]))
        transaction.upsert("memories", rows_of([1, 2]))
        transaction.delete("memories", col("id") == "m_1")
        transaction.ledger(lambda _: store.ledger.set_meta("note", "must not stay"))
        assert transaction.snapshot().count("documents") == 1
        raise KeyError

    with pytest.raises(KeyError), store.write() as transaction:
        change(transaction)
    assert ids(store) == ["m_1"]
    assert store.snapshot().count("documents") == 0
    assert store.ledger.meta("note") is None
    assert store.lancedb().open_table("memories").count_rows() == 1


@pytest.mark.parametrize("step", ["transaction", "commit"])
def test_an_interrupt_after_it_has_happened_takes_nothing_away(
    store: Store, rows_of, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    commit, begin = Transaction.commit, Ledger.transaction

    def interrupted(transaction: Transaction) -> None:
        commit(transaction)
        raise KeyboardInterrupt

    @contextmanager
    def cut_off(ledger: Ledger, **options: Any) -> Iterator[sqlite3.Connection]:
        before = ledger.head()
        with begin(ledger, **options) as connection:
            yield connection
        if not connection.in_transaction and ledger.head() != before:
            raise KeyboardInterrupt

    if step == "commit":
        monkeypatch.setattr(Transaction, "commit", interrupted)
    else:
        monkeypatch.setattr(Ledger, "transaction", cut_off)
    with pytest.raises(KeyboardInterrupt), store.write() as transaction:
        transaction.append("memories", rows_of([1, 2]))
    monkeypatch.undo()
    assert ids(store) == ["m_1", "m_2"]
    with store.write() as transaction:
        transaction.append("memories", rows_of([3]))
    assert ids(store) == ["m_1", "m_2", "m_3"]


def test_ledger_statements_happen_with_the_change_or_not_at_all(store: Store, rows_of) -> None:
    with store.write() as transaction:
        transaction.append("memories", rows_of([1]))
        transaction.ledger(lambda _: store.ledger.set_meta("note", "kept"))
        transaction.ledger(
            lambda connection: connection.execute("INSERT INTO meta VALUES ('raw', 'kept')")
        )
        assert store.ledger.meta("note") is None
    assert (store.ledger.meta("note"), store.ledger.meta("raw")) == ("kept", "kept")

    def fail(_: object) -> None:
        store.ledger.set_meta("note", "half done")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), store.write() as transaction:
        transaction.ledger(fail)
    assert store.ledger.meta("note") == "kept"
    assert ids(store) == ["m_1"]


def test_a_transaction_without_changes_makes_no_version(store: Store) -> None:
    before = store.snapshot().versions
    with store.write() as transaction:
        transaction.delete("memories", col("id") == "not there")
    assert store.snapshot().versions == before


def test_upserting_twice_changes_nothing_and_the_last_twin_wins(
    store: Store, rows_of, memory_of
) -> None:
    twins = pa.concat_tables([rows_of([1], text="first"), rows_of([2]), rows_of([1], text="last")])
    for _ in range(2):
        with store.write() as transaction:
            assert transaction.upsert("memories", twins) == 2
            assert transaction.upsert("memories", rows_of([2])) == 1
    assert ids(store) == ["m_1", "m_2"]
    assert memory_rows(store.snapshot().get("memories", ["m_1"])) == [memory_of(1, text="last")]


def test_an_upsert_of_old_and_new_rows_replaces_and_adds(store: Store, rows_of) -> None:
    with store.write() as transaction:
        transaction.append("memories", rows_of(range(20), text="old"))
    with store.write() as transaction:
        assert transaction.upsert("memories", rows_of(range(15, 25), text="new")) == 10
    assert store.snapshot().count("memories") == 25
    assert store.snapshot().count("memories", col("text") == "new") == 10


def test_an_update_changes_the_columns_it_has_and_no_others(store: Store, rows_of) -> None:
    with store.write() as transaction:
        transaction.append("memories", rows_of(range(5), tags=("kept",)))
    change = pa.table({"is_consolidated": [True, True], "id": ["m_3", "not there"]})
    before = store.snapshot().scan("memories")
    with store.write() as transaction:
        assert transaction.update("memories", change) == 1
    snapshot = store.snapshot()
    assert snapshot.count("memories") == 5
    assert snapshot.scan("memories", col("is_consolidated") == True, ["id"])["id"].to_pylist() == [  # noqa: E712
        "m_3"
    ]
    for name in ("vector", "tags", "text", "search_text"):
        after = snapshot.get("memories", before["id"].to_pylist(), [name])
        assert after[name].to_pylist() == before[name].to_pylist()
    assert snapshot.keyword(["word3"], columns=["id"])["id"].to_pylist() == ["m_3"]
    assert snapshot.keyword(["word2"], columns=["id"])["id"].to_pylist() == ["m_2"]


def test_changed_search_text_is_found_by_its_new_terms_alone(store: Store, rows_of) -> None:
    with store.write() as transaction:
        transaction.append("memories", rows_of(range(5)))
    store.upkeep(force=True)
    with store.write() as transaction:
        change = pa.table({"id": ["m_3"], "search_text": ["changed"]})
        transaction.update("memories", change)
    snapshot = store.snapshot()
    assert snapshot.keyword(["changed"], columns=["id"])["id"].to_pylist() == ["m_3"]
    assert snapshot.keyword(["word3"]).num_rows == 0
    assert snapshot.keyword(["word4"], columns=["id"])["id"].to_pylist() == ["m_4"]


def test_a_delete_takes_what_the_condition_says(store: Store, rows_of) -> None:
    with store.write() as transaction:
        transaction.append("memories", rows_of(range(5)))
        assert transaction.delete("memories", col("id").is_in(["m_1", "m_3", "no"])) == 2
        with pytest.raises(UsageError):
            transaction.delete("memories", where("nosuch = 1"))
        assert transaction.delete("memories", col("id") == "x' OR '1'='1") == 0
    assert ids(store) == ["m_0", "m_2", "m_4"]
    with store.write() as transaction:
        assert transaction.delete("memories", EVERYTHING) == 3
    assert ids(store) == []


def test_many_small_appends_become_one_file(store: Store, rows_of) -> None:
    with store.write() as transaction:
        for number in range(30):
            transaction.append("memories", rows_of([number]))
    assert len(store.snapshot().dataset("memories").get_fragments()) == 1


def test_rows_that_do_not_fit_the_table_are_refused(store: Store, rows_of) -> None:
    with pytest.raises(ValueError, match="nosuch"), store.write() as transaction:
        transaction.append("memories", rows_of([1]).append_column("nosuch", pa.array([1])))
    with pytest.raises(pa.ArrowInvalid), store.write() as transaction:
        transaction.update("memories", pa.table({"id": ["m_1"], "turn": ["not a number"]}))
    assert ids(store) == []


# --- several at once -----------------------------------------------------------------------------


def test_the_second_writer_is_told_who_is_writing(store: Store, run_python: Run) -> None:
    with store.write():
        done = run_python(
            PRELUDE
            + """
from memctl.errors import LockedError
try:
    with Store.open(folder).write(wait=0.1): pass
except LockedError as error: print(error.message)
"""
        )
        assert f"process {os.getpid()} on " in done.stdout, done.stderr
    with store.write(wait=0.1):
        pass


def test_threads_of_one_process_exclude_each_other_too(store: Store, rows_of) -> None:
    with store.write(), pytest.raises(LockedError), store.write(wait=0.05):
        pass
    threads = [
        threading.Thread(target=_upsert, args=(store, rows_of([number, "shared"])))
        for number in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ids(store) == [*(f"m_{number}" for number in range(6)), "m_shared"]


def _upsert(store: Store, rows: pa.Table) -> None:
    with store.write() as transaction:
        transaction.upsert("memories", rows)


def test_two_processes_that_write_the_same_ids_leave_no_duplicates(
    store: Store, folder: Path, rows_of
) -> None:
    program = PRELUDE + (
        "store = Store.open(folder)\n"
        "for number in range(15):\n"
        "    with store.write() as transaction:\n"
        "        transaction.upsert('memories', rows([f'm_{number}', f'm_{number + 1}']))\n"
    )
    command = [sys.executable, "-c", program, str(folder)]
    writers = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(2)]
    for writer in writers:
        _, errors = writer.communicate(timeout=PATIENCE)
        assert writer.returncode == 0, errors
    assert ids(store) == sorted(f"m_{number}" for number in range(16))


def test_readers_elsewhere_see_the_commits_and_nothing_between(
    store: Store, run_python: Run, rows_of
) -> None:
    look = PRELUDE + "print(Store.open(folder).snapshot().count('memories'))"
    with store.write() as transaction:
        transaction.append("memories", rows_of(range(3)))
        transaction.snapshot()
        assert run_python(look).stdout.split() == ["0"]
    assert run_python(look).stdout.split() == ["3"]


def test_a_store_sees_what_another_process_has_committed(store: Store, run_python: Run) -> None:
    assert ids(store) == []
    done = run_python(
        PRELUDE
        + "with Store.open(folder).write() as transaction:\n"
        + "    transaction.append('memories', rows(['m_other']))\n"
    )
    assert done.returncode == 0, done.stderr
    assert ids(store) == ["m_other"]


# --- crashes -------------------------------------------------------------------------------------

CRASHES = {
    "after one table of two": "transaction.append('memories', rows(['m_lost']))\n"
    "    transaction.snapshot()\n"
    "    os._exit(9)",
    "after deleting": "transaction.append('memories', rows(['m_lost']))\n"
    "    transaction.delete('memories', col('id') == 'm_1')\n"
    "    os._exit(9)",
    "between the tables and HEAD": "transaction.upsert('memories', rows(['m_1', 'm_lost']))\n"
    "    transaction.ledger(lambda connection: os._exit(9))",
    "in the middle of an upkeep": "transaction.append('memories', rows(['m_lost']))\n"
    "    transaction.dataset('memories').optimize.optimize_indices()\n"
    "    transaction.dataset('memories').optimize.compact_files()\n"
    "    os._exit(9)",
}


@pytest.mark.parametrize("crash", CRASHES.values(), ids=CRASHES)
def test_what_a_killed_writer_left_is_rolled_back(
    store: Store, run_python: Run, rows_of, memory_of, crash: str
) -> None:
    with store.write() as transaction:
        transaction.append("memories", rows_of([1]))
    done = run_python(
        PRELUDE
        + "from memctl.store.tables.filter_expressions import col\n"
        + f"with Store.open(folder).write() as transaction:\n    {crash}\n"
    )
    assert done.returncode == 9, done.stderr
    assert store.lancedb().open_table("memories").version > store.snapshot().versions["memories"]
    assert ids(store) == ["m_1"]
    with store.write(wait=1) as transaction:
        transaction.append("memories", rows_of([2]))
    assert ids(store) == ["m_1", "m_2"]
    assert memory_rows(store.snapshot().get("memories", ["m_1"])) == [memory_of(1)]
    assert store.snapshot().keyword(["word1"]).num_rows == 1
    assert store.lancedb().open_table("memories").count_rows() == 2


def files_of_rows(store: Store) -> set[Path]:
    return set((store.folder / "lance" / "memories.lance" / "data").iterdir())


def test_what_a_change_that_failed_or_was_killed_wrote_does_not_stay_on_the_disk(
    store: Store, run_python: Run, rows_of
) -> None:
    with store.write() as transaction:
        transaction.append("memories", rows_of([1]))
    before = files_of_rows(store)

    def fail() -> None:
        with store.write() as transaction:
            for number in (2, 3):
                transaction.append("memories", rows_of([number]))
                transaction.snapshot()
            assert len(files_of_rows(store)) == len(before) + 2
            raise InterruptedError

    with pytest.raises(InterruptedError):
        fail()
    assert files_of_rows(store) == before
    done = run_python(
        PRELUDE + "with Store.open(folder).write() as transaction:\n"
        "    transaction.append('memories', rows(['m_lost']))\n"
        "    transaction.snapshot()\n"
        "    os._exit(9)"
    )
    assert done.returncode == 9, done.stderr
    assert len(files_of_rows(store)) == len(before) + 1
    with store.write():
        pass
    assert files_of_rows(store) == before
    assert ids(store) == ["m_1"]


def test_a_damaged_earlier_version_does_not_stop_the_writer_that_rolls_back(
    store: Store, rows_of
) -> None:
    for number in (1, 2):
        with store.write() as transaction:
            transaction.append("memories", rows_of([number]))
    store.lancedb().open_table("memories").add(rows_of(["unacknowledged"]))
    versions = store.folder / "lance" / "memories.lance" / "_versions"
    max(versions.glob("*.manifest")).write_bytes(b"torn")  # names count down
    with store.write() as transaction:
        transaction.append("memories", rows_of([3]))
    assert ids(store) == ["m_1", "m_2", "m_3"]


def test_what_was_written_through_lancedb_itself_is_rolled_back(store: Store, rows_of) -> None:
    store.lancedb().open_table("memories").add(rows_of(["stranger"]))
    assert ids(store) == []
    with store.write() as transaction:
        transaction.append("memories", rows_of([1]))
    assert ids(store) == ["m_1"]


@pytest.mark.parametrize("left", [b"", b"torn"])
def test_a_manifest_torn_by_a_power_cut_does_not_stop_the_next_writer(
    store: Store, rows_of, left: bytes
) -> None:
    with store.write() as transaction:
        transaction.append("memories", rows_of([1]))
    store.lancedb().open_table("memories").add(rows_of(["unacknowledged"]))
    versions = store.folder / "lance" / "memories.lance" / "_versions"
    min(versions.glob("*.manifest")).write_bytes(left)
    assert ids(store) == ["m_1"]
    with store.write() as transaction:
        transaction.append("memories", rows_of([2]))
    assert ids(store) == ["m_1", "m_2"]


@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are POSIX")
def test_a_full_disk_is_reported_and_leaves_the_store_as_it_was(
    store: Store, run_python: Run
) -> None:
    done = run_python(
        PRELUDE
        + """
import resource, signal
from memctl.errors import MemctlError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = Store.open(folder)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
try:
    with store.write() as transaction:
        transaction.append('memories', rows([f'm_{os.urandom(64).hex()}' for _ in range(4000)]))
except MemctlError as error: print(type(error).__name__)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(store.snapshot().count('memories'))
"""
    )
    assert done.stdout.split() == [DiskRefused.__name__, "0"], done.stderr
    assert ids(store) == []


def table_files(store: Store) -> set[str]:
    return {str(path) for path in (store.folder / "lance").rglob("*") if path.is_file()}


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="names descriptors in /proc")
def test_every_new_file_is_on_disk_before_head_names_it(
    store: Store, rows_of, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.write() as transaction:
        transaction.append("memories", rows_of(range(10)))
    before, synced, real = table_files(store), set(), os.fsync

    def fsync(descriptor: int) -> None:
        synced.add(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        real(descriptor)

    def check(_: object) -> None:
        new = table_files(store) - before
        assert {Path(path).parent.name for path in new} >= {"data", "_versions", "_deletions"}
        assert new <= synced
        assert {str(Path(path).parent) for path in new} <= synced

    monkeypatch.setattr(os, "fsync", fsync)
    with store.write() as transaction:
        transaction.upsert("memories", rows_of([3, 11]))
        transaction.dataset("memories").optimize.optimize_indices()
        transaction.ledger(check)
    assert store.snapshot().count("memories") == 11


# --- making and opening --------------------------------------------------------------------------


def test_a_store_is_not_made_over_another(folder: Path) -> None:
    with pytest.raises(UsageError, match="already"):
        Store.create(folder, 8)


def test_a_creation_that_was_interrupted_can_be_repeated(tmp_path: Path, run_python: Run) -> None:
    program = (
        "import os, sys\nfrom pathlib import Path\nfrom memctl.store.store import Store\n"
        "from memctl.store import store\n"
        "store.sync_new = lambda *_: os._exit(9)\n"
        f"Store.create(Path({str(tmp_path / 'new')!r}), 8)"
    )
    assert run_python(program).returncode == 9
    with pytest.raises(DamagedError, match="finished"):
        Store.open(tmp_path / "new")
    with Store.create(tmp_path / "new", 8) as store:
        assert store.snapshot().count("memories") == 0


def test_opening_a_folder_without_a_store_is_damage(tmp_path: Path) -> None:
    with pytest.raises(DamagedError) as caught:
        Store.open(tmp_path)
    assert caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_the_dimension_is_remembered(folder: Path) -> None:
    with Store.open(folder) as store:
        assert store.dimension == 8
        assert store.snapshot().schema("memories").field("vector").type.list_size == 8


@pytest.mark.parametrize("damage", ["data", "_versions"])
@pytest.mark.parametrize("left", [b"", b"junk" * 500])
def test_damaged_tables_are_reported_as_damage(
    store: Store, rows_of, damage: str, left: bytes
) -> None:
    with store.write() as transaction:
        transaction.append("memories", rows_of(range(50)))
    for path in (store.folder / "lance" / "memories.lance" / damage).iterdir():
        path.write_bytes(left)
    with Store.open(store.folder) as opened:
        for read in (
            lambda snapshot: snapshot.scan("memories"),
            lambda snapshot: snapshot.batches("memories").read_all(),
            lambda snapshot: snapshot.get("memories", ["m_1"]),
            lambda snapshot: snapshot.keyword(["word1"]),
            lambda snapshot: snapshot.nearest(np.ones(8)),
            lambda snapshot: snapshot.scan("memories", where("importance > 0")),
        ):
            with pytest.raises(DamagedError) as caught:
                read(opened.snapshot())
            assert "memories" in caught.value.message
            assert "doctor" in caught.value.hint
        assert opened.snapshot().count("documents") == 0
