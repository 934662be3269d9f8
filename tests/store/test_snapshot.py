"""Searching and reading: the right rows, in the right order, under any filter."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memctl.errors import UsageError
from memctl.schema.arrow_tables import documents_table, memories_table, memory_rows
from memctl.schema.table_names import TABLES
from memctl.store.store import Store
from memctl.store.tables import snapshot as tables_snapshot
from memctl.store.tables.filter_expressions import col
from memctl.store.tables.snapshot import ROW, CachedSnapshot, Snapshot

COUNT = 400


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    made = np.random.default_rng(7).normal(size=(COUNT, 8)).astype(np.float16)
    made[0] = 0
    return made


@pytest.fixture(scope="module", params=["unindexed", "indexed", "half"])
def full(request, tmp_path_factory, memory_of, vectors) -> Iterator[Snapshot]:
    memories = [
        memory_of(
            number,
            search_text=" ".join(["common", f"mod{number % 10}", *["often"] * (number % 7)]),
            tags=(f"t{number % 5}",),
            turn=number,
            title=f"{number:04}",
        )
        for number in range(COUNT)
    ]
    rows = memories_table(memories, vectors)
    with Store.create(tmp_path_factory.mktemp("full") / "kb", 8) as store:
        for part in (rows.slice(0, COUNT // 2), rows.slice(COUNT // 2)):
            with store.write() as transaction:
                transaction.append("memories", part)
            if request.param == "half":
                store.upkeep(force=part.num_rows and part["id"][0].as_py() == "m_0")
        if request.param == "indexed":
            store.upkeep(force=True)
        yield store.snapshot()


# --- an empty store ------------------------------------------------------------------------------


def test_an_empty_store_answers_everything_with_nothing(store: Store) -> None:
    snapshot = store.snapshot()
    for table in TABLES:
        assert snapshot.count(table) == 0
        assert snapshot.scan(table).schema.names == snapshot.schema(table).names
        assert snapshot.get(table, ["x"]).num_rows == 0
        assert snapshot.batches(table).read_all().num_rows == 0
    found = snapshot.keyword(["word"])
    assert (found.num_rows, found.column_names[-1]) == (0, "_score")
    near = snapshot.nearest(np.ones(8), col("tags").has("t"), columns=["id"])
    assert (near.num_rows, near.column_names) == (0, ["id", "_distance"])


# --- keyword search ------------------------------------------------------------------------------


def test_keyword_search_finds_rows_with_a_term_best_first(full: Snapshot) -> None:
    found = full.keyword(["mod3"], limit=COUNT)
    assert {row % 10 for row in found["turn"].to_pylist()} == {3}
    assert found.num_rows == COUNT // 10
    scores = found["_score"].to_pylist()
    assert scores == sorted(scores, reverse=True)
    assert min(scores) > 0
    assert "vector" not in found.column_names


def test_any_term_finds_a_row_and_a_rarer_one_ranks_it_higher(full: Snapshot) -> None:
    found = full.keyword(["mod3", "often"], limit=COUNT, columns=["turn"])
    expected = {n for n in range(COUNT) if n % 10 == 3 or n % 7}
    assert set(found["turn"].to_pylist()) == expected
    rarer_first = found["turn"].to_pylist()[: COUNT // 10]
    assert {n % 10 for n in rarer_first} == {3}


def test_all_terms_can_be_required(full: Snapshot) -> None:
    found = full.keyword(["mod3", "often"], limit=COUNT, columns=["turn"], require_all=True)
    assert set(found["turn"].to_pylist()) == {n for n in range(COUNT) if n % 10 == 3 and n % 7}


def test_keyword_search_under_a_filter_still_fills_its_limit(full: Snapshot) -> None:
    found = full.keyword(["common"], col("tags").has("t4"), limit=30, columns=["id", "turn"])
    assert found.num_rows == 30
    assert {n % 5 for n in found["turn"].to_pylist()} == {4}
    assert full.keyword(["common"], col("turn") > COUNT, limit=30).num_rows == 0


def test_terms_are_compared_as_they_are(store: Store, rows_of) -> None:
    terms = ["Größe", "größe", "running", "the", "漢字", "x" * 500, "c++", "don't", "2025-06-01"]
    with store.write() as transaction:
        for number, term in enumerate(terms):
            transaction.append("memories", rows_of([number], search_text=f"{term} filler"))
    snapshot = store.snapshot()
    for number, term in enumerate(terms):
        assert snapshot.keyword([term], columns=["id"])["id"].to_pylist() == [f"m_{number}"], term
    assert snapshot.keyword(["run"]).num_rows == 0


@given(terms=st.lists(st.text(max_size=8), max_size=4))
@settings(max_examples=50)
def test_any_terms_can_be_searched_for(full: Snapshot, terms: list[str]) -> None:
    found = full.keyword(terms, limit=5, columns=["id"])
    asked = set(" ".join(terms).split())
    known = {"common", "often", *(f"mod{n}" for n in range(10))}
    assert (found.num_rows > 0) == bool(asked & known)


# --- nearest -------------------------------------------------------------------------------------


def _exact(vectors: np.ndarray, query: np.ndarray, among: list[int]) -> list[int]:
    rows = vectors[among].astype(np.float32)
    cosines = rows @ query / np.maximum(np.linalg.norm(rows, axis=1), 1e-9)
    return [among[at] for at in np.argsort(-cosines, kind="stable")]


def test_nearest_is_exact_with_and_without_a_filter(full: Snapshot, vectors: np.ndarray) -> None:
    for seed in range(5):
        query = np.random.default_rng(seed).normal(size=8).astype(np.float32)
        found = full.nearest(query, limit=10, columns=["turn"])
        assert found["turn"].to_pylist() == _exact(vectors, query, list(range(1, COUNT)))[:10]
        limited = full.nearest(query, col("tags").has("t2"), limit=10, columns=["turn"])
        among = [n for n in range(1, COUNT) if n % 5 == 2]
        assert limited["turn"].to_pylist() == _exact(vectors, query, among)[:10]


def test_the_distance_is_one_minus_the_cosine(full: Snapshot, vectors: np.ndarray) -> None:
    query = vectors[9].astype(np.float32) * 3
    found = full.nearest(query, limit=1, columns=["id"])
    assert found["id"].to_pylist() == ["m_9"]
    assert found["_distance"][0].as_py() == pytest.approx(0, abs=1e-3)
    opposite = full.nearest(-query, col("id") == "m_9", columns=["id"])
    assert opposite["_distance"][0].as_py() == pytest.approx(2, abs=1e-3)


def test_nothing_is_near_a_zero_vector_and_a_zero_vector_is_near_nothing(full: Snapshot) -> None:
    assert full.nearest(np.zeros(8)).num_rows == 0
    assert full.nearest(np.ones(8), col("id") == "m_0").num_rows == 0


def test_a_search_for_what_is_near_imports_no_masked_arrays(folder: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nimport numpy as np\n"
        "from memctl.store.store import Store\n"
        f"with Store.open(Path({str(folder)!r})) as store:\n"
        "    store.snapshot().nearest(np.ones(8), limit=3)\n"
        "print('numpy.ma' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


def test_a_vector_of_another_length_is_refused(full: Snapshot) -> None:
    with pytest.raises(ValueError, match="8"):
        full.nearest(np.ones(9))


# --- reading -------------------------------------------------------------------------------------


def test_rows_come_back_in_the_order_of_their_ids(full: Snapshot) -> None:
    ids = ["m_300", "m_2", "nowhere", "m_2", "m_199", "m_201"]
    found = full.get("memories", ids, ["turn"])
    assert found.column_names == ["turn"]
    assert found["turn"].to_pylist() == [300, 2, 2, 199, 201]
    assert [row.id for row in memory_rows(full.get("memories", ids))] == [
        "m_300", "m_2", "m_2", "m_199", "m_201",
    ]  # fmt: skip
    assert full.get("memories", []).num_rows == 0


def test_more_ids_than_one_lookup_takes_are_looked_up(full: Snapshot) -> None:
    ids = [f"m_{number}" for number in range(25_000)]
    assert full.get("memories", ids, ["turn"])["turn"].to_pylist() == list(range(COUNT))


def test_rows_are_read_by_the_numbers_that_a_search_gave(
    full: Snapshot, vectors: np.ndarray
) -> None:
    by_words = full.keyword(["mod3"], None, 5, ["id", ROW])
    by_vector = full.nearest(vectors[7], None, 5, ["id", ROW])
    by_place = full.scan("memories", col("turn").is_in([399, 3, 201]), ["id", ROW])
    for found in (by_words, by_vector, by_place):
        numbers = found[ROW].to_pylist()[::-1]
        assert (
            full.rows("memories", numbers, ["id"])["id"].to_pylist()
            == (found["id"].to_pylist()[::-1])
        )
        assert numbers
    assert full.rows("memories", [], ["id", "turn"]).num_rows == 0


def test_rows_are_looked_up_in_memory_once_their_columns_are_there(
    store: Store, rows_of, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.write() as transaction:
        for n in range(90):
            session = f"s{n % 4}" if n % 3 else None
            transaction.append("memories", rows_of([n], session_id=session, turn=n // 8))
        transaction.delete("memories", col("id").is_in(["m_7", "m_52"]))
    snapshot = store.snapshot()
    cached = CachedSnapshot(snapshot)
    ids = ["m_61", "nowhere", "m_2", "m_7", "m_61"]
    places = {("s1", 3), ("s2", 7), ("s3", 99), ("s9", 1)}
    limited = col("turn") < 5
    expected = snapshot.rows_with_ids(ids), snapshot.rows_of_turns(places)
    assert len(expected[0]) == 2
    assert len(expected[1]) > 1
    assert (cached.rows_with_ids(ids), cached.rows_of_turns(places)) == expected
    monkeypatch.setattr(tables_snapshot, "_ONE_QUESTION", 0)
    for _ in range(2):
        cached.rows("memories", range(88), ["id", "session_id", "turn"])
    assert cached.rows_with_ids(ids, limited) == snapshot.rows_with_ids(ids, limited)
    assert cached.rows_of_turns(places, limited) == snapshot.rows_of_turns(places, limited)
    monkeypatch.setattr(CachedSnapshot, "scan", None)
    assert (cached.rows_with_ids(ids), cached.rows_of_turns(places)) == expected


@pytest.fixture
def labelled(store: Store, document_of) -> CachedSnapshot:
    """Three documents with metadata."""
    documents = [document_of(str(n), metadata={"n": n}) for n in range(3)]
    with store.write() as transaction:
        transaction.append("documents", documents_table(documents))
    return CachedSnapshot(store.snapshot())


def metadata_of(cached: CachedSnapshot, number: int) -> object:
    return json.loads(cached.document_metadata([f"d_{number}"])[f"d_{number}"])


def test_the_metadata_of_all_documents_are_read_only_for_repeated_questions(
    labelled: CachedSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        assert labelled.document_metadata(["d_1"]).keys() == {"d_1"}
    assert metadata_of(labelled, 1) == {"n": 1}
    monkeypatch.setattr(CachedSnapshot, "get", None)
    assert metadata_of(labelled, 2) == {"n": 2}


@pytest.mark.parametrize("number", [1, 2])
def test_metadata_that_are_too_big_to_keep_are_looked_up(
    store: Store, document_of, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Whether those that were looked up are as big as the others or not."""
    monkeypatch.setattr(tables_snapshot, "MAX_METADATA_BYTES", 100)
    long = {"n": "far more than all of the others"}
    documents = [document_of(str(n), metadata={"n": n} if n < 2 else long) for n in range(5)]
    with store.write() as transaction:
        transaction.append("documents", documents_table(documents))
    cached = CachedSnapshot(store.snapshot())
    for _ in range(4):
        assert cached.document_metadata([f"d_{number}"]).keys() == {f"d_{number}"}
    monkeypatch.setattr(CachedSnapshot, "batches", None)
    assert metadata_of(cached, 3) == long


