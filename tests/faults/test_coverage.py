"""A job that would make memories unfindable is rolled back and says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from watched import Place

from memctl.cli.main import run
from memctl.consolidation import consolidator
from memctl.errors import CoverageLost
from memctl.schema.table_names import TABLES, TableName
from memctl.store import store as store_module
from memctl.store.tables import coverage
from memctl.store.tables.filter_expressions import Expr, col
from memctl.store.tables.transaction import Transaction

NOTES = [
    "3 March 2026: The lease of the harbour office ends on 31 May 2026, says Ann Keller.",
    "Ann Keller and Bo Lind visited the harbour office in April.",
    "9 May 2026: The lease of the harbour office now ends on 30 June 2026.",
    "Bo Lind keeps the keys of the harbour office.",
]


@pytest.fixture
def filled(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("MEMCTL_HOME", str(place.home.config.home))
    for number, text in enumerate(NOTES):
        place.drop(f"{number}.txt", text)
    place.drain()
    return place


def state(place: Place) -> Any:
    columns = ("id", "text", "search_text", "vector", "is_consolidated", "valid_to")
    return sorted(place.rows("memories", *columns), key=lambda row: str(row["id"]))


def changed(transaction: Transaction, **columns: Callable[[int], pa.Array]) -> None:
    """Write something over columns of every memory."""
    ids = transaction.snapshot().scan("memories", columns=["id"])["id"]
    rows = {name: make(len(ids)) for name, make in columns.items()}
    transaction.update("memories", pa.table({"id": ids, **rows}))


def without_words(count: int) -> pa.Array:
    return pa.array(["nothing"] * count)


def ended(count: int) -> pa.Array:
    return pa.array([datetime(2020, 1, 1, tzinfo=UTC)] * count, pa.timestamp("us", tz="UTC"))


def with_other_vectors(count: int) -> pa.Array:
    vectors = np.random.default_rng(0).standard_normal((count, 256)).astype(np.float16)
    return pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), 256)


def require_reported(place: Place, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    with place.open() as base:
        job = base.store.ledger.jobs.last(kind)
    assert job is not None
    assert job.state == "failed"
    assert "would not be found any more" in job.detail["error"]
    capsys.readouterr()
    assert run(["status", "-o", "json"]) == 0
    assert "would not be found any more" in capsys.readouterr().out


@pytest.mark.parametrize(
    "damage",
    [
        {"search_text": without_words},
        {"vector": with_other_vectors},
        {"valid_to": ended},
        {"expires_at": ended},
    ],
    ids=list,
)
def test_a_consolidation_that_loses_memories_is_rolled_back(
    filled: Place,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    damage: dict[str, Callable[[int], pa.Array]],
) -> None:
    before = state(filled)
    write = consolidator.write_plan

    def sabotaged(transaction: Transaction, *rest: Any) -> None:
        write(transaction, *rest)
        changed(transaction, **damage)

    with monkeypatch.context() as patch:
        patch.setattr(consolidator, "write_plan", sabotaged)
        assert run(["consolidate", "-k", "notes"]) == 1
    assert "consolidation was rolled back" in capsys.readouterr().err
    assert state(filled) == before
    require_reported(filled, capsys, "consolidation")
    assert run(["consolidate", "-k", "notes"]) == 0
    assert all(row["is_consolidated"] for row in state(filled))


@pytest.fixture
def crowded(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """More memories than are looked up."""
    monkeypatch.setenv("MEMCTL_HOME", str(place.home.config.home))
    lines = [f"Crane {number} stands at berth {number * 7}. [[Berth]]" for number in range(300)]
    records = [f'{{"id": "{number}", "text": "{text}"}}' for number, text in enumerate(lines)]
    with place.open() as base:
        base.ingest(jsonl=BytesIO("\n".join(records).encode()))
    return place


def delete_one(transaction: Transaction, table: TableName) -> None:
    ids = transaction.snapshot().scan(table, columns=["id"])["id"]
    transaction.delete(table, col("id") == ids[len(ids) // 2].as_py())


@pytest.mark.parametrize("table", TABLES)
def test_a_consolidation_that_loses_one_row_of_many_is_rolled_back(
    crowded: Place,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    table: TableName,
) -> None:
    before, mark = crowded.rows(table, "id"), consolidator.write_plan

    def sabotaged(transaction: Transaction, *rest: Any) -> None:
        mark(transaction, *rest)
        delete_one(transaction, table)

    with monkeypatch.context() as patch:
        patch.setattr(consolidator, "write_plan", sabotaged)
        assert run(["consolidate", "-k", "notes"]) == 1
    assert f"1 of the {table} would be gone" in capsys.readouterr().err
    assert crowded.rows(table, "id") == before


@pytest.mark.parametrize("column", ["search_text", "vector"])
def test_a_consolidation_that_alters_one_memory_beyond_the_sample_is_rolled_back(
    crowded: Place,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    column: str,
) -> None:
    before = state(crowded)
    mark, other = (
        consolidator.write_plan,
        {"search_text": without_words, "vector": with_other_vectors},
    )

    def sabotaged(transaction: Transaction, *rest: Any) -> None:
        mark(transaction, *rest)
        ids = transaction.snapshot().scan("memories", columns=["id"])["id"].slice(137, 1)
        transaction.update("memories", pa.table({"id": ids, column: other[column](1)}))

    with monkeypatch.context() as patch:
        patch.setattr(consolidator, "write_plan", sabotaged)
        patch.setattr(coverage, "_require_same", lambda *_: None)
        assert run(["consolidate", "-k", "notes"]) == 1
    assert "1 of the memories would not be found any more" in capsys.readouterr().err
    assert state(crowded) == before


def test_taking_a_job_back_that_loses_a_memory_is_rolled_back(
    filled: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["consolidate", "-k", "notes"]) == 0
    before = state(filled)
    delete = Transaction.delete

    def sabotaged(self: Transaction, table: TableName, where: Expr) -> int:
        passage = self.snapshot().scan("memories", col("level") == "evidence", ["id"])["id"][0]
        return delete(self, table, where | (col("id") == passage.as_py()))

    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "delete", sabotaged)
        assert run(["job", "undo", "-k", "notes", "--yes"]) == 1
    assert "taking a job back was rolled back" in capsys.readouterr().err
    assert state(filled) == before
    assert run(["job", "undo", "-k", "notes", "--yes"]) == 0
    assert len(state(filled)) < len(before)


def test_a_snapshot_takes_back_what_a_consolidation_and_an_upkeep_wrote(filled: Place) -> None:
    before = state(filled)
    assert run(["snapshot", "create", "-k", "notes", "before"]) == 0
    assert run(["consolidate", "-k", "notes"]) == 0
    with filled.open() as base:
        base.store.upkeep(force=True)
    assert state(filled) != before
    assert run(["snapshot", "restore", "-k", "notes", "before", "--yes"]) == 0
    assert state(filled) == before


def lose_the_words(transaction: Transaction) -> None:
    """Make the keyword index anew, so that it knows every row and no word of it."""
    transaction.dataset("memories").create_scalar_index(
        "search_text", "INVERTED", replace=True, base_tokenizer="whitespace", max_token_length=1
    )


def lose_the_vectors(transaction: Transaction) -> None:
    changed(transaction, vector=with_other_vectors)


@pytest.mark.parametrize("damage", [lose_the_words, lose_the_vectors])
def test_an_upkeep_that_loses_memories_is_rolled_back(
    filled: Place,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    damage: Callable[[Transaction], None],
) -> None:
    before = state(filled)
    improve = store_module.improve

    def sabotaged(transaction: Transaction, *rest: Any, **options: Any) -> Any:
        done = improve(transaction, *rest, **options)
        damage(transaction)
        return done

    with monkeypatch.context() as patch, filled.open() as base:
        patch.setattr(store_module, "improve", sabotaged)
        with pytest.raises(CoverageLost, match="upkeep was rolled back"):
            base.store.upkeep(force=True)
        assert base.query("Who keeps the keys?", mode="keyword").hits
    assert state(filled) == before
    require_reported(filled, capsys, "upkeep")
    with filled.open() as base:
        base.store.upkeep(force=True)
        assert base.query("Who keeps the keys?", mode="keyword").hits


@pytest.mark.parametrize("table", TABLES)
def test_an_upkeep_that_loses_a_row_of_any_table_is_rolled_back(
    filled: Place, monkeypatch: pytest.MonkeyPatch, table: TableName
) -> None:
    """The table alone is written anew, so that nothing else leads to its being looked at."""
    filled.drop("linked.md", "The keys lie in the [[Harbour Office]].")
    filled.drain()
    before, improve = filled.rows(table, "id"), store_module.improve

    def sabotaged(transaction: Transaction, *rest: Any, **options: Any) -> Any:
        done = improve(transaction, *rest, **options)
        delete_one(transaction, table)
        return done

    with monkeypatch.context() as patch, filled.open() as base:
        base.store.upkeep(force=True)
        patch.setattr(store_module, "improve", sabotaged)
        with pytest.raises(CoverageLost, match=f"upkeep was rolled back: 1 of the {table}"):
            base.store.upkeep()
    assert filled.rows(table, "id") == before


def forgets_unfinished(capsys: pytest.CaptureFixture[str]) -> int:
    capsys.readouterr()
    assert run(["status", "-o", "json"]) == 0
    return int(json.loads(capsys.readouterr().out)[0]["forgets_unfinished"])


def test_the_upkeep_after_a_forget_that_loses_memories_is_rolled_back(
    filled: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (id_,) = [row["id"] for row in filled.rows("documents", "id", "text") if "April" in row["text"]]
    rewrite = store_module.rewrite_without_deleted

    def sabotaged(transaction: Transaction, *rest: Any) -> None:
        rewrite(transaction, *rest)
        lose_the_words(transaction)

    with monkeypatch.context() as patch:
        patch.setattr(store_module, "rewrite_without_deleted", sabotaged)
        assert run(["forget", "-k", "notes", "--document", id_, "--yes"]) == 1
    assert "upkeep was rolled back" in capsys.readouterr().err
    with filled.open() as base:
        assert base.query("Who keeps the keys?", mode="keyword").hits
    assert forgets_unfinished(capsys) == 1
    assert run(["memory", "add", "-k", "notes", "Ann Keller is in Rome."]) == 0
    assert forgets_unfinished(capsys) == 0


def test_insights_that_end_take_nothing_else_with_them(
    filled: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["consolidate", "-k", "notes"]) == 0
    sources = [id_ for row in filled.rows("memories", "source_ids") for id_ in row["source_ids"]]
    with filled.open() as base, base.store.write() as transaction:
        transaction.update("memories", pa.table({"id": sources[:1], "expires_at": ended(1)}))
    before = state(filled)
    supersede = consolidator.supersede_memories

    def sabotaged(transaction: Transaction, *rest: Any) -> None:
        supersede(transaction, *rest)
        changed(transaction, valid_to=ended)

    with monkeypatch.context() as patch:
        patch.setattr(consolidator, "supersede_memories", sabotaged)
        assert run(["consolidate", "-k", "notes"]) == 1
    assert "consolidation was rolled back" in capsys.readouterr().err
    assert state(filled) == before
    assert run(["consolidate", "-k", "notes"]) == 0


def test_an_embedder_whose_vectors_do_not_arrive_is_not_changed_to(
    filled: Place,
    endpoint: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in endpoint.settings(embed="e").items():
        monkeypatch.setenv(name, value)
    before = state(filled)
    replace = Transaction.replace_vectors

    def sabotaged(self: Transaction, dimension: int, columns: Any, vectors: Any) -> None:
        replace(self, dimension, columns, lambda batch: -vectors(batch))

    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "replace_vectors", sabotaged)
        assert run(["kb", "reembed", "notes", "--embedder", "endpoint/e"]) == 1
    assert "changing the embedder was rolled back" in capsys.readouterr().err
    assert state(filled) == before
    assert run(["kb", "reembed", "notes", "--embedder", "endpoint/e"]) == 0


@pytest.mark.parametrize("table", TABLES)
def test_a_change_of_embedder_that_loses_a_row_is_rolled_back(
    filled: Place,
    endpoint: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    table: TableName,
) -> None:
    filled.drop("linked.md", "The keys lie in the [[Harbour Office]].")
    filled.drain()
    for name, value in endpoint.settings(embed="e").items():
        monkeypatch.setenv(name, value)
    before = filled.rows(table, "id")
    replace = Transaction.replace_vectors

    def sabotaged(self: Transaction, *rest: Any) -> None:
        replace(self, *rest)
        delete_one(self, table)

    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "replace_vectors", sabotaged)
        assert run(["kb", "reembed", "notes", "--embedder", "endpoint/e"]) == 1
    assert f"1 of the {table} would be gone" in capsys.readouterr().err
    assert filled.rows(table, "id") == before


def test_the_watcher_says_that_a_job_was_undone_and_goes_on_taking_files_in(
    filled: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.set(consolidate_interval=1)
    write = consolidator.write_plan

    def sabotaged(transaction: Transaction, *rest: Any) -> None:
        write(transaction, *rest)
        changed(transaction, search_text=without_words)

    monkeypatch.setattr(consolidator, "write_plan", sabotaged)
    said = filled.drain()
    assert ["consolidation was rolled back" in event.message for event in said].count(True) == 1
    filled.drop("new.txt", "The keys are with Ann Keller now.")
    assert "ingested" in [event.kind for event in filled.drain()]


def test_memories_that_cannot_be_told_apart_or_say_nothing_stop_no_job(place: Place) -> None:
    lines = [NOTES[0]] * 150 + ["...", "-", "!?"]
    records = [f'{{"id": "{number}", "text": "{text}"}}' for number, text in enumerate(lines)]
    source = BytesIO("\n".join(records).encode())
    with place.open() as base:
        base.ingest(jsonl=source)
        stored = base.store.snapshot().count("memories")
        assert stored >= 150
        base.store.upkeep(force=True)
        base.consolidate()
        assert base.store.snapshot().count("memories") >= stored


def test_rows_of_a_long_table_with_the_same_words_are_found_one_by_one(place: Place) -> None:
    words = "manufacturer distributor responsible installation inspection certificate guarantee"
    words += " replacement department calibration temperature measurement reference"
    records = (
        json.dumps({"id": str(number), "text": f"{words} approved documentation item {number}"})
        for number in range(1_500)
    )
    with place.open() as base:
        base.ingest(jsonl=BytesIO("\n".join(records).encode()))
        now = base.store.snapshot()
        rows = now.spread_rows("memories", 20, ("id", "search_text")).to_pylist()
        texts = {row["id"]: row["search_text"] for row in rows}
        assert not coverage._unfindable_ids(now, texts)
        assert coverage._unfindable_ids(now, {"m_none": "guarantee"}) == {"m_none"}
