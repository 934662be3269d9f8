"""Damage is found, told, and put right with as little loss as can be."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from memctl.errors import DamagedError
from memctl.store.repair import examine, repair
from memctl.store.store import Store, utc_now


@pytest.fixture
def written(store: Store, rows_of) -> Path:
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


def subjects(findings: list) -> set[str]:
    return {finding.subject for finding in findings}


ALL = {f"m_{number}" for number in range(20)}


def test_a_sound_store_has_no_findings_and_repair_leaves_it_alone(written: Path) -> None:
    assert examine(written) == []
    assert repair(written, utc_now) == []
    assert memories(written) == ALL


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _junk(path: Path) -> None:
    path.write_bytes(os.urandom(path.stat().st_size))


def _empty(path: Path) -> None:
    path.write_bytes(b"")


HURTS = pytest.mark.parametrize("hurt", [_cut, _junk, _empty, Path.unlink])


@HURTS
def test_a_lost_ledger_is_made_anew_from_the_tables(
    written: Path, rows_of, hurt: Callable[[Path], None]
) -> None:
    hurt(written / "ledger.sqlite")
    assert subjects(examine(written)) == {"ledger"}
    assert subjects(repair(written, utc_now)) == {"ledger"}
    assert examine(written) == []
    assert memories(written) == ALL
    write_another(written, rows_of)
    assert memories(written) == {*ALL, "m_new"}


@HURTS
def test_a_lost_manifest_costs_what_came_after_the_one_before(
    written: Path, rows_of, hurt: Callable[[Path], None]
) -> None:
    write_another(written, rows_of)
    hurt(min((written / "lance/memories.lance/_versions").glob("*.manifest")))
    assert subjects(examine(written)) == {"memories"}
    assert subjects(repair(written, utc_now)) == {"memories"}
    assert examine(written) == []
    assert memories(written) == ALL
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
    assert subjects(examine(written)) == {"memories"}
    told = repair(written, utc_now)
    assert "20 of 21 rows" in told[0].message
    assert examine(written) == []
    assert memories(written) == ALL
    write_another(written, rows_of)
    assert memories(written) == {*ALL, "m_new"}


@HURTS
def test_broken_indexes_are_made_anew(written: Path, rows_of, hurt: Callable[[Path], None]) -> None:
    for root, _, names in os.walk(written / "lance/memories.lance/_indices"):
        for name in names:
            hurt(Path(root) / name)
    assert subjects(examine(written)) == {"memories"}
    assert subjects(repair(written, utc_now)) == {"memories"}
    assert examine(written) == []
    assert memories(written) == ALL
    write_another(written, rows_of)
    assert memories(written) == {*ALL, "m_new"}


def test_a_table_without_any_readable_version_needs_a_backup(written: Path) -> None:
    for path in (written / "lance/memories.lance/_versions").iterdir():
        path.write_bytes(b"")
    with pytest.raises(DamagedError) as caught:
        repair(written, utc_now)
    assert "backup" in caught.value.hint