def test_the_numbers_of_rows_hold_where_others_were_deleted(store: Store, rows_of) -> None:
    with store.write() as transaction:
        transaction.append("memories", rows_of(range(50)))
    store.upkeep(force=True)
    with store.write() as transaction:
        transaction.append("memories", rows_of(range(50, 60)))
        transaction.delete("memories", col("id").is_in([f"m_{n}" for n in (0, 7, 30, 52)]))
    snapshot = store.snapshot()
    found = snapshot.keyword(["common"], None, 60, ["id", ROW])
    assert found.num_rows == 56
    read = snapshot.rows("memories", found[ROW].to_pylist(), ["id"])
    assert read["id"].to_pylist() == found["id"].to_pylist()


def test_a_scan_is_ordered_and_cut_as_asked(full: Snapshot) -> None:
    order = [("tags", "asc"), ("turn", "desc")][1:]
    page = full.scan("memories", col("turn") < 50, ["turn"], order, limit=3, offset=2)
    assert page["turn"].to_pylist() == [47, 46, 45]
    both = full.scan(
        "memories", columns=["type", "turn"], order_by=[("type", "asc"), ("title", "desc")], limit=2
    )
    assert both["turn"].to_pylist() == [399, 398]


def test_batches_are_all_the_rows(full: Snapshot) -> None:
    reader = full.batches("memories", col("turn") >= 10, ["turn", "vector"])
    assert isinstance(reader, pa.RecordBatchReader)
    assert sorted(reader.read_all()["turn"].to_pylist()) == list(range(10, COUNT))


