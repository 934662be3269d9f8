"""How fast memctl is at the prompt, in bulk and as it grows, as ratios measured in one run.

    python tests/bench/goals.py [--small 3000] [--large 20000] [--runs 7] [--json FILE]

Prints a table: each figure, what it must be and what is aimed at.  Every ratio is of medians that
were measured in turns in this run, so that whatever else the machine does falls on both sides; it
is still worth nothing on a machine that is very busy, so the load stands above the table.  With
``--json`` the figures are kept, and compared with those that the file had.

The floor of a query is Python, ``import lance``, opening the table, one vector search and one
keyword search; that of taking in a line is the same with a row appended and synced.  The records
are those of ``ingest.py``.  The sizes of the goals are 100,000 and 1,000,000 records, which take
minutes and an hour: the defaults tell where things go, not whether the goals are met.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import ingest

QUESTION = "what was the plan of Ann Smith?"
QUESTIONS = 40
FLOOR = """
import os, sys
os.environ["LANCE_LOG"] = "error"
import lance, numpy as np
table = lance.dataset(sys.argv[1])
vector = np.ones(table.schema.field("vector").type.list_size, dtype=np.float32)
near = {"column": "vector", "q": vector, "k": 100, "metric": "cosine"}
table.to_table(nearest=near, columns=["id", "text"])
table.to_table(full_text_query="plan smith", limit=100, columns=["id", "text"])
if len(sys.argv) > 2:
    row = table.to_table(limit=1)
    lance.write_dataset(row, sys.argv[2], mode="append")
    os.sync()
