"""How much memory and time `memctl doctor` takes, beside reading every row once with the engine.

    python tests/bench/doctor.py [--memories 300000] [--folder /tmp]

The knowledge base is made up: documents of five passages with vectors, all indexes made.  Each
figure is of a process of its own (Linux); the home is kept where ``--folder`` names one, and used
again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

from memctl.config import load_config
from memctl.home import Home
from memctl.records import Document, Memory
from memctl.schema.arrow_tables import documents_table, memories_table

PASSAGES = 5
WORDS = 20_000
COMMIT = 50_000
NOW = datetime(2025, 6, 1, tzinfo=UTC)

PEAK = """
with open("/proc/self/status") as status:  # ru_maxrss starts at what the parent had
    print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""
DOCTOR = f"""
import contextlib, os, sys
from memctl.cli.main import run
with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
    code = run(["doctor", "-o", "ndjson", *sys.argv[2:]])
assert code == 0, code
{PEAK}
"""
READING = f"""
import sys
from pathlib import Path
import lance
for path in Path(sys.argv[1], "kb/big/lance").glob("*.lance"):
    for batch in lance.dataset(str(path)).scanner(batch_size_bytes=8 << 20).to_batches():
        pass
{PEAK}
"""


def make_home(folder: Path, memories: int) -> None:
    """Remember so many passages, and bring all indexes up to date."""
    home = Home(load_config({"home": str(folder)}, {}))
    home.create("big")
    with home.open("big") as base:
        for first in range(0, memories, COMMIT):
            documents, passages = rows(first, min(COMMIT, memories - first))
            with base.store.write() as transaction:
                transaction.append("documents", documents)
                transaction.append("memories", passages)
        base.store.upkeep(force=True)


def rows(first: int, count: int) -> tuple[pa.Table, pa.Table]:
    """Return documents and their passages of some 40 words each with Zipf-like frequencies."""
    random = np.random.default_rng(first)
    words = (random.pareto(1.0, (count, 40)) * 10).astype(int) % WORDS
    texts = [" ".join(f"w{word}" for word in row) for row in words]
    vectors = random.normal(size=(count, 256)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    documents, memories = [], []
    for at in range(0, count, PASSAGES):
        id_, parts = f"d_{first + at:024}", texts[at : at + PASSAGES]
        documents.append(document(id_, "\n\n".join(parts)))
        start = 0
        for number, text in enumerate(parts, first + at):
            memories.append(passage(number, id_, text, start))
            start += len(text) + 2
    return documents_table(documents), memories_table(memories, vectors)


def document(id_: str, text: str) -> Document:
    """Return a document that was read from a text of that name."""
    known = {"id": id_, "root_id": id_, "text": text, "size": len(text), "status": "indexed"}
    lists = ("entities", "topics", "keywords", "tags", "links", "authors", "dates", "missing")
    texts = ("source", "title", "media_type", "sha256", "summary", "language", "reader", "method")
    values = dict.fromkeys(lists, ()) | dict.fromkeys(texts, "text") | known
    when = {"created_at": NOW, "ingested_at": NOW}
    numbers = {"part": 0, "importance": 0.5, "pipeline_version": 1, "signals": {}}
    return Document(**values, **when, **numbers, external_id=None, namespace="default")


def passage(number: int, document_id: str, text: str, start: int) -> Memory:
    """Return a verbatim passage of a document."""
    return Memory(
        id=f"m_{number:024}",
        document_id=document_id,
        level="evidence",
        type="passage",
        text=text,
        search_text=text,
        namespace="default",
        created_at=NOW,
        valid_from=NOW,
        start=start,
        end=start + len(text),
    )


def measured(program: str, home: Path) -> tuple[float, float]:
    """Return the largest resident memory of a program in MB, and its seconds."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", program, str(home)],
        env=os.environ | {"MEMCTL_HOME": str(home)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return int(done.stdout) / 1024, time.perf_counter() - began


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=300_000)
    parser.add_argument("--folder", type=Path, help="where to make the home, or find it")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home = (chosen.folder or Path(scratch)) / "home"
        if not home.exists():
            make_home(home, chosen.memories)
        reading, doctor = measured(READING, home), measured(DOCTOR, home)
    for what, unit, one, other in zip(
        ("memory", "time"), ("MB", "s"), doctor, reading, strict=True
    ):
        print(
            f"{what:<8} {one:>10,.1f} {unit:<3} reading alone {other:>10,.1f}  x{one / other:.2f}"
        )


if __name__ == "__main__":
    main()