def test_counts_are_the_rows_that_match(full: Snapshot) -> None:
    assert full.count("memories") == COUNT
    assert full.count("memories", col("tags").has("t1")) == COUNT // 5


def test_a_column_that_does_not_exist_is_named(full: Snapshot) -> None:
    with pytest.raises(UsageError, match="nosuch") as caught:
        full.scan("memories", columns=["id", "nosuch"])
    assert "importance" in caught.value.hint
    with pytest.raises(UsageError, match="nosuch"):
        full.scan("memories", order_by=[("nosuch", "asc")])


def test_threads_can_share_a_snapshot(full: Snapshot) -> None:
    found: list[int] = []

    def search(number: int) -> None:
        found.append(full.keyword([f"mod{number}"], limit=COUNT).num_rows)

    threads = [threading.Thread(target=search, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [COUNT // 10] * 8


# --- LanceDB itself ------------------------------------------------------------------------------


def test_lancedb_opens_lists_and_searches_the_tables(store: Store, rows_of) -> None:
    with store.write() as transaction:
        transaction.append("memories", rows_of(range(20)))
    database = store.lancedb()
    assert sorted(database.list_tables().tables) == sorted(TABLES)
    table = database.open_table("memories")
    assert table.count_rows("document_id = 'd_1'") == 20
    by_word = table.search("word7", query_type="fts", fts_columns="search_text").limit(3)
    assert [row["id"] for row in by_word.to_list()] == ["m_7"]
    vector = store.snapshot().get("memories", ["m_5"], ["vector"])["vector"][0].as_py()
    by_vector = table.search(vector, vector_column_name="vector").distance_type("cosine").limit(1)
    assert [row["id"] for row in by_vector.to_list()] == ["m_5"]


def test_a_limit_of_none_is_all_and_of_0_is_nothing(full: Snapshot) -> None:
    order = [("created_at", "desc")]
    assert full.scan("memories", None, ["id"], order).num_rows == COUNT
    assert full.scan("memories", None, ["id"], order, limit=0).num_rows == 0