"""


@dataclass(frozen=True)
class Goal:
    """A figure, what it must be at most (or at least) and what is aimed at."""

    name: str
    must: float
    aim: float
    at_least: bool = False


GOALS = (
    Goal("--version / import typer, rich", 1.5, 1.2),
    Goal("--help / import typer, rich", 1.5, 1.2),
    Goal("fresh query / its floor", 1.5, 1.2),
    Goal("fresh query without an answer / its floor", 1.5, 1.2),
    Goal("query through the resident process / --version", 1.5, 0.7),
    Goal("the same without an answer / --version", 1.5, 0.7),
    Goal("the same / import typer, rich", 1.5, 0.7),
    Goal("ingest --text of one line / its floor", 2.5, 1.5),
    Goal("first query of the large / of the small base", 1.2, 1.0),
    Goal("batch query / single calls in one process, rate", 5, 10, at_least=True),
    Goal("bulk ingest / sum of its bare parts, rate", 0.7, 0.85, at_least=True),
    Goal("rate of bulk ingest, large / small", 0.8, 0.95, at_least=True),
    Goal("peak memory of bulk ingest, GB", 1.2, 0.8),
    Goal("memory of the resident process, GB", 1.5, 0.8),
    Goal("disk / JSONL", 5, 4),
)


# --- running --------------------------------------------------------------------------------------


def environment(home: Path, resident: bool) -> dict[str, str]:
    """Return the environment of a command: a home of its own, byte code kept."""
    dropped = ("MEMCTL_", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return kept | {"MEMCTL_HOME": str(home), "MEMCTL_RESIDENT_ENABLED": str(resident).lower()}


def memctl(home: Path, *words: str, resident: bool = False) -> bytes:
    """Run a command and return what it wrote."""
    command = [sys.executable, "-m", "memctl", *words]
    done = subprocess.run(command, env=environment(home, resident), check=True, capture_output=True)
    return done.stdout


def question(turn: int) -> str:
    """Return another question each turn: the resident process keeps what it has judged."""
    first, last = ingest.FIRST[turn % 10], ingest.LAST[turn // 10 % 10]
    return QUESTION.replace("Ann Smith", f"{first} {last}")


def medians(acts: Mapping[str, tuple[Path, bool, list[str]]], runs: int) -> dict[str, float]:
    """Return the median seconds of each act; they take turns, and the first turn warms files."""
    times: dict[str, list[float]] = {name: [] for name in acts}
    for turn in range(runs + 1):
        for name, (home, resident, words) in acts.items():
            now = [question(turn) if word == QUESTION else word for word in words]
            began = time.perf_counter()
            subprocess.run(
                [sys.executable, *now],
                env=environment(home, resident),
                check=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            times[name].append(time.perf_counter() - began)
    return {name: statistics.median(taken[1:]) for name, taken in times.items()}


def table(home: Path) -> str:
    """Return where the memories of a home are."""
    return str(home / "kb" / "default" / "lance" / "memories.lance")


def disk_bytes(home: Path) -> int:
    """Return how much the knowledge base takes."""
    return sum(path.stat().st_size for path in (home / "kb").rglob("*") if path.is_file())


# --- figures --------------------------------------------------------------------------------------


def bulk(folder: Path, small: int, large: int) -> dict[str, float]:
    """Take in a small and a large set of records; the homes stay for what follows."""
    runs = {}
    for name, count in (("small", small), ("large", large)):
        lines = "".join(json.dumps(each) + "\n" for each in ingest.Writer(1).records(count))
        file = folder / f"{name}.jsonl"
        file.write_text(lines, "utf-8")
        runs[name] = count, ingest.measure_command(file, folder / name), file.stat().st_size
    parts = ingest.measure_parts(folder / "large", folder / "parts")
    count, run, size = runs["large"]
    small_count, small_run, _ = runs["small"]
    return {
        "bulk ingest / sum of its bare parts, rate": (parts.embedding + parts.appending)
        / run.reported,
        "rate of bulk ingest, large / small": (count / run.reported)
        / (small_count / small_run.reported),
        "peak memory of bulk ingest, GB": run.peak_bytes / 1e9,
        "disk / JSONL": disk_bytes(folder / "large") / size,
    }


def prompt(folder: Path, runs: int) -> dict[str, float]:
    """Measure commands that somebody waits for."""
    small, large = folder / "small", folder / "large"
    module, query = ["-m", "memctl"], ["-m", "memctl", "query", QUESTION]
    line = folder / "line.lance"
    found = medians(
        {
            "libraries": (small, False, ["-c", "import typer, rich"]),
            "version": (small, False, [*module, "--version"]),
            "help": (small, False, [*module, "--help"]),
            "floor": (small, False, ["-c", FLOOR, table(small)]),
            "query": (small, False, query),
            "no answer": (small, False, [*query, "--no-answer"]),
            "large": (large, False, [*query, "--no-answer"]),
            "line floor": (small, False, ["-c", FLOOR, table(small), str(line)]),
            "line": (folder / "lines", False, [*module, "ingest", "--text", "The boat is blue."]),
        },
        runs,
    )
    memctl(large, "resident", "start")
    try:
        found |= medians(
            {
                "resident version": (large, True, [*module, "--version"]),
                "resident query": (large, True, query),
                "resident no answer": (large, True, [*query, "--no-answer"]),
            },
            runs,
        )
        status = json.loads(memctl(large, "resident", "status", "-o", "json"))
    finally:
        memctl(large, "resident", "stop")
    if not status["commands"]:
        raise SystemExit("no query went through the resident process: the machine is too busy")
    version = found["resident version"]
    return {
        "--version / import typer, rich": found["version"] / found["libraries"],
        "--help / import typer, rich": found["help"] / found["libraries"],
        "fresh query / its floor": found["query"] / found["floor"],
        "fresh query without an answer / its floor": found["no answer"] / found["floor"],
        "query through the resident process / --version": found["resident query"] / version,
        "the same without an answer / --version": found["resident no answer"] / version,
        "the same / import typer, rich": found["resident no answer"] / found["libraries"],
        "ingest --text of one line / its floor": found["line"] / found["line floor"],
        "first query of the large / of the small base": found["large"] / found["no answer"],
        "memory of the resident process, GB": status["memory_mb"] / 1024,
    }


def batch(folder: Path) -> dict[str, float]:
    """Ask many questions at once, and one after the other, in one process each time."""
    from memctl import open as open_kb

    writer = ingest.Writer(2)
    questions = [f"what about {each['text']}"[:80] for each in writer.records(QUESTIONS)]
    with open_kb("default", home=folder / "large") as kb:
        kb.query(QUESTION, answer=False, log=False)
        began = time.perf_counter()
        for question in questions:
            kb.query(question, answer=False, log=False)
        singly = time.perf_counter() - began
        began = time.perf_counter()
        asked = list(kb.query_many(questions, answer=False, log=False))
        together = time.perf_counter() - began
    assert len(asked) == len(questions)
    return {"batch query / single calls in one process, rate": singly / together}


# --- the whole ------------------------------------------------------------------------------------


def show(figures: Mapping[str, float], before: Mapping[str, float]) -> None:
    """Print the table."""
    print(f"{'':48} {'now':>7} {'must':>6} {'aim':>6} {'before':>7}")
    for goal in GOALS:
        now, was = figures[goal.name], before.get(goal.name)
        is_met = now >= goal.must if goal.at_least else now <= goal.must
        numbers = f"{now:7.2f} {goal.must:6.2f} {goal.aim:6.2f}"
        earlier = f" {was:7.2f}" if was is not None else " " * 8
        print(f"{goal.name:48} {numbers}{earlier} {'' if is_met else 'missed'}".rstrip())


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", type=int, default=3_000)
    parser.add_argument("--large", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures here")
    given = parser.parse_args(arguments)
    before = json.loads(given.json.read_text()) if given.json and given.json.exists() else {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "parts").mkdir()
        figures = bulk(folder, given.small, given.large)
        figures |= prompt(folder, given.runs) | batch(folder)
    print(f"{given.small:,} and {given.large:,} records, load {os.getloadavg()[0]:.1f}")
    show(figures, before)
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
