"""Upkeep makes the store smaller and faster, and changes nothing that anybody can see."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from store.test_transactions import PRELUDE

from memctl.errors import LockedError
from memctl.schema.declarations import DECLARATIONS
from memctl.store.locks import ReaderLeases
from memctl.store.store import UPKEEPS_A_CONNECTION, Store
from memctl.store.tables import indexes, upkeep
from memctl.store.tables.filter_expressions import col
from memctl.store.tables.snapshot import Snapshot
from memctl.store.tables.upkeep import GRACE, MAX_SMALL_FILES


class SetClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = datetime(2025, 6, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def timed(folder: Path, clock: SetClock):
    with Store.open(folder, clock=clock) as store:
        yield store


def commit(store: Store, rows: pa.Table) -> None:
    with store.write() as transaction:
        transaction.upsert("memories", rows)


def fragments(store: Store) -> int:
    return len(store.snapshot().dataset("memories").get_fragments())


def indexed_columns(store: Store) -> set[str]:
    described = store.snapshot().dataset("memories").describe_indices()
    return {name for item in described for name in item.field_names}


def versions(store: Store) -> int:
    return len(list((store.folder / "lance/memories.lance/_versions").glob("*.manifest")))


def everything(store: Store) -> list[Any]:
    snapshot = store.snapshot()
    rows = snapshot.scan("memories", order_by=[("id", "asc")])
    words = [snapshot.keyword([f"word{n}"], columns=["id"]).to_pylist() for n in range(0, 40, 7)]
    filtered = snapshot.keyword(["common"], col("tags").has("t"), 100, ["id"])["id"].to_pylist()
    near = [
        snapshot.nearest(np.random.default_rng(n).normal(size=8), limit=7, columns=["id"])
        for n in range(4)
    ]
    return [
        rows.to_pylist(),
        [[row["id"] for row in found] for found in words],
        sorted(filtered),
        [found["id"].to_pylist() for found in near],
    ]


def test_upkeep_joins_files_and_changes_no_answer(store: Store, rows_of) -> None:
    for number in range(MAX_SMALL_FILES + 4):
        commit(store, rows_of([number, number + 1], tags=("t",) if number % 3 else ()))
    with store.write() as transaction:
        transaction.delete("memories", col("id").is_in(["m_4", "m_5"]))
    before = everything(store)
    assert fragments(store) > MAX_SMALL_FILES
    report = store.upkeep()
    assert report.compacted == ("memories",)
    assert fragments(store) == 1
    assert everything(store) == before
    idle = store.upkeep()
    assert (idle.compacted, idle.indexed) == ((), ())
    report = store.upkeep(force=True)
    assert "memories" in report.indexed
    assert everything(store) == before
    again = store.upkeep(force=True)
    assert (again.compacted, again.indexed) == ((), ())


def test_upkeep_leaves_alone_what_does_not_pay(store: Store, rows_of) -> None:
    for number in range(5):
        commit(store, rows_of([number]))
    before = store.snapshot().versions
    report = store.upkeep()
    assert (report.compacted, report.indexed, report.versions_pruned) == ((), (), 0)
    assert store.snapshot().versions == before


def test_a_larger_table_may_have_more_unindexed_rows() -> None:
    allowed = [indexes.max_unindexed(rows) for rows in (0, 10_000, 100_000, 10_000_000)]
    assert allowed == [1_000, 1_000, 5_000, 10_000]


def test_many_deletions_are_worth_a_rewrite(
    store: Store, rows_of, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(store, rows_of(range(40)))
    with store.write() as transaction:
        transaction.delete("memories", col("id").is_in([f"m_{n}" for n in range(4)]))
    monkeypatch.setattr(upkeep, "MIN_DELETED", 3)
    assert store.upkeep().compacted == (), "a tenth of the rows"
    with store.write() as transaction:
        transaction.delete("memories", col("id").is_in([f"m_{n}" for n in range(9)]))
    monkeypatch.setattr(upkeep, "MIN_DELETED", 9)
    assert store.upkeep().compacted == (), "too few rows to cost anything"
    monkeypatch.setattr(upkeep, "MIN_DELETED", 8)
    assert store.upkeep().compacted == ("memories",)
    assert store.snapshot().count("memories") == 31


def test_rows_are_indexed_once_there_are_many(
    store: Store, rows_of, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes, "MIN_UNINDEXED", 50)
    commit(store, rows_of(range(50)))
    assert store.upkeep().indexed == ()
    assert indexed_columns(store) == {"search_text"}
    commit(store, rows_of(range(50, 60)))
    assert store.upkeep().indexed == ("memories",)
    described = store.snapshot().dataset("memories").describe_indices()
    assert {item.num_rows_indexed for item in described} == {60}
    assert indexed_columns(store) == {"search_text", *DECLARATIONS["memories"].scalar_indexes}


def test_no_manifest_names_what_was_deleted_before_a_purge(store: Store, rows_of) -> None:
    commit(store, rows_of(range(3)))
    with store.write() as transaction:
        transaction.upsert("entities", pa.table({"id": ["e_boat"], "name": ["boat"]}))
    with store.write() as transaction:
        transaction.delete("entities", col("id") == "e_boat")
    store.purge()
    for path in store.folder.rglob("*.manifest"):
        assert b"e_boat" not in path.read_bytes()


def test_a_purge_leaves_no_bytes_in_empty_cells(store: Store, rows_of) -> None:
    def is_named() -> bool:
        files = store.folder.rglob("memories.lance/data/*.lance")
        return any(b"Dora Finch" in path.read_bytes() for path in files)

    rows = rows_of(range(40))
    names = pa.array([f"Dora Finch {n}" if n % 2 == 0 else f"Ida {n}" for n in range(40)]).buffers()
    mask = pa.array([False, True] * 20).buffers()[1]  # as merging rows leaves them
    hiding = pa.StringArray.from_buffers(40, names[1], names[2], mask)
    with store.write() as transaction:
        transaction.append(
            "memories", rows.set_column(rows.schema.get_field_index("speaker"), "speaker", hiding)
        )
    before = everything(store)
    assert is_named()
    store.purge()
    assert not is_named()
    assert everything(store) == before


def test_a_large_table_gets_a_vector_index_and_finds_the_same(
    store: Store, rows_of, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "VECTOR_INDEX_ROWS", 600)
    commit(store, rows_of(range(599)))
    assert not store.upkeep().vector_index_built
    before = everything(store)
    commit(store, rows_of([0]))
    commit(store, rows_of(["one more"], search_text="other"))
    before = everything(store)
    assert store.upkeep().vector_index_built
    assert store.snapshot().dataset("memories").has_index
    assert everything(store) == before
    assert not store.upkeep().vector_index_built
    query = np.ones(8)
    plain = store.snapshot().nearest(query, col("turn").is_null(), limit=599, columns=["id"])
    assert plain.num_rows == 599
    commit(store, rows_of(range(600, 2_500)))
    assert store.upkeep().vector_index_built


def test_the_vector_index_and_the_others_are_made_of_all_rows_at_once(
    store: Store, rows_of, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "VECTOR_INDEX_ROWS", 300)
    for end in (300, 1_300):  # the second time in place of an index that is there
        commit(store, rows_of(range(end - 300, end)))
        commit(store, rows_of(range(end)))
        assert store.upkeep().vector_index_built
        described = store.snapshot().dataset("memories").describe_indices()
        assert {item.num_rows_indexed for item in described} == {end}
        assert "vector_idx" in [item.name for item in described]


def test_a_vector_index_of_an_earlier_version_is_made_anew(
    store: Store, rows_of, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "VECTOR_INDEX_ROWS", 300)
    monkeypatch.setattr(indexes, "_CODES_COME_BY", 16)  # the tables' vectors have 8 dimensions

    def kinds() -> list[str]:
        """Return the kinds of vector index that the table has."""
        described = store.snapshot().dataset("memories").describe_indices()
        return [item.index_type for item in described if item.field_names == ["vector"]]

    commit(store, rows_of(range(300)))
    assert store.upkeep().vector_index_built
    assert kinds() == ["IVF_SQ"]
    monkeypatch.undo()
    monkeypatch.setattr(upkeep, "VECTOR_INDEX_ROWS", 300)
    before = everything(store)
    assert store.upkeep().vector_index_built
    assert kinds() == ["IVF_RQ"]
    assert everything(store) == before
    assert not store.upkeep().vector_index_built


# --- pruning -------------------------------------------------------------------------------------


def test_old_versions_go_after_a_while_and_head_never(
    timed: Store, clock: SetClock, rows_of
) -> None:
    for number in range(6):
        commit(timed, rows_of([number]))
    before = everything(timed)
    count = versions(timed)
    timed.upkeep(force=True)
    assert versions(timed) >= count - 10  # the steps of creation were never HEAD
    clock.now += GRACE + timedelta(minutes=1)
    report = timed.upkeep(force=True)
    assert report.versions_pruned >= 6
    assert report.bytes_freed > 0
    assert versions(timed) == 1
    assert everything(timed) == before


def test_a_version_that_was_head_a_moment_ago_stays(timed: Store, clock: SetClock, rows_of) -> None:
    commit(timed, rows_of([1]))
    clock.now += timedelta(days=30)  # HEAD all the while
    looked_up = timed.ledger.head()
    commit(timed, rows_of([2]))
    timed.upkeep(force=True)
    dataset = timed.snapshot().dataset("memories")
    assert looked_up["memories"] in [item["version"] for item in dataset.version_refs()]


def test_what_is_pruned_while_a_reader_looks_it_up_is_looked_up_anew(
    timed: Store, folder: Path, clock: SetClock, rows_of, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the moment that it reads HEAD and the one from which its lease can be seen."""
    commit(timed, rows_of([1]))
    add, others = ReaderLeases.add, iter([Store.open(folder, clock=clock)])

    def late(self: ReaderLeases, snapshot: Snapshot) -> None:
        for other in others:
            with other:
                commit(other, rows_of([2]))
                clock.now += GRACE + timedelta(minutes=1)
                assert other.prune().versions
        add(self, snapshot)

    monkeypatch.setattr(ReaderLeases, "add", late)
    snapshot = timed.snapshot()
    assert snapshot.versions == timed.ledger.head()
    assert snapshot.count("memories") == 2


