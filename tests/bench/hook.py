"""How long a hook of a coding agent takes, and what it costs to note a question.

    python tests/bench/hook.py [--memories 100000] [--runs 7]

A knowledge base in a temporary home gets so many memories first.  Prints the median and the worst
seconds of ``memctl hook UserPromptSubmit`` in a new process, for a prompt that memory has
something on and for one that needs none, with its processor time, which is what it takes where
nothing else runs, and how many bytes it put in; then the milliseconds that the query log takes of
a question in a process that is warm.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from sessions import fill, show

import memctl
from memctl.knowledge_base import KnowledgeBase
from memctl.queries.query_log import QueryLog

PROMPTS = {
    "what memory knows": "When did we say that buoy 4711 of the harbour is lit?",
    "a haiku": "write a haiku",
}
ASKED = 100


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with memctl.open("default", home=home, create=True) as base:
            fill(base, options.memories)
        heads = ("median", "worst", "processor", "bytes")
        print(f"{'':22}{''.join(f'{head:>10}' for head in heads)}   seconds")
        for name, prompt in PROMPTS.items():
            hook(home, prompt)
            runs = [hook(home, prompt) for _ in range(options.runs)]
            seconds, busy = [each[0] for each in runs], [each[1] for each in runs]
            middle, worst = statistics.median(seconds), max(seconds)
            figures = (middle, worst, statistics.median(busy))
            row = "".join(f"{figure:10.2f}" for figure in figures)
            print(f"{name:22}{row}{runs[0][2]:10}", flush=True)
        print(f"{'':22}{'median':>10}{'p95':>10}{'worst':>10}   milliseconds")
        with memctl.open("default", home=home) as base:
            show("query log", noted(base))


def hook(home: Path, prompt: str) -> tuple[float, float, int]:
    """Run the hook as an agent does; return seconds, those of the processor, and bytes."""
    given = {"hook_event_name": "UserPromptSubmit", "session_id": "bench", "prompt": prompt}
    environment = {**os.environ, "MEMCTL_HOME": str(home), "PYTHONPYCACHEPREFIX": str(home / "pyc")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an agent finds the program compiled
    before, began = processor_seconds(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "memctl", "hook", "UserPromptSubmit"],
        input=json.dumps(given).encode(),
        env=environment,
        capture_output=True,
        check=True,
    )
    return time.perf_counter() - began, processor_seconds() - before, len(done.stdout)


def processor_seconds() -> float:
    """Return how long processes of this one have kept the processor."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def noted(base: KnowledgeBase) -> list[float]:
    """Return the milliseconds that the query log takes of each question."""
    taken: list[float] = []
    note = QueryLog.note

    def timed(log: QueryLog, *given: Any, **named: Any) -> bool:
        """Note a question, and how long that took."""
        began = time.perf_counter()
        found = note(log, *given, **named)
        taken.append(1000 * (time.perf_counter() - began))
        return found

    QueryLog.note = timed  # type: ignore[method-assign]
    for number in range(ASKED):
        base.query(f"When is buoy {number} lit?", answer=False)
    QueryLog.note = note  # type: ignore[method-assign]
    return taken[1:]


if __name__ == "__main__":
    main()
