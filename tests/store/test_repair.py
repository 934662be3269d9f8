"""Damage is found, told, and put right with as little loss as can be."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from damaged import lose_copies_of_manifests, manifests

from memctl.errors import DamagedError
from memctl.instants import utc_now
from memctl.schema.arrow_tables import documents_table
from memctl.store.ledger.ledger import Ledger
from memctl.store.store import Store
from memctl.store.store_repair import repair
from memctl.store.tables.checksums import Verifier
from memctl.store.tables.engine import Datasets
from memctl.store.tables.filter_expressions import col


@pytest.fixture
def written(store: Store, rows_of, document_of) -> Path:
    with store.write() as transaction:
        transaction.append("documents", documents_table([document_of("1")]))
    for start in (0, 10):
        with store.write() as transaction:
            transaction.append("memories", rows_of(range(start, start + 10)))
    store.upkeep(force=True)
    store.ledger.set_meta("note", "kept")
    store.close()
    return store.folder


def memories(folder: Path) -> set[str]:
    with Store.open(folder) as store:
        snapshot = store.snapshot()
        found = snapshot.scan("memories", columns=["id"])["id"].to_pylist()
        assert snapshot.keyword(["common"], limit=50).num_rows == len(found)
        assert snapshot.nearest(np.ones(8), limit=50).num_rows == len(found)
        assert snapshot.get("memories", found).num_rows == len(found)
        return set(found)


def write_another(folder: Path, rows_of) -> None:
    with Store.open(folder) as store, store.write() as transaction:
        transaction.upsert("memories", rows_of(["new"]))


def subjects(steps: list) -> set[str]:
    return {step.subject for step in steps}


def damaged(folder: Path) -> set[str]:
    """What cannot be read: the ledger, or tables."""
    try:
        with closing(Ledger.open(folder / "ledger.sqlite")) as ledger:
            head, complaints = ledger.head(), ledger.complaints()
            verifier = Verifier(Datasets.of(folder), ledger, reads_rows=True)
    except DamagedError:
        return {"ledger"}
    states = [verifier.inspect_table(*each) for each in head.items()]
    found = {s.table for s in states if not s.is_readable or s.broken_indexes}
    return found | ({"ledger"} if complaints else set())


ALL = {f"m_{number}" for number in range(20)}


def test_a_sound_store_is_not_damaged_and_repair_leaves_it_alone(written: Path) -> None:
    assert damaged(written) == set()
    assert repair(written, utc_now).steps == []
    assert memories(written) == ALL


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _junk(path: Path) -> None:
    path.write_bytes(random.Random(5).randbytes(path.stat().st_size))


def _empty(path: Path) -> None:
    path.write_bytes(b"")


HURTS = pytest.mark.parametrize("hurt", [_cut, _junk, _empty, Path.unlink])


@HURTS
def test_a_lost_ledger_is_made_anew_from_the_tables(
    written: Path, rows_of, hurt: Callable[[Path], None]
) -> None:
    hurt(written / "ledger.sqlite")
    assert damaged(written) == {"ledger"}
    assert subjects(repair(written, utc_now).steps) == {"ledger"}
    assert damaged(written) == set()
    assert memories(written) == ALL
    write_another(written, rows_of)
    assert memories(written) == {*ALL, "m_new"}


@HURTS
def test_a_lost_manifest_costs_nothing_that_stands_in_files(
    written: Path, rows_of, hurt: Callable[[Path], None]
) -> None:
    write_another(written, rows_of)
    lose_copies_of_manifests(written)
    hurt(manifests(written, "memories")[0])
    assert damaged(written) == {"memories"}
    assert subjects(repair(written, utc_now).steps) == {"memories"}
    assert damaged(written) == set()
    assert memories(written) == {*ALL, "m_new"}
    write_another(written, rows_of)
    assert memories(written) == {*ALL, "m_new"}
    with Store.open(written) as store:
        assert store.ledger.meta("note") == "kept"


@HURTS
def test_a_lost_data_file_costs_its_rows_alone(
    written: Path, rows_of, hurt: Callable[[Path], None]
) -> None:
    write_another(written, rows_of)
    files = sorted((written / "lance/memories.lance/data").iterdir(), key=os.path.getsize)
    hurt(files[0])
    assert damaged(written) == {"memories"}
    steps = repair(written, utc_now).steps
    assert "20 of 21 rows" in steps[0].message
    assert damaged(written) == set()
    assert memories(written) == ALL
    write_another(written, rows_of)
    assert memories(written) == {*ALL, "m_new"}


@HURTS
def test_broken_indexes_are_made_anew(written: Path, rows_of, hurt: Callable[[Path], None]) -> None:
    for root, _, names in os.walk(written / "lance/memories.lance/_indices"):
        for name in names:
            hurt(Path(root) / name)
    assert damaged(written) == {"memories"}
    assert subjects(repair(written, utc_now).steps) == {"memories"}
    assert damaged(written) == set()
    assert memories(written) == ALL
    write_another(written, rows_of)
    assert memories(written) == {*ALL, "m_new"}


@HURTS
def test_a_table_without_any_readable_version_is_made_from_its_files(
    written: Path, rows_of, hurt: Callable[[Path], None]
) -> None:
    lose_copies_of_manifests(written)
    for path in manifests(written, "memories"):
        hurt(path)
    assert subjects(repair(written, utc_now).steps) == {"memories"}
    assert damaged(written) == set()
    assert memories(written) == ALL
    write_another(written, rows_of)
    assert memories(written) == {*ALL, "m_new"}


def test_where_nothing_can_be_read_at_all_a_backup_is_needed(written: Path) -> None:
    (written / "ledger.sqlite").unlink()
    for path in (written / "lance/memories.lance").rglob("*"):
        if path.is_file():
            path.write_bytes(b"")
    with pytest.raises(DamagedError) as caught:
        repair(written, utc_now)
    assert "backup" in caught.value.hint


@HURTS
def test_rows_of_which_the_deletions_are_lost_come_from_an_earlier_version(
    written: Path, rows_of, hurt: Callable[[Path], None]
) -> None:
    with Store.open(written) as store, store.write() as transaction:
        transaction.delete("memories", col("id") == "m_3")
    for path in (written / "lance/memories.lance/_deletions").iterdir():
        hurt(path)
    assert damaged(written) == {"memories"}
    assert subjects(repair(written, utc_now).steps) == {"memories"}
    assert damaged(written) == set()
    assert memories(written) >= ALL - {"m_3"}


def files_of_rows(folder: Path) -> set[Path]:
    return set((folder / "lance/memories.lance/data").iterdir())


def test_what_an_update_wrote_into_a_file_that_is_lost_comes_back_as_it_was_before(
    written: Path, rows_of
) -> None:
    before = files_of_rows(written)
    with Store.open(written) as store, store.write() as transaction:
        transaction.update("memories", pa.table({"id": ["m_3"], "importance": [0.9]}))
    (newest,) = files_of_rows(written) - before
    newest.unlink()
    (step,) = repair(written, utc_now).steps
    assert step.message == "kept 19 rows, 1 more from an earlier version"
    assert memories(written) == ALL


def test_what_was_deleted_does_not_come_back_from_an_earlier_version(
    written: Path, rows_of, document_of
) -> None:
    with Store.open(written) as store:
        with store.write() as transaction:
            transaction.append("documents", documents_table([document_of("2")]))
            transaction.append("memories", rows_of(["deleted"], document_id="d_2"))
        before = files_of_rows(written)
        with store.write() as transaction:
            transaction.delete("memories", col("document_id") == "d_2")
            transaction.delete("documents", col("id") == "d_2")
            transaction.append("memories", rows_of(["new"]))
    (newest,) = files_of_rows(written) - before
    newest.unlink()
    repair(written, utc_now)
    assert memories(written) == ALL