def test_what_a_reader_holds_stays_while_it_holds_it(
    timed: Store, clock: SetClock, rows_of
) -> None:
    commit(timed, rows_of([1]))
    held = timed.snapshot()
    _overwrite(timed, clock, rows_of)
    timed.upkeep(force=True)
    assert held.scan("memories")["text"].to_pylist() == ["text 1"]
    del held
    timed.upkeep(force=True)
    assert versions(timed) == 1


def test_what_a_reader_in_another_process_holds_stays_until_it_dies(
    timed: Store, clock: SetClock, rows_of
) -> None:
    commit(timed, rows_of([1]))
    program = """
import sys
from pathlib import Path
from memctl.store.locks import ReaderLeases
from memctl.store.tables.snapshot import Snapshot
from memctl.store.store import UPKEEPS_A_CONNECTION, Store
store = Store.open(Path(sys.argv[1]))
held = store.snapshot()
print("ready", flush=True)
sys.stdin.readline()
print(held.scan("memories")["text"].to_pylist(), flush=True)
sys.stdin.readline()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program, str(timed.folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"
        clock.now = datetime.now(UTC)
        _overwrite(timed, clock, rows_of)
        timed.upkeep(force=True)
        reader.stdin.write("go\n")
        reader.stdin.flush()
        assert reader.stdout.readline() == "['text 1']\n"
        reader.kill()
    timed.upkeep(force=True)
    assert versions(timed) == 1
    assert len(list((timed.folder / "readers").glob("*.json"))) <= 1


def _overwrite(store: Store, clock: SetClock, rows_of: Callable[..., pa.Table]) -> None:
    commit(store, rows_of([1], text="changed"))
    store.upkeep(force=True)
    clock.now += GRACE * 2


def test_named_versions_stay(timed: Store, clock: SetClock, rows_of) -> None:
    commit(timed, rows_of([1]))
    timed.ledger.name_head("before", timed.ledger.head())
    _overwrite(timed, clock, rows_of)
    timed.upkeep(force=True)
    named = timed.ledger.head("before")
    dataset = timed.snapshot().dataset("memories").checkout_version(named["memories"])
    assert dataset.to_table(columns=["text"])["text"].to_pylist() == ["text 1"]
    timed.ledger.forget_head("before")
    timed.upkeep(force=True)
    assert versions(timed) == 1


def test_upkeep_waits_for_its_turn(store: Store) -> None:
    with store.write(), pytest.raises(LockedError):
        store.upkeep(wait=0.05)


# --- staying flat --------------------------------------------------------------------------------


COMMITTING = f"""{PRELUDE}
import json
from memctl.store.tables.upkeep import GRACE

