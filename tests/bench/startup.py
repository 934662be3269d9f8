"""How long a command takes in a process of its own, beside what its libraries take by themselves.

    python tests/bench/startup.py [--memories 3000] [--runs 7]

The runs take turns, so that whatever else the machine does falls on all of them alike; each figure
is a median.  Byte code is warm.  The help must stay under three times what importing its two
libraries takes, and the greeting of the MCP server under twice ``import json``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

WORDS = [
    "lease", "workshop", "harbour", "coffee", "roast", "supplier", "contract", "kilo", "invoice",
    "ship", "train", "budget", "pump", "electrician", "meeting", "roof", "machine", "plan",
]  # fmt: skip
NAMES = ["Mara", "Jonas", "Priya", "Tomas", "Ines", "Eva", "Olsen", "Kranich", "Huila", "Fjell"]
QUESTION = "when does the electrician come to the workshop?"

COMMANDS: Mapping[str, list[str]] = {
    "python": ["-c", "pass"],
    "import json": ["-c", "import json"],
    "memctl mcp, initialize": ["-m", "memctl", "mcp"],
    "import typer, rich": ["-c", "import typer, rich"],
    "memctl --help": ["-m", "memctl", "--help"],
    "memctl kb list": ["-m", "memctl", "kb", "list"],
    "import lance": ["-c", "import lance"],
    "memctl query": ["-m", "memctl", "query", QUESTION],
    "memctl query --mode keyword": ["-m", "memctl", "query", QUESTION, "--mode", "keyword"],
}
GREETING = b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}\n'
RATIOS = (
    ("memctl mcp, initialize", "import json"),
    ("memctl --help", "import typer, rich"),
    ("memctl kb list", "import typer, rich"),
    ("memctl query", "import lance"),
    ("memctl query --mode keyword", "import lance"),
)


def environment(home: Path) -> dict[str, str]:
    """Return the environment of the runs: a home of their own, and byte code kept."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMCTL_")}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    return kept | {"MEMCTL_HOME": str(home)}


def fill(home: Path, memories: int) -> None:
    """Remember synthetic notes."""
    chance = random.Random(1)
    lines = home / "notes.jsonl"
    with lines.open("w") as file:
        for number in range(memories):
            words = " ".join(chance.choices(WORDS, k=25))
            text = f"{chance.choice(NAMES)} said on {1 + number % 28} May: {words} {number}."
            file.write(json.dumps({"id": str(number), "text": text}) + "\n")
    command = [sys.executable, "-m", "memctl", "ingest", "--jsonl", str(lines)]
    subprocess.run(command, env=environment(home), check=True, capture_output=True)


def seconds(arguments: list[str], home: Path) -> float:
    """Return how long one run takes; of the MCP server, until it has greeted."""
    began = time.perf_counter()
    command = [sys.executable, *arguments]
    if "mcp" not in arguments:
        subprocess.run(command, env=environment(home), check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - began
    with subprocess.Popen(
        command, env=environment(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(GREETING)
        server.stdin.flush()
        server.stdout.readline()
        taken = time.perf_counter() - began
        server.kill()
    return taken


def measure(home: Path, runs: int) -> dict[str, float]:
    """Return the median time of every command, after one run that warms files and byte code."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(runs + 1):
        for name, arguments in COMMANDS.items():
            times[name].append(seconds(arguments, home))
    return {name: statistics.median(taken[1:]) for name, taken in times.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=3000)
    parser.add_argument("--runs", type=int, default=7)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder), given.memories)
        medians = measure(Path(folder), given.runs)
    for name, median in medians.items():
        print(f"{name:30} {1000 * median:7.0f} ms")
    for name, baseline in RATIOS:
        print(f"{name:30} {medians[name] / medians[baseline]:7.2f} x {baseline}")


if __name__ == "__main__":
    main()
