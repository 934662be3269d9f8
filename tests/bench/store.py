"""How fast the store is, each figure beside a baseline measured in the same run.

    python tests/bench/store.py [--rows 100000] [--folder /tmp]

The baseline is the engine alone doing the same work without HEAD, lock, fsync or ledger; for a
search it is NumPy over vectors in memory, or the engine's scanner without filters and sorting.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from memctl.records import Memory
from memctl.schema.arrow_tables import memories_table, schemas
from memctl.store.store import Store
from memctl.store.tables.engine import lance
from memctl.store.tables.filter_expressions import col

DIMENSION = 256
WORDS = 20_000
TERMS = ["w17", "w230", "w4100"]
SEARCHED = 10_000
NOW = datetime(2025, 6, 1, tzinfo=UTC)


def make_rows(first: int, count: int) -> pa.Table:
    """Return synthetic memories of some 40 words with Zipf-like frequencies."""
    random = np.random.default_rng(first)
    words = (random.pareto(1.0, (count, 40)) * 10).astype(int) % WORDS
    vectors = random.normal(size=(count, DIMENSION)).astype(np.float32)
    memories = []
    for number, row in enumerate(words, first):
        text = " ".join(f"w{word}" for word in row)
        memories.append(
            Memory(
                id=f"m_{number:024}",
                document_id=f"d_{number // 5:024}",
                level="evidence",
                type="passage",
                text=text,
                search_text=text,
                namespace=f"user:{number % 50}",
                created_at=NOW,
                valid_from=NOW,
                source=f"notes/{number // 5}.md",
                tags=(f"t{number % 20}",),
            )
        )
    return memories_table(memories, vectors)


def seconds(work: Callable[[], Any], times: int = 1) -> float:
    """Return the median of the seconds that some work takes."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return float(np.median(taken))


def show(name: str, value: float, unit: str, baseline: float, what: str) -> None:
    """Print a figure, its baseline and their ratio."""
    ratio = value / baseline if baseline else float("nan")
    print(f"{name:<44} {value:>12,.2f} {unit:<7} {baseline:>12,.2f} {what:<24} x{ratio:.2f}")


def bench_appends(store: Store, folder: Path, count: int) -> None:
    """Append many rows in one transaction, and the same with the engine alone."""
    parts = [make_rows(at, min(2_000, count - at)) for at in range(0, count, 2_000)]

    def with_store() -> None:
        with store.write() as transaction:
            for part in parts:
                transaction.append("memories", part)

    def alone() -> None:
        lance().write_dataset(iter(_batches(parts)), folder / "bulk.lance", schema=parts[0].schema)

    ours, bare = count / seconds(with_store), count / seconds(alone)
    show("append in bulk", ours, "rows/s", bare, "engine alone")


def _batches(parts: list[pa.Table]) -> list[pa.RecordBatch]:
    return [batch for part in parts for batch in part.to_batches()]


def bench_commits(store: Store, folder: Path, count: int) -> None:
    """Commit single rows, and append single rows with the engine alone."""
    rows = [make_rows(10_000_000 + number, 1) for number in range(count)]
    bare_rows = lance().write_dataset(
        schemas(DIMENSION)["memories"].empty_table(), folder / "small.lance"
    )

    def with_store() -> None:
        for row in rows:
            with store.write() as transaction:
                transaction.append("memories", row)

    def with_upserts() -> None:
        for row in rows:
            with store.write() as transaction:
                transaction.upsert("memories", row)

    def alone() -> None:
        for row in rows:
            lance().write_dataset(row, bare_rows, mode="append")

    bare = count / seconds(alone)
    show("commits of one new row", count / seconds(with_store), "/s", bare, "engine, no fsync")
    show("commits replacing one row", count / seconds(with_upserts), "/s", bare, "engine's append")


def bench_opening(store: Store) -> None:
    """Open a snapshot in a warm process, and in a process of its own."""
    opened = seconds(store.snapshot, 200) * 1e3
    raw = seconds(lambda: lance().dataset(str(store.folder / "lance/memories.lance")), 50) * 1e3
    show("snapshot, warm", opened, "ms", raw, "engine opens one table")
    program = (
        "import sys; from pathlib import Path; from memctl.store.store import Store\n"
        "print(Store.open(Path(sys.argv[1])).snapshot().count('memories'))"
    )
    folder = str(store.folder)
    cold = seconds(lambda: _run(program, folder), 5) * 1e3
    bare = seconds(lambda: _run("import lance", folder), 5) * 1e3
    show("open, snapshot and count, own process", cold, "ms", bare, "import lance")


def _run(program: str, *arguments: str) -> None:
    subprocess.run([sys.executable, "-c", program, *arguments], check=True, capture_output=True)


def bench_searches(store: Store, label: str) -> None:
    """Search by terms and by vector, plain and filtered."""
    snapshot = store.snapshot()
    dataset = snapshot.dataset("memories")
    columns = ["id", "document_id", "text", "source"]
    query = np.random.default_rng(5).normal(size=DIMENSION).astype(np.float32)
    stored = snapshot.scan("memories", columns=["vector"])["vector"].combine_chunks()
    matrix = stored.flatten().to_numpy().reshape(-1, DIMENSION).astype(np.float32)
    tagged = col("tags").has("t3") & (col("namespace") == "user:3")

    def bare_keyword() -> None:
        match = lance().query.MatchQuery(" ".join(TERMS), "search_text")
        dataset.scanner(columns=["id", "_score"], full_text_query=match, limit=100).to_table()

    def bare_nearest() -> None:
        np.argpartition(-(matrix @ query), 100)

    words, product = seconds(bare_keyword, 30) * 1e3, seconds(bare_nearest, 30) * 1e3
    for name, where in (("", None), (", filtered", tagged)):
        taken = seconds(lambda w=where: snapshot.keyword(TERMS, w, 100, columns), 30) * 1e3
        show(f"keyword{name}, {label}", taken, "ms", words, "engine, ids alone")
    for name, where in (("", None), (", filtered", tagged)):
        taken = seconds(lambda w=where: snapshot.nearest(query, w, 100, columns), 30) * 1e3
        show(f"nearest{name}, {label}", taken, "ms", product, "NumPy in memory")


def main() -> None:
    """Run everything in a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        with Store.create(folder / "small", DIMENSION) as store:
            with store.write() as transaction:
                transaction.append("memories", make_rows(0, SEARCHED))
            bench_searches(store, f"{SEARCHED:,} rows, unindexed")
            print(f"upkeep: {store.upkeep()}")
            bench_searches(store, f"{SEARCHED:,} rows")
            bench_opening(store)
            bench_commits(store, folder, 100)
            print(f"upkeep: {store.upkeep()}")
        with Store.create(folder / "large", DIMENSION) as store:
            bench_appends(store, folder, options.rows)
            print(f"upkeep: {store.upkeep()}")
            bench_searches(store, f"{options.rows:,} rows")


if __name__ == "__main__":
    main()