now, counted = NOW, []
with Store.open(folder, clock=lambda: now) as store:
    for number in range(100):
        with store.write() as transaction:
            transaction.upsert("memories", rows([f"m_{{number}}"]))
        if number % 10 == 9:
            assert store.snapshot().keyword(["other"]).num_rows
            now += GRACE * 2
            store.upkeep(force=True)
            counted.append(len(list(Path("/proc/self/fd").iterdir())))
print(json.dumps(counted))
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors in /proc")
def test_file_descriptors_and_files_stay_flat_over_a_hundred_commits(
    timed: Store, run_python: Callable[[str], subprocess.CompletedProcess[str]]
) -> None:
    """In a process of its own: other tests leave descriptors that are closed when they like."""
    done = run_python(COMMITTING)
    assert done.returncode == 0, done.stderr
    counted = json.loads(done.stdout)
    # The engine leaks some with every index update; a new connection gives them back.
    assert len(counted) == UPKEEPS_A_CONNECTION
    assert counted[-1] <= counted[0] + 2, counted
    assert max(counted) <= counted[0] + 4 * UPKEEPS_A_CONNECTION, counted
    assert versions(timed) <= 3
    assert fragments(timed) <= 2
    assert timed.snapshot().count("memories") == 100
    files = sum(len(names) for _, _, names in os.walk(timed.folder))
    assert files < 300


def test_a_copy_of_the_folder_is_a_store(store: Store, tmp_path: Path, rows_of) -> None:
    commit(store, rows_of([1]))
    store.upkeep(force=True)
    store.close()
    shutil.copytree(store.folder, tmp_path / "copy")
    with Store.open(tmp_path / "copy") as copy:
        assert copy.snapshot().keyword(["word1"], columns=["id"])["id"].to_pylist() == ["m_1"]
        commit(copy, rows_of([2]))
        assert copy.snapshot().count("memories") == 2
